#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""End-to-end tests on real mounts.

    tests/run-tests.py [-j N] [-k PATTERN]... [--all | --one-in N] [-l] [-v] [-t SECONDS] [--keep]

Every tests/cases/*/test_*.py holds test functions `def test_name(t)`, and may hold a function
`cases()` that yields (name, function) pairs for tests over many inputs. A test runs in a
process of its own, with a private directory t.tmp, under a wall-clock limit after which it and
everything it started are killed and unmounted. One more test than there are processors runs at a
time, because tests wait for part of their time.

A module with many tests of one kind may hold ONE_IN = {PATTERN: N}: of those whose name in the
module matches, one in N is run, always the same ones, unless --all or -k asks for all. --one-in N
runs all test functions, and one in N of what cases() yields.

A test passes when its function returns, is skipped when it raises Skip, fails otherwise.
The last line is "N passed, N failed, N skipped"; the exit status is 1 when a test failed, or when
there was none.

Environment: NCZARRFS, the program under test (build/nczarrfs); NCZARRFS_CORPUS, a folder of
real files (../shared/corpus beside the project, tests over it are skipped where it is absent);
NCZARRFS_SLOW, what all limits of time are multiplied by (3, for a machine with other work);
NCZARRFS_REMOTE=all, for tests of remote trees with all trees and not a few.
"""
import argparse
import fnmatch
import glob
import importlib.util
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

from lib import mounts  # noqa: E402
from lib.context import Context, Skip, sampled  # noqa: E402

DEFAULT_LIMIT = 120.0


def preload():
    """Import what the clients need once; tests are forked from here. The clients themselves
    complain about what is missing, so nothing is said here."""
    import warnings
    warnings.filterwarnings("ignore")
    for name in ("numpy", "h5py", "netCDF4", "zarr", "xarray"):
        try:
            __import__(name)
        except ImportError:
            pass


def discover(patterns, one_in=1):
    tests = []
    files = glob.glob(os.path.join(HERE, "cases", "*", "test_*.py"))
    for file in sorted(files, key=os.path.basename):
        stem = os.path.basename(file)[5:-3]
        spec = importlib.util.spec_from_file_location("cases_" + stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        limit = getattr(module, "LIMIT", DEFAULT_LIMIT)
        found = [(k[5:], v) for k, v in vars(module).items()
                 if k.startswith("test_") and callable(v)]
        if hasattr(module, "cases"):
            found += list(module.cases())[::one_in]
        for pattern, share in getattr(module, "ONE_IN", {}).items():
            many = [f for f in found if fnmatch.fnmatch(f[0], pattern)]
            few = sampled(many, share, lambda f: f[0])
            left = {f[0] for f in many} - {f[0] for f in few}
            found = [f for f in found if f[0] not in left]
        for name, func in found:
            tests.append((f"{stem}/{name}", func, getattr(func, "limit", limit)))
    if patterns:
        tests = [t for t in tests
                 if any(p in t[0] or fnmatch.fnmatch(t[0], p) for p in patterns)]
    return tests


def child_main(func, tmp, out):
    """Run one test; the verdict is the exit status, the reason the text of out."""
    os.setsid()
    os.dup2(out, 1)
    os.dup2(out, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    status = 0
    try:
        context = Context(tmp)
        try:
            func(context)
        finally:
            context.close()
    except Skip as skip:
        print(f"SKIP: {skip}")
        status = 77
    except BaseException as error:  # noqa: B902 - a test's verdict, whatever it raised
        if isinstance(error, AssertionError) and str(error):
            frame = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL: {error}  ({os.path.basename(frame.filename)}:{frame.lineno})")
        else:
            traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


class Running:
    def __init__(self, name, func, limit, base):
        self.name = name
        self.limit = limit
        self.tmp = tempfile.mkdtemp(dir=base)
        self.log = os.path.join(base, os.path.basename(self.tmp) + ".log")
        self.start = time.monotonic()
        self.killed = False
        out = os.open(self.log, os.O_RDWR | os.O_CREAT, 0o600)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            child_main(func, self.tmp, out)
        os.close(out)

    def poll(self):
        """(status, seconds) when it ended, else None."""
        pid, raw = os.waitpid(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.start
        if pid:
            status = "timeout" if self.killed else os.waitstatus_to_exitcode(raw)
            self._sweep()
            return status, seconds
        if seconds > self.limit and not self.killed:
            # the server first: a client that waits for its answer cannot even be killed
            mounts.kill_below(self.tmp)
            self._killpg()
            self.killed = True
        return None

    def _killpg(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _sweep(self):
        """Leave no mount and no process of this test behind, however it ended."""
        mounts.kill_below(self.tmp)
        self._killpg()
        mounts.unmount_below(self.tmp)

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read().strip()


def report(run, status, seconds, verbose, counts, failures):
    text = run.text()
    if status == 0:
        word = "ok"
        counts[0] += 1
    elif status == 77:
        word = "skip"
        counts[2] += 1
    else:
        word = "FAIL"
        counts[1] += 1
        failures.append(run.name)
    line = f"{word:4} {run.name}  {seconds:.1f}s"
    if status == 77:
        line += "  " + text.splitlines()[-1].replace("SKIP: ", "")
    elif status == "timeout":
        line += f"  killed after {run.limit:.0f} s"
    elif status not in (0, 1):
        line += f"  ended with status {status}"
    print(line)
    if word == "FAIL" or (verbose and text and word == "ok"):
        lines = text.splitlines()
        if len(lines) > 60 and not verbose:
            lines = lines[:20] + [f"... {len(lines) - 50} lines ..."] + lines[-30:]
        print("\n".join("     | " + x for x in lines))
    sys.stdout.flush()


def run_all(tests, args, base):
    counts, failures = [0, 0, 0], []
    queue, running = list(tests), []
    try:
        while queue or running:
            while queue and len(running) < args.jobs:
                name, func, limit = queue.pop(0)
                running.append(Running(name, func, args.timeout or limit * args.slow, base))
            for run in list(running):
                ended = run.poll()
                if ended:
                    running.remove(run)
                    report(run, *ended, args.verbose, counts, failures)
                    if not args.keep:
                        shutil.rmtree(run.tmp, ignore_errors=True)
            select.select([], [], [], 0.01)
    finally:
        for run in running:
            run._sweep()
    return counts, failures


def main():
    p = argparse.ArgumentParser(description="end-to-end tests on real mounts")
    p.add_argument("-j", dest="jobs", type=int, default=(os.cpu_count() or 1) + 1,
                   help="tests at a time")
    p.add_argument("-k", dest="patterns", action="append", default=[],
                   help="only tests whose name contains this or matches it as a glob")
    p.add_argument("--all", action="store_true",
                   help="all tests of modules of which a sample is enough most of the time")
    p.add_argument("--one-in", type=int, default=1, metavar="N",
                   help="one in N of the tests over many inputs")
    p.add_argument("-l", dest="list", action="store_true", help="list tests")
    p.add_argument("-v", dest="verbose", action="store_true", help="show all output")
    p.add_argument("-t", dest="timeout", type=float, help="seconds for every test")
    p.add_argument("--keep", action="store_true", help="keep the tests' directories")
    args = p.parse_args()
    binary = os.path.abspath(os.environ.setdefault(
        "NCZARRFS", os.path.join(os.path.dirname(HERE), "build", "nczarrfs")))
    os.environ["NCZARRFS"] = binary
    args.slow = mounts.slowness(binary)

    if args.all or args.patterns:
        os.environ["NCZARRFS_ALL"] = "1"
    tests = discover(args.patterns, max(args.one_in, 1))
    if args.list:
        print("\n".join(t[0] for t in tests))
        return 0
    if not os.access(binary, os.X_OK):
        sys.exit(f"run-tests: no program at {binary}: run make first, or set NCZARRFS")
    why = mounts.fuse_problem()
    if why:
        sys.exit("run-tests: " + why)
    preload()
    base = tempfile.mkdtemp(prefix="nczarrfs-tests-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start = time.monotonic()
    counts, failures = [0, 0, 0], []
    try:
        counts, failures = run_all(tests, args, base)
    finally:
        mounts.unmount_below(base)
        if args.keep:
            print("kept", base)
        else:
            shutil.rmtree(base, ignore_errors=True)
    for name in failures:
        print("failed:", name)
    if not os.environ.get("NCZARRFS_ALL"):
        print("a sample of the tests over many files: --all runs all of them")
    print(f"{time.monotonic() - start:.0f} s")
    print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    return 1 if counts[1] or not (counts[0] or counts[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
