# SPDX-License-Identifier: BSD-3-Clause
"""docs/reference/semantics.md: sentences that no other test proves. Each test has one
mount, or one of each kind, and proves several."""
import ctypes
import errno
import fcntl
import hashlib
import os
import re
import select
import shutil
import signal
import stat
import struct
import subprocess

import numpy as np

from lib import mounts
from lib.context import Skip, eventually


def fails(codes, func, *args):
    try:
        func(*args)
    except OSError as error:
        assert error.errno in codes, f"{func.__name__}{args}: {error}"
        return
    raise AssertionError(f"{func.__name__}{args}: no error")


def make_nc(path, value=1, form="NETCDF4"):
    import netCDF4
    with netCDF4.Dataset(path, "w", format=form) as d:
        d.createDimension("x", 4)
        kind = {"zlib": True, "chunksizes": (2,)} if form == "NETCDF4" else {}
        d.createVariable("v", "i4", ("x",), **kind)[:] = value


def make_zarr(path):
    import zarr
    g = zarr.open_group(path, "w")
    for name in "a", "b":
        a = g.create_dataset(name, data=np.arange(8), chunks=(4,), compressor=None)
        a.attrs["_ARRAY_DIMENSIONS"] = ["x"]


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


def in_tree(path, value):
    import zarr
    assert zarr.open_group(path, "r")["v"][:].tolist() == [value] * 4


# ---- mounts that read ----

def state(top):
    """All there is to know of a file or folder."""
    found = {}
    for base, folders, names in os.walk(top):
        for name in folders + names + [""]:
            p = os.path.join(base, name)
            st = os.stat(p)
            data = b""
            if os.path.isfile(p):
                with open(p, "rb") as f:
                    data = f.read()
            found[p] = (st.st_mtime_ns, st.st_mode, st.st_size, hashlib.sha1(data).digest())
    return found


def all_sizes(mnt):
    n = 0
    for base, folders, names in os.walk(mnt):
        for name in names:
            p = os.path.join(base, name)
            size = os.stat(p).st_size
            with open(p, "rb") as f:
                assert len(f.read()) == size and os.fstat(f.fileno()).st_size == size, p
            n += 1
    assert n > 0


def only_a(file):
    import h5py
    with h5py.File(file, "r") as f:
        assert "a" in f and "b" not in f, list(f)


# SEMANTICS R3, R6, W13, X10
def test_reading_changes_nothing(t):
    top = t.path("src")
    os.mkdir(top)
    t.call(make_nc, top + "/n.nc")
    t.call(make_nc, top + "/c.nc", 2, "NETCDF3_CLASSIC")
    t.call(make_zarr, top + "/z.zarr")
    t.call(make_zarr, top + "/m.zarr")
    put(top + "/m.zarr/.zmetadata", b'{"zarr_consolidated_format": 1, "metadata": {".zgroup": '
        b'{"zarr_format": 2}, "a/.zarray": {"zarr_format": 2, "shape": [8], "chunks": [4], "dtype":'
        b' "<i8", "fill_value": 0, "order": "C", "filters": null, "compressor": null}}}')
    before = state(top)
    with t.mount(top) as m:
        t.call(all_sizes, m.path)
        t.call(only_a, m.path + "/m.nc")
    for name in "n.nc", "z.zarr":
        with t.mount(os.path.join(top, name)) as m:
            t.call(all_sizes, m.path)
    assert state(top) == before
    for source in top, top + "/n.nc", top + "/z.zarr":      # writable, and nobody writes
        with t.mount(source, "rw") as m:
            t.call(all_sizes, m.path)
        after = state(top)  # directories had the state directories in them
        assert set(after) == set(before)
        assert ([after[p] for p in after if os.path.isfile(p)] ==
                [before[p] for p in after if os.path.isfile(p)])


def damaged(m):
    """One chunk that cannot be decoded, and one whose index says nonsense."""
    assert sorted(os.listdir(m + "/v")) == [".zarray", ".zattrs", "0", "1"]
    assert os.path.isfile(m + "/v/1")
    with open(m + "/v/0", "rb") as f:
        assert np.frombuffer(f.read(), "<i4").tolist() == [1, 1]
    with open(m + "/v/1", "rb") as f:
        fails((errno.EIO,), f.read)
    chunks = {str(i) for i in range(20)}
    assert set(os.listdir(m + "/gone")) == chunks | {".zarray", ".zattrs"}, os.listdir(m + "/gone")
    assert os.path.isfile(m + "/gone/0")
    with open(m + "/gone/0", "rb") as f:
        fails((errno.EIO,), f.read)


# SEMANTICS E2, E3, E4
def test_what_cannot_be_read(t):
    import h5py
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.ones(4, "<i4"), chunks=(2,), compression="gzip")
        f.create_dataset("gone", data=np.arange(40), chunks=(2,), compression="gzip")
        at = f["v"].id.get_chunk_info(1).byte_offset
        f.flush()
    with open(path, "r+b") as f:
        data = f.read()
        f.seek(at)
        f.write(b"no zlib")
        trees = [i for i in range(len(data) - 4) if data[i:i + 5] == b"TREE\1"]
        f.seek(trees[-1])
        f.write(b"XXXX")
    with t.mount(path, "filter=none", foreground=True) as m:
        t.call(damaged, m.path)
        log = m.messages()
    assert re.search(": '/v' chunk 1: deflate: .* not a valid zlib stream$", log, re.M), log
    assert re.search(f"^nczarrfs: error: '{re.escape(path)}': '/gone' chunk 0: chunk B-tree: "
                     "no node at [0-9]+$", log, re.M), log


# ---- a tree that is written ----

def open_files(m):
    """One content for all who have a file open, before anybody closes it."""
    first = os.open(m + "/v/.zattrs", os.O_RDWR)
    second = os.open(m + "/v/.zattrs", os.O_RDONLY)
    whole = os.read(second, 1000)
    os.pwrite(first, b"\n" + whole, 0)
    assert os.pread(second, 1000, 0) == b"\n" + whole
    assert os.stat(m + "/v/.zattrs").st_size == len(whole) + 1
    with open(m + "/v/.zattrs", "rb") as f:
        assert f.read() == b"\n" + whole
    os.close(first)
    os.close(second)


def attributes(m, path):
    own = os.listxattr(path)
    for name in own:
        assert os.getxattr(path, name)
        fails((errno.ENOTSUP,), os.setxattr, path, name, b"other")
        fails((errno.ENOTSUP,), os.removexattr, path, name)
    fails((errno.ENOTSUP,), os.setxattr, path, "user.mine", b"1")
    valid = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", x, 7, -1) for x in (1, 4, 32))
    for acl in "system.posix_acl_access", "system.posix_acl_default":
        fails((errno.ENOTSUP, errno.ENODATA), os.getxattr, path, acl)
        fails((errno.ENOTSUP,), os.setxattr, path, acl, valid)
    fails((errno.ENOTSUP,), os.open, m, os.O_TMPFILE | os.O_RDWR)


# SEMANTICS C10, X3, X4, X5, W7, W11, W8
def test_tree(t):
    path = t.path("a.nc")
    t.call(make_nc, path)
    with t.mount(path, "rw,commit_delay=3600000", foreground=True) as m:
        t.call(open_files, m.path)
        t.call(attributes, m.path, m.path + "/v")
        t.call(put, m.path + "/lonely.0.0", b"of no array")
        # unmounting returns; the process that does the rest has not even begun with it
        m.ended = m.fails = True
        for pid in m.pids:
            os.kill(pid, signal.SIGSTOP)
        ok, why = mounts.unmount(m.path)
        assert ok and not mounts.is_mounted(m.path), why
        assert m.process.poll() is None
        for pid in m.pids:
            os.kill(pid, signal.SIGCONT)
        assert m.exit_status() == 1 and "lonely.0.0" in m.messages(), m.messages()
    with t.mount(path, "rw,commit_delay=3600000", foreground=True) as m:
        t.call(lonely, m.path)
        t.call(described, m.path)
        t.call(in_nc, path, [6, 7])
    t.call(in_nc, path, [6, 7])


def lonely(m):
    with open(m + "/lonely.0.0", "rb") as f:
        assert f.read() == b"of no array"
    os.unlink(m + "/lonely.0.0")


def described(m):
    """Chunks of no array wait also when all is committed, until its document is written."""
    def sync():
        fd = os.open(m, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)

    os.mkdir(m + "/w")
    put(m + "/w/0", np.int32([6, 7]).tobytes())
    sync()
    with open(m + "/w/0", "rb") as f:
        assert f.read() == np.int32([6, 7]).tobytes()
    put(m + "/w/.zarray", b'{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<i4", '
        b'"fill_value": 0, "order": "C", "filters": null, "compressor": null}')
    put(m + "/w/.zattrs", b'{"_ARRAY_DIMENSIONS": ["y"]}')
    sync()


def in_nc(path, described):
    import netCDF4
    with netCDF4.Dataset(path) as d:
        assert d["v"][:].tolist() == [1] * 4 and d["w"][:].tolist() == described


# ---- a mirror that is written ----

def lock(path, how, kind):
    """Whether a lock can be had now, by another process."""
    pid = os.fork()
    if pid == 0:
        with open(path, "r+b") as f:
            try:
                kind(f, how | fcntl.LOCK_NB)
                os._exit(0)
            except BlockingIOError:
                os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def locks(d, m):
    for kind in fcntl.flock, fcntl.lockf:
        with open(m + "/file", "r+b") as f:
            kind(f, fcntl.LOCK_EX)
            assert not lock(m + "/file", fcntl.LOCK_EX, kind), "two have it"
            assert lock(d + "/file", fcntl.LOCK_EX, kind), "the directory's own locks are others"
        with open(m + "/file", "r+b") as f:
            kind(f, fcntl.LOCK_SH)
            assert lock(m + "/file", fcntl.LOCK_SH, kind), "two may read"
            assert not lock(m + "/file", fcntl.LOCK_EX, kind), "one writes what another reads"
        with open(d + "/file", "r+b") as f:
            kind(f, fcntl.LOCK_EX)
            assert lock(m + "/file", fcntl.LOCK_EX, kind), "the directory's own locks are others"


def read_only_ones(m):
    fails((errno.EROFS,), put, m + "/c.zarr/x", b"1")
    fails((errno.EROFS,), os.mkdir, m + "/c.zarr/x")
    fails((errno.EROFS,), os.unlink, m + "/c.zarr/.zgroup")
    fails((errno.EROFS,), os.rename, m + "/c.zarr/.zgroup", m + "/c.zarr/x")
    fails((errno.EROFS,), os.truncate, m + "/c.zarr/.zgroup", 0)
    fails((errno.EROFS,), os.truncate, m + "/c.nc4", 0)
    fails((errno.EROFS,), os.open, m + "/c.nc4", os.O_RDWR)
    fails((errno.EROFS,), os.utime, m + "/c.nc4", (1e9, 1e9))
    fails((errno.EROFS,), os.chmod, m + "/c.nc4", 0o600)


def renamed_or_busy(old, new):
    """True if the rename succeeds, False if the dataset is busy."""
    try:
        os.rename(old, new)
    except OSError as error:
        assert error.errno == errno.EBUSY, error
        return False
    return True


def busy(m):
    """A counterpart that is open keeps the names of its dataset as they are."""
    with open(m + "/sub/n.zarr/v/.zarray", "rb"):
        fails((errno.EBUSY,), os.rename, m + "/sub/n.nc", m + "/sub/o.nc")
        fails((errno.EBUSY,), os.rename, m + "/sub", m + "/other")
    eventually(lambda: renamed_or_busy(m + "/sub/n.nc", m + "/sub/o.nc"))
    in_tree(m + "/sub/o.zarr", 1)


def across(m):
    """Names do not move between a dataset and what is around it; mv copies."""
    fails((errno.EXDEV,), os.rename, m + "/file", m + "/sub/n.zarr/file")
    fails((errno.EXDEV,), os.rename, m + "/sub/n.zarr/v/.zattrs", m + "/zattrs")
    fails((errno.EXDEV,), os.rename, m + "/sub/n.zarr", m + "/sub/p")
    fails((errno.EXDEV,), os.link, m + "/file", m + "/sub/n.zarr/file")
    fails((errno.EXDEV,), os.rename, m + "/file", m + "/sub/n.zarr/file")
    assert not os.path.exists(m + "/sub/n.zarr/file")
    shutil.move(m + "/file", m + "/sub/n.zarr/file")
    with open(m + "/sub/n.zarr/file", "rb") as f:
        assert f.read() == b"first" and not os.path.exists(m + "/file")
    shutil.move(m + "/sub/n.zarr/file", m + "/file")
    with open(m + "/file", "rb") as f:
        assert f.read() == b"first"


def same_size(d, m):
    with open(m + "/file", "rb", buffering=0) as f:
        assert f.read() == b"first"
        with open(d + "/file", "r+b") as g:
            g.write(b"other")
        with open(m + "/file", "rb") as g:
            assert g.read() == b"other"
        f.seek(0)
        assert f.read() in (b"first", b"other")


IN_CREATE, IN_MODIFY, IN_DELETE, IN_MOVE = 0x100, 2, 0x200, 0xc0


class Watch:
    def __init__(self, *folders):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in folders:
            assert libc.inotify_add_watch(self.fd, folder.encode(), IN_CREATE | IN_MODIFY |
                                          IN_DELETE | IN_MOVE) >= 0

    def events(self):
        """[(mask, name)] of what has been reported until now."""
        found = []
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return found
        while data:
            _, mask, _, n = struct.unpack_from("iIII", data)
            found.append((mask & 0xfff, data[16:16 + n].rstrip(b"\0").decode()))
            data = data[16 + n:]
        return found


def watched(d, m):
    w = Watch(m, m + "/sub")
    put(m + "/here", b"1")
    os.rename(m + "/here", m + "/sub/there")
    os.unlink(m + "/sub/there")
    assert {IN_CREATE, IN_MODIFY, IN_DELETE, 0x40, 0x80} == {mask for mask, _ in w.events()}
    put(d + "/outside", b"1")
    assert "outside" in os.listdir(m)
    with open(m + "/outside", "rb") as f:
        assert f.read() == b"1"
    os.unlink(d + "/outside")
    assert "outside" not in os.listdir(m)
    assert w.events() == [], "what is done to the directory itself is reported"


def follow(d, m):
    """tail -f, from the first line on."""
    put(d + "/log", b"one\n")
    with subprocess.Popen(["tail", "-n", "+1", "-f", "-s", "0.1", m + "/log"],
                          stdout=subprocess.PIPE) as p:
        try:
            for line in b"one\n", b"two\n", b"three\n":
                if line != b"one\n":
                    with open(d + "/log", "ab") as f:
                        f.write(line)
                assert select.select([p.stdout], [], [], 30)[0], f"{line} does not come"
                assert os.read(p.stdout.fileno(), 100) == line
        finally:
            p.kill()


# SEMANTICS R15, C14, E9, L3, L4, L6, P13, X2, X5
def test_mirror(t):
    d = t.path("dir")
    os.makedirs(d + "/sub")
    t.call(make_nc, d + "/sub/n.nc")
    t.call(make_nc, d + "/c.nc", 2, "NETCDF3_CLASSIC")
    put(d + "/file", b"first")
    with t.mount(d) as m:
        t.call(follow, d, m.path)
    with t.mount(d, "rw") as m:
        for folder in m.path, m.path + "/sub":
            fails((errno.ENOTSUP,), os.open, folder, os.O_TMPFILE | os.O_RDWR)
        t.call(locks, d, m.path)
        t.call(read_only_ones, m.path)
        t.call(across, m.path)
        t.call(same_size, d, m.path)
        t.call(watched, d, m.path)
        t.call(follow, d, m.path)
        t.call(busy, m.path)


# ---- other users ----

def as_other(m):
    os.chdir(m)             # the folders above may be private
    os.setgroups([])
    os.setgid(12345)
    os.setuid(12345)
    put("open/mine", b"written by another user")
    assert os.stat("open/mine").st_uid == 0, "it belongs to who mounted"
    for func, args in ((open, ("private", "rb")), (put, ("closed/new", b"")),
                       (os.rename, ("private", "open/private")), (os.unlink, ("closed/file",)),
                       (put, ("closed/file", b"x")), (os.listdir, ("shut",))):
        fails((errno.EACCES,), func, *args)
    fails((errno.EPERM, errno.EACCES), os.chmod, "private", 0o666)
    with open("closed/file", "rb") as f:
        assert f.read() == b"1"


# SEMANTICS P19, P20
def test_other_users(t):
    if os.getuid():
        raise Skip("only root can be another user")
    d = t.path("dir")
    for name, mode in ("open", 0o777), ("closed", 0o755), ("shut", 0o700):
        os.makedirs(f"{d}/{name}")
        os.chmod(f"{d}/{name}", mode)
    put(d + "/private", b"")
    os.chmod(d + "/private", 0o600)
    put(d + "/closed/file", b"1")
    os.chmod(d + "/closed/file", 0o644)
    os.chmod(d, 0o755)
    with t.mount(d, "rw,allow_other") as m:
        t.call(as_other, m.path)
    assert os.stat(d + "/open/mine").st_uid == os.getuid()
    assert stat.S_IMODE(os.stat(d + "/private").st_mode) == 0o600
