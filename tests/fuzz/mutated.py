#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""mutated.py [-n N] [-s SEED] [-b BUILD] [FORMAT ...]: damaged datasets of each format, opened and
read through both kinds of view by BUILD/fuzz/mutated, which makes them (see there).

What is damaged: small files and trees of tests/gen, and small ones of the corpus where it is. A
line for each format. Inputs that our code ended badly with are kept in BUILD/crashes. libhdf5 and
libhdf4, which crash on damaged files, do so in processes of their own: with sanitizers each of
these leaves a report, and what has our code at its top is a finding, too. Exit status 1 when there
are any."""
import argparse
import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

FORMATS = ("hdf5", "netcdf4", "cdf", "hdf4", "zarr2", "nczarr", "zarr3", "zip", "refs")
SIZE_MAX = 120000
TREE_MAX = 60000
OBJECTS_MAX = 120
EACH_MAX = 60        # of the corpus, for each format
CORPUS = os.environ.get("NCZARRFS_CORPUS") or os.path.join(ROOT, "..", "shared", "corpus")
FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ .*?\(([^()]+?)\+0x([0-9a-f]+)\)", re.M)
LIBRARIES = re.compile(r"/lib(hdf5|df|mfhdf|dfalt|mfhdfalt)[-_.\w]*\.so")
QUIET = re.compile(r"AddressSanitizer failed to allocate")
BELOW = re.compile(r"/(lib(asan|ubsan|c|m|z|aec|sz|pthread|gcc_s|jpeg|crypto|stdc\+\+)[-_.\d]|ld-)"
                   r"|\[vdso\]|linux-vdso")


# ---- what is damaged ----

def objects(path):
    """Keys and bytes of a directory, sorted; None when there is too much, or nothing."""
    found = {}
    for base, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(base, name)
            if os.path.isfile(full) and not os.path.islink(full):
                found[os.path.relpath(full, path)] = full
    if not found or len(found) > OBJECTS_MAX or (
            sum(os.path.getsize(f) for f in found.values()) > TREE_MAX):
        return None
    return {k: read(f) for k, f in found.items()}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def packed(parts):
    """As tests/fuzz/damage.h has it."""
    return b"".join(struct.pack("<HI", len(k.encode()), len(v)) + k.encode() + v
                    for k, v in parts.items())


def tree_format(parts):
    if any(os.path.basename(k) == "zarr.json" for k in parts):
        return "zarr3"
    text = b"".join(v for k, v in parts.items() if os.path.basename(k).startswith(".z"))
    return "nczarr" if b"nczarr" in text.lower() else "zarr2"


def generated(folder):
    """(format, name, bytes) of what tests/gen makes."""
    import gen
    from gen import classic as c
    for name, feature in gen.load().items():
        path = os.path.join(folder, name)
        feature.write(path)
        if os.path.exists(path) and os.path.getsize(path) <= SIZE_MAX:
            yield "hdf5", name, read(path)
    made = {f"mixed{v}": c.mixed(v, records=5) for v in (1, 2, 5)}
    made.update({f"single{kind}": c.single(1, kind, records=9) for kind in (c.BYTE, c.SHORT)})
    made.update(names=c.odd_names(), slabs=c.slabs(), gaps=c.gaps(20),
                streaming=c.mixed(2, records=3, numrecs=c.STREAMING))
    for name, file in made.items():
        yield "cdf", name, read(file.write(os.path.join(folder, "c-" + name)))
    yield from generated_trees(folder)
    yield from references()


def generated_trees(folder):
    from gen import trees
    for name, made in trees.load().items():
        path = os.path.join(folder, "t-" + name + made.ending)
        try:
            made.write(path)
        except ImportError:
            continue
        parts = objects(path) if os.path.isdir(path) else None
        if parts:
            yield tree_format(parts), name, packed(parts)
            yield "zip", name, packed(parts)


def new_style(folder):
    """HDF5 as its later versions write it, whose structures have checksums: each kind of index of
    chunks, dense attributes and links."""
    import h5py
    import numpy as np
    data = np.arange(60, dtype="i4").reshape(6, 10)
    cases = {"single": dict(chunks=(6, 10)), "fixed": dict(chunks=(2, 3)),
             "fixed_z": dict(chunks=(2, 3), compression="gzip", shuffle=True, fletcher32=True),
             "extensible": dict(chunks=(1, 5), maxshape=(None, 10)),
             "extensible_z": dict(chunks=(1, 1), maxshape=(None, 10), compression="gzip"),
             "btree2": dict(chunks=(2, 5), maxshape=(None, None)),
             "btree2_z": dict(chunks=(1, 1), maxshape=(None, None), compression="gzip")}
    for name, how in cases.items():
        path = os.path.join(folder, "n-" + name)
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("v", data=data, **how)
            f["v"].attrs["units"] = "K"
            f.create_dataset("early", data=data)
        yield "hdf5", "latest-" + name, read(path)
    path = os.path.join(folder, "n-dense")
    with h5py.File(path, "w", libver="latest") as f:
        g = f.create_group("g", track_order=True)
        for i in range(12):
            g.create_dataset(f"v{i}", data=data[:1, :i + 1])
            g.attrs[f"a{i}"] = i
        f["again"] = g
        f["soft"] = h5py.SoftLink("/g/v1")
    yield "hdf5", "latest-dense", read(path)
    path = os.path.join(folder, "n-fixed_paged")
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("v", shape=(1300,), chunks=(1,), dtype="i1", data=np.arange(1300) % 100)
    yield "hdf5", "latest-fixed_paged", read(path)


def netcdf4(folder):
    try:
        import netCDF4
    except ImportError:
        return
    import numpy as np
    for kind in ("NETCDF4", "NETCDF4_CLASSIC"):
        path = os.path.join(folder, "nc-" + kind)
        with netCDF4.Dataset(path, "w", format=kind) as d:
            d.createDimension("time", None)
            d.createDimension("x", 7)
            t = d.createVariable("time", "f8", ("time",))
            t.units = "days since 2000-01-01"
            t[:] = np.arange(5)
            d.createVariable("x", "i4", ("x",))[:] = np.arange(7)
            v = d.createVariable("v", "f4", ("time", "x"), zlib=True, shuffle=True,
                                 chunksizes=(2, 4), fill_value=-1)
            v[:] = np.arange(35).reshape(5, 7)
            if kind == "NETCDF4":
                g = d.createGroup("g")
                g.createVariable("s", str, ("x",))[:] = np.array(list("abcdefg"), object)
                g.createVariable("deep", "i8", ("time", "x"))[:] = 3
        yield "netcdf4", kind, read(path)


def hdf4(build):
    tool = os.path.join(ROOT, build, "tests", "hdf4_make")
    with tempfile.TemporaryDirectory() as folder:
        for kind in "types", "chunks", "records", "scales", "groups":
            path = os.path.join(folder, kind + ".hdf")
            if os.path.exists(tool) and subprocess.run([tool, kind, path]).returncode == 0:
                yield "hdf4", kind, read(path)


def references():
    """A small tree by references: into a file beside it, in the document, absent."""
    import base64
    import json
    refs = {".zgroup": '{"zarr_format": 2}', ".zattrs": {"a": 1},
            "v/.zarray": json.dumps({"zarr_format": 2, "shape": [10], "chunks": [4],
                                     "dtype": "<i2", "fill_value": -1, "order": "C",
                                     "filters": None, "compressor": None}),
            "v/.zattrs": '{"_ARRAY_DIMENSIONS": ["x"]}', "v/0": ["{{u}}", 8, 8],
            "v/1": "base64:" + base64.b64encode(bytes(range(8))).decode(), "v/2": ["data.bin"]}
    data = bytes(range(64))
    first = json.dumps({"version": 1, "templates": {"u": "data.bin"}, "refs": refs}).encode()
    zero = json.dumps(dict(refs, **{"v/0": ["data.bin", 0, 8]})).encode()
    yield "refs", "json1", packed({"s.json": first, "data.bin": data})
    yield "refs", "json0", packed({"s.json": zero, "data.bin": data[:8]})


def parquet(build, folder):
    """The same, as nczarrfs writes it."""
    import h5py
    import numpy as np
    path, out = os.path.join(folder, "p.h5"), os.path.join(folder, "s.parq")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(40, dtype="i2"), chunks=(4,), compression="gzip")
    binary = os.path.join(ROOT, build, "nczarrfs")
    if not os.path.exists(binary):
        binary = os.path.join(ROOT, "build", "nczarrfs")
    if not os.path.exists(binary):
        return
    done = subprocess.run([binary, "refs", path, out],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    parts = objects(out) if done.returncode == 0 else None
    if parts:
        text = {f"s.parq/{k}": v for k, v in parts.items()}
        yield "refs", "parquet", packed(text)


def corpus():
    """Small ones of others, where they are; taken evenly."""
    found = collections.defaultdict(list)
    where = {"hdf5": "hdf5", "netcdf4": "netcdf4", "classic": "cdf", "hdf4": "hdf4"}
    for folder, kind in where.items():
        for base, folders, names in os.walk(os.path.join(CORPUS, folder)):
            folders.sort()
            found[kind] += [os.path.join(base, n) for n in sorted(names)
                            if 0 < os.path.getsize(os.path.join(base, n)) <= SIZE_MAX]
    for kind, paths in found.items():
        for path in paths[::max(1, len(paths) // EACH_MAX)]:
            yield kind, "corpus-" + os.path.basename(path), read(path)
    for folder in "zarr2", "zarr3":
        trees = []
        for base, folders, names in os.walk(os.path.join(CORPUS, folder)):
            folders.sort()
            if {".zgroup", ".zarray", "zarr.json"} & set(names):
                del folders[:]
                trees.append(base)
        for path in trees[::max(1, len(trees) // EACH_MAX)]:
            parts = objects(path)
            if parts and all(len(k) < 250 for k in parts):
                yield tree_format(parts), "corpus-" + os.path.basename(path), packed(parts)


def bases(folder, args):
    """Files below folder/FORMAT. Returns how many of each there are."""
    made = os.path.join(folder, "made")
    os.makedirs(made)
    counts = collections.Counter()
    steps = [generated(made), new_style(made), netcdf4(made), hdf4(args.build),
             parquet(args.build, made)] + ([] if args.short else [corpus()])
    for step in steps:
        for kind, name, data in step:
            os.makedirs(os.path.join(folder, kind), exist_ok=True)
            with open(os.path.join(folder, kind, f"{counts[kind]:03}-{name}"), "wb") as f:
                f.write(data)
            counts[kind] += 1
    shutil.rmtree(made)
    return counts


# ---- whose code it was ----

def owner(text):
    """'ours', or the library whose code was running."""
    if all(QUIET.search(x) for x in text.strip().splitlines()):
        return "the library"  # it asked for memory that a file claims, and was told so
    if "runtime error:" in text or "LeakSanitizer" in text:
        return "ours"
    for module, _ in FRAME.findall(text):
        if LIBRARIES.search(module):
            return "the library"
        if not BELOW.search(module):
            return "ours"
    return "nobody's"


def sorted_logs(logs):
    """(findings, how many are a library's)"""
    findings, theirs = [], 0
    for name in sorted(os.listdir(logs)):
        text = read(os.path.join(logs, name)).decode(errors="replace")
        if owner(text) == "the library":
            theirs += 1
        elif text.strip():
            findings.append((name, text))
    return findings, theirs


def run(kind, folder, args):
    logs = tempfile.mkdtemp(prefix="nczarrfs-logs-")
    crashes = os.path.join(ROOT, args.build, "crashes")
    os.makedirs(crashes, exist_ok=True)
    env = dict(os.environ, FUZZ_LOGS=logs)
    env["ASAN_OPTIONS"] = (f"log_path={logs}/log:handle_abort=0:allocator_may_return_null=1:"
                           "max_allocation_size_mb=2000:symbolize=0:detect_leaks=1")
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    env["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=" + os.path.join(HERE, "lsan.supp")
    first = args.f or (len(os.listdir(os.path.join(folder, kind))) if args.short else 0)
    words = [os.path.join(ROOT, args.build, "fuzz", "mutated"), "-n", str(args.n), "-s",
             str(args.s), "-f", str(first), "-k", crashes, kind, os.path.join(folder, kind)]
    with open(os.path.join(folder, "said-" + kind), "w+b") as said:
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=said)
        said.seek(0)
        lines = [x for x in said.read().decode(errors="replace").splitlines()
                 if "not so:" in x or x.startswith(kind + ": seed")]
    findings, theirs = sorted_logs(logs)
    text = done.stdout.decode().strip()
    if theirs:
        text += f"; {theirs} crashes of the library"
    bad = done.returncode != 0 or findings
    if bad or args.v:
        text = "\n".join(lines[:40] + [f"--- {n}\n{t[:3000]}" for n, t in findings[:10]] + [text])
    shutil.rmtree(logs)
    return text, bad


def main():
    p = argparse.ArgumentParser(description="damaged datasets, read through both views")
    p.add_argument("-n", type=int, default=100, help="of each format")
    p.add_argument("-s", type=int, default=1, help="which ones")
    p.add_argument("-f", type=int, default=0, help="the first round")
    p.add_argument("-b", dest="build", default="build-asan")
    p.add_argument("-j", type=int, default=2, help="formats at a time")
    p.add_argument("-v", action="store_true", help="say more")
    p.add_argument("--short", action="store_true",
                   help="without the corpus, and only what is damaged")
    p.add_argument("formats", nargs="*")
    args = p.parse_args()
    folder = tempfile.mkdtemp(prefix="nczarrfs-mutated-")
    failed = 0
    try:
        counts = bases(folder, args)
        kinds = [k for k in args.formats or FORMATS if counts[k]]
        print(", ".join(f"{counts[k]} {k}" for k in kinds), "to damage", flush=True)
        with ThreadPoolExecutor(args.j) as pool:
            for text, bad in pool.map(lambda k: run(k, folder, args), kinds):
                print(text, flush=True)
                failed += bool(bad)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"mutated: {failed} formats failed" if failed else "mutated: ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
