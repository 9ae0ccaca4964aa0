"""What readers of Zarr v3 saw in a mount (tests/clients/v3_zarr.py) against the native file: HDF5 by
h5py and netCDF4-python, classic netCDF by netCDF4-python, Zarr trees by zarr-python 3 itself."""
import numpy as np

from clients import compare_zarr, oracle, v3_zarr
from clients.compare_zarr import Problems

# What a reader has no type for. docs/zarr3-readers.md.
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
        h = v3_zarr.hash_texts(vlen_bytes(t.numpy, x)
                               for x in np.asarray(want, dtype=object).ravel())
        return h, h
    if t.kind != "wide float" and t.numpy.kind in "SV":
        want = packed(t, want)
        if t.numpy.itemsize > 1:
            want = want[..., :stop[-1]]
    else:
        want = np.asarray(want)
        want = want.astype("f8") if t.kind == "wide float" else compare_zarr.pack(want, t.numpy)
    return v3_zarr.digest(want)[1:]


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
    check_attrs(path, array.dataset, data["attrs"], reader, notes, problems)
    if want is None or array.null:
        return
    dtype, extra = want
    if data.get("error"):
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


ADDED = {"_ARRAY_DIMENSIONS"}


def check_attrs(path, oid, got, reader, notes, problems):
    """Attributes by name and value; those that v3 adds are none of the file's."""
    if reader == "zarrita.js":
        return  # it hands on the JSON that zarr-python has read, but with rounded numbers
    want = oracle.attributes(oid)
    for name, attr in want:
        if name not in got:
            if attr is not None and attr.value is not None and attr.value and not any(
                    name in n for n in notes):
                problems.add(path, f"attribute {name} is missing and not in the notes")
            continue
        compare_zarr.check_attr(path, name, attr, got[name], problems)


def check_common(result, reader, hidden, problems):
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
    """named: whether arrays have dimension_names. Raises AssertionError with all differences; the number of arrays that were judged."""
    problems = Problems()
    info = compare_zarr.Info(notes_file)
    model = oracle.Model(file)
    lacking = check_common(result, reader, info.hidden, problems)
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


def classic_arrays(file):
    """path -> (dims, values) of a classic netCDF file, of the region that clients read of each."""
    import netCDF4
    found = {}
    with netCDF4.Dataset(file) as ds:
        ds.set_auto_maskandscale(False)
        for name, v in ds.variables.items():
            found["/" + name] = (list(v.dimensions), v)
        yield found


def compare_classic(file, result, reader):
    problems = Problems()
    check_common(result, reader, (), problems)
    problems.raise_any()
    for arrays in classic_arrays(file):
        for path, (dims, v) in arrays.items():
            data = result["arrays"].get(path)
            if data is None:
                problems.add(path, "array is missing")
            elif data.get("error"):
                problems.add(path, f"reading fails: {data['error']}")
            elif data["shape"] != list(v.shape) or (data["dims"] or []) != dims:
                problems.add(path, f"{data['dims']} {data['shape']}, expected {dims} {v.shape}")
            elif not excuse(reader, data):
                want = np.asarray(v[cut(v.shape, data["region"])] if v.shape else v[...])
                want = want.view("u1") if want.dtype.kind == "S" else want
                dtype, sha, _ = v3_zarr.digest(want)
                if dtype != data["dtype"] or sha != data["sha"]:
                    problems.add(path, f"{reader} reads {data['dtype']}, other values than "
                                 f"netCDF-C, which has {dtype}")
    problems.raise_any()
    return len(result["arrays"])


def compare_trees(native, result, reader, notes_file):
    """A mount of a Zarr tree against what zarr-python 3 reads of the tree itself."""
    problems = Problems()
    info = compare_zarr.Info(notes_file)
    lacking = check_common(result, reader, info.hidden, problems)
    problems.raise_any()
    judged = 0
    for path, want in native["arrays"].items():
        data = result["arrays"].get(path)
        if data is None:
            if path not in lacking and not info.names(path):
                problems.add(path, f"array is missing and not in the notes ({want['type']})")
        elif want.get("error") or path in info.problem or excuse(reader, data):
            continue
        elif data.get("error"):
            problems.add(path, f"reading fails: {data['error']}")
        elif data["shape"][:len(want["shape"])] != want["shape"]:
            problems.add(path, f"shape {data['shape']}, zarr-python has {want['shape']}")
        elif data["region"][:len(want["region"])] == want["region"]:
            judged += 1
            if data["sha"] != want["sha"]:
                problems.add(path, f"{reader} reads {data['dtype']}, other values than of the "
                             f"tree itself: {want['dtype']} {want['type']}")
    problems.raise_any()
    return judged
