# SPDX-License-Identifier: BSD-3-Clause
"""dask_refs.py BINARY SOURCE REFS ARRAY FOLDER: a Dask cluster of three worker processes sums an
array three times: each worker through a mount of its own, each by references with fsspec, and as
a Dask array over the references. Prints a JSON object: the sums, and how many processes took
part."""
import json
import os
import subprocess
import sys

import dask
import dask.array
import numpy as np
import zarr
from distributed import Client, LocalCluster

WORKERS = 3


def mount(binary, source, folder):
    mnt = os.path.join(folder, f"worker{os.getpid()}")
    os.mkdir(mnt)
    done = subprocess.run([binary, "-o", "view=zarr", source, mnt], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return mnt


def unmount(folder):
    mnt = os.path.join(folder, f"worker{os.getpid()}")
    subprocess.run(["fusermount3", "-u", mnt], check=True)


def add(array, row, rows):
    return int(np.asarray(array[row:row + rows], dtype="i8").sum())


def by_mount(folder, name, row, rows):
    mnt = os.path.join(folder, f"worker{os.getpid()}")
    return add(zarr.open_group(mnt, mode="r")[name], row, rows), os.getpid()


def by_refs(refs, name, row, rows):
    import fsspec
    fs = fsspec.filesystem("reference", fo=refs)
    return add(zarr.open_group(fs.get_mapper(""), mode="r")[name], row, rows), os.getpid()


def spread(client, names, function, array, *args):
    """function over the rows of an array's chunks, by all workers in turn."""
    rows = array.chunksize[0]
    tasks = [client.submit(function, *args, row, rows, workers=[names[i % len(names)]], pure=False)
             for i, row in enumerate(range(0, array.shape[0], rows))]
    parts = client.gather(tasks)
    return sum(p[0] for p in parts), len({p[1] for p in parts})


def main():
    binary, source, refs, name, folder = sys.argv[1:]
    dask.config.set({"distributed.worker.daemon": False,
                     "temporary-directory": folder})
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True,
                      dashboard_address=None) as cluster, Client(cluster) as client:
        names = sorted(client.run(mount, binary, source, folder))
        try:
            array = dask.array.from_zarr("reference://", component=name,
                                         storage_options={"fo": refs})
            result = {
                "mount": spread(client, names, by_mount, array, folder, name),
                "refs": spread(client, names, by_refs, array, refs, name),
                "array": int(array.astype("i8").sum().compute()),
            }
        finally:
            client.run(unmount, folder)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
