# SPDX-License-Identifier: BSD-3-Clause
"""Programs that replace a whole dataset: with mode="w" zarr-python and xarray remove all of a store
and make it again. At a mount point they fail; with -o root=NAME they succeed."""
import os

from cases.write.test_rw_mount import _kill, _recover, make_nc, state
from lib.context import eventually

GONE = "the metadata of the root ("


def _has(folder, *names):
    assert set(names) <= set(os.listdir(folder)), os.listdir(folder)


def _has_just(folder, *names):
    assert sorted(names) == sorted(os.listdir(folder)), os.listdir(folder)


def _mode_w_fails(mnt, how):
    import xarray
    import zarr
    try:
        if how == "zarr":
            zarr.open_group(mnt, mode="w")
        else:
            xarray.Dataset({"new": ("n", [1, 2, 3])}).to_zarr(mnt, mode="w")
    except OSError as error:
        assert error.errno == 16, error
    else:
        raise AssertionError("the kernel removed a mount point")
    assert os.listdir(mnt) == [], os.listdir(mnt)


def _is_as_before(file, want):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(file) as d, netCDF4.Dataset(want) as w:
        assert list(d.variables) == list(w.variables), list(d.variables)
        for name in w.variables:
            assert np.array_equal(d[name][:], w[name][:]), name


def _replaces(where, number, consolidated):
    import numpy as np
    import xarray
    ds = xarray.Dataset({f"new{number}": (("y", "x"), np.arange(6.0).reshape(2, 3) + number)},
                        attrs={"title": f"number {number}"})
    ds.to_zarr(where, mode="w", consolidated=consolidated)
    xarray.testing.assert_identical(xarray.open_zarr(where, consolidated=consolidated).load(), ds)


def _group_replaces(where):
    import zarr
    g = zarr.open_group(where, mode="w")
    a = g.create_dataset("only", shape=(4,), dtype="i4")
    a.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    a[:] = [1, 2, 3, 4]


def _has_only(file, name, values, title):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(file) as d:
        assert list(d.variables) == [name], list(d.variables)
        assert np.array_equal(d[name][:], values), d[name][:]
        assert getattr(d, "title", None) == title, d.ncattrs()


def _remove_all(where):
    import shutil
    shutil.rmtree(where)
    assert not os.path.exists(where)


# SEMANTICS W26
def at_mount_point(how, t):
    """All is removed, the client fails, and the file stays as it was; the log says so once."""
    file, want = t.path("model.nc"), t.path("want.nc")
    t.call(make_nc, file)
    t.call(make_nc, want)
    with t.mount(file, "rw", "commit_delay=1", foreground=True) as m:
        t.call(_mode_w_fails, m.path, how)
        eventually(lambda: GONE in m.messages())
    text = m.messages()
    assert text.count(GONE) == 1 and "-o root=NAME" in text, text
    assert text.count("the dataset is unchanged") == 1, text
    t.call(_is_as_before, file, want)
    assert not os.path.exists(state(file)), os.listdir(state(file))
    with t.mount(file) as m:
        t.call(_has, m.path, "v")


def test_zarr_at_mount_point(t):
    at_mount_point("zarr", t)


def test_xarray_at_mount_point(t):
    at_mount_point("xarray", t)


# SEMANTICS W26
def test_removed_and_killed(t):
    """The same when the mount dies: the next one, or `recover`, drops the removals."""
    for how in "mount", "recover":
        file, want = t.path(how + ".nc"), t.path("want.nc")
        t.call(make_nc, file)
        t.call(make_nc, want)
        with t.mount(file, "rw", "commit_delay=3600000") as m:
            t.call(_mode_w_fails, m.path, "zarr")
            _kill(m)
        if how == "recover":
            status, text = _recover(t, file)
            assert status == 0, text
        else:
            with t.mount(file, "rw") as m:
                t.call(_has, m.path, "v")
        t.call(_is_as_before, file, want)
        assert not os.path.exists(state(file)), os.listdir(state(file))


# SEMANTICS W27
def test_replaced_below_a_name(t):
    """-o root=NAME: the dataset is replaced, again and again, with and without consolidated
    metadata."""
    file = t.path("model.nc")
    t.call(make_nc, file)
    with t.mount(file, "rw", "root=model.zarr") as m:
        where = os.path.join(m.path, "model.zarr")
        t.call(_has_just, m.path, "model.zarr")
        t.call(_has, where, "v")
        for number, consolidated in enumerate((True, False, True)):
            t.call(_replaces, where, number, consolidated)
    t.call(_has_only, file, "new2", [[2, 3, 4], [5, 6, 7]], "number 2")
    with t.mount(file, "rw", "root=model.zarr") as m:
        t.call(_group_replaces, os.path.join(m.path, "model.zarr"))
    t.call(_has_only, file, "only", [1, 2, 3, 4], None)


# SEMANTICS W26, W27
def test_dies_between(t):
    """A client that removes the directory and does nothing else: the file stays as it was."""
    file, want = t.path("model.nc"), t.path("want.nc")
    t.call(make_nc, file)
    t.call(make_nc, want)
    with t.mount(file, "rw", "root=model.zarr", "commit_delay=1") as m:
        where = os.path.join(m.path, "model.zarr")
        t.call(_remove_all, where)
        t.call(_has_just, m.path)
        t.call(os.mkdir, where)
        t.call(_has_just, where)
    t.call(_is_as_before, file, want)
    assert not os.path.exists(state(file)), os.listdir(state(file))


def _other_names(mnt):
    for make in (lambda: os.mkdir(os.path.join(mnt, "other")),
                 lambda: open(os.path.join(mnt, "file"), "w").close(),
                 lambda: os.rename(os.path.join(mnt, "a.zarr"), os.path.join(mnt, "b.zarr"))):
        try:
            make()
        except PermissionError:
            continue
        raise AssertionError("something else was made beside the root")
    try:
        os.rmdir(os.path.join(mnt, "a.zarr"))
    except OSError as error:
        assert error.errno == 39, error
    else:
        raise AssertionError("a directory that is not empty was removed")


# SEMANTICS W27
def test_nothing_beside_it(t):
    file = t.path("model.nc")
    t.call(make_nc, file)
    with t.mount(file, "rw", "root=a.zarr") as m:
        t.call(_other_names, m.path)
        t.call(_has, os.path.join(m.path, "a.zarr"), "v")


def test_refused(t):
    """-o root is for a writable tree of one dataset."""
    file, store = t.path("model.nc"), t.path("s.zarr")
    t.call(make_nc, file)
    os.mkdir(t.path("mnt"))
    for source, options, message, code in (
            (file, "root=a.zarr", "only with rw", 2),
            (file, "rw,root=a/b", "the name of a directory", 2),
            (store, "rw,create,root=a", "only if the mount shows a Zarr store", 1),
            (os.path.dirname(file), "rw,root=a.zarr", "only for one dataset", 1)):
        status, _, text = t.run(t.binary, "-o", options, source, t.path("mnt"))
        assert status == code and message in text, (options, text)
