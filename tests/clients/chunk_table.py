# SPDX-License-Identifier: BSD-3-Clause
"""chunk_table.py: decodes rows of a table of chunks (nczarrfs refs --table), as a program on Spark
does: with the function of docs/how-to/dask-and-spark.md, as it stands there."""
import functools
import json
import os
import re

import numpy as np

from lib.context import ROOT, Skip

DOC = os.path.join(ROOT, "docs", "how-to", "dask-and-spark.md")


@functools.cache
def documented():
    """The names that the document's code defines: decode, dtype."""
    with open(DOC, encoding="utf-8") as f:
        code, = [b for b in re.findall(r"```python\n(.*?)```", f.read(), re.S) if "def decode" in b]
    names = {}
    try:
        exec(compile(code, DOC, "exec"), names)
    except ImportError as error:
        raise Skip(f"no {error.name} here") from error
    return names


def variables(rows):
    """{(dataset, variable): array} of all rows; chunks without a row have the fill value."""
    found = {}
    for row in rows:
        meta = json.loads(row["zarray"])
        key = row["dataset"], row["variable"]
        if key not in found:
            dtype = documented()["dtype"](meta["dtype"])
            fill = 0 if meta["fill_value"] is None or dtype.names else meta["fill_value"]
            found[key] = np.full(meta["shape"], fill, dtype)
        values, first = documented()["decode"](row)
        found[key][tuple(slice(i, i + n) for i, n in zip(first, values.shape))] = values
    return found
