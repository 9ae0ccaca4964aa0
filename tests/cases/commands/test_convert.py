# SPDX-License-Identifier: BSD-3-Clause
"""nczarrfs convert: copies that other programs read, with the values that they read in the source;
chunks go byte for byte where they mean the same; a copy appears whole or not at all; one that was
killed goes on; what would lose something is refused."""
import json
import os
import signal
import subprocess
import threading
import zipfile

import h5py
import netCDF4
import numcodecs
import numpy as np
import zarr

from lib.context import Skip, corpus
from lib.held import Held
from lib.s3_server import S3Server
from lib.web import WebServer


def convert(t, *args, fails=None, code=1, **env):
    status, out, err = t.run(t.binary, "convert", "--json", *args, timeout=60, env=env)
    if fails is not None:
        assert status == code and fails in err and out == "", f"status {status}: {out}{err}"
        return None
    assert status == 0, f"status {status}: {err}"
    return json.loads(out)


def make_h5(path, n=60):
    rng = np.random.default_rng(5)
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("x", 40)
        t = f.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        v = f.createVariable("v", "i2", ("time", "x"), zlib=True, shuffle=True,
                             chunksizes=(10, 20), fill_value=-1)
        v.scale_factor = 0.5
        v.set_auto_maskandscale(False)
        v[:] = rng.integers(0, 99, (n, 40))
        t[:] = np.arange(n)
        g = f.createGroup("g")
        g.title = "h\u00e4llo"
        w = g.createVariable("w", "f4", ("time", "x"), chunksizes=(7, 40), fletcher32=True)
        w[:] = rng.random((n, 40))
        s = g.createVariable("names", str, ("x",))
        s[:] = np.array([f"n{i}" for i in range(40)], dtype=object)
        f.createVariable("scalar", "i4")[...] = 7


def values(path):
    """What h5py reads, by path."""
    found = {}

    def take(name, d):
        if isinstance(d, h5py.Dataset) and d.dtype != object and d.shape is not None:
            found[name] = d[()]
        elif isinstance(d, h5py.Dataset) and h5py.check_string_dtype(d.dtype):
            found[name] = d.asstr()[()]

    with h5py.File(path) as f:
        f.visititems(take)
    return found


def same_zarr(store, want, names):
    root = zarr.open_group(store, mode="r")
    for name in names:
        got = root[name][()]
        assert np.array_equal(got, want[name]), f"{name}: {got} and not {want[name]}"


def files(top):
    """Every file below a directory, by its path."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            full = os.path.join(folder, name)
            with open(full, "rb") as f:
                found[os.path.relpath(full, top)] = f.read()
    return found


def left_behind(folder):
    return [n for n in os.listdir(folder) if "nczarrfs-copy" in n]


def test_trees(t):
    """SEMANTICS K3"""
    source = t.path("a.nc")
    make_h5(source)
    want = values(source)
    names = ["v", "time", "g/w", "scalar"]
    got = convert(t, source, t.path("b.zarr"))
    assert got["view"] == "zarr" and got["files"] > 20 and not got["resumed"], got
    convert(t, source, t.path("b.zip"))
    assert left_behind(t.tmp) == []
    with zipfile.ZipFile(t.path("b.zip")) as z:
        assert z.testzip() is None
        inside = {n: z.read(n) for n in z.namelist()}
    assert inside == files(t.path("b.zarr"))

    def mounted(mnt):
        assert files(mnt) == inside

    with t.mount(source) as m:
        t.call(mounted, m.path)

    def check():
        import xarray
        same_zarr(t.path("b.zarr"), want, names)
        same_zarr(zarr.ZipStore(t.path("b.zip"), mode="r"), want, names)
        with xarray.open_zarr(t.path("b.zarr")) as a, xarray.open_dataset(source) as b:
            xarray.testing.assert_identical(a.load(), b.load())
        with h5py.File(source) as f:
            raw = f["v"].id.read_direct_chunk((10, 20))[1]
        with open(t.path("b.zarr/v/1.1"), "rb") as f:
            assert f.read() == raw

    t.call(check)
    convert(t, "-o", "shards=16K", source, t.path("b3.zarr"))
    convert(t, t.path("b3.zarr"), t.path("c.nc"))
    convert(t, t.path("b.zarr"), t.path("d.nc"))
    for copy in ("c.nc", "d.nc"):
        got = values(t.path(copy))
        for name in names:
            assert np.array_equal(got[name], want[name]), (copy, name)
        status, out, err = t.run("ncdump", "-h", t.path(copy))
        assert status == 0 and 'time:units = "days since 2000-01-01"' in out, out + err
    with h5py.File(t.path("d.nc")) as f:
        assert f["v"].id.read_direct_chunk((10, 20))[1] == inside["v/1.1"]
    status, out, err = t.run(t.binary, "check", t.path("b3.zarr"))
    assert status == 0 and "Zarr v3" in out, out + err


def test_filters(t):
    """What readers of the other format do not know is compressed with what they know."""
    rng = np.random.default_rng(6)
    data = rng.integers(0, 9, (100, 100)).astype("i4")
    g = zarr.open_group(t.path("a.zarr"), mode="w")
    g.create_dataset("blosc, odd", data=data, chunks=(10, 100))
    g.create_dataset("lzma", data=data, chunks=(50, 50), compressor=numcodecs.LZMA())
    g.create_dataset("none", data=data, chunks=(50, 50), compressor=None)
    got = convert(t, t.path("a.zarr"), t.path("b.nc"))
    assert got["recompressed"] == 2, got
    with h5py.File(t.path("b.nc")) as f:
        for name in ("blosc, odd", "lzma"):
            assert f[name].compression == "gzip" and f[name].shuffle, name
            assert np.array_equal(f[name][()], data)
        assert f["none"].compression is None
    got = convert(t, "-o", "filter=portable", t.path("a.zarr"), t.path("c.nc"))
    assert got["recompressed"] == 0
    with h5py.File(t.path("c.nc")) as f:
        assert f["lzma"].compression is None and np.array_equal(f["lzma"][()], data)


def test_consolidated(t):
    """A copy without consolidated metadata, in both formats, and as an archive."""
    source = t.path("s.nc")
    make_h5(source)
    for version in 2, 3:
        for ending in "zarr", "zarr.zip":
            out = t.path(f"c{version}.{ending}")
            for option, has in ((), True), (("-o", "consolidated=never"), False):
                convert(t, "-o", f"zarr_format={version}", *option, "--force", source, out)
                if ending == "zarr":
                    names = os.listdir(out)
                else:
                    with zipfile.ZipFile(out) as f:
                        names = f.namelist()
                if version == 2:
                    assert (".zmetadata" in names) == has, names
                else:
                    text = (open(os.path.join(out, "zarr.json")).read() if ending == "zarr" else
                            zipfile.ZipFile(out).read("zarr.json"))
                    assert ("consolidated_metadata" in json.loads(text)) == has
                if version == 2 and ending == "zarr":
                    with h5py.File(source) as f:
                        np.testing.assert_array_equal(zarr.open(out)["v"][...], f["v"][...])


def test_refused(t):
    """SEMANTICS K4"""
    source = t.path("a.nc")
    make_h5(source)
    os.mkdir(t.path("there"))
    with open(t.path("there/mine"), "w") as f:
        f.write("mine")
    convert(t, source, t.path("there"), fails="--force")
    convert(t, source, source, fails="inside it")
    convert(t, "--force", source, source, fails="inside it")
    convert(t, source, t.path("b.zarr"))
    convert(t, t.path("b.zarr"), t.path("b.zarr/v.nc"), fails="is inside the source")
    os.makedirs(t.path("around/in"))
    os.rename(t.path("b.zarr"), t.path("around/in/b.zarr"))
    convert(t, "--force", t.path("around/in/b.zarr"), t.path("around"), fails="inside it")
    os.symlink("around/in/b.zarr", t.path("link"))
    convert(t, "--force", t.path("around/in/b.zarr"), t.path("link"), fails="inside it")
    convert(t, source, t.path("nowhere/b.zarr"), fails="the directory of the copy")
    os.mkdir(t.path("several"))
    os.link(source, t.path("several/a.nc"))
    for out in ("b.zarr", "b.nc"):
        convert(t, t.path("several"), t.path(out), fails="convert the datasets in it one by one")
    convert(t, "-o", "zarr_format=3", source, t.path("b.nc"), fails="view=zarr", code=2)
    convert(t, source, "https://example.org/b.zarr", fails="web server", code=2)
    convert(t, "-o", "chunks=v,x=1", source, t.path("c.zarr"), code=2,
            fails="for a copy in other chunks use rechunk=")
    convert(t, "--force", source, t.path("there"), fails="there/a.zarr")
    with open(t.path("there/mine")) as f:
        assert f.read() == "mine"
    os.unlink(t.path("there/mine"))
    convert(t, "--force", source, t.path("there"))
    os.mkdir(t.path("there/older"))
    convert(t, "--force", source, t.path("there"))  # a dataset is replaced as a whole
    assert not os.path.exists(t.path("there/older")) and os.path.exists(t.path("there/.zgroup"))
    for name in ("c.tar", "c.json", "c.nc.gz"):
        convert(t, source, t.path(name), fails="cannot write a copy with this ending: use .zarr")
    convert(t, source, "-", fails="cannot write a copy to standard output")
    convert(t, "-o", "view=nc", source, t.path("c.zip"), fails="with this ending")
    for view in "nc", "classic":
        convert(t, "-o", "view=" + view, source, t.path("c.zarr"),
                fails="but the copy is a netCDF file: use .nc, or view=zarr")
        convert(t, "-o", f"view={view},zarr_format=3", source, t.path("c"), code=2,
                fails=f"with view={view} the copy is a ")
    os.mkfifo(t.path("pipe"))
    convert(t, "--force", source, t.path("pipe"), fails="neither a file nor a directory")
    with h5py.File(source) as f:
        c = f["g/w"].id.get_chunk_info(2)
    with open(source, "r+b") as f:
        f.seek(c.byte_offset + 5)
        f.write(b"damage")
    before = files(t.path("there"))
    convert(t, "--force", "-o", "filter=none", source, t.path("there"), fails="/g/w' chunk")
    assert files(t.path("there")) == before and "v/1.1" in before
    assert left_behind(t.tmp) == [] == left_behind(t.path("around"))


def test_replaces_no_part_of_its_source(t):
    """SEMANTICS K4: files that are joined, and those that references lead to"""
    for i in range(3):
        with h5py.File(t.path(f"y{i}.nc"), "w") as f:
            f["time"] = np.arange(4.0) + 4 * i
            f["time"].make_scale("time")
            f["v"] = np.arange(4) + i
            f["v"].dims[0].attach_scale(f["time"])
    join = ("-o", "concat=time,concat_index=none", t.path("y*.nc"))
    convert(t, "--force", *join, t.path("y1.nc"), fails="matches the source pattern")
    convert(t, *join, t.path("year.nc"), fails="matches the source pattern")
    os.symlink("y1.nc", t.path("link.nc"))
    convert(t, "--force", *join, t.path("link.nc"), fails="use another destination")
    convert(t, *join, t.path("all.nc"))
    with h5py.File(t.path("all.nc")) as f:
        assert f["v"].shape == (12,)
    status, _, err = t.run(t.binary, "refs", t.path("all.nc"), t.path("all.json"))
    assert status == 0, err
    convert(t, "--force", t.path("all.json"), t.path("all.nc"), fails="is read from")
    with h5py.File(t.path("all.nc")) as f:
        assert f["v"].shape == (12,)
    convert(t, t.path("all.json"), t.path("all.zarr"))
    want = np.add.outer([0, 1, 2], range(4)).ravel()
    assert (zarr.open(t.path("all.zarr"))["v"][:] == want).all()


def test_checksum_that_is_cut_off(t):
    """A fletcher32 that the copy will not have is verified while it is made."""
    source = t.path("a.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("plain", data=np.arange(1000), chunks=(100,), fletcher32=True)
        f.create_dataset("packed", data=np.arange(1000), chunks=(100,), fletcher32=True,
                         compression="gzip", shuffle=True)
    convert(t, source, t.path("a.zarr"))
    for name in ("plain", "packed"):
        with h5py.File(source) as f:
            c = f[name].id.get_chunk_info(3)
        with open(source, "r+b") as f:
            f.seek(c.byte_offset + c.size // 2)
            was = f.read(1)
            f.seek(-1, 1)
            f.write(bytes([was[0] ^ 4]))
            f.flush()
            convert(t, source, t.path("b.zarr"), fails=f"'/{name}' chunk 3")
            assert not os.path.exists(t.path("b.zarr"))
            f.seek(-1, 1)
            f.write(was)
    convert(t, source, t.path("b.zarr"))
    assert files(t.path("a.zarr")) == files(t.path("b.zarr"))


OPTIONS = "prefetch_size=64K,remote_cache_size=1M,decode_threads=2"


def test_goes_on(t):
    """Killed in the middle: nothing is there, and the same command goes on. SEMANTICS K5"""
    os.mkdir(t.path("web"))
    source = t.path("web/a.h5")
    data = np.random.default_rng(1).random((256, 8192))
    with h5py.File(source, "w") as f:
        f.create_dataset("v", data=data, chunks=(1, 8192))
        at = [c for c in map(f["v"].id.get_chunk_info, range(256))
              if c.chunk_offset == (200, 0)][0].byte_offset
    held = Held(t, "a.h5", at + 1000)
    with WebServer(t.path("web"), fault=held.fault) as web:
        for out, least in (("b.zarr", 20), ("b.nc", 1)):
            args = ["-o", OPTIONS, web.url + "/a.h5", t.path(out)]
            state = t.path(f".{out}.nczarrfs-copy.state")
            killed = ([t.binary, "convert"] + args, state, r"^done (\d+)$", least)
            held.kill(*killed)
            assert not os.path.exists(t.path(out))
            got = convert(t, *args)
            assert got["resumed"] and got["bytes"] < data.nbytes, got
            assert left_behind(t.tmp) == []
        t.call(lambda: same_zarr(t.path("b.zarr"), {"v": data}, ["v"]))
        assert np.array_equal(values(t.path("b.nc"))["v"], data)
        args[-1] = t.path("c.nc")
        state = t.path(".c.nc.nczarrfs-copy.state")
        held.kill([t.binary, "convert"] + args, state, r"^done (\d+)$", 1)
        os.utime(source, (1e9, 1e9))
        got = convert(t, *args)
        assert not got["resumed"] and got["bytes"] > data.nbytes, got
        assert np.array_equal(values(t.path("c.nc"))["v"], data)


def test_verify(t):
    """SEMANTICS K11: a damaged chunk that passes; without --verify its bytes are copied."""
    source = t.path("a.nc")
    make_h5(source)
    with h5py.File(source) as f:
        got = f["v"].id.get_chunk_info_by_coord((10, 20))
        summed = f["g/w"].id.get_chunk_info_by_coord((7, 0)).byte_offset
    for dest in ("b.zarr", "b.zip", "b.nc"):
        assert convert(t, "--verify", source, t.path(dest))["bytes"] > 0
    with open(source, "r+b") as f:
        f.seek(got.byte_offset + got.size // 2)
        f.write(b"\xff\xff\xff\xff")
        f.seek(got.byte_offset)
        stored = f.read(got.size)
    convert(t, source, t.path("c.zarr"))
    with open(t.path("c.zarr/v/1.1"), "rb") as f:
        assert f.read() == stored
    place = f"damaged  /v chunk 1.1, at byte {got.byte_offset}, {got.size} bytes: "
    for dest in ("d.zarr", "d.zip", "d.nc"):
        status, out, err = t.run(t.binary, "convert", "--verify", source, t.path(dest))
        assert status == 1 and out == "", out
        lines = err.splitlines()
        assert len(lines) == 2 and lines[0].startswith("nczarrfs: error: " + place + "deflate"), err
        assert lines[1] == f"nczarrfs: error: '{source}': 1 damaged chunk: nothing is copied", err
        assert not os.path.exists(t.path(dest)) and left_behind(t.tmp) == []
    with open(source, "r+b") as f:
        f.seek(summed)
        f.write(b"\xff" * 8)
    convert(t, source, t.path("e.zarr"), fails="fletcher32")
    convert(t, "--verify", source, t.path("e.zarr"), fails="2 damaged chunks: nothing is copied")
    status, _, err = t.run(t.binary, "check", "--verify", source)
    assert status == 2 and "--verify: not a flag of this command" in err, (status, err)


def test_s3(t):
    source = t.path("a.nc")
    make_h5(source)
    env = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": t.tmp}
    with S3Server(keys={"AKID": "secret"}, buckets={"b": {}}) as s3:
        where = "endpoint=" + s3.url
        convert(t, "-o", where, source, "s3://b/new/a.zarr", **env)
        convert(t, "-o", where, source, "s3://b/new/a.zarr", fails="already exists", **env)
        convert(t, "--force", "-o", where, source, "s3://b/new/a.zarr", fails="--force", **env)
        convert(t, "-o", where, "s3://b/new/a.zarr", t.path("b.zarr"), **env)
    convert(t, source, t.path("c.zarr"))
    t.call(lambda: same_zarr(t.path("b.zarr"), values(source), ["v", "time", "g/w", "scalar"]))


def puts(s3):
    with s3.lock:
        return [path.partition("/a.zarr/")[2] for method, path, _ in s3.asked
                if method == "PUT"]


ROOTS = {2: {".zgroup", ".zattrs", ".zmetadata"}, 3: {"zarr.json"}}


def documents(keys):
    return [os.path.basename(k).startswith(".z") or k.endswith("zarr.json") for k in keys]


def test_s3_order(t):
    """Objects come before documents, those of the root last. SEMANTICS K7"""
    source = t.path("a.nc")
    make_h5(source)
    env = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": t.tmp}
    for form in (2, 3):
        with S3Server(keys={"AKID": "secret"}, buckets={"b": {}}) as s3:
            convert(t, "-o", f"endpoint={s3.url},zarr_format={form},decode_threads=4", source,
                    "s3://b/new/a.zarr", **env)
            keys = puts(s3)
        of_docs = documents(keys)
        assert 20 < of_docs.count(False) and 4 < of_docs.count(True), keys
        assert of_docs == sorted(of_docs), keys
        last = [k for k in keys if k in ROOTS[form]]
        assert last and keys[-len(last):] == last, keys


def test_s3_killed(t):
    """A copy that was killed, among its objects or among its documents, is no dataset, and is in
    the way of another until it has been removed. SEMANTICS K7"""
    source = t.path("a.nc")
    make_h5(source)
    env = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": t.tmp,
           "AWS_EC2_METADATA_DISABLED": "true"}
    for held in ("/g/w/3.0", "/v/.zarray"):
        reached = threading.Event()

        def hold(handler):
            if handler.command == "PUT" and handler.path.endswith(held):
                reached.set()
                return handler.hang()
            return False
        with S3Server(keys={"AKID": "secret"}, buckets={"b": {}}) as s3:
            where = "endpoint=" + s3.url
            s3.fault = hold
            p = subprocess.Popen([t.binary, "convert", "-o", where, source, "s3://b/new/a.zarr"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env={**os.environ, **env},
                                 start_new_session=True)
            assert reached.wait(60 * t.slow), "it was never asked to take " + held
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            s3.fault = None
            with s3.lock:
                keys = {k.partition("a.zarr/")[2] for k in s3.buckets["b"]}
            assert keys and not keys & ROOTS[2], keys
            status, out, _ = t.run(t.binary, "info", "-o", where, "s3://b/new/a.zarr", env=env)
            assert status == 1, out
            convert(t, "-o", where, source, "s3://b/new/a.zarr", fails="already exists", **env)
            with s3.lock:
                s3.buckets["b"].clear()
            convert(t, "-o", where, source, "s3://b/new/a.zarr", **env)
            assert t.run(t.binary, "info", "-o", where, "s3://b/new/a.zarr", env=env)[0] == 0


def test_corpus(t):
    root = corpus()
    if not root:
        raise Skip("no corpus")
    path = os.path.join(root, "classic/Unidata-tds/nc_test_cdf2.nc")
    if not os.path.exists(path):
        raise Skip("no " + path)
    convert(t, path, t.path("b.nc"))
    convert(t, path, t.path("b.zarr"))

    def check():
        import xarray
        with xarray.open_dataset(path, decode_cf=False) as a, \
                xarray.open_dataset(t.path("b.nc"), decode_cf=False) as b:
            for name in a.variables:
                np.testing.assert_array_equal(a[name].values, b[name].values)
    t.call(check)


# SEMANTICS X12
def test_names_of_copies(t):
    """A copy is what its name is opened as, or it is refused before anything is made."""
    source = t.path("s.nc")
    with netCDF4.Dataset(source, "w") as d:
        d.createDimension("x", 3)
        d.createVariable("v", "i4", ("x",))[:] = 7
    for name in "a.nc4", "a.CDF", "A.HDF5", "a.he5":
        convert(t, source, t.path(name))
        assert os.path.isfile(t.path(name)), name
        assert t.run(t.binary, "info", t.path(name))[0] == 0, name
    for name in "b.zarr", "B.ZARR", "plain":
        convert(t, source, t.path(name))
        assert os.path.isdir(t.path(name)), name
        assert t.run(t.binary, "info", t.path(name))[0] == 0, name
    for name in "b.nc3", "b.NC3", "b.hdf", "b.H4", "b.json", "b.parq":
        convert(t, source, t.path(name), fails="cannot write a copy with this ending")
        assert not os.path.lexists(t.path(name)), name
    for name in "x.nc", "x.nc3", "x.HDF5", "x.zip", "x.hdf", "x.json":
        convert(t, "-o", "anonymous,endpoint=http://127.0.0.1:9", source, "s3://b/" + name,
                fails="would be opened as a file", code=2)
