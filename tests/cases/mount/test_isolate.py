# SPDX-License-Identifier: BSD-3-Clause
"""What processes that meet bytes of strangers may do, and what a crash of theirs costs."""
import errno
import itertools
import json
import os
import pickle
import re
import signal
import stat
import time

import h5py
import numpy as np

from lib import mounts
from lib.context import Skip, corpus
from lib.converted import converted
from lib.web import WebServer

SECRET = "Pa5sWord-that-nobody-has-but-us"


def family(m):
    """[(pid, name)] of the processes of a mount but the command's own two."""
    found = []
    for pid in mounts.processes_of(m.path):
        try:
            with open(f"/proc/{pid}/comm") as f:
                found.append((pid, f.read().strip()))
        except OSError:
            pass
    return found


def field(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return re.search(rf"^{name}:\s*(\S+)", f.read(), re.M).group(1)


def plain(t):
    if t.sanitized:
        raise Skip("there is no sandbox in a build with sanitizers")


def one_of(m, name):
    pids = [pid for pid, comm in family(m) if comm == name]
    assert len(pids) == 1, f"{len(pids)} processes {name}: {family(m)}"
    return pids[0]


LIBRARIES = ("HDF5_", "LC_", "LANG=", "TZ=", "MALLOC_", "GLIBC_TUNABLES=", "LD_LIBRARY_PATH=",
             "OMP_", "BLOSC_", "PATH=", "TMPDIR=", "NCZARRFS_", "LD_PRELOAD=",
             "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "LSAN_OPTIONS=")


def confined(pid):
    assert field(pid, "Seccomp") == "2", "no filter of system calls"
    assert field(pid, "NoNewPrivs") == "1", "may gain privileges"
    with open(f"/proc/{pid}/limits") as f:
        limits = {line[:25].strip(): line[26:].split() for line in f}
    assert limits["Max core file size"][0] in "01", limits
    assert limits["Max file size"][0] == "0", limits
    assert limits["Max address space"][0] != "unlimited", limits
    assert limits["Max cpu time"][0] != "unlimited", limits
    assert int(limits["Max open files"][0]) <= 256, limits
    with open(f"/proc/{pid}/environ", "rb") as f:
        left = {x for x in f.read().decode().split("\0") if x and not x.startswith(LIBRARIES)}
    assert left == set(), f"it has of the environment: {left}"


def read(path):
    with open(path, "rb") as f:
        f.read()


def test_hdf5_confined(t):
    """The process that reads elements with libhdf5. SEMANTICS E19"""
    plain(t)
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        converted(f, "odd", np.arange(100), (10,))
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
    try:
        m = t.mount(path)
    finally:
        del os.environ["AWS_SECRET_ACCESS_KEY"]
    with m:
        t.call(read, m.path + "/odd/0")
        confined(one_of(m, "nczarrfs-hdf5"))


def holds(pid, text):
    """Whether a process has a text anywhere in its memory."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            where, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(x, 16) for x in where.split("-"))
            try:
                mem.seek(start)
                if text.encode() in mem.read(min(end - start, 1 << 26)):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


def test_no_secrets(t):
    """Passwords and keys are in the server, and in no process that it has others started by."""
    plain(t)
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        converted(f, "odd", np.arange(100), (10,))
    with WebServer(t.tmp) as web:
        address = f"http://somebody:{SECRET}@127.0.0.1:{web.port}/a.nc"
        env = {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ACCESS_KEY_ID": "AKIA" + SECRET}
        os.environ.update(env)
        try:
            m = t.mount(address, "insecure", "filter=none")
        finally:
            for name in env:
                del os.environ[name]
        with m:
            t.call(read, m.path + "/odd/0")
            found = {comm: holds(pid, SECRET) for pid, comm in family(m)}
            assert found["nczarrfs"], "the server should have it"
            assert not found["nczarrfs-forker"] and not found["nczarrfs-hdf5"], found


FILTERS = {  # everything that h5py has, alone and together
    "deflate": dict(compression="gzip", shuffle=True),
    "lzf": dict(compression="lzf", shuffle=True, fletcher32=True),
    "szip": dict(compression="szip"),
    "offset": dict(scaleoffset=12),
    "sum": dict(fletcher32=True),
    "plain": dict(),
}


def sample(path, big=False):
    data = np.round(np.random.default_rng(5).normal(size=(40, 3000)) * 100)
    with h5py.File(path, "w") as f:
        for name, how in FILTERS.items():
            f.create_dataset(name, data=data.astype("<i4"), chunks=(4, 3000), **how)
        if big:
            f.create_dataset("big", data=np.tile(data, (10, 4)), chunks=(10, 12000),
                             compression="gzip")
    return path


def trees(path):
    import numcodecs
    import zarr
    data = np.round(np.random.default_rng(6).normal(size=(40, 3000)) * 100)
    g = zarr.open_group(path, mode="w")
    for c in (numcodecs.Zlib(1), numcodecs.GZip(1), numcodecs.Zstd(1), numcodecs.LZ4(),
              numcodecs.LZMA(), numcodecs.BZ2(), numcodecs.Blosc("zstd"), None):
        g.create_dataset(c.codec_id if c else "none", data=data, chunks=(4, 3000), compressor=c,
                         filters=[numcodecs.Delta("<f8")])
    g.create_dataset("text", data=np.array(["a", "bcd"] * 50, dtype=object), dtype=str,
                     chunks=(10,), compressor=numcodecs.Zstd(1))
    return path


def contents(mnt, into):
    """Every file of a mount, by name."""
    found = {}
    for folder, _, names in os.walk(mnt):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, mnt)] = f.read()
    assert len(found) > 20, sorted(found)
    if not os.path.exists(into):
        with open(into, "wb") as f:
            pickle.dump(found, f)
        return
    with open(into, "rb") as f:
        assert pickle.load(f) == found, "chunks differ"


def test_same_values(t):
    """The same bytes with decoders apart and without, of every codec, from both sides."""
    for path in sample(t.path("a.nc")), trees(t.path("b.zarr")):
        for options in (), ("sandbox_codecs",):
            with t.mount(path, "filter=none", "view=zarr", *options) as m:
                t.call(contents, m.path, path + ".all")
                apart = any(comm == "nczarrfs-decode" for _, comm in family(m))
                assert apart == bool(options), family(m)


def test_decoder_confined(t):
    """The processes that decode can do nothing else."""
    plain(t)
    with t.mount(sample(t.path("a.nc")), "filter=none", "sandbox_codecs") as m:
        t.call(read, m.path + "/deflate/0.0")
        pids = [pid for pid, comm in family(m) if comm == "nczarrfs-decode"]
        assert pids, family(m)
        for pid in pids:
            confined(pid)
            kept = {os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
            kept = {re.sub(r":\[\d+\]", "", k) for k in kept}
            assert kept <= {"/dev/null", "socket", "pipe",
                            "/memfd:nczarrfs-decode (deleted)"}, kept
    assert mounts.wait_gone(pids, 30), "decoders outlive the mount"


def test_decoders_killed(t):
    """Decoders that crash cost at most the reads that they are in, and a line each."""
    stop = t.path("stop")

    def reader(mnt, rounds):
        want = None
        failed = 0
        for _ in rounds:
            for i in range(40):
                try:
                    with open(f"{mnt}/big/{i}.0", "rb") as f:
                        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                        got = f.read()
                except OSError as error:
                    assert error.errno == errno.EIO, error
                    failed += 1
                    continue
                want = want or {}
                assert want.setdefault(i % 4, got) == got, f"chunk {i} is wrong"
        with open(mnt + ".failed", "w") as f:
            f.write(str(failed))

    with t.mount(sample(t.path("a.nc"), big=True), "filter=none", "cache_size=16K",
                 "sandbox_codecs", foreground=True) as m:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                reader(m.path, iter(lambda: os.path.exists(stop), True))
                status = 0
            finally:
                os._exit(status)
        killed = 0
        end = time.monotonic() + 2
        while time.monotonic() < end + 58 * (killed <= 3):  # a slow machine takes longer for four
            for one, comm in family(m):
                if comm == "nczarrfs-decode":
                    try:
                        os.kill(one, signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass
            time.sleep(0.02)
        open(stop, "wb").close()
        assert os.waitpid(pid, 0)[1] == 0, "a read was neither right nor EIO"
        assert killed > 3, f"only {killed} killed"
        with open(m.path + ".failed") as f:
            failed = int(f.read())
        lines = [x for x in m.messages().split("\n") if "decoder process" in x]
        assert len(lines) <= killed and bool(lines) == bool(failed), (failed, lines)
        t.call(reader, m.path, ())
        assert m.server_alive()


def many(path, n=600):
    """A tree of n variables, whose virtual file takes libhdf5 a while, and one of texts."""
    def put(name, what):
        with open(os.path.join(path, name), "w") as f:
            json.dump(what, f)

    os.mkdir(path)
    put(".zgroup", {"zarr_format": 2})
    for i in range(n):
        os.mkdir(f"{path}/v{i}")
        put(f"v{i}/.zarray", {"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i4",
                              "order": "C", "fill_value": i, "filters": None,
                              "compressor": None})
        put(f"v{i}/.zattrs", {"_ARRAY_DIMENSIONS": ["x"], "units": "m", "long_name": "x" * i})
    import numcodecs
    os.mkdir(f"{path}/text")
    put("text/.zarray", {"zarr_format": 2, "shape": [30], "chunks": [1], "dtype": "|O",
                         "order": "C", "fill_value": "", "compressor": None,
                         "filters": [{"id": "vlen-utf8"}]})
    put("text/.zattrs", {"_ARRAY_DIMENSIONS": ["y"]})
    for i in range(0, 30, 2):
        with open(f"{path}/text/{i}", "wb") as f:
            f.write(numcodecs.VLenUTF8().encode(np.array(["t" * i], dtype=object)))
    return path


def check_many(path):
    with h5py.File(path, "r") as f:
        assert f["v7"][:].tolist() == [7, 7, 7] and f["v9"].attrs["long_name"] == b"x" * 9
        assert [len(x) for x in f["text"][:]] == [i * (1 - i % 2) for i in range(30)]


def look(path):
    """A process that reads the first bytes of a file. Its status: 0 right, 2 EIO."""
    pid = os.fork()
    if pid == 0:
        try:
            with open(path, "rb") as f:
                os._exit(0 if f.read(4) == b"\x89HDF" else 1)
        except OSError as error:
            os._exit(2 if error.errno == errno.EIO else 1)
        finally:
            os._exit(3)
    return pid


def end_maker(m, known, sanitized):
    """Kill the process that makes a virtual file, once it is confined. Its pid; None: there was
    none, or it was done before."""
    for pid in [p for p, comm in family(m) if comm == "nczarrfs-netcdf" and p not in known]:
        try:
            while not sanitized and field(pid, "Seccomp") != "2":
                pass
            os.kill(pid, signal.SIGSTOP)
            if not sanitized:
                confined(pid)
            os.kill(pid, signal.SIGKILL)
            return pid
        except (FileNotFoundError, ProcessLookupError, TypeError):  # it ended, or is a zombie
            continue
    return None


def test_structure_killed(t):
    """The process in which libhdf5 makes a virtual file: confined, there while it works, and when
    somebody kills it that look fails and the next one makes the file. SEMANTICS E23"""
    with t.mount(many(t.path("many.zarr")), foreground=True) as m:
        path = os.path.join(m.path, "many.nc")
        assert "nczarrfs-netcdf" not in [comm for _, comm in family(m)], "before anybody looks"
        pid, killed, looks = look(path), [], 1
        while len(killed) < 3:
            one = end_maker(m, killed, t.sanitized)
            if one:
                killed.append(one)
            elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                status = os.waitpid(pid, 0)[1]
                assert status in (0, 2 << 8), f"status {status} of look {looks}"
                pid, looks = look(path), looks + 1
                if status == 0 or looks > 3:
                    break
        status = os.waitpid(pid, 0)[1]
        assert status in (0, 2 << 8), f"a look was neither right nor EIO: {status}"
        assert killed, "it was never seen at work"
        t.call(check_many, path)
        lines = [x for x in m.messages().split("\n") if "that builds the netCDF file" in x]
        assert 0 < len(lines) <= len(killed) and "killed (signal 9)" in lines[0], lines
        assert "nczarrfs-netcdf" not in [comm for _, comm in family(m)], "it stayed"
        assert m.server_alive()


ERRNOS = {errno.EIO, errno.ESTALE, errno.EOPNOTSUPP, errno.EFBIG, errno.ELOOP, errno.EACCES,
          errno.ENAMETOOLONG, errno.ENOENT, errno.ETIMEDOUT}


def read_all(mnt, into):
    """Whatever there is; what fails, fails with an errno that means something."""
    counts = {}
    todo = [mnt]
    n = 0
    while todo:
        here = todo.pop()
        try:
            with os.scandir(here) as it:
                names = sorted(x.name for x in itertools.islice(it, 200))
        except OSError as error:
            assert error.errno in ERRNOS, f"{here}: {error}"
            names = []
        for name in names:
            path = os.path.join(here, name)
            n += 1
            if path.count("/") > mnt.count("/") + 20:
                continue
            try:
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    todo.append(path)
                    continue
                with open(path, "rb") as f:
                    while f.tell() < 16 << 20 and f.read(1 << 20):
                        pass
                counts[0] = counts.get(0, 0) + 1
            except OSError as error:
                assert error.errno in ERRNOS, f"{path}: {error}"
                counts[error.errno] = counts.get(error.errno, 0) + 1
    with open(into, "w") as f:
        json.dump(counts, f)


def test_bad_corpus(t):
    """Every damaged file of the corpus, those that crash libraries among them, beside each other:
    the server lives, nothing hangs, every failure is an errno with a line."""
    root = corpus()
    folder = os.path.join(root, "bad") if root else ""
    if not os.path.isdir(folder):
        raise Skip("no corpus with a folder bad")
    with t.mount(folder, "sandbox_codecs", "filter=none", "open_timeout=20", foreground=True) as m:
        m.damaged = True
        t.call(read_all, m.path, t.path("counts"), timeout=200)
        assert m.server_alive(), m.messages()
        with open(t.path("counts")) as f:
            counts = json.load(f)
        lines = [x for x in m.messages().split("\n") if x]
        assert not counts.get(str(errno.EIO)) or lines, counts
        odd = [x for x in lines if not x.startswith("nczarrfs: ")]
        assert not odd, odd[:5]
        print(counts, len(lines), "lines")


test_bad_corpus.limit = 240
