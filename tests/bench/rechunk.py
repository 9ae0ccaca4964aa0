# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about chunks of other shapes (-o rechunk=): maps that are read as time
series, through a mount, and through a copy in these chunks. scripts/bench calls each of ROWS with
itself."""
import shutil
import subprocess
import time

RULE = "rechunk=time=all,y=64,x=64"

# The copy that a script makes: all of the variable in memory, then written in the new chunks.
COPY = """
import sys, netCDF4, zarr
v = netCDF4.Dataset(sys.argv[1])["v"]
v.set_auto_mask(False)
z = zarr.open_group(sys.argv[2], mode="w").create_dataset(
    "v", shape=v.shape, chunks=(v.shape[0], 64, 64), dtype="<f4", compressor=None, fill_value=None)
z[...] = v[...]
"""


def through_mount(B, src, *more):
    def run():
        with B.ours(src, RULE, *more) as m:
            got = B.python("zarr", B.MNT, "v", B.MB)
            with open(f"/proc/{m.p.pid}/task/{m.p.pid}/children") as f:
                got["peak"] = B.peak_mib([m.p.pid, *f.read().split()])
            return got
    return run


def first_byte(B, src):
    def run():
        with B.ours(src, RULE):
            start = time.perf_counter()
            with open(f"{B.MNT}/v/0.0.0", "rb", buffering=0) as f:
                f.read(1)
            return {"seconds": time.perf_counter() - start}
    return run


def by_copy(B, make):
    """Seconds to make a copy, and to read it."""
    out = f"{B.BUILD}/rechunked.zarr"

    def run():
        shutil.rmtree(out, ignore_errors=True)
        start = time.perf_counter()
        subprocess.run(make(out), check=True, stdout=subprocess.DEVNULL)
        made = time.perf_counter() - start
        got = B.python("zarr", out, "v", B.MB)
        shutil.rmtree(out)
        return got | {"made": made, "seconds": made + got["seconds"]}
    return run


def row_rechunk(B):
    src = B.deflated()
    B.warm(src)
    state = "source warm, mount cold"
    got = B.alternate({
        "mount": through_mount(B, src),
        "short": through_mount(B, src, f"memory={B.MB * 2100}K"),
        "plain": B.read_by("zarr", lambda: B.ours(src, "filter=none"), B.MNT, "v"),
        "first": first_byte(B, src),
        "script": by_copy(B, lambda out: ["/usr/bin/python3", "-c", COPY, src, out]),
        "convert": by_copy(B, lambda out: [B.OURS, "convert", "-o", RULE, src, out])})
    r = B.pairs(got, "mount", "script")
    B.row("rechunk, full read: mount / copy and its read", r, "x", "<= 1", r <= 1, state,
          f"{B.med(got, 'mount'):.2f} / {B.med(got, 'script'):.2f} s, peak of the server "
          f"{B.med(got, 'mount', 'peak'):.0f} MiB", got)
    for name, what in (("plain", "without rechunk, filter=none"), ("first", "first byte"),
                       ("short", "four passes"),
                       ("convert", "convert and its copy's read")):
        more = ""
        if name == "short":
            more = f", peak of the server {B.med(got, name, 'peak'):.0f} MiB"
        B.row(f"  {what}: / mount", B.pairs(got, name, "mount"), "x", "", None, state,
              f"{B.med(got, name):.2f} s{more}")


ROWS = {"rechunk": row_rechunk}
