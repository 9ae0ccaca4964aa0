#!/usr/bin/python3
"""run.py [-n N | -t SECONDS] [TARGET ...]: fuzz targets that need no mount: every codec (by the
name of its folder in tests/fuzz/seeds: "lz4-32004"), codecs (chains of them), spec (filters as
text), plugin (what a process with a plugin answers), cdf (classic netCDF files), refs (documents
of references). None named: all.

-n: each seed, and N damaged copies of it, always the same ones, by build-asan/fuzz. -t: for so many
seconds each, by libFuzzer (build-fuzz) where it was built, which keeps what it finds in
build-fuzz/corpus; else by build-asan/fuzz. Inputs that end badly stay in build-*/crashes. Exit
status 1 when there are any.

--libfuzzer: whether clang has it, as the exit status."""
import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SEEDS = os.path.join(HERE, "seeds")
PROGRAMS = ("codecs", "spec", "plugin", "cdf", "refs")
LIMIT = 300  # seconds for -n


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


def targets(names):
    known = sorted(os.listdir(SEEDS))
    for n in names:
        if n not in known:
            sys.exit(f"run.py: no target {n!r}; there are {' '.join(known)}")
    return names or known


def command(target, args):
    """(words, environment, folder of crashes)"""
    program = "fuzz_" + (target if target in PROGRAMS else "codec")
    env = dict(os.environ, FUZZ_CODEC=target)
    env["ASAN_OPTIONS"] = "allocator_may_return_null=1:detect_leaks=1:max_allocation_size_mb=1024"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    fuzzer = os.path.join(ROOT, "build-fuzz", "fuzz", program)
    seeds = os.path.join(SEEDS, target)
    if args.t and os.access(fuzzer, os.X_OK) and has_libfuzzer():
        corpus = os.path.join(ROOT, "build-fuzz", "corpus", target)
        crashes = os.path.join(ROOT, "build-fuzz", "crashes", target)
        os.makedirs(corpus, exist_ok=True)
        os.makedirs(crashes, exist_ok=True)
        return [fuzzer, f"-max_total_time={args.t}", "-timeout=20", "-rss_limit_mb=4096",
                "-print_final_stats=1", "-max_len=4096", "-verbosity=0",
                f"-artifact_prefix={crashes}/", corpus, seeds], env, crashes
    program = os.path.join(ROOT, "build-asan", "fuzz", program)
    crashes = os.path.join(ROOT, "build-asan", "crashes", target)
    os.makedirs(crashes, exist_ok=True)
    how = ["-t", str(args.t)] if args.t else ["-n", str(args.n)]
    return [program, "-s", str(args.s)] + how + [seeds], env, crashes


def said(output):
    """What a program says of itself: inputs and runs."""
    lines = output.strip().splitlines()
    runs = [x.split()[-1] for x in lines if x.startswith("stat::number_of_executed_units")]
    return f"{runs[0]} runs" if runs else (lines[-1] if lines else "nothing")


def run(target, args):
    words, env, folder = command(target, args)
    try:
        done = subprocess.run(words, env=env, cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=args.t + LIMIT)
    except subprocess.TimeoutExpired:
        return f"{target}: does not end", True
    text = done.stdout.decode(errors="replace")
    if done.returncode == 0:
        return f"{target}: {said(text)}", False
    return f"{target}: ended with {done.returncode}, see {folder}\n{text[-6000:]}", True


def main():
    p = argparse.ArgumentParser(description="fuzz targets that need no mount")
    p.add_argument("-n", type=int, default=100, help="damaged copies of each seed")
    p.add_argument("-s", type=int, default=1, help="which ones")
    p.add_argument("-t", type=int, default=0, help="seconds for each target")
    p.add_argument("-j", type=int, default=2, help="targets at a time")
    p.add_argument("--libfuzzer", action="store_true")
    p.add_argument("targets", nargs="*")
    args = p.parse_args()
    if args.libfuzzer:
        return 0 if has_libfuzzer() else 1
    failed = []
    with ThreadPoolExecutor(args.j) as pool:
        for text, bad in pool.map(lambda t: run(t, args), targets(args.targets)):
            print(text, flush=True)
            failed += [text] if bad else []
    print(f"fuzz: {len(failed)} targets failed" if failed else "fuzz: ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
