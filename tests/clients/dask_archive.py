# SPDX-License-Identifier: BSD-3-Clause
"""dask_archive.py MANY ONE GROUP...: a Dask cluster of three worker processes reads references with
xarray, without a mount. Each group of MANY is a dataset, which one worker opens; ONE is a single
dataset, of which all workers compute chunks. Prints a JSON object: for both, SHA-256 of the bytes
of every variable, by "GROUP/VARIABLE", and how many processes took part."""
import hashlib
import json
import os
import sys

import dask
import numpy as np
import xarray
from distributed import Client, LocalCluster

WORKERS = 3


def opened(refs, group, chunks=None):
    return xarray.open_dataset(
        "reference://", engine="zarr", group=group, chunks=chunks, decode_cf=False,
        backend_kwargs={"consolidated": False, "storage_options": {"fo": refs}})


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def of_group(refs, group):
    with opened(refs, group) as ds:
        found = {f"{group}/{name}": digest(v.values) for name, v in ds.variables.items()}
    return found, os.getpid()


def of_block(block):
    """Runs in a worker for each chunk: its process id, in the shape of the chunk."""
    return np.full(block.shape, os.getpid())


def archive(client, names, refs, groups):
    tasks = [client.submit(of_group, refs, group, workers=[names[i % len(names)]], pure=False)
             for i, group in enumerate(groups)]
    parts = client.gather(tasks)
    return ({k: v for part, _ in parts for k, v in part.items()}, len({pid for _, pid in parts}))


def one(refs):
    found, pids = {}, set()
    with opened(refs, None, chunks={}) as ds:
        for name, v in ds.variables.items():
            found["/" + name] = digest(v.data.compute() if v.chunks else v.values)
            if v.chunks and v.data.npartitions > 2 * WORKERS:
                ids = v.data.map_blocks(of_block, dtype="i8").compute()
                pids |= set(np.unique(ids).tolist())
    return found, len(pids)


def main():
    many, single, *groups = sys.argv[1:]
    dask.config.set({"distributed.worker.daemon": False})
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True,
                      dashboard_address=None) as cluster, Client(cluster) as client:
        names = sorted(client.scheduler_info()["workers"])
        print(json.dumps({"many": archive(client, names, many, groups), "one": one(single)}))


if __name__ == "__main__":
    main()
