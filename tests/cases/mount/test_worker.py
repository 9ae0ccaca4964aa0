# SPDX-License-Identifier: BSD-3-Clause
"""The process that reads elements with libhdf5: it may die, the mount may not."""
import errno
import contextlib
import os
import signal
import time

import h5py
import numpy as np

from lib import mounts
from lib.context import Skip, corpus
from lib.converted import converted

NAME = "nczarrfs-hdf5"
CHUNKS = 40


def sample(path):
    """Elements that only the library converts."""
    with h5py.File(path, "w") as f:
        converted(f, "odd", np.arange(CHUNKS * 50000).reshape(CHUNKS, 50000), (1, 50000))
        f.create_dataset("text", data=np.array(["a", "bc"] * 50, dtype=object), chunks=(10,),
                         dtype=h5py.string_dtype())
    return path


def workers(m):
    found = []
    for pid in mounts.processes_of(m.path):
        try:
            with open(f"/proc/{pid}/comm") as f:
                name = f.read().strip()
        except OSError:
            continue
        if name == NAME and mounts.alive(pid):
            found.append(pid)
    return found


def read_one(mnt, i):
    with open(f"{mnt}/odd/{i}.0", "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # ask the server again
        got = np.frombuffer(f.read(), "<i4")
    assert np.array_equal(got, np.arange(i * 50000, (i + 1) * 50000)), f"chunk {i}"


def one_worker(t, m, chunk):
    t.call(read_one, m.path, chunk)
    pids = workers(m)
    assert len(pids) == 1, f"{len(pids)} workers"
    return pids[0]


def test_started_when_needed(t):
    """None before the library is needed, then one for everything; none after unmounting."""
    path = t.path("a.nc")
    sample(path)
    with h5py.File(path, "r+") as f:
        f["raw"] = np.arange(10)
        f.create_dataset("so", data=np.arange(10), chunks=(10,), scaleoffset=0)
        f.create_dataset("lzf", data=np.arange(1000), chunks=(1000,), compression="lzf")
    with t.mount(path) as m:
        for name in ("raw", "so", "lzf"):
            t.call(lambda p, name=name: open(f"{p}/{name}/0", "rb").read(), m.path)
        t.call(lambda p: open(p + "/.zmetadata", "rb").read(), m.path)
        assert not workers(m), "a worker without need"
        pid = one_worker(t, m, 0)
        t.call(lambda p: open(p + "/text/3", "rb").read(), m.path)
        assert one_worker(t, m, 1) == pid, "another worker without need"
        kept = {os.path.realpath(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
        assert "/dev/fuse" not in kept, kept
    assert mounts.wait_gone([pid], 30), "the worker outlives the mount"


def test_killed_while_reading(t):
    """Each read is right or EIO, and right again afterwards."""
    path = sample(t.path("a.nc"))

    def read(mnt, i):
        try:
            read_one(mnt, i)
            return 0
        except OSError as error:
            assert error.errno == errno.EIO, error
            return 1

    stop = t.path("stop")

    def hunt(m):
        end = time.monotonic() + 2.0
        killed = 0
        while time.monotonic() < end + 58 * (killed <= 3):  # a slow machine takes longer for four
            for worker in workers(m):
                try:
                    os.kill(worker, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
            time.sleep(0.002)
        open(stop, "wb").close()
        assert killed > 3, f"only {killed} killed"

    def reader(mnt):
        failed = done = 0
        while not os.path.exists(stop):
            for i in range(CHUNKS):
                failed += read(mnt, i)
                done += 1
        print(f"{failed} of {done} reads failed", flush=True)

    with t.mount(path, "filter=none", "cache_size=16K") as m:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                reader(m.path)
                status = 0
            finally:
                os._exit(status)
        t.call(hunt, m)
        assert os.waitpid(pid, 0)[1] == 0, "a read was neither right nor EIO"
        t.call(lambda p: [read_one(p, i) for i in range(CHUNKS)], m.path)
        last = one_worker(t, m, 0)
        assert m.server_alive()
    assert mounts.wait_gone([last], 30), "the worker outlives the mount"


def parent(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def test_forker_killed(t):
    """Without the process that forks workers the server forks them itself."""
    with t.mount(sample(t.path("a.nc")), "cache_size=16K") as m:
        worker = one_worker(t, m, 0)
        os.kill(parent(worker), signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        assert mounts.wait_gone([worker], 30), "the worker does not die"
        t.call(lambda p: [read_one(p, i) for i in range(CHUNKS)], m.path)
        assert m.server_alive()


def reads_nothing(fd):
    try:
        raise AssertionError(f"the mount is gone, and gives {os.pread(fd, 10, 0)}")
    except OSError as error:
        assert error.errno == errno.ENOTCONN, error


# SEMANTICS E15
def test_server_killed(t):
    """A server that is killed takes its worker along, the mount is removed, and reading a file
    that is open fails."""
    m = t.mount(sample(t.path("a.nc")), check=False)
    assert m.status == 0, m.messages()
    worker = one_worker(t, m, 0)
    server = parent(parent(worker))
    assert server in m.pids, "the process that forks workers is not the server's child"
    fd = os.open(m.path + "/odd/3.0", os.O_RDONLY)
    os.kill(server, signal.SIGKILL)
    assert mounts.wait_gone([worker] + m.pids, 20), "processes are left"
    t.call(reads_nothing, fd)
    os.close(fd)
    assert not mounts.is_mounted(m.path), "the mount is left"


def test_signals(t):
    """Whoever tells every process of the mount to end gets a clean end, workers included."""
    for number in (signal.SIGTERM, signal.SIGINT):
        m = t.mount(sample(t.path(f"a{number}.nc")))
        pids = [one_worker(t, m, 0)] + m.pids
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it ended with one told before
                os.kill(pid, number)
        assert mounts.wait_gone(pids, 20), f"signal {number} leaves processes"
        assert not mounts.is_mounted(m.path)
        m.ended = True
        problems = m.unmount()
        assert not problems, problems


# SEMANTICS E17
def test_hostile_files(t):
    """Files that are made to crash libhdf5 are read whole by a mount that lives."""
    root = corpus()
    folder = os.path.join(root, "bad", "HDFGroup-cve_hdf5") if root else ""
    names = ("cve-2024-32615.h5", "cve-2026-26200.h5")
    if not all(os.path.isfile(os.path.join(folder, n)) for n in names):
        raise Skip("no corpus with bad/HDFGroup-cve_hdf5")

    def read_whole(mnt):
        count = 0
        for base, _, files in os.walk(mnt):
            for n in files[:2000]:
                count += 1
                try:
                    with open(os.path.join(base, n), "rb") as f:
                        while f.read(1 << 20):
                            pass
                except OSError as error:
                    assert error.errno == errno.EIO, f"{base}/{n}: {error}"
        assert count and os.listdir(mnt)
    for name in names:
        for options in ((), ("filter=none",)):
            with t.mount(os.path.join(folder, name), *options, check=not t.sanitized) as m:
                assert m.status == 0, m.messages()
                t.call(read_whole, m.path, timeout=100)
                assert m.server_alive(), "the server died: " + m.messages()
                print(name, options, m.messages()[-300:])


test_hostile_files.limit = 240.0
