# SPDX-License-Identifier: BSD-3-Clause
"""Chains of Zarr's codecs in many orders, by all names that a document may give them: both
versions, several spellings, defaults. And: no codec is without a test."""
import itertools
import random
import struct
import zlib

import numpy as np

from cases.zarr_view import test_codecs
from cases.zarr_view import test_codecs_h5
from cases.zarr_view.test_codecs import decoded, encoded, equal, fails, numcodecs_codec
from lib import codec_data as data
from lib.codecs import CodecTool
from lib.context import Skip

LIMIT = 60.0

COMPRESSORS = [
    None, {"id": "zlib", "level": 1}, {"id": "gzip", "level": 1}, {"id": "zstd", "level": 1},
    {"id": "lz4", "acceleration": 1}, {"id": "bz2", "level": 1},
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    {"id": "lzma", "format": 1, "check": -1, "preset": 0, "filters": None}]


def of_elements(dtype):
    """Filters that suit a type, as they may stand behind each other."""
    t = np.dtype(dtype)
    found = [{"id": "shuffle", "elementsize": t.itemsize}, {"id": "crc32"}, {"id": "adler32"},
             {"id": "zlib", "level": 1}, {"id": "lz4", "acceleration": 1}]
    if t.kind in "iu":
        found.append({"id": "delta", "dtype": t.str, "astype": t.str})
    return found


def chains_of(dtype, n, seed):
    """n chains of one to three filters and a compressor. Differences come first: what follows need
    not be a whole number of elements."""
    rng = random.Random(seed)
    for _ in range(n):
        filters = rng.sample(of_elements(dtype), rng.randrange(1, 4))
        filters.sort(key=lambda f: f["id"] != "delta")
        if filters[0]["id"] != "shuffle":
            # a shuffle of anything but elements: numcodecs wants whole ones
            filters = [dict(f, elementsize=1) if f["id"] == "shuffle" else f for f in filters]
        yield filters, rng.choice(COMPRESSORS)


def lacking(tool, configs, what):
    have = {c["zarr2"]: c["can"] for c in tool.codecs()}
    return {c["id"] for c in configs if what not in have.get(c["id"], ())}


def all_encode(codecs, a):
    """As zarr-python writes a chunk."""
    for c in codecs:
        a = np.frombuffer(encoded(c, a), "u1") if a.size else a
    return a.tobytes()


def all_decode(codecs, stored):
    for c in reversed(codecs):
        stored = decoded(c, stored)
    return stored


def test_chains2(t):
    """Zarr v2: filters and a compressor."""
    missing, n = set(), 0
    with CodecTool(t) as tool:
        for dtype in ("|u1", "<i2", ">i4", "<f8", "|S5", "|b1"):
            for filters, compressor in chains_of(dtype, 60, dtype):
                configs = filters + ([compressor] if compressor else [])
                missing |= lacking(tool, configs, "encode")
                codecs = [numcodecs_codec(c) for c in configs]
                tool.zarr2(dtype, filters, compressor)
                for label, a in data.arrays((dtype,), (1, 17, 1000), ("ramp", "noise")):
                    chain2(tool, f"{configs} {label}", codecs, a,
                           not lacking(tool, configs, "encode"))
                    n += 1
    print(n, "arrays")
    if missing:
        raise Skip(f"{sorted(missing)} cannot be encoded")


def chain2(tool, label, codecs, a, can_encode):
    stored = all_encode(codecs, a)
    equal(label, "decoded", tool.decode(stored, a.nbytes), a.tobytes())
    equal(label, "decoded to an unknown length", tool.decode_any(stored, a.nbytes), a.tobytes())
    if can_encode:
        mine = tool.encode(a.tobytes())
        equal(label, "numcodecs decodes ours", all_decode(codecs, mine), a.tobytes())
        equal(label, "we decode ours", tool.decode(mine, a.nbytes), a.tobytes())


# ---- Zarr v3 ----

def crc32c(data):
    """Castagnoli's checksum, bit by bit: RFC 3720, B.4."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Crc32c:
    """Zarr v3's: four bytes behind."""

    def encode(self, a):
        raw = np.ascontiguousarray(a).tobytes()
        return raw + struct.pack("<I", crc32c(raw))

    def decode(self, stored):
        assert stored[-4:] == struct.pack("<I", crc32c(stored[:-4])), "the checksum is wrong"
        return stored[:-4]


def v3(name, **config):
    return {"name": name, "configuration": config} if config else {"name": name}


LITTLE = v3("bytes", endian="little")

# codecs behind bytes -> what numcodecs has for them
THREE = [
    ([v3("gzip", level=5)], [{"id": "gzip", "level": 5}]),
    ([v3("zstd", level=1, checksum=False)], [{"id": "zstd", "level": 1}]),
    ([v3("zstd", level=1, checksum=True)], [{"id": "zstd", "level": 1}]),
    ([v3("crc32c")], ["crc32c"]),
    ([v3("gzip", level=1), v3("crc32c")], [{"id": "gzip", "level": 1}, "crc32c"]),
    ([v3("crc32c"), v3("zstd", level=3)], ["crc32c", {"id": "zstd", "level": 3}]),
    ([v3("numcodecs.zlib", level=3)], [{"id": "zlib", "level": 3}]),
    ([v3("numcodecs.bz2", level=1)], [{"id": "bz2", "level": 1}]),
    ([v3("numcodecs.lz4", acceleration=1)], [{"id": "lz4", "acceleration": 1}]),
    ([v3("numcodecs.lzma", preset=0)], [{"id": "lzma", "preset": 0}]),
    ([v3("numcodecs.zstd", level=2)], [{"id": "zstd", "level": 2}]),
    ([v3("numcodecs.crc32")], [{"id": "crc32"}]),
    ([v3("numcodecs.adler32"), v3("gzip", level=0)], [{"id": "adler32"},
                                                       {"id": "gzip", "level": 0}]),
    ([v3("numcodecs.shuffle", elementsize=4), v3("numcodecs.zlib", level=9)],
     [{"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 9}]),
] + [([v3("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=4, blocksize=0)],
      [{"id": "blosc", "cname": cname, "clevel": 5, "shuffle": number}])
     for cname in ("lz4", "zstd", "blosclz")
     for number, shuffle in enumerate(("noshuffle", "shuffle", "bitshuffle"))]

TYPES3 = {"int32": "<i4", "uint8": "|u1", "float64": "<f8", "bool": "|b1"}


def test_chains3(t):
    """Zarr v3: codecs behind `bytes`."""
    with CodecTool(t) as tool:
        for codecs, configs in THREE:
            theirs = [Crc32c() if c == "crc32c" else numcodecs_codec(c) for c in configs]
            for data_type, dtype in TYPES3.items():
                if configs[0] != "crc32c" and configs[0].get("elementsize", 1) > np.dtype(
                        dtype).itemsize:
                    continue
                tool.zarr3(data_type, [LITTLE] + codecs)
                for label, a in data.arrays((dtype,), (1, 17, 200), ("ramp", "noise")):
                    chain2(tool, f"{codecs} {label}", theirs, a, True)


def test_filters3(t):
    """Zarr v3: numcodecs' filters stand before `bytes`."""
    missing = set()
    with CodecTool(t) as tool:
        for config in ({"id": "delta", "dtype": "<i4"}, {"id": "bitround", "keepbits": 23},
                       {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i4"},
                       {"id": "fixedscaleoffset", "dtype": "<f4", "astype": "<i2", "scale": 2,
                        "offset": 1}):
            missing |= lacking(tool, [config], "encode")
            name = "numcodecs." + config["id"]
            dtype = "<i4" if config["id"] in ("delta", "astype") else "<f4"
            given = {k: v for k, v in config.items() if k != "id"}
            tool.zarr3("int32" if dtype == "<i4" else "float32",
                       [v3(name, **given), LITTLE, v3("gzip", level=1)])
            codecs = [numcodecs_codec(config), numcodecs_codec({"id": "gzip", "level": 1})]
            for label, a in data.arrays((dtype,), (1, 17, 200), ("zeros", "ramp")):
                stored = all_encode(codecs, a)
                label = f"{config} {label}"
                equal(label, "decoded", tool.decode(stored, a.nbytes), a.tobytes())
                if not lacking(tool, [config], "encode"):
                    equal(label, "numcodecs decodes ours",
                          all_decode(codecs, tool.encode(a.tobytes())), a.tobytes())
    if missing:
        raise Skip(f"{sorted(missing)} cannot be encoded")


class PackBits3:
    """Zarr v3's packbits: bits `first` to `last` of each element, lowest first, without gaps."""

    def __init__(self, padding, first, last):
        self.padding, self.first, self.last = padding, first, last

    def encode(self, a):
        little = a.astype(a.dtype.newbyteorder("<"))
        bits = np.unpackbits(little.view("u1").reshape(len(a), -1), axis=1, bitorder="little")
        bits = bits[:, self.first:self.last + 1].ravel()
        unused = bytes([-len(bits) % 8])
        packed = np.packbits(bits, bitorder="little").tobytes()
        return {"none": packed, "first_byte": unused + packed,
                "last_byte": packed + unused}[self.padding]


def test_packbits3(t):
    """By formula: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits"""
    with CodecTool(t) as tool:
        for padding in ("none", "first_byte", "last_byte"):
            for data_type, dtype, first, last in (
                    ("bool", "|b1", 0, 0), ("uint8", "|u1", 0, 7), ("uint8", "|u1", 0, 2),
                    ("uint16", "<u2", 3, 11), ("int32", "<i4", 0, 31)):
                config = {"padding_encoding": padding}
                if data_type != "bool":
                    config.update(first_bit=first, last_bit=last)
                tool.zarr3(data_type, [v3("packbits", **config)])
                codec = PackBits3(padding, first, last)
                for label, a in data.arrays((dtype,), data.FEW + (8, 64), ("ramp", "noise")):
                    if data_type != "bool":  # only what is kept comes back
                        a = a & ((1 << last + 1) - (1 << first)) if last < 31 else a
                        a = a.astype(dtype)
                    label = f"{config} {label}"
                    equal(label, "encoded", tool.encode(a.tobytes()), codec.encode(a))
                    equal(label, "decoded", tool.decode(codec.encode(a), a.nbytes), a.tobytes())


# ---- what documents say ----

def test_configs(t):
    """What a document leaves out is what numcodecs takes; what we write is what numcodecs reads."""
    bare = [{"id": i} for i in ("zlib", "gzip", "bz2", "lzma", "zstd", "lz4", "blosc", "crc32",
                                "adler32", "packbits")]
    full = [row.config(np.dtype("<f8")) for rows in test_codecs.ROWS.values() for row in rows]
    with CodecTool(t) as tool:
        for config in bare + full:
            if not any(c["zarr2"] == config["id"] for c in tool.codecs()):
                continue
            want = numcodecs_codec(config).get_config()
            tool.zarr2("<f8", [config])
            got = tool.configs()[0]
            if want.get("shuffle") == -1:
                want["shuffle"] = 1  # what it means for eight bytes
            want.pop("blocksize", None), got.pop("blocksize", None)
            mine = numcodecs_codec(got).get_config()
            mine.pop("blocksize", None)
            assert mine == want, f"{config}: we say {got}, numcodecs {want}"


SPELLINGS = [
    ({"id": "zlib", "level": "5"}, {"id": "zlib", "level": 5}),
    ({"id": "zlib", "level": 5.0}, {"id": "zlib", "level": 5}),
    ({"id": "zlib", "level": -1}, {"id": "zlib", "level": 6}),
    ({"id": "zlib", "level": 5, "unknown": [1, {}]}, {"id": "zlib", "level": 5}),
    ({"id": "zlib", "level": 99}, {"id": "zlib", "level": 9}),
    ({"id": "shuffle", "elementsize": 0}, {"id": "shuffle", "elementsize": 8}),
    ({"id": "shuffle", "elementsize": "2"}, {"id": "shuffle", "elementsize": 2}),
    ({"id": "blosc", "cname": "lz4", "clevel": "5", "shuffle": "1"},
     {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
    ({"id": "zstd", "level": "3"}, {"id": "zstd", "level": 3}),
]

WRONG = [
    ({"id": "zlib", "level": "five"}, "EBADMSG"), ({"id": "zlib", "level": []}, "EBADMSG"),
    ({"id": "zlib", "level": 1.5}, "EBADMSG"), ({"id": "zlib", "level": {}}, "EBADMSG"),
    ({"id": "shuffle", "elementsize": -1}, "EBADMSG"),
    ({"id": "shuffle", "elementsize": 1 << 33}, "EBADMSG"),
    ({"id": "blosc", "cname": "nothing"}, "EOPNOTSUPP"),
    ({"id": "blosc", "cname": 5}, "EBADMSG"), ({"id": "blosc", "shuffle": 7}, "EBADMSG"),
    ({"id": "delta"}, "EBADMSG"), ({"id": "delta", "dtype": "<q9"}, "EOPNOTSUPP"),
    ({"id": "delta", "dtype": 4}, "EBADMSG"),
    ({"id": "fixedscaleoffset", "dtype": "<f4", "offset": 1}, "EBADMSG"),
    ({"id": "lzma", "format": 3, "filters": []}, "EOPNOTSUPP"),
    ({"id": "nobody-has-this"}, "EOPNOTSUPP"), ({}, "EBADMSG"), ({"id": 5}, "EBADMSG"),
]


def test_spellings(t):
    with CodecTool(t) as tool:
        for given, want in SPELLINGS:
            tool.zarr2("<f8", [given])
            got = tool.configs()
            assert got == [want], f"{given}: {got}, {want} expected"
        for given, code in WRONG:
            fails(str(given), code, tool.zarr2, "<f8", [given])


def test_checksums_elsewhere(t):
    """crc32, adler32 and crc32c in front of the data and behind it, by formula."""
    sums = {"crc32": zlib.crc32, "adler32": zlib.adler32, "crc32c": crc32c}
    with CodecTool(t) as tool:
        for (name, formula), where in itertools.product(sums.items(), ("start", "end")):
            tool.zarr2("<f8", [{"id": name, "location": where}])
            for label, a in data.arrays(("|u1",), (0, 1, 17, 200), ("ramp", "noise")):
                raw = a.tobytes()
                checksum = struct.pack("<I", formula(raw))
                want = checksum + raw if where == "start" else raw + checksum
                equal(f"{name} {where} {label}", "encoded", tool.encode(raw), want)
                equal(f"{name} {where} {label}", "decoded", tool.decode(want, len(raw)), raw)


# Filters whose rows have other names, or that are only tested elsewhere.
ELSEWHERE = {"crc32c", "lz4", "packbits-v3"}


def test_complete(t):
    """Every codec that is built in has a row."""
    rows = set(test_codecs.ROWS) | {name for name, _ in test_codecs_h5.cases()} | ELSEWHERE
    with CodecTool(t) as tool:
        lost = [c for c in tool.codecs() if "plugin" not in c["can"] and c["name"] not in rows
                and c["zarr2"] not in rows]
    assert not lost, f"codecs without a row: {lost}"
