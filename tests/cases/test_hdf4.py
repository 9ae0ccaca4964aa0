"""HDF4 files: what libhdf4 reads from them is what programs read from the mount, bit for bit."""
import functools
import os

from clients import hdf4
from lib.context import Skip, corpus

LIMIT = 90.0


def need(t):
    _, out, _ = t.run(t.binary, "--version")
    if "HDF4 not built in" in out:
        raise Skip("HDF4 is not built in")
    try:
        import pyhdf.SD  # noqa: F401
    except ImportError:
        raise Skip("python3-hdf4 is not installed") from None


def compare_tree(model, mnt):
    hdf4.compare_zarr(model, mnt)
    hdf4.compare_xarray(model, mnt)


def compare_file(model, mnt):
    hdf4.compare_netcdf(model, mnt)
    hdf4.compare_h5py(model, mnt)


def compare(file, t):
    need(t)
    model = hdf4.load(file)
    with t.mount(file) as m:
        t.call(compare_tree, model, m.path)
    with t.mount(file, "view=nc", "bad_arrays=hide") as m:
        t.call(compare_file, model, m.path)


def cases():
    root = corpus()
    folder = os.path.join(root, "hdf4") if root else ""
    for base, dirs, files in os.walk(folder):
        dirs.sort()
        for name in sorted(files):
            path = os.path.join(base, name)
            yield os.path.relpath(path, root), functools.partial(compare, path)


def make(t, kind):
    """A file that tests/tools/hdf4_make.c writes."""
    need(t)
    tool = os.path.join(os.path.dirname(t.binary), "tests", "hdf4_make")
    if not os.path.exists(tool):
        raise Skip("make tools has not been run")
    path = t.path(f"{kind}.hdf")
    status, _, err = t.run(tool, kind, path)
    assert status == 0, err
    return tool, path


def generated(kind, t):
    _, path = make(t, kind)
    compare(path, t)


for _kind in ("chunks", "records", "scales", "groups", "large"):
    globals()[f"test_{_kind}"] = functools.partial(generated, _kind)
