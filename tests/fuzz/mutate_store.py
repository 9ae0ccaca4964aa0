#!/usr/bin/python3
"""mutate_store.py [-n N] [-s SEED] [-k KEEP] [PROGRAM]: damaged Zarr stores for
build-asan/fuzz/fuzz_store.

Small trees of tests/gen, as directories and as archives, get one to three objects damaged: bytes,
numbers and words of documents, lengths; or objects are left out. Each goes through the program in
a process of its own, as with mutate.py, whose verdicts these are. Exit status 1 when our code
ended badly."""
import argparse
import collections
import io
import os
import random
import re
import shutil
import struct
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

import mutate  # noqa: E402

SIZE_MAX = 60000
OBJECTS_MAX = 120
NUMBERS = (b"0", b"-1", b"1", b"2.5", b"1e400", b"NaN", b"4294967296", b"9223372036854775807",
           b"18446744073709551616", b"null", b'"7"', b"[]", b"{}", b"true")
WORDS = re.compile(rb'"(?:[^"\\]|\\.)*"')


def objects(path):
    """Keys and bytes of a directory, sorted; None when there is too much."""
    found = {}
    for base, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(base, name)
            if os.path.isfile(full):
                with open(full, "rb") as f:
                    found[os.path.relpath(full, path)] = f.read()
    if len(found) > OBJECTS_MAX or sum(map(len, found.values())) > SIZE_MAX:
        return None
    return found


def bases(folder):
    from gen import trees
    found = []
    for name, made in trees.load().items():
        path = os.path.join(folder, name + made.ending)
        try:
            made.write(path)
        except ImportError:
            continue
        if os.path.isdir(path):
            parts = objects(path)
            if parts:
                found.append((name, parts))
    return found


def damage_text(rng, data):
    """A document with another number, word or nesting."""
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?", data)) if rng.random() < 0.6 else (
        list(WORDS.finditer(data)))
    if not places:
        return mutate.damage(rng, data)
    m = rng.choice(places)
    other = rng.choice(places).group(0)
    new = rng.choice(NUMBERS + (other,) * 6)
    return data[:m.start()] + new + data[m.end():]


def damage(rng, parts):
    parts = dict(parts)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        keys = list(parts)
        documents = [k for k in keys if os.path.basename(k)[0] in ".z"]
        key = rng.choice(documents if documents and rng.random() < 0.6 else keys)
        data = parts[key]
        kind = rng.randrange(12)
        if kind == 0 and len(parts) > 1:
            del parts[key]
        elif kind == 1:
            parts[key] = data[:rng.randrange(len(data) + 1)]
        elif kind == 2:
            parts[key] = rng.choice(list(parts.values()))
        elif key in documents and kind < 9:
            parts[key] = damage_text(rng, data)
        elif any(data):
            parts[key] = mutate.damage(rng, data)
    return parts


def as_directory(parts):
    return b"D" + b"".join(struct.pack("<HI", len(k.encode()), len(v)) + k.encode() + v
                           for k, v in parts.items())


def as_archive(rng, parts, hurt):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as z:
        for key, data in parts.items():
            z.writestr(zipfile.ZipInfo(key), data)
    data = out.getvalue()
    return b"Z" + (mutate.damage(rng, data) if hurt else data)


def make(rng, parts, whole):
    """The input for one run; whole: as it is."""
    archive = rng.random() < 0.4
    hurt = archive and rng.random() < 0.3  # the archive itself, not what is in it
    if not whole and not hurt:
        parts = damage(rng, parts)
    return as_archive(rng, parts, hurt and not whole) if archive else as_directory(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=2000)
    parser.add_argument("-s", type=int, default=1)
    parser.add_argument("-k", dest="keep")
    parser.add_argument("program", nargs="?", default=os.path.join(
        mutate.ROOT, "build-asan", "fuzz", "fuzz_store"))
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="nczarrfs-mutate-")
    counts = collections.Counter()
    try:
        trees = bases(work)
        print(f"{len(trees)} trees to damage")

        def one(i):
            rng = random.Random(args.s * 1000003 + i)
            name, parts = trees[i % len(trees)]
            path = os.path.join(work, f"m{i}")
            with open(path, "wb") as f:
                f.write(make(rng, parts, i < len(trees)))
            verdict, text = mutate.run(args.program, path)
            if verdict.startswith(("ours", "nobody")):
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
