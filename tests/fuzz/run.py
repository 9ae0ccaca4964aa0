#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py [-n N | -t SECONDS] [TARGET ...]: the fuzz targets.

A target is tests/fuzz/MODULE/fuzz_NAME.c with its kept inputs in tests/fuzz/seeds/NAME; of
fuzz_codec.c, which runs the codec that an input names, there is one for each codec besides: its
name is that of its folder in tests/fuzz/seeds ("lz4-32004"). None named: all. A line in the file's
head "max_len: N" is how long inputs get (4096); tests/fuzz/dicts/NAME has words that they are made
of.

-n: each kept input, and N damaged copies of it, always the same ones, by build-asan/fuzz. -t: for
so many seconds each, by libFuzzer (build-fuzz) where it was built, which keeps what it finds in
build-fuzz/corpus; else by build-asan/fuzz. What ends badly stays in build-*/crashes/NAME until
--recheck finds it mended. Exit status 1 when a run found something.

--spent: the processor time that targets have had in all runs with -t, and what is open. --until
SECONDS: only targets that had less, those that had least first. --replay TARGET FILE...: these
inputs. --recheck: what was found once more; what passes goes to the corpus. --merge: those inputs
of the corpus that reach something new, and are small, become kept ones. --libfuzzer: whether clang
has it, as the exit status."""
import argparse
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SEEDS = os.path.join(HERE, "seeds")
LEAKS = os.path.join(HERE, "lsan.supp")  # of libraries
BUILD_FUZZ = os.path.join(ROOT, "build-fuzz")
BUILD_ASAN = os.path.join(ROOT, "build-asan")
SLOW = 20  # seconds that an input may take
LIMIT = 300  # seconds for -n, and for a program to end after its time
FINDINGS_MAX = 5  # of one run of one target
KEPT_MAX = 4096  # bytes of an input that --merge keeps
KEPT_SUM = 48 << 10  # of one target
KEPT_FILES = 60  # of one target


def has_libfuzzer():
    """Whether a program of it can be built."""
    source = b"int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n ? 0 : 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(["clang", "-x", "c", "-", "-fsanitize=fuzzer,address", "-o",
                                   os.path.join(folder, "x")], input=source,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            return False
        return done.returncode == 0


def program_of(target):
    return "fuzz_" + ("codec" if re.search(r"-\d+$", target) else target)


def source_of(target):
    """The file of a target's program; None: there is none."""
    found = glob.glob(os.path.join(HERE, "*", program_of(target) + ".c"))
    return found[0] if found else None


def known():
    """All targets with kept inputs."""
    return sorted(x for x in os.listdir(SEEDS) if source_of(x))


def targets(names):
    have = known()
    for n in names:
        if n not in have:
            sys.exit(f"run.py: no target {n!r}; there are {' '.join(have)}")
    return names or have


def max_len(target):
    with open(source_of(target)) as f:
        found = re.search(r"max_len: (\d+)", f.read(3000))
    return int(found.group(1)) if found else 4096


def environment(target):
    env = dict(os.environ, FUZZ_CODEC=target if program_of(target) != "fuzz_" + target else "")
    env["ASAN_OPTIONS"] = "allocator_may_return_null=1:detect_leaks=1:max_allocation_size_mb=1024"
    # aborts, as gcc's libubsan does not call what the program has for its end
    env["UBSAN_OPTIONS"] = "print_stacktrace=1:abort_on_error=1"
    env["LSAN_OPTIONS"] = "suppressions=" + LEAKS + \
        ":print_suppressions=0"
    return env


def fuzzer_of(target):
    """libFuzzer's program; None: it was not built."""
    path = os.path.join(BUILD_FUZZ, "fuzz", program_of(target))
    return path if os.access(path, os.X_OK) else None


def folder_of(build, kind, target):
    path = os.path.join(build, kind, target)
    os.makedirs(path, exist_ok=True)
    return path


def fuzz_words(target, seconds):
    """libFuzzer's command for so many seconds."""
    words = [fuzzer_of(target), f"-max_total_time={seconds}", f"-timeout={SLOW}",
             "-rss_limit_mb=4096", "-print_final_stats=1", f"-max_len={max_len(target)}",
             "-reload=0", f"-artifact_prefix={folder_of(BUILD_FUZZ, 'crashes', target)}/"]
    words_file = os.path.join(HERE, "dicts", target)
    if os.path.exists(words_file):
        words.append(f"-dict={words_file}")
    return words + [folder_of(BUILD_FUZZ, "corpus", target), os.path.join(SEEDS, target)]


def replay_words(target, how):
    program = os.path.join(BUILD_ASAN, "fuzz", program_of(target))
    return [program] + how + [os.path.join(SEEDS, target)]


# ---- one run ----

lock = threading.Lock()


class Result:
    """What a run of a target came to."""

    def __init__(self, target):
        self.target = target
        self.runs = self.edges = self.corpus = 0
        self.cpu = self.wall = 0.0
        self.findings = []  # texts

    def line(self):
        parts = [f"{self.runs} runs", f"{self.cpu:.0f} s of CPU"]
        if self.edges:
            parts.append(f"{self.edges} edges")
        return (f"{self.target}: {', '.join(parts)}, {self.corpus} inputs, "
                f"{len(self.findings)} findings")


def run_program(words, env, cwd, limit):
    """(exit status or None when it does not end, its output, seconds of processor)"""
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT)
        timer = threading.Timer(limit, p.kill)
        timer.start()
        try:
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
        finally:
            late = not timer.is_alive()
            timer.cancel()
        out.seek(0)
        text = out.read().decode(errors="replace")
    return None if late else p.returncode, text, used.ru_utime + used.ru_stime


def take(result, text, cpu):
    """What a program says of itself."""
    result.cpu += cpu
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    runs += re.findall(r"inputs, (\d+) runs", text)
    if not runs:  # it ended early
        runs = re.findall(r"^#(\d+)\s", text, re.M)
    result.runs += int(runs[-1]) if runs else 0
    for kind, n in re.findall(r"(cov|corp): (\d+)", text):
        if kind == "cov":
            result.edges = max(result.edges, int(n))
        else:
            result.corpus = int(n)


def finding(target, status, text, before, folder):
    """A text that says what was found and how to see it again."""
    files = sorted(set(os.listdir(folder)) - before)
    how = "\n".join(f"  again: tests/fuzz/run.py --replay {target} "
                    f"{os.path.relpath(os.path.join(folder, f), ROOT)}" for f in files)
    what = "does not end" if status is None else f"ended with {status}"
    lines = [x[:300] for x in text.splitlines()
             if not re.match(r"#\d+\s+(NEW|REDUCE|pulse|INITED)|INFO: ", x)]
    if len(lines) > 90:
        lines[60:-30] = ["..."]
    return f"{target}: {what}\n" + "\n".join(lines) + f"\n{how}"


def run(target, args):
    result = Result(target)
    env, start = environment(target), time.monotonic()
    fuzzed = args.t and fuzzer_of(target)
    build = BUILD_FUZZ if fuzzed else BUILD_ASAN
    folder = folder_of(build, "crashes", target)
    while len(result.findings) < FINDINGS_MAX:
        left = args.t - int(time.monotonic() - start)
        if args.t and left <= 0:
            break
        before = set(os.listdir(folder))
        if fuzzed:
            words = fuzz_words(target, left)
        else:
            words = replay_words(target, ["-s", str(args.s), "-l", str(SLOW)] + (
                ["-t", str(left)] if args.t else ["-n", str(args.n)]))
        status, text, cpu = run_program(words, env, folder, left + LIMIT)
        take(result, text, cpu)
        if status == 0:
            break
        result.findings.append(finding(target, status, text, before, folder))
        if not args.t:
            break
    result.wall = time.monotonic() - start
    if not result.corpus:
        result.corpus = len(os.listdir(os.path.join(SEEDS, target)))
    if args.t:
        spend(result)
    return result


# ---- all runs ----

def spent_path(target):
    return os.path.join(folder_of(BUILD_FUZZ, "spent", ""), target + ".json")


def spent(target):
    try:
        with open(spent_path(target)) as f:
            return json.load(f)
    except (FileNotFoundError, ValueError):
        return {"cpu": 0.0, "wall": 0.0, "runs": 0, "edges": 0, "corpus": 0, "findings": 0}


def spend(result):
    """Add a run to what a target had before."""
    with lock:
        s = spent(result.target)
        for key in ("cpu", "wall", "runs"):
            s[key] += getattr(result, key)
        s["edges"] = max(s["edges"], result.edges)
        s["corpus"] = result.corpus
        s["findings"] += len(result.findings)
        part = spent_path(result.target) + ".new"
        with open(part, "w") as f:
            json.dump(s, f)
        os.replace(part, spent_path(result.target))


def crashes(target):
    """Paths of what was found and is not mended."""
    found = []
    for build in (BUILD_FUZZ, BUILD_ASAN):
        folder = os.path.join(build, "crashes", target)
        if os.path.isdir(folder):
            found += [os.path.join(folder, x) for x in sorted(os.listdir(folder))]
    return found


def show_spent(names):
    print(f"{'target':24} {'CPU s':>8} {'runs':>12} {'edges':>6} {'corpus':>7} "
          f"{'found':>6} {'open':>5}")
    for t in names:
        s = spent(t)
        print(f"{t:24} {s['cpu']:8.0f} {s['runs']:12} {s['edges']:6} {s['corpus']:7} "
              f"{s['findings']:6} {len(crashes(t)):5}")
    print(f"{'all':24} {sum(spent(t)['cpu'] for t in names):8.0f} "
          f"{sum(spent(t)['runs'] for t in names):12}")


def replay(target, files):
    """Exit status of a target with these inputs."""
    program = fuzzer_of(target) or os.path.join(BUILD_ASAN, "fuzz", program_of(target))
    worst = 0
    for f in files:
        done = subprocess.run([program, os.path.abspath(f)], env=environment(target),
                              cwd=folder_of(BUILD_ASAN, "tmp", target))
        print(f"{target} {f}: {'ok' if done.returncode == 0 else done.returncode}")
        worst = worst or done.returncode != 0
    return 1 if worst else 0


def recheck(names):
    """What was found once more; what is mended becomes an input like others."""
    left = 0
    for t in names:
        for path in crashes(t):
            if replay(t, [path]):
                left += 1
            else:
                shutil.move(path, os.path.join(folder_of(BUILD_FUZZ, "corpus", t),
                                               os.path.basename(path)))
    print(f"{left} findings are open")
    return 1 if left else 0


def merge(names):
    """Kept inputs, and of the corpus what reaches something else, the smallest first."""
    for t in names:
        seeds = os.path.join(SEEDS, t)
        corpus = folder_of(BUILD_FUZZ, "corpus", t)
        with tempfile.TemporaryDirectory() as folder:
            small = os.path.join(folder, "small")
            out = os.path.join(folder, "out")
            os.mkdir(small)
            os.mkdir(out)
            for name in os.listdir(corpus):
                if os.path.getsize(os.path.join(corpus, name)) <= KEPT_MAX:
                    os.link(os.path.join(corpus, name), os.path.join(small, name))
            for name in os.listdir(seeds):
                shutil.copy(os.path.join(seeds, name), out)
            here = set(os.listdir(out))
            subprocess.run([fuzzer_of(t), "-merge=1", "-timeout=20", out, small],
                           env=environment(t), cwd=folder, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            new = [os.path.join(out, x) for x in os.listdir(out) if x not in here]
            room = KEPT_SUM - sum(os.path.getsize(os.path.join(seeds, x)) for x in here)
            kept = 0
            for path in sorted(new, key=lambda x: (os.path.getsize(x), x)):
                room -= os.path.getsize(path)
                if room < 0 or len(here) + kept >= KEPT_FILES:
                    break
                shutil.copy(path, seeds)
                kept += 1
        print(f"{t}: {len(new)} of the corpus reach something new, {kept} kept", flush=True)


def options(words=None):
    p = argparse.ArgumentParser(description="the fuzz targets")
    p.add_argument("-n", type=int, default=100, help="damaged copies of each kept input")
    p.add_argument("-s", type=int, default=1, help="which ones")
    p.add_argument("-t", type=int, default=0, help="seconds for each target")
    p.add_argument("-j", type=int, default=2, help="targets at a time")
    p.add_argument("--build", help="where programs for -n are, instead of build-asan")
    p.add_argument("--until", type=float, help="seconds of CPU in all runs")
    for name in ("libfuzzer", "spent", "replay", "recheck", "merge", "list"):
        p.add_argument("--" + name, action="store_true")
    p.add_argument("targets", nargs="*")
    return p.parse_args(words)


def main():
    args = options()
    if args.build:
        global BUILD_ASAN
        BUILD_ASAN = os.path.join(ROOT, args.build)
    if args.libfuzzer:
        return 0 if has_libfuzzer() else 1
    if args.replay:
        return replay(args.targets[0], args.targets[1:])
    names = targets(args.targets)
    if args.list:
        print("\n".join(names))
        return 0
    if args.spent:
        return show_spent(names)
    if args.recheck:
        return recheck(names)
    if args.merge:
        return merge(names)
    if args.until:
        names = sorted((t for t in names if spent(t)["cpu"] < args.until),
                       key=lambda t: spent(t)["cpu"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found, runs, cpu = 0, 0, 0.0
    with ThreadPoolExecutor(args.j) as pool:
        for result in pool.map(lambda t: run(t, args), names):
            print("\n".join(result.findings + [result.line()]), flush=True)
            found += len(result.findings)
            runs += result.runs
            cpu += result.cpu
    print(f"fuzz: {len(names)} targets, {runs} runs, {cpu:.0f} s of CPU, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
