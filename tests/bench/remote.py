# SPDX-License-Identifier: BSD-3-Clause
"""Reading over a slow line: a mount of a web server whose answers take 50 ms, against curl with
eight requests side by side, and a second read."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""))
from lib.web import WebServer  # noqa: E402

DELAY = 0.05


def tree(path, chunks):
    import numpy as np
    import zarr
    group = zarr.open_group(path, "w")
    a = group.create_dataset("t", shape=(chunks, 512, 512), chunks=(1, 512, 512), dtype="f4",
                             compressor=None)
    a[:] = np.random.default_rng(1).random((chunks, 512, 512), dtype="f4")
    a.attrs["_ARRAY_DIMENSIONS"] = ["time", "y", "x"]
    zarr.consolidate_metadata(path)


READ = """
import sys, time, netCDF4
with netCDF4.Dataset(sys.argv[1]) as nc:
    start = time.perf_counter()
    v = nc["t"]
    for i in range(v.shape[0]):
        v[i]
    print(time.perf_counter() - start)
"""


def read(B):
    out = subprocess.run([sys.executable, "-c", READ, f"{B.MNT}/remote.nc"], check=True,
                         stdout=subprocess.PIPE)
    return float(out.stdout)


def rows(B):
    chunks = min(B.MB, 128)
    path = f"{B.IN}/remote.zarr"
    if not os.path.exists(path):
        tree(path, chunks)
    with WebServer(B.IN, delay=DELAY) as web:
        def mount():
            with B.ours(f"{web.url}/remote.zarr"):
                web.forget()
                first = read(B)
                asked = len(web.asked)
                second = read(B)
                return {"seconds": first, "second": second, "asked": asked,
                        "again": len(web.asked) - asked}

        def curl():
            out = f"{B.BUILD}/curl"
            start = time.perf_counter()
            subprocess.run(["curl", "-sS", "--parallel", "--parallel-max", "8", "-o", f"{out}#1",
                            f"{web.url}/remote.zarr/t/[0-{chunks - 1}].0.0"], check=True,
                           stderr=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
            for i in range(chunks):
                os.unlink(f"{out}{i}")
            return {"seconds": seconds}
        got = B.alternate({"mount": mount, "curl": curl})
    r = B.pairs(got, "mount", "curl")
    B.row(f"{chunks} x 1 MiB over 50 ms: mount / curl x8", r, "x", "<= 1.3", r <= 1.3,
          "mount cold", f"{B.med(got, 'mount'):.2f} / {B.med(got, 'curl'):.2f} s", got)
    n = B.med(got, "mount", "asked") / chunks
    B.row("  requests for a chunk", n, "", "1", n == 1, "mount cold",
          f"second read: {B.med(got, 'mount', 'again'):.0f} requests, "
          f"{B.med(got, 'mount', 'second'):.2f} s")
    shutil.rmtree(path)
