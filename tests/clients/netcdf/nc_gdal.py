#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""nc_gdal.py FILE TREE NAME: a virtual file through GDAL's netCDF driver against GDAL's Zarr driver
on the tree, and the variable NAME as an image: its place on the globe and its values."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from clients import compare_gdal  # noqa: E402


def image(file, tree, name):
    from osgeo import gdal
    ds = gdal.Open(f'NETCDF:"{file}":{name}')
    assert ds, gdal.GetLastErrorMsg()
    want = gdal.OpenEx(tree, gdal.OF_MULTIDIM_RASTER).GetRootGroup().OpenMDArray(name).ReadAsArray()
    assert ds.RasterCount == want.shape[0], ds.RasterCount
    assert np.array_equal(ds.ReadAsArray(), want), "the image differs"
    assert ds.GetGeoTransform() == (-10.0, 20.0, 0.0, 90.0, 0.0, -15.0), ds.GetGeoTransform()
    part = ds.GetRasterBand(4).ReadAsArray(3, 2, 5, 7)
    assert np.array_equal(part, want[3, 2:9, 3:8]), "a part of the image differs"


def main(argv):
    if len(argv) != 4:
        sys.exit(__doc__.splitlines()[0])
    try:
        print(compare_gdal.compare(*argv[1:3]), "arrays equal")
        image(*argv[1:])
    except AssertionError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv)
