# SPDX-License-Identifier: BSD-3-Clause
"""Every feature that tests/gen writes, through every client that can read it."""
import functools
import os

import gen
from lib.context import Skip
from lib import clients


def run(feature, t):
    file = t.path(feature.name + ".nc")
    feature.write(file)
    if not os.path.exists(file):
        raise Skip("this machine's libraries cannot write it")
    notes = clients.info(t, file, *feature.options)
    with t.mount(file, *feature.options) as m:
        clients.zarr(t, file, m, notes)
        if "xarray" in feature.clients:
            clients.xarray(t, file, m, notes)
    if "ncdump" in feature.clients:
        with t.mount(file, "mode=nczarr") as m:
            clients.ncdump(t, file, m)
            notes = clients.info(t, file, "mode=nczarr")
            clients.zarr(t, file, m, notes, mode="nczarr")
    if "gdal" in feature.clients:
        with t.mount(file, "filter=none") as m:
            clients.gdal(t, file, m)


# SEMANTICS R9
def cases():
    for name, feature in gen.load().items():
        yield name, functools.partial(run, feature)
