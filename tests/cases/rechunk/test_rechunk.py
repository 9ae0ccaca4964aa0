# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of other shapes (-o rechunk=): every reader gets the values of the source, bit by bit, in
the chunks that were requested; what that costs, what does not exist, and what is refused."""
import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import h5py
import netCDF4
import numpy as np
import xarray as xr
import zarr

from lib.context import corpus, eventually_passes, sampled
from lib.serving import Serving
from lib.web import WebServer

LIMIT = 240.0
SHAPE = {"time": 60, "lat": 23, "lon": 31}


# ---- sources ----

def values():
    rng = np.random.default_rng(7)
    return rng.integers(-1000, 1000, tuple(SHAPE.values())).astype("f4") / 8


def sample(path, chunks=(1, 23, 31), fmt="NETCDF4", grow=False, strings=True):
    """x(time, lat, lon), strings s(time), numbers n(lat, lon) and coordinates."""
    with netCDF4.Dataset(path, "w", format=fmt) as d:
        for name, n in SHAPE.items():
            d.createDimension(name, None if grow and name == "time" else n)
            d.createVariable(name, "f8", (name,))[:] = np.arange(n) * 0.5
        more = {}
        if fmt == "NETCDF4":
            more = dict(chunksizes=chunks, zlib=True, complevel=1, shuffle=True, fletcher32=True)
        x = d.createVariable("x", "f4", tuple(SHAPE), **more)
        x.units = "K"
        x[:] = values()
        d.createVariable("n", "i2", ("lat", "lon"))[:] = np.arange(23 * 31).reshape(23, 31)
        if strings and fmt == "NETCDF4":
            s = d.createVariable("s", str, ("time",), chunksizes=(7,))
            for i in range(SHAPE["time"]):
                s[i] = "é" * (i % 4)
    return path


def status(t, m):
    code, out, err = t.run(t.binary, "status", "--json", m.path)
    assert code == 0, err
    return json.loads(out)


def info(t, path, *options, fails=None):
    args = [w for o in options for w in ("-o", o)]
    code, out, err = t.run(t.binary, "info", "--json", *args, path)
    if fails is not None:
        assert code != 0 and fails in err, (code, err)
        return None
    assert code == 0, err
    return json.loads(out)


def variables(t, path, *options):
    return {v["path"]: v for v in info(t, path, *options)["variables"]}


# ---- comparing ----

def elements(a):
    """Bits of all elements, also of strings and of ragged arrays."""
    if a.dtype.kind != "O":
        return np.ascontiguousarray(a).tobytes()
    return [x.tobytes() if isinstance(x, np.ndarray) else x for x in a.ravel()]


def read(array):
    """Values; None for what the reader does not know, and what the mount cannot decode."""
    from clients import tree
    try:
        return array.values()
    except (tree.Unreadable, OSError):
        return None


def same_trees(plain, other):
    """Every array of two Zarr trees, as a reader of its own reads them."""
    from clients import tree
    a, b = tree.load(plain).arrays, tree.load(other).arrays
    assert a.keys() == b.keys()
    for path in a:
        assert a[path].shape == b[path].shape and a[path].attrs == b[path].attrs, path
        want, got = read(a[path]), read(b[path])
        if want is None:
            assert got is None, (path, "only without rechunk is it an error")
            continue
        assert got is not None, (path, "only with rechunk is it an error")
        assert got.dtype == want.dtype and elements(got) == elements(want), path


def same_bits(got, want):
    """In whatever order of bytes."""
    assert got.astype(want.dtype).tobytes() == want.tobytes()


def by_zarr(mnt, chunks):
    x = zarr.open(mnt, mode="r")["x"]
    assert x.chunks == chunks, x.chunks
    same_bits(x[...], values())
    same_bits(x[3:40, 5, 7:9], values()[3:40, 5, 7:9])


def by_xarray(mnt, source):
    with xr.open_dataset(mnt, engine="zarr") as a, xr.open_dataset(source) as b:
        assert set(a.variables) == set(b.variables)
        for name in b.variables:
            assert a[name].dims == b[name].dims and a[name].dtype == b[name].dtype, name
            assert a[name].values.tolist() == b[name].values.tolist(), name


def by_file(mnt, chunks):
    [name] = os.listdir(mnt)
    with h5py.File(os.path.join(mnt, name)) as f:
        assert f["x"].chunks == chunks, f["x"].chunks
        same_bits(f["x"][...], values())
        if "s" in f:
            assert [s.decode() for s in f["s"][:]] == ["é" * (i % 4) for i in range(60)]
    with netCDF4.Dataset(os.path.join(mnt, name)) as d:
        same_bits(np.asarray(d["x"][:]), values())


def check(t, source, rule, chunks, *options):
    """Zarr v2, v3 and shards, and the virtual netCDF-4 file."""
    rule = "rechunk=" + rule
    for form in ((), ("filter=*,deflate,1",), ("zarr_format=3",), ("shards=64K",),
                 ("shards=64K", "filter=*,zstd")):
        with t.mount(source, "view=zarr", *form) as plain, \
                t.mount(source, rule, "view=zarr", *form, *options) as m:
            t.call(same_trees, plain.path, m.path, timeout=LIMIT)
            if "zarr_format=3" not in form and "shards=64K" not in form:
                t.call(by_zarr, m.path, chunks, timeout=LIMIT)
    for form in (), ("filter=*,shuffle|deflate,1",):
        with t.mount(source, rule, "view=nc", *form, *options) as m:
            t.call(by_file, m.path, chunks, timeout=LIMIT)


RULES = [  # rule, chunks of x, options
    ("time=all,lat=8,lon=8", (60, 8, 8)),
    ("time=7,lat=all", (7, 23, 31)),
    ("x,time=all,lat=1", (60, 1, 31), "memory=384K"),
    ("time=9,lat=5,lon=4", (9, 5, 4), "memory=256K", "decode_threads=3"),
]


def test_values(t):
    """SEMANTICS B1"""
    path, plain = sample(t.path("a.nc")), sample(t.path("b.nc"), strings=False)
    for rule, chunks, *options in RULES:
        # strings of a virtual file need more memory than makes several runs of this file
        check(t, plain if options else path, rule, chunks, *options)
    with t.mount(path, "rechunk=time=all,lat=8,lon=8") as m:
        t.call(by_xarray, m.path, path, timeout=LIMIT)


def test_long_chunks(t):
    """Chunks that have all times become chunks of one time. SEMANTICS B1"""
    path = sample(t.path("a.nc"), chunks=(60, 4, 5))
    plain = sample(t.path("b.nc"), chunks=(60, 4, 5), strings=False)
    check(t, path, "time=1,lat=all,lon=all", (1, 23, 31))
    check(t, plain, "time=1,lat=all,lon=all", (1, 23, 31), "memory=512K")


def test_sources(t):
    """Classic files, Zarr stores of both versions, with shards, archives, many files as one.
    SEMANTICS B1"""
    path = sample(t.path("a.nc"))
    classic = sample(t.path("c.nc"), fmt="NETCDF3_64BIT_OFFSET", grow=True)
    made = {}
    for name, *options in (("v2.zarr", "filter=keep"), ("v3.zarr", "zarr_format=3"),
                           ("sharded.zarr", "shards=64K"), ("packed.zip", "filter=*,zstd")):
        made[name] = t.path(name)
        args = [w for o in options for w in ("-o", o)]
        code, _, err = t.run(t.binary, "convert", *args, path, made[name])
        assert code == 0, err
    for source in (classic, *made.values()):
        check(t, source, "time=all,lat=8,lon=8", (60, 8, 8))
    folder = t.path("many")
    os.mkdir(folder)
    for k in range(3):
        with netCDF4.Dataset(f"{folder}/{k}.nc", "w") as d:
            for name, n in SHAPE.items():
                d.createDimension(name, 20 if name == "time" else n)
            d.createVariable("time", "f8", ("time",))[:] = np.arange(20) + 20 * k
            x = d.createVariable("x", "f4", tuple(SHAPE), chunksizes=(1, 23, 31), zlib=True)
            x[:] = values()[20 * k:20 * k + 20]
    with t.mount(folder, "concat=time", "concat_index=none", "view=zarr",
                 "rechunk=time=all,lat=8,lon=8") as m:
        t.call(by_zarr, m.path, (60, 8, 8), timeout=LIMIT)


def test_remote(t):
    """A file and stores on a web server, which cannot list them. SEMANTICS B1, B3"""
    path = sample(t.path("a.nc"), strings=False)
    for name, *options in ("v2.zarr",), ("sharded.zarr", "shards=64K"):
        args = [w for o in options for w in ("-o", o)]
        code, _, err = t.run(t.binary, "convert", *args, path, t.path(name))
        assert code == 0, err
    os.unlink(t.path("v2.zarr/x/3.0.0"))  # reads as the fill value, undefined in netCDF's model

    def look(mnt, gap):
        z = zarr.open(mnt, mode="r")["x"]
        assert z.chunks == (60, 8, 8), z.chunks
        got, want = z[...], values()
        if gap:
            got[3] = want[3]
        same_bits(got, want)

    with WebServer(t.tmp) as web:
        for name in "a.nc", "v2.zarr", "sharded.zarr":
            with t.mount(f"{web.url}/{name}", "view=zarr", "rechunk=time=all,lat=8,lon=8") as m:
                t.call(look, m.path, name == "v2.zarr", timeout=LIMIT)
                assert status(t, m)["rechunk_reads"] == 60 - (name == "v2.zarr")


def test_served(t):
    path = sample(t.path("a.nc"))
    with Serving(t, path, "-o", "rechunk=time=all,lat=8,lon=8") as s:
        assert json.loads(s.get("/data/x/.zarray").body)["chunks"] == [60, 8, 8]
        got = np.frombuffer(s.get("/data/x/0.1.2").body, "f4").reshape(60, 8, 8)
        same_bits(got, values()[:, 8:16, 16:24])


FOLDERS = "classic", "hdf4", "hdf5", "netcdf4", "zarr2", "zarr3", "zip"


def halves(t, path):
    """The rule that halves every dimension of a file that is not large; None: there is none."""
    code, out, _ = t.run(t.binary, "info", "--json", "-o", "unsupported=skip", path)
    if code != 0:
        return None
    found = json.loads(out)
    dims = {d["name"]: d["length"] for g in found["groups"] for d in g["dimensions"]
            if not set(d["name"]) & set(",=\\&") and d["length"] > 1}
    size = sum(np.prod(v["shape"], dtype=float) for v in found["variables"])
    return ",".join(f"{d}={n // 2}" for d, n in dims.items()) if size <= 1 << 21 else None


def files_of_others(t, root, folder):
    """Files that others made, in halves of their dimensions. SEMANTICS B1"""
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        names = [line.split("\t")[0].rstrip("/") for line in f]
    tried = 0
    for name in sampled([n for n in names if n.startswith(folder + "/")], 30):
        path = os.path.join(root, name)
        rule = halves(t, path)
        if not rule:
            continue
        print(name, rule)
        with t.mount(path, "unsupported=skip", "view=zarr") as a, \
                t.mount(path, "unsupported=skip", "view=zarr", "rechunk=" + rule) as b:
            t.call(same_trees, a.path, b.path, timeout=LIMIT)
        tried += 1
    print(tried, "files")


def cases():
    root = corpus()
    for folder in FOLDERS if root else ():
        yield "corpus-" + folder, lambda t, folder=folder: files_of_others(t, root, folder)


# ---- what it costs ----

def read_in_order(mnt, name="x"):
    """Every chunk file, as a copy would."""
    for key in sorted(os.listdir(f"{mnt}/{name}")):
        if not key.startswith("."):
            with open(f"{mnt}/{name}/{key}", "rb") as f:
                f.read()


def read_at_once(mnt, name="x"):
    """The same by several threads."""
    def read(key):
        with open(f"{mnt}/{name}/{key}", "rb") as f:
            f.read()
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(read, [k for k in os.listdir(f"{mnt}/{name}") if k[0] != "."]):
            pass


def test_decodes(t):
    """A complete read decodes each chunk of the source once, or once for each part of them that
    an eighth of the memory holds."""
    path = sample(t.path("a.nc"))
    with t.mount(path, "rechunk=time=all,lat=8,lon=8") as m:
        t.call(read_in_order, m.path)
        s = status(t, m)
        assert s["rechunk_reads"] == 60, s
        assert s["chunks"]["decode"] == 12 and s["chunks_made"] == 60 + 12, s
        t.call(read_in_order, m.path)
        assert status(t, m)["rechunk_reads"] == 60
    with t.mount(path, "rechunk=time=all,lat=8,lon=8") as m:
        t.call(read_at_once, m.path)
        assert status(t, m)["rechunk_reads"] == 60
    # 12 chunks of 15 KiB and a few bytes: three of them at a time
    memory = 8 * 3 * (60 * 8 * 8 * 4 + 300)
    with t.mount(path, "rechunk=x,time=all,lat=8,lon=8", f"memory={memory}") as m:
        assert "decodes each chunk of the source 4 times" in m.messages(), m.messages()
        t.call(read_in_order, m.path)
        s = status(t, m)
        assert s["rechunk_reads"] == 4 * 60, s


def test_unchanged(t):
    """Variables whose chunks stay are passed as without the option. SEMANTICS B2"""
    path = sample(t.path("a.nc"))
    found = variables(t, path, "rechunk=x,time=all,lat=8")
    assert found["/x"]["chunks"] == [60, 8, 31] and found["/x"]["plan"] == "decode"
    assert "assembled from chunks of 1x23x31" in found["/x"]["reason"], found["/x"]
    assert found["/n"]["plan"] == found["/lat"]["plan"] == "pass", found

    def compare(plain, other):
        for name in "n", "lat", "time":
            for key in os.listdir(f"{plain}/{name}"):
                with open(f"{plain}/{name}/{key}", "rb") as a, \
                        open(f"{other}/{name}/{key}", "rb") as b:
                    assert a.read() == b.read(), (name, key)
        plan = os.getxattr(other + "/n/0.0", "user.nczarrfs.plan").decode()
        assert plan == os.getxattr(plain + "/n/0.0", "user.nczarrfs.plan").decode() == "pass"

    with t.mount(path) as a, t.mount(path, "rechunk=x,time=all,lat=8") as b:
        t.call(compare, a.path, b.path)


# ---- what does not exist, what is damaged ----

def test_absent(t):
    """A chunk exists if one of the source's chunks below it does. SEMANTICS B3"""
    path = t.path("a.zarr")
    x = zarr.open(path, mode="w", shape=(40, 40), chunks=(4, 4), dtype="i4", fill_value=-1)
    x[5, 5] = 7          # chunk 1.1
    x[20:24, 36:40] = 8  # chunk 5.9
    data = x[...]

    def look(mnt):
        z = zarr.open(mnt, mode="r")
        assert z.chunks == (40, 3) and (z[...] == data).all()
        assert sorted(os.listdir(mnt)) == [".zarray", ".zattrs", "0.1", "0.12", "0.13", "0.2"]
        assert not os.path.exists(mnt + "/0.3")

    source = t.path("group.zarr")
    os.mkdir(source)
    with open(source + "/.zgroup", "w") as f:
        f.write('{"zarr_format": 2}')
    shutil.move(path, source + "/x")
    with open(source + "/x/.zattrs", "w") as f:
        json.dump({"_ARRAY_DIMENSIONS": ["a", "b"], "_FillValue": -1}, f)
    with t.mount(source, "view=zarr", "rechunk=a=all,b=3") as m:
        t.call(lambda mnt: look(mnt + "/x"), m.path)
        s = status(t, m)
        # one of them lies below two bands, and is decoded once; of the others nothing is read
        assert s["rechunk_reads"] == 3 and s["chunks_made"] == 2 + 4, s
    with t.mount(source, "view=nc", "rechunk=a=all,b=3") as m:
        def count(mnt):
            [name] = os.listdir(mnt)
            with h5py.File(f"{mnt}/{name}") as f:
                assert f["x"].id.get_num_chunks() == 4 and (f["x"][...] == data).all()
        t.call(count, m.path)


def test_damage(t):
    """Chunks over a damaged one are EIO, the log names it, and no other chunk suffers.
    SEMANTICS B4"""
    path = sample(t.path("a.nc"), chunks=(6, 23, 31), strings=False)
    with h5py.File(path) as f:
        at = f["x"].id.get_chunk_info_by_coord((12, 0, 0)).byte_offset
    with open(path, "r+b") as f:
        f.seek(at + 100)
        byte = f.read(1)
        f.seek(at + 100)
        f.write(bytes([byte[0] ^ 0x55]))

    def look(mnt):
        for k in range(15):  # four times each; those of 12 to 17 are in 3 and 4
            for j in range(3):
                try:
                    with open(f"{mnt}/x/{k}.{j}.0", "rb") as f:
                        got = np.frombuffer(f.read(), "f4").reshape(4, 8, 31)
                    assert k not in (3, 4), k
                    n = min(8, 23 - 8 * j)
                    want = values()[4 * k:4 * k + 4, 8 * j:8 * j + n]
                    assert got[:, :n].tobytes() == want.tobytes(), (k, j)
                except OSError as error:
                    assert error.errno == errno.EIO and k in (3, 4), (k, error)

    with t.mount(path, "rechunk=time=4,lat=8", "filter=none", foreground=True) as m:
        m.damaged = True
        t.call(look, m.path)
        assert "source: '/x' chunk 2.0.0: " in m.messages(), m.messages()


# ---- what is refused ----

def test_refused(t):
    """SEMANTICS B5"""
    path = sample(t.path("a.nc"))
    info(t, path, "rechunk=time=all", "max_chunk=100K",
         fails="rechunk: use smaller lengths: array 'x': a chunk of 171120 bytes exceeds "
               "max_chunk=102400 (-o unsupported=skip mounts the rest)")
    rest = info(t, path, "rechunk=time=all", "max_chunk=100K", "unsupported=skip")
    assert any("it keeps its chunks" in n for n in rest["notes"]), rest["notes"]
    assert {v["path"]: v["chunks"] for v in rest["variables"]}["/x"] == [1, 23, 31]
    only = info(t, path, "rechunk=x,time=all", "max_chunk=100K", "unsupported=skip")
    assert any("it keeps its chunks" in n for n in only["notes"]), only["notes"]
    for rule in "time", "time=0", "x,time", "time=-1", "time=all,lat", ",time=3", r"time=all\,":
        info(t, path, "rechunk=" + rule, fails="as in 'time=24,lat=all'")
    os.mkdir(t.path("mnt"))
    for option in "rw", "create":
        code, _, err = t.run(t.binary, "-o", option, "-o", "rechunk=time=all",
                             path if option == "rw" else t.path("new.nc"), t.path("mnt"))
        assert code != 0 and "chunks of other shapes are read-only: leave out " + option in err, err
    with t.mount(path, "rechunk=tme=all") as m:
        assert "no dimension 'tme'" in m.messages() and "did you mean 'time'" in m.messages()


# ---- other uses ----

def test_commands(t):
    """Copies, HTTP, checks and references."""
    path = sample(t.path("a.nc"))
    for name in "b.zarr", "b.nc":
        code, _, err = t.run(t.binary, "convert", "-o", "rechunk=time=all,lat=8,lon=8", path,
                             t.path(name))
        assert code == 0, err
    with h5py.File(t.path("b.nc")) as f:
        assert f["x"].chunks == (60, 8, 8) and f["x"][...].tobytes() == values().tobytes()
    x = zarr.open(t.path("b.zarr"), mode="r")["x"]
    assert x.chunks == (60, 8, 8) and x[...].tobytes() == values().tobytes()
    # the source is checked, in its own chunks
    code, out, err = t.run(t.binary, "check", "--json", "-o", "rechunk=time=all", path)
    assert code == 0, err
    code, _, err = t.run(t.binary, "refs", "-o", "rechunk=time=all", path, t.path("r.json"))
    assert code != 0 and "x" in err, err


def test_directory(t):
    """The converted views of a mounted directory, and its references."""
    folder = t.path("data")
    os.mkdir(folder)
    sample(folder + "/a.nc")
    code, _, err = t.run(t.binary, "refs", "-o", "rechunk=time=all", folder, t.path("r.json"))
    assert code != 0 and "x" in err, err
    code, _, err = t.run(t.binary, "convert", folder + "/a.nc", folder + "/b.zarr")
    assert code == 0, err

    def look(mnt):
        by_zarr(mnt + "/a.zarr", (60, 8, 8))
        with h5py.File(mnt + "/b.nc") as f:
            assert f["x"].chunks == (60, 8, 8) and f["x"][...].tobytes() == values().tobytes()
        with h5py.File(mnt + "/a.nc") as f:
            assert f["x"].chunks == (1, 23, 31)

    with t.mount(folder, "rechunk=time=all,lat=8,lon=8") as m:
        t.call(look, m.path, timeout=LIMIT)


def test_growth(t):
    """A dimension that grows: 'all' is its new length."""
    path = sample(t.path("a.nc"), grow=True)

    def shapes(mnt, n):
        with open(mnt + "/x/.zarray") as f:
            d = json.load(f)
        assert d["shape"][0] == d["chunks"][0] == n, d
        assert zarr.open(mnt, mode="r")["x"][-1, 0, 0] == (values()[-1, 0, 0] if n == 60 else 5)

    with t.mount(path, "rechunk=time=all,lat=8,lon=8") as m:
        t.call(shapes, m.path, 60)
        with netCDF4.Dataset(path, "a") as d:
            d["x"][60] = 5
            d["time"][60] = 30.0
            d["s"][60] = "new"
        eventually_passes(t.call, shapes, m.path, 61)
