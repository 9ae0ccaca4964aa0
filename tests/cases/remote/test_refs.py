# SPDX-License-Identifier: BSD-3-Clause
"""References to chunks: those that are written open in fsspec's ReferenceFileSystem with
zarr-python and xarray, and in a small reader of our own, and give the values of the native file;
they mount as sources, and show what the mount of the source shows. Reference files as kerchunk
writes them mount, too."""
import base64
import glob
import json
import os
import shutil
import subprocess
import zipfile

import h5py
import netCDF4
import numpy as np
import zarr

from lib import parquet, trees
from lib.context import Skip, corpus
from lib.s3_server import S3Server
from lib.web import WebServer

try:
    import fsspec
except ImportError:
    fsspec = None

SAMPLE = (
    "netcdf4/gauteh-hidefix/coads_climatology.nc4",
    "classic/Unidata-tds/nc_test_cdf2.nc",
    "hdf4/HDFGroup-hdf4/*",
    "zip/keller-mark-pizzarr/data.zarr.zip",
)


def make_h5(path):
    rng = np.random.default_rng(7)
    with h5py.File(path, "w") as f:
        f.create_dataset("plain", data=rng.random((20, 30)), chunks=(10, 10))
        f.create_dataset("g/packed", data=rng.integers(0, 99, (37, 41)).astype(">i4"),
                         chunks=(10, 11), shuffle=True, compression="gzip")
        f.create_dataset("g/summed", data=rng.random((20, 30)).astype("f4"), chunks=(7, 30),
                         compression="gzip", fletcher32=True)
        f.create_dataset("contiguous", data=np.arange(1000, dtype="i2"))
        f.create_dataset("scalar", data=np.float32(2.5))
        d = f.create_dataset("sparse", shape=(100,), chunks=(10,), dtype="f4", fillvalue=3)
        d[25:45] = 1
        d.attrs["_FillValue"] = np.float32(3)
        f.create_dataset("grows", data=np.arange(5), chunks=(64,), maxshape=(None,),
                         compression="gzip")
        f["g"].attrs["text"] = "h\u00e4llo\n\"'"


def make_odd(path):
    """What does not pass: compact, chunks in a form of their own, text without a size."""
    with h5py.File(path, "w") as f:
        space = h5py.h5s.create_simple((4,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(f.id, b"compact", h5py.h5t.NATIVE_INT32, space, plist).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.arange(4, dtype="i4"))
        d = f.create_dataset("odd", data=np.arange(40, dtype="i4"), chunks=(10,),
                             compression="gzip")
        d.id.write_direct_chunk((10,), np.arange(50, 60, dtype="i4").tobytes(), filter_mask=1)
        f.create_dataset("texts", data=["a", "bcd", ""], dtype=h5py.string_dtype())


def refs(t, *args, fails=None):
    status, out, err = t.run(t.binary, "refs", *args, timeout=60)
    if fails is not None:
        assert status == 1 and fails in err, f"status {status}: {err}"
        return err
    assert status == 0, err
    return out


def content(ref, text=True):
    """What a reference means, by hand."""
    if isinstance(ref, str):
        return base64.b64decode(ref[7:]) if ref.startswith("base64:") else ref.encode()
    with open(ref[0], "rb") as f:
        f.seek(ref[1] if len(ref) > 1 else 0)
        return f.read(ref[2]) if len(ref) > 1 else f.read()


def from_json(path):
    with open(path) as f:
        doc = json.load(f)
    assert doc["version"] == 1
    return {k: content(v) for k, v in doc["refs"].items()}


def from_parquet(path):
    """As fsspec's LazyReferenceMapper looks things up."""
    with open(os.path.join(path, ".zmetadata")) as f:
        doc = json.load(f)
    found = {k: json.dumps(v).encode() for k, v in doc["metadata"].items()}
    for key, meta in doc["metadata"].items():
        if not key.endswith("/.zarray"):
            continue
        name = key[:-8]
        grid = [-(-s // c) for s, c in zip(meta["shape"], meta["chunks"])]
        for file in glob.glob(glob.escape(os.path.join(path, name)) + "/refs.*.parq"):
            record = int(file.rsplit(".", 2)[1])
            rows = parquet.rows(file)
            for i in range(len(rows["path"])):
                at = np.unravel_index(record * doc["record_size"] + i, grid) if grid else (0,)
                key = name + "/" + ".".join(map(str, at))
                if rows["raw"][i] is not None:
                    found[key] = rows["raw"][i]
                elif rows["path"][i] is not None:
                    whole = rows["offset"][i] == rows["size"][i] == 0
                    found[key] = content([rows["path"][i]] if whole else
                                         [rows[c][i] for c in ("path", "offset", "size")])
    return found


def each_array(file):
    with h5py.File(file) as f:
        names = []
        f.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
        for n in names:
            d = f[n]
            yield n, d.asstr()[()] if h5py.check_string_dtype(d.dtype) else d[()]


def equal_values(store, file):
    root = zarr.open_group(store, mode="r")
    n = 0
    for name, want in each_array(file):
        got = root[name][()]
        assert np.array_equal(got, want), f"{name}: {got} and not {want}"
        n += 1
    assert n


def by_fsspec(path, file):
    """zarr-python through fsspec; its release 2022.11 raises KeyError for absent chunks."""
    root = zarr.open_group(fsspec.filesystem("reference", fo=path).get_mapper(""), mode="r")
    for name, want in each_array(file):
        part = slice(20, 50) if name == "sparse" else ()
        assert np.array_equal(root[name][part], want[part]), name


def equal_views(t, a, b, *options):
    with t.mount(a, "view=zarr", "filter=keep", *options) as x, \
            t.mount(b, "view=zarr", "filter=keep") as y:
        t.call(alike, x.path, y.path)


def alike(a, b):
    """As trees.same, but for the order of the documents in .zmetadata, which is the source's."""
    x, y = trees.seen(a), trees.seen(b)
    for s in (x, y):
        s.pop(".zmetadata", None)
    differ = sorted(k for k in set(x) | set(y) if x.get(k) != y.get(k))
    arrays = {k.rsplit("/", 1)[0] for k in differ if k.endswith("/.zarray")}
    for name in arrays:  # a chunk that is longer than the array: mounts of trees cut it
        p, q = (zarr.open_array(top + "/" + name, mode="r") for top in (a, b))
        assert p.chunks != q.chunks and np.array_equal(p[()], q[()]), name
    assert all(k.rsplit("/", 1)[0] in arrays for k in differ), differ[:5]
    with open(a + "/.zmetadata") as f, open(b + "/.zmetadata") as g:
        assert arrays or json.load(f) == json.load(g)
    assert len(x) > 3


def test_hdf5(t):
    file, js, pq = t.path("a.h5"), t.path("a.json"), t.path("a.parq")
    make_h5(file)
    refs(t, file, js)
    refs(t, file, pq)
    with open(js) as f:
        text = f.read()
    assert refs(t, file) == refs(t, file, "-") == text, "not deterministic"
    with open(js) as f:
        n = sum(k.startswith("sparse/") for k in json.load(f)["refs"])
    assert n == 5, "absent chunks have no reference"
    t.call(equal_values, from_json(js), file)
    t.call(equal_values, from_parquet(pq), file)
    if fsspec:
        t.call(by_fsspec, js, file)
    small = t.path("whole.h5")  # "grows" has a chunk that is longer than it: its mount cuts it
    with h5py.File(file) as f, h5py.File(small, "w") as g:
        for name in ("plain", "g", "contiguous", "scalar", "sparse"):
            f.copy(name, g)
    for out in (t.path("w.json"), t.path("w.parquet")):
        refs(t, small, out)
        equal_views(t, out, small)
    assert not glob.glob(t.path("*nczarrfs*")), "something was left behind"


def test_what_is_there_is_kept(t):
    """References take the place of older ones, and of nothing else."""
    file, other, js = t.path("a.h5"), t.path("b.h5"), t.path("a.json")
    make_h5(file)
    shutil.copy(file, other)
    with open(t.path("map.json"), "w") as f:
        f.write('{"type": "FeatureCollection"}')
    was = {p: open(p, "rb").read() for p in (file, other, t.path("map.json"))}
    for out in (file, other, t.path("map.json")):
        refs(t, file, out, fails="choose another")
    os.symlink("b.h5", t.path("link.json"))
    refs(t, file, t.path("link.json"), fails="choose another")
    assert was == {p: open(p, "rb").read() for p in was}
    refs(t, file, js)
    refs(t, other, js)
    with open(js) as f:
        assert "b.h5" in f.read()
    os.symlink("a.json", t.path("latest.json"))
    refs(t, file, t.path("latest.json"))
    assert os.path.islink(t.path("latest.json"))
    with open(js) as f:
        text = f.read()
    assert "b.h5" not in text
    refs(t, js, js, fails="is the source")
    os.mkfifo(t.path("pipe.json"))
    reader = subprocess.Popen(["cat", t.path("pipe.json")], stdout=subprocess.PIPE)
    refs(t, file, t.path("pipe.json"))
    assert reader.communicate()[0].decode() == text
    assert not glob.glob(t.path("*nczarrfs-*")), "something was left behind"


def test_chunks_that_do_not_pass(t):
    file, js, pq = t.path("odd.h5"), t.path("odd.json"), t.path("odd.parq")
    make_odd(file)
    text = refs(t, file, js, fails="-o inline")
    assert "'/odd'" in text or "'/texts'" in text
    refs(t, file, pq, fails="-o inline")
    assert not os.path.exists(js) and not os.path.exists(pq)
    assert not glob.glob(t.path("*nczarrfs*")), "something was left behind"
    refs(t, "-o", "inline", file, js)
    refs(t, "-o", "inline", file, pq)
    refs(t, "-o", "inline", file, pq, fails="already exists")
    refs(t, "-o", "inline,dimension_separator=/", file, t.path("x.parq"), fails="separator")
    t.call(equal_values, from_json(js), file)
    t.call(equal_values, from_parquet(pq), file)
    with open(js) as f:
        doc = json.load(f)["refs"]
    assert doc["odd/1"].startswith("base64:") and isinstance(doc["odd/0"], list)
    if fsspec:
        t.call(by_fsspec, js, file)


def test_classic(t):
    file = t.path("c.nc")
    with netCDF4.Dataset(file, "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.createDimension("time", None)
        f.createDimension("x", 5)
        for k, name in enumerate(("a", "b")):
            v = f.createVariable(name, "f4", ("time", "x"))
            v[:] = np.arange(35).reshape(7, 5) * (k + 1)
            v.units = "m"
        f.createVariable("x", "i2", ("x",))[:] = range(5)
        f.title = "records"
    refs(t, file, t.path("c.json"))

    def check():
        import xarray
        kinds = {"consolidated": False, "storage_options": {"fo": t.path("c.json")}}
        with xarray.open_dataset("reference://", engine="zarr", backend_kwargs=kinds) as a, \
                xarray.open_dataset(file, engine="netcdf4") as b:
            xarray.testing.assert_identical(a.load(), b.load())
    if fsspec:
        t.call(check)
    # of two record variables each record is a chunk: a mount gathers several
    with open(t.path("c.json")) as f:
        doc = json.load(f)["refs"]
    assert doc["a/6.0"][1:] == [doc["a/5.0"][1] + 40, 20]


def test_trees(t):
    """Zarr trees: whole objects, entries of archives by range, inner chunks of shards."""
    data = np.arange(600, dtype="f8").reshape(20, 30)
    for sep in ".", "/":
        root = zarr.open_group(t.path("a.zarr"), mode="w")
        root.create_dataset("v", data=data, chunks=(6, 7), dimension_separator=sep)
        root.create_dataset("long", data=data[0], chunks=(100,), fill_value=0)
        js, pq = t.path("a.json"), t.path("a.parq")
        shutil.rmtree(pq, ignore_errors=True)
        refs(t, t.path("a.zarr"), js)
        refs(t, t.path("a.zarr"), pq)
        for store in (from_json(js), from_parquet(pq)):
            found = zarr.open_group(store, mode="r")
            assert np.array_equal(found["v"][:], data) and np.array_equal(found["long"][:],
                                                                          data[0])
        with open(js) as f:
            assert json.load(f)["refs"]["v/0.0"] == [t.path(f"a.zarr/v/0{sep}0")]
        shutil.rmtree(t.path("a.zarr"))
    with zipfile.ZipFile(t.path("z.zip"), "w") as z:
        for key, value in two_arrays(data).items():
            deflate = zipfile.ZIP_DEFLATED if key.startswith("small") else zipfile.ZIP_STORED
            z.writestr(key, value, deflate)
    refs(t, t.path("z.zip"), t.path("z.json"), fails="is deflated")
    refs(t, "-o", "inline", t.path("z.zip"), t.path("z.json"))
    found = zarr.open_group(from_json(t.path("z.json")), mode="r")
    assert np.array_equal(found["v"][:], data) and np.array_equal(found["small"][:], data)
    equal_views(t, t.path("z.json"), t.path("z.zip"))


def two_arrays(data):
    store = {}
    root = zarr.open_group(store, mode="w")
    root.create_dataset("v", data=data, chunks=(5, 30))
    root.create_dataset("small", data=data, chunks=(20, 30))
    return store


def test_shards(t):
    """Inner chunks of a shard, from a tree that our own view makes of a file."""
    file = t.path("s.h5")
    with h5py.File(file, "w") as f:
        f.create_dataset("v", data=np.arange(4000, dtype="f4").reshape(40, 100), chunks=(10, 10))
    with t.mount(file, "zarr_format=3", "shards=4K") as m:
        shutil.copytree(m.path, t.path("s.zarr"))
    refs(t, t.path("s.zarr"), t.path("s.json"))
    with open(t.path("s.json")) as f:
        doc = json.load(f)["refs"]
    assert len(doc["v/0.0"]) == 3 and doc["v/0.0"][0] == doc["v/0.1"][0]
    found = zarr.open_group(from_json(t.path("s.json")), mode="r")
    assert np.array_equal(found["v"][:].ravel(), np.arange(4000, dtype="f4"))


def test_kerchunks_own(t):
    """As kerchunk's documentation writes them: templates, base64, version 0, objects for texts."""
    file = t.path("a.bin")
    data = np.arange(100, dtype="<i4")
    with open(file, "wb") as f:
        f.write(b"head" + data.tobytes())
    with open(t.path("whole.bin"), "wb") as f:
        f.write(data[75:].tobytes())
    array = {"chunks": [25], "compressor": None, "dtype": "<i4", "fill_value": 7, "filters": None,
             "order": "C", "shape": [125], "zarr_format": 2}
    v0 = {
        ".zgroup": json.dumps({"zarr_format": 2}),
        "v/.zarray": json.dumps(array),
        "v/.zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["x"]}),
        "v/0": [file, 4, 100],
        "v/1": ["a.bin", 104, 100],
        "v/2": "base64:" + base64.b64encode(data[50:75].tobytes()).decode(),
        "v/3": ["file://" + t.path("whole.bin")],
    }
    v1 = {"version": 1, "templates": {"u": file, "dir": t.tmp}, "gen": [],
          "refs": dict(v0, **{"v/0": ["{{u}}", 4, 100], "v/3": ["{{ dir }}/whole.bin"],
                              "v/.zarray": array})}

    def check(mnt):
        v = zarr.open_group(mnt, mode="r")["v"]
        assert np.array_equal(v[:100], data) and (v[100:] == 7).all()
    for name, doc in (("v0.json", v0), ("v1.json", v1)):
        with open(t.path(name), "w") as f:
            json.dump(doc, f, indent=1)
        with t.mount(t.path(name), "view=zarr") as m:
            t.call(check, m.path)

    def native(mnt):
        with netCDF4.Dataset(mnt + "/" + os.listdir(mnt)[0]) as f:
            f.set_auto_mask(False)
            assert np.array_equal(f["v"][:100], data)
    with t.mount(t.path("v0.json")) as m:
        t.call(native, m.path)


def status_of(path):
    try:
        with open(path, "rb") as f:
            f.read()
    except OSError as error:
        return error.errno
    return 0


# SECURITY S31
def test_reach(t):
    """What a document may refer to. What it may not is an error, and no fill value."""
    os.mkdir(t.path("docs"))
    with open(t.path("secret"), "wb") as f:
        f.write(bytes(100))
    array = {"chunks": [25], "compressor": None, "dtype": "<i4", "fill_value": 7, "filters": None,
             "order": "C", "shape": [100], "zarr_format": 2}
    doc = {".zgroup": '{"zarr_format": 2}', "v/.zarray": json.dumps(array),
           "v/0": [t.path("secret"), 0, 100], "v/1": ["../secret", 0, 100],
           "v/2": ["file://" + t.path("secret"), 0, 100], "v/3": ["in", 0, 100]}
    with open(t.path("docs/in"), "wb") as f:
        f.write(bytes(100))
    with open(t.path("docs/r.json"), "w") as f:
        json.dump(doc, f)

    def check(mnt, want):
        got = [status_of(f"{mnt}/v/{i}") for i in range(4)]
        assert got == want, (got, want)
    with t.mount(t.path("docs/r.json"), "view=zarr") as m:
        t.call(check, m.path, [5, 5, 5, 0])
    with t.mount(t.path("docs/r.json"), "view=zarr", "external_root=" + t.tmp) as m:
        t.call(check, m.path, [0, 0, 0, 0])
    with WebServer(t.tmp) as web:
        with t.mount(web.url + "/docs/r.json", "view=zarr", "external_root=" + t.tmp) as m:
            t.call(check, m.path, [5, 5, 5, 5])


def test_web(t):
    """Of things on a web server; the references and what they lead to are both there."""
    file = t.path("a.h5")
    make_h5(file)
    with h5py.File(file, "a") as f:
        del f["grows"]
    with WebServer(t.tmp) as web:
        for name in ("r.json", "r.parq"):
            refs(t, web.url + "/a.h5", t.path(name))
            equal_views(t, t.path(name), file)
            equal_views(t, f"{web.url}/{name}", file)
        refs(t, "-o", f"address={web.url}/a.h5", file, t.path("s.json"))
        with open(t.path("r.json")) as f, open(t.path("s.json")) as g:
            assert f.read() == g.read()
        refs(t, web.url + "/a.h5?token=secret", t.path("q.json"), fails="query")


def test_s3(t):
    """Of an object, and of a tree, in a bucket that wants signatures. A key is as it is."""
    file = t.path("a.h5")
    make_h5(file)
    with h5py.File(file, "a") as f:
        del f["grows"]
    with open(file, "rb") as f:
        objects = {"some folder/a.h5": f.read()}
    store = {}
    zarr.open_group(store, mode="w").create_dataset("v", data=np.arange(50), chunks=(5,))
    objects.update(("t.zarr/" + k, bytes(v)) for k, v in store.items())
    os.environ.update(AWS_ACCESS_KEY_ID="AKID", AWS_SECRET_ACCESS_KEY="secret", HOME=t.tmp)
    with S3Server(keys={"AKID": "secret"}, buckets={"b": objects}) as s3:
        where = "endpoint=" + s3.url
        refs(t, "-o", where, "s3://b/some%20folder/a.h5", t.path("r.json"))
        with open(t.path("r.json")) as f:
            assert json.load(f)["refs"]["contiguous/0"][0] == "s3://b/some folder/a.h5"
        for scheme in "gs", "gs3":
            refs(t, "-o", where, scheme + "://b/some%20folder/a.h5", t.path(scheme + ".json"))
            with open(t.path(scheme + ".json")) as f:
                assert json.load(f)["refs"]["contiguous/0"][0] == "gs://b/some folder/a.h5"
        equal_views(t, t.path("r.json"), file, where)
        refs(t, "-o", where, "s3://b/t.zarr", t.path("t.parq"))
        rows = parquet.rows(t.path("t.parq/v/refs.0.parq"))
        assert rows["path"] == [f"s3://b/t.zarr/v/{i}" for i in range(10)]
        with t.mount(t.path("t.parq"), "view=zarr", where) as m:
            t.call(lambda: np.testing.assert_array_equal(
                zarr.open_group(m.path, mode="r")["v"][:], np.arange(50)))


def test_sample(t):
    root = corpus()
    if not root:
        raise Skip("no corpus")
    for i, path in enumerate(SAMPLE):
        path, star, _ = path.partition("*")
        full = os.path.join(root, path)
        if star:
            full += sorted(os.listdir(full))[0]
        if not os.path.exists(full):
            print("no", path)
            continue
        out = t.path(f"r{i}." + ("json", "parq")[i % 2])
        refs(t, "-o", "inline", full, out)
        equal_views(t, out, full, "external_root=" + root)


def test_memory(t):
    """Many chunks: what is written grows, memory does not."""
    with h5py.File(t.path("big.h5"), "w") as f:
        f.create_dataset("v", data=np.zeros(120000, "u1"), chunks=(1,))
    peaks = []
    for name in ("big.json", "big.parq"):
        status, out, err = t.run("/usr/bin/python3", "-c",
                                 "import resource, subprocess, sys\n"
                                 "s = subprocess.call(sys.argv[1:])\n"
                                 "u = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                                 "print(u.ru_maxrss)\nsys.exit(s)\n",
                                 t.binary, "refs", t.path("big.h5"), t.path(name))
        assert status == 0, err
        peaks.append(int(out.splitlines()[-1]))
    print("KiB at most:", peaks)
    assert t.sanitized or max(peaks) < 48 << 10, peaks
    with t.mount(t.path("big.parq"), "view=zarr") as m:
        def check(mnt):
            assert os.path.getsize(mnt + "/v/119999") == 1
            assert status_of(mnt + "/v/77777") == 0
        t.call(check, m.path)
