# SPDX-License-Identifier: BSD-3-Clause
"""A virtual classic file, read by netCDF-C, against the virtual netCDF-4 file of the same source,
read by h5py: the variables, values and attributes of the root group are the same, and nothing is
left out but what classic netCDF cannot express."""
import math

import h5py
import netCDF4
import numpy as np

from clients.netcdf.nc_h5py import DIM_ONLY, HIDDEN, Problems

NON_COORD = "_nc4_non_coord_"
WIDE = ("uint8", "uint16", "uint32", "int64", "uint64")  # types of CDF-5


def version(file):
    with open(file, "rb") as f:
        head = f.read(4)
    assert head[:3] == b"CDF", f"{file} begins with {head}"
    return head[3]


def number(dtype):
    """The classic type of a dtype of numbers or characters, in native order; None: none."""
    if dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize <= 8):
        return np.dtype("f4") if dtype.itemsize == 2 and dtype.kind == "f" else (
            dtype.newbyteorder("="))
    return np.dtype("S1") if dtype.kind == "S" and dtype.itemsize == 1 else None


def simple(dtype):
    return h5py.check_string_dtype(dtype) is None and h5py.check_vlen_dtype(dtype) is None


def members(nc):
    """{netCDF name: dataset} of the variables of the root group."""
    found = {}
    for name, item in nc.items():
        if isinstance(item, h5py.Dataset) and not bytes(
                item.attrs.get("NAME", b"")).startswith(DIM_ONLY):
            found[name.removeprefix(NON_COORD)] = item
    return found


def shown(d, wide):
    """Whether classic netCDF can express a variable, apart from lengths of 0."""
    try:
        d.dtype
    except TypeError:  # one that numpy does not have: complex numbers of half floats
        return False
    if d.dtype.kind == "S" and d.dtype.itemsize == 1:
        return True
    return simple(d.dtype) and number(d.dtype) is not None and (
        wide or number(d.dtype).name not in WIDE)


def same_bits(got, want):
    return np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()


def values(name, v, d, problems):
    got, want = v[...], d[()]
    want = np.asarray(want).astype(number(d.dtype), copy=False)
    got = np.asarray(got)
    if got.dtype.newbyteorder("=") != want.dtype:
        problems.add(name, f"dtype {got.dtype}, {want.dtype} expected")
        return
    if got.ndim != want.ndim or any(g < w for g, w in zip(got.shape, want.shape)):
        problems.add(name, f"shape {got.shape}, {want.shape} expected")
        return
    some = got[tuple(slice(n) for n in want.shape)].astype(want.dtype)
    if not same_bits(some, want):
        problems.add(name, "values differ")
    rest = np.ones(got.shape, bool)
    rest[tuple(slice(n) for n in want.shape)] = False
    if rest.any():
        fill = np.full(1, d.fillvalue, d.dtype).astype(want.dtype)
        if not same_bits(got[rest].astype(want.dtype), np.full(int(rest.sum()), fill[0])):
            problems.add(name, "values after the array's end are not fill values")


def text(value):
    return (value.decode() if isinstance(value, bytes) else str(value)).rstrip("\0")


def same_text(got, want, room):
    """h5py ends a string of `room` bytes at its first NUL, netCDF4 leaves NULs out."""
    return got == want or (len(want.encode()) < room and got.startswith(want))


def attribute(where, name, obj, got, wide, problems):
    value = obj.attrs.get(name, None)
    dtype = obj.attrs.get_id(name).dtype
    if isinstance(value, h5py.Empty) or (isinstance(value, np.ndarray) and not value.size):
        return
    if h5py.check_string_dtype(dtype) is not None:
        many = isinstance(value, np.ndarray) and value.size > 1
        one = value.ravel()[0] if isinstance(value, np.ndarray) else value
        if many:
            if name in got.ncattrs():
                problems.add(where, f"attribute {name} is a list of strings, and there")
        elif name not in got.ncattrs():
            problems.add(where, f"attribute {name} is missing")
        elif not same_text(text(got.getncattr(name)), text(one), dtype.itemsize):
            problems.add(where, f"attribute {name} differs: {got.getncattr(name)!r} for "
                                f"{one!r}")
        return
    if not simple(dtype) or number(dtype) is None:
        if name in got.ncattrs():
            problems.add(where, f"attribute {name} has a type that classic netCDF has not")
        return
    want = np.asarray(value).ravel().astype(number(dtype))
    if want.dtype.name in WIDE and not wide:
        if int(want.max()) >= 2**31 or int(want.min()) < -2**31:
            return
        want = want.astype("i4")
    if name not in got.ncattrs():
        problems.add(where, f"attribute {name} is missing")
        return
    have = np.asarray(got.getncattr(name)).ravel()
    if have.dtype != want.dtype or not same_bits(have, want):
        problems.add(where, f"attribute {name} differs: {have} {have.dtype} for {want} "
                            f"{want.dtype}")


def attributes(where, obj, got, wide, problems):
    for name in obj.attrs:
        if name not in HIDDEN:
            attribute(where, name, obj, got, wide, problems)


def compare(classic, nc4):
    problems = Problems()
    wide = version(classic) == 5
    with netCDF4.Dataset(classic) as nc, h5py.File(nc4, "r") as h5:
        nc.set_auto_mask(False)
        nc.set_auto_scale(False)
        nc.set_auto_chartostring(False)
        want = members(h5)
        for name, d in want.items():
            if not shown(d, wide):
                if name in nc.variables:
                    problems.add(name, f"has type {d.dtype}, and is there")
            elif name in nc.variables:
                values(name, nc.variables[name], d, problems)
                attributes(name, d, nc.variables[name], wide, problems)
            elif 0 < math.prod(d.shape) * d.dtype.itemsize < 1 << 62:
                problems.add(name, "is missing")
        for name in set(nc.variables) - set(want):
            problems.add(name, "is there")
        attributes("/", h5, nc, wide, problems)
    problems.raise_any()
