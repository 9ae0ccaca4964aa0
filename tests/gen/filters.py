# SPDX-License-Identifier: BSD-3-Clause
"""Filter pipelines."""
import struct
import zlib

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

from gen import feature
from gen.dims import ALL, dataset, ramp

SHAPE = (37, 50)
CHUNK = (10, 16)


def smooth(dtype="f4", shape=SHAPE):
    return (ramp(shape, "f8") % 97).astype(dtype)


def create(f, name, dtype, setup, data=None, chunk=CHUNK, maxshape=None, precision=None):
    """A dataset with a pipeline in an order that h5py's own interface does not offer."""
    data = smooth(dtype) if data is None else data
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(chunk)
    setup(p)
    t = mem = h5t.py_create(data.dtype)
    if precision:
        t = t.copy()
        t.set_precision(precision)
    space = h5s.create_simple(data.shape, maxshape or data.shape)
    d = h5d.create(f.id, name.encode(), t, space, p)
    d.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(data), mtype=mem)
    return d


@feature(clients=ALL)
def deflate_shuffle(path):
    """Deflate with and without shuffle, at several levels, for each element size."""
    with dataset(path) as ds:
        ds.createDimension("y", SHAPE[0])
        ds.createDimension("x", SHAPE[1])
        for t in ("i1", "i2", "i4", "f8"):
            for tag, more in (("z", {"zlib": True, "shuffle": False}),
                              ("sz", {"zlib": True, "shuffle": True}),
                              ("z9", {"zlib": True, "complevel": 9})):
                ds.createVariable(f"{t}_{tag}", t, ("y", "x"), chunksizes=CHUNK,
                                  **more)[:] = smooth(t)


@feature(clients=("zarr", "xarray"))
def shuffle_only(path):
    """Shuffle without compression."""
    with h5py.File(path, "w") as f:
        for t in ("i1", "i2", "f4", "f8"):
            f.create_dataset(t, data=smooth(t), chunks=CHUNK, shuffle=True)


@feature(clients=("zarr", "xarray"))
def fletcher32_first(path):
    """As netCDF-C writes it: the checksum is inside the shuffled and deflated bytes."""
    with dataset(path) as ds:
        ds.createDimension("y", SHAPE[0])
        ds.createDimension("x", SHAPE[1])
        for t in ("i1", "i2", "i4", "f8"):
            ds.createVariable(t, t, ("y", "x"), chunksizes=CHUNK, zlib=True,
                              fletcher32=True)[:] = smooth(t)
            ds.createVariable(t + "_only", t, ("y", "x"), chunksizes=CHUNK,
                              fletcher32=True)[:] = smooth(t)


@feature(clients=("zarr", "xarray"))
def fletcher32_last(path):
    """As h5py writes it: four bytes after the compressed ones."""
    with h5py.File(path, "w") as f:
        for t in ("i1", "i2", "i4", "f8"):
            f.create_dataset(t, data=smooth(t), chunks=CHUNK, compression="gzip", shuffle=True,
                             fletcher32=True)
            f.create_dataset(t + "_only", data=smooth(t), chunks=CHUNK, fletcher32=True)


@feature(clients=("zarr",))
def orders(path):
    """Pipelines in unusual orders: deflate before shuffle, deflate twice, shuffle twice."""
    with h5py.File(path, "w") as f:
        def deflate_shuffle_(p):
            p.set_deflate(4)
            p.set_shuffle()

        def twice(p):
            p.set_shuffle()
            p.set_deflate(1)
            p.set_deflate(9)

        def checksum_between(p):
            p.set_shuffle()
            p.set_fletcher32()
            p.set_deflate(3)
        for t in ("i2", "f8"):
            create(f, "ds_" + t, t, deflate_shuffle_)
            create(f, "twice_" + t, t, twice)
            create(f, "between_" + t, t, checksum_between)


@feature(clients=("zarr", "xarray"))
def szip(path):
    """szip, both codings, every size and byte order, scanlines that are no whole blocks, types with
    fewer bits than bytes, with shuffle and checksums; incompressible chunks have a mask."""
    if not h5z.filter_avail(h5z.FILTER_SZIP):
        return
    with h5py.File(path, "w") as f:
        for coding in ("nn", "ec"):
            for t in ("u1", "i1", "<i2", ">i2", "<u4", ">i4", ">u8", "<f4", ">f4", "<f8"):
                f.create_dataset(f"{coding}_{t.strip('<>')}{'b' * (t[0] == '>')}",
                                 data=smooth(t), chunks=CHUNK, compression="szip",
                                 compression_opts=(coding, 8))
        for block, chunk in ((2, (7, 9)), (10, (3, 33)), (32, (4, 50)), (16, (5, 7)), (4, (1, 4))):
            f.create_dataset(f"b{block}", data=smooth("i2"), chunks=chunk, shuffle=True,
                             fletcher32=True, compression="szip", compression_opts=("nn", block))
        for bits, t in ((12, "<u2"), (9, ">u2"), (20, "<u4"), (31, "<u4")):
            create(f, f"bits{bits}", t, lambda p: p.set_szip(32, 8), precision=bits)
        noise = np.random.RandomState(1).bytes(SHAPE[0] * SHAPE[1] * 4)
        f.create_dataset("noise", data=np.frombuffer(noise, "i4").reshape(SHAPE), chunks=CHUNK,
                         compression="szip", compression_opts=("nn", 16))


def with_nbit(f, name, t, data):
    """data: as the type in the file, or as numpy has it."""
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(CHUNK)
    p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_MANDATORY)
    d = h5d.create(f.id, name.encode(), t, h5s.create_simple(SHAPE), p)
    d.write(h5s.ALL, h5s.ALL, data, mtype=h5t.py_create(data.dtype, logical=True))


@feature(clients=("zarr",))
def scaleoffset_nbit(path):
    """scaleoffset (integers exact, floats rounded when written) and nbit."""
    with h5py.File(path, "w") as f:
        f.create_dataset("so_i", data=smooth("i4"), chunks=CHUNK, scaleoffset=0)
        f.create_dataset("so_f", data=smooth("f4") / 7, chunks=CHUNK, scaleoffset=3)
        f.create_dataset("so_z", data=smooth("i2"), chunks=CHUNK, scaleoffset=0,
                         compression="gzip")
        for t in ("i1", "u1", "<i2", ">u2", ">i4", "<u4", ">i8", "<u8"):
            data = smooth("i4") - (20 if t[-2] == "i" else 0)
            f.create_dataset("so_" + t, data=data.astype(t), chunks=CHUNK, scaleoffset=0,
                             fillvalue=data.max(), shuffle=True)
            with_nbit(f, "nbit_" + t, h5t.py_create(np.dtype(t)), data.astype(t))
        for t in ("<f4", ">f4", "<f8", ">f8"):
            f.create_dataset("so_" + t, data=smooth(t) / 3 - 9, chunks=CHUNK, scaleoffset=2,
                             fillvalue=-9)
        f.create_dataset("so_full", data=smooth("i4"), chunks=CHUNK, scaleoffset=32)
        f.create_dataset("so_few", data=smooth("i4"), chunks=CHUNK, scaleoffset=4)
        f.create_dataset("so_equal", data=np.full(SHAPE, -3, "i8"), chunks=CHUNK, scaleoffset=0)
        t = h5t.STD_U32LE.copy()
        t.set_precision(9)
        with_nbit(f, "nbit", t, smooth("u4"))
        for t in ("<i4", ">f8", "?"):
            data = smooth("i4").astype(t) if t != "?" else smooth("i4") % 2 == 0
            with_nbit(f, "whole_" + t, h5t.py_create(data.dtype, logical=True), data)


@feature(clients=("zarr",))  # netCDF-C crashes on such a file
def lzf(path):
    """lzf, h5py's own: alone, with shuffle and checksum; chunks that do not shrink have a mask."""
    with h5py.File(path, "w") as f:
        for t in ("u1", ">i2", "i4", "<f4", "f8", ">f8", "c16", "S3"):
            data = smooth("i4").astype(t)
            f.create_dataset(t, data=data, chunks=CHUNK, compression="lzf")
            f.create_dataset("all_" + t, data=data, chunks=(37, 50), compression="lzf",
                             shuffle=True, fletcher32=True)
        noise = np.random.RandomState(2).bytes(SHAPE[0] * SHAPE[1] * 4)
        mixed = np.frombuffer(noise, "i4").reshape(SHAPE).copy()
        mixed[:20] = 7
        f.create_dataset("mixed", data=mixed, chunks=CHUNK, compression="lzf")


@feature(clients=("zarr", "xarray"))
def filter_masks(path):
    """Single chunks with filters skipped, in all four combinations of shuffle and deflate."""
    _masks(path, None)


@feature(clients=("zarr",))
def filter_masks_latest(path):
    """The same with the new chunk indexes."""
    _masks(path, "latest")


def _shuffled(a):
    raw = np.frombuffer(a.tobytes(), "u1").reshape(-1, a.dtype.itemsize)
    return raw.T.tobytes()


def _masks(path, libver):
    with h5py.File(path, "w", libver=libver) as f:
        for t in ("i2", "f8"):
            for name, more in (("v_", {}), ("sum_", {"fletcher32": True})):
                data = smooth(t, (40, 48))
                d = f.create_dataset(name + t, data=data, chunks=(10, 16), compression="gzip",
                                     shuffle=True, maxshape=(None, 48), **more)
                for n, mask in enumerate((0, 1, 2, 3)):
                    chunk = np.ascontiguousarray(data[n * 10:n * 10 + 10, 16:32])
                    raw = chunk.tobytes() if mask & 1 else _shuffled(chunk)
                    raw = raw if mask & 2 else zlib.compress(raw, 4)
                    mask |= 4 if more and n != 3 else 0
                    if more and not mask & 4:
                        raw += struct.pack("<I", fletcher32(raw))
                    d.id.write_direct_chunk((n * 10, 16), raw, mask)


def fletcher32(data):
    """HDF5's checksum: 16-bit big-endian words, then the two sums."""
    a = b = 0
    if len(data) % 2:
        words = struct.unpack(f">{len(data) // 2}H", data[:-1]) + (data[-1] << 8,)
    else:
        words = struct.unpack(f">{len(data) // 2}H", data)
    for i, w in enumerate(words):
        a += w
        b += a
        if i % 300 == 299:
            a = (a & 0xffff) + (a >> 16)
            b = (b & 0xffff) + (b >> 16)
    for _ in range(3):
        a = (a & 0xffff) + (a >> 16)
        b = (b & 0xffff) + (b >> 16)
    return b << 16 | a


@feature(clients=("zarr", "xarray"))
def partial_edges_unfiltered(path):
    """DONT_FILTER_PARTIAL_CHUNKS: edge chunks are stored unfiltered though their mask is 0."""
    with h5py.File(path, "w", libver="latest") as f:
        def setup(p):
            p.set_shuffle()
            p.set_deflate(5)
            set_chunk_opts(p, 2)
        create(f, "fixed", "f4", setup)
        create(f, "ext", "f4", setup, maxshape=(h5s.UNLIMITED, SHAPE[1]))
        create(f, "tree", "i2", setup, maxshape=(h5s.UNLIMITED, h5s.UNLIMITED))
        create(f, "single", "f8", setup, chunk=SHAPE)


def set_chunk_opts(plist, opts):
    """H5Pset_chunk_opts, which h5py has not: called in the library that h5py loaded."""
    import ctypes
    for line in open("/proc/self/maps"):
        name = line.split()[-1]
        if "libhdf5" in name and "_hl" not in name and ".so" in name:
            lib = ctypes.CDLL(name)
            lib.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
            assert lib.H5Pset_chunk_opts(plist.id, opts) >= 0
            return
    raise RuntimeError("libhdf5 is not loaded")


@feature(clients=("zarr",))
def incompressible(path):
    """Random bytes: deflate makes them longer."""
    noise = np.random.RandomState(2).bytes(40 * 40 * 4)
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.frombuffer(noise, "u4").reshape(40, 40), chunks=(11, 13),
                         compression="gzip", shuffle=True)


@feature(clients=("zarr",))
def unknown_filter(path):
    """A filter that nobody has: its chunks are errors, the metadata and the rest are served."""
    with h5py.File(path, "w") as f:
        f["ok"] = ramp((4,))
        d = f.create_dataset("v", shape=(20,), dtype="i4", chunks=(10,), compression="gzip")
        d[:10] = 1
        f.create_dataset("bytes_that_name_the_filter", data=np.zeros(3))
    rename_deflate(path)


def rename_deflate(path):
    """The first deflate filter of a file gets a number that nobody has."""
    with open(path, "r+b") as f:
        data = f.read()
        at = data.find(b"deflate\0")
        assert at > 8
        f.seek(at - 8)
        f.write(struct.pack("<H", 32999))


@feature("filter=none", clients=("zarr", "xarray", "ncdump", "gdal"))
def everything_decoded(path):
    """filter=none: every array is presented uncompressed."""
    deflate_shuffle(path)


@feature("filter=none", clients=("zarr", "xarray"))
def everything_decoded_checksums(path):
    """filter=none with checksums first."""
    fletcher32_first(path)


@feature("filter=none", clients=("zarr",))
def everything_decoded_masks(path):
    """filter=none with per-chunk masks."""
    filter_masks(path)
