# SPDX-License-Identifier: BSD-3-Clause
"""Codecs of Zarr v2: passed through, decoded, chained."""
import io

import h5py
import numcodecs
import numpy as np
import zarr
from h5py import h5z

from gen.trees import ramp, tree

CODECS = {
    "none": (None, None), "zlib": (zarr.Zlib(4), None), "gzip": (numcodecs.GZip(4), None),
    "bz2": (numcodecs.BZ2(4), None), "lzma": (numcodecs.LZMA(), None),
    "zstd": (numcodecs.Zstd(3), None), "lz4": (numcodecs.LZ4(), None),
    "blosc": (numcodecs.Blosc("lz4", 5, 1), None),
    "bitshuffle": (numcodecs.Blosc("zstd", 3, 2), None),
    "noshuffle": (numcodecs.Blosc("zlib", 3, 0), None),
    "shuffle_zlib": (zarr.Zlib(4), [numcodecs.Shuffle(4)]),
    "shuffle_zstd": (numcodecs.Zstd(1), [numcodecs.Shuffle(4)]),
    "crc32": (numcodecs.CRC32(), None), "adler32": (numcodecs.Adler32(), None),
    "crc_zlib": (zarr.Zlib(4), [numcodecs.CRC32()]),
    "delta": (zarr.Zlib(4), [numcodecs.Delta("<i4")]),
    "delta_short": (numcodecs.Blosc(), [numcodecs.Delta("<i4", "<i2")]),
    "astype": (zarr.Zlib(4), [numcodecs.AsType("<i2", "<i4")]),
}


def write(path, shape, chunks):
    g = zarr.open_group(path, mode="w")
    for name, (compressor, filters) in CODECS.items():
        a = g.create_dataset(name, shape=shape, chunks=chunks, dtype="<i4", compressor=compressor,
                             filters=filters, fill_value=0)
        a[:] = ramp(shape, "i4")
        a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]


@tree()
def codecs(path):
    """All codecs; those that HDF5 knows are passed through."""
    write(path, (9, 7), (4, 3))


@tree("filter=none")
def codecs_decoded(path):
    """All codecs, all decoded."""
    write(path, (9, 7), (4, 3))


@tree("filter=keep", clients=("h5py-some",))
def codecs_kept(path):
    """Chains that HDF5 has a name for are kept: readers need plugins, zlib and none do not."""
    write(path, (9, 7), (4, 3))


@tree()
def float_codecs(path):
    """Filters that compute: fixed scale and offset, quantised, rounded."""
    g = zarr.open_group(path, mode="w")
    for name, f in (("scaled", [numcodecs.FixedScaleOffset(offset=10, scale=8, dtype="<f8",
                                                           astype="<i2")]),
                    ("quantised", [numcodecs.Quantize(3, "<f8")]),
                    ("rounded", [numcodecs.Delta("<f8")])):
        a = g.create_dataset(name, shape=(40,), chunks=(16,), dtype="<f8", filters=f,
                             fill_value=None)
        a[:] = np.arange(40) / 8
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree()
def packed_bits(path):
    """Booleans in bits."""
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("b", shape=(21,), chunks=(8,), dtype="?", fill_value=None,
                         filters=[numcodecs.PackBits()])
    a[:] = np.arange(21) % 4 == 1
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree()
def larger(path):
    """Chunks of 1 MiB, passed and decoded, several pages each."""
    g = zarr.open_group(path, mode="w")
    v = np.cumsum(np.ones((4, 512, 512), "f4"), axis=2)
    for name, c in (("raw", None), ("zlib", zarr.Zlib(1)), ("blosc", numcodecs.Blosc())):
        a = g.create_dataset(name, shape=v.shape, chunks=(1, 512, 512), dtype="<f4",
                             compressor=c, fill_value=None)
        a[:] = v
        a.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]


class Szip(numcodecs.abc.Codec):
    """netCDF-C's szip, by libhdf5. `type` and `line`, which netCDF-C would not write, say what it
    finds out from the array: the elements, and how many are in a scanline. The mount's documents
    have bits and scanlines under names of their own."""
    codec_id = "szip"

    def __init__(self, mask, type=None, line=None, **more):
        self.mask, self.block = mask & 36, more["pixels-per-block"]
        if type is None:
            type = ("<>"[mask >> 4 & 1]) + f"u{more['bits-per-pixel'] // 8}"
            line = more["pixels-per-scanline"]
        self.type, self.line = type, line

    def get_config(self):
        return {"id": "szip", "mask": self.mask, "pixels-per-block": self.block,
                "type": self.type, "line": self.line}

    def _dataset(self, f, n):
        assert n % self.line == 0
        return f.create_dataset("d", shape=(n // self.line, self.line), dtype=self.type,
                                chunks=(n // self.line, self.line), compression="szip",
                                compression_opts=("nn" if self.mask == 32 else "ec", self.block))

    def encode(self, buf):
        data = np.frombuffer(buf, self.type)
        with h5py.File(io.BytesIO(), "w") as f:
            d = self._dataset(f, len(data))
            d[...] = data.reshape(d.shape)
            f.flush()
            mask, raw = d.id.read_direct_chunk((0, 0))
        assert mask == 0, "libhdf5 does not encode it"
        return raw

    def decode(self, buf, out=None):
        n = int.from_bytes(bytes(buf[:4]), "little") // np.dtype(self.type).itemsize
        with h5py.File(io.BytesIO(), "w") as f:
            d = self._dataset(f, n)
            d.id.write_direct_chunk((0, 0), bytes(buf))
            return numcodecs.compat.ndarray_copy(d[...].tobytes(), out)


numcodecs.register_codec(Szip)


@tree()
def szip(path):
    """netCDF-C's szip: a scanline has the length of the last dimension, not of the chunk's, unless
    that is less than a block."""
    if not h5z.filter_avail(h5z.FILTER_SZIP):
        raise ImportError("libhdf5 without szip")
    g = zarr.open_group(path, mode="w")
    for name, dtype, shape, chunks, mask, line in (
            ("bytes", "|u1", (6, 30), (3, 30), 32, 30), ("big", ">i2", (6, 30), (3, 10), 32, 30),
            ("ints", "<i4", (9, 20), (4, 10), 4, 20), ("floats", ">f4", (7, 64), (2, 32), 32, 64),
            ("doubles", "<f8", (5, 2000), (2, 1024), 32, 1024),
            ("short", "<u2", (12, 5), (4, 5), 4, 20)):
        z = Szip(mask, dtype, line, **{"pixels-per-block": 8})
        for kind, filters in (("", None), ("_shuffled", [numcodecs.Shuffle(4)])):
            if filters and dtype != "<i4":
                continue
            a = g.create_dataset(name + kind, shape=shape, chunks=chunks, dtype=dtype,
                                 compressor=z, filters=filters, fill_value=0)
            a[...] = (np.arange(a.size) // 3 % 50).astype(dtype).reshape(shape)
            a.attrs["_ARRAY_DIMENSIONS"] = [f"d{n}" for n in shape]
