# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about small accesses: single chunks in random order, and the opening of
many groups. scripts/bench calls each of ROWS with itself."""
import json
import shutil
import subprocess
import time

import inputs

CHUNKS = 1000
GROUPS = 50
VARIABLES = 37  # of each group, besides three coordinates


def client(B, *args):
    out = subprocess.run(["/usr/bin/python3", f"{B.TOP}/tests/bench/access_client.py",
                          *map(str, args)], check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def check_sums(got):
    if len({r["sum"] for runs in got.values() for r in runs}) != 1:
        raise SystemExit("bench: the variants read different values")


def row_random(B):
    src = B.small()
    native = B.native_raw(src, 4096, B.SMALL)
    B.warm(src)
    B.warm(native)

    def mount(made, var):
        with made as m:
            before = m.cpu()
            got = client(B, "random", "zarr", B.MNT, var, B.SMALL, CHUNKS)
            return got | {"server": m.cpu() - before}
    got = B.alternate({
        "mount": lambda: mount(B.ours(src), "v"),
        "bare": lambda: mount(B.bare(src, "--zarray", f"{native}/.zarray"), "."),
        "native": lambda: client(B, "random", "zarr", native, ".", B.SMALL, CHUNKS),
        "h5py": lambda: client(B, "random", "h5py", src, "v", B.SMALL, CHUNKS)})
    check_sums(got)
    r = B.pairs(got, "mount", "native")
    B.row(f"{CHUNKS} random chunks, zarr-python: mount / native", r, "x", "<= 1.10", r <= 1.10,
          "source warm, mount cold; native warm",
          f"{B.med(got, 'mount'):.3f} / {B.med(got, 'native'):.3f} s, server cpu "
          f"{B.med(got, 'mount', 'server'):.3f} s", got)
    r = B.pairs(got, "mount", "bare")
    B.row("  the same: mount / bare", r, "x", "<= 1.1", r <= 1.1, "source warm, mount cold",
          f"{B.med(got, 'bare'):.3f} s, server cpu {B.med(got, 'bare', 'server'):.3f} s")
    B.row("  the same: mount / h5py", B.pairs(got, "mount", "h5py"), "x", "", None,
          "source warm, mount cold", f"{B.med(got, 'h5py'):.3f} s")


def row_datatree(B):
    src = inputs.make(B.IN, "groups.nc", inputs.groups, GROUPS, VARIABLES)

    def copy(out):
        shutil.rmtree(out, ignore_errors=True)
        with B.ours(src):
            shutil.copytree(B.MNT, out, copy_function=shutil.copyfile)
    native = inputs.make(B.IN, "groups.native", copy)
    B.warm(src)
    B.warm(native)

    def mount():
        def then(out, start):
            with open(f"{B.MNT}/.zmetadata", "rb") as f:
                f.read()
            out["ready"] = time.perf_counter() - start
            got = client(B, "groups", "zarr", B.MNT)
            out.update(sum=got["sum"], opened=got["seconds"])
            out["total"] = out["ready"] + got["seconds"]
        return B.start(src, then)
    got = B.alternate({"mount": mount,
                       "native": lambda: client(B, "groups", "zarr", native)})
    got["netcdf4"] = [client(B, "groups", "netcdf4", src)]  # takes long: once
    check_sums(got)
    state = "source warm, mount cold; native warm"
    r = B.med(got, "mount", "ready")
    B.row(f"{GROUPS} groups, {GROUPS * (VARIABLES + 3)} variables: mount and .zmetadata", r, "s",
          "< 0.5", r < 0.5, state,
          f"until ls of the root {B.med(got, 'mount'):.3f} s; with all groups open in xarray "
          f"{B.med(got, 'mount', 'total'):.2f} s", got)
    B.row("  all groups open in xarray: mount / native",
          B.med(got, "mount", "opened") / B.med(got, "native"), "x", "", None, state,
          f"{B.med(got, 'mount', 'opened'):.2f} / {B.med(got, 'native'):.2f} s")
    B.row("  all groups open in xarray: mount / engine=netcdf4",
          B.med(got, "mount", "opened") / B.med(got, "netcdf4"), "x", "", None, state,
          f"{B.med(got, 'netcdf4'):.2f} s")


ROWS = {"random": row_random, "datatree": row_datatree}
