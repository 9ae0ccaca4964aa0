# SPDX-License-Identifier: BSD-3-Clause
"""Files that others made, of every kind of source, as Zarr v3 and as shards, through zarr-python 3,
zarrita.js and xarray: equal to what h5py, netCDF-C, or zarr-python 3 itself reads of them.

make check takes a sample, make check-peers all. Many files share a process: see test_v3_peers."""
import contextlib
import functools
import os

from lib import clients, peers
from lib.context import Crashed, Skip, corpus

LIMIT = 400.0
BATCH = 30
SAMPLE = 12  # one in so many
FORMS = {"plain": ("zarr_format=3",), "shards": ("zarr_format=3", "shards")}
FOLDERS = ("netcdf4", "hdf5", "classic", "hdf4", "zarr2", "zarr3", "zip")


def rows(root, folder):
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        paths = [line.split("\t")[0].rstrip("/") for line in f]
    return [p for p in paths if p.split("/")[0] == folder]


def _hdf5(file, row, form, results, notes):
    from clients import compare_zarr, oracle, v3_native
    nc = oracle.netcdf_model(file)
    for reader, trees in results.items():
        if reader != "xarray":
            v3_native.compare_hdf5(file, trees[row, form], reader, notes, nc)
    if nc and form == "plain" and not compare_zarr.Info(notes).problem:
        import h5py
        undefined = set()
        for path, array in oracle.Model(file).arrays.items():
            array.h5 = h5py.Dataset(array.dataset)
            if array.undefined():
                undefined.add(path)
        v3_native.compare_xarray(file, results["xarray"][row, form],
                                 results["zarr-python 3"][row, form], undefined)


def _classic(file, row, form, results, notes):
    from clients import v3_native
    for reader, trees in results.items():
        if reader != "xarray":
            v3_native.compare_classic(file, trees[row, form], reader)
    if form == "plain":
        v3_native.compare_xarray(file, results["xarray"][row, form],
                                 results["zarr-python 3"][row, form])


def _trees(file, row, form, results, notes):
    """HDF4, and Zarr: the reader that is right about the native side is zarr-python 3, of the tree
    itself or, for HDF4, of the view in Zarr v2, which has tests of its own."""
    from clients import v3_native
    native = results["zarr-python 3"][row, "native"]
    for reader, trees in results.items():
        if reader != "xarray":
            v3_native.compare_trees(native, trees[row, form], reader, notes)


JUDGES = {"netcdf4": _hdf5, "hdf5": _hdf5, "classic": _classic}


def _judge(root, items, results, notes):
    found = []
    for row, form in items:
        judge = JUDGES.get(row.split("/")[0], _trees)
        try:
            judge(os.path.join(root, row), row, form, results, notes[row, form])
        except AssertionError as error:
            found.append(f"{row} {form}: {error}")
    assert not found, "\n".join(found)


def judge(t, root, items, results, notes):
    """In one process; in one for each file where netCDF-C or libhdf5 dies of one."""
    try:
        t.call(_judge, root, items, results, notes, timeout=200)
        return
    except Crashed:
        pass
    found = []
    for item in items:
        try:
            t.call(_judge, root, [item], results, notes, timeout=60)
        except Crashed as why:
            print(item[0], why)
        except AssertionError as error:
            found.append(str(error))
    assert not found, "\n".join(found)


def opened(t, stack, file, options):
    """A mount, or None when the program refuses the file: other tests judge that."""
    m = stack.enter_context(t.mount(file, *options, check=False, wait=60))
    if m.status != 0:
        print(file, m.messages()[:200])
        return None
    return m


def run(root, chosen, t):
    peers.root()
    trees, notes = {}, {}
    with contextlib.ExitStack() as stack:
        for row in chosen:
            file = os.path.join(root, row)
            for form, options in FORMS.items():
                m = opened(t, stack, file, ("view=zarr",) + options)
                if m:
                    trees[row, form] = m.path
                    notes[row, form] = clients.info(t, file, "view=zarr", *options)
            if (row, "plain") not in trees:
                continue
            if row.startswith("hdf4/"):
                m = opened(t, stack, file, ("view=zarr", "filter=none"))
                trees[row, "native"] = m.path
            elif row.split("/")[0] not in JUDGES:
                trees[row, "native"] = file
        if not trees:
            raise Skip("none of these files can be mounted")
        results = {}
        for reader in peers.available():
            mine = {k: v for k, v in trees.items() if reads(reader, k)}
            results[reader] = peers.read(t, reader, mine, timeout=200) if mine else {}
    items = [k for k in trees if k[1] != "native"]
    judge(t, root, items, results, notes)
    print(len(items), "trees")


def reads(reader, tree):
    """zarrita.js is not asked about native trees, xarray only about netCDF."""
    row, form = tree
    if reader == "xarray":
        return row.split("/")[0] in JUDGES and form == "plain"
    return reader == "zarr-python 3" or form != "native"


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with a MANIFEST.tsv")


def cases():
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        yield "all", no_corpus
        return
    sample = []
    for folder in FOLDERS:
        found = rows(root, folder)
        sample += found[::SAMPLE]
        if peers.everything():
            for i in range(0, len(found), BATCH):
                yield f"{folder}-{i // BATCH}", functools.partial(run, root, found[i:i + BATCH])
    if not peers.everything():
        yield "sample", functools.partial(run, root, sample)
