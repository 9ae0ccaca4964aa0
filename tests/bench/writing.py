# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about writing, both ways, and about files of a mirror. scripts/bench calls
rows(B) with itself: its helpers are used as B.name. BENCH_WRITE_MB MiB are written through the Zarr
view (BENCH_MB; 1024 is the full size), half as much is copied with nccopy."""
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


def synced(B):
    """The seconds until everything that was written is on the disk."""
    start = time.perf_counter()
    subprocess.run(["sync", "-f", B.IN], check=True)
    return time.perf_counter() - start


def native(B, mb, chain, sync=False):
    def run():
        tree = f"{B.IN}/written.zarr"
        clean(tree)
        settle()
        got = zarr_writer(B, tree, mb, chain)
        if sync:
            got["seconds"] += synced(B)
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


def to_file(B, source, sync=False):
    def run():
        clean(f"{B.IN}/copied.nc")
        settle()
        got = nccopy(source, f"{B.IN}/copied.nc")
        if sync:
            got["seconds"] += synced(B)
        return got
    return run


def row_nccopy(B, mb):
    for name, source in (("uncompressed", B.big()), ("shuffle, deflate", B.deflated())):
        B.warm(source)
        got = B.alternate({"mount": into_mount(B, source), "file": to_file(B, source),
                           "synced": to_file(B, source, sync=True)})
        r = B.pairs(got, "mount", "file")
        B.row(f"nccopy of {mb} MiB, {name}: into the mount / to a file", r, "x", "<= 1.3", r <= 1.3,
              "source warm; mount made before, all in the store at the end",
              f"{B.med(got, 'mount'):.2f} / {B.med(got, 'file'):.2f} s", got)
        B.row("  file synced as well: into the mount / to a file", B.pairs(got, "mount", "synced"),
              "x", "", None, "the same, as the close of the virtual file syncs",
              f"{B.med(got, 'mount'):.2f} / {B.med(got, 'synced'):.2f} s", got)
    clean(f"{B.IN}/copied.nc")
    clean(f"{B.IN}/copied.zarr")


VARIABLES = 20000


def many_variables(path, n):
    import h5py
    import numpy as np
    with h5py.File(path, "w", libver="earliest") as f:
        for i in range(n):
            f.create_dataset(f"v{i:05}", data=np.arange(4, dtype="f4")).attrs["units"] = "K"


def commit_one(B, source):
    """From the write of one attribute until it is in the file."""
    file = f"{B.IN}/one.h5"
    shutil.copy(source, file)
    settle()
    start = time.perf_counter()
    with B.ours(file, "rw"):
        os.listdir(B.MNT)
        opened = time.perf_counter() - start
        doc = f"{B.MNT}/v00003/.zattrs"
        with open(doc) as f:
            text = f.read()
        with open(doc, "w") as f:
            f.write(text.replace('"K"', '"degC"'))
        start = time.perf_counter()
        fd = os.open(B.MNT, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        seconds = time.perf_counter() - start
    clean(file)
    return {"seconds": seconds, "opened": opened}


def row_commit(B):
    source = inputs.make(B.IN, f"variables{VARIABLES}.h5", many_variables, VARIABLES)
    got = B.alternate({"commit": lambda: commit_one(B, source)})
    r = B.med(got, "commit") / B.med(got, "commit", "opened")
    B.row(f"one attribute of {VARIABLES} variables: commit / mount", r, "x", "", None,
          "source warm; until it is in the file, synced",
          f"{B.med(got, 'commit'):.2f} / {B.med(got, 'commit', 'opened'):.2f} s", got)


def read_file(path):
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as f:
        while f.read(MIB):
            pass
    return {"seconds": time.perf_counter() - start}


def row_mirror(B):
    folder, file = f"{B.IN}/mirrored", f"{B.IN}/mirrored/file.bin"
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(file):
        shutil.copy(B.big(), file)
    B.warm(file)

    def mirrored():
        with B.ours(folder):
            return read_file(f"{B.MNT}/file.bin")
    got = B.alternate({"mirror": mirrored, "native": lambda: read_file(file)})
    r = B.pairs(got, "mirror", "native")
    B.row(f"a file of {B.MB} MiB in a mirror: mirror / native", r, "x", "", None,
          "source warm, mount cold",
          f"{B.med(got, 'mirror'):.2f} / {B.med(got, 'native'):.2f} s", got)
    clean(folder)


def rows(B):
    row_zarr(B, int(os.environ.get("BENCH_WRITE_MB", B.MB)))
    row_nccopy(B, B.MB)
    row_commit(B)
    row_mirror(B)
