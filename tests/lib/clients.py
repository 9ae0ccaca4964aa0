# SPDX-License-Identifier: BSD-3-Clause
"""Run the comparers of tests/clients, each in a child process with a time limit."""
import json
import os
import sys

from lib.context import ROOT

CLIENTS = os.path.join(ROOT, "tests", "clients")


def info(t, file, *options, timeout=60):
    """`nczarrfs info --json FILE` as a file, for the notes in it."""
    args = [w for o in options for w in ("-o", o)]
    status, out, err = t.run(t.binary, "info", "--json", *args, file, timeout=timeout)
    assert status == 0, f"info --json ends with {status}: {err}"
    json.loads(out)
    path = t.path(f"notes{t.number()}.json")
    with open(path, "w") as f:
        f.write(out)
    return path


def _compare_zarr(file, mnt, notes, mode, nc):
    from clients import compare_zarr
    compare_zarr.compare(file, mnt, notes, mode, nc)


def _compare_xarray(file, mnt, notes):
    from clients import compare_xarray
    compare_xarray.compare(file, mnt, notes)


def zarr(t, file, mount, notes, mode="zarr", nc="ask", timeout=60):
    t.call(_compare_zarr, file, mount.path, notes, mode, nc, timeout=timeout)


def xarray(t, file, mount, notes, timeout=60):
    t.call(_compare_xarray, file, mount.path, notes, timeout=timeout)


def script(t, name, *args, timeout=60):
    """A comparer that brings libraries which do not get on with the others: its own python."""
    status, out, err = t.run(sys.executable, os.path.join(CLIENTS, name), *args,
                             timeout=timeout)
    assert status == 0, f"{name}: {(out + err).strip()}"
    return out


def ncdump(t, file, mount, timeout=60):
    return script(t, "compare_ncdump.py", file, mount.path, timeout=timeout)


def gdal(t, file, mount, timeout=60):
    return script(t, "compare_gdal.py", file, mount.path, timeout=timeout)
