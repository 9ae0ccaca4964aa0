# SPDX-License-Identifier: BSD-3-Clause
"""The mount as a file system: read-only, true attributes, changes of the source, signals,
leaks, many readers."""
import errno
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import threading
import time

import h5py
import numpy as np

from lib import mounts
from lib.context import Skip
from lib.converted import converted


def sample(path, value=0, n=40):
    with h5py.File(path, "w") as f:
        f.create_dataset("z", data=np.arange(n * 1000, dtype="i4").reshape(n, 1000) + value,
                         chunks=(1, 1000), compression="gzip", shuffle=True)
        f.create_dataset("raw", data=np.full((n, 1000), value, "i4"), chunks=(1, 1000))
        f.create_dataset("so", data=np.full((n, 1000), value, "i4"), chunks=(1, 1000),
                         scaleoffset=0)
        converted(f, "low", np.full((n, 1000), value), (1, 1000))
        f.create_dataset("cont", data=np.full((n, 1000), value, "i4"))
        f["g/w"] = np.arange(3)
        f["v"] = np.float64(value)
    return path


def in_mount(m, *parts):
    return os.path.join(m.path, *parts)


def expect_errno(codes, func, *args):
    try:
        func(*args)
    except OSError as error:
        assert error.errno in codes, f"{error} for {args}, expected {codes}"
        return
    raise AssertionError(f"{args}: no error")


# SEMANTICS E8
def test_read_only(t):
    def check(mnt):
        codes = (errno.EROFS,)
        f = os.path.join(mnt, "z", ".zarray")
        expect_errno(codes, os.open, f, os.O_WRONLY)
        expect_errno(codes, os.open, f, os.O_RDWR)
        expect_errno(codes, os.open, os.path.join(mnt, "new"), os.O_CREAT | os.O_WRONLY)
        expect_errno(codes, os.mkdir, os.path.join(mnt, "dir"))
        expect_errno(codes, os.unlink, f)
        expect_errno(codes, os.rmdir, os.path.join(mnt, "g"))
        expect_errno(codes, os.rename, f, f + "2")
        expect_errno(codes, os.truncate, f, 0)
        expect_errno(codes, os.chmod, f, 0o600)
        expect_errno(codes, os.utime, f)
        expect_errno(codes, os.open, f, os.O_RDONLY | os.O_TRUNC)
        expect_errno(codes, os.chown, f, 0, 0)
        expect_errno(codes, os.setxattr, f, "user.mine", b"1")
        expect_errno(codes, os.mkfifo, os.path.join(mnt, "fifo"))
        expect_errno(codes, os.symlink, "a", os.path.join(mnt, "link"))
        expect_errno(codes, os.link, f, os.path.join(mnt, "hard"))
    with t.mount(sample(t.path("a.nc"))) as m:
        t.call(check, m.path)


def test_attributes_of_files(t):
    """Owner and times are the source's; sizes are true; directories and files by their mode."""
    path = sample(t.path("a.nc"))
    os.utime(path, (1000000000, 1234567890))
    if os.getuid() == 0:
        os.chown(path, 12345, 23456)
    want = os.stat(path)

    def check(mnt):
        for name in ("", ".zgroup", "z", "z/.zarray", "z/0.0", "g/w/0"):
            st = os.stat(os.path.join(mnt, name))
            assert int(st.st_mtime) == 1234567890, f"{name}: mtime {st.st_mtime}"
            assert (st.st_uid, st.st_gid) == (want.st_uid, want.st_gid), f"{name}: owner"
            is_dir = name in ("", "z")
            assert stat.S_ISDIR(st.st_mode) == is_dir, name
            assert not st.st_mode & 0o222, f"{name}: writable mode {st.st_mode:o}"
            if is_dir:
                assert st.st_mode & 0o111
        inodes = {os.stat(os.path.join(mnt, "z", n)).st_ino for n in os.listdir(mnt + "/z")}
        assert len(inodes) == len(os.listdir(mnt + "/z")), "inode numbers repeat"
        assert os.stat(mnt + "/z/0.0").st_ino == os.stat(mnt + "/z/0.0").st_ino
        os.statvfs(mnt)
    with t.mount(path) as m:
        t.call(check, m.path)


# SEMANTICS E1
def test_absent_names(t):
    """ENOENT for what is proven absent, in every form of a bad chunk name."""
    def check(mnt):
        for name in ("z/40.0", "z/0.1", "z/00.0", "z/0.0.0", "z/0", "z/-1.0", "z/+1.0", "z/0.",
                     "z/.0", "z/0.00", "z/99999999999999999999.0", "z/0/0", "nothing", "z/.zgroup",
                     "g/.zarray", ".zarray", "z/ 0.0", "v/1", "v/0.0", "z/" + "1" * 255, "zz/0.0"):
            expect_errno((errno.ENOENT,), os.stat, os.path.join(mnt, name))
        expect_errno((errno.ENOTDIR,), os.stat, mnt + "/z/0.0/x")
        expect_errno((errno.ENOENT, errno.ENAMETOOLONG), os.stat, mnt + "/" + "n" * 256)
    with t.mount(sample(t.path("a.nc"))) as m:
        t.call(check, m.path)


def test_indented_json(t):
    def check(mnt):
        for name in (".zgroup", "z/.zarray", ".zmetadata"):
            with open(os.path.join(mnt, name)) as f:
                text = f.read()
            json.loads(text)
            assert text.count("\n") > 1 and text.endswith("\n"), f"{name}: {text!r:.200}"
    with t.mount(sample(t.path("a.nc"))) as m:
        t.call(check, m.path)


# SEMANTICS R2
def test_partial_reads(t):
    """Any offset and length of a file, beyond its end too, with and without read-ahead."""
    def check(mnt):
        for name in ("z/3.0", "raw/3.0", "so/3.0", "low/3.0", "cont/0.0", ".zmetadata"):
            with open(os.path.join(mnt, name), "rb") as f:
                whole = f.read()
            fd = os.open(os.path.join(mnt, name), os.O_RDONLY)
            n = len(whole)
            rng = np.random.RandomState(3)
            for _ in range(100):
                off, size = int(rng.randint(0, n + 10)), int(rng.randint(0, n + 10))
                assert os.pread(fd, size, off) == whole[off:off + size], f"{name} at {off}"
            assert os.pread(fd, 10, n) == b"" and os.pread(fd, 10, n + (1 << 40)) == b""
            os.close(fd)
    with t.mount(sample(t.path("a.nc"))) as m:
        t.call(check, m.path)


# SEMANTICS R13
def test_listing_in_pieces(t):
    """A directory read while its position jumps gives every entry once."""
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(5000, dtype="i2"), chunks=(1,))

    def check(mnt):
        names = os.listdir(mnt + "/v")
        assert len(names) == len(set(names)), "entries repeat"
        chunks = [n for n in names if not n.startswith(".")]
        assert sorted(map(int, chunks)) == list(range(5000)), f"{len(chunks)} chunks"
        sizes = {e.stat().st_size for e in os.scandir(mnt + "/v") if not e.name.startswith(".")}
        assert sizes == {2}, sizes
    with t.mount(path) as m:
        t.call(check, m.path)


def values(mnt, name):
    """The number that all elements of an uncompressed array of sample() have."""
    found = set()
    folder = os.path.join(mnt, name)
    for n in os.listdir(folder):
        if not n.startswith("."):
            with open(os.path.join(folder, n), "rb") as f:
                found |= set(np.frombuffer(f.read(), "<i4").tolist())
    return found


def change_and_read(mnt, change, old, new, errors=(errno.ESTALE,)):
    """Open handles and lookups around a change: each gives old, new or an error; never both."""
    handles = [os.open(os.path.join(mnt, "raw", f"{i}.0"), os.O_RDONLY) for i in (0, 20)]
    assert set(np.frombuffer(os.pread(handles[0], 4000, 0), "<i4").tolist()) == {old}
    change()
    time.sleep(1.2)  # longer than any attribute cache; the source's times have changed
    for fd in handles:
        try:
            got = os.pread(fd, 4000, 0)
            seen = set(np.frombuffer(got, "<i4").tolist())
            assert len(seen) == 1 and seen <= {old, new}, f"an open file gives {seen}"
        except OSError as error:
            assert error.errno in errors, error
    deadline = time.monotonic() + 20
    while True:
        try:
            seen = values(mnt, "raw")
        except OSError as error:
            seen = None
            last = error
            assert error.errno in (errno.ESTALE, errno.EIO), error
        if seen is not None:
            assert len(seen) == 1, f"old and new are mixed: {seen}"
            if seen == {new}:
                break
        assert time.monotonic() < deadline, (
            f"the new file is not seen: {seen if seen is not None else last}")
        time.sleep(0.2)
    for i, fd in zip((0, 20), handles):
        try:
            got = set(np.frombuffer(os.pread(fd, 4000, 0), "<i4").tolist())
            assert i == 0 and got == {old}, f"an open file gives {got}"    # 0: in the page cache
        except OSError as error:
            assert error.errno == errno.ESTALE, error
        os.close(fd)
        with open(os.path.join(mnt, "raw", f"{i}.0"), "rb") as f:
            assert set(np.frombuffer(f.read(), "<i4").tolist()) == {new}


# SEMANTICS C1, C2, E6
def test_source_replaced_by_rename(t):
    """rename() over the source: never old and new in one answer; a new lookup sees the new, and a
    file of the old state is ESTALE once that has been seen."""
    path = sample(t.path("a.nc"), 1)
    sample(t.path("b.nc"), 2, n=41)
    with t.mount(path) as m:
        t.call(change_and_read, m.path, lambda: os.rename(t.path("b.nc"), path), 1, 2)


# SEMANTICS C2
def test_source_rewritten_in_place(t):
    """The same inode with another content of the same layout."""
    path = sample(t.path("a.nc"), 1)
    sample(t.path("b.nc"), 2)

    def rewrite():
        with open(t.path("b.nc"), "rb") as src, open(path, "r+b") as dst:
            shutil.copyfileobj(src, dst)
            dst.truncate()
    with t.mount(path) as m:
        # EIO: when the mount looks while the file is half written
        t.call(change_and_read, m.path, rewrite, 1, 2, (errno.ESTALE, errno.EIO))


# SEMANTICS E7
# SECURITY S56
def test_source_truncated(t):
    """Truncated in place: errors, no hang, no SIGBUS; no bytes, and no ENOENT."""
    path = sample(t.path("a.nc"), 7)

    def check(mnt):
        fd = os.open(mnt + "/cont/0.0", os.O_RDONLY)
        os.truncate(path, 3000)
        time.sleep(1.2)
        for read in (lambda: os.pread(fd, 4000, 100000), lambda: values(mnt, "raw"),
                     lambda: values(mnt, "cont")):
            try:
                raise AssertionError(f"after truncation: {read()}")
            except OSError as error:
                assert error.errno in (errno.ESTALE, errno.EIO), error
        os.close(fd)
    with t.mount(path) as m:
        t.call(check, m.path)
        assert m.server_alive()


def test_source_removed(t):
    """The directory entry goes away: old data or errors, and unmounting works."""
    path = sample(t.path("a.nc"), 7)

    def check(mnt):
        assert values(mnt, "raw") == {7}
        os.unlink(path)
        try:
            assert values(mnt, "cont") == {7}
        except OSError as error:
            assert error.errno in (errno.ESTALE, errno.EIO, errno.ENOENT), error
    with t.mount(path) as m:
        t.call(check, m.path)


# SEMANTICS E4
def test_damaged_chunk(t):
    """A chunk whose bytes are damaged is EIO when decoded, never absent; the others are read."""
    path = sample(t.path("a.nc"), 5)
    with h5py.File(path, "r+") as f:
        want = [row.tobytes() for row in f["z"][:]]
        f["z"].id.write_direct_chunk((3, 0), b"this is no zlib stream", 0)

    def check(mnt):
        names = set(os.listdir(mnt + "/z")) - {".zarray", ".zattrs"}
        assert "3.0" in names and len(names) > 1, names
        for name in names - {"3.0"}:
            with open(f"{mnt}/z/{name}", "rb") as f:
                assert f.read() == want[int(name.split(".")[0])], name
        expect_errno((errno.EIO,), lambda: open(mnt + "/z/3.0", "rb").read())
        os.stat(mnt + "/z/3.0")
    with t.mount(path, "filter=none") as m:
        t.call(check, m.path)


def test_signals_unmount(t):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        path = sample(t.path(f"a{number}.nc"))
        m = t.mount(path)
        t.call(lambda p: os.listdir(p + "/z"), m.path)
        for pid in m.pids:
            os.kill(pid, number)
        assert mounts.wait_gone(m.pids, 20), f"signal {number} does not end the server"
        assert not mounts.is_mounted(m.path), f"signal {number} leaves the mount"
        m.ended = True
        problems = m.unmount()
        assert not problems, problems


def test_foreground(t):
    path = sample(t.path("a.nc"))
    with t.mount(path, foreground=True) as m:
        t.call(lambda p: os.listdir(p + "/z"), m.path)
        assert m.process.poll() is None, "-f does not stay"
    assert m.exit_status() == 0


# SEMANTICS R1
def test_ready_on_return(t):
    """When the command returns, the first lookup works: ten times over."""
    path = sample(t.path("a.nc"))
    for _ in range(10):
        with t.mount(path) as m:
            t.call(lambda p: os.stat(p + "/z/0.0"), m.path)


# SEMANTICS R7
def test_source_is_not_locked(t):
    """Another program may open the source for writing while it is mounted."""
    path = sample(t.path("a.nc"))
    with t.mount(path) as m:
        t.call(read_all, m.path)
        code, _, err = t.run("/usr/bin/python3", "-c", "import h5py, sys\n"
                             "h5py.File(sys.argv[1], 'r+').close()", path,
                             env={"HDF5_USE_FILE_LOCKING": "TRUE"})
        assert code == 0, err
        t.call(lambda p: os.listdir(p), m.path)


def test_modes(t):
    """The three words of -o mode."""
    path = sample(t.path("a.nc"))

    def load(mnt, name):
        with open(os.path.join(mnt, name)) as f:
            return json.load(f)

    def check(mnt, mode):
        attrs, array, group = (load(mnt, n) for n in ("z/.zattrs", "z/.zarray", ".zgroup"))
        assert ("_ARRAY_DIMENSIONS" in attrs) == (mode != "noxarray"), attrs
        assert ("_nczarr_array" in array) == (mode == "nczarr"), array
        assert ("_nczarr_superblock" in group) == (mode == "nczarr"), group
        assert load(mnt, "v/.zarray")["shape"] == ([1] if mode == "nczarr" else [])
    for mode in ("zarr", "nczarr", "noxarray"):
        with t.mount(path, "mode=" + mode) as m:
            t.call(check, m.path, mode)


# SEMANTICS R8
def test_portable_passes_bytes(t):
    """A chunk that passes through is the stored bytes; filter=none gives plain elements."""
    path = sample(t.path("a.nc"))
    with h5py.File(path) as f:
        stored = f["z"].id.read_direct_chunk((3, 0))[1]
        plain = f["z"][3].tobytes()

    def check(mnt, want):
        with open(mnt + "/z/3.0", "rb") as f:
            assert f.read() == want
    for options, want in (((), stored), (("filter=none",), plain)):
        with t.mount(path, *options) as m:
            t.call(check, m.path, want)


def read_all(folder, rounds=1):
    for _ in range(rounds):
        for base, _, names in os.walk(folder):
            for n in names:
                with open(os.path.join(base, n), "rb") as f:
                    while f.read(1 << 20):
                        pass


# SEMANTICS R4
def test_parallel_readers(t):
    """Eight threads and three processes read everything at once and all get the same."""
    path = sample(t.path("a.nc"), 9, n=100)

    def check(mnt):
        with h5py.File(path) as f:
            want = {n: f[n][:].tobytes() for n in ("raw", "so", "low", "cont")}
        bad = []

        def reader(seed):
            order = np.random.RandomState(seed).permutation(100)
            for i in order:
                for n in ("raw", "so", "low"):
                    with open(f"{mnt}/{n}/{i}.0", "rb") as f:
                        if f.read() != want[n][i * 4000:i * 4000 + 4000]:
                            bad.append((n, i))
        children = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                reader(os.getpid())
                os._exit(1 if bad else 0)
            children.append(pid)
        threads = [threading.Thread(target=reader, args=(i,)) for i in range(8)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        for pid in children:
            bad += [pid] if os.waitpid(pid, 0)[1] else []
        assert not bad, bad[:5]
    for options in ((), ("filter=none", "cache_size=16K"), ("filter=none", "decode_threads=2")):
        with t.mount(path, *options) as m:
            t.call(check, m.path)


def test_no_leak(t):
    """valgrind finds no leak and no error after everything was read and unmounted."""
    if t.sanitized:
        raise Skip("the sanitizers look for leaks in every test")
    if t.run("which", "valgrind")[0] != 0:
        raise Skip("valgrind is not installed")
    path = sample(t.path("a.nc"))
    log = t.path("valgrind.log")
    with t.mount(path, foreground=True, wait=90, wrapper=(
            "valgrind", "--leak-check=full", "--show-leak-kinds=definite,indirect",
            "--errors-for-leak-kinds=definite,indirect", "--error-exitcode=97",
            "--log-file=" + log)) as m:
        t.call(read_all, m.path, timeout=100)
    code = m.process.wait(60)
    with open(log) as f:
        text = f.read()
    assert code == 0, f"valgrind ends with {code}:\n{text[-6000:]}"


test_no_leak.limit = 240.0


def test_memory_of_many_chunks(t):
    """A million chunks: mounting and listing the root costs little before the array is touched."""
    path = t.path("a.nc")
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("v", shape=(1000000,), dtype="u1", chunks=(1,))
        d[999999] = 1
    with t.mount(path) as m:
        t.call(lambda p: os.listdir(p), m.path)
        peak = m.memory_peak()
        assert t.sanitized or peak < 64 << 20, f"{peak >> 20} MiB"
        t.call(lambda p: os.stat(p + "/v/999999"), m.path)


def test_external_links_below_root(t):
    """External links are followed below the file's own directory, or below external_root; with
    allow_other below external_root only."""
    inside, outside = t.path("in"), t.path("out")
    os.mkdir(inside)
    os.mkdir(outside)
    for folder in (inside, outside):
        with h5py.File(folder + "/other.h5", "w") as f:
            f["v"] = np.arange(4)
    path = inside + "/a.nc"
    with h5py.File(path, "w") as f:
        f["ok"] = np.arange(3)
        f["near"] = h5py.ExternalLink("other.h5", "/v")
        f["far"] = h5py.ExternalLink("../out/other.h5", "/v")
        f["absolute"] = h5py.ExternalLink(outside + "/other.h5", "/v")

    def check(mnt, names):
        assert sorted(n for n in os.listdir(mnt) if not n.startswith(".")) == names, (
            os.listdir(mnt))
        for n in names:
            read_all(mnt + "/" + n)
    with t.mount(path) as m:
        t.call(check, m.path, ["near", "ok"])
    with t.mount(path, "allow_other") as m:
        t.call(check, m.path, ["ok"])
    with t.mount(path, "external_root=" + inside, "allow_other") as m:
        t.call(check, m.path, ["near", "ok"])
    with t.mount(path, "external_root=" + outside) as m:
        t.call(check, m.path, ["absolute", "far", "ok"])


def test_inherited(t):
    """A mount in the background gives up all descriptors that its starter had open."""
    path, mnt = sample(t.path("a.h5")), t.path("inherits")
    os.mkdir(mnt)
    end, own = os.pipe()
    given = [os.dup(own) for _ in range(400)]
    subprocess.run([t.binary, path, mnt], pass_fds=given, check=True, stdin=subprocess.DEVNULL,
                   timeout=60 * t.slow)
    try:
        for fd in (own, *given):
            os.close(fd)
        assert select.select([end], [], [], 30 * t.slow)[0], "the server has one of them open"
        assert os.read(end, 1) == b""
    finally:
        os.close(end)
        ok, text = mounts.unmount(mnt)
        assert ok, text
