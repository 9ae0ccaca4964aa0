# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write netCDF-4 files, on a writable mount of a Zarr store: what the store
holds, and what the mount shows as a file afterwards, is what the same program makes in a
file of its own."""
import errno
import functools
import os
import subprocess
import sys

from lib import writing
from lib.context import eventually_passes

LIMIT = 120.0
# what a plain Zarr tree keeps of a netCDF-4 file, and what NCZarr keeps
KEPT = {"zarr": ("shape", "dtype", "values", "attrs"),
        "nczarr": ("shape", "dtype", "values", "attrs", "attr_types", "dims")}
# A plain tree does not know which dimensions are unlimited.
UNLIMITED = ("unlimited=t", "unlimited=time")
STORES = {"zarr": (".zarr", UNLIMITED), "nczarr": (".zarr", ("mode=nczarr",)),
          "v3": (".zarr", ("zarr_format=3", *UNLIMITED))}


def _virtual(native, file, form):
    from clients import rw_model as m
    want, got = m.of_nc(native), m.of_nc(file)
    but = {}
    if form == "nczarr":  # netCDF-C's Zarr has texts of one size only: round-strings
        but = {k: ("dtype", "values") for k, v in want["arrays"].items() if v["dtype"] == "object"}
    m.compare(want, got, only=KEPT["nczarr" if form == "nczarr" else "zarr"], but=but)


def _store(native, store, form):
    from clients import rw_model as m
    want, got = m.of_nc(native), m.of_tree(store)
    but = {}
    if form == "nczarr":  # netCDF-C has scalars so
        but = {k: ("shape", "dims") for k, v in want["arrays"].items() if v["shape"] == ()}
        but.update((k, ("values",)) for k, v in want["arrays"].items() if v["dtype"] == "object")
    m.compare(want, got, only=("shape", "values", "attrs", "dims"), but=but)


def same(t, native, file, form):
    writing.models(t, _virtual, native, file, form)


def same_store(t, native, store, form):
    if form != "v3":
        writing.models(t, _store, native, store, form)


NEW = ("base", "ncgen_new", "nccopy_new", "cp_new", "ncks_new", "h5repack_new", "cdo_new",
       "netcdf4_w", "h5netcdf_w", "h5py_w", "xarray_netcdf4", "xarray_h5netcdf")
CHANGES = ("netcdf4_a", "netcdf4_rplus", "netcdf4_append", "netcdf4_rename", "h5netcdf_a",
           "h5py_rplus", "ncks_append", "ncatted_edit", "ncrename_edit", "ncrename_dim",
           "ncrcat_over", "ncap2_edit", "cdo_over", "nccopy_over", "cp_over", "mv_over",
           "h5repack_over")
# Those of a short run, which are different in what they do to the file system; "recorded" makes the
# calls of all.
SOME_NEW = ("cp_new", "ncks_new", "netcdf4_w", "h5netcdf_w", "h5py_w", "xarray_netcdf4")
SOME_CHANGES = ("netcdf4_a", "netcdf4_append", "h5py_rplus", "ncks_append", "ncatted_edit",
                "ncrename_edit", "mv_over")
FEW_NEW = ("ncks_new", "netcdf4_w")
FEW_CHANGES = ("netcdf4_a", "ncks_append", "mv_over")


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
    """The system calls that programs made, without the programs. What a program did to a file
    that was there is done to a scratch file with the same bytes: the virtual file's are
    others."""
    store, mount = open_store(t, form)
    with mount as m:
        file = os.path.join(m.path, "store.nc")
        for name in names:
            folder = t.path(name)
            os.mkdir(folder)
            for root in folder, m.path:
                if os.path.exists(os.path.join(root, "store.nc")):
                    t.call(os.unlink, os.path.join(root, "store.nc"))
                if name in CHANGES:
                    writing.again(t, "file-base", root, strict=True, rename={"store.nc": "work.nc"})
                writing.again(t, "file-" + name, root, strict=True,
                              rename={"store.nc": "work.nc"} if name in CHANGES else {})
                if name in CHANGES:
                    t.call(os.rename, os.path.join(root, "work.nc"), os.path.join(root, "store.nc"))
            same(t, os.path.join(folder, "store.nc"), file, form)


# ---- stores that zarr-python made, changed through the file ----

def _make_store(root):
    """Several chains: passed, transcoded, filtered; a hole; a group."""
    import numcodecs as n
    import numpy as np
    import zarr
    g = zarr.open_group(root, mode="w")
    data = np.arange(48, dtype="i4").reshape(8, 6)
    for name, compressor, filters in [
            ("plain", None, None), ("zlib", n.Zlib(3), [n.Shuffle(4)]), ("gzip", n.GZip(2), None),
            ("blosc", n.Blosc("zstd", 3), None), ("zstd", n.Zstd(1), [n.Delta("i4")])]:
        a = g.create_dataset(name, shape=(8, 6), chunks=(4, 3), dtype="i4", compressor=compressor,
                             filters=filters, fill_value=-1)
        a[...] = data
        a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
        a.attrs["keep"] = 5
    h = g.create_dataset("g/hole", shape=(8,), chunks=(2,), dtype="f4", fill_value=0)
    h[2:4] = 1
    h.attrs["_ARRAY_DIMENSIONS"] = ["y"]
    g.attrs["title"] = "made by zarr-python"


ARRAYS = ("plain", "zlib", "gzip", "blosc", "zstd")


def _edit_virtual(file):
    import h5py
    with h5py.File(file, "r+") as f:
        for name in ARRAYS:
            f[name][1, 1] = 1000
        f["g/hole"][5] = 2
        f["zlib"].attrs["units"] = "K"


def _check_store(root, before, after):
    import numpy as np
    import zarr
    g = zarr.open_group(root, mode="r")
    want = np.arange(48, dtype="i4").reshape(8, 6)
    want[1, 1] = 1000
    for name in ARRAYS:
        np.testing.assert_array_equal(g[name][...], want, name)
        assert g[name].attrs["keep"] == 5
    np.testing.assert_array_equal(g["g/hole"][...], [0, 0, 1, 1, 0, 2, 0, 0])
    assert g["zlib"].attrs["units"] == "K"
    changed = {k for k in set(before) | set(after) if before.get(k) != after.get(k)}
    expected = {f"{name}/0.0" for name in ARRAYS} | {"g/hole/2", "zlib/.zattrs"}
    assert changed == expected, f"{sorted(changed)} changed, {sorted(expected)} expected"


def versions(store):
    found = {}
    for folder, _, names in os.walk(store):
        for name in names:
            path = os.path.join(folder, name)
            s = os.stat(path)
            found[os.path.relpath(path, store)] = (s.st_ino, s.st_mtime_ns, s.st_size)
    return found


# SEMANTICS W14
def test_only_what_changed(t):
    """A chunk that changed is encoded as its array is; no other object of the store is touched."""
    store = t.path("store.zarr")
    t.call(_make_store, store)
    before = versions(store)
    with t.mount(store, "rw") as m:
        t.call(_edit_virtual, os.path.join(m.path, "store.nc"))
        t.call(_check_store, store, before, versions(store))
    t.call(_check_store, store, before, versions(store))


def _look_only(file):
    import h5py
    with h5py.File(file, "r+") as f:
        f["zlib"][...]


# SEMANTICS W13
def test_nothing_changed(t):
    """Opened for writing and closed: libhdf5 writes to the superblock, the store stays as it is."""
    store = t.path("store.zarr")
    t.call(_make_store, store)
    before = versions(store)
    with t.mount(store, "rw") as m:
        t.call(_look_only, os.path.join(m.path, "store.nc"))
    assert versions(store) == before


# ---- others at the same time ----

LOCKER = """
import sys, h5py
f = h5py.File(sys.argv[1], sys.argv[2])
if sys.argv[2] != "r":
    f["plain"][0, 0] = int(sys.argv[3])
print("open", flush=True)
sys.stdin.readline()
f.close()
print("closed", flush=True)
"""


class Program:
    """h5py in a process of its own, with locking; it has the file open until told to close."""

    def __init__(self, t, file, mode, value=0):
        env = dict(os.environ, HDF5_USE_FILE_LOCKING="TRUE")
        self.process = subprocess.Popen([sys.executable, "-c", LOCKER, file, mode, str(value)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env, cwd=t.tmp)
        self.opened = self.process.stdout.readline().strip() == "open"

    def close(self):
        out, err = self.process.communicate("\n", timeout=60)
        return self.process.returncode == 0 and "closed" in out, err


# SEMANTICS L5
def test_locks(t):
    """Two writers of one file are kept apart by libhdf5's locks."""
    store = t.path("store.zarr")
    t.call(_make_store, store)
    with t.mount(store, "rw") as m:
        file = os.path.join(m.path, "store.nc")
        first = Program(t, file, "r+", 11)
        assert first.opened, first.close()
        for mode in "r+", "r":
            second = Program(t, file, mode, 12)
            assert not second.opened, "two programs have the file open"
            ok, err = second.close()
            assert not ok and "lock" in err, err
        ok, err = first.close()
        assert ok, err
        third = Program(t, file, "r+", 13)
        assert third.opened, third.close()
        assert third.close()[0]
    t.call(_first_is, store, 13)


def _first_is(store, value):
    import zarr
    assert zarr.open_group(store, mode="r")["plain"][0, 0] == value


def _reader_and_writer(file):
    """An open reader keeps the version that it opened; who comes later sees the new one."""
    import h5py
    import numpy as np
    want = np.arange(48, dtype="i4").reshape(8, 6)
    with h5py.File(file, "r") as old:
        data = old["plain"]
        assert data[7, 5] == 47  # another chunk than the one that changes
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.execv(sys.executable, [sys.executable, "-c", EDIT, file])
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0, "the writer failed"
        for name in ARRAYS:
            np.testing.assert_array_equal(old[name][...], want, "the old version of " + name)
    with h5py.File(file, "r") as new:
        assert new["plain"][1, 1] == 1000
        assert "gzip" not in new


EDIT = """
import sys, h5py
with h5py.File(sys.argv[1], "r+") as f:
    for name in f:
        if name not in "gxy":
            f[name][1, 1] = 1000
    del f["gzip"]
"""


# SEMANTICS C11
def test_reader_keeps_its_version(t):
    store = t.path("store.zarr")
    t.call(_make_store, store)
    with t.mount(store, "rw") as m:
        t.call(_reader_and_writer, os.path.join(m.path, "store.nc"))


# ---- another program changes the store underneath ----

def _foreign(root):
    import zarr
    zarr.open_group(root, mode="r+")["zlib"][4:8] = 5


def _close_fails(file, store):
    """write and close by hand: h5py does not tell what close(2) says."""
    fd = os.open(file, os.O_RDWR)
    os.pwrite(fd, b"\0" * 8, 0)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _foreign(store)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    try:
        os.close(fd)
    except OSError as error:
        print(error)
        return
    raise AssertionError("close says that the file was written")


# SEMANTICS W8, W12
def test_changed_underneath(t):
    """The store keeps what the other program wrote, what waits stays, and the exit status is 1."""
    store, state = t.path("store.zarr"), t.path(".store.zarr.nczarrfs")
    t.call(_make_store, store)
    with t.mount(store, "rw", foreground=True) as m:
        m.fails = True
        t.call(_close_fails, os.path.join(m.path, "store.nc"), store)
    assert "changed by another program" in m.messages(), "nothing is said: " + m.messages()
    assert state in m.messages() and "nc-1.now" in os.listdir(state), m.messages()
    t.call(_foreign_is_there, store)


def _foreign_is_there(store):
    import zarr
    assert (zarr.open_group(store, mode="r")["zlib"][4:8] == 5).all()


def _close_of_rubbish(file):
    fd = os.open(file, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b"this is no HDF5 file" * 100)
    try:
        os.close(fd)
    except OSError as error:
        assert error.errno == errno.EIO, error
    else:
        raise AssertionError("close says that the file was written")


# SEMANTICS E11, W10
def test_no_hdf5(t):
    """What is no netCDF-4 file at close is refused there, and the store stays as it is."""
    store = t.path("store.zarr")
    t.call(_make_store, store)
    before = versions(store)
    with t.mount(store, "rw", foreground=True) as m:
        m.fails = True  # it says so again at the end
        t.call(_close_of_rubbish, os.path.join(m.path, "store.nc"))
        assert versions(store) == before
    assert "'store.nc' could not be committed: pending writes: " in m.messages(), m.messages()
    assert versions(store) == before


# ---- several writers at once ----

def _close_together(file, rounds):
    """Two descriptors that wrote, closed by two threads at the same moment."""
    import threading
    for _ in range(rounds):
        fds = [os.open(file, os.O_RDWR) for _ in range(2)]
        head = os.pread(fds[0], 8, 0)
        for fd in fds:
            os.pwrite(fd, head, 0)
        barrier = threading.Barrier(2)

        def close(fd, barrier=barrier):
            barrier.wait()
            os.close(fd)
        threads = [threading.Thread(target=close, args=(fd,)) for fd in fds]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def _change_outside(store):
    import zarr
    zarr.open_group(store, mode="r+")["zlib"][:] = 9


def _has_change(file):
    import h5py
    with h5py.File(file, "r") as f:
        assert (f["zlib"][:] == 9).all(), "the mount does not follow the store any more"


# SEMANTICS C3
def test_two_last_writers(t):
    """Of two writers that close at once one is the last: the mount follows other programs again."""
    store = t.path("store.zarr")
    t.call(_make_store, store)
    with t.mount(store, "rw") as m:
        file = os.path.join(m.path, "store.nc")
        t.call(_close_together, file, 100)
        t.call(_change_outside, store)
        # an OSError is possible once, of what was read of the store as it was
        t.call(eventually_passes, _has_change, file)


# ---- what plain Zarr has no word for ----

def _write_layout(path):
    """Names that are not in order, unlimited dimensions, one that no variable has, and filters in
    netCDF-C's order: fletcher32 first."""
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(path, "w") as nc:
        for name, size in (("time", None), ("x", 4), ("unused", 3), ("member", None)):
            nc.createDimension(name, size)
        for name, kind in (("z", "f8"), ("a", "i4"), ("m", "f4")):
            v = nc.createVariable(name, kind, ("time", "x"), zlib=True, complevel=9, shuffle=True,
                                  fletcher32=True, chunksizes=(2, 4))
            v[:] = np.arange(20).reshape(5, 4)
        for name in ("zz", "g"):
            group = nc.createGroup(name)
            group.createDimension("u", None)
            group.createVariable("q", "f4", ("u", "x"))[:] = np.ones((3, 4))
            group.createVariable("c", "f4", ("x",))[:] = 2


def _layout(path, levels=True):
    import netCDF4

    def of(group):
        return {"dims": [(d.name, len(d), d.isunlimited()) for d in group.dimensions.values()],
                "arrays": [(v.name, v.dimensions, v.filters()["fletcher32"],
                            levels and v.filters()["complevel"])
                           for v in group.variables.values()],
                "groups": [(g.name, of(g)) for g in group.groups.values()]}
    with netCDF4.Dataset(path) as nc:
        return of(nc)


def _same_values(file, store):
    import h5py
    import numpy as np
    import zarr
    g = zarr.open_group(store, mode="r")
    with h5py.File(file, "r") as f:
        for name in "zam":
            assert f[name].fletcher32 and np.array_equal(f[name][...], g[name][...]), (
                f"{name}: {f[name][...].tolist()}, {g[name][...].tolist()}")


def _write_again(file):
    import netCDF4
    with netCDF4.Dataset(file, "a") as d:
        d["z"][5:9] = 7
        d["a"][1] = 3


def _same_layout(native, file, levels):
    want, got = _layout(native, levels), _layout(file, levels)
    assert got == want, f"{got}, not {want}"


def _as_other_programs(store):
    """A Zarr program knows no hints: it adds an array, removes one and makes another longer."""
    import shutil
    import zarr
    g = zarr.open_group(store, mode="r+")
    for name in "zam":
        g[name].resize(9, 4)
    shutil.rmtree(os.path.join(store, "zz"))
    new = g.create_dataset("aa", shape=(4,), dtype="i2")
    new.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    zarr.consolidate_metadata(store)


def _hints_give_way(file):
    got = _layout(file)
    # consolidated metadata are sorted by name
    assert sorted(got["dims"]) == [("member", 0, True), ("time", 9, True), ("unused", 3, False),
                                   ("x", 4, False)], got["dims"]
    assert [a[0] for a in got["arrays"]] == ["z", "a", "m", "aa"], got["arrays"]
    assert [g[0] for g in got["groups"]] == ["g"], got["groups"]


# SEMANTICS W31
def run_layout(options, t):
    """A store that a netCDF program writes comes back with its order of variables and groups, its
    unlimited dimensions, its checksums and, in Zarr v2, the level of its compression: Zarr v3
    stores Blosc."""
    native, store, levels = t.path("native.nc"), t.path("store.zarr"), not options
    t.call(_write_layout, native)
    with t.mount(store, "rw", "create", *options) as m:
        file = os.path.join(m.path, "store.nc")
        t.call(_write_layout, file)
        t.call(_same_layout, native, file, levels)
    with t.mount(store) as m:
        t.call(_same_layout, native, os.path.join(m.path, "store.nc"), levels)
    if options:
        return
    with t.mount(store, "rw") as m:  # chunks with a checksum beside those without
        t.call(_write_again, os.path.join(m.path, "store.nc"))
        # the file is that of its writer until its release
        t.call(eventually_passes, _same_values, os.path.join(m.path, "store.nc"), store)
    t.call(_as_other_programs, store)
    with t.mount(store) as m:
        t.call(_hints_give_way, os.path.join(m.path, "store.nc"))


def cases():
    whole = os.environ.get("NCZARRFS_WRITING_ALL") == "1"
    for form in STORES:
        some = form == "zarr"
        new = NEW if whole else SOME_NEW if some else FEW_NEW
        changes = CHANGES if whole else SOME_CHANGES if some else FEW_CHANGES
        yield "new-" + form, functools.partial(run_new, form, new)
        yield "changes-" + form, functools.partial(run_changes, form, changes)
    names = [n for n in (*NEW, *CHANGES) if writing.has("file-" + n)]
    yield "recorded", functools.partial(run_recorded, "zarr", names)
    yield "layout-zarr", functools.partial(run_layout, ())
    yield "layout-v3", functools.partial(run_layout, ("zarr_format=3",))
