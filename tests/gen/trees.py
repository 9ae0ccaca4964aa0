# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees that the tests write: one function a feature, `@tree` puts it into TREES. Like
tests/gen for files: a generator gets the path to write, writes the same values each time, and says
in its docstring what a reader could get wrong."""
import json
import os
import zipfile

import numpy as np

TREES = {}
ALL = ("h5py", "h5tools", "nctools", "xarray")


class Made:
    def __init__(self, func, ending, options, clients, missing):
        self.name = func.__name__
        self.write = func
        self.ending = ending
        self.options = options
        self.clients = clients  # of h5py, h5tools, nctools, xarray
        self.missing = missing  # paths that are left out on purpose


def tree(*options, clients=ALL, ending=".zarr", missing=()):
    """Decorator. options: -o options for the mount."""
    def put(func):
        assert func.__name__ not in TREES, func.__name__
        TREES[func.__name__] = Made(func, ending, options, clients, missing)
        return func
    return put


def load():
    """All generators, imported."""
    from gen import z_chunks, z_codecs, z_nczarr, z_shapes, z_three, z_types, z_zip  # noqa: F401
    return TREES


def ramp(shape, dtype="f4"):
    """Distinct values, some negative where the type has such."""
    n = int(np.prod(shape, dtype=int))
    dtype = np.dtype(dtype)
    v = np.arange(n, dtype="i8") * 7 % 251 - (100 if dtype.kind in "ifc" else 0)
    return v.astype(dtype).reshape(shape)


def put(path, key, content):
    """One object: JSON of anything but bytes."""
    full = os.path.join(path, key)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as f:
        f.write(content if isinstance(content, bytes) else json.dumps(content).encode())


def group(path, attrs=None, key=""):
    put(path, os.path.join(key, ".zgroup"), {"zarr_format": 2})
    if attrs is not None:
        put(path, os.path.join(key, ".zattrs"), attrs)


def array(path, key, data, chunks, attrs=None, chunk_bytes=None, **more):
    """A v2 array by hand, uncompressed: what zarr-python would not write."""
    meta = {"zarr_format": 2, "shape": list(data.shape), "chunks": list(chunks),
            "dtype": data.dtype.str, "fill_value": None, "order": "C", "compressor": None,
            "filters": None}
    meta.update(more)
    put(path, os.path.join(key, ".zarray"), meta)
    if attrs is not None:
        put(path, os.path.join(key, ".zattrs"), attrs)
    sep = meta.get("dimension_separator", ".")
    for at in np.ndindex(*[-(-s // c) for s, c in zip(data.shape, chunks)]):
        whole = np.zeros(chunks, data.dtype)
        part = data[tuple(slice(k * c, (k + 1) * c) for k, c in zip(at, chunks))]
        whole[tuple(slice(0, n) for n in part.shape)] = part
        raw = whole.tobytes(order=meta["order"])
        name = sep.join(str(k) for k in at) or "0"
        put(path, os.path.join(key, name), chunk_bytes(raw) if chunk_bytes else raw)


def archive(folder, path, method=zipfile.ZIP_STORED, top=""):
    """A zip of a tree, in the order of names."""
    with zipfile.ZipFile(path, "w", method) as z:
        for base, dirs, names in os.walk(folder):
            dirs.sort()
            for name in sorted(names):
                full = os.path.join(base, name)
                z.write(full, os.path.join(top, os.path.relpath(full, folder)))
