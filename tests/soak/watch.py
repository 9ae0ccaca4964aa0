# SPDX-License-Identifier: BSD-3-Clause
"""What servers take: memory, descriptors, threads, children, lines of their logs; sampled through a
run, and judged by the slope of its second half."""
import contextlib
import os
import time

import numpy as np

CGROUP1 = "/sys/fs/cgroup/memory"
CGROUP2 = "/sys/fs/cgroup"


SETTLED = 60  # seconds: nothing has settled in a shorter time


class Process:
    def __init__(self, pid, parent, name, state):
        self.pid, self.parent, self.name, self.state = pid, parent, name, state


def table():
    """{pid: Process} of everything that runs."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{entry}/stat") as f:
                text = f.read()
            left, _, right = text.rpartition(")")
            state, parent = right.split()[:2]
            found[int(entry)] = Process(int(entry), int(parent), left.partition("(")[2], state)
    return found


def family(top, rows=None):
    """A process and all below it that live."""
    rows = rows or table()
    children = {}
    for p in rows.values():
        children.setdefault(p.parent, []).append(p)
    todo, found = [rows[top]] if top in rows else [], []
    while todo:
        p = todo.pop()
        if p.state not in "ZX":
            found.append(p)
        todo += children.get(p.pid, [])
    return found


def rollup(pid):
    """(RSS, private) in KiB"""
    rss = private = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            if line.startswith("Rss:"):
                rss = int(line.split()[1])
            elif line.startswith("Private_"):
                private += int(line.split()[1])
    return rss, private


def count(path):
    try:
        return len(os.listdir(path))
    except OSError:
        return 0


def slope(times, values):
    """Theil and Sen's: the median of the slopes of all pairs, which a few peaks do not move."""
    t, v = np.asarray(times, float), np.asarray(values, float)
    if len(t) > 400:
        keep = np.linspace(0, len(t) - 1, 400).astype(int)
        t, v = t[keep], v[keep]
    i, j = np.triu_indices(len(t), 1)
    return float(np.median((v[j] - v[i]) / (t[j] - t[i]))) if len(t) > 1 else 0.0


class Watch:
    FIELDS = ("rss", "private", "children", "fds", "threads", "log")

    def __init__(self):
        self.samples = {}  # scene: [(time, mounts, {field: value})]

    @staticmethod
    def family(pid):
        return family(pid)

    def sample(self, scenes, emit):
        rows, now = table(), time.monotonic()
        for s in scenes:
            if not s.process or s.paused:
                continue
            some = family(s.process.pid, rows)
            server = self.server_of(some)
            if not server:
                continue
            rss, private = rollup(server.pid)
            row = {"rss": rss, "private": private, "children": len(some),
                   "fds": count(f"/proc/{server.pid}/fd"),
                   "threads": count(f"/proc/{server.pid}/task"),
                   "log": os.stat(s.log).st_size}
            if s.group:
                row["group"] = s.group.peak() >> 10
            self.samples.setdefault(s.name, []).append((now, s.mounts, row))
            emit({"kind": "sample", "scene": s.name, **row})

    @staticmethod
    def server_of(some):
        """The parent of the forker; else the last that is called nczarrfs."""
        for p in some:
            if p.name == "nczarrfs-forker":
                return next((q for q in some if q.pid == p.parent), None)
        return None

    def judge(self, limits):
        """[(scene, field, first, last, peak, growth)], [what grew]. Growth is the slope of the
        second half of the longest time that one process served, over that time."""
        rows, bad = [], []
        for name, samples in self.samples.items():
            runs = {}
            for s in samples:
                runs.setdefault(s[1], []).append(s)
            run = max(runs.values(), key=len)
            half = run[len(run) // 2:]
            for field in self.FIELDS:
                v = [s[2][field] for s in half]
                t = [s[0] for s in half]
                grown = slope(t, v) * (t[-1] - t[0]) if len(half) > 3 else 0.0
                peak = max(s[2][field] for s in samples)
                rows.append((name, field, run[0][2][field], v[-1], peak, grown,
                             slope(t, v) * 3600 if len(half) > 3 else 0.0))
                if (field in limits and t[-1] - t[0] > SETTLED and
                        grown > limits[field](run[0][2][field], v)):
                    bad.append(f"{name}: {field} grew by {grown:.0f} over {t[-1] - t[0]:.0f} s, "
                               f"from {v[0]} to {v[-1]}")
        return rows, bad


LIMITS = {
    # KiB: what caches, pools and the allocator still fill is not growth without end
    "rss": lambda first, v: max(8192, 0.08 * np.median(v)),
    "fds": lambda first, v: max(8, 0.3 * np.median(v)),
    "threads": lambda first, v: 6,
    "children": lambda first, v: 4,
}


class MemoryGroup:
    """A memory cgroup of so many MiB, or None where one cannot be made: MemoryGroup.make()."""

    def __init__(self, path, v2):
        self.path, self.v2 = path, v2

    @classmethod
    def make(cls, name, mib):
        for top, v2, limit in ((CGROUP1, False, "memory.limit_in_bytes"),
                               (CGROUP2, True, "memory.max")):
            path = os.path.join(top, name)
            if not os.path.exists(os.path.join(top, "cgroup.controllers" if v2 else limit)):
                continue
            with contextlib.suppress(OSError):
                os.mkdir(path)
                with open(os.path.join(path, limit), "w") as f:
                    f.write(str(mib << 20))
                return cls(path, v2)
            with contextlib.suppress(OSError):
                os.rmdir(path)
        return None

    def read(self, name):
        try:
            with open(os.path.join(self.path, name)) as f:
                return f.read()
        except OSError:
            return ""

    def enter(self):
        """In a process that is going to be a mount; one that may not is not limited."""
        with contextlib.suppress(OSError), open(os.path.join(self.path, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))

    def peak(self):
        text = self.read("memory.peak" if self.v2 else "memory.max_usage_in_bytes")
        return int(text or 0)

    def resident(self):
        """Bytes that no file backs."""
        for line in self.read("memory.stat").splitlines():
            name, _, n = line.partition(" ")
            if name in ("rss", "anon"):
                return int(n)
        return 0

    def killed(self):
        """Processes that were killed for want of memory."""
        for line in self.read("memory.events" if self.v2 else "memory.oom_control").splitlines():
            name, _, n = line.partition(" ")
            if name == "oom_kill":
                return int(n)
        return 0

    def end(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
