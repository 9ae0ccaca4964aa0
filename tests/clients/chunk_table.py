# SPDX-License-Identifier: BSD-3-Clause
"""chunk_table.py: decodes rows of a table of chunks (nczarrfs refs --table), as a program on Spark
does, with numcodecs alone. docs/how-to/dask-and-spark.md has the same function."""
import json

import numcodecs
import numpy as np


def fetch(row):
    if row["data"] is not None:
        return row["data"]
    with open(row["url"], "rb") as f:
        f.seek(row["offset"] or 0)
        return f.read(-1 if row["length"] is None else row["length"])


def decode(row):
    """The elements of a chunk, and where they are in the variable."""
    meta = json.loads(row["zarray"])
    data = fetch(row)
    codecs = [*(meta["filters"] or []), *([meta["compressor"]] if meta["compressor"] else [])]
    for codec in reversed(codecs):
        data = numcodecs.get_codec(codec).decode(data)
    dtype = np.dtype(meta["dtype"])
    chunk = np.frombuffer(data, dtype).reshape(meta["chunks"], order=meta["order"])
    index = [int(i) for i in row["chunk"].replace("/", ".").split(".")] if meta["shape"] else []
    at = tuple(slice(i * c, min((i + 1) * c, n))
               for i, c, n in zip(index, meta["chunks"], meta["shape"]))
    return chunk[tuple(slice(s.stop - s.start) for s in at)], at


def variables(rows):
    """{(dataset, variable): array} of all rows; chunks without a row have the fill value."""
    found = {}
    for row in rows:
        meta = json.loads(row["zarray"])
        key = row["dataset"], row["variable"]
        if key not in found:
            fill = 0 if meta["fill_value"] is None else meta["fill_value"]
            found[key] = np.full(meta["shape"], fill, meta["dtype"])
        values, at = decode(row)
        found[key][at] = values
    return found
