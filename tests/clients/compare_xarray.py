#!/usr/bin/python3
"""compare_xarray.py FILE MOUNTPOINT: what xarray reads through the mount, with and without
consolidated metadata, decoded and raw, group by group, against xarray on the file itself.

Forced differences (tests/differences.py): endian-xarray, enum-attrs, char-xarray, attr-type."""
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clients import oracle  # noqa: E402

RAW = {"mask_and_scale": False, "decode_times": False, "decode_cf": True, "concat_characters":
       False, "decode_coords": False}
LIMIT = 64 << 20


def groups_of(mnt):
    found = []

    def walk(folder, path):
        names = os.listdir(folder)
        if ".zarray" in names:
            return
        found.append(path)
        for n in names:
            if os.path.isdir(os.path.join(folder, n)):
                walk(os.path.join(folder, n), path + "/" + n)
    walk(mnt, "")
    return found


def plain(value):
    """An attribute's value without its numpy width."""
    if isinstance(value, bytes):
        return oracle.text(value)
    if isinstance(value, str):
        return oracle.text(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, (list, tuple, np.ndarray)):
        flat = [plain(v) for v in np.asarray(value, dtype=object).ravel()]
        return flat[0] if len(flat) == 1 else flat
    if isinstance(value, np.generic):
        value = value.item()
    return value


def same_value(a, b):
    """a from the file (perhaps of 32 bits), b from JSON."""
    x, y = plain(a), plain(b)
    if isinstance(x, list) or isinstance(y, list):
        if not (isinstance(x, list) and isinstance(y, list)) or len(x) != len(y):
            return x in ("", []) and y in ("", [])
        return all(same_value(p, q) for p, q in zip(x, y))
    if isinstance(x, float) or isinstance(y, float):
        try:
            return x == y or (np.isnan(x) and np.isnan(y)) or np.float32(x) == np.float32(y)
        except (TypeError, ValueError):
            return False
    return x == y


def same_data(a, b):
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        x = [plain(v) for v in a.ravel()]
        y = [plain(v) for v in b.ravel()]
        return all(p == q or (p != p and q != q) for p, q in zip(x, y))
    if a.dtype.kind in "Mm":
        return bool(np.all((a == b) | (np.isnat(a) & np.isnat(b))))
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    if a.dtype.kind in "fc":
        return bool(np.all((a == b) | ((a != a) & (b != b))))
    return bool(np.all(a == b))


def compare_variable(where, name, a, b, enum, problems):
    if a.dims != b.dims and not all(x == y or x.startswith("phony_dim")
                                    for x, y in zip(a.dims, b.dims)):
        problems.append(f"{where}{name}: dimensions {a.dims}, through the mount {b.dims}")
        return
    if a.shape != b.shape:
        problems.append(f"{where}{name}: shape {a.shape}, through the mount {b.shape}")
        return
    if a.dtype.kind not in "OSU" and a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        problems.append(f"{where}{name}: dtype {a.dtype}, through the mount {b.dtype}")
        return
    if a.nbytes <= LIMIT and not same_data(np.asarray(a.values), np.asarray(b.values)):
        problems.append(f"{where}{name}: values differ: {a.values!r:.300} and, through the "
                        f"mount, {b.values!r:.300}")
    compare_attrs(f"{where}{name}", a.attrs, b.attrs, enum, problems)


def compare_attrs(where, a, b, enum, problems):
    added = {"flag_values", "flag_meanings"} if enum else set()
    for name in sorted(set(a) | set(b)):
        if name not in b:
            problems.append(f"{where}: attribute {name} is missing")
        elif name not in a:
            if name not in added:
                problems.append(f"{where}: attribute {name} = {b[name]!r:.100} is not in the file")
        elif not same_value(a[name], b[name]):
            problems.append(f"{where}: attribute {name}: {a[name]!r:.100} and, through the "
                            f"mount, {b[name]!r:.100}")


def enums_of(file):
    """Paths of enum variables, and of those netCDF4-python shows otherwise than h5py."""
    model = oracle.Model(file)
    enums = {p for p, a in model.arrays.items() if a.type.enum is not None}
    return enums


def open_pair(file, mnt, group, consolidated, options):
    import xarray
    a = xarray.open_dataset(file, engine="netcdf4", group=group or None, **options)
    b = xarray.open_dataset(mnt, engine="zarr", group=group.strip("/") or None,
                            consolidated=consolidated, **options)
    return a, b


def compare_group(file, mnt, group, consolidated, kind, options, enums, problems):
    where = f"[{kind}, {'' if consolidated else 'not '}consolidated] {group}/"
    a, b = open_pair(file, mnt, group, consolidated, options)
    with a, b:
        for name in sorted(set(a.variables) | set(b.variables)):
            if name not in b.variables:
                problems.append(f"{where}{name} is missing")
            elif name in a.variables:
                compare_variable(where, name, a[name], b[name], f"{group}/{name}" in enums,
                                 problems)
        if set(a.coords) != set(b.coords) and set(a.variables) == set(b.variables):
            problems.append(f"{where}: coordinates {sorted(a.coords)}, through the mount "
                            f"{sorted(b.coords)}")
        compare_attrs(where, a.attrs, b.attrs, False, problems)


def compare(file, mnt):
    warnings.filterwarnings("ignore")
    problems = []
    enums = enums_of(file)
    for group in groups_of(mnt):
        for consolidated in (True, False):
            for kind, options in (("decoded", {}), ("raw", RAW)):
                if kind == "raw" and not consolidated:
                    continue
                compare_group(file, mnt, group, consolidated, kind, options, enums, problems)
    if problems:
        raise AssertionError("\n".join(problems[:40]))


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    try:
        compare(*argv[1:])
    except AssertionError as error:
        print(error)
        sys.exit(1)
    print("equal")


if __name__ == "__main__":
    main(sys.argv)
