# SPDX-License-Identifier: BSD-3-Clause
"""There and back: a netCDF-4 file is mounted as a Zarr tree, the tree is copied as any directory,
the copy is mounted as a netCDF-4 file. ncdump prints of that what it prints of the first, or the
difference has a name."""
import functools
import os
import shutil

from lib.context import Crashed, Skip, corpus
from cases.zarr_view.test_corpus import files
from cases.netcdf_view.test_virtual import virtual

LIMIT = 60.0
ONE_IN = {"*": 4}
EVERY = 1  # of the corpus

# file -> variable -> the difference that keeps it from being compared (tests/differences.py)
KNOWN = {
    "three_unlimited": {"/v": "netcdf-padding", "/w": "netcdf-padding"},
    "fill_attribute_differs": {"/empty": "round-fill", "/other_type": "round-fill",
                               "/text": "round-fill"},
    "scaleoffset_nbit": {"/nbit": "narrow-netcdf"},
    "float16": {"/be": "half-netcdf", "/le": "half-netcdf"},
    "netcdf4/ioos-compliance-checker/bad_missing_data.nc": {"/temp": "netcdf-padding"},
    "netcdf4/Unidata-netcdf-c/f03tst_open_mem.nc": {"/var2": "netcdf-undefined"},
    "netcdf4/fsspec-kerchunk/air_linked.nc": {
        "/" + v: "linked-dims" for v in ("lat", "air", "time", "lat_soft", "time_soft")},
}
# what cannot be copied in a moment, or is no netCDF-4
NOT_COPIED = {
    "indexes_latest": "many files", "indexes_earliest": "many files",
    "many_variables": "many files",
    "netcdf4/Unidata-netcdf-c/ref_hdf5_compat1.nc": "many files",
    "netcdf4/Ouranosinc-xclim-testdata/q_sim.nc": "many files", "paged_fixed_array": "many files",
    "large_contiguous": "many megabytes",
    "unknown_filter": "unreadable", "external_storage": "unreadable",
    "latin1": "names that are not UTF-8", "odd_names": "names that are not UTF-8",
    "netcdf4/Unidata-netcdf-c/ref_tst_xplatform2_2.nc": "netCDF4-python cannot open it",
    "netcdf4/roteiro-gis-netcdf-rust/nc4_groups.nc": "wrong-scale",
    "huge_shape": "a shape of billions of chunks", "sparse_5_gib": "5 GiB of fill values",
    "many_entries": "a million files", "attribute_nan_strict": "numbers become texts"}


def compare(original, mnt, mode, known):
    from clients import round_trip
    round_trip.compare(original, virtual(mnt), mode, known)


def there_and_back(t, original, options, known):
    for mode in ("nczarr", "zarr"):
        tree = t.path(mode) + ".zarr"
        with t.mount(original, "mode=" + mode, *options) as m:
            t.call(shutil.copytree, m.path, tree, timeout=30)
        with t.mount(tree) as m:
            judge(t, original, m.path, mode, known)


def judge(t, *args):
    """netCDF-C 4.9.0 crashes on some valid files, not every time: a mount that made it crash would
    do so again."""
    for _ in range(2):
        try:
            t.call(compare, *args)
            return
        except Crashed as why:
            print(why)
    t.call(compare, *args)


def from_corpus(root, name, t):
    from cases.zarr_view.test_corpus import h5py_opens
    original = os.path.join(root, name)
    if not h5py_opens(original):
        raise Skip("h5py cannot open it")
    there_and_back(t, original, (), KNOWN.get(name, {}))


def generated(name, feature, t):
    original = t.path(name + ".nc")
    feature.write(original)
    if not os.path.exists(original):
        raise Skip("not written here")
    there_and_back(t, original, feature.options, KNOWN.get(name, {}))


def cases():
    import gen
    for name, feature in gen.load().items():
        if name not in NOT_COPIED:
            yield name, functools.partial(generated, name, feature)
    root = corpus()
    for i, file in enumerate(files(os.path.join(root, "netcdf4")) if root else ()):
        name = os.path.relpath(file, root)
        if i % EVERY == 0 and name not in NOT_COPIED:
            yield name, functools.partial(from_corpus, root, name)
