# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of one chunk in memory, through libhdf5: what its filters make of the chunk, and what it
reads from a chunk that somebody else made. For filters that it has no code for, the same from
formulas written down here a second time."""
import bz2
import ctypes
import functools
import struct
import zlib

import h5py
import numpy as np
from h5py import h5d, h5o, h5p, h5pl, h5s, h5t, h5z

from lib.context import Skip

DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET = 1, 2, 3, 4, 5, 6
BZIP2, LZF, BLOSC, LZ4, BITSHUFFLE, ZFP, ZSTD = 307, 32000, 32001, 32004, 32008, 32013, 32015
BITGROOM, GRANULARBR = 32022, 32023

PACKAGES = {BZIP2: "hdf5-filter-plugin", LZ4: "hdf5-filter-plugin",
            BLOSC: "hdf5-filter-plugin-blosc-serial", ZFP: "hdf5-filter-plugin-zfp-serial"}


MANY = 256  # parameters; libhdf5 takes more for a mistake


class Refused(Exception):
    """libhdf5 does not apply a filter to such a dataset."""


def need(*ids):
    """Skip when libhdf5 has no code for a filter here."""
    for i in ids:
        if not available(i):
            raise Skip(f"libhdf5 has no filter {i} here: package {PACKAGES.get(i, '(none)')}")


@functools.lru_cache(None)
def available(i):
    return bool(h5z.filter_avail(i))


@functools.lru_cache(None)
def library():
    """The libhdf5 that h5py has loaded."""
    for line in open("/proc/self/maps"):
        name = line.split()[-1]
        if "libhdf5" in name and "_hl" not in name and ".so" in name:
            return ctypes.CDLL(name)
    raise RuntimeError("libhdf5 is not loaded")


def filters_of(plist):
    """[(id, parameter, ...)]. h5py 3.7 itself gives no more than 16 parameters, and garbage for the
    others."""
    get = library().H5Pget_filter2
    get.argtypes = [ctypes.c_int64, ctypes.c_uint] + [ctypes.c_void_p] * 2 + [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    found = []
    for i in range(plist.get_nfilters()):
        n, values = ctypes.c_size_t(MANY), (ctypes.c_uint * MANY)()
        flags, config = ctypes.c_uint(), ctypes.c_uint()
        code = get(plist.id, i, ctypes.byref(flags), ctypes.byref(n), values, 0, None,
                   ctypes.byref(config))
        assert code >= 0 and n.value <= MANY
        found.append((code, *values[:n.value]))
    return found


def forget_plugins():
    """From here on libhdf5 has its own filters only, and h5py's lzf."""
    while h5pl.size():
        h5pl.remove(0)
    available.cache_clear()


class File:
    """A file that is never written."""

    def __init__(self):
        self.file = h5py.File("chunks", "w", driver="core", backing_store=False)
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        return False

    def dataset(self, dtype, chunk, filters, flag=h5z.FLAG_OPTIONAL, fill=None):
        """A dataset of one chunk; dtype of numpy's, or a type of libhdf5's."""
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk(tuple(chunk))
        for f in filters:
            values = tuple(int(v) for v in f[1:])
            if f[0] == SZIP and len(values) == 2:  # what H5Pset_szip does, which is what is used
                values = ((values[0] | 1 | 128) & ~2, values[1])
            p.set_filter(f[0], flag, values)
        tid = dtype if isinstance(dtype, h5t.TypeID) else h5t.py_create(np.dtype(dtype),
                                                                         logical=True)
        if fill is not None:
            p.set_fill_value(np.array(fill, dtype))
        try:
            return Chunk(self, h5d.create(self.file.id, None, tid,
                                          h5s.create_simple(tuple(chunk)), p))
        except (ValueError, RuntimeError, OSError) as error:
            raise Refused(str(error)) from None


class Chunk:
    def __init__(self, file, dset):
        self.file = file
        self.dset = dset
        self.at = (0,) * len(dset.shape)

    def filters(self):
        """With the parameters that libhdf5 stored."""
        return filters_of(self.dset.get_create_plist())

    def write(self, a):
        """libhdf5 encodes: (filter mask, bytes)."""
        a = np.ascontiguousarray(a)
        self.dset.write(h5s.ALL, h5s.ALL, a, mtype=h5t.py_create(a.dtype, logical=True))
        return self.dset.read_direct_chunk(self.at)

    def put(self, data, mask=0):
        """libhdf5 1.10 remembers a chunk's mask from before it was written: with a mask the
        dataset is opened anew."""
        self.dset.write_direct_chunk(self.at, bytes(data), mask)
        if mask:
            self.file.count += 1
            name = b"d%d" % self.file.count
            h5o.link(self.dset, self.file.file.id, name)
            self.dset = None
            self.dset = h5d.open(self.file.file.id, name)

    def read(self, dtype):
        """libhdf5 decodes."""
        a = np.empty(self.dset.shape, dtype)
        self.dset.read(h5s.ALL, h5s.ALL, a, mtype=h5t.py_create(a.dtype, logical=True))
        return a


# ---- filters by formula ----

def zstd_encode(data, level=3):
    import numcodecs
    return numcodecs.Zstd(level).encode(data)


def zstd_decode(data):
    import numcodecs
    return numcodecs.Zstd().decode(data)


def _lz4_block(data):
    import numcodecs
    return numcodecs.LZ4().encode(data)[4:]


def _lz4_unblock(data, size):
    import numcodecs
    return numcodecs.LZ4().decode(struct.pack("<I", size) + data)


def bit_transpose(data, elem):
    """A multiple of 8 elements: bit 0 of byte 0 of all of them, bit 1, ..., of the last byte."""
    bits = np.unpackbits(np.frombuffer(data, "u1").reshape(-1, elem), axis=1, bitorder="little")
    return np.packbits(bits.T.ravel(), bitorder="little").tobytes()


def bit_untranspose(data, elem):
    bits = np.unpackbits(np.frombuffer(data, "u1"), bitorder="little").reshape(8 * elem, -1)
    return np.packbits(bits.T.ravel(), bitorder="little").tobytes()


def bitshuffle_block(elem):
    """Elements of a block when none are stated: 8 KiB, a multiple of 8, at least 128."""
    return max(8192 // elem // 8 * 8, 128)


def bitshuffle_encode(data, elem, block=0, compression=0, level=3):
    """The filter 32008. compression: 0 none, 2 LZ4, 3 Zstandard. Blocks of `block` elements, a last
    one of what is left in eights, and single elements as they are."""
    block = block or bitshuffle_block(elem)
    whole = len(data) // elem // 8 * 8 * elem
    out = struct.pack(">QI", len(data), block * elem) if compression else b""
    for at in range(0, whole, block * elem):
        part = bit_transpose(data[at:min(at + block * elem, whole)], elem)
        if compression:
            part = _lz4_block(part) if compression == 2 else zstd_encode(part, level)
            out += struct.pack(">I", len(part))
        out += part
    return out + data[whole:]


def bitshuffle_decode(data, elem, size, block=0, compression=0):
    block = (block or bitshuffle_block(elem)) * elem
    whole = size // elem // 8 * 8 * elem
    at, out = 0, b""
    if compression:
        total, block = struct.unpack(">QI", data[:12])
        assert total == size, f"{total} bytes, {size} expected"
        at = 12
    while len(out) < whole:
        n = min(block, whole - len(out))
        if compression:
            stored, = struct.unpack(">I", data[at:at + 4])
            part = data[at + 4:at + 4 + stored]
            at += 4 + stored
            part = _lz4_unblock(part, n) if compression == 2 else zstd_decode(part)
            assert len(part) == n, f"a block of {len(part)} bytes, {n} expected"
        else:
            part = data[at:at + n]
            at += n
        out += bit_untranspose(part, elem)
    return out + data[at:]


def lz4_decode(data):
    """The filter 32004: big-endian length of all and of a block, then blocks behind theirs; one
    that is as long as its content is a copy."""
    total, block = struct.unpack(">QI", data[:12])
    at, out = 12, b""
    while len(out) < total:
        n = min(block, total - len(out))
        stored, = struct.unpack(">I", data[at:at + 4])
        part = data[at + 4:at + 4 + stored]
        out += part if stored == n else _lz4_unblock(part, n)
        at += 4 + stored
    return out


def lzf_decode(data, size):
    """Runs of up to 32 literals, and copies of 3 to 264 bytes from up to 8 KiB back."""
    out, at = bytearray(), 0
    while at < len(data):
        control = data[at]
        at += 1
        if control < 32:
            out += data[at:at + control + 1]
            at += control + 1
            continue
        n = control >> 5
        if n == 7:
            n += data[at]
            at += 1
        back = ((control & 31) << 8 | data[at]) + 1
        at += 1
        for _ in range(n + 2):
            out.append(out[-back])
    assert len(out) == size, f"{len(out)} bytes, {size} expected"
    return bytes(out)


def shuffle_decode(data, elem):
    n = len(data) // elem
    whole = np.frombuffer(data[:n * elem], "u1").reshape(elem, n).T
    return whole.tobytes() + data[n * elem:]


def blosc_decode(data):
    import numcodecs
    return numcodecs.Blosc().decode(data)


# (stored, parameters, bytes when known, of an element) -> what it was
FORMULAS = {
    DEFLATE: lambda z, p, n, e: zlib.decompressobj().decompress(z),
    SHUFFLE: lambda z, p, n, e: shuffle_decode(z, p[0] if p else e),
    FLETCHER32: lambda z, p, n, e: z[:-4],
    BZIP2: lambda z, p, n, e: bz2.decompress(z),
    LZF: lambda z, p, n, e: lzf_decode(z, p[2]),
    BLOSC: lambda z, p, n, e: blosc_decode(z),
    LZ4: lambda z, p, n, e: lz4_decode(z),
    BITSHUFFLE: lambda z, p, n, e: bitshuffle_decode(z, p[2], n, *(p[3:5] or (0,))),
    ZSTD: lambda z, p, n, e: zstd_decode(z),
    BITGROOM: lambda z, p, n, e: z, GRANULARBR: lambda z, p, n, e: z, 32032: lambda z, p, n, e: z,
}


def decode(filters, mask, data, size, elem):
    """A chunk by formulas; None when there is none for one of its filters."""
    todo = [f for i, f in enumerate(filters) if not mask >> i & 1]
    if any(f[0] not in FORMULAS for f in todo):
        return None
    for f in reversed(todo):
        data = FORMULAS[f[0]](data, f[1:], size, elem)
    assert len(data) == size, f"{len(data)} bytes, {size} expected"
    return data
