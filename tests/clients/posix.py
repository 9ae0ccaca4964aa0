# SPDX-License-Identifier: BSD-3-Clause
"""What POSIX says of files and directories, as far as it applies: small checks that hold on any
file system, and on every writable kind of mount but for what its Kind says (the reasons:
docs/reference/semantics.md).

    posix.py DIR    all of them in an existing directory, for comparison"""
import ctypes
import errno
import mmap
import os
import shutil
import stat
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.context import eventually  # noqa: E402


class Kind:
    """Where a mount differs. mount: it is one; dirs: directories can be made; hard: what link(2)
    makes, "link", "copy" or "" (EPERM); symlinks: they can be made; times, modes: they are kept;
    dead: a directory that was removed is still known to whoever has it open; own: names that are
    always there."""

    def __init__(self, name, mount=True, dirs=True, hard="link", symlinks=False, times=True,
                 modes=True, dead=True, own=()):
        self.name, self.mount, self.dirs, self.hard = name, mount, dirs, hard
        self.symlinks, self.times, self.modes, self.dead = symlinks, times, modes, dead
        self.own = set(own)

    def list(self, d):
        return sorted(set(os.listdir(d)) - self.own)


CHECKS = []


def check(func):
    CHECKS.append(func)
    return func


def fails(code, func, *args):
    try:
        func(*args)
    except OSError as error:
        assert error.errno == code, (f"{func.__name__}{args[1:] or args}: "
                                     f"{errno.errorcode[error.errno]}, not {errno.errorcode[code]}")
        return
    raise AssertionError(f"{func.__name__}{args}: no {errno.errorcode[code]}")


def put(path, data=b"content"):
    with open(path, "wb") as f:
        f.write(data)
    return path


def get(path):
    with open(path, "rb") as f:
        return f.read()


# ---- renaming ----

# SEMANTICS P1
@check
def rename_files(d, k):
    a, b = put(d + "/a", b"new"), put(d + "/b", b"old")
    os.rename(a, b)
    assert get(b) == b"new" and not os.path.exists(a) and k.list(d) == ["b"]
    os.rename(b, b)
    assert get(b) == b"new"
    fails(errno.ENOENT, os.rename, a, b)
    fails(errno.ENOENT, os.rename, b, d + "/none/b")
    fails(errno.ENOTDIR, os.rename, b, b + "/c")


# SEMANTICS P2
@check
def rename_open(d, k):
    """Who has either of them open goes on with the file that he opened."""
    a, b = put(d + "/a", b"new"), put(d + "/b", b"old")
    with open(a, "rb+", buffering=0) as fa, open(b, "rb", buffering=0) as fb:
        os.rename(a, b)
        assert fb.read() == b"old"
        assert fa.read() == b"new"
        fa.write(b"er")
        fa.seek(0)
        assert fa.read() == b"newer" and os.fstat(fa.fileno()).st_size == 5
    assert get(b) == b"newer"


# SEMANTICS P1
@check
def rename_directories(d, k):
    if not k.dirs:
        return
    os.makedirs(d + "/a/b")
    put(d + "/a/b/c")
    os.mkdir(d + "/e")
    put(d + "/f")
    fails(errno.EINVAL, os.rename, d + "/a", d + "/a/b/x")
    fails(errno.ENOTDIR, os.rename, d + "/a", d + "/f")
    fails(errno.EISDIR, os.rename, d + "/f", d + "/e")
    fails(errno.ENOTEMPTY, os.rename, d + "/e", d + "/a")
    os.rename(d + "/a", d + "/e")
    assert sorted(os.listdir(d)) == ["e", "f"] and get(d + "/e/b/c") == b"content"
    os.rename(d + "/e/b/c", d + "/c")
    assert os.listdir(d + "/e/b") == [] and get(d + "/c") == b"content"
    here = os.open(d + "/e/b", os.O_RDONLY | os.O_DIRECTORY)
    os.rename(d + "/e", d + "/g")
    put(f"/proc/self/fd/{here}/x", b"found")
    os.close(here)
    assert get(d + "/g/b/x") == b"found"


RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4


def renameat2(a, b, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, a.encode(), -100, b.encode(), flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# SEMANTICS P12
@check
def rename_flags(d, k):
    a, b = put(d + "/a", b"1"), put(d + "/b", b"2")
    fails(errno.EEXIST, renameat2, a, b, RENAME_NOREPLACE)
    if not k.mount:
        renameat2(a, b, RENAME_EXCHANGE)
        assert (get(a), get(b)) == (b"2", b"1")
    else:
        for flag in RENAME_EXCHANGE, RENAME_WHITEOUT:
            fails(errno.EINVAL, renameat2, a, b, flag)
        assert (get(a), get(b)) == (b"1", b"2")
    renameat2(a, d + "/c", RENAME_NOREPLACE)
    assert k.list(d) == ["b", "c"]


# ---- removing ----

@check
# SEMANTICS P1, P29
def rename_atomic(d, k):
    """Who opens the name meanwhile finds one of the files, whole. The kernel looks a name up twice
    at most, so that of a mount ESTALE is possible when it is replaced twice in that moment."""
    a, stop = d + "/a", d + "/stop"
    put(a, b"0" * 5000)
    pid = os.fork()
    if pid == 0:
        for i in range(150):
            put(d + "/tmp", b"%d" % (i % 10) * 5000)
            os.rename(d + "/tmp", a)
        put(stop)
        os._exit(0)
    while not os.path.exists(stop):
        try:
            data = get(a)
        except OSError as error:
            assert error.errno == errno.ESTALE and k.mount, error
            continue
        assert len(data) == 5000 and len(set(data)) == 1, (len(data), set(data))
    assert os.waitpid(pid, 0)[1] == 0


@check
# SEMANTICS P5
def exclusive(d, k):
    """Of several who make one name at the same time one succeeds."""
    for n in range(10):
        pids = [os.fork() for _ in range(1)]
        mine = made(f"{d}/f{n}", k)
        if pids[0] == 0:
            os._exit(mine)
        other = os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1])
        assert mine + other == 1 + k.dirs, (n, mine, other)


def made(path, k):
    done = 0
    for func, args in ((os.open, (path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
                       (os.mkdir, (path + "d",))):
        try:
            func(*args)
            done += 1
        except OSError as error:
            assert error.errno == errno.EEXIST or not k.dirs, error
    return done


@check
# SEMANTICS X11
def deep(d, k):
    """Directories as deep as paths may be; what is there can be removed again."""
    if not k.dirs:
        return
    here, n, top = os.open(d, os.O_RDONLY | os.O_DIRECTORY), 0, d
    while not os.path.ismount(top):
        top = os.path.dirname(top)
    left = 4095 - len(os.path.relpath(d, top))  # bytes of names and of '/' before each
    os.chdir(d)
    try:
        while n < 60:
            os.mkdir("n" * 120)
            os.chdir("n" * 120)
            n += 1
        assert not k.mount
    except OSError as error:
        assert error.errno == errno.ENAMETOOLONG and k.mount and n == left // 121, (n, error)
        assert os.listdir(".") == []
        left = left % 121 - 1
        for make in put, os.mkdir:
            fails(errno.ENAMETOOLONG, make, "m" * (left + 1))
            assert os.listdir(".") == []
        os.mkdir("m" * left)
        os.rmdir("m" * left)
        if k.name == "store":   # a key has at most 1024 bytes
            fails(errno.ENAMETOOLONG, put, "m" * left)
            assert os.listdir(".") == []
        else:
            assert len(get(put("m" * left))) == 7
            os.unlink("m" * left)
    finally:
        for _ in range(n):
            os.chdir("..")
            os.rmdir("n" * 120)
        os.chdir("/")
        os.close(here)
    assert os.listdir(d) == []


def sparse_or_refused(a, k):
    """In a tree a file of 4 TiB would be written, to the last byte. False while a program has it
    open, until its release: its length is in memory."""
    try:
        os.truncate(a, 1 << 42)
    except OSError as error:
        assert error.errno in (errno.ENOSPC, errno.EFBIG), error
        assert get(a) == b"1"
        return True
    assert os.stat(a).st_size == 1 << 42
    if not k.modes:
        os.truncate(a, 1)
    return k.modes


@check
# SEMANTICS E18
def too_much(d, k):
    """More bytes than any file may have, and than there is room for."""
    a = put(d + "/a", b"1")
    fails(errno.EFBIG, os.truncate, a, (1 << 63) - 1)
    with open(a, "r+b", buffering=0) as f:
        fails(errno.EFBIG, os.pwrite, f.fileno(), b"x", (1 << 63) - 2)
    eventually(lambda: sparse_or_refused(a, k))
    put(a, b"2")
    assert get(a) == b"2"


# SEMANTICS P2, P3
@check
def unlink(d, k):
    fails(errno.ENOENT, os.unlink, d + "/none")
    a = put(d + "/a", b"0123456789")
    fails(errno.ENOTDIR, os.unlink, a + "/x")
    fails(errno.ENOTDIR, os.rmdir, a)
    with open(a, "rb+", buffering=0) as f:
        os.unlink(a)
        assert not os.path.exists(a) and k.list(d) == []
        assert f.read() == b"0123456789"
        f.write(b"abc")
        os.truncate(f.fileno(), 12)
        f.seek(0)
        assert f.read() == b"0123456789ab" and os.fstat(f.fileno()).st_nlink == 0
        put(a, b"another")
        f.seek(0)
        assert f.read() == b"0123456789ab"
    assert get(a) == b"another"


# SEMANTICS P4, P25, P27
@check
def rmdir(d, k):
    if not k.dirs:
        fails(errno.EPERM, os.mkdir, d + "/a")
        return
    os.mkdir(d + "/a")
    fails(errno.EEXIST, os.mkdir, d + "/a")
    fails(errno.ENOENT, os.mkdir, d + "/none/a")
    fails(errno.EISDIR, os.unlink, d + "/a")
    put(d + "/a/f")
    fails(errno.ENOTEMPTY, os.rmdir, d + "/a")
    fails(errno.ENOTDIR, os.mkdir, d + "/a/f/x")
    fails(errno.ENOENT, os.rmdir, d + "/none")
    fails(errno.EINVAL, os.rmdir, d + "/a/.")
    fails(errno.ENOTEMPTY, os.rmdir, d + "/a/..")
    os.unlink(d + "/a/f")
    here = os.open(d + "/a", os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir(d + "/a")
    fails(errno.ENOENT, put, f"/proc/self/fd/{here}/x")
    if k.dead:
        assert os.listdir(here) == []
    else:
        fails(errno.ESTALE, os.fstat, here)
    os.close(here)
    os.mkdir(d + "/a")
    assert os.listdir(d + "/a") == []


# ---- opening ----

# SEMANTICS P5
@check
def open_flags(d, k):
    a = d + "/a"
    fails(errno.ENOENT, os.open, a, os.O_RDWR)
    fd = os.open(a, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    fails(errno.EEXIST, os.open, a, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.write(fd, b"12345")
    other = os.open(a, os.O_WRONLY | os.O_APPEND)
    os.write(other, b"6")
    os.write(fd, b"x")              # its own place, over what was appended
    os.write(other, b"7")
    assert os.pread(fd, 100, 0) == b"12345x7", os.pread(fd, 100, 0)
    os.close(other)
    os.close(fd)
    fails(errno.ENOTDIR, os.open, a, os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.EISDIR, os.open, d, os.O_RDWR)
    fails(errno.ENOTDIR, os.open, a + "/x", os.O_RDONLY)
    fails(errno.ENOTDIR, os.open, a + "/x", os.O_CREAT | os.O_WRONLY)
    fd = os.open(a, os.O_RDWR | os.O_TRUNC)
    assert os.fstat(fd).st_size == 0 and os.read(fd, 10) == b""
    os.close(fd)
    assert os.stat(a).st_size == 0 and get(a) == b""
    fd = os.open(a, os.O_RDONLY)
    fails(errno.EBADF, os.write, fd, b"x")
    os.close(fd)
    fd = os.open(a, os.O_WRONLY)
    fails(errno.EBADF, os.read, fd, 1)
    os.close(fd)


# SEMANTICS P6
@check
def append_together(d, k):
    """What several processes append is all there, each write whole."""
    a = put(d + "/a", b"")
    pids = []
    for n in range(4):
        pids.append(os.fork())
        if pids[-1] == 0:
            fd = os.open(a, os.O_WRONLY | os.O_APPEND)
            for _ in range(25):
                os.write(fd, bytes([65 + n]) * 100)
            os._exit(0)
    assert all(os.waitpid(p, 0)[1] == 0 for p in pids)
    lines = get(a)
    assert len(lines) == 10000, len(lines)
    assert [lines.count(x) for x in b"ABCD"] == [2500] * 4
    assert all(len(set(lines[i:i + 100])) == 1 for i in range(0, 10000, 100))


# SEMANTICS E16, X1
@check
def names(d, k):
    long = "n" * 255
    put(d + "/" + long, b"long")
    assert get(d + "/" + long) == b"long" and k.list(d) == [long]
    for name in "n" * 256, "n" * 1000:
        path = d + "/" + name
        for func, args in ((os.stat, ()), (os.open, (os.O_RDONLY,)), (os.unlink, ()),
                           (os.open, (os.O_CREAT | os.O_WRONLY,)), (os.mkdir, ()),
                           (os.rmdir, ()), (os.truncate, (0,))):
            fails(errno.ENAMETOOLONG, func, path, *args)
        fails(errno.ENAMETOOLONG, os.rename, d + "/" + long, path)
        fails(errno.ENAMETOOLONG, os.link, d + "/" + long, path)
    fails(errno.ENAMETOOLONG, os.stat, d + "/x" * 2100)
    os.unlink(d + "/" + long)
    for name in "with blank", "a\nb", "\xe4\u20ac", "%41", "-", "~", "a\\b", "...", "a:b*?":
        put(d + "/" + name, name.encode())
        assert get(d + "/" + name) == name.encode() and k.list(d) == [name], k.list(d)
        os.unlink(d + "/" + name)


# SEMANTICS P5, P21, P24
@check
def kinds(d, k):
    """Links, pipes and devices."""
    a = put(d + "/a", b"linked")
    if k.symlinks or not k.mount:
        os.symlink("a", d + "/s")
        assert get(d + "/s") == b"linked" and os.readlink(d + "/s") == "a"
        st = os.lstat(d + "/s")
        assert stat.S_ISLNK(st.st_mode) and st.st_size == 1
        fails(errno.ELOOP, os.open, d + "/s", os.O_RDONLY | os.O_NOFOLLOW)
        fails(errno.EEXIST, os.symlink, "a", d + "/s")
        os.symlink("t", d + "/u")
        os.symlink("u", d + "/t")
        fails(errno.ELOOP, os.stat, d + "/t")
        os.rename(d + "/u", d + "/v")
        os.unlink(d + "/v")
        os.unlink(d + "/s")
        assert get(a) == b"linked"
        fails(errno.ENAMETOOLONG, os.symlink, "a", d + "/" + "n" * 256)
    else:
        fails(errno.EPERM, os.symlink, "a", d + "/s")
    if not k.mount:
        os.mkfifo(d + "/p")
        assert stat.S_ISFIFO(os.stat(d + "/p").st_mode)
        os.unlink(d + "/p")
    else:
        fails(errno.EPERM, os.mkfifo, d + "/p")
        fails(errno.EPERM, os.mknod, d + "/p", 0o600 | stat.S_IFSOCK)
        fails(errno.EPERM, os.mknod, d + "/p", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(d + "/m", 0o644 | stat.S_IFREG)
    assert get(d + "/m") == b""
    fails(errno.EEXIST, os.mknod, d + "/m", 0o644 | stat.S_IFREG)


# SEMANTICS P22, P23
@check
def links(d, k):
    a = put(d + "/a", b"first")
    if not k.hard:
        fails(errno.EPERM, os.link, a, d + "/b")
        return
    os.link(a, d + "/b")
    assert get(d + "/b") == b"first" and k.list(d) == ["a", "b"]
    fails(errno.EEXIST, os.link, a, d + "/b")
    fails(errno.ENOENT, os.link, d + "/none", d + "/c")
    if k.dirs:
        os.mkdir(d + "/e")
        fails(errno.EPERM, os.link, d + "/e", d + "/c")
    count = 2 if k.hard == "link" else 1
    assert os.stat(a).st_nlink == os.stat(d + "/b").st_nlink == count
    if k.mount or count == 1:
        assert os.stat(a).st_ino != os.stat(d + "/b").st_ino
    put(a, b"other")
    want = b"other" if count == 2 else b"first"
    assert get(d + "/b") == want
    os.unlink(a)
    assert get(d + "/b") == want and os.stat(d + "/b").st_nlink == 1


# SEMANTICS P26
@check
def link_counts(d, k):
    assert os.stat(put(d + "/a")).st_nlink == 1
    if k.dirs:
        os.makedirs(d + "/b/c")
    n = os.stat(d + "/b" if k.dirs else d).st_nlink
    assert n in ((1, 2) if k.mount else (3,)), n    # 1: not counted, as programs that look know


# ---- content ----

# SEMANTICS P7
@check
def truncation(d, k):
    a = put(d + "/a", b"0123456789")
    os.truncate(a, 4)
    assert get(a) == b"0123" and os.stat(a).st_size == 4
    os.truncate(a, 8)
    assert get(a) == b"0123\0\0\0\0"
    with open(a, "rb+", buffering=0) as f:
        f.seek(20000)
        f.write(b"end")
        f.truncate(20002)
        assert os.fstat(f.fileno()).st_size == 20002
        assert os.pread(f.fileno(), 30000, 0) == b"0123" + b"\0" * 19996 + b"en"
    assert get(a) == b"0123" + b"\0" * 19996 + b"en"
    fails(errno.EINVAL, os.truncate, a, -1)
    fails(errno.ENOENT, os.truncate, d + "/none", 0)
    fails(errno.EISDIR, os.truncate, d, 0)


# SEMANTICS P7, P8
@check
def holes(d, k):
    a = d + "/a"
    fd = os.open(a, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x", 1 << 20)
    assert os.pread(fd, 4096, 100) == b"\0" * 4096
    hole = os.lseek(fd, 0, os.SEEK_HOLE)
    data = os.lseek(fd, 0, os.SEEK_DATA)
    assert (hole, data) == (((1 << 20) + 1, 0) if k.mount else (0, 1 << 20)), (hole, data)
    fails(errno.ENXIO, os.lseek, fd, (1 << 20) + 1, os.SEEK_DATA)
    os.close(fd)


# SEMANTICS P9
@check
def allocation(d, k):
    a = put(d + "/a", b"12345")
    with open(a, "rb+", buffering=0) as f:
        if k.mount:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.fallocate(f.fileno(), 0, ctypes.c_long(0), ctypes.c_long(10)) == -1
            assert ctypes.get_errno() == errno.EOPNOTSUPP
        os.posix_fallocate(f.fileno(), 0, 10000)     # libc writes where a file system cannot
        assert os.fstat(f.fileno()).st_size == 10000 and f.read(10) == b"12345\0\0\0\0\0"
        os.posix_fallocate(f.fileno(), 0, 5)
        assert os.fstat(f.fileno()).st_size == 10000


# SEMANTICS P10
@check
def copying(d, k):
    a, b = put(d + "/a", os.urandom(300000)), put(d + "/b", b"")
    with open(a, "rb") as f, open(b, "rb+") as g:
        n = 0
        while n < 300000:
            n += os.copy_file_range(f.fileno(), g.fileno(), 300000 - n)
        f.seek(0)
        n = os.sendfile(g.fileno(), f.fileno(), None, 1000)
        assert n == 1000
    assert get(b) == get(a) + get(a)[:1000]
    shutil.copyfile(a, d + "/c")
    assert get(d + "/c") == get(a)


# SEMANTICS P11, R10
@check
def mappings(d, k):
    data = os.urandom(300001)
    a = put(d + "/a", data)
    with open(a, "rb") as f:
        for how in mmap.MAP_PRIVATE, mmap.MAP_SHARED:
            with mmap.mmap(f.fileno(), 0, how, mmap.PROT_READ) as m:
                assert m[:] == data
    with open(a, "rb+") as f:
        with mmap.mmap(f.fileno(), 0) as m:
            m[100:105] = b"hello"
            m.flush()
            assert os.pread(f.fileno(), 5, 100) == b"hello"
            m[300000:300001] = b"!"
    assert get(a) == data[:100] + b"hello" + data[105:300000] + b"!"


# SEMANTICS R12
@check
def direct(d, k):
    data = os.urandom(10001)
    a = d + "/a"
    fd = os.open(a, os.O_RDWR | os.O_CREAT)
    os.write(fd, data)
    os.close(fd)
    try:
        fd = os.open(a, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        assert not k.mount and error.errno == errno.EINVAL
        return
    if k.mount:
        for off, size in ((0, 10001), (1, 100), (4095, 3), (9999, 100), (10001, 5), (0, 4096)):
            assert os.pread(fd, size, off) == data[off:off + size], (off, size)
    os.close(fd)


# ---- attributes ----

# SEMANTICS P14, P15
@check
def times(d, k):
    a = put(d + "/a")
    first = os.stat(a).st_mtime_ns
    if k.times:
        os.utime(a, ns=(10 ** 18 + 1, 10 ** 18 + 5))
        assert os.stat(a).st_mtime_ns == 10 ** 18 + 5
        os.utime(a)
        assert os.stat(a).st_mtime_ns >= first
        os.utime(a, (1e9, 1e9))
        assert get(a) and os.stat(a).st_mtime == 1e9
        with open(a, "ab") as f:
            f.write(b"more")
        assert os.stat(a).st_mtime_ns >= first, "a write is a change"
        if k.dirs:
            os.utime(d, (1e9, 1e9))
        put(d + "/new")
        assert os.stat(d).st_mtime_ns >= first, "a new entry changes the directory"
    else:
        os.utime(a, (1e9, 1e9))
        assert os.stat(a).st_mtime_ns == first, "trees forget times"
    os.utime(a, (1e9, 1.5e9))
    st = os.stat(a)
    assert st.st_atime_ns == st.st_mtime_ns if k.mount else st.st_atime == 1e9
    fails(errno.ENOENT, os.utime, d + "/none")


# SEMANTICS P16, P17, P18
@check
def modes(d, k):
    a = put(d + "/a")
    if k.modes:
        old = os.umask(0o027)
        os.close(os.open(d + "/b", os.O_CREAT | os.O_WRONLY, 0o666))
        os.umask(old)
        assert stat.S_IMODE(os.stat(d + "/b").st_mode) == 0o640, oct(os.stat(d + "/b").st_mode)
        os.chmod(a, 0o604)
        assert stat.S_IMODE(os.stat(a).st_mode) == 0o604
        with open(a, "rb") as f:
            os.chmod(f.fileno(), 0o600)
        assert stat.S_IMODE(os.stat(a).st_mode) == 0o600
        os.chmod(a, 0o4755)
        assert stat.S_IMODE(os.stat(a).st_mode) == (0o755 if k.mount else 0o4755)
        for bit in (0o2000, 0o1000) if k.mount else ():
            os.chmod(a, bit | 0o711)
            assert stat.S_IMODE(os.stat(a).st_mode) == 0o711, oct(bit)
        if k.dirs:
            os.mkdir(d + "/c", 0o700)
            assert stat.S_IMODE(os.stat(d + "/c").st_mode) == 0o700
        # who made a file may write to it through what he made it with, whatever its mode
        fd = os.open(d + "/e", os.O_CREAT | os.O_WRONLY, 0o444)
        os.write(fd, b"x")
        os.close(fd)
        assert stat.S_IMODE(os.stat(d + "/e").st_mode) == 0o444
    else:
        want = os.stat(a).st_mode
        os.close(os.open(d + "/b", os.O_CREAT | os.O_WRONLY, 0o600))
        assert os.stat(d + "/b").st_mode == want, "the dataset's"
        with open(a, "rb") as f:
            os.chmod(a, 0o600)
            assert stat.S_IMODE(os.fstat(f.fileno()).st_mode) == 0o600
            os.chmod(a, 0o6640)
            assert stat.S_IMODE(os.fstat(f.fileno()).st_mode) == 0o640
    fails(errno.ENOENT, os.chmod, d + "/none", 0o600)
    st = os.stat(a)
    os.chown(a, st.st_uid, st.st_gid)
    if k.mount or os.getuid():
        fails(errno.EPERM, os.chown, a, 12345, -1)
        fails(errno.EPERM, os.chown, a, -1, 12345)
        assert (os.stat(a).st_uid, os.stat(a).st_gid) == (st.st_uid, st.st_gid)


# ---- listing ----

# SEMANTICS R13
@check
def listing(d, k):
    """What is there all along is listed exactly once, whatever comes and goes meanwhile, and a
    position leads back to where it was taken."""
    stay = {f"stay{i}" for i in range(300)}
    for name in stay:
        put(f"{d}/{name}", b"")
    for i in range(100):
        put(f"{d}/go{i}", b"")
    seen = []
    with os.scandir(d) as it:
        for n, entry in enumerate(it):
            seen.append(entry.name)
            if n % 4 == 0 and n < 400:
                os.unlink(f"{d}/go{n // 4}")
                put(f"{d}/new{n // 4}", b"")
    kept = [x for x in seen if x in stay]
    assert len(kept) == len(stay) and set(kept) == stay, (len(kept), len(set(kept)))
    assert len(seen) == len(set(seen)), "an entry is listed twice"
    left = k.list(d)
    assert set(left) == stay | {f"new{i}" for i in range(100)} and len(left) == 400


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_ulong), ("off", ctypes.c_long), ("len", ctypes.c_ushort),
                ("type", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]


# SEMANTICS R14
@check
def positions(d, k):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
    libc.telldir.restype = ctypes.c_long
    for i in range(200):
        put(f"{d}/f{i}", b"")
    h = ctypes.c_void_p(libc.opendir(d.encode()))
    order, at = [], []
    while True:
        at.append(libc.telldir(h))
        p = libc.readdir(h)
        if not p:
            break
        order.append(Dirent.from_address(p).name)
    assert {b".", b".."} <= set(order) and len(order) == len(set(order)) == 202 + len(k.own)
    for i in (100, 3, 201, 0, 57):
        libc.seekdir(h, ctypes.c_long(at[i]))
        p = libc.readdir(h)
        assert Dirent.from_address(p).name == order[i], i
    libc.rewinddir(h)
    assert Dirent.from_address(libc.readdir(h)).name == order[0]
    libc.closedir(h)


# SEMANTICS P28
@check
def room(d, k):
    """statfs says how much room there is, and how long names may be."""
    st = os.statvfs(d)
    assert st.f_namemax == 255 and st.f_bsize > 0 and st.f_frsize > 0
    assert os.pathconf(d, "PC_NAME_MAX") == 255


@check
def inodes(d, k):
    """An inode number is a file's as long as it is known, whatever it is called."""
    a, b = put(d + "/a"), put(d + "/b")
    with open(a, "rb") as f:
        ino = os.fstat(f.fileno()).st_ino
        assert os.stat(a).st_ino == ino != os.stat(b).st_ino
        os.rename(a, d + "/c")
        assert os.stat(d + "/c").st_ino == ino
        assert {e.name: e.inode() for e in os.scandir(d)}["c"] == ino


def clear(d, but=()):
    for name in set(os.listdir(d)) - set(but):
        path = os.path.join(d, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def run(d, kind, only=()):
    """All checks, each in the same directory, which is empty before and afterwards; what is wrong,
    as text."""
    wrong = []
    for func in CHECKS:
        if only and func.__name__ not in only:
            continue
        try:
            func(d, kind)
        except Exception as error:  # noqa: B902 - collected
            last = traceback.extract_tb(error.__traceback__)
            line = next((f.lineno for f in reversed(last) if f.name == func.__name__), 0)
            wrong.append(f"{kind.name}: {func.__name__}:{line}: {type(error).__name__} {error}")
        try:
            clear(d, kind.own)
        except OSError as error:
            wrong.append(f"{kind.name}: {func.__name__}: afterwards: {error}")
    return wrong


if __name__ == "__main__":
    print("\n".join(run(sys.argv[1], Kind("native", mount=False), sys.argv[2:])) or "ok")
