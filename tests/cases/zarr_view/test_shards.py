# SPDX-License-Identifier: BSD-3-Clause
"""Sharded Zarr v3 views. Each shard is compared byte by byte with the chunk files of the same tree
without shards, and an index made here; values as somebody else's reader of shards takes them
(clients/tree.py) and as our own source shows them in a netCDF file, with those of the original."""
import errno
import functools
import os
import threading

import gen
from lib.context import Skip, corpus

V3 = "zarr_format=3"
FEATURES = {"unlimited": "shards=4K", "missing_chunks": "shards=4K", "fill_values": "shards=4K",
            "vl_strings": "shards=4K", "filter_masks": "shards=8K", "big_endian": "shards=4K",
            "everything_decoded": "shards=64K", "layouts": "shards"}
# of the corpus: with several chunks in an array
FILES = {"ESMValGroup-ESMValCore/cesm2_native.nc": "shards",
         "NOAA-ORR-ERD-gridded/tri_grid_example-FVCOM.nc": "shards=8K",
         "rouault-gdal/deflate.h5": "shards=4K", "rouault-gdal/trmm-nc4z.nc": "shards=4K",
         "rouault-gdal/test_ogr_nc4.nc": "shards=4K",
         "gauteh-hidefix/coads_climatology.nc4": "shards=400K",
         "Ouranosinc-xclim-testdata/q_sim.nc": "shards"}


def virtual(mnt):
    names = os.listdir(mnt)
    assert len(names) == 1, f"one file expected: {names}"
    return os.path.join(mnt, names[0])


def same_tree(plain, sharded):
    from clients import shards
    assert shards.compare(plain, sharded) > 0, "no array has shards"


def variables(group, path=""):
    for name, v in group.variables.items():
        v.set_auto_maskandscale(False)
        v.set_auto_chartostring(False)
        yield f"{path}/{name}", v
    for name, g in group.groups.items():
        yield from variables(g, f"{path}/{name}")


def same_netcdf(original, mnt):
    """Variables of the file and of the one that is made of the shards, through netCDF-C."""
    import netCDF4
    import numpy as np
    from netCDF4 import Dataset
    with Dataset(original) as f, Dataset(virtual(mnt)) as nc:
        mine, n = dict(variables(nc)), 0
        for path, v in variables(f):
            kind = getattr(v.datatype, "kind", "O")
            user = (netCDF4.CompoundType, netCDF4.VLType, netCDF4.EnumType)
            if v.dtype is not str and (isinstance(v.datatype, user) or kind not in "iufS"):
                continue
            assert path in mine, f"{path} is missing"
            if not any("phony" in d for d in v.dimensions):
                assert mine[path].dimensions == v.dimensions, f"{path}: {mine[path].dimensions}"
            a, b = np.asarray(v[...]), np.asarray(mine[path][...])
            assert a.shape == b.shape, f"{path}: {b.shape}, not {a.shape}"
            if v.dtype is str:
                assert a.tolist() == b.tolist(), f"{path} differs"
            elif a.dtype.kind == "S":  # in Zarr v3 numbers of a byte
                assert a.tobytes() == b.tobytes(), f"{path} differs"
            else:
                assert a.astype(b.dtype).tobytes() == b.tobytes(), f"{path} differs"
            n += 1
    print(f"{n} variables")


def same_values(original, plain, sharded, mnt):
    from clients import tree_tree
    tree_tree.compare(plain, sharded)
    same_netcdf(original, mnt)


def everything(t, file, shards, *options):
    with t.mount(file, V3, *options) as p, t.mount(file, shards, *options) as s:
        t.call(same_tree, p.path, s.path)
        with t.mount(s.path, "view=nc") as nc:
            t.call(same_values, file, p.path, s.path, nc.path)


def generated(name, t):
    made = gen.load()[name]
    file = t.path(name + ".nc")
    t.call(made.write, file)
    everything(t, file, FEATURES[name], *made.options)


def from_corpus(row, t):
    root = corpus()
    file = os.path.join(root or "", "netcdf4", row)
    if not root or not os.path.exists(file):
        raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with netcdf4 in it")
    everything(t, file, FILES[row])


# ---- one file, in many ways ----

def write(path):
    """Chunks of 1.5 KiB, some never written, two axes; values that compress a little."""
    import h5py
    import numpy as np
    rng = np.random.RandomState(7)
    with h5py.File(path, "w") as f:
        for name, more in (("deflated", {"compression": 4, "shuffle": True}), ("raw", {}),
                           ("summed", {"compression": 1, "fletcher32": True})):
            d = f.create_dataset(name, (150, 170), "<f4", chunks=(16, 24), fillvalue=-1, **more)
            for i in range(0, 150, 16):
                for j in range(0, 170, 24):
                    if (i + j) % 7 and not 40 < i < 100:
                        d[i:i + 16, j:j + 24] = rng.randint(0, 99, (min(16, 150 - i),
                                                                    min(24, 170 - j)))


def test_options(t):
    """Chunks that pass, that are decoded and that are encoded; keys of both kinds."""
    file = t.path("v.h5")
    t.call(write, file)
    for size, *options in (("shards=4K",), ("shards=20K", "filter=none"),
                           ("shards=1M", "filter=*,zstd,3"),
                           ("shards=10K", "chunk_key_encoding=v2", "cache_size=64K"),
                           ("shards=7K", "filter=*,shuffle|deflate,1", "cache_size=16K")):
        with t.mount(file, V3, *options) as p, t.mount(file, size, *options) as s:
            t.call(same_tree, p.path, s.path)


def one_chunk_bad(plain, sharded, bad):
    """bad: the chunk file of the unsharded tree that cannot be read."""
    from clients import shards
    a = shards.document(os.path.join(plain, "v"))
    assert shards.sharding(shards.document(os.path.join(sharded, "v")))
    size, n = 4 * 1024, shards.grid_of(a)[0]
    with open(os.path.join(sharded, "v", "c", "0"), "rb", buffering=0) as f:
        assert os.fstat(f.fileno()).st_size == n * size + 16 * n + 4
        for i in range(n):
            try:
                got = os.pread(f.fileno(), size, i * size)
            except OSError as e:
                got = e.errno
            if i == bad:
                assert got == errno.EIO, f"chunk {i}: {got!r}"
                continue
            with open(os.path.join(plain, "v", "c", str(i)), "rb") as g:
                assert got == g.read(), f"chunk {i} beside the damaged one: {got!r:.60}"


def none_can_be_read(sharded):
    """The shard is there, as an error: that it is not would mean fill values."""
    path = os.path.join(sharded, "v", "c", "0")
    assert os.path.isfile(path) and os.stat(path).st_size > 0
    assert os.listdir(os.path.dirname(path)) == ["0"]
    try:
        with open(path, "rb") as f:
            f.read()
        raise AssertionError("a shard with a chunk of unknown size can be read")
    except OSError as e:
        assert e.errno == errno.EIO, e


def write_damaged(path):
    import h5py
    import numpy as np
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", (40 * 1024,), "<f4", chunks=(1024,), compression=4)
        d[...] = np.arange(40 * 1024)
        d.id.write_direct_chunk((17 * 1024,), b"this is not deflate")


# SEMANTICS E4
def test_damaged_chunk(t):
    """What lies beside a chunk that cannot be decoded can be read. Chunks of one page: the kernel
    reads whole pages."""
    file = t.path("damaged.h5")
    t.call(write_damaged, file)
    with t.mount(file, V3, "filter=none") as p, t.mount(file, "shards", "filter=none") as s:
        t.call(one_chunk_bad, p.path, s.path, 17)
    with t.mount(file, "shards", "filter=*,zstd,3") as s:  # sizes are known once chunks are made
        t.call(none_can_be_read, s.path)


def read_together(sharded, want):
    """Threads on the same shards, each in its own order."""
    problems = []

    def run(seed):
        import random
        rng = random.Random(seed)
        for _ in range(60):
            path, data = rng.choice(want)
            off, n = rng.randrange(len(data)), rng.choice((20, 4096, 100000))
            with open(os.path.join(sharded, path), "rb", buffering=0) as f:
                f.seek(off)
                if f.read(n) != data[off:off + n]:
                    problems.append(f"{path} at {off}")
    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    assert not problems, problems[:5]


def read_all(sharded, out):
    for base, _, names in os.walk(sharded):
        for n in names:
            with open(os.path.join(base, n), "rb") as f:
                out.append((os.path.relpath(os.path.join(base, n), sharded), f.read()))


def together(first, second):
    want = []
    read_all(first, want)
    read_together(second, want)


def test_together(t):
    """Many readers, hardly any cache; the second mount has nothing in the page cache."""
    file = t.path("v.h5")
    t.call(write, file)
    with t.mount(file, "shards=8K", "filter=none") as a, \
            t.mount(file, "shards=8K", "filter=none", "cache_size=16K") as b:
        t.call(together, a.path, b.path)


# ---- other sources ----

def test_trees(t):
    """Chunks that are files, parts of an archive and of other shards."""
    from gen import trees
    for name in ("ranks", "free_texts", "v3_shards", "zip_stored"):
        made = trees.load()[name]
        source = t.path(name + made.ending)
        made.write(source)
        with t.mount(source, "view=zarr", V3) as p, \
                t.mount(source, "view=zarr", "shards=4K") as s:
            t.call(same_tree, p.path, s.path)


def write_classic(path):
    """Records of two variables in turn: each chunk is a piece of the file by itself."""
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as f:
        f.createDimension("time", None)
        f.createDimension("x", 20000)
        for name in ("a", "b"):
            f.createVariable(name, "i4", ("time", "x"))
        for i in range(13):
            f["a"][i] = np.arange(20000) * i
            f["b"][i] = -np.arange(20000) - i


def test_classic(t):
    file = t.path("classic.nc")
    t.call(write_classic, file)
    with t.mount(file, V3) as p, t.mount(file, "shards=300K") as s:
        t.call(same_tree, p.path, s.path)
        with t.mount(s.path, "view=nc") as nc:
            t.call(same_netcdf, file, nc.path)


def cases():
    for name in FEATURES:
        yield name, functools.partial(generated, name)
    for row in FILES:
        yield row, functools.partial(from_corpus, row)
