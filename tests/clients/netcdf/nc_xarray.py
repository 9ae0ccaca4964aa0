# SPDX-License-Identifier: BSD-3-Clause
"""A virtual file through xarray, both engines, against xarray on the Zarr tree."""
import os

import numpy as np
import xarray as xr

from clients import mapping

HIDDEN = {"coordinates"}


def groups(source):
    """Groups of a tree that have documents, as xarray takes them."""
    out = []
    for base, dirs, names in os.walk(source):
        if ".zarray" in names:
            dirs[:] = []
        elif ".zgroup" in names or base == source:
            out.append(os.path.relpath(base, source) if base != source else None)
    return out


def same(name, got, want, problems):
    if got.dims[:want.ndim] != want.dims:
        problems.append(f"{name}: dimensions {got.dims}, {want.dims} expected")
        return
    a, b = got.values, want.values
    if a.ndim == b.ndim + 1 and a.dtype.kind == "S":  # not decoded: single characters
        a = np.ascontiguousarray(a).view(f"S{a.shape[-1]}")[..., 0]
    if b.dtype.kind in "mM" and a.dtype.kind == "i":  # not decoded: the integers, of another unit
        return
    # text-fill: xarray makes texts that equal the fill value NaN, a netCDF char has none
    if mapping.is_text(b.dtype) or mapping.is_text(a.dtype):
        if mapping.texts(a) != ["" if x == "nan" else x for x in mapping.texts(b)]:
            problems.append(f"{name}: texts {mapping.texts(a)[:3]}, {mapping.texts(b)[:3]}")
        return
    if b.dtype.kind == "b":
        a = a.astype(bool)
    if a.shape != b.shape:
        problems.append(f"{name}: shape {a.shape}, {b.shape} expected")
    elif a.dtype.kind != b.dtype.kind:
        problems.append(f"{name}: dtype {a.dtype}, {b.dtype} expected")
    elif not np.array_equal(a.astype(b.dtype), b, equal_nan=a.dtype.kind in "fcmM"):
        problems.append(f"{name}: values differ: {a.ravel()[:3]} for {b.ravel()[:3]}")


def compare(source, file, decode=True):
    """decode: with masks, times and scales, as people use it."""
    problems = []
    n = 0
    for group in groups(source):
        try:
            want = xr.open_zarr(source, group=group, chunks=None, consolidated=False,
                                decode_cf=decode)
            want.load()
        except Exception as why:  # noqa: B902 - xarray cannot read the tree: nothing to compare
            print(f"{group}: xarray cannot read the tree: {why!r:.200}")
            continue
        for engine in ("h5netcdf", "netcdf4"):
            with xr.open_dataset(file, group=group, engine=engine, decode_cf=decode) as got:
                for name in want.variables:
                    if name not in got.variables:
                        problems.append(f"{engine} {group}: {name} is missing")
                        continue
                    same(f"{engine} {group} {name}", got[name], want[name], problems)
                    n += 1
    assert not problems, "\n".join(problems[:30])
    return n
