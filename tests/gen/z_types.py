# SPDX-License-Identifier: BSD-3-Clause
"""Element types of Zarr v2, with and without a netCDF type of their own."""
import numcodecs
import numpy as np
import zarr

from gen.trees import array, group, ramp, tree

NO_NC = ("h5py", "h5tools")


@tree()
def numbers(path):
    """Every number, both byte orders, compressed and not; edge chunks; NaN and infinities."""
    g = zarr.open_group(path, mode="w")
    for o in "<>":
        for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
            if o == ">" and t.endswith("1"):
                continue
            name = t + ("_be" if o == ">" else "")
            a = g.create_dataset(name, shape=(7, 5), chunks=(3, 2), dtype=o + t,
                                 compressor=zarr.Zlib(4), filters=[
                                     numcodecs.Shuffle(int(t[1]))] if t[1] != "1" else None,
                                 fill_value=0)
            a[:] = ramp((7, 5), t)
            a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    a = g.create_dataset("odd", shape=(6,), chunks=(4,), dtype="f8", compressor=None,
                         fill_value=None)
    a[:] = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308]
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree()
def booleans(path):
    """bool becomes a byte with xarray's attribute dtype, so that xarray gives bool again."""
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("b", shape=(9,), chunks=(4,), dtype="?", fill_value=None)
    a[:] = np.arange(9) % 3 == 0
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree(clients=("h5py", "h5tools", "nctools"))
def halves(path):
    """Half floats."""
    g = zarr.open_group(path, mode="w")
    for o in "<>":
        a = g.create_dataset("f2" + ("_be" if o == ">" else ""), shape=(10,), chunks=(4,),
                             dtype=o + "f2", compressor=zarr.Zlib(), fill_value=np.nan)
        a[:7] = ramp((7,), "f2") / 8
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree(clients=NO_NC)
def complexes(path):
    """Complex numbers of both widths and byte orders, a fill value, a chunk never written."""
    g = zarr.open_group(path, mode="w")
    for t in ("<c8", ">c8", "<c16", ">c16"):
        a = g.create_dataset("v" + t[2:] + ("_be" if t[0] == ">" else ""), shape=(10,),
                             chunks=(4,), dtype=t, fill_value=1 - 2j)
        a[:4] = ramp((4,), "f4") + 1j
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree()
def times(path):
    """datetime64 and timedelta64 of all units that CF knows, NaT among them."""
    g = zarr.open_group(path, mode="w")
    for unit in ("D", "h", "m", "s", "ms", "us", "ns"):
        for letter in "Mm":
            a = g.create_dataset(letter + unit, shape=(5,), chunks=(3,),
                                 dtype=f"<{letter}8[{unit}]", fill_value=None)
            v = np.array([0, 1, 10957, 3, 4], "i8").view(f"<{letter}8[{unit}]")
            a[:] = v
            a.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    a = g.create_dataset("zero", shape=(5,), chunks=(3,), dtype="<M8[D]")  # fill_value 0: a date
    a[1:] = np.array([0, 1, 2, 3], "i8").view("<M8[D]")
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree(clients=("h5py", "h5tools", "nctools"))
def odd_times(path):
    """NaT, big-endian times, and units that netCDF has no word for."""
    g = zarr.open_group(path, mode="w")
    for name, t in (("big", ">M8[s]"), ("weeks", "<M8[W]"), ("months", "<m8[M]"),
                    ("tens", "<M8[10ms]")):
        a = g.create_dataset(name, shape=(5,), chunks=(3,), dtype=t, fill_value=None)
        v = np.array([0, 1, -5, 3, 4], "i8").astype(np.dtype(t).str[0] + "i8").view(t)
        a[:] = v
        a[1] = np.datetime64("NaT") if "M" in t else np.timedelta64("NaT")
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree()
def fixed_texts(path):
    """S and U of several widths, both byte orders, empty ones, and characters beyond ASCII."""
    g = zarr.open_group(path, mode="w")
    words = ["", "a", "grün", "日本", "z" * 6, "\U0001f600", "x y", "e\u0301"]
    for t in ("<U6", ">U6", "<U1"):
        a = g.create_dataset("u" + t[2] + ("_be" if t[0] == ">" else ""), shape=(8,), chunks=(3,),
                             dtype=t, fill_value="")
        a[:] = np.array([w[:int(t[2])] for w in words], t)
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    for t in ("S1", "S4"):
        a = g.create_dataset(t, shape=(8,), chunks=(3,), dtype=t, fill_value=b"",
                             compressor=zarr.Zlib())
        a[:] = np.array([w.encode("ascii", "ignore")[:int(t[1])] for w in words], t)
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree(clients=("h5py", "h5tools"))
def text_fills(path):
    """Texts with fill values that HDF5 cannot say for single characters, chunks never written."""
    g = zarr.open_group(path, mode="w")
    for name, t, fill in (("s", "S3", b"abc"), ("u", "<U3", "äb"), ("one", "S1", b"x"),
                          ("none", "S3", None), ("same", "S2", b"zz")):
        a = g.create_dataset(name, shape=(8,), chunks=(2,), dtype=t, fill_value=fill)
        a[2:4] = np.array(["k", "l"], t)
        if fill is None:
            a[:] = np.array(["k"] * 8, t)
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree(clients=("h5py", "h5tools", "nctools"))
def free_texts(path):
    """Texts of any length: vlen-utf8, vlen-bytes, json2; chunks never written; several axes."""
    g = zarr.open_group(path, mode="w")
    words = np.array(["", "a", "grün", "日本語" * 100, "z\nz", "\U0001f600"], object)
    a = g.create_dataset("utf8", shape=(6,), chunks=(4,), dtype=object,
                         object_codec=numcodecs.VLenUTF8())
    a[:] = words
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    a = g.create_dataset("sparse", shape=(9, 2), chunks=(2, 2), dtype=object, fill_value="-",
                         object_codec=numcodecs.VLenUTF8(), compressor=None)
    a[2:4] = words[:4].reshape(2, 2)
    a = g.create_dataset("json", shape=(6,), chunks=(6,), dtype=object,
                         object_codec=numcodecs.JSON())
    a[:] = words
    a = g.create_dataset("scalar", shape=(), dtype=object, object_codec=numcodecs.VLenUTF8())
    a[()] = "alone"


@tree(clients=NO_NC)
def lists(path):
    """Lists of numbers, and bytes of any length."""
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("ints", shape=(4,), chunks=(3,), dtype=object,
                         object_codec=numcodecs.VLenArray("<i4"))
    for i in range(4):
        a[i] = np.arange(i, dtype="i4")


@tree(clients=NO_NC)
def structures(path):
    """Structured dtypes: mixed byte orders, arrays within, structures within, texts, booleans."""
    g = zarr.open_group(path, mode="w")
    plain = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "u1")])
    nested = np.dtype([("x", [("r", "<f4"), ("k", "<i8")]), ("v", "<i4", (2, 3)), ("s", "S3")])
    for name, t in (("plain", plain), ("nested", nested)):
        v = np.frombuffer(bytes(i % 60 + 1 for i in range(t.itemsize * 7)), t)
        a = g.create_dataset(name, shape=(7,), chunks=(3,), dtype=t, fill_value=None)
        a[:] = v
        a.attrs["_ARRAY_DIMENSIONS"] = ["n"]


@tree(clients=NO_NC)
def structure_parts(path):
    """Fields that have no netCDF type: booleans, times, characters."""
    group(path)
    t = np.dtype([("b", "?"), ("t", "<M8[s]"), ("u", "<U2")])
    v = np.zeros(5, t)
    v["b"] = [1, 0, 1, 1, 0]
    v["t"] = np.arange(5)
    v["u"] = ["a", "bc", "", "ü", "zz"]
    array(path, "v", v, (2,), dtype=[["b", "|b1"], ["t", "<M8[s]"], ["u", "<U2"]])


@tree(clients=NO_NC)
def opaques(path):
    """Bytes without meaning."""
    g = zarr.open_group(path, mode="w")
    a = g.create_dataset("v", shape=(5,), chunks=(2,), dtype="V3", fill_value=None)
    a[:] = np.frombuffer(bytes(range(1, 16)), "V3")
