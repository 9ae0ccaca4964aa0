# SPDX-License-Identifier: BSD-3-Clause
"""Small pieces of work that programs do on a Zarr store in a directory, each with the program's own
means: natively, to record what it does and to have something to compare with, and on a mount.

    rw_trees.py NAME DIR [TMP]    do one of them; DIR is the store's root

A function takes the root and a directory for other files, and returns the name of the group below
the root that it worked in, or nothing where that is the root itself."""
import os
import subprocess
import sys

import numpy as np


def values(shape, dtype="i4", start=0):
    count = int(np.prod(shape)) if shape else 1
    return (np.arange(count) + start).reshape(shape).astype(dtype)


# ---- zarr-python 2 ----

def zarr2_create(root, tmp):
    import zarr
    g = zarr.open_group(root, mode="a")
    a = g.create_dataset("a", shape=(4, 6), chunks=(2, 3), dtype="i4", fill_value=-1,
                         compressor=None)
    a[...] = values((4, 6))
    a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    g.attrs["title"] = "made by zarr-python 2"


def zarr2_overwrite(root, tmp):
    import zarr
    g = zarr.open_group(root, mode="r+")
    g["a"][...] = values((4, 6), start=100)


def zarr2_partial(root, tmp):
    import zarr
    g = zarr.open_group(root, mode="r+")
    g["a"][1:3, 2:4] = 7


def zarr2_resize(root, tmp):
    import zarr
    g = zarr.open_group(root, mode="r+")
    g["a"].resize(6, 6)
    g["a"][4:] = 9
    g["a"].resize(5, 6)


def zarr2_shrink(root, tmp):
    import zarr
    zarr.open_group(root, mode="r+")["a"].resize(2, 6)


def zarr2_append(root, tmp):
    import zarr
    zarr.open_group(root, mode="r+")["a"].append(values((3, 6), start=50))


def zarr2_attrs(root, tmp):
    import zarr
    g = zarr.open_group(root, mode="r+")
    g["a"].attrs["units"] = "K"
    g["a"].attrs["valid_range"] = [0, 10]
    del g["a"].attrs["units"]
    g.attrs.update({"title": "another", "number": 5})


def zarr2_delete(root, tmp):
    import zarr
    del zarr.open_group(root, mode="r+")["a"]


def zarr2_replace(root, tmp):
    import zarr
    g = zarr.open_group(root, mode="r+")
    g.create_dataset("a", data=values((5,), "f8"), chunks=(2,), overwrite=True)


def zarr2_rename(root, tmp):
    import zarr
    zarr.open_group(root, mode="r+").move("a", "b")


def zarr2_consolidate(root, tmp):
    import zarr
    zarr.consolidate_metadata(root)


def zarr2_nested(root, tmp):
    import zarr
    store = zarr.NestedDirectoryStore(root)
    g = zarr.open_group(store, mode="a")
    a = g.create_dataset("n/e/s", shape=(4, 4), chunks=(2, 2), dtype="u1")
    a[...] = values((4, 4), "u1")


def zarr2_fsspec(root, tmp):
    import zarr
    g = zarr.open_group(zarr.storage.FSStore(root), mode="a")
    g.create_dataset("f", data=values((4, 4), "f4"), chunks=(2, 2))


def zarr2_chunks_first(root, tmp):
    """What no program of these does, but a copy of a tree may: see tree_copy."""
    order = ["b/0", "b/1", "b/.zarray", "b/.zattrs"]
    texts = {"b/0": bytes([1, 2]), "b/1": bytes([3, 4]),
             "b/.zarray": b'{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"|u1","order":"C",'
                          b'"fill_value":0,"filters":null,"compressor":null}',
             "b/.zattrs": b'{"_ARRAY_DIMENSIONS":["four"]}'}
    os.mkdir(os.path.join(root, "b"))
    for key in order:
        with open(os.path.join(root, key), "wb") as f:
            f.write(texts[key])


def tree_copy(root, tmp):
    """cp -r of a tree into the store, without its own times and owners."""
    import zarr
    source = os.path.join(tmp, "copied.zarr")
    zarr2_create(source, tmp)
    subprocess.run(["cp", "-r", source, os.path.join(root, "copy")], check=True)


def tree_copy_archive(root, tmp):
    """cp -a, which sets times, owners and modes."""
    import zarr
    source = os.path.join(tmp, "archived.zarr")
    zarr2_create(source, tmp)
    subprocess.run(["cp", "-a", source, os.path.join(root, "archive")], check=True)


def tree_rsync(root, tmp):
    source = os.path.join(tmp, "rsynced.zarr")
    zarr2_create(source, tmp)
    subprocess.run(["rsync", "-a", source + "/", os.path.join(root, "synced")], check=True)


# ---- xarray ----

def _dataset(times=4, start=0):
    import pandas
    import xarray
    n = np.arange(start, start + times)
    return xarray.Dataset(
        {"temp": (("time", "x"), (n[:, None] * 10 + np.arange(3)).astype("f4"), {"units": "K"}),
         "count": (("x",), np.arange(3, dtype="i2"))},
        {"time": pandas.date_range("2000-01-01", periods=start + times)[start:],
         "x": np.array([0.5, 1.5, 2.5])},
        {"title": "made by xarray"})


def xarray_new(root, tmp):
    _dataset().to_zarr(root, consolidated=True)


def xarray_new_plain(root, tmp):
    _dataset().to_zarr(root, consolidated=False)


def xarray_group(root, tmp):
    _dataset().to_zarr(root, group="g", mode="w")


def xarray_group_again(root, tmp):
    _dataset(2).to_zarr(root, group="g", mode="w")


def xarray_append(root, tmp):
    _dataset(3, 4).to_zarr(root, append_dim="time")


def xarray_region(root, tmp):
    new = _dataset(2)[["temp"]].drop_vars(["time", "x"])
    new.to_zarr(root, region={"time": slice(1, 3)})


def xarray_variable(root, tmp):
    import xarray
    xarray.Dataset({"more": (("time", "x"), np.ones((7, 3)))}).to_zarr(root, mode="a")


# ---- netCDF-C's NCZarr ----

# No scalar, no _FillValue and no unlimited dimension: netCDF-C 4.9.0 cannot read what it
# makes of them.
CDL = """netcdf n {
dimensions:
  y = 3 ; x = 4 ;
variables:
  int v(y, x) ; v:units = "m" ; v:_ChunkSizes = 3, 2 ;
  double w(y) ; w:scale = 0.5, 1.5 ;
  short s(x) ;
:title = "made by ncgen" ;
data:
 v = 1,2,3,4,5,6,7,8,9,10,11,12 ; w = 1.5, 2.5, 3.5 ; s = 7, 8, 9, 10 ;
group: g { variables: float u(x) ; data: u = 1, 2, 3, 4 ; }
}
"""


def _cdl(tmp):
    path = os.path.join(tmp, "in.cdl")
    with open(path, "w") as f:
        f.write(CDL)
    return path


def ncgen_nczarr(root, tmp):
    subprocess.run(["ncgen", "-4", "-lb", "-o", f"file://{root}#mode=nczarr,file", _cdl(tmp)],
                   check=True, cwd=tmp)


def ncgen_zarr(root, tmp):
    subprocess.run(["ncgen", "-4", "-lb", "-o", f"file://{root}#mode=zarr,file", _cdl(tmp)],
                   check=True, cwd=tmp)


def nccopy_nczarr(root, tmp):
    nc = os.path.join(tmp, "in.nc")
    subprocess.run(["ncgen", "-4", "-o", nc, _cdl(tmp)], check=True)
    subprocess.run(["nccopy", nc, f"file://{root}#mode=nczarr,file"], check=True, cwd=tmp)


def nczarr_edit(root, tmp):
    """In place, through netCDF-C itself: netCDF4-python sees nothing in a tree of 4.9.0's."""
    import ctypes
    import ctypes.util
    lib = ctypes.CDLL(ctypes.util.find_library("netcdf") or "libnetcdf.so.19")

    def call(name, *args):
        status = getattr(lib, name)(*args)
        assert status == 0, f"{name} fails: {status}"
    nc, v, dim, new = (ctypes.c_int() for _ in range(4))
    two = ctypes.c_size_t * 2
    call("nc_open", f"file://{root}#mode=nczarr,file".encode(), 1, ctypes.byref(nc))
    call("nc_inq_varid", nc, b"v", ctypes.byref(v))
    call("nc_put_vara_int", nc, v, two(1, 1), two(1, 2), (ctypes.c_int * 2)(77, 78))
    call("nc_put_att_text", nc, v, b"units", ctypes.c_size_t(2), b"km")
    call("nc_inq_dimid", nc, b"x", ctypes.byref(dim))
    call("nc_def_var", nc, b"added", 3, 1, ctypes.byref(dim), ctypes.byref(new))
    call("nc_put_var_short", nc, new, (ctypes.c_short * 4)(4, 3, 2, 1))
    call("nc_close", nc)


# ---- GDAL ----

def gdal_new(root, tmp):
    from osgeo import gdal
    gdal.UseExceptions()
    d = gdal.GetDriverByName("Zarr").CreateMultiDimensional(root)
    _gdal_fill(d)


def _gdal_fill(d):
    from osgeo import gdal
    g = d.GetRootGroup()
    y = g.CreateDimension("y", "", "", 4)
    x = g.CreateDimension("x", "", "", 6)
    a = g.CreateMDArray("band", [y, x], gdal.ExtendedDataType.Create(gdal.GDT_Int16),
                        ["BLOCKSIZE=2,3", "COMPRESS=ZLIB"])
    a.CreateAttribute("units", [], gdal.ExtendedDataType.CreateString()).WriteString("m")
    a.SetNoDataValueDouble(-1)
    a.Write(values((4, 6), "i2").tobytes())


def gdal_edit(root, tmp):
    from osgeo import gdal
    gdal.UseExceptions()
    d = gdal.OpenEx(root, gdal.OF_MULTIDIM_RASTER | gdal.OF_UPDATE)
    a = d.GetRootGroup().OpenMDArray("band")
    a.Write(values((2, 2), "i2", 50).tobytes(), [1, 1], [2, 2])


if __name__ == "__main__":
    work, path = sys.argv[1:3]
    globals()[work](path, sys.argv[3] if len(sys.argv) > 3 else os.path.dirname(path))
