# SPDX-License-Identifier: BSD-3-Clause
"""Write an array with zarr-python 2 and say how long it took, until all of it is in the
store's file:

    writer.py DIR MIB CHAIN [SYNC]

CHAIN: none or zlib (level 1, behind shuffle). Chunks of 1 MiB of float32, written by one call each.
SYNC: a directory to be synced at the end, for a mount: everything is in the dataset then."""
import json
import os
import sys
import time

import numcodecs
import numpy as np
import zarr

root, mib, chain = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(7)
# smooth values, as measured fields are: shuffle and deflate halve them
data = [(np.cumsum(rng.standard_normal(1 << 18)) * 0.01).astype("<f4").round(2) for _ in range(8)]
compressor, filters = {"none": (None, None),
                       "zlib": (numcodecs.Zlib(1), [numcodecs.Shuffle(4)])}[chain]
start = time.perf_counter()
a = zarr.open_group(root, mode="a").create_dataset(
    "v", shape=(mib << 18,), chunks=(1 << 18,), dtype="<f4", compressor=compressor, filters=filters,
    fill_value=None)
for i in range(mib):
    a[i << 18:(i + 1) << 18] = data[i % 8]
written = time.perf_counter()
for folder in sys.argv[4:]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
print(json.dumps({"seconds": time.perf_counter() - start, "written": written - start}))
