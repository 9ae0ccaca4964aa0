# SPDX-License-Identifier: BSD-3-Clause
"""Zarr arrays of all kinds, written by zarr-python 2. write(which, root) makes a group of them."""
import numpy as np

# which -> path -> what cannot be the same after it was a netCDF-4 file, see rw_model.Compare
KNOWN = {}


def numbers(shape, dtype, seed=1):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype.newbyteorder("="),
                            endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def types(g):
    for order in "<>":
        for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f4", "f8"):
            a = numbers((5, 7), order + kind)
            g.create_dataset(kind + ("le" if order == "<" else "be"), data=a, chunks=(2, 3),
                             fill_value=None)
    for kind in ("i1", "u1", "?"):
        g.create_dataset("of_" + kind.replace("?", "bool"), data=numbers((5, 7), kind),
                         chunks=(2, 3))
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-310, 3.5])
    g.create_dataset("special", data=special, chunks=(4,))
    g.create_dataset("special4", data=special.astype("f4"), chunks=(4,))


def fills(g):
    for i, (dtype, fill) in enumerate([("f4", np.nan), ("f8", np.inf), ("i4", -1), ("i8", 2 ** 62),
                                       ("u8", 2 ** 64 - 1), ("i2", 0), ("u1", 255), ("f4", 1e20),
                                       ("f8", 0.1), ("f8", -np.inf)]):
        a = g.create_dataset(f"f{i}", shape=(10,), chunks=(3,), dtype=dtype, fill_value=fill)
        a[4:5] = 1  # others are missing
        a.attrs["_ARRAY_DIMENSIONS"] = [f"d{i}"]
    g.create_dataset("none", shape=(6,), chunks=(3,), dtype="i4", fill_value=None)[...] = 5
    g.create_dataset("empty", shape=(6,), chunks=(3,), dtype="i4", fill_value=9)


def chains(g):
    import numcodecs as n
    data = np.cumsum(numbers((40, 30), "i1").astype("i4"), 1).astype("i4")
    for name, compressor, filters in [
            ("plain", None, None), ("zlib1", n.Zlib(1), None), ("zlib9", n.Zlib(9), None),
            ("shuffled", n.Zlib(5), [n.Shuffle(4)]), ("gzip", n.GZip(3), None),
            ("blosc", n.Blosc("lz4", 5, n.Blosc.SHUFFLE), None),
            ("blosc_zstd", n.Blosc("zstd", 3, n.Blosc.BITSHUFFLE), None), ("zstd", n.Zstd(3), None),
            ("bz2", n.BZ2(2), None), ("lz4", n.LZ4(), None), ("lzma", n.LZMA(), None),
            ("only_shuffle", None, [n.Shuffle(4)])]:
        a = g.create_dataset(name, shape=data.shape, chunks=(16, 16), dtype="i4",
                             compressor=compressor, filters=filters)
        a[...] = data
        a[3:5, 10:20] = -5


def shapes(g):
    g.create_dataset("scalar", shape=(), dtype="f8", data=np.float64(2.5))
    g.create_dataset("long_chunk", data=np.arange(10, dtype="i4"), chunks=(100,))
    g.create_dataset("one", data=np.arange(1, dtype="i4"), chunks=(1,))
    g.create_dataset("rank5", data=numbers((3, 2, 4, 2, 3), "i2"), chunks=(2, 1, 3, 2, 2))
    g.create_dataset("deep/er/still", data=np.arange(3, dtype="i8"))
    g.create_group("nothing/in/it")
    a = g.create_dataset("dims", data=numbers((4, 3), "f4"), chunks=(2, 3))
    a.attrs["_ARRAY_DIMENSIONS"] = ["lat", "lon"]
    for name, n in ("lat", 4), ("lon", 3):
        g.create_dataset(name, data=np.arange(n, dtype="f8")).attrs["_ARRAY_DIMENSIONS"] = [name]


def texts(g):
    import numcodecs as n
    words = ["a", "bc", "", "\u00fc\u4e2d", "longer than others"]
    g.create_dataset("vlen", data=np.array(words, object), chunks=(2,), object_codec=n.VLenUTF8())
    g.create_dataset("bytes", data=np.array([w.encode() for w in words], "S20"), chunks=(2,))
    g.attrs.update({"text": "\u00fc", "list": ["a", "b"], "number": 1, "float": 1.5, "empty": "",
                    "floats": [1.5, 2.5], "mixed": [1, 2.5], "big": 2 ** 40})


def write(which, root):
    import zarr
    globals()[which](zarr.open_group(root, mode="a"))
