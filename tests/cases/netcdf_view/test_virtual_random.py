# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees made at random (fixed seeds) as virtual netCDF-4 files: h5py against zarr-python bit
by bit, netCDF4-python against h5py, a copy of the tree against the tree byte by byte. Also with
every chunk decoded, and shown as Zarr again.

NCZARRFS_SEEDS=FROM:TO for other and for more trees."""
import os
import random
import shutil

from gen import z_random
from lib.context import Skip

OPTIONS = ["filter=portable", "filter=portable", "filter=none", "cache_size=64K"]


def only(mnt):
    return os.path.join(mnt, os.listdir(mnt)[0])


def make(path, seed):
    z_random.write(path, seed)


def compare(source, mnt):
    from clients.netcdf import nc_h5py, nc_netcdf4
    nc_h5py.compare(source, only(mnt))
    nc_netcdf4.compare(only(mnt))


def copy_tree(source, target):
    """The same tree, its files made in another order."""
    if os.path.isfile(source):
        shutil.copyfile(source, target)
        return
    files = [os.path.join(base, n) for base, _, names in os.walk(source) for n in names]
    random.Random(len(files)).shuffle(files)
    for file in files:
        to = os.path.join(target, os.path.relpath(file, source))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(file, to)


def same_bytes(a, b):
    with open(only(a), "rb") as x, open(only(b), "rb") as y:
        assert x.read() == y.read(), "a copy of the tree gives another file"


def as_zarr(source, mnt):
    from clients import tree_tree
    tree_tree.compare(source, mnt)


def one(t, seed):
    rng = random.Random(seed)
    t.call(make, t.path(f"r{seed}"), seed)
    source = next(p for p in (t.path(f"r{seed}.zip"), t.path(f"r{seed}.zarr")) if os.path.exists(p))
    with t.mount(source, rng.choice(OPTIONS)) as m:
        t.call(compare, source, m.path)
        if seed % 4 == 0:
            os.mkdir(t.path(f"copy{seed}"))
            other = t.path(f"copy{seed}/" + os.path.basename(source))
            copy_tree(source, other)
            with t.mount(other) as again, t.mount(source) as plain:
                t.call(same_bytes, plain.path, again.path)
    if seed % 3 == 0:
        with t.mount(source, "view=zarr", rng.choice(["filter=portable", "filter=none"])) as m:
            t.call(as_zarr, source, m.path)


def test_random_trees(t):
    try:
        import zarr  # noqa: F401
    except ImportError as why:
        raise Skip(str(why)) from why
    first, last = map(int, os.environ.get("NCZARRFS_SEEDS", "0:20").split(":"))
    for seed in range(first, last):
        try:
            one(t, seed)
        except AssertionError as error:
            raise AssertionError(f"NCZARRFS_SEEDS={seed}:{seed + 1}: {error}") from error
