#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A load on real mounts in which every value that is read is checked, with everything that can
happen to a machine happening meanwhile. docs: docs/dev/testing/reliability.md.

    tests/soak/run.py [--time S] [--seed N] [--pace N] [--only SCENE,...] [--out FOLDER]
    make soak TIME=7200 [SEED=1] [PACE=0]

--pace: operations a second of all workers together; 0: as many as there can be.
The exit status is 1 for any wrong value, unexpected error, growth, hang or dead mount."""
import argparse
import errno
import faulthandler
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
sys.dont_write_bytecode = True
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BLOSC_NTHREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import events  # noqa: E402
import ledger  # noqa: E402
import scenes as kinds  # noqa: E402
import watch  # noqa: E402
from lib import mounts  # noqa: E402

FAILURES_MAX = 30


def preload():
    """What workers need, imported before they are forked."""
    import h5py
    import numcodecs.blosc
    import zarr  # noqa: F401
    numcodecs.blosc.use_threads = False
    h5py.h5.get_config()


class Run:
    def __init__(self, args):
        self.args, self.seed, self.pid = args, args.seed, os.getpid()
        self.binary = os.path.abspath(os.environ.get("NCZARRFS") or
                                      os.path.join(ROOT, "build", "nczarrfs"))
        self.tmp = tempfile.mkdtemp(prefix="nczarrfs-soak-", dir=args.tmp)
        self.out = args.out or self.tmp
        os.makedirs(self.out, exist_ok=True)
        self.lines = open(os.path.join(self.out, "soak.jsonl"), "w", buffering=1)
        self.failures = os.path.join(self.out, "failures")
        open(self.failures, "w").close()
        self.begun = time.monotonic()
        self.watch = watch.Watch()
        self.n_datasets = self.n_scenes = 0
        self.disks, self.scenes, self.workers = [], [], []
        self.pids = {}     # number of a worker: its process
        self.running = {}  # process: its worker
        self.crashes = 0   # of libhdf5 in a worker
        self.memory_group = None
        self.lean_options = [o for o in args.lean.split(";") if o]
        self.notes, self.problems = [], []
        self.ended = False

    # ---- what scenes ask for ----
    def dataset_number(self):
        self.n_datasets += 1
        return self.n_datasets - 1

    def scene_number(self):
        self.n_scenes += 1
        return self.n_scenes - 1

    def shared_cell(self):
        return ledger.shared(1)

    def small_disk(self, name, mib):
        disk = kinds.SmallDisk(os.path.join(self.tmp, "disk-" + name), mib)
        if not disk.real:
            self.notes.append(f"{name}: no tmpfs can be mounted: its disk is never full")
        self.disks.append(disk)
        return disk

    def emit(self, row):
        row = {"t": round(time.monotonic() - self.begun, 2), **row}
        self.lines.write(json.dumps(row) + "\n")

    def failed(self, text):
        """From any process."""
        line = f"{time.monotonic() - self.begun:8.1f} {text}\n"
        fd = os.open(self.failures, os.O_WRONLY | os.O_APPEND)
        os.write(fd, line.encode(errors="replace"))
        os.close(fd)

    def failure_lines(self):
        with open(self.failures, errors="replace") as f:
            return f.read().splitlines()

    def rest(self, seconds):
        end = min(time.monotonic() + seconds, self.end)
        while time.monotonic() < end and not self.ended:
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))

    def clear(self, scene):
        for _ in range(50):
            if not mounts.is_mounted(scene.mnt):
                return
            mounts.unmount(scene.mnt, lazy=True)
            time.sleep(0.05)

    # ---- a run ----
    def set_up(self):
        names = self.args.only.split(",") if self.args.only else list(kinds.SCENES)
        if "lean" in names and mounts.is_sanitized(self.binary):
            self.notes.append("lean: a sanitizer needs more than 256 MB: not limited")
        elif "lean" in names:
            self.memory_group = watch.MemoryGroup.make(f"nczarrfs-soak-{os.getpid()}", 256)
            if not self.memory_group:
                self.notes.append("lean: no memory cgroup can be made here: not limited")
        share = self.args.readers / sum(kinds.SCENES[n][1] for n in kinds.SCENES)
        for n in names:
            kind, readers = kinds.SCENES[n]
            scene = kind(self, n, max(1, round(readers * share)))
            scene.change_every = kind.change_every * self.args.change
            self.scenes.append(scene)
        todo = [(s, w) for s in self.scenes for w in s.workers()]
        self.led = ledger.Ledger(self.n_datasets, self.n_scenes, len(todo), self.args.lag)
        self.interval = len(todo) / self.args.pace if self.args.pace else 0.0
        shares = {}
        for i, (scene, kind) in enumerate(todo):
            w = kind(self, i, scene)
            w.share = shares.get((scene, kind), 0)
            shares[scene, kind] = w.share + 1
            self.workers.append(w)
        for s in self.scenes:
            for d in s.datasets:
                d.born()
            s.begin()
        for s in self.scenes:
            s.start()

    def fork(self):
        for w in self.workers:
            self.fork_worker(w)

    def fork_worker(self, w):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # h5py says a lot of what fails
            faulthandler.enable(open(self.crash_file(w), "w"))
            try:
                w.main()
            except BaseException:  # noqa: B902
                self.failed(f"{w.scene.name} worker {w.number}: {traceback.format_exc()}")
            os._exit(0)
        self.pids[w.number] = pid
        self.running[pid] = w

    def crash_file(self, w):
        return os.path.join(self.out, f"crash-{w.number}")

    def reap(self):
        """Takes the workers that ended out of self.running. libhdf5 can crash when it closes a file
        whose server was killed: then a new worker resumes. Any other crash is a problem."""
        for pid, w in list(self.running.items()):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got == 0:
                continue
            del self.running[pid]
            if not os.WIFSIGNALED(status):
                continue
            with open(self.crash_file(w)) as f:
                text = f.read()
            died = os.WTERMSIG(status)
            started = float(self.led.started[w.number]) or time.monotonic()
            if (died == signal.SIGSEGV and "h5py" in text and " in close" in text
                    and self.led.is_excused(w.scene.number, "down", started)):
                self.crashes += 1
                self.fork_worker(w)
                continue
            self.problem(f"{w.scene.name} worker {w.number} died of signal {died}: {text[:1500]}")
            self.ended = True

    def load(self):
        self.end = time.monotonic() + self.args.time
        self.ended = False
        happen = events.Events(self)
        self.happen = happen
        next_sample = next_line = time.monotonic()
        next_event = time.monotonic() + min(5, self.args.time / 10)
        while time.monotonic() < self.end and not self.ended:
            now = time.monotonic()
            if now >= next_sample:
                self.watch.sample(self.scenes, self.emit)
                next_sample = now + self.args.sample
            if now >= next_line:
                self.progress()
                next_line = now + self.args.line
            if now >= next_event and now < self.end - self.args.time * 0.05:
                happen.once()
                next_event = now + happen.rng.expovariate(1 / self.args.every)
            self.check()
            time.sleep(0.05)

    def check(self):
        """Hangs, dead mounts, too many failures."""
        now = time.monotonic()
        self.reap()
        for w in self.running.values():
            started = float(self.led.started[w.number])
            if started and now - started > self.args.hang:
                self.problem(f"{w.scene.name} worker {w.number} hangs: {self.where(w)}")
                self.ended = True
        for s in self.scenes:
            if not s.alive():
                self.problem(f"{s.name}: the mount is dead: {s.messages()[-1500:]}")
                self.ended = True
        if self.led.stop[0] or len(self.failure_lines()) > FAILURES_MAX:
            self.ended = True

    def where(self, w):
        text = []
        some = watch.family(w.scene.process.pid)
        for pid in [self.pids[w.number]] + [p.pid for p in some]:
            for task in sorted(os.listdir(f"/proc/{pid}/task")) if os.path.isdir(
                    f"/proc/{pid}") else []:
                try:
                    with open(f"/proc/{pid}/task/{task}/wchan") as f, open(
                            f"/proc/{pid}/task/{task}/syscall") as g:
                        text.append(f"{pid}/{task} {f.read()} {g.read().split()[:2]}")
                except OSError:
                    pass
        return "; ".join(text)

    def problem(self, text):
        self.problems.append(text)
        self.emit({"kind": "problem", "text": text})
        print("PROBLEM:", text, flush=True)

    def totals(self):
        led = self.led
        codes = {}
        for c in range(ledger.ERRORS):
            n = int(led.errors[:, c].sum())
            if n:
                codes["HDF5" if c == 0 else errno.errorcode.get(c, str(c))] = n
        return {"ops": int(led.ops.sum()), "good": int(led.good.sum()),
                "bytes": int(led.bytes.sum()), "errors": codes,
                "generations": int(led.hi.sum()), "mixed": int(led.mixed.sum()),
                "stale": round(float(led.stale.max()), 1),
                "slowest": round(float(led.slow.max()), 1)}

    def progress(self):
        row = self.totals()
        self.emit({"kind": "total", **row})
        if not self.args.quiet:
            print(f"{time.monotonic() - self.begun:7.0f} s  {row}", flush=True)

    # ---- the end ----
    def finish(self):
        self.led.stop[0] = 1
        end = time.monotonic() + 60
        while self.running and time.monotonic() < end:
            self.reap()
            time.sleep(0.02)
        if self.running and not self.problems:
            self.problem(f"{len(self.running)} workers do not end")
        for pid in self.running:
            os.kill(pid, signal.SIGKILL)
        if self.scenes and self.scenes[0].process:
            self.watch.sample(self.scenes, self.emit)

    def unmount(self):
        for s in self.scenes:
            text = s.stop()
            if text:
                self.problem(text + ": " + s.messages()[-1500:])
        for s in self.scenes:
            if s.writable and not self.problems:
                for text in s.verify():
                    self.problem(text)

    def clean(self):
        for pid in self.running:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for s in self.scenes:
            if s.process and s.process.poll() is None:
                s.kill()
            self.clear(s)
            if s.service:
                s.service.end()
        for d in self.disks:
            d.end()
        if self.memory_group:
            self.memory_group.end()
        mounts.unmount_below(self.tmp)

    def logs(self):
        """Lines that servers said; those of one text are one row."""
        for s in self.scenes:
            text = s.messages()
            lines = text.splitlines()
            if lines:
                with open(os.path.join(self.out, "log-" + s.name), "w") as f:
                    f.write(text)
            if "Sanitizer" in text or "runtime error:" in text:
                self.problem(f"{s.name}: {text[-3000:]}")
            rate = len(lines) / max(self.args.time, 1)
            self.emit({"kind": "log", "scene": s.name, "lines": len(lines)})
            if rate > self.args.lines:
                self.problem(f"{s.name}: {len(lines)} lines in its log, {rate:.1f} a second")

    def report(self):
        rows, bad = self.watch.judge(watch.LIMITS)
        for text in bad:
            self.problem(text)
        if self.memory_group:
            self.emit({"kind": "group", "peak": self.memory_group.peak(),
                       "killed": self.memory_group.killed()})
            print(f"memory cgroup of 256 MB: peak {self.memory_group.peak() >> 20} MB (with page "
                  f"cache), at the end {self.memory_group.resident() >> 20} MB of processes, "
                  f"{self.memory_group.killed()} killed")
            if self.memory_group.killed():
                self.problem("processes were killed for want of memory")
        print(f"\n{'scene':8} {'':10} {'first':>9} {'last':>9} {'peak':>9} {'growth':>9} "
              f"{'/hour':>9}")
        for row in rows:
            print(f"{row[0]:8} {row[1]:10} {row[2]:9} {row[3]:9} {row[4]:9} {row[5]:9.0f} "
                  f"{row[6]:9.0f}")
            self.emit({"kind": "slope", **dict(zip(("scene", "field", "first", "last", "peak",
                                                    "growth", "hour"), row))})
        self.per_scene()
        print("events:", self.happen.counts, f"and {self.crashes} crashes of libhdf5 in readers")
        self.emit({"kind": "events", **self.happen.counts, "crashes": self.crashes})
        print("total:", self.totals())
        self.emit({"kind": "end", **self.totals()})
        for note in self.notes:
            print("note:", note)

    def per_scene(self):
        print(f"\n{'scene':8} {'workers':>7} {'ops':>9} {'good':>9} {'MB':>9} {'stale s':>8} "
              "errors")
        for s in self.scenes:
            mine = [w.number for w in self.workers if w.scene is s]
            codes = {("HDF5" if c == 0 else errno.errorcode.get(c, c)):
                     int(self.led.errors[mine, c].sum()) for c in range(ledger.ERRORS)
                     if self.led.errors[mine, c].sum()}
            row = {"ops": int(self.led.ops[mine].sum()), "good": int(self.led.good[mine].sum()),
                   "mb": int(self.led.bytes[mine].sum()) >> 20,
                   "stale": round(float(self.led.stale[mine].max()), 1), "errors": codes}
            print(f"{s.name:8} {len(mine):7} {row['ops']:9} {row['good']:9} {row['mb']:9} "
                  f"{row['stale']:8} {codes}")
            self.emit({"kind": "scene", "scene": s.name, **row})
            if not row["good"]:
                self.problem(f"{s.name}: nothing was read")

    def main(self):
        signal.signal(signal.SIGTERM, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)
        try:
            for phase in (self.set_up, self.fork, self.load, self.finish, self.unmount, self.logs,
                          self.report):
                self.emit({"kind": "phase", "name": phase.__name__})
                phase()
        finally:
            self.clean()
        failures = self.failure_lines()
        for line in failures[:FAILURES_MAX]:
            print("WRONG:", line)
        ok = not failures and not self.problems
        print("soak:", "ok" if ok else f"{len(failures)} wrong, {len(self.problems)} problems",
              "after", round(time.monotonic() - self.begun), "s, seed", self.seed)
        if ok or self.args.out:
            shutil.rmtree(self.tmp, ignore_errors=True)
        else:
            print("kept", self.tmp)
        return 0 if ok else 1

    def on_signal(self, *_):
        self.ended = True


def arguments(words=None):
    p = argparse.ArgumentParser(description="long runs on real mounts")
    p.add_argument("--time", type=float, default=60)
    p.add_argument("--seed", default="1")
    p.add_argument("--pace", type=float, default=0)
    p.add_argument("--readers", type=int, default=64)
    p.add_argument("--only", help="scenes: " + ", ".join(kinds.SCENES))
    p.add_argument("--lag", type=float, default=20, help="seconds until a change must be seen")
    p.add_argument("--change", type=float, default=1, help="factor of the time between changes")
    p.add_argument("--every", type=float, default=4, help="seconds between events")
    p.add_argument("--events", help="only these, with a comma between: kill_server, full_disk ...")
    p.add_argument("--last", type=float, default=1, help="factor of the time that events last")
    p.add_argument("--hang", type=float, default=120, help="seconds until who waits has waited "
                   "too long; more where others have the processor")
    p.add_argument("--sample", type=float, default=5)
    p.add_argument("--line", type=float, default=30, help="seconds between lines of progress")
    p.add_argument("--lines", type=float, default=5, help="most lines of a log in a second")
    p.add_argument("--lean", default="", help="options in 256 MB, with ; between")
    p.add_argument("--out", help="folder for soak.jsonl, failures and logs")
    p.add_argument("--tmp")
    p.add_argument("-q", dest="quiet", action="store_true")
    return p.parse_args(words)


def main(words=None):
    args = arguments(words)
    why = mounts.fuse_problem()
    if why:
        sys.exit("soak: " + why)
    preload()
    return Run(args).main()


if __name__ == "__main__":
    sys.exit(main())
