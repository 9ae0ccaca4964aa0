# SPDX-License-Identifier: BSD-3-Clause
"""What readers of Zarr v3 saw in a mount (tests/clients/peers/v3_zarr.py) against the native file:
HDF5 by h5py and netCDF4-python, classic netCDF by netCDF4-python, Zarr trees by zarr-python 3
itself."""
import base64
import struct

import numpy as np

from clients import compare_zarr, oracle
from clients.peers import v3_zarr
from clients.compare_zarr import Problems

# What a reader has no type for. docs/reference/compatibility.md.
CANNOT = {"zarrita.js": ("complex64", "complex128", "bytes", "float16")}
EXACT = 1 << 53  # whole numbers that JavaScript reads from JSON


class Seen:
    """An array of a result, in the shape that compare_zarr asks zarr-python's arrays."""

    def __init__(self, data):
        self.data = data
        self.shape = tuple(data["shape"])
        self.attrs = self

    def asdict(self):
        return {"_ARRAY_DIMENSIONS": self.data["dims"] or []}


def cut(shape, stop):
    return tuple(slice(0, n) for n in stop[:len(shape)])


def excuse(reader, data):
    """Why a reader's values are not judged, or None."""
    if data.get("skipped"):
        return "a chunk too large to be read"
    if reader != "zarrita.js":
        return None
    fill = str(data["fill"]).rstrip("n")
    if data["dtype"] in ("<i8", "<u8") and abs(int(float(fill or 0))) > EXACT:
        return "a fill value that JavaScript's numbers do not hold"
    return None


def unsaid(reader, problem):
    """Whether a problem is that the reader lacks a type."""
    return any(problem.endswith(f"dataType: {t}") for t in CANNOT.get(reader, ()))


# ---- the native side: arrays as (type as v3 has it, extra dimensions, values) -------------------

def expected(t):
    """(dtype of v3_zarr, dimensions that are added) of an HDF5 type, or None: no opinion."""
    tail = tuple(t.tail)
    if t.kind in ("string", "vlen"):
        return ("string" if t.kind == "string" else "bytes"), tail
    if t.kind == "wide float":
        return "<f8", tail
    if t.kind == oracle.UNKNOWN:
        return None
    if t.numpy.kind in "SV":
        size = t.numpy.itemsize
        return "|u1", tail + ((size,) if size > 1 else ())
    return t.numpy.newbyteorder("<").str, tail


def packed(t, values):
    """Elements that v3 has as bytes."""
    values = np.ascontiguousarray(compare_zarr.pack(np.asarray(values), t.numpy))
    size = t.numpy.itemsize
    return values.view("u1").reshape(values.shape + (size,) if size > 1 else values.shape)


def digest_h5(array, stop, shape):
    """(sha, bits) of what h5py reads of the region, or None where it cannot judge."""
    t = array.type
    region = cut(shape, stop)
    try:
        if array.undefined():
            return None
        want = compare_zarr.read_h5(array, region, shape)
    except Exception:  # noqa: B902 - h5py cannot read it
        return None
    if t.kind == "string":
        flat = np.asarray(want, dtype=object).ravel()
        h = v3_zarr.hash_texts(oracle.text(x if isinstance(x, (bytes, str)) else b"")
                               for x in flat)
        return h, h
    if t.kind == "vlen":
        lists = [array.h5[()]] if not shape else np.asarray(want, dtype=object).ravel()
        h = v3_zarr.hash_texts(vlen_bytes(t.numpy, x) for x in lists)
        return h, h
    if t.kind != "wide float" and t.numpy.kind in "SV":
        want = packed(t, want)
        if t.numpy.itemsize > 1:
            want = want[..., :stop[-1]]
    else:
        want = np.asarray(want)
        want = want.astype("f8") if t.kind == "wide float" else compare_zarr.pack(want, t.numpy)
    return v3_zarr.digest(want)[1:]


def own_reads(array):
    """Whether h5py reads an array that a reader of the mount does not."""
    try:
        return array.h5[()] is not None
    except Exception:  # noqa: B902
        return False


def vlen_bytes(base, x):
    y = np.asarray(x if x is not None else [])
    if base.byteorder == ">" and y.dtype.kind == base.kind and y.dtype.isnative:
        y = y.view(base)  # h5py 3.7 does not swap them
    return y.astype(base).tobytes()


def check_array(path, array, data, nc, reader, model, notes, named, problems):
    import h5py
    array.h5 = h5py.Dataset(array.dataset)
    t = array.type
    want = expected(t)
    check_attrs(path, array.dataset, data["attrs"], reader, notes, problems,
                t.numpy)
    if want is None or array.null or data.get("skipped"):
        return
    dtype, extra = want
    if data.get("error"):
        if own_reads(array):
            problems.add(path, f"reading fails: {data['error']}")
        return
    also = {np.dtype(a).newbyteorder("<").str for a in t.also}
    if data["dtype"] != dtype and data["dtype"] not in also:
        problems.add(path, f"dtype {data['dtype']}, expected {dtype}")
        return
    own = Seen(data)
    tail = extra[len(t.tail):]
    if tail and own.shape[-1:] != tail:
        problems.add(path, f"shape {own.shape}, expected {array.shape + tail}")
        return
    if tail:
        own.shape = own.shape[:-1]
    shape = compare_zarr.check_shape(path, array, own, nc, "zarr", problems)
    if shape is None:
        return
    dims = data["dims"]
    if not named:
        if dims is not None:
            problems.add(path, f"dimension_names {dims}, none expected")
    elif dims is not None:
        own.data = {"dims": dims[:len(shape)]}
        compare_zarr.check_dims(path, array, own, nc, model, problems)
    elif shape:
        problems.add(path, "no dimension_names")
    if excuse(reader, data) or data["dtype"] != dtype and data["dtype"] in also:
        return
    native = digest_h5(array, data["region"], shape)
    if native and data["sha"] != native[0]:
        problems.add(path, f"{reader} reads other values than h5py: {data['type']} "
                     f"{data['shape']}, region {data['region']}")


def has_form(attr, own):
    """Whether xarray has a form for a _FillValue: one number of the array's own type."""
    return attr and attr.value and len(attr.value) == 1 and own is not None and (
        own.kind in "biuf" and attr.type.numpy == own)


def check_attrs(path, oid, got, reader, notes, problems, own=None):
    """Attributes by name and value; those that v3 adds are none of the file's."""
    if reader == "zarrita.js":
        return  # it hands on the JSON that zarr-python has read, but with rounded numbers
    want = oracle.attributes(oid)
    for name, attr in want:
        if name not in got:
            if name == "_FillValue" and not has_form(attr, own):
                continue
            if attr is not None and attr.value is not None and attr.value and not any(
                    name in n for n in notes):
                problems.add(path, f"attribute {name} is missing and not in the notes")
            continue
        compare_zarr.check_attr(path, name, attr, fill_of(name, got[name], attr), problems)


def fill_of(name, value, attr):
    """_FillValue as xarray reads it: of floats base64 of a double; of bytes numbers."""
    if name != "_FillValue":
        return value
    if isinstance(value, int) and attr and isinstance((attr.value or [0])[0], str):
        return chr(value) if value else ""
    if isinstance(value, str) and len(value) == 12:
        try:
            return struct.unpack("<d", base64.b64decode(value, validate=True))[0]
        except ValueError:
            pass
    return value


def check_common(result, reader, problems):
    """What every tree must be. Returns the paths that the reader has no type for."""
    lacking = set(result.get("unsayable", ()))
    for text in result["problems"]:
        path = text.split(":")[0]
        if unsaid(reader, text):
            lacking.add(path)
        else:
            problems.append(f"{reader}: {text}")
    if not any(p.startswith(f"{reader}: opening") for p in problems):
        if result["consolidated"] is None:
            problems.append(f"{reader}: no consolidated metadata")
        else:
            nodes = sorted((set(result["groups"]) | set(result["arrays"]) | lacking) - {"/"})
            if result["consolidated"] != nodes:
                differ = sorted(set(nodes) ^ set(result["consolidated"]))
                problems.append(f"{reader}: consolidated metadata and the tree differ: {differ}")
    return lacking


def compare_hdf5(file, result, reader, notes_file, nc, named=True):
    """named: whether arrays have dimension_names. Raises AssertionError with all differences;
    the number of arrays that were judged."""
    problems = Problems()
    info = compare_zarr.Info(notes_file)
    model = oracle.Model(file)
    lacking = check_common(result, reader, problems)
    problems.raise_any()

    def excused(path):
        return path in model.failed or info.names(path) or path in lacking
    for path, group in model.groups.items():
        if path in result["groups"]:
            check_attrs(path, group.group, result["groups"][path]["attrs"], reader, info.notes,
                        problems)
        elif not excused(path) and not any(path.startswith(f.rstrip("/") + "/")
                                           for f in model.groups if f not in result["groups"]):
            problems.add(path, "group is missing and not in the notes")
    for path, array in model.arrays.items():
        if path not in result["arrays"]:
            if not excused(path):
                problems.add(path, "array is missing and not in the notes")
        elif path not in info.problem:
            check_array(path, array, result["arrays"][path], nc, reader, model, info.notes,
                        named, problems)
    problems.raise_any()
    return len(result["arrays"])


def check_classic(path, v, data, reader, problems):
    """One variable of a classic netCDF file."""
    dims = list(v.dimensions)
    if data["shape"] != list(v.shape) or (data["dims"] or []) != dims:
        problems.add(path, f"{data['dims']} {data['shape']}, expected {dims} {v.shape}")
        return
    if data.get("error") or data.get("skipped") or excuse(reader, data):
        if data.get("error"):
            problems.add(path, f"reading fails: {data['error']}")
        return
    want = np.asarray(v[cut(v.shape, data["region"])] if v.shape else v[...])
    want = want.view("u1") if want.dtype.kind == "S" else want
    dtype, sha, _ = v3_zarr.digest(want)
    if dtype != data["dtype"] or sha != data["sha"]:
        problems.add(path, f"{reader} reads {data['dtype']}, other values than netCDF-C, which "
                     f"has {dtype}")


def compare_classic(file, result, reader):
    import netCDF4
    problems = Problems()
    check_common(result, reader, problems)
    problems.raise_any()
    with netCDF4.Dataset(file) as ds:
        ds.set_auto_maskandscale(False)
        for name, v in ds.variables.items():
            if "/" + name in result["arrays"]:
                check_classic("/" + name, v, result["arrays"]["/" + name], reader, problems)
            elif "/" + name not in result.get("unsayable", ()):
                problems.add("/" + name, "array is missing")
    problems.raise_any()
    return len(result["arrays"])


def unjudged(want):
    """Whether nothing is known of the native values. Absent chunks of texts that have a number for
    a fill value are "0" in zarr-python 3."""
    return want.get("error") or want.get("skipped") or (
        want["dtype"] == "string" and want["fill"] in (0, "0"))


def compare_trees(native, result, reader, notes_file):
    """A mount of a Zarr tree against what zarr-python 3 reads of the tree itself."""
    problems = Problems()
    info = compare_zarr.Info(notes_file)
    lacking = check_common(result, reader, problems)
    problems.raise_any()
    judged = 0
    for path, want in native["arrays"].items():
        data = result["arrays"].get(path)
        if path == "/" and len(result["arrays"]) == 1:
            data = next(iter(result["arrays"].values()))  # a tree of one array: it gets a name
        if data is None:
            if path not in lacking and not info.names(path) and not (path == "/" and lacking):
                problems.add(path, f"array is missing and not in the notes ({want['type']})")
        elif unjudged(want) or path in info.problem or excuse(reader, data):
            continue
        elif data.get("error"):
            problems.add(path, f"reading fails: {data['error']}")
        elif data["shape"][:len(want["shape"])] != want["shape"]:
            problems.add(path, f"shape {data['shape']}, zarr-python has {want['shape']}")
        elif data["region"][:len(want["region"])] == want["region"]:
            judged += 1
            # texts of a fixed length are bytes in UTF-8 here, and code points there
            fixed = want["dtype"] == "string" and data["dtype"] == "|u1"
            if data["sha"] != want["sha"] and not fixed:
                problems.add(path, f"{reader} reads {data['dtype']}, other values than of the "
                             f"tree itself: {want['dtype']} {want['type']}")
    problems.raise_any()
    return judged


def xarray_opens(file, group):
    """shapes and digests of the numbers that xarray decodes from the file itself, or None where it
    cannot, or netCDF-C dies of it."""
    import xarray as xr

    def read():
        with xr.open_dataset(file, engine="netcdf4", group=group, decode_times=False) as ds:
            found = {}
            for name, v in ds.variables.items():
                if v.dtype.kind in "biuf" and v.nbytes <= 8 << 20:
                    found[name] = (list(v.shape),) + v3_zarr.digest(np.asarray(v.values))[:2]
            return found
    ok, found = oracle.in_child(read, 60)
    return found if ok else None


def twice(result):
    """Whether an array has one name for two dimensions."""
    return any(d["dims"] and len(set(d["dims"])) < len(d["dims"])
               for d in result["arrays"].values())


def compare_xarray(file, seen, result, undefined=()):
    """seen: of v3_xarray.py; result: of v3_zarr.py for the same tree; undefined: arrays whose
    elements have no value."""
    problems = Problems()
    for text in seen["problems"]:
        if "conflicting sizes" in text and twice(result):
            continue  # a(/Y, Y) of a group with a Y of its own
        if xarray_opens(file, text.split(":")[0]) is not None:
            problems.append(f"xarray: {text}")
    for group, variables in seen["groups"].items():
        native = xarray_opens(file, group) or {}
        for name, v in variables.items():
            path = group.rstrip("/") + "/" + name
            data = result["arrays"].get(path)
            if not data or "sha" not in v:
                continue
            if v["shape"] != data["shape"] or v["dims"] != (data["dims"] or []):
                problems.add(path, f"xarray: {v['dims']} {v['shape']}, "
                             f"zarr-python {data['dims']} {data['shape']}")
            elif data["region"] == data["shape"] and v["sha"] != data.get("sha"):
                problems.add(path, "xarray reads other values than zarr-python")
            want = native.get(name)
            if path in undefined:
                continue  # netCDF-C has a fill value of its own for it
            if want and want[:2] == (v["shape"], v.get("as")) and want[2] != v["decoded"]:
                problems.add(path, "xarray decodes other values than from the file itself")
    problems.raise_any()
