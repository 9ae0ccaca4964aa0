# SPDX-License-Identifier: BSD-3-Clause
"""A Zarr tree becomes a netCDF-4 file: a new one, which holds what the file had that the tree was
copied from; and the same file, whose chunks are all written again where they are."""
import functools
import os
import shutil
import subprocess

from lib.context import Crashed, Skip, corpus
from cases.zarr_view.test_corpus import files
from cases.zarr_view.test_roundtrip import KNOWN, NOT_COPIED

LIMIT = 60.0
STEPS = 8
BYTES = 400000  # larger files of the corpus say no more
# what netCDF-4 cannot hold when it has to be made: the file -> why
REFUSED = {
    "lzf": "does not accept this name", "names_like_metadata": "does not accept this name",
    "fill_attribute_differs": "attribute '_FillValue'",
    "netcdf4/OPENDAP-netcdf_handler/ref_tst_compounds.nc": "attribute '_FillValue'",
    "netcdf4/OPENDAP-netcdf_handler/ref_tst_opaque_data.nc": "attribute '_FillValue'",
    "netcdf4/Unidata-netcdf-c/ref_tst_compounds.nc": "attribute '_FillValue'"}
EVERY = int(os.environ.get("PUSH_NC_EVERY", "8"))  # of the corpus and of what is generated


def push(t, *args, refused=None):
    done = subprocess.run([os.path.join(os.path.dirname(t.binary), "tests", "push_nc"), *args],
                          cwd=t.tmp, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if refused:
        assert done.returncode == 1 and refused in done.stderr.decode(), done.stderr.decode()
    else:
        assert done.returncode == 0, done.stderr.decode()


def compare(original, made, known):
    from clients import round_trip, scales
    wrong = scales.problems(made)
    assert not wrong or wrong == scales.problems(original), wrong
    round_trip.compare(original, made, "zarr", known)


def judge(t, *args):
    """netCDF-C 4.9.0 crashes on some valid files, not every time."""
    for _ in range(2):
        try:
            t.call(compare, *args)
            return
        except Crashed as why:
            print(why)
    t.call(compare, *args)


def both(t, name, original, options):
    tree, new, again = t.path("tree.zarr"), t.path("new.nc"), t.path("again.nc")
    known = KNOWN.get(name, {})
    shutil.copy(original, again)
    with t.mount(original, "mode=zarr", *options) as m:
        t.call(shutil.copytree, m.path, tree, timeout=30)
    push(t, again, tree, tree)
    judge(t, original, again, known)
    push(t, new, "-", tree, refused=REFUSED.get(name))
    if name not in REFUSED:
        judge(t, original, new, known)


def changes(t):
    """One file, changed by xarray, zarr-python and others; and before each change it is tried
    without a commit, which leaves it as it was."""
    from clients import push_steps
    nc = t.path("x.nc")
    t.call(push_steps.write, nc)
    for step in range(STEPS):
        was, now = t.path(f"was{step}"), t.path(f"now{step}")
        with t.mount(nc, "mode=zarr") as m:
            t.call(shutil.copytree, m.path, was)
        shutil.copytree(was, now)
        t.call(push_steps.change, step, now)
        with open(nc, "rb") as f:
            before = f.read()
        push(t, "-n", nc, was, now, refused="not wanted")
        with open(nc, "rb") as f:
            assert f.read() == before, "changed without a commit"
        push(t, nc, was, now)
        t.call(push_steps.check, step, nc)


def in_other_files(t):
    """Data that is elsewhere is not changed."""
    import gen
    nc, tree = t.path("v.nc"), t.path("tree")
    gen.load()["virtual_dataset"].write(nc)
    with t.mount(nc, "mode=zarr", "external_root=" + t.tmp) as m:
        t.call(shutil.copytree, m.path, tree)
    push(t, nc, tree, tree, refused="in other files")


def from_corpus(root, name, t):
    from cases.zarr_view.test_corpus import h5py_opens
    original = os.path.join(root, name)
    if not h5py_opens(original):
        raise Skip("h5py cannot open it")
    both(t, name, original, ())


def generated(name, feature, t):
    original = t.path(name + ".nc")
    feature.write(original)
    if not os.path.exists(original):
        raise Skip("not written here")
    both(t, name, original, feature.options)


def cases():
    import gen
    chosen = [(n, functools.partial(generated, n, f)) for n, f in gen.load().items()
              if n not in NOT_COPIED and n != "virtual_dataset"]
    root = corpus()
    for file in files(os.path.join(root, "netcdf4")) if root else ():
        name = os.path.relpath(file, root)
        if name not in NOT_COPIED and os.path.getsize(file) < BYTES:
            chosen.append((name, functools.partial(from_corpus, root, name)))
    return [("changes", changes), ("in_other_files", in_other_files)] + chosen[::EVERY]
