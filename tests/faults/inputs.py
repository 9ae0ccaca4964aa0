# SPDX-License-Identifier: BSD-3-Clause
"""inputs.py FOLDER [NCZARRFS]: what the scenes of tests/faults/scene_table.c are about: every
format, as small as it can be and still has everything in it, so that each call can be failed."""
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

import h5py  # noqa: E402
import netCDF4  # noqa: E402
import numcodecs  # noqa: E402
import numpy as np  # noqa: E402
import zarr  # noqa: E402
from h5py import h5d, h5p, h5s, h5t  # noqa: E402

from gen import classic, z_codecs, z_nczarr, z_three  # noqa: E402
from gen.trees import archive, ramp  # noqa: E402
from lib import h5_chunks  # noqa: E402


def netcdf(path):
    with netCDF4.Dataset(path, "w") as d:
        d.title = "faults"
        d.numbers = np.arange(3, dtype="i2")
        d.createDimension("time", None)
        d.createDimension("x", 5)
        v = d.createVariable("t", "f4", ("time", "x"), zlib=True, chunksizes=(2, 5),
                             fill_value=-1)
        v.units = "K"
        v[:] = np.arange(20, dtype="f4").reshape(4, 5)
        d.createVariable("x", "i4", ("x",))[:] = np.arange(5)
        d.createVariable("raw", "i8", ("x",), chunksizes=(2,))[:] = np.arange(5) * 3
        g = d.createGroup("g")
        g.createVariable("holes", "i2", ("time",), chunksizes=(2,), fill_value=7)[2:4] = 1
        g.createVariable("s", str, ("x",))[:] = np.array(list("abcde"), dtype=object)


def filters(path):
    a = (np.arange(48) % 11).astype("i4").reshape(6, 8)
    with h5py.File(path, "w") as f:
        f.create_dataset("gz", data=a, chunks=(3, 8), compression="gzip", shuffle=True,
                         fletcher32=True)
        f.create_dataset("szip", data=a, chunks=(3, 8), compression="szip")
        f.create_dataset("lzf", data=a, chunks=(3, 8), compression="lzf")
        f.create_dataset("scale", data=a, chunks=(3, 8), scaleoffset=0)
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((3, 8))
        p.set_nbit() if hasattr(p, "set_nbit") else None
        t = h5t.STD_I32LE.copy()
        t.set_precision(12)
        d = h5d.create(f.id, b"nbit", t, h5s.create_simple((6, 8)), p)
        d.write(h5s.ALL, h5s.ALL, a)
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_layout(h5d.COMPACT)
        h5d.create(f.id, b"compact", h5t.STD_I32LE, h5s.create_simple((6, 8)), p).write(
            h5s.ALL, h5s.ALL, a)


def indexes(path, libver):
    data = ramp((7, 6), "i4")
    with h5py.File(path, "w", libver=libver) as f:
        for tag, more in (("", {}), ("_z", {"compression": "gzip"})):
            f.create_dataset("single" + tag, data=data, chunks=(7, 6), **more)
            f.create_dataset("fixed" + tag, data=data, chunks=(4, 3), **more)
            f.create_dataset("ext" + tag, data=data, chunks=(2, 3), maxshape=(None, 6), **more)
            f.create_dataset("tree" + tag, data=data, chunks=(4, 3), maxshape=(None, None), **more)
            d = f.create_dataset("sparse" + tag, shape=(50, 30), dtype="f4", chunks=(7, 9),
                                 maxshape=(None, None), **more)
            d[40:47, 10:12] = 5
        f.create_dataset("many", data=np.arange(300, dtype="i2"), chunks=(8,), maxshape=(None,))
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((4, 3))
        p.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        h5d.create(f.id, b"implicit", h5t.STD_I32LE, h5s.create_simple((7, 6)), p).write(
            h5s.ALL, h5s.ALL, data)


def texts_h5(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("s", data=["a", "bc", "", "\u00fcber"], dtype=h5py.string_dtype())
        f.create_dataset("fixed", data=np.array([b"abc", b"d"], "S5"))
        d = f.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("i4"))
        for i in range(3):
            d[i] = np.arange(i)
        f.create_dataset("rec", data=np.array([(1, 2.0)], [("a", "i2"), ("b", "f8")]))
        f["s"].attrs["list"] = ["x", "yy"]
        f["link"] = h5py.SoftLink("/s")


def v2(path, more=0):
    g = zarr.open_group(path, mode="w")
    g.attrs["title"] = "faults"
    a = g.create_dataset("t", data=ramp((4, 5)), chunks=(2, 5), compressor=zarr.Zlib(3))
    a.attrs.update({"_ARRAY_DIMENSIONS": ["time", "x"], "units": "K"})
    a = g.create_dataset("x", data=np.arange(5, dtype="<i4"), chunks=(3,), compressor=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    a = g.require_group("g").create_dataset("holes", shape=(6, 4), chunks=(2, 2), dtype=">f8",
                                            fill_value=-1, compressor=numcodecs.Zstd(1),
                                            dimension_separator="/")
    a[2:4] = 5


def codecs(path):
    z_codecs.write(path, (4, 6), (2, 6))


def texts_v2(path):
    g = zarr.open_group(path, mode="w")
    g.create_dataset("s", data=np.array(["a", "bc", "", "d"], dtype=object), chunks=(2,),
                     dtype=object, object_codec=numcodecs.VLenUTF8())
    g.create_dataset("u", data=np.array(["a", "bc"], "<U3"), chunks=(1,))
    g.create_dataset("r", data=np.array([(1, 2.0)], [("a", "<i2"), ("b", "<f8")]))
    d = g.create_dataset("ragged", shape=(3,), chunks=(2,), dtype=object,
                         object_codec=numcodecs.VLenArray("<i4"))
    for i in range(3):
        d[i] = np.arange(i, dtype="<i4")


def refs(folder, binary):
    """Both kinds of references, to a.nc and b.nc (parquet: by a copy)."""
    nc = os.path.join(folder, "a.nc")
    subprocess.run([binary, "refs", "-o", "inline", nc, os.path.join(folder, "refs.json")],
                   check=True)
    subprocess.run([binary, "refs", "-o", "inline", nc, os.path.join(folder, "refs.parq")],
                   check=True)


def plugin(path):
    """A filter that no library here has but by a plugin of the tests."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(12, dtype="i4"), chunks=(6,))


class Steps:
    def __init__(self, folder, name):
        self.folder = os.path.join(folder, name + ".steps")
        os.makedirs(self.folder)
        self.lines = []

    def add(self, op, key="-", data=None):
        if data is None:
            self.lines.append(f"{op} {key}")
        else:
            file = f"d{len(self.lines)}"
            with open(os.path.join(self.folder, file), "wb") as f:
                f.write(data if isinstance(data, bytes) else json.dumps(data).encode())
            self.lines.append(f"{op} {key} {file}")

    def close(self):
        with open(os.path.join(self.folder, "steps"), "w") as f:
            f.write("\n".join(self.lines) + "\n")


def zarray(shape, chunks, dtype, compressor):
    return {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "order": "C",
            "compressor": compressor, "filters": None, "fill_value": 0}


def write_hdf5(folder):
    netcdf(os.path.join(folder, "w.nc"))
    s = Steps(folder, "w.nc")
    s.add("put", "t/0.0", zlib.compress((np.arange(10) * 7).astype("<f4").tobytes()))
    s.add("move", "raw/1", np.array([77, 78], "<i8").tobytes())
    s.add("sync")
    s.add("move", "t/.zattrs", {"_ARRAY_DIMENSIONS": ["time", "x"], "units": "degC",
                                "_FillValue": -1, "note": "longer than it was"})
    s.add("mkdir", "n")
    s.add("put", "n/.zattrs", {"_ARRAY_DIMENSIONS": ["y", "x"], "count": 3})
    s.add("put", "n/.zarray", zarray([4, 5], [2, 5], "<i2", {"id": "zlib", "level": 3}))
    s.add("put", "n/0.0", zlib.compress(np.arange(10, dtype="<i2").tobytes()))
    s.add("unlink", "x/0")
    s.add("put", ".zattrs", {"title": "after", "numbers": [1, 2, 3]})
    s.add("sync")
    s.close()


def create_hdf5(folder):
    s = Steps(folder, "new.nc")
    s.add("put", ".zgroup", {"zarr_format": 2})
    s.add("mkdir", "n")
    s.add("put", "n/.zarray", zarray([4, 5], [2, 5], "<i2", {"id": "zlib", "level": 3}))
    s.add("put", "n/.zattrs", {"_ARRAY_DIMENSIONS": ["y", "x"], "count": 3})
    s.add("put", "n/0.0", zlib.compress(np.arange(10, dtype="<i2").tobytes()))
    s.add("put", "n/1.0", zlib.compress(np.arange(10, dtype="<i2").tobytes()))
    s.close()


def pages(old, new):
    """What differs, as records of offset, length, bytes."""
    out, at = b"", 0
    while at < len(new):
        end = min(len(new), at + 512)
        if old[at:end] != new[at:end]:
            out += struct.pack("<QQ", at, end - at) + new[at:end]
        at = end
    return out


def edit(path):
    with netCDF4.Dataset(path, "a") as d:
        d.set_auto_mask(False)
        d["t"][1:3, 3] = -1.5
        d["t"].units = "degC"
        d.createDimension("y", 2)
        d.createVariable("n", "i2", ("y", "x"), zlib=True, chunksizes=(1, 5))[:] = 4
        d.title = "after"


def write_store(folder, name, binary, make):
    """The virtual file of a store as it is, and as a program leaves it."""
    store = os.path.join(folder, name)
    make(store)
    mnt = store + ".mnt"
    os.mkdir(mnt)
    subprocess.run([binary, store, mnt], check=True)
    try:
        file = os.listdir(mnt)[0]
        with open(os.path.join(mnt, file), "rb") as f:
            old = f.read()
    finally:
        subprocess.run(["fusermount3", "-u", mnt], check=True)
        os.rmdir(mnt)
    copy = os.path.join(folder, name + ".copy.nc")
    with open(copy, "wb") as f:
        f.write(old)
    subprocess.run([sys.executable, os.path.abspath(__file__), "--edit", copy], check=True)
    with open(copy, "rb") as f:
        new = f.read()
    os.unlink(copy)
    s = Steps(folder, name)
    s.add("put", file, new)
    s.close()


def v3_small(path):
    z_three.group3(path, {"title": "faults"})
    z_three.array3(path, "t", ramp((4, 5), "<i4"), (2, 5), [z_three.BYTES] if hasattr(
        z_three, "BYTES") else [{"name": "bytes", "configuration": {"endian": "little"}}],
        z_three.raw, dims=["time", "x"])


def main(folder, binary):
    def at(name):
        return os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    netcdf(at("a.nc"))
    filters(at("filters.h5"))
    indexes(at("indexes.h5"), "latest")
    indexes(at("indexes_old.h5"), "earliest")
    texts_h5(at("texts.h5"))
    classic.mixed(2, records=5).write(at("classic.nc"))
    make = os.path.join(os.path.dirname(binary), "tests", "hdf4_make")
    subprocess.run([make, "chunks", at("chunks.hdf")])
    v2(at("v2.zarr"))
    v2(at("consolidated.zarr"))
    zarr.consolidate_metadata(at("consolidated.zarr"))
    codecs(at("codecs.zarr"))
    texts_v2(at("texts.zarr"))
    z_three.v3_codecs.__wrapped__(at("v3.zarr")) if hasattr(
        z_three.v3_codecs, "__wrapped__") else z_three.v3_codecs(at("v3.zarr"))
    z_three.v3_shards(at("shards.zarr"))
    z_nczarr.nczarr_493(at("nczarr.zarr"))
    archive(at("v2.zarr"), at("a.zarr.zip"))
    archive(at("v2.zarr"), at("deflated.zarr.zip"), method=zipfile.ZIP_DEFLATED)
    os.mkdir(at("mirrored"))
    shutil.copy(at("a.nc"), at("mirrored/a.nc"))
    shutil.copytree(at("v2.zarr"), at("mirrored/b.zarr"))
    with open(at("mirrored/note.txt"), "w") as f:
        f.write("text\n")
    os.mkdir(at("mirrored/deep"))
    shutil.copy(at("classic.nc"), at("mirrored/deep/c.nc"))
    refs(folder, binary)
    plugin(at("plugin.h5"))
    write_hdf5(folder)
    create_hdf5(folder)
    write_store(folder, "w.zarr", binary, v2)
    write_store(folder, "w3.zarr", binary, v3_small)


if __name__ == "__main__":
    if sys.argv[1] == "--edit":
        edit(sys.argv[2])
    else:
        main(os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]))
