# SPDX-License-Identifier: BSD-3-Clause
"""POSIX on writable mounts: tests/clients/posix.py on every kind, and what needs more than one
directory: other users, mappings, direct reads, files that grow, watchers, locks."""
import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import stat
import struct
import subprocess
import time

import numpy as np

from lib.context import Skip


def _posix(d, kind):
    from clients import posix
    wrong = posix.run(d, kind)
    assert not wrong, "\n" + "\n".join(wrong)


def _kind(name, **traits):
    from clients import posix
    return posix.Kind(name, **traits)


def make_nc(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 4)
        d.createVariable("v", "f4", ("x",))[:] = 1


def make_zarr(path):
    import zarr
    a = zarr.open_group(path, "w").create_dataset("v", data=[1, 2, 3, 4], chunks=(2,))
    a.attrs["_ARRAY_DIMENSIONS"] = ["x"]


def test_native(t):
    """The checks themselves, on the file system that the tests run in."""
    os.mkdir(t.path("d"))
    t.call(_posix, t.path("d"), _kind("native", mount=False))


def test_tree(t):
    nc = t.path("a.nc")
    t.call(make_nc, nc)
    with t.mount(nc, "rw", foreground=True) as m:
        os.mkdir(m.path + "/work")
        t.call(_posix, m.path + "/work", _kind("tree", hard="copy", times=False, modes=False))
        os.rmdir(m.path + "/work")


def test_virtual(t):
    tree = t.path("a.zarr")
    t.call(make_zarr, tree)
    with t.mount(tree, "rw", foreground=True) as m:
        t.call(_posix, m.path, _kind("virtual", dirs=False, hard="", own=["a.nc"]))


def test_mirror(t):
    os.mkdir(t.path("dir"))
    with t.mount(t.path("dir"), "rw", foreground=True) as m:
        os.mkdir(m.path + "/work")
        t.call(_posix, m.path + "/work", _kind("mirror", symlinks=True, dead=False))
        os.rmdir(m.path + "/work")


# ---- reading ----

def make_chunks(path):
    import h5py
    data = np.random.default_rng(1).integers(0, 1000, (2, 80000))
    with h5py.File(path, "w") as f:
        f.create_dataset("z", data=data, chunks=(1, 80000), compression="gzip", shuffle=True)
        f.create_dataset("p", data=data, chunks=(1, 80000))


def mapped(path, how, prot=mmap.PROT_READ):
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, how, prot) as m:
        assert m[:] == f.read(), path


def direct(path):
    """Nothing has to be aligned, neither place nor size nor memory."""
    with open(path, "rb") as f:
        want = f.read()
    fd, n = os.open(path, os.O_RDONLY | os.O_DIRECT), len(want)
    for off, size in ((0, n), (0, 1), (1, 4095), (4095, 4098), (n - 3, 10), (n, 5), (0, n + 77)):
        assert os.pread(fd, size, off) == want[off:off + size], (path, off, size)
    room = bytearray(5001)
    assert os.preadv(fd, [memoryview(room)[1:]], 7) == min(5000, n - 7)
    assert room[1:][:n - 7] == want[7:5007]
    os.close(fd)


def read_all_ways(mnt, names, cached=True):
    for name in names:
        path = os.path.join(mnt, name)
        direct(path)
        mapped(path, mmap.MAP_PRIVATE)
        mapped(path, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        if cached:
            mapped(path, mmap.MAP_SHARED)
            continue
        try:
            mapped(path, mmap.MAP_SHARED)
            raise AssertionError("a file without page cache is mapped shared")
        except OSError as error:
            assert error.errno == errno.ENODEV, error


def unreadable(path):
    with open(path, "rb") as f:
        fails(errno.EIO, f.read)


def touch_page(path):
    """Reading a mapping of what cannot be read: the signal that the program gets."""
    pid = os.fork()
    if pid == 0:
        fd = os.open(path, os.O_RDONLY)
        sum(mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)[:10])
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# SEMANTICS R10, R11, R12
def test_reading(t):
    """Chunks and the virtual file, mapped and read past the page cache."""
    path = t.path("a.nc")
    t.call(make_chunks, path)
    chunks = ["z/0.0", "p/1.0", "z/.zarray"]
    with t.mount(path) as m:
        t.call(read_all_ways, m.path, chunks)
    with t.mount(path, "view=nc") as m:
        t.call(read_all_ways, m.path, ["a.nc"])
    with t.mount(path, "filter=none,page_cache=always") as m:
        t.call(read_all_ways, m.path, chunks)
    with t.mount(path, "filter=none") as m:
        t.call(read_all_ways, m.path, chunks[:2], False)
        t.call(read_all_ways, m.path, chunks[2:])      # a small file
    with t.mount(path, "view=nc,filter=none") as m:
        t.call(read_all_ways, m.path, ["a.nc"])
    with open(path, "r+b") as f:      # a chunk that cannot be decoded
        import h5py
        with h5py.File(path, "r") as h:
            at = h["z"].id.get_chunk_info(0).byte_offset
        f.seek(at)
        f.write(b"no zlib at all")
    with t.mount(path, "filter=none,page_cache=always") as m:
        t.call(unreadable, m.path + "/z/0.0")
        assert touch_page(m.path + "/z/0.0") == -signal.SIGBUS
        assert touch_page(m.path + "/z/1.0") == 0


# ---- mirrors ----

def outside(d, m):
    """What others do in the directory itself, while a program uses the mount."""
    with open(m + "/log", "ab", buffering=0) as f:
        for i in range(5):
            f.write(b"mount %d\n" % i)
            with open(d + "/log", "ab") as g:
                g.write(b"other %d\n" % i)
    with open(d + "/log", "rb") as f:
        assert f.read() == b"".join(b"mount %d\nother %d\n" % (i, i) for i in range(5))
    with open(m + "/log", "rb") as f:
        assert f.read().count(b"\n") == 10
    # bits that are not shown stay where they are
    os.mkdir(d + "/group")
    os.chmod(d + "/group", 0o2755)
    os.chmod(m + "/group", 0o775)
    assert stat.S_IMODE(os.stat(d + "/group").st_mode) == 0o2775
    assert stat.S_IMODE(os.stat(m + "/group").st_mode) == 0o775
    # two names of one file are two files with the same bytes
    os.link(m + "/log", m + "/again")
    a, b = os.stat(m + "/log"), os.stat(m + "/again")
    assert a.st_nlink == b.st_nlink == 2 and a.st_ino != b.st_ino
    with open(m + "/again", "r+b") as f:
        f.write(b"MOUNT")
    with open(m + "/log", "rb") as f:
        assert f.read(5) == b"MOUNT"
    # what is written there is there
    with open(m + "/now", "wb", buffering=0) as f:
        f.write(b"written")
        with open(d + "/now", "rb") as g:
            assert g.read() == b"written"
    own_names(d, m)
    os.symlink("/", m + "/top")
    assert os.readlink(d + "/top") == "/" and os.path.islink(m + "/top")


def fails(code, func, *args):
    try:
        func(*args)
    except OSError as error:
        assert error.errno == code, f"{func.__name__}{args}: {error}"
        return
    raise AssertionError(f"{func.__name__}{args}: no error")


def own_names(d, m):
    """Names of the mount's own are not shown, and nothing makes them."""
    os.mkdir(d + "/.z.nc.nczarrfs")
    with open(d + "/.y.nczarrfs", "w"):
        pass
    for name in ".z.nc.nczarrfs", ".y.nczarrfs":
        assert name not in os.listdir(m)
        fails(errno.ENOENT, os.stat, f"{m}/{name}")
    new = m + "/.x.nczarrfs"
    for func, args in ((open, (new, "w")), (os.mkdir, (new,)), (os.symlink, ("now", new)),
                       (os.link, (m + "/now", new)), (os.rename, (m + "/now", new))):
        fails(errno.EPERM, func, *args)
    assert not os.path.lexists(d + "/.x.nczarrfs")
    os.rmdir(d + "/.z.nc.nczarrfs")
    os.unlink(d + "/.y.nczarrfs")


def write_and_move(d, m):
    """A directory is renamed while what was written below it is not in its dataset yet."""
    import zarr
    os.mkdir(m + "/sub")
    make_nc(m + "/beside.tmp")
    os.rename(m + "/beside.tmp", m + "/sub/plain")
    os.rename(m + "/sub/plain", m + "/sub/x.nc4")
    zarr.open_group(m + "/sub/x.zarr", "r+")["v"][:] = [5, 6, 7, 8]
    os.rename(m + "/sub", m + "/moved")
    check_moved(d, "x", [5, 6, 7, 8])
    zarr.open_group(m + "/moved/x.zarr", "r+")["v"][:] = [6, 7, 8, 9]
    check_moved(d, "x", [5, 6, 7, 8])                    # nothing is due
    os.rename(m + "/moved/x.nc4", m + "/moved/y.nc4")    # the dataset itself
    check_moved(d, "y", [6, 7, 8, 9])
    zarr.open_group(m + "/moved/y.zarr", "r+")["v"][:] = [5, 6, 7, 8]
    os.rename(m + "/moved/y.nc4", m + "/moved/x.nc4")
    assert zarr.open_group(m + "/moved/x.zarr", "r")["v"][:].tolist() == [5, 6, 7, 8]


def check_moved(d, name, values):
    import netCDF4
    with netCDF4.Dataset(f"{d}/moved/{name}.nc4") as f:
        assert f["v"][:].tolist() == values, f["v"][:]


# SEMANTICS W15, W16, W17, P17, P22, X6
def test_mirror_outside(t):
    os.mkdir(t.path("dir"))
    with t.mount(t.path("dir"), "rw", "new_files=keep", "commit_delay=3600000",
                 foreground=True) as m:
        t.call(outside, t.path("dir"), m.path)
        t.call(write_and_move, t.path("dir"), m.path)
    t.call(check_moved, t.path("dir"), "x", [5, 6, 7, 8])
