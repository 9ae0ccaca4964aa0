# SPDX-License-Identifier: BSD-3-Clause
"""Mirrored directories: everything as it is, and the counterparts of datasets."""
import errno
import os
import shutil
import stat
import threading
import time

import h5py
import netCDF4
import numpy as np
import zarr

from lib.context import eventually


def make_h5(path, value=1, n=1000):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(n) + value, chunks=(100,), compression="gzip")
    return path


def make_tree(path, value=1, n=1000):
    group = zarr.open_group(path, mode="w")
    group.create_dataset("v", data=np.arange(n) + value, chunks=100)
    group["v"].attrs["_ARRAY_DIMENSIONS"] = ["x"]
    return path


def read_tree(path):
    return zarr.open_group(path, mode="r")["v"][...]


def read_file(path):
    with netCDF4.Dataset(path) as f:
        return f["v"][...].filled()


def errno_of(func, *args):
    try:
        func(*args)
    except OSError as error:
        return error.errno
    return 0


def make_all(t):
    """A directory with some of everything."""
    folder = t.path("data")
    os.makedirs(os.path.join(folder, "sub", "deep"))
    make_h5(os.path.join(folder, "a.nc"), 1)
    make_h5(os.path.join(folder, "sub", "b.h5"), 2)
    make_tree(os.path.join(folder, "c.zarr"), 3)
    make_tree(os.path.join(folder, "sub", "d"), 4)
    shutil.make_archive(os.path.join(folder, "e.zarr"), "zip",
                        make_tree(t.path("e"), 5))
    with open(os.path.join(folder, "plain.txt"), "w") as f:
        f.write("plain\n")
    os.chmod(os.path.join(folder, "plain.txt"), 0o640)
    os.symlink("plain.txt", os.path.join(folder, "link"))
    os.symlink("nowhere", os.path.join(folder, "dangling"))
    os.mkfifo(os.path.join(folder, "pipe"))
    return folder


def test_everything(t):
    folder = make_all(t)

    def check(mnt):
        assert sorted(os.listdir(mnt)) == sorted(os.listdir(folder) + ["a.zarr", "c.nc", "e.nc"])
        assert sorted(os.listdir(mnt + "/sub")) == ["b.h5", "b.zarr", "d", "d.nc", "deep"]
        assert sorted(os.listdir(mnt + "/c.zarr")) == sorted(os.listdir(folder + "/c.zarr"))
        assert os.readlink(mnt + "/link") == "plain.txt"
        with open(mnt + "/link") as f:
            assert f.read() == "plain\n"
        assert errno_of(os.stat, mnt + "/dangling") == errno.ENOENT
        assert stat.S_IMODE(os.stat(mnt + "/plain.txt").st_mode) == 0o640
        assert os.stat(mnt + "/plain.txt").st_mtime == os.stat(folder + "/plain.txt").st_mtime
        with open(mnt + "/pipe", "rb") as f:
            assert errno_of(f.read) == errno.EIO
        for name in ("a.nc", "sub/b.h5", "e.zarr.zip", "c.zarr/v/.zarray"):
            with open(f"{mnt}/{name}", "rb") as f, open(f"{folder}/{name}", "rb") as g:
                assert f.read() == g.read(), name
        for value, name in ((1, "a.zarr"), (2, "sub/b.zarr")):
            assert (read_tree(f"{mnt}/{name}") == np.arange(1000) + value).all(), name
        for value, name in ((3, "c.nc"), (4, "sub/d.nc"), (5, "e.nc")):
            assert (read_file(f"{mnt}/{name}") == np.arange(1000) + value).all(), name
            with open(f"{mnt}/{name}", "rb") as f:
                assert len(f.read()) == os.stat(f"{mnt}/{name}").st_size, name
        assert errno_of(os.open, mnt + "/plain.txt", os.O_WRONLY) == errno.EROFS

    with t.mount(folder) as m:
        t.call(check, m.path)


def test_mountpoint_inside(t):
    """The mountpoint lies in the directory: it is not shown, and nothing waits for itself."""
    make_h5(t.path("a.nc"))

    def check(mnt):
        names = os.listdir(mnt)
        assert "a.zarr" in names and os.path.basename(mnt) not in names, names
        assert errno_of(os.stat, os.path.join(mnt, os.path.basename(mnt))) == errno.ENOENT
        for _, _, files in os.walk(mnt):
            assert len(files) < 100

    with t.mount(t.tmp) as m:
        t.call(check, m.path)


def test_changes(t):
    folder = t.path("data")
    os.mkdir(folder)
    make_h5(folder + "/a.nc", 1)
    make_tree(folder + "/c.zarr", 3)

    def check(mnt):
        assert read_tree(mnt + "/a.zarr")[0] == 1
        assert read_file(mnt + "/c.nc")[0] == 3
        held = os.open(mnt + "/c.nc", os.O_RDONLY)
        make_h5(t.path("new"), 10)
        os.rename(t.path("new"), folder + "/a.nc")
        zarr.open_group(folder + "/c.zarr", mode="r+").attrs["title"] = "changed"

        def changed():
            with netCDF4.Dataset(mnt + "/c.nc") as f:
                return read_tree(mnt + "/a.zarr")[0] == 10 and "title" in f.ncattrs()

        eventually(changed)
        assert errno_of(os.pread, held, 100, 0) in (0, errno.ESTALE)
        os.posix_fadvise(held, 0, 0, os.POSIX_FADV_DONTNEED)
        assert errno_of(os.pread, held, 100, 0) == errno.ESTALE
        make_h5(folder + "/new.h5", 7)
        eventually(lambda: os.path.isdir(mnt + "/new.zarr"))
        assert read_tree(mnt + "/new.zarr")[0] == 7
        os.unlink(folder + "/a.nc")
        eventually(lambda: not os.path.exists(mnt + "/a.zarr"))
        assert "a.zarr" not in os.listdir(mnt)
        shutil.rmtree(folder + "/c.zarr")
        eventually(lambda: not os.path.exists(mnt + "/c.nc"))

    with t.mount(folder) as m:
        t.call(check, m.path)


def test_bad_datasets(t):
    """They disturb no other, and are one line in the log."""
    folder = make_all(t)
    with open(folder + "/a.nc", "rb") as f:
        whole = f.read()
    with open(folder + "/bad.nc", "wb") as f:
        f.write(whole[:len(whole) // 2])
    shutil.copytree(folder + "/c.zarr", folder + "/worse.zarr")
    with open(folder + "/worse.zarr/v/.zarray", "w") as f:
        f.write("{")

    def check(mnt):
        assert {"bad.zarr", "worse.nc"} <= set(os.listdir(mnt))
        for _ in range(3):
            assert errno_of(os.stat, mnt + "/bad.zarr/.zgroup") == errno.EIO
            assert errno_of(os.listdir, mnt + "/bad.zarr") == errno.EIO
            assert os.path.isfile(mnt + "/worse.nc")
            with open(mnt + "/worse.nc", "rb") as f:
                assert errno_of(f.read) == errno.EIO
            time.sleep(0.6)
        assert read_tree(mnt + "/a.zarr")[0] == 1
        assert read_file(mnt + "/c.nc")[0] == 3
        with open(folder + "/bad.nc", "wb") as f:
            f.write(whole)
        shutil.copy(folder + "/c.zarr/v/.zarray", folder + "/worse.zarr/v/.zarray")
        eventually(lambda: os.path.exists(mnt + "/bad.zarr/.zgroup"))
        eventually(lambda: os.stat(mnt + "/worse.nc").st_size > 1)
        assert read_tree(mnt + "/bad.zarr")[0] == 1
        assert read_file(mnt + "/worse.nc")[0] == 3

    with t.mount(folder, foreground=True) as m:
        t.call(check, m.path)
        text = m.messages()
        assert text.count("bad.nc") == 1 and text.count("worse.zarr") == 1, text


def test_tree_without_documents(t):
    """A mounted tree whose documents are gone for a while is broken, not mirrored."""
    tree = make_tree(t.path("tree"))

    def check(mnt):
        assert read_file(mnt + "/tree.nc")[0] == 1
        os.rename(tree + "/.zgroup", t.path("aside"))
        eventually(lambda: errno_of(read_file, mnt + "/tree.nc"))
        time.sleep(1.5)
        assert os.listdir(mnt) == ["tree.nc"]
        os.rename(t.path("aside"), tree + "/.zgroup")
        eventually(lambda: not errno_of(read_file, mnt + "/tree.nc"))
        assert read_file(mnt + "/tree.nc")[0] == 1

    with t.mount(tree) as m:
        t.call(check, m.path)


def test_more_than_are_open(t):
    """Programs hold more files than datasets are kept open, and read all of them."""
    folder = t.path("data")
    os.mkdir(folder)
    for i in range(12):
        make_tree(f"{folder}/{i}.zarr", i)

    def check(mnt):
        held = [netCDF4.Dataset(f"{mnt}/{i}.nc") for i in range(12)]
        for i, f in enumerate(held):
            assert (f["v"][...] == np.arange(1000) + i).all()
        bad = []

        def read_all(start):
            for k in range(24):
                i = (start + k) % 12
                with open(f"{mnt}/{i}.nc", "rb") as g:
                    data = g.read()
                if len(data) != os.stat(f"{mnt}/{i}.nc").st_size:
                    bad.append(i)

        threads = [threading.Thread(target=read_all, args=(3 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not bad, bad
        for i, f in enumerate(held):
            assert (f["v"][...] == np.arange(1000) + i).all()
            f.close()

    with t.mount(folder, "open_datasets=2") as m:
        t.call(check, m.path)


def test_large_directory(t):
    folder = t.path("data")
    os.mkdir(folder)
    with open(make_h5(t.path("one")), "rb") as f:
        data = f.read()
    for i in range(1500):
        with open(f"{folder}/f{i}.nc", "wb") as f:
            f.write(data if i % 100 == 0 else data[:512])

    def check(mnt):
        names = os.listdir(mnt)
        assert len(names) == len(set(names)) == 3000, len(names)
        assert read_tree(mnt + "/f700.zarr")[0] == 1
        for i in range(1200, 1300):
            os.unlink(f"{folder}/f{i}.nc")
        names = os.listdir(mnt)
        assert len(names) == len(set(names)) == 2800, len(names)

    with t.mount(folder) as m:
        t.call(check, m.path)


def test_info(t):
    folder = make_all(t)
    status, out, err = t.run(t.binary, "info", folder)
    assert status == 0, err
    for text in ("mirror, 3 datasets in the other format", "a.nc as a.zarr",
                 "c.zarr as c.nc", "e.zarr.zip as e.nc"):
        assert text in out, out
