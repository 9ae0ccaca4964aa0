# SPDX-License-Identifier: BSD-3-Clause
"""Every Zarr tree that tests/gen writes, as a virtual netCDF-4 file, through every client."""
import functools
import os

from gen import trees
from lib.context import Skip

LIMIT = 180.0


def virtual(mnt):
    """The one file in a mount."""
    names = os.listdir(mnt)
    assert len(names) == 1 and names[0].endswith(".nc"), f"one .nc expected: {names}"
    return os.path.join(mnt, names[0])


def h5py_compare(source, mnt, missing):
    from clients.netcdf import nc_h5py
    nc_h5py.compare(source, virtual(mnt), missing)


def h5tools(mnt, tmp):
    from clients.netcdf import nc_tools
    nc_tools.h5_tools(virtual(mnt), tmp)


def nctools(mnt, tmp):
    from clients.netcdf import nc_tools
    nc_tools.nc_tools(virtual(mnt), tmp)


def xarray_compare(source, mnt):
    from clients.netcdf import nc_xarray
    for decode in (True, False):
        nc_xarray.compare(source, virtual(mnt), decode)


def copy_twice(mnt, tmp):
    """cp gives the same bytes on every run, and a valid file of the size that stat says."""
    file = virtual(mnt)
    with open(file, "rb") as f:
        first = f.read()
    assert len(first) == os.stat(file).st_size
    with open(file, "rb") as f:
        assert f.read() == first, "a second read gives other bytes"
    copy = os.path.join(tmp, "copy.nc")
    with open(copy, "wb") as f:
        f.write(first)
    import h5py
    with h5py.File(copy, "r") as nc:
        nc.visititems(lambda name, obj: None)
    return first


def run(made, t):
    source = t.path(made.name + made.ending)
    try:
        made.write(source)
    except ImportError as why:
        raise Skip(str(why)) from why
    with t.mount(source, *made.options) as m:
        if "h5py" in made.clients:
            t.call(h5py_compare, source, m.path, made.missing)
        if "h5tools" in made.clients:
            t.call(h5tools, m.path, t.tmp)
        if "nctools" in made.clients:
            t.call(nctools, m.path, t.tmp)
        if "xarray" in made.clients and os.path.isdir(source):
            t.call(xarray_compare, source, m.path)
        t.call(copy_twice, m.path, t.tmp)


def cases():
    for name, made in trees.load().items():
        yield name, functools.partial(run, made)
