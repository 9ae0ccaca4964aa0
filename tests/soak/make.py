# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of one generation, of every form that is mounted. A dataset is made beside its place and
moved into it, or changed in other ways by writers.py."""
import json
import os
import shutil
import zlib

import numpy as np

import values
from lib.converted import converted

V = values.Var
# Chunks that the mount passes, decodes itself, has decoded by the library; of one request and of
# several. Numbers of variables are those of all forms.
H5_VARS = [V(0, "z", "z", 16, 20000), V(1, "raw", "raw", 12, 4000), V(2, "so", "so", 6, 5000),
           V(3, "low", "low", 4, 4000), V(4, "lzf", "lzf", 6, 9000), V(5, "f8", "f8", 4, 3000)]
H5_BIG = H5_VARS + [V(6, "big", "z", 3, 300000), V(7, "cont", "cont", 2, 10000)]
H5_SMALL = [V(0, "z", "z", 8, 5000), V(1, "raw", "raw", 8, 4000), V(3, "low", "low", 3, 2000)]
TREE_VARS = [V(0, "z", "zlib", 12, 20000), V(1, "raw", "raw", 12, 4000),
             V(2, "b", "blosc", 8, 10000), V(5, "f8", "f8", 4, 3000)]
TREE_BIG = TREE_VARS + [V(6, "big", "zlib", 3, 300000)]
TREE_SMALL = [V(0, "z", "zlib", 6, 5000), V(1, "raw", "raw", 6, 4000)]


def h5(path, generation, number, variables):
    import h5py
    with h5py.File(path, "w") as f:
        f.attrs["generation"] = np.int32(generation)
        for v in variables:
            data = values.whole(generation, number, v)
            if v.kind == "low":
                converted(f, v.name, data, (1, v.elems))
            elif v.kind == "cont":
                f.create_dataset(v.name, data=data)
            else:
                more = {"z": {"compression": "gzip", "compression_opts": 1, "shuffle": True},
                        "f8": {"compression": "gzip", "compression_opts": 1},
                        "so": {"scaleoffset": 0}, "lzf": {"compression": "lzf"}}.get(v.kind, {})
                f.create_dataset(v.name, data=data, chunks=(1, v.elems), **more)
            f[v.name].attrs["generation"] = np.int32(generation)


def blosc():
    import numcodecs
    return numcodecs.Blosc("lz4", 1, 1)


def encode(v, data):
    if v.kind in ("zlib", "f8"):
        return zlib.compress(data.tobytes(), 1)
    return bytes(blosc().encode(data)) if v.kind == "blosc" else data.tobytes()


def document(v):
    codec = {"zlib": {"id": "zlib", "level": 1}, "f8": {"id": "zlib", "level": 1},
             "blosc": blosc().get_config() if v.kind == "blosc" else None}.get(v.kind)
    return {"zarr_format": 2, "shape": [v.rows, v.elems], "chunks": [1, v.elems],
            "dtype": v.dtype.str, "fill_value": 0, "order": "C", "compressor": codec,
            "filters": None}


def attributes(v, generation):
    return {"_ARRAY_DIMENSIONS": [v.name + "_y", v.name + "_x"], "generation": generation}


def tree_documents(generation, variables):
    """{key: JSON} with consolidated metadata, which remote trees need."""
    docs = {".zgroup": {"zarr_format": 2}, ".zattrs": {"generation": generation}}
    for v in variables:
        docs[v.name + "/.zarray"] = document(v)
        docs[v.name + "/.zattrs"] = attributes(v, generation)
    docs[".zmetadata"] = {"zarr_consolidated_format": 1, "metadata": dict(docs)}
    return {k: json.dumps(d).encode() for k, d in docs.items()}


def tree_chunks(generation, number, variables):
    for v in variables:
        for r in range(v.rows):
            yield f"{v.name}/{r}.0", encode(v, values.chunk(generation, number, v, r))


def replaced(path, data):
    """As careful writers do: a file of its own, moved into its place."""
    with open(path + ".partial", "wb") as f:
        f.write(data)
    os.replace(path + ".partial", path)


def tree(path, generation, number, variables):
    for v in variables:
        os.makedirs(os.path.join(path, v.name), exist_ok=True)
    for key, data in tree_chunks(generation, number, variables):
        replaced(os.path.join(path, key), data)
    for key, data in tree_documents(generation, variables).items():
        replaced(os.path.join(path, key), data)


def archive(path, generation, number, variables):
    from gen import trees
    folder = path + ".d"
    shutil.rmtree(folder, ignore_errors=True)
    tree(folder, generation, number, variables)
    trees.archive(folder, path)
    shutil.rmtree(folder)


MAKERS = {"h5": h5, "tree": tree, "zip": archive}
