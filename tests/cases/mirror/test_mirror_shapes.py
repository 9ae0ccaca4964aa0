# SPDX-License-Identifier: BSD-3-Clause
"""Names of a mounted directory that say how a dataset is shown: in chunks of another shape, or as a
classic file. Compared with mounts of the dataset alone."""
import errno
import os

import numpy as np

from cases.netcdf_view.test_virtual_classic import kitchen
from lib.context import eventually_passes

LIMIT = 60.0
RULE = "t=all,y=4,x=2"


def make(t):
    """Datasets of each format, with the usual names and with others."""
    folder = t.path("all")
    os.makedirs(folder)
    source = t.path("a.nc")
    kitchen(source, False, "many")
    for name in "a.nc", "h.h5", "U.NC":
        os.link(source, os.path.join(folder, name))
    for name in "b.zarr", "bare":
        status, _, err = t.run(t.binary, "convert", source, t.path(name + ".zarr"))
        assert status == 0, err
        os.rename(t.path(name + ".zarr"), os.path.join(folder, name))
    status, _, err = t.run("nccopy", "-k", "classic", source, os.path.join(folder, "c.nc"))
    assert status == 0, err
    status, _, err = t.run(t.binary, "convert", source, os.path.join(folder, "z.zarr.zip"))
    assert status == 0, err
    return folder, source


DATASETS = {"a": "a.nc", "b": "b.zarr", "c": "c.nc", "bare": "bare", "h": "h.h5", "U": "U.NC",
            "z": "z.zarr.zip"}


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def same_store(got, want):
    import zarr
    left, right = zarr.open_group(got, mode="r"), zarr.open_group(want, mode="r")
    assert sorted(left.array_keys()) == sorted(right.array_keys())
    for name, a in left.arrays():
        b = right[name]
        assert a.chunks == b.chunks and a.dtype == b.dtype, name
        np.testing.assert_array_equal(a[...], b[...], name)
        assert attributes(os.path.join(got, name)) == attributes(os.path.join(want, name)), name
    assert left["v_f4_t_y_x"].chunks == (23, 4, 2)


def same_file(got, want):
    import h5py
    with h5py.File(got) as left, h5py.File(want) as right:
        assert list(left) == list(right)
        for name, a in left.items():
            assert a.chunks == right[name].chunks, name
            np.testing.assert_array_equal(a[...], right[name][...], name)
        assert left["v_f4_t_y_x"].chunks == (23, 4, 2)


def same_bytes(got, want):
    with open(got, "rb") as left, open(want, "rb") as right:
        assert left.read() == right.read()


# SEMANTICS B7
def test_shapes(t):
    folder, _ = make(t)
    with t.mount(folder) as m:
        before = sorted(os.listdir(m.path))
        for stem, name in DATASETS.items():
            for ending, view, same in ("zarr", "zarr", same_store), ("nc", "nc", same_file):
                shown = os.path.join(m.path, f"{stem}@{RULE}.{ending}")
                with t.mount(os.path.join(folder, name), f"view={view}", f"rechunk={RULE}") as one:
                    want = one.path if view == "zarr" else os.path.join(one.path, f"{stem}.nc")
                    t.call(same, shown, want)
        assert sorted(os.listdir(m.path)) == before


# SEMANTICS B7
def test_classic(t):
    folder, _ = make(t)
    with t.mount(folder) as m:
        for stem, name in DATASETS.items():
            with t.mount(os.path.join(folder, name), "view=classic") as one:
                t.call(same_bytes, os.path.join(m.path, f"{stem}@classic.nc"),
                       os.path.join(one.path, f"{stem}.nc"))


def error_of(fn, *args):
    try:
        fn(*args)
    except OSError as e:
        return e.errno
    return 0


def refusals(mnt):
    for name in "a@t.zarr", "a@t=0.zarr", "none@t=all.zarr", "a@classic.zarr", "a.txt@t=1.nc":
        assert error_of(os.stat, os.path.join(mnt, name)) == errno.ENOENT, name
    # an entry of the directory itself comes first
    assert os.path.isfile(os.path.join(mnt, "a@t=1.zarr"))
    tree = os.path.join(mnt, "a@t=2.zarr")
    assert error_of(os.rmdir, tree) in (errno.EROFS, errno.EPERM)
    assert error_of(os.unlink, os.path.join(mnt, "a@classic.nc")) in (errno.EROFS, errno.EPERM)
    assert error_of(os.mkdir, os.path.join(tree, "g")) in (errno.EROFS, errno.EPERM)
    assert error_of(os.rename, os.path.join(mnt, "a@classic.nc"),
                    os.path.join(mnt, "d.nc")) in (errno.EROFS, errno.EPERM, errno.EXDEV)
    assert error_of(open, os.path.join(mnt, "a@classic.nc"), "r+b") in (errno.EROFS, errno.EACCES)
    assert error_of(os.listdir, os.path.join(mnt, "a@tt=all.zarr")) == errno.EIO
    assert os.path.exists(os.path.join(mnt, "a.nc"))


def test_names(t):
    """Names that are none, and what cannot be done; also where the directory can be written."""
    folder, source = make(t)
    with open(os.path.join(folder, "a@t=1.zarr"), "w") as f:
        f.write("a plain file")
    for options in (), ("rw",):
        with t.mount(folder, *options, foreground=True) as m:
            t.call(refusals, m.path)
            assert "no dimension 'tt' in 'a.nc'" in m.messages()
    assert os.path.exists(source) and set(os.listdir(folder)) == {
        "a@t=1.zarr", *DATASETS.values()}


def look_up(mnt, most):
    """The kernel keeps names as long as it has memory."""
    code = n = 0
    while not code and n <= most:
        n += 1
        code = error_of(os.stat, os.path.join(mnt, f"a@t={n}.zarr"))
    assert (code, n) == (errno.EIO, most + 1)
    assert os.path.isfile(os.path.join(mnt, "c.nc4")) and os.listdir(os.path.join(mnt, "a.zarr"))


# SECURITY S57
def test_many_names(t):
    """Names with a rule do not take the room of others."""
    folder, _ = make(t)
    with t.mount(folder) as m:
        t.call(look_up, m.path, 32768, timeout=LIMIT)


def first(mnt, name, want):
    import h5py
    with h5py.File(os.path.join(mnt, name)) as f:
        assert f["v_f8_t"][0] == want


def test_changes(t):
    """A view with a rule follows its dataset."""
    import netCDF4
    folder, _ = make(t)
    with t.mount(folder) as m:
        with netCDF4.Dataset(os.path.join(folder, "a.nc")) as d:
            t.call(first, m.path, "a@t=all.nc", float(d["v_f8_t"][0]))
        with netCDF4.Dataset(os.path.join(folder, "a.nc"), "a") as d:
            d["v_f8_t"][0] = 12345.5
        eventually_passes(lambda: t.call(first, m.path, "a@t=all.nc", 12345.5))
