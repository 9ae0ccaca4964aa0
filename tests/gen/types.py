# SPDX-License-Identifier: BSD-3-Clause
"""Element types."""
import h5py
import netCDF4
import numpy as np
from h5py import h5d, h5s, h5t

from gen import feature
from gen.dims import ALL, dataset, ramp

INTS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def edge_values(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, info.max, info.min, info.max - 1], dtype=dtype)
    tiny = np.finfo(dtype)
    return np.array([0.0, -0.0, 1 / 3, tiny.max, tiny.tiny, np.inf, -np.inf, np.nan], dtype=dtype)


def low_dataset(f, name, typeid, data, memory=None):
    """Write raw bytes (a numpy array) as a dataset of any HDF5 type."""
    space = h5s.create_simple(data.shape)
    d = h5d.create(f.id, name.encode(), typeid, space)
    d.write(h5s.ALL, h5s.ALL, data, mtype=memory or typeid)
    return d


@feature(clients=ALL)
def atomic_types(path):
    """All of netCDF's number types, with the ends of their ranges, contiguous and deflated."""
    with dataset(path) as ds:
        ds.createDimension("n", 5)
        ds.createDimension("m", 8)
        for t in INTS:
            ds.createVariable("v_" + t, t, ("n",))[:] = edge_values(t)
            ds.createVariable("z_" + t, t, ("n",), zlib=True)[:] = edge_values(t)
        for t in ("f4", "f8"):
            ds.createVariable("v_" + t, t, ("m",))[:] = edge_values(t)
            ds.createVariable("z_" + t, t, ("m",), zlib=True)[:] = edge_values(t)


@feature(clients=("zarr", "xarray"))
def big_endian(path):
    """Both byte orders side by side, filtered and not, with fill values."""
    with dataset(path) as ds:
        ds.createDimension("n", 40)
        for t in ("i2", "i4", "i8", "u2", "f4", "f8"):
            for e, order in (("big", ">"), ("little", "<")):
                v = ds.createVariable(f"{t}_{e}", order + t, ("n",), endian=e, zlib=t != "i2",
                                      chunksizes=(16,), fill_value=np.array(-9).astype(t))
                v[:30] = ramp((30,), t)


@feature(clients=("zarr",))
def float16(path):
    """Half floats."""
    with h5py.File(path, "w") as f:
        f["le"] = edge_values("f2")
        f.create_dataset("be", data=edge_values("f2").astype(">f2"), chunks=(3,),
                         compression="gzip", shuffle=True)


@feature(clients=("zarr",))
def booleans(path):
    """h5py's bool: an enum of FALSE and TRUE."""
    with h5py.File(path, "w") as f:
        f["b"] = np.array([True, False, True])
        f.create_dataset("z", data=np.arange(20) % 3 == 0, chunks=(8,), compression="gzip")
        f["b"].attrs["flag"] = True
        f["b"].attrs["flags"] = np.array([True, False])
        f["scalar"] = np.bool_(True)


@feature(clients=("zarr",))
def complexes(path):
    """Complex numbers: a compound of r and i."""
    with h5py.File(path, "w") as f:
        f["c8"] = np.array([1 + 2j, -0.5j, np.nan], dtype="c8")
        f["c16"] = np.array([[1 + 2j, 3 - 4j]], dtype="c16")
        f["be"] = np.array([1 + 2j, 5], dtype=">c16")
        f.create_dataset("z", data=np.arange(12).astype("c16"), chunks=(5,), compression="gzip")


@feature(clients=("zarr",))
def enums(path):
    """Enums of several bases and byte orders."""
    with dataset(path) as ds:
        ds.createDimension("n", 4)
        t = ds.createEnumType(np.uint8, "cloud_t", {"Clear": 0, "Cumulus": 2, "Missing": 255})
        v = ds.createVariable("cloud", t, ("n",), fill_value=255)
        v[:3] = np.array([0, 2, 2], "u1")
        w = ds.createEnumType(np.int64, "wide_t", {"neg": -5, "big": 1 << 40})
        ds.createVariable("wide", w, ("n",))[:] = np.array([-5, 1 << 40, -5, -5])
    with h5py.File(path, "a") as f:
        f["be"] = np.array([1, 2, 1], dtype=h5py.enum_dtype({"A": 1, "B": 2}, basetype=">i2"))


@feature(clients=("zarr",))
def opaque(path):
    """Opaque types of several sizes."""
    with h5py.File(path, "w") as f:
        for size in (1, 5, 16):
            t = h5t.create(h5t.OPAQUE, size)
            t.set_tag(b"raw")
            low_dataset(f, f"o{size}", t, np.frombuffer(bytes(range(size * 3)), f"V{size}"))


@feature(clients=("zarr",))
def compounds(path):
    """Packed, padded, nested compounds, array members, both byte orders in one."""
    with h5py.File(path, "w") as f:
        packed = np.dtype([("a", "<i2"), ("b", "<f8"), ("c", "S3")])
        f["packed"] = np.array([(1, 0.5, b"xy"), (-2, np.inf, b"")], dtype=packed)
        padded = np.dtype({"names": ["a", "b"], "formats": ["<i1", "<f8"],
                           "offsets": [0, 8], "itemsize": 24})
        data = np.zeros(5, dtype=padded)
        data["a"], data["b"] = np.arange(5), np.arange(5) / 3
        f["padded"] = data
        f.create_dataset("padded_z", data=data, chunks=(2,), compression="gzip", shuffle=True)
        inner = np.dtype([("x", ">i4"), ("y", "<f4")])
        nested = np.dtype([("id", "u1"), ("p", inner), ("m", "<i2", (2, 3)), ("e", ">f8")])
        n = np.zeros((2, 2), dtype=nested)
        n["id"] = [[1, 2], [3, 4]]
        n["p"]["x"] = 1 << 20
        n["m"] = np.arange(24).reshape(2, 2, 2, 3)
        n["e"] = np.pi
        f["nested"] = n
        f.create_dataset("nested_z", data=n, chunks=(1, 2), compression="gzip")


@feature(clients=("zarr",))
def netcdf_compound(path):
    """A compound as netCDF-C writes it, with a char array inside and a fill value."""
    with dataset(path) as ds:
        ds.createDimension("n", 3)
        t = np.dtype([("lat", "f4"), ("n", "i2"), ("v", "f8", (3,))], align=True)
        ct = ds.createCompoundType(t, "obs_t")
        v = ds.createVariable("obs", ct, ("n",))
        data = np.zeros(3, t)
        data["lat"], data["n"], data["v"] = [1, 2, 3], [4, 5, 6], ramp((3, 3), "f8")
        v[:] = data


@feature(clients=("zarr",))
def array_type(path):
    """Elements that are arrays themselves."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", shape=(4,), dtype=np.dtype(("<i4", (2, 3))))
        f["v"][:] = ramp((4, 2, 3), "i4")
        f.create_dataset("z", shape=(4, 2), dtype=np.dtype((">f8", (3,))), chunks=(3, 2),
                         compression="gzip")
        f["z"][:] = ramp((4, 2, 3), "f8")


@feature(clients=("zarr",))
def vlens(path):
    """Lists of numbers of any length, empty ones, in several chunks."""
    with dataset(path) as ds:
        ds.createDimension("n", 5)
        t = ds.createVLType(np.float32, "list_t")
        v = ds.createVariable("v", t, ("n",), chunksizes=(2,))
        for i in range(4):
            v[i] = np.arange(i, dtype="f4")
    with h5py.File(path, "a") as f:
        d = f.create_dataset("be", shape=(2, 2), dtype=h5py.vlen_dtype(np.dtype(">i4")))
        d[0, 0] = [1, 2, 3]
        d[1, 1] = [1 << 30]
        f["scalar"] = 1


@feature(clients=("zarr",))
def vlen_strings_nested(path):
    """A vlen of strings has no Zarr form: left out, with a note, the rest is served."""
    with h5py.File(path, "w") as f:
        f.create_dataset("odd", shape=(2,), dtype=h5py.vlen_dtype(h5py.string_dtype()))
        f["ok"] = ramp((3,))


@feature(clients=("zarr",))
def references(path):
    """References have no Zarr form: left out, with a note, the rest is served."""
    with h5py.File(path, "w") as f:
        f["ok"] = ramp((3,))
        f.create_dataset("ref", data=np.array([f["ok"].ref], dtype=h5py.ref_dtype))
        f.create_dataset("region", data=np.array([f["ok"].regionref[0:2]],
                                                 dtype=h5py.regionref_dtype))
        f["ok"].attrs["points_to"] = f["ok"].ref


@feature(clients=("zarr",))
def odd_numbers(path):
    """Number types that numpy has not: long double, 3-byte integers, partial precision,
    bit fields. Presented by conversion, or left out with a note."""
    with h5py.File(path, "w") as f:
        f["ok"] = ramp((3,))
        f["longdouble"] = np.array([1.5, -2.25, 1e300], dtype="longdouble")
        three = h5t.STD_I32LE.copy()
        three.set_precision(24)
        three.set_size(3)
        low_dataset(f, "i24", three, np.array([1, -2, 70000], "<i4"), h5t.STD_I32LE)
        part = h5t.STD_U32BE.copy()
        part.set_precision(12)
        low_dataset(f, "u12", part, np.array([1, 4095, 7], "<u4"), h5t.STD_U32LE)
        low_dataset(f, "bits", h5t.STD_B16LE, np.array([1, 0xffff], "<u2"))


@feature(clients=("zarr",))
def named_types(path):
    """A committed type in a group is no array."""
    with h5py.File(path, "w") as f:
        f["mytype"] = np.dtype("f8")
        f.create_dataset("v", shape=(3,), dtype=f["mytype"], data=[1, 2, 3])


@feature(clients=("zarr", "xarray"))
def char_arrays(path):
    """netCDF's char: text of one byte an element, with NULs inside."""
    with dataset(path) as ds:
        ds.createDimension("n", 3)
        ds.createDimension("len", 6)
        v = ds.createVariable("names", "S1", ("n", "len"))
        v[:] = netCDF4.stringtochar(np.array([b"abc", b"defghi", b""], "S6"))
        ds.createVariable("c", "S1", ("n",), zlib=True)[:] = np.array([b"a", b"", b"\xe9"], "S1")


@feature(clients=("zarr",))
def null_dataspace(path):
    """A dataset without a dataspace (h5py.Empty)."""
    with h5py.File(path, "w") as f:
        f["nothing"] = h5py.Empty("f4")
        f["ok"] = ramp((3,))
        f["ok"].attrs["nothing"] = h5py.Empty("i4")
        f["ok"].attrs["notext"] = h5py.Empty("S4")


@feature(clients=("zarr",))
def nan_payloads(path):
    """NaNs keep their payload and sign."""
    bits = np.array([0x7fc00001, 0xffc12345, 0x7f800001, 0x7fc00000], "u4")
    with h5py.File(path, "w") as f:
        f["v"] = bits.view("f4")
        f.create_dataset("z", data=bits.view("f4"), chunks=(3,), compression="gzip", shuffle=True)
        f["d"] = np.array([0x7ff8000000000123, 0xfff0000000000001], "u8").view("f8")
