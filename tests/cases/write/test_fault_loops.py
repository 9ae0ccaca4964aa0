# SPDX-License-Identifier: BSD-3-Clause
"""Faults at the calls of many scenes, in process (tests/faults/loops.c): allocations, opening,
reading, looking, mapping, descriptors, processes and threads, waiting, talking, writing, syncing,
renaming, libcurl. Each answer is the right one or an error that blames no file; nothing is left
behind; the next attempt without a fault is right. And mounts whose server is short of memory,
descriptors and threads while it serves.

`make check` has a sample; NCZARRFS_LOOPS=all (make check-faults, which runs the loops themselves by
tests/faults/run.py) has more of the mounts.

SEMANTICS E21: an error that comes of short memory or descriptors is not remembered, and never means
that something is absent or damaged, also when it was a library that met it."""
import errno
import os
import struct
import sys
import time

from faults import run
from lib import mounts
from lib.context import Skip

LIMIT = 300
ALL = os.environ.get("NCZARRFS_LOOPS") == "all"

# a few scenes of each kind, and what is likely
SCENES = ["v2-as-v3", "v2-as-nc", "classic-as-v2", "configuration", "filters", "zip-as-nc",
          "refs-json"]
WAYS = ["alloc", "alloc-from", "open-emfile", "read-eintr", "read-short", "read-eio", "stat-eio",
        "fork-eagain", "make-emfile", "map-enomem"]


def _loops(t, per, scenes, ways):
    build = os.path.dirname(os.path.abspath(t.binary))
    if t.sanitized:
        raise Skip("a sanitizer has the allocator: tests/loops of a build without")
    if not os.path.exists(os.path.join(build, "tests", "loops")):
        raise Skip("tests/loops is not built: make tools")
    args = ["-n", str(per)] + [w for s in scenes for w in ("-k", s)] + [
        w for s in ways for w in ("-w", s)]
    status, text = run.run(build, args, folder=t.tmp, limit=LIMIT - 20)
    lines, n, sums = run.table(text)
    print(lines)
    assert status == 0 and sums[3] == 0, text[-8000:]
    assert n == len(scenes), f"{n} scenes of {len(scenes)}"
    return sums


def test_sample(t):
    """No answer is wrong, and faults did happen."""
    sums = _loops(t, 4, SCENES, WAYS)
    assert sums[0] >= 100 and sums[1] and sums[2], f"faults, right answers, errors: {sums}"


def test_libraries(t):
    """E21 of libhdf5: what is short beneath it is no damage, and leaves nothing out."""
    sums = _loops(t, 20 if ALL else 8, ["hdf5-as-v2"],
                  ["alloc-child", "open-emfile-from", "stat-enomem-from", "read-eio"])
    assert sums[0] >= 30 and sums[2], f"faults, right answers, errors: {sums}"


def test_commits_that_fail(t):
    """SEMANTICS E22: a commit that failed is undone or ended by the mount that began it, which
    never takes its own change for another program's; what was written stays."""
    sums = _loops(t, 14 if ALL else 4, ["write-hdf5", "write-v2"],
                  ["names-enospc-from", "sync-eio"])
    assert sums[0] >= 12 and sums[2], f"faults, right answers, errors: {sums}"


# ---- mounts ----

CLASSES = {"memory": (1, errno.ENOMEM), "descriptors": (2 | 32 | 64, errno.EMFILE),
           "threads": (128, errno.EAGAIN)}
# armed, mask, at, more, code, how, who, self, count, fired, hit_class, hit_pid, depth
HEAD = "=13I"


class Injector:
    def __init__(self, t):
        build = os.path.dirname(os.path.abspath(t.binary))
        self.preload = os.path.join(build, "tests", "libinject.so")
        if t.sanitized or not os.path.exists(self.preload):
            raise Skip("tests/libinject.so is not built, or a sanitizer has to be first")
        self.file = t.path("inject")
        with open(self.file, "wb") as f:
            f.write(bytes(8192))
        self.wrapper = ("env", "LD_PRELOAD=" + self.preload, "INJECT_STATE=" + self.file)

    def arm(self, mask, code, at, more):
        with open(self.file, "r+b") as f:
            f.seek(4)
            f.write(struct.pack("=11I", mask, at, more, code, 0, 0, 0, 0, 0, 0, 0))
            f.seek(0)
            f.write(struct.pack("=I", 1))

    def disarm(self):
        """How many calls failed."""
        with open(self.file, "r+b") as f:
            fired = struct.unpack(HEAD, f.read(struct.calcsize(HEAD)))[9]
            f.seek(0)
            f.write(struct.pack("=I", 0))
        return fired


def _tree(path):
    """{name: bytes} below a path; an error that is none of ours is raised."""
    found = {}
    for folder, dirs, names in os.walk(path, onerror=_may):
        for name in names:
            full = os.path.join(folder, name)
            try:
                with open(full, "rb", buffering=0) as f:
                    found[os.path.relpath(full, path)] = f.read()
            except OSError as error:
                _may(error)
    return found


def _may(error):
    assert error.errno in (errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN), error


def _same(path, want, whole):
    """What can be read is right; whole: everything can."""
    got = _tree(path)
    for name, data in got.items():
        assert name in want, f"{name} is not there without a fault"
        assert data == want[name], f"{name}: {len(data)} bytes, other than {len(want[name])}"
    if whole:
        assert set(got) == set(want), f"missing: {sorted(set(want) - set(got))}"


def _drop(path):
    """The kernel forgets what it knows of the files."""
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            except OSError:
                continue
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def _descriptors(pids):
    return sum(len(os.listdir(f"/proc/{p}/fd")) for p in pids if os.path.exists(f"/proc/{p}/fd"))


def _server(t, source, options, rounds):
    inject = Injector(t)
    with t.mount(source, *options) as m:
        want = {}

        def keep(path):
            import pickle
            with open(t.path("want"), "wb") as f:
                pickle.dump(_tree(path), f)
        t.call(keep, m.path)
        import pickle
        with open(t.path("want"), "rb") as f:
            want = pickle.load(f)
    fired = 0
    with t.mount(source, *options, wrapper=inject.wrapper) as m:
        t.call(_same, m.path, want, True)
        before = _descriptors(m.pids)
        for kind, (mask, code) in CLASSES.items():
            for k in range(rounds):
                t.call(_drop, m.path)
                inject.arm(mask, code, 1 + 7 * k * k, 1 + 5 * (k % 3))
                t.call(_same, m.path, want, False)
                fired += inject.disarm()
                assert m.server_alive(), f"{kind}: the server died: {m.messages()}"
        time.sleep(1.1)  # what failed is tried again after a second
        t.call(_drop, m.path)
        t.call(_same, m.path, want, True)
        left = _descriptors(m.pids)
        assert left <= before + 4, f"{left} descriptors, {before} before"
    assert fired > 0, "no call ever failed"
    print(f"{fired} calls failed in a server")


def _inputs(t):
    from faults import inputs
    return inputs


def test_server_reads_hdf5(t):
    """A server that is short of memory, descriptors and threads goes on serving."""
    path = t.path("a.nc")
    t.call(_inputs(t).netcdf, path)
    _server(t, path, (), 12 if ALL else 4)


def test_server_reads_zarr(t):
    """The same of a Zarr tree that is shown as another."""
    path = t.path("a.zarr")
    t.call(_inputs(t).v2, path)
    _server(t, path, ("view=zarr", "zarr_format=3"), 12 if ALL else 4)
