# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about what is read before the first chunk: the directory of a zip archive of
many chunks, with libzip and Python's zipfile beside it, and a file of references to many files with
fsspec beside it; and about references that are written of a directory, with h5py beside it.
scripts/bench calls rows(B) with itself. BENCH_ENTRIES are the numbers of entries; references lead
to BENCH_TARGETS files, ten chunks in each, and are written of BENCH_FILES files."""
import ctypes.util
import json
import os
import shutil
import subprocess
import time
import zipfile

import inputs

ENTRIES = [int(x) for x in os.environ.get("BENCH_ENTRIES", "1000,100000,1000000").split(",")]
TARGETS = int(os.environ.get("BENCH_TARGETS", "100000"))
FILES = int(os.environ.get("BENCH_FILES", "2000"))
SIZE = 64  # bytes of a chunk
EACH = 10  # chunks in a target
RSS = """
import sys, time, json
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096
"""
LIBZIP = RSS + """
import ctypes
z = ctypes.CDLL(sys.argv[2])
z.zip_open.restype = ctypes.c_void_p
z.zip_get_num_entries.restype = ctypes.c_int64
before, t = rss(), time.perf_counter()
a = z.zip_open(sys.argv[1].encode(), 16, None)  # ZIP_RDONLY
n = z.zip_get_num_entries(ctypes.c_void_p(a), 0)
print(json.dumps({"seconds": time.perf_counter() - t, "bytes": (rss() - before) / n}))
"""
ZIPFILE = RSS + """
import zipfile
before, t = rss(), time.perf_counter()
n = len(zipfile.ZipFile(sys.argv[1]).namelist())
print(json.dumps({"seconds": time.perf_counter() - t, "bytes": (rss() - before) / n}))
"""
FSSPEC = RSS + """
import fsspec
before, t = rss(), time.perf_counter()
fs = fsspec.filesystem("reference", fo=sys.argv[1])
n = len(fs.references)
seconds = time.perf_counter() - t
print(json.dumps({"seconds": seconds, "bytes": (rss() - before) / n}))
"""

# What a scanner in Python has to ask of each file: attributes, and the place of each chunk.
SCAN = """
import glob, h5py, json, sys, time
def look(name, d):
    dict(d.attrs)
    if isinstance(d, h5py.Dataset) and d.chunks:
        for i in range(d.id.get_num_chunks()):
            d.id.get_chunk_info(i)
t = time.perf_counter()
for path in sorted(glob.glob(sys.argv[1] + "/*.nc")):
    with h5py.File(path) as f:
        f.visititems(look)
print(json.dumps({"seconds": time.perf_counter() - t}))
"""


def documents(n):
    """Of a Zarr v2 array of n chunks, and of the group that it is in."""
    meta = {"zarr_format": 2, "shape": [n * SIZE], "chunks": [SIZE], "dtype": "|u1", "order": "C",
            "fill_value": 0, "filters": None, "compressor": None}
    return {".zgroup": '{"zarr_format": 2}', "v/.zarray": json.dumps(meta)}


def archive(path, n):
    with zipfile.ZipFile(path, "w") as z:
        for key, text in documents(n).items():
            z.writestr(key, text)
        for i in range(n):
            z.writestr(f"v/{i}", bytes([i % 251]) * SIZE)


def references(path, targets):
    n = targets * EACH
    refs = documents(n) | {f"v/{i}": [f"targets/{i // EACH:06}.bin", i % EACH * SIZE, SIZE]
                           for i in range(n)}
    with open(path, "w") as f:
        json.dump({"version": 1, "refs": refs}, f)
    os.makedirs(os.path.join(os.path.dirname(path), "targets"), exist_ok=True)
    for i in 0, targets - 1:
        with open(os.path.join(os.path.dirname(path), f"targets/{i:06}.bin"), "wb") as f:
            f.write(bytes(range(EACH)) * SIZE)


def run(code, *argv):
    return json.loads(subprocess.run(["/usr/bin/python3", "-c", code, *argv], check=True,
                                     capture_output=True, text=True).stdout)


def resident(B):
    return sum(B.status_kib(p, "VmRSS") for p in B.server_pids()) * 1024


def rows(B):
    libzip = ctypes.util.find_library("zip")
    empty = inputs.make(B.IN, "archive1.zip", archive, 1)
    base = B.start(empty, lambda out, _: out.update(bytes=resident(B)))
    for n in ENTRIES:
        src = inputs.make(B.IN, f"archive{n}.zip", archive, n)
        B.warm(src)
        v = {"ours": lambda: B.start(src, lambda out, _: out.update(
            bytes=(resident(B) - base["bytes"]) / n))}
        v["zipfile"] = lambda: run(ZIPFILE, src)
        if libzip:
            v["libzip"] = lambda: run(LIBZIP, src, libzip)
        got = B.alternate(v)
        others = [name for name in v if name != "ours"]
        B.row(f"zip of {n} chunks: mount and ls of the root", B.med(got, "ours"), "s", "", None,
              "source warm", ", ".join(f"{x} {B.med(got, x):.3f} s" for x in others), got)
        b = B.med(got, "ours", "bytes")
        B.row("  ... memory for an entry", b, "bytes", "<= 100", b <= 100 if n >= 100000 else None,
              "resident, beyond that of one entry",
              ", ".join(f"{x} {B.med(got, x, 'bytes'):.0f}" for x in others), got)


def row_references(B):
    n = TARGETS * EACH
    small = inputs.make(B.IN, "refs1.json", references, 1)
    src = inputs.make(B.IN, f"refs{TARGETS}.json", references, TARGETS)
    B.warm(src)

    def last(out, t):
        with open(f"{B.MNT}/v/{n - 1}", "rb") as f:
            if len(f.read()) != SIZE:
                raise SystemExit("bench: the last chunk is not what it should be")
        out["chunk"] = time.perf_counter() - t
        out["bytes"] = (resident(B) - base["bytes"]) / n
    given, B.OPTS = B.OPTS, ",".join(o for o in (B.OPTS, "view=zarr") if o)
    try:
        base = B.start(small, lambda out, _: out.update(bytes=resident(B)))
        got = B.alternate({"ours": lambda: B.start(src, last), "fsspec": lambda: run(FSSPEC, src)})
    finally:
        B.OPTS = given
    r = B.pairs(got, "ours", "fsspec")
    B.row(f"{n} references to {TARGETS} files: mount / fsspec", r, "x", "<= 1", r <= 1,
          "source warm", f"{B.med(got, 'ours'):.2f} / {B.med(got, 'fsspec'):.2f} s; "
          f"the last chunk read after {B.med(got, 'ours', 'chunk'):.2f} s", got)
    b = B.med(got, "ours", "bytes")
    B.row("  ... memory for a reference", b, "bytes", "", None,
          "resident, beyond that of ten", f"fsspec {B.med(got, 'fsspec', 'bytes'):.0f}", None)


def small_files(path, n):
    """Files with three coordinates and two variables of two compressed chunks each."""
    import netCDF4
    import numpy as np
    os.mkdir(path)
    for i in range(n):
        with netCDF4.Dataset(f"{path}/{i:06}.nc", "w") as f:
            for name, size in ("time", None), ("lat", 45), ("lon", 90):
                f.createDimension(name, size)
                v = f.createVariable(name, "f8", (name,))
                v[:] = np.arange(size or 2)
                v.units = "1"
            for name in "temperature", "pressure":
                v = f.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True, shuffle=True,
                                     complevel=1, chunksizes=(1, 45, 90))
                v[:] = np.random.default_rng(i).integers(0, 50, (2, 45, 90))
                v.units = "K"


def written(B, source, out):
    shutil.rmtree(out, ignore_errors=True)
    if os.path.exists(out):
        os.unlink(out)
    t = time.perf_counter()
    subprocess.run([B.OURS, "refs", source, out], check=True, stdout=subprocess.DEVNULL)
    return {"seconds": time.perf_counter() - t}


def row_directory(B):
    src = inputs.make(B.IN, f"small{FILES}", small_files, FILES)
    B.warm(src)
    got = B.alternate({"json": lambda: written(B, src, f"{B.BUILD}/small.json"),
                       "parquet": lambda: written(B, src, f"{B.BUILD}/small.parq"),
                       "h5py": lambda: run(SCAN, src)})
    rate = {name: FILES / B.med(got, name) for name in got}
    B.row(f"references of {FILES} small files: files a second", rate["json"], "files/s", ">= 1000",
          rate["json"] >= 1000, "source warm",
          f"Parquet {rate['parquet']:.0f}, an h5py loop, which writes nothing, {rate['h5py']:.0f}",
          got)


ROWS = {"archives": rows, "references": row_references, "directory": row_directory}
