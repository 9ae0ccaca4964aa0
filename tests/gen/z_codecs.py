"""Codecs of Zarr v2: passed through, decoded, chained."""
import numcodecs
import numpy as np
import zarr

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
