# SPDX-License-Identifier: BSD-3-Clause
"""A small store as climate models' output looks in Zarr: written like xarray does, with time,
latitude, longitude, packed and compressed variables, a mask, names, a scalar."""
import numcodecs
import numpy as np
import zarr


def write(path):
    g = zarr.open_group(path, mode="w")
    g.attrs.update({"Conventions": "CF-1.8", "title": "a model", "levels": [1.5, 2.0]})

    def put(name, dims, values, chunks, attrs=None, **more):
        more.setdefault("fill_value", None)
        a = g.create_dataset(name, shape=values.shape, chunks=chunks, dtype=values.dtype, **more)
        a[...] = values
        a.attrs.update({"_ARRAY_DIMENSIONS": dims, **(attrs or {})})
    rng = np.random.RandomState(7)
    cube = rng.normal(280, 20, (10, 12, 18)).round(2)
    put("time", ["time"], np.arange(10) * 30, (10,),
        {"units": "days since 2001-01-01", "calendar": "standard"})
    put("lat", ["lat"], np.linspace(82.5, -82.5, 12), (12,), {"units": "degrees_north"},
        fill_value=np.nan)
    put("lon", ["lon"], np.arange(0, 360, 20.), (18,), {"units": "degrees_east"},
        fill_value=np.nan)
    put("tas", ["time", "lat", "lon"], cube.astype("f4"), (3, 5, 18),
        {"units": "K", "standard_name": "air_temperature"}, compressor=numcodecs.Blosc("lz4"),
        fill_value=np.float32(1e20))
    put("pr", ["time", "lat", "lon"], (cube * 10).astype("i2"), (4, 12, 7),
        {"units": "mm", "scale_factor": 0.5, "add_offset": 1.0}, compressor=zarr.Zlib(4),
        filters=[numcodecs.Shuffle(2)], fill_value=-9999)
    put("land", ["lat", "lon"], rng.rand(12, 18) > 0.6, (12, 18))
    put("zone", ["lat"], np.array([f"zone {i}\u00b0" for i in range(12)]), (12,), fill_value="")
    put("crs", [], np.array(0, "i8"), (), {"grid_mapping_name": "latitude_longitude"})
