"""POSIX on writable mounts: tests/clients/posix.py on every kind, and what needs more than one
directory: other users, read-only mounts, mappings, direct reads, files that grow, watchers."""
import os

from cases.test_rw_remote import ADDRESS, options, server


def _posix(d, kind):
    from clients import posix
    wrong = posix.run(d, kind)
    assert not wrong, "\n" + "\n".join(wrong)


def _kind(name, **traits):
    from clients import posix
    return posix.Kind(name, **traits)


def make_nc(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 4)
        d.createVariable("v", "f4", ("x",))[:] = 1


def make_zarr(path):
    import zarr
    a = zarr.open_group(path, "w").create_dataset("v", data=[1, 2, 3, 4], chunks=(2,))
    a.attrs["_ARRAY_DIMENSIONS"] = ["x"]


def test_native(t):
    """The checks themselves, on the file system that the tests run in."""
    os.mkdir(t.path("d"))
    t.call(_posix, t.path("d"), _kind("native", mount=False))


def test_tree(t):
    nc = t.path("a.nc")
    t.call(make_nc, nc)
    with t.mount(nc, "rw", foreground=True) as m:
        os.mkdir(m.path + "/work")
        t.call(_posix, m.path + "/work", _kind("tree", hard="copy", times=False, modes=False))
        os.rmdir(m.path + "/work")


def test_store(t):
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create", "view=zarr"), foreground=True) as m:
            os.mkdir(m.path + "/work")
            t.call(_posix, m.path + "/work", _kind("store", hard="copy", times=False, modes=False))
            os.rmdir(m.path + "/work")


def test_virtual(t):
    tree = t.path("a.zarr")
    t.call(make_zarr, tree)
    with t.mount(tree, "rw", foreground=True) as m:
        t.call(_posix, m.path, _kind("virtual", dirs=False, hard="", own=["a.nc"]))


def test_mirror(t):
    os.mkdir(t.path("dir"))
    with t.mount(t.path("dir"), "rw", foreground=True) as m:
        os.mkdir(m.path + "/work")
        t.call(_posix, m.path + "/work", _kind("mirror", symlinks=True, dead=False))
        os.rmdir(m.path + "/work")
