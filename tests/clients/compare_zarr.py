#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare_zarr.py FILE MOUNTPOINT [NOTES.json]: everything zarr-python reads through the mount
against h5py and netCDF4-python on the original: arrays, dtypes, byte order, shapes, dimension
names, values bit for bit, attributes.

NOTES.json is the output of `nczarrfs info --json FILE`: what is missing in the mount must be
named in its notes."""
import errno
import json
import math
import os
import shutil
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clients import oracle  # noqa: E402

FULL = 64 << 20      # arrays up to this many bytes are compared whole
FILES = 3000         # files of one array whose sizes are checked
BYTES = 256 << 20    # bytes of one array that are read for that


class Problems(list):
    def add(self, path, what):
        if len(self) < 40:
            self.append(f"{path}: {what}")

    def raise_any(self):
        if self:
            raise AssertionError("\n".join(self))


def load_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def tree(mnt):
    """(groups, arrays) of a mount: path -> directory, by walking it; sizes are checked."""
    groups, arrays = {}, {}

    def walk(folder, path):
        if os.path.isfile(os.path.join(folder, ".zarray")):
            arrays[path] = folder
            return
        names = os.listdir(folder)
        assert len(names) == len(set(names)), f"{path}: a name is listed twice"
        assert ".zgroup" in names, f"{path}: neither .zgroup nor .zarray"
        groups[path] = folder
        for name in names:
            full = os.path.join(folder, name)
            if not name.startswith(".z") or os.path.isdir(full):
                assert os.path.isdir(full), f"{full} is not a directory"
                walk(full, path.rstrip("/") + "/" + name)
    walk(mnt, "/")
    return groups, arrays


def check_unreadable(path, folder, meta, why, problems):
    """An array that cannot be read says EIO: absence would be taken for the fill value."""
    if 0 in meta["shape"]:
        return
    key = meta.get("dimension_separator", ".").join("0" for _ in meta["shape"]) or "0"
    if not os.path.isfile(os.path.join(folder, key)):
        problems.add(path, f"chunk {key} cannot be looked up ({why}): zarr-python asks "
                     "os.path.isfile(), takes no for absence and gives the fill value")
        return
    try:
        with open(os.path.join(folder, key), "rb") as f:
            f.read()
        problems.add(path, f"chunk {key} is read although info says: {why}")
    except OSError as error:
        if error.errno != errno.EIO:
            problems.add(path, f"chunk {key} gives {error}, expected EIO: {why}")


def check_files(mnt, arrays, info, problems):
    """True sizes: what stat says is what a read gives; chunk names are inside the grid."""
    for path, folder in arrays.items():
        meta = load_json(os.path.join(folder, ".zarray"))
        if path in info.problem:
            check_unreadable(path, folder, meta, info.problem[path], problems)
            continue
        grid = [-(-n // c) for n, c in zip(meta["shape"], meta["chunks"])]
        sep = meta.get("dimension_separator", ".")
        total = 0
        for full in some_files(folder, FILES):
            total += check_file(path, folder, full, grid, sep, problems)
            if total > BYTES:
                break


def some_files(folder, limit):
    """Up to limit files below a directory, which may list billions."""
    todo = [folder]
    while todo:
        here = todo.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir():
                    todo.append(entry.path)
                else:
                    yield entry.path
                    limit -= 1
                if limit == 0 or len(todo) > FILES:
                    return


def check_file(path, folder, full, grid, sep, problems):
    """Check one file; bytes read."""
    key = os.path.relpath(full, folder)
    try:
        size = os.stat(full).st_size
    except OSError as error:
        problems.add(path, f"stat: {error}")
        return 0
    if not key.startswith(".z"):
        idx = key.split(sep) if grid else [key]
        ok = all(i.isdigit() and str(int(i)) == i for i in idx)
        if not ok or (grid and (len(idx) != len(grid) or any(
                int(i) >= g for i, g in zip(idx, grid)))):
            problems.add(path, f"chunk name '{key}' is outside the grid {grid}")
            return 0
    try:
        with open(full, "rb") as f:
            got = len(f.read(1 << 26))
    except OSError:
        return 0  # damage is judged by the values
    if got != min(size, 1 << 26):
        problems.add(path, f"{key}: size {size} but {got} bytes read")
    return got


def check_consolidated(mnt, groups, arrays, problems):
    data = load_json(os.path.join(mnt, ".zmetadata"))
    assert data.get("zarr_consolidated_format") == 1, "zarr_consolidated_format is not 1"
    expected = {}
    for path, folder in list(groups.items()) + list(arrays.items()):
        for name in (".zgroup", ".zarray", ".zattrs"):
            full = os.path.join(folder, name)
            if os.path.exists(full):
                expected[(path.strip("/") + "/" + name).lstrip("/")] = load_json(full)
    found = data["metadata"]
    for key in sorted(set(expected) | set(found)):
        if json.dumps(expected.get(key)) != json.dumps(found.get(key)):
            problems.add(".zmetadata", f"{key} differs from the file: {found.get(key)!r:.200} "
                         f"against {expected.get(key)!r:.200}")


def same_bytes(a, b):
    """Arrays equal bit for bit; a NaN for another NaN is no difference (row nan-payload)."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.names:
        return all(same_bytes(a[n], b[n]) for n in a.dtype.names)
    if a.dtype.kind in "fc":
        part = {"f": None, "c": f"{a.dtype.byteorder}f{a.dtype.itemsize // 2}"}[a.dtype.kind]
        if part:
            a, b = a.reshape(a.shape + (1,)).view(part), b.reshape(b.shape + (1,)).view(part)
        raw = f"V{a.dtype.itemsize}"
        differ = a.reshape(-1).view(raw) != b.reshape(-1).view(raw)
        return bool(np.all(np.isnan(a.reshape(-1)[differ]) & np.isnan(b.reshape(-1)[differ])))
    return False


def first_difference(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"shape {a.shape} against {b.shape}"
    for i in np.ndindex(a.shape):
        x, y = a[i], b[i]
        if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            if not np.array_equal(x, y):
                return f"at {i}: {x!r} expected, {y!r} read"
        elif np.asarray(x).tobytes() != np.asarray(y).tobytes():
            return f"at {i}: {x!r} expected, {y!r} read"
    return f"{a.dtype} against {b.dtype}"


def pack(a, dtype):
    """Values of a padded compound in a packed dtype; other values as they are."""
    if dtype.names and a.dtype.names:
        out = np.zeros(a.shape, dtype=dtype)
        for to, source in zip(dtype.names, a.dtype.names):
            out[to] = pack(a[source], dtype[to].base)
        return out
    if dtype.kind == "V" and a.dtype.kind in "VMm":
        return a.view(dtype) if a.dtype.itemsize == dtype.itemsize else a
    return a.astype(dtype) if a.dtype != dtype else a


def regions(shape, itemsize, chunks):
    """Selections to compare: the whole when small, else places all over the array."""
    total = itemsize
    for n in shape:
        total *= n
    if total <= FULL or not shape:
        return [tuple(slice(0, n) for n in shape)]
    rows = max(1, min(chunks[0], (4 << 20) * shape[0] // total or 1))
    starts = {0, shape[0] - rows, shape[0] // 2, shape[0] // 3}
    for offset in (1 << 31, 1 << 32):
        at = offset * shape[0] // total
        starts |= {max(0, at - rows), at}
    found = []
    for s in sorted(starts):
        if 0 <= s < shape[0]:
            inner = tuple(slice(0, min(n, 100000)) for n in shape[1:])
            found.append((slice(s, min(s + rows, shape[0])),) + inner)
    return found


def writable_copy(array):
    """The same dataset in a writable copy of the file: libhdf5 1.10 cannot give the fill value
    of strings that were never written when the file is open for reading only."""
    import h5py
    folder = tempfile.mkdtemp()
    copy = os.path.join(folder, "copy")
    shutil.copyfile(array.h5.file.filename, copy)
    f = h5py.File(copy, "r+")
    shutil.rmtree(folder)
    return f[array.h5path]


def read_h5(array, region, shape):
    """Values of region of the padded array; elements outside the dataset are its fill value."""
    try:
        return _read_h5(array, array.h5, region, shape)
    except OSError as error:
        if "no write intent" not in str(error):
            raise
        return _read_h5(array, writable_copy(array), region, shape)


def read_opaque(d, own):
    """Opaque elements by the file's own type; h5py's converts tags."""
    from h5py import h5s
    out = np.empty(own, dtype=f"V{d.id.get_type().get_size()}")
    d.id.read(h5s.ALL, h5s.ALL, out, mtype=d.id.get_type())
    return out


def _read_h5(array, d, region, shape):
    own = array.shape
    rank = len(own) - len(array.type.tail)
    want = tuple(s.stop - s.start for s in region)
    if array.type.numpy is not None and array.type.numpy.kind == "V" and not (
            array.type.numpy.names or array.type.tail):
        assert own == shape, "opaque arrays of netCDF files are not padded here"
        return read_opaque(d, own)[region]
    if own == shape:
        out = d[tuple(region[:rank])] if own else d[()]
        if array.type.tail and own:
            out = out[(slice(None),) * rank + tuple(region[rank:])]
        return np.asarray(out, dtype=object) if d.dtype.kind == "O" and not own else out
    inside = tuple(slice(s.start, max(s.start, min(s.stop, n))) for s, n in zip(region, own))
    values = d[tuple(inside[:rank])]
    out = np.empty(want, dtype=values.dtype)
    out[...] = fill_value(d)
    out[tuple(slice(0, s.stop - s.start) for s in inside)] = values
    return out


def fill_value(d):
    if d.dtype.kind == "O":
        return b""
    return d.fillvalue


def check_string(path, got, want, problems):
    got, want = np.asarray(got, dtype=object), np.asarray(want, dtype=object)
    flat = [x if isinstance(x, str) else x for x in got.ravel()]
    expected = [oracle.text(x if isinstance(x, (bytes, str)) else b"") for x in want.ravel()]
    if len(flat) != len(expected):
        problems.add(path, f"{len(expected)} strings expected, {len(flat)} read")
        return
    for i, (x, y) in enumerate(zip(flat, expected)):
        if isinstance(x, bytes):
            x = x.decode("utf-8", "replace")
        if x != y:
            problems.add(path, f"string {i}: {y!r:.100} expected, {x!r:.100} read")
            return


def check_vlen(path, got, want, base, problems):
    got, want = np.asarray(got, dtype=object).ravel(), np.asarray(want, dtype=object).ravel()
    if len(got) != len(want):
        problems.add(path, f"{len(want)} vlen elements expected, {len(got)} read")
        return
    for i, (x, y) in enumerate(zip(got, want)):
        x = np.asarray(x if x is not None else [])
        y = np.asarray(y if y is not None else [])
        if base.byteorder == ">" and y.dtype.kind == base.kind and y.dtype.isnative:
            y = y.view(base)  # h5py 3.7 does not swap them, h5dump does
        if y.dtype.kind == "O":
            y = np.array(list(y))
        if x.size != y.size or not same_bytes(x.astype(base), y.astype(base)):
            problems.add(path, f"vlen element {i}: {y!r:.100} expected, {x!r:.100} read")
            return


def check_values(path, array, z, shape, problems):
    for region in regions(shape, max(1, z.dtype.itemsize), z.chunks or (1,)):
        try:
            want = None if array.undefined() else read_h5(array, region, shape)
        except Exception:  # noqa: B902 - h5py cannot judge (filter not available, damage)
            want = None
        if want is None:
            try:
                z[region] if shape else z[()]
            except (OSError, RuntimeError, ValueError):
                pass
            return
        got = z[region] if shape else z[()]
        if array.type.kind == "string":
            check_string(path, got, want, problems)
        elif array.type.kind == "vlen":
            check_vlen(path, got, want, array.type.numpy, problems)
        else:
            got, want = np.asarray(got), np.asarray(want)
            want = pack(want, np.asarray(got).dtype)
            if got.shape != want.shape:
                got = got.reshape(want.shape) if got.size == want.size else got
            if not same_bytes(want, got):
                problems.add(path, f"values of {region} differ: {first_difference(want, got)}")
                return


def check_dtype(path, array, z, mode, problems):
    t = array.type
    if mode == "nczarr" and t.kind == "string" and z.dtype.kind == "S":
        return True
    if t.kind in ("string", "vlen"):
        if z.dtype != np.dtype(object):
            problems.add(path, f"dtype {z.dtype}, expected |O for {t.kind}")
        return z.dtype == np.dtype(object)
    if t.kind == "wide float":
        return z.dtype == np.dtype("f8")
    if t.kind == oracle.UNKNOWN:
        return False
    accepted = (t.numpy,) + tuple(t.also)
    if mode == "nczarr" and t.numpy.kind == "b":
        accepted += (np.dtype("u1"),)
    if not any(z.dtype == a for a in accepted):
        problems.add(path, f"dtype {z.dtype.str if not z.dtype.names else z.dtype}, "
                     f"expected {t.numpy.str if not t.numpy.names else t.numpy}")
        return False
    return True


def check_shape(path, array, z, nc, mode, problems):
    """Expected shape: the dataset's, but netCDF's length along an unlimited dimension."""
    shape, got = array.shape, tuple(z.shape)
    if mode == "nczarr" and shape == () and got == (1,):
        return got
    if len(got) != len(shape):
        problems.add(path, f"shape {got}, expected {shape}")
        return None
    unlimited = [m is None for m in array.h5.maxshape or ()]
    unlimited += [False] * (len(shape) - len(unlimited))
    entry = nc["vars"].get(path) if nc else None
    if entry and len(entry["shape"]) == len(shape):
        want = tuple(n if u and n >= s else s
                     for s, n, u in zip(shape, entry["shape"], unlimited))
    else:
        want = tuple(max(s, g) if u else s for s, g, u in zip(shape, got, unlimited))
    if got != want:
        problems.add(path, f"shape {got}, expected {want}")
        return None
    return got


def check_dims(path, array, z, nc, model, problems):
    dims = z.attrs.asdict().get("_ARRAY_DIMENSIONS")
    if dims is None:
        problems.add(path, "no _ARRAY_DIMENSIONS")
        return
    if len(dims) != len(z.shape):
        problems.add(path, f"{len(dims)} dimension names for rank {len(z.shape)}")
        return
    entry = nc["vars"].get(path) if nc else None
    if not entry or len(entry["dims"]) != len(dims):
        return
    for i, (got, want) in enumerate(zip(dims, entry["dims"])):
        phony = want.startswith("phony_dim_") and got.startswith("phony_dim_")
        wrong = i < len(array.shape) and entry["shape"][i] < array.shape[i]
        fixed = i < len(array.shape) and (array.h5.maxshape or ())[i:i + 1] != (None,)
        wrong = wrong or fixed and i < len(array.shape) and entry["shape"][i] != array.shape[i]
        if got != want and not (phony or wrong or same_object(model, path, got, want)):
            problems.add(path, f"dimensions {dims}, netCDF says {list(entry['dims'])}")
            return


def same_object(model, path, a, b):
    """Whether two dimension names are links to one dimension scale (row linked-dims)."""
    folder = path.rpartition("/")[0]
    found = [model.arrays.get(f"{folder}/{n}") for n in (a, b)]
    return None not in found and found[0].key == found[1].key


def json_number(x, want):
    """Whether a JSON value x is the number want (numpy scalar), bit for bit but NaN payloads."""
    if isinstance(x, str):
        x = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(x, x)
    if want.dtype.kind == "b":
        return isinstance(x, (bool, int)) and bool(x) == bool(want)
    if isinstance(x, str):
        return False
    if want.dtype.kind in "iu":
        return isinstance(x, int) and int(x) == int(want)
    got = np.array(x, dtype=want.dtype)
    if np.isnan(want):
        return bool(np.isnan(got))
    return got.tobytes() == want.tobytes()


def flatten(x):
    return [z for y in x for z in flatten(y)] if isinstance(x, list) else [x]


def check_attr(path, name, attr, got, problems):
    if attr is None or attr.value is None:
        return  # h5py has no opinion
    want = attr.value
    if not want:
        if got not in ("", [], None):
            problems.add(path, f"empty attribute {name} reads {got!r}")
        return
    if len(want) == 1 and not isinstance(got, list):
        values = [got]
    else:
        values = flatten(got)
    if len(values) != len(want):
        problems.add(path, f"attribute {name}: {len(want)} values expected, got {got!r:.200}")
        return
    for x, y in zip(values, want):
        ok = x == y if isinstance(y, str) else json_number(x, np.asarray(y)[()])
        if not ok:
            problems.add(path, f"attribute {name}: {want!r:.200} expected, got {got!r:.200}")
            return


ADDED = {"_ARRAY_DIMENSIONS", "_nczarr_attr", "_nczarr_group", "_nczarr_array",
         "_nczarr_superblock"}


def check_attrs(path, oid, folder, enum, notes, problems):
    full = os.path.join(folder, ".zattrs")
    got = load_json(full) if os.path.exists(full) else {}
    want = oracle.attributes(oid)
    added = ADDED | ({"flag_values", "flag_meanings"} if enum else set())
    order = []
    for name, attr in want:
        if name not in got:
            if attr is not None and attr.value is not None and attr.value and not any(
                    name in n for n in notes):
                problems.add(path, f"attribute {name} is missing and not in the notes")
            continue
        order.append(name)
        check_attr(path, name, attr, got[name], problems)
    for name in got:
        if name in oracle.HIDDEN and not oracle.hides(oid, name):
            continue
        if name not in added and name not in {n for n, _ in want}:
            problems.add(path, f"attribute {name} = {got[name]!r:.100} is not in the file")
    shown = [n for n in got if n in set(order)]
    if shown != order:
        problems.add(path, f"attributes in the order {shown}, the file's is {order}")


class Info:
    """What `info --json` says: notes, and by path why an array is hidden or cannot be read."""

    def __init__(self, path):
        data = load_json(path) if path else {"notes": [], "variables": []}
        self.notes = data["notes"]
        self.hidden = {v["path"]: v["reason"] for v in data["variables"] if v["plan"] == "hidden"}
        self.problem = {v["path"]: v["problem"] for v in data["variables"] if v["problem"]}

    def names(self, path):
        """Whether something is said about a path that is not in the mount."""
        name = path.rsplit("/", 1)[1]
        return path in self.hidden or any(
            path in n or f"'{name}'" in n or f"'{name[:80]}..." in n for n in self.notes)


def ascii_only(groups, arrays):
    """Whether zarr-python 2.13, which takes metadata for ASCII, can read it."""
    for folder in list(groups.values()) + list(arrays.values()):
        for name in (".zgroup", ".zarray", ".zattrs"):
            full = os.path.join(folder, name)
            if os.path.exists(full):
                with open(full, "rb") as f:
                    if not f.read().isascii():
                        return False
    return True


def compare(file, mnt, notes_file=None, mode="zarr", nc="ask"):
    """nc: what oracle.netcdf_model says, where it has been asked already."""
    import zarr
    problems = Problems()
    info = Info(notes_file)
    notes = info.notes
    nc = oracle.netcdf_model(file) if nc == "ask" else nc
    model = oracle.Model(file)
    groups, arrays = tree(mnt)
    check_consolidated(mnt, groups, arrays, problems)
    check_files(mnt, arrays, info, problems)
    if mode == "nczarr" and not ascii_only(groups, arrays):
        return 0  # row utf8-nczarr
    root = zarr.open_group(zarr.DirectoryStore(mnt), mode="r")

    def excused(path):
        return path in model.failed or info.names(path)

    for path, group in model.groups.items():
        if path not in groups:
            if not excused(path) and not any(path.startswith(f.rstrip("/") + "/")
                                             for f in model.groups if f not in groups):
                problems.add(path, "group is missing and not in the notes")
            continue
        check_attrs(path, group.group, groups[path], False, notes, problems)
        check_order(path, model, groups[path], problems)
    for path, array in model.arrays.items():
        if path not in arrays:
            if array.type.kind != oracle.UNKNOWN and not array.null and not excused(path):
                problems.add(path, "array is missing and not in the notes")
            elif not excused(path):
                problems.add(path, "array is left out without a note")
            continue
        compare_array(path, array, model, root, arrays[path], nc, mode, info, problems)
    for path in sorted(set(arrays) - set(model.arrays)):
        if path not in model.failed and path.lstrip("/") not in model.file:
            problems.add(path, "array is not in the file")
    problems.raise_any()
    return len(arrays)


def check_order(path, model, folder, problems):
    """Groups among groups and arrays among arrays are listed in the order of the file."""
    base = path.rstrip("/") + "/"
    listed = os.listdir(folder)
    for what in (model.groups, model.arrays):
        want = [n for n in model.order[path] if base + n in what and n in listed]
        got = [n for n in listed if n in set(want)]
        if got != want:
            problems.add(path, f"listed in the order {got!r:.200}, the file's is {want!r:.200}")


def compare_array(path, array, model, root, folder, nc, mode, info, problems):
    import h5py
    array.h5 = h5py.Dataset(array.dataset)
    meta = load_json(os.path.join(folder, ".zarray"))
    try:
        z = root[path.strip("/")]
    except Exception as error:  # noqa: B902 - reported with the metadata that caused it
        problems.add(path, f"zarr-python cannot open it: {error!r:.200}; .zarray {meta!r:.300}")
        return
    if mode != "noxarray":
        check_dims(path, array, z, nc if mode == "zarr" or array.shape else None, model, problems)
    check_attrs(path, array.dataset, folder, array.type.enum is not None, info.notes, problems)
    if mode != "nczarr":
        check_fill(path, array, meta, problems)
    if array.null or path in info.problem:
        return
    if not check_dtype(path, array, z, mode, problems):
        return
    shape = check_shape(path, array, z, nc, mode, problems)
    if shape is None:
        return
    if mode == "nczarr" and array.shape == ():
        got = z[...]
        want = array.h5[()]
        if array.type.kind == "string":
            check_string(path, got, [want], problems)
        elif array.type.kind == "plain" and not same_bytes(
                pack(np.asarray(want), z.dtype).reshape(1), got):
            problems.add(path, f"scalar {want!r} expected, {got!r} read")
        return
    try:
        check_values(path, array, z, shape, problems)
    except Exception as error:  # noqa: B902
        problems.add(path, f"reading fails: {error!r:.300}; .zarray {meta!r:.300}")


def check_fill(path, array, meta, problems):
    """xarray masks a declared fill value: only what has a _FillValue may declare one."""
    import h5py
    if meta["fill_value"] is not None and not h5py.h5a.exists(array.dataset, b"_FillValue"):
        problems.add(path, f"fill_value {meta['fill_value']!r} without a _FillValue attribute")


def main(argv):
    if len(argv) not in (3, 4):
        sys.exit(__doc__.splitlines()[0])
    try:
        count = compare(*argv[1:])
    except AssertionError as error:
        print(error)
        sys.exit(1)
    print(f"{count} arrays equal")


if __name__ == "__main__":
    main(sys.argv)
