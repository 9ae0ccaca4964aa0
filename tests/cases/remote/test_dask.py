# SPDX-License-Identifier: BSD-3-Clause
"""A Dask cluster of several worker processes reads one file on a web server: each worker through a
mount of its own, and by references without one."""
import json
import os
import sys

import h5py
import numpy as np

from lib.context import ROOT, Skip
from lib.web import WebServer

CLIENT = os.path.join(ROOT, "tests", "clients", "dask_refs.py")


def test_cluster(t):
    status, _, err = t.run(sys.executable, "-c", "import distributed, aiohttp, fsspec")
    if status:
        raise Skip("no Dask cluster here: python3-distributed, python3-aiohttp")
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
