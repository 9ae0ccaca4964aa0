# SPDX-License-Identifier: BSD-3-Clause
"""Zarr stores in S3 that programs write through the virtual file: the bucket holds, object by
object, what the same program makes in a directory; whatever dies or fails in between, what was
confirmed is in it in the end."""
import errno
import os
import threading

from lib import mounts, writing
from lib.s3_server import Object, Refused, S3Server
from lib.web import WebServer

LIMIT = 90.0
KEYS = {"AKID": "a secret"}
ADDRESS = "s3://b/store.zarr"
UNLIMITED = ("unlimited=t", "unlimited=time")


def server(t, **more):
    """A service with one bucket, and this test's credentials for it."""
    os.environ.update({"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": KEYS["AKID"],
                       "HOME": t.tmp, "AWS_EC2_METADATA_DISABLED": "true"})
    os.environ.pop("XDG_STATE_HOME", None)
    return S3Server(KEYS, {"b": {}}, **more)


def objects(s3, prefix="store.zarr/"):
    with s3.lock:
        return {k[len(prefix):]: o.data for k, o in s3.buckets["b"].items()
                if k.startswith(prefix)}


def files(folder):
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def same_bytes(want, got):
    other = [k for k in sorted(set(want) | set(got)) if want.get(k) != got.get(k)]
    lines = [f"{k}: {str(want.get(k))[:300]}\n  and not {str(got.get(k))[:300]}" for k in other]
    assert not other, "\n".join(lines)


def states(t):
    """What is left in state directories."""
    top = t.path(".local/state/nczarrfs")
    return {d: sorted(os.listdir(os.path.join(top, d))) for d in
            (os.listdir(top) if os.path.isdir(top) else ())}


def options(s3, *more):
    return ("rw", "endpoint=" + s3.url, *more)


def recover(t, s3, *more):
    return t.run(t.binary, "recover", "-o", "endpoint=" + s3.url, *more, ADDRESS)


# ---- what a directory would hold ----

FILES = ("netcdf4_w", "netcdf4_append", "netcdf4_a", "ncatted_edit", "ncrename_edit", "nccopy_over")


def run_file(names, form, t):
    """One piece of work after another through the virtual file."""
    local = t.path("store.zarr")
    with server(t) as s3, t.mount(local, "rw", "create", *form, *UNLIMITED) as near:
        with t.mount(ADDRESS, *options(s3, "create", *form, *UNLIMITED),
                     foreground=True) as far:
            for name in names:
                for m in near, far:
                    writing.file_work(t, name, os.path.join(m.path, "store.nc"))
                same_bytes(files(local), objects(s3))
        same_bytes(files(local), objects(s3))
        assert not any(states(t).values()), states(t)
        with t.mount(ADDRESS, "endpoint=" + s3.url, *UNLIMITED) as again:
            writing.models(t, same_file, os.path.join(near.path, "store.nc"),
                           os.path.join(again.path, "store.nc"))


def same_file(near, far):
    from clients import rw_model as m
    m.compare(m.of_nc(near), m.of_nc(far))


# SEMANTICS W18
def test_file(t):
    run_file(FILES, (), t)


def test_file_v3(t):
    run_file(FILES[:3], ("zarr_format=3",), t)


# ---- what dies ----

def kill(m):
    m.ended = m.fails = True
    m.pids = []
    m.kill()
    mounts.unmount(m.path, lazy=True)


def close_nc(file, native):
    """Whatever comes of it: the mount dies meanwhile."""
    with open(native, "rb") as f:
        data = f.read()
    fd = os.open(file, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, data)
    try:
        os.close(fd)
    except OSError:
        return
    raise AssertionError("closing the file says that all is well")


def test_killed_file(t):
    """The process dies at some request of a commit: recovery ends what was begun. It dies while it
    does that, too."""
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create")) as m:
            t.call(write_nc, os.path.join(m.path, "store.nc"), 1, "w")
        for value, at in enumerate((1, 17), 2):
            m = t.mount(ADDRESS, *options(s3), foreground=True, check=False)
            left = [at]

            def fault(handler, m=m, left=left):
                if handler.command != "PUT":
                    return False
                left[0] -= 1
                if left[0] <= 0 and m.pids:
                    kill(m)
                return False
            t.call(write_nc, t.path("native.nc"), value, "w")
            s3.fault = fault
            t.call(close_nc, os.path.join(m.path, "store.nc"), t.path("native.nc"))
            assert not m.pids, "it was not killed"
            t.forget(m)
            s3.fault = lambda handler: handler.command == "PUT" and (
                "/w/" in handler.path) and bool(handler.say(503, b"") or True)
            status, out, err = recover(t, s3, "-o", "max_attempts=1")
            assert status == 1 and "w/" in err, err
            s3.fault = None
            status, out, err = recover(t, s3)
            assert status == 0, err
            expect_store(t, s3, value)
            assert not any(states(t).values()), states(t)


# ---- what fails ----

def fails(func, code, *args):
    try:
        func(*args)
    except OSError as e:
        assert e.errno == code, e
        return
    raise AssertionError("it says that all is well")


class Broken:
    """503 to all that changes something, from the k-th on."""

    def __init__(self):
        self.left = None

    def __call__(self, handler):
        if self.left is None or handler.command not in ("PUT", "DELETE", "POST"):
            return False
        if self.left > 0:
            self.left -= 1
            return False
        raise Refused(503, "ServiceUnavailable")


def fault_of(broken):
    def fault(handler):
        try:
            return broken(handler)
        except Refused as r:
            handler.say(r.status, b"<Error><Code>ServiceUnavailable</Code></Error>")
            return True
    return fault


def write_nc(file, value, mode="a"):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(file, mode) as d:
        if mode == "w":
            d.createDimension("x", 64)
            d.createVariable("v", "i4", ("x",), chunksizes=(4,))
            d.createVariable("w", "i4", ("x",), chunksizes=(4,))
        d["v"][:] = np.arange(64) * value
        d["w"][:] = np.arange(64) + value


def fails_nc(file, native, value):
    """A copy: netCDF-C crashes when it cannot close a file."""
    write_nc(native, value, "w")
    with open(native, "rb") as f:
        data = f.read()
    fd = os.open(file, os.O_WRONLY | os.O_TRUNC)
    assert os.write(fd, data) == len(data)
    fails(os.close, errno.EIO, fd)


def expect_nc(file, value):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(file) as d:
        assert (d["v"][:] == np.arange(64) * value).all(), d["v"][:]
        assert (d["w"][:] == np.arange(64) + value).all(), d["w"][:]


def expect_store(t, s3, value):
    folder = t.path(f"copy{t.number()}")
    for key, data in objects(s3).items():
        path = os.path.join(folder, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    t.call(expect_zarr, folder, value)


def expect_zarr(folder, value):
    import numpy as np
    import zarr
    g = zarr.open_group(folder, mode="r")
    assert (g["v"][:] == np.arange(64) * value).all(), g["v"][:]
    assert (g["w"][:] == np.arange(64) + value).all(), g["w"][:]


# SEMANTICS W19
def test_failing_file(t):
    """The service fails in the middle of a commit: close says so, the mount goes on with what was
    written, and when the service is back the next commit ends it."""
    broken = Broken()
    with server(t) as s3:
        s3.fault = fault_of(broken)
        more = ("max_attempts=1", "timeout=5")
        with t.mount(ADDRESS, *options(s3, "create", *more), foreground=True) as m:
            file = os.path.join(m.path, "store.nc")
            t.call(write_nc, file, 1, "w")
            broken.left = 5
            t.call(fails_nc, file, t.path("native.nc"), 2)
            t.call(expect_nc, file, 2)
            broken.left = None
            t.call(write_nc, file, 3)
            t.call(expect_nc, file, 3)
            expect_store(t, s3, 3)
            broken.left = 7
            t.call(fails_nc, file, t.path("native.nc"), 4)
            broken.left = None
        expect_store(t, s3, 4)
        assert not any(states(t).values()), states(t)
        # until the end, and longer: it is kept
        m = t.mount(ADDRESS, *options(s3, *more), foreground=True, check=False)
        m.fails = True
        with m:
            file = os.path.join(m.path, "store.nc")
            broken.left = 4
            t.call(fails_nc, file, t.path("native.nc"), 5)
        assert m.exit_status() == 1
        assert [s for s in states(t).values() if "manifest" in s], states(t)
        status, out, err = recover(t, s3, "-o", "max_attempts=1")
        assert status == 1 and "503" in err, err
        broken.left = None
        status, out, err = recover(t, s3)
        assert status == 0 and "interrupted commit was completed" in out, out + err
        expect_store(t, s3, 5)
        assert not any(states(t).values()), states(t)


# ---- others ----

def rendezvous(fifo):
    """Go on when another process is here as well."""
    with open(fifo, "w"), open(fifo + ".back"):
        pass


def closes_late(file, fifo):
    """Edit a file, wait until the other program has done its work, and close it."""
    import h5py
    f = h5py.File(file, "r+")
    f["v"].attrs["units"] = "ours"
    rendezvous(fifo)
    try:
        f.close()
    except (OSError, RuntimeError) as e:
        assert "unable to close" in str(e) or "Can't" in str(e), e
        os._exit(0)  # libhdf5 cannot end with a file that it cannot close
    raise AssertionError("it says that all is well")


# SEMANTICS W20
def test_others(t):
    """A document that another program changed meanwhile is not written over."""
    fifo = t.path("fifo")
    os.mkfifo(fifo)
    os.mkfifo(fifo + ".back")

    def another():
        with open(fifo):
            s3.buckets["b"]["store.zarr/v/.zattrs"] = Object(b'{"units": "theirs"}')
        with open(fifo + ".back", "w"):
            pass
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create", "consolidated=never")) as m:
            t.call(write_nc, os.path.join(m.path, "store.nc"), 1, "w")
        before = objects(s3)
        m = t.mount(ADDRESS, *options(s3), foreground=True)
        m.fails = True
        with m:
            thread = threading.Thread(target=another)
            thread.start()
            t.call(closes_late, os.path.join(m.path, "store.nc"), fifo)
            thread.join()
        assert "'v/.zattrs' was changed by another program" in m.messages(), m.messages()
        want = dict(before, **{"v/.zattrs": b'{"units": "theirs"}'})
        assert objects(s3) == want
        status, out, err = recover(t, s3)
        assert status == 1 and "changed" in err, err
        assert objects(s3) == want and any(states(t).values()), states(t)


# SEMANTICS X7
def test_refused(t):
    """One at a time writes; web servers and files are not written to; what is there is not made."""
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create")) as m:
            t.call(write_nc, os.path.join(m.path, "store.nc"), 1, "w")
            with t.mount(ADDRESS + "/", *options(s3), check=False) as no:
                assert no.status and "being written by another" in no.messages()
                assert m.path in no.messages(), no.messages()
            with t.mount(ADDRESS, "endpoint=" + s3.url) as reader:
                t.call(expect_nc, os.path.join(reader.path, "store.nc"), 1)
        for address, more, text in (
                (ADDRESS, ("create",), "already exists"),
                ("s3://b/none.zarr", (), "s3://b/none.zarr"),
                ("s3://b/new.nc", ("create",), "only Zarr stores"),
                (ADDRESS, ("view=zarr",), "-o view=auto"),
                ("s3://b/new.zarr", ("create", "view=zarr"), "-o view=auto")):
            with t.mount(address, *options(s3, *more), check=False) as no:
                assert no.status and text in no.messages(), no.messages()
        s3.buckets["b"]["file.nc"] = Object(b"CDF\1" + bytes(28))
        with t.mount("s3://b/file.nc", *options(s3), check=False) as no:
            assert no.status and "only Zarr stores" in no.messages(), no.messages()
        os.mkdir(t.path("www"))
        with open(t.path("www/.zgroup"), "w") as f:
            f.write('{"zarr_format": 2}')
        with WebServer(t.path("www")) as web:
            for view in "zarr", "nc":
                with t.mount(web.url + "/#mode=zarr", "rw", "view=" + view, check=False) as no:
                    assert no.status and "web server" in no.messages(), (view, no.messages())
        assert not any(states(t).values()), states(t)
