#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""v3_write.py FOLDER: Zarr trees as zarr-python 3 writes them, FOLDER/v3.zarr and FOLDER/v2.zarr,
and beside each the values that are in it: FOLDER/v3/NAME.npy, texts in texts.json. Knows nothing of
this project: it runs in a Debian of its own (scripts/peers-chroot)."""
import json
import os
import sys
import warnings

import numpy as np
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec,
                         ZstdCodec)

TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64")  # 3.0 cannot consolidate complex numbers
TEXTS = ["one", "", "d\u00e9j\u00e0 vu", "\u65e5\u672c", "x" * 300]


def arrays3():
    """(name, settings) of arrays of floats, 20 by 30."""
    yield "plain", {"chunks": (7, 11), "compressors": None}
    yield "default", {"chunks": (7, 11)}
    for cname in "zstd", "lz4", "zlib", "blosclz", "lz4hc":
        for shuffle in "shuffle", "bitshuffle", "noshuffle":
            yield f"blosc_{cname}_{shuffle}", {
                "chunks": (7, 11), "compressors": BloscCodec(cname=cname, shuffle=shuffle)}
    yield "gzip", {"chunks": (7, 11), "compressors": GzipCodec(level=3)}
    yield "zstd", {"chunks": (7, 11), "compressors": ZstdCodec(level=3, checksum=True)}
    yield "crc32c", {"chunks": (7, 11), "compressors": Crc32cCodec()}
    yield "two", {"chunks": (7, 11), "compressors": (GzipCodec(), Crc32cCodec())}
    yield "big", {"chunks": (7, 11), "serializer": BytesCodec(endian="big")}
    yield "transposed", {"chunks": (7, 11), "filters": TransposeCodec(order=(1, 0))}
    yield "shards", {"chunks": (5, 6), "shards": (10, 30)}
    yield "shards_gzip", {"chunks": (5, 6), "shards": (10, 12), "compressors": GzipCodec()}
    yield "v2_keys", {"chunks": (7, 11),
                      "chunk_key_encoding": {"name": "v2", "separator": "."}}
    yield "dots", {"chunks": (7, 11),
                   "chunk_key_encoding": {"name": "default", "separator": "."}}


def put(group, folder, name, data, **settings):
    array = group.create_array(name, shape=data.shape, dtype=data.dtype, **settings)
    array[...] = data
    np.save(os.path.join(folder, name + ".npy"), data)
    return array


def write(root, form):
    folder = os.path.join(root, f"v{form}")
    os.makedirs(folder)
    group = zarr.open_group(folder + ".zarr", mode="w", zarr_format=form)
    rng = np.random.default_rng(form)
    floats = rng.standard_normal((20, 30)).astype("f4")
    for name, settings in arrays3() if form == 3 else [("default", {"chunks": (7, 11)})]:
        put(group, folder, name, floats, **settings)
    for kind in TYPES:
        values = rng.integers(0, 2 if kind == "bool" else 100, (7,)).astype(kind)
        put(group, folder, "type_" + kind, values, chunks=(3,))
    put(group, folder, "scalar", np.array(3.5), chunks=())
    partial = group.create_array("partial", shape=(9,), dtype="f8", chunks=(2,), fill_value=np.nan)
    partial[3:5] = 1.5
    np.save(os.path.join(folder, "partial.npy"), partial[...])
    inner = group.create_group("g")
    put(inner, folder, "in_a_group", np.arange(12, dtype="i4").reshape(3, 4), chunks=(2, 2))
    if form == 3:
        texts = group.create_array("texts", shape=(len(TEXTS),), dtype=str, chunks=(2,))
        texts[...] = np.array(TEXTS, dtype=object)
        with open(os.path.join(folder, "texts.json"), "w", encoding="utf-8") as f:
            json.dump(TEXTS, f)
    group.attrs["title"] = "written by zarr-python"
    zarr.consolidate_metadata(folder + ".zarr")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for number in 3, 2:
        write(sys.argv[1], number)
