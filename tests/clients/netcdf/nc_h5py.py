# SPDX-License-Identifier: BSD-3-Clause
"""A virtual file through h5py: every object is visited; every array has the shape, type, values
and attributes that zarr-python gives for the tree; dimensions are scales with the right names."""
import json
import math
import os

import h5py
import numpy as np

from clients import mapping, tree

HIDDEN = ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Dimid",
          "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict")
DIM_ONLY = b"This is a netCDF dimension but not a netCDF variable"


class Problems(list):
    def add(self, path, what):
        if len(self) < 40:
            self.append(f"{path}: {what}")

    def raise_any(self):
        if self:
            raise AssertionError("\n".join(self))


def find(nc, path, problems):
    group, _, name = mapping.path(path).rpartition("/")
    d = nc.get(f"{group}/_nc4_non_coord_{name}") or nc.get(f"{group}/{name}")
    if not isinstance(d, h5py.Dataset):
        problems.add(path, "is missing")
        return None
    return d


def scalar(a):
    """NCZarr's scalars are arrays of one element."""
    mine = a.attrs.get("_nczarr_array") or a.meta.get("_nczarr_array") or a.meta.get(
        "_NCZARR_ARRAY") or {}
    return mine.get("storage") == "scalar" or mine.get("scalar") == 1


def same_values(a, want, d, problems):
    """Bit for bit; texts by their characters."""
    got = d[()]
    want = want.reshape(a.shape)
    if mapping.is_text(want.dtype):
        if want.dtype.kind == "O" and want.size and h5py.check_vlen_dtype(d.dtype) not in (
                None, str, bytes):
            return same_lists(a, want, got, problems)
        if want.dtype.kind in "SU" and d.ndim == want.ndim + 1:
            got = np.ascontiguousarray(got)
            n = got.shape[-1]
            got = got.view(f"S{n}").reshape(want.shape) if n and got.size else got
        if mapping.texts(got) != mapping.texts(want):
            problems.add(a.path, f"texts differ: {mapping.texts(got)[:3]} for "
                                 f"{mapping.texts(want)[:3]}")
        return None
    want = mapping.present(want)
    got = np.asarray(got)
    if got.dtype.kind == "V" and want.dtype.kind == "V" and not want.dtype.names:
        got = got.astype(want.dtype) if got.dtype.itemsize == want.dtype.itemsize else got
    if want.dtype.kind == "c" and got.dtype.names:
        got = got.view(want.dtype)
    if got.shape != want.shape:
        problems.add(a.path, f"values of shape {got.shape}, {want.shape} expected")
    elif got.dtype != want.dtype and got.dtype.newbyteorder() != want.dtype:
        problems.add(a.path, f"dtype {got.dtype}, {want.dtype} expected")
    elif tree.bits(got.astype(want.dtype, copy=False)) != tree.bits(want):
        problems.add(a.path, "values differ" + where(got, want))
    return None


def same_lists(a, want, got, problems):
    for x, y in zip(np.asarray(got, object).ravel(), want.ravel()):
        y = y if isinstance(y, bytes) else np.asarray(y).tobytes()
        if np.asarray(x).tobytes() != y:
            problems.add(a.path, f"lists differ: {x} for {y}")
            return


def where(got, want):
    if got.dtype.names or got.ndim == 0:
        return f": {got!r:.100} for {want!r:.100}"
    g = np.ascontiguousarray(got).view("u1").reshape(got.size, -1)
    w = np.ascontiguousarray(want).view("u1").reshape(got.size, -1)
    at = np.flatnonzero((g != w).any(axis=1))
    if not len(at):
        return ""
    i = np.unravel_index(at[0], got.shape)
    return f" at {len(at)} of {got.size}, first {tuple(int(k) for k in i)}: {got[i]} for {want[i]}"


def dims_of(d):
    """Names of the scales of each axis."""
    out = []
    for i, dim in enumerate(d.dims):
        if h5py.h5ds.is_scale(d.id) and i == 0 and not len(dim):
            out.append(os.path.basename(d.name))
        else:
            out.append(os.path.basename(dim[0].name) if len(dim) else None)
    return out


def same_dims(a, d, problems):
    got = dims_of(d)
    if None in got:
        problems.add(a.path, f"an axis without a dimension scale: {got}")
    elif a.dims and None not in a.dims and len(a.dims) == len(a.shape):
        if got[:len(a.dims)] != list(a.dims):
            problems.add(a.path, f"dimensions {got}, {a.dims} expected")


def number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def same_attr(path, name, want, got, problems):
    """JSON against what h5py gives; NCZarr's rules are checked in tests of their own."""
    if isinstance(got, h5py.Empty):
        ok = want in ("", [], None)
    elif isinstance(want, str):
        ok = mapping.texts(got) == [want] or want in ("NaN", "Infinity", "-Infinity") or (
            name == "_FillValue")
    elif isinstance(want, bool):
        ok = np.asarray(got).ravel().tolist() == [int(want)]
    elif number(want):
        ok = same_numbers([want], got)
    elif isinstance(want, list) and want and all(number(x) for x in want):
        ok = same_numbers(want, got)
    elif isinstance(want, list) and want and all(isinstance(x, str) for x in want):
        ok = mapping.texts(got) == [x.rstrip("\0") for x in want]
    else:
        try:
            ok = json.loads(mapping.texts(got)[0]) == want
        except ValueError:
            ok = False
    if not ok:
        problems.add(path, f"attribute {name} is {got!r:.100}, {want!r:.100} expected")


def same_numbers(want, got):
    if mapping.is_text(np.asarray(got).dtype):
        return False
    got = np.asarray(got).ravel()
    if len(got) != len(want):
        return False
    for g, w in zip(got, want):
        if isinstance(w, float) and math.isnan(w):
            if not math.isnan(g):
                return False
        elif g != w and g != got.dtype.type(w):
            return False
    return True


def same_attrs(path, want, attrs, problems):
    for name, value in want.items():
        if name.startswith(("_nczarr", "_NCZARR", "_ARRAY_DIM")) or name in HIDDEN:
            continue
        name = mapping.name(name)
        if name not in attrs:
            problems.add(path, f"attribute {name} is missing")
            continue
        try:
            got = attrs[name]
        except (OSError, TypeError) as error:
            problems.add(path, f"attribute {name}: {error}")
            continue
        same_attr(path, name, value, got, problems)


def visit(nc, problems):
    """Every object and attribute can be looked at; what is only a dimension says so."""
    def look(name, obj):
        for key in obj.attrs:
            try:
                obj.attrs[key]
            except (OSError, TypeError) as error:
                problems.add(name, f"attribute {key}: {error}")
        if isinstance(obj, h5py.Dataset):
            assert obj.shape is not None, name
    nc.visititems(look)


def compare(source, file, missing=(), values_only=False):
    """source: the tree; file: the virtual file. missing: paths that are left out on purpose."""
    problems = Problems()
    t = tree.load(source)
    if values_only:
        t.groups = {path: {} for path in t.groups}
        for a in t.arrays.values():
            a.attrs = a.dims = None
    with h5py.File(file, "r") as nc:
        visit(nc, problems)
        for path, attrs in t.groups.items():
            g = nc.get(mapping.path(path))
            if not isinstance(g, h5py.Group):
                problems.add(path, "group is missing")
            else:
                same_attrs(path, attrs, g.attrs, problems)
        for path, a in t.arrays.items():
            if path in missing:
                continue
            if path == "/":
                path = "/" + root_name(nc, problems)
            d = find(nc, path, problems)
            if d is None:
                continue
            same_array(a, d, problems)
    problems.raise_any()
    return len(t.arrays)


def root_name(nc, problems):
    """A root that is an array: the only variable."""
    names = [n for n in nc if isinstance(nc[n], h5py.Dataset)
             and DIM_ONLY not in nc[n].attrs.get("NAME", b"")]
    if len(names) != 1:
        problems.add("/", f"one variable expected: {names}")
    return names[0] if names else "nothing"


def same_array(a, d, problems):
    if a.shape == (1,) and d.shape == () and scalar(a):
        a.shape, a.dims = (), None
    if d.shape[:len(a.shape)] != a.shape:
        problems.add(a.path, f"shape {d.shape}, {a.shape} expected")
        return
    if a.attrs is not None:
        same_dims(a, d, problems)
        same_attrs(a.path, a.attrs, d.attrs, problems)
    want = mapping.units(a.dtype) if a.dtype is not None else None
    if want and "units" not in (a.attrs or ()) and (
            mapping.texts(d.attrs.get("units", "")) != [want]):
        problems.add(a.path, f"units {d.attrs.get('units')}, {want!r} expected")
    try:
        values = a.values()
    except tree.Unreadable as why:
        print(f"{a.path}: not compared: {why}")
        return
    same_values(a, values, d, problems)
