# SPDX-License-Identifier: BSD-3-Clause
"""A small reader of Parquet, written from its specification alone, for references and tables: flat
columns, pages of version 1, PLAIN and dictionaries, zstd. Debian has no reader of it.

    rows(path) -> {"path": [text or None ...], "offset": [...], "size": [...], "raw": [...]}"""
import struct

from numcodecs import zstd


class Thrift:
    """The compact protocol: structs become {field: value}."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def varint(self):
        value = shift = 0
        while True:
            c = self.data[self.at]
            self.at += 1
            value |= (c & 127) << shift
            shift += 7
            if c < 128:
                return value

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            v = self.varint()
            return v >> 1 ^ -(v & 1)
        if kind == 8:
            n = self.varint()
            self.at += n
            return self.data[self.at - n:self.at]
        if kind == 9:
            head = self.data[self.at]
            self.at += 1
            n = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15) for _ in range(n)]
        assert kind == 12, f"thrift type {kind}"
        return self.struct()

    def struct(self):
        fields, last = {}, 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head == 0:
                return fields
            last = last + (head >> 4) if head >> 4 else self.value(4)
            fields[last] = self.value(head & 15)


def hybrid(data, width, n):
    """Values of the encoding RLE."""
    t, out = Thrift(data), []
    while len(out) < n:
        head = t.varint()
        if head & 1:
            size = (head >> 1) * width
            bits = int.from_bytes(data[t.at:t.at + size], "little")
            out += [bits >> width * i & (1 << width) - 1 for i in range((head >> 1) * 8)]
            t.at += size
        else:
            size = (width + 7) // 8
            out += [int.from_bytes(data[t.at:t.at + size], "little")] * (head >> 1)
            t.at += size
    return out[:n]


def plain(data, kind, n):
    if kind == 2:
        return list(struct.unpack_from(f"<{n}q", data))
    out, at = [], 0
    for _ in range(n):
        size, = struct.unpack_from("<I", data, at)
        out.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return out


def column(data, meta, optional):
    start = meta.get(11) or meta[9]
    t, words, out = Thrift(data, start), None, []
    assert meta[4] == 6, "zstd"
    while len(out) < meta[5]:
        head = t.struct()
        body = zstd.decompress(data[t.at:t.at + head[3]])
        assert len(body) == head[2]
        t.at += head[3]
        if head[1] == 2:
            words = plain(body, meta[1], head[7][1])
            continue
        n = head[5][1]
        there = [1] * n
        if optional:
            size, = struct.unpack_from("<I", body)
            there, body = hybrid(body[4:4 + size], 1, n), body[4 + size:]
        if head[5][2] == 8:
            values = [words[i] for i in hybrid(body[1:], body[0], sum(there))]
        else:
            assert head[5][2] == 0, "plain"
            values = plain(body, meta[1], sum(there))
        values = iter(values)
        out += [next(values) if x else None for x in there]
    assert t.at == start + meta[7], "total_compressed_size"
    return out


def rows(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:4] == data[-4:] == b"PAR1"
    n, = struct.unpack_from("<I", data, len(data) - 8)
    footer = Thrift(data, len(data) - 8 - n).struct()
    optional = {e[4].decode(): e[3] == 1 for e in footer[2][1:]}
    out = {name: [] for name in optional}
    for group in footer[4]:
        for c in group[1]:
            name = c[3][3][0].decode()
            out[name] += column(data, c[3], optional[name])
    assert all(len(v) == footer[3] for v in out.values())
    for e in footer[2][1:]:
        if e.get(6) == 0:  # UTF8
            name = e[4].decode()
            out[name] = [v if v is None else v.decode() for v in out[name]]
    return out
