# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees on a web server: both views show what they show of the same tree here; requests are
counted; what the server refuses is an error and never a fill value.

A few trees, or with NCZARRFS_REMOTE=all every generated one and all of the corpus."""
import errno
import functools
import os
import threading

import numpy as np

from gen import trees
from lib.context import Skip, corpus
from lib.s3_server import S3Server
from lib.served import serve
from lib.web import Handler, WebServer

LIMIT = 120.0
KEYS = {"AKIDEXAMPLE": "secret"}
ALL = os.environ.get("NCZARRFS_REMOTE") == "all"
SOME = ("numbers", "free_texts", "structures", "missing", "v3_shards", "nczarr_1", "nczarr_493",
        "root_array")
SOME_S3 = ("missing", "v3_shards", "nczarr_1", "free_texts")
SOME_ROWS = ("zarr2/rouault-gdal/nczarr_v2.zarr", "zarr2/bcdev-jzarr/example_3.zarr",
             "zarr2/Unidata-netcdf-c/ref_consolidated_zarr_2.18.2_python.zarr")

def virtual(mnt):
    names = os.listdir(mnt)
    assert len(names) == 1, f"one file expected: {names}"
    return os.path.join(mnt, names[0])


def same_trees(near, far, listed):
    from clients import same
    print(same.trees(near, far, listed), "files")


def same_files(near, far, _):
    from clients import same
    print(same.files(virtual(near), virtual(far)), "arrays")


def both(t, source, web, address, *options, listed=False):
    shown = 0
    for view, compare in (("view=zarr", same_trees), ("view=nc", same_files)):
        with t.mount(source, view, check=False) as near:
            if near.status:
                print(f"{view}: not shown here: {near.messages()[:200]}")
                with t.mount(address, view, *options, check=False) as far:
                    assert far.status, "refused here, and shown from far away"
                continue
            with t.mount(address, view, *options) as far:
                t.call(compare, near.path, far.path, listed)
                shown += 1
    print(len(web.asked), "requests")
    return shown


def of_tree(made, t):
    made.write(t.path("written" + made.ending))
    source = serve(t.path("written" + made.ending), t.path("www"), "a.zarr")
    with WebServer(t.path("www")) as web:
        assert both(t, source, web, web.url + "/a.zarr") == 2


def objects(tree, prefix):
    """{key: bytes} of a tree, as it is uploaded."""
    found = {}
    for folder, _, files in os.walk(tree):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                found[prefix + os.path.relpath(path, tree)] = f.read()
    return found


def of_s3(made, t):
    """Object stores list: nothing needs to be consolidated, and no chunk is shown that is not
    there."""
    source = t.path("a" + made.ending)
    made.write(source)
    with S3Server(KEYS, {"b": objects(source, "data/a.zarr/")}) as s3:
        s3.public = {"b"}
        assert both(t, source, s3, "s3://b/data/a.zarr", "anonymous", "endpoint=" + s3.url,
                    listed=True) == 2


def of_row(root, row, t):
    source = serve(os.path.join(root, row), t.path("www"), "a.zarr")
    with WebServer(t.path("www")) as web:
        both(t, source, web, web.url + "/a.zarr#mode=zarr")


# ---- requests ----

class Busy(Handler):
    """How many requests are answered at a time, at most."""
    lock, now, most = threading.Lock(), 0, 0

    def answer(self, body):
        with Busy.lock:
            Busy.now += 1
            Busy.most = max(Busy.most, Busy.now)
        try:
            super().answer(body)
        finally:
            with Busy.lock:
                Busy.now -= 1


def write_plain(folder):
    """Arrays of 64 and 16 chunks, the last of the second never written; values above 0."""
    import zarr
    g = zarr.open_group(folder, mode="w")
    x = g.create_dataset("x", shape=(6400,), chunks=(100,), dtype="i4", fill_value=None)
    x[:] = np.arange(1, 6401)
    x.attrs["_ARRAY_DIMENSIONS"] = ["i"]
    y = g.create_dataset("y", shape=(40, 40), chunks=(10, 10), dtype="f4", fill_value=-9)
    y[:30] = np.arange(1, 1201).reshape(30, 40)
    y[30:, :30] = 5
    y.attrs["_ARRAY_DIMENSIONS"] = ["t", "u"]
    zarr.consolidate_metadata(folder)


def values_y():
    y = np.full((40, 40), 5, "f4")
    y[:30] = np.arange(1, 1201).reshape(30, 40)
    y[30:, 30:] = -9
    return y


def read_zarr(mnt):
    import zarr
    g = zarr.open_consolidated(mnt)
    assert np.array_equal(g["x"][:], np.arange(1, 6401))
    assert np.array_equal(g["y"][:], values_y())


def read_nc(mnt):
    import netCDF4
    with netCDF4.Dataset(virtual(mnt)) as nc:
        nc.set_auto_mask(False)
        assert np.array_equal(nc["x"][:], np.arange(1, 6401))
        assert np.array_equal(nc["y"][:], values_y())


def chunks(web, name):
    """The array's objects that were asked for, in order."""
    return [path.split("/" + name + "/")[1] for _, path, _ in web.asked
            if "/" + name + "/" in path and "/.z" not in path]


def test_requests(t):
    write_plain(t.path("a.zarr"))
    for view, read in (("view=zarr", read_zarr), ("view=nc", read_nc)):
        with WebServer(t.tmp, delay=0.01, handler=Busy) as web:
            with t.mount(web.url + "/a.zarr", view, "revalidate=0") as m:
                assert len(web.asked) <= 3, web.asked
                Busy.most = 0
                t.call(read, m.path)
                before = [p for _, p, _ in web.asked if "/x/" not in p and "/y/" not in p]
                assert len(before) <= 3, before
                assert sorted(chunks(web, "x")) == sorted(map(str, range(64))), "one each"
                assert sorted(chunks(web, "y")) == sorted(
                    f"{i}.{j}" for i in range(4) for j in range(4)), "one each"
                assert Busy.most >= 4, f"{Busy.most} at a time"
                web.forget()
                t.call(read, m.path)
                assert not web.asked, web.asked


def jump(mnt):
    import zarr
    x = zarr.open_consolidated(mnt)["x"]
    for k in (7, 33, 12, 60, 3, 50):
        assert x[100 * k] == 100 * k + 1


def stride(mnt):
    import zarr
    y = zarr.open_consolidated(mnt)["y"]
    assert np.array_equal(y[:, 3], values_y()[:, 3])


def test_no_waste(t):
    """Who jumps about gets what he asks for; who goes down a column does not get the rows."""
    write_plain(t.path("a.zarr"))
    with WebServer(t.tmp) as web, t.mount(web.url + "/a.zarr", "view=zarr") as m:
        t.call(jump, m.path)
        assert chunks(web, "x") == ["7", "33", "12", "60", "3", "50"], web.asked
        t.call(stride, m.path)
        assert sorted(chunks(web, "y")) == ["0.0", "1.0", "2.0", "3.0"], web.asked


def listed(mnt):
    """Listing and looking at what is shown asks for no chunk, of which sizes say nothing."""
    os.listdir(mnt)
    os.listdir(os.path.join(mnt, "x"))


def test_listing_asks_nothing(t):
    write_plain(t.path("a.zarr"))
    with WebServer(t.tmp) as web, t.mount(web.url + "/a.zarr", "view=zarr") as m:
        t.call(listed, m.path)
        assert not chunks(web, "x"), web.asked


# ---- what the server refuses ----

def refuses(status, body=b"no"):
    """Chunks x/3 and y/1.1 are answered like this."""
    def fault(h):
        if h.path.endswith(("/x/3", "/y/1.1")):
            h.say(status, body)
            return True
        return False
    return fault


def must_fail(what, read):
    try:
        got = read()
    except (OSError, RuntimeError, ValueError) as error:
        print(f"{what}: {str(error)[:60]}")
        return
    raise AssertionError(f"{what}: read {np.asarray(got).ravel()[:4]}")


def fails_zarr(mnt):
    import xarray
    import zarr
    g = zarr.open_consolidated(mnt)
    must_fail("zarr", lambda: g["x"][300:310])
    must_fail("zarr", lambda: g["y"][:])
    with xarray.open_zarr(mnt, mask_and_scale=False) as ds:
        must_fail("xarray", lambda: ds.y[10:20, 10:20].values)
        assert np.array_equal(ds.x[400:].values, np.arange(401, 6401)), "the others"
    must_fail("open", lambda: open(os.path.join(mnt, "x/3"), "rb").read())


def fails_nc(mnt):
    import h5py
    import netCDF4
    with netCDF4.Dataset(virtual(mnt)) as nc:
        must_fail("netCDF4", lambda: nc["x"][300:310])
        must_fail("netCDF4", lambda: nc["y"][:])
        assert np.array_equal(nc["x"][5000:], np.arange(5001, 6401)), "pages without it"
    with h5py.File(virtual(mnt)) as f:
        must_fail("h5py", lambda: f["y"][10:20, 10:20])


# SEMANTICS E13
def test_refused(t):
    """Neither 403 nor a server's failure nor a web page is a chunk that was never written."""
    write_plain(t.path("a.zarr"))
    with WebServer(t.tmp) as web:
        for status, body in ((403, b"no"), (500, b"no"), (200, b"<html>log in</html>")):
            web.fault = refuses(status, body)
            for view, fails in (("view=zarr", fails_zarr), ("view=nc", fails_nc)):
                with t.mount(web.url + "/a.zarr", view, "max_attempts=1", "timeout=5") as m:
                    print(status, view)
                    t.call(fails, m.path)


def refused_mount(t, address, *words):
    with t.mount(address, check=False) as m:
        text = m.messages()
        assert m.status == 1, f"status {m.status}: {text}"
        assert all(w in text for w in words), text


def test_no_tree(t):
    write_plain(t.path("a.zarr"))
    os.mkdir(t.path("empty"))

    def pages(h):
        h.say(200, b"<!DOCTYPE html><html>hello</html>", Content_Type="text/html")
        return True

    def closed(h):
        h.say(403)
        return True
    with WebServer(t.tmp) as web:
        refused_mount(t, web.url + "/none.zarr#mode=zarr")
        web.fault = pages
        refused_mount(t, web.url + "/a.zarr#mode=zarr", "web page")
        web.fault = closed
        refused_mount(t, web.url + "/a.zarr#mode=zarr")


def test_not_consolidated(t):
    """What cannot be found is said, with what to do."""
    write_plain(t.path("a.zarr"))
    os.unlink(t.path("a.zarr/.zmetadata"))
    with WebServer(t.tmp) as web:
        refused_mount(t, web.url + "/a.zarr", "consolidate")
        status, out, err = t.run(t.binary, "info", "-o", "unsupported=skip", web.url + "/a.zarr")
        assert status == 0, err
        assert "consolidate" in out + err, out + err


def rows(root):
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        paths = [line.split("\t")[0] for line in f]
    return [p.rstrip("/") for p in paths
            if p.split("/")[0] in ("zarr2", "zarr3") and p.endswith("/")]


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with zarr2, zarr3 in it")


def cases():
    for name, made in trees.load().items():
        if (ALL or name in SOME) and made.ending == ".zarr":
            yield name, functools.partial(of_tree, made)
        if (ALL or name in SOME_S3) and made.ending == ".zarr":
            yield "s3/" + name, functools.partial(of_s3, made)
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        yield "corpus", no_corpus
        return
    for row in rows(root):
        if ALL or row in SOME_ROWS:
            yield row, functools.partial(of_row, root, row)


def make_rows(tree):
    import zarr
    root = zarr.open_group(tree, mode="w")
    v = root.create_dataset("v", shape=(4, 5000), chunks=(1, 5000), dtype="i4", fill_value=0)
    v[:] = np.arange(1, 20001).reshape(4, 5000)
    v.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    zarr.consolidate_metadata(tree)


def row_of_file(mnt, absent):
    import h5py
    try:
        with h5py.File(virtual(mnt), "r") as f:
            got = set(f["v"][1].tolist())
    except OSError:
        got = None
    assert got == ({0} if absent else None), got


def chunk_of_tree(mnt, absent):
    try:
        with open(mnt + "/v/1.0", "rb") as f:
            got = len(f.read())
    except OSError as why:
        got = why.errno
    assert got in ((errno.ENOENT,) if absent else (errno.EIO, errno.ESTALE)), got


# SEMANTICS E1
def test_tree_removed_while_it_is_read(t):
    """A chunk that is not there because its tree has just been removed is no fill value; one that
    was removed from a tree is."""
    for view, check in (("nc", row_of_file), ("zarr", chunk_of_tree)):
        for what in ("tree", "chunk"):
            folder = t.path(f"www-{view}-{what}")
            tree, chunk = folder + "/a.zarr", folder + "/a.zarr/v/1.0"
            make_rows(tree)

            def happen(h):
                if h.path.endswith("v/1.0") and os.path.exists(chunk):
                    os.rename(tree if what == "tree" else chunk, folder + "/away")
                return False
            with WebServer(folder, fault=happen) as web, \
                    t.mount(web.url + "/a.zarr", "view=" + view, check=False) as m:
                t.call(check, m.path, what == "chunk")
