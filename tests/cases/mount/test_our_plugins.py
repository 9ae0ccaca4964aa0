# SPDX-License-Identifier: BSD-3-Clause
"""Our plugins in programs of others (h5py, HDF5's and netCDF-C's tools), and our codecs inside
libhdf5 in the mount's own children. docs/how-to/hdf5-filter-plugins.md."""
import os
import shutil
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from lib.context import ROOT, Skip, corpus

BZIP2, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 307, 32000, 32001, 32004, 32008, 32015
BITGROOM, GRANULARBR = 32022, 32023
LZF, BITSHUFFLE = 32000, 32008
MANDATORY = 0  # H5Z_FLAG_MANDATORY
NAMES = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
OTHERS = "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins"  # Debian's, without zstd


def ours(t):
    folder = os.path.join(os.path.dirname(os.path.abspath(t.binary)), "plugins")
    assert os.path.isdir(folder), f"{folder} is missing: make plugins"
    return folder


def others():
    if not os.path.exists(os.path.join(OTHERS, "libh5bz2.so")):
        raise Skip("no plugins of others: apt install hdf5-filter-plugin "
                   "hdf5-filter-plugin-blosc-serial")
    return OTHERS


def only(folder):
    """From now on libhdf5 in this process looks for plugins there and nowhere else."""
    from h5py import h5pl
    while h5pl.size() > 1:
        h5pl.remove(h5pl.size() - 1)
    h5pl.replace(folder.encode(), 0)


# ---- chunks of Zarr trees, passed through a mount to readers with our plugins ----

def compressors():
    import numcodecs
    from numcodecs import blosc
    for name in NAMES:
        for shuffle in (0, 1, 2):
            if name in blosc.list_compressors():
                yield f"blosc_{name}_{shuffle}", numcodecs.Blosc(name, 5, shuffle)
    yield "zstd", numcodecs.Zstd(3)
    yield "zstd_fast", numcodecs.Zstd(-5)
    yield "bz2", numcodecs.BZ2(1)


def write_tree(path):
    import numcodecs
    import zarr
    g = zarr.open_group(path, mode="w")
    for name, compressor in compressors():
        for dtype in ("<i4", ">f8", "|u1"):
            size = np.dtype(dtype).itemsize
            for filters in (None, [numcodecs.Shuffle(size)]):
                a = g.create_dataset(f"{name}_{dtype[1:]}{'_s' if filters else ''}",
                                     shape=(37, 50), chunks=(20, 16), dtype=dtype,
                                     compressor=compressor, filters=filters, fill_value=0)
                a[:] = (np.arange(1850) // 3 % 100).reshape(37, 50)


def same_as_zarr(source, mnt, plugins):
    import zarr
    only(plugins)
    g = zarr.open(source, mode="r")
    with h5py.File(os.path.join(mnt, os.listdir(mnt)[0]), "r") as f:
        assert len(list(g.array_keys())) > 60
        for name, a in g.arrays():
            chain = f[name].id.get_create_plist()
            assert chain.get_filter(chain.get_nfilters() - 1)[0] in (BLOSC, ZSTD, BZIP2), name
            assert np.array_equal(f[name][...], a[...]), name


def test_kept_chunks(t):
    """What filter=keep passes is read by h5py, h5dump, ncdump and netCDF4 with our plugins."""
    source = t.path("a.zarr")
    t.call(write_tree, source)
    with t.mount(source, "view=nc", "filter=keep") as m:
        t.call(same_as_zarr, source, m.path, ours(t))
        file = os.path.join(m.path, "a.nc")
        for tool in ("h5dump", "ncdump"):
            status, out, err = t.run(tool, file, env={"HDF5_PLUGIN_PATH": ours(t)})
            assert status == 0 and not err, f"{tool}: {err}"
            assert len(out) > 400000
        status, _, _ = t.run("ncdump", file, env={"HDF5_PLUGIN_PATH": t.path("none")})
        assert status != 0, "the chunks need no plugin"


# ---- datasets that our plugin or another one wrote ----

def samples():
    r = np.random.default_rng(1)
    yield "ramp", np.arange(12000, dtype="<f8").reshape(100, 120)
    yield "noise", r.integers(0, 256, (100, 120)).astype("u1")
    yield "big", np.arange(12000, dtype=">i2").reshape(100, 120)
    yield "pairs", np.array([(k, k / 2) for k in range(12000)], "i4,f8").reshape(100, 120)


CHAINS = {"bz": (BZIP2, (9,)), "bz0": (BZIP2, ()), "lz4": (LZ4, (0,)), "lz4b": (LZ4, (1000,)),
          "blosc0": (BLOSC, ()), "blosc": (BLOSC, (0, 0, 0, 0, 9, 2, 5)),
          "blosc_lz": (BLOSC, (0, 0, 0, 0, 5, 1, 0))}
SHUFFLED = {"bs0": (BITSHUFFLE, ()), "bs": (BITSHUFFLE, (64,)), "bslz4": (BITSHUFFLE, (0, 2))}
PAIRS = (("ours", "others"), ("others", "ours"))


def write_datasets(path, plugins, chains):
    only(plugins)
    with h5py.File(path, "w") as f:
        for name, data in samples():
            for chain, (number, params) in chains.items():
                f.create_dataset(f"{name}_{chain}", data=data, chunks=(30, 50),
                                 compression=number, compression_opts=params)


def read_datasets(path, plugins):
    only(plugins)
    want = dict(samples())
    with h5py.File(path, "r") as f:
        for name in f:
            data = want[name.split("_")[0]]
            assert np.array_equal(f[name][...], data), name


def test_exchange(t):
    """What ours write others read, and the other way round."""
    folders = {"ours": ours(t), "others": others()}
    has = os.path.exists(os.path.join(OTHERS, "libh5bshuf.so"))  # Debian's bitshuffle
    for writer, reader in PAIRS:
        path = t.path(writer + ".h5")
        t.call(write_datasets, path, folders[writer], dict(CHAINS, **(SHUFFLED if has else {})))
        t.call(read_datasets, path, folders[reader])
        t.call(read_datasets, path, folders[writer])


def same_parameters(one, two):
    with h5py.File(one, "r") as a, h5py.File(two, "r") as b:
        for name in a:
            # of bzip2 and lz4 the other plugins have no set_local: no parameters, no defaults
            if "blosc" in name:
                x, y = (f[name].id.get_create_plist().get_filter(0)[2] for f in (a, b))
                assert x[:4] == y[:4] and (not name.endswith("blosc") or x == y), f"{x} {y}"


def test_blosc_parameters(t):
    """The plugin stores what the dataset is made of: the versions, element, chunk."""
    for writer, folder in (("ours", ours(t)), ("others", others())):
        t.call(write_datasets, t.path(writer + ".h5"), folder, CHAINS)
    t.call(same_parameters, t.path("ours.h5"), t.path("others.h5"))


def test_zstd(t):
    """Debian has no plugin for zstd: what ours writes is read by the mount, and by libzstd."""
    path = t.path("zstd.h5")
    t.call(write_datasets, path, ours(t), {"z": (ZSTD, ()), "z9": (ZSTD, (9,))})
    t.call(read_datasets, path, ours(t))

    def frames():
        import numcodecs
        with h5py.File(path, "r") as f:
            for name, data in samples():
                for chain in ("z", "z9"):
                    mask, raw = f[f"{name}_{chain}"].id.read_direct_chunk((30, 50))
                    assert mask == (name == "noise"), "h5py's filters are optional"
                    raw = raw if mask else numcodecs.Zstd().decode(raw)
                    got = np.frombuffer(raw, data.dtype)
                    assert np.array_equal(got.reshape(30, 50), data[30:60, 50:100]), name
    t.call(frames)


def test_repack(t):
    """h5repack gives a dataset's parameters to the plugin a second time."""
    path = t.path("a.h5")
    chains = dict(CHAINS, z=(ZSTD, (3,)), lzf=(LZF, ()), bsz=(BITSHUFFLE, (0, 3, 5)), **SHUFFLED)
    t.call(write_datasets, path, ours(t), chains)
    env = {"HDF5_PLUGIN_PATH": ours(t)}
    for name, options in (("same", ()), ("other", ("-f", "UD=32015,0,1,5"))):
        status, out, err = t.run("h5repack", *options, path, t.path(name + ".h5"), env=env)
        assert status == 0, out + err
        t.call(read_datasets, t.path(name + ".h5"), ours(t))
    with h5py.File(path, "r") as a, h5py.File(t.path("same.h5"), "r") as b:
        for name in a:
            x, y = (f[name].id.get_create_plist().get_filter(0) for f in (a, b))
            assert x == y, f"{name}: {x} {y}"


def test_lzf(t):
    """h5py has its own filter for LZF; ours writes what that one reads, and the other way round."""
    env = {"HDF5_PLUGIN_PATH": ours(t)}
    with h5py.File(t.path("a.h5"), "w") as f:
        for name, data in samples():
            f.create_dataset(name, data=data, chunks=(30, 50), compression="lzf")
    for source, target, options in (("a", "plain", ("-f", "NONE")),
                                    ("plain", "b", ("-f", f"UD={LZF},0,0"))):
        status, out, err = t.run("h5repack", *options, t.path(source + ".h5"),
                                 t.path(target + ".h5"), env=env)
        assert status == 0, out + err
    for name in ("plain", "b"):
        with h5py.File(t.path(name + ".h5"), "r") as f, h5py.File(t.path("a.h5"), "r") as g:
            for key, data in samples():
                assert np.array_equal(f[key][...], data), f"{name}: {key}"
                assert f[key].compression == ("lzf" if name == "b" else None)
                if name == "b":
                    x, y = (i[key].id.get_create_plist().get_filter(0) for i in (f, g))
                    assert x[2] == y[2], f"{x} {y}"


# ---- filters that are not for every dataset ----

def low(f, name, ftype, data, filters, chunks):
    """A dataset of a type in the file that numpy has no name for. filters: id, flags, params."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunks)
    for number, flags, params in filters:
        dcpl.set_filter(number, flags, params)
    d = h5d.create(f.id, name.encode(), ftype, h5s.create_simple(data.shape), dcpl)
    d.write(h5s.ALL, h5s.ALL, data)
    return d


def write_lossy(f, number, data, whole):
    d = f.create_dataset(f"d{number}", data=data, chunks=(300,), compression=number,
                         compression_opts=(4,), fillvalue=data[7])
    params = d.id.get_create_plist().get_filter(0)[2]
    assert params == (4, 8, 1, *data[7:8].view("<u4")), params
    try:
        low(f, f"i{number}", h5t.STD_I32LE, whole, [(number, MANDATORY, (4,))], (30,))
        raise RuntimeError("integers were rounded")
    except ValueError:
        pass
    low(f, f"o{number}", h5t.STD_I32LE, whole, [(number, h5py.h5z.FLAG_OPTIONAL, (4,))],
        (30,))


def lossy(path, plugins):
    only(plugins)
    data = np.random.default_rng(2).normal(1e3, 10, 1000)
    whole = np.arange(100, dtype="i4")
    with h5py.File(path, "w") as f:
        for number in (BITGROOM, GRANULARBR):
            write_lossy(f, number, data, whole)
    with h5py.File(path, "r") as f:
        for number in (BITGROOM, GRANULARBR):
            got = f[f"d{number}"][...]
            assert got[7] == data[7] and np.sum(got != data) > 900
            assert np.allclose(got, data, rtol=5e-4)
            d = f[f"o{number}"]
            assert d.id.read_direct_chunk((0,))[0] == 1, "the filter was not left out"
            assert np.array_equal(d[...], whole)


def test_lossy(t):
    """BitGroom and Granular BitRound know the type and the fill value of their dataset; other
    types they refuse, or leave alone when they are optional."""
    t.call(lossy, t.path("a.h5"), ours(t))


def refused(path, plugins):
    only(plugins)
    with h5py.File(path, "w") as f:
        for params in ((0, 0, 0, 0, 10, 1, 1), (0, 0, 0, 0, 5, 3, 1), (0, 0, 0, 0, 5, 1, 9)):
            try:
                f.create_dataset("a", data=np.arange(10), chunks=(5,), compression=BLOSC,
                                 compression_opts=params)
                raise RuntimeError(f"{params} were taken")
            except ValueError:
                pass


def test_refused(t):
    t.call(refused, t.path("a.h5"), ours(t))


# ---- damage, through libhdf5 ----

def damage(path, plugins):
    only(plugins)
    data = np.arange(4000, dtype="<i4") // 3
    with h5py.File(path, "w") as f:
        for name, (number, params) in dict(CHAINS, z=(ZSTD, (3,)), bsz=(BITSHUFFLE, (0, 3)),
                                           **SHUFFLED).items():
            d = f.create_dataset(name, data=data, chunks=(4000,), compression=number,
                                 compression_opts=params)
            mask, raw = d.id.read_direct_chunk((0,))
            for at in list(range(0, min(len(raw), 40))) + [len(raw) // 2, len(raw) - 1]:
                for bad in (raw[:at] + bytes([raw[at] ^ 0xff]) + raw[at + 1:], raw[:at]):
                    if not bad:
                        continue
                    d.id.write_direct_chunk((0,), bad, mask)
                    d.id.refresh()
                    try:
                        d[...]  # some damage cannot be seen
                    except OSError:
                        pass


def test_damaged(t):
    """Chunks with flipped bytes and cut ones give an error or other data, and nothing worse."""
    t.call(damage, t.path("a.h5"), ours(t))


# ---- real files ----

def test_corpus(t):
    """Files that other plugins wrote, with ours alone."""
    if not corpus():
        raise Skip("no corpus")
    folder = os.path.join(corpus(), "hdf5", "HDFGroup-hdf5_plugins")
    i, j = np.mgrid[0:32, 0:64]
    found = 0

    def formula(path):
        only(ours(t))
        with h5py.File(path, "r") as f:
            data = f["DS1"][...]
            assert np.array_equal(data, i * j - j), path

    for name in ("blosc", "bzip2", "lz4", "lzf", "bshuf"):
        t.call(formula, os.path.join(folder, f"h5ex_d_{name}.h5"))
        found += 1
    for name in [os.path.join(folder, f"h5ex_d_{n}.h5") for n in (
            "blosc", "bzip2", "lz4", "zstd", "bitgroom", "granularbr", "lzf", "bshuf")] + [
            os.path.join(corpus(), "hdf5", "silx-kit-hdf5plugin", "blosc.h5")]:
        status, out, err = t.run("h5dump", name, env={"HDF5_PLUGIN_PATH": ours(t)})
        assert status == 0 and "(0" in out, f"{name}: {err}"
        found += 1
    assert found == 14


# ---- netCDF-C on HDF5 files ----

NETCDF_FILTERS = {"zstd": "32015,3", "bzip2": "307,9", "blosc": "32001,0,0,0,0,5,2,5"}
NETCDF_STORED = dict(NETCDF_FILTERS, blosc="32001,2,2,4,12000,5,2,5")
NETCDF_READ = """
import sys, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as nc:
    for n in nc.variables:
        assert np.array_equal(nc[n][:], np.arange(3000, dtype='f4').reshape(50, 60)), n
"""


def write_netcdf(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("y", 50)
        nc.createDimension("x", 60)
        for name in NETCDF_FILTERS:
            v = nc.createVariable(name, "f4", ("y", "x"), chunksizes=(50, 60))
            v[:] = np.arange(3000, dtype="f4").reshape(50, 60)


def test_netcdf(t):
    """netCDF-C writes and reads zstd, bzip2 and blosc with our plugins."""
    env = {"HDF5_PLUGIN_PATH": ours(t)}
    t.call(write_netcdf, t.path("plain.nc"))
    options = [w for n, f in NETCDF_FILTERS.items() for w in ("-F", f"{n},{f}")]
    status, out, err = t.run("nccopy", *options, t.path("plain.nc"), t.path("a.nc"), env=env)
    assert status == 0, out + err
    status, out, err = t.run("ncdump", "-hs", t.path("a.nc"), env=env)
    for name, text in NETCDF_STORED.items():
        assert f'{name}:_Filter = "{text}"' in out, out + err
    status, out, err = t.run(sys.executable, "-c", NETCDF_READ, t.path("a.nc"), env=env)
    assert status == 0, out + err
    status, out, err = t.run("h5diff", t.path("plain.nc"), t.path("a.nc"), env=env)
    assert status == 0, out + err


# ---- what a plugin is linked with ----

NEEDED = {"bitgroom": set(), "bitround": set(), "bitshuffle": {"liblz4", "libzstd"},
          "blosc": {"libblosc"}, "bzip2": {"libbz2"}, "granularbr": set(), "lz4": {"liblz4"},
          "lzf": {"liblzf"}, "zstd": {"libzstd"}}


def test_self_contained(t):
    """A program that loads one gets no other HDF5 and no other names."""
    if not shutil.which("readelf"):
        raise Skip("no readelf")
    for name in sorted(n for n in os.listdir(ours(t)) if n.endswith(".so")):
        codec = name[len("libnczarrfs_h5"):-len(".so")]
        _, out, _ = t.run("readelf", "-dW", "--dyn-syms", os.path.join(ours(t), name))
        needed = {line.split("[")[1].split(".so")[0] for line in out.splitlines()
                  if "(NEEDED)" in line}
        assert needed - {"libc", "libm"} == NEEDED[codec], f"{name}: {needed}"
        defined = {line.split()[-1].split("@")[0] for line in out.splitlines()
                   if " FUNC " in line and " UND " not in line or " OBJECT " in line}
        entries = {"H5PLget_plugin_type", "H5PLget_plugin_info"}
        assert entries <= defined <= entries | {"NCZ_get_codec_info"}, f"{name}: {defined}"


def test_install(t):
    """Where make install puts them, and what it says."""
    script = os.path.join(ROOT, "scripts", "install-plugins")
    built = os.path.dirname(ours(t))
    names = {n for n in os.listdir(ours(t)) if n.endswith(".so")}
    for env, folder, said in (
            ({"HDF5_PLUGIN_PATH": ""}, None, "HDF5 finds them there"),
            ({"HDF5_PLUGIN_PATH": "/a/b:/c d/e"}, "/c d/e", "HDF5 finds them there"),
            ({"HDF5_PLUGIN_PATH": "/a", "PLUGINDIR": "/x"}, "/x", "HDF5_PLUGIN_PATH=/x:/a"),
            ({"HDF5_PLUGIN_PATH": "/taken/b", "prefix": "/p"}, "/p/lib/nczarrfs/plugins",
             "HDF5_PLUGIN_PATH=/p/lib/nczarrfs/plugins:/taken/b")):
        root = t.path(f"root{t.number()}")
        os.mkdir(root)
        with open(os.path.join(root, "taken"), "w"):
            pass  # where a directory would have to be
        status, out, err = t.run(script, built, env=dict({"PLUGINDIR": ""}, **env, DESTDIR=root))
        assert status == 0 and said in out, out + err
        if folder:
            assert set(os.listdir(root + folder)) == names, f"{folder}: {out}"
        else:
            found = [d for d, _, files in os.walk(root) if set(files) == names]
            assert len(found) == 1 and found[0].startswith(root + "/usr"), found


# ---- our codecs in libhdf5, in the mount's children ----

def convertible(path, plugins):
    """Arrays that only libhdf5 can convert, with filters that it does not know."""
    only(plugins)
    whole = np.arange(1000, dtype="i4") - 500
    text = np.array(["abc%d" % k * (k % 7) for k in range(500)], dtype=object)
    narrow = h5t.STD_I32LE.copy()
    narrow.set_precision(20)
    narrow.set_offset(4)
    floats = h5t.IEEE_F32LE.copy()
    floats.set_fields(20, 12, 8, 0, 12)
    floats.set_offset(0)
    floats.set_precision(21)
    floats.set_size(3)
    chains = {"zstd": [(ZSTD, (3,))], "bz": [(BZIP2, (9,))], "lz4": [(LZ4, (0,))],
              "blosc": [(BLOSC, (0, 0, 0, 0, 5, 1, 5))],
              "three": [(2, ()), (ZSTD, (3,)), (3, ())], "two": [(BLOSC, ()), (BZIP2, (9,))],
              "bs": [(BITSHUFFLE, (0, 2))], "lzf": [(2, ()), (LZF, ())]}
    with h5py.File(path, "w") as f:
        for name, filters in chains.items():
            filters = [(number, MANDATORY, params) for number, params in filters]
            low(f, "narrow_" + name, narrow, whole, filters, (300,))
            low(f, "floats_" + name, floats, whole.astype("f4"), filters, (300,))
        for name in ("zstd", "bz", "blosc"):
            number, params = chains[name][0]
            f.create_dataset("text_" + name, data=text, dtype=h5py.string_dtype(),
                             chunks=(100,), compression=number, compression_opts=params)
        number, params = chains["zstd"][0]
        d = f.create_dataset("plain", data=whole, chunks=(300,), compression=number)
        layout = h5py.VirtualLayout(shape=(2, 1000), dtype="i4")
        layout[0] = h5py.VirtualSource(d)
        layout[1] = h5py.VirtualSource(d)
        f.create_virtual_dataset("virtual", layout)


def converted(mnt):
    import zarr
    whole = np.arange(1000, dtype="i4") - 500
    g = zarr.open(mnt, mode="r")
    assert len(list(g.array_keys())) == 21
    for name, a in g.arrays():
        if name.startswith("text"):
            assert list(a[...]) == ["abc%d" % k * (k % 7) for k in range(500)], name
        elif name == "virtual":
            assert np.array_equal(a[...], np.stack([whole, whole])), name
        else:
            assert np.array_equal(a[...], whole), name


def test_converted(t):
    """libhdf5 in the mount's child gets our decoders: no plugin is installed anywhere."""
    path = t.path("a.h5")
    t.call(convertible, path, ours(t))
    os.environ["HDF5_PLUGIN_PATH"] = t.path("none")
    with t.mount(path) as m:
        t.call(converted, m.path)


def cut_chunks(path):
    only(path)
    with h5py.File(path, "r+") as f:
        d = f["narrow_zstd"].id
        mask, raw = d.read_direct_chunk((300,))
        d.write_direct_chunk((300,), raw[:len(raw) // 2], mask)
        d.write_direct_chunk((600,), raw[:4] + bytes([0xe0]) + b"\xff" * 8 + raw[13:], mask)


def cut_read(mnt):
    import zarr
    a = zarr.open(mnt, mode="r")["narrow_zstd"]
    assert np.array_equal(a[:300], np.arange(300) - 500)
    for at in (300, 600):
        try:
            a[at]
            raise RuntimeError(f"the chunk at {at} is damaged")
        except OSError:
            pass
    assert np.array_equal(a[900:], np.arange(900, 1000) - 500)


def test_converted_damaged(t):
    """A cut chunk and one that claims too much cost themselves, not the process."""
    path = t.path("a.h5")
    t.call(convertible, path, ours(t))
    t.call(cut_chunks, path)
    with t.mount(path) as m:
        t.call(cut_read, m.path)
