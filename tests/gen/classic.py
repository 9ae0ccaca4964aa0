# SPDX-License-Identifier: BSD-3-Clause
"""Classic netCDF files, made byte by byte: what netCDF-C does not write, and damage. The grammar
is that of "The NetCDF Classic Format Specification"."""
import struct

import numpy as np

BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE, UBYTE, USHORT, UINT, INT64, UINT64 = range(1, 12)
NUMPY = {BYTE: ">i1", CHAR: "S1", SHORT: ">i2", INT: ">i4", FLOAT: ">f4", DOUBLE: ">f8",
         UBYTE: ">u1", USHORT: ">u2", UINT: ">u4", INT64: ">i8", UINT64: ">u8"}
DIMS, VARS, ATTRS = 10, 11, 12
STREAMING = "streaming"


def pad(raw, with_=b"\0"):
    return raw + with_ * (-len(raw) % 4)


class Var:
    """data: as it is stored; None: nothing is written (a sparse file). vsize, begin: instead of
    the right ones."""

    def __init__(self, name, dims, kind, data, attrs=(), vsize=None, begin=None):
        self.name, self.dims, self.kind, self.attrs = name, dims, kind, attrs
        self.data = None if data is None else np.asarray(data, NUMPY[kind])
        self.vsize, self.begin = vsize, begin


class Classic:
    """dims: [(name, length)], 0 the record dimension; attrs: [(name, kind, values or bytes)]."""

    def __init__(self, version=1, dims=(), attrs=(), variables=(), records=0, numrecs=None,
                 empty_tags=False, junk=b"\0", cut=0):
        self.version, self.dims, self.attrs = version, list(dims), list(attrs)
        self.variables, self.records = list(variables), records
        self.numrecs = records if numrecs is None else numrecs
        self.empty_tags = empty_tags  # empty lists have their tag all the same
        self.junk = junk              # what padding consists of
        self.cut = cut                # bytes that are missing at the end

    def number(self, n):
        return struct.pack(">Q" if self.version == 5 else ">I", n)

    def name(self, text):
        raw = text if isinstance(text, bytes) else text.encode()
        return self.number(len(raw)) + pad(raw, self.junk)

    def list(self, tag, parts):
        if not parts and not self.empty_tags:
            return struct.pack(">I", 0) + self.number(0)
        return struct.pack(">I", tag) + self.number(len(parts)) + b"".join(parts)

    def attr(self, name, kind, values):
        if isinstance(values, bytes):
            raw, n = values, len(values)
        else:
            values = np.atleast_1d(np.asarray(values, NUMPY[kind]))
            raw, n = values.tobytes(), values.size
        return (self.name(name) + struct.pack(">I", kind) + self.number(n)
                + pad(raw, self.junk))

    def is_record(self, v):
        return bool(v.dims) and self.dims[v.dims[0]][1] == 0

    def slab(self, v):
        n = np.dtype(NUMPY[v.kind]).itemsize
        for d in v.dims[self.is_record(v):]:
            n *= self.dims[d][1]
        return n

    def var(self, v):
        vsize = self.slab(v) + -self.slab(v) % 4 if v.vsize is None else v.vsize
        return (self.name(v.name) + self.number(len(v.dims))
                + b"".join(self.number(d) for d in v.dims)
                + self.list(ATTRS, [self.attr(*a) for a in v.attrs])
                + struct.pack(">I", v.kind)
                + self.number(vsize if self.version == 5 else min(vsize, 0xffffffff))
                + struct.pack(">I" if self.version == 1 else ">Q", v.begin))

    def header(self):
        n = self.numrecs
        if n == STREAMING:
            n = 2**64 - 1 if self.version == 5 else 2**32 - 1
        return (b"CDF" + bytes([self.version]) + self.number(n)
                + self.list(DIMS, [self.name(n) + self.number(k) for n, k in self.dims])
                + self.list(ATTRS, [self.attr(*a) for a in self.attrs])
                + self.list(VARS, [self.var(v) for v in self.variables]))

    def layout(self):
        """Give every variable its begin where it has none; (end, bytes of a record)."""
        given = [v.begin for v in self.variables]
        for v in self.variables:
            v.begin = v.begin or 0
        at = len(self.header())
        at += -at % 4
        records = [v for v in self.variables if self.is_record(v)]
        size = sum(self.slab(v) + -self.slab(v) % 4 for v in records)
        if len(records) == 1:
            size = self.slab(records[0])
        for fixed in (True, False):
            for v, begin in zip(self.variables, given):
                if self.is_record(v) != fixed:
                    v.begin = at if begin is None else begin
                    at = v.begin + self.slab(v) + -self.slab(v) % 4
        first = min([v.begin for v in records], default=0)
        return (first + self.records * size if records else at), size

    def write(self, path):
        end, size = self.layout()
        with open(path, "wb") as f:
            f.truncate(max(end - self.cut, 0))
            f.write(self.header())
            for v in self.variables:
                if v.data is None:
                    continue
                parts = v.data if self.is_record(v) else [v.data]
                for i, part in enumerate(parts):
                    f.seek(v.begin + i * size)
                    f.write(np.asarray(part).tobytes())
            f.truncate(max(end - self.cut, 0))
        return path


def ramp(kind, shape):
    """Values that differ, also as characters."""
    n = int(np.prod(shape, dtype=int))
    if kind == CHAR:
        return (np.arange(n) % 95 + 32).astype("u1").view("S1").reshape(shape)
    return (np.arange(n) * 37 % 251 - (0 if kind in (UBYTE, USHORT, UINT, UINT64) else 125)
            ).astype(NUMPY[kind]).reshape(shape)


def mixed(version, records=50, **more):
    """Fixed variables, interleaved records of odd sizes, characters, a scalar."""
    kinds = [CHAR, SHORT, INT, FLOAT, DOUBLE]
    if version == 5:
        kinds += [UBYTE, USHORT, UINT, INT64, UINT64]
    kinds += [BYTE]  # the last: one byte of padding at the end of the file
    dims = [("t", 0), ("x", 3), ("y", 5)]
    variables = [Var("scalar", (), INT, 42)]
    for k in kinds:
        attrs = [("number", k, ramp(k, 3) if k != CHAR else b"text"), ("one", k, ramp(k, 1)
                 if k != CHAR else b"x")]
        variables.append(Var(f"fixed{k}", (1, 2), k, ramp(k, (3, 5)), attrs))
        variables.append(Var(f"record{k}", (0, 1), k, ramp(k, (records, 3))))
    return Classic(version, dims, [("title", CHAR, b"mixed")], variables, records, **more)


def single(version, kind, records=1001, **more):
    """One record variable, whose slabs of three are not padded."""
    return Classic(version, [("t", 0), ("x", 3)], [],
                   [Var("fixed", (1,), DOUBLE, ramp(DOUBLE, 3)),
                    Var("v", (0, 1), kind, ramp(kind, (records, 3)))], records, **more)


def gaps(records=300):
    """Records of two bytes between records of 20 KB."""
    wide = np.arange(records * 5000).reshape(records, 5000)
    return Classic(2, [("t", 0), ("x", 5000)], [],
                   [Var("small", (0,), SHORT, ramp(SHORT, records)),
                    Var("wide", (0, 1), INT, wide),
                    Var("time", (0,), DOUBLE, np.arange(records))], records)


def slabs(records=3):
    """Records that are worth a chunk each, and such that are cut."""
    def data(*shape):
        return np.arange(int(np.prod(shape))).reshape(shape)
    return Classic(1, [("t", 0), ("y", 130), ("x", 140)], [],
                   [Var("a", (0, 1, 2), INT, data(records, 130, 140)),
                    Var("b", (0, 1, 2), DOUBLE, data(records, 130, 140)),
                    Var("time", (0,), DOUBLE, np.arange(records))], records)


def sparse_fixed(version):
    """Offsets beyond 2 and 4 GiB (but not of a begin, in CDF-1)."""
    n = (3 << 30) // 4
    variables = [Var("ends", (1,), INT, [1, 2, 3])]
    if version > 1:
        variables += [Var("late", (1,), INT, [4, 5, 6], begin=(5 << 30) + 4)]
    variables += [Var("huge", (0, 1), FLOAT, None, vsize=(1 << 32) - 1,
                      begin=None if version == 1 else 6 << 30)]
    return Classic(version, [("big", n // 3 * 2), ("x", 3)], [], variables)


def sparse_records(records=4200):
    """Records up to 4 GiB and more, of a variable of 1 MiB and a small one."""
    return Classic(1, [("t", 0), ("x", 1 << 18)], [],
                   [Var("wide", (0, 1), FLOAT, None), Var("time", (0,), DOUBLE, None)], records)


def odd_names():
    """Names and texts that are not ASCII, or not UTF-8, or not a directory's."""
    names = ["größe", "a b", b"latin\xe9", "with/slash", ".zarray", "back\\slash", "x" * 250, "é",
             ".", b"cut\0off"]
    attrs = [("kommentar", CHAR, "naïve".encode()), ("latin", CHAR, b"na\xefve"),
             (b"n\xe4me", INT, 3), ("nul", CHAR, b"ends\0\0"), ("empty", CHAR, b""),
             ("none", DOUBLE, [])]
    return Classic(1, [("breite", 2), (b"h\xf6he", 3)], attrs,
                   [Var(n, (0, 1), INT, ramp(INT, (2, 3)), attrs) for n in names])
