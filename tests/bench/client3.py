# SPDX-License-Identifier: BSD-3-Clause
"""zarr-python 3 for `make bench`: reads one array whole and prints a line of JSON. Run by chroot
with the text of this file on standard input: see tests/bench/views3.py.

usage: client3.py PATH"""
import json
import resource
import sys
import time

import zarr

use = resource.getrusage(resource.RUSAGE_SELF)
start = time.perf_counter()
a = zarr.open_array(sys.argv[1], mode="r")
x = a[...]
seconds = time.perf_counter() - start
end = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": seconds, "bytes": int(x.nbytes),
                  "cpu": end.ru_utime + end.ru_stime - use.ru_utime - use.ru_stime,
                  "sum": float(x[::97].astype("f8").sum()), "zarr": zarr.__version__,
                  "chunk": a.chunks[0], "shard": a.shards[0] if a.shards else 0}))
