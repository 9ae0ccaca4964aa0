# SPDX-License-Identifier: BSD-3-Clause
"""bitshuffle, for which h5py has no filter: chunks made here of numpy, LZ4 and Zstandard, and files
of the real filter, are read through the mount."""
import os
import struct

import h5py
import numcodecs
import numpy as np
import zarr
from h5py import h5d, h5p, h5s, h5t, h5z

from lib.context import Skip, corpus

TYPES = ("u1", "<i2", ">i2", "<u4", "<f4", ">f8", "<c16", "S3")
SHAPE, CHUNK = (50, 61), (20, 33)


def turn(raw, size):
    """Elements, a multiple of eight, to planes of bits."""
    a = np.frombuffer(raw, "u1").reshape(-1, size)
    bits = np.unpackbits(a, axis=1, bitorder="little")
    return np.packbits(bits.T, axis=1, bitorder="little").tobytes()


def encode(raw, size, block, compressor):
    block = block or max(8192 // size // 8 * 8, 128)
    out = b""
    if compressor:
        out = struct.pack(">QI", len(raw), block * size)
    n = len(raw) // size
    done = 0
    while n - done >= 8:
        m = min(block, (n - done) // 8 * 8)
        part = turn(raw[done * size:(done + m) * size], size)
        if compressor == 2:  # numcodecs has the length in front
            part = bytes(numcodecs.LZ4().encode(part))[4:]
        if compressor == 3:
            part = bytes(numcodecs.Zstd(3).encode(part))
        out += (struct.pack(">I", len(part)) if compressor else b"") + part
        done += m
    return out + raw[done * size:]


def add(f, name, data, block, compressor, shuffled=False):
    """A dataset whose filter the library need not have; its chunks are written as they are."""
    size = data.dtype.itemsize
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(CHUNK)
    if shuffled:
        p.set_shuffle()
    p.set_filter(32008, h5z.FLAG_OPTIONAL, (0, 4, size, block, compressor, 3))
    d = h5d.create(f.id, name.encode(), h5t.py_create(data.dtype), h5s.create_simple(SHAPE), p)
    for y in range(0, SHAPE[0], CHUNK[0]):
        for x in range(0, SHAPE[1], CHUNK[1]):
            part = data[y:y + CHUNK[0], x:x + CHUNK[1]]
            whole = np.zeros(CHUNK, data.dtype)
            whole[:part.shape[0], :part.shape[1]] = part
            raw = whole.tobytes()
            if shuffled:
                raw = np.frombuffer(raw, "u1").reshape(-1, size).T.tobytes()
            d.write_direct_chunk((y, x), encode(raw, size, block, compressor))


def test_made_here(t):
    path = t.path("b.h5")
    values = {}
    with h5py.File(path, "w") as f:
        for dtype in TYPES:
            for compressor in (0, 2, 3):
                for block in (0, 8, 120, 4096):
                    data = (np.arange(SHAPE[0] * SHAPE[1]) // 3 % 100).reshape(SHAPE)
                    name = f"{np.dtype(dtype).str[1:]}{'b' * (dtype[0] == '>')}" \
                           f"_{compressor}_{block}"
                    values[name] = data.astype(dtype)
                    add(f, name, values[name], block, compressor, shuffled=block == 120)

    def check(mnt):
        root = zarr.open_group(mnt, mode="r")
        assert len(values) == len(list(root.arrays())) == 96
        for name, want in values.items():
            got = root[name][...]
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes(), name
    for options in ((), ("filter=none",)):
        with t.mount(path, *options) as m:
            t.call(check, m.path)


def test_damaged(t):
    """A chunk that is cut short is an error, not fill values; the others are read."""
    path = t.path("b.h5")
    data = np.arange(SHAPE[0] * SHAPE[1], dtype="i4").reshape(SHAPE)
    with h5py.File(path, "w") as f:
        add(f, "v", data, 64, 2)
        raw = f["v"].id.read_direct_chunk((20, 0))[1]
        f["v"].id.write_direct_chunk((20, 0), raw[:-9])

    def check(mnt):
        v = zarr.open_group(mnt, mode="r")["v"]
        assert (v[:20] == data[:20]).all() and (v[40:] == data[40:]).all()
        try:
            v[20:40, :33]
        except OSError:
            return
        raise AssertionError("no error")
    with t.mount(path) as m:
        t.call(check, m.path)


def test_real_files(t):
    """Every array counts from 0 on, or down."""
    root = corpus()
    names = ("jamesmudd-jhdf/bitshuffle_datasets.hdf5", "HDFGroup-hdf5_plugins/h5ex_d_bshuf.h5",
             "fsspec-kerchunk/hdf5_compression_bitshuffle.h5")
    files = [os.path.join(root, "hdf5", n) for n in names] if root else []
    if not files or not all(map(os.path.isfile, files)):
        raise Skip("no corpus with files of bitshuffle")

    def check(mnt):
        arrays = list(zarr.open_group(mnt, mode="r").arrays())
        assert arrays
        for name, v in arrays:
            got = v[...]
            if name == "DS1":  # of HDF5's examples: i * j - j
                i, j = np.ogrid[:got.shape[0], :got.shape[1]]
                assert (got == i * j - j).all(), got
            else:
                assert (got == np.arange(got.size)).all(), (name, got)
    for file in files:
        with t.mount(file) as m:
            t.call(check, m.path)
