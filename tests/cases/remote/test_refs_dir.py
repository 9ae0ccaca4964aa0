# SPDX-License-Identifier: BSD-3-Clause
"""References to a directory of datasets: one hierarchy with a group for each dataset, the same in
each run, in JSON and in Parquet. A dataset that cannot have any is named, and leaves nothing."""
import glob
import json
import os
import pty
import re
import shutil
import subprocess
import zipfile

import h5py
import netCDF4
import numpy as np
import zarr

from cases.remote.test_refs import (by_fsspec, each_array, from_json, from_parquet, fsspec, refs,
                                    two_arrays)
from lib import trees
from lib.s3_server import S3Server


def make_h5(path, seed):
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w") as f:
        f.create_dataset("t", data=rng.random((20, 30)), chunks=(10, 10), compression="gzip")
        f.create_dataset("g/n", data=rng.integers(0, 99, 50).astype("i2"))
        f.attrs["seed"] = seed


def make_classic(path):
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as f:
        f.createDimension("x", 5)
        f.createVariable("x", "i2", ("x",))[:] = range(5)


def make_archive(top):
    """Datasets of all kinds, and files that are none. Returns the native files by their group."""
    for d in ("", "/2020", "/2020/deep er", "/2021", "/empty", "/notes", "/2020/none"):
        os.mkdir(top + d)
    with open(top + "/notes/a.txt", "w") as f:
        f.write("none")
    native = {}
    for i, name in enumerate(("b.h5", "2020/a.nc", "2020/deep er/ä b.nc", "2021/a.nc")):
        make_h5(f"{top}/{name}", i)
        native[name] = f"{top}/{name}"
    make_classic(top + "/2020/c.nc")
    data = np.arange(600.0).reshape(20, 30)
    with zipfile.ZipFile(top + "/2021/z.zarr.zip", "w") as z:
        for key, value in two_arrays(data).items():
            z.writestr(key, value)
    zarr.open_group(top + "/t.zarr", "w").create_dataset("v", data=data, chunks=(7, 30))
    zarr.save_array(top + "/2021/alone.zarr", data)
    with open(top + "/notes.txt", "w") as f:
        f.write("none")
    os.symlink("b.h5", top + "/link.h5")
    return native


GROUPS = ["", "2020", "2020/deep er", "2021"]
DATASETS = ["2020/a.nc", "2020/c.nc", "2020/deep er/ä b.nc", "2021/a.nc", "2021/alone.zarr",
            "2021/z.zarr.zip", "b.h5", "t.zarr"]


def below(store, group):
    return {k[len(group) + 1:]: v for k, v in store.items() if k.startswith(group + "/")}


def equal_native(store, native):
    root = zarr.open_group(store, mode="r")
    for group, file in native.items():
        n = 0
        for name, want in each_array(file):
            assert np.array_equal(root[group + "/" + name][()], want), (group, name)
            n += 1
        assert n == 2
        assert root[group].attrs["seed"] == h5py.File(file)["/"].attrs["seed"]
    data = np.arange(600.0).reshape(20, 30)
    for name in ("2021/z.zarr.zip/v", "2021/z.zarr.zip/small", "t.zarr/v", "2021/alone.zarr/alone"):
        assert np.array_equal(root[name][:], data), name
    assert np.array_equal(root["2020/c.nc/x"][:], range(5))


# SEMANTICS K12
def test_groups(t):
    top = t.path("data")
    native = make_archive(top)
    refs(t, top + "/b.h5", top + "/old.json")  # only repeats b.h5
    refs(t, top + "/b.h5", top + "/old.parq")
    js, pq = t.path("all.json"), t.path("all.parq")
    out = refs(t, "--json", top, js)
    assert json.loads(out) == {"source": top, "references": js, "format": "json",
                               "datasets": len(DATASETS), "left_out": 0,
                               "unreadable": 0}, out
    assert f"references to {len(DATASETS)} datasets of {top}" in refs(t, top, pq)
    for store in (from_json(js), from_parquet(pq)):
        groups = sorted(k[:-7].rstrip("/") for k in store if k.endswith(".zgroup"))
        assert set(groups) - set(GROUPS) <= {d + g for d in DATASETS for g in ("", "/g")}, groups
        assert set(GROUPS) <= set(groups)
        assert ".zmetadata" not in store
        t.call(equal_native, store, native)
    for name in DATASETS:  # each is what it is alone
        alone = t.path("one.json")
        refs(t, f"{top}/{name}", alone)
        want = from_json(alone)
        want.pop(".zmetadata")
        assert below(from_json(js), name) == want, name
    if fsspec:
        t.call(by_xarray, js, native)
    assert not glob.glob(t.path("*nczarrfs*")), "something was left behind"


def by_xarray(js, native):
    import xarray
    for group, file in native.items():
        with xarray.open_dataset("reference://", engine="zarr", group=group, backend_kwargs={
                "consolidated": False, "storage_options": {"fo": js}}) as ds:
            with h5py.File(file) as f:
                assert np.array_equal(ds.t.values, f["t"][()])


def test_same_bytes(t):
    """Whatever the number of threads; and mounted, they are the datasets."""
    top = t.path("data")
    native = make_archive(top)
    for i in range(30):
        shutil.copy(top + "/b.h5", f"{top}/2020/copy{i}.h5")
    texts = {refs(t, "-o", f"decode_threads={n}", top) for n in (1, 2, 16)}
    assert len(texts) == 1
    seen = []
    for n in (1, 16):
        refs(t, "-o", f"decode_threads={n}", top, t.path(f"{n}.parq"))
        seen.append(trees.seen(t.path(f"{n}.parq")))
    assert seen[0] == seen[1]
    refs(t, top, t.path("a.json"))
    for name in ("a.json", "16.parq"):
        with t.mount(t.path(name), "view=zarr") as m:
            t.call(equal_native, zarr.DirectoryStore(m.path), native)


def make_late(path):
    """Many chunks, of which the last cannot be referenced: it fails after it wrote a lot."""
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", data=np.zeros(20000, "u1"), chunks=(1,), compression="gzip")
        d.id.write_direct_chunk((19999,), b"x", filter_mask=1)


# SEMANTICS K13
def test_unreadable(t):
    """Datasets without references: all are named, and nothing is written, or they are left out."""
    top = t.path("data")
    make_archive(top)
    js, pq = t.path("a.json"), t.path("a.parq")
    refs(t, top, js)
    with open(js) as f:
        good = f.read()
    refs(t, top, pq)
    seen = trees.seen(pq)
    shutil.rmtree(pq)
    with open(top + "/2020/b.nc", "w") as f:
        f.write("\x89HDF\r\n\x1a\nbut no more")
    with open(top + "/empty.nc", "w") as f:
        pass
    make_late(top + "/2020/deep er/late.h5")
    for out in (js, pq):
        err = refs(t, top, out, fails=f"3 of {len(DATASETS) + 3} datasets")
        for name in ("2020/b.nc", "empty.nc", "2020/deep er/late.h5"):
            assert err.count(f"'{top}/{name}'") == 1, err
        assert "unsupported=skip" in err
    with open(js) as f:
        assert f.read() == good, "the older references are replaced"
    assert not os.path.exists(pq) and not glob.glob(t.path("*nczarrfs*"))
    status, out, err = t.run(t.binary, "refs", "--json", "-o", "unsupported=skip", top, js)
    assert status == 0 and err.count("left out: ") == 3, err
    assert json.loads(out)["left_out"] == 3 and json.loads(out)["datasets"] == len(DATASETS)
    with open(js) as f:
        assert f.read() == good
    refs(t, "-o", "unsupported=skip", top, pq)
    assert trees.seen(pq) == seen
    # a pipe cannot be cut: it has no end that a reader takes for one
    status, out, err = t.run(t.binary, "refs", "-o", "unsupported=skip", top)
    assert status == 1 and not out.rstrip().endswith("}}"), err
    for path in "bad", "bare":
        os.mkdir(t.path(path))
    shutil.copy(top + "/empty.nc", t.path("bad"))
    refs(t, "-o", "unsupported=skip", t.path("bad"), t.path("none.json"),
         fails="no dataset is left")
    refs(t, t.path("bare"), t.path("none.json"), fails="no datasets found")
    assert not os.path.exists(t.path("none.json"))


def test_unreadable_directory(t):
    """It may have datasets: it is counted, and an error unless it may be left out."""
    top, js = t.path("data"), t.path("a.json")
    os.makedirs(top + "/d" * 101)  # deeper than is followed, also for root
    make_h5(top + "/good.h5", 1)
    err = refs(t, top, js, fails="no references are written, because 1 files or directories")
    assert "unsupported=skip" in err and not os.path.exists(js), err
    assert "(1 files or directories could not be read)" in refs(
        t, "-o", "unsupported=skip", top, js)
    status, out, err = t.run(t.binary, "refs", "--json", "-o", "unsupported=skip", top, js)
    got = json.loads(out)
    assert (status, got["datasets"], got["left_out"], got["unreadable"]) == (0, 1, 0, 1), out
    assert err.count("/d/d': too many levels") == 1, err


def test_addresses(t):
    top = t.path("data")
    make_archive(top)
    for given, begin, name in (("s3://b/p/", "s3://b/p/", "2020/deep er/ä b.nc"),
                               ("https://h/p", "https://h/p/", "2020/deep%20er/%C3%A4%20b.nc")):
        refs(t, "-o", "address=" + given, top, t.path("a.json"))
        with open(t.path("a.json")) as f:
            doc = json.load(f)["refs"]
        assert doc["2020/deep er/ä b.nc/t/0.0"][0] == begin + name
        assert doc["t.zarr/v/0.0"] == [begin + "t.zarr/v/0.0"]
        assert all(v[0].startswith(begin) for v in doc.values() if isinstance(v, list))


def in_bucket(top, prefix):
    """The objects that a copy of a directory is, with the empty ones that stand for folders."""
    objects = {}
    for folder, _, names in os.walk(top):
        objects[prefix + os.path.relpath(folder, top) + "/"] = b""
        for name in names:
            path = f"{folder}/{name}"
            if not os.path.islink(path):
                with open(path, "rb") as f:
                    objects[prefix + os.path.relpath(path, top)] = f.read()
    return objects


# SEMANTICS K12
def test_bucket(t):
    """A folder of a bucket has the references of the same directory, whatever the number of
    threads; a dataset that cannot be read is named, and credentials are not written."""
    top = t.path("data")
    native = make_archive(top)
    shutil.copytree(top + "/t.zarr", top + "/2020/stores/plain")  # only its content says what it is
    n = len(DATASETS) + 1
    os.environ.update(AWS_ACCESS_KEY_ID="AKID", AWS_SECRET_ACCESS_KEY="secret", HOME=t.tmp)
    objects = in_bucket(top, "all of it/")
    with S3Server(keys={"AKID": "secret"}, buckets={"b": objects}) as s3:
        s3.page = 3
        where = "endpoint=" + s3.url
        refs(t, "-o", "address=s3://b/all of it", top, t.path("want.json"))
        with open(t.path("want.json")) as f:
            want = f.read()
        for more in "", ",decode_threads=1":
            out = refs(t, "-o", where + more, "s3://b/all%20of%20it/", t.path("got.json"))
            assert f"references to {n} datasets of s3://b/all" in out, out
            with open(t.path("got.json")) as f:
                assert f.read() == want
        assert "AKID" not in want and "secret" not in want
        refs(t, "-o", "address=https://h/top", "-o", where, "s3://b", t.path("whole.json"))
        with open(t.path("whole.json")) as f:
            doc = json.load(f)["refs"]
        assert doc["all of it/b.h5/t/0.0"][0] == "https://h/top/all%20of%20it/b.h5"
        refs(t, "-o", where, "s3://b/all%20of%20it", t.path("got.parq"))
        with t.mount(t.path("got.parq"), "view=zarr", where) as m:
            t.call(equal_native, m.path, native)

        refs(t, "-o", where, "s3://b/all%20of%20it/notes", t.path("no.json"), fails="no datasets")
        refs(t, "-o", where, "s3://b/nothing", t.path("no.json"), fails="not found")
        s3.fault = lambda h: "list-type" in h.path and (h.say(403), True)[1]
        refs(t, "-o", where, "s3://b", t.path("no.json"), fails="access denied")
        s3.fault = lambda h: "2020%2Fstores%2F" in h.path and (h.say(403), True)[1]
        refs(t, "-o", where, "s3://b/all%20of%20it", t.path("no.json"),
             fails="folder '2020/stores': 's3://b/all%20of%20it': access denied")
        s3.fault = None
        with open(t.path("bad.nc"), "w") as f:
            f.write("none")
        s3.upload("b", t.path("bad.nc"), "all of it/2020/bad.nc")
        err = refs(t, "-o", where, "s3://b/all%20of%20it", t.path("no.json"),
                   fails=f"1 of {n + 1} datasets")
        assert "s3://b/all%20of%20it/2020/bad.nc" in err and not os.path.exists(t.path("no.json"))
        refs(t, "-o", where + ",unsupported=skip", "s3://b/all%20of%20it", t.path("got.json"))
        with open(t.path("got.json")) as f:
            assert f.read() == want


def test_names(t):
    """Names that no key can have, and the output in the directory itself."""
    top = t.path("data")
    os.mkdir(top)
    make_h5(top + "/good.h5", 1)
    make_h5(top + "/.zattrs", 2)
    with open(os.fsencode(top) + b"/\xff.h5", "wb") as f, open(top + "/good.h5", "rb") as g:
        f.write(g.read())
    err = refs(t, top, top + "/all.json", fails="2 of 3 datasets")
    assert "metadata file of Zarr" in err and "UTF-8" in err, err
    for _ in range(2):
        refs(t, "-o", "unsupported=skip", top, top + "/all.json")
        with open(top + "/all.json") as f:
            assert {k.split("/")[0] for k in json.load(f)["refs"]} == {".zgroup", "good.h5"}
    if fsspec:
        with open(top + "/all.json") as f:
            doc = json.load(f)["refs"]
        with open(t.path("one.json"), "w") as f:
            json.dump({k[len("good.h5/"):]: v for k, v in doc.items() if "/" in k}, f)
        t.call(by_fsspec, t.path("one.json"), top + "/good.h5")


def on_terminal(t, *args):
    leader, follower = pty.openpty()
    p = subprocess.Popen([t.binary, "refs", *args], stdin=subprocess.DEVNULL, stdout=follower,
                         stderr=follower, env={**os.environ, "TERM": "xterm"})
    os.close(follower)
    text = b""
    try:
        while piece := os.read(leader, 65536):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert p.wait(60 * t.slow) == 0, text
    return text.decode()


def test_terminal(t):
    """How far it is, on a terminal only; and a failure has a line of its own."""
    os.mkdir(t.path("data"))
    for i in range(3):
        make_h5(t.path(f"data/{i}.h5"), i)
    with open(t.path("data/bad.nc"), "w") as f:
        f.write("CDF\1")
    text = on_terminal(t, "-o", "unsupported=skip", t.path("data"), t.path("a.json"))
    assert re.search(r"\r\[[=> ]{24}\] +\d+ %  \d+ datasets, ", text), text
    assert re.search(r"(^|\n|\033\[K)nczarrfs: warning: left out: '[^']*/bad.nc'", text), text
    assert text.rstrip().endswith("written"), text
    text = on_terminal(t, t.path("data/1.h5"), t.path("b.json"))
    assert re.search(r"\r\[[=> ]{24}\] +\d+ %  \d+ chunks, ", text), text
