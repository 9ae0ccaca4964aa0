# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about writing, both ways. scripts/bench calls rows(B) with itself: its
helpers are used as B.name. BENCH_WRITE_MB MiB are written through the Zarr view (BENCH_MB;
1024 is the full size), half as much is copied with nccopy."""
import json
import os
import shutil
import subprocess
import time

import inputs

MIB = 1 << 20


def clean(path):
    shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else (
        os.path.exists(path) and os.unlink(path))


def settle():
    """What was written before is on the disk, so that it does not slow down what comes."""
    os.sync()


def zarr_writer(B, root, mb, chain, *sync):
    out = subprocess.run(["/usr/bin/python3", f"{B.TOP}/tests/bench/writer.py", root,
                          str(mb), chain,
                          *sync], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def through_view(B, mb, chain, *options):
    """zarr-python on a new netCDF-4 file; the mount is made before, and synced by the writer."""
    def run():
        file = f"{B.IN}/written.nc"
        clean(file)
        settle()
        with B.ours(file, "rw", "create", *options):
            got = zarr_writer(B, B.MNT, mb, chain, B.MNT)
        got["size"] = os.path.getsize(file)
        return got
    return run


def native(B, mb, chain, sync=False):
    def run():
        tree = f"{B.IN}/written.zarr"
        clean(tree)
        settle()
        got = zarr_writer(B, tree, mb, chain)
        if sync:
            before = time.perf_counter()
            subprocess.run(["sync", "-f", B.IN], check=True)
            got["seconds"] += time.perf_counter() - before
        return got
    return run


def row_zarr(B, mb):
    for chain, name in ("none", "uncompressed"), ("zlib", "shuffle, zlib 1"):
        v = {"mount": through_view(B, mb, chain), "native": native(B, mb, chain),
             "synced": native(B, mb, chain, True)}
        got = B.alternate(v)
        r = B.pairs(got, "native", "mount")
        B.row(f"write {mb} MiB by zarr-python, {name}: rate / native", r, "x", ">= 0.7", r >= 0.7,
              "until it is in the .nc, synced; native without sync",
              f"{B.med(got, 'mount'):.2f} / {B.med(got, 'native'):.2f} s", got)
        r = B.pairs(got, "synced", "mount")
        B.row("  native synced as well: rate / native", r, "x", "", None, "the same",
              f"{B.med(got, 'mount'):.2f} / {B.med(got, 'synced'):.2f} s", got)
    clean(f"{B.IN}/written.nc")
    clean(f"{B.IN}/written.zarr")


def nccopy(source, target):
    start = time.perf_counter()
    subprocess.run(["nccopy", source, target], check=True)
    return {"seconds": time.perf_counter() - start}


def into_mount(B, source, *options):
    def run():
        store = f"{B.IN}/copied.zarr"
        clean(store)
        settle()
        with B.ours(store, "rw", "create", *options):
            return nccopy(source, f"{B.MNT}/copied.nc")
    return run


def to_file(B, source):
    def run():
        clean(f"{B.IN}/copied.nc")
        settle()
        return nccopy(source, f"{B.IN}/copied.nc")
    return run


def row_nccopy(B, mb):
    for name, source in (("uncompressed", B.big()), ("shuffle, deflate", B.deflated())):
        B.warm(source)
        got = B.alternate({"mount": into_mount(B, source), "file": to_file(B, source)})
        r = B.pairs(got, "mount", "file")
        B.row(f"nccopy of {mb} MiB, {name}: into the mount / to a file", r, "x", "<= 1.3", r <= 1.3,
              "source warm; mount made before, all in the store at the end",
              f"{B.med(got, 'mount'):.2f} / {B.med(got, 'file'):.2f} s", got)
    clean(f"{B.IN}/copied.nc")
    clean(f"{B.IN}/copied.zarr")


def rows(B):
    row_zarr(B, int(os.environ.get("BENCH_WRITE_MB", B.MB)))
    row_nccopy(B, B.MB)
