# SPDX-License-Identifier: BSD-3-Clause
"""Strings: as data, fixed and of any length, good and bad encodings."""
import h5py
import numpy as np
from h5py import h5d, h5s, h5t

from gen import feature
from gen.dims import dataset

WORDS = ["", "a", "héllo wörld", "日本語", "x" * 300, "tab\tnewline\n", "\"quoted\\\"", "🎈"]


@feature(clients=("zarr", "xarray"))
def vl_strings(path):
    """NC_STRING variables: empty, non-ASCII, long, control characters."""
    with dataset(path) as ds:
        ds.createDimension("n", len(WORDS))
        ds.createDimension("m", 3)
        ds.createVariable("s", str, ("n",))[:] = np.array(WORDS, object)
        v = ds.createVariable("grid", str, ("m", "n"), chunksizes=(2, 3))
        v[:] = np.array([WORDS, WORDS[::-1], WORDS], object)


@feature(clients=("zarr",))
def vl_strings_unwritten(path):
    """NC_STRING variables with elements and chunks that were never written, which netCDF-C
    itself cannot read from a file that is open for reading only."""
    with dataset(path) as ds:
        ds.createDimension("n", len(WORDS))
        ds.createDimension("m", 3)
        v = ds.createVariable("grid", str, ("m", "n"), chunksizes=(2, 3))
        v[0] = np.array(WORDS, object)
        ds.createVariable("never", str, ("m",))


@feature(clients=("zarr",))
def vl_string_fill(path):
    """A string variable with a fill value of its own."""
    with h5py.File(path, "w") as f:
        d = f.create_dataset("s", shape=(6,), dtype=h5py.string_dtype(), chunks=(2,),
                             fillvalue="none")
        d[0] = "first"


@feature(clients=("zarr",))
def fixed_strings(path):
    """Fixed strings: NUL padded, NUL terminated, space padded, full."""
    with h5py.File(path, "w") as f:
        f["padded"] = np.array([b"ab", b"abcde", b""], "S5")
        f.create_dataset("z", data=np.array([b"x%d" % i for i in range(10)], "S4"), chunks=(3,),
                         compression="gzip")
        for name, pad in (("nullterm", h5t.STR_NULLTERM), ("space", h5t.STR_SPACEPAD)):
            t = h5t.C_S1.copy()
            t.set_size(6)
            t.set_strpad(pad)
            d = h5d.create(f.id, name.encode(), t, h5s.create_simple((2,)))
            d.write(h5s.ALL, h5s.ALL, np.array([b"abc   ", b"hello"], "S6"), mtype=t)
        u = h5py.string_dtype("utf-8", 8)
        f.create_dataset("utf8", data=np.array(["héé".encode(), b"z"], dtype=u), dtype=u)


@feature(clients=("zarr",))
def latin1(path):
    """Bytes that are no UTF-8, in strings and attributes, must not make JSON invalid."""
    bad = b"caf\xe9 \xff\xfe"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("s", shape=(2,), dtype=h5py.string_dtype("ascii"))
        d[0] = bad
        d[1] = b"plain"
        f["fixed"] = np.array([bad, b"ok"], "S8")
        f["v"] = np.arange(3)
        f["v"].attrs["vl"] = np.array([bad, b"ok"], dtype=object).astype(
            h5py.string_dtype("ascii"))
        f["v"].attrs["fixed"] = np.bytes_(bad)
        f.attrs["title"] = np.bytes_(b"\xc3\x28 overlong \xc0\x80 surrogate \xed\xa0\x80")
