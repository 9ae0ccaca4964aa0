#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py [-j N] [-s SUITE]... [-m MOUNT]... [-k EXPRESSION] [--sample] [--show] [--keep DIR] - run
the tests that Debian's packages of other programs install, first in a directory of the disk, then
with their temporary and current directory on writable mounts, and compare test by test.

A test that passes on the disk passes on each mount, or expected.list has a line for it; a line
whose tests all pass is an error, too, unless its reason begins with "sometimes: ". The last line is
'N passed, N failed, N skipped'; the status is 0 if none failed. --show prints every difference, in
the form of that list."""
import argparse
import concurrent.futures
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
os.environ["NCZARRFS"] = os.path.abspath(
    os.environ.get("NCZARRFS", os.path.join(ROOT, "build", "nczarrfs")))

from lib.context import Context  # noqa: E402

DIST = "/usr/lib/python3/dist-packages"
NAME = "store"
# Bounds for what hangs. An idle machine needs a few seconds for a test and minutes for a suite; one
# with other work needs several times as much.
TEST_SECONDS = 120
SUITE_SECONDS = 3600

# Suites: the folder of the tests, an expression of pytest's -k, the files, the mounts on which they
# write something, and (for --sample) the expression and files of a few.
PYTEST = {
    "zarr": ("zarr/tests", "not V3 and not N5 and not Zip and not LMDB and not SQLite and not DBM",
             ("test_core.py", "test_hierarchy.py", "test_convenience.py", "test_creation.py",
              "test_dim_separator.py", "test_attrs.py", "test_info.py", "test_filters.py"),
             ("tree", "mirror"), ("TestGroupWithDirectoryStore or TestArrayWithDirectoryStore",
                                  ("test_hierarchy.py", "test_core.py"))),
    "storage": ("zarr/tests", "TestDirectoryStore or TestFSStore or TestNestedDirectoryStore or "
                "TestConsolidatedMetadataStore", ("test_storage.py",), ("tree", "mirror"), None),
    "xarray-zarr": ("xarray/tests", "TestZarrDirectoryStore or TestDataArrayToZarr",
                    ("test_backends.py",), ("tree", "mirror"),
                    ("TestZarrDirectoryStore and roundtrip", ("test_backends.py",))),
    "xarray-netcdf": ("xarray/tests", "TestNetCDF4Data or TestH5NetCDFData or "
                      "TestNetCDF4ViaDaskData or TestNetCDF4ClassicViaNetCDF4Data or "
                      "TestNetCDF4AlreadyOpen or TestH5NetCDFAlreadyOpen",
                      ("test_backends.py",), ("mirror", "virtual"),
                      ("TestNetCDF4Data and roundtrip", ("test_backends.py",))),
    "h5py": ("h5py/_debian_h5py_serial/tests", "not Ros3", (
        "test_file.py", "test_file2.py", "test_dataset.py", "test_group.py", "test_attrs.py",
        "test_file_alignment.py", "test_h5d_direct_chunk.py", "test_dimension_scales.py"),
             ("mirror",), None),
}

# Programs whose work is bounded by operations, on a mirror alone: stores are no place for any file.
STRESS = ("access", "chmod", "copy-file", "dentry", "dir", "fallocate", "fstat", "hdd", "link",
          "open", "rename", "seek", "symlink", "touch", "utime", "xattr")
COMMANDS = {f"stress-ng {name}": ("stress-ng", f"--{name}", "1", f"--{name}-ops", "60", "--verify",
                                  "--temp-path", ".") for name in STRESS}
for _name in ("link", "symlink"):  # one operation makes thousands
    COMMANDS[f"stress-ng {_name}"] = tuple("1" if x == "60" else x
                                           for x in COMMANDS[f"stress-ng {_name}"])
COMMANDS["stress-ng dir"] += ("--dir-dirs", "64")
COMMANDS["stress-ng dentry"] += ("--dentries", "64")
COMMANDS["stress-ng hdd"] += ("--hdd-bytes", "4m")
COMMANDS["stress-ng copy-file"] += ("--copy-file-bytes", "128m")
COMMANDS["stress-ng seek"] += ("--seek-size", "1m")
COMMANDS["stress-ng fallocate"] += ("--fallocate-bytes", "4m")
for _rw in ("write", "randwrite", "randrw"):
    COMMANDS[f"fio {_rw}"] = ("fio", "--name=v", f"--rw={_rw}", "--size=8m", "--bs=4k",
                              "--ioengine=psync", "--verify=crc32c", "--verify_fatal=1",
                              "--do_verify=1", "--fsync=256", "--directory=.")
SAMPLE = ("stress-ng rename", "fio randwrite")
MOUNTS = ("tree", "mirror", "virtual")


class Listed:
    """A line of expected.list: MOUNT[,MOUNT...] SUITE PATTERN # [sometimes: ]REASON"""

    def __init__(self, number, text):
        fields, _, reason = text.partition(" # ")
        mounts, self.suite, self.pattern = fields.split(None, 2)
        self.pattern = self.pattern.strip()
        if not reason.strip() or not set(mounts.split(",")) <= set(MOUNTS):
            sys.exit(f"expected.list:{number}: want MOUNT[,MOUNT...] SUITE PATTERN # REASON")
        self.mounts = mounts.split(",")
        self.sometimes = reason.startswith("sometimes: ")
        self.number = number
        self.used = {m: [0, 0] for m in self.mounts}  # tests that pass, that fail

    def matches(self, mount, suite, test):
        # in names of tests brackets are brackets
        pattern = self.pattern.replace("[", "[[]")
        return mount in self.mounts and suite == self.suite and fnmatch.fnmatchcase(test, pattern)


def listed():
    with open(os.path.join(HERE, "expected.list"), encoding="utf-8") as f:
        return [Listed(n, line) for n, line in enumerate(f, 1)
                if line.strip() and not line.startswith("#")]


def limited(command, where, env, seconds):
    """The status of a command, with all that it started, and what it printed."""
    with tempfile.TemporaryFile() as log:
        p = subprocess.Popen(command, cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log, start_new_session=True)
        try:
            status = p.wait(seconds)
        except subprocess.TimeoutExpired:
            status = f"more than {seconds} seconds"
        try:  # stress-ng's children are groups of their own, and end with their parent's SIGTERM
            os.killpg(p.pid, signal.SIGTERM)
            p.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        log.seek(0)
        return status, log.read().decode(errors="replace")


def run_pytest(suite, where, out, args, virtual=()):
    folder, expression, files, _, sample = PYTEST[suite]
    if args.sample:
        expression, files = sample
    if args.k:
        expression = f"({expression}) and ({args.k})"
    folder = os.path.join(DIST, folder)
    env = dict(os.environ, TMPDIR=where, PYTHONDONTWRITEBYTECODE="1", NCZARRFS_SUITE_OUT=out,
               PYTHONPATH=HERE, NCZARRFS_SUITE_SECONDS=str(TEST_SECONDS), OMP_NUM_THREADS="1",
               NCZARRFS_SUITE_VIRTUAL=":".join(virtual))
    scratch = os.path.join(where, "pytest")
    command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "record",
               "-W", "ignore", "--tb=short", f"--rootdir={folder}", f"--basetemp={scratch}", "-k",
               expression, *(os.path.join(folder, f) for f in files)]
    with open(out + ".log", "a", encoding="utf-8") as log:
        status, text = limited(command, where, env, SUITE_SECONDS)
        log.write(text)
    return read_results(out), status if status not in (0, 1) else None


def read_results(out):
    results = {}
    if os.path.exists(out):
        with open(out, encoding="utf-8") as f:
            for line in f:
                what, test, text = line.rstrip("\n").split("\t", 2)
                if what == "begun":
                    what, text = "failed", "'the process ended in this test'"
                results[test] = (what, text)
    return results


def run_commands(where, out, args):
    results = {}
    for name, command in COMMANDS.items():
        if (args.sample and name not in SAMPLE) or (args.k and args.k not in name):
            continue
        if not shutil.which(command[0]):
            results[name] = ("skipped", f"{command[0]} is not installed")
            continue
        folder = os.path.join(where, name.replace(" ", "-"))
        os.mkdir(folder)
        status, text = limited(command, folder, dict(os.environ), TEST_SECONDS)
        with open(out + ".log", "a", encoding="utf-8") as log:
            log.write(f"== {name}: {status}\n{text}\n")
        # stress-ng: 3 is a lack of resources, 4 a stressor that this system has not
        if status in (3, 4) and command[0] == "stress-ng":
            results[name] = ("skipped", text[-200:])
        else:
            bad = "fail:" in text or "verify failed" in text
            results[name] = ("failed" if status or bad else "passed", repr(text[-300:]))
    return results, None


def execute(suite, where, out, args, virtual=()):
    if suite == "programs":
        return run_commands(where, out, args)
    return run_pytest(suite, where, out, args, virtual)


def start(t, mount):
    """Mount what is written to. Returns the mounts, and the folder or the files in them."""
    if mount == "mirror":
        source = t.path("mirror")
        os.mkdir(source)
        m = t.mount(source, "rw", foreground=True)
        return [m], m.path, ()
    if mount == "tree":
        import h5py
        source = t.path(NAME + ".nc")
        with h5py.File(source, "w", track_order=True):
            pass
        m = t.mount(source, "rw", foreground=True)
        return [m], m.path, ()
    mounts = []
    for i in range(4):
        source = t.path(f"{NAME}{i}.zarr")
        os.mkdir(source)
        with open(os.path.join(source, ".zgroup"), "w", encoding="ascii") as f:
            f.write('{"zarr_format": 2}')
        mounts.append(t.mount(source, "rw", foreground=True))
    where = t.path("scratch")
    os.mkdir(where)
    return mounts, where, [os.path.join(m.path, f"{NAME}{i}.nc") for i, m in enumerate(mounts)]


def job(suite, mount, tmp, args):
    """What each test of a suite came to, and what else is wrong with the run."""
    folder = os.path.join(tmp, f"{suite}-{mount}")
    os.mkdir(folder)
    out = os.path.join(folder, "results")
    begun = time.monotonic()
    problem = None
    if mount == "disk":
        where = os.path.join(folder, "disk")
        os.mkdir(where)
        results, problem = execute(suite, where, out, args)
    else:
        t = Context(folder)
        mounts, base, virtual = start(t, mount)
        # "suite.zarr" in a mirror is a netCDF-4 file: a store in it is a group of that
        name = "suite.zarr" if mount == "mirror" and suite in ("zarr", "storage") else "suite"
        where = base if virtual else os.path.join(base, name)
        if not virtual:
            os.mkdir(where)
        results, problem = execute(suite, where, out, args, virtual)
        for m in mounts:  # files that belong to no dataset are kept, and make the status 1
            m.ended = m.server_alive()
        text = "\n".join(filter(None, (m.unmount(120.0) for m in mounts)))
        if any(m.exit_status() not in (0, 1) for m in mounts):
            text += "\na mount ended with an unexpected status"
        problem = problem or text or None
    counts = [sum(w == k for w, _ in results.values()) for k in ("passed", "failed", "skipped")]
    print(f"{suite} on {mount}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped in "
          f"{time.monotonic() - begun:.0f} s" + (f": {problem}" if problem else ""), flush=True)
    return results, problem


def compare(suite, mount, native, got, lines, args):
    """Counts of passed, failed and skipped, and a line for each failure."""
    passed = skipped = 0
    bad = []
    for test, (what, _) in native.items():
        if what != "passed":
            skipped += 1
            continue
        now, text = got.get(test, ("failed", "'the test did not run'"))
        if now == "skipped":
            now = "failed"
        mine = [x for x in lines if x.matches(mount, suite, test)]
        for x in mine:
            x.used[mount][now == "failed"] += 1
        if now == "failed" and args.show:
            print(f"{mount} {suite} {test} # {text}", flush=True)
        if now == "passed":
            passed += 1
        elif mine:
            skipped += 1
        else:
            bad.append(f"FAIL {mount} {suite} {test}: {text}")
    return passed, bad, skipped


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("-j", type=int, default=2)
    p.add_argument("-s", action="append")
    p.add_argument("-m", action="append")
    p.add_argument("-k")
    p.add_argument("--sample", action="store_true")
    p.add_argument("--show", action="store_true")
    p.add_argument("--keep")
    args = p.parse_args()
    lines = listed()
    where = {s: v[3] for s, v in PYTEST.items() if not args.sample or v[4]}
    where["programs"] = ("mirror",)
    if args.s:
        where = {s: where[s] for s in args.s}
    pairs = [(s, m) for s in where for m in where[s] if not args.m or m in args.m]
    todo = sorted({(s, "disk") for s, _ in pairs}) + pairs
    tmp = args.keep or tempfile.mkdtemp(prefix="nczarrfs-suites-")
    os.makedirs(tmp, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(min(args.j, 2)) as pool:
        futures = {x: pool.submit(job, *x, tmp, args) for x in todo}
        done = {x: f.result() for x, f in futures.items()}
    passed = skipped = 0
    bad = []
    for (suite, mount), (got, problem) in done.items():
        if problem:
            bad.append(f"FAIL {suite} on {mount}: {problem}")
        if mount != "disk":
            good, wrong, out = compare(suite, mount, done[suite, "disk"][0], got, lines, args)
            passed, skipped = passed + good, skipped + out
            bad += wrong
    for x in lines:
        for mount, (good, wrong) in x.used.items():
            if good and not wrong and not x.sometimes:
                bad.append(f"FAIL expected.list:{x.number}: all tests of the line pass on {mount}")
    print(*bad, sep="\n")
    if bad or args.keep:
        print("logs are in", tmp)
    else:
        shutil.rmtree(tmp)
    print(f"{passed} passed, {len(bad)} failed, {skipped} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
