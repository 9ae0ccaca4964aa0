#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""v3_zarr.py JOBS RESULTS: what zarr-python 3 sees in Zarr trees. Knows nothing of this project:
it runs in a Debian of its own (scripts/peers-chroot), which has no other file of it.

JOBS is a JSON list of {"id", "path"}: directories or zip files, of Zarr v2 or v3. RESULTS gets one
JSON line for each: {"id", "format", "groups": {path: {"attrs"}}, "arrays": {path: array},
"consolidated": null or the paths that the consolidated metadata lists, "problems": [text]}.
An array: dtype, shape, chunks, shards, dims, attrs, fill, and of the values of `region` (see
extent) sha256 of the bytes in C order, little-endian; "bits" as they are, "sha" with all NaNs
made one. Texts and bytes of any length are hashed with their lengths. "error" when reading fails.
v3_zarrita.mjs writes the same, and "unsayable": paths that zarrita.js cannot name."""
import hashlib
import json
import math
import os
import struct
import sys
import warnings

import numpy as np
import zarr

BYTES = 16 << 20   # read at most of one array
CHUNKS = 600       # read at most of one array
LARGE = 128 << 20  # bytes of a chunk that is not read at all: "skipped"

warnings.filterwarnings("ignore")


def extent(shape, chunks, itemsize):
    """Where the part of an array ends that is read: the whole, or as much as the limits allow."""
    stop = list(shape)

    def cut(unit, limit):
        for axis in range(len(stop)):
            sizes = [-(-n // u) for n, u in zip(stop, unit)]
            total = 1
            for n in sizes:
                total *= n
            if total <= limit or total == 0:
                return
            rest = 1
            for n in sizes[axis + 1:]:
                rest *= n
            stop[axis] = min(stop[axis], unit[axis] * max(1, limit // rest))
    cut([1] * len(stop), BYTES // max(1, itemsize))
    cut([max(1, c) for c in chunks], CHUNKS)
    return stop


def hash_texts(values):
    h = hashlib.sha256()
    for v in values:
        b = v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogateescape")
        h.update(struct.pack("<Q", len(b)) + b)
    return h.hexdigest()


def one_nan(a):
    """A copy in which all NaNs have the same bits."""
    if a.dtype.kind == "c":
        return one_nan(a.reshape(a.shape + (1,)).view(f"<f{a.dtype.itemsize // 2}"))
    a = a.copy()
    a[np.isnan(a)] = np.nan
    return a


def kind_of(a):
    if a.dtype.kind in "TU":
        return "string"
    if a.dtype.kind == "O":
        flat = a.ravel()
        if any(isinstance(x, np.ndarray) for x in flat):
            return "vlen"
        return "bytes" if any(isinstance(x, bytes) for x in flat) else "string"
    return a.dtype.newbyteorder("<").str


def digest(a):
    """(dtype, sha, bits) of values."""
    kind = kind_of(a)
    if kind == "vlen":
        h = hash_texts(np.ascontiguousarray(x).tobytes() for x in a.ravel())
        return kind, h, h
    if kind in ("string", "bytes"):
        h = hash_texts(a.ravel().tolist())
        return kind, h, h
    if a.dtype.kind in "biufcmM":
        a = a.astype(a.dtype.newbyteorder("<"))
    a = np.ascontiguousarray(a)
    bits = hashlib.sha256(a.tobytes()).hexdigest()
    sha = hashlib.sha256(one_nan(a).tobytes()).hexdigest() if a.dtype.kind in "fc" else bits
    return kind, sha, bits


def plain(value):
    """A value of metadata as JSON has it."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [value.real, value.imag] if isinstance(value, complex) else value


def describe(z):
    meta = z.metadata
    out = {"shape": list(z.shape), "chunks": list(z.chunks), "attrs": dict(z.attrs),
           "shards": list(z.shards) if getattr(z, "shards", None) else None,
           "dims": None, "fill": plain(z.fill_value)}
    if meta.zarr_format == 3:
        document = meta.to_dict()
        out["dims"] = list(meta.dimension_names) if meta.dimension_names else None
        kind = document["data_type"]
        out["type"] = getattr(kind, "value", kind)
        out["codecs"] = json.loads(json.dumps(document["codecs"], default=str))
    else:
        out["dims"] = out["attrs"].get("_ARRAY_DIMENSIONS")
        out["type"] = str(z.dtype)
    out["type"] = json.loads(json.dumps(out["type"], default=str))
    return out


def read(z):
    out = describe(z)
    itemsize = z.dtype.itemsize if z.dtype.kind not in "OT" else 16
    stop = extent(z.shape, z.shards if out["shards"] else z.chunks, itemsize)
    out["region"] = stop
    if itemsize * math.prod(z.chunks) > LARGE:
        return dict(out, skipped=True)
    try:
        values = z[tuple(slice(0, n) for n in stop)] if stop else z[...]
        values = np.asarray(values) if not isinstance(values, (str, bytes)) else (
            np.array(values, dtype=object))
        if out["type"] in ("bytes", "variable_length_bytes"):
            # 3.0 gives the one of a scalar as an array, and what says "bytes" may have no element
            flat = [x.tobytes() if isinstance(x, np.ndarray) else x for x in values.ravel()]
            out["dtype"], out["sha"] = "bytes", hash_texts(flat)
            out["bits"] = out["sha"]
        else:
            out["dtype"], out["sha"], out["bits"] = digest(values)
    except Exception as error:  # noqa: B902 - the caller judges
        out["error"] = f"{type(error).__name__}: {error}"[:300]
    return out


def walk(store, root, result):
    """Every node, opened one by one: one that cannot be opened does not hide the others."""
    seen = []
    try:
        seen = [name for name, _ in root.members(max_depth=None)]
    except Exception as error:  # noqa: B902
        result["problems"].append(f"listing: {type(error).__name__}: {error}"[:300])
        for base, _, files in os.walk(store) if isinstance(store, str) else ():
            if base != store and {"zarr.json", ".zarray", ".zgroup"} & set(files):
                seen.append(os.path.relpath(base, store))
    for name in sorted(seen):
        path = "/" + name
        try:
            node = root[name]
        except Exception as error:  # noqa: B902
            result["problems"].append(f"{path}: {type(error).__name__}: {error}"[:300])
            continue
        if isinstance(node, zarr.Group):
            result["groups"][path] = {"attrs": dict(node.attrs)}
        else:
            result["arrays"][path] = read(node)


def consolidated(store, root, result):
    """What the consolidated metadata says must be what the documents say."""
    if root.metadata.consolidated_metadata is None:
        return
    listed = root.metadata.consolidated_metadata.flattened_metadata
    result["consolidated"] = sorted("/" + name for name in listed)
    single = zarr.open_group(store, mode="r", use_consolidated=False)
    for name, meta in listed.items():
        try:
            own = single[name].metadata
        except Exception as error:  # noqa: B902
            result["problems"].append(f"/{name}: {type(error).__name__}: {error}"[:300])
            continue
        a, b = meta.to_dict(), own.to_dict()
        a.pop("consolidated_metadata", None)
        b.pop("consolidated_metadata", None)
        if json.dumps(a, default=str) != json.dumps(b, default=str):
            result["problems"].append(
                f"/{name}: consolidated {json.dumps(a, default=str)[:200]}, "
                f"own {json.dumps(b, default=str)[:200]}")


def run(job):
    result = {"id": job["id"], "format": None, "groups": {}, "arrays": {}, "consolidated": None,
              "problems": []}
    try:
        store = job["path"]
        if os.path.isfile(store):
            store = zarr.storage.ZipStore(store, mode="r")
        root = zarr.open(store, mode="r")
        result["format"] = root.metadata.zarr_format
        if isinstance(root, zarr.Array):
            result["arrays"]["/"] = read(root)
        else:
            result["groups"]["/"] = {"attrs": dict(root.attrs)}
            consolidated(store, root, result)
            walk(store, root, result)
    except Exception as error:  # noqa: B902
        result["problems"].append(f"opening: {type(error).__name__}: {error}"[:300])
    return result


def main(argv):
    with open(argv[1], encoding="utf-8") as f:
        jobs = json.load(f)
    with open(argv[2], "w", encoding="utf-8") as out:
        for job in jobs:
            out.write(json.dumps(run(job)) + "\n")
            out.flush()


if __name__ == "__main__":
    main(sys.argv)
