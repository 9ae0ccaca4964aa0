# SPDX-License-Identifier: BSD-3-Clause
"""Small pieces of work that programs do on a netCDF-4 file, each with the program's own means:
natively, to record what it does and to have something to compare with, and on a mount.

    rw_files.py NAME FILE TMP

The functions of NEW make the file; the others change the one that `base` makes."""
import os
import subprocess
import sys

import numpy as np

CDL = """netcdf n {
dimensions:
  t = UNLIMITED ; x = 4 ;
variables:
  int v(t, x) ; v:units = "m" ; v:_ChunkSizes = 2, 2 ; v:_DeflateLevel = 1 ; v:_Shuffle = "true" ;
  double w(x) ; w:_FillValue = -1. ; w:flags = 1b, 2b ;
  short s ; s:valid_range = 0s, 9s ;
:title = "made by ncgen" ;
data:
 v = 1,2,3,4,5,6,7,8,9,10,11,12 ; w = 1.5, 2.5, 3.5, 4.5 ; s = 7 ;
group: g { variables: float u(x) ; data: u = 1, 2, 3, 4 ; }
}
"""


def run(*command, cwd):
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.DEVNULL)


def beside(tmp, name="beside.nc", change=lambda text: text):
    cdl, nc = os.path.join(tmp, name + ".cdl"), os.path.join(tmp, name)
    with open(cdl, "w") as f:
        f.write(change(CDL))
    run("ncgen", "-4", "-o", nc, cdl, cwd=tmp)
    return nc


# ---- new files ----

def base(file, tmp):
    import shutil
    with open(beside(tmp, "base.nc"), "rb") as f, open(file, "wb") as g:
        shutil.copyfileobj(f, g)


def ncgen_new(file, tmp):
    beside(tmp)
    run("ncgen", "-4", "-o", file, os.path.join(tmp, "beside.nc.cdl"), cwd=tmp)


def nccopy_new(file, tmp):
    run("nccopy", beside(tmp), file, cwd=tmp)


def cp_new(file, tmp):
    run("cp", beside(tmp), file, cwd=tmp)


def ncks_new(file, tmp):
    run("ncks", "-h", "-O", beside(tmp), file, cwd=tmp)


def h5repack_new(file, tmp):
    run("h5repack", "-f", "GZIP=1", beside(tmp), file, cwd=tmp)


def cdo_new(file, tmp):
    run("cdo", "--no_history", "-s", "-O", "-f", "nc4", "-topo,r12x6", file, cwd=tmp)


def netcdf4_w(file, tmp):
    import netCDF4
    with netCDF4.Dataset(file, "w") as nc:
        nc.createDimension("t", None)
        nc.createDimension("x", 4)
        v = nc.createVariable("v", "i4", ("t", "x"), zlib=True, chunksizes=(2, 2))
        v.units = "m"
        v[:] = np.arange(12).reshape(3, 4)
        w = nc.createVariable("w", "f8", ("x",), fill_value=-1.0)
        w[:] = [1.5, 2.5, 3.5, 4.5]
        w.setncattr("flags", np.array([1, 2], "i1"))
        nc.createVariable("x", "f4", ("x",))[:] = [0, 1, 2, 3]
        nc.createVariable("name", str, ("x",))[:] = np.array(["a", "bc", "", "\u00fc"], object)
        nc.createVariable("s", "i2")[...] = 7
        nc.title = "made by netCDF4-python"
        g = nc.createGroup("g")
        g.createVariable("u", "f4", ("x",))[:] = [1, 2, 3, 4]


def h5netcdf_w(file, tmp):
    import h5netcdf
    with h5netcdf.File(file, "w") as nc:
        nc.dimensions = {"t": None, "x": 4}
        nc.resize_dimension("t", 3)
        v = nc.create_variable("v", ("t", "x"), "i4", chunks=(2, 2), compression="gzip")
        v[...] = np.arange(12).reshape(3, 4)
        v.attrs["units"] = "m"
        nc.create_group("g").create_variable("u", ("x",), data=np.arange(4, dtype="f4"))
        nc.attrs["title"] = "made by h5netcdf"


def h5py_w(file, tmp):
    import h5py
    with h5py.File(file, "w") as f:
        f.create_dataset("x", data=np.arange(4, dtype="f4"))
        f["x"].make_scale()
        d = f.create_dataset("v", data=np.arange(12, dtype="i4").reshape(3, 4), chunks=(2, 2),
                             maxshape=(None, 4), shuffle=True, compression="gzip")
        d.dims[1].attach_scale(f["x"])
        d.attrs["units"] = "m"
        f.create_group("g")["u"] = np.arange(4, dtype="f8")


def xarray_netcdf4(file, tmp):
    _xarray("netcdf4", file)


def xarray_h5netcdf(file, tmp):
    _xarray("h5netcdf", file)


def _xarray(engine, file):
    import pandas
    import xarray
    ds = xarray.Dataset({"temp": (("time", "x"), np.arange(12, dtype="f4").reshape(4, 3))},
                        {"time": pandas.date_range("2000-01-01", periods=4), "x": [0.5, 1.5, 2.5]})
    ds.to_netcdf(file, engine=engine, unlimited_dims=["time"],
                 encoding={"temp": {"zlib": True, "shuffle": True, "chunksizes": (2, 3)}})


NEW = [base, ncgen_new, nccopy_new, cp_new, ncks_new, h5repack_new, cdo_new, netcdf4_w, h5netcdf_w,
       h5py_w, xarray_netcdf4, xarray_h5netcdf]


# ---- changes ----

def netcdf4_a(file, tmp):
    import netCDF4
    with netCDF4.Dataset(file, "a") as nc:
        nc["v"][1, 1:3] = [70, 71]
        nc["v"][3:5] = [[20, 21, 22, 23], [30, 31, 32, 33]]
        nc["v"].units = "km"
        nc["w"].setncattr("added", np.float32(2.5))
        nc["g/u"][2] = 99
        nc.createVariable("more", "i2", ("t", "x"), zlib=True)[:] = 5
        nc.createGroup("h").createVariable("deep", "f8", ("x",))[:] = 1.25
        nc.delncattr("title")


def netcdf4_rplus(file, tmp):
    import netCDF4
    with netCDF4.Dataset(file, "r+") as nc:
        nc["w"][1:3] = [8.5, 9.5]


def netcdf4_append(file, tmp):
    """One record at a time, synced after each, as models do."""
    import netCDF4
    with netCDF4.Dataset(file, "a") as nc:
        for i in range(3, 8):
            nc["v"][i] = np.arange(4) + 100 * i
            nc.sync()


def netcdf4_rename(file, tmp):
    import netCDF4
    with netCDF4.Dataset(file, "a") as nc:
        nc.renameVariable("w", "renamed")
        nc["v"].renameAttribute("units", "unit")


def h5netcdf_a(file, tmp):
    import h5netcdf
    with h5netcdf.File(file, "a") as nc:
        nc["v"][0, :] = 6
        nc["v"].attrs["units"] = "mm"
        nc.resize_dimension("t", 4)
        nc.create_variable("more", ("x",), data=np.arange(4, dtype="i8"))


def h5py_rplus(file, tmp):
    import h5py
    with h5py.File(file, "r+") as f:
        f["v"][1, 1:3] = [-5, -6]
        f["v"].attrs["units"] = "cm"
        del f["s"]
        f.attrs["number"] = np.int16(5)


def ncks_append(file, tmp):
    other = beside(tmp, "other.nc", lambda t: t.replace("double w", "double extra").replace(
        " w:", " extra:").replace("; w =", "; extra ="))
    run("ncks", "-h", "-A", "-v", "extra", other, file, cwd=tmp)


def ncatted_edit(file, tmp):
    run("ncatted", "-h", "-a", "units,v,o,c,furlong", "-a", "title,global,d,,", file, cwd=tmp)


def ncrename_edit(file, tmp):
    run("ncrename", "-h", "-v", "w,renamed", file, cwd=tmp)


def ncrename_dim(file, tmp):
    run("ncrename", "-h", "-d", "x,east", file, cwd=tmp)


def ncrcat_over(file, tmp):
    one = beside(tmp, "one.nc")
    run("ncrcat", "-O", "-h", "-v", "v", one, one, file, cwd=tmp)


def ncap2_edit(file, tmp):
    run("ncap2", "-A", "-h", "-s", "made=v*2", file, file, cwd=tmp)


def cdo_over(file, tmp):
    run("cdo", "--no_history", "-s", "-O", "-f", "nc4", "-topo,r8x4", file, cwd=tmp)


def nccopy_over(file, tmp):
    run("nccopy", "-d", "2", beside(tmp, "one.nc", lambda t: t.replace("w = 1.5",
                                                                       "w = 11.5")), file,
        cwd=tmp)


def cp_over(file, tmp):
    run("cp", beside(tmp, "one.nc", lambda t: t.replace("w = 1.5", "w = 12.5")), file, cwd=tmp)


def mv_over(file, tmp):
    run("mv", beside(tmp, "one.nc", lambda t: t.replace("w = 1.5", "w = 13.5")), file, cwd=tmp)


def h5repack_over(file, tmp):
    run("h5repack", "-f", "SHUF", "-f", "GZIP=3", beside(tmp, "one.nc"), file, cwd=tmp)


CHANGES = [netcdf4_a, netcdf4_rplus, netcdf4_append, netcdf4_rename, h5netcdf_a, h5py_rplus,
           ncks_append, ncatted_edit, ncrename_edit, ncrename_dim, ncrcat_over,
           ncap2_edit, cdo_over,
           nccopy_over, cp_over, mv_over, h5repack_over]

if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:4])
