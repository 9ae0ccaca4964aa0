"""Zarr trees on a web server: both views show what they show of the same tree here; requests are
counted; what the server refuses is an error and never a fill value.

A few trees, or with NCZARRFS_REMOTE=all every generated one and all of the corpus."""
import functools
import os
import subprocess

import numpy as np

from gen import trees
from lib.context import Skip, corpus
from lib.served import serve
from lib.web import WebServer

LIMIT = 120.0
ALL = os.environ.get("NCZARRFS_REMOTE") == "all"
SOME = ("numbers", "free_texts", "structures", "v3_shards", "v3_texts", "nczarr_old",
        "order_f", "chunks_absent")
SOME_ROWS = ("zarr2/rouault-gdal/nczarr_v2.zarr", "zarr2/bcdev-jzarr/example_3.zarr",
             "zarr2/Unidata-netcdf-c/ref_consolidated_zarr_2.18.2_python.zarr")

# row -> why it is not the same from far away
DIFFERS = {}


def virtual(mnt):
    names = os.listdir(mnt)
    assert len(names) == 1, f"one file expected: {names}"
    return os.path.join(mnt, names[0])


def same_trees(near, far):
    from clients import same
    print(same.trees(near, far), "files")


def same_files(near, far):
    from clients import same
    print(same.files(virtual(near), virtual(far)), "arrays")


def both(t, source, web, address):
    for view, compare in (("view=zarr", same_trees), ("view=nc", same_files)):
        with t.mount(source, view, check=False) as near:
            if near.status:
                print(f"{view}: not shown here: {near.messages()[:200]}")
                with t.mount(address, view, check=False) as far:
                    assert far.status, "refused here, and shown from far away"
                continue
            with t.mount(address, view) as far:
                if os.environ.get("NCZARRFS_SHOW"):
                    print(web.asked)
                t.call(compare, near.path, far.path)
    print(len(web.asked), "requests")


def of_tree(made, t):
    made.write(t.path("written" + made.ending))
    source = serve(t.path("written" + made.ending), t.path("www"), "a.zarr")
    with WebServer(t.path("www")) as web:
        both(t, source, web, web.url + "/a.zarr")


def of_row(root, row, t):
    source = serve(os.path.join(root, row), t.path("www"), "a.zarr")
    with WebServer(t.path("www")) as web:
        both(t, source, web, web.url + "/a.zarr#mode=zarr")


def rows(root):
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        paths = [line.split("\t")[0] for line in f]
    return [p.rstrip("/") for p in paths
            if p.split("/")[0] in ("zarr2", "zarr3") and p.endswith("/")]


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with zarr2, zarr3 in it")


def cases():
    for name, made in trees.load().items():
        if (ALL or name in SOME) and made.ending == ".zarr":
            yield name, functools.partial(of_tree, made)
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        yield "corpus", no_corpus
        return
    for row in rows(root):
        if ALL or row in SOME_ROWS:
            yield row, functools.partial(of_row, root, row)
