# SPDX-License-Identifier: BSD-3-Clause
"""Classic netCDF files (CDF-1, CDF-2, CDF-5): as a Zarr tree and as a virtual netCDF-4 file they
are what netCDF-C reads. Files that it does not write are made byte by byte (gen/classic.py)."""
import functools
import json
import os

import netCDF4
import numpy as np
import zarr

from gen import classic
from gen.classic import BYTE, CHAR, SHORT, UBYTE, USHORT, STREAMING, Classic, Var
from lib.context import Skip, corpus, eventually_passes

LIMIT = 120.0


def check(t, file, *options, judge=None, every=False):
    """Tree and virtual file against netCDF-C's reading of judge (the file itself). every: also
    through xarray and ncdump."""
    from clients import compare_classic

    with t.mount(file, *options) as m, t.mount(file, "view=nc", *options) as v:
        t.call(compare_classic.compare, judge or file, m.path, v.path, every)
        said = [n for n in m.messages().splitlines() if "read as Latin-1" not in n]
        assert not said, said


def written(path, form, kinds, title, **more):
    """Every type, with and without records, filled or not. more: for every variable."""
    with netCDF4.Dataset(path, "w", format=form) as d:
        d.createDimension("time", None)
        d.createDimension("x", 7)
        d.createDimension("len", 5)
        d.createDimension("alone", 2)
        d.setncatts({"title": title, "empty": "", "floats": np.float32([0.1, 1e30]),
                     "one": np.int16(4)})
        times = d.createVariable("time", "f8", ("time",), **more)
        times.units = "days since 2000-01-01"
        for k in kinds:
            v = d.createVariable("r" + k, k, ("time", "x"), fill_value=7, **more)
            v.scale_factor = np.float32(0.5)
            v[:10] = np.arange(70).reshape(10, 7)
            d.createVariable("f" + k, k, ("x",), **more)[:4] = np.arange(4)
            d.createVariable("never" + k, k, ("x", "alone"), **more)
        d.createVariable("text", "S1", ("time", "len"))[:10] = np.array(
            [list("abcd\0")] * 10, "S1")
        d.createVariable("scalar", "i4", (), **more)[...] = -3
        v = d.createVariable("unsigned", "i1", ("x",), fill_value=-1, **more)
        v.setncattr("_Unsigned", "true")
        v[:] = np.arange(7) - 3
        times[:] = np.arange(10)


OLD = ["i1", "i2", "i4", "f4", "f8"]
NEW = OLD + ["u1", "u2", "u4", "i8", "u8"]


def test_written_by_netcdf(t):
    """What netCDF-C writes of the three formats."""
    for form, kinds in (("NETCDF3_CLASSIC", OLD), ("NETCDF3_64BIT_OFFSET", OLD),
                        ("NETCDF3_64BIT_DATA", NEW)):
        path = t.path(f"{form}.nc")
        written(path, form, kinds, "classic \u00e9")
        check(t, path, every=True)


def test_documents_as_of_netcdf4(t):
    """A netCDF-4 file with the same content has the same documents but for chunks, in all modes:
    fill values, attributes and their types, NCZarr's keys."""
    old, new = t.path("a.nc"), t.path("b.nc")
    written(old, "NETCDF3_64BIT_DATA", NEW, "text")
    written(new, "NETCDF4", NEW, "text", endian="big")

    def documents(mnt):
        found = {}
        for base, _, names in os.walk(mnt):
            for n in names:
                if n in (".zarray", ".zattrs", ".zgroup"):
                    with open(os.path.join(base, n), encoding="utf-8") as f:
                        doc = json.load(f)
                    doc.pop("chunks", None)
                    found[os.path.join(os.path.relpath(base, mnt), n)] = doc
        return found

    def look(a, b):
        x, y = documents(a), documents(b)
        assert list(sorted(x)) == list(sorted(y)), set(x) ^ set(y)
        for k in x:
            assert x[k] == y[k], f"{k}: {x[k]} and {y[k]}"
    for mode in ("zarr", "nczarr", "noxarray"):
        with t.mount(old, "mode=" + mode) as m, t.mount(new, "mode=" + mode) as n:
            t.call(look, m.path, n.path)


def test_shapes(t):
    """No variables, no attributes, no records, scalars only."""
    for name, c in {
            "nothing": Classic(), "attributes": Classic(5, [], [("a", CHAR, b"b")]),
            "dims": Classic(2, [("x", 3), ("t", 0)]),
            "scalars": Classic(1, [], [], [Var("c", (), CHAR, b"c"), Var("b", (), BYTE, 3)]),
            "no_records": classic.mixed(1, 0), "one_record": classic.mixed(5, 1),
            "no_records_single": classic.single(1, BYTE, 0)}.items():
        check(t, c.write(t.path(name + ".nc")))


def test_bytes_by_hand(t):
    """Tags of empty lists, wrong sizes, padding that is not zero: netCDF-C does not mind."""
    for version in (1, 2, 5):
        c = classic.mixed(version, empty_tags=True, junk=b"\xaa")
        for v in c.variables:
            v.vsize = 12345
        check(t, c.write(t.path(f"odd{version}.nc")))


def test_single_record_variable(t):
    """Its records are not padded, whatever their type."""
    for version, kinds in ((1, (BYTE, CHAR, SHORT)), (5, (UBYTE, USHORT))):
        for kind in kinds:
            path = classic.single(version, kind).write(t.path(f"s{kind}.nc"))
            check(t, path, "default_chunk_size=4K")


def test_streaming(t):
    """The number of records is what the file has room for; netCDF-C takes the mark for a number
    (row classic-streaming), so the same file with the number is the judge. The padding of the last
    value may be missing."""
    made = [(f"mixed{v}", classic.mixed, (v,), c) for v, c in ((1, 0), (2, 0), (5, 1))]
    made += [("single", classic.single, (1, SHORT), 0), ("none", classic.mixed, (1, 0), 0)]
    for name, func, args, cut in made:
        judge = func(*args).write(t.path(name + "-judge.nc"))
        path = func(*args, numrecs=STREAMING, cut=cut).write(t.path(name + ".nc"))
        check(t, path, judge=judge)


def test_records(t):
    """Gathered, one a chunk, cut."""
    for name, c in (("gaps", classic.gaps(40)), ("slabs", classic.slabs())):
        path = c.write(t.path(name + ".nc"))
        check(t, path, every=name == "gaps")
    check(t, classic.slabs(2).write(t.path("cut.nc")), "default_chunk_size=16K")
    check(t, t.path("gaps.nc"), "filter=*,shuffle|deflate,1")

    def chunks(mnt, want):
        g = zarr.open(mnt, mode="r")
        got = {n: a.chunks for n, a in g.arrays()}
        assert got == want, got
    with t.mount(t.path("slabs.nc")) as m:
        t.call(chunks, m.path, {"a": (1, 130, 140), "b": (1, 130, 140), "time": (3,)})
    with t.mount(t.path("slabs.nc"), "default_chunk_size=4K") as m:
        t.call(chunks, m.path, {"a": (1, 5, 140), "b": (1, 2, 140), "time": (3,)})


def test_large_offsets(t):
    """Beyond 2 and 4 GiB, in files that are mostly holes."""
    for name, c in (("fixed1", classic.sparse_fixed(1)), ("fixed2", classic.sparse_fixed(2)),
                    ("fixed5", classic.sparse_fixed(5)), ("records", classic.sparse_records())):
        path = c.write(t.path(name + ".nc"))
        with open(path, "r+b") as f:  # values at the very end
            f.seek(-8, 2)
            f.write(b"\x40\x09\x21\xfb\x54\x44\x2d\x18")
        check(t, path)
        os.unlink(path)


def test_names_and_texts(t):
    """netCDF4-python cannot read names that are not UTF-8: values are the generator's."""
    path = classic.odd_names().write(t.path("names.nc"))
    want = ["größe", "a b", "latiné", "with%2Fslash", "%2Ezarray", "back%5Cslash", "x" * 250, "é",
            "%2E", "cut"]

    def look(mnt):
        g = zarr.open(mnt, mode="r")
        assert sorted(g.array_keys()) == sorted(want), sorted(g.array_keys())
        attrs = {"kommentar": "naïve", "latin": "naïve", "näme": 3, "nul": "ends", "empty": "",
                 "none": ""}
        assert dict(g.attrs) == attrs, dict(g.attrs)
        for n in want:
            assert g[n].attrs.asdict() == {**attrs, "_ARRAY_DIMENSIONS": ["breite", "höhe"]}, n
            assert np.array_equal(g[n][...], classic.ramp(classic.INT, (2, 3)))
    with t.mount(path) as m:
        t.call(look, m.path)

    def look_nc(mnt):
        with netCDF4.Dataset(os.path.join(mnt, "names.nc")) as nc:
            assert len(nc.variables) == len(want), list(nc.variables)
            assert list(nc.dimensions) == ["breite", "höhe"], list(nc.dimensions)
            for v in nc.variables.values():
                assert np.array_equal(v[...], classic.ramp(classic.INT, (2, 3)))
    with t.mount(path, "view=nc") as m:
        t.call(look_nc, m.path)
    status, out, err = t.run(t.binary, "info", path)
    assert status == 0 and "is shown as '%2Ezarray'" in out and "Latin-1" in out, out + err


def test_left_out(t):
    """Two of one name, a name that is too long, attributes that are Zarr's: a note each."""
    twice = [Var("v", (0,), SHORT, [1, 2], [("a", SHORT, 1), ("a", SHORT, 2),
                                            ("_ARRAY_DIMENSIONS", CHAR, b"z")]),
             Var("v", (0,), SHORT, [3, 4]), Var("n" * 256, (0,), SHORT, [5, 6]),
             Var("w", (1,), SHORT, [7, 8])]
    path = Classic(1, [("x", 2), ("x", 2)], [], twice).write(t.path("twice.nc"))

    def look(mnt):
        g = zarr.open(mnt, mode="r")
        assert list(g.array_keys()) == ["v"] and (g["v"][:] == [1, 2]).all()
        assert g["v"].attrs.asdict() == {"a": 1, "_ARRAY_DIMENSIONS": ["x"]}
    with t.mount(path) as m:
        t.call(look, m.path)
    status, out, err = t.run(t.binary, "info", path)
    assert "; the warnings state what is omitted\n" in out and "\nwarnings  6, listed" in out, out
    for word in ("'v' is left out", "'nnnn", "'w' is left out", "second dimension 'x'",
                 "'a' is left out", "'_ARRAY_DIMENSIONS' is left out"):
        assert word in out, f"{word} is not in {out}{err}"


def test_truncated(t):
    """What is beyond the end of the file is an error, and the rest is read; netCDF-C gives zeros
    (row classic-short)."""
    path = classic.slabs().write(t.path("short.nc"))
    size = os.path.getsize(path)
    os.truncate(path, size - 8 - 130 * 140 * 8)  # the last time and the last b

    def look(mnt):
        g = zarr.open(mnt, mode="r")
        assert (g["a"][:] == np.arange(3 * 130 * 140).reshape(3, 130, 140)).all()
        assert (g["b"][:2] == np.arange(2 * 130 * 140).reshape(2, 130, 140)).all()
        for n, part in (("b", 2), ("time", slice(None))):
            try:
                got = g[n][part]
            except OSError as error:
                assert error.errno == 5, error
            else:
                raise AssertionError(f"{n} is read: {got}")

    def look_nc(mnt):
        with netCDF4.Dataset(os.path.join(mnt, "short.nc")) as nc:
            assert (nc["a"][:] == np.arange(3 * 130 * 140).reshape(3, 130, 140)).all()
            try:
                nc["b"][2]
            except (OSError, RuntimeError):
                return
            raise AssertionError("b is read")
    with t.mount(path, foreground=True) as m, t.mount(path, "view=nc") as v:
        t.call(look, m.path)
        t.call(look_nc, v.path)
        assert "the file ends at byte" in m.messages(), m.messages()


def test_grows(t):
    """Records that are written while it is mounted appear."""
    path = t.path("grows.nc")
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as d:
        d.createDimension("t", None)
        d.createVariable("v", "i4", ("t",))[:] = [1, 2]

    def look(mnt, n):
        got = zarr.open(mnt + "/v", mode="r")[:]
        assert got.tolist() == list(range(1, n + 1)), got

    def grown(mnt, n):
        """If a record appears between the reads of .zarray and of the chunk, the chunk has another
        size than zarr-python expects: a ValueError."""
        eventually_passes(look, mnt, n, errors=(AssertionError, OSError, ValueError))
    with t.mount(path) as m:
        t.call(look, m.path, 2)
        with netCDF4.Dataset(path, "a") as d:
            d["v"][2:5] = [3, 4, 5]
        t.call(grown, m.path, 5)


def damaged():
    """{what: (bytes, a word of the message)}"""
    t = classic.mixed(1, 2)
    t.layout()
    good = t.header()
    x = Classic(1, [("x", 2)], [], [Var("v", (0,), SHORT, [1, 2])])
    x.layout()
    v = x.header()
    made = {
        "thirteen": (b"CDF\x01" + bytes(8) + b"\x0c", "ends at byte 13"),
        "magic": (b"CDF\x01", "ends at byte 4"),
        "version": (b"CDF\x03" + good[4:], "unknown version"),
        "halved": (good[:len(good) // 2], "inside its header"),
        "count": (good[:12] + b"\x7f\xff\xff\xff" + good[16:], "can hold"),
        "tag": (good[:11] + b"\x0b" + good[12:], "has the tag 11"),
        "dimid": (v.replace(b"v\0\0\0\0\0\0\1\0\0\0\0", b"v\0\0\0\0\0\0\1\0\0\0\1"),
                  "has dimension 1 of 1"),
        "type": (v[:-12] + b"\0\0\0\x0c" + v[-8:], "is 12"),
        "begin": (v[:-4] + b"\0\0\0\x10", "inside the header"),
        "negative": (v[:-4] + b"\xff\xff\xff\xf0", "negative"),
    }
    u = Classic(1, [("t", 0), ("x", 2)], [], [Var("v", (1, 0), SHORT, None)])
    u.layout()
    made["record"] = u.header(), "not as its first"
    h = Classic(5, [(f"d{i}", 2**40) for i in range(3)], [],
                [Var("v", (0, 1, 2), SHORT, None, vsize=8, begin=400)])
    made["huge"] = h.header(), "more values"
    return made


def test_damaged(t):
    """One message that says what, where, and what to do."""
    for name, (raw, word) in damaged().items():
        path = t.path(name + ".nc")
        with open(path, "wb") as f:
            f.write(raw)
        with t.mount(path, check=False) as m:
            lines = m.messages().splitlines()
            assert m.status == 1 and len(lines) == 1, (name, m.messages())
            assert word in lines[0] and path in lines[0], (name, lines[0])


def compare_corpus(folder, t):
    """The files of one folder; where netCDF-C cannot read one itself, h5py and zarr-python still
    get through it."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            print(name)
            check(t, path, every=True)


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with classic in it")


def cases():
    root = corpus()
    if not root or not os.path.isdir(os.path.join(root, "classic")):
        yield "corpus", no_corpus
        return
    for name in sorted(os.listdir(os.path.join(root, "classic"))):
        yield f"corpus/{name}", functools.partial(compare_corpus,
                                                  os.path.join(root, "classic", name))
