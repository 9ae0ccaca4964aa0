#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare_gdal.py FILE MOUNTPOINT: arrays as GDAL's Zarr driver reads them through the mount
(filter=none) against GDAL's netCDF driver on the file: dimensions, lengths, values.

What GDAL 3.6 does not read on either side is passed over; nothing in common is a failure."""
import sys

import numpy as np


def open_group(gdal, what, driver):
    ds = gdal.OpenEx(what, gdal.OF_MULTIDIM_RASTER, allowed_drivers=[driver])
    assert ds, f"GDAL's {driver} driver cannot open {what}: {gdal.GetLastErrorMsg()}"
    return ds, ds.GetRootGroup()


def walk(group, path, found):
    for name in group.GetMDArrayNames() or ():
        found[path + "/" + name] = group.OpenMDArray(name)
    for name in group.GetGroupNames() or ():
        child = group.OpenGroup(name)
        if child:
            walk(child, path + "/" + name, found)
    return found


def numeric(gdal, array):
    return array is not None and array.GetDataType().GetClass() == gdal.GEDTC_NUMERIC


def compare(file, mnt):
    from osgeo import gdal
    gdal.DontUseExceptions()
    gdal.PushErrorHandler("CPLQuietErrorHandler")
    keep1, a = open_group(gdal, file, "netCDF")
    keep2, b = open_group(gdal, mnt, "Zarr")
    want, got = walk(a, "", {}), walk(b, "", {})
    count, problems = 0, []
    for path, x in want.items():
        if not numeric(gdal, x):
            continue
        y = got.get(path)
        if y is None:
            problems.append(f"{path} is missing")
            continue
        dims = [[(d.GetName(), d.GetSize()) for d in v.GetDimensions()] for v in (x, y)]
        if dims[0] != dims[1]:
            problems.append(f"{path}: dimensions {dims[0]}, through the mount {dims[1]}")
            continue
        p, q = x.ReadAsArray(), y.ReadAsArray()
        if p is None:
            continue
        if q is None:
            problems.append(f"{path}: cannot be read: {gdal.GetLastErrorMsg()}")
            continue
        p, q = np.asarray(p), np.asarray(q)
        same = (p == q) | ((p != p) & (q != q)) if p.shape == q.shape else False
        if not np.all(same):
            problems.append(f"{path}: {p!r:.200}, through the mount {q!r:.200}")
        count += 1
    del keep1, keep2
    if problems:
        raise AssertionError("\n".join(problems[:40]))
    assert count or not any(numeric(gdal, x) for x in want.values()), "nothing was compared"
    return count


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    try:
        print(compare(*argv[1:]), "arrays equal")
    except AssertionError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv)
