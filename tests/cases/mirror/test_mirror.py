# SPDX-License-Identifier: BSD-3-Clause
"""A directory as a mirror: what is in it is shown as it is, every dataset has its counterpart in
the other format beside it, and both follow what happens in the directory."""
import errno
import os
import shutil
import stat
import time

import h5py
import numpy as np
import zarr

from gen.trees import archive
from lib import mounts
from lib.context import eventually_passes

LIMIT = 60.0
PARKED = 16     # so many times more trees keep their directory: nothing else knows what was read


def values(seed):
    return np.arange(600, dtype="i4").reshape(20, 30) + seed


def nc(path, seed=0, n=20):
    """Written aside and moved, as careful programs do."""
    with h5py.File(path + "~", "w") as f:
        f.create_dataset("v", data=values(seed)[:n], chunks=(5, 30), compression="gzip")
        f["g/w"] = np.arange(seed, seed + 7)
        f.attrs["seed"] = seed
    os.replace(path + "~", path)


def store(path, seed=0):
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("v", data=values(seed), chunks=(5, 30), fill_value=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    g.attrs["seed"] = seed


def zipped(path, seed=0):
    store(path + ".d", seed)
    archive(path + ".d", path)
    shutil.rmtree(path + ".d")


def check_nc(path, seed):
    with h5py.File(path, "r") as f:
        assert (f["v"][()] == values(seed)).all(), f"{path}: other values than {seed}"
        assert f.attrs["seed"] == seed, path


def check_zarr(path, seed, n=20):
    g = zarr.open_group(path, mode="r")
    assert g["v"].shape == (n, 30), f"{path}: {g['v'].shape}"
    assert (g["v"][...] == values(seed)[:n]).all(), f"{path}: other values than {seed}"
    assert g.attrs["seed"] == seed, path


def names(folder, *want):
    got = sorted(os.listdir(folder))
    assert got == sorted(want), f"{folder}: {got}, {sorted(want)} expected"


def folder_of(t, name="data"):
    path = t.path(name)
    os.mkdir(path)
    return path


def sample(t):
    """One of everything."""
    d = folder_of(t)
    nc(d + "/a.nc", 1)
    store(d + "/b.zarr", 2)
    zipped(d + "/c.zarr.zip", 3)
    zipped(d + "/d.zip", 4)
    store(d + "/tree", 5)
    os.makedirs(d + "/sub/deeper")
    nc(d + "/sub/e.h5", 6)
    nc(d + "/sub/deeper/f.nc4", 7)
    store(d + "/sub/deeper/g.zarr", 8)
    with open(d + "/README", "w") as f:
        f.write("text\n")
    with open(d + "/large.bin", "wb") as f:
        f.write(np.random.RandomState(1).bytes(3 << 20))
    open(d + "/empty", "wb").close()
    with open(d + "/text.nc", "w") as f:
        f.write("no netCDF\n")
    os.chmod(d + "/README", 0o640)
    os.utime(d + "/README", (1e9, 1e9))
    os.symlink("a.nc", d + "/link.nc")
    os.symlink("nowhere", d + "/dangling")
    os.symlink("/etc", d + "/outside")
    os.mkfifo(d + "/pipe")
    return d


def check_listing(mnt):
    names(mnt, "a.nc", "a.zarr", "b.zarr", "b.nc", "c.zarr.zip", "c.nc", "d.zip", "d.nc", "tree",
          "tree.nc", "sub", "README", "large.bin", "empty", "text.nc", "link.nc", "dangling",
          "outside", "pipe")
    names(mnt + "/sub", "e.h5", "e.zarr", "deeper")
    names(mnt + "/sub/deeper", "f.nc4", "f.zarr", "g.zarr", "g.nc")
    names(mnt + "/b.zarr", ".zgroup", ".zattrs", "v")
    names(mnt + "/a.zarr", ".zgroup", ".zattrs", ".zmetadata", "v", "g")
    names(mnt + "/a.zarr/v", ".zarray", ".zattrs", "0.0", "1.0", "2.0", "3.0")
    for name, kind in (("a.zarr", stat.S_ISDIR), ("b.nc", stat.S_ISREG), ("link.nc", stat.S_ISLNK),
                       ("pipe", stat.S_ISREG), ("sub", stat.S_ISDIR)):
        assert kind(os.lstat(os.path.join(mnt, name)).st_mode), name
    for name in ("link.zarr", "pipe.nc", "sub.nc", "README.nc", "empty.zarr", "b.zarr.nc", "e.zarr",
                 "b.zarr/v.nc", "text.zarr/v", "a.zarr/g/w.nc"):
        assert not os.path.lexists(os.path.join(mnt, name)), f"{name} is shown"


# SEMANTICS X9
def test_listing(t):
    """Exactly these names. Links have no counterparts, nor has what only looks like a dataset;
    inside of a store there are its own files."""
    d = sample(t)
    with t.mount(d) as m:
        t.call(check_listing, m.path)


def check_real(d, mnt):
    for base, folders, files in os.walk(d):
        there = os.path.join(mnt, os.path.relpath(base, d))
        for name in folders + files:
            a, b = os.path.join(base, name), os.path.join(there, name)
            x, y = os.lstat(a), os.lstat(b)
            if stat.S_ISFIFO(x.st_mode):
                fails(b, errno.EIO)
                continue
            assert stat.S_IFMT(x.st_mode) == stat.S_IFMT(y.st_mode), name
            assert (x.st_uid, x.st_gid, int(x.st_mtime)) == (y.st_uid, y.st_gid, int(y.st_mtime))
            if stat.S_ISLNK(x.st_mode):
                assert os.readlink(a) == os.readlink(b), name
            elif stat.S_ISREG(x.st_mode):
                assert x.st_size == y.st_size and x.st_mode == y.st_mode, name
                with open(a, "rb") as f, open(b, "rb") as g:
                    assert f.read() == g.read(), f"{name}: other bytes"
    fd = os.open(mnt + "/large.bin", os.O_RDONLY)
    with open(d + "/large.bin", "rb") as f:
        for at, n in ((0, 1), (4095, 3), (1 << 20, 1 << 20), ((3 << 20) - 5, 100), (1 << 40, 7)):
            f.seek(at)
            assert os.pread(fd, n, at) == f.read(n), at
    os.close(fd)
    for func, args in ((os.unlink, (mnt + "/README",)), (os.mkdir, (mnt + "/new",)),
                       (os.open, (mnt + "/README", os.O_WRONLY)),
                       (os.rename, (mnt + "/README", mnt + "/x"))):
        try:
            func(*args)
        except OSError as error:
            assert error.errno == errno.EROFS, error
        else:
            raise AssertionError(f"{func.__name__} works")


# SEMANTICS E8, P24
def test_real_files(t):
    """Bytes, types, modes, owners, times and targets of links are those of the directory; nothing
    can be written."""
    d = sample(t)
    with t.mount(d) as m:
        t.call(check_real, d, m.path)


def check_counterparts(mnt):
    import xarray
    check_zarr(mnt + "/a.zarr", 1)
    for name, seed in (("b", 2), ("c", 3), ("d", 4), ("tree", 5), ("sub/deeper/g", 8)):
        check_nc(f"{mnt}/{name}.nc", seed)
    check_zarr(mnt + "/sub/e.zarr", 6)
    check_zarr(mnt + "/sub/deeper/f.zarr", 7)
    check_zarr(mnt + "/b.zarr", 2)  # the store itself
    check_nc(mnt + "/a.nc", 1)
    with xarray.open_dataset(mnt + "/b.nc", engine="netcdf4") as ds:
        assert (ds.v.values == values(2)).all() and ds.v.dims == ("y", "x")
    with xarray.open_zarr(mnt + "/a.zarr", chunks=None) as ds:
        assert (ds.v.values == values(1)).all()
    sizes = [os.stat(f"{mnt}/{n}.nc").st_size for n in "bcd"]
    for n, size in zip("bcd", sizes):
        with open(f"{mnt}/{n}.nc", "rb") as f:
            assert len(f.read()) == size, n


def test_counterparts(t):
    """Every dataset through the readers of the other format, and of its own."""
    d = sample(t)
    with t.mount(d) as m:
        t.call(check_counterparts, m.path)


def check_wins(d, mnt):
    names(mnt, "a.nc", "a.zarr", "b.nc4", "b.h5", "b.zarr", "c.zarr", "c.zip", "c.nc", "n.nc",
          "n.zarr")
    check_zarr(mnt + "/a.zarr", 2)
    check_nc(mnt + "/a.nc", 1)
    check_zarr(mnt + "/b.zarr", 3)
    check_nc(mnt + "/c.nc", 5)
    with open(mnt + "/n.zarr", encoding="ascii") as f:
        assert f.read() == "mine"


def check_lost(mnt):
    check_zarr(mnt + "/a.zarr", 1)


def test_existing_names_win(t):
    """A name that exists is what it is; of two datasets with one counterpart the first in the
    documented order has it; when the name goes, the counterpart comes."""
    d = folder_of(t)
    nc(d + "/a.nc", 1)
    store(d + "/a.zarr", 2)
    nc(d + "/b.nc4", 3)
    nc(d + "/b.h5", 4)
    store(d + "/c.zarr", 5)
    zipped(d + "/c.zip", 6)
    nc(d + "/n.nc", 7)
    with open(d + "/n.zarr", "w", encoding="ascii") as f:
        f.write("mine")
    with t.mount(d) as m:
        t.call(check_wins, d, m.path)
        shutil.rmtree(d + "/a.zarr")
        t.call(eventually_passes, check_lost, m.path)


def gone(path):
    assert not os.path.lexists(path), f"{path} is there"


def check_change(d, mnt):
    nc(d + "/new.nc", 1)
    eventually_passes(names, mnt, "new.nc", "new.zarr")
    check_zarr(mnt + "/new.zarr", 1)
    store(d + "/s.zarr", 2)
    eventually_passes(names, mnt, "new.nc", "new.zarr", "s.zarr", "s.nc")
    eventually_passes(check_nc, mnt + "/s.nc", 2)
    nc(d + "/new.nc", 3, 15)  # another number of rows: the documents change too
    eventually_passes(check_zarr, mnt + "/new.zarr", 3, 15)
    shutil.rmtree(d + "/s.zarr")
    eventually_passes(names, mnt, "new.nc", "new.zarr")
    store(d + "/s.zarr", 4)
    eventually_passes(check_nc, mnt + "/s.nc", 4)
    os.unlink(d + "/new.nc")
    shutil.rmtree(d + "/s.zarr")
    eventually_passes(names, mnt)
    eventually_passes(gone, mnt + "/new.zarr/v")
    os.makedirs(d + "/x/y")
    zipped(d + "/x/y/z.zip", 5)
    eventually_passes(check_nc, mnt + "/x/y/z.nc", 5)
    os.rename(d + "/x", d + "/w")
    eventually_passes(names, mnt, "w")
    check_nc(mnt + "/w/y/z.nc", 5)


# SEMANTICS C4
def test_changes(t):
    """Files appear, are replaced and vanish; a listing and what is read follow."""
    d = folder_of(t)
    with t.mount(d) as m:
        t.call(check_change, d, m.path)


def check_rewritten(d, mnt):
    check_nc(mnt + "/s.nc", 1)
    g = zarr.open_group(d + "/s.zarr", mode="r+")
    g["v"][...] = values(2)
    g.attrs["seed"] = 2
    eventually_passes(check_nc, mnt + "/s.nc", 2)
    zipped(d + "/z.zip~", 4)
    os.replace(d + "/z.zip~", d + "/z.zip")
    eventually_passes(check_nc, mnt + "/z.nc", 4)


# SEMANTICS C5, C3
def test_rewritten(t):
    """A store whose chunks and attributes are written anew in place; an archive is replaced."""
    d = folder_of(t)
    store(d + "/s.zarr", 1)
    zipped(d + "/z.zip", 3)
    with t.mount(d) as m:
        t.call(check_rewritten, d, m.path)


def fails(path, *codes):
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            with open(path, "rb") as f:
                f.read()
    except OSError as error:
        assert error.errno in codes, f"{path}: {error}"
        return
    raise AssertionError(f"{path}: no error")


def check_bad(d, mnt):
    for _ in range(2):
        fails(mnt + "/cut.zarr", errno.EIO)
        fails(mnt + "/json.nc", errno.EIO)
        check_zarr(mnt + "/fine.zarr", 1)
        check_nc(mnt + "/good.nc", 2)
    assert os.path.getsize(mnt + "/cut.nc") == os.path.getsize(d + "/cut.nc")
    with open(d + "/json.zarr/.zgroup", "w", encoding="ascii") as f:
        f.write('{"zarr_format": 2}')
    nc(d + "/cut.nc", 3)
    # a directory that failed is tried again after five seconds
    eventually_passes(check_zarr, mnt + "/cut.zarr", 3)
    eventually_passes(check_nc, mnt + "/json.nc", 4)


def test_bad_ones_disturb_nobody(t):
    """A file that was cut off and a store whose document is none: errors for their counterparts
    only, until they are mended."""
    d = folder_of(t)
    nc(d + "/fine.nc", 1)
    store(d + "/good.zarr", 2)
    nc(d + "/cut.nc", 3)
    with open(d + "/cut.nc", "r+b") as f:
        f.truncate(1500)
    store(d + "/json.zarr", 4)
    with open(d + "/json.zarr/.zgroup", "w", encoding="ascii") as f:
        f.write("{")
    with t.mount(d, foreground=True) as m:
        t.call(check_bad, d, m.path, timeout=40)
        log = m.messages().splitlines()
    for name in ("cut.nc", "json.zarr"):
        assert sum(name in line for line in log) == 1, log


def check_deep(mnt):
    path = mnt
    for i in range(40):
        names(path, f"d{i}", "s.zarr", "s.nc")
        path += f"/d{i}"
    check_nc(mnt + "/" + "/".join(f"d{i}" for i in range(20)) + "/s.nc", 20)


def test_sub_directories(t):
    """Forty of them, one in the other, with a dataset in each."""
    d = path = folder_of(t)
    store(t.path("s.zarr"), 0)
    for i in range(41):
        shutil.copytree(t.path("s.zarr"), path + "/s.zarr")
        if i == 20:
            shutil.rmtree(path + "/s.zarr")
            store(path + "/s.zarr", i)
        path += f"/d{i}"
        os.mkdir(path)
    with t.mount(d) as m:
        t.call(check_deep, m.path)


def check_inside(mnt, own):
    seen = [n for _, folders, files in os.walk(mnt) for n in folders + files]
    assert own not in seen, "the mountpoint is shown in itself"
    assert len(seen) < 100, f"{len(seen)} names"
    check_zarr(mnt + "/a.zarr", 1)


def test_mountpoint_inside(t):
    """The mountpoint lies in the directory that is shown."""
    nc(t.path("a.nc"), 1)
    with t.mount(t.tmp) as m:
        t.call(check_inside, m.path, os.path.basename(m.path))


def open_below(pids, folder):
    """Files below a folder that these processes have open."""
    found = set()
    for pid in pids:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                path = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if path.startswith(folder + "/"):
                found.add(path)
    return found


def check_many(mnt, n):
    start = time.monotonic()
    entries = {e.name: e for e in os.scandir(mnt)}
    assert len(entries) == 2 * n, len(entries)
    for name, e in entries.items():
        assert e.is_dir() == name.endswith(".zarr"), name
        e.stat()
    print(f"{time.monotonic() - start:.2f} s")


def test_listing_opens_nothing(t):
    """2000 files are listed and their counterparts looked at; no dataset is opened for that."""
    d = folder_of(t)
    nc(d + "/a0.nc", 0)
    for i in range(1, 2000):
        shutil.copy(d + "/a0.nc", f"{d}/a{i}.nc")
    with t.mount(d) as m:
        before = len(mounts.processes_of(m.path))
        t.call(check_many, m.path, 2000)
        assert not open_below(m.pids, d), open_below(m.pids, d)
        assert len(mounts.processes_of(m.path)) == before, "processes for datasets"
        assert t.sanitized or m.memory_peak() < 40 << 20, f"{m.memory_peak() >> 20} MiB"


def check_limit(mnt, pids, d, n, limit):
    for i in range(n):
        check_zarr(f"{mnt}/a{i}.zarr", i)
        check_nc(f"{mnt}/s{i}.nc", 100 + i)
        found = open_below(pids, d)
        files = [p for p in found if os.path.isfile(p)]
        assert len(files) <= limit, f"{len(files)} open: {files}"
        assert len(found) <= (1 + PARKED) * limit, f"{len(found)} open: {found}"


def check_kept(mnt, n):
    with h5py.File(mnt + "/s0.nc", "r") as kept:
        for i in range(1, n):
            check_zarr(f"{mnt}/a{i}.zarr", i)
            check_nc(f"{mnt}/s{i}.nc", 100 + i)
        assert (kept["v"][()] == values(100)).all(), "a file that was open all along"


def test_open_datasets(t):
    """Of many datasets few are open at a time, and a file that a program holds open stays the same
    while its dataset is closed and opened again."""
    d = folder_of(t)
    n, limit = 40, 2
    for i in range(n):
        nc(f"{d}/a{i}.nc", i)
        store(f"{d}/s{i}.zarr", 100 + i)
    with t.mount(d, f"open_datasets={limit}") as m:
        t.call(check_kept, m.path, 12)
        t.call(check_limit, m.path, m.pids, d, n, limit)
