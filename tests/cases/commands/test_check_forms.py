# SPDX-License-Identifier: BSD-3-Clause
"""nczarrfs check in every form that a dataset has: what is whole is said to be good, and one byte
that is changed in a chunk is named with its variable and chunk, and where its bytes are."""
import json
import os

import h5py
import numpy as np

from cases.commands.test_check import flip
from cases.remote.test_s3 import KEY, KEYS, SECRET
from lib.context import Skip
from lib.s3_server import S3Server

GOOD, DAMAGED = 0, 1


def check(t, *args, status=GOOD, **env):
    got, out, err = t.run(t.binary, "check", "--json", *args, timeout=60, env=env)
    assert got == status, f"status {got}: {out}{err}"
    return json.loads(out)


def make_h5(path):
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        for name in ("v", "w"):
            f.create_dataset(name, data=rng.integers(0, 99, (40, 50)).astype("i4"),
                             chunks=(10, 25), compression="gzip")
    return path


def references(t, source):
    """Where each chunk is: {key: (file, offset, length)}; and the document that says so."""
    document = source + ".json"
    status, _, err = t.run(t.binary, "refs", source, document)
    assert status == 0, err
    with open(document) as f:
        refs = json.load(f)["refs"]
    return document, {k: v for k, v in refs.items() if isinstance(v, list)}


def named(report):
    return [(d["variable"], d["chunk"]) for d in report["damaged"]]


def test_references(t):
    """A document of references: the file that has the bytes is named"""
    source = make_h5(t.path("a.nc"))
    document, refs = references(t, source)
    got = check(t, document)
    assert got["good"] and got["chunks"] == 16, got
    _, off, length = refs["v/1.0"]
    flip(source, off + length // 2)
    got = check(t, document, status=DAMAGED)
    assert named(got) == [("/v", [1, 0])], got
    assert got["damaged"][0]["where"] == {"object": source, "offset": off, "length": length}


def test_hdf4(t):
    if "HDF4 not built in" in t.run(t.binary, "--version")[1]:
        raise Skip("HDF4 is not built in")
    try:
        from pyhdf.SD import SD, SDC
    except ImportError:
        raise Skip("python3-hdf4 is not installed") from None
    source = t.path("a.hdf")
    rng = np.random.default_rng(1)
    file = SD(source, SDC.WRITE | SDC.CREATE | SDC.TRUNC)
    for name in ("v", "w"):
        sds = file.create(name, SDC.INT32, (40, 50))
        sds.setcompress(SDC.COMP_DEFLATE, 5)
        sds[:] = rng.integers(0, 99, (40, 50)).astype("i4")
        sds.endaccess()
    file.end()
    got = check(t, source)
    assert got["good"] and got["format"] == "HDF4" and got["chunks"] == 2, got
    _, off, length = references(t, source)[1]["w/0.0"]
    flip(source, off + length // 2)
    got = check(t, source, status=DAMAGED)
    assert named(got) == [("/w", [0, 0])], got
    assert got["damaged"][0]["where"]["offset"] == off, got


def test_shards(t):
    """Zarr v3: an inner chunk, and the index of a shard, without which none of its chunks is
    known"""
    tree = t.path("a.zarr")
    status, _, err = t.run(t.binary, "convert", "-o", "shards", make_h5(t.path("a.nc")), tree)
    assert status == 0, err
    got = check(t, tree)
    assert got["good"] and got["format"] == "Zarr v3" and got["chunks"] == 16, got
    shard = os.path.join(tree, "v", "c", "0", "0")
    end = os.path.getsize(shard)
    with open(shard, "rb") as f:
        f.seek(end - 4 - 8 * 16)
        index = np.frombuffer(f.read(8 * 16), "<u8").reshape(4, 2, 2)
    off, length = map(int, index[2, 1])
    flip(shard, off + length // 2)
    got = check(t, tree, status=DAMAGED)
    assert named(got) == [("/v", [2, 1])], got
    assert got["damaged"][0]["where"] == {"object": "v/c/0/0", "offset": off, "length": length}
    flip(shard, off + length // 2)
    flip(shard, end - 20)
    got = check(t, tree, status=DAMAGED)
    assert named(got) == [("/v", [y, x]) for y in range(4) for x in range(2)], got
    assert all("index of a shard: crc32c" in d["why"] for d in got["damaged"]), got


def test_s3(t):
    """Trees and files in an object store"""
    env = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "HOME": t.tmp,
           "AWS_EC2_METADATA_DISABLED": "true"}
    source, tree = make_h5(t.path("a.nc")), t.path("a.zarr")
    refs = references(t, source)[1]
    status, _, err = t.run(t.binary, "convert", source, tree)
    assert status == 0, err
    with S3Server(KEYS) as s3:
        where = "endpoint=" + s3.url
        s3.upload("b", source, "x/a.nc")
        s3.upload("b", tree, "x/a.zarr")
        for name in ("a.nc", "a.zarr"):
            got = check(t, "-o", where, "s3://b/x/" + name, **env)
            assert got["good"] and got["chunks"] == 16, got
        _, off, length = refs["w/3.1"]
        flip(source, off + length // 2)
        key = os.path.join(tree, "w", "3.1")
        flip(key, os.path.getsize(key) // 2)
        s3.upload("b", source, "x/a.nc")
        s3.upload("b", tree, "x/a.zarr")
        got = check(t, "-o", where, "s3://b/x/a.nc", status=DAMAGED, **env)
        assert named(got) == [("/w", [3, 1])], got
        assert got["damaged"][0]["where"]["offset"] == off, got
        got = check(t, "-o", where, "s3://b/x/a.zarr", status=DAMAGED, **env)
        assert named(got) == [("/w", [3, 1])], got
        assert got["damaged"][0]["where"]["object"].endswith("w/3.1"), got
