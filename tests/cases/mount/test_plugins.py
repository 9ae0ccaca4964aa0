# SPDX-License-Identifier: BSD-3-Clause
"""Filters of others: Debian's packages as they are, and plugins of the tests' own
(tests/plugins), through real mounts. docs/dev/plugins.md."""
import errno
import json
import os
import shutil
import struct
import sys

import h5py
import numpy as np
import zarr
from h5py import h5d, h5p, h5pl, h5s, h5t

from lib import mounts
from lib.context import Skip, corpus

NAME = "nczarrfs-plugin"
ZFP, XOR, ROT, SAME, BAD = 32013, 40001, 40002, 40003, 40004
SYSTEM = "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins"
PACKAGES = {"libh5bz2.so": "hdf5-filter-plugin",
            "libH5Zblosc.so": "hdf5-filter-plugin-blosc-serial",
            "libh5zzfp.so": "hdf5-filter-plugin-zfp-serial"}


def packaged(name):
    if not os.path.exists(os.path.join(SYSTEM, name)):
        raise Skip(f"no {name}: apt install {PACKAGES[name]}")


def install(t, *names, folder="lib"):
    """A directory with plugins of the tests, which the mounts of this test, and h5py, look into."""
    built = os.path.join(os.path.dirname(os.path.abspath(t.binary)), "test-plugins")
    assert os.path.isdir(built), f"{built} is missing: make test-plugins"
    path = t.path(folder)
    os.mkdir(path, 0o755)
    for name in names:
        shutil.copy(os.path.join(built, f"lib{name}.so"), path)
        os.chmod(os.path.join(path, f"lib{name}.so"), 0o644)
    os.environ["HDF5_PLUGIN_PATH"] = path
    h5pl.prepend(path.encode())
    return path


def create(f, name, data, chunks, *filters, fill=None):
    """A dataset with filters, each (id, parameters)."""
    data = np.asarray(data)
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunks)
    if fill is not None:
        dcpl.set_fill_value(np.asarray(fill, data.dtype))
    for number, params in filters:
        dcpl.set_filter(number, 0, tuple(params))
    h5d.create(f.id, name.encode(), h5t.py_create(data.dtype), h5s.create_simple(data.shape), dcpl)
    f[name][...] = data
    return f[name]


def same(t, file, *options, names=None):
    """Every dataset of a file, as zarr-python reads the mount and h5py the file."""
    def compare(path):
        tree = zarr.open_group(path, mode="r")
        with h5py.File(file, "r") as f:
            for name in names or list(f):
                want, got = f[name][...], tree[name][...]
                assert got.dtype == want.dtype and got.shape == want.shape, name
                assert got.tobytes() == want.tobytes(), f"{name} differs"
    with t.mount(file, *options) as m:
        t.call(compare, m.path)


def info(t, *args):
    status, out, err = t.run(t.binary, "info", "-v", *args)
    assert status == 0, err
    return out


def children(m):
    found = []
    for pid in mounts.processes_of(m.path):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == NAME and mounts.alive(pid):
                    found.append(pid)
        except OSError:
            pass
    return found


def doubles(*values):
    return [w for v in values for w in struct.unpack("<II", struct.pack("<d", v))]


def waves(*shape):
    rng = np.random.default_rng(5)
    return np.cumsum(rng.standard_normal(shape), 0)


# ---- Debian's packages ----

def test_zfp(t):
    """Rate, precision, accuracy and reversible; floats, doubles, integers; edge chunks."""
    packaged("libh5zzfp.so")
    file = t.path("zfp.h5")
    with h5py.File(file, "w") as f:
        create(f, "rate", waves(50, 33), (16, 16), (ZFP, [1, 0] + doubles(16.0)))
        create(f, "precision", waves(50, 33).astype("f4"), (16, 33), (ZFP, [2, 0, 20]))
        create(f, "accuracy", waves(9, 20, 30), (4, 20, 8), (ZFP, [3, 0] + doubles(1e-3)),
               fill=7.5)
        create(f, "reversible", np.arange(1000, dtype="i4"), (300,), (ZFP, [5]))
        create(f, "checked", waves(40, 20), (20, 20), (ZFP, [5]), (3, []))
        stored = f["rate"].id.get_create_plist().get_filter(0)
        assert stored[0] == ZFP and len(stored[2]) > 2
    same(t, file)
    same(t, file, "filter=none")
    assert "zfp: no Zarr codec" in info(t, file)


def test_zfp_of_others(t):
    packaged("libh5zzfp.so")
    if not corpus():
        raise Skip("no corpus")
    for name in ("h5ex_d_zfp.h5", "testfiles__h5ex_d_zfp.h5"):
        file = os.path.join(corpus(), "hdf5", "HDFGroup-hdf5_plugins", name)
        if os.path.exists(file):
            same(t, file)


def test_zfp_in_libhdf5(t):
    """A virtual dataset is read by libhdf5, which is given the plugin for the file it is of."""
    packaged("libh5zzfp.so")
    data = waves(40, 20)
    with h5py.File(t.path("zfp.h5"), "w") as f:
        create(f, "v", data, (10, 20), (ZFP, [5]))
    layout = h5py.VirtualLayout((40, 20), "f8")
    layout[...] = h5py.VirtualSource("zfp.h5", "v", shape=(40, 20))
    with h5py.File(t.path("all.h5"), "w") as f:
        f.create_virtual_dataset("v", layout, fillvalue=-1)
    same(t, t.path("all.h5"), f"external_root={t.tmp}")
    # without plugins it is not libhdf5 that finds them
    with t.mount(t.path("all.h5"), f"external_root={t.tmp}", "noplugins") as m:
        t.call(expect_error, m.path, "v", ["0.0"])


def test_built_in_first(t):
    """lz4, bzip2 and blosc have plugins; what is built in is used."""
    packaged("libh5bz2.so")
    packaged("libH5Zblosc.so")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        create(f, "bzip2", waves(50), (20,), (307, [9]))
        create(f, "blosc", waves(50), (20,), (32001, [0, 0, 0, 0, 5, 1, 1]))
        create(f, "lz4", waves(50), (20,), (32004, []))
    same(t, file)
    same(t, file, "noplugins")
    status, out, _ = t.run(t.binary, "filters", "-v")
    line = f"{SYSTEM}/libh5bz2.so: bzip2 (307, not used: nczarrfs has it built in)"
    assert status == 0 and line in out, out


# ---- plugins of our own ----

def test_ours(t):
    """A chain of plugins and others; big-endian and small types."""
    install(t, "xor", "rot", "same")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        create(f, "a", np.arange(600, dtype=">i2").reshape(20, 30), (7, 30), (XOR, [90]))
        create(f, "b", waves(100), (30,), (2, []), (XOR, [1]), (1, [5]), (ROT, [200]), (3, []))
        create(f, "c", np.arange(40, dtype="u1"), (40,), (ROT, [3]), (XOR, [4]))
    same(t, file)
    text = info(t, file)
    assert "filters   xor(90,258,420,0)" in text, text  # what set_local stored


def copy_chunks(path, to):
    shutil.copytree(path, to)


def test_encode(t):
    """Chunks shown in a chain with plugins, and what the tree that they make is read back as."""
    install(t, "xor", "xorcodec", "rot")
    file = t.path("a.h5")
    data = {"x": waves(20, 10), "r": np.arange(100, dtype="i4").reshape(10, 10)}
    with h5py.File(file, "w") as f:
        create(f, "x", data["x"], (6, 10), (XOR, [90]))
        create(f, "r", data["r"], (10, 4), (1, [1]))
        chunk = f["x"].id.read_direct_chunk((6, 0))[1]
    with t.mount(file, "filter=x,xorz,90", "filter=r,shuffle|rot,7") as m:
        t.call(copy_chunks, m.path, t.path("a.zarr"))
    with open(t.path("a.zarr/x/.zarray")) as f:
        meta = json.load(f)
    assert meta["compressor"] == {"id": "xorz", "key": 90, "t": [1, 2]}, meta
    with open(t.path("a.zarr/x/1.0"), "rb") as f:
        assert f.read() == chunk
    with open(t.path("a.zarr/r/.zarray")) as f:
        meta = json.load(f)
    assert meta["compressor"] == {"id": "rot", "by": "7"}, meta
    assert [f["id"] for f in meta["filters"]] == ["shuffle"], meta
    as_nc_and_tree(t, t.path("a.zarr"), data)


def as_nc_and_tree(t, tree, data):
    def compare_nc(path, kept):
        with h5py.File(path, "r") as f:
            for name, want in data.items():
                assert np.array_equal(f[name][...], want), name
                plist = f[name].id.get_create_plist()
                assert (plist.get_nfilters() > 0) == kept, name

    def compare_tree(path):
        for name, want in data.items():
            assert np.array_equal(zarr.open(path)[name][...], want), name

    name = os.path.basename(tree).replace(".zarr", ".nc")
    for options in ([], ["filter=keep"]):
        with t.mount(tree, *options) as m:
            t.call(compare_nc, os.path.join(m.path, name), bool(options))
    with t.mount(tree, "view=zarr") as m:
        t.call(compare_tree, m.path)


def test_version_3(t):
    """numcodecs.<id> of Zarr v3, with the filter's own parameters for the array."""
    install(t, "xor", "xorcodec")
    tree = t.path("v.zarr")
    data = np.arange(12, dtype="<i4").reshape(4, 3)
    os.makedirs(f"{tree}/x/c/0")
    with open(f"{tree}/zarr.json", "w") as f:
        json.dump({"zarr_format": 3, "node_type": "group"}, f)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}},
              {"name": "numcodecs.xorz", "configuration": {"key": 9, "note": [1.5, None, "é"]}}]
    with open(f"{tree}/x/zarr.json", "w") as f:
        json.dump({"zarr_format": 3, "node_type": "array", "shape": [4, 3], "data_type": "int32",
                   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
                   "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
                   "codecs": codecs}, f)
    for i in range(2):
        os.makedirs(f"{tree}/x/c/{i}", exist_ok=True)
        raw = data[2 * i:2 * i + 2].tobytes()
        with open(f"{tree}/x/c/{i}/0", "wb") as f:
            f.write(b"X" + bytes(b ^ 9 for b in raw))
    as_nc_and_tree(t, tree, {"x": data})
    assert "xorz(9,4,24,0)" in info(t, tree), info(t, tree)


def test_codec_refuses(t):
    """An array whose codec refuses its parameters is like one that nobody knows: it can be left
    out."""
    install(t, "xor", "xorcodec", "bad")
    tree = t.path("v.zarr")
    g = zarr.open_group(tree, mode="w")
    for name in ("good", "refused", "crash", "unnamed"):
        g.create_dataset(name, data=np.arange(6, dtype="i4"), chunks=(6,), compressor=None)
    for name, codec in (("refused", {"id": "xorz", "level": 1}),
                        ("crash", {"id": "bad", "how": 103}),
                        ("unnamed", {"id": "bad", "how": 1})):  # it writes no JSON of that
        with open(f"{tree}/{name}/.zarray") as f:
            meta = json.load(f)
        meta["compressor"] = codec
        with open(f"{tree}/{name}/.zarray", "w") as f:
            json.dump(meta, f)
    status, _, err = t.run(t.binary, "info", tree)
    assert status == 1 and "plugin 'bad' of" in err and "it crashed (signal 6)" in err, err
    text = info(t, "-o", "unsupported=skip", tree)
    assert "its codec rejects" in text and "it crashed (signal 6)" in text, text

    def read(path):
        assert sorted(zarr.open(path)) == ["good", "unnamed"]
        for name in ("good", "unnamed"):
            assert zarr.open(path)[name].compressor is None
            assert np.array_equal(zarr.open(path)[name][...], np.arange(6)), name

    with t.mount(tree, "view=zarr", "unsupported=skip", "filter=keep") as m:
        t.call(read, m.path)


# ---- what is not used ----

def expect_error(path, name, bad, good=None):
    for chunk in bad:
        try:
            with open(os.path.join(path, name, chunk), "rb") as f:
                f.read()
        except OSError as error:
            assert error.errno == errno.EIO, error
        else:
            raise AssertionError(f"{name}/{chunk} can be read")
    if good:
        assert len(zarr.open(path)[good][...]) > 0


# SECURITY S60, S61
def test_not_trusted(t):
    """What others may write to is not loaded, and it is said why."""
    folder = install(t, "xor")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        create(f, "a", np.arange(50), (20,), (XOR, [90]))
    same(t, file)
    for path, mode in ((os.path.join(folder, "libxor.so"), 0o646), (folder, 0o775)):
        before = os.stat(path).st_mode
        os.chmod(path, mode)
        with t.mount(file) as m:
            t.call(expect_error, m.path, "a", ["0", "1"])
            assert not children(m)
        _, out, _ = t.run(t.binary, "filters", "-v")
        assert f"{path}: skipped: it is writable by others" in out, out
        _, _, err = t.run(t.binary, "info", "-d", file)
        assert f"{path}: skipped: it is writable by others" in err, err
        os.chmod(path, before)
    same(t, file)
    if os.geteuid() == 0:  # as root does for a user whose environment names his own
        os.chown(folder, 65534, 65534)
        _, out, _ = t.run(t.binary, "filters", "-v")
        assert f"{folder}: skipped: it belongs to another user" in out, out
        os.chown(folder, 0, 0)


def test_switched_off(t):
    install(t, "xor")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        create(f, "a", np.arange(50), (20,), (XOR, [90]))
    text = info(t, "-o", "noplugins", file)
    assert f"filter {XOR}" in text and "is not available" in text, text
    with t.mount(file, "noplugins") as m:
        t.call(expect_error, m.path, "a", ["0", "2"])
        assert not children(m)


def test_relative(t):
    """Relative directories are meant from where the program was started, also by a daemon."""
    install(t, "xor", folder="here")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        create(f, "a", np.arange(50), (20,), (XOR, [90]))
    os.environ["HDF5_PLUGIN_PATH"] = "none:here"  # mounts are started in t.tmp
    same(t, file, names=["a"])


# ---- plugins that are no good ----

def test_broken_on_load(t):
    """Libraries that crash when they are loaded, or are none, do not keep others from use."""
    folder = install(t, "odd6", "odd1", "odd2", "odd4", "xor")
    with open(os.path.join(folder, "liba.so"), "w") as f:
        f.write("no library")
    os.chmod(os.path.join(folder, "liba.so"), 0o644)
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        h5pl.remove(0)  # libhdf5 would load the library that crashes
        h5pl.prepend(install_one(t, "xor").encode())
        create(f, "a", np.arange(50), (20,), (XOR, [90]))
    same(t, file)
    _, out, _ = t.run(t.binary, "filters", "-v")
    assert "libodd6.so: skipped: it crashed (signal 6)" in out, out


def install_one(t, name):
    path = os.environ["HDF5_PLUGIN_PATH"]
    other = install(t, name, folder="alone")
    os.environ["HDF5_PLUGIN_PATH"] = path
    return other


def write_raw(f, name, first):
    """One chunk of four bytes for each letter."""
    letters = np.frombuffer(first.encode(), "u1")
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4,))
    dcpl.set_filter(BAD, 0, ())
    d = h5d.create(f.id, name.encode(), h5t.STD_U8LE, h5s.create_simple((4 * len(letters),)), dcpl)
    for i, c in enumerate(letters):
        d.write_direct_chunk((4 * i,), bytes([c, 1, 2, 3]))


def test_broken(t):
    """Crashes and lies cost the chunk they are about; the server and other chunks go on."""
    install(t, "bad")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        write_raw(f, "a", "xcxkxexlxzxwxgxaxox")

    def read(path):
        for i in range(19):
            with open(f"{path}/a/{i}", "rb") as f:
                try:
                    got = f.read()
                    assert i % 2 == 0 and got == b"x\1\2\3", i
                except OSError as error:
                    assert i % 2 and error.errno == errno.EIO, (i, error)

    with t.mount(file, foreground=True) as m:
        for _ in range(2):
            t.call(read, m.path)
        text = m.messages()
    # a sanitizer makes a report and this status of an abort
    crashed = "its process exited (status 99)" if t.sanitized else "it crashed (signal 6)"
    for part in ("plugin 'bad' of '", "libbad.so': " + crashed,
                 "its process exited (status 9)", "but returns fewer", "it gave an invalid answer"):
        assert part in text, text
    assert not [p for p in m.pids if mounts.alive(p)]


def test_killed(t):
    """A child that somebody kills is replaced; all children end with the server."""
    install(t, "xor")
    file = t.path("a.h5")
    with h5py.File(file, "w") as f:
        create(f, "a", np.arange(5000), (20,), (XOR, [90]))

    def read(path, i):
        with open(f"{path}/a/{i}", "rb") as f:
            assert np.array_equal(np.frombuffer(f.read(), "i8"), np.arange(20) + 20 * i)

    with t.mount(file) as m:
        assert not children(m)
        t.call(read, m.path, 0)
        first = children(m)
        assert first
        for pid in first:
            os.kill(pid, 9)
        t.call(read, m.path, 100)
        last = children(m)
        assert last and not set(first) & set(last)
    assert mounts.wait_gone(last, 30)


if __name__ == "__main__":
    sys.exit("run tests/run-tests.py -k plugins/")
