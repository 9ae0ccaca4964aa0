# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees and archives that others made, as virtual netCDF-4 files: what zarr-python (or the
specification) says of them and what h5py, HDF5's tools, netCDF-C's tools and xarray read from the
file is the same. What cannot be read is named here, and nothing else may fail."""
import functools
import math
import os

from lib import mounts
from lib.context import Skip, corpus
from cases.netcdf_view.test_virtual import h5py_compare, h5tools, nctools, virtual, xarray_compare

LIMIT = 60.0
ONE_IN = {"*": 3}
LARGE = 1 << 22  # elements: as text they take seconds

# row -> a word of the one line that refuses it
REFUSED = {
    "zarr2/zarrs-zarrs/v2__array_pcodec_C.zarr": "codec 'pcodec' is not supported",
    "zarr3/zarrs-zarrs/v3__array_optional.zarr": "data type 'optional' is not supported",
    "zip/Unidata-netcdf-c/ref_noshape.file.zip": "1 dimension names are given for 0 dimensions",
}

# arrays that were never written and have no fill value: zarr-python gives what was in memory
UNDEFINED = ("zarr2/rouault-gdal/array_dimensions.zarr",)


def rows(root, folders=("zarr2", "zarr3", "zip")):
    """Paths of the manifest below these folders, without the slash of directories."""
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        paths = [line.split("\t")[0] for line in f]
    return [p.rstrip("/") for p in paths if p.split("/")[0] in folders]


def netcdf_can(source):
    """Whether all arrays have types of netCDF, as ncdump prints them: no structures (netCDF-C has
    limits of its own there), lists, bytes without meaning."""
    from clients import tree

    def simple(a):
        if a.dtype is None or a.dtype.names or a.dtype.kind in "cV":
            return False
        return a.dtype.kind != "O" or all(isinstance(x, str) for x in a.values().ravel())
    return all(simple(a) for a in tree.load(source).arrays.values())


def large(source):
    from clients import tree
    return any(math.prod(a.shape) > LARGE for a in tree.load(source).arrays.values())


def tools(source, mnt, tmp):
    if large(source):
        print("large: no tools that print everything")
        return
    h5tools(mnt, tmp)
    if netcdf_can(source):
        nctools(mnt, tmp)
    else:
        print("types that netCDF does not have: its tools are not asked")


def has_dimensions(source):
    """Whether xarray can open the tree."""
    from clients import tree
    arrays = tree.load(source).arrays
    return arrays and "/" not in arrays and all(a.dims for a in arrays.values() if a.shape)


def compare_xarray(source, mnt):
    if not has_dimensions(source):
        print("no names of dimensions: xarray is not asked")
        return
    xarray_compare(source, mnt)


def refused(m, word):
    lines = m.messages().splitlines()
    assert m.status == 1, f"status {m.status}, a refusal expected"
    assert len(lines) == 1 and word in lines[0], f"{word!r} is not in {lines}"
    assert not mounts.is_mounted(m.path), "a mount is left behind"


def compare(root, row, t):
    source = os.path.join(root, row)
    with t.mount(source, check=row not in REFUSED) as m:
        if row in REFUSED:
            refused(m, REFUSED[row])
            return
        t.call(h5py_compare, source, m.path, ())
        t.call(tools, source, m.path, t.tmp)
        if (os.path.isdir(source) and not os.path.exists(os.path.join(source, "zarr.json"))
                and row not in UNDEFINED):
            t.call(compare_xarray, source, m.path)


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with zarr2, zarr3, zip in it")


def cases():
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        yield "all", no_corpus
        return
    for row in rows(root):
        yield row, functools.partial(compare, root, row)
