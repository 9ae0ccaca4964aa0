#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""v3_xarray.py JOBS RESULTS: what the xarray beside zarr-python 3 sees in groups of Zarr v3 trees.
Input and output as v3_zarr.py's: {"id", "groups": {path: variables}, "problems"}; a variable: dims,
shape, dtype, sha of its values as they are stored, "decoded" and "as": sha and dtype of those that
xarray decodes (masked, scaled), where they are numbers."""
import json
import os
import sys
import warnings

import numpy as np
import xarray as xr

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import v3_zarr  # noqa: E402

warnings.filterwarnings("ignore")
BYTES = 8 << 20  # variables up to this many bytes are read


def groups(folder):
    """Paths of groups, which have a zarr.json that says so."""
    found = []
    for base, dirs, files in os.walk(folder):
        node = None
        if "zarr.json" in files:
            with open(os.path.join(base, "zarr.json"), encoding="utf-8") as f:
                node = json.load(f)["node_type"]
        if node != "group":
            dirs.clear()
            continue
        path = os.path.relpath(base, folder)
        found.append("/" if path == "." else "/" + path)
    return found


def variables(folder, group):
    out = {}
    with xr.open_zarr(folder, group=group, consolidated=True, chunks=None, mask_and_scale=False,
                      decode_times=False, decode_coords=False) as raw, \
            xr.open_zarr(folder, group=group, chunks=None, decode_times=False) as decoded:
        for name, v in raw.variables.items():
            one = {"dims": list(v.dims), "shape": list(v.shape)}
            if v.nbytes <= BYTES:
                one["dtype"], one["sha"], _ = v3_zarr.digest(np.asarray(v.values))
                values = np.asarray(decoded.variables[name].values)
                if values.dtype.kind in "biuf":
                    one["as"], one["decoded"], _ = v3_zarr.digest(values)
            out[str(name)] = one
    return out


def main(argv):
    with open(argv[1], encoding="utf-8") as f:
        jobs = json.load(f)
    with open(argv[2], "w", encoding="utf-8") as out:
        for job in jobs:
            result = {"id": job["id"], "groups": {}, "problems": []}
            for group in groups(job["path"]):
                try:
                    result["groups"][group] = variables(job["path"], group)
                except Exception as error:  # noqa: B902 - the caller judges
                    result["problems"].append(f"{group}: {type(error).__name__}: {error}"[:300])
            out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv)
