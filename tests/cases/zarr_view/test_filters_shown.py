# SPDX-License-Identifier: BSD-3-Clause
"""How filters are shown: _Filter and _Codecs, as extended attributes and by info, against ncdump;
what is said of filters that nobody has; and what that costs programs that do not ask."""
import ctypes
import errno
import json
import os
import re
import struct

import h5py
import netCDF4
import numpy as np
import zarr

from lib.context import Skip, corpus

NAMES = ["user._Filter", "user._Codecs"]


def chains(path):
    """Variables of every kind of chain that netCDF-C writes here."""
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 100)
        g = d.createGroup("g")
        for where, name, options in (
                (d, "plain", {"contiguous": True}),
                (d, "deflate", {"zlib": True, "shuffle": False, "complevel": 7}),
                (d, "usual", {"zlib": True}),
                (d, "checked", {"zlib": True, "fletcher32": True}),
                (g, "bzip2", {"compression": "bzip2", "complevel": 2, "shuffle": False}),
                (g, "zstd", {"compression": "zstd", "complevel": 5})):
            try:
                v = where.createVariable(name, "f8", ("x",), **options)
            except RuntimeError:  # netCDF-C has no plugin for it
                continue
            v[:] = np.arange(100)
    with h5py.File(path, "r+") as f:
        f.create_dataset("scaled", data=np.arange(40), chunks=(10,), scaleoffset=3)


def ncdump_filters(t, path):
    """{path of variable: _Filter} as ncdump prints it."""
    code, out, err = t.run("ncdump", "-h", "-s", "-F", path)
    assert code == 0, err
    found, group = {}, ""
    for line in out.splitlines():
        m = re.match(r"\s*group: (\w+) {", line)
        group = f"/{m.group(1)}" if m else group
        m = re.match(r'\s*(\w+):_Filter = "(.*)" ;$', line)
        if m:
            found[f"{group}/{m.group(1)}"] = m.group(2)
    return found


def codecs_of(filters, size):
    """What _Codecs says of a _Filter whose filters have all a numcodecs id."""
    names = {"1": ("zlib", ["level"]), "2": ("shuffle", ["elementsize"]),
             "3": ("fletcher32", []), "307": ("bz2", ["level"]), "32015": ("zstd", ["level"])}
    result = []
    for text in filters.split("|"):
        number, *params = text.split(",")
        name, members = names[number]
        values = [int(p) for p in params] or ([size] if members else [])
        result.append(dict({"id": name}, **dict(zip(members, values))))
    return result


def both(path):
    return [os.getxattr(path, n).decode() for n in NAMES]


def test_like_ncdump(t):
    path = t.path("chains.nc")
    chains(path)
    want = ncdump_filters(t, path)
    assert len(want) >= 4, want
    code, out, err = t.run(t.binary, "info", "--json", path)
    assert code == 0, err
    told = {v["path"]: (v["_Filter"], v["_Codecs"]) for v in json.loads(out)["variables"]}
    with t.mount(path) as m:
        for name, filters in want.items():
            directory = m.path + name
            assert os.listxattr(directory) == NAMES, directory
            shown, codecs = both(directory)
            assert shown == filters, (name, shown, filters)
            assert told[name] == (shown, json.loads(codecs)), name
            if "6," not in filters:
                assert json.loads(codecs) == codecs_of(filters, 8), codecs
        assert told["/plain"] == ("", None)
        for name in ("", "/plain", "/g", "/.zgroup", "/usual/.zarray", "/usual/0"):
            assert os.listxattr(m.path + name) == [], name
    code, out, err = t.run(t.binary, "info", "-v", path)
    assert code == 0 and "_Filter   1,7\n" in out, out + err
    assert '_Codecs   [{"id": "zlib", "level": 7}]\n' in out, out


def test_protocol(t):
    """Lengths are asked for, rooms are too small, names are unknown or of other kinds."""
    path = t.path("chains.nc")
    chains(path)
    libc = ctypes.CDLL(None, use_errno=True)
    with t.mount(path) as m:
        directory = (m.path + "/deflate").encode()
        value = b"1,7"
        for size, result in ((0, 3), (3, 3), (4, 3), (2, errno.ERANGE)):
            room = ctypes.create_string_buffer(16)
            got = libc.getxattr(directory, b"user._Filter", room, ctypes.c_size_t(size))
            if result == errno.ERANGE:
                assert (got, ctypes.get_errno()) == (-1, result), got
            else:
                assert got == result and room.raw[:got] == (value if size else room.raw[:got])
        room = ctypes.create_string_buffer(64)
        assert libc.listxattr(directory, room, ctypes.c_size_t(5)) == -1
        assert ctypes.get_errno() == errno.ERANGE
        for name, why in (("user._Nothing", errno.ENODATA), ("user.", errno.ENODATA),
                          ("security.selinux", errno.EOPNOTSUPP),
                          ("system.posix_acl_access", errno.EOPNOTSUPP)):
            try:
                value = os.getxattr(directory, name)
                raise AssertionError(f"{name}: {value}")
            except OSError as e:
                assert e.errno == why, (name, e)


def test_switched_off(t):
    path = t.path("chains.nc")
    chains(path)
    with t.mount(path, "noxattr") as m:
        try:
            raise AssertionError(os.listxattr(m.path + "/usual"))
        except OSError as e:
            assert e.errno == errno.EOPNOTSUPP, e
        assert (zarr.open(m.path, "r")["usual"][:] == np.arange(100)).all()


def test_virtual_file_has_none(t):
    zarr.open_group(t.path("s.zarr"), "w").create_dataset("v", data=np.arange(9))
    with t.mount(t.path("s.zarr")) as m:
        assert os.listxattr(m.path + "/s.nc") == []


def test_zarr_source(t):
    """Codecs without a number in HDF5, in a tree shown as a tree."""
    g = zarr.open_group(t.path("s.zarr"), "w")
    import numcodecs
    g.create_dataset("v", data=np.arange(20, dtype="f4"), chunks=(5,),
                     filters=[numcodecs.BitRound(9)], compressor=numcodecs.GZip(3))
    with t.mount(t.path("s.zarr"), "view=zarr") as m:
        shown, codecs = both(m.path + "/v")
        assert re.match(r"bitround,9[,0-9]*\|gzip,3$", shown), shown
        assert json.loads(codecs) == [{"id": "bitround", "keepbits": 9},
                                      {"id": "gzip", "level": 3}], codecs


def unknown(path, chunks=30):
    """A file whose variable v has a filter that nobody has, and w that of another name."""
    with h5py.File(path, "w") as f:
        for name in ("v", "w"):
            f.create_dataset(name, data=np.arange(chunks * 10), chunks=(10,), compression="gzip",
                             compression_opts=4)
    with open(path, "r+b") as f:
        data = f.read()
        at = -1
        for number in (32017, 32999):  # SZ, of which there is a plugin; and nobody's
            at = data.find(b"deflate\0", at + 1)
            assert at > 8
            f.seek(at - 8)
            f.write(struct.pack("<H", number))


def read_all(directory):
    """Every chunk file, once; how many could not be read."""
    failed = 0
    for name in sorted(os.listdir(directory)):
        if not name.startswith("."):
            try:
                with open(os.path.join(directory, name), "rb") as f:
                    f.read()
            except OSError as e:
                assert e.errno == errno.EIO, e
                failed += 1
    return failed


def test_unknown_filter(t):
    """It is shown; what can be done is said, once for each variable and not at each chunk."""
    path = t.path("u.h5")
    unknown(path)
    with t.mount(path, foreground=True) as m:
        shown, codecs = both(m.path + "/v")
        assert shown == "32017,4", shown
        assert json.loads(codecs) == [{"id": "unknown", "name": "sz", "hdf5": 32017,
                                       "parameters": [4]}], codecs
        assert json.loads(both(m.path + "/w")[1])[0]["hdf5"] == 32999
        for _ in range(2):
            assert read_all(m.path + "/v") == 30 and read_all(m.path + "/w") == 30
    lines = [x for x in m.messages().splitlines() if "is not available" in x]
    assert len(lines) == 2, m.messages()
    assert "'/v': filter 32017 (sz) is not available: " in lines[0], lines
    assert "hdf5plugin" in lines[0] and "HDF5_PLUGIN_PATH" in lines[0], lines
    assert "'/w': filter 32999 " in lines[1] and "HDF5_PLUGIN_PATH" in lines[1], lines
    assert "chunk" not in "".join(lines), lines


def test_mirrored(t):
    """In a mirrored directory too; what is said of a filter names the dataset."""
    folder = t.path("dir")
    os.mkdir(folder)
    chains(folder + "/a.nc")
    unknown(folder + "/b.h5")
    unknown(folder + "/c.h5")
    zarr.open_group(folder + "/s.zarr", "w").create_dataset("v", data=np.arange(9))
    with t.mount(folder, foreground=True) as m:
        assert both(m.path + "/a.zarr/deflate") == ["1,7", '[{"id": "zlib", "level": 7}]']
        for name in ("", "/a.nc", "/a.zarr", "/s.nc", "/s.zarr", "/a.zarr/deflate/0"):
            assert os.listxattr(m.path + name) == [], name
        for name in ("b", "c"):
            assert read_all(f"{m.path}/{name}.zarr/v") == 30
    lines = [x for x in m.messages().splitlines() if "32017" in x]
    assert len(lines) == 2 and "'b.h5': '/v': " in lines[0], m.messages()
    assert "'c.h5': '/v': " in lines[1], lines


def requests(m):
    return re.findall(r"opcode: ([A-Z_]+)", m.messages())


def test_costs_nothing(t):
    """Programs that list or read chunks make no request for attributes of each file."""
    path = t.path("many.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(3000.0), chunks=(10,), compression="gzip")
    with t.mount(path, "debug", foreground=True) as m:
        code, out, err = t.run("ls", "-l", m.path + "/v")
        assert code == 0 and len(out.splitlines()) >= 300, err
        assert (zarr.open(m.path, "r")["v"][:] == np.arange(3000.0)).all()
    asked = [x for x in requests(m) if "XATTR" in x]
    assert requests(m).count("READ") >= 300, "requests are not logged"
    assert len(asked) <= 8, len(asked)


def test_quantising_filters(t):
    """What CCR's plugins wrote is read as it is stored."""
    folder = corpus()
    if not folder:
        raise Skip("no corpus")
    for name in ("bitgroom", "granularbr"):
        path = f"{folder}/hdf5/HDFGroup-hdf5_plugins/h5ex_d_{name}.h5"
        with h5py.File(path, "r") as f:
            d = f["DS1"]
            want = np.zeros(d.shape, "<f4")
            for i in range(0, d.shape[0], 4):
                for j in range(0, d.shape[1], 8):
                    want[i:i + 4, j:j + 8] = np.frombuffer(
                        d.id.read_direct_chunk((i, j))[1], "<f4").reshape(4, 8)
        assert len(np.unique(want)) > 100
        with t.mount(path) as m:
            assert (zarr.open(m.path, "r")["DS1"][:] == want).all(), name
