# SPDX-License-Identifier: BSD-3-Clause
"""A writable mirror: real files are written through, datasets are changed through their
counterparts, and what is new becomes a dataset of the other family."""
import ctypes
import errno
import json
import mmap
import os
import resource
import shutil
import stat
import subprocess

import numpy as np

from lib.context import Skip, eventually_passes

LIMIT = 120.0


def values(seed=0):
    return np.arange(600, dtype="f4").reshape(20, 30) + seed


def nc(path, seed=0, mode="w", **options):
    import netCDF4
    d = netCDF4.Dataset(path, mode, **options)
    d.createDimension("t", None)
    d.createDimension("x", 30)
    v = d.createVariable("v", "f4", ("t", "x"), zlib=d.data_model == "NETCDF4")
    v[:] = values(seed)
    v.units = "m"
    d.seed = np.int32(seed)
    d.close()


def tree(path, seed=0):
    import zarr
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("v", data=values(seed), chunks=(5, 30))
    a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    g.attrs["seed"] = seed


def check_nc(path, seed, units=None):
    import netCDF4
    d = netCDF4.Dataset(path)
    assert (d["v"][:] == values(seed)).all(), f"{path}: other values than {seed}"
    assert d.seed == seed, path
    assert units is None or d["v"].units == units, d["v"].units
    d.close()


def check_tree(path, seed, units=None):
    import zarr
    g = zarr.open_group(path, mode="r")
    assert (g["v"][...] == values(seed)).all(), f"{path}: other values than {seed}"
    assert g.attrs["seed"] == seed, path
    assert units is None or g["v"].attrs["units"] == units


def names(d, *want):
    got = sorted(n for n in os.listdir(d))
    assert got == sorted(want), f"{d}: {got}"


def folder(t):
    d = t.path("dir")
    os.mkdir(d)
    return d


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def work_real(d, m):
    """Files that are no datasets: as in any directory."""
    with open(m + "/a", "wb") as f:
        f.write(b"one two three")
        f.seek(4)
        f.write(b"TWO")
        os.fsync(f.fileno())
    assert open(d + "/a", "rb").read() == open(m + "/a", "rb").read() == b"one TWO three"
    with open(m + "/a", "ab") as f:
        f.write(b"!")
    os.truncate(m + "/a", 7)
    os.chmod(m + "/a", 0o640)
    os.utime(m + "/a", (1e9, 1e9))
    st = os.stat(d + "/a")
    assert (st.st_size, stat.S_IMODE(st.st_mode), st.st_mtime) == (7, 0o640, 1e9), st
    os.makedirs(m + "/sub/deep")
    os.rename(m + "/a", m + "/sub/b")
    os.rename(m + "/sub", m + "/other")
    names(d, "other")
    names(d + "/other", "b", "deep")
    os.link(m + "/other/b", m + "/c")
    assert os.stat(d + "/c").st_nlink == 2
    with open(m + "/c", "rb") as f:      # what is open stays open under any name, and none
        os.rename(m + "/c", m + "/d")
        os.unlink(m + "/d")
        assert f.read() == b"one TWO"
    for wrong, code in ((lambda: os.rmdir(m + "/other"), 39), (lambda: os.unlink(m + "/no"), 2),
                        (lambda: os.mkdir(m + "/other"), 17),
                        (lambda: open(m + "/.x.nczarrfs", "w"), 1)):
        try:
            wrong()
            raise AssertionError(f"errno {code} is missing")
        except OSError as e:
            assert e.errno == code, e
    shutil.rmtree(m + "/other")
    names(d)
    names(m)
    tree(m + "/plain", 3)                # a tree of another name is what it is
    check_tree(d + "/plain", 3)
    check_nc(m + "/plain.nc", 3)
    shutil.rmtree(m + "/plain")


def work_new(d, m):
    """x.nc that is written is the store x.zarr when it is closed."""
    nc(m + "/a.nc", 1)
    names(d, *[n for n in os.listdir(d) if n.startswith(".")], "a.zarr")
    check_tree(d + "/a.zarr", 1, "m")
    check_nc(m + "/a.nc", 1, "m")
    nc(d + "/../classic", 2, format="NETCDF3_CLASSIC")
    shutil.copy(d + "/../classic", m + "/c.nc")
    check_tree(d + "/c.zarr", 2)
    check_nc(m + "/c.nc", 2)
    # under another name, and then renamed, as NCO does it
    nc(m + "/r.nc.pid1.ncks.tmp", 3)
    os.rename(m + "/r.nc.pid1.ncks.tmp", m + "/r.nc")
    eventually_passes(check_tree, d + "/r.zarr", 3)      # at the release of r.nc at the latest
    # over one that is there: its content changes
    nc(m + "/r.tmp", 4)
    os.rename(m + "/r.tmp", m + "/r.nc")
    check_tree(d + "/r.zarr", 4)
    check_nc(m + "/r.nc", 4)
    assert not os.path.lexists(m + "/r.tmp")
    # nothing that can be a dataset
    with open(m + "/text.nc", "w") as f:
        f.write("no netCDF")
    open(m + "/empty.nc", "w").close()
    assert open(d + "/text.nc").read() == "no netCDF" and not os.path.exists(d + "/text.zarr")
    assert os.path.getsize(d + "/empty.nc") == 0


def work_change(d, m):
    """Datasets that are there, through their counterparts and through themselves."""
    import netCDF4
    import zarr
    f = netCDF4.Dataset(m + "/s.nc", "a")
    f["v"][:] = values(7)
    f.seed = np.int32(7)
    f["v"].units = "km"
    f.close()
    check_tree(d + "/s.zarr", 7, "km")
    check_nc(m + "/s.nc", 7, "km")
    if shutil.which("ncatted"):
        run("ncatted", "-a", "units,v,o,c,cm", m + "/s.nc")
        check_tree(d + "/s.zarr", 7, "cm")
        run("ncap2", "-O", "-s", "w=v*2", m + "/s.nc", m + "/s.nc")
        check_tree(d + "/s.zarr", 7, "cm")
        assert (zarr.open(d + "/s.zarr")["w"][...] == values(7) * 2).all()
    g = zarr.open_group(m + "/n.zarr", mode="r+")
    g["v"][:] = values(8)
    g.attrs["seed"] = 8
    check_tree(m + "/n.zarr", 8)
    # the real file, through the mount: as any other
    f = netCDF4.Dataset(m + "/real.nc", "a")
    f.seed = np.int32(9)
    f["v"][:] = values(9)
    f.close()
    check_nc(d + "/real.nc", 9)
    check_tree(m + "/real.zarr", 9)


def work_tree(d, m):
    """A directory x.zarr that is made is the file x.nc; what is emptied and removed is gone."""
    tree(m + "/t.zarr", 5)
    assert os.path.isfile(d + "/t.nc") and not os.path.lexists(d + "/t.zarr")
    check_tree(m + "/t.zarr", 5)
    tree(m + "/gone.zarr", 6)
    eventually_passes(shutil.rmtree, m + "/gone.zarr")  # EBUSY until its files are released
    assert not os.path.lexists(d + "/gone.nc"), "a tree that was removed is still a file"
    eventually_passes(shutil.rmtree, m + "/old.zarr")   # by its real name: really
    assert not os.path.lexists(d + "/old.zarr") and not os.path.lexists(m + "/old.nc")


def test_write(t):
    d = folder(t)
    with t.mount(d, "rw") as m:
        t.call(work_real, d, m.path)
        t.call(work_new, d, m.path)
    left = [n for n in os.listdir(d) if n.startswith(".")]
    assert not left, f"left behind: {left}"


def check_after(d):
    check_nc(d + "/t.nc", 5)
    check_nc(d + "/n.nc", 8)
    check_tree(d + "/s.zarr", 7)


# SEMANTICS W5
def test_datasets(t):
    d = folder(t)
    t.call(tree, d + "/s.zarr", 1)
    t.call(tree, d + "/old.zarr", 1)
    t.call(nc, d + "/n.nc", 1)
    t.call(nc, d + "/real.nc", 1)
    with t.mount(d, "rw") as m:
        t.call(work_change, d, m.path)
        t.call(work_tree, d, m.path)
    t.call(check_after, d)
    left = [n for n in os.listdir(d) if n.startswith(".")]
    assert not left, f"left behind: {left}"


def _forker(m):
    for pid in m.pids:
        with open(f"/proc/{pid}/comm") as f:
            if f.read().strip() == "nczarrfs-forker":
                return pid
    raise AssertionError("no process that forks others")


def _no_room(m, d):
    try:
        os.mkdir(m + "/x.zarr")
        raise AssertionError("a file was made without memory")
    except OSError as e:
        assert e.errno == errno.ENOMEM, e
    assert not [n for n in os.listdir(d) if n[0] != "."]
    assert not os.path.lexists(m + "/x.zarr")
    os.mkdir(m + "/x")                   # what needs no such process works


def test_mkdir_without_memory(t):
    """libhdf5 makes a new netCDF-4 file in a process of its own: where that process has no memory,
    `mkdir x.zarr` is ENOMEM and leaves no file, and the mount lives."""
    if t.sanitized:
        raise Skip("a sanitizer needs its own address space")
    d = folder(t)
    with t.mount(d, "rw") as m:
        pid = _forker(m)
        with open(f"/proc/{pid}/statm") as f:
            mapped = int(f.read().split()[0]) * resource.getpagesize()
        most = mapped + (4 << 20)        # less than libhdf5 is begun with
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
        t.call(_no_room, m.path, d)
        assert m.server_alive()


def visible(d, *want):
    names(d, *want, *[n for n in os.listdir(d) if n.startswith(".")])


def work_whole(d, m):
    """Counterparts are removed, and renamed: their datasets are."""
    run("mv", m + "/s.nc", m + "/t.nc")
    visible(d, "n.nc", "o.zarr", "t.zarr")
    names(m, "n.nc", "n.zarr", "o.nc", "o.zarr", "t.nc", "t.zarr")
    for n in os.listdir(m):
        os.stat(m + "/" + n)             # no name of something that is not there
    check_nc(m + "/t.nc", 1)
    check_tree(d + "/t.zarr", 1)
    nc(m + "/y.nc", 4)                   # one that was made in the mount
    run("mv", m + "/y.nc", m + "/z.nc")
    check_nc(m + "/z.nc", 4)
    run("mv", m + "/n.zarr", m + "/k.zarr")
    visible(d, "k.nc", "o.zarr", "t.zarr", "z.zarr")
    check_nc(d + "/k.nc", 2)
    check_tree(m + "/k.zarr", 2)
    run("mv", m + "/o.nc", m + "/z.nc")  # over another: the new content, once
    visible(d, "k.nc", "t.zarr", "z.zarr")
    check_nc(m + "/z.nc", 3)
    with open(m + "/z.nc", "rb"):
        try:
            os.unlink(m + "/z.nc")
            raise AssertionError("a dataset is removed while it is read")
        except OSError as e:
            assert e.errno == 16, e
    check_tree(d + "/z.zarr", 3)
    run("rm", m + "/z.nc")
    names(m, "k.nc", "k.zarr", "t.nc", "t.zarr")
    visible(d, "k.nc", "t.zarr")
    nc(m + "/z.nc", 5)                   # and the name is free again
    check_tree(d + "/z.zarr", 5)


# SEMANTICS W24
def test_whole(t):
    d = folder(t)
    t.call(tree, d + "/s.zarr", 1)
    t.call(nc, d + "/n.nc", 2)
    t.call(tree, d + "/o.zarr", 3)
    with t.mount(d, "rw") as m:
        t.call(work_whole, d, m.path)
    names(d, "k.nc", "t.zarr", "z.zarr")


def work_same(d, m):
    nc(m + "/a.nc", 1)
    check_nc(d + "/a.nc", 1)
    tree(m + "/b.zarr", 2)
    check_tree(d + "/b.zarr", 2)
    check_nc(m + "/b.nc", 2)


def work_many(d, m):
    """More datasets than may be open, and each is written to."""
    import netCDF4
    for i in range(6):
        f = netCDF4.Dataset(f"{m}/s{i}.nc", "a")
        f["v"][:] = values(10 + i)
        f.seed = np.int32(10 + i)
        f.close()
    for i in range(6):
        check_tree(f"{d}/s{i}.zarr", 10 + i)
        check_nc(f"{m}/s{i}.nc", 10 + i)
    held = [open(f"{m}/s{i}.nc", "r+b") for i in range(6)]  # at the same time
    for f in held:
        f.close()


def test_same_and_many(t):
    d = folder(t)
    with t.mount(d, "rw", "new_files=keep", "open_datasets=2") as m:
        t.call(work_same, d, m.path)
    for i in range(6):
        t.call(tree, f"{d}/s{i}.zarr", i)
    with t.mount(d, "rw", "open_datasets=2") as m:
        t.call(work_many, d, m.path)


def refused(m):
    for what in (lambda: open(m + "/a", "w"), lambda: os.mkdir(m + "/b"),
                 lambda: os.unlink(m + "/n.nc"), lambda: open(m + "/n.zarr/x", "w")):
        try:
            what()
            raise AssertionError("a mount without rw was written to")
        except OSError as e:
            assert e.errno == 30, e


def test_read_only(t):
    d = folder(t)
    t.call(nc, d + "/n.nc", 1)
    with t.mount(d) as m:
        t.call(refused, m.path)


def _killed_mirror(t, d, *trees):
    """A writable mirror of d that died with all of these, copied into it, in state directories."""
    from lib import mounts
    tree(t.path("s.zarr"), 7)
    with t.mount(d, "rw,commit_delay=3600000") as m:
        for name in trees:
            os.makedirs(os.path.dirname(m.path + "/" + name), exist_ok=True)
            shutil.copytree(t.path("s.zarr"), m.path + "/" + name)
        m.ended = True
        m.kill()
        mounts.unmount(m.path, lazy=True)


# SEMANTICS W2, K10
def test_recover_directory(t):
    """recover of a mirrored directory puts in what waits for each of its datasets; check says
    that there is something, and which command."""
    d = folder(t)
    _killed_mirror(t, d, "k.zarr", "sub/deep/l.zarr")
    names(d, "k.nc", ".k.nc.nczarrfs", "sub")

    status, out, err = t.run(t.binary, "check", d + "/k.nc")
    assert status == 1 and "all good" not in out and "pending writes" in out, out
    assert f"nczarrfs recover '{d}/k.nc'" in err and d + "/.k.nc.nczarrfs" in err, err
    status, out, err = t.run(t.binary, "check", "--json", d)
    got = json.loads(out)
    assert status == 1 and not got["good"] and got["datasets_unfinished"] == 2, out
    assert all(x["unfinished"] and not x["good"] for x in got["datasets"]), out

    status, out, err = t.run(t.binary, "recover", d, timeout=60)
    lines = out.splitlines()
    assert status == 0 and len(lines) == 2 and d + "/sub/deep/l.nc" in lines[1], out + err
    t.call(check_nc, d + "/k.nc", 7)
    t.call(check_nc, d + "/sub/deep/l.nc", 7)
    names(d, "k.nc", "sub")
    status, out, err = t.run(t.binary, "recover", d)
    assert status == 0, out
    assert out == f"'{d}': nothing to recover: no dataset in it has pending writes\n"
    assert t.run(t.binary, "check", d)[0] == 0


# SEMANTICS W2
def test_next_mirror(t):
    """The next mirror, writable or not, puts in what waits for a dataset when it is first used."""
    for options in ("rw",), ():
        d = folder(t)
        _killed_mirror(t, d, "k.zarr", "l.zarr")
        with t.mount(d, *options) as m:
            names(d, "k.nc", ".k.nc.nczarrfs", "l.nc", ".l.nc.nczarrfs")
            t.call(check_tree, m.path + "/k.zarr", 7)
        names(d, "k.nc", "l.nc", ".l.nc.nczarrfs")
        t.call(check_nc, d + "/k.nc", 7)
        shutil.rmtree(d)
        shutil.rmtree(t.path("s.zarr"))


def test_recover_directory_in_part(t):
    """One that cannot be recovered is said, the others are, and the exit status is 1."""
    d = folder(t)
    _killed_mirror(t, d, "k.zarr", "l.zarr")
    with open(d + "/k.nc", "ab") as f:
        f.write(b"changed")
    status, out, err = t.run(t.binary, "recover", "--json", d, timeout=60)
    got = json.loads(out)
    assert status == 1 and not got["recovered"] and got["datasets_failed"] == 1, out
    assert [(x["source"], x["recovered"]) for x in got["datasets"]] == [
        (d + "/k.nc", False), (d + "/l.nc", True)], out
    t.call(check_nc, d + "/l.nc", 7)
    os.unlink(d + "/k.nc")
    status, out, err = t.run(t.binary, "recover", d)
    assert status == 1 and d + "/.k.nc.nczarrfs" in err, out + err


def work_moved(d, m):
    for place in ("b.zarr", "b.zarr/v"):
        before = os.listdir(f"{d}/{place}")
        with open(m + "/x.nc", "wb") as f:
            with open(d + "/../whole.nc", "rb") as whole:
                f.write(whole.read())
            os.rename(m + "/x.nc", f"{m}/{place}/x.nc")
        names(f"{d}/{place}", *before, "x.nc")
        check_nc(f"{d}/{place}/x.nc", 3)
        os.unlink(f"{m}/{place}/x.nc")


def test_moved_while_open(t):
    """A new file that is moved into a Zarr tree while a program writes to it stays a file."""
    d = folder(t)
    t.call(nc, t.path("whole.nc"), 3)
    t.call(tree, d + "/b.zarr", 1)
    with t.mount(d, "rw") as m:
        t.call(work_moved, d, m.path)


def _mapped(fd):
    """What keeps the release of a file back after its close: a function that ends it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    at = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
    assert at not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    return lambda: libc.munmap(at, 4096)


def work_released_late(d, m):
    with open(d + "/../whole.nc", "rb") as f:
        whole = f.read()
    # renamed between its close and its release
    fd = os.open(m + "/x.tmp", os.O_RDWR | os.O_CREAT)
    os.write(fd, whole)
    release = _mapped(fd)
    os.close(fd)
    os.rename(m + "/x.tmp", m + "/x.nc")
    release()
    eventually_passes(check_tree, d + "/x.zarr", 3)
    # two writers, of which the first is released after the close of the second
    fds = [os.open(m + "/y.nc", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    os.write(fds[0], whole)
    os.pwrite(fds[1], whole, 0)
    release = _mapped(fds[0])
    os.close(fds[0])
    os.close(fds[1])
    release()
    eventually_passes(check_tree, d + "/y.zarr", 3)
    check_nc(m + "/y.nc", 3)


# SEMANTICS W5
def test_released_late(t):
    """The kernel sends the release of a file after its close: the last one makes a dataset of a new
    file whose writers have all closed it."""
    d = folder(t)
    t.call(nc, t.path("whole.nc"), 3)
    with t.mount(d, "rw") as m:
        t.call(work_released_late, d, m.path)


def _array_in_place_of_group(mnt):
    import errno
    import numpy as np
    import zarr
    try:
        zarr.open_array(os.path.join(mnt, "t.zarr"), mode="a", shape=(10,), chunks=(5,), dtype="i8")
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP, error
    else:
        raise AssertionError("a netCDF-4 file took an array for its root")
    g = zarr.open_group(os.path.join(mnt, "u.zarr"), mode="w")
    g["data"] = np.arange(5)


# SEMANTICS E10
def test_array_as_root(t):
    """A store that is one array has no place in a netCDF-4 file: a commit would give the array a
    name, and its writer would read fill values."""
    folder = t.path("dir")
    os.mkdir(folder)
    with t.mount(folder, "rw", foreground=True) as m:
        t.call(_array_in_place_of_group, m.path)
        assert "the root of a netCDF-4 file is a group" in m.messages(), m.messages()
    t.call(_has_data, os.path.join(folder, "u.nc"))


def _has_data(path):
    import netCDF4
    with netCDF4.Dataset(path) as d:
        assert list(d["data"][:]) == [0, 1, 2, 3, 4]
