# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees made at random, of both versions: types, shapes, chunks, codecs, orders, fill values,
chunks never written, groups, attributes, names. The same generator state gives the same tree."""
import gzip
import random

import numcodecs
import numpy as np
import zarr

from gen.trees import archive, put
from gen.z_three import LITTLE, NAMES, array3, group3, shard, sharding, with_crc

PLAIN = ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8",
         ">u8", "<f4", ">f4", "<f8", ">f8"]
ODD = ["?", "?", "<f2", ">f2", "<c8", ">c8", "<c16", ">c16", "S1", "S3", "S5", "<U1", "<U4", ">U2",
       "<M8[s]", "<M8[D]", ">M8[ns]", "<m8[h]", "<M8[W]", "V3",
       [("a", "<i4"), ("b", ">f8")], [("x", "i1"), ("y", "<f4", (2,)), ("z", "S2")],
       [("p", [("q", "<u2"), ("r", "?")]), ("s", "<i8")]]
FREE = ["utf8", "json", "bytes", "array"]
WORDS = ["", "a", "Zarr", "gr\u00fcn", "\u65e5\u672c", "two words", "\U0001f600", "x" * 40,
         "line\nline", "tab\t"]
NAMES_USED = ["temp", "clat", "v1", "a b", "gr\u00fcn", "x-y", "1st", "50%", "%41", "_under", "q+r",
              "a.b", "@at", "-minus", "\u65e5\u672c", "end ", "_nc4_non_coord_v", "_%41", "(p)"]
ATTRS = [1, -5, 3000000000, -3000000000, 2**63, 2.5, -0.0, 1e300, float("nan"), float("inf"),
         "text",
         "", "gr\u00fcn", True, False, None, [1, 2, 3], [1, 2.5], [1.5, float("nan")], [-1, 2**40],
         ["a", "bc"], ["only"], ["", "x"], [[1, 2], [3, 4]], {"a": {"b": [1, None]}},
         [1, "x", None], "17", "[1,2]", "two\nlines", [2**31, -1]]


def values(rng, shape, dtype):
    """Elements of a numpy type; often small numbers, sometimes any bits."""
    n = int(np.prod(shape, dtype=int))
    if dtype.kind in "SU":
        size = dtype.itemsize if dtype.kind == "S" else dtype.itemsize // 4
        words = [w.encode("ascii", "ignore")[:size] if dtype.kind == "S" else w[:size]
                 for w in WORDS]
        return np.array([rng.choice(words) for _ in range(n)], dtype).reshape(shape)
    raw = np.frombuffer(rng.randbytes(max(1, n) * dtype.itemsize), "u1").copy()
    if rng.random() < .7:
        raw &= 3
    if dtype.names:
        return structured(rng, shape, dtype)
    if dtype.kind == "b":
        raw &= 1
    v = raw[:n * dtype.itemsize].view(dtype).reshape(shape) if n else np.zeros(shape, dtype)
    if dtype.kind in "fc" and rng.random() < .7:
        v = (raw[:n].astype("f4") / 8).astype(dtype).reshape(shape)
    return v


def structured(rng, shape, dtype):
    out = np.zeros(shape, dtype)
    for name in dtype.names:
        field = dtype[name]
        out[name] = values(rng, tuple(shape) + field.shape, field.base)
    return out


def compressor(rng):
    return rng.choice([
        None, None, numcodecs.Zlib(rng.choice([0, 1, 9])), numcodecs.Zlib(4), numcodecs.Zlib(1),
        numcodecs.GZip(1),
        numcodecs.BZ2(1), numcodecs.Zstd(3), numcodecs.LZ4(), numcodecs.LZMA(),
        numcodecs.Blosc(rng.choice(["lz4", "lz4hc", "blosclz", "zlib", "zstd"]),
                        rng.choice([0, 1, 5]), rng.choice([-1, 0, 1, 2])), numcodecs.Blosc()])


def filters(rng, dtype):
    """A chain that undoes itself exactly."""
    out = []
    if dtype.kind in "iu" and rng.random() < .15:
        out.append(numcodecs.Delta(dtype.str))
    if dtype.kind == "b" and rng.random() < .3:
        return [numcodecs.PackBits()]
    if rng.random() < .4 and dtype.kind in "iufcmMVS":
        n = dtype.itemsize
        out.append(numcodecs.Shuffle(rng.choice([n, n, n, n // 2 if n % 2 == 0 else 1, 1])))
    if rng.random() < .15:
        out.append(rng.choice([numcodecs.CRC32(), numcodecs.Adler32(), numcodecs.Zlib(1)]))
    return out or None


def fill_of(rng, dtype):
    pick = rng.random()
    if pick < .35 or dtype.kind == "V":
        return None
    if pick < .6 or dtype.names:
        return "" if dtype.kind == "U" else b"" if dtype.kind == "S" else 0
    if dtype.kind in "mM":
        return np.array(-2**63, "i8").view(dtype.newbyteorder("="))[()]
    if dtype.kind == "S":
        return b"abcdefg"[:dtype.itemsize]
    if dtype.kind == "U":
        return "\u00fcbc"[:dtype.itemsize // 4]
    if dtype.kind in "fc" and rng.random() < .5:
        return rng.choice([np.nan, np.inf, -1.5])
    return np.array(rng.choice([1, 7, 100, 0]), dtype)[()]


class Maker:
    """One tree. dims: name and length of the dimensions that its arrays share."""

    def __init__(self, path, rng):
        self.path = path
        self.rng = rng
        sizes = [0, 1, 2, 3, 5, 7, 16, 33]
        self.dims = {n: rng.choice(sizes) for n in ("x", "y", "z", "time", "lat", "lev")}
        self.named = rng.random() < .75
        self.strange = rng.random() < .4

    def shape(self):
        """(lengths, chunk lengths, names of dimensions)"""
        rank = self.rng.choice([0, 1, 1, 2, 2, 3, 4])
        names = [self.rng.choice(list(self.dims)) for _ in range(rank)]
        shape = tuple(self.dims[n] for n in names)
        if rank > 2:
            short = [n for n in self.dims if self.dims[n] < 10]
            names = [self.rng.choice(short or ["x"]) for _ in range(rank)]
            shape = tuple(self.dims[n] for n in names)
        if self.named and len(set(names)) < rank and self.rng.random() < .8:
            return self.shape()
        chunks = tuple(self.rng.choice([1, 2, 3, 4, max(1, s), s + 3]) for s in shape)
        return shape, chunks, names

    def attrs(self):
        pick = self.rng.choice([0, 0, 1, 3])
        out = {f"a{i}": self.rng.choice(ATTRS) for i in range(pick)}
        if self.strange and pick:
            out[self.rng.choice(NAMES_USED)] = 1
        return out

    def name(self, i):
        if self.strange and self.rng.random() < .3:
            return self.rng.choice(NAMES_USED)
        return f"v{i}"

    def dtype(self):
        return np.dtype(self.rng.choice(PLAIN if self.rng.random() < .6 else ODD))

    def fill_in(self, a, v):
        """All of an array, a part of it, or nothing."""
        pick = self.rng.random()
        if pick < .6 or not a.shape or a.fill_value is None:
            a[...] = v
        elif pick < .9:
            part = tuple(slice(*sorted((self.rng.randint(0, s), self.rng.randint(0, s))))
                         for s in a.shape)
            if all(p.start < p.stop for p in part):
                a[part] = v[part]

    # ---- version 2 ----

    def free(self, g, name, shape, chunks):
        """Elements without a fixed size."""
        kind = self.rng.choice(FREE if shape else ["utf8"])
        codec = {"utf8": numcodecs.VLenUTF8(), "json": numcodecs.JSON(),
                 "bytes": numcodecs.VLenBytes(), "array": numcodecs.VLenArray("<i4")}[kind]
        fill = self.rng.choice(["", "-"]) if kind == "utf8" else None
        a = g.create_dataset(name, shape=shape, chunks=chunks, dtype=object, object_codec=codec,
                             fill_value=fill, compressor=compressor(self.rng))
        v = np.empty(shape, object)
        for at in np.ndindex(*shape):
            word = self.rng.choice(WORDS)
            v[at] = (np.arange(self.rng.randint(0, 4), dtype="i4") if kind == "array" else
                     word.encode() if kind == "bytes" else word)
        self.fill_in(a, v if shape else v[()])
        return a

    def array(self, g, i):
        name = self.name(i)
        if name in g:
            return
        shape, chunks, names = self.shape()
        if self.rng.random() < .08:
            a = self.free(g, name, shape, chunks)
        else:
            dtype = self.dtype()
            a = g.create_dataset(name, shape=shape, chunks=chunks, dtype=dtype,
                                 compressor=compressor(self.rng), filters=filters(self.rng, dtype),
                                 fill_value=fill_of(self.rng, dtype),
                                 order=self.rng.choice("CCF"),
                                 dimension_separator=self.rng.choice("../"))
            self.fill_in(a, values(self.rng, shape, dtype))
        more = self.attrs()
        if self.named:
            more["_ARRAY_DIMENSIONS"] = names
        a.attrs.update(more)

    def two(self):
        g = zarr.open_group(self.path, mode="w")
        g.attrs.update(self.attrs())
        groups = [g]
        for i in range(self.rng.choice([0, 0, 1, 3])):
            parent = self.rng.choice(groups)
            name = self.rng.choice(NAMES_USED) if self.strange else f"g{i}"
            if name not in parent:
                groups.append(parent.create_group(name))
                groups[-1].attrs.update(self.attrs())
        for i in range(10):
            self.array(self.rng.choice(groups), i)
        if self.rng.random() < .3:
            zarr.consolidate_metadata(self.path)

    # ---- version 3 ----

    def after(self, dtype):
        """(documents, encoder of bytes) of what follows the "bytes" codec."""
        level = {"level": 1}
        typesize = dtype.itemsize
        return self.rng.choice([
            ([], bytes), ([], bytes),
            ([{"name": "gzip", "configuration": level}], lambda b: gzip.compress(b, mtime=0)),
            ([{"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
             lambda b: bytes(numcodecs.Zstd(1).encode(b))),
            ([{"name": "blosc", "configuration": {
                "cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "typesize": typesize,
                "blocksize": 0}}],
             lambda b: bytes(numcodecs.Blosc("zstd", 3, 2).encode(np.frombuffer(b, "u1")))),
            ([{"name": "crc32c"}], with_crc),
            ([{"name": "numcodecs.zlib", "configuration": level}],
             lambda b: bytes(numcodecs.Zlib(1).encode(b)))])

    def codecs(self, chunks, dtype):
        """(documents, encoder of chunks, chunk lengths)"""
        docs, pack = self.after(dtype)
        big = dtype.byteorder == ">"
        middle = [{"name": "bytes", "configuration": {"endian": "big"}}] if big else LITTLE
        before, order = [], None
        if chunks and self.rng.random() < .3:
            order = self.rng.sample(range(len(chunks)), len(chunks))
            before = [{"name": "transpose", "configuration": {"order": order}}]

        def turned(a):
            return np.ascontiguousarray(a.transpose(order) if order else a)
        if chunks and self.rng.random() < .3 and dtype.kind in "iuf":
            inner = chunks
            chunks = tuple(c * self.rng.choice([1, 2, 3]) for c in inner)
            first = self.rng.random() < .3
            doc = sharding(inner, before + middle + docs, first)
            return [doc], lambda a: shard(a, inner, lambda b: pack(turned(b).tobytes()),
                                          first), chunks
        return before + middle + docs, lambda a: pack(turned(a).tobytes()), chunks

    def array3(self, key):
        shape, chunks, names = self.shape()
        dtype = np.dtype(self.rng.choice(PLAIN + ["?", "<f2", "<c8", ">c16"]))
        docs, encode, chunks = self.codecs(chunks, dtype)
        fill = self.rng.choice([0, 1, 7])
        v = values(self.rng, shape, dtype)
        grid = [-(-s // c) for s, c in zip(shape, chunks)]
        skip = {at for at in np.ndindex(*grid) if self.rng.random() < .2}
        said = bool(fill) if dtype.kind == "b" else [fill, 0] if dtype.kind == "c" else fill
        array3(self.path, key, v, chunks, docs, encode, skip=skip, fill=said, fill_number=fill,
               dims=names if self.named else None, attrs=self.attrs(),
               encoding=self.rng.choice(["default", "v2"]), sep=self.rng.choice("/."),
               data_type=NAMES["?" if dtype.kind == "b" else dtype.str[1:]])

    def three(self):
        group3(self.path, self.attrs())
        groups = [""]
        for i in range(self.rng.choice([0, 1, 2])):
            key = self.rng.choice(groups) + (self.rng.choice(NAMES_USED) if self.strange
                                             else f"g{i}") + "/"
            if key not in groups:
                groups.append(key)
                put(self.path, key + "zarr.json", {"zarr_format": 3, "node_type": "group",
                                                   "attributes": self.attrs()})
        used = set(groups)
        for i in range(8):
            key = self.rng.choice(groups) + self.name(i)
            if key + "/" not in used:
                used.add(key + "/")
                self.array3(key)


def write(path, seed):
    """A tree at path + ".zarr", or an archive at path + ".zip". Returns which."""
    rng = random.Random(seed)
    m = Maker(path + ".zarr", rng)
    if rng.random() < .35:
        m.three()
    else:
        m.two()
    if rng.random() < .85:
        return path + ".zarr"
    archive(path + ".zarr", path + ".zip")
    return path + ".zip"
