# SPDX-License-Identifier: BSD-3-Clause
"""Attributes."""
import h5py
import numpy as np

from gen import feature
from gen.dims import dataset, ramp


@feature(clients=("zarr", "xarray", "ncdump"))
def attribute_types(path):
    """Every number type as an attribute, single and several."""
    with dataset(path) as ds:
        ds.createDimension("x", 2)
        v = ds.createVariable("v", "i4", ("x",))
        v[:] = [1, 2]
        for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
            info = np.iinfo(t)
            v.setncattr("one_" + t, np.dtype(t).type(7))
            v.setncattr("ends_" + t, np.array([info.min, info.max, 0], t))
        for t in ("f4", "f8"):
            v.setncattr("one_" + t, np.dtype(t).type(0.1))
            v.setncattr("whole_" + t, np.dtype(t).type(3))
            v.setncattr("many_" + t, np.array([0.1, 1e-30, 1 / 3, 1e30, -0.0], t))
        v.text = "plain text"
        v.long_text = "y" * 5000
        ds.Conventions = "CF-1.8"


@feature(clients=("zarr",))
def attribute_nan(path):
    """NaN and infinities, alone and in lists."""
    with h5py.File(path, "w") as f:
        f["v"] = ramp((2,))
        f["v"].attrs["nan"] = np.float32(np.nan)
        f["v"].attrs["inf"] = np.float64(-np.inf)
        f["v"].attrs["mixed"] = np.array([1.5, np.nan, np.inf, -np.inf])


@feature("json_nan=string", clients=("zarr",))
def attribute_nan_strict(path):
    """The same, with strict JSON asked for."""
    attribute_nan(path)


@feature(clients=("zarr", "xarray"))
def attribute_text(path):
    """Texts: empty, non-ASCII, quotes and control characters, like numbers, like JSON."""
    with dataset(path) as ds:
        ds.empty = ""
        ds.unicode = "é°C 日本"
        ds.quotes = "\"a\\b\"\n\t\x01\x7f"
        ds.number = "17"
        ds.json = "{\"a\": [1, 2]}"
        ds.listish = "[1,2,3]"
        ds.nan = "NaN"
        ds.setncattr_string("one_string", "x")
        ds.setncattr_string("strings", ["a", "", "ü"])


@feature(clients=("zarr",))
def attribute_shapes(path):
    """Empty, two-dimensional, scalar against one element."""
    with h5py.File(path, "w") as f:
        f["v"] = ramp((2,))
        a = f["v"].attrs
        a["scalar"] = np.int32(1)
        a["one"] = np.array([1], "i4")
        a["two_d"] = ramp((2, 3), "i4")
        a["empty"] = h5py.Empty("f8")
        a["none"] = np.zeros((0,), "i4")
        a["notext"] = h5py.Empty("S3")
        a["fixed"] = np.array([b"ab", b"c"], "S2")
        a["strings"] = np.array(["x", "yy"], dtype=h5py.string_dtype())


@feature(clients=("zarr",))
def attribute_user_types(path):
    """Enum, opaque, compound, vlen, complex, array and bool attributes: a JSON form or a note."""
    with h5py.File(path, "w") as f:
        f["v"] = ramp((2,))
        a = f["v"].attrs
        a.create("enum", 2, dtype=h5py.enum_dtype({"A": 1, "B": 2}, basetype="i2"))
        a["opaque"] = np.void(b"abcd")
        a["compound"] = np.array((1, 0.5), dtype=[("a", "i4"), ("b", "f8")])
        a.create("vlen", np.array([np.array([1, 2], "i4"), np.array([], "i4")], dtype=object),
                 dtype=h5py.vlen_dtype(np.dtype("i4")))
        a["complex"] = 1 + 2j
        a["bool"] = True
        a["after"] = 1


@feature(clients=("zarr",))
def many_attributes(path):
    """Enough attributes for dense storage, and one of nearly 64 KiB."""
    with h5py.File(path, "w", libver="latest") as f:
        f["v"] = ramp((2,))
        for i in range(300):
            f["v"].attrs[f"a{i:03d}"] = i
        f["v"].attrs["large"] = np.arange(8000, dtype="f8")


@feature(clients=("zarr", "xarray"))
def packed_data(path):
    """CF packing: scale_factor, add_offset, _FillValue, valid_range, _Unsigned."""
    with dataset(path) as ds:
        ds.createDimension("t", 4)
        ds.createDimension("x", 10)
        time = ds.createVariable("t", "f8", ("t",))
        time.units = "days since 2000-01-01 00:00:00"
        time.calendar = "standard"
        time[:] = [0, 1.5, 2, 30]
        v = ds.createVariable("temp", "i2", ("t", "x"), zlib=True, chunksizes=(2, 5),
                              fill_value=np.int16(-32768))
        v.set_auto_maskandscale(False)
        v.scale_factor = np.float32(0.01)
        v.add_offset = np.float32(273.15)
        v.missing_value = np.int16(-32768)
        data = ramp((4, 10), "i2")
        data[1, 3] = -32768
        v[:] = data
        u = ds.createVariable("u", "i1", ("x",))
        u.setncattr("_Unsigned", "true")
        u[:] = np.array([0, 127, -1, -128, 5, 6, 7, 8, 9, 10], "i1")
