# SPDX-License-Identifier: BSD-3-Clause
"""Any source in either view: netCDF-4 files as virtual netCDF-4 files, Zarr trees as Zarr trees.
And what programs of every day do with a virtual file; that it is the same file for the same tree,
that chunks kept compressed are what HDF5's plugins decode, that opening reads no chunk."""
import functools
import os
import random
import shutil
import subprocess
import threading

import gen
from gen import trees, z_climate
from lib import clients, mounts
from lib.context import Skip, corpus

FEATURES = ("nested_groups", "shared_dims", "unlimited", "coordinate_2d", "everything_decoded",
            "big_endian", "char_arrays", "classic_model", "compounds", "creation_order", "enums",
            "fill_values", "filter_masks", "layouts", "missing_chunks", "opaque", "packed_data",
            "utf8_names", "vl_strings", "vlens", "zero_length", "user_block")
FILES = ("Unidata-netcdf-c/ref_tst_compounds.nc", "Unidata-netcdf-c/ref_tst_dims.nc",
         "Unidata-netcdf-c/nctest_netcdf4_classic.nc", "Unidata-netcdf4-python/issue1152.nc",
         "OPENDAP-bes/nc4_group_unlimited_comp.h5", "OPENDAP-bes/FletcherShuffle.nc4",
         "fsspec-kerchunk/air.nc", "gauteh-hidefix/feb.nc4", "rouault-gdal/trmm-nc4z.nc")
TREES = ("numbers", "times", "fixed_texts", "free_texts", "structures", "codecs", "v3_numbers",
         "v3_texts", "v3_shards", "zip_deflated")
PLUGINS = ("/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins", "/usr/local/hdf5/lib/plugin")


def virtual(mnt):
    names = os.listdir(mnt)
    assert len(names) == 1, f"one file expected: {names}"
    return os.path.join(mnt, names[0])


# ---- either view ----

def nc_compare(original, tree, mnt):
    """ncdump is the same; values are those of the file's Zarr view."""
    from clients.netcdf import nc_h5py, nc_nc
    print(nc_nc.compare(original, virtual(mnt)))
    nc_h5py.compare(tree, virtual(mnt), values_only=True)


def nc_of(write, t):
    file = write(t)
    with t.mount(file, "view=nc") as m, t.mount(file, "view=zarr", "filter=none") as z:
        t.call(nc_compare, file, z.path, m.path)


def write_feature(name, t):
    file = t.path(name + ".nc")
    gen.load()[name].write(file)
    return file


def corpus_file(row, t):
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "netcdf4", row)):
        raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with netcdf4 in it")
    return os.path.join(root, "netcdf4", row)


def zarr_compare(source, mnt):
    from clients import tree_tree
    tree_tree.compare(source, mnt)


def zarr_of(name, t):
    made = trees.load()[name]
    source = t.path(name + made.ending)
    made.write(source)
    with t.mount(source, "view=zarr") as m:
        t.call(zarr_compare, source, m.path)


def xarray_same(source, mnt):
    import xarray
    want = xarray.open_zarr(source, consolidated=False).load()
    got = xarray.open_zarr(mnt).load()
    xarray.testing.assert_identical(want.drop_vars("zone"), got.drop_vars("zone"))
    assert want.zone.values.tolist() == got.zone.values.tolist()


def climate(t):
    source = t.path("climate.zarr")
    z_climate.write(source)
    return source


def test_zarr_of_zarr_xarray(t):
    source = climate(t)
    with t.mount(source, "view=zarr") as m:
        t.call(zarr_compare, source, m.path)
        t.call(xarray_same, source, m.path)


# ---- programs ----

def run(t, *args):
    status, out, err = t.run(*args)
    assert status == 0, f"{' '.join(args)}: {out} {err}"
    return out


def need(program):
    if not shutil.which(program):
        raise Skip(f"no {program}")


def nco_same(source, out):
    import netCDF4
    import numpy as np
    import zarr
    tas = zarr.open(source)["tas"][:]
    with netCDF4.Dataset(out + "slab.nc") as nc:
        assert np.array_equal(nc["tas"][:], tas[2:9:3, 5:8, 1:4]), "ncks"
        assert nc["tas"].dimensions == ("time", "lat", "lon") and nc.title == "a model"
    with netCDF4.Dataset(out + "mean.nc") as nc:
        assert np.allclose(nc["tas"][0], tas.mean(axis=0), rtol=1e-6), "ncra"
    with netCDF4.Dataset(out + "diff.nc") as nc:
        assert not np.any(nc["tas"][:]) and nc["tas"].shape == tas.shape, "ncdiff"


def test_nco(t):
    need("ncks")
    source = climate(t)
    with t.mount(source) as m:
        file, out = os.path.join(m.path, "climate.nc"), t.path("o_")
        run(t, "ncks", "-O", "-v", "tas", "-d", "time,2,8,3", "-d", "lat,5,7", "-d", "lon,1,3",
            file, out + "slab.nc")
        run(t, "ncks", "-O", "--mk_rec_dmn", "time", "-v", "tas,pr", file, out + "rec.nc")
        run(t, "ncra", "-O", out + "rec.nc", out + "mean.nc")
        run(t, "ncdiff", "-O", "-v", "tas", file, file, out + "diff.nc")
        t.call(nco_same, source, out)


def test_cdo(t):
    need("cdo")
    source = climate(t)
    with t.mount(source) as m:
        file = os.path.join(m.path, "climate.nc")
        run(t, "cdo", "-s", "-f", "nc4", "copy", "-selname,tas,pr", file, t.path("copy.nc"))
        out = run(t, "cdo", "-s", "diffn", "-selname,tas,pr", file, t.path("copy.nc"))
        assert "differ" not in out, out
        assert "lonlat" in run(t, "cdo", "-s", "griddes", "-selname,tas", file)


def test_gdal(t):
    source = climate(t)
    # GDAL 3.6 has no shuffle for Zarr
    with t.mount(source) as m, t.mount(source, "view=zarr", "filter=none") as z:
        clients.script(t, "netcdf/nc_gdal.py", os.path.join(m.path, "climate.nc"), z.path, "tas")


# ---- plugins ----

def write_kept(path):
    import numcodecs
    import numpy as np
    import zarr
    g = zarr.open_group(path, mode="w")
    codecs = {"bz2": numcodecs.BZ2(5), "lz4": numcodecs.LZ4()}
    for name in ("lz4", "lz4hc", "blosclz", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            codecs[f"blosc_{name}_{shuffle}"] = numcodecs.Blosc(name, 5, shuffle)
    for name, codec in codecs.items():
        for t in ("u1", ">i2", "<f4", "<c16", "S3"):
            for filters in (None, [numcodecs.Shuffle(int(np.dtype(t).itemsize))]):
                v = np.random.RandomState(3).randint(0, 4, 1500 * np.dtype(t).itemsize)
                v = v.astype("u1").tobytes()
                g.array(f"{name}_{t.strip('<>')}{'_s' if filters else ''}",
                        np.frombuffer(v, t).reshape(30, 50), chunks=(12, 20),
                        compressor=codec, filters=filters, fill_value=None)


def kept_same(source, mnt):
    """What h5py decodes with the plugins; what passes is what it should be."""
    import h5py
    from clients.netcdf import nc_h5py
    have = {n: h5py.h5z.filter_avail(n) for n in (307, 32001)}
    if not all(have.values()):
        raise Skip(f"no HDF5 plugins for bzip2 and blosc: {have}")
    nc_h5py.compare(source, virtual(mnt))
    with h5py.File(virtual(mnt), "r") as nc:
        def chain(name):
            p = nc[name].id.get_create_plist()
            return [(p.get_filter(i)[0], p.get_filter(i)[2]) for i in range(p.get_nfilters())]
        assert chain("blosc_zstd_2_f4") == [(32001, (2, 2, 4, 12 * 20 * 4, 5, 2, 5))]
        assert chain("bz2_f4_s") == [(2, (4,)), (307, (5,))]
        assert chain("lz4_f4") == [], "numcodecs' lz4 is not HDF5's"


def test_kept_for_plugins(t):
    os.environ.setdefault("HDF5_PLUGIN_PATH", ":".join(PLUGINS))
    source = t.path("kept.zarr")
    t.call(write_kept, source)
    with t.mount(source, "filter=keep") as m:
        t.call(kept_same, source, m.path)


# ---- one file ----

def copy_tree(source, target):
    """The same tree, its files made in another order."""
    files = [os.path.join(base, n) for base, _, names in os.walk(source) for n in names]
    random.Random(1).shuffle(files)
    for file in files:
        to = os.path.join(target, os.path.relpath(file, source))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(file, to)


def read_randomly(file):
    """All bytes, and the same again in pieces by several readers at once."""
    with open(file, "rb") as f:
        data = f.read()
    wrong = []

    def reader(seed):
        rng = random.Random(seed)
        fd = os.open(file, os.O_RDONLY)
        for _ in range(100):
            at, n = rng.randrange(len(data) + 10), rng.choice([1, 512, 4096, 100000])
            if os.pread(fd, n, at) != data[at:at + n]:
                wrong.append((at, n))
        os.close(fd)
    threads = [threading.Thread(target=reader, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, f"pieces differ from the whole: {wrong[:3]}"
    return data


def same_files(a, b):
    first = read_randomly(a)
    with open(b, "rb") as f:
        assert f.read() == first, f"{b} is not {a}"


# SEMANTICS R5
def test_same_tree_same_file(t):
    source = climate(t)
    os.mkdir(t.path("copies"))
    copy_tree(source, t.path("copies/climate.zarr"))
    os.mkdir(t.path("zip"))
    trees.archive(source, t.path("zip/climate.zip"))
    for options in ((), ("filter=none",)):
        with t.mount(source, *options) as a:
            for other in ("copies/climate.zarr", "zip/climate.zip", "copies"):
                with t.mount(t.path(other), *options) as b:
                    t.call(same_files, a.path + "/climate.nc", b.path + "/climate.nc")


def chunk_bytes(m):
    """Bytes that the server has read until now, requests of the kernel among them."""
    total = 0
    for pid in m.pids:
        with open(f"/proc/{pid}/io") as f:
            total += int(f.readline().split()[1])
    return total


def write_long(path):
    import numcodecs
    import numpy as np
    import zarr
    g = zarr.open_group(path, mode="w")
    for name, codec in (("raw", None), ("decoded", numcodecs.Blosc())):
        a = g.create_dataset(name, shape=(40, 256, 256), chunks=(1, 256, 256), dtype="f4",
                             compressor=codec)
        a[:] = np.random.RandomState(1).rand(40, 256, 256)


def test_opening_reads_no_chunk(t):
    source = t.path("long.zarr")
    t.call(write_long, source)
    with t.mount(source) as m:
        before = chunk_bytes(m)
        run(t, "ncdump", "-h", os.path.join(m.path, "long.nc"))
        run(t, "h5dump", "-H", os.path.join(m.path, "long.nc"))
        read = chunk_bytes(m) - before
        assert read < 100000, f"{read} bytes read for headers, a chunk has 262144"


# ---- refusals ----

def test_lengths_disagree(t):
    source = t.path("odd.zarr")
    trees.group(source)
    for name, n in (("a", 6), ("b", 5)):
        trees.array(source, name, trees.ramp((n,)), (3,), {"_ARRAY_DIMENSIONS": ["x"]})
    with t.mount(source, check=False) as m:
        lines = m.messages().splitlines()
        assert m.status == 1 and not mounts.is_mounted(m.path), m.status
    assert len(lines) == 1 and lines[0].endswith(
        "'b/.zattrs': dimension 'x' is 6 long in '/a' and 5 long in '/b' "
        "(-o unsupported=skip mounts the rest)"), lines
    with t.mount(source, "unsupported=skip") as m:
        out = subprocess.run(["ncdump", os.path.join(m.path, "odd.nc")], capture_output=True,
                             text=True, timeout=60)
        assert "float a(x)" in out.stdout and "float b(phony_dim_" in out.stdout, out.stdout


def cases():
    for name in FEATURES:
        yield f"nc_of_nc/{name}", functools.partial(nc_of, functools.partial(write_feature, name))
    for row in FILES:
        yield f"nc_of_nc/{row}", functools.partial(nc_of, functools.partial(corpus_file, row))
    for name in TREES:
        yield f"zarr_of_zarr/{name}", functools.partial(zarr_of, name)
