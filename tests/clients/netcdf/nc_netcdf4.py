# SPDX-License-Identifier: BSD-3-Clause
"""A virtual file through netCDF4-python: every variable has the values that h5py gives, whose own
are compared with the tree elsewhere."""
import h5py
import netCDF4
import numpy as np


def texts(a):
    """Texts and lists as they compare."""
    return [x if isinstance(x, str) else x.decode() if isinstance(x, bytes) else
            np.asarray(x).tobytes() for x in np.asarray(a, object).ravel()]


def native(a):
    """Packed, in the byte order of the machine, complex numbers as two fields."""
    a = np.asarray(a)
    if a.dtype.kind == "c":
        a = a.astype(a.dtype.newbyteorder("="))
        half = a.real.dtype
        return np.ascontiguousarray(a).view([("r", half), ("i", half)]).reshape(a.shape)
    return a.astype(packed(a.dtype))


def packed(dtype):
    if not dtype.names:
        return dtype.newbyteorder("=")
    return np.dtype([(n, packed(dtype[n].base), dtype[n].shape) for n in dtype.names])


def same(path, v, d, problems):
    if v.shape != d.shape:
        problems.append(f"{path}: shape {v.shape}, {d.shape} in h5py")
        return
    got, want = v[...], d[()]
    if d.dtype.kind == "O":
        if texts(got) != texts(want):
            problems.append(f"{path}: {texts(got)[:3]}, {texts(want)[:3]} in h5py")
    elif native(got).astype(native(want).dtype).tobytes() != native(want).tobytes():
        problems.append(f"{path}: {got.ravel()[:3]}, {want.ravel()[:3]} in h5py")


def walk(group, h5, problems):
    for name, v in group.variables.items():
        d = h5.get("_nc4_non_coord_" + name) or h5[name]
        v.set_auto_maskandscale(False)
        v.set_auto_chartostring(False)
        for key in v.ncattrs():
            v.getncattr(key)
        if d.dtype.newbyteorder("=") != "f2":  # netCDF-C gives float
            same(f"{group.path}/{name}", v, d, problems)
    for name, child in group.groups.items():
        walk(child, h5[name], problems)


def compare(file):
    problems = []
    with netCDF4.Dataset(file) as nc, h5py.File(file) as h5:
        walk(nc, h5, problems)
    assert not problems, "\n".join(problems[:20])
