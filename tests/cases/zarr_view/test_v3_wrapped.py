# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of shuffle, deflate and Zstandard as Blosc buffers in a Zarr v3 view: a head, then the
bytes as stored, for every filter mask; undone by numcodecs, and by hand from the stored bytes."""
import functools
import glob
import json
import os
import random
import struct
import zlib

import h5py
import numcodecs
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from gen.filters import fletcher32
from lib.context import Skip, corpus

DEFLATE, SHUFFLE, FLETCHER32, ZSTD = 1, 2, 3, 32015
OPTIONAL = 1
NAMES = {DEFLATE: "zlib", ZSTD: "zstd"}
ROWS, CHUNK = 1000, 160
TYPES = ("|u1", "<i2", "<f4", ">f4", "<f8", ">i8", "S13", "S300")
CHAINS = ((SHUFFLE, DEFLATE), (DEFLATE,), (SHUFFLE, ZSTD), (SHUFFLE, DEFLATE, FLETCHER32),
          (SHUFFLE, ZSTD, FLETCHER32))


def shuffled(data, size, undo=False):
    n = len(data) // size
    if n <= 1:
        return data
    table = np.frombuffer(data[:n * size], "u1").reshape((size, n) if undo else (n, size))
    return table.T.tobytes() + data[n * size:]


def store(data, chain, mask, size):
    for i, f in enumerate(chain):
        if mask >> i & 1:
            continue
        if f == SHUFFLE:
            data = shuffled(data, size)
        elif f == DEFLATE:
            data = zlib.compress(data, 6)
        elif f == ZSTD:
            data = numcodecs.Zstd(3).encode(data)
        else:
            data = data + struct.pack("<I", fletcher32(data))
    return data


def elements(dtype, chunk, n):
    rng = np.random.default_rng(chunk)
    if dtype[0] == "S":
        return np.array([f"{v:d}".encode() for v in rng.integers(0, 99, n)], dtype)
    return (np.arange(n) // 3 + rng.integers(0, 3, n)).astype(dtype)


def chunks_of(dtype, chain):
    """{offset: (mask, elements)}: every mask, and one chunk that was never written."""
    found = {}
    for k in range((ROWS + CHUNK - 1) // CHUNK - 1):
        found[k * CHUNK] = (k % (1 << len(chain)), elements(dtype, k, CHUNK))
    return found


def made(path):
    with h5py.File(path, "w") as f:
        for t, dtype in enumerate(TYPES):
            for c, chain in enumerate(CHAINS):
                plist = h5p.create(h5p.DATASET_CREATE)
                plist.set_chunk((CHUNK,))
                for i in chain:
                    if i == SHUFFLE:
                        plist.set_shuffle()
                    elif i == DEFLATE:
                        plist.set_deflate(6)
                    elif i == FLETCHER32:
                        plist.set_fletcher32()
                    else:
                        plist.set_filter(i, OPTIONAL, (3,))
                d = h5d.create(f.id, b"v%d_%d" % (t, c), h5t.py_create(np.dtype(dtype)),
                               h5s.create_simple((ROWS,)), plist)
                size = np.dtype(dtype).itemsize
                for at, (mask, values) in chunks_of(dtype, chain).items():
                    d.write_direct_chunk((at,), store(values.tobytes(), chain, mask, size), mask)


def large(path):
    """Chunks of several reads."""
    rng = np.random.default_rng(3)
    with h5py.File(path, "a") as f:
        d = f.create_dataset("large", (1500000,), "<f8", chunks=(600000,), shuffle=True,
                             compression=1)
        d[:1300000] = rng.random(1300000)


def undo(stored, chain, mask, size):
    for i, f in reversed(list(enumerate(chain))):
        if mask >> i & 1:
            continue
        if f == FLETCHER32:
            stored = stored[:-4]
        elif f == SHUFFLE:
            stored = shuffled(stored, size, True)
        else:
            stored = (zlib.decompress if f == DEFLATE else numcodecs.Zstd().decode)(stored)
    return bytes(stored)


def document(directory):
    with open(directory + "/zarr.json", encoding="utf-8") as f:
        return json.load(f)


def decoded(meta, data):
    """What numcodecs makes of a chunk of such an array."""
    for codec in reversed(meta["codecs"]):
        config = dict(codec.get("configuration", {}))
        if codec["name"] == "bytes":
            return data
        if codec["name"] == "blosc":
            config["shuffle"] = ["noshuffle", "shuffle", "bitshuffle"].index(config["shuffle"])
            assert config.pop("typesize") >= 1
        config.pop("checksum", None)
        data = bytes(numcodecs.get_codec(dict(config, id=codec["name"])).decode(data))
    raise AssertionError("no codec 'bytes'")


def chunk_path(directory, meta, *index):
    """The file of a chunk; characters of texts may be an axis of their own."""
    more = len(meta["shape"]) - len(index)
    return directory + "/c/" + "/".join(str(i) for i in index + (0,) * more)


def pieces(path, whole):
    """Reads that begin in a head, behind it, and across its end."""
    rng = random.Random(len(whole))
    fd = os.open(path, os.O_RDONLY)
    try:
        assert os.fstat(fd).st_size == len(whole), path
        for _ in range(6):
            at, n = rng.randrange(0, min(40, len(whole))), rng.randrange(0, len(whole) + 20)
            assert os.pread(fd, n, at) == whole[at:at + n], (path, at, n)
    finally:
        os.close(fd)


def chain_of(d):
    plist = d.id.get_create_plist()
    return tuple(plist.get_filter(i)[0] for i in range(plist.get_nfilters()))


def check(source, mount):
    """Every chunk of a file against its stored bytes; how many were wrapped."""
    wrapped = 0
    with h5py.File(source, "r") as f, open(source, "rb") as raw:
        names = []
        f.visititems(lambda name, d: names.append(name) if isinstance(d, h5py.Dataset) else None)
        for name in names:
            d, chain = f[name], chain_of(f[name])
            meta = document(f"{mount}/{name}")
            blosc = [c["configuration"] for c in meta["codecs"] if c["name"] == "blosc"]
            body = chain[:-1] if chain[-1:] == (FLETCHER32,) else chain
            size = d.dtype.itemsize
            fits = body and body[-1] in NAMES and body != (ZSTD,) and (
                SHUFFLE not in body or size <= 255)
            assert bool(blosc) == bool(fits), (name, chain, meta["codecs"])
            if blosc:
                shuffle = SHUFFLE in body and size > 1
                assert blosc[0]["cname"] == NAMES[body[-1]] and blosc[0]["blocksize"] == 0
                assert blosc[0]["shuffle"] == ("shuffle" if shuffle else "noshuffle"), name
                assert not shuffle or blosc[0]["typesize"] == size, name
            for i in range(d.id.get_num_chunks() if chain else 0):
                info = d.id.get_chunk_info(i)
                raw.seek(info.byte_offset)
                stored = raw.read(info.size)
                key = tuple(o // c for o, c in zip(info.chunk_offset, d.chunks))
                path = chunk_path(f"{mount}/{name}", meta, *key)
                with open(path, "rb") as g:
                    shown = g.read()
                want = undo(stored, chain, info.filter_mask, size)
                assert decoded(meta, shown) == want, (name, key, info.filter_mask)
                pieces(path, shown)
                if not blosc:
                    continue
                if body != chain and not info.filter_mask >> len(body) & 1:
                    stored = stored[:-4]
                plain = info.filter_mask & ((1 << len(body)) - 1) == (1 << len(body)) - 1
                if SHUFFLE in body and size == 1 and info.filter_mask >> len(body) - 1 & 1:
                    plain = True  # nothing to shuffle
                assert shown[16 if plain else 24:] == stored, (name, key, info.filter_mask)
                wrapped += 1
    return wrapped


def check_made(source, mount):
    assert check(source, mount) > 150
    for t, dtype in enumerate(TYPES):  # the judge's own decoding, and the chunk nobody wrote
        for c, chain in enumerate(CHAINS):
            directory = f"{mount}/v{t}_{c}"
            meta = document(directory)
            for at, (mask, values) in chunks_of(dtype, chain).items():
                with open(chunk_path(directory, meta, at // CHUNK), "rb") as f:
                    assert decoded(meta, f.read()) == values.tobytes(), (dtype, chain, mask)
            last = chunk_path(directory, meta, (ROWS - 1) // CHUNK)
            if os.path.exists(last):
                with open(last, "rb") as f:
                    assert decoded(meta, f.read()) == bytes(CHUNK * np.dtype(dtype).itemsize)


def test_wrapped(t):
    path = t.path("made.h5")
    made(path)
    large(path)
    with t.mount(path, "zarr_format=3") as m:
        t.call(functools.partial(check_made, path, m.path))
    with t.mount(path, "zarr_format=3", "filter=keep") as m:
        codecs = [c["name"] for c in document(m.path + "/v4_0")["codecs"]]
        assert codecs == ["bytes", "blosc"], codecs
    code, out, err = t.run(t.binary, "info", "-v", "-o", "zarr_format=3", path)
    assert code == 0 and "shuffle, deflate pass through as blosc" in out, out + err
    assert "shuffle, deflate pass through as blosc; fletcher32 is removed" in out, out


def same_length(path):
    """A chunk that zlib makes no shorter and no longer: Blosc would not decompress it."""
    rng = np.random.default_rng(5)
    for zeros in range(64):
        data = rng.integers(0, 256, 1000, dtype="u1")
        data[:zeros] = 0
        stored = zlib.compress(data.tobytes(), 9)
        if len(stored) == 1000:
            break
    else:
        raise AssertionError("no such chunk")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", (2000,), "u1", chunks=(1000,), compression=9)
        d.id.write_direct_chunk((0,), stored, 0)
        d.id.write_direct_chunk((1000,), zlib.compress(bytes(1000)), 0)
    return data.tobytes()


def test_same_length(t):
    path = t.path("same.h5")
    want = same_length(path)
    with t.mount(path, "zarr_format=3") as m:
        meta = document(m.path + "/v")
        assert os.stat(m.path + "/v/c/0").st_size == 1016
        for k, data in enumerate((want, bytes(1000))):
            with open(f"{m.path}/v/c/{k}", "rb") as f:
                assert decoded(meta, f.read()) == data
            with open(f"{m.path}/v/c/{k}", "rb") as f:
                pieces(f.name, f.read())


def check_rule(path, mount, cname):
    with h5py.File(path, "r") as f:
        want = f["v"][()]
    meta = document(mount + "/v")
    assert meta["codecs"][1]["configuration"]["cname"] == cname, meta
    n = meta["chunk_grid"]["configuration"]["chunk_shape"][0]
    for at in range(0, len(want), n):
        with open(f"{mount}/v/c/{at // n}", "rb") as f:
            data = decoded(meta, f.read())
        assert data[:len(want[at:at + n]) * 4] == want[at:at + n].tobytes()


def test_rules(t):
    path = t.path("rule.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(9000, dtype="<i4"), chunks=(1000,), shuffle=True,
                         compression=4)
    for spec, cname in (("shuffle|deflate,9", "zlib"), ("shuffle|zstd,5", "zstd")):
        with t.mount(path, "zarr_format=3", f"filter={spec}") as m:
            t.call(functools.partial(check_rule, path, m.path, cname))


def test_corpus(t):
    """Files of others that have such chunks; two of them with masks."""
    if not corpus():
        raise Skip("no corpus")
    found = sorted(glob.glob(corpus() + "/hdf5/fsspec-kerchunk/hdf5_mali_chunk*.h5"))
    assert len(found) >= 2, found
    for path in found:
        with t.mount(path, "zarr_format=3") as m:
            t.call(functools.partial(check, path, m.path))
