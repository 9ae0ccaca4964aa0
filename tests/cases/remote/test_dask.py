# SPDX-License-Identifier: BSD-3-Clause
"""A Dask cluster of several worker processes reads one file on a web server: each worker through a
mount of its own, and by references without one. It reads an archive of files by the references that
one command makes, without any mount."""
import glob
import hashlib
import json
import os
import sys

import h5py
import netCDF4
import numpy as np

from lib.context import ROOT, Skip
from lib.web import WebServer

CLIENT = os.path.join(ROOT, "tests", "clients", "dask_refs.py")
ARCHIVE = os.path.join(ROOT, "tests", "clients", "dask_archive.py")
STEPS = 3  # of time in each file of an archive


def need_cluster(t):
    status, _, _ = t.run(sys.executable, "-c", "import distributed, aiohttp, fsspec, xarray")
    if status:
        raise Skip("no Dask cluster here: python3-distributed, python3-aiohttp")


def make_archive(top, files):
    """Months of a model, in a folder for each year."""
    rng = np.random.default_rng(11)
    for i in range(files):
        path = f"{top}/{2000 + i // 6}/month {i % 6}.nc"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with netCDF4.Dataset(path, "w") as f:
            f.createDimension("time", None)
            f.createDimension("x", 40)
            t = f.createVariable("time", "f8", ("time",))
            t.units = "hours since 2000-01-01"
            v = f.createVariable("v", "i2", ("time", "x"), zlib=True, shuffle=True,
                                 chunksizes=(1, 20))
            v.scale_factor = 0.5
            v.set_auto_maskandscale(False)
            t[:] = np.arange(STEPS) + STEPS * i
            v[:] = rng.integers(-1000, 1000, (STEPS, 40))


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def native(top, paths):
    """Digests of all variables of all files, by file, and of the files as one."""
    each, parts = {}, {"time": [], "v": []}
    for path in paths:
        with h5py.File(path) as f:
            for name, found in parts.items():
                found.append(f[name][()])
                each[f"{os.path.relpath(path, top)}/{name}"] = digest(found[-1])
    return each, {"/" + name: digest(np.concatenate(found)) for name, found in parts.items()}


def archive_at(t, top, address):
    """The steps of docs/how-to/dask-and-spark.md: the archive in `top` is read at `address`."""
    paths = sorted(glob.glob(top + "/*/*.nc"))
    each, joined = native(top, paths)
    for options, source, out in (((), top, "all.json"),
                                 (("-o", "concat=time,concat_index=none,inline"),
                                  top + "/*/*.nc", "time.json")):
        status, _, err = t.run(t.binary, "refs", "-o", "address=" + address, *options, source,
                               t.path(out))
        assert status == 0, err
    env = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s"}
    status, out, err = t.run(sys.executable, ARCHIVE, t.path("all.json"), t.path("time.json"),
                             *(os.path.relpath(p, top) for p in paths), timeout=100, env=env)
    assert status == 0, err
    got = json.loads(out.splitlines()[-1])
    assert got["many"] == [each, 3], got
    assert got["one"][0] == joined, got
    assert got["one"][1] > 1, "the chunks were not computed by several processes"


# SEMANTICS K14
def test_archive(t):
    need_cluster(t)
    make_archive(t.path("data"), 12)
    with WebServer(t.tmp) as web:
        archive_at(t, t.path("data"), web.url + "/data")


def test_cluster(t):
    need_cluster(t)
    data = np.random.default_rng(3).integers(-1000, 1000, (96, 200, 50)).astype("i4")
    with h5py.File(t.path("a.h5"), "w") as f:
        f.create_dataset("g/v", data=data, chunks=(4, 100, 50), shuffle=True, compression="gzip")
    want = int(data.astype("i8").sum())
    with WebServer(t.tmp) as web:
        status, _, err = t.run(t.binary, "refs", web.url + "/a.h5", t.path("a.json"))
        assert status == 0, err
        env = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s"}
        status, out, err = t.run(sys.executable, CLIENT, t.binary, web.url + "/a.h5",
                                 t.path("a.json"), "g/v", t.tmp, timeout=100, env=env)
    assert status == 0, err
    got = json.loads(out.splitlines()[-1])
    assert got == {"mount": [want, 3], "refs": [want, 3], "array": want}, got
