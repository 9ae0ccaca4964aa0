"""Zarr v3 views of generated and of real files and trees, read by a reader of Zarr v3 that was
written for the tests, and by the program itself."""
import functools
import os

import gen
from gen import trees
from lib.context import Skip, corpus
from cases.test_corpus import files

LIMIT = 60.0
EVERY = int(os.environ.get("NCZARRFS_V3_EVERY", "20"))  # of the corpus
NOT_HERE = {
    "hdf5/brtnfld-hdf5/tlayouto.h5": "an array of more than 2^62 bytes is none in Zarr",
    "hdf5/brtnfld-hdf5/tbigdims.h5": "gigabytes of fill values",
    "hdf5/jamesmudd-jhdf/tiny_huge_1d_over_maxint.hdf5": "gigabytes of fill values",
}

FEATURES = ("nested_groups", "unlimited", "short_variable", "zero_length", "scalars",
            "classic_model", "attribute_types", "attribute_nan", "attribute_text",
            "attribute_shapes", "fill_values", "fill_extremes", "missing_chunks",
            "fill_attribute_differs", "compound_fill", "deflate_shuffle", "fletcher32_first",
            "fletcher32_last", "filter_masks", "incompressible", "layouts", "utf8_names",
            "names_like_chunks", "names_like_metadata", "vl_strings", "vl_string_fill",
            "fixed_strings", "atomic_types", "big_endian", "float16", "booleans", "complexes",
            "opaque", "compounds", "netcdf_compound", "vlens", "char_arrays", "nan_payloads")
TREES = ("numbers", "times", "fixed_texts", "free_texts", "structures", "codecs", "v3_numbers",
         "v3_texts", "v3_shards", "zip_deflated")
OPTIONS = (("zarr_format=3",), ("shards=4K",), ("zarr_format=3", "chunk_keys=v2"),
           ("shards=8K", "dimension_separator=."),
           ("zarr_format=3", "chunk_keys=v2", "dimension_separator=/", "filter=none"))


def compare(v2, v3, back, stock):
    from clients import v3_trees
    v3_trees.compare(v2, v3, back, stock)


def judge(t, original, number, *more):
    options = OPTIONS[number % len(OPTIONS)]
    with t.mount(original, "view=zarr", "filter=none", "bad_arrays=hide") as v2, \
            t.mount(original, "view=zarr", "bad_arrays=hide", *options, *more) as v3, \
            t.mount(v3.path, "view=zarr", "filter=none") as back:
        t.call(compare, v2.path, v3.path, back.path, "filter=keep" not in more)


def feature(name, number, t):
    original = t.path(name + ".nc")
    gen.load()[name].write(original)
    if not os.path.exists(original):
        raise Skip("not written here")
    judge(t, original, number)


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
    for i, name in enumerate(TREES):
        yield "tree_" + name, functools.partial(tree, name, i)
    for i, name in enumerate(FEATURES):
        yield name, functools.partial(feature, name, i)
