"""Programs that write Zarr trees, on a writable mount of a netCDF-4 file: the file, and the tree that
the mount shows afterwards, hold what the same program makes natively."""
import functools
import os

from lib import writing
from lib.context import Skip

LIMIT = 90.0
TREE = ("shape", "dtype", "values", "attrs", "chunks", "fill", "dims")
FILE = ("shape", "dtype", "values", "attrs", "chunks")


def _trees(native, mnt, only, but):
    from clients import rw_model as m
    m.compare(m.of_tree(native), m.of_tree(mnt), only=only, but=but)


def _file(native, file, only, but):
    from clients import rw_model as m
    m.compare(m.of_tree(native), m.of_nc(file), only=only, but=but)


def same_tree(t, native, mnt, only=TREE, but=None):
    writing.models(t, _trees, native, mnt, only, but)


def same_file(t, native, file, only=FILE, but=None):
    writing.models(t, _file, native, file, only, but)


def afterwards(t, native, file, tree=TREE, content=FILE, but=None):
    """What is in the file, and in a mount that knows nothing but the file."""
    assert not os.path.exists(state(file)), "something is left in the state directory"
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
    "zarr2-more": ["zarr2_create", "zarr2_shrink", "zarr2_replace", "zarr2_delete", "zarr2_nested",
                   "zarr2_fsspec", "zarr2_chunks_first", "tree_copy", "tree_copy_archive"],
    "xarray": ["xarray_new", "xarray_variable", "xarray_append", "xarray_region", "xarray_group",
               "xarray_group_again"],
    "ncgen": ["ncgen_zarr"],
    "gdal": ["gdal_new", "gdal_edit"],
}
ZARR3 = [("create", "partial", "fill", "resize", "append", "attrs", "group", "consolidate", "replace",
          "delete"), ("xarray_new", "xarray_variable", "xarray_append", "xarray_region")]
for i, names in enumerate(ZARR3):
    SEQUENCES[f"forky-v2-{i}"] = [f"forky2-{name}" for name in names]


def run_sequence(names, t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    os.mkdir(native)
    with t.mount(file, "rw", "create") as m:
        for name in names:
            writing.again(t, name, native)
            writing.again(t, name, m.path)
            same_tree(t, native, m.path)
    afterwards(t, native, file)


# zarr-python 2 reads neither Zarr v3 nor v2 as zarr-python 3.0 writes it; but all of them do the same
# work, so that what is in the file has to be what 3.4 writes as v2.
def run_peer(peer, form, names, t):
    native, file = t.path("native.zarr"), t.path("new.nc")
    os.mkdir(native)
    with t.mount(file, "rw", "create", f"zarr_format={form}") as m:
        for name in names:
            writing.again(t, f"forky2-{name}", native)
            writing.again(t, f"{peer}{form}-{name}", m.path)
    afterwards(t, native, file)


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


def cases():
    for name, names in SEQUENCES.items():
        yield "recorded-" + name, functools.partial(run_sequence, names)
    for peer, form in ("trixie", 2), ("trixie", 3), ("forky", 3):
        for i, names in enumerate(ZARR3):
            yield f"recorded-{peer}-v{form}-{i}", functools.partial(run_peer, peer, form, names)
    for which in "types", "fills", "chains", "shapes", "texts":
        yield "arrays-" + which, functools.partial(run_arrays, which)


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
        ds[["temp"]].rename(temp="more").to_zarr(root, mode="a")


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
