# SPDX-License-Identifier: BSD-3-Clause
"""The server under load: many readers of chunks of every kind while the source is replaced and
the mount is taken away; no growth of memory, descriptors or threads; nothing for valgrind.

`make check-tsan` runs the stress with a server that reports data races; any build can run it."""
import errno
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import zlib

import h5py
import numpy as np

from lib import mounts
from lib.context import Skip
from lib.converted import converted

CHUNKS = 48
ELEMS = 1000
VERSIONS = 6
OPERATIONS = 60000
COSTLY = ("huge_shape", "many_entries")  # to list under valgrind
ONE_IN = {"valgrind_decoded": 1000}  # only where all tests are run
FILES = 40  # read of one array, where each costs much
KINDS = ("z", "raw", "cont", "so", "low", "odd", "text", "unwritten")


def rows(version):
    return np.full((CHUNKS, ELEMS), version, "i4")


def write(path, version):
    """A file whose elements all say which version it is, with chunks of every plan."""
    with h5py.File(path, "w") as f:
        f.attrs["version"] = version
        for name in ("z", "odd"):
            f.create_dataset(name, data=rows(version), chunks=(1, ELEMS), compression="gzip",
                             shuffle=True)
            f[name].attrs["long"] = "x" * 5000
        for i in range(0, CHUNKS, 2):  # every other chunk is stored without its filters
            f["odd"].id.write_direct_chunk((i, 0), rows(version)[0].tobytes(), 3)
        f.create_dataset("raw", data=rows(version), chunks=(1, ELEMS))
        f.create_dataset("cont", data=rows(version))
        f.create_dataset("so", data=rows(version), chunks=(1, ELEMS), scaleoffset=0)
        converted(f, "low", rows(version), (1, ELEMS))
        f.create_dataset("text", data=[str(version) * 50] * CHUNKS, chunks=(1,),
                         dtype=h5py.string_dtype())
        f.create_dataset("unwritten", shape=(CHUNKS, ELEMS), chunks=(1, ELEMS), dtype="i4",
                         compression="gzip", fillvalue=version)
        for i in range(8):
            f.create_dataset(f"g{i}/h/v", data=np.arange(10) + version)


def files(decoded):
    """[(path below the mount, kind of content)]"""
    kinds = {"z": "plain" if decoded else "shuffled", "odd": "plain" if decoded else "shuffled",
             "unwritten": "plain" if decoded else "deflated", "text": "text"}
    names = []
    for k in KINDS:
        for i in range(CHUNKS):
            names.append((f"{k}/{i}" + ("" if k == "text" else ".0"), kinds.get(k, "plain")))
    return names


def version_in(data, kind):
    """Which version these bytes belong to; they must be whole, and all of one version."""
    if kind == "text":
        assert data[:4] == b"\1\0\0\0" and data[4:8] == b"\x32\0\0\0", data[:16]
        value = data[8:]
        assert len(value) == 50 and len(set(value)) == 1, value
        return int(value[:1])
    if kind != "plain":
        data = zlib.decompress(data)
    a = np.frombuffer(data, "i4" if kind != "shuffled" else "u1")
    if kind == "shuffled":
        a = np.ascontiguousarray(a.reshape(4, ELEMS).T).view("i4")
    assert a.size == ELEMS and a.min() == a.max(), f"{kind}: torn: {a.min()}..{a.max()}"
    return int(a.min())


class Progress:
    """Counters that children and threads share, one each, and a flag to end."""

    def __init__(self, n):
        import mmap
        self.cells = np.frombuffer(mmap.mmap(-1, 8 * (n + 1)), "i8")

    def done(self, who):
        self.cells[who] += 1

    def total(self):
        return int(self.cells[:-1].sum())

    def end(self):
        self.cells[-1] = 1

    @property
    def ended(self):
        return bool(self.cells[-1])


def patient(func, progress, *args):
    """Call func; a source that changes under it is no error, nor is a mount that is gone."""
    try:
        return func(*args)
    except OSError as error:
        if progress.ended or error.errno == errno.ESTALE:
            return None
        raise


def read_file(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while True:
            parts.append(os.read(fd, 1 << 16))
            if not parts[-1]:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # ask the server next time
                return b"".join(parts)
    finally:
        os.close(fd)


def reader(mnt, progress, who, seed, decoded):
    """Everything, in a run and at random, with the content checked."""
    rng = random.Random(seed)
    names = files(decoded)
    while not progress.ended:
        if rng.random() < 0.5:
            rng.shuffle(names)
        else:
            names.sort(key=lambda x: (x[0].split("/")[0], int(x[0].split("/")[1].split(".")[0])))
        for name, kind in names:
            if progress.ended:
                return
            data = patient(read_file, progress, os.path.join(mnt, name))
            if data is not None and not progress.ended:
                assert 1 <= version_in(data, kind) <= VERSIONS, name
            progress.done(who)


def walker(mnt, progress, who):
    """ls -lR, statfs and extended attributes, over and over."""
    def ignore(path):
        try:
            os.listxattr(path)
        except OSError as error:
            assert error.errno in (errno.ENOTSUP, errno.ESTALE, errno.ENOSYS) or progress.ended, (
                error)
    while not progress.ended:
        for base, folders, names in os.walk(mnt):
            for n in folders + names:
                if progress.ended:
                    return
                path = os.path.join(base, n)
                try:
                    os.stat(path)
                except OSError as error:
                    assert error.errno in (errno.ESTALE, errno.ENOENT) or progress.ended, error
                ignore(path)
            progress.done(who)
        patient(os.statvfs, progress, mnt)


def in_child(failures, func, *args):
    """func in a process of its own; its failure is written to a file of failures."""
    pid = os.fork()
    if pid:
        return pid
    status = 0
    try:
        func(*args)
    except BaseException as error:  # noqa: B902 - handed to the parent
        import traceback
        with open(f"{failures}.{os.getpid()}", "w") as f:
            f.write("".join(traceback.format_exception(type(error), error, error.__traceback__)))
        status = 1
    os._exit(status)


def threads_of(func, argument_lists):
    """func in several threads of this process; the first failure is raised."""
    bad = []

    def run(args):
        try:
            func(*args)
        except BaseException as error:  # noqa: B902 - raised again below
            bad.append(error)
    running = [threading.Thread(target=run, args=(a,)) for a in argument_lists]
    for x in running:
        x.start()
    for x in running:
        x.join()
    if bad:
        raise bad[0]


def stress(t, options, decoded, operations, end):
    """Readers in three processes of two threads, two walkers; the source is replaced while they
    run, and at the end, while they still run, end(mount) takes the mount away."""
    for v in range(1, VERSIONS + 1):
        write(t.path(f"v{v}.nc"), v)
    path = t.path("a.nc")
    shutil.copy(t.path("v1.nc"), path)
    progress = Progress(8)
    failures = t.path("failure")
    with t.mount(path, *options, foreground=True) as m:
        children = [in_child(failures, threads_of, reader, [
            (m.path, progress, 2 * i + j, 100 * i + j, decoded) for j in range(2)])
            for i in range(3)]
        children += [in_child(failures, walker, m.path, progress, 6 + i) for i in range(2)]
        try:
            drive(t, path, progress, operations, children)
            progress.end()
            end(m)
        finally:
            progress.end()
            texts = collect(children, failures, t)
        print("operations", list(progress.cells))
        assert not texts, texts + m.messages()
        code = m.process.wait(60)
        assert code == 0, f"the server ends with {code}: {m.messages()} {m.sanitizer_text()}"


def drive(t, path, progress, operations, children):
    """Replace the source each time the readers have got a step further."""
    step = operations // (2 * VERSIONS)
    for n in range(1, 2 * VERSIONS + 1):
        while progress.total() < n * step:
            for pid in list(children):
                got, status = os.waitpid(pid, os.WNOHANG)
                if got:
                    print(f"process {got} ended early, status {status}", progress.cells)
                    children.remove(got)
                    return
            threading.Event().wait(0.01)
        if n % 4 == 0:  # changed in place, as far as anybody can see
            os.utime(path, (n, n))
            continue
        copy = t.path("next.nc")
        shutil.copy(t.path(f"v{n % VERSIONS + 1}.nc"), copy)
        os.replace(copy, path)


def collect(children, failures, t):
    for pid in children:
        os.waitpid(pid, 0)
    texts = []
    for name in sorted(os.listdir(t.tmp)):
        if name.startswith(os.path.basename(failures) + "."):
            with open(os.path.join(t.tmp, name)) as f:
                texts.append(f.read())
    return "\n".join(texts)


def by_signal(m):
    m.ended = True
    os.kill(m.process.pid, signal.SIGTERM)


def by_lazy_unmount(m):
    m.ended = True
    ok, text = mounts.unmount(m.path, lazy=True)
    assert ok, text


def test_stress_stored(t):
    """Chunks as they are stored, framed ones and texts, with little memory; ended by a signal."""
    stress(t, ("default_chunk_size=4K", "cache_size=64K", "decode_threads=2"), False, OPERATIONS,
           by_signal)


def test_stress_decoded(t):
    """The same with everything decoded; the mount is taken away from under its readers."""
    stress(t, ("filter=none", "default_chunk_size=4K", "cache_size=64K", "decode_threads=2"), True,
           OPERATIONS, by_lazy_unmount)


test_stress_stored.limit = test_stress_decoded.limit = 90.0


def read_anyhow(folder):
    """List all below folder, stat and read much of it; errors of single files are what they
    are."""
    for base, folders, names in os.walk(folder):
        for n in folders + names[:FILES]:
            path = os.path.join(base, n)
            try:
                os.stat(path)
                if n in names:
                    read_file(path)
            except OSError as error:
                if error.errno not in (errno.EIO, errno.ENOMEM):
                    raise


def features(t, part):
    """A sixth of the files that tests/gen writes, in order of their times: every opening is a
    process of its own, which valgrind takes seconds to start and to end."""
    import gen
    paths = []
    for i, (name, feature) in enumerate(gen.load().items()):
        if name in COSTLY or i % 6 != part:
            continue
        path = t.path(name + ".nc")
        feature.write(path)
        if os.path.exists(path):
            paths.append(path)
            os.utime(path, (len(paths), len(paths)))
    return paths


def read_version(mnt, mtime):
    """Wait until the mount shows the source with this time, then read everything. A name that
    the kernel has not been told to forget yet is stale: then once more."""
    for _ in range(3000):
        try:
            if os.stat(mnt).st_mtime == mtime:
                read_anyhow(mnt)
                return
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
        threading.Event().wait(0.01)
    raise AssertionError(f"the source of {mtime:.0f} does not appear")


KINDS_OF_LEAKS = "definite,indirect,possible"
VALGRIND = ("valgrind", "--trace-children=yes", "--trace-children-skip=*fusermount*",
            "--leak-check=full", "--show-leak-kinds=" + KINDS_OF_LEAKS,
            "--errors-for-leak-kinds=" + KINDS_OF_LEAKS, "--error-exitcode=9",
            "--num-callers=30")
HEADER = ("Memcheck,", "Copyright", "Using Valgrind", "Command:", "Parent PID:",
          "HEAP SUMMARY:", "in use at exit:", "total heap usage:")


def clean(log):
    """No error in one process's log. Processes that read with libhdf5 are killed in the end, maybe
    while they sum up: they leave no summary, but would have left an error."""
    if "ERROR SUMMARY" in log:
        return "ERROR SUMMARY: 0 errors" in log
    said = [line.partition("== ")[2].strip() for line in log.splitlines()]
    return all(not line or line.startswith(HEADER) for line in said)


def logs_of(log):
    """What valgrind says of each process whose log is `log`.PID."""
    folder, base = os.path.split(log)
    texts = []
    for name in sorted(os.listdir(folder)):
        if name.startswith(base + "."):
            with open(os.path.join(folder, name), errors="replace") as f:
                texts.append(f.read())
    return texts


def under_valgrind(t, part, *options):
    """Each feature's file in turn becomes the source of one mount."""
    log = t.path("valgrind.log")
    paths = features(t, part)
    source = t.path("source.nc")
    os.replace(paths[0], source)
    with t.mount(source, *options, foreground=True, wait=90,
                 wrapper=(*VALGRIND, f"--log-file={log}.%p")) as m:
        t.call(read_version, m.path, 1, timeout=60)
        for n, path in enumerate(paths[1:], 2):
            os.replace(path, source)
            t.call(read_version, m.path, n, timeout=60)
    code = m.process.wait(60)
    texts = logs_of(log)
    bad = [x for x in texts if not clean(x)]
    ended = sum("ERROR SUMMARY" in x for x in texts)
    assert ended >= 2 and code == 0 and not bad, (
        f"valgrind ends with {code}, {ended} summaries:\n" + "\n".join(x[-6000:] for x in bad))


def valgrind_of(part, *options):
    def test(t):
        if t.sanitized:
            raise Skip("the sanitizers look for leaks in every test")
        if not shutil.which("valgrind"):
            raise Skip("valgrind is not installed")
        under_valgrind(t, part, *options)
    test.limit = 300.0
    return test


def test_valgrind_canary(t):
    """Faults on purpose, in a program and in a child that it began: what says that the others are
    clean says otherwise of these."""
    tool = os.path.join(os.path.dirname(t.binary), "tests", "canary")
    if t.sanitized or not os.access(tool, os.X_OK):
        raise Skip("its program was not built, or with sanitizers")
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    for words in (["heap"], ["leak"], ["heap", "child"], ["none"]):
        log = t.path("canary." + "-".join(words))
        subprocess.run([*VALGRIND, f"--log-file={log}.%p", tool, *words],
                       stdout=subprocess.DEVNULL, timeout=100)
        dirty = sum(not clean(x) for x in logs_of(log))
        assert (dirty > 0) == (words != ["none"]), f"{words}: {dirty} processes with errors"


def cases():
    yield "valgrind_stored", valgrind_of(0, "cache_size=64K", "memory=32M")
    yield "valgrind_decoded", valgrind_of(3, "memory=32M", "filter=none", "mode=nczarr",
                                          "decode_threads=2")


def status_of(pids, key):
    """A number of /proc/PID/status, the largest of these processes."""
    found = [0]
    for pid in pids:
        with open(f"/proc/{pid}/status") as f:
            found += [int(x.split()[1]) for x in f if x.startswith(key + ":")]
    return max(found)


def descriptors(pids):
    return max(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)


def read_uncached(folder, rounds):
    """Read every file of a folder, past the kernel's page cache."""
    names = os.listdir(folder)
    for _ in range(rounds):
        n = 0
        for name in names:
            if name[0] != ".":
                n += len(read_file(os.path.join(folder, name)))
        assert n == MANY * 1024, n


MANY = 200000


def test_memory_is_bounded(t):
    """200000 decoded chunks, read twice: the server keeps its budget, and grows by no file."""
    path = t.path("a.nc")
    chunk = zlib.compress(b"ab" * 512, 1)
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("v", shape=(MANY, 1024), dtype="u1", chunks=(1, 1024),
                             compression="gzip")
        for i in range(MANY):
            d.id.write_direct_chunk((i, 0), chunk)
    budget = 8 << 20
    with t.mount(path, "filter=none", f"cache_size={budget}", "decode_threads=2") as m:
        t.call(read_uncached, m.path + "/v", 1, timeout=100)
        once = status_of(m.pids, "VmRSS") << 10
        t.call(read_uncached, m.path + "/v", 1, timeout=100)
        twice, peak = status_of(m.pids, "VmRSS") << 10, status_of(m.pids, "VmHWM") << 10
        print(f"resident {once >> 10} KiB, then {twice >> 10} KiB, at most {peak >> 10} KiB")
        assert t.sanitized or peak < budget + (40 << 20), f"{peak >> 20} MiB"
        assert t.sanitized or twice < once + (2 << 20), f"{once >> 10} to {twice >> 10} KiB"


test_memory_is_bounded.limit = 240.0


def replace_and_read(path, mnt, versions, mtime):
    copy = path + ".next"
    shutil.copy(versions[mtime % len(versions)], copy)
    os.utime(copy, (mtime, mtime))
    os.replace(copy, path)
    read_version(mnt, mtime)


def settle(m, fds, threads, seconds):
    """Wait until no more are left than that: while requests are being answered there may be more
    threads, and a process that is being started has its descriptors."""
    end = time.monotonic() + seconds
    while True:
        now = descriptors(m.pids), status_of(m.pids, "Threads")
        if now[0] == fds and now[1] <= threads:
            return
        assert time.monotonic() < end, f"{now} descriptors and threads, were {fds} and {threads}"
        threading.Event().wait(0.05)


def test_replacing_leaves_nothing(t):
    """Sixty sources one after the other: as many descriptors and threads as after the third, and
    no more memory than the allocator's arenas keep."""
    versions = [t.path(f"v{v}.nc") for v in (1, 2)]
    for v, name in enumerate(versions, 1):
        write(name, v)
    path = t.path("a.nc")
    shutil.copy(versions[0], path)
    seen = []
    with t.mount(path, "filter=none", "cache_size=1M", "decode_threads=2",
                 "max_idle_threads=2") as m:
        for n in range(1, 61):
            t.call(replace_and_read, path, m.path, versions, n)
            seen.append((descriptors(m.pids), status_of(m.pids, "Threads"),
                         status_of(m.pids, "VmRSS")))
        settle(m, min(s[0] for s in seen[3:9]), min(s[1] for s in seen[3:9]), 20)
    print(seen[::10])
    memory = [s[2] for s in seen[3:]]
    assert t.sanitized or memory[-1] < memory[0] + 8192, f"KiB: {memory}"


def read_in_vain(path, times):
    for _ in range(times):
        try:
            read_file(path)
        except OSError as error:
            assert error.errno == errno.EIO, error
        else:
            raise AssertionError("a chunk with a damaged reference can be read")


def test_damaged_texts_are_not_kept(t):
    """A chunk of texts whose last one cannot be found, read again and again: the ones before it
    are given back each time."""
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", data=["x" * 2000] * 1000, chunks=(1000,),
                             dtype=h5py.string_dtype())
        at = d.id.get_chunk_info(0).byte_offset + 999 * 16
    with open(path, "r+b") as f:
        f.seek(at + 4)  # of the reference: length, address, index
        f.write(b"\xf0\xf0\xf0\0\0\0\0\0\x4d\0\0\0")
    with t.mount(path) as m:
        t.call(read_in_vain, m.path + "/v/0", 3)
        before = status_of(m.pids, "VmRSS")
        t.call(read_in_vain, m.path + "/v/0", 30)
        after = status_of(m.pids, "VmRSS")
    assert t.sanitized or after < before + 8192, f"{before} KiB, then {after} KiB"
