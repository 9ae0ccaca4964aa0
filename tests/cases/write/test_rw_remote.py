# SPDX-License-Identifier: BSD-3-Clause
"""Trees in S3 that programs write, through both views: the bucket holds, object by object, what the
same program makes in a directory; whatever dies or fails in between, what was confirmed is in it in
the end."""
import errno
import json
import os
import random
import shutil
import signal
import time

from lib import mounts, peers, writing
from lib.context import ROOT
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


def same_bytes(want, got, but=()):
    keys = sorted(set(want) | set(got))
    other = [k for k in keys if k.rpartition("/")[2] not in but and want.get(k) != got.get(k)]
    lines = [f"{k}: {str(want.get(k))[:300]}\n  and not {str(got.get(k))[:300]}" for k in other]
    assert not other, "\n".join(lines)


def in_line(got):
    """Consolidated metadata say what the documents say."""
    text = got.get(".zmetadata")
    if text is None:
        return
    names = (".zarray", ".zgroup", ".zattrs")
    docs = {k: json.loads(v) for k, v in got.items() if k.rpartition("/")[2] in names}
    entries = json.loads(text)["metadata"]
    assert entries == docs, sorted(set(map(str, entries.items())) ^ set(map(str, docs.items())))


def states(t):
    """What is left in state directories."""
    top = t.path(".local/state/nczarrfs")
    return {d: sorted(os.listdir(os.path.join(top, d))) for d in
            (os.listdir(top) if os.path.isdir(top) else ())}


def options(s3, *more):
    return ("rw", "endpoint=" + s3.url, *more)


def recover(t, s3, *more):
    return t.run(t.binary, "recover", "-o", "endpoint=" + s3.url, *more, ADDRESS)


def sync(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


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


def test_file(t):
    run_file(FILES, (), t)


def test_file_v3(t):
    run_file(FILES[:3], ("zarr_format=3",), t)


TREES = (["zarr2_create", "zarr2_overwrite", "zarr2_partial", "zarr2_resize", "zarr2_append",
          "zarr2_attrs", "zarr2_consolidate", "zarr2_shrink", "zarr2_replace", "zarr2_rename",
          "zarr2_create", "zarr2_delete"],
         ["xarray_new", "xarray_append", "xarray_variable", "xarray_region", "xarray_group"])


def run_tree(names, s3, t):
    local = t.path("native")
    with t.mount(ADDRESS, *options(s3, "create", "view=zarr"), foreground=True) as far:
        for i in range(0, len(names), 2):
            for root in local, far.path:
                writing.tree_work(t, names[i:i + 2], root)
            if i % 4:
                t.call(sync, far.path)
                same_bytes(files(local), objects(s3), but=(".zmetadata",))
                in_line(objects(s3))
            t.call(same_bytes, files(local), files(far.path), (".zmetadata",))
    same_bytes(files(local), objects(s3), but=(".zmetadata",))
    in_line(objects(s3))
    assert not any(states(t).values()), states(t)


def test_tree_zarr(t):
    with server(t) as s3:
        run_tree(TREES[0], s3, t)


def test_tree_xarray(t):
    """A service without conditional writes."""
    with server(t) as s3:
        s3.conditions = False
        run_tree(TREES[1], s3, t)


V3 = ("create", "partial", "resize", "append", "attrs", "group", "consolidate", "shards")


def test_tree_v3(t):
    """zarr-python 3, with shards and inline consolidated metadata."""
    peers_of = os.environ.get("NCZARRFS_PEERS_DIR") or os.path.join(ROOT, "build", "peers")
    os.environ["NCZARRFS_PEERS"] = os.path.join(peers_of, "trixie")
    path = peers.root()
    peers._install(path, "rw_zarr3.py", "opt")
    local = t.path("native")
    os.mkdir(local)
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create", "view=zarr"), foreground=True) as far:
            for root in local, far.path:
                peers.enter(t, "zarr-python 3", path,
                            ["python3", "-W", "ignore", "/opt/rw_zarr3.py",
                             peers.inside(t, root), "3", *V3], 60)
        want, got = files(local), objects(s3)
        root = [json.loads(x.pop("zarr.json")) for x in (want, got)]
        same_bytes(want, got)
        entries = root[1].pop("consolidated_metadata")["metadata"]
        assert root[0].pop("consolidated_metadata", None) and root[0] == root[1]
        docs = {k[:-10]: json.loads(v) for k, v in got.items() if k.endswith("/zarr.json")}
        for doc in docs.values():
            doc.pop("consolidated_metadata", None)
        assert {k: dict(v, consolidated_metadata=None) for k, v in entries.items()} == {
            k: dict(v, consolidated_metadata=None) for k, v in docs.items()}
        assert not any(states(t).values()), states(t)


# ---- what dies ----

def put_file(path, data):
    with open(path + ".partial", "wb") as f:
        f.write(data)
    os.rename(path + ".partial", path)


DOC = {"zarr_format": 2, "shape": [400], "chunks": [4], "dtype": "|u1", "compressor": None,
       "fill_value": 0, "order": "C", "filters": None}


def work(mnt, told, seed):
    """Chunks and documents, each noted when it is confirmed; until the mount dies. Directories are
    there, and not made: below the mount point there are none when it is gone."""
    rng = random.Random(seed)
    note = open(told, "a")
    try:
        for i in range(400):
            name = f"v{i % 7}"
            key, data = f"{name}/{rng.randrange(100)}", bytes([rng.randrange(256)]) * 4
            if i % 11 == 0:
                key, data = name + "/.zattrs", json.dumps({"n": i, "seed": seed}).encode()
            note.write(f"? {key} {data.hex()}\n")
            put_file(os.path.join(mnt, key), data)
            note.write(f"! {key} {data.hex()}\n")
            note.flush()
            if i % 50 == 49:
                sync(mnt)
    except OSError as e:
        assert e.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENOENT), e


def kill(m):
    for pid in mounts.processes_of(m.path):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    m.ended = m.fails = True
    m.pids = []
    mounts.unmount(m.path, lazy=True)


def expect(told, got):
    """Of each key the last content that was confirmed, or one that was on its way after that."""
    last = {}
    with open(told) as f:
        for line in f:
            mark, key, data = line.split()
            if mark == "!":
                last[key] = [data]
            else:
                last.setdefault(key, [None]).append(data)
    for key, may in last.items():
        data = got.get(key)
        assert (data.hex() if data is not None else None) in may, (key, data, may)


# SEMANTICS W18
def test_killed(t):
    rng = random.Random(7)
    told = t.path("told")
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create", "view=zarr")) as m:
            for i in range(7):
                t.call(make_array, m.path, f"v{i}")
        for i in range(3):
            m = t.mount(ADDRESS, *options(s3, "view=zarr", "commit_delay=20"), foreground=True,
                        check=False)
            pid = os.fork()
            if pid == 0:
                work(m.path, told, i)
                os._exit(0)
            puts = len(s3.asked) + rng.randrange(20, 120)
            end = time.monotonic() + 20
            while len(s3.asked) < puts and not os.waitid(
                    os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) and (
                    time.monotonic() < end):
                time.sleep(0.002)
            kill(m)
            os.waitpid(pid, 0)
            t.forget(m)
            if i == 0:
                continue  # the next mount finds what is left
            for _ in range(2):
                status, out, err = recover(t, s3)
                assert status == 0, err
            expect(told, objects(s3))
            # a file that had no name yet may wait for it
            assert not {"manifest", "txn"} & {x for s in states(t).values() for x in s}
        status, out, err = recover(t, s3)
        assert status == 0, err
        expect(told, objects(s3))


# SEMANTICS X11
def deep(mnt):
    """Keys have 1,024 bytes at most, with the store's name."""
    folder = os.path.join(mnt, "v0", *["d" * 250] * 4)
    os.makedirs(folder)
    left = 1024 - len("store.zarr/" + os.path.relpath(folder, mnt) + "/")

    def put(n):
        with open(os.path.join(folder, "d" * n), "wb") as f:
            f.write(b"x")
    put(left)
    fails(put, errno.ENAMETOOLONG, left + 1)
    assert os.listdir(folder) == ["d" * left]
    shutil.rmtree(os.path.join(mnt, "v0", "d" * 250))


def make_array(mnt, name):
    os.mkdir(os.path.join(mnt, name))
    if name == "v0":
        put_file(os.path.join(mnt, ".zgroup"), b'{"zarr_format": 2}')
    put_file(os.path.join(mnt, name, ".zarray"), json.dumps(DOC).encode())


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


def chunks(mnt, value):
    for i in range(20):
        put_file(os.path.join(mnt, "v0", str(i)), bytes([value]) * 4)
    put_file(os.path.join(mnt, "v0", ".zattrs"), b'{"value": %d}' % value)


def sync_fails(mnt):
    try:
        sync(mnt)
    except OSError as e:
        assert e.errno == errno.EIO, e
        return
    raise AssertionError("fsync says that all is well")


# SEMANTICS W18, W19
def test_failing_tree(t):
    broken = Broken()
    with server(t) as s3:
        s3.fault = fault_of(broken)
        with t.mount(ADDRESS, *options(s3, "create", "view=zarr", "max_attempts=1", "timeout=5",
                                       "commit_delay=3600000"), foreground=True) as m:
            t.call(make_array, m.path, "v0")
            t.call(sync, m.path)
            for value, left in (1, 0), (2, 7), (3, 20):
                t.call(chunks, m.path, value)
                broken.left = left
                t.call(sync_fails, m.path)
                t.call(read_chunks, m.path, value)
                broken.left = None
                t.call(sync, m.path)
                got = objects(s3)
                assert all(got[f"v0/{i}"] == bytes([value]) * 4 for i in range(20))
                assert json.loads(got["v0/.zattrs"]) == {"value": value}
            t.call(chunks, m.path, 9)
        assert objects(s3)["v0/19"] == b"\t\t\t\t"  # unmounting puts what waits
        assert not any(states(t).values()), states(t)


def read_chunks(mnt, value):
    for i in range(20):
        with open(os.path.join(mnt, "v0", str(i)), "rb") as f:
            assert f.read() == bytes([value]) * 4


def test_requests(t):
    """A program that writes does not wait for the line: names are found out by listing, and what it
    writes over is not fetched."""
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create", "view=zarr")) as m:
            t.call(make_array, m.path, "v0")
            t.call(chunks, m.path, 1)
        s3.forget()
        with t.mount(ADDRESS, *options(s3, "view=zarr", "commit_delay=3600000")) as m:
            t.call(chunks, m.path, 2)
            assert len(s3.asked) <= 16, s3.asked
            asked = len(s3.asked)
            t.call(deep, m.path)
            del s3.asked[asked:]
            t.call(sync, m.path)
        puts = [a[1] for a in s3.asked if a[0] == "PUT"]
        assert len(puts) == len(set(puts)) == 21, puts


# ---- others ----

# SEMANTICS W20
def test_others(t):
    """Documents that others changed meanwhile are not written over; chunks are nobody's."""
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create", "view=zarr")) as m:
            t.call(make_array, m.path, "v0")
        s3.buckets["b"]["store.zarr/v0/7"] = Object(b"7777")
        m = t.mount(ADDRESS, *options(s3, "view=zarr", "commit_delay=3600000"), foreground=True)
        m.fails = True
        with m:
            t.call(chunks, m.path, 1)
            s3.buckets["b"]["store.zarr/v0/.zattrs"] = Object(b'{"theirs": 1}')
            before = objects(s3)
            t.call(fails, sync, errno.ESTALE, m.path)
            assert "v0/.zattrs" in m.messages() and "nothing was written" in m.messages()
            assert objects(s3) == before
        # nor by a later one, unless it is told to
        status, out, err = recover(t, s3)
        assert status == 1 and ".zattrs" in err and objects(s3) == before, err
        state, = (os.path.join(t.path(".local/state/nczarrfs"), d) for d in states(t))
        os.unlink(os.path.join(state, "base"))
        status, out, err = recover(t, s3)
        assert status == 0, err
        got = objects(s3)
        assert got["v0/.zattrs"] == b'{"value": 1}' and got["v0/7"] == b"\1\1\1\1"
        assert not any(states(t).values()), states(t)


# SEMANTICS X7
def test_refused(t):
    """One at a time writes; web servers and files are not written to; what is there is not made."""
    with server(t) as s3:
        with t.mount(ADDRESS, *options(s3, "create")) as m:
            t.call(write_nc, os.path.join(m.path, "store.nc"), 1, "w")
            for view in "zarr", "nc":
                with t.mount(ADDRESS + "/", *options(s3, "view=" + view), check=False) as no:
                    assert no.status and "being written by another" in no.messages()
                    assert m.path in no.messages(), no.messages()
            with t.mount(ADDRESS, "endpoint=" + s3.url) as reader:
                t.call(expect_nc, os.path.join(reader.path, "store.nc"), 1)
        for view in "zarr", "nc":
            for address, more, text in (
                    (ADDRESS, ("create",), "already exists"),
                    ("s3://b/none.zarr", (), "s3://b/none.zarr"),
                    ("s3://b/new.nc", ("create",), "only Zarr stores")):
                with t.mount(address, *options(s3, "view=" + view, *more), check=False) as no:
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
