# SPDX-License-Identifier: BSD-3-Clause
"""What zarr-python reads from a Zarr tree, for comparison with what other programs read from the
virtual netCDF-4 file of it: dimensions, values, attributes.

zarr-python 2 reads v2 trees. It knows no v3 (nor fletcher32, nor NCZarr's first version), so these
are read here, from the specification, with numcodecs for the codecs: written apart from the
program under test, on purpose."""
import json
import os
import struct
import zipfile
from collections.abc import MutableMapping

import numcodecs
import numpy as np
import zarr

from gen import filters


class Fletcher32(numcodecs.abc.Codec):
    """What numcodecs 0.11 lacks: HDF5's four bytes behind the data."""

    codec_id = "fletcher32"

    def encode(self, buf):
        raise NotImplementedError

    def decode(self, buf, out=None):
        data = numcodecs.compat.ensure_bytes(buf)
        if struct.pack("<I", filters.fletcher32(data[:-4])) != data[-4:]:
            raise RuntimeError("the checksum is wrong")
        return numcodecs.compat.ndarray_copy(np.frombuffer(data[:-4], "u1"), out)


if "fletcher32" not in numcodecs.registry.codec_registry:
    numcodecs.register_codec(Fletcher32)


class Unreadable(Exception):
    """What this oracle cannot decode; not an error of anybody's."""


class Array:
    def __init__(self, path, shape, dtype, dims, attrs, load, fill=None, meta=None):
        self.path = path      # "/g/v"
        self.shape = tuple(shape)
        self.dtype = dtype    # numpy's; object for texts without a fixed size
        self.dims = dims      # names, or None
        self.attrs = attrs    # as JSON has them
        self.fill = fill
        self.meta = meta or {} # the document
        self._load = load

    def values(self):
        return self._load()


class Tree:
    def __init__(self):
        self.arrays = {}
        self.groups = {}      # path -> attributes


class Files:
    """Keys and bytes of a directory or zip archive; a single folder in a zip is its root."""

    def __init__(self, path):
        self.zip = None if os.path.isdir(path) else zipfile.ZipFile(path)
        self.path = path
        self.top = ""
        if self.zip:
            names = [n for n in self.zip.namelist() if not n.endswith("/")]
            tops = {n.split("/")[0] for n in names}
            if len(tops) == 1 and all("/" in n for n in names):
                self.top = tops.pop() + "/"

    def get(self, key):
        if self.zip:
            try:
                return self.zip.read(self.top + key)
            except KeyError:
                return None
        try:
            with open(os.path.join(self.path, key), "rb") as f:
                return f.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def dirs(self, key):
        """Names of folders below a key."""
        if self.zip:
            prefix = self.top + (key + "/" if key else "")
            found = {n[len(prefix):].split("/")[0] for n in self.zip.namelist()
                     if n.startswith(prefix) and "/" in n[len(prefix):]}
            return sorted(found - {""})
        here = os.path.join(self.path, key)
        return sorted(n for n in os.listdir(here) if os.path.isdir(os.path.join(here, n)))

    def keys(self):
        if self.zip:
            return [n[len(self.top):] for n in self.zip.namelist()
                    if n.startswith(self.top) and not n.endswith("/")]
        return [os.path.relpath(os.path.join(base, n), self.path)
                for base, _, names in os.walk(self.path) for n in names]


def mend(raw):
    """.zarray of netCDF-C as zarr-python can read it: numbers of codecs that are texts, shuffle by
    0 bytes, which means the type's, characters that are one byte each. Absent numbers without a
    fill value, for which zarr-python gives whatever was in memory, are zeros."""
    doc = json.loads(raw.decode("utf-8"))
    for codec in (doc.get("filters") or []) + [doc.get("compressor") or {}]:
        for k, v in codec.items():
            if isinstance(v, str) and v.isdigit():
                codec[k] = int(v)
        if codec.get("id") == "lzma" and codec.get("format", 1) != 3:
            codec["filters"] = None  # decoding needs none, and python refuses them
        if codec.get("id") == "zstd":
            codec.pop("checksum", None)  # numcodecs 0.11 knows none; a frame says it itself
        if codec.get("id") == "shuffle" and not codec.get("elementsize"):
            codec["elementsize"] = np.dtype(doc["dtype"]).itemsize
    if doc.get("_NCZARR_ARRAY") and doc["dtype"] in ("<U1", ">U1"):
        doc["dtype"] = "|S1"
    if doc.get("fill_value") is None and isinstance(doc["dtype"], str) and (
            doc["dtype"][1] in "biufc"):
        doc["fill_value"] = [0, 0] if doc["dtype"][1] == "c" else 0
    return json.dumps(doc).encode()


class Store(MutableMapping):
    """Files as zarr-python takes stores."""

    def __init__(self, files):
        self.files = files

    def __getitem__(self, key):
        data = self.files.get(key)
        if data is None:
            raise KeyError(key)
        return mend(data) if key.endswith(".zarray") else data

    def __iter__(self):
        return iter(self.files.keys())

    def __len__(self):
        return len(self.files.keys())

    def __setitem__(self, key, value):
        raise TypeError("read only")

    def __delitem__(self, key):
        raise TypeError("read only")


def join(a, b):
    return f"{a}/{b}" if a else b


def load(path):
    """The tree behind a path, of whatever version."""
    files = Files(path)
    tree = Tree()
    store = None if files.get("zarr.json") is not None else Store(files)
    _walk(files, "", tree, store)
    return tree


def _json(raw):
    return json.loads(raw.decode("utf-8")) if raw is not None else None


def _walk(files, key, tree, store):
    three = _json(files.get(join(key, "zarr.json")))
    if three is not None:
        if three["node_type"] == "array":
            tree.arrays["/" + key] = _v3_array(files, key, three)
            return
        tree.groups["/" + key] = three.get("attributes", {})
    elif files.get(join(key, ".zarray")) is not None:
        tree.arrays["/" + key] = _v2_array(files, key, store)
        return
    else:
        tree.groups["/" + key] = _json(files.get(join(key, ".zattrs"))) or {}
    for name in files.dirs(key):
        below = join(key, name)
        if any(files.get(join(below, d)) is not None
               for d in (".zarray", ".zgroup", ".zattrs", "zarr.json")):
            _walk(files, below, tree, store)


def _v2_array(files, key, store):
    meta = _json(files.get(join(key, ".zarray")))
    attrs = _json(files.get(join(key, ".zattrs"))) or {}
    try:
        z = zarr.core.Array(store, path=key, read_only=True)
    except (ValueError, TypeError) as error:
        text = str(error)

        def fail():
            raise Unreadable(text)
        return Array("/" + key, meta["shape"], None, attrs.get("_ARRAY_DIMENSIONS"), attrs, fail,
                     None, meta)

    def values():
        try:
            out = z[...]
        except (ValueError, TypeError, RuntimeError) as error:
            raise Unreadable(str(error)) from error
        out = np.asarray(out)
        if out.dtype.kind == "O":  # texts never written, whose fill value is 0 or null
            out[np.array([x is None or isinstance(x, int) and x == 0 for x in out.ravel()],
                         bool).reshape(out.shape)] = ""
        return out
    return Array("/" + key, z.shape, z.dtype, attrs.get("_ARRAY_DIMENSIONS"), attrs, values,
                 z.fill_value, meta)


# ---- Zarr v3 ----

SIMPLE = {"bool": "?", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1",
          "uint16": "u2", "uint32": "u4", "uint64": "u8", "float16": "f2", "float32": "f4",
          "float64": "f8", "complex64": "c8", "complex128": "c16", "complex_float32": "c8",
          "complex_float64": "c16"}


def _v3_dtype(t):
    if isinstance(t, str):
        if t in SIMPLE:
            return np.dtype(SIMPLE[t])
        if t in ("string", "variable_length_bytes", "bytes"):
            return np.dtype(object)
        if t.startswith("r") and t[1:].isdigit():
            return np.dtype(f"V{int(t[1:]) // 8}")
    elif isinstance(t, dict):
        c = t.get("configuration", {})
        if t["name"] == "fixed_length_utf32":
            return np.dtype(f"<U{c['length_bytes'] // 4}")
        if t["name"] == "null_terminated_bytes":
            return np.dtype(f"S{c['length_bytes']}")
        if t["name"].startswith("numpy."):
            letter = "M" if "datetime" in t["name"] else "m"
            n = c.get("scale_factor", 1)
            return np.dtype(f"<{letter}8[{n if n != 1 else ''}{c['unit']}]")
    raise Unreadable(f"data type {t}")


def _v3_fill(value, dtype):
    if dtype.kind in "fc" and isinstance(value, str):
        if value.startswith("0x"):
            raw = bytes.fromhex(value[2:])[::-1]
            return np.frombuffer(raw, dtype)[0]
        return dtype.type(float(value.replace("Infinity", "inf")))
    if dtype.kind == "c":
        return dtype.type(complex(*(float(str(x).replace("Infinity", "inf")) for x in value)))
    if dtype.kind == "V":
        return np.frombuffer(bytes(value), dtype)[0]
    if dtype.kind == "S":
        import base64
        return np.array(base64.b64decode(value) if isinstance(value, str) else value, dtype)[()]
    if dtype.kind == "O":
        return value
    if dtype.kind in "mM":
        return np.array(-2**63 if value == "NaT" else value, "i8").view(dtype)[()]
    return np.array(value, dtype)[()]


def _bytes_codec(codec, data):
    name, c = codec["name"], codec.get("configuration") or {}
    if name.startswith("numcodecs."):
        known = {k: v for k, v in c.items() if (name, k) != ("numcodecs.zstd", "checksum")}
        try:
            return bytes(numcodecs.get_codec({"id": name[10:], **known}).decode(data))
        except ValueError as error:
            raise Unreadable(str(error)) from error
    if name == "gzip":
        return bytes(numcodecs.GZip().decode(data))
    if name == "zstd":
        return bytes(numcodecs.Zstd().decode(data))
    if name == "blosc":
        return bytes(numcodecs.Blosc().decode(data))
    if name == "crc32c":
        return data[:-4]
    raise Unreadable(f"codec {name}")


# "endian": the name that "bytes" had in drafts of the specification
MIDDLE = ("bytes", "endian", "sharding_indexed", "vlen-utf8", "vlen-bytes", "packbits")


def _packbits(conf, shape, dtype, data):
    """Lowest bits first; signs are extended from the last bit."""
    if conf.get("padding_encoding", "none") != "none":
        data = data[1:] if conf["padding_encoding"] == "first_byte" else data[:-1]
    n, width = int(np.prod(shape, dtype=int)), 1 if dtype.kind == "b" else 8 * dtype.itemsize
    first, last = conf.get("first_bit") or 0, conf.get("last_bit")
    last = width - 1 if last is None else last
    bits = np.unpackbits(np.frombuffer(data, "u1"), bitorder="little")
    bits = bits[:n * (last - first + 1)].reshape(n, last - first + 1)
    whole = np.zeros((n, 8 * dtype.itemsize), "u1")
    whole[:, first:last + 1] = bits
    if dtype.kind == "i":
        whole[:, last + 1:] = bits[:, -1:]
    return np.packbits(whole, axis=1, bitorder="little").view(
        dtype.newbyteorder("<") if dtype.kind != "b" else "?").reshape(shape)



def _split(codecs):
    """(array to array, array to bytes, bytes to bytes)"""
    for i, c in enumerate(codecs):
        if c["name"] in MIDDLE:
            return codecs[:i], c, codecs[i + 1:]
    return codecs, {"name": "bytes"}, []


def _decode(codecs, shape, dtype, fill, data):
    before, middle, after = _split(codecs)
    for c in reversed(after):
        data = _bytes_codec(c, data)
    undo = []
    for c in before:
        if c["name"] == "transpose":
            order = c["configuration"]["order"]
            if isinstance(order, str):
                order = list(range(len(shape)))[::-1 if order == "F" else 1]
            undo.append(lambda a, order=order: a.transpose(np.argsort(order)))
            shape = tuple(shape[k] for k in order)
        elif c["name"] == "numcodecs.delta":
            codec = numcodecs.get_codec({"id": "delta", **c["configuration"]})
            undo.append(lambda a, codec=codec: codec.decode(a.ravel()).reshape(a.shape))
        else:
            raise Unreadable(f"codec {c['name']}")
    if middle["name"] in ("bytes", "endian"):
        endian = (middle.get("configuration") or {}).get("endian", "little")
        stored = dtype.newbyteorder(">" if endian == "big" else "<")
        out = np.frombuffer(data, stored).reshape(shape)
    elif middle["name"] == "packbits":
        out = _packbits(middle.get("configuration") or {}, shape, dtype, data)
    elif middle["name"] == "sharding_indexed":
        out = _shard(middle["configuration"], shape, dtype, fill, data)
    else:
        codec = numcodecs.VLenUTF8() if middle["name"] == "vlen-utf8" else numcodecs.VLenBytes()
        out = codec.decode(data).reshape(shape)
    for step in reversed(undo):
        out = step(out)
    return out


def _shard(c, shape, dtype, fill, data):
    inner = tuple(c["chunk_shape"])
    grid = tuple(s // i for s, i in zip(shape, inner))
    n = int(np.prod(grid, dtype=int))
    size = 16 * n + 4 * sum(x["name"] == "crc32c" for x in c["index_codecs"])
    raw = data[:size] if c.get("index_location", "end") == "start" else data[-size:]
    big = any((x.get("configuration") or {}).get("endian") == "big" for x in c["index_codecs"])
    index = np.frombuffer(raw[:16 * n], ">u8" if big else "<u8").reshape(grid + (2,))
    out = _filled(shape, dtype, fill)
    for at in np.ndindex(*grid):
        off, length = (int(x) for x in index[at])
        if off == 2**64 - 1 and length == off:
            continue
        part = _decode(c["codecs"], inner, dtype, fill, data[off:off + length])
        out[tuple(slice(k * i, (k + 1) * i) for k, i in zip(at, inner))] = part
    return out


def _filled(shape, dtype, fill):
    out = np.empty(shape, dtype)
    if dtype.kind == "O":
        out[...] = fill if fill is not None else ""
    else:
        out[...] = fill
    return out


def _v3_array(files, key, meta):
    attrs = meta.get("attributes", {})
    shape = tuple(meta["shape"])
    dims = meta.get("dimension_names")
    problem = None
    dtype = fill = None
    try:
        dtype = _v3_dtype(meta["data_type"])
        fill = _v3_fill(meta["fill_value"], dtype)
    except Unreadable as error:
        problem = error

    def values():
        if problem:
            raise problem
        return _v3_values(files, key, meta, shape, dtype, fill)
    return Array("/" + key, shape, dtype, dims, attrs, values, fill)


def _v3_values(files, key, meta, shape, dtype, fill):
    if meta.get("storage_transformers"):
        raise Unreadable("storage transformers")
    chunk = tuple(meta["chunk_grid"]["configuration"]["chunk_shape"])
    enc = meta["chunk_key_encoding"]
    sep = (enc.get("configuration") or {}).get("separator",
                                               "/" if enc["name"] == "default" else ".")
    grid = tuple(-(-s // c) for s, c in zip(shape, chunk))
    out = _filled(shape, dtype, fill)
    for at in np.ndindex(*grid):
        name = sep.join(str(k) for k in at)
        if enc["name"] == "default":
            name = "c" + sep + name if at else "c"
        data = files.get(join(key, name or "0"))
        if data is None:
            continue
        part = _decode(meta.get("codecs", []), chunk, dtype, fill, data)
        where = tuple(slice(k * c, min((k + 1) * c, s)) for k, c, s in zip(at, chunk, shape))
        out[where] = part[tuple(slice(0, w.stop - w.start) for w in where)]
    return out


def bits(a):
    """Bytes that are equal only for equal values, NaN payloads included."""
    if a.dtype.kind == "O":
        return [x if isinstance(x, (str, bytes)) else struct.pack("<d", x) for x in a.ravel()]
    return np.ascontiguousarray(a).tobytes()
