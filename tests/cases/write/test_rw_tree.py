# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write Zarr trees, on a writable mount of a netCDF-4 file: the file, and the
tree that the mount shows afterwards, hold what the same program makes natively."""
import functools
import os

from lib import writing
from lib.context import eventually

LIMIT = 90.0
TREE = ("shape", "dtype", "values", "attrs", "chunks", "fill", "dims")
FILE = ("shape", "dtype", "values", "attrs", "chunks")


def _trees(native, mnt, only, but):
    from clients import rw_model as m
    m.compare(m.of_tree(native), m.of_tree(mnt), only=only, but=but, through=True)


def _file(native, file, only, but):
    from clients import rw_model as m
    m.compare(m.of_tree(native), m.of_nc(file), only=only, but=but, through=True)


def same_tree(t, native, mnt, only=TREE, but=None):
    """Also before a commit: there may be one at any moment."""
    writing.models(t, _trees, native, mnt, only, but)


def same_file(t, native, file, only=FILE, but=None):
    writing.models(t, _file, native, file, only, but)


def afterwards(t, native, file, tree=TREE, content=FILE, but=None):
    """What is in the file, and in a mount that knows nothing but the file."""
    left = os.listdir(state(file)) if os.path.exists(state(file)) else []
    assert not left, f"left in the state directory: {left}"
    same_file(t, native, file, content, but)
    with t.mount(file) as m:
        same_tree(t, native, m.path, tree, but)


def state(file):
    folder, name = os.path.split(file)
    return os.path.join(folder, f".{name}.nczarrfs")


# ---- recorded sequences ----

# Each one's pieces follow one another on one store. What the mount shows is compared after each.
SEQUENCES = {
    "zarr2": ["zarr2_create", "zarr2_overwrite", "zarr2_partial", "zarr2_resize", "zarr2_append",
              "zarr2_attrs", "zarr2_consolidate", "zarr2_rename"],
    "zarr2-more": ["zarr2_create", "zarr2_shrink", "zarr2_replace", "zarr2_delete", "zarr2_fsspec",
                   "zarr2_chunks_first", "tree_copy", "tree_copy_archive"],
    "xarray": ["xarray_new", "xarray_append", "xarray_variable", "xarray_region", "xarray_group",
               "xarray_group_again"],
    "ncgen": ["ncgen_zarr"],
    "gdal": ["gdal_new", "gdal_edit"],
    "nested": ["zarr2_nested"],
}
OPTIONS = {"nested": ["dimension_separator=/"]}
ZARR3 = [("create", "partial", "fill", "resize", "append", "attrs", "group",
          "consolidate", "replace",
          "delete"), ("xarray_new", "xarray_append", "xarray_variable", "xarray_region")]
for i, names in enumerate(ZARR3):
    SEQUENCES[f"forky-v2-{i}"] = [f"forky2-{name}" for name in names]


def run_sequence(names, options, t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    os.mkdir(native)
    with t.mount(file, "rw", "create", *options) as m:
        for name in names:
            writing.again(t, name, native)
            writing.again(t, name, m.path)
            same_tree(t, native, m.path)
    afterwards(t, native, file)


# zarr-python 2 reads neither Zarr v3 nor v2 as zarr-python 3.0 writes it; but all of them do
# the same work, so that what is in the file has to be what 3.4 writes as v2.
def run_peer(peer, form, names, t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    os.mkdir(native)
    with t.mount(file, "rw", "create", f"zarr_format={form}") as m:
        for name in names:
            writing.again(t, f"forky2-{name}", native)
            writing.again(t, f"{peer}{form}-{name}", m.path)
    # xarray has another fill value for floats in Zarr v3
    afterwards(t, native, file, tree=[x for x in TREE if x != "fill"])


# ---- arrays of all kinds, by zarr-python 2 ----

def _write_arrays(which, root):
    from clients import rw_arrays
    rw_arrays.write(which, root)


def run_arrays(which, t):
    from clients import rw_arrays
    native, file = t.path("native.zarr"), t.path("new.nc")
    t.call(_write_arrays, which, native)
    with t.mount(file, "rw", "create") as m:
        t.call(_write_arrays, which, m.path)
        same_tree(t, native, m.path)
    known = rw_arrays.KNOWN.get(which, {})
    afterwards(t, native, file, but=known)


# ---- xarray, beside what it makes of the same dataset as a netCDF-4 file ----

def _dataset(times=6, start=0, fixed=False):
    import numpy as np
    import pandas
    import xarray
    n = np.arange(start, start + times)
    temp = (n[:, None] * 100 + np.arange(5)).astype("f4")
    temp[0, 1] = np.nan
    return xarray.Dataset(
        {"temp": (("time", "x"), temp, {"units": "K", "valid_range": np.array([0, 500], "f4")}),
         "packed": (("time",), n * 0.5, {"long_name": "packed in two bytes"}),
         "flag": (("x",), np.array([1, 0, 1, 1, 0], bool)),
         "name": (("x",), np.array(["a", "bc", "", "\u00fc", "e"], object)),
         "scalar": ((), np.int16(7))},
        {"time": pandas.date_range("2000-01-01", periods=start + times)[start:],
         "x": np.linspace(0, 1, 5)},
        {"title": "made by xarray", "number": 5})


ENCODING = {"packed": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9999},
            "time": {"units": "days since 1990-01-01"}}


def _to_zarr(root, kind):
    ds = _dataset()
    if kind == "new":
        ds.to_zarr(root, encoding=ENCODING)
    elif kind == "append":
        _dataset(4, 6).drop_vars(["flag", "name", "scalar", "x"]).to_zarr(root, append_dim="time")
    elif kind == "region":
        part = (ds[["temp"]] * 2).isel(time=slice(1, 4)).drop_vars(["time", "x"])
        part.to_zarr(root, region={"time": slice(1, 4)})
    elif kind == "variable":
        _dataset(10)[["temp"]].rename(temp="more").to_zarr(root, mode="a")


def _same_xarray(native, file):
    import xarray
    with xarray.open_zarr(native, consolidated=False) as a, xarray.open_dataset(file) as b:
        a, b = a.load(), b.load()
        for name in a.variables:
            assert a[name].dims == b[name].dims, name
        b["flag"] = b["flag"].astype(bool)
        xarray.testing.assert_identical(a, b.drop_vars([x for x in b.variables if x not in
                                                        a.variables]))


def test_xarray(t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    with t.mount(file, "rw", "create") as m:
        for kind in "new", "append", "region", "variable":
            t.call(_to_zarr, native, kind)
            t.call(_to_zarr, m.path, kind)
            same_tree(t, native, m.path)
    t.call(_same_xarray, native, file)
    afterwards(t, native, file)


# ---- a netCDF-4 file that is there, changed through the tree ----

def _make_netcdf(path):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(path, "w") as nc:
        for name, n in ("t", None), ("y", 3), ("x", 4):
            nc.createDimension(name, n)
        v = nc.createVariable("v", "i4", ("t", "x"), zlib=True, complevel=2, chunksizes=(2, 2))
        v[:] = np.arange(12).reshape(3, 4)
        v.units = "m"
        for name, dtype in ("small", "i1"), ("short", "i2"), ("float", "f4"), ("wide", "i8"):
            v.setncattr(name, np.array(7, dtype))
        v.setncattr("pair", np.array([1, 2], "i2"))
        w = nc.createVariable("w", "f8", ("y", "x"), fill_value=-1.0)
        w[:] = np.arange(12).reshape(3, 4) / 2
        nc.createVariable("t", "f8", ("t",), chunksizes=(4,))[:] = [0, 1, 2]
        nc.createVariable("s", "i2")[...] = 7
        nc.createVariable("name", str, ("x",))[:] = np.array(["a", "bc", "", "\u00fc"], object)
        nc.createVariable("untouched", "u2", ("y", "x"), chunksizes=(2, 3), shuffle=True, zlib=True,
                          fletcher32=True)[:] = 5
        nc.setncattr("number", np.int16(3))
        nc.createGroup("g").createVariable("u", "f4", ("x",))[:] = [1, 2, 3, 4]


def _edit_tree(root, what):
    import numpy as np
    import zarr
    g = zarr.open_group(root, mode="r+")
    if what == "attributes":
        g["v"].attrs["units"] = "km"
        g["v"].attrs["short"] = 8
        g["v"].attrs["added"] = "text"
        del g["v"].attrs["small"]
        g.attrs["number"] = 4
    elif what == "values":
        g["v"][1, 1:3] = [70, 71]
        g["w"][2] = 9.5
        g["s"][...] = 8
        g["g/u"][1:3] = 50
    elif what == "append":
        g["v"].append(np.arange(8, dtype="i4").reshape(2, 4))
        g["t"].append(np.array([3, 4], "f8"))
    elif what == "more":
        a = g.create_dataset("more", shape=(5, 4), chunks=(2, 4), dtype="i2", fill_value=0,
                             compressor=None)
        a.attrs["_ARRAY_DIMENSIONS"] = ["t", "x"]
        a[...] = 6
        del g["s"]


def _edit_netcdf(path, what):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(path, "a") as nc:
        v = nc["v"]
        if what == "attributes":
            v.units = "km"
            v.setncattr("short", np.int16(8))
            v.setncattr("added", "text")
            v.delncattr("small")
            nc.setncattr("number", np.int16(4))
        elif what == "values":
            v[1, 1:3] = [70, 71]
            nc["w"][2] = 9.5
            nc["s"][...] = 8
            nc["g/u"][1:3] = 50
        elif what == "append":
            v[3:5] = np.arange(8).reshape(2, 4)
            nc["t"][3:5] = [3, 4]
        elif what == "more":
            nc.createVariable("more", "i2", ("t", "x"), chunksizes=(2, 4), fill_value=0)[:] = 6
    if what == "more":
        import h5py
        with h5py.File(path, "r+") as f:
            del f["s"]


def _raw(path, name):
    import h5py
    with h5py.File(path, "r") as f:
        d = f[name].id
        return [(d.get_chunk_info(i).byte_offset, d.get_chunk_info(i).size)
                for i in range(d.get_num_chunks())]


def _same_netcdf(want, got):
    from clients import rw_model as m
    m.compare(m.of_nc(want), m.of_nc(got), only=("shape", "dtype", "values", "attrs", "attr_types",
                                                 "chunks", "filters", "dims", "maxshape"))
    assert _raw(want, "untouched") and len(_raw(got, "untouched")) == len(_raw(want, "untouched"))


def test_existing(t):
    """Through the tree, and by netCDF4-python on a file like it: equal, types of attributes,
    chunks, filters and unlimited dimensions included; what nobody touched stays where it
    was."""
    native, file = t.path("native.nc"), t.path("file.nc")
    for path in native, file:
        t.call(_make_netcdf, path)
    places = []
    for what in "attributes", "values", "append", "more":
        with t.mount(file, "rw") as m:
            t.call(_edit_tree, m.path, what)
        t.call(_edit_netcdf, native, what)
        writing.models(t, _same_netcdf, native, file)
        places.append(_places(t, file))
    assert len(set(places)) == 1, "chunks of an array that nobody touched have moved"


def _places(t, file):
    out = t.path("places")

    def look():
        with open(out, "w") as f:
            f.write(repr(_raw(file, "untouched")))
    t.call(look)
    with open(out) as f:
        return f.read()


# SEMANTICS W13
def test_nothing_written(t):
    """A writable mount in which nobody writes leaves the file alone."""
    file = t.path("file.nc")
    t.call(_make_netcdf, file)
    before, data = os.stat(file), open(file, "rb").read()
    with t.mount(file, "rw") as m:
        t.call(_only_read, m.path)
    after = os.stat(file)
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert open(file, "rb").read() == data
    assert not os.path.exists(state(file))


def _only_read(root):
    import zarr
    g = zarr.open_group(root, mode="r+")
    g["v"][...]
    fd = os.open(os.path.join(root, "v", ".zarray"), os.O_RDWR)
    os.read(fd, 100)
    os.close(fd)


# ---- another program changes the file ----

def _change_both(root, file):
    """A chunk through the mount, an attribute beside it: the mount does not overwrite it."""
    import netCDF4
    import zarr
    zarr.open_group(root, mode="r+")["v"][0, 0] = 500
    with netCDF4.Dataset(file, "a") as nc:
        nc.title = "by another program"
        nc["w"][0] = 77.0
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        print(error)
    else:
        raise AssertionError("the commit says nothing of the other program")
    finally:
        os.close(fd)


def _has_title(file):
    import netCDF4
    with netCDF4.Dataset(file) as nc:
        assert nc.title == "by another program" and nc["w"][0, 0] == 77.0


# SEMANTICS W12
def test_changed_underneath(t):
    file = t.path("file.nc")
    t.call(_make_netcdf, file)
    with t.mount(file, "rw", "commit_delay=3600000", foreground=True) as m:
        m.fails = True
        t.call(_change_both, m.path, file)
    assert m.messages(), "nothing is said"
    t.call(_has_title, file)


# ---- what a netCDF-4 file cannot hold ----

def _document(**changes):
    import json
    d = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "order": "C",
         "fill_value": 0, "filters": None, "compressor": None}
    d.update(changes)
    return json.dumps(d).encode()


REFUSED = {
    "many dimensions": ("a/.zarray", lambda: _document(shape=[1] * 40, chunks=[1] * 40)),
    "other order": ("a/.zarray", lambda: _document(shape=[4, 4], chunks=[2, 2], order="F")),
    "objects": ("a/.zarray", lambda: _document(dtype="|O", fill_value=None,
                                               filters=[{"id": "pickle", "protocol": 4}])),
    "delta": ("a/.zarray", lambda: _document(filters=[{"id": "delta", "dtype": "<i4"}])),
    "scaled": ("a/.zarray", lambda: _document(dtype="<f4", filters=[
        {"id": "fixedscaleoffset", "offset": 0, "scale": 10, "dtype": "<f4", "astype": "<i2"}])),
    "no JSON": ("a/.zarray", lambda: b'{"zarr_format": 2, "shape": ['),
    "no array": ("a/.zarray", lambda: b"[1, 2]"),
    "attributes that are none": ("a/.zattrs", lambda: b"[1, 2]"),
    "fill value of another type": ("v/.zattrs", lambda: (
        b'{"_ARRAY_DIMENSIONS": ["t", "x"], "_FillValue": "foo"}')),
    "names of fewer dimensions": ("v/.zattrs", lambda: b'{"_ARRAY_DIMENSIONS": ["t"]}'),
}


def _content(path):
    """None: it is not there."""
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


def _refused(root, how):
    """Both ways of putting a file: in place, and by rename."""
    os.makedirs(os.path.join(root, "a"), exist_ok=True)
    for name, (key, text) in REFUSED.items():
        path = os.path.join(root, key)
        before = _content(path)
        try:
            if how == "rename":
                with open(path + ".partial", "wb") as f:
                    f.write(text())
                os.rename(path + ".partial", path)
            else:
                with open(path, "wb") as f:
                    f.write(text())
        except OSError as error:
            import errno
            assert error.errno in (errno.EOPNOTSUPP, errno.EINVAL), (
                f"{name}: {error}")
            assert _content(path) == before, f"{name} ({how}): {_content(path)}"
            continue
        raise AssertionError(f"{name} is taken ({how})")


# SEMANTICS E10, W10
def test_refused(t):
    file = t.path("file.nc")
    t.call(_make_netcdf, file)
    before = open(file, "rb").read()
    for how in "in place", "rename":
        with t.mount(file, "rw", foreground=True) as m:
            t.call(_refused, m.path, how)
            lines = m.messages().splitlines()
        # not more than ten in ten seconds
        assert len(lines) >= min(len(REFUSED), 10), f"a line for each: {lines}"
        t.call(_still, file)
    assert len(before) > 0


def _still(file):
    import netCDF4
    with netCDF4.Dataset(file) as nc:
        assert nc["v"][:].sum() == 66


def _resize(root, names):
    import zarr
    g = zarr.open_group(root, mode="r+")
    for name in names:
        a = g[name]
        a.resize(*a.shape[:-1], 5)
        a[..., 4] = 7


def _sync(root):
    fd = os.open(root, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _columns(file):
    import netCDF4
    with netCDF4.Dataset(file) as nc:
        assert nc["w"].shape == nc["u"].shape == (3, 5), nc["w"].shape
        assert (nc["w"][:, 4] == 7).all() and (nc["x"][4] == 7)


def _make_fixed(file):
    import netCDF4
    with netCDF4.Dataset(file, "w") as nc:
        nc.createDimension("y", 3)
        nc.createDimension("x", 4)
        for name, dims in ("w", ("y", "x")), ("u", ("y", "x")), ("x", ("x",)):
            nc.createVariable(name, "f8", dims)[:] = 1


def test_half_resized(t):
    """A variable that is longer than the variable of its fixed dimension is named; when all are
    resized, then or later, the dimension has grown."""
    file = t.path("file.nc")
    t.call(_make_fixed, file)
    with t.mount(file, "rw", foreground=True) as m:
        t.call(_resize, m.path, ["w"])
        t.call(_sync, m.path)
        text = m.messages()
    assert ("variable 'w' has length 5 along dimension 'x', which has the fixed length 4"
            in text), text
    assert "variable 'u'" not in text, text
    with t.mount(file, "rw", foreground=True) as m:
        t.call(_resize, m.path, ["x", "u"])
    assert "along dimension" not in m.messages(), m.messages()
    t.call(_columns, file)


# ---- several processes at once ----

def _write_band(root, k):
    import zarr
    a = zarr.open_group(root, mode="r+")["a"]
    for i in range(k, 64, 4):
        a[i * 8:(i + 1) * 8] = i + 1
    zarr.open_group(root, mode="r+").create_dataset(f"own{k}", shape=(8,), chunks=(2,), dtype="u1"
                                                    )[...] = k


def _four(root):
    import zarr
    zarr.open_group(root, mode="a").create_dataset("a", shape=(512, 2048), chunks=(8, 2048),
                                                        dtype="f4", compressor=None)
    pids = []
    for k in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _write_band(root, k)
                status = 0
            except Exception as error:
                print(error, flush=True)
            finally:
                os._exit(status)
        pids.append(pid)
    assert all(os.waitpid(p, 0)[1] == 0 for p in pids), "a writer failed"


def test_many_writers(t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    t.call(_four, native)
    with t.mount(file, "rw", "create", "stage_size=1M") as m:
        t.call(_four, m.path)
        same_tree(t, native, m.path)
    afterwards(t, native, file)


# ---- a program that goes on after a commit ----

def _go_on(root, synced):
    """Arrays stay what they were made as, for the program that has them open."""
    import numcodecs as n
    import numpy as np
    import zarr

    def sync():
        if synced:
            fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(fd)
            os.close(fd)
    g = zarr.open_group(root, mode="a")
    arrays = {}
    for name, dtype, first, second, more in [
            ("flags", "?", True, True, {}), ("days", "M8[D]", "2000-01-02", "2001-01-01", {}),
            ("complex", "c8", 1 + 2j, 3, {}), ("half", "f2", 0.5, 1.5, {}),
            ("blosc", "i4", 1, 2, {}), ("zlib", "i4", 1, 2, {"compressor": n.Zlib(1)}),
            ("bz2", "i4", 1, 2, {"compressor": n.BZ2(1)}), ("lz4", "i4", 1, 2,
                                                            {"compressor": n.LZ4()}),
            ("zstd", "i4", 1, 2, {"compressor": n.Zstd(1), "filters": [n.Shuffle(4)]}),
            ("lzma", "i4", 1, 2, {"compressor": n.LZMA()}), ("gzip", "i4", 1, 2,
                                                             {"compressor": n.GZip(2)}),
            ("record", [("a", "i4"), ("b", "f8")], (1, 2.5), (3, 4.5), {}),
            ("long", "u2", 1, 2, {"chunks": (100,)})]:
        a = g.create_dataset(name, dtype=dtype, **{"shape": (6,), "chunks": (2,), **more})
        a[:2] = np.array([first] * 2, a.dtype)
        arrays[name] = a, second
        if name in ("days", "blosc"):
            sync()  # what comes later is made beside what is in the file
    sync()
    for a, second in arrays.values():
        a[2:4] = np.array([second] * 2, a.dtype)
    sync()
    bad = []
    for name, (a, second) in arrays.items():
        want = np.array([second] * 2, a.dtype).tolist()
        try:
            got = a[:4].tolist()
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            bad.append(f"{name}: {error}")
            continue
        if got[2:] != want or got[:2] == a[4:].tolist() or got[0] == got[2] and name != "flags":
            bad.append(f"{name}: {got}")
    assert not bad, "\n".join(bad)


def test_goes_on(t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    t.call(_go_on, native, False)
    with t.mount(file, "rw", "create") as m:
        t.call(_go_on, m.path, True)
    afterwards(t, native, file, tree=("values",), content=("values",))


def _text_goes_on(root):
    import zarr
    a = zarr.open_group(root, mode="a").create_dataset("text", shape=(6,), chunks=(2,), dtype="S5")
    a[:2] = b"abc"
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
    a[2:4] = b"de"


def _first_text(file):
    import netCDF4
    with netCDF4.Dataset(file) as nc:
        assert nc["text"][:].tolist() == ["abc", "abc", "", "", "", ""], nc["text"][:]


def test_text_goes_on(t):
    """A text of fixed size is characters in netCDF, with one dimension more: who has the array open
    over a commit writes chunks that it does not have. They are kept, and it is said."""
    file = t.path("new.nc")
    with t.mount(file, "rw", "create", foreground=True) as m:
        m.fails = True
        t.call(_text_goes_on, m.path)
    assert "not all pending writes" in m.messages(), m.messages()
    assert os.path.exists(state(file)), "what was written has gone"
    t.call(_first_text, file)


def _names_with(file, name):
    """The names of a file's variables, None if that one is not among them."""
    import netCDF4
    try:
        with netCDF4.Dataset(file) as nc:
            names = list(nc.variables)
    except OSError:     # it is being written
        return None
    return names if name in names else None


def _text_waits(root, file, synced):
    import zarr
    g = zarr.open_group(root, mode="a")
    arrays = [g.create_dataset("text", shape=(6,), chunks=(2,), dtype="S5"),
              g.create_dataset("wide", shape=(6,), chunks=(2,), dtype="U5"),
              g.create_dataset("any", shape=(6,), chunks=(2,), dtype=str)]
    for a in arrays:
        a[:2] = "abc"
    g.create_dataset("number", data=[1, 2, 3])
    names = eventually(lambda: _names_with(file, "number"), 60)
    assert names == ["number"], names
    for a in arrays:
        a[2:4] = "de"
        got = [x.decode() if isinstance(x, bytes) else x for x in a[:4].tolist()]
        assert got == ["abc", "abc", "de", "de"], (a.name, got)
    # consolidated metadata have these as well after a commit, of either version
    zarr.consolidate_metadata(g.store)
    # a commit that nobody waits for takes what was written last, and leaves these
    g.create_dataset("last", data=[4])
    names = eventually(lambda: _names_with(file, "last"), 60)
    assert sorted(names) == ["last", "number"], names
    assert sorted(zarr.open_consolidated(root)) == ["any", "number", "text", "wide"]
    if synced:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)
        _all_texts(file)


def _all_texts(file):
    import netCDF4
    with netCDF4.Dataset(file) as nc:
        for name in "text", "wide", "any":
            assert nc[name][:4].tolist() == ["abc", "abc", "de", "de"], (name, nc[name][:])


# SEMANTICS W4, W6, W22
def test_text_waits(t):
    """Commits in the middle leave arrays of texts as their writers know them; who waits for all to
    be in the file, or ends the mount, has them there, also when nothing was written since."""
    for synced in False, True:
        file = t.path(f"new{synced}.nc")
        with t.mount(file, "rw", "create", "commit_delay=50", foreground=True) as m:
            t.call(_text_waits, m.path, file, synced)
        t.call(_all_texts, file)


def cases():
    for name, names in SEQUENCES.items():
        yield "recorded-" + name, functools.partial(run_sequence, names, OPTIONS.get(name, ()))
    for peer, form in ("trixie", 2), ("trixie", 3), ("forky", 3):
        for i, names in enumerate(ZARR3):
            yield f"recorded-{peer}-v{form}-{i}", functools.partial(run_peer, peer, form, names)
    for which in "types", "fills", "chains", "shapes", "texts":
        yield "arrays-" + which, functools.partial(run_arrays, which)
