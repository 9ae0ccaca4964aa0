# SPDX-License-Identifier: BSD-3-Clause
"""A netCDF-4 file against what came back from it: through a mount as a Zarr tree, a copy of that,
and a mount of the copy as a netCDF-4 file. Equal dumps end the matter; otherwise netCDF4-python
reads both, and everything that differs without a name in tests/differences.py is a failure."""
import os
import subprocess
import warnings

import h5py
import netCDF4
import numpy as np

from clients.netcdf import nc_tools

ADDED = {"flag_values", "flag_meanings", "_Encoding", "numpy_dtype"}  # enum-attrs, round-strings
ODD = set("\\%\n\t\"'*/ ") | {chr(i) for i in range(32)}
LIMIT = 1 << 20  # elements: more are compared by the tests of each direction


def dump(file):
    """ncdump's text without its first line, or None when it cannot."""
    try:
        return nc_tools.run("ncdump", file, seconds=20).partition(b"\n")[2]
    except (nc_tools.Failed, subprocess.TimeoutExpired):
        return None


def header(file):
    return nc_tools.run("ncdump", "-h", file, seconds=20).partition(b"\n")[2]


class Pair:
    def __init__(self, original, mode, known, unknown):
        self.original = original
        self.rich = mode == "nczarr"
        self.known = known    # path -> name of the difference: not compared
        self.unknown = unknown  # paths of variables whose types netCDF-C does not know
        self.problems = []
        self.used = set()

    def bad(self, path, what):
        self.problems.append(f"{path}: {what}")

    def skip(self, row):
        self.used.add(row)

    def attributes(self, path):
        """Names that h5py sees: nc-attributes."""
        with h5py.File(self.original, "r") as f:
            return list(f[path or "/"].attrs) if (path or "/") in f else []

    def unnamed(self, name):
        """Whether a dimension's name is made up."""
        return name.startswith("phony_dim_")


def odd(name):
    """A name that Zarr or a file system does not take as it is."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return name.startswith((".", "-")) or bool(ODD & set(name)) or len(name) > 200


def compound(value):
    """Of attributes with a type of the file's own: nc-attributes."""
    return isinstance(value, (np.ndarray, np.void)) and bool(value.dtype.names) or (
        isinstance(value, tuple))


def user_type(v):
    return isinstance(v.datatype, (netCDF4.CompoundType, netCDF4.VLType)) and v.dtype is not str


def attributes(obj):
    """{name: value}; types of the file's own are left out: netCDF4-python does not know them."""
    out = {}
    for name in obj.ncattrs():
        try:
            out[name] = obj.getncattr(name)
        except (KeyError, AttributeError, UnicodeDecodeError, IndexError):
            continue
    return out


def texts(value):
    value = value if isinstance(value, list) else [value]
    return [str(x).rstrip("\0") for x in value]


def same_value(p, want, got):
    if isinstance(want, (str, list, bytes)):
        if want == [] or got == []:  # null-attr
            return len(want) == len(got) == 0
        want, got = (x.decode("latin1") if isinstance(x, bytes) else x for x in (want, got))
        return isinstance(got, (str, list)) and texts(want) == texts(got)
    want, got = np.atleast_1d(want), np.atleast_1d(got)
    if got.dtype.kind in "US":
        return want.size == 0  # null-attr
    if p.rich and got.dtype != want.dtype:
        return False
    if want.size != got.size:
        return False
    p.skip("attr-type")
    return got.astype(want.dtype).tobytes() == want.tobytes() or (
        want.dtype.kind == "f" and np.array_equal(got.astype(want.dtype), want, equal_nan=True))


def same_attributes(p, path, x, y):
    a, b = attributes(x), attributes(y)
    for name, want in a.items():
        if odd(name):
            continue
        if name not in b:
            p.bad(path, f"attribute {name} is missing")
        elif not latin1(want) and not compound(want) and not same_value(p, want, b[name]):
            p.bad(path, f"attribute {name} is {b[name]!r:.60}, {want!r:.60} expected")
    own = set(x.ncattrs()) | set(p.attributes(path))
    for name in set(b) - own - ADDED:
        if not odd(name):
            p.bad(path, f"attribute {name} was not there")


def latin1(value):
    """Text that was not UTF-8: Python shows what it could not decode."""
    return isinstance(value, str) and any("\ufffd" in x or "\udc80" <= c <= "\udcff"
                                          for x in [value] for c in x)


def same_dimensions(p, path, x, y):
    for name, d in x.dimensions.items():
        if p.unnamed(name) or odd(name):
            continue
        if name not in y.dimensions:
            p.bad(path, f"dimension {name} is missing")
            continue
        e = y.dimensions[name]
        if (len(d), d.isunlimited()) != (len(e), e.isunlimited()):
            p.bad(path, f"dimension {name} is {len(e)} {e.isunlimited()}, "
                        f"{len(d)} {d.isunlimited()} expected")


def same_variable(p, path, v, w):
    if user_type(v):
        p.skip("round-types")
        return
    if v.dtype is str and w.dtype is not str:
        same_strings(p, path, v, w)
        return
    if v.shape != w.shape:
        p.bad(path, f"shape {w.shape}, {v.shape} expected")
        return
    for a, b in zip(v.dimensions, w.dimensions):
        if a != b and not p.unnamed(a) and not odd(a):
            p.bad(path, f"dimensions {w.dimensions}, {v.dimensions} expected")
            return
    if v.dtype != w.dtype and (v.dtype is str or np.dtype(v.dtype).newbyteorder() != w.dtype):
        p.bad(path, f"type {w.dtype}, {v.dtype} expected")
        return
    same_attributes(p, path, v, w)
    if v.size <= LIMIT and not same_data(v, w):
        p.bad(path, f"other data: {np.asarray(w[...]).ravel()[:4]} for "
                    f"{np.asarray(v[...]).ravel()[:4]}")


def same_data(v, w):
    try:
        a = np.asarray(v[...])
    except RuntimeError:  # netcdf-padding: netCDF-C cannot read the original
        return True
    b = np.asarray(w[...])
    if v.dtype is str:
        return a.ravel().tolist() == b.ravel().tolist()
    return a.astype(a.dtype.newbyteorder("=")).tobytes() == b.astype(
        b.dtype.newbyteorder("=")).tobytes()


def same_strings(p, path, v, w):
    """round-strings: texts have a fixed length."""
    p.skip("round-strings")
    if w.dtype != np.dtype("S1") or w.shape[:-1] != v.shape:
        p.bad(path, f"{w.dtype} of shape {w.shape} for strings of shape {v.shape}")
        return
    w.set_auto_chartostring(False)
    got = np.ascontiguousarray(w[...]).view(f"S{w.shape[-1]}").ravel().tolist()
    try:
        want = [str(x).encode() for x in np.asarray(v[...], object).ravel()]
    except UnicodeError:  # latin1-text
        return
    if got != want:
        p.bad(path, f"texts {got[:3]}, {want[:3]} expected")


def same_group(p, x, y):
    path = x.path.rstrip("/")
    if p.rich:
        same_dimensions(p, path, x, y)
    same_attributes(p, path, x, y)
    for name, v in x.variables.items():
        here = f"{path}/{name}"
        v.set_auto_maskandscale(False)
        if here in p.known:
            p.skip(p.known[here])
        elif name not in y.variables:
            if not odd(name) and not user_type(v):
                p.bad(here, "is missing")
        else:
            y.variables[name].set_auto_maskandscale(False)
            same_variable(p, here, v, y.variables[name])
    for name in set(y.variables) - set(x.variables):
        if f"{path}/{name}" in p.unknown:
            p.skip("round-types")
        elif not odd(name):
            p.bad(f"{path}/{name}", "was not there")
    for name, g in x.groups.items():
        if name in y.groups:
            same_group(p, g, y.groups[name])
        elif not odd(name):
            p.bad(f"{path}/{name}", "group is missing")


def datasets(file):
    found = set()
    with h5py.File(file, "r") as f:
        f.visititems(lambda name, obj: found.add("/" + name)
                     if isinstance(obj, h5py.Dataset) else None)
    return found


def compare(original, result, mode, known):
    """known: path of a variable -> name of the difference that keeps it from being compared."""
    warnings.simplefilter("ignore")
    small = os.path.getsize(original) < 256 << 10
    want, got = (dump(original), dump(result)) if small else (header(original), header(result))
    if want is None:
        print("ncdump cannot read the file itself")
        return
    assert got is not None, "ncdump cannot read what came back"
    if want == got and small:
        print("equal dumps")
        return
    p = Pair(original, mode, known, datasets(original))
    with netCDF4.Dataset(original) as x, netCDF4.Dataset(result) as y:
        same_group(p, x, y)
    print("differences:", sorted(p.used))
    assert not p.problems, "\n".join(p.problems[:30])
