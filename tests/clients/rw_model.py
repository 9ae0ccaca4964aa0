# SPDX-License-Identifier: BSD-3-Clause
"""What a dataset holds, as plain Python: of a netCDF-4 or HDF5 file by h5py and netCDF4-python,
of a Zarr tree by zarr-python 2. Two of them are compared, in what both formats know."""
import json
import os

import numpy as np

HIDDEN = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Coordinates",
          "_Netcdf4Dimid",
          "_nc3_strict", "_NCProperties", "_ARRAY_DIMENSIONS", "_NCZARR_ATTR", "_nczarr_attr",
          "_nczarr_array", "_nczarr_group", "_nczarr_superblock", "_NCZARR_ARRAY", "_NCZARR_GROUP",
          "_NCZARR_SUPERBLOCK"}
DIM_ONLY = b"This is a netCDF dimension but not a netCDF variable"
# HDF5's numbers and numcodecs' names of the same filters
FILTERS = {1: "zlib", 2: "shuffle", 3: "fletcher32", 307: "bz2", 32001: "blosc", 32015: "zstd",
           32004: "lz4", 32000: "lzf", 5: "nbit", 6: "scaleoffset"}
NAMES = {"gzip": "zlib"}


def native(dtype):
    return np.dtype(dtype).newbyteorder("=")


def plain(value):
    """An attribute: text, or a list of numbers or texts."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind == "S":
        value = [x.decode() for x in value.ravel()]
    if isinstance(value, (list, tuple, np.ndarray)):
        flat = np.asarray(value, object).ravel().tolist()
    else:
        flat = [value]
    flat = [plain(x) if isinstance(x, (str, bytes)) else number(x) for x in flat]
    return flat[0] if len(flat) == 1 and isinstance(flat[0], str) else flat


def number(x):
    x = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, bool):
        return int(x)
    if isinstance(x, float):
        return "NaN" if x != x else x
    return x if isinstance(x, (int, float)) or x is None else json.dumps(x, default=str)


def attributes(pairs):
    return {name: plain(value) for name, value in pairs if name not in HIDDEN}


def same_bytes(a):
    """Values in a form that == compares bit by bit."""
    a = np.asarray(a)
    if a.dtype.kind == "O":
        return [x.tolist() if isinstance(x, np.ndarray) else
                (x.decode() if isinstance(x, bytes) else (x or "" if x is None else x))
                for x in a.ravel().tolist()]
    if a.dtype.kind == "U":
        return [str(x) for x in a.ravel().tolist()]
    return np.ascontiguousarray(a.astype(native(a.dtype))).tobytes()


# ---- netCDF-4, HDF5 ----

def hdf5_array(d):
    import h5py
    plist = d.id.get_create_plist()
    chain = []
    for i in range(plist.get_nfilters()):
        number_, _, values, _ = plist.get_filter(i)
        chain.append(FILTERS.get(number_, number_))
    fill = None
    if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
        fill = d.fillvalue
    value = d[()]
    if h5py.check_string_dtype(d.dtype) is not None and d.dtype.kind == "O":
        value = d.asstr()[()]
    return {"shape": d.shape, "dtype": str(native(d.dtype)), "chunks": d.chunks, "filters": chain,
            "fill": None if fill is None else plain(fill) if isinstance(fill,
                                                                        bytes) else number(fill),
            "maxshape": d.maxshape, "values": same_bytes(value),
            "attrs": attributes(safe_items(d)), "attr_types": attr_types(d)}


def safe_items(obj):
    """Attributes without those that h5py cannot read (empty ones and references)."""
    import h5py
    for name in obj.attrs:
        try:
            value = obj.attrs[name]
        except (OSError, TypeError):
            continue
        if isinstance(value, h5py.Empty):
            value = "" if value.dtype.kind in "SO" else []
        yield name, value


def attr_types(obj):
    found = {}
    for name in obj.attrs:
        if name not in HIDDEN:
            a = obj.attrs.get_id(name)
            kind = a.dtype.kind
            found[name] = "text" if kind in "SO" else str(native(a.dtype))
    return found


def of_nc(path):
    import h5py
    import netCDF4
    model = {"arrays": {}, "groups": {}, "dims": {}}
    with h5py.File(path, "r") as f:
        def visit(name, obj):
            where = "/" + name
            if isinstance(obj, h5py.Dataset):
                if not bytes(obj.attrs.get("NAME", b"")).startswith(DIM_ONLY):
                    model["arrays"][where.replace("_nc4_non_coord_", "")] = hdf5_array(obj)
            elif isinstance(obj, h5py.Group):
                model["groups"][where] = attributes(safe_items(obj))
        model["groups"]["/"] = attributes(safe_items(f))
        f.visititems(visit)
    with netCDF4.Dataset(path) as nc:
        def walk(g):
            base = "" if g.path == "/" else g.path
            for d in g.dimensions.values():
                model["dims"][base + "/" + d.name] = (len(d), d.isunlimited())
            for v in g.variables.values():
                if base + "/" + v.name in model["arrays"]:
                    model["arrays"][base + "/" + v.name]["dims"] = tuple(v.dimensions)
            for child in g.groups.values():
                walk(child)
        walk(nc)
    return model


# ---- Zarr ----

def zarr_array(a):
    import zarr
    chain = []
    for codec in [*(a.filters or []), a.compressor]:
        if codec is None:
            continue
        name = NAMES.get(codec.codec_id, codec.codec_id)
        if name == "blosc":
            name = (name, codec.cname, codec.shuffle)
        chain.append(name)
    value = a[...]
    fill = a.fill_value
    found = {"shape": a.shape, "dtype": str(native(a.dtype)), "chunks": a.chunks, "filters": chain,
             "fill": None if fill is None else plain(fill) if isinstance(fill, (str, bytes))
             else number(fill), "values": same_bytes(value), "order": a.order,
             "separator": a._dimension_separator, "attrs": attributes(a.attrs.items())}
    dims = a.attrs.get("_ARRAY_DIMENSIONS")
    if dims is not None:
        found["dims"] = tuple(dims)
    return found


def of_tree(path):
    import zarr
    model = {"arrays": {}, "groups": {}, "dims": {}}
    root = zarr.open(path, mode="r")
    if isinstance(root, zarr.Array):
        model["arrays"]["/"] = zarr_array(root)
        return model
    model["groups"]["/"] = attributes(root.attrs.items())

    def visit(name, obj):
        if isinstance(obj, zarr.Array):
            model["arrays"]["/" + name] = zarr_array(obj)
        else:
            model["groups"]["/" + name] = attributes(obj.attrs.items())
    root.visititems(visit)
    return model


# ---- comparing ----

def show(x):
    text = repr(x)
    return text if len(text) < 90 else text[:90] + "..."


class Compare:
    """only: names of what is compared in arrays; but: {path: names that are not}. through: got
    has been in a netCDF-4 file, where a fill value is an attribute, one of 0 is none, every
    dimension has a name, and what has no type there has another
    (docs/dev/reading/virtual-file.md)."""

    def __init__(self, want, got, only=("shape", "dtype", "values", "attrs"), but=None,
                 through=False):
        self.want, self.got, self.only, self.but = want, got, only, but or {}
        self.through = through
        self.problems = []

    def say(self, text):
        self.problems.append(text)

    def attrs(self, where, want, got):
        for name in sorted(set(want) | set(got)):
            if f"{where}@{name}" in self.but:
                continue
            if name not in got:
                self.say(f"{where}: attribute {name} is missing ({show(want[name])})")
            elif name not in want:
                self.say(f"{where}: attribute {name} was not there ({show(got[name])})")
            elif want[name] != got[name]:
                self.say(f"{where}: attribute {name} is {show(got[name])}, {show(want[name])} "
                         "expected")

    def as_file(self, want, got):
        """What want is after it was in a netCDF-4 file."""
        want = dict(want, attrs=dict(want["attrs"]))
        name = "_FillValue"
        if name in got["attrs"] and name not in want["attrs"] and want["fill"] is not None:
            fill = want["fill"]
            want["attrs"][name] = fill if isinstance(fill, str) else [
                number(np.array(fill, want["dtype"])[()])] if fill == fill else fill
            if fill in (float("inf"), float("-inf")) and isinstance(got["attrs"][name], str):
                want["attrs"][name] = "Infinity" if fill > 0 else "-Infinity"
        # what xarray does not mask is no _FillValue, and the tree does not show it
        if got["fill"] is None and (want["fill"] == 0 or want.get("dims") is None):
            want["fill"] = None
        if want.get("dims") is None and all(d.startswith(("phony_dim", "string"))
                                            for d in got.get("dims") or ()):
            want["dims"] = got.get("dims")
        if want["dtype"] == "bool" and got["dtype"] == "int8":
            want["dtype"], want["attrs"]["dtype"] = "int8", "bool"
        if want["dtype"].startswith("|S") and want["dtype"] != "|S1" and got["dtype"] == "|S1":
            n = int(want["dtype"][2:])
            want["dtype"] = "|S1"
            want["attrs"].setdefault("_Encoding", "utf-8")
            for what in "shape", "chunks":
                want[what] = want[what] and want[what] + (n,)
        if want["dtype"] == "object" or (got["chunks"] is None and want["shape"] == ()):
            want["chunks"] = got["chunks"]
        return want

    def array(self, where, want, got):
        if self.through:
            want = self.as_file(want, got)
        for what in self.only:
            if what in self.but.get(where, ()):
                continue
            a, b = want.get(what), got.get(what)
            if what == "attrs":
                self.attrs(where, a, b)
            elif what == "dtype":
                if a != b and {a, b} != {"object", "str"}:
                    self.say(f"{where}: type {b}, {a} expected")
            elif a != b:
                if what == "values" and want["shape"] == got["shape"]:
                    self.say(f"{where}: other values{difference(want, got)}")
                elif what != "values":
                    self.say(f"{where}: {what} is {show(b)}, {show(a)} expected")

    def run(self):
        for kind in "groups", "arrays":
            want, got = self.want[kind], self.got[kind]
            for where in sorted(set(want) | set(got)):
                if "all" in self.but.get(where, ()):
                    continue
                if where not in got:
                    self.say(f"{where} is missing ({kind})")
                elif where not in want:
                    self.say(f"{where} was not there ({kind})")
                elif kind == "groups":
                    self.attrs(where, want[where], got[where])
                else:
                    self.array(where, want[where], got[where])
        if "dims" in self.only and self.want["dims"] and self.got["dims"]:
            if self.want["dims"] != self.got["dims"]:
                self.say(f"dimensions are {self.got['dims']}, {self.want['dims']} expected")
        return self.problems


def difference(want, got):
    a, b = want["values"], got["values"]
    if isinstance(a, bytes) and isinstance(b, bytes) and want["dtype"] == got["dtype"]:
        x, y = (np.frombuffer(v, want["dtype"]) for v in (a, b))
        if x.size == y.size:
            i = int(np.flatnonzero(x.view(np.uint8).reshape(x.size, -1).astype(int).sum(1) !=
                                   y.view(np.uint8).reshape(y.size, -1).astype(int).sum(1))[0]
                    ) if x.size else 0
            return f" (first at {i}: {y[i]!r} for {x[i]!r})"
    return f" ({show(b)} for {show(a)})"


def compare(want, got, **how):
    problems = Compare(want, got, **how).run()
    assert not problems, "\n".join(problems[:30])
