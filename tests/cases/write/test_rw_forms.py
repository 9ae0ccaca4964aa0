# SPDX-License-Identifier: BSD-3-Clause
"""Zarr stores in every form that zarr-python writes, changed through their virtual file: an element
of each array, attributes. zarr-python reads what zarr-python would have written."""
import os

from lib import peers

LIMIT = 60.0


def _arrays():
    import numpy as np
    r = np.random.default_rng(7)
    n = r.integers(0, 90, (7, 5))
    return {
        "f_order": n.astype("<f8"),
        "big": n.astype(">i4"),
        "clipped": n.astype("<i2"),
        "nested": n.astype("|u1"),
        "bool": n % 2 == 0,
        "gzip": n.astype("<f4"),
        "lz4": n.astype("<i8"),
        "delta": n.astype("<i4"),
        "complex": n.astype("<c16"),
        "big_complex": n.astype(">c8"),
        "times": n.astype("M8[ns]"),
        "s": np.array([b"", b"a", b"bcd", b"efghi", b"x", b"yy", b"zzz"], "S5"),
        "u": np.array(["", "a", "\u00e9\u4e16", "efgh", "x", "yy", "zzz"], "<U4"),
        "text": np.array(["", "a", "\u00e9\u4e16", "efgh" * 30, "x", "yy", "zzz"], object),
        "pair": np.array([(i, i / 2) for i in range(7)], [("a", "<i2"), ("b", ">f8")]),
        "nan": n.astype("<f4"),
        "scalar": np.array(4.5),
    }


def _make(root):
    import numcodecs as c
    import zarr
    g = zarr.open_group(root, mode="w")
    how = {"f_order": {"order": "F"}, "clipped": {"chunks": (10, 9)},
           "lz4": {"compressor": c.LZ4()},
           "nested": {"dimension_separator": "/"}, "gzip": {"compressor": c.GZip(1)},
           "delta": {"filters": [c.Delta("<i4")]}, "text": {"object_codec": c.VLenUTF8()},
           "big": {"compressor": c.Zlib(1), "order": "F"}, "nan": {"fill_value": float("nan")},
           "times": {"fill_value": None}, "pair": {"fill_value": None}}
    for name, data in _arrays().items():
        dims = [f"{name}_{i}" for i in range(data.ndim)]
        keys = dict({"chunks": (3, 2)[:data.ndim], "fill_value": None}, **how.get(name, {}))
        a = g.create_dataset(name, data=data, shape=data.shape, dtype=data.dtype, **keys)
        a.attrs["_ARRAY_DIMENSIONS"] = dims
        a.attrs["list_of_one"] = [1.5]
        a.attrs["big_number"] = 2 ** 63 + 3
    g.attrs["title"] = "old"


def _change_virtual(file):
    import h5py
    import numpy as np
    with h5py.File(file, "r+") as f:
        for name, data in _arrays().items():
            d = f[name]
            if name == "scalar":
                d[()] = 7.25
            elif name in ("s", "u"):
                pass  # characters: h5py writes them as NULs
            elif name == "text":
                d[4] = "\u4e16" * 50
            elif name == "pair":
                d[4] = np.array((-3, 9.5), d.dtype)
            else:
                d[4, 3] = d[3, 3]
            d.attrs["list_of_one"] = np.array([2.5])
        f.attrs["title"] = "new"


def _change_texts(file):
    """Texts are characters with one dimension more."""
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(file, "a") as f:
        f.set_auto_chartostring(False)
        for name, text in (("s", b"new"), ("u", "xy\u00e9".encode())):
            v = f[name]
            v[4, :] = np.frombuffer(text.ljust(v.shape[1], b"\0"), "S1")


def _changed():
    import numpy as np
    want = _arrays()
    for name, data in want.items():
        if name == "scalar":
            want[name] = np.array(7.25)
        elif data.ndim == 2:
            data[4, 3] = data[3, 3]
        else:
            data[4] = {"s": b"new", "u": "xy\u00e9", "text": "\u4e16" * 50,
                       "pair": (-3, 9.5)}[name]
    return want


def _check(root, expect):
    import numpy as np
    import zarr
    g = zarr.open_group(root, mode="r")
    bad = []
    want = expect()
    for name, data in want.items():
        a = g[name]
        got = a[...]
        if got.dtype != data.dtype or got.shape != data.shape or not np.array_equal(got, data):
            bad.append(f"{name}: {got!r} is not {data!r}"[:300])
        attrs = a.attrs.asdict()
        if attrs["list_of_one"] != [2.5] or attrs["big_number"] != 2 ** 63 + 3:
            bad.append(f"{name}: {attrs}")
    if g.attrs.asdict() != {"title": "new"}:
        bad.append(str(g.attrs.asdict()))
    assert sorted(g) == sorted(want), sorted(g)
    assert not bad, "\n".join(bad)


def _documents(root):
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if name == ".zarray":
                with open(os.path.join(folder, name), "rb") as f:
                    found[os.path.join(folder, name)] = f.read()
    return found


def test_forms(t):
    store = t.path("store.zarr")
    t.call(_make, store)
    before = _documents(store)
    with t.mount(store, "rw") as m:
        t.call(_change_virtual, os.path.join(m.path, "store.nc"))
        t.call(_change_texts, os.path.join(m.path, "store.nc"))
    assert _documents(store) == before, "documents of arrays changed"
    t.call(_check, store, _changed)


def _change3(file):
    import h5py
    with h5py.File(file, "r+") as f:
        for name in f:
            d = f[name]
            if name == "texts":
                d[3] = "\u4e16" * 50
            elif d.ndim == 2:
                d[4, 3] = d[3, 3]
                d[6, 4] = d[1, 1]
                d.attrs["new"] = "text"


def test_forms3(t):
    """The same with Zarr v3: shards, codecs, key encodings."""
    path = peers.root()
    peers._install(path, "rw_forms3.py", "opt")
    store = t.path("store.zarr")
    for what in "make", "check":
        peers.enter(t, "zarr-python 3", path, ["python3", "-W", "ignore", "/opt/rw_forms3.py", what,
                                               peers.inside(t, store)], 60)
        if what == "make":
            with t.mount(store, "rw") as m:
                t.call(_change3, os.path.join(m.path, "store.nc"))
