# SPDX-License-Identifier: BSD-3-Clause
"""szip for readers of Zarr: scanlines are those of the array, as netCDF-C has them."""
import json
import os

import h5py
import numpy as np
import zarr
from h5py import h5z

from gen import z_codecs  # noqa: F401, for zarr-python: szip by libhdf5
from lib.context import Skip

SHAPES = {"narrow": ((12, 20), (4, 10)), "whole": ((6, 40), (3, 40)), "short": ((12, 5), (4, 5)),
          "edge": ((10, 3, 16), (2, 3, 16))}
LINES = {"narrow": 20, "whole": 40, "short": 20, "edge": 16}


def write(path):
    with h5py.File(path, "w") as f:
        for name, (shape, chunks) in SHAPES.items():
            for dtype in ("u1", "<i2", ">i2", "<f4", ">f8"):
                v = (np.arange(np.prod(shape)) // 4 % 60).astype(dtype).reshape(shape)
                f.create_dataset(f"{name}_{np.dtype(dtype).str[1:]}{'b' * (dtype[0] == '>')}",
                                 data=v, chunks=chunks, compression="szip",
                                 compression_opts=("nn", 8))


def compare(path, mnt, named):
    root = zarr.open_group(mnt, mode="r")
    with h5py.File(path) as f:
        for name, d in f.items():
            kind = name.split("_")[0]
            got = root[name][...]
            assert got.dtype == d.dtype and got.tobytes() == d[...].tobytes(), name
            with open(os.path.join(mnt, name, ".zarray")) as doc:
                codec = json.load(doc)["compressor"]
            assert bool(codec) == named, (name, codec)
            if codec:
                assert codec["id"] == "szip" and codec["pixels-per-block"] == 8, codec
                assert codec["pixels-per-scanline"] == LINES[kind], (name, codec)


def test_shown_to_zarr(t):
    """By a rule chunks are made as netCDF-C would; stored ones are not passed, because one that has
    a filter mask could not be framed."""
    if not h5z.filter_avail(h5z.FILTER_SZIP):
        raise Skip("libhdf5 without szip")
    path = t.path("a.h5")
    t.call(write, path)
    for options, named in (("filter=keep", False), ("filter=*,szip,32,8", True)):
        with t.mount(path, options) as m:
            t.call(compare, path, m.path, named)
            tree = m.path
            with t.mount(tree, "view=nc") as nc:  # and back, by our own reader of such trees
                file = os.path.join(nc.path, os.listdir(nc.path)[0])
                t.call(same, path, file)


def same(path, file):
    with h5py.File(path) as f, h5py.File(file) as g:
        for name, d in f.items():
            assert g[name].dtype == d.dtype and (g[name][...] == d[...]).all(), name
