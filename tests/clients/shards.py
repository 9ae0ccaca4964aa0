# SPDX-License-Identifier: BSD-3-Clause
"""A sharded Zarr v3 tree beside the same tree without shards: the documents say the same but for
the shards, and each shard is the chunk files, one behind the other, and an index of them."""
import functools
import json
import math
import os
import random
import struct

NONE = 2**64 - 1
INDEX = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]


@functools.lru_cache(None)
def table():
    out = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        out.append(i)
    return out


def crc32c(data):
    t, crc = table(), 0xffffffff
    for b in data:
        crc = crc >> 8 ^ t[(crc ^ b) & 0xff]
    return crc ^ 0xffffffff


def read(path):
    """The whole file; None: there is none. Its size is what stat says."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return None
    assert os.stat(path).st_size == len(data), f"{path}: {len(data)} bytes"
    return data


def document(path):
    return json.loads(read(os.path.join(path, "zarr.json")))


def key(meta, at):
    enc = meta["chunk_key_encoding"]
    sep = enc.get("configuration", {}).get("separator", "/" if enc["name"] == "default" else ".")
    words = [str(i) for i in at]
    if enc["name"] == "default":
        return sep.join(["c"] + words)
    return sep.join(words) or "0"


def grid_of(meta):
    chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
    return tuple(-(-s // c) for s, c in zip(meta["shape"], chunk))


def cells(grid):
    if not grid:
        yield ()
        return
    for i in range(grid[0]):
        for rest in cells(grid[1:]):
            yield (i,) + rest


def sharding(meta):
    """The sharding codec of an array; None: it has none."""
    codecs = meta["codecs"]
    if codecs[0]["name"] != "sharding_indexed":
        assert "sharding_indexed" not in [c["name"] for c in codecs]
        return None
    assert len(codecs) == 1, "codecs around the shard"
    conf = codecs[0]["configuration"]
    assert conf["index_codecs"] == INDEX and conf.get("index_location", "end") == "end"
    return conf


def same_shard(where, file, chunks):
    """file: its bytes, or None; chunks: those of each slot, or None."""
    if all(c is None for c in chunks):
        assert file is None, f"{where}: a shard without chunks"
        return
    assert file is not None, f"{where}: no such shard"
    index, body = b"", b""
    for c in chunks:
        index += struct.pack("<QQ", *(NONE, NONE) if c is None else (len(body), len(c)))
        body += c or b""
    assert file[:len(body)] == body, f"{where}: other chunks"
    assert file[len(body):] == index + struct.pack("<I", crc32c(index)), f"{where}: other index"


def pieces(where, path, file, rng):
    """Parts of a shard, as readers take them."""
    with open(path, "rb", buffering=0) as f:
        for _ in range(12):
            off, n = rng.randrange(len(file) + 1), rng.choice((1, 16, 100, 5000, 1 << 20))
            assert os.pread(f.fileno(), n, off) == file[off:off + n], f"{where} at {off}: {n} bytes"


def same_array(path, plain, sharded, rng):
    """Returns how many shards there were."""
    a, b = document(plain), document(sharded)
    conf = sharding(b)
    if conf is None:
        assert a == b, f"{path}: another document without shards"
        for at in cells(grid_of(a)):
            assert read(os.path.join(plain, key(a, at))) == read(os.path.join(sharded, key(b, at)))
        return 0
    inner = a["chunk_grid"]["configuration"]["chunk_shape"]
    outer = b["chunk_grid"]["configuration"]["chunk_shape"]
    assert conf["chunk_shape"] == inner and conf["codecs"] == a["codecs"], f"{path}: other chunks"
    assert all(o % i == 0 for o, i in zip(outer, inner)), f"{path}: shards of {outer}"
    per = [o // i for o, i in zip(outer, inner)]
    assert 1 < math.prod(per) <= 16384, f"{path}: {per} chunks in a shard"
    rest = {k: v for k, v in a.items() if k not in ("chunk_grid", "codecs")}
    assert rest == {k: b[k] for k in b if k not in ("chunk_grid", "codecs")}, f"{path}: {b}"
    grid, found = grid_of(a), 0
    for at in cells(grid_of(b)):
        chunks = []
        for slot in cells(per):
            c = [i * p + s for i, p, s in zip(at, per, slot)]
            inside = all(x < n for x, n in zip(c, grid))
            chunks.append(read(os.path.join(plain, key(a, c))) if inside else None)
        where = f"{path}/{key(b, at)}"
        file = read(os.path.join(sharded, key(b, at)))
        same_shard(where, file, chunks)
        if file is not None:
            found += 1
            pieces(where, os.path.join(sharded, key(b, at)), file, rng)
    listed = sum(len(names) for _, _, names in os.walk(sharded)) - 1
    assert listed == found, f"{path}: {listed} shards are listed, there are {found}"
    return found


def compare(plain, sharded):
    """All arrays; at least one has shards."""
    rng, found, arrays = random.Random(5), 0, 0
    for base, _, names in os.walk(plain):
        if "zarr.json" in names and document(base)["node_type"] == "array":
            path = os.path.relpath(base, plain)
            arrays += 1
            found += same_array(path, base, os.path.join(sharded, path), rng)
    print(f"{arrays} arrays, {found} shards")
    return found
