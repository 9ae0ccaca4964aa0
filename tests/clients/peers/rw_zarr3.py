# SPDX-License-Identifier: BSD-3-Clause
"""What zarr-python 3 and its xarray do on a Zarr store in a directory, in pieces as those of
rw_trees.py. Needs nothing but them, numpy and Python, so that it runs in a Debian of its own.

    rw_zarr3.py DIR FORMAT NAME...

FORMAT: 2 or 3."""
import sys

import numpy as np
import zarr


def values(shape, dtype="i4", start=0):
    return (np.arange(int(np.prod(shape))) + start).reshape(shape).astype(dtype)


def root_group(root, form):
    """mode="a" of zarr-python 3.0 removes a directory first that is no group, which a mount's root
    cannot be."""
    try:
        return zarr.open_group(root, mode="r+", zarr_format=form)
    except FileNotFoundError:
        return zarr.create_group(root, zarr_format=form)


def create(root, form):
    g = root_group(root, form)
    names = {"dimension_names": ["y", "x"]} if form == 3 else {}
    a = g.create_array("a", shape=(4, 6), chunks=(2, 3), dtype="i4", fill_value=-1,
                       compressors=None, **names)
    a[...] = values((4, 6))
    if form == 2:
        a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    g.attrs["title"] = "made by zarr-python 3"


def partial(root, form):
    zarr.open_group(root, mode="r+", zarr_format=form)["a"][1:3, 2:4] = 7


def fill(root, form):
    """A chunk that is all fill value is removed."""
    zarr.open_group(root, mode="r+", zarr_format=form)["a"][0:2, 0:3] = -1


def resize(root, form):
    a = zarr.open_group(root, mode="r+", zarr_format=form)["a"]
    a.resize((6, 6))
    a[4:] = 9
    a.resize((2, 6))


def append(root, form):
    zarr.open_group(root, mode="r+", zarr_format=form)["a"].append(values((3, 6), start=50))


def attrs(root, form):
    g = zarr.open_group(root, mode="r+", zarr_format=form)
    g["a"].attrs["units"] = "K"
    g["a"].attrs["units"] = "m"
    g.attrs.update({"title": "another", "number": 5})


def group(root, form):
    g = zarr.open_group(root, mode="r+", zarr_format=form).create_group("deep/er")
    g.create_array("c", shape=(3,), chunks=(2,), dtype="f8")[...] = [1, 2, 3]


def delete(root, form):
    del zarr.open_group(root, mode="r+", zarr_format=form)["a"]


def replace(root, form):
    g = zarr.open_group(root, mode="r+", zarr_format=form)
    g.create_array("a", shape=(5,), chunks=(2,), dtype="f8", overwrite=True)[...] = values((5,))


def consolidate(root, form):
    zarr.consolidate_metadata(root, zarr_format=form)


def shards(root, form):
    g = root_group(root, form)
    a = g.create_array("s", shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="i2")
    a[...] = values((8, 8), "i2")
    a[0, 0] = 99


def _dataset(times=4, start=0):
    import pandas
    import xarray
    n = np.arange(start, start + times)
    return xarray.Dataset(
        {"temp": (("time", "x"), (n[:, None] * 10 + np.arange(3)).astype("f4"), {"units": "K"}),
         "count": (("x",), np.arange(3, dtype="i2"))},
        {"time": pandas.date_range("2000-01-01", periods=start + times)[start:],
         "x": np.array([0.5, 1.5, 2.5])},
        {"title": "made by xarray"})


def xarray_new(root, form):
    _dataset().to_zarr(root, zarr_format=form, consolidated=True)


def xarray_append(root, form):
    _dataset(3, 4).to_zarr(root, zarr_format=form, append_dim="time")


def xarray_region(root, form):
    new = _dataset(2)[["temp"]].drop_vars(["time", "x"])
    new.to_zarr(root, zarr_format=form, region={"time": slice(1, 3)})


def xarray_variable(root, form):
    import xarray
    xarray.Dataset({"more": (("time", "x"), np.ones((7, 3)))}).to_zarr(
        root, zarr_format=form, mode="a")


if __name__ == "__main__":
    for name in sys.argv[3:]:
        globals()[name](sys.argv[1], int(sys.argv[2]))
