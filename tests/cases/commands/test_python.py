# SPDX-License-Identifier: BSD-3-Clause
"""The Python package (scripts/python): mounts in with statements, and xarray's engine "nczarrfs",
whose values are those that xarray reads from the file itself."""
import os
import subprocess

import h5py
import netCDF4
import numpy as np
import zarr

from lib import mounts
from lib.context import ROOT, Skip

PACKAGE = os.path.join(ROOT, "scripts", "python")
VALUES = np.arange(600, dtype="f4").reshape(20, 30) / 7


def python(t, code, *args, status=0, **env):
    """Run code with the package on its path, as it is when it is installed."""
    where = t.path("site")
    if not os.path.exists(where):
        t.run("/bin/sh", os.path.join(PACKAGE, "install"), where)
    env = {**os.environ, "PYTHONPATH": where, "NCZARRFS": t.binary, "PYTHONWARNINGS": "ignore",
           **env}
    got, out, err = t.run("/usr/bin/python3", "-c", code, *args, env=env, timeout=60)
    assert got == status, f"status {got}: {out}{err}"
    return out + err


def make(path, form="NETCDF4", lo=0, hi=20):
    with netCDF4.Dataset(path, "w", format=form) as nc:
        nc.createDimension("time", None)
        nc.createDimension("x", 30)
        time = nc.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        v = nc.createVariable("v", "f4", ("time", "x"), fill_value=-1)
        v.units = "K"
        time[:] = np.arange(lo, hi)
        v[:] = VALUES[lo:hi]
    return path


WITH = """
import sys, os, nczarrfs, zarr, h5py
with nczarrfs.mount(sys.argv[1], zarr_format=2) as path:
    print(zarr.open(path)["v"][:].tobytes().hex())
assert not os.path.exists(path), "the temporary mountpoint is left"
"""


def test_mount(t):
    path = make(t.path("a.nc"))
    assert python(t, WITH, path).strip() == VALUES.tobytes().hex()


def test_virtual_file(t):
    zarr.save_array(t.path("a.zarr"), VALUES)
    out = python(t, """
import sys, nczarrfs, h5py
with nczarrfs.mount(sys.argv[1]) as path:
    assert path.endswith("/a.nc"), path
    print([v[:].tobytes().hex() for v in h5py.File(path).values() if v.ndim == 2][0])
""", t.path("a.zarr"))
    assert out.strip() == VALUES.tobytes().hex()


def test_write(t):
    """What is written is in the file when the with statement has ended."""
    python(t, """
import sys, nczarrfs, xarray
ds = xarray.open_dataset(sys.argv[1])
with nczarrfs.mount(sys.argv[2], rw=True, create=True, root="new.zarr") as path:
    ds.to_zarr(path, mode="w")
""", make(t.path("a.nc")), t.path("new.nc"))
    with h5py.File(t.path("new.nc")) as f:
        assert (f["v"][:] == VALUES).all()


def test_errors(t):
    """A message of the program, an exception in the with statement, a mount that is forgotten."""
    os.mkdir(t.path("m"))
    out = python(t, """
import sys, nczarrfs
try:
    nczarrfs.mount(sys.argv[1])
except nczarrfs.Error as error:
    print("caught", error)
""", t.path("none.nc"))
    assert out.startswith("caught") and "no such file" in out and "none.nc" in out, out
    out = python(t, """
import sys, os, nczarrfs
try:
    with nczarrfs.mount(sys.argv[1]) as path:
        raise KeyError("mine")
except KeyError:
    print(os.path.exists(path))
forgotten = nczarrfs.mount(sys.argv[1], sys.argv[2])
print(os.path.ismount(forgotten.mountpoint))
""", make(t.path("a.nc")), t.path("m"))
    assert out.split() == ["False", "True"], out
    assert not mounts.is_mounted(t.path("m"))
    out = python(t, "import nczarrfs; nczarrfs.mount('a')", status=1, NCZARRFS="", PATH="/bin-none")
    assert "not on PATH" in out, out


ENGINE = """
import sys, xarray
ours = xarray.open_dataset(sys.argv[1], engine="nczarrfs", mount_options=eval(sys.argv[2]))
native = xarray.open_mfdataset(sys.argv[3:], combine="nested", concat_dim="time") \
    if len(sys.argv) > 4 else xarray.open_dataset(sys.argv[3])
xarray.testing.assert_equal(ours.load(), native.load())
assert ours["v"].dtype == native["v"].dtype and ours["v"].attrs == native["v"].attrs
ours.close()
print("equal", ours["v"].values.tobytes() == native["v"].values.tobytes())
"""


def engine(t, source, *native, options=None, **env):
    out = python(t, ENGINE, source, repr(options), *native, **env)
    assert out.strip() == "equal True", out


def test_engine(t):
    for form in "NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA":
        path = make(t.path(form + ".nc"), form)
        engine(t, path, path)


def test_engine_many_files(t):
    os.mkdir(t.path("days"))
    files = [make(t.path(f"days/{lo}.nc"), lo=lo, hi=lo + 5) for lo in (0, 5)]
    engine(t, t.path("days/*.nc"), *files, options={"concat": "time"})


def test_engine_without_fuse(t):
    """References take the place of the mount."""
    if t.run("/usr/bin/python3", "-c", "import fsspec")[0]:
        raise Skip("no python3-fsspec")
    path = make(t.path("a.nc"))
    os.mkdir(t.path("bin"))
    os.symlink("/usr/bin/env", t.path("bin/env"))
    engine(t, path, path, PATH=t.path("bin"))


def test_engine_hdf4(t):
    tool = os.path.join(os.path.dirname(t.binary), "tests", "hdf4_make")
    if not os.path.exists(tool):
        raise Skip("HDF4 is not built in")
    subprocess.run([tool, "chunks", t.path("a.hdf")], check=True, stdout=subprocess.DEVNULL)
    out = python(t, """
import sys, xarray
ds = xarray.open_dataset(sys.argv[1])  # the engine is guessed
print(type(ds).__name__, len(ds.variables) > 0)
""", t.path("a.hdf"))
    assert out.strip() == "Dataset True", out
