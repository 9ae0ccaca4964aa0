# SPDX-License-Identifier: BSD-3-Clause
"""Writing when the disk is full, fails, or the processes die: tests/faults/harness.py.

`make check` samples the calls at which something happens; with NCZARRFS_FAULTS=all (make
check-writing) it is every one of them, and 1000 random moments; with a number so many of each."""
import json
import os
import zlib

import numpy as np

from faults.harness import KINDS, Rig

HOW = os.environ.get("NCZARRFS_FAULTS") or "4"
ALL = HOW == "all"
ROUNDS = None if ALL else int(HOW)
MOMENTS = 500 if ALL else ROUNDS + 2  # for each of two workloads
LIMIT = 14400 if ALL else 120 + 10 * ROUNDS


def _same_attrs(got, want, where):
    for name in sorted(set(got) | set(want)):
        a, b = got.get(name), want.get(name)
        assert name in got and name in want and np.array_equal(a, b), (
            f"{where}: attribute {name}: {a!r}, expected {b!r}")


# ---- a Zarr tree over a netCDF-4 file ----

def make_nc(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as d:
        d.title = "before"
        d.createDimension("time", None)
        d.createDimension("x", 16)
        v = d.createVariable("t", "f4", ("time", "x"), zlib=True, chunksizes=(4, 16))
        v.units = "K"
        v[:] = np.arange(128, dtype="f4").reshape(8, 16)
        u = d.createVariable("u", "i4", ("x",))
        u[:] = np.arange(16)
        d.createVariable("raw", "i8", ("x",), chunksizes=(4,))[:] = np.arange(16) * 3


def _put(key, data, way):
    """How writers do it: in place, or a temporary file that is renamed."""
    def step(mnt):
        path = os.path.join(mnt, key)
        name = path if way == "place" else path + ".partial"
        with open(name, "wb", buffering=0) as f:
            for at in range(0, len(data), 4000):
                assert f.write(data[at:at + 4000]) == len(data[at:at + 4000])
            if way == "sync":
                os.fsync(f.fileno())
        if way != "place":
            os.rename(name, path)
    return step, {key: data}


def _unlink(key):
    def step(mnt):
        try:
            os.unlink(os.path.join(mnt, key))
        except FileNotFoundError:
            pass  # the attempt before did it
    return step, {key: None}


def _mkdir(key):
    return lambda mnt: os.makedirs(os.path.join(mnt, key), exist_ok=True), {}


def _rmdir(key):
    def step(mnt):
        try:
            os.rmdir(os.path.join(mnt, key))
        except FileNotFoundError:
            pass
    return step, {}


def _sync(key):
    def sync(mnt):
        fd = os.open(os.path.join(mnt, key), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    return sync, {}


def _doc(value):
    return json.dumps(value, indent=4).encode()


def tree_steps():
    """[(step, {key: bytes or None})]: each changes these keys of the tree."""
    rng = np.random.default_rng(5)

    def chunk(i):
        return zlib.compress(rng.standard_normal((4, 16)).astype("<f4").tobytes(), i % 9 + 1)

    def zarray(shape, chunks, dtype, compressor):
        return _doc({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype,
                     "compressor": compressor, "filters": None, "order": "C",
                     "fill_value": 0})

    z = {"id": "zlib", "level": 4}
    return [
        _put("t/0.0", chunk(1), "place"),
        _put("t/1.0", chunk(2), "rename"),
        _put("raw/1", rng.integers(0, 1 << 40, 4).astype("<i8").tobytes(), "place"),
        _sync(""),
        _put("t/.zattrs", _doc({"_ARRAY_DIMENSIONS": ["time", "x"], "units": "degC",
                                "note": "a text that is longer than it was"}), "rename"),
        _put("t/.zarray", zarray([12, 16], [4, 16], "<f4", z), "place"),
        _put("t/2.0", chunk(3), "sync"),
        _mkdir("n"),
        _put("n/0.0", np.arange(40, dtype="<i2").tobytes(), "place"),
        _put("n/.zattrs", _doc({"_ARRAY_DIMENSIONS": ["y", "x"], "count": 3}), "place"),
        _put("n/.zarray", zarray([5, 16], [5, 8], "<i2", None), "rename"),
        _put("n/0.1", (np.arange(40) * 5).astype("<i2").tobytes(), "place"),
        _sync("n"),
        _unlink("u/.zarray"),
        _unlink("u/.zattrs"),
        _unlink("u/0"),
        _rmdir("u"),
        _put(".zattrs", _doc({"title": "after"}), "rename"),
        _put("t/0.0", chunk(6), "rename"),
        _sync(""),
    ]


def tree_states(t, template, steps):
    """What the steps make of the tree, as {key: bytes} after each."""
    tree = {}

    def read(mnt):
        import pickle
        for folder, _, names in os.walk(mnt):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    tree[os.path.relpath(path, mnt)] = f.read()
        with open(t.path("tree"), "wb") as f:
            pickle.dump(tree, f)

    import pickle
    with t.mount(template) as m:
        t.call(read, m.path)
    with open(t.path("tree"), "rb") as f:
        tree = pickle.load(f)
    states = [tree]
    for _, changes in steps:
        tree = {k: v for k, v in {**tree, **changes}.items() if v is not None}
        states.append(tree)
    return states


def check_tree(path, tree):
    """The file, read with netCDF-C and libhdf5, has what the tree says, read with zarr-python."""
    import h5py
    import netCDF4
    import zarr
    want = zarr.open_group({k: v for k, v in tree.items() if k != ".zmetadata"}, mode="r")
    with netCDF4.Dataset(path) as d:
        d.set_auto_mask(False)
        d.set_auto_scale(False)
        names = {n for n, _ in want.arrays()}
        assert set(d.variables) == names, f"variables {sorted(d.variables)}, not {sorted(names)}"
        _same_attrs({k: d.getncattr(k) for k in d.ncattrs()}, want.attrs.asdict(), "/")
        for name, a in want.arrays():
            v = d[name]
            assert v.shape == a.shape and v.dtype == a.dtype, (
                f"{name}: {v.shape} {v.dtype}, expected {a.shape} {a.dtype}")
            assert np.array_equal(v[...], a[...]), f"{name}: other values"
            attrs = a.attrs.asdict()
            dims = attrs.pop("_ARRAY_DIMENSIONS", None)
            assert dims is None or list(v.dimensions) == dims, f"{name}: {v.dimensions}"
            _same_attrs({k: v.getncattr(k) for k in v.ncattrs() if k != "_FillValue"}, attrs,
                        name)
    with h5py.File(path, "r") as f:
        f.visititems(lambda name, o: o[...] if isinstance(o, h5py.Dataset) and o.shape else None)


class Unrecovered(Rig):
    def recover(self, path, again):
        pass

    def recover_badly(self, folder, path, at):
        pass


def tree_rig(t, *options, steps=None, of=Rig):
    steps = steps or tree_steps()
    make_nc(t.path("first.nc"))
    states = tree_states(t, t.path("first.nc"), steps)
    return of(t, "x.nc", make_nc, [s for s, _ in steps],
              lambda path, n: check_tree(path, states[n]),
              options=options or ("commit_delay=20",))


def dirty_rig(t):
    """Nothing is committed before the unmount."""
    return tree_rig(t, "commit_delay=3600000", steps=[
        s for s in tree_steps() if s[0].__name__ != "sync"])


def control(t):
    """Without recovery deaths must lose what was confirmed, or the others prove nothing. (The
    journal's own control is in tests/unit/hdf5view/journal/test_journal.c.)"""
    rig = tree_rig(t, "commit_delay=20", of=Unrecovered)
    damaged = 0
    for at in range(1, rig.calls() + 1):
        try:
            rig.one("kill-half", at)
        except AssertionError as error:
            damaged += "not what they make" in str(error)
    print(f"{damaged} times damaged")
    assert damaged > 0, "no damage without recovery"


# ---- a virtual file over a Zarr store ----

def make_store(path):
    import zarr
    g = zarr.open_group(path, mode="w")
    g.attrs["title"] = "before"
    t = g.create_dataset("t", data=np.arange(128, dtype="<f4").reshape(8, 16), chunks=(4, 16),
                         compressor=zarr.Zlib(3))
    t.attrs["_ARRAY_DIMENSIONS"] = ["time", "x"]
    u = g.create_dataset("u", data=np.arange(16, dtype="<i4"), chunks=(4,), compressor=None)
    u.attrs["_ARRAY_DIMENSIONS"] = ["x"]


def _open(where):
    import netCDF4
    d = netCDF4.Dataset(where, "a")
    d.set_auto_mask(False)
    return d


def _edit(where):
    d = _open(where)
    d["t"][2:6, 3] = -1.5
    d["t"].units = "K"
    d.close()


def _new(where):
    d = _open(where)
    if "n" not in d.variables:
        d.createDimension("y", 5)
        d.createVariable("n", "i2", ("y", "x"), zlib=True, chunksizes=(5, 8))
    d["n"][:] = np.arange(80).reshape(5, 16)
    d.title = "with n"
    d.close()


def _rewrite(where):
    d = _open(where)
    d["u"][:] = np.arange(16) * 100
    d["t"][...] = np.arange(128).reshape(8, 16) / 7
    d.note = "rewritten"
    d.close()


FILE_STEPS = [_edit, _new, _rewrite]


def check_store(path, n):
    import zarr
    t = np.arange(128, dtype="<f4").reshape(8, 16)
    arrays = {"t": t, "u": np.arange(16, dtype="<i4")}
    attrs = {"title": "before"}
    units = {}
    if n >= 1:
        t[2:6, 3] = -1.5
        units = {"units": "K"}
    if n >= 2:
        arrays["n"] = np.arange(80, dtype="<i2").reshape(5, 16)
        attrs["title"] = "with n"
    if n >= 3:
        arrays["u"] = np.arange(16, dtype="<i4") * 100
        arrays["t"] = (np.arange(128).reshape(8, 16) / 7).astype("<f4")
        attrs["note"] = "rewritten"
    g = zarr.open_group(path, mode="r")
    got = {name for name, _ in g.arrays()}
    assert got == set(arrays), f"arrays {sorted(got)}, expected {sorted(arrays)}"
    _same_attrs(g.attrs.asdict(), attrs, "/")
    have = {k: v for k, v in g["t"].attrs.items() if k == "units"}
    _same_attrs(have, units, "t")
    for name, want in arrays.items():
        a = g[name][...]
        assert a.shape == want.shape and a.dtype == want.dtype and np.array_equal(a, want), (
            f"{name}: {a.shape} {a.dtype}, other values")


def file_rig(t):
    def inside(step):
        return lambda mnt: step(os.path.join(mnt, "x.nc"))
    return Rig(t, "x.zarr", make_store, [inside(s) for s in FILE_STEPS], check_store)


# SEMANTICS W9, E12
def cases():
    for workload, rig in (("tree", tree_rig), ("file", file_rig)):
        for kind in KINDS:
            def sweep(t, rig=rig, kind=kind):
                print(f"{rig(t).sweep(kind, ROUNDS)} faults")
            yield f"{workload}_{kind}", sweep

        def moments(t, rig=rig):
            print(f"{rig(t).moments(MOMENTS)} deaths")
        yield f"{workload}_moments", moments
    for kind in ("kill-half", "ENOSPC"):
        def dirty(t, kind=kind):
            print(f"{dirty_rig(t).sweep(kind, ROUNDS)} faults")
        yield f"dirty_{kind}", dirty
    if ALL:
        yield "control", control
