#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare_xarray.py FILE MOUNTPOINT [INFO.json]: what xarray reads through the mount, with and
without consolidated metadata, decoded and raw, group by group, against xarray on the file itself.

Rows of tests/differences.py: endian-xarray, enum-attrs, attr-type, latin1-text, padded-compound,
wrong-scale, linked-dims, half-netcdf, narrow-netcdf,
nc-attributes, netcdf-padding, netcdf-undefined."""
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clients import oracle  # noqa: E402
from clients.compare_zarr import Info  # noqa: E402

RAW = {"mask_and_scale": False, "decode_times": False, "decode_cf": True, "concat_characters":
       False, "decode_coords": False}
LIMIT = 64 << 20


def groups_of(mnt):
    found = []

    def walk(folder, path):
        if os.path.isfile(os.path.join(folder, ".zarray")):
            return
        found.append(path)
        for n in os.listdir(folder):
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
    if isinstance(value, np.void) and value.dtype.names:
        value = list(value.item())
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, np.ndarray)):
        flat = []
        for v in value.ravel() if isinstance(value, np.ndarray) else value:
            v = plain(v)
            flat += v if isinstance(v, list) else [v]
        return flat[0] if len(flat) == 1 else flat
    if isinstance(value, np.generic):
        value = value.item()
    return value


def same_value(a, b):
    """a from the file (perhaps of 32 bits), b from JSON."""
    x, y = plain(a), plain(b)
    if isinstance(x, str) and isinstance(y, str) and "\ufffd" in x:
        return len(x) == len(y)  # netCDF4-python's replacement character (row latin1-text)
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
    if a.dtype.names:
        return all(same_data(a[n], b[n]) for n in a.dtype.names)
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    if a.dtype.kind in "fc":
        return bool(np.all((a == b) | ((a != a) & (b != b))))
    return bool(np.all(a == b))


def dtype_of(v):
    """The dtype to compare: native, packed, a compound of r and i as a complex number."""
    return simple(v.dtype.newbyteorder("="))


def simple(t):
    if t.subdtype:
        return np.dtype((simple(t.base), t.shape))
    if t.names:
        t = np.dtype([(n, simple(t[n])) for n in t.names])
        if t.names == ("r", "i") and t[0] == t[1] and t[0].kind == "f":
            t = np.dtype(f"c{t.itemsize}")
    return t


def compare_variable(where, name, a, b, array, info, problems):
    if a.dims != b.dims and not all(x == y or x.startswith("phony_dim")
                                    for x, y in zip(a.dims, b.dims)):
        if array and array.shape == b.shape:
            return  # compare_zarr has judged the names (rows wrong-scale, linked-dims)
        problems.append(f"{where}{name}: dimensions {a.dims}, through the mount {b.dims}")
        return
    if a.shape != b.shape:
        if not array or array.shape == b.shape:
            return  # netCDF takes the length from a scale that does not fit (row wrong-scale)
        problems.append(f"{where}{name}: shape {a.shape}, through the mount {b.shape}")
        return
    half = array and array.type.numpy is not None and array.type.numpy.str[1:] == "f2"
    # row narrow-netcdf: h5py's dtype is the mount's, and checked by compare_zarr
    narrow = array and a.dtype.kind in "iu" and a.dtype.kind == b.dtype.kind and \
        array.type.numpy is not None and simple(array.type.numpy.newbyteorder("=")) == dtype_of(b)
    if a.dtype.kind not in "OSU" and dtype_of(a) != dtype_of(b) and not half and not narrow:
        problems.append(f"{where}{name}: dtype {a.dtype}, through the mount {b.dtype}")
        return
    padded = array and array.shape != a.shape and len(array.shape) == len(a.shape)
    if a.nbytes <= LIMIT and not padded and not (array and array.undefined()):
        p, q = np.asarray(a.values), np.asarray(b.values)
        if dtype_of(p).kind in "cV" and p.dtype.kind not in "OSU":
            p = pack(p, dtype_of(p)) if p.dtype.names else p.astype(dtype_of(p))
            q = q.astype(dtype_of(q))
        if half or narrow:  # netCDF-C has another type
            q = q.astype(p.dtype)
        if not same_data(p, q):
            problems.append(f"{where}{name}: values differ: {p!r:.300} and, through the "
                            f"mount, {q!r:.300}")
    compare_attrs(f"{where}{name}", a.attrs, b.attrs, array.dataset if array else None,
                  array and array.type.enum is not None, info, problems)


def pack(p, dtype):
    """A padded compound in a packed dtype, r and i as a complex number."""
    if dtype.kind == "c":
        return np.asarray(p["r"] + 1j * p["i"], dtype=dtype)
    out = np.zeros(p.shape, dtype=dtype)
    for n in dtype.names:
        out[n] = pack(p[n], dtype[n].base) if dtype[n].base.names else p[n]
    return out


def compare_attrs(where, a, b, oid, enum, info, problems):
    """oid: the object in the file; netCDF4-python does not show all its attributes."""
    added = {"flag_values", "flag_meanings"} if enum else set()
    added |= oracle.HIDDEN
    added |= {n for n, _ in oracle.attributes(oid)} if oid is not None else set()
    for name in sorted(set(a) | set(b)):
        if name.lower().startswith("_nc"):
            continue  # xarray's Zarr engine hides them all, its netCDF engine some
        if name not in b:
            if not any(f"'{name}'" in n for n in info.notes):
                problems.append(f"{where}: attribute {name} is missing")
        elif name not in a:
            if name not in added:
                problems.append(f"{where}: attribute {name} = {b[name]!r:.100} is not in the file")
        elif not same_value(a[name], b[name]):
            problems.append(f"{where}: attribute {name}: {a[name]!r:.100} and, through the "
                            f"mount, {b[name]!r:.100}")


def open_pair(file, mnt, group, consolidated, options):
    """(dataset of the file, dataset of the mount); (None, None) when xarray cannot open even
    the file."""
    import xarray
    try:
        a = xarray.open_dataset(file, engine="netcdf4", group=group or None, **options)
        a.load()
    except Exception as error:  # noqa: B902 - xarray, pandas and netCDF4 have many
        print(f"xarray cannot read {group or '/'} of the file itself: {error!r:.200}")
        return None, None
    b = xarray.open_dataset(mnt, engine="zarr", group=group.strip("/") or None,
                            consolidated=consolidated, **options)
    b.load()
    return a, b


def compare_group(file, mnt, group, consolidated, kind, options, model, info, problems):
    options = dict(options, drop_variables=passed_over(model, group, info))
    where = f"[{kind}, {'' if consolidated else 'not '}consolidated] {group}/"
    a, b = open_pair(file, mnt, group, consolidated, options)
    if a is None:
        return
    with a, b:
        for name in sorted(set(a.variables) | set(b.variables)):
            array = model.arrays.get(f"{group}/{name}")
            if name in options["drop_variables"]:
                continue
            if name not in b.variables:
                problems.append(f"{where}{name} is missing")
            elif name in a.variables:
                compare_variable(where, name, a[name], b[name], array, info, problems)
        same_dims = all(n in b.variables and a[n].dims == b[n].dims for n in a.variables)
        if same_dims and set(a.coords) != set(b.coords) and set(a.variables) == set(b.variables):
            problems.append(f"{where}: coordinates {sorted(a.coords)}, through the mount "
                            f"{sorted(b.coords)}")
        compare_attrs(where, a.attrs, b.attrs, model.groups[group or "/"].group, False, info,
                      problems)


def passed_over(model, group, info):
    """Variables that xarray cannot be asked about: what is too large to load, what the mount says
    cannot be read, and the rows vlen-xarray, reserved-name, compound-xarray."""
    names = []
    for path, array in model.arrays.items():
        folder, _, name = path.rpartition("/")
        t = array.type
        large = array.type.numpy is not None and LIMIT < array.type.numpy.itemsize * int(
            np.prod(array.shape, dtype=object))
        foreign = t.numpy is not None and t.numpy.names and not t.numpy.isnative
        skip = "%5C" in name or t.kind == "vlen" or foreign or large or path in info.problem
        if folder == group and skip:
            names.append(name)
    return names


def compare(file, mnt, info_file=None):
    info = Info(info_file)
    warnings.filterwarnings("ignore")
    problems = []
    model = oracle.Model(file)
    for group in groups_of(mnt):
        if model.external and (group or "/") not in model.groups:
            continue  # behind an external link, which netCDF-C does not follow: test_security.py
        for consolidated in (True, False):
            for kind, options in (("decoded", {}), ("raw", RAW)):
                if kind == "raw" and not consolidated:
                    continue
                compare_group(file, mnt, group, consolidated, kind, options, model, info,
                              problems)
    if problems:
        raise AssertionError("\n".join(problems[:40]))


def main(argv):
    if len(argv) not in (3, 4):
        sys.exit(__doc__.splitlines()[0])
    try:
        compare(*argv[1:])
    except AssertionError as error:
        print(error)
        sys.exit(1)
    print("equal")


if __name__ == "__main__":
    main(sys.argv)
