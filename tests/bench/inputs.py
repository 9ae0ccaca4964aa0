# SPDX-License-Identifier: BSD-3-Clause
"""The files that `make bench` measures with, written once below build/bench/in.

Every uncompressed chunk starts with its number (8 bytes) and a mark (16 bytes), so that the
byte ranges for the bare server are found by searching the file: no library's word is needed."""
import json
import mmap
import os
import struct

import numpy as np

MARK = bytes.fromhex("6e637a6172726673206d61726b206f6b")
MIB = 1 << 20


def raw_chunks(path, count, size):
    """count chunks of size bytes of float32 in one dataset 'v', no filters."""
    import h5py

    rng = np.random.default_rng(7)
    noise = rng.standard_normal(max(4 * size, 4 * MIB) // 4).astype("<f4").tobytes()
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", (count * size // 4,), "<f4", chunks=(size // 4,))
        for i in range(count):
            at = (i * 4096) % (len(noise) - size)
            data = struct.pack("<Q", i) + MARK + noise[at + 24:at + size]
            d.id.write_direct_chunk((i * (size // 4),), data)


def ranges(path, size, count, out):
    """Write 'offset length' of each marked chunk of path to out, in the chunks' order."""
    found = [None] * count
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        at = m.find(MARK)
        while at >= 0:
            found[struct.unpack("<Q", m[at - 8:at])[0]] = at - 8
            at = m.find(MARK, at - 8 + size)
    if None in found:
        raise SystemExit(f"bench: {path}: chunk {found.index(None)} not found")
    with open(out, "w") as f:
        f.writelines(f"{o} {size}\n" for o in found)


def native_raw(path, size, count, out):
    """The first count chunks as files of a native Zarr array, and its .zarray."""
    os.makedirs(out)
    with open(path, "rb") as f, open(path + ".ranges") as r:
        for i in range(count):
            f.seek(int(r.readline().split()[0]))
            with open(f"{out}/{i}", "wb") as g:
                g.write(f.read(size))
    with open(f"{out}/.zarray", "w") as g:
        json.dump(zarray(size, count), g)


def zarray(size, count):
    return {"zarr_format": 2, "shape": [count * size // 4], "chunks": [size // 4],
            "dtype": "<f4", "compressor": None, "filters": None, "fill_value": 0.0,
            "order": "C"}


def field(rng, n):
    """A smooth field with noise, as kept by a model that drops meaningless bits."""
    coarse = rng.standard_normal((9, 9)) * 8
    at = np.linspace(0, 8, n)
    rows = np.array([np.interp(at, np.arange(9), r) for r in coarse])
    smooth = np.array([np.interp(at, np.arange(9), c) for c in rows.T]).T
    x = 280 + smooth + rng.standard_normal((n, n)) * 0.5
    return (np.round(x * 256) / 256).astype("f4")


def deflate(path, mb):
    """mb chunks of 1 MiB (1 x 512 x 512), shuffle and deflate, as netCDF4-python writes them."""
    import netCDF4

    rng = np.random.default_rng(11)
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("y", 512)
        f.createDimension("x", 512)
        v = f.createVariable("v", "f4", ("time", "y", "x"), zlib=True, complevel=4,
                             shuffle=True, chunksizes=(1, 512, 512))
        v.units = "K"
        v.long_name = "air temperature"
        for t in range(mb):
            v[t] = field(rng, 512)


def classic_values(i, size):
    """size bytes of big-endian 32-bit numbers that start with a number and the mark."""
    data = struct.pack("<Q", i) + MARK
    return np.frombuffer(data + b"\x5a" * (size - len(data)), ">i4")


def classic_fixed(path, count, size):
    """One variable 'v' without records, in a CDF-2 file: all values in one piece."""
    import netCDF4

    n = size // 4
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.set_fill_off()
        f.createDimension("x", count * n)
        v = f.createVariable("v", "i4", ("x",))
        for i in range(count):
            v[i * n:(i + 1) * n] = classic_values(i, size)


def classic_records(path, count, size):
    """A variable 'v' of count records, and a small one between them, in a CDF-2 file."""
    import netCDF4

    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.set_fill_off()
        f.createDimension("time", None)
        f.createDimension("x", size // 4)
        t = f.createVariable("time", "f8", ("time",))
        v = f.createVariable("v", "i4", ("time", "x"))
        for i in range(count):
            v[i] = classic_values(i, size)
            t[i] = i


def variables(path, count):
    import netCDF4

    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("x", 20)
        for i in range(count):
            v = f.createVariable(f"var_{i:04d}", "f4", ("time", "x"), zlib=True,
                                 fill_value=-999.0)
            v.units = "K"
            v.long_name = f"variable number {i}"
            v.valid_range = np.array([-10, 10], "f4")
            v[0:3] = float(i)


def groups(path, count, each):
    """Groups with three coordinates and `each` variables, with the attributes of real files."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as f:
        f.Conventions = "CF-1.10"
        for k in range(count):
            g = f.createGroup(f"group_{k:02d}")
            g.title = f"group number {k}"
            for name, n, units in (("time", None, "hours since 2000-01-01"),
                                   ("lat", 12, "degrees_north"), ("lon", 16, "degrees_east")):
                g.createDimension(name, n)
                v = g.createVariable(name, "f8", (name,))
                v.units = units
                v.standard_name = name
                v[:] = np.arange(n or 4)
            for i in range(each):
                v = g.createVariable(f"var_{i:02d}", "f4", ("time", "lat", "lon"), zlib=True,
                                     fill_value=-999.0)
                v.units = "K"
                v.long_name = f"variable number {i} of group {k}"
                v.cell_methods = "time: mean"
                v.valid_range = np.array([-10, 10], "f4")
                v[0:4] = float(i)


def many(path, counts):
    """Datasets v0, v1 ... of counts[i] chunks of 8 bytes: all index, no data."""
    import h5py

    with h5py.File(path, "w") as f:
        for k, count in enumerate(counts):
            d = f.create_dataset(f"v{k}", (count,), "<f8", chunks=(1,))
            write = d.id.write_direct_chunk
            for i in range(count):
                write((i,), b"nczarrfs")


def make(directory, name, writer, *args):
    """Write directory/name once: under another name first, so that a stop leaves nothing."""
    path = f"{directory}/{name}"
    if not os.path.exists(path):
        print(f"bench: writing {path}", flush=True)
        writer(path + ".part", *args)
        os.rename(path + ".part", path)
    return path
