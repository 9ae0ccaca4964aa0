"""Programs that write netCDF-4 files, on a writable mount of a Zarr store: what the store holds, and
what the mount shows as a file afterwards, is what the same program makes in a file of its own."""
import functools
import os

from lib import writing
from lib.context import Skip

LIMIT = 120.0
# what a plain Zarr tree keeps of a netCDF-4 file, and what NCZarr keeps
KEPT = {"zarr": ("shape", "dtype", "values", "attrs"),
        "nczarr": ("shape", "dtype", "values", "attrs", "attr_types", "dims")}
STORES = {"zarr": (".zarr", ()), "nczarr": (".zarr", ("mode=nczarr",)),
          "v3": (".zarr", ("zarr_format=3",))}


def _virtual(native, file, only, but):
    from clients import rw_model as m
    m.compare(m.of_nc(native), m.of_nc(file), only=only, but=but)


def _store(native, store, but):
    from clients import rw_model as m
    want, got = m.of_nc(native), m.of_tree(store)
    m.compare(want, got, only=("shape", "values", "attrs", "dims"), but=but)


def same(t, native, file, form, but=None):
    only = KEPT["nczarr" if form == "nczarr" else "zarr"]
    writing.models(t, _virtual, native, file, only, but)


def same_store(t, native, store, form, but=None):
    if form != "v3":
        writing.models(t, _store, native, store, but)


NEW = ("base", "ncgen_new", "nccopy_new", "cp_new", "ncks_new", "h5repack_new", "cdo_new",
       "netcdf4_w", "h5netcdf_w", "h5py_w", "xarray_netcdf4", "xarray_h5netcdf")
CHANGES = ("netcdf4_a", "netcdf4_rplus", "netcdf4_append", "netcdf4_rename", "h5netcdf_a",
           "h5py_rplus", "ncks_append", "ncatted_edit", "ncrename_edit", "ncrename_dim",
           "ncrcat_over", "ncap2_edit", "cdo_over", "nccopy_over", "cp_over", "mv_over",
           "h5repack_over")
# Those of a short run, which are different in what they do to the file system.
FEW_NEW = ("cp_new", "ncks_new", "netcdf4_w")
FEW_CHANGES = ("netcdf4_a", "ncks_append", "ncrename_edit", "mv_over")


def open_store(t, form):
    ending, options = STORES[form]
    store = t.path("store" + ending)
    return store, t.mount(store, "rw", "create", *options)


def run_new(form, names, t):
    """One after another into the same mount: each takes the place of what was there."""
    store, mount = open_store(t, form)
    with mount as m:
        file = os.path.join(m.path, "store.nc")
        for name in names:
            native = t.path(name + ".nc")
            writing.file_work(t, name, native)
            writing.file_work(t, name, file)
            same(t, native, file, form)
            same_store(t, native, store, form)
    with t.mount(store) as m:
        same(t, native, os.path.join(m.path, "store.nc"), form)


def run_changes(form, names, t):
    store, mount = open_store(t, form)
    with mount as m:
        file = os.path.join(m.path, "store.nc")
        for name in names:
            native = t.path(name + ".nc")
            for path in native, file:
                writing.file_work(t, "base", path)
                writing.file_work(t, name, path)
            same(t, native, file, form)
            same_store(t, native, store, form)
    with t.mount(store) as m:
        same(t, native, os.path.join(m.path, "store.nc"), form)


def run_recorded(form, names, t):
    """The system calls that programs made, without the programs. What a program did to a file that was
    there is done to a scratch file with the same bytes: the virtual file's are others."""
    store, mount = open_store(t, form)
    with mount as m:
        file = os.path.join(m.path, "store.nc")
        for name in names:
            folder = t.path(name)
            os.mkdir(folder)
            for root in folder, m.path:
                if name in CHANGES:
                    writing.again(t, "file-base", root, strict=True, rename={"store.nc": "work.nc"})
                writing.again(t, "file-" + name, root, strict=True,
                              rename={"store.nc": "work.nc"} if name in CHANGES else {})
                if name in CHANGES:
                    t.call(os.rename, os.path.join(root, "work.nc"), os.path.join(root, "store.nc"))
            same(t, os.path.join(folder, "store.nc"), file, form)


def cases():
    whole = os.environ.get("NCZARRFS_WRITING_ALL") == "1"
    for form in STORES:
        all_ = whole or form == "zarr"
        yield "new-" + form, functools.partial(run_new, form, NEW if all_ else FEW_NEW)
        yield "changes-" + form, functools.partial(run_changes, form,
                                                   CHANGES if all_ else FEW_CHANGES)
    names = [n for n in (*NEW, *CHANGES) if writing.has("file-" + n)]
    yield "recorded", functools.partial(run_recorded, "zarr", names)
