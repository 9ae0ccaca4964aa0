# SPDX-License-Identifier: BSD-3-Clause
"""The Python client of tests/bench/access.py: prints one line of JSON.

usage: access_client.py random zarr|h5py PATH VARIABLE CHUNKS NUMBER
       access_client.py groups zarr|netcdf4 PATH

Time is from before the file is opened until the last chunk is read, or the last group is open;
imports are not in it."""
import json
import resource
import sys
import time

import numpy as np


def random_chunks(kind, path, var, chunks, number):
    """Read `number` chunks of `chunks` in an order that looks random to any prefetch."""
    order = np.random.default_rng(3).permutation(int(chunks))[:int(number)].tolist()
    if kind == "zarr":
        import zarr

        def array():
            return zarr.open_array(f"{path}/{var}", mode="r")
    else:
        import h5py

        def array():
            return h5py.File(path, "r")[var]

    def run():
        a = array()
        n = a.chunks[0]
        return sum(float(a[i * n:(i + 1) * n][6]) for i in order)
    return run


def groups(kind, path):
    """Open each group as xarray does it; values are read of coordinates only."""
    import netCDF4
    import xarray
    import zarr
    xarray.backends.list_engines()

    def run():
        if kind == "zarr":
            names = [n for n, _ in zarr.open_consolidated(path).groups()]
            opened = [xarray.open_zarr(path, group=n, chunks=None, consolidated=True)
                      for n in names]
        else:
            with netCDF4.Dataset(path) as f:
                names = list(f.groups)
            opened = [xarray.open_dataset(path, group=n, engine="netcdf4") for n in names]
        return sum(len(d.variables) for d in opened)
    return run


def main():
    run = {"random": random_chunks, "groups": groups}[sys.argv[1]](*sys.argv[2:])
    use = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    result = run()
    secs = time.perf_counter() - start
    end = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": secs, "sum": result,
                      "cpu": end.ru_utime + end.ru_stime - use.ru_utime - use.ru_stime}))


main()
