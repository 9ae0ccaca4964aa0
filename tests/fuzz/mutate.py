#!/usr/bin/python3
"""mutate.py [-n N] [-s SEED] [-k KEEP] [PROGRAM]: damaged files for build-asan/fuzz/fuzz_source.

Small files of tests/gen, classic ones and, where HDF4 is built in, HDF4 files get a few bytes
changed; each goes through the program in a process of its own, for at most half a minute. What ends
badly is sorted by whose code was running: libhdf5 crashes on damaged files and may; ours may not.
Exit status 1 when ours did. KEEP: a folder for
the inputs that did."""
import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

SIZE_MAX = 200000
SECONDS = 30
OURS = re.compile(r"(base|codecs|translate|nczarr|hdf5view|fusefs|tests/fuzz)/\w+\.[ch]:\d+")
FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ (?:in )?(\S+)?.*", re.M)


def bases(folder):
    """Files to damage: what tests/gen writes, where it is small."""
    import gen
    found = []
    for name, feature in gen.load().items():
        path = os.path.join(folder, name)
        feature.write(path)
        if os.path.exists(path) and os.path.getsize(path) <= SIZE_MAX:
            with open(path, "rb") as f:
                found.append((name, f.read()))
    return found + classic(folder) + hdf4(folder)


def classic(folder):
    from gen import classic as c
    made = {f"mixed{v}": c.mixed(v, records=5) for v in (1, 2, 5)}
    made.update({f"single{kind}": c.single(1, kind, records=9) for kind in (c.BYTE, c.SHORT)})
    made["names"] = c.odd_names()
    found = []
    for name, file in made.items():
        with open(file.write(os.path.join(folder, name)), "rb") as f:
            found.append(("classic-" + name, f.read()))
    return found


def hdf4(folder):
    tool = os.path.join(ROOT, "build-asan", "tests", "hdf4_make")
    found = []
    for kind in "types", "chunks", "records", "scales", "groups":
        path = os.path.join(folder, kind + ".hdf")
        if not os.path.exists(tool) or subprocess.run([tool, kind, path], check=False).returncode:
            return []
        with open(path, "rb") as f:
            found.append(("hdf4-" + kind, f.read()))
    return found


def damage(rng, data):
    """A few bytes changed, mostly in what is not zero; seldom the end cut off."""
    out = bytearray(data)
    places = [i for i in range(0, len(out), 7) if any(out[i:i + 7])]
    for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
        at = min(rng.choice(places) + rng.randrange(7), len(out) - 1)
        kind = rng.randrange(6)
        if kind == 0:
            out[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        elif kind == 1:
            out[at] = (out[at] + rng.choice((1, 255, 16, 240))) & 255
        elif kind == 2:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            out[at:at + 8] = rng.choice((b"\xff" * 8, bytes(8), b"\0\0\0\x80\0\0\0\0",
                                         b"\xff\xff\xff\x7f\0\0\0\0"))[:len(out) - at]
        elif kind == 4:
            src = rng.choice(places)
            part = out[src:src + 8]
            out[at:at + len(part)] = part
        else:
            out[at] = rng.randrange(256)
    if rng.randrange(40) == 0:
        del out[rng.randrange(len(out)):]
    return bytes(out)


def owner(text):
    """'ours' or 'libhdf5', by the innermost frame that is neither libc nor the sanitizer."""
    if "LeakSanitizer" in text and "ERROR: AddressSanitizer" not in text:
        return "ours (leak)"
    for m in FRAME.finditer(text):
        line = m.group(0)
        if "/libhdf5" in line:
            return "libhdf5"
        if OURS.search(line):
            return "ours"
    return "ours" if "runtime error:" in text else "nobody's"


def run(program, path):
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = ("handle_abort=1:allocator_may_return_null=1:detect_leaks=1:"
                           "max_allocation_size_mb=2000:fast_unwind_on_malloc=0")
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    env["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=" + os.path.join(HERE, "lsan.supp")
    p = subprocess.Popen([program, path], env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    slow = False
    try:
        err = p.communicate(timeout=SECONDS)[1]
    except subprocess.TimeoutExpired:
        slow = True
        p.send_signal(6)  # with a stack, so that it is known whose loop it is
        try:
            err = p.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:
            p.kill()
            err = p.communicate()[1]
    text = err.decode(errors="replace")
    if slow:
        return owner(text) + " (slow)", text
    return (owner(text) if p.returncode else "well"), text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=2000)
    parser.add_argument("-s", type=int, default=1)
    parser.add_argument("-k", dest="keep")
    parser.add_argument("program", nargs="?",
                        default=os.path.join(ROOT, "build-asan", "fuzz", "fuzz_source"))
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="nczarrfs-mutate-")
    counts = collections.Counter()
    try:
        files = bases(work)
        print(f"{len(files)} files to damage")

        def one(i):
            rng = random.Random(args.s * 1000003 + i)
            name, data = files[i % len(files)]
            path = os.path.join(work, f"m{i}")
            with open(path, "wb") as f:
                f.write(data if i < len(files) else damage(rng, data))
            verdict, text = run(args.program, path)
            if verdict.startswith("ours") or verdict.startswith("nobody"):
                print(f"--- {verdict}: {name}, input {i} of seed {args.s}\n{text[:5000]}")
                if args.keep:
                    shutil.copy(path, os.path.join(args.keep, f"{name}-{args.s}-{i}"))
            os.unlink(path)
            return verdict
        with ThreadPoolExecutor(2) as pool:
            counts.update(pool.map(one, range(args.n)))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(", ".join(f"{n} {k}" for k, n in counts.most_common()))
    return 1 if any(k.startswith(("ours", "nobody")) for k in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
