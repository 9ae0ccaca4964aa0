# SPDX-License-Identifier: BSD-3-Clause
"""One Python client of `make bench`: reads one variable whole and prints a line of JSON.

usage: client.py zarr|xarray|h5py|netcdf4 PATH VARIABLE [TOUCH_MB [PASSES]]

Time is from before the file is opened until the values are in memory; imports are not in it."""
import json
import mmap
import resource
import sys
import time


def touch(mb):
    """Take and free memory: see tests/bench/reader.c."""
    if mb:
        m = mmap.mmap(-1, mb << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        m.madvise(mmap.MADV_HUGEPAGE)
        view = memoryview(m)
        page = bytes(4096 * 512)
        for at in range(0, len(view), len(page)):
            view[at:at + len(page)] = page
        view.release()
        m.close()


def client(kind):
    if kind == "zarr":
        import zarr
        return lambda path, var: (zarr.open_group(path, mode="r")[var] if var != "."
                                  else zarr.open_array(path, mode="r"))[...]
    if kind == "xarray":
        import xarray
        import zarr  # noqa: F401
        xarray.backends.list_engines()
        return lambda path, var: xarray.open_zarr(path, chunks=None)[var].values
    if kind == "h5py":
        import h5py
        return lambda path, var: h5py.File(path, "r")[var][...]
    if kind == "netcdf4":
        import netCDF4
        return lambda path, var: netCDF4.Dataset(path)[var][...]
    raise SystemExit(__doc__)


def main():
    kind, path, var = sys.argv[1:4]
    mb = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    read = client(kind)
    for _ in range(int(sys.argv[5]) if len(sys.argv) > 5 else 1):
        touch(mb)
        use = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        x = read(path, var)
        secs = time.perf_counter() - start
        end = resource.getrusage(resource.RUSAGE_SELF)
        out = {"seconds": secs, "cpu": end.ru_utime + end.ru_stime - use.ru_utime - use.ru_stime,
               "bytes": int(x.nbytes), "sum": float(x[..., ::97].astype("f8").sum())}
        print(json.dumps(out), flush=True)
        del x


main()
