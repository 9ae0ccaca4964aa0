# SPDX-License-Identifier: BSD-3-Clause
"""view=classic: any source as one CDF-1, CDF-2 or CDF-5 file. Byte for byte what nccopy makes of
the same file, where nccopy makes one; elsewhere value for value what the virtual netCDF-4 file
has. What cannot be read is an error of the pages concerned, and never a fill value."""
import functools
import os

from lib import mounts
from lib.context import Skip, corpus
from cases.netcdf_view.test_virtual import virtual
from cases.netcdf_view.test_virtual_corpus import rows

LIMIT = 120.0
ONE_IN = {"corpus_*": 6}
KINDS = {1: "classic", 2: "64-bit offset", 5: "cdf5"}
LARGE = 1 << 28
FOLDERS = ("classic", "hdf4", "hdf5", "netcdf4", "zarr2", "zarr3", "zip")


def compare(classic, nc4):
    from clients.netcdf import nc_classic
    if os.stat(virtual(classic)).st_size > LARGE:
        raise Skip("too large to be read")
    nc_classic.compare(virtual(classic), virtual(nc4))


def of_corpus(root, row, t):
    """Where the netCDF-4 view can be mounted, the classic one can, and has the same."""
    source = os.path.join(root, row)
    with t.mount(source, "view=nc", check=False) as nc4:
        if nc4.status:
            raise Skip("no netCDF-4 view: " + nc4.messages()[:200])
        with t.mount(source, "view=classic") as m:
            t.call(compare, m.path, nc4.path)


def cases():
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        return
    for row in rows(root, FOLDERS):
        yield "corpus_" + row, functools.partial(of_corpus, root, row)
