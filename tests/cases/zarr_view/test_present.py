# SPDX-License-Identifier: BSD-3-Clause
"""-o filter=SPEC and -o quantize=SPEC: chunks as if they had been written with other filters, and
floats with fewer digits, through every client that can read them, in both views."""
import functools
import json
import os
import subprocess
import threading

import h5py
import netCDF4
import numpy as np

import gen
from cases.commands.test_cli import folder, refused
from cases.mount.test_sanitizers import in_child, collect, Progress
from cases.netcdf_view.test_virtual import copy_twice, h5py_compare, h5tools, nctools, virtual
from gen import trees
from lib import clients
from lib.context import Skip

LIMIT = 240.0
ONE_IN = {"zarr_of/*": 4, "nc_of/*": 3, "chain/*": 3}

# A specification, and what .zarray then says: filters, compressor. %d: bytes of an element.
SPECS = {
    "*,zstd,5": ([], {"id": "zstd", "level": 5}),
    "shuffle|deflate,4": ([{"id": "shuffle", "elementsize": "%d"}], {"id": "zlib", "level": 4}),
    "bzip2,9": ([], {"id": "bz2", "level": 9}),
    "*,lz4": ([], {"id": "lz4", "acceleration": 1}),
    "shuffle|lzma,1": ([{"id": "shuffle", "elementsize": "%d"}], "lzma"),
    "gzip,3": ([], {"id": "gzip", "level": 3}),
    "blosc,0,0,0,0,5,1,1": ([], "blosc"),
    "shuffle": ([{"id": "shuffle", "elementsize": "%d"}], None),
    "none": ([], None),
}
ROTATION = list(SPECS)

# netCDF-C 4.9.0 ends with "HDF error" when nccopy copies such a compressed file, its own ones too.
NCCOPY_FAILS = ("not_coordinates",)


def check_chains(file, mnt, filters, compressor, skip):
    """What the documents say, the sizes of all files, and all values bit for bit."""
    import zarr
    tree = zarr.open(mnt, mode="r")
    with h5py.File(file, "r") as f:
        for name in f:
            if name in skip or f[name].attrs.get("NAME", b"").startswith(b"This is a netCDF dim"):
                continue
            with open(f"{mnt}/{name}/.zarray", encoding="utf-8") as doc:
                meta = json.load(doc)
            want = [dict(x, elementsize=f[name].dtype.itemsize) if "elementsize" in x else x
                    for x in filters]
            assert (meta["filters"] or []) == want, (name, meta)
            got = meta["compressor"]
            assert got == compressor or (got and got["id"] == compressor), (name, meta)
            a, b = np.ascontiguousarray(f[name][()]), np.ascontiguousarray(tree[name][()])
            assert a.dtype.itemsize == b.dtype.itemsize and a.tobytes() == b.tobytes(), name
    exact_sizes(mnt, skip)


def exact_sizes(mnt, skip=()):
    count = 0
    for base, _, names in os.walk(mnt):
        if os.path.relpath(base, mnt) in skip:
            continue
        for name in names:
            path = os.path.join(base, name)
            size = os.stat(path).st_size
            with open(path, "rb") as f:
                assert len(f.read()) == size, f"{path}: {size}"
            count += 1
    assert count > 0


def sample(path):
    """Variables stored in every way that differs for whoever encodes them."""
    rng = np.random.RandomState(7)
    smooth = np.cumsum(rng.randn(30, 40, 50), axis=2)
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("t", None)
        nc.createDimension("y", 40)
        nc.createDimension("x", 50)
        dims = ("t", "y", "x")
        nc.createVariable("deflated", "f4", dims, zlib=True, complevel=2, shuffle=True,
                          chunksizes=(7, 20, 30))[:] = smooth
        nc.createVariable("checked", "f8", dims, zlib=True, shuffle=True, fletcher32=True,
                          chunksizes=(7, 20, 30))[:] = smooth
        nc.createVariable("plain", "i2", dims, chunksizes=(4, 40, 50))[:] = smooth * 100
        nc.createVariable("big", ">i4", dims, endian="big", zlib=True)[:] = smooth * 1000
        nc.createVariable("contiguous", "f8", ("y", "x"))[:] = smooth[0]
        v = nc.createVariable("holes", "f4", dims, fill_value=-9.0, chunksizes=(5, 10, 10))
        v[0:3] = smooth[0:3]
        v[29] = smooth[29]  # nor is the dimension longer than the variable
        v = nc.createVariable("silent_holes", "i4", dims, chunksizes=(5, 10, 10))
        v[29] = smooth[29]
        nc.createVariable("one", "f8", ())[...] = 2.5
        nc.createVariable("text", str, ("y",))[0] = "free"
        nc.createVariable("/deep/er/bytes", "u1", dims, chunksizes=(6, 13, 17))[:] = (
            smooth.astype("u1"))
    with h5py.File(path, "a") as f:
        if h5py.h5z.filter_avail(4):
            f.create_dataset("szipped", data=smooth[:4].astype("i4"), chunks=(2, 40, 50),
                             compression="szip")
        f.create_dataset("lzfed", data=smooth[:4], chunks=(2, 40, 50), compression="lzf")
        f.create_dataset("scaled", data=(smooth[:4] * 10).astype("i4"), chunks=(2, 40, 50),
                         scaleoffset=0)


def unreadable(t, file):
    """Variables with a filter that this build does not have."""
    with open(clients.info(t, file), encoding="utf-8") as f:
        return tuple(v["path"][1:] for v in json.load(f)["variables"] if v["plan"] == "error")


def one_spec(spec, t):
    file = t.path("sample.nc")
    sample(file)
    filters, compressor = SPECS[spec]
    skip = ("one", "text", "deep") + unreadable(t, file)
    skip += ("deflated",) if "deflate" in spec else ()  # passes, with its own level
    with t.mount(file, "filter=" + spec) as m:
        assert not m.messages(), m.messages()
        t.call(check_chains, file, m.path, filters, compressor, skip)
        clients.zarr(t, file, m, clients.info(t, file, "filter=" + spec))
        notes = clients.info(t, file)
        clients.xarray(t, file, m, notes)
    with t.mount(file, "filter=" + spec, "dimension_separator=/") as m:
        clients.zarr(t, file, m, clients.info(t, file, "filter=" + spec))


# ---- everything that is generated, with some chain each ----

def zarr_of(feature, spec, t):
    file = t.path(feature.name + ".nc")
    feature.write(file)
    if not os.path.exists(file):
        raise Skip("this machine's libraries cannot write it")
    options = feature.options + ("filter=" + spec,)
    notes = clients.info(t, file, *options)
    with t.mount(file, *options) as m:
        clients.zarr(t, file, m, notes)
        if "xarray" in feature.clients:
            clients.xarray(t, file, m, notes)


def nc_of(made, t):
    source = t.path(made.name + made.ending)
    try:
        made.write(source)
    except ImportError as why:
        raise Skip(str(why)) from why
    with t.mount(source, "filter=shuffle|deflate,4", *made.options) as m:
        if "h5py" in made.clients:
            t.call(h5py_compare, source, m.path, made.missing)
        if "h5tools" in made.clients:
            t.call(h5tools, m.path, t.tmp)
        if "nctools" in made.clients and made.name not in NCCOPY_FAILS:
            t.call(nctools, m.path, t.tmp)
        t.call(copy_twice, m.path, t.tmp)


# ---- rules ----

def meta_of(mnt, name):
    with open(f"{mnt}/{name}/.zarray", encoding="utf-8") as f:
        return json.load(f)


def rules_hold(mnt):
    assert meta_of(mnt, "deflated")["compressor"] == {"id": "zlib", "level": 2}, "it passes"
    assert meta_of(mnt, "plain")["compressor"] == {"id": "bz2", "level": 9}
    assert meta_of(mnt, "deep/er/bytes")["compressor"]["id"] == "lz4"
    assert meta_of(mnt, "big")["compressor"] is None
    assert meta_of(mnt, "holes")["compressor"]["id"] == "zstd"
    assert sorted(os.listdir(mnt + "/holes"))[2:] == sorted(
        f"{t}.{y}.{x}" for t in (0, 5) for y in range(4) for x in range(5)), "absent ones"


def test_rules_for_variables(t):
    file = t.path("sample.nc")
    sample(file)
    rules = ("filter=*,zstd", "filter=plain&nothing,bzip2,9", "filter=/deep/er/b*,lz4",
             "filter=big,none", "filter=deflated,shuffle|deflate,9")
    with t.mount(file, *rules) as m:
        assert not m.messages(), m.messages()
        t.call(rules_hold, m.path)
        clients.zarr(t, file, m, clients.info(t, file, *rules))


def test_what_cannot_be_is_said(t):
    """Variables that a rule cannot be for stay as they are, with a line each."""
    file = t.path("sample.nc")
    sample(file)
    with t.mount(file, "filter=*,fletcher32|shuffle", "filter=text&one,zstd",
                 "quantize=plain,bitround,5") as m:
        lines = m.messages().splitlines()
        assert any("/checked: is not filtered with fletcher32, shuffle: " in x for x in lines)
        assert any("/text: is not filtered with zstd: its elements" in x for x in lines), lines
        assert any("/one: is not filtered with zstd: scalars" in x for x in lines), lines
        assert any("/plain: is not quantised: " in x for x in lines), lines
        assert not any("/deflated" in x for x in lines), lines
    with t.mount(file, "filter=*,fletcher32|shuffle") as m:
        assert meta_of(m.path, "contiguous")["filters"] is None
        assert [x["id"] for x in meta_of(m.path, "deflated")["filters"]] == [
            "fletcher32", "shuffle"]
    status, out, _ = t.run(t.binary, "info", "-v", "-o",
                           "filter=zstd,quantize=deflated,bitround,9", file)
    assert status == 0
    assert "plan      encode: encoded with zstd; quantised to 9 bits (bitround)" in out, out
    assert "plan      vlen: " in out, out


def test_filters_that_nobody_has(t):
    file, where = t.path("sample.nc"), folder(t)
    sample(file)
    for rule, *mention in (("filter=*,40001,3", "filter 40001 is not available"),
                           ("filter=v,deflate,77", "deflate")):
        refused(t, file, where, "-o", rule, mention=["-o " + rule] + mention)
        refused(t, "info", "-o", rule, file, mention=["-o " + rule] + mention)


# ---- the virtual file ----

def tree_sample(path):
    import numcodecs
    import zarr
    g = zarr.open_group(path, mode="w")
    rng = np.random.RandomState(3)
    smooth = np.cumsum(rng.randn(30, 40, 50), axis=2)
    for name, dtype, codec, fill in (
            ("blosc", "f4", numcodecs.Blosc("lz4", 5, 1), np.nan), ("raw", "f8", None, None),
            ("zstd", ">i2", numcodecs.Zstd(3), -1), ("zlib", "i8", numcodecs.Zlib(1), 0),
            ("texts", "S7", numcodecs.LZ4(), b""), ("complex", "c8", None, 0)):
        a = g.create_dataset(name, shape=(30, 40, 50), chunks=(7, 20, 30), dtype=dtype,
                             compressor=codec, fill_value=fill)
        a.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]
        a[:17] = smooth[:17].astype(dtype)
    g.create_dataset("scalar", shape=(), dtype="f8", compressor=None)[...] = 1.5


def nc_chains(source, file, ids):
    from clients.netcdf import nc_h5py
    nc_h5py.compare(source, file, ())
    with h5py.File(file, "r") as f:
        for name in ("blosc", "raw", "zstd", "zlib", "texts", "complex"):
            p = f[name].id.get_create_plist()
            got = [p.get_filter(i)[0] for i in range(p.get_nfilters())]
            assert got == ids, (name, got)
        assert f["scalar"].id.get_create_plist().get_nfilters() == 0


def dump_has(file, *texts):
    out = subprocess.run(["h5dump", "-pH", file], capture_output=True, text=True, timeout=60,
                         check=True).stdout
    for text in texts:
        assert text in out, f"no {text} in h5dump -pH"


def test_virtual_file(t):
    source = t.path("s.zarr")
    t.call(tree_sample, source)
    for spec, ids in (("shuffle|deflate,4", [2, 1]), ("deflate,9", [1]),
                      ("fletcher32|deflate|shuffle", [3, 2, 1]), ("shuffle", [2]),
                      ("none", [])):
        with t.mount(source, "filter=" + spec) as m:
            assert not m.messages(), m.messages()
            t.call(nc_chains, source, virtual(m.path), ids)
            t.call(nctools, m.path, t.tmp)
            t.call(h5tools, m.path, t.tmp)
            whole = t.path("copy.nc")
            subprocess.run(["cp", virtual(m.path), whole], check=True, timeout=60)
        t.call(nc_chains, source, whole, ids)
        if ids == [2, 1]:
            dump_has(whole, "SHUFFLE", "COMPRESSION DEFLATE { LEVEL 4 }")
            assert os.path.getsize(whole) < 800000, os.path.getsize(whole)


def test_virtual_file_own_filters(t):
    """Filters of libhdf5's own that compute their parameters: the same as ours, or not used."""
    source = t.path("s.zarr")
    t.call(tree_sample, source)
    with t.mount(source, "filter=/zlib,scaleoffset,2,0", "filter=raw&blosc,nbit",
                 "filter=/zstd,szip,32,8") as m:
        assert not m.messages(), m.messages()

        def check():
            from clients.netcdf import nc_h5py
            nc_h5py.compare(source, virtual(m.path), ())
            with h5py.File(virtual(m.path), "r") as f:
                for name, want in (("zlib", 6), ("zstd", 4), ("raw", 5), ("blosc", 5)):
                    assert f[name].id.get_create_plist().get_filter(0)[0] == want, name
        t.call(check)
        t.call(h5tools, m.path, t.tmp)
    with t.mount(source, "filter=complex,nbit") as m:
        assert "/complex: is not filtered with nbit: " in m.messages(), m.messages()
        t.call(nc_chains_of, virtual(m.path), "complex", [])


def test_own_filters_again(t):
    """What libhdf5 itself packed, packed again by us: the same bytes in a virtual file."""
    file = t.path("sample.nc")
    sample(file)
    with t.mount(file, "view=nc", "filter=szipped,szip,32,8", "filter=scaled,6,2,0") as m:
        def check():
            with h5py.File(file, "r") as a, h5py.File(virtual(m.path), "r") as b:
                for name, want in (("szipped", [4]), ("scaled", [6])):
                    nc_chains_of(virtual(m.path), name, want)
                    assert a[name][()].tobytes() == b[name][()].tobytes(), name
                    for i in range(a[name].id.get_num_chunks()):
                        at = a[name].id.get_chunk_info(i).chunk_offset
                        assert (a[name].id.read_direct_chunk(at) ==
                                b[name].id.read_direct_chunk(at)), f"{name} chunk {i}"
        t.call(check)


def nc_chains_of(file, name, ids):
    with h5py.File(file, "r") as f:
        p = f[name].id.get_create_plist()
        assert [p.get_filter(i)[0] for i in range(p.get_nfilters())] == ids


# SEMANTICS R5
def test_same_file_again(t):
    """The same bytes from every mount, whatever is cached."""
    source = t.path("s.zarr")
    t.call(tree_sample, source)
    seen = []
    for options in ((), ("cache_size=0", "decode_threads=5")):
        with t.mount(source, "filter=shuffle|deflate,4", *options) as m:
            with open(virtual(m.path), "rb") as f:
                seen.append(f.read())
    assert seen[0] == seen[1]


def test_mirror(t):
    os.mkdir(t.path("both"))
    sample(t.path("both/n.nc"))
    t.call(tree_sample, t.path("both/z.zarr"))
    with t.mount(t.path("both"), "filter=shuffle|deflate,4", "quantize=raw,bitround,12") as m:
        def check():
            assert meta_of(m.path + "/n.zarr", "plain")["compressor"] == {"id": "zlib",
                                                                        "level": 4}
            nc_chains_of(m.path + "/z.nc", "blosc", [2, 1])
            with h5py.File(m.path + "/z.nc", "r") as f:
                assert f["raw"].attrs["_QuantizeBitRoundNumberOfSignificantBits"] == 12
        t.call(check)


# ---- GDAL ----

def gdal_same(file, mnt):
    """Numbers as GDAL's Zarr driver reads them, in an interpreter that h5py is not loaded in."""
    code = """
import sys
import numpy as np
from osgeo import gdal
want, mnt = np.load(sys.argv[1]), sys.argv[2]
for name in want:
    ds = gdal.OpenEx(mnt, gdal.OF_MULTIDIM_RASTER, allowed_drivers=["Zarr"])
    got = ds.GetRootGroup().OpenMDArray(name).ReadAsArray()
    assert np.array_equal(got, want[name]), name
"""
    with h5py.File(file, "r") as f:
        np.savez(file + ".npz", **{n: f[n][()] for n in ("deflated", "plain", "contiguous",
                                                         "checked", "holes")})
    done = subprocess.run(["/usr/bin/python3", "-c", code, file + ".npz", mnt],
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-1000:]


def test_gdal(t):
    file = t.path("sample.nc")
    sample(file)
    for spec in ("zstd,5", "deflate,1", "gzip", "lzma", "lz4", "blosc,0,0,0,0,5,1,5"):
        with t.mount(file, "filter=" + spec) as m:
            t.call(gdal_same, file, m.path)


# ---- quantisation ----

MODES = {"bitgroom": "BitGroom", "granularbr": "GranularBitRound", "bitround": "BitRound"}
QUANT = (("bitgroom", 1), ("bitgroom", 3), ("bitgroom", 5), ("granularbr", 1),
         ("granularbr", 3), ("granularbr", 6), ("bitround", 3), ("bitround", 11),
         ("bitround", 20))


def write_floats(path, mode=None, digits=0):
    """Each variable is one chunk, written by one call: netCDF-C 4.9.0 counts BitGroom's elements
    from the start of a call. mode None: not quantised."""
    rng = np.random.RandomState(5)
    values = rng.randn(40, 50) * 10.0 ** rng.randint(-20, 20, (40, 50))
    values[3, 4] = 0
    more = {}
    if mode:
        more = {"significant_digits": digits, "quantize_mode": MODES[mode]}
    with netCDF4.Dataset(path, "w") as nc:
        nc.set_fill_off()
        nc.createDimension("y", 40)
        nc.createDimension("x", 50)
        for name, kind, fill in (("f", "f4", None), ("d", "f8", None), ("own", "f4", -0.1),
                                 ("owns", "f8", 1234.5678)):
            v = nc.createVariable(name, kind, ("y", "x"), fill_value=fill, zlib=True,
                                  chunksizes=(40, 50), **more)
            v.set_auto_mask(False)
            here = values.copy()
            here[7, 8] = here[9, 9] = netCDF4.default_fillvals[kind] if fill is None else fill
            v[:] = here


def quant_same(want, mnt, name, mode, digits):
    import zarr
    attr = f"_Quantize{MODES[mode]}NumberOfSignificant{'Bits' if mode == 'bitround' else 'Digits'}"
    nc = name.endswith(".nc")
    got = h5py.File(os.path.join(mnt, name), "r") if nc else zarr.open(mnt, mode="r")
    with h5py.File(want, "r") as f:
        for v in ("f", "d", "own", "owns"):
            assert f[v].attrs[attr] == digits, "the file itself"
            a, b = f[v][()], got[v][()]
            assert a.tobytes() == b.tobytes(), (v, np.argwhere(a != b)[:3], a[a != b][:3],
                                                b[a != b][:3])
            assert np.all(np.asarray(got[v].attrs[attr]) == digits), dict(got[v].attrs)
            if nc:
                mine, theirs = got[v].attrs.get_id(attr), f[v].attrs.get_id(attr)
                assert mine.dtype == theirs.dtype and mine.shape == theirs.shape


def test_quantize_as_netcdf(t):
    plain = t.path("floats.nc")
    t.call(write_floats, plain)
    for mode, digits in QUANT:
        want = t.path(f"{mode}{digits}.nc")
        t.call(write_floats, want, mode, digits)
        rule = f"quantize=*,{mode},{digits}"
        for options in ((rule,), (rule, "filter=shuffle|zstd")):
            with t.mount(plain, *options) as m:
                t.call(quant_same, want, m.path, "", mode, digits)
        for options in ((rule,), (rule, "filter=shuffle|deflate")):
            with t.mount(plain, "view=nc", *options) as m:
                t.call(quant_same, want, m.path, "floats.nc", mode, digits)


def test_quantize_pays(t):
    """What it is for: fewer bytes with a compressor behind it."""
    file = t.path("sample.nc")
    sample(file)
    size = {}
    for rule in ("filter=shuffle|zstd", "filter=shuffle|zstd,quantize=granularbr,2"):
        with t.mount(file, rule) as m:
            size[rule] = sum(os.stat(f"{m.path}/contiguous/{n}").st_size
                             for n in os.listdir(m.path + "/contiguous"))
    a, b = size.values()
    assert b * 3 < a, size


# ---- what it costs ----

def chunk_bytes(m):
    """Bytes that the server has read until now."""
    total = 0
    for pid in m.pids:
        with open(f"/proc/{pid}/io", encoding="ascii") as f:
            total += int(f.readline().split()[1])
    return total


def test_listing_encodes_nothing(t):
    file = t.path("long.nc")
    with h5py.File(file, "w") as f:
        f.create_dataset("v", data=np.random.RandomState(1).rand(50, 40000), chunks=(1, 40000))
    with t.mount(file, "filter=zstd") as m:
        before = chunk_bytes(m)
        names = [n for n in os.listdir(m.path + "/v") if n[0] != "."]
        assert len(names) == 50
        assert chunk_bytes(m) - before < 200000, "a chunk has 320000 bytes"
        sizes = {n: os.stat(f"{m.path}/v/{n}").st_size for n in names}
        first = chunk_bytes(m) - before
        assert first > 50 * 320000, "sizes come from encoding"
        exact_sizes(m.path + "/v")
        assert sizes == {n: os.stat(f"{m.path}/v/{n}").st_size for n in names}


# SEMANTICS C12
def test_small_cache(t):
    """Everything is encoded again and again, and is always the same."""
    file = t.path("sample.nc")
    sample(file)
    for options in (("cache_size=1M", "decode_threads=3"), ("cache_size=0",)):
        with t.mount(file, "filter=shuffle|zstd", *options) as m:
            t.call(check_chains, file, m.path, *SPECS["shuffle|deflate,4"][:1], "zstd",
                   ("one", "text", "deep") + unreadable(t, file))
    source = t.path("s.zarr")
    t.call(tree_sample, source)
    with t.mount(source, "filter=shuffle|deflate", "cache_size=0", "decode_threads=3") as m:
        t.call(nc_chains, source, virtual(m.path), [2, 1])


def read_around(find, rng, want):
    """One chunk file, or a slice through a client, at random."""
    import numcodecs
    path = find()
    if path.endswith(".nc"):
        with h5py.File(path, "r") as f:
            name = rng.choice(list(want))
            i = rng.randrange(30)
            assert f[name][i].tobytes() == want[name][i].tobytes(), name
        return
    name = rng.choice(list(want))
    key = f"{rng.randrange(30)}.0.0"
    file = f"{path}/{name}/{key}"
    size = os.stat(file).st_size
    with open(file, "rb") as f:
        data = f.read()
    assert len(data) == size, f"{file}: {size} and {len(data)}"
    raw = numcodecs.Zstd().decode(data)
    got = np.frombuffer(numcodecs.Shuffle(want[name].dtype.itemsize).decode(raw),
                        want[name].dtype)
    assert got.tobytes() == want[name][int(key.split(".")[0])].tobytes(), file


def rows(path, as_tree):
    """Arrays of 30 chunks of one row, as a file or a tree."""
    rng = np.random.RandomState(9)
    data = {"a": np.cumsum(rng.randn(30, 20, 500), axis=2).astype("f4"),
            "b": rng.randint(0, 50, (30, 20, 500)).astype("i8")}
    if as_tree:
        import numcodecs
        import zarr
        g = zarr.open_group(path, mode="w")
        for name, v in data.items():
            g.create_dataset(name, data=v, chunks=(1, 20, 500), compressor=numcodecs.Zlib(1))
    else:
        with h5py.File(path, "w") as f:
            for name, v in data.items():
                f.create_dataset(name, data=v, chunks=(1, 20, 500), compression="gzip")
    return data


def stress_one(t, find, want):
    import random
    failures, progress = t.path("failure"), Progress(4)

    def reader(who):
        rng = random.Random(who)
        for _ in range(60):
            read_around(find, rng, want)
            progress.done(who)
    children = [in_child(failures, reader, i) for i in range(4)]
    text = collect(children, failures, t)
    assert not text, text
    assert min(progress.cells[:4]) == 60, list(progress.cells)


def test_stress_encode(t):
    """Many readers of chunks that are encoded for them, with next to no cache."""
    file, source = t.path("rows.nc"), t.path("rows.zarr")
    want = rows(file, False)
    t.call(rows, source, True)
    for cache in ("cache_size=0", "cache_size=300K", "cache_size=64M"):
        options = (cache, "decode_threads=3")
        with t.mount(file, "filter=shuffle|zstd,1", *options) as m:
            stress_one(t, lambda: m.path, want)
        with t.mount(source, "filter=shuffle|deflate,1", *options) as m:
            stress_one(t, lambda: virtual(m.path), want)


def test_many_threads_one_chunk(t):
    """One encoding serves all who ask at the same time."""
    file = t.path("one.nc")
    data = np.random.RandomState(2).randint(0, 9, 2000000).astype("i4")
    with h5py.File(file, "w") as f:
        f.create_dataset("v", data=data, chunks=(2000000,))
    with t.mount(file, "filter=zstd,9") as m:
        wrong = []

        def reader():
            import numcodecs
            with open(m.path + "/v/0", "rb") as f:
                if bytes(numcodecs.Zstd().decode(f.read())) != data.tobytes():
                    wrong.append(1)
        threads = [threading.Thread(target=reader) for _ in range(6)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        assert not wrong


def cases():
    for spec in SPECS:
        yield f"chain/{spec.replace('*', 'all').replace('/', '_')}", functools.partial(
            one_spec, spec)
    for i, (name, feature) in enumerate(gen.load().items()):
        yield f"zarr_of/{name}", functools.partial(zarr_of, feature,
                                                   ROTATION[i % (len(ROTATION) - 1)])
    for name, made in trees.load().items():
        yield f"nc_of/{name}", functools.partial(nc_of, made)
