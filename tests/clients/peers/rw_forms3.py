# SPDX-License-Identifier: BSD-3-Clause
"""A Zarr v3 store in many forms, for zarr-python 3: "make" it, or "check" that it holds what
test_rw_forms.py made of it through its virtual file."""
import sys

import numpy as np
import zarr
from zarr.codecs import (BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec,
                         ZstdCodec)

FORMS = {
    "plain": {"dtype": "float64"},
    "v2_keys": {"dtype": "int16", "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "dots": {"dtype": "int16", "chunk_key_encoding": {"name": "default", "separator": "."}},
    "big": {"dtype": "int32", "serializer": BytesCodec(endian="big")},
    "turned": {"dtype": "float32", "filters": [TransposeCodec(order=(1, 0))],
               "compressors": [GzipCodec(level=1)]},
    "shards": {"dtype": "int32", "shards": (4, 4)},
    "index_first": {"dtype": "int64", "serializer": ShardingCodec(
        chunk_shape=(2, 2), codecs=[BytesCodec(), GzipCodec(level=1), Crc32cCodec()],
        index_codecs=[BytesCodec(), Crc32cCodec()], index_location="start"), "chunks": (4, 4),
        "compressors": None},
    "bools": {"dtype": "bool", "compressors": [ZstdCodec(level=1)]},
    "shards_nan": {"dtype": "float32", "shards": (4, 4), "fill_value": float("nan")},
}


def data(dtype):
    n = np.arange(35).reshape(7, 5)
    return n % 3 == 0 if dtype == "bool" else n.astype(dtype)


def make(root):
    g = zarr.open_group(root, mode="w", zarr_format=3)
    for name, how in FORMS.items():
        a = g.create_array(name, shape=(7, 5), dimension_names=[f"{name}_y", f"{name}_x"],
                           **{"chunks": (2, 2), "attributes": {"keep": 2 ** 60 + 1}, **how})
        a[:5] = data(how["dtype"])[:5]  # the last rows were never written
    g.create_array("texts", shape=(5,), chunks=(2,), dtype=str, dimension_names=["t"])[:] = (
        np.array(["", "a", "\u00e9\u4e16", "efgh" * 30, "x"], dtype=object))
    zarr.consolidate_metadata(root)


def check(root):
    g = zarr.open_group(root, mode="r")
    assert g.metadata.consolidated_metadata is not None
    for name, how in FORMS.items():
        want = data(how["dtype"])
        want[4, 3] = want[3, 3]
        want[5:] = how.get("fill_value", 0)
        want[6, 4] = want[1, 1]
        got = g[name][...]
        nan = want.dtype.kind == "f"
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=nan), (name, got)
        attrs = g[name].attrs.asdict()
        assert attrs == {"keep": 2 ** 60 + 1, "new": "text"}, attrs
    assert list(g["texts"][...]) == ["", "a", "\u00e9\u4e16", "\u4e16" * 50, "x"], g["texts"][...]


{"make": make, "check": check}[sys.argv[1]](sys.argv[2])
