#!/usr/bin/python3
"""demo-sample.py write FILE | compare FILE MOUNTPOINT: the sample of `make demo`."""
import sys
import warnings

import netCDF4
import numpy as np


def write(path):
    rng = np.random.RandomState(1)
    with netCDF4.Dataset(path, "w") as ds:
        ds.Conventions = "CF-1.8"
        ds.title = "Sample: a month of temperatures"
        ds.createDimension("time", None)
        ds.createDimension("lat", 73)
        ds.createDimension("lon", 144)
        time = ds.createVariable("time", "f8", ("time",))
        time.units = "hours since 2024-01-01 00:00:00"
        time.calendar = "standard"
        lat = ds.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        lat[:] = np.linspace(90, -90, 73)
        lon = ds.createVariable("lon", "f4", ("lon",))
        lon.units = "degrees_east"
        lon[:] = np.arange(144) * 2.5
        t = ds.createVariable("temperature", "i2", ("time", "lat", "lon"), zlib=True,
                              shuffle=True, chunksizes=(4, 73, 144), fill_value=-32768)
        t.standard_name = "air_temperature"
        t.units = "K"
        t.scale_factor = np.float32(0.01)
        t.add_offset = np.float32(273.15)
        time[:] = np.arange(31) * 24.0
        base = 30 * np.cos(np.radians(lat[:]))[None, :, None] - 5
        t[:] = 273.15 + base + 5 * rng.standard_normal((31, 73, 144))
        p = ds.createGroup("pressure")
        p.comment = "a group of its own"
        p.createDimension("level", 5)
        level = p.createVariable("level", "i4", ("level",))
        level.units = "hPa"
        level[:] = [1000, 850, 500, 200, 50]
        z = p.createVariable("height", "f4", ("level", "lat"), zlib=True)
        z.units = "m"
        z[:] = np.log(1013.25 / level[:])[:, None] * 7400 + np.zeros((1, 73))
        ds.createDimension("station_number", 3)
        s = ds.createVariable("station", str, ("station_number",))
        s[:] = np.array(["Ny-Ålesund", "Nauru", "Vostok"], object)
    print(f"wrote {path.rsplit('/', 1)[-1]}: temperature (time 31, lat 73, lon 144), packed in "
          "16 bits,\nshuffled and deflated; a group, pressure; strings")


def compare(path, mnt):
    import xarray
    import zarr
    warnings.filterwarnings("ignore")
    z = zarr.open(mnt, mode="r")
    print("\nzarr.open(...).tree()")
    print(z.tree())
    with netCDF4.Dataset(path) as ds:
        ds.set_auto_maskandscale(False)
        for name in ("time", "lat", "lon", "temperature", "station", "pressure/level",
                     "pressure/height"):
            assert np.array_equal(z[name][...], ds[name][...]), name
    print("zarr-python: 7 arrays, every value equal to netCDF4-python's")
    for group in (None, "pressure"):
        with xarray.open_dataset(path, group=group, engine="netcdf4") as a, \
                xarray.open_zarr(mnt, group=group) as b:
            a.load()
            b.load()
            xarray.testing.assert_equal(a, b)
            if group is None:
                print("\nxarray.open_zarr(...)")
                print(b)
    print("\nxarray: equal to xarray on the netCDF file, in both groups")


if __name__ == "__main__":
    {"write": write, "compare": compare}[sys.argv[1]](*sys.argv[2:])
