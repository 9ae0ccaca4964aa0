# SPDX-License-Identifier: BSD-3-Clause
"""What is odd about stored chunks, but right."""
import zlib

from gen.trees import array, group, ramp, tree


@tree()
def quoted_numbers(path):
    """Codec parameters as netCDF-C 4.9 writes them, as texts, and an elementsize of 0."""
    import numcodecs
    group(path)
    v = ramp((6, 5), "i4")

    def encode(raw):
        return zlib.compress(bytes(numcodecs.Shuffle(4).encode(raw)))
    for name, size in (("a", "0"), ("b", 0), ("c", "4")):
        array(path, name, v, (3, 2), {"_ARRAY_DIMENSIONS": ["y", "x"]}, encode,
              compressor={"id": "zlib", "level": "5"},
              filters=[{"id": "shuffle", "elementsize": size}])


@tree()
def fills_of_writers(path):
    """Fill values as bioformats2raw and others write them: between quotes, or beyond the type."""
    import os
    group(path)
    for name, kind, fill in (("quoted", "i1", "0"), ("spaced", "<i4", " -12 "), ("cut", "<i2", 5.5),
                             ("real", "<f4", "1.5"), ("nan", "<f8", "nan"), ("wraps", "u1", 300)):
        array(path, name, ramp((6,), kind), (2,), {"_ARRAY_DIMENSIONS": ["n"]}, fill_value=fill)
        os.remove(os.path.join(path, name, "1"))


@tree()
def stray_files(path):
    """Files and folders that are no chunks and no documents."""
    import os
    group(path)
    array(path, "v", ramp((6,), "i4"), (2,), {"_ARRAY_DIMENSIONS": ["n"]})
    for key in ("README", "v/notes.txt", "v/00", "v/7", "v/0.0", "v/.hidden", "x/y/z"):
        full = os.path.join(path, key)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write("not a chunk")


@tree()
def linked_chunks(path):
    """Chunks that are symbolic links within the tree."""
    import os
    group(path)
    array(path, "v", ramp((6,), "i4"), (2,), {"_ARRAY_DIMENSIONS": ["n"]})
    os.rename(os.path.join(path, "v/1"), os.path.join(path, "elsewhere"))
    os.symlink("../elsewhere", os.path.join(path, "v/1"))
