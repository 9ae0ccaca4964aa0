# SPDX-License-Identifier: BSD-3-Clause
"""A netCDF-4 file that is changed through its Zarr tree, step by step: what a step does to the
tree, with xarray, zarr-python or an editor, and what netCDF4-python and xarray then see in the
file."""
import json
import os
import shutil

import h5py
import netCDF4
import numpy as np
import xarray as xr
import zarr

from clients import scales


def data(n):
    """n days with something of everything that xarray writes."""
    time = np.datetime64("2000-01-01") + np.arange(n)
    return xr.Dataset({
        "temp": (("time", "lat", "lon"), (np.arange(n * 12) * .5).reshape(n, 3, 4).astype("f4"),
                 {"units": "K", "valid": np.int16(5), "range": np.array([1.5, 2.5], "f4")}),
        "flag": (("time", "lat"), np.arange(n * 3).reshape(n, 3).astype("i1")),
        "name": (("lat",), np.array(["a", "bcd", "\u00e9"], dtype=object)),
        "good": (("lat",), np.array([True, False, True])),
        "one": ((), np.float64(3.5)),
        "bounds": (("time", "nv"), np.arange(2 * n).reshape(n, 2).astype("f8")),
    }, coords={"time": ("time", time.astype("M8[ns]")), "lat": ("lat", np.array([10., 20, 30])),
               "lon": ("lon", np.arange(4, dtype="i4"))}, attrs={"title": "x"})


def write(path):
    data(6).to_netcdf(path, engine="netcdf4", unlimited_dims=())


def forget(tree):
    if os.path.exists(tree + "/.zmetadata"):
        os.remove(tree + "/.zmetadata")


def edit(file, change):
    with open(file) as f:
        doc = json.load(f)
    change(doc)
    with open(file, "w") as f:
        json.dump(doc, f)


def remove(tree, *names):
    forget(tree)
    for name in names:
        shutil.rmtree(os.path.join(tree, name))


def same(nc, want):
    with xr.open_dataset(nc) as got:
        for name in want.variables:
            assert got[name].dims == want[name].dims, (name, got[name].dims)
            assert np.array_equal(got[name], want[name]), name


# ---- steps: a change, and what is to be seen ----

def append(tree):
    new = data(9).isel(time=slice(6, 9))
    new[["temp", "flag", "bounds"]].to_zarr(tree, append_dim="time")


def appended(nc):
    same(nc, data(9))
    with netCDF4.Dataset(nc) as d:
        assert d.dimensions["time"].isunlimited() and not d.dimensions["lat"].isunlimited()
        assert d["temp"].valid.dtype == np.int16 and d["temp"].range.dtype == np.float32


def attributes(tree):
    forget(tree)
    edit(tree + "/temp/.zattrs", lambda j: j.update(
        valid=6, range=[1.25, .1], units="\u00b0C", new=["a", "b"]))
    edit(tree + "/.zattrs", lambda j: (j.pop("title"), j.update(n=4)))


def attributed(nc):
    with netCDF4.Dataset(nc) as d:
        v = d["temp"]
        assert v.valid == 6 and v.valid.dtype == np.int16
        assert v.range.dtype == np.float32 and list(v.range) == [np.float32(1.25), np.float32(.1)]
        assert v.units == "\u00b0C" and v.new == ["a", "b"] and d.ncattrs() == ["n"]
    with h5py.File(nc, "r") as f:
        assert f["temp"].attrs.get_id("units").dtype.kind == "S"  # a text as it was


def wider(tree):
    forget(tree)
    edit(tree + "/temp/.zattrs", lambda j: (j.update(valid=70000), j.pop("new")))


def widened(nc):
    with netCDF4.Dataset(nc) as d:
        assert d["temp"].valid == 70000 and "new" not in d["temp"].ncattrs()


def no_coordinate(tree):
    remove(tree, "lat")


def without_coordinate(nc):
    with netCDF4.Dataset(nc) as d:
        assert "lat" not in d.variables and len(d.dimensions["lat"]) == 3
        assert d["temp"].dimensions == ("time", "lat", "lon")


def coordinate(tree):
    xr.Dataset({"lat": ("lat", np.array([1., 2, 3]), {"units": "deg"})}).to_zarr(tree, mode="a")


def with_coordinate(nc):
    same(nc, data(9).assign_coords(lat=[1., 2, 3]))


def group(tree):
    data(2).to_zarr(tree, group="g/h", mode="a", consolidated=False)
    forget(tree)


def grouped(nc):
    with xr.open_dataset(nc, group="g/h") as got:
        for name in data(2).variables:
            assert np.array_equal(got[name], data(2)[name]), name


def rename(tree):
    forget(tree)
    os.rename(tree + "/flag", tree + "/mark")
    remove(tree, "g")
    z = zarr.open(tree, "a")
    for name in z:
        dims = z[name].attrs["_ARRAY_DIMENSIONS"]
        z[name].attrs["_ARRAY_DIMENSIONS"] = ["east" if d == "lon" else d for d in dims]


def renamed(nc):
    with netCDF4.Dataset(nc) as d:
        assert list(d.groups) == [] and "flag" not in d.variables and "lon" not in d.dimensions
        assert d["temp"].dimensions == ("time", "lat", "east") and d["lon"].dimensions == ("east",)
        assert np.array_equal(d["mark"][:], data(9).flag)


def less(tree):
    remove(tree, "time", "temp", "bounds", "mark")


def lessened(nc):
    with netCDF4.Dataset(nc) as d:
        assert sorted(d.variables) == ["good", "lat", "lon", "name", "one"]
        assert sorted(d.dimensions) == ["east", "lat"]
        assert list(d["name"][:]) == ["a", "bcd", "\u00e9"]


STEPS = ((append, appended), (attributes, attributed), (wider, widened),
         (no_coordinate, without_coordinate), (coordinate, with_coordinate), (group, grouped),
         (rename, renamed), (less, lessened))


def change(step, tree):
    STEPS[step][0](tree)


def check(step, nc):
    assert not scales.problems(nc), scales.problems(nc)
    STEPS[step][1](nc)
