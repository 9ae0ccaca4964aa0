# SPDX-License-Identifier: BSD-3-Clause
"""Zarr v3 views of generated and of real files and trees, read by a reader of Zarr v3 that was
written for the tests, and by the program itself."""
import functools
import os

import gen
from gen import trees
from lib.context import Skip, corpus
from cases.zarr_view import test_roundtrip as roundtrip
from cases.zarr_view.test_corpus import files

LIMIT = 60.0
EVERY = int(os.environ.get("NCZARRFS_V3_EVERY", "40"))  # of the corpus
NOT_HERE = {
    "hdf5/brtnfld-hdf5/tlayouto.h5": "an array of more than 2^62 bytes is none in Zarr",
    "hdf5/brtnfld-hdf5/tbigdims.h5": "gigabytes of fill values",
    "hdf5/jamesmudd-jhdf/tiny_huge_1d_over_maxint.hdf5": "gigabytes of fill values",
}

FEATURES = ("nested_groups", "unlimited", "short_variable", "zero_length", "scalars",
            "attribute_types", "attribute_nan", "attribute_text", "attribute_shapes",
            "fill_extremes", "missing_chunks", "fill_attribute_differs", "compound_fill",
            "deflate_shuffle", "fletcher32_first", "filter_masks", "utf8_names",
            "names_like_chunks", "names_like_metadata", "vl_string_fill", "fixed_strings",
            "atomic_types", "big_endian", "float16", "booleans", "complexes", "opaque",
            "compounds", "vlens", "char_arrays", "nan_payloads")
THERE_AND_BACK = ("unlimited", "packed_data", "char_arrays", "fill_values", "vl_strings")
TREES = ("times", "fixed_texts", "free_texts", "structures", "codecs", "v3_texts", "v3_shards")
OPTIONS = (("zarr_format=3",), ("shards=4K",), ("zarr_format=3", "chunk_key_encoding=v2"),
           ("shards=8K", "dimension_separator=."),
           ("zarr_format=3", "chunk_key_encoding=v2", "dimension_separator=/", "filter=none"))


def compare(v2, v3, back, stock):
    from clients import v3_trees
    v3_trees.compare(v2, v3, back, stock)


def judge(t, original, number, *more):
    options = OPTIONS[number % len(OPTIONS)]
    with t.mount(original, "view=zarr", "filter=none", "unsupported=skip") as v2, \
            t.mount(original, "view=zarr", "unsupported=skip", *options, *more) as v3, \
            t.mount(v3.path, "view=zarr", "filter=none") as back:
        t.call(compare, v2.path, v3.path, back.path, "filter=keep" not in more)


def feature(name, number, t):
    original = t.path(name + ".nc")
    gen.load()[name].write(original)
    if not os.path.exists(original):
        raise Skip("not written here")
    judge(t, original, number)


def there_and_back(name, number, t):
    """A netCDF-4 file that came from a Zarr v3 tree of a netCDF-4 file."""
    original = t.path(name + ".nc")
    gen.load()[name].write(original)
    with t.mount(original, *OPTIONS[number % len(OPTIONS)]) as v3, t.mount(v3.path) as m:
        roundtrip.judge(t, original, m.path, "zarr", roundtrip.KNOWN.get(name, {}))


def tree(name, number, t):
    made = trees.load()[name]
    source = t.path(name + made.ending)
    made.write(source)
    judge(t, source, number)


def real(file, number, t):
    judge(t, file, number)


def real_files(root):
    """Files and trees of the corpus."""
    for kind in ("netcdf4", "hdf5"):
        for file in files(os.path.join(root, kind)):
            yield file
    for kind in ("zarr2", "zarr3"):
        for base, dirs, names in os.walk(os.path.join(root, kind)):
            if {".zgroup", ".zarray", "zarr.json"} & set(names):
                dirs[:] = []
                yield base


def cases():
    root = corpus()
    for i, file in enumerate(real_files(root) if root else ()):
        name = os.path.relpath(file, root)
        if i % EVERY == 0 and name not in NOT_HERE:
            yield name, functools.partial(real, file, i // EVERY)
    for i, name in enumerate(THERE_AND_BACK):
        yield "back_" + name, functools.partial(there_and_back, name, i)
    for i, name in enumerate(TREES):
        yield "tree_" + name, functools.partial(tree, name, i)
    for i, name in enumerate(FEATURES):
        yield name, functools.partial(feature, name, i)


def names(t):
    """What is called like a document is not shown, and said to be hidden."""
    import h5py
    file = t.path("names.h5")
    with h5py.File(file, "w") as f:
        f["zarr.json"] = [1, 2]
        f["g/zarr.json/x"] = [1]
        f["c"] = [3, 4]
        f["g/c/0"] = [5]
    return file


def looks(mnt):
    from clients import v3_trees
    assert sorted(os.listdir(mnt)) == ["c", "g", "zarr.json"], os.listdir(mnt)
    assert sorted(os.listdir(mnt + "/g")) == ["c", "zarr.json"], os.listdir(mnt + "/g")
    assert os.path.isfile(mnt + "/zarr.json") and os.path.isfile(mnt + "/g/zarr.json")
    problems = v3_trees.check_documents(mnt, True)
    assert not problems, problems


def test_reserved(t):
    file = names(t)
    with t.mount(file, "zarr_format=3") as m:
        t.call(looks, m.path)
    status, out, err = t.run(t.binary, "info", "-o", "zarr_format=3", file)
    assert status == 0 and "view      zarr v3: a mount shows a Zarr store\n" in out, err
    assert out.count("it has the name of a Zarr metadata file") == 1, out
    assert out.count("it is in a group whose name cannot be shown") == 1, out


def mirrored(mnt):
    import json
    from clients import v3_trees
    assert sorted(os.listdir(mnt)) == ["x.nc", "x.zarr"], os.listdir(mnt)
    problems = v3_trees.check_documents(mnt + "/x.zarr", True)
    assert not problems, problems
    stored = [a for a in os.listdir(mnt + "/x.zarr") if os.path.isdir(f"{mnt}/x.zarr/{a}")
              and "user._Codecs" in os.listxattr(f"{mnt}/x.zarr/{a}")]
    assert stored
    for a in stored:
        said = json.loads(os.getxattr(f"{mnt}/x.zarr/{a}", "user._Codecs"))
        assert all(set(c) == {"name", "configuration"} for c in said), said


def test_mirrored(t):
    os.mkdir(t.path("d"))
    gen.load()["deflate_shuffle"].write(t.path("d/x.nc"))
    with t.mount(t.path("d"), "shards=64K") as m:
        t.call(mirrored, m.path)


def test_refused(t):
    for options, part in (("shards,zarr_format=2", "leave out zarr_format=2"),
                          ("zarr_format=3,mode=nczarr", "use mode=zarr"),
                          ("chunk_key_encoding=v2", "only with zarr_format=3")):
        status, _, err = t.run(t.binary, "-o", options, t.path("x.nc"), t.path("m"))
        assert status == 2 and part in err and len(err.splitlines()) == 1, err
