# SPDX-License-Identifier: BSD-3-Clause
"""Files made at random (fixed seeds): types, shapes, chunks, filters, fill values, partly written,
resized, every library format; zarr-python through the mount against h5py, bit by bit, and the size
of every file against its bytes. Seen to fail when unshuffling left out the elements behind the last
vector. NCZARRFS_SEEDS=FROM:TO for other and for more files."""
import os
import random
import warnings

import h5py
import numpy as np
import zarr

TYPES = ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8",
         "<u8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "S1", "S3", "S7", "?", "<c8",
         ">c16", "V5",
         [("a", "<i4"), ("b", ">f8")], [("a", "i1"), ("b", "<f8", (2,))]]
OPTIONS = ["mode=zarr", "filter=none", "dimension_separator=/", "default_chunk_size=4K",
           "mode=noxarray,filter=none,cache_size=64K"]


def layout(rng, shape, dtype):
    """Keywords of create_dataset for a chunked dataset."""
    limits = tuple(rng.choice([s, s, None, s + 5 if s else 5]) for s in shape)
    kw = {"maxshape": limits,
          "chunks": tuple(max(1, min(rng.choice([1, 2, 3, 4, s or 1, (s or 1) + 3]), m or 99))
                          for s, m in zip(shape, limits))}
    number = dtype.kind in "iuf" and dtype.itemsize in (1, 2, 4, 8)
    if rng.random() < .6:
        kw["compression"] = rng.choice(["gzip", "gzip", "szip"] if number else ["gzip"])
    if rng.random() < .5:
        kw["shuffle"] = True
    if rng.random() < .3:
        kw["fletcher32"] = True
    if dtype.kind in "iu" and rng.random() < .15 and "compression" not in kw:
        kw["scaleoffset"] = 0
    return kw


def values(rng, shape, dtype, narrow):
    n = int(np.prod(shape))
    raw = np.frombuffer(rng.randbytes(max(1, n) * dtype.itemsize), "u1").copy()
    if rng.random() < .6:
        raw &= 3
    if dtype.kind == "?":
        raw &= 1
    if dtype.kind == "S":
        raw = (raw % 4 + 97).astype("u1")
    v = raw[:n * dtype.itemsize].view(dtype).reshape(shape) if n else np.zeros(shape, dtype)
    return (v.astype("i8") & 0x3f).astype(dtype) if narrow else v


def add_dataset(f, rng, name):
    rank = rng.choice([0, 1, 1, 2, 2, 3, 4])
    sizes = [0, 1, 2, 3, 5, 7, 16, 33, 100] if rank < 3 else [1, 2, 3, 5, 9]
    shape = tuple(rng.choice(sizes) for _ in range(rank))
    dtype = np.dtype(rng.choice(TYPES))
    kw = layout(rng, shape, dtype) if rank and rng.random() < .75 else {}
    if rng.random() < .3 and dtype.kind in "iuf":
        kw["fillvalue"] = np.array(rng.choice([0, 1, 7])).astype(dtype)[()]
    d = f.create_dataset(name, shape=shape, dtype=dtype, **kw)
    v = values(rng, shape, dtype, "scaleoffset" in kw)
    written = rng.random()
    if written < .6 or not shape:
        d[...] = v
    elif written < .9:
        part = tuple(slice(*sorted((rng.randint(0, s), rng.randint(0, s)))) for s in shape)
        if all(p.start < p.stop for p in part):
            d[part] = v[part]
    if None in kw.get("maxshape", ()) and rng.random() < .2:
        axis = kw["maxshape"].index(None)
        d.resize(max(0, shape[axis] + rng.choice([-2, 4, 30])), axis)
    if rng.random() < .3 and dtype.kind in "iuf":
        d.attrs["_FillValue"] = d.fillvalue


def write(path, rng):
    with h5py.File(path, "w", libver=rng.choice(["earliest", "latest", "v108"]),
                   userblock_size=rng.choice([0, 0, 512])) as f:
        for i in range(12):
            try:
                add_dataset(f, rng, f"d{i}")
            except (ValueError, TypeError, RuntimeError, OSError):
                if f"d{i}" in f:  # a combination that HDF5 does not allow
                    del f[f"d{i}"]


def compare(path, mnt):
    warnings.filterwarnings("ignore")
    with h5py.File(path) as f:
        root = zarr.open_group(mnt, mode="r")
        for name, d in f.items():
            # scalars come back in native byte order: give them their own again
            want = np.ascontiguousarray(np.asarray(d[()], dtype=d.dtype))
            got = np.ascontiguousarray(np.asarray(root[name][()], dtype=root[name].dtype))
            assert (got.dtype, got.shape) == (want.dtype, want.shape), (name, got.dtype, got.shape)
            assert got.tobytes() == want.tobytes(), f"{name}: values differ: {d}"
    for folder, _, names in os.walk(mnt):
        for name in names:
            file = os.path.join(folder, name)
            with open(file, "rb") as f:
                assert len(f.read()) == os.path.getsize(file), f"{file}: size"


def test_random_files(t):
    first, last = map(int, os.environ.get("NCZARRFS_SEEDS", "0:30").split(":"))
    for seed in range(first, last):
        rng = random.Random(seed)
        path = t.path(f"r{seed}.h5")
        write(path, rng)
        options = rng.choice(OPTIONS)
        with t.mount(path, options) as m:
            t.call(compare, path, m.path)
