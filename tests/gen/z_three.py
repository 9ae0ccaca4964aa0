# SPDX-License-Identifier: BSD-3-Clause
"""Zarr v3, written by hand from the specification, with numcodecs for the codecs."""
import gzip
import struct

import numcodecs
import numpy as np

from gen.trees import put, ramp, tree

CRC_TABLE = []


def crc32c(data):
    """CRC-32C of some bytes, bit by bit."""
    if not CRC_TABLE:
        for i in range(256):
            c = i
            for _ in range(8):
                c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
            CRC_TABLE.append(c)
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ b) & 255]
    return crc ^ 0xFFFFFFFF


def with_crc(data):
    return data + struct.pack("<I", crc32c(data))


def group3(path, attrs=None, key="", **more):
    put(path, f"{key}/zarr.json".lstrip("/"), {"zarr_format": 3, "node_type": "group",
                                               "attributes": attrs or {}, **more})


LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]
NAMES = {"f4": "float32", "f8": "float64", "i4": "int32", "i8": "int64", "u1": "uint8",
         "i2": "int16", "f2": "float16", "c8": "complex64", "c16": "complex128", "?": "bool",
         "u4": "uint32", "u8": "uint64", "i1": "int8", "u2": "uint16"}


def meta3(v, chunks, codecs, dims=None, attrs=None, fill=0, encoding="default", sep="/",
          data_type=None, **more):
    doc = {"zarr_format": 3, "node_type": "array", "shape": list(v.shape),
           "data_type": data_type or NAMES[v.dtype.str[1:] if v.dtype.kind != "b" else "?"],
           "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
           "chunk_key_encoding": {"name": encoding, "configuration": {"separator": sep}},
           "fill_value": fill, "codecs": codecs, "attributes": attrs or {}, **more}
    if dims is not None:
        doc["dimension_names"] = dims
    return doc


def parts(v, chunks, fill):
    """(coordinates, whole chunk) of an array, edges filled up."""
    for at in np.ndindex(*[-(-s // c) for s, c in zip(v.shape, chunks)]):
        whole = np.full(chunks, fill, v.dtype)
        part = v[tuple(slice(k * c, (k + 1) * c) for k, c in zip(at, chunks))]
        whole[tuple(slice(0, n) for n in part.shape)] = part
        yield at, whole


def array3(path, key, v, chunks, codecs, encode, skip=(), **more):
    """encode: whole chunk to stored bytes. skip: coordinates that are never written."""
    fill = more.pop("fill_number", 0)
    put(path, f"{key}/zarr.json", meta3(v, chunks, codecs, **more))
    encoding, sep = more.get("encoding", "default"), more.get("sep", "/")
    for at, whole in parts(v, chunks, fill):
        if at in skip:
            continue
        name = sep.join(str(k) for k in at)
        if encoding == "default":
            name = "c" + sep + name if at else "c"
        put(path, f"{key}/{name or '0'}", encode(whole))


def raw(a):
    return a.tobytes()


@tree(clients=("h5py", "h5tools", "nctools"))
def v3_numbers(path):
    """Every number, both byte orders; both key encodings and separators."""
    group3(path, {"title": "three"})
    for i, t in enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")):
        array3(path, t, ramp((7, 5), t), (3, 2), LITTLE, raw, dims=["y", "x"],
               encoding=("default", "v2")[i % 2], sep="/."[i // 2 % 2])
    big = [{"name": "bytes", "configuration": {"endian": "big"}}]
    array3(path, "big", ramp((5,), ">f8"), (2,), big, raw, dims=["n"])
    put(path, "sub/zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}})
    array3(path, "sub/v", ramp((7,), "i4"), (3,), LITTLE, raw, dims=["y"])


@tree(clients=("h5py", "h5tools"))
def v3_types(path):
    """Booleans, half floats, complex numbers, raw bits, no dimensions."""
    group3(path)
    array3(path, "b", np.arange(7) % 2 == 0, (3,), LITTLE, raw, fill=False)
    array3(path, "h", ramp((7,), "f2"), (3,), LITTLE, raw, fill="NaN", skip=((1,),))
    array3(path, "c", ramp((7,), "c8"), (3,), LITTLE, raw, fill=[1.5, "NaN"], skip=((0,),))
    array3(path, "r", np.frombuffer(bytes(range(21)), "V3"), (3,), LITTLE, raw,
           data_type="r24", fill=[1, 2, 3], fill_number=b"\1\2\3")
    array3(path, "s", np.array(4, "i4"), (), LITTLE, raw)
    array3(path, "hex", ramp((7,), "f4"), (3,), LITTLE, raw, fill="0x7fc00001", skip=((1,),))


@tree(clients=("h5py", "h5tools", "nctools"))
def v3_texts(path):
    """Strings of any length, and of a fixed one."""
    group3(path)
    words = np.array(["", "a", "grün", "日本" * 50, "z"], object)
    v8 = numcodecs.VLenUTF8()
    array3(path, "v", words, (2,), [{"name": "vlen-utf8"}, {"name": "zstd", "configuration": {
        "level": 0, "checksum": False}}],
        lambda a: bytes(numcodecs.Zstd().encode(bytes(v8.encode(a)))), fill="",
        fill_number="", data_type="string", dims=["n"])
    array3(path, "u", words.astype("<U4"), (2,), LITTLE, raw, fill="", fill_number="",
           data_type={"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}})


@tree(clients=("h5py", "h5tools", "nctools"))
def v3_codecs(path):
    """gzip, zstd, blosc, crc32c, alone and together; chunks never written."""
    group3(path)
    v = ramp((9, 7), "i4")
    chains = {
        "gzip": ([{"name": "gzip", "configuration": {"level": 5}}], gzip.compress),
        "zstd": ([{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
                 lambda b: bytes(numcodecs.Zstd(3).encode(b))),
        "blosc": ([{"name": "blosc", "configuration": {
            "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}],
            lambda b: bytes(numcodecs.Blosc("lz4", 5, 1).encode(np.frombuffer(b, "i4")))),
        "crc": ([{"name": "crc32c"}], with_crc),
        "gzip_crc": ([{"name": "gzip", "configuration": {"level": 1}}, {"name": "crc32c"}],
                     lambda b: with_crc(gzip.compress(b))),
        "zlib": ([{"name": "numcodecs.zlib", "configuration": {"level": 1}}],
                 lambda b: bytes(numcodecs.Zlib(1).encode(b))),
        "shuffled": ([{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}},
                      {"name": "numcodecs.zlib", "configuration": {"level": 1}}],
                     lambda b: bytes(numcodecs.Zlib(1).encode(bytes(
                         numcodecs.Shuffle(4).encode(b))))),
    }
    for name, (codecs, encode) in chains.items():
        array3(path, name, v, (4, 3), LITTLE + codecs, lambda a, f=encode: f(a.tobytes()),
               dims=["y", "x"], fill=-1, fill_number=-1)
    order = [1, 2, 0]
    v = ramp((5, 4, 3), "i4")
    array3(path, "transposed", v, (2, 3, 2),
           [{"name": "transpose", "configuration": {"order": order}}] + LITTLE,
           lambda a: np.ascontiguousarray(a.transpose(order)).tobytes(), dims=["a", "b", "c"])


def packbits(first=None, last=None, padding=None):
    """Zarr v3's packbits: (codec, encoder)."""
    conf = {k: v for k, v in (("first_bit", first), ("last_bit", last),
                              ("padding_encoding", padding)) if v is not None}

    def encode(a):
        bits = np.unpackbits(a.reshape(-1, 1).view("u1"), axis=1, bitorder="little")
        bits = bits[:, :1] if a.dtype.kind == "b" else bits
        bits = bits[:, first or 0:None if last is None else last + 1].ravel()
        data = np.packbits(bits, bitorder="little").tobytes()
        pad = bytes([8 * len(data) - len(bits)])
        return {"first_byte": pad + data, "last_byte": data + pad}.get(padding, data)
    return {"name": "packbits", "configuration": conf} if conf else {"name": "packbits"}, encode


@tree(clients=("h5py", "h5tools"))
def v3_packbits(path):
    """Bits of truth values and of numbers, with and without their count, compressed, turned, in
    shards; chunks never written."""
    group3(path)
    truth = ramp((9, 7), "i4") % 3 == 0
    small = (ramp((9, 7), "i4") % 23 - 11).astype("i2")
    for padding in (None, "none", "first_byte", "last_byte"):
        codec, encode = packbits(padding=padding)
        array3(path, f"b_{padding}", truth, (4, 3), [codec], encode, fill=False)
    codec, encode = packbits(0, 4, "first_byte")
    array3(path, "i2", small, (4, 3), [codec], encode, dims=["y", "x"])
    codec, encode = packbits(3, 9)
    array3(path, "u4", (small.astype("u4") & 127) << 3, (4, 3), [codec], encode, dims=["y", "x"])
    codec, encode = packbits(16, None, "last_byte")
    array3(path, "f4", small.astype("f4"), (4, 3), [codec], encode, dims=["y", "x"])
    codec, encode = packbits()
    gz = [{"name": "gzip", "configuration": {"level": 1}}]
    array3(path, "u1_gzip", small.view("u2").astype("u1"), (4, 3), [codec] + gz,
           lambda a: gzip.compress(encode(a)), dims=["y", "x"])
    turn = [{"name": "transpose", "configuration": {"order": [1, 0]}}]
    array3(path, "turned", truth, (4, 3), turn + [codec],
           lambda a: encode(np.ascontiguousarray(a.T)), fill=True, fill_number=True,
           skip=((1, 1),))
    array3(path, "sharded", truth, (4, 6), [sharding((2, 3), [codec] + gz)],
           lambda a: shard(a, (2, 3), lambda b: gzip.compress(encode(b)), False), fill=False)


def shard(chunk, inner, encode, first, empty=()):
    """A shard: inner chunks one after another, and the index."""
    grid = tuple(s // i for s, i in zip(chunk.shape, inner))
    body, index = b"", []
    at0 = 16 * int(np.prod(grid, dtype=int)) + 4 if first else 0
    for at in np.ndindex(*grid):
        part = np.ascontiguousarray(
            chunk[tuple(slice(k * i, (k + 1) * i) for k, i in zip(at, inner))])
        if at in empty:
            index += [2**64 - 1, 2**64 - 1]
            continue
        data = encode(part)
        index += [at0 + len(body), len(data)]
        body += data
    table = with_crc(struct.pack(f"<{len(index)}Q", *index))
    return table + body if first else body + table


def sharding(inner, codecs, first=False):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": list(inner), "codecs": codecs, "index_codecs": LITTLE + [
            {"name": "crc32c"}], "index_location": "start" if first else "end"}}


@tree(clients=("h5py", "h5tools", "nctools"))
def v3_shards(path):
    """Shards: index at either end, chunks and shards never written, compressed, nested,
    transposed inside and outside, codecs behind the shard."""
    group3(path)
    v = ramp((10, 9), "i4")
    gz = LITTLE + [{"name": "gzip", "configuration": {"level": 1}}]
    more = {"dims": ["y", "x"], "fill": -1, "fill_number": -1}

    def packed(a):
        return gzip.compress(a.tobytes())
    filled = v.copy()
    filled[0:2, 3:6] = -1
    for first in (False, True):
        array3(path, f"plain{int(first)}", filled, (4, 6), [sharding((2, 3), LITTLE, first)],
               lambda a, f=first: shard(a, (2, 3), raw, f), **more)
        array3(path, f"gzip{int(first)}", v, (4, 6), [sharding((2, 3), gz, first)],
               lambda a, f=first: shard(a, (2, 3), packed, f), **more)
    sparse = v.copy()
    for y in range(0, 10, 4):
        for x in range(0, 9, 6):
            sparse[y:y + 2, x + 3:x + 6] = -1
    sparse[4:8, 0:6] = -1
    array3(path, "sparse", sparse, (4, 6), [sharding((2, 3), LITTLE)],
           lambda a: shard(a, (2, 3), raw, False, {(0, 1)}), skip=((1, 0),), **more)
    array3(path, "nested", v, (8, 6), [sharding((4, 6), [sharding((2, 3), gz)])],
           lambda a: shard(a, (4, 6), lambda b: shard(b, (2, 3), packed, False), False), **more)
    turn = [{"name": "transpose", "configuration": {"order": [1, 0]}}]
    array3(path, "inside", v, (4, 6), [sharding((2, 3), turn + LITTLE)],
           lambda a: shard(a, (2, 3), lambda b: np.ascontiguousarray(b.T).tobytes(), False),
           **more)
    array3(path, "outside", v, (4, 6), turn + [sharding((3, 2), LITTLE)],
           lambda a: shard(np.ascontiguousarray(a.T), (3, 2), raw, False), **more)
    array3(path, "behind", v, (4, 6), [sharding((2, 3), LITTLE), {
        "name": "gzip", "configuration": {"level": 1}}],
        lambda a: gzip.compress(shard(a, (2, 3), raw, False)), **more)


@tree(clients=("h5py", "h5tools", "nctools"))
def v3_consolidated(path):
    """Documents inline in the root's."""
    group3(path)
    v = ramp((5,), "f4")
    array3(path, "g/v", v, (2,), LITTLE, raw, dims=["n"])
    group3(path, key="g")
    docs = {"g": {"zarr_format": 3, "node_type": "group", "attributes": {}},
            "g/v": meta3(v, (2,), LITTLE, dims=["n"])}
    group3(path, consolidated_metadata={"kind": "inline", "must_understand": False,
                                        "metadata": docs})


@tree(clients=("h5py", "h5tools", "nctools"))
def v3_times(path):
    """Dates and spans as zarr-python 3 writes them."""
    group3(path)
    for name, unit in (("s", "s"), ("ns", "ns"), ("D", "D")):
        v = np.array([0, 86400, 3, -2**63], "<i8").view(f"<M8[{unit}]")
        array3(path, "d" + name, v, (3,), LITTLE, raw, fill=-2**63, fill_number=np.datetime64(
            "NaT"), data_type={"name": "numpy.datetime64", "configuration": {
                "unit": unit, "scale_factor": 1}})
