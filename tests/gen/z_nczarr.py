# SPDX-License-Identifier: BSD-3-Clause
"""NCZarr, as the versions of netCDF-C write it: keys in every place and spelling."""
import numpy as np

from gen.trees import array, group, put, ramp, tree

CLIENTS = ("h5py", "h5tools", "nctools")


def types(path, style):
    """The same dataset in three layouts; tests/cases/zarr_view/test_nczarr.py has what must come
    out."""
    char = "<U1" if style == "upper" else ">S1"
    attr_types = {"title": char, "short": "<i2", "floats": "<f4", "doubles": "<f8"}
    root_attrs = {"title": "t", "short": 5, "floats": [1, 2], "doubles": 3}
    dims = {"t": 3, "y": 4}
    if style == "zattrs":
        dims = {"t": {"size": 3, "unlimited": 1}, "y": 4}
    group_keys = ("dimensions", "arrays", "groups") if style == "zattrs" else (
        "dims", "vars", "groups")

    def group_of(d, v, g):
        return dict(zip(group_keys, (d, v, g)))

    def superblock():
        return {"version": "2.0.0"}
    up = style == "upper"
    version = {"upper": "4.9.0", "lower": "4.9.2", "zattrs": "4.9.3"}[style]
    keys = ("_NCZARR_SUPERBLOCK", "_NCZARR_GROUP", "_NCZARR_ARRAY", "_NCZARR_ATTR") if up else (
        "_nczarr_superblock", "_nczarr_group", "_nczarr_array", "_nczarr_attr")
    refs = "dimension_references" if style == "zattrs" else "dimrefs"
    placed = {keys[0]: superblock(), keys[1]: group_of(dims, ["v", "c", "s", "t"], ["g"])}
    below = {keys[1]: group_of({"z": 2}, ["w"], [])}
    in_doc = style != "zattrs"
    put(path, ".zgroup", {"zarr_format": 2, **(placed if in_doc else {})})
    put(path, ".zattrs", {**root_attrs, "_NCProperties": f"version=2,netcdf={version},nczarr=2.0.0",
                          keys[3]: {"types": {**attr_types, "_NCProperties": char}},
                          **({} if in_doc else placed)})
    put(path, "g/.zgroup", {"zarr_format": 2, **(below if in_doc else {})})
    put(path, "g/.zattrs", {} if in_doc else {**below, keys[3]: {"types": {keys[1]: "|J0"}}})

    def var(key, data, chunks, names, storage="chunked", attrs=None, kinds=None, **more):
        mine = {refs: names, "storage": storage}
        if storage == "scalar":
            mine["scalar"] = 1
        extra = {keys[2]: mine}
        a = {**(attrs or {}), keys[3]: {"types": kinds or {}}}
        if not key.startswith("g/"):
            a["_ARRAY_DIMENSIONS"] = [n[1:] for n in names] or ["_scalar_"]
        array(path, key, data, chunks, {**a, **({} if in_doc else extra)},
              **(extra if in_doc else {}), **more)
    var("v", ramp((3, 4), "<f4"), (1, 4), ["/t", "/y"], attrs={"_FillValue": -1, "u": "K"},
        kinds={"_FillValue": "<f4", "u": char}, fill_value=-1)
    var("t", ramp((3,), "<i2"), (1,), ["/t"])
    var("c", np.frombuffer(b"abcd", "S1"), (4,), ["/y"], dtype=char, fill_value="")
    var("s", np.array([7], "<i8"), (1,), [], storage="scalar")
    var("g/w", ramp((2, 4), "<i4"), (2, 4), ["/g/z", "/y"])


@tree(clients=CLIENTS)
def nczarr_490(path):
    """Upper-case keys in .zgroup and .zarray, characters as <U1."""
    types(path, "upper")


@tree(clients=CLIENTS)
def nczarr_492(path):
    """Lower-case keys in .zgroup and .zarray."""
    types(path, "lower")


@tree(clients=CLIENTS)
def nczarr_493(path):
    """Keys in .zattrs, unlimited dimensions."""
    types(path, "zattrs")


@tree(clients=CLIENTS)
def nczarr_strings(path):
    """Strings of a fixed length with NCZarr's meaning, an attribute of JSON text."""
    put(path, ".zgroup", {"zarr_format": 2})
    put(path, ".zattrs", {
        "json": {"a": [1, 2]}, "_nczarr_superblock": {"version": "2.0.0"},
        "_nczarr_group": {"dimensions": {"n": 3}, "arrays": ["s"], "groups": []},
        "_nczarr_attr": {"types": {"json": ">S1", "_nczarr_superblock": "|J0",
                                   "_nczarr_group": "|J0", "_nczarr_attr": "|J0"}}})
    array(path, "s", np.array(["ab", "", "cdef"], "S8"), (3,), {
        "_ARRAY_DIMENSIONS": ["n"], "_nczarr_maxstrlen": 8,
        "_nczarr_array": {"dimension_references": ["/n"], "storage": "chunked"},
        "_nczarr_attr": {"types": {"_nczarr_maxstrlen": "<i4"}}}, dtype="|S8", fill_value="")


@tree(clients=CLIENTS)
def nczarr_1(path):
    """Version 1: documents of its own beside Zarr's."""
    group(path, {"title": "one", "n": 5})
    put(path, ".nczarr", {"zarr_format": 2, "nczarr_version": "1.0.0"})
    put(path, ".nczgroup", {"dims": {"y": 4, "x": 3}, "vars": ["v"], "groups": ["g"]})
    put(path, ".nczattr", {"types": {"title": "2", "n": "3"}})
    array(path, "v", ramp((4, 3), "<i4"), (2, 3), {"units": "m"})
    put(path, "v/.nczarray", {"dimrefs": ["/y", "/x"], "storage": "chunked"})
    put(path, "v/.nczattr", {"types": {"units": "2"}})
    group(path, key="g")
    put(path, "g/.nczgroup", {"dims": {}, "vars": ["w"], "groups": []})
    array(path, "g/w", ramp((4,), "<f8"), (4,))
    put(path, "g/w/.nczarray", {"dimrefs": ["/y"], "storage": "chunked"})
