# SPDX-License-Identifier: BSD-3-Clause
"""A classic netCDF file through the mount, as a Zarr tree and as a virtual netCDF-4 file, against
netCDF4-python on the file itself: dimensions, types, byte order, attributes, values bit for bit.

Rows of tests/differences.py: latin1-text, attr-shape, attr-type, null-attr, endian-xarray,
reserved-name, netcdf-name."""
import os
import warnings

import h5py
import netCDF4
import numpy as np
import zarr

from clients import compare_xarray, compare_zarr, mapping
from clients.netcdf import nc_nc

WHOLE = 64 << 20  # bytes; of larger variables the ends are compared
DUMPED = 8 << 10  # bytes; files up to that are compared as text, which takes its time
NUMBERS = ("NaN", "Infinity", "-Infinity")  # as JSON has them


def raw(v):
    v.set_auto_maskandscale(False)
    v.set_auto_chartostring(False)
    return v


def ends(shape, size):
    """Parts of an array that are compared."""
    total = int(np.prod(shape, dtype=object)) * size
    if not shape or total <= WHOLE:
        return [Ellipsis]
    step = max(1, min(shape[0], (1 << 20) * shape[0] // total))
    return [slice(0, step), slice(shape[0] // 2, shape[0] // 2 + step),
            slice(shape[0] - step, shape[0])]


def shown(name):
    """The name of a variable or dimension in the tree."""
    out = name.replace("/", "%2F").replace("\\", "%5C")
    return "%2E" + name[1:] if name in (".", "..", ".zarray", ".zgroup", ".zattrs",
                                        ".zmetadata") else out


def same(where, got, want, problems):
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype.newbyteorder("=") != want.dtype.newbyteorder("="):
        problems.append(f"{where}: {got.dtype}{got.shape}, {want.dtype}{want.shape} in the file")
    elif got.astype(want.dtype).tobytes() != want.tobytes():
        problems.append(f"{where}: values differ: {got.ravel()[:4]} for {want.ravel()[:4]}")


def attributes(where, got, want, exact, problems):
    """got: {name: value}; want: object of netCDF4-python. exact: types, too, but not of a
    _FillValue, which HDF5 has in the variable's type (row round-fill)."""
    names = [n for n in want.ncattrs() if not n.startswith("_nczarr")]
    if list(got) != names:
        problems.append(f"{where}: attributes {list(got)}, {names} in the file")
        return
    for n in names:
        a, b = got[n], want.getncattr(n)
        if isinstance(a, str) and a in NUMBERS and not isinstance(b, str):
            a = float(a)
        elif isinstance(a, str):
            a = a.replace("\0", "")  # netCDF4-python takes NULs out
        if not compare_xarray.same_value(b, a) and not (np.size(a) == 0 and np.size(b) == 0):
            problems.append(f"{where}:{n}: {a!r:.100}, {b!r:.100} in the file")
        elif exact and n != "_FillValue" and getattr(a, "dtype", str) != getattr(b, "dtype", str):
            problems.append(f"{where}:{n}: type {getattr(a, 'dtype', str)}, not "
                            f"{getattr(b, 'dtype', str)}")


def order_of(v):
    """The dtype in the file: big-endian, but of bytes."""
    return v.dtype.newbyteorder("|" if v.dtype.itemsize == 1 else ">")


def tree(nc, mnt, problems):
    """The tree through zarr-python."""
    g = zarr.open(mnt, mode="r")
    want = [shown(n) for n in nc.variables]
    if sorted(g.array_keys()) != sorted(want):
        problems.append(f"arrays {sorted(g.array_keys())}, {sorted(want)} in the file")
        return
    attributes("/", dict(g.attrs), nc, False, problems)
    for name, v in nc.variables.items():
        z = g[shown(name)]
        attrs = dict(z.attrs)
        dims = attrs.pop("_ARRAY_DIMENSIONS")
        if dims != [shown(d) for d in v.dimensions]:
            problems.append(f"{name}: dimensions {dims}, {v.dimensions} in the file")
        if z.dtype.str != order_of(v).str or z.shape != v.shape:
            problems.append(f"{name}: {z.dtype.str}{z.shape}, {order_of(v).str}{v.shape} in the "
                            "file")
            continue
        attributes(name, attrs, v, False, problems)
        for part in ends(v.shape, v.dtype.itemsize):
            same(f"{name}[{part}]", z[part], raw(v)[part], problems)
    groups, arrays = compare_zarr.tree(mnt)
    if all(np.prod(v.shape, dtype=object) * v.dtype.itemsize <= WHOLE
           for v in nc.variables.values()):
        compare_zarr.check_files(mnt, arrays, compare_zarr.Info(None), problems)
    compare_zarr.check_consolidated(mnt, groups, arrays, problems)


class Problems(list):
    def add(self, path, what):
        self.append(f"{path}: {what}")


def virtual(nc, file, problems):
    """The virtual netCDF-4 file through netCDF4-python, its values through h5py, too."""
    with netCDF4.Dataset(file) as mine, h5py.File(file) as h5:
        want = {mapping.name(shown(n)): (len(d), d.isunlimited())
                for n, d in nc.dimensions.items()}
        got = {n: (len(d), d.isunlimited()) for n, d in mine.dimensions.items()}
        if list(got.items()) != list(want.items()):
            problems.append(f"dimensions {got}, {want} in the file")
        names = list(nc.variables)
        if list(mine.variables) != [mapping.name(shown(n)) for n in names]:
            problems.append(f"variables {list(mine.variables)}, {names} in the file")
            return
        attributes("/", values_of(mine), nc, True, problems)
        for name in names:
            v, m = nc.variables[name], mine.variables[mapping.name(shown(name))]
            if m.dimensions != tuple(mapping.name(shown(d)) for d in v.dimensions):
                problems.append(f"{name}: dimensions {m.dimensions}, not {v.dimensions}")
            attributes(name, values_of(m), v, True, problems)
            d = h5.get("_nc4_non_coord_" + m.name) or h5[m.name]
            for part in ends(v.shape, v.dtype.itemsize):
                same(f"virtual {name}[{part}]", raw(m)[part], raw(v)[part], problems)
                same(f"h5py {name}[{part}]", d[part], raw(v)[part], problems)
            if d.dtype.str != order_of(v).str:
                problems.append(f"h5py {name}: {d.dtype.str}, not {order_of(v).str}")


def values_of(obj):
    return {n: obj.getncattr(n) for n in obj.ncattrs()}


class Bare:
    """What compare_xarray asks of its model of an HDF5 file: nothing is known here."""
    arrays = {}

    class groups:
        def __class_getitem__(cls, path):
            return cls

        group = None


def xarrays(file, mnt, scalars):
    """xarray on the file and on the tree, decoded or not."""
    warnings.filterwarnings("ignore")
    problems = []
    for kind, options in (("decoded", {}), ("raw", compare_xarray.RAW)):
        compare_xarray.compare_group(file, mnt, "", True, kind, options, Bare,
                                     compare_zarr.Info(None), problems)
    # row attr-type: a scale_factor of float64 is a number of Python's, which widens no scalar
    widened = [f"/{n}: dtype float64, through the mount float32" for n in scalars]
    return [p for p in problems if "\\x00" not in p and not any(p.endswith(w) for w in widened)]


def compare(file, mnt, nc_mnt, every=True):
    """file: the classic file; mnt: the tree; nc_mnt: folder with the virtual file. every: xarray
    and ncdump are asked, too."""
    problems = Problems()
    with netCDF4.Dataset(file) as nc:
        large = any(np.prod(v.shape, dtype=object) * v.dtype.itemsize > WHOLE
                    for v in nc.variables.values())
        scalars = [n for n, v in nc.variables.items() if not v.shape]
        tree(nc, mnt, problems)
        only, = os.listdir(nc_mnt)
        mine = os.path.join(nc_mnt, only)
        virtual(nc, mine, problems)
    if every and not large:
        problems += xarrays(file, mnt, scalars)
        if os.path.getsize(file) <= DUMPED:
            print("ncdump:", nc_nc.compare(file, mine))
    assert not problems, f"{file}: " + "\n".join(problems[:30])
