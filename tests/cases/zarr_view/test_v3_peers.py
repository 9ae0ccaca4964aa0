# SPDX-License-Identifier: BSD-3-Clause
"""The Zarr v3 view through zarr-python 3 and zarrita.js: every feature that tests/gen writes, in
every form that the view has, equals what h5py reads. They are in a Debian of their own: without
`make peers` these tests are skipped.

Readers cost more to start than to use, so that one process reads many mounts."""
import contextlib
import functools
import json
import os

import gen
from lib import clients, peers
from lib.context import Crashed

LIMIT = 400.0
READERS = ("zarr-python 3", "zarrita.js")
# The sample of features for the forms that differ in names, mostly.
FEW = ("atomic_types", "vl_strings", "fixed_strings", "nested_groups", "scalars", "compounds",
       "deflate_shuffle", "filter_masks", "missing_chunks", "incompressible", "siblings")
# Attributes that xarray is particular about.
FILLED = ("fill_values", "fill_extremes", "fill_attribute_differs", "packed_data", "big_endian",
          "nested_groups")
FORMS = {
    "plain": ("zarr_format=3",),
    "shards": ("zarr_format=3", "shards=4K"),
    "shards-of-64M": ("zarr_format=3", "shards"),
    "none": ("zarr_format=3", "filter=none"),
    "shards-none": ("zarr_format=3", "shards=4K", "filter=none"),
    "v2-keys": ("zarr_format=3", "chunk_key_encoding=v2"),
    "v2-keys-nested": ("zarr_format=3", "chunk_key_encoding=v2", "dimension_separator=/"),
    "v2-keys-shards": ("zarr_format=3", "chunk_key_encoding=v2", "shards=4K"),
    "dots": ("zarr_format=3", "dimension_separator=."),
    "noxarray": ("zarr_format=3", "mode=noxarray"),
}
# Forms that make check-peers looks at with all features; the first is make check's.
WHOLE = ("plain", "shards", "none", "shards-none")


def siblings(path):
    """Groups that hold groups and arrays, side by side, one without anything: zarr-python 3.0 wants
    the children of one group to stand together in consolidated metadata."""
    import h5py
    with h5py.File(path, "w") as f:
        for name in "abc":
            f.create_group(f"{name}/empty")
            f.create_group(f"{name}/deeper/empty")
            f[f"{name}/v"] = [1, 2, 3]
            f[f"{name}/deeper/w"] = 4.5


def write(t, names):
    """name -> (file, its options) of the features that can be written here."""
    found = {}
    own = gen.Feature(siblings, (), ("zarr",))
    for name, feature in [*gen.load().items(), (own.name, own)]:
        if names and name not in names:
            continue
        file = t.path(name + ".nc")
        feature.write(file)
        if os.path.exists(file):
            found[name] = file, feature.options
    assert not names or set(found) == set(names), f"not written: {set(names) - set(found)}"
    return found


def _compare(items):
    """items: ("file form", {reader: result}, notes, what netCDF-C says)."""
    from clients import v3_native
    found = []
    for where, results, notes, nc in items:
        file = where.rpartition(" ")[0]
        for reader, result in results.items():
            try:
                v3_native.compare_hdf5(file, result, reader, notes, nc,
                                       not where.endswith(" noxarray"))
            except AssertionError as error:
                found.append(f"{os.path.basename(where)}: {reader}: {error}")
    assert not found, "\n".join(found)


def compare(t, items):
    """In one process; one for each file where h5py dies of one."""
    try:
        t.call(_compare, items, timeout=120)
    except Crashed:
        for item in items:
            try:
                t.call(_compare, [item])
            except Crashed as why:
                print(os.path.basename(item[0]), why)


def run(names, forms, t):
    from clients import oracle
    peers.root()
    files = write(t, names)
    trees, notes = {}, {}
    with contextlib.ExitStack() as stack:
        for name, (file, own) in files.items():
            for form in forms:
                options = own + FORMS[form]
                trees[name, form] = stack.enter_context(t.mount(file, *options)).path
                notes[name, form] = clients.info(t, file, *options)
        results = {reader: peers.read(t, reader, trees, timeout=200)
                   for reader in peers.available(READERS)}
    nc = {name: oracle.netcdf_model(file) for name, (file, _) in files.items()}
    compare(t, [(f"{files[name][0]} {form}", {r: results[r][name, form] for r in results},
                 notes[name, form], nc[name]) for name, form in trees])


def _compare_xarray(files, seen, results):
    import h5py
    from clients import oracle, v3_native
    found = []
    for name, (file, _) in files.items():
        undefined = set()
        for path, array in oracle.Model(file).arrays.items():
            array.h5 = h5py.Dataset(array.dataset)
            if array.undefined():
                undefined.add(path)
        try:
            v3_native.compare_xarray(file, seen[name], results[name], undefined)
        except AssertionError as error:
            found.append(f"{name}: {error}")
    assert not found, "\n".join(found)


def run_xarray(names, t):
    peers.root()
    files, features = write(t, names), gen.load()
    files = {n: f for n, f in files.items() if n in features and "xarray" in features[n].clients}
    with contextlib.ExitStack() as stack:
        trees = {name: stack.enter_context(t.mount(file, *own, "zarr_format=3")).path
                 for name, (file, own) in files.items()}
        seen = peers.read(t, "xarray", trees, timeout=200)
        results = peers.read(t, "zarr-python 3", trees)
    t.call(_compare_xarray, files, seen, results, timeout=120)


def _compare_written(folder, file):
    """The virtual file of a tree that zarr-python 3 wrote has the values that it wrote."""
    import h5py
    import numpy as np
    found, names = [], sorted(os.listdir(folder))
    with h5py.File(file, "r") as h5:
        assert bytes(h5.attrs["title"]) == b"written by zarr-python"
        for name in names:
            key, form = os.path.splitext(name)
            key = "g/" + key if key == "in_a_group" else key
            if form == ".json":
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    if list(h5[key].asstr()[...]) != json.load(f):
                        found.append(key)
                continue
            want, got = np.load(os.path.join(folder, name)), np.asarray(h5[key][...])
            if want.dtype == bool:
                got = got.astype(bool)
            got = got.astype(got.dtype.newbyteorder("="))
            if (want.dtype, want.shape, want.tobytes()) != (got.dtype, got.shape, got.tobytes()):
                found.append(f"{key}: {got.dtype} {got.shape}, {want.dtype} {want.shape} written")
    assert not found, "\n".join(found)
    assert len(names) > 15, names


def run_written(t):
    """Trees that zarr-python 3 writes, v2 and v3, as netCDF-4 files."""
    folder = t.path("written")
    os.mkdir(folder)
    peers.write(t, folder)
    for form in "v3", "v2":
        with t.mount(os.path.join(folder, form + ".zarr")) as m:
            t.call(_compare_written, os.path.join(folder, form), os.path.join(m.path, form + ".nc"))


def cases():
    yield "written", run_written
    yield "xarray", functools.partial(run_xarray, None if peers.everything() else FILLED)
    for form in WHOLE if peers.everything() else WHOLE[:1]:
        yield form, functools.partial(run, None, [form])
    yield "forms", functools.partial(run, FEW, list(FORMS)[1:])
