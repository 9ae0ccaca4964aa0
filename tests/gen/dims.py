# SPDX-License-Identifier: BSD-3-Clause
"""Groups and dimensions."""
import h5py
import netCDF4
import numpy as np

from gen import feature

ALL = ("zarr", "xarray", "ncdump", "gdal")


def dataset(path, **keywords):
    return netCDF4.Dataset(path, "w", format=keywords.pop("format", "NETCDF4"), **keywords)


def ramp(shape, dtype="f4"):
    return np.arange(int(np.prod(shape, dtype=int)), dtype="i8").reshape(shape).astype(dtype)


@feature(clients=ALL)
def nested_groups(path):
    """Variables in three levels of groups, on dimensions of the groups above."""
    with dataset(path) as ds:
        ds.title = "root"
        ds.createDimension("x", 6)
        ds.createDimension("y", 4)
        ds.createVariable("v", "i4", ("y", "x"))[:] = ramp((4, 6))
        a = ds.createGroup("a")
        a.level = np.int32(1)
        a.createDimension("z", 3)
        a.createVariable("v", "f8", ("z", "x"), chunksizes=(2, 4))[:] = ramp((3, 6))
        b = a.createGroup("b")
        b.createVariable("w", "i2", ("z", "y"))[:] = ramp((3, 4))
        b.createGroup("empty")


@feature(clients=ALL)
def shared_dims(path):
    """One dimension used by variables before and after its coordinate variable."""
    with dataset(path) as ds:
        ds.createDimension("t", 5)
        ds.createDimension("x", 3)
        ds.createVariable("first", "f4", ("t", "x"))[:] = ramp((5, 3))
        ds.createVariable("x", "f8", ("x",))[:] = [10, 20, 30]
        ds.createVariable("second", "f4", ("x", "t"))[:] = ramp((3, 5))
        ds.createVariable("t", "i8", ("t",))[:] = ramp((5,))


@feature(clients=ALL)
def unlimited(path):
    """An unlimited time with a coordinate variable, and one without."""
    with dataset(path) as ds:
        ds.createDimension("time", None)
        ds.createDimension("rec", None)
        ds.createDimension("x", 4)
        ds.createVariable("time", "f8", ("time",))[:] = ramp((7,), "f8")
        ds.createVariable("v", "f4", ("time", "x"), chunksizes=(2, 3))[:] = ramp((7, 4))
        ds.createVariable("r", "i4", ("rec",), chunksizes=(4,))[:] = ramp((9,))


@feature(clients=("zarr",))
def three_unlimited(path):
    """Three unlimited dimensions in one variable, the data in a corner. netCDF-C 4.9.0 reads the
    whole of such a variable wrongly (a row is filled with the next one's values), but slices of
    it rightly: h5py is the judge."""
    with dataset(path) as ds:
        for n in "abc":
            ds.createDimension(n, None)
        v = ds.createVariable("v", "i4", ("a", "b", "c"), chunksizes=(2, 3, 2), zlib=True)
        v[0:5, 0:4, 0:3] = ramp((5, 4, 3))
        ds.createVariable("a", "i4", ("a",))[0:8] = ramp((8,))
        ds.createVariable("w", "f4", ("c", "a"))[0:6, 0:2] = ramp((6, 2))


@feature(clients=("zarr", "xarray"))
def short_variable(path):
    """A variable shorter than its unlimited dimension: padded by its fill value, which is set in
    one, the default in another."""
    with dataset(path) as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 3)
        ds.createVariable("long", "i4", ("t",), chunksizes=(4,))[:] = ramp((10,))
        ds.createVariable("short", "f4", ("t", "x"), chunksizes=(4, 2))[:5] = ramp((5, 3))
        v = ds.createVariable("filled", "i2", ("t",), fill_value=-7, zlib=True, chunksizes=(4,))
        v[:3] = [1, 2, 3]
        ds.createVariable("none", "i4", ("t",))


@feature(clients=("zarr",))
def phony_dims(path):
    """Plain HDF5: no dimension scales at all; equal lengths, also twice in one array."""
    with h5py.File(path, "w") as f:
        f["a"] = ramp((4, 6))
        f["b"] = ramp((6, 4), "i2")
        f["square"] = ramp((4, 4), "f8")
        f["g/c"] = ramp((4, 7))
        f.create_dataset("grow", data=ramp((4,)), maxshape=(None,), chunks=(3,))


@feature(clients=("zarr",))
def shadowed_dims(path):
    """The same dimension name in nested groups with other lengths."""
    with dataset(path) as ds:
        ds.createDimension("x", 4)
        ds.createVariable("v", "i4", ("x",))[:] = ramp((4,))
        g = ds.createGroup("g")
        g.createDimension("x", 7)
        g.createVariable("v", "i4", ("x",))[:] = ramp((7,))
        g.createVariable("x", "f8", ("x",))[:] = ramp((7,))
        h = g.createGroup("h")
        h.createDimension("x", 2)
        h.createVariable("v", "i4", ("x",))[:] = ramp((2,))


@feature(clients=ALL)
def coordinates_out_of_order(path):
    """Coordinate variables created in another order than their dimensions: _Netcdf4Dimid."""
    with dataset(path) as ds:
        for n, k in (("t", 2), ("z", 3), ("y", 4), ("x", 5)):
            ds.createDimension(n, k)
        for n, k in (("x", 5), ("z", 3), ("t", 2)):
            ds.createVariable(n, "f8", (n,))[:] = ramp((k,))
        ds.createVariable("v", "f4", ("t", "z", "y", "x"))[:] = ramp((2, 3, 4, 5))
        ds.createVariable("y", "f4", ("y",))[:] = ramp((4,))


@feature(clients=("zarr", "ncdump"))
def coordinate_2d(path):
    """A coordinate variable of two dimensions, named after the first."""
    with dataset(path) as ds:
        ds.createDimension("t", 4)
        ds.createDimension("n", 3)
        v = ds.createVariable("t", "i4", ("t", "n"))
        v[:] = ramp((4, 3))
        ds.createVariable("data", "f4", ("n", "t"))[:] = ramp((3, 4))


@feature(clients=("zarr", "xarray", "ncdump"))
def non_coordinate(path):
    """A variable with the name of a dimension that it does not use: _nc4_non_coord_."""
    with dataset(path) as ds:
        ds.createDimension("x", 4)
        ds.createDimension("y", 3)
        ds.createVariable("y", "i4", ("x",))[:] = ramp((4,))
        ds.createVariable("v", "i4", ("y", "x"))[:] = ramp((3, 4))


@feature(clients=("zarr", "xarray", "ncdump"))
def dims_only(path):
    """Dimensions and no variable."""
    with dataset(path) as ds:
        ds.createDimension("x", 4)
        ds.createDimension("t", None)


@feature(clients=("zarr",))
def zero_length(path):
    """Lengths of zero: an empty unlimited dimension, arrays without elements."""
    with dataset(path) as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 3)
        ds.createVariable("v", "f4", ("t", "x"))
        ds.createVariable("t", "f8", ("t",))
        ds.createVariable("x", "i4", ("x",))[:] = [1, 2, 3]
    with h5py.File(path, "a") as f:
        f.create_dataset("empty", shape=(0,), dtype="i4")
        f.create_dataset("empty2", shape=(3, 0, 2), dtype="f8")


@feature(clients=("zarr",))
def scalars(path):
    """Scalars of several types; scalars are groups' only rank-0 arrays."""
    with dataset(path) as ds:
        ds.createVariable("i", "i4")[...] = 42
        ds.createVariable("f", "f8")[...] = 0.1
        ds.createVariable("c", "S1")[...] = b"c"
        ds.createVariable("s", str)[...] = "héllo"
        ds.createVariable("never", "i2")
        ds["i"].note = "scalar"


@feature(clients=("zarr", "xarray"))
def classic_model(path):
    """NETCDF4_CLASSIC: _nc3_strict stays hidden."""
    with dataset(path, format="NETCDF4_CLASSIC") as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 5)
        ds.createVariable("v", "i2", ("t", "x"))[:] = ramp((3, 5))
        ds.history = "classic"


@feature(clients=("zarr", "xarray"))
def h5py_scales(path):
    """Dimension scales made by h5py: several scales on one dimension, one dimension without."""
    with h5py.File(path, "w") as f:
        f["x"] = ramp((5,), "f8")
        f["x2"] = ramp((5,), "f4")
        f["x"].make_scale("x")
        f["x2"].make_scale("second name")
        f["v"] = ramp((4, 5))
        f["v"].dims[1].attach_scale(f["x"])
        f["v"].dims[1].attach_scale(f["x2"])


@feature(clients=("zarr",))
def rank_32(path):
    """The highest rank that HDF5 knows."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=ramp((1,) * 28 + (2, 2, 3, 2)), chunks=(1,) * 29 + (2, 2, 1))


@feature(clients=("zarr", "xarray"))
def many_variables(path):
    """2,000 variables."""
    with dataset(path) as ds:
        ds.createDimension("x", 3)
        for i in range(2000):
            v = ds.createVariable(f"var_{i:04d}", "f4", ("x",), fill_value=-1.0)
            v[:] = [i, i + 1, i + 2]
            v.number = np.int32(i)


@feature(clients=("zarr",))
def creation_order(path):
    """Creation order is tracked and is not the order of names, for groups, arrays, attributes."""
    with h5py.File(path, "w", track_order=True) as f:
        for n in ("zebra", "apple", "mango", "beta"):
            f.create_dataset(n, data=ramp((3,)), track_order=True)
            for k in ("z", "a", "m"):
                f[n].attrs[k] = 1
        for n in ("g2", "g1", "g3"):
            f.create_group(n, track_order=True)
        for i in range(20):
            f["apple"].attrs[f"k{19 - i}"] = i


@feature(clients=("zarr",))
def array_dimensions_attribute(path):
    """An attribute of the file is called _ARRAY_DIMENSIONS and says something else."""
    with dataset(path) as ds:
        ds.createDimension("x", 4)
    with h5py.File(path, "a") as f:
        f["v"] = ramp((4, 2))
        f["v"].attrs["_ARRAY_DIMENSIONS"] = ["p", "q", "r"]
        f["v"].attrs["kept"] = 1
