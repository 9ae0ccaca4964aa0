# SPDX-License-Identifier: BSD-3-Clause
"""Fill values and chunks that were never written."""
import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from gen import feature
from gen.dims import dataset, ramp


@feature(clients=("zarr", "xarray"))
def fill_values(path):
    """Set, default, and NOFILL, in every number type, with chunks that were never written."""
    with dataset(path) as ds:
        ds.createDimension("n", 20)
        for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
            v = ds.createVariable("set_" + t, t, ("n",), chunksizes=(6,), zlib=True,
                                  fill_value=np.dtype(t).type(99))
            v[:7] = ramp((7,), t)
            v = ds.createVariable("default_" + t, t, ("n",), chunksizes=(6,))
            v[7:9] = ramp((2,), t)
        v = ds.createVariable("nofill", "i4", ("n",), chunksizes=(5,), fill_value=False)
        v[:] = ramp((20,))


@feature(clients=("zarr", "xarray"))
def fill_extremes(path):
    """Fill values that JSON finds hard: NaN, infinities, 2^64 - 1, 0.1 as a float."""
    with dataset(path) as ds:
        ds.createDimension("n", 6)
        for name, t, fill in (("nan", "f4", np.nan), ("inf", "f8", np.inf),
                              ("minf", "f4", -np.inf), ("tenth", "f4", np.float32(0.1)),
                              ("big", "u8", np.uint64(2**64 - 1)),
                              ("low", "i8", np.int64(-2**63)), ("e30", "f8", 1e30),
                              ("zero", "f8", -0.0)):
            v = ds.createVariable(name, t, ("n",), chunksizes=(2,), fill_value=fill)
            v[1:2] = 1
        v = ds.createVariable("char", "S1", ("n",), chunksizes=(2,), fill_value=b"x")
        v[0] = b"a"


@feature(clients=("zarr", "xarray"))
def missing_chunks(path):
    """Chunks never written: absent files with a declared fill value, filled files without."""
    with dataset(path) as ds:
        ds.createDimension("y", 10)
        ds.createDimension("x", 10)
        for name, more in (("declared", {"fill_value": -1}), ("default", {}),
                           ("deflated", {"zlib": True, "fill_value": -2})):
            v = ds.createVariable(name, "i4", ("y", "x"), chunksizes=(4, 4), **more)
            v[4:8, 0:4] = ramp((4, 4))
            v[9, 9] = 5
        ds.createVariable("nothing", "f4", ("y",), chunksizes=(3,), zlib=True)


@feature(clients=("zarr", "xarray"))
def hdf5_implicit_zero(path):
    """Plain HDF5: the implicit 0 must not become a fill value, xarray would mask zeros."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", shape=(10,), dtype="i4", chunks=(4,))[0:3] = [0, 1, 0]
        f.create_dataset("given", shape=(10,), dtype="f4", chunks=(4,), fillvalue=7.5)[0] = 1
        f.create_dataset("contiguous", shape=(5,), dtype="f8")
        f["v"].make_scale("v")


@feature(clients=("zarr",))
def fill_undefined(path):
    """A dataset whose fill value is undefined, and one that is filled at allocation."""
    with h5py.File(path, "w") as f:
        for name, when in (("never", h5d.FILL_TIME_NEVER), ("alloc", h5d.FILL_TIME_ALLOC)):
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_chunk((4,))
            p.set_fill_time(when)
            d = h5d.create(f.id, name.encode(), h5t.STD_I32LE, h5s.create_simple((10,)), p)
            d.write(h5s.ALL, h5s.ALL, np.arange(10, dtype="i4"))


@feature(clients=("zarr",))
def fill_attribute_differs(path):
    """_FillValue that is not HDF5's fill value, or of another type: not to be declared."""
    with h5py.File(path, "w") as f:
        d = f.create_dataset("differs", shape=(8,), dtype="i4", chunks=(3,), fillvalue=5)
        d.attrs["_FillValue"] = np.array([-1], "i4")
        d[0] = 1
        d = f.create_dataset("other_type", shape=(8,), dtype="i4", chunks=(3,))
        d.attrs["_FillValue"] = np.array([0.0], "f8")
        d[0] = 1
        d = f.create_dataset("text", shape=(8,), dtype="f4", chunks=(3,))
        d.attrs["_FillValue"] = "none"
        d = f.create_dataset("empty", shape=(8,), dtype="f4", chunks=(3,))
        d.attrs["_FillValue"] = h5py.Empty("f4")


@feature(clients=("zarr",))
def compound_fill(path):
    """A compound with a fill value and chunks never written."""
    t = np.dtype([("a", "<i2"), ("b", ">f8")])
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", shape=(9,), dtype=t, chunks=(2,),
                             fillvalue=np.array((7, 0.5), dtype=t))
        d[0] = (1, 2)
        d = f.create_dataset("opaque", shape=(5,), dtype="V4", chunks=(2,))
        d[0] = np.void(b"abcd")
