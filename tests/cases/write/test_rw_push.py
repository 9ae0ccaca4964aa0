# SPDX-License-Identifier: BSD-3-Clause
"""What a writer of a tree may rely on while commits are made under him, and what he is refused."""
import errno
import json
import os

import numpy as np

LIMIT = 120.0
QUICK = ("rw", "create", "commit_delay=100")


def sync(mnt):
    """A commit, now."""
    fd = os.open(mnt, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def put(path, doc):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(doc if isinstance(doc, bytes) else json.dumps(doc).encode())


def work_blosc(mnt):
    import zarr
    g = zarr.open_group(mnt, mode="a")
    z = g.create_dataset("z", shape=(8, 6), chunks=(2, 3), dtype="i4", fill_value=-1)
    assert z.compressor.codec_id == "blosc"
    plain = g.create_dataset("p", shape=(4,), chunks=(2,), dtype="i2", compressor=None)
    want = np.full((8, 6), -1, "i4")
    for i in range(8):
        z[i] = want[i] = np.arange(6) + i   # chunks are read, changed and written
        sync(mnt)
        plain[i % 4] = i
    assert (z[...] == want).all(), z[...]
    again = zarr.open_group(mnt, mode="r")["z"]
    assert again.compressor.codec_id == "blosc", again.compressor
    assert (again[...] == want).all()
    long = g.create_dataset("long", shape=(0,), chunks=(10,), dtype="i4")
    for i in range(4):
        long.append(np.arange(7) + i)
        sync(mnt)
    assert (long[...] == np.concatenate([np.arange(7) + i for i in range(4)])).all()


def check_blosc(file):
    import h5py
    with h5py.File(file, "r") as f:
        want = np.arange(6) + np.arange(8)[:, None]
        assert (f["z"][...] == want).all(), f["z"][...]
        assert f["z"].compression == "gzip" and f["z"].shuffle, "stored as netCDF-C reads it"
        assert f["p"].compression is None and f["p"][...].tolist() == [4, 5, 6, 7]
        assert f["long"].chunks == (10,) and f["long"].shape == (28,)


def test_goes_on(t):
    """Commits between writes: the writer's filters and chunks stay what he was told."""
    file = t.path("new.nc")
    with t.mount(file, *QUICK) as m:
        t.call(work_blosc, m.path)
    t.call(check_blosc, file)
    left = [n for n in os.listdir(os.path.dirname(file)) if n.startswith(".new")]
    assert not left, left
    with t.mount(file) as m:                # to others the file is what it is
        with open(os.path.join(m.path, "z/.zarray")) as f:
            assert json.load(f)["compressor"]["id"] == "zlib"


ARRAY = {"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4", "compressor": None,
         "fill_value": 0, "order": "C", "filters": None}
ARRAY3 = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32",
          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
          "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
          "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}


def work_refused(mnt):
    put(mnt + "/.zgroup", {"zarr_format": 2})
    put(mnt + "/ok/.zarray", ARRAY)
    for what, doc, code in (
            ("a/.zarray", b'{"zarr_format": 2', errno.EINVAL),
            ("a/.zarray", {**ARRAY, "shape": [4]}, errno.EINVAL),
            ("a/.zarray", {**ARRAY, "order": "F"}, errno.EOPNOTSUPP),
            ("a/.zarray", {**ARRAY, "compressor": {"id": "nobodys"}}, errno.EOPNOTSUPP),
            ("zarr.json", {"zarr_format": 3, "node_type": "group"}, errno.EOPNOTSUPP),
            ("b/.zattrs", b"[1, 2", errno.EINVAL)):
        try:
            put(f"{mnt}/{what}", doc)
            raise AssertionError(f"{what} with {doc} was taken")
        except OSError as e:
            assert e.errno == code, (what, doc, e)
    put(mnt + "/later/.zattrs", {"units": "m", "_ARRAY_DIMENSIONS": ["y", "x"]})  # array to come
    put(mnt + "/later/0.0", np.arange(4, dtype="<i4").tobytes())
    put(mnt + "/later/.zarray", ARRAY)


def check_refused(file):
    import h5py
    with h5py.File(file, "r") as f:
        assert f["later"][:2, :2].tolist() == [[0, 1], [2, 3]] and "ok" in f
        assert f["later"].attrs["units"] in ("m", b"m") and "a" not in f


def test_refused(t):
    file = t.path("new.nc")
    with t.mount(file, "rw", "create", "zarr_format=2", "dimension_separator=.") as m:
        m.fails = True                      # directories and documents without an array are left
        t.call(work_refused, m.path)
    t.call(check_refused, file)


def work_v3(mnt):
    assert not os.listdir(mnt)
    put(mnt + "/zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}})
    put(mnt + "/v/zarr.json", ARRAY3)
    put(mnt + "/v/c/1", np.array([5, 6], "<i4").tobytes())
    sync(mnt)
    assert sorted(os.listdir(mnt)) == ["v", "zarr.json"], os.listdir(mnt)
    put(mnt + "/v/c/0", np.array([3, 4], "<i4").tobytes())
    try:
        put(mnt + "/w/.zarray", ARRAY)
        raise AssertionError("two formats in one tree")
    except OSError as e:
        assert e.errno == errno.EOPNOTSUPP, e


def work_nested(mnt):
    put(mnt + "/.zgroup", {"zarr_format": 2})
    put(mnt + "/v/.zarray", {**ARRAY, "dimension_separator": "/"})
    put(mnt + "/v/0/1", np.arange(4, dtype="<i4").tobytes())
    sync(mnt)
    assert os.path.isfile(mnt + "/v/0/1") and not os.path.exists(mnt + "/v/0.1")


def check_first(file, want):
    import h5py
    with h5py.File(file, "r") as f:
        assert f["v"][...].tolist() == want, f["v"][...]


def test_first_writer(t):
    """Where nothing is there and no option says it, the first document does."""
    with t.mount(t.path("3.nc"), "rw", "create") as m:
        m.fails = True                      # the directory w
        t.call(work_v3, m.path)
    t.call(check_first, t.path("3.nc"), [3, 4, 5, 6])
    with t.mount(t.path("2.nc"), "rw", "create") as m:
        t.call(work_nested, m.path)
    t.call(check_first, t.path("2.nc"), [[0, 0, 0, 1], [0, 0, 2, 3], [0] * 4, [0] * 4])


def work_append(mnt):
    import zarr
    g = zarr.open_group(mnt, mode="a")
    for name in "ab":
        z = g.create_dataset(name, shape=(10, 4), chunks=(5, 4), dtype="i4")
        z.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
        z[:] = np.arange(40).reshape(10, 4)
    sync(mnt)
    for name in "ab":
        g[name].resize((20, 4))
        sync(mnt)
        g[name][10:] = np.arange(40, 80).reshape(10, 4)
        sync(mnt)


def check_append(file):
    import netCDF4
    d = netCDF4.Dataset(file)
    assert d.dimensions["time"].isunlimited() and len(d.dimensions["time"]) == 20
    for name in "ab":
        assert (d[name][:] == np.arange(80).reshape(20, 4)).all(), name


def test_one_after_another(t):
    """Two arrays of one dimension grow, each with commits of its own."""
    file = t.path("new.nc")
    with t.mount(file, "rw", "create") as m:
        t.call(work_append, m.path)
    t.call(check_append, file)
