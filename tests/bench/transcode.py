# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about codecs: beside their libraries, and chunks that the mount decodes or
encodes. scripts/bench calls each of ROWS with itself: its helpers are used as B.name."""
import json
import os
import shutil
import subprocess

import inputs

SHUFFLES = ("shuffle", "bitshuffle")
MIB = 1 << 20


def row_libraries(B):
    """Codec by codec, in one process without a mount."""
    out = subprocess.run([f"{B.BUILD}/codecs", "16", str(2 * B.RUNS + 1)], check=True,
                         capture_output=True, text=True).stdout
    for line in out.splitlines():
        r = json.loads(line)
        what = f"{r['codec']} {r['op']}"
        if "ratio" in r:
            B.row(f"{what}: ours / its library", r["ratio"], "x", ">= 0.95", r["ratio"] >= 0.95,
                  "in memory", f"{r['gbs']:.2f} / {r['direct_gbs']:.2f} GB/s", r)
        elif r["codec"] in SHUFFLES:
            B.row(what, r["gbs"], "GB/s", ">= 4", r["gbs"] >= 4, "in memory", "one core", r)
        else:
            B.row(f"  {what}", r["gbs"], "GB/s", "", None, "in memory", "one core", r)


def tree_of(B, name, codec, shuffle):
    """The deflated file's variable as a Zarr array with another compressor."""
    def write(out):
        import netCDF4
        import numcodecs
        import zarr
        shutil.rmtree(out, ignore_errors=True)
        codecs = {"zlib": numcodecs.Zlib(4), "zstd": numcodecs.Zstd(3),
                  "blosc": numcodecs.Blosc(), "lz4": numcodecs.LZ4()}
        with netCDF4.Dataset(B.deflated()) as f:
            v = f["v"]
            z = zarr.open_group(out, mode="w").create_dataset(
                "v", shape=v.shape, chunks=(1, 512, 512), dtype="<f4",
                compressor=codecs[codec], filters=[numcodecs.Shuffle(4)] if shuffle else None,
                fill_value=None)
            for t in range(v.shape[0]):
                z[t] = v[t].data
    return inputs.make(B.IN, f"{name}{B.MB}.zarr", write)


def row_decoded(B):
    """One Python thread: the mount decodes, or zarr-python does."""
    for codec, shuffle in (("zlib", True), ("zstd", True), ("blosc", False), ("lz4", True)):
        tree = tree_of(B, codec, codec, shuffle)
        B.warm(tree)

        def mount(tree=tree):
            return B.ours(tree, "view=zarr", "filter=none")
        got = B.alternate({"native": B.read_by("zarr", B.Native, tree, "v"),
                           "mount": B.read_by("zarr", mount, B.MNT, "v")})
        r = B.pairs(got, "native", "mount")
        B.row(f"{codec}: zarr-python native / decoded by the mount", r, "x", "> 1", r > 1,
              "tree warm, mount cold",
              f"{B.med(got, 'native'):.2f} / {B.med(got, 'mount'):.2f} s", got)


def deflated_1d(B):
    """Chunks of 1 MiB in a row, shuffled and deflated."""
    def write(out):
        import h5py
        import netCDF4
        with netCDF4.Dataset(B.deflated()) as f, h5py.File(out, "w") as g:
            v = f["v"]
            d = g.create_dataset("v", (v.shape[0] * 512 * 512,), "<f4", chunks=(512 * 512,),
                                 shuffle=True, compression=4)
            for t in range(v.shape[0]):
                d[t * 512 * 512:(t + 1) * 512 * 512] = v[t].data.ravel()
    return inputs.make(B.IN, f"deflate1d{B.MB}.h5", write)


def pinned(mount, processors):
    """A server that has these processors only; its readers are pinned by the caller."""
    mount.argv = ["taskset", "-c", ",".join(map(str, processors)), *mount.argv]
    return mount


def reading(B, mount, count, size, processors):
    def run():
        with pinned(mount(), processors):
            ours = os.sched_getaffinity(0)
            os.sched_setaffinity(0, processors)
            try:
                return B.reader(f"{B.MNT}/v", count, size, threads=len(processors))
            finally:
                os.sched_setaffinity(0, ours)
    return run


def row_scaling(B):
    """The same work on one processor, then on two: the mount decodes ahead of a single reader by
    itself, so that the readers' threads alone would not show it."""
    two = sorted(os.sched_getaffinity(0))[:2]
    if len(two) < 2:
        return
    src, plain = deflated_1d(B), B.big()
    B.warm(src)
    B.warm(plain)
    for what, mount in (("decoded", lambda: B.ours(src, "filter=none")),
                        ("encoded", lambda: B.ours(plain, "filter=*,zstd,3"))):
        got = B.alternate({"one": reading(B, mount, B.MB, 2 * MIB, two[:1]),
                           "two": reading(B, mount, B.MB, 2 * MIB, two)})
        r = B.pairs(got, "one", "two")
        B.row(f"{what} chunks: two processors and readers / one", r, "x", ">= 1.7", r >= 1.7,
              "source warm, mount cold",
              f"{B.med(got, 'two', 'mb_s'):.0f} / {B.med(got, 'one', 'mb_s'):.0f} MB/s", got)


ROWS = {"codecs-libraries": row_libraries, "codecs-decoded": row_decoded,
        "codecs-scaling": row_scaling}
