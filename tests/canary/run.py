#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py address|thread|replay|libfuzzer; run.py watch COMMAND...

Whether a sanitizer sees faults that are there on purpose. Each is built as everything else is with
it, and run as everything else is run: a program, a child that it began, a fuzz target. Exit status
1 when a report is missing. watch: a command, and whether a sanitizer has a report in what it says,
which a program that went on may not tell otherwise.

Of the server and its children on a real mount tests/cases/mount/test_canary.py asks the same, of
valgrind tests/cases/mount/test_sanitizers.py."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "fuzz"))
sys.dont_write_bytecode = True
import run as fuzz  # noqa: E402

HEAP = "heap-buffer-overflow"
UNDEFINED = "signed integer overflow"
LEAK = "detected memory leaks"
RACE = "data race"
REPORT = re.compile(rb"runtime error: |(ERROR|WARNING): (Address|Leak|Thread)Sanitizer")
# what is built, and (kind, place, what a report says)
PROGRAMS = {
    "address": ("1", "build-asan", [("heap", "", HEAP), ("undefined", "", UNDEFINED),
                                    ("leak", "", LEAK), ("heap", "child", HEAP),
                                    ("undefined", "child", UNDEFINED)]),
    "thread": ("thread", "build-tsan", [("race", "", RACE), ("race", "child", RACE)]),
}
FUZZERS = {"replay": ("1", "build-asan"), "libfuzzer": ("fuzz", "build-fuzz")}
INPUTS = [("heap", HEAP), ("undefined", UNDEFINED), ("leak", LEAK), ("slow", "")]


def make(sanitize, target):
    done = subprocess.run(["make", "-s", f"SANITIZE={sanitize}", target], cwd=ROOT)
    if done.returncode:
        sys.exit(f"canary: {target} cannot be built")


def programs(name):
    sanitize, build, rows = PROGRAMS[name]
    program = os.path.join(build, "tests", "canary")
    make(sanitize, program)
    bad = []
    for kind, place, text in rows:
        done = subprocess.run([os.path.join(ROOT, program), kind] + ([place] if place else []),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = done.stdout.decode(errors="replace")
        if text not in said or (not place and done.returncode == 0):
            bad.append(f"{name}: {kind} {place}: ended with {done.returncode}: {said[-500:]}")
    return bad


def fuzzers(name):
    """Through the functions that run all other targets."""
    sanitize, build = FUZZERS[name]
    make(sanitize, f"{build}/fuzz/fuzz_canary")
    bad = []
    with tempfile.TemporaryDirectory() as tmp:
        fuzz.SEEDS = os.path.join(tmp, "seeds")
        fuzz.HERE = HERE
        fuzz.LIMIT = 60
        if name == "libfuzzer":
            os.makedirs(os.path.join(tmp, "fuzz"))
            os.symlink(os.path.join(ROOT, build, "fuzz", "fuzz_canary"),
                       os.path.join(tmp, "fuzz", "fuzz_canary"))
            fuzz.BUILD_FUZZ = tmp
        fuzz.FINDINGS_MAX = 1
        fuzz.SLOW = 2
        seed = os.path.join(fuzz.SEEDS, "canary", "seed")
        os.makedirs(os.path.dirname(seed))
        for kind, text in INPUTS:
            with open(seed, "w") as f:
                f.write(kind)
            shutil.rmtree(os.path.join(fuzz.BUILD_ASAN if name == "replay" else tmp, "crashes",
                                       "canary"), ignore_errors=True)
            args = fuzz.options(["-t", "4" if name == "libfuzzer" else "0", "-n", "0"])
            result = fuzz.run("canary", args)
            if not result.findings or text not in result.findings[0] or (
                    kind != "leak" and "again:" not in result.findings[0]):
                bad.append(f"{name}: {kind}: {(result.findings or ['nothing found'])[0][-500:]}")
    return bad


def watch(words):
    """Exit status of a command; 1 when there is a report in what it says."""
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    reports = 0
    for line in p.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        reports += REPORT.search(line) is not None
    if reports:
        print(f"canary: {reports} lines of reports of sanitizers")
    return p.wait() or (1 if reports else 0)


def main():
    if sys.argv[1:2] == ["watch"]:
        return watch(sys.argv[2:])
    bad = []
    for name in sys.argv[1:]:
        bad += programs(name) if name in PROGRAMS else fuzzers(name)
    print("\n".join(bad) or f"canary: {' '.join(sys.argv[1:])}: all seen")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
