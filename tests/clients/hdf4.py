# SPDX-License-Identifier: BSD-3-Clause
"""HDF4 files as pyhdf (libhdf4) reads them, compared with a mount of them: a Zarr tree as
zarr-python and xarray read it, a virtual netCDF-4 file as netCDF4-python and h5py read it."""
import json
import warnings

import numpy

from clients import oracle
from lib.context import Crashed

TYPES = {3: "S1", 4: "S1", 5: "f4", 6: "f8", 20: "i1", 21: "u1", 22: "i2", 23: "u2", 24: "i4",
         25: "u4"}
FILLS = {"S1": b"\0", "f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i1": -127,
         "u1": 129, "i2": -32767, "u2": 32769, "i4": -2147483647, "u4": 2147483649}


def _values(sds, shape, dtype):
    """All of it, as bytes; None when the library cannot."""
    if 0 in shape:
        return b""
    try:
        got = sds.get()
    except Exception:  # pyhdf's own class
        return None
    got = numpy.asarray(got)
    if got.dtype.kind == "U":
        got = got.astype("S1")
    assert got.dtype.itemsize == numpy.dtype(dtype).itemsize, (got.dtype, dtype)
    return numpy.ascontiguousarray(got).tobytes()


def _attributes(thing):
    return {k: (v[0], v[2]) for k, v in thing.attributes(full=1).items()}


def _load(file):
    from pyhdf.SD import SD, SDC
    sd = SD(file, SDC.READ)
    arrays = []
    for i in range(sd.info()[0]):
        sds = sd.select(i)
        name, rank, shape, nt, _ = sds.info()
        shape = [shape] if rank == 1 else list(shape) if rank else []
        dtype = TYPES.get(nt & 0xfff)
        arrays.append({
            "name": name, "shape": shape, "dtype": dtype, "ref": sds.ref(),
            "coordinate": bool(sds.iscoordvar()), "record": bool(sds.isrecord()),
            "dims": [sds.dim(k).info()[0] for k in range(rank)],
            "attributes": _attributes(sds),
            "values": _values(sds, shape, dtype)})
    return {"arrays": arrays, "attributes": _attributes(sd)}


def load(file):
    """The file as libhdf4 has it, read in a process of its own."""
    ok, result = oracle.in_child(lambda: _load(file), 60)
    if not ok:
        raise Crashed(f"pyhdf cannot read {file}: {result}")
    return result


def _part(a):
    parts = {d.rpartition(":")[2] if ":" in d else "" for d in a["dims"]}
    return parts.pop() if len(parts) == 1 else ""


def names(model):
    """The name of every array as docs/dev/reading/hdf4.md has it."""
    clean = [a["name"].replace("/", "_") for a in model["arrays"]]
    out, keeps = list(clean), {}
    for i, a in enumerate(model["arrays"]):
        if clean[i] not in keeps or (
                a["coordinate"] and not model["arrays"][keeps[clean[i]]]["coordinate"]):
            keeps[clean[i]] = i
    for i, a in enumerate(model["arrays"]):
        if clean.count(clean[i]) > 1:
            part = "" if a["coordinate"] else _part(a)
            if part:
                out[i] = f"{clean[i]}_{part}"
            elif keeps[clean[i]] != i:
                out[i] = f"{clean[i]}_{a['ref']}"
    return out


def expected(model):
    """name -> (dimension names, shape, dtype, array or None, attributes)."""
    longest = {}
    for a in model["arrays"]:
        if a["record"]:
            longest[a["dims"][0]] = max(longest.get(a["dims"][0], 0), a["shape"][0])
    out = {}
    for name, a in zip(names(model), model["arrays"]):
        shape = list(a["shape"])
        if a["record"]:
            shape[0] = longest[a["dims"][0]]
        values = None
        if a["values"] is not None:
            values = numpy.full(shape, fill_of(a), a["dtype"])
            own = numpy.frombuffer(a["values"], a["dtype"]).reshape(a["shape"])
            values[tuple(slice(n) for n in a["shape"])] = own
        out[name] = (a["dims"], shape, a["dtype"], values, a["attributes"])
    return out


def fill_of(a):
    value, nt = a["attributes"].get("_FillValue", (None, 0))
    if value is None or TYPES.get(nt & 0xfff) != a["dtype"]:
        return FILLS[a["dtype"]]
    return value.encode("latin-1")[:1] if isinstance(value, str) else value


def same(got, want, where):
    got = numpy.ascontiguousarray(got)
    assert list(got.shape) == list(want.shape), f"{where}: shape {got.shape} is not {want.shape}"
    if want.dtype.kind == "S":
        got = got.astype("S1")
    if got.dtype.newbyteorder("=") == want.dtype:
        got = got.astype(want.dtype)  # stored bytes pass in the file's byte order
    assert got.dtype == want.dtype, f"{where}: type {got.dtype} is not {want.dtype}"
    assert got.tobytes() == want.tobytes(), f"{where}: values differ"


def same_attributes(got, want, where, skip=()):
    """Numbers are compared in the type that the file gives them."""
    for name, (value, nt) in want.items():
        if name in skip:
            continue
        assert name in got, f"{where}: attribute {name!r} is not there: {list(got)}"
        have = got[name]
        if isinstance(value, str):
            have = have.decode() if isinstance(have, bytes) else str(have)
            if where.startswith("netCDF4"):
                value = value.replace("\0", "")  # as netCDF4-python does
            assert value.rstrip("\0") == have, f"{where}: {name} is {have!r}, not {value!r}"
            continue
        dtype = TYPES[nt & 0xfff]
        if dtype == "S1":
            continue
        have = numpy.array(have, dtype).ravel()
        value = numpy.array(value, dtype).ravel()
        assert have.tobytes() == value.tobytes(), f"{where}: {name} is {have}, not {value}"
    extra = set(got) - set(want) - set(skip)
    assert not extra, f"{where}: attributes {extra} too many"


def fails(read, where):
    try:
        read()
    except Exception:
        return
    raise AssertionError(f"{where}: libhdf4 cannot read it, and it reads as something")


def compare_zarr(model, mnt):
    import zarr
    root = zarr.open_group(mnt, "r")
    want = expected(model)
    assert sorted(root.array_keys()) == sorted(want), (sorted(root.array_keys()), sorted(want))
    same_attributes(dict(root.attrs), model["attributes"], "/")
    for name, (dims, _, _, values, attributes) in want.items():
        a = root[name]
        assert a.attrs["_ARRAY_DIMENSIONS"] == dims, (name, a.attrs["_ARRAY_DIMENSIONS"], dims)
        same_attributes(dict(a.attrs), attributes, name, ("_ARRAY_DIMENSIONS",))
        if values is None:
            fails(lambda: a[...], name)
        else:
            same(a[...], values, name)


def compare_xarray(model, mnt):
    import xarray
    want = expected(model)
    if any(len(set(w[0])) < len(w[0]) for w in want.values()):
        print("xarray: a dimension is there twice")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xarray.open_zarr(mnt, consolidated=True, decode_cf=False) as ds:
            assert set(ds.variables) == set(want), (set(ds.variables), set(want))
            for name, (dims, _, _, values, _) in want.items():
                assert list(ds[name].dims) == dims, (name, ds[name].dims, dims)
                if values is not None:
                    same(ds[name].values, values, f"xarray {name}")


def shown(model):
    """What a virtual file has: arrays that cannot be read are hidden."""
    return {k: v for k, v in expected(model).items() if v[3] is not None}


def compare_netcdf(model, file):
    import netCDF4
    want = shown(model)
    with netCDF4.Dataset(file) as ds:
        ds.set_auto_maskandscale(False)
        ds.set_auto_chartostring(False)
        assert list(ds.variables) == list(want), (list(ds.variables), list(want))
        same_attributes(ds.__dict__, model["attributes"], "netCDF4 /")
        for name, (dims, _, _, values, attributes) in want.items():
            v = ds.variables[name]
            assert list(v.dimensions) == dims, (name, v.dimensions, dims)
            # netCDF refuses a fill value of another type than the variable's
            odd = TYPES.get(attributes.get("_FillValue", (0, 0))[1] & 0xfff) != v.dtype.str[1:]
            same_attributes(v.__dict__, attributes, f"netCDF4 {name}",
                            ("_FillValue",) if odd else ())
            same(v[...], values, f"netCDF4 {name}")


def compare_h5py(model, file):
    import h5py
    with h5py.File(file, "r") as f:
        for name, (_, _, _, values, _) in shown(model).items():
            same(f[name][()], values, f"h5py {name}")


def notes(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["notes"]
