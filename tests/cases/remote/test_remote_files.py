# SPDX-License-Identifier: BSD-3-Clause
"""Files on a web server: HDF5, netCDF-4, classic netCDF, HDF4 and zip archives by ranges. All
views show what they show of the same file on a disk, byte for byte; few requests; a file that
changes and a server that dies are errors that pass.

A sample of the corpus; with NCZARRFS_REMOTE_ALL all of it."""
import errno
import functools
import os
import shutil
import time

from lib import trees
from lib.context import Skip, corpus, eventually
from lib.web import WebServer

LIMIT = 120.0

SAMPLE = (
    "netcdf4/gauteh-hidefix/coads_climatology.nc4",
    "netcdf4/Unidata-netcdf-c/ref_tst_compounds.nc",
    "classic/Unidata-tds/nc_test_cdf2.nc",
    "hdf4/HDFGroup-hdf4/*",
    "zip/keller-mark-pizzarr/data.zarr.zip",
)
FOLDERS = ("netcdf4", "hdf5", "classic", "hdf4", "zip")


def equal(web, root, path, t, views=("zarr", "nc", "classic")):
    for view in views:
        with t.mount(os.path.join(root, path), f"view={view}", check=False) as a, \
                t.mount(f"{web.url}/{path}", f"view={view}", check=False) as b:
            a.damaged = b.damaged = True
            assert a.status == b.status, f"{view}: {a.messages()!r} and {b.messages()!r}"
            if a.status == 0:
                t.call(trees.same, a.path, b.path, timeout=100)


def one(path, t):
    with WebServer(corpus()) as web:
        equal(web, corpus(), path, t)
        print(len(web.asked), "requests")


def pick(root, path):
    folder, star, _ = path.partition("*")
    return folder + sorted(os.listdir(os.path.join(root, folder)))[0] if star else path


def test_sample(t):
    root = corpus()
    if not root:
        raise Skip("no corpus")
    with WebServer(root) as web:
        for path in SAMPLE:
            path = pick(root, path)
            if os.path.exists(os.path.join(root, path)):
                equal(web, root, path, t)
            else:
                print("no", path)


def cases():
    root = corpus()
    if not root or not os.environ.get("NCZARRFS_REMOTE_ALL"):
        return
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        for line in list(f)[1:]:
            path = line.split("\t")[0]
            if path.split("/")[0] in FOLDERS and not path.endswith("/"):
                yield path, functools.partial(one, path)


# ---- files of our own ----

N, X = 24, 60000  # records, values of one


def make(path, n_vars=12, shift=0):
    """An HDF5 file of about 35 MB: chunks that do not compress, texts that only libhdf5 reads."""
    import h5py
    import numpy as np
    rng = np.random.default_rng(7 + shift)
    part = path + ".part"
    with h5py.File(part, "w") as f:
        for i in range(n_vars):
            d = f.create_dataset(f"v{i}", (N, X), "i2", chunks=(1, X), compression="gzip",
                                 compression_opts=1)
            d[:] = rng.integers(-30000, 30000, (N, X)) + shift
            d.attrs["units"] = "m"
            if i == n_vars // 2:  # neither at the beginning nor at the end of the file
                d = f.create_dataset("texts", (20000,), h5py.string_dtype(), chunks=(5000,))
                d[:] = [f"text {i} {shift}" * 3 for i in range(20000)]
    os.rename(part, path)


def read(path):
    with open(path, "rb", buffering=0) as f:
        data = b""
        while True:
            piece = f.read(1 << 20)
            if not piece:
                return data
            data += piece


def try_read(path):
    """Bytes, or the errno."""
    try:
        return read(path)
    except OSError as error:
        return error.errno


def ranges(asked):
    return [tuple(map(int, a[2].partition("=")[2].split("-"))) for a in asked]


def test_requests(t):
    """Opening costs a few requests, chunks in order one each at most, reading again none."""
    folder = t.path("www")
    os.mkdir(folder)
    make(os.path.join(folder, "a.nc"))
    small = os.path.join(folder, "small.nc")
    make(small, n_vars=1)
    with WebServer(folder) as web, t.mount(web.url + "/a.nc") as m:
        opening = len(web.asked)
        assert opening <= 8, web.asked
        web.forget()

        def chunks():
            for k in range(N):
                assert len(read(os.path.join(m.path, f"v3/{k}.0"))) > X

        t.call(chunks)
        assert 1 <= len(web.asked) <= N + 2, web.asked
        assert not any(a[0] != "GET" or not a[2] for a in web.asked), web.asked
        print("opening", opening, "requests,", N, "chunks", len(web.asked))
        first = len(web.asked)
        t.call(chunks)
        had = ranges(web.asked[:first])
        for start, end in ranges(web.asked[first:]):  # what is fetched ahead may still come
            assert not any(start <= e and s <= end for s, e in had), web.asked
    with WebServer(folder) as web, t.mount(web.url + "/small.nc", "view=nc") as m:
        t.call(lambda: read(os.path.join(m.path, "small.nc")))
        assert len(web.asked) <= 3, web.asked


# SEMANTICS C8
def test_replaced(t):
    """Old bytes, an error, then new bytes; never some of each."""
    import numpy as np
    folder = t.path("www")
    os.mkdir(folder)
    path = os.path.join(folder, "a.nc")
    make(path, n_vars=3)
    with WebServer(folder) as web, t.mount(web.url + "/a.nc", "revalidate=1",
                                           "filter=none") as m:
        def value(shift, name):
            rng = np.random.default_rng(7 + shift)
            every = [rng.integers(-30000, 30000, (N, X)) + shift for _ in range(3)]
            return every[int(name[1])].astype("<i2")

        def look():
            """Both versions' bytes are known: nothing else may come."""
            old, new = value(0, "v1"), value(5, "v1")
            assert read(os.path.join(m.path, "v1/0.0")) == old[0].tobytes()
            os.rename(path + ".new", path)
            got, end = "old", time.monotonic() + 60
            while got != "new":
                assert time.monotonic() < end, f"still {got}"
                for k in range(1, N):
                    data = try_read(os.path.join(m.path, f"v1/{k}.0"))
                    if data == new[k].tobytes():
                        got = "new"
                    elif data == old[k].tobytes():
                        assert got == "old", "old bytes after new ones"
                    else:
                        assert data in (errno.EIO, errno.ESTALE, errno.ENOENT), (
                            data if isinstance(data, int) else "mixed bytes")

        make(path + ".new", n_vars=3, shift=5)
        t.call(look, timeout=100)


def test_server_dies(t):
    """What is not here is an error while the server is away, and is there when it is back: bytes,
    and elements that a library's process reads."""
    folder = t.path("www")
    os.mkdir(folder)
    make(os.path.join(folder, "a.nc"), n_vars=6)
    dead = [False]

    def fault(handler):
        if dead[0]:
            handler.close_connection = True
            handler.connection.close()
        return dead[0]

    with WebServer(folder, fault=fault) as web, \
            t.mount(web.url + "/a.nc", "timeout=2", "max_attempts=2", "filter=none") as m, \
            t.mount(os.path.join(folder, "a.nc"), "filter=none") as local:
        t.call(lambda: read(os.path.join(m.path, "v0/0.0")))
        dead[0] = True

        def gone():
            assert try_read(os.path.join(m.path, "v3/20.0")) == errno.EIO
            assert try_read(os.path.join(m.path, "texts/3")) == errno.EIO
            assert os.path.exists(os.path.join(m.path, "v3/.zarray"))

        t.call(gone)
        dead[0] = False
        assert m.server_alive()
        t.call(trees.same, local.path, m.path)


def test_hangs(t):
    """A reader that waits for a server that says nothing can be killed, and the mount ends."""
    import signal
    import threading
    folder = t.path("www")
    os.mkdir(folder)
    make(os.path.join(folder, "a.nc"))
    hang, free, came = [False], threading.Event(), threading.Event()

    def fault(_):
        if hang[0]:
            came.set()
            free.wait(60)
        return False

    with WebServer(folder, fault=fault) as web, t.mount(web.url + "/a.nc") as m:
        hang[0] = True
        for name in ("texts/3", "v3/20.0"):
            came.clear()
            pid = os.fork()
            if pid == 0:
                try_read(os.path.join(m.path, name))
                os._exit(0)
            assert came.wait(20), name
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: os.waitpid(pid, os.WNOHANG)[0],
                       report=lambda: f"a reader of {name} that cannot be killed")
        problems = m.unmount(20)
        free.set()
        assert not problems, problems
        m.ended = True


# SECURITY S32
def test_other_files(t):
    """A remote file never leads to another one, on this machine or elsewhere."""
    import h5py
    folder = t.path("www")
    os.mkdir(folder)
    for where in (folder, t.tmp):
        with h5py.File(os.path.join(where, "secret.h5"), "w") as f:
            f["secret"] = [1, 2, 3]
    with h5py.File(os.path.join(folder, "a.h5"), "w") as f:
        f["own"] = [4, 5, 6]
        f["near"] = h5py.ExternalLink("secret.h5", "/secret")
        f["far"] = h5py.ExternalLink(t.path("secret.h5"), "/secret")
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource(t.path("secret.h5"), "secret", (3,))
        f.create_virtual_dataset("virtual", layout)
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource(".", "own", (3,))
        f.create_virtual_dataset("within", layout)
        f.create_dataset("raw", (3,), "i8", external=[(t.path("secret.h5"), 0, 24)])
    with WebServer(folder) as web:
        with t.mount(web.url + "/a.h5", f"external_root={t.tmp}", "unsupported=skip") as m:
            def look():
                names = set(os.listdir(m.path))
                assert not names & {"near", "far"}, names
                for name in names & {"virtual", "raw"}:
                    assert isinstance(try_read(os.path.join(m.path, name, "0")), int), name
                assert read(os.path.join(m.path, "own/0")) == read(
                    os.path.join(m.path, "within/0"))
            t.call(look)
        assert not any("secret" in a[1] for a in web.asked), web.asked
        status, out, err = t.run(t.binary, "info", web.url + "/a.h5")
        assert status == 0 and "a remote file cannot refer to other files" in out, out + err


def test_clients(t):
    """Programs that others made read the remote file through both views."""
    folder = t.path("www")
    os.mkdir(folder)
    path = os.path.join(folder, "a.nc")

    def write():
        import netCDF4
        import numpy as np
        with netCDF4.Dataset(path, "w") as d:
            d.createDimension("time", None)
            d.createDimension("x", 500)
            for name in ("a", "b"):
                v = d.createVariable(name, "f4", ("time", "x"), zlib=True)
                v.units = "K"
                v[:] = np.arange(100 * 500).reshape(100, 500)

    t.call(write)
    with WebServer(folder) as web, t.mount(web.url + "/a.nc") as z, \
            t.mount(web.url + "/a.nc", "view=nc") as v:
        virtual = os.path.join(v.path, "a.nc")

        def xarrays():
            import xarray
            with xarray.open_dataset(path, decode_cf=False) as a, \
                    xarray.open_zarr(z.path, consolidated=False, decode_cf=False) as b:
                for name in a.variables:
                    assert (a[name].values == b[name].values).all(), name
                assert set(a.variables) == set(b.variables)

        def hdf5():
            import h5py
            with h5py.File(path, "r") as a, h5py.File(virtual, "r") as b:
                assert set(a) == set(b)
                for name in ("a", "b"):
                    assert (a[name][:] == b[name][:]).all()
                    assert a[name].attrs["units"] == b[name].attrs["units"]

        t.call(xarrays)
        t.call(hdf5)
        dumps = [t.run("ncdump", "-n", "a", name) for name in (path, virtual)]
        assert dumps[0][0] == 0 and dumps[0] == dumps[1], dumps[1][2]


def test_hdf4_copy(t):
    """HDF4 is copied; nothing of that stays, and what changes on the server is noticed."""
    root = corpus()
    if not root or not os.path.isdir(os.path.join(root, "hdf4")):
        raise Skip("no corpus")
    path = pick(root, "hdf4/HDFGroup-hdf4/*")
    folder, tmp = t.path("www"), t.path("tmp")
    os.mkdir(folder)
    os.mkdir(tmp)
    shutil.copyfile(os.path.join(root, path), os.path.join(folder, "a.hdf"))
    os.environ["TMPDIR"] = tmp
    try:
        with WebServer(folder) as web, t.mount(web.url + "/a.hdf", "revalidate=1") as m:
            assert os.listdir(tmp) == []
            os.unlink(os.path.join(folder, "a.hdf"))

            def noticed():
                end = time.monotonic() + 60
                while os.path.exists(m.path) and not isinstance(
                        next((r for r in map(try_read, files(m.path)) if isinstance(r, int)),
                             None), int):
                    assert time.monotonic() < end, "nobody noticed"
            t.call(noticed, timeout=100)
    finally:
        del os.environ["TMPDIR"]


def files(top):
    for base, dirs, names in os.walk(top):
        dirs.sort()
        for name in sorted(names):
            if not name.startswith("."):
                yield os.path.join(base, name)
