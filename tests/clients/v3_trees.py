# SPDX-License-Identifier: BSD-3-Clause
"""A Zarr v3 view: its documents have only what all readers of Zarr v3 know, what the reader of
Zarr v3 in clients.tree finds in it is what zarr-python finds in the v2 view of the same dataset,
and a v2 view of the v3 view is that v2 view again: types, byte order, values, dimensions."""
import base64
import errno
import json
import os
import struct

import numpy as np

from clients import tree, tree_tree

CORE = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128", "string", "bytes"}
GROUP = {"zarr_format", "node_type", "attributes"}
ARRAY = GROUP | {"shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"}
STOCK = {"bytes", "vlen-utf8", "vlen-bytes", "blosc", "gzip", "zstd", "crc32c",
         "sharding_indexed"}


def strict(text):
    def refuse(token):
        raise ValueError(f"{token} is not JSON")
    return json.loads(text, parse_constant=refuse)


def codecs_of(doc):
    for c in doc["codecs"]:
        yield c
        if c["name"] == "sharding_indexed":
            yield from c["configuration"]["codecs"]


def check_document(path, doc, stock, problems):
    if doc["node_type"] == "group":
        if not GROUP <= set(doc) <= GROUP | {"consolidated_metadata"}:
            problems.append(f"{path}: members {sorted(doc)}")
        return
    if not ARRAY <= set(doc) <= ARRAY | {"dimension_names"}:
        problems.append(f"{path}: members {sorted(doc)}")
    if doc["data_type"] not in CORE:
        problems.append(f"{path}: data type {doc['data_type']}")
    if doc["fill_value"] is None or isinstance(doc["fill_value"], dict):
        problems.append(f"{path}: fill_value {doc['fill_value']}")
    if stock and not {c["name"] for c in codecs_of(doc)} <= STOCK:
        problems.append(f"{path}: codecs {[c['name'] for c in codecs_of(doc)]}")
    middle = next(c for c in codecs_of(doc) if c["name"] in STOCK - {"sharding_indexed"})
    wide = doc["data_type"] not in ("bool", "int8", "uint8", "string", "bytes")
    if wide != ("endian" in middle.get("configuration", {})):
        problems.append(f"{path}: {middle}")


def check_documents(mnt, stock):
    """Every document by itself, and all of them once more in the root's."""
    problems, found = [], {}

    def walk(folder, key):
        with open(os.path.join(folder, "zarr.json"), encoding="ascii") as f:
            found[key] = doc = strict(f.read())
        check_document(key, doc, stock, problems)
        for name in os.listdir(folder) if doc["node_type"] == "group" else ():
            if name != "zarr.json":
                walk(os.path.join(folder, name), key + "/" + name if key else name)
    walk(mnt, "")
    together = found[""].pop("consolidated_metadata")
    if set(together) != {"kind", "must_understand", "metadata"} or together["kind"] != "inline":
        problems.append(f"consolidated_metadata has {sorted(together)}")
    for key in set(together["metadata"]) ^ (set(found) - {""}):
        problems.append(f"{key}: only here, or only in consolidated metadata")
    for key, doc in together["metadata"].items():
        if found.get(key, doc) != doc:
            problems.append(f"{key}: {doc} in consolidated metadata, {found[key]} here")
    return problems


def fill_of(value, dtype):
    """_FillValue as xarray writes it to Zarr v3."""
    if dtype.kind == "f" and isinstance(value, str):
        return struct.unpack("<d", base64.b64decode(value))[0]
    return value


def finite(value):
    """Whether strict JSON has a form for it."""
    text = json.dumps(value)
    return "NaN" not in text and "Infinity" not in text


def same_attrs(a, b, problems):
    want = {k: v for k, v in a.attrs.items() if k != "numpy_dtype"}
    got = {k: v for k, v in b.attrs.items() if k != "numpy_dtype"}
    fill = want.pop("_FillValue", None)
    if fill is not None and a.dtype.kind in "iufb" and isinstance(fill, (int, float)):
        shown = fill_of(got.pop("_FillValue", None), a.dtype)
        if shown is None or not np.array_equal(shown, float(fill) if a.dtype.kind == "f" else fill,
                                               equal_nan=a.dtype.kind == "f"):
            problems.append(f"{a.path}: _FillValue is {shown!r}, not {fill!r}")
    got.pop("_FillValue", None)
    for key, value in want.items():
        if key == "_ARRAY_DIMENSIONS":
            continue
        if not finite(value):
            value = json.loads(json.dumps(value), parse_constant=str)
        if got.get(key) != value:
            problems.append(f"{a.path}: attribute {key} is {got.get(key)!r}, not {value!r}")
    if set(got) - set(want):
        problems.append(f"{a.path}: attributes {sorted(set(got) - set(want))} come from nowhere")


def numpy_dtype(said):
    """The text of the attribute, fields and all."""
    def of(t):
        if isinstance(t, str):
            return t
        return [(f[0], of(f[1]), *(tuple(x) for x in f[2:])) for f in t]
    return np.dtype(of(json.loads(said)) if said.startswith("[") else said)


def elements(a, b):
    """What b's bytes stand for, as numbers or texts of a's type."""
    said, values = b.attrs.get("numpy_dtype"), b.values()
    if said is None or values.dtype == a.dtype or a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return values
    if values.dtype.kind == "O":
        return values if isinstance(said, str) else None
    return np.ascontiguousarray(values).view(numpy_dtype(said)).reshape(a.shape)


def packed(x, base):
    """One ragged element as its bytes."""
    return bytes(x) if isinstance(x, bytes) else np.asarray(x, base).tobytes()


def same_element(x, y, said):
    """Texts, or ragged elements; as bytes, where `said` is their dtype."""
    if isinstance(y, str):
        return x == y
    if said is None and not isinstance(x, bytes) and np.asarray(x).dtype != np.asarray(y).dtype:
        return False
    return packed(x, said) == packed(y, said)


def same(a, values, problems, said=None):
    want = a.values()
    if want.dtype.kind == "O":
        ok = values.shape == want.shape and all(
            same_element(x, y, said) for x, y in zip(values.ravel(), want.ravel()))
    else:
        ok = values.shape == want.shape and values.astype(want.dtype).tobytes() == want.tobytes()
    if not ok:
        problems.append(f"{a.path}: {values.dtype} {values.shape} {values.ravel()[:3]}, "
                        f"{want.dtype} {want.shape} {want.ravel()[:3]} expected")


def readable(a):
    """Whether all chunks are: what cannot be decoded is EIO, and zarr-python 2 cannot open some
    of what it reads itself."""
    try:
        a.values()
    except OSError as error:
        assert error.errno == errno.EIO, error
        return False
    return True


def compare(v2, v3, back, stock=True):
    problems = check_documents(v3, stock)
    want, shown, got = tree.load(v2), tree.load(v3), tree.load(back)
    for path in set(want.groups) ^ set(shown.groups) | set(want.arrays) ^ set(shown.arrays):
        problems.append(f"{path}: is in one of the trees")
    for path, attrs in want.groups.items():
        tree_tree.same_attrs(path, {k: v for k, v in attrs.items() if finite(v)},
                             {k: v for k, v in got.groups[path].items()
                              if finite(attrs.get(k, 0))}, problems)
    for path, a in want.arrays.items():
        b, c = shown.arrays.get(path), got.arrays.get(path)
        if b is None or c is None:
            problems.append(f"{path}: {b and b.shape}, {c and c.shape}")
            continue
        same_attrs(a, b, problems)
        if b.dims[:len(a.shape)] != a.dims or c.dims != a.dims:
            problems.append(f"{path}: dimensions {b.dims}, {c.dims}, {a.dims} expected")
        if c.dtype != a.dtype or c.shape != a.shape:
            problems.append(f"{path}: {c.dtype} {c.shape}, {a.dtype} {a.shape} expected")
            continue
        try:
            if not readable(a):
                if readable(b) or readable(c):
                    problems.append(f"{path}: can be read in one of the trees")
                continue
            same(a, elements(a, b), problems, b.attrs.get("numpy_dtype"))
            same(a, c.values(), problems)
        except tree.Unreadable as why:
            print(f"{path}: not compared: {why}")
    assert not problems, "\n".join(problems[:30])
