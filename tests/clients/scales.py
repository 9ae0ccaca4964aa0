# SPDX-License-Identifier: BSD-3-Clause
"""Dimension scales of an HDF5 file and the variables that use them name each other, and netCDF's
numbers fit: what h5py sees."""
import h5py


def lists(f, sets):
    """What DIMENSION_LIST says and what REFERENCE_LIST says, as (scale, variable, axis)."""
    said, heard, bad = set(), set(), []
    for d in sets:
        for axis, refs in enumerate(d.attrs.get("DIMENSION_LIST", ())):
            for r in refs:
                said.add((f[r].name, d.name, axis))
                if f[r].attrs.get("CLASS") != b"DIMENSION_SCALE":
                    bad.append(f"{d.name}: axis {axis} refers to {f[r].name}, no scale")
        for r, axis in d.attrs.get("REFERENCE_LIST", ()):
            try:
                heard.add((d.name, f[r].name, int(axis)))
            except ValueError:
                bad.append(f"{d.name}: refers to nothing")
    bad += [f"only one of them says it: {x}" for x in sorted(said ^ heard)]
    return said, bad


def numbers(sets, said):
    ids, bad = {}, []
    for d in sets:
        if d.attrs.get("CLASS") == b"DIMENSION_SCALE" and "_Netcdf4Dimid" in d.attrs:
            n = int(d.attrs["_Netcdf4Dimid"])
            if n in ids:
                bad.append(f"{d.name} and {ids[n]} are number {n}")
            ids[n] = d.name
    for d in sets:
        for axis, n in enumerate(d.attrs.get("_Netcdf4Coordinates", ())):
            if "DIMENSION_LIST" in d.attrs and (ids.get(int(n)), d.name, axis) not in said:
                bad.append(f"{d.name}: axis {axis} is number {n}")
    return bad


def problems(file):
    with h5py.File(file, "r") as f:
        sets = []
        f.visititems(lambda _, o: sets.append(o) if isinstance(o, h5py.Dataset) else None)
        said, bad = lists(f, sets)
        return bad + numbers(sets, said)
