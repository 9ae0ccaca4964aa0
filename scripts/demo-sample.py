#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""demo-sample.py: the samples of `make demo` and of the README.

    write FILE            a netCDF-4 file
    write-store DIR        a Zarr store
    compare FILE MNT      a netCDF-4 file, and the Zarr store that MNT shows of it
    compare-store DIR FILE a Zarr store, and the virtual netCDF-4 file of it
"""
import os
import sys
import warnings

import h5py
import netCDF4
import numpy as np


def write_temperature(ds):
    rng = np.random.RandomState(1)
    t = ds.createVariable("temperature", "i2", ("time", "lat", "lon"), zlib=True,
                          shuffle=True, chunksizes=(4, 73, 144), fill_value=-32768)
    t.standard_name = "air_temperature"
    t.units = "K"
    # Doubles, as Zarr's JSON has no others: what xarray decodes to depends on the type.
    t.scale_factor = 0.01
    t.add_offset = 273.15
    base = 30 * np.cos(np.linspace(-np.pi / 2, np.pi / 2, 73))[None, :, None] - 5
    # Packed here: netCDF4's own arithmetic is not the same in all versions.
    t.set_auto_maskandscale(False)
    t[:] = np.round(100 * (base + 5 * rng.standard_normal((31, 73, 144)))).astype("i2")


def write_pressure(p):
    p.comment = "a group of its own"
    p.createDimension("level", 5)
    level = p.createVariable("level", "i4", ("level",))
    level.units = "hPa"
    level[:] = [1000, 850, 500, 200, 50]
    z = p.createVariable("height", "f4", ("level", "lat"), zlib=True)
    z.units = "m"
    z[:] = np.log(1013.25 / level[:])[:, None] * 7400 + np.zeros((1, 73))


def write(path):
    with netCDF4.Dataset(path, "w") as ds:
        ds.Conventions = "CF-1.8"
        ds.title = "Sample: a month of temperatures"
        ds.createDimension("time", None)
        ds.createDimension("lat", 73)
        ds.createDimension("lon", 144)
        # Variables in the order of their names: old xarray sorts, new xarray does not.
        lat = ds.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        lat[:] = np.linspace(90, -90, 73)
        lon = ds.createVariable("lon", "f4", ("lon",))
        lon.units = "degrees_east"
        lon[:] = np.arange(144) * 2.5
        ds.createDimension("station_number", 3)
        s = ds.createVariable("station", str, ("station_number",))
        s[:] = np.array(["Ny-Ålesund", "Nauru", "Vostok"], object)
        write_temperature(ds)
        time = ds.createVariable("time", "f8", ("time",))
        time.units = "hours since 2024-01-01 00:00:00"
        time.calendar = "standard"
        time[:] = np.arange(31) * 24.0
        write_pressure(ds.createGroup("pressure"))
    print(f"wrote {os.path.basename(path)}: temperature (time 31, lat 73, lon 144), packed in "
          "16 bits,\nshuffled and deflated; a group, pressure; strings")


def waves():
    """The store's two groups, and how their variables are stored."""
    import xarray
    from numcodecs import Blosc, Shuffle, Zlib, Zstd
    rng = np.random.RandomState(2)
    shape, chunks = (24, 40, 60), (6, 40, 60)
    hours = np.datetime64("2024-02-01", "ns") + np.arange(24) * np.timedelta64(1, "h")
    root = xarray.Dataset(
        {"height": (("time", "y", "x"), (2 + rng.standard_normal(shape)).astype("f4"),
                    {"standard_name": "sea_surface_wave_significant_height", "units": "m"}),
         "period": (("time", "y", "x"), (8 + rng.standard_normal(shape)).astype("f4"),
                    {"standard_name": "sea_surface_wave_mean_period", "units": "s"}),
         "buoy": (("site",), np.array(["Værøy", "Sula", "Utsira"], object))},
        {"time": hours, "y": np.arange(40.0), "x": np.arange(60.0)},
        {"title": "Sample: a day of waves"})
    bottom = xarray.Dataset({"depth": (("y", "x"), rng.randint(20, 300, (40, 60)).astype("i2"))})
    # The compressor of each is named: the default is another one in zarr-python 3.
    small = {name: {"compressor": Blosc()} for name in ("buoy", "time", "y", "x")}
    stored = dict(small, height={"chunks": chunks, "filters": [Shuffle(4)], "compressor": Zlib(4)},
                  period={"chunks": chunks, "compressor": Zstd(3)})
    return (root, stored), (bottom, {"depth": {"compressor": Blosc()}})


def write_store(path):
    import zarr
    v2 = {"zarr_format": 2} if int(zarr.__version__.split(".")[0]) > 2 else {}
    (root, stored), (bottom, below) = waves()
    root.to_zarr(path, mode="w", consolidated=False, encoding=stored, **v2)
    bottom.to_zarr(path, mode="a", group="bottom", consolidated=False, encoding=below, **v2)
    zarr.consolidate_metadata(path, **v2)
    print(f"wrote {os.path.basename(path)}: height (time 24, y 40, x 60), shuffled and deflated; "
          "period,\nthe same in zstd; strings; a group, bottom")


def write_old(path):
    rng = np.random.RandomState(3)
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as nc:
        nc.title = "Sample: as models wrote it for thirty years"
        for name, n in (("time", None), ("lat", 60), ("lon", 120)):
            nc.createDimension(name, n)
        time = nc.createVariable("time", "f8", ("time",))
        time.units = "days since 1994-01-01"
        salt = nc.createVariable("salinity", "f4", ("time", "lat", "lon"), fill_value=-1e30)
        salt[:] = (35 + rng.standard_normal((12, 60, 120))).astype("f4")
        time[:] = np.arange(12.0)
    print(f"wrote {os.path.basename(path)}: classic netCDF, salinity (time 12 records, lat 60, "
          "lon 120)")


def compare_old(path, tree, file):
    import zarr
    z = zarr.open(tree, mode="r")
    with netCDF4.Dataset(path) as old, netCDF4.Dataset(file) as new, h5py.File(file, "r") as h5:
        for nc in (old, new):
            nc.set_auto_maskandscale(False)
        for name in old.variables:
            values = np.asarray(old[name][:])
            for got in (z[name][...], new[name][:], h5[name][...]):
                got = np.asarray(got)
                assert got.astype(values.dtype).tobytes() == values.tobytes(), name
        assert new.data_model == "NETCDF4" and old.data_model == "NETCDF3_CLASSIC"
    print("zarr-python, h5py, netCDF4: every bit equal to what netCDF4 reads from the old file")


def compare_files(path, file):
    names = ("time", "lat", "lon", "temperature", "station", "pressure/level", "pressure/height")
    with h5py.File(path, "r") as a, h5py.File(file, "r") as b:
        for name in names:
            same_bits(b[name][...], a[name][...], name)
    print(f"h5py:        {len(names)} variables, every bit equal to what it reads from the file")


def xarray_equal(one, other):
    """Two datasets as xarray opened them: the same names, values, bits."""
    import xarray
    one.load()
    other.load()
    xarray.testing.assert_equal(one, other)
    for name, v in one.variables.items():
        if v.dtype.kind not in "OUT":
            assert v.values.tobytes() == other[name].values.tobytes(), name


def same_bits(a, b, name):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape, (name, a.dtype, b.dtype)
    same = np.array_equal(a, b) if a.dtype.kind == "O" else a.tobytes() == b.tobytes()
    assert same, name


def same_chunks(h5, folder, name):
    """Stored chunks, one by one. Returns how many, and their bytes."""
    count = total = 0
    data = h5[name]
    for i in range(data.id.get_num_chunks()):
        at = data.id.get_chunk_info(i).chunk_offset
        mask, stored = data.id.read_direct_chunk(at)
        key = ".".join(str(k // c) for k, c in zip(at, data.chunks))
        with open(os.path.join(folder, name, key), "rb") as f:
            assert mask == 0 and f.read() == stored, (name, key)
        count += 1
        total += len(stored)
    return count, total


def show(group, before=" "):
    """What zarr-python finds in a group. Its own tree() wants another package in version 3."""
    members = sorted([*group.arrays(), *group.groups()], key=lambda member: member[0])
    for name, member in members:
        last = name == members[-1][0]
        array = hasattr(member, "shape")
        what = f" {member.shape} {member.dtype}" if array else ""
        print(before + ("└── " if last else "├── ") + name + what)
        if not array:
            show(member, before + ("    " if last else "│   "))


def compare(path, mnt):
    import xarray
    import zarr
    z = zarr.open(mnt, mode="r")
    print("\nzarr-python finds\n/")
    show(z)
    names = ("time", "lat", "lon", "temperature", "station", "pressure/level", "pressure/height")
    with h5py.File(path, "r") as h5:
        for name in names:
            text = name == "station"
            same_bits(z[name][...], h5[name].asstr()[...] if text else h5[name][...], name)
        count, total = same_chunks(h5, mnt, "temperature")
    print(f"zarr-python: {len(names)} arrays, every bit equal to what h5py reads from the file")
    print(f"chunks:      {count} of temperature, {total} bytes, compressed, byte for byte those of "
          "the file")
    for group in (None, "pressure"):
        with xarray.open_dataset(path, group=group, engine="netcdf4") as a, \
                xarray.open_zarr(mnt, group=group) as b:
            xarray_equal(a, b)
    print("xarray:      equal to xarray on the netCDF file, in both groups")


def compare_store(path, file):
    import xarray
    import zarr
    z = zarr.open(path, mode="r")
    names = ("time", "y", "x", "height", "period", "buoy", "bottom/depth")
    with h5py.File(file, "r") as h5:
        for name in names:
            text = name == "buoy"
            same_bits(z[name][...], h5[name].asstr()[...] if text else h5[name][...], name)
        count, total = same_chunks(h5, path, "height")
    print(f"h5py:        {len(names)} variables, every bit equal to what zarr-python reads from "
          "the store")
    print(f"chunks:      {count} of height, {total} bytes, compressed, byte for byte those of the "
          "store")
    with netCDF4.Dataset(file) as nc:
        nc.set_auto_maskandscale(False)
        for name in names:
            same_bits(z[name][...], nc[name][...], name)
    print("netCDF4:     the same")
    for group in (None, "bottom"):
        with xarray.open_zarr(path, group=group, consolidated=False) as a, \
                xarray.open_dataset(file, group=group, engine="netcdf4") as b:
            xarray_equal(a, b)
    print("xarray:      equal to xarray on the Zarr store, in both groups")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    {"write": write, "write-store": write_store, "compare": compare,
     "compare-store": compare_store, "write-old": write_old, "compare-old": compare_old,
     "compare-files": compare_files}[sys.argv[1]](*sys.argv[2:])
