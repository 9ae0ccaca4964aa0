# SPDX-License-Identifier: BSD-3-Clause
"""Shapes, chunks, dimensions, attributes, names, groups of Zarr v2."""
import numpy as np
import zarr

from gen.trees import array, group, put, ramp, tree


@tree()
def scalars(path):
    """No dimensions: numbers, with and without a value, compressed."""
    g = zarr.open_group(path, mode="w")
    for t in ("<i4", ">f8", "u1"):
        a = g.create_dataset("s" + t[-2:], shape=(), dtype=t, fill_value=7)
        a[()] = 42
        a.attrs["_ARRAY_DIMENSIONS"] = []
    a = g.create_dataset("never", shape=(), dtype="f4", fill_value=2.5)
    a.attrs["_ARRAY_DIMENSIONS"] = []


@tree(clients=("h5py", "h5tools"))
def empty(path):
    """Dimensions of length 0."""
    g = zarr.open_group(path, mode="w")
    for name, shape in (("a", (0,)), ("b", (3, 0)), ("c", (0, 4))):
        g.create_dataset(name, shape=shape, chunks=tuple(max(1, n) for n in shape), dtype="i4")


@tree()
def ranks(path):
    """One to seven dimensions, edge chunks in each, in C and F order."""
    g = zarr.open_group(path, mode="w")
    for n in range(1, 8):
        for order in "CF":
            shape = (5, 4, 3, 2, 3, 2, 2)[:n]
            a = g.create_dataset(f"r{n}{order}", shape=shape, chunks=(2, 3, 2, 2, 2, 2, 1)[:n],
                                 dtype="i4", order=order, compressor=zarr.Zlib(), fill_value=None)
            a[:] = ramp(shape, "i4")
            a.attrs["_ARRAY_DIMENSIONS"] = [f"d{i}" for i in range(n)]


@tree()
def long_chunks(path):
    """Chunks longer than the array in some or all directions."""
    g = zarr.open_group(path, mode="w")
    for name, shape, chunks in (("one", (5,), (8,)), ("two", (5, 6), (8, 4)),
                                ("both", (3, 3), (10, 10))):
        for order in "CF":
            a = g.create_dataset(name + order, shape=shape, chunks=chunks, dtype="f8",
                                 order=order, fill_value=None)
            a[:] = ramp(shape, "f8")


@tree()
def missing(path):
    """Chunks never written: at the begin, in the middle, at the end, all of them; with fill
    values that JSON finds hard."""
    g = zarr.open_group(path, mode="w")
    for name, t, fill in (("nan", "f4", np.nan), ("inf", "f8", np.inf), ("minf", "f8", -np.inf),
                          ("big", "u8", 2**64 - 1), ("low", "i8", -2**63), ("tenth", "f4", 0.1),
                          ("zero", "i2", 0), ("none", "i2", None)):
        a = g.create_dataset(name, shape=(20,), chunks=(3,), dtype=t, fill_value=fill,
                             compressor=zarr.Zlib())
        if name == "none":
            a[:] = 4
        else:
            a[6:9] = 1
            a[12:15] = 2
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    a = g.create_dataset("nothing", shape=(4, 4), chunks=(2, 2), dtype="f8", fill_value=9.5)


@tree()
def many_chunks(path):
    """More chunks than a node of an index holds, more than a level: 5000 of one element."""
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("v", shape=(5000,), chunks=(1,), dtype="i4", compressor=None,
                         fill_value=-1)
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    for i in range(0, 5000, 3):
        put(path, f"v/{i}", np.array([i], "<i4").tobytes())
    a = g.create_dataset("w", shape=(90, 70), chunks=(9, 1), dtype="i2", compressor=zarr.Zlib(),
                         fill_value=None)
    a[:] = ramp((90, 70), "i2")


@tree()
def separators(path):
    """Keys with '/' between coordinates."""
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("v", shape=(5, 6, 4), chunks=(2, 3, 2), dtype="i4", fill_value=-1,
                         dimension_separator="/")
    a[:4] = ramp((4, 6, 4), "i4")
    a.attrs["_ARRAY_DIMENSIONS"] = ["z", "y", "x"]


@tree()
def coordinates(path):
    """Coordinate variables, a dimension without one, groups that use dimensions of those above,
    dimensions of their own with a name from above."""
    g = zarr.open_group(path, mode="w")
    for name, n in (("time", 4), ("lat", 3)):
        a = g.create_dataset(name, data=np.arange(n, dtype="f8"), chunks=(2,), fill_value=None)
        a.attrs.update({"_ARRAY_DIMENSIONS": [name], "axis": name[0].upper()})
    a = g.create_dataset("t", data=ramp((4, 3, 5)), chunks=(2, 2, 2), fill_value=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["time", "lat", "lon"]
    s = g.create_group("sub")
    a = s.create_dataset("v", data=ramp((4, 2)), fill_value=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["time", "own"]
    a = s.create_dataset("lat", data=ramp((6,)), fill_value=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["lat"]
    a = s.create_group("deep").create_dataset("w", data=ramp((6, 6)), fill_value=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["lat", "lat"]


@tree()
def not_coordinates(path):
    """Variables called like a dimension that is not theirs alone, or of another length."""
    g = zarr.open_group(path, mode="w")
    for name, data, dims in (("x", ramp((3, 4)), ["y", "x"]), ("y", ramp((4, 3)), ["x", "y"]),
                             ("z", ramp((3,)), ["y"]), ("v", ramp((2,)), ["z"])):
        a = g.create_dataset(name, data=data, fill_value=None)
        a.attrs["_ARRAY_DIMENSIONS"] = dims


@tree(clients=("h5py", "h5tools", "nctools"))
def no_names(path):
    """Arrays without _ARRAY_DIMENSIONS: dimensions are inferred."""
    g = zarr.open_group(path, mode="w")
    g.create_dataset("a", data=ramp((4, 4, 5)), fill_value=None)
    g.create_dataset("b", data=ramp((5, 4)), fill_value=None)
    g.create_dataset("g/c", data=ramp((4, 6)), fill_value=None)


@tree()
def attributes(path):
    """Everything that JSON can say of an attribute."""
    g = zarr.open_group(path, mode="w")
    g.attrs.update({"title": "a title", "empty": "", "quote": "say \"x\"\n\ttab", "int": 5,
                    "real": 1.5, "whole": 1.0, "big": 2**40, "unsigned": 2**63, "yes": True,
                    "ints": [1, 2, 3], "mixed": [1, 2.5], "texts": ["a", "bc", ""],
                    "json": {"a": [1, {"b": None}]}, "nested": [[1, 2], [3]], "nothing": None,
                    "umlaut": "grün 日本 \U0001f600", "long": "x" * 5000})
    a = g.create_dataset("v", data=ramp((3,)), fill_value=None)
    a.attrs.update({"_ARRAY_DIMENSIONS": ["n"], "units": "K", "valid_range": [0.0, 9.5],
                    "flags": [-1, 2**31], "low": -2**31 - 1})


@tree(clients=("h5py", "nctools"))  # h5repack fails on netCDF-C's own files of this kind
def attribute_sizes(path):
    """Attributes that do not fit into an object header, and many of them."""
    g = zarr.open_group(path, mode="w")
    g.attrs["huge"] = "y" * 100000
    a = g.create_dataset("v", data=ramp((3,)), fill_value=None)
    a.attrs.update({f"a{i}": i for i in range(300)})


@tree(clients=("h5py", "h5tools", "nctools"))
def json_oddities(path):
    """JSON as some writers write it: bare NaN and Infinity, numbers such as 0. and 1.e5."""
    group(path)
    put(path, ".zattrs", b'{"a": NaN, "b": [1.5, Infinity, -Infinity], "d": 1e5}')
    array(path, "v", ramp((3,)), (3,), {"_ARRAY_DIMENSIONS": ["n"]}, fill_value="NaN")


@tree()
def masks(path):
    """What xarray masks and scales: fill values, _FillValue, missing_value, scale_factor."""
    g = zarr.open_group(path, mode="w")
    for name, t, fill, more in (("fill", "i2", -99, {}), ("scaled", "i2", -99, {
            "scale_factor": 0.5, "add_offset": 10.0}), ("real", "f4", np.nan, {}),
            ("zero", "i4", 0, {}), ("given", "i4", None, {"_FillValue": 3})):
        a = g.create_dataset(name, shape=(6,), chunks=(4,), dtype=t, fill_value=fill)
        a[:5] = ramp((5,), t)
        a[5] = fill if fill is not None else 3
        a.attrs.update({"_ARRAY_DIMENSIONS": ["n"], **more})


@tree(clients=("h5py", "h5tools", "nctools"))
def names(path):
    """Names beyond ASCII, with blanks and dots, long ones."""
    g = zarr.open_group(path, mode="w")
    for i, name in enumerate(("grün", "日本", "a b", "a.b", "plus+", "x" * 200, "_under")):
        a = g.create_dataset(name, data=ramp((3,)) + i, fill_value=None)
        a.attrs["_ARRAY_DIMENSIONS"] = ["é d"]
    g.create_group("grüppe").create_dataset("v", data=ramp((2,)), fill_value=None)


@tree()
def consolidated(path):
    """.zmetadata beside the documents."""
    coordinates(path)
    zarr.consolidate_metadata(path)


@tree(clients=("h5py", "h5tools", "nctools"))
def only_consolidated(path):
    """.zmetadata, and documents that would say otherwise if anybody asked them."""
    g = zarr.open_group(path, mode="w")
    g.create_dataset("v", data=ramp((3,)), fill_value=None)
    zarr.consolidate_metadata(path)


@tree(clients=("h5py", "h5tools", "nctools"))
def root_array(path):
    """A tree whose root is an array."""
    zarr.open_array(path, mode="w", shape=(5, 3), chunks=(2, 2), dtype="f8")[:] = ramp((5, 3))


@tree(clients=("h5py", "h5tools", "nctools"))
def nothing_at_all(path):
    """A group without anything in it."""
    zarr.open_group(path, mode="w").attrs["title"] = "empty"


@tree()
def many_variables(path):
    """300 variables on shared dimensions: references of a scale in one go."""
    g = zarr.open_group(path, mode="w")
    for i in range(300):
        a = g.create_dataset(f"v{i}", data=ramp((4, 3)) + i, fill_value=None)
        a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
