# SPDX-License-Identifier: BSD-3-Clause
"""Storage layouts, chunk indexes, file formats, large offsets."""
import os

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from gen import feature
from gen.dims import ALL, dataset, ramp


@feature(clients=ALL)
def layouts(path):
    """Contiguous, chunked, and chunks larger than or not dividing the shape."""
    with dataset(path) as ds:
        ds.createDimension("y", 7)
        ds.createDimension("x", 11)
        ds.createVariable("cont", "f4", ("y", "x"), contiguous=True)[:] = ramp((7, 11))
        ds.createVariable("exact", "f4", ("y", "x"), chunksizes=(7, 11))[:] = ramp((7, 11))
        ds.createVariable("odd", "f8", ("y", "x"), chunksizes=(3, 4))[:] = ramp((7, 11))
        ds.createVariable("one", "i2", ("y", "x"), chunksizes=(1, 1))[:] = ramp((7, 11))
        ds.createVariable("z", "f4", ("y", "x"), chunksizes=(3, 4), zlib=True)[:] = ramp((7, 11))


@feature(clients=("zarr",))
def compact(path):
    """Compact layout: the data is in the object header."""
    with h5py.File(path, "w") as f:
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_layout(h5d.COMPACT)
        for name, t, a in (("v", h5t.STD_I32LE, np.arange(6, dtype="<i4").reshape(2, 3)),
                           ("be", h5t.IEEE_F64BE, np.arange(4).astype(">f8"))):
            d = h5d.create(f.id, name.encode(), t, h5s.create_simple(a.shape), p)
            d.write(h5s.ALL, h5s.ALL, a, mtype=t)
        d = h5d.create(f.id, b"scalar", h5t.STD_I16LE, h5s.create(h5s.SCALAR), p)
        d.write(h5s.ALL, h5s.ALL, np.array(-3, "<i2"))


@feature("default_chunk_size=64K", clients=("zarr", "xarray"))
def large_contiguous(path):
    """Contiguous variables of a few MiB, cut into chunks that do not divide them."""
    with dataset(path) as ds:
        ds.createDimension("t", 101)
        ds.createDimension("y", 37)
        ds.createDimension("x", 91)
        ds.createDimension("long", 700001)
        ds.createVariable("v", "f8", ("t", "y", "x"), contiguous=True)[:] = ramp((101, 37, 91))
        ds.createVariable("flat", "i2", ("long",), contiguous=True)[:] = ramp((700001,), "i2")
        row = 3 * (ramp((37, 700001)) % 11)
        ds.createVariable("row", "f4", ("y", "long"), contiguous=True)[:] = row
        ds.createVariable("be", ">i4", ("y", "long"), contiguous=True, endian="big")[0] = 9


@feature("default_chunk_size=4096", "dimension_separator=/", clients=("zarr", "xarray"))
def nested_keys(path):
    """Chunk keys as paths, also of an array cut by us and of missing chunks."""
    with dataset(path) as ds:
        ds.createDimension("y", 70)
        ds.createDimension("x", 50)
        ds.createVariable("cont", "f4", ("y", "x"), contiguous=True)[:] = ramp((70, 50))
        v = ds.createVariable("holes", "f4", ("y", "x"), chunksizes=(20, 20), zlib=True,
                              fill_value=-1)
        v[40:60, 20:40] = ramp((20, 20))
        ds.createVariable("scalar", "f4")[...] = 5


@feature(clients=("zarr",))
def contiguous_unwritten(path):
    """A contiguous variable that was never allocated."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", shape=(100, 3), dtype="f4", fillvalue=4.5)
        f.create_dataset("zero", shape=(100,), dtype="i8")


def _indexes(path, libver):
    """Each way to index chunks, filtered and not, sparse and full."""
    with h5py.File(path, "w", libver=libver) as f:
        for tag, more in (("", {}), ("_z", {"compression": "gzip", "shuffle": True})):
            data = ramp((23, 17), "i4")
            f.create_dataset("single" + tag, data=data, chunks=(23, 17), **more)
            f.create_dataset("fixed" + tag, data=data, chunks=(4, 5), **more)
            f.create_dataset("fixed_max" + tag, data=data, chunks=(4, 5), maxshape=(40, 20), **more)
            f.create_dataset("ext0" + tag, data=data, chunks=(4, 5), maxshape=(None, 17), **more)
            f.create_dataset("ext1" + tag, data=data, chunks=(4, 5), maxshape=(23, None), **more)
            f.create_dataset("tree2" + tag, data=data, chunks=(4, 5), maxshape=(None, None), **more)
            d = f.create_dataset("sparse" + tag, shape=(500, 300), dtype="f4", chunks=(7, 9),
                                 maxshape=(None, None), **more)
            d[490:497, 10:12] = 5
            d = f.create_dataset("sparse_fixed" + tag, shape=(500, 300), dtype="f4",
                                 chunks=(7, 9), **more)
            d[490:497, 10:12] = 5
            d = f.create_dataset("sparse_ext" + tag, shape=(5000, 30), dtype="i2",
                                 chunks=(3, 30), maxshape=(None, 30), **more)
            d[4000:4003] = 5
            f.create_dataset("many" + tag, data=np.arange(30000, dtype="i2"), chunks=(8,),
                             maxshape=(None,), **more)
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((4, 5))
        p.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        d = h5d.create(f.id, b"implicit", h5t.STD_I32LE, h5s.create_simple((23, 17)), p)
        d.write(h5s.ALL, h5s.ALL, ramp((23, 17), "i4"))


@feature(clients=("zarr", "xarray"))
def indexes_latest(path):
    """Chunk indexes of the new format: single, implicit, fixed and extensible array, B-tree 2."""
    _indexes(path, "latest")


@feature(clients=("zarr", "xarray"))
def indexes_earliest(path):
    """The same datasets in the old format: B-tree 1."""
    _indexes(path, "earliest")


@feature(clients=("zarr",))
def paged_fixed_array(path):
    """A fixed array and an extensible array of thousands of chunks, full and with holes."""
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("fixed", data=np.arange(20000, dtype="i4"), chunks=(4,))
        f.create_dataset("ext", data=np.arange(20000, dtype="i4"), chunks=(4,), maxshape=(None,))
        d = f.create_dataset("holes", shape=(20000,), dtype="i4", chunks=(4,))
        d[10000:10004] = 1
        d = f.create_dataset("ext_holes", shape=(20000,), dtype="i4", chunks=(4,),
                             maxshape=(None,), compression="gzip")
        d[19990:] = 7


@feature(clients=("zarr",))
def shrunk(path):
    """Datasets made smaller after writing: chunks outside the extent are no files."""
    with h5py.File(path, "w") as f:
        for libver, name in ((None, "v"), (None, "z")):
            d = f.create_dataset(name, data=ramp((20, 20)), chunks=(6, 6), maxshape=(None, None),
                                 compression="gzip" if name == "z" else None)
            d.resize((7, 13))


@feature(clients=("zarr", "xarray"))
def libver_earliest(path):
    """Superblock 0 and old object headers, with attributes and groups."""
    with h5py.File(path, "w", libver="earliest") as f:
        f["g/v"] = ramp((5, 6))
        f["g/v"].attrs["a"] = 1.5
        for i in range(30):
            f[f"g/many{i}"] = i


@feature(clients=("zarr", "xarray"))
def libver_latest(path):
    """Superblock 3 and new object headers, enough links for dense groups."""
    with h5py.File(path, "w", libver="latest") as f:
        f["g/v"] = ramp((5, 6))
        f["g/v"].attrs["a"] = 1.5
        for i in range(30):
            f[f"g/many{i}"] = i


@feature(clients=("zarr", "xarray"))
def user_block(path):
    """A user block in front: all addresses are relative to it."""
    with h5py.File(path, "w", userblock_size=1024) as f:
        f["cont"] = ramp((50, 3))
        f.create_dataset("z", data=ramp((50, 30)), chunks=(20, 20), compression="gzip")
        f.create_dataset("new", data=ramp((50, 30)), chunks=(20, 20), maxshape=(None, 30))
    with open(path, "r+b") as f:
        f.write(b"#!/bin/sh\n")


@feature(clients=("zarr",))
def small_addresses(path):
    """A file with addresses of 4 bytes."""
    p = h5p.create(h5p.FILE_CREATE)
    p.set_sizes(4, 4)
    fid = h5f.create(path.encode(), h5f.ACC_TRUNC, p)
    with h5py.File(fid) as f:
        f["v"] = ramp((9, 9))
        f.create_dataset("z", data=ramp((9, 9)), chunks=(4, 4), compression="gzip")


@feature(clients=("zarr",))
def sparse_5_gib(path):
    """Addresses above 4 GiB: a hole in front of the last data (the file is sparse)."""
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("early", data=ramp((100,)))
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        p.set_fill_time(h5d.FILL_TIME_NEVER)
        d = h5d.create(f.id, b"hole", h5t.STD_U8LE, h5s.create_simple(((5 << 30) + 3,)), p)
        f.create_dataset("late", data=ramp((1000,), "f8"))
        f.create_dataset("late_z", data=ramp((1000,), "f8"), chunks=(100,), compression="gzip",
                         maxshape=(None,))
        space = d.get_space()
        for at in (0, (1 << 31) - 2, (1 << 32) - 2, (5 << 30) - 1):
            space.select_hyperslab((at,), (4,))
            d.write(h5s.create_simple((4,)), space, np.array([1, 2, 3, 4], "u1"))
    assert os.stat(path).st_blocks * 512 < 100 << 20


@feature(clients=("zarr",))
def huge_shape(path):
    """More elements than 2^32 with three chunks written."""
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", shape=(1 << 34,), dtype="i2", chunks=(1 << 14,),
                             maxshape=(None,))
        d[5] = 1
        d[(1 << 33) + 7] = 2
        d[(1 << 34) - 1] = 3


@feature(clients=("zarr",))
def virtual_dataset(path):
    """A virtual dataset over datasets of the same file."""
    with h5py.File(path, "w", libver="latest") as f:
        f["a"] = ramp((4,))
        f["b"] = ramp((4,)) + 10
        layout = h5py.VirtualLayout(shape=(3, 4), dtype="f4")
        layout[0] = h5py.VirtualSource(f["a"])
        layout[1] = h5py.VirtualSource(f["b"])
        f.create_virtual_dataset("v", layout, fillvalue=-1)


@feature(clients=("zarr",))
def external_storage(path):
    """Raw data in another file: refused unless allowed; the rest is served."""
    with open(path + ".raw", "wb") as f:
        f.write(np.arange(10, dtype="<i4").tobytes())
    with h5py.File(path, "w") as f:
        f["ok"] = ramp((3,))
        f.create_dataset("raw", shape=(10,), dtype="<i4",
                         external=[(os.path.basename(path) + ".raw", 0, 40)])
