# SPDX-License-Identifier: BSD-3-Clause
"""`nczarrfs serve`: the tree of a mount by HTTP. Clients of Zarr read through fsspec what netCDF-C
reads of the file; ranges, tags and errors are what RFC 9110 and readers of Zarr want."""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
from urllib.parse import unquote

import h5py
import netCDF4
import numpy as np
import xarray
import zarr

from lib.context import Skip, eventually
from lib.serving import Serving
from lib.web import WebServer

try:
    import aiohttp  # noqa: F401 - fsspec's http needs it
    import fsspec
except ImportError:
    fsspec = None


def make(path, add=0):
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "h\u00e4llo"
        for name, n in (("time", 6), ("y", 50), ("x", 70)):
            ds.createDimension(name, n)
            ds.createVariable(name, "f8", (name,))[:] = np.arange(n) * 1.5
        v = ds.createVariable("t", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, 25, 35))
        v[:] = rng.random((6, 50, 70)) + add
        p = ds.createVariable("packed", "i2", ("time", "x"), zlib=True, fill_value=-9)
        p.scale_factor = 0.5
        p[:] = rng.integers(0, 100, (6, 70))
        s = ds.createVariable("sparse", "i4", ("y", "x"), chunksizes=(10, 10), zlib=True,
                              fill_value=-1)
        s[20:30, 20:30] = 7
        g = ds.createGroup("g \u00e9")
        g.createVariable("deep", "i8", ("x",))[:] = np.arange(70)


def same_as_file(url, path, **keywords):
    with xarray.open_dataset(path, decode_cf=False) as native:
        served = xarray.open_zarr(url, decode_cf=False, **keywords)
        assert set(served.variables) == set(native.variables)
        for name in native.variables:
            a, b = served[name].values, native[name].values
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), name


def test_clients(t):
    if not fsspec:
        raise Skip("fsspec or aiohttp is missing")
    path = t.path("a.nc")
    make(path)
    for options in ((), ("-o", "filter=none"), ("-o", "dimension_separator=/")):
        with Serving(t, path, *options) as s:
            t.call(same_as_file, s.url + "/data/", path)


def zarr_group(url, path):
    group = zarr.open_group(fsspec.get_mapper(url), mode="r")
    with netCDF4.Dataset(path) as ds:
        ds.set_auto_maskandscale(False)
        for name in ("t", "packed", "sparse"):
            got, want = group[name][...], ds[name][...]
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes(), name
        assert group["g \u00e9/deep"][...].tobytes() == ds["g \u00e9/deep"][...].tobytes()


def test_zarr_without_consolidated(t):
    if not fsspec:
        raise Skip("fsspec or aiohttp is missing")
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        t.call(zarr_group, s.url + "/data", path)


def test_format3(t):
    path = t.path("a.nc")
    make(path)
    with Serving(t, path, "-o", "zarr_format=3") as s:
        top = json.loads(s.get("/data/zarr.json").body)
        assert top["zarr_format"] == 3 and "t" in top["consolidated_metadata"]["metadata"]
        assert s.get("/data/t/c/0/0/0").status == 200
        assert json.loads(s.get("/api/about").body)["zarr"] == 3


def test_same_as_mount(t):
    """Every file of the tree, byte by byte, by the links of the lists."""
    path = t.path("a.nc")
    make(path)

    def walk(s, m, below):
        links = re.findall(r'href="([^"]+)"', s.get("/data/" + below).body.decode())
        names = sorted(os.listdir(os.path.join(m, unquote(below))))
        assert sorted(unquote(x).rstrip("/") for x in links) == names, below
        count = 0
        for link in links:
            if link.endswith("/"):
                count += walk(s, m, below + link)
                continue
            with open(os.path.join(m, unquote(below + link)), "rb") as f:
                data = f.read()
            got = s.get("/data/" + below + link)
            assert got.status == 200 and got.body == data, below + link
            head = s.ask("HEAD", "/data/" + below + link)
            assert head.status == 200 and int(head["Content-Length"]) == len(data)
            count += 1
        return count

    def everything(s, m):
        count = walk(s, m, "")
        assert count > 40, count

    with Serving(t, path) as s, t.mount(path) as m:
        t.call(everything, s, m.path)


def test_ranges(t):
    path = t.path("a.nc")
    make(path)
    with Serving(t, path, "-o", "filter=none") as s:
        key = "/data/t/0.0.0"
        whole = s.get(key)
        n = len(whole.body)
        assert n == 25 * 35 * 4 and whole["Accept-Ranges"] == "bytes"
        assert whole["Content-Type"] == "application/octet-stream"
        for text, first, last in (("0-0", 0, 0), ("10-19", 10, 19), ("100-", 100, n - 1),
                                  ("-7", n - 7, n - 1), (f"5-{n + 99}", 5, n - 1),
                                  (f"-{n + 5}", 0, n - 1), (f"{n - 1}-", n - 1, n - 1)):
            got = s.get(key, Range=f"bytes={text}")
            assert got.status == 206, text
            assert got.body == whole.body[first:last + 1], text
            assert got["Content-Range"] == f"bytes {first}-{last}/{n}", text
        for text in (f"{n}-", f"{n}-{n + 1}", "-0", "99999999999999999999999-"):
            got = s.get(key, Range=f"bytes={text}")
            assert got.status == 416 and got["Content-Range"] == f"bytes */{n}", text
        for text in ("bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=", "bytes=a-b", "bytes=1"):
            got = s.get(key, Range=text)
            assert got.status == 200 and got.body == whole.body, text
        head = s.ask("HEAD", key, Range="bytes=0-9")
        assert head.body == b"" and head["Content-Length"] == "10"


def test_tags(t):
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        key = "/data/t/0.0.0"
        whole = s.get(key)
        tag = whole["ETag"]
        assert tag.startswith('"') and tag != s.get("/data/t/0.0.1")["ETag"]
        for text in (tag, "W/" + tag, f'"other", {tag}', "*"):
            got = s.get(key, If_None_Match=text)
            assert got.status == 304 and got.body == b"" and got["ETag"] == tag, text
        assert s.get(key, If_None_Match='"other"').status == 200
        assert s.get(key, If_Range=tag, Range="bytes=0-3").status == 206
        for text in ('"other"', "W/" + tag, "Sun, 06 Nov 1994 08:49:37 GMT"):
            got = s.get(key, If_Range=text, Range="bytes=0-3")
            assert got.status == 200 and got.body == whole.body, text
        page = s.get("/")
        assert s.get("/", If_None_Match=page["ETag"]).status == 304


def test_methods_and_origins(t):
    """SECURITY S75: which web pages may read it."""
    path = t.path("a.nc")
    make(path)
    asked = {"Origin": "https://viewer.example", "Access_Control_Request_Method": "GET",
             "Access_Control_Request_Headers": "range"}
    for flags in ((), ("--origin", "none")):
        with Serving(t, path, *flags) as s:
            for got in (s.get("/data/.zgroup", **asked),
                        s.ask("OPTIONS", "/data/t/0.0.0", **asked)):
                assert got.status in (200, 204), flags
                assert not [k for k in got.headers if k.startswith("Access-Control-")], flags
    with Serving(t, path, "--origin", "*") as s:
        for method in ("PUT", "POST", "DELETE", "PATCH"):
            got = s.ask(method, "/data/t/0.0.0", body=b"x" * 10)
            assert got.status == 405 and got["Allow"] == "GET, HEAD, OPTIONS", method
        got = s.ask("OPTIONS", "/data/t/0.0.0", **asked)
        assert got.status == 204 and got["Access-Control-Allow-Origin"] == "*"
        assert "range" in got["Access-Control-Allow-Headers"].lower()
        got = s.get("/data/.zgroup", Origin="https://viewer.example")
        assert got["Access-Control-Allow-Origin"] == "*"
        assert {"etag", "content-range", "content-length"} <= set(
            got["Access-Control-Expose-Headers"].lower().split(", "))
        assert got["Content-Type"] == "application/json"
        assert "default-src 'self'" in s.get("/")["Content-Security-Policy"]


def test_hosts(t):
    """SECURITY S70, S71: others reach it when the user says so; a name of theirs that leads here
    is refused."""
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        assert s.listens() == "0100007F" and s.messages() == "", s.messages()
        for host in ("localhost", "LOCALHOST:80", "127.0.0.1", f"127.0.0.1:{s.port}", "[::1]:9"):
            assert s.get("/data/.zgroup", host=host).status == 200, host
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.nip.example",
                     "localhost:80x", "[::1", "127.0.0.12"):
            assert s.get("/data/.zgroup", host=host).status == 403, host
            assert s.get("/", host=host).status == 403, host
    with Serving(t, path, "--bind", "127.0.0.12") as s:
        s.host = "127.0.0.12"
        assert s.listens() == "0C00007F" and s.messages() == "", s.messages()
        for host in ("127.0.0.12", f"127.0.0.12:{s.port}", "localhost"):
            assert s.get("/data/.zgroup", host=host).status == 200, host
        assert s.get("/data/.zgroup", host="data.example").status == 403
    with Serving(t, path, "--bind", "0.0.0.0") as s:
        assert s.listens() == "00000000" and "can read" in s.messages()
        assert s.get("/data/.zgroup", host="data.example").status == 200


def test_hostile(t):
    """SECURITY S72: what is asked for leads to nothing but the tree."""
    path = t.path("a.nc")
    make(path)
    with open(t.path("secret"), "w") as f:
        f.write("not to be seen")
    with Serving(t, path) as s:
        for key, wanted in (
                ("/data/../secret", 400), ("/data/%2e%2e/secret", 400), ("/data/t/../../x", 400),
                ("/data/%2fetc%2fpasswd", 400), ("/data/%00", 400), ("/data/t%", 400),
                ("/data/t%zz", 400), ("/data//t/0.0.0", 200), ("/data/t/0.0.0/", 404),
                ("/data/t/0.0.0/x", 404), ("/data/" + "a" * 300, 414), ("/data/\\..\\x", 404),
                ("/data/" + "a/" * 3000, 404), ("/dataset", 404), ("/page/../serve.c", 404),
                ("/api/chunks", 400), ("/api/chunks?array=/t&from=-1", 400),
                ("/api/chunks?array=/../t", 400), ("/api/chunks?array=/none", 404),
                ("/api/chunks?array=t&from=18446744073709551615", 200)):
            got = s.get(key)
            assert got.status == wanted, (key, got.status)
            assert b"not to be seen" not in got.body
        for path in (b"/data/\0/x", b"/../secret", b"http://localhost/../secret", b"secret"):
            got = s.raw(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"not to be seen" not in got, path
        many = b"".join(b"X-%d: %s\r\n" % (i, b"y" * 200) for i in range(2000))
        s.raw(b"GET /data/.zgroup HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n")
        s.raw(b"GET /data/" + b"a" * 200000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        s.raw(b"\xff\xfe\x00 nonsense\r\n\r\n")
        assert s.get("/data/.zgroup").status == 200


def test_damaged_is_no_absence(t):
    """SEMANTICS K8, SECURITY S74: and why is told on this machine only."""
    path = t.path("a.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", (40,), "i4", chunks=(10,), compression="gzip", fillvalue=5)
        d.attrs["_FillValue"] = np.int32(5)  # declared: what was never written is absent
        d[:30] = np.arange(30)
        info = d.id.get_chunk_info(1)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset)
        f.write(b"\xff" * info.size)
    with Serving(t, path, "-o", "filter=none") as s:
        assert s.get("/data/v/0").body == np.arange(10, dtype="<i4").tobytes()
        for _ in range(2):
            got = s.get("/data/v/1")
            assert got.status == 500 and b"chunk" in got.body, got.body
        for key in ("/data/v/3", "/data/v/9"):
            got = s.get(key)
            assert got.status == 404, (key, got.status, got.body)
        assert "chunk" in s.messages()
    with Serving(t, path, "-o", "filter=none", "--bind", "0.0.0.0") as s:
        got = s.get("/data/v/1")
        assert got.status == 500 and got.body == (
            b"it could not be read: see the server's log\n"), got.body


def test_source_is_gone(t):
    """SEMANTICS K8: what cannot be looked at is no 404."""
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        assert s.get("/data/t/0.0.0").status == 200
        with open(path, "wb") as f:
            f.write(b"no dataset any more")
        eventually(lambda: s.get("/data/t/0.0.0").status in (500, 503), 60 * t.slow, s.messages)
        assert s.get("/data/t/99.0.0").status in (500, 503)


def test_changed_source(t):
    """SEMANTICS K9: nothing is of two states of the source."""
    path = t.path("a.nc")
    make(path)
    with Serving(t, path, "-o", "filter=none") as s:
        before = s.get("/data/t/0.0.0")
        make(t.path("b.nc"), add=100)
        os.replace(t.path("b.nc"), path)
        eventually(lambda: s.get("/data/t/0.0.0", If_None_Match=before["ETag"]).status == 200,
                   60 * t.slow, s.messages)
        after = s.get("/data/t/0.0.0")
        with netCDF4.Dataset(path) as ds:
            want = ds["t"][0, :25, :35].filled().astype("<f4").tobytes()
        assert after["ETag"] != before["ETag"] and after.body == want
        got = s.get("/data/t/0.0.0", If_Range=before["ETag"], Range="bytes=0-3")
        assert got.status == 200 and got.body == want


def test_changed_dataset(t):
    """SEMANTICS K9: a dataset of a directory that changes while it is sent ends that answer, and
    the directory is served as before."""
    data = np.arange(8 << 20, dtype="f8")
    with h5py.File(t.path("a.h5"), "w") as f:
        f.create_dataset("v", data=data, chunks=data.shape)
    with Serving(t, t.tmp) as s:
        c = http.client.HTTPConnection(s.host, s.port, timeout=60)
        c.request("GET", "/data/a.zarr/v/0")
        got = c.getresponse()
        assert got.read(1 << 16)  # no socket holds the rest
        with h5py.File(t.path("a.h5"), "r+") as f:
            f["v"][0] = -1
        try:
            got.read()
            assert False, "the answer is of two states"
        except http.client.IncompleteRead:
            pass
        c.close()
        assert s.get("/data/a.zarr/v/0", Range="bytes=0-7").body == np.float64(-1).tobytes()


def test_changed_concat(t):
    """SEMANTICS J4, K9: a file that is added to or removed from the folder of a pattern is
    seen; without a change the source is not opened again."""
    os.mkdir(t.path("d"))

    def write(name, start):
        with netCDF4.Dataset(t.path("new.nc"), "w") as ds:
            ds.createDimension("time", None)
            ds.createVariable("time", "f8", ("time",))[:] = np.arange(start, start + 4)
            ds.createVariable("v", "i4", ("time",), chunksizes=(4,))[:] = np.arange(4) + start
        os.rename(t.path("new.nc"), t.path("d/" + name))

    def shape(s):
        got = s.get("/data/v/.zarray")
        return json.loads(got.body)["shape"][0] if got.status == 200 else None

    write("f0.nc", 0)
    write("f1.nc", 4)
    with Serving(t, t.path("d/*.nc"), "-o", "concat=time",
                 "-o", "concat_index=" + t.path("i.idx")) as s:
        assert shape(s) == 8
        tag = s.get("/data/v/0")["ETag"]
        # the second look after a file that cannot be joined is the one that says so
        with open(t.path("d/bad.nc"), "w") as f:
            f.write("no dataset\n")
        eventually(lambda: "cannot be joined" in s.messages(), 60 * t.slow, s.messages)
        os.remove(t.path("d/bad.nc"))
        assert "changed" not in s.messages() and s.get("/data/v/0")["ETag"] == tag, s.messages()
        write("f2.nc", 8)
        eventually(lambda: shape(s) == 12, 60 * t.slow, s.messages)
        assert np.frombuffer(s.get("/data/v/2").body, "<i4").tolist() == [8, 9, 10, 11]
        os.remove(t.path("d/f2.nc"))
        eventually(lambda: shape(s) == 8, 60 * t.slow, s.messages)
        assert s.get("/data/v/2").status == 404


def test_many_at_once(t):
    path = t.path("a.nc")
    make(path)
    with Serving(t, path, "-o", "filter=none") as s:
        keys = [f"/data/t/{i}.{j}.{k}" for i in range(6) for j in range(2) for k in range(2)]
        alone = {k: s.get(k).body for k in keys}
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            for key, got in zip(keys * 20, pool.map(s.get, keys * 20)):
                assert got.status == 200 and got.body == alone[key], key


def test_large_file(t):
    """Chunks longer than what is read at a time."""
    path = t.path("a.h5")
    data = np.random.default_rng(1).random(1_000_000)
    with h5py.File(path, "w") as f:
        f.create_dataset("stored", data=data, chunks=(1_000_000,))
        f.create_dataset("packed", data=data, chunks=(1_000_000,), compression="gzip")
    with Serving(t, path, "-o", "filter=none") as s:
        for name in ("stored", "packed"):
            got = s.get(f"/data/{name}/0")
            assert got.body == data.astype("<f8").tobytes(), name
            part = s.get(f"/data/{name}/0", Range="bytes=1048570-4194310")
            assert part.body == got.body[1048570:4194311], name


def test_large_directory(t):
    """The page of a directory with more names than are sent at a time has all of them."""
    names = [f"{i:05}-{'n' * 40}.txt" for i in range(3000)]
    os.makedirs(t.path("many/sub"))
    for place in ("many", "many/sub"):
        for name in names:
            open(t.path(f"{place}/{name}"), "w").close()
    with Serving(t, t.path("many")) as s:
        for place in ("/data/", "/data/sub/"):
            page = s.get(place).body.decode()
            got = re.findall(r'<a href="([^"/]*)">', page)
            assert page.endswith("</html>\n") and sorted(got) == names, (place, len(got))


def test_kept_alive(t):
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        c = http.client.HTTPConnection(s.host, s.port, timeout=60)
        c.connect()
        own = c.sock.getsockname()
        for key in ("/data/.zgroup", "/data/t/0.0.0", "/data/none", "/data/t/99.0.0", "/"):
            c.request("GET", key)
            c.getresponse().read()
            assert c.sock and c.sock.getsockname() == own, key
        c.close()


def test_all_kinds(t):
    """A Zarr tree is served as it is seen, a directory with all that is in it, and remote files."""
    path = t.path("a.nc")
    make(path)
    group = zarr.open_group(t.path("b.zarr"), mode="w")
    group.create_dataset("v", data=np.arange(20, dtype="i4"), chunks=(5,), compressor=None)
    with Serving(t, t.path("b.zarr")) as s:
        assert s.get("/data/v/1").body == np.arange(5, 10, dtype="<i4").tobytes()
    with Serving(t, t.tmp) as s:
        about = json.loads(s.get("/api/about").body)
        assert about["zarr"] == 0 and "a.zarr" in about["datasets"], about
        assert s.get("/data/a.zarr/.zgroup").status == 200
        with open(path, "rb") as f:
            whole = f.read()
        got = s.get("/data/a.nc", Range="bytes=0-99")
        assert got.body == whole[:100] and got["Content-Type"] == "application/x-netcdf"
        assert s.get("/data/a.nc").body == whole
    with Serving(t, t.path("b.zarr"), "-o", "view=nc") as s:
        assert s.get("/data/b.nc", Range="bytes=0-7").body == b"\x89HDF\r\n\x1a\n"
    with WebServer(t.tmp) as web, Serving(t, web.url + "/a.nc") as s:
        assert s.get("/data/t/0.0.0").status == 200


def test_nothing_is_run(t):
    """SECURITY S72, S73: what a source calls a page is none, and no link is followed."""
    folder = t.path("d")
    os.mkdir(folder)
    make(os.path.join(folder, "a.nc"))
    for name in ("x.html", "x.svg", "x.js", "<b>.txt"):
        with open(os.path.join(folder, name), "w") as f:
            f.write("<script>alert(1)</script>")
    os.symlink("/etc/passwd", os.path.join(folder, "link"))
    with Serving(t, folder) as s:
        for name in ("x.html", "x.svg", "x.js"):
            got = s.get("/data/" + name)
            assert got["Content-Type"] == "application/octet-stream", name
            assert got["X-Content-Type-Options"] == "nosniff", name
            assert got["Content-Security-Policy"] == s.get("/")["Content-Security-Policy"] == (
                "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
                "frame-ancestors 'none'; form-action 'none'"), name
            assert got["ETag"].startswith('W/"'), "it may change where it is"
        listed = s.get("/data/").body
        assert b"&lt;b&gt;.txt" in listed and b"<b>" not in listed
        got = s.get("/data/link")
        assert got.status == 403 and b"root" not in got.body


def test_rights(t):
    """No process of it can get more rights than it has."""
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        tree = [s.process.pid]
        for pid in tree:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                tree += [int(p) for p in f.read().split()]
        for pid in tree:
            with open(f"/proc/{pid}/status", errors="replace") as f:
                assert "NoNewPrivs:\t1" in f.read(), pid
        sockets = {os.readlink(f"/proc/{s.process.pid}/fd/{fd}")
                   for fd in os.listdir(f"/proc/{s.process.pid}/fd")}
        listening = {x for x in sockets if x.startswith("socket:")}
        with open("/proc/net/tcp") as f:
            inode = next(row.split()[9] for row in f if f":{s.port:04X} 00000000:0000 0A" in row)
        assert f"socket:[{inode}]" in listening
        for pid in tree[1:]:
            theirs = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            assert f"socket:[{inode}]" not in theirs, "children have no part in the network"


def test_chunks(t):
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        got = json.loads(s.get("/api/chunks?array=/sparse").body)
        assert got["grid"] == [5, 7] and got["count"] == 35 and len(got["sizes"]) == 35
        stored = [i for i, n in enumerate(got["sizes"]) if n >= 0]
        assert stored == [2 * 7 + 2]
        assert got["sizes"][16] == len(s.get("/data/sparse/2.2").body)
        more = json.loads(s.get("/api/chunks?array=/sparse&from=16").body)
        assert more["sizes"] == got["sizes"][16:]


def test_ends(t):
    path = t.path("a.nc")
    make(path)
    for sig in (signal.SIGTERM, signal.SIGINT):
        with Serving(t, path) as s:
            idle = socket.create_connection((s.host, s.port))
            assert s.get("/data/.zgroup").status == 200
            assert s.end(sig) == 0
            idle.close()


def test_ports(t):
    """SECURITY S75: only the origin that the option names is in an answer."""
    path = t.path("a.nc")
    make(path)
    with Serving(t, path) as s:
        for args, text in ((("-p", str(s.port)), "in use"),
                           ((f"-p{s.port}",), "another port with -p PORT, or use -p 0"),
                           (("--origin", "foo"), "https://host"),
                           (("--origin", "http://host/"), "https://host"),
                           (("--origin=http://host:",), "https://host"),
                           (("-p", "x"), "port"),
                           (("--port=70000",), "port"), (("--bind", "nowhere"), "--bind"),
                           (("-o", "rw"), "read")):
            status, _, err = t.run(t.binary, "serve", *args, path)
            busy = text == "in use" or text.startswith("another")
            assert status == (1 if busy else 2) and text in err, (args, err)
    for origin in ("none", "https://example.org", "http://[::1]:8080"):
        with Serving(t, path, "--origin", origin) as s:
            for asks in {}, {"Origin": "https://other.example"}:
                assert s.get("/data/.zgroup", **asks)["Access-Control-Allow-Origin"] == (
                    None if origin == "none" else origin)
    status, _, err = t.run(t.binary, "serve", t.path("none.nc"))
    assert status == 1 and "none.nc" in err
    status, _, err = t.run(t.binary, "info", "--port", "1", path)
    assert status == 2 and "not a flag" in err
