# SPDX-License-Identifier: BSD-3-Clause
"""Files of a writable tree keep the form in which their writer made them, array by array, while
commits come in between: the names of chunks, and the bytes of a chunk that is being read."""
import errno
import json
import os
import struct
import subprocess
import zlib

import netCDF4
import numpy as np
import zarr
from numcodecs import Blosc

from clients import shards
from lib import mounts
from lib.context import eventually_passes

SLOW = "commit_delay=100000"  # commits come where the test asks for them


def sync(mnt):
    subprocess.run(["sync", mnt], check=True)


def files(path):
    """The names of an array's chunks."""
    found = [os.path.relpath(os.path.join(d, f), path)
             for d, _, names in os.walk(path) for f in names]
    return sorted(f for f in found if not f.endswith((".zarray", ".zattrs", "zarr.json")))


def document(path, name=".zarray"):
    with open(os.path.join(path, name)) as f:
        return json.load(f)


DATA = np.arange(1, 6 * 8 + 1, dtype="i4").reshape(6, 8)
CUBE = np.arange(1, 2 * 3 * 4 + 1, dtype="f8").reshape(2, 3, 4)
NESTED, FLAT = zarr.NestedDirectoryStore, zarr.DirectoryStore


def make(store, data, chunks, **how):
    z = zarr.create(store=store, shape=data.shape, chunks=chunks, dtype=data.dtype, fill_value=0,
                    **how)
    name = os.path.basename(str(store.path))
    z.attrs["_ARRAY_DIMENSIONS"] = [f"{name}_{k}" for k in range(data.ndim)]
    z[...] = data
    return z


# ---- separators ----

def write_separators(mnt):
    nested = make(NESTED(mnt + "/nested"), DATA, (2, 3))
    flat = make(FLAT(mnt + "/flat"), DATA, (2, 3), compressor=None)
    make(zarr.storage.FSStore(mnt + "/cube", dimension_separator="/"), CUBE, (1, 2, 2))
    make(NESTED(mnt + "/line"), DATA[0], (3,))
    make(NESTED(mnt + "/scalar"), np.float64(7), ())
    names = {n: files(f"{mnt}/{n}") for n in ("nested", "flat", "cube", "line", "scalar")}
    assert names["nested"] == [f"{i}/{j}" for i in range(3) for j in range(3)], names
    assert names["flat"] == [f"{i}.{j}" for i in range(3) for j in range(3)], names
    assert names["cube"][0] == "0/0/0" and names["line"] == ["0", "1", "2"], names
    for _ in range(2):
        sync(mnt)
        assert {n: files(f"{mnt}/{n}") for n in names} == names
        assert document(mnt + "/nested")["dimension_separator"] == "/"
        assert "dimension_separator" not in document(mnt + "/flat")
        nested[1] = flat[1] = DATA[1] + 100     # by arrays that were opened before the commit
    assert not os.path.exists(mnt + "/nested/0.0") and not os.path.exists(mnt + "/flat/0/0")
    return names


def grow(mnt):
    """zarr-python 2.13 leaves dimension_separator out of the document when it resizes an array."""
    for commit in (False, True):
        z = make(NESTED(f"{mnt}/grown{commit:d}"), DATA, (2, 3))
        if commit:
            sync(mnt)
        z.append(DATA + 50)
        sync(mnt)
        assert (z[:] == np.append(DATA, DATA + 50, axis=0)).all()
        assert document(f"{mnt}/grown{commit:d}")["dimension_separator"] == "/"


def change(mnt):
    group = zarr.open_group(mnt, "a")
    os.makedirs(mnt + "/deep")
    with open(mnt + "/deep/.zgroup", "w") as f:
        f.write('{"zarr_format": 2}')
    os.rename(mnt + "/nested", mnt + "/deep/moved")
    sync(mnt)
    assert files(mnt + "/deep/moved") == [f"{i}/{j}" for i in range(3) for j in range(3)]
    os.unlink(mnt + "/deep/moved/2/1")
    os.unlink(mnt + "/flat/2.1")
    sync(mnt)
    assert not group["flat"][4:, 3:6].any() and not group["deep/moved"][4:, 3:6].any()
    make(FLAT(mnt + "/other"), DATA, (2, 3))
    sync(mnt)
    make(NESTED(mnt + "/other"), DATA + 1, (2, 3), overwrite=True)    # the other way round
    sync(mnt)
    assert files(mnt + "/other") == [f"{i}/{j}" for i in range(3) for j in range(3)]
    meta = document(mnt, ".zmetadata")["metadata"]
    said = {k: v.get("dimension_separator", ".") for k, v in meta.items()
            if k.endswith(".zarray") and len(v["shape"]) > 1}
    assert said == {"deep/moved/.zarray": "/", "flat/.zarray": ".", "cube/.zarray": "/",
                    "other/.zarray": "/", "grown0/.zarray": "/", "grown1/.zarray": "/"}, said


def check_separators(file):
    want = DATA.copy()
    want[1] += 100
    want[4:, 3:6] = 0
    with netCDF4.Dataset(file) as d:
        d.set_auto_mask(False)
        assert (d["flat"][:] == want).all() and (d["deep/moved"][:] == want).all()
        assert (d["cube"][:] == CUBE).all() and (d["line"][:] == DATA[0]).all()
        assert d["scalar"][...] == 7 and (d["other"][:] == DATA + 1).all()
        for name in ("grown0", "grown1"):
            assert (d[name][:] == np.append(DATA, DATA + 50, axis=0)).all(), name
        assert not d.ncattrs(), d.ncattrs()
        assert d["cube"].ncattrs() == ["_FillValue"], d["cube"].ncattrs()


def read_again(mnt):
    """netCDF-4 has no word for it: the next mount shows all arrays alike."""
    group = zarr.open_group(mnt, "r")
    assert (group["cube"][:] == CUBE).all() and (group["other"][:] == DATA + 1).all()
    assert "0.0.0" in files(mnt + "/cube") and "0.0" in files(mnt + "/flat")


def test_separators(t):
    """SEMANTICS W28: each array keeps the separator that its writer chose."""
    file = t.path("x.nc")
    with t.mount(file, "rw", "create", SLOW) as m:
        t.call(write_separators, m.path)
        t.call(grow, m.path)
        t.call(change, m.path)
    t.call(check_separators, file)
    assert not os.path.exists(t.path(".x.nc.nczarrfs"))
    with t.mount(file) as m:
        t.call(read_again, m.path)


def work_killed(mnt):
    make(NESTED(mnt + "/a"), DATA, (2, 3))
    sync(mnt)
    zarr.open(NESTED(mnt + "/a"), "r+")[1] = 5
    make(NESTED(mnt + "/b"), DATA, (2, 3))


def check_killed(file):
    want = DATA.copy()
    want[1] = 5
    with netCDF4.Dataset(file) as d:
        assert (d["a"][:] == want).all() and (d["b"][:] == DATA).all()


def test_separators_after_a_crash(t):
    """SEMANTICS W28: what waits of such an array is put where it belongs by the next mount."""
    file = t.path("x.nc")
    with t.mount(file, "rw", "create", SLOW) as m:
        t.call(work_killed, m.path)
        m.ended = True
        m.kill()
        mounts.wait_gone(m.pids, 30)
        mounts.unmount(m.path, lazy=True)
    with t.mount(file, "rw"):
        pass
    t.call(check_killed, file)


# ---- bytes of a chunk that is being read ----

def between(mnt, func, calls):
    """func, with a commit of what calls() changes after it has been called once."""
    def once(*args, **kwargs):
        result = func(*args, **kwargs)
        if calls:
            calls.pop()()
            sync(mnt)
        return result
    return once


def read_in_pieces(mnt):
    from zarr import util
    read = util.PartialReadBuffer.prepare_chunk
    data = np.random.default_rng(1).integers(0, 1000, (400, 400), "i4")
    store = zarr.storage.FSStore(mnt + "/blosc")
    how = dict(compressor=Blosc(cname="lz4", clevel=9, blocksize=16384))
    z = zarr.Array(store, partial_decompress=True) if store.listdir() else None
    assert z is None
    make(store, data, (400, 400), **how)
    z = zarr.Array(store, partial_decompress=True)
    path = mnt + "/blosc/0.0"
    before = open(path, "rb").read()

    def new_array():
        make(FLAT(mnt + "/n%d" % len(os.listdir(mnt))), DATA, (2, 3))

    # the array itself goes into the file; then another one; then a document of this one
    for k, change in enumerate((lambda: None, new_array,
                                lambda: zarr.open(store, "r+").attrs.update(k=1))):
        util.PartialReadBuffer.prepare_chunk = between(mnt, read, [change])
        assert (z[3:5, 7:300] == data[3:5, 7:300]).all(), k
        util.PartialReadBuffer.prepare_chunk = read
        assert open(path, "rb").read() == before and os.stat(path).st_size == len(before), k
    with open(path, "rb", buffering=0) as f:
        head = f.read(16)
        new_array()
        sync(mnt)
        assert head + f.read() == before
    z.append(data + 1)                      # of two lengths with the same chunk
    sync(mnt)
    assert open(path, "rb").read() == before
    data[0, 0] += 1                         # what is written holds
    z[0, 0] = data[0, 0]
    for _ in range(2):
        assert (z[:400] == data).all() and (z[3:5, 7:300] == data[3:5, 7:300]).all()
        assert open(path, "rb").read() != before
        sync(mnt)
    z.resize((100, 400))                    # netCDF forgets what is beyond
    sync(mnt)
    assert (zarr.open(store, "r")[:] == data[:100]).all()
    z.resize((400, 400))
    sync(mnt)
    assert (zarr.open(store, "r")[:100] == data[:100]).all()
    assert not zarr.open(store, "r")[100:].any()
    np.save(os.path.join(os.path.dirname(mnt), "want.npy"), data[:100])


def check_pieces(file, want):
    data = np.load(want)
    with netCDF4.Dataset(file) as d:
        d.set_auto_mask(False)
        assert (d["blosc"][:100] == data).all() and not d["blosc"][100:].any()
        assert d["blosc"].filters()["zlib"]


def read_stored(mnt, want):
    z = zarr.open_group(mnt, "r")["blosc"]
    assert (z[:100] == np.load(want)).all() and z.compressor.codec_id == "zlib"


def test_bytes_of_a_chunk(t):
    """SEMANTICS W29: a chunk that is being read in pieces keeps its bytes when it is committed."""
    file = t.path("x.nc")
    with t.mount(file, "rw", "create", SLOW) as m:
        t.call(read_in_pieces, m.path)
        want = os.path.join(os.path.dirname(m.path), "want.npy")
    t.call(check_pieces, file, want)
    with t.mount(file) as m:
        t.call(read_stored, m.path, want)


SCALAR = {"zarr_format": 2, "shape": [], "chunks": [], "dtype": "<f8", "order": "C",
          "fill_value": 0, "filters": None, "compressor": Blosc().get_config()}


def committed_scalar(mnt):
    """While a program has the chunk open, its array keeps its form: the commit is repeated."""
    sync(mnt)
    assert document(mnt + "/scalar")["compressor"] is None


def not_read(mnt):
    """Nothing is kept of chunks that were only written, and of one of another form."""
    make(FLAT(mnt + "/written"), DATA, (6, 8))
    stored = Blosc().encode(np.float64(7).tobytes())
    os.mkdir(mnt + "/scalar")
    for name, data in ((".zarray", json.dumps(SCALAR).encode()), ("0", stored)):
        with open(f"{mnt}/scalar/{name}", "wb") as f:
            f.write(data)
    assert open(mnt + "/scalar/0", "rb").read() == stored
    eventually_passes(committed_scalar, mnt)
    assert open(mnt + "/scalar/0", "rb").read() == np.float64(7).tobytes()
    assert zarr.open(mnt + "/scalar", "r")[...] == 7
    assert (zarr.open(mnt + "/written", "r")[:] == DATA).all()


def test_bytes_of_another_form(t):
    """SEMANTICS W29: the bytes are kept where the array's document is still right for them."""
    with t.mount(t.path("x.nc"), "rw", "create", SLOW) as m:
        t.call(not_read, m.path)


# ---- Zarr v3, by hand ----

GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def array3(encoding, separator, shape=(4, 6), chunk=(2, 3), codecs=(LITTLE,)):
    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "int32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
            "fill_value": 0, "codecs": codecs, "dimension_names": ["y", "x"][:len(shape)]}


ARRAY2 = {"zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i4", "order": "C",
          "fill_value": 0, "filters": None, "compressor": None}


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else json.dumps(data).encode())


def get(path):
    with open(path, "rb") as f:
        return f.read()


ENCODINGS = {"a": ("default", "/", "c/1/0"), "b": ("default", ".", "c.1.0"),
             "c": ("v2", "/", "1/0"), "d": ("v2", ".", "1.0")}
SIX = np.arange(1, 7, dtype="<i4")


def write_encodings(mnt):
    put(mnt + "/zarr.json", GROUP)
    for name, (encoding, separator, key) in ENCODINGS.items():
        put(f"{mnt}/{name}/zarr.json", array3(encoding, separator))
        put(f"{mnt}/{name}/{key}", SIX.tobytes())
    sync(mnt)
    for name, (encoding, separator, key) in ENCODINGS.items():
        assert files(f"{mnt}/{name}") == [key], files(f"{mnt}/{name}")
        assert get(f"{mnt}/{name}/{key}") == SIX.tobytes()
        assert document(f"{mnt}/{name}", "zarr.json")["chunk_key_encoding"] == {
            "name": encoding, "configuration": {"separator": separator}}
        put(f"{mnt}/{name}/" + key.replace("1", "0"), SIX.tobytes()[::-1])


def check_encodings(file):
    with netCDF4.Dataset(file) as d:
        d.set_auto_mask(False)
        for name in ENCODINGS:
            assert (d[name][2:, :3] == SIX.reshape(2, 3)).all() and not d[name][:, 3:].any()
            assert d[name][:2, :3].tobytes() == SIX.tobytes()[::-1]


def test_encodings(t):
    """SEMANTICS W28: of Zarr v3 as well, each of its names for chunks."""
    file = t.path("x.nc")
    with t.mount(file, "rw", "create", SLOW) as m:
        t.call(write_encodings, m.path)
    t.call(check_encodings, file)


# ---- the format ----

def refused(path, data):
    try:
        put(path, data)
    except OSError as e:
        assert e.errno == errno.EOPNOTSUPP, e
        return
    raise AssertionError(f"{path} was taken")


def write_first(mnt, form):
    """No document at the root: that of an array decides."""
    docs = {2: ("/x/.zarray", ARRAY2, "/x/1.0"), 3: ("/x/zarr.json", array3("v2", "."), "/x/1.0")}
    other = {2: ("/zarr.json", GROUP, "/y/zarr.json"), 3: ("/.zgroup", {"zarr_format": 2},
                                                           "/y/.zarray")}[form]
    doc, content, key = docs[form]
    put(mnt + key, SIX.tobytes())           # before its document
    put(mnt + doc, content)
    refused(mnt + other[2], docs[5 - form][1])
    refused(mnt + other[0], other[1])
    sync(mnt)
    refused(mnt + other[2], docs[5 - form][1])
    assert document(mnt + "/x", os.path.basename(doc))["zarr_format"] == form
    eventually_passes(os.rmdir, mnt + "/y")     # a refused document goes with its release


def check_first(file):
    with netCDF4.Dataset(file) as d:
        d.set_auto_mask(False)
        assert list(d.variables) == ["x"] and (d["x"][2:, :3] == SIX.reshape(2, 3)).all()


def test_format(t):
    """SEMANTICS W30: the first document decides which format a new file's tree has."""
    for form in 2, 3:
        file = t.path(f"{form}.nc")
        with t.mount(file, "rw", "create", SLOW) as m:
            t.call(write_first, m.path, form)
        t.call(check_first, file)
    for form in 2, 3:
        with t.mount(t.path(f"said{form}.nc"), "rw", "create", SLOW, f"zarr_format={form}") as m:
            t.call(write_other, m.path, form)


def write_other(mnt, form):
    """Of the format that the option does not say nothing is taken."""
    refused(*{2: (mnt + "/zarr.json", GROUP), 3: (mnt + "/.zgroup", {"zarr_format": 2})}[form])
    put(*{2: (mnt + "/x/.zarray", ARRAY2), 3: (mnt + "/x/zarr.json", array3("v2", "."))}[form])


def test_format_in_a_mirror(t):
    """SEMANTICS W30: so does that of a store that becomes a file in a mirrored directory."""
    os.mkdir(t.path("dir"))
    with t.mount(t.path("dir"), "rw", SLOW) as m:
        for form in 2, 3:
            os.mkdir(f"{m.path}/{form}.zarr")
            t.call(write_first, f"{m.path}/{form}.zarr", form)
    for form in 2, 3:
        t.call(check_first, t.path(f"dir/{form}.nc"))


# ---- shards ----

def sharded(shape, shard, chunk, codecs, separator="/", **more):
    config = {"chunk_shape": chunk, "codecs": codecs, "index_location": "end",
              "index_codecs": [LITTLE, {"name": "crc32c"}], **more}
    return array3("default", separator, shape, shard,
                  [{"name": "sharding_indexed", "configuration": config}])


def shard_of(chunks):
    """The bytes of a shard, whose chunks lie in it in the reverse of their order; None: never
    written."""
    body, entries = b"", []
    for chunk in reversed(chunks):
        entries.insert(0, struct.pack("<QQ", len(body), len(chunk)) if chunk else b"\xff" * 16)
        body += chunk or b""
    index = b"".join(entries)
    return body + index + struct.pack("<I", shards.crc32c(index))


def chunks_of(shard, n):
    """The reverse of it, wherever they lie."""
    index = shard[-16 * n - 4:-4]
    assert shard[-4:] == struct.pack("<I", shards.crc32c(index))
    places = [struct.unpack_from("<QQ", index, 16 * k) for k in range(n)]
    return [None if at == 2**64 - 1 else shard[at:at + size] for at, size in places]


ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 3}}
SHAPE, SHARD, CHUNK = (7, 10), (4, 6), (2, 3)       # of 4 by 4 chunks are 2 by 2 in a shard


def inner(data, y, x):
    block = np.zeros(CHUNK, "<i4")
    part = data[2 * y:2 * y + 2, 3 * x:3 * x + 3]
    block[:part.shape[0], :part.shape[1]] = part
    return block.tobytes()


def shards_by_hand(data, encode):
    """Keys and chunks of each shard; one chunk was never written, and one shard."""
    def chunk(y, x):
        at = 2 * y >= data.shape[0] or 3 * x >= data.shape[1] or (y, x) == (1, 1)
        return None if at else encode(inner(data, y, x))
    return {f"c/{i}/{j}": [chunk(2 * i + k, 2 * j + n) for k in (0, 1) for n in (0, 1)]
            for i in (0, 1) for j in (0, 1) if (i, j) != (1, 0)}


def write_shards(mnt):
    data = np.arange(1, 71, dtype="<i4").reshape(SHAPE)
    kinds = {"raw": ([LITTLE], bytes), "zlib": ([LITTLE, ZLIB], lambda b: zlib.compress(b, 3))}
    put(mnt + "/zarr.json", GROUP)
    first = {}
    for name, (codecs, encode) in kinds.items():
        put(f"{mnt}/{name}/zarr.json", sharded(SHAPE, SHARD, CHUNK, codecs))
        for key, chunks in shards_by_hand(data, encode).items():
            put(f"{mnt}/{name}/{key}", shard_of(chunks))
        first[name] = get(f"{mnt}/{name}/c/0/0")
    put(mnt + "/plain/zarr.json", {**array3("default", "/"), "dimension_names": ["p", "q"]})
    put(mnt + "/plain/c/0/0", SIX.tobytes())
    with open(mnt + "/raw/c/1/1", "rb", buffering=0) as f:  # a chunk of it, and the index later
        head = f.read(24)
        sync(mnt)
        assert head + f.read() == shard_of(shards_by_hand(data, bytes)["c/1/1"])
    for name, (codecs, encode) in kinds.items():
        chunks = shards_by_hand(data, encode)
        assert files(f"{mnt}/{name}") == sorted(chunks), files(f"{mnt}/{name}")
        doc = document(f"{mnt}/{name}", "zarr.json")
        assert doc["chunk_grid"]["configuration"]["chunk_shape"] == list(SHARD)
        assert doc["codecs"][0]["name"] == "sharding_indexed"
        assert doc["codecs"][0]["configuration"]["chunk_shape"] == list(CHUNK)
        for key, want in chunks.items():
            assert chunks_of(get(f"{mnt}/{name}/{key}"), 4) == want, (name, key)
        assert get(f"{mnt}/{name}/c/0/0") == first[name]    # it was read before the commit
        put(f"{mnt}/{name}/c/1/0", shard_of([encode(inner(data + 100, 2, 0)), None] + [None] * 2))
        sync(mnt)
        got = chunks_of(get(f"{mnt}/{name}/c/1/0"), 4)
        assert got == [encode(inner(data + 100, 2, 0)), None, None, None]
        put(f"{mnt}/{name}/zarr.json", sharded((9, 10), SHARD, CHUNK, codecs))
        sync(mnt)
        assert chunks_of(get(f"{mnt}/{name}/c/0/1"), 4) == chunks["c/0/1"]
    assert files(mnt + "/plain") == ["c/0/0"]
    for more in ({"index_location": "start"}, {"index_codecs": [LITTLE]},
                 {"codecs": sharded(SHAPE, CHUNK, (1, 1), [LITTLE])["codecs"]}):
        doc = sharded(SHAPE, SHARD, CHUNK, [LITTLE])
        doc["codecs"][0]["configuration"].update(more)
        refused(mnt + "/other/zarr.json", doc)
    eventually_passes(os.rmdir, mnt + "/other")


def check_shards(file):
    import h5py
    data = np.zeros((9, 10), "i4")
    data[:7] = np.arange(1, 71).reshape(SHAPE)
    data[2:4, 3:6] = data[4:, :6] = 0       # never written
    data[4:6, :3] = np.arange(1, 71).reshape(SHAPE)[4:6, :3] + 100
    with netCDF4.Dataset(file) as d:
        d.set_auto_mask(False)
        for name in ("raw", "zlib"):
            assert d[name].shape == data.shape and (d[name][:] == data).all(), (name, d[name][:])
            assert tuple(d[name].chunking()) == CHUNK
    with h5py.File(file, "r") as f:
        first = inner(np.arange(1, 71, dtype="<i4").reshape(SHAPE), 0, 0)
        assert f["zlib"].id.read_direct_chunk((0, 0))[1] == zlib.compress(first, 3)


def without_shards(mnt):
    assert document(mnt + "/raw", "zarr.json")["codecs"] == [LITTLE]
    assert get(mnt + "/raw/c/2/0") == inner(np.arange(101, 171, dtype="<i4").reshape(SHAPE), 2, 0)


def test_shards(t):
    """SEMANTICS W28, W29: shards of a writer's own shape; each chunk in them is one of the file."""
    file = t.path("x.nc")
    with t.mount(file, "rw", "create", SLOW) as m:
        t.call(write_shards, m.path)
    t.call(check_shards, file)
    with t.mount(file, "zarr_format=3") as m:
        t.call(without_shards, m.path)
