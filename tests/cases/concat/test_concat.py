# SPDX-License-Identifier: BSD-3-Clause
"""Many files as one (-o concat=): what a mount shows, as a Zarr tree and as a netCDF-4 file, is bit
by bit what xarray makes of the files themselves; what cannot be joined is refused by name."""
import errno
import json
import os
import shutil

import h5py
import netCDF4
import numpy as np
import xarray as xr
import zarr

from lib.context import eventually

LIMIT = 240.0


# ---- files ----

def write(path, start, n, *, fmt="NETCDF4", units="days since 2000-01-01", calendar=None,
          chunks=(2, 5), dtype="f4", scale=None, offset=None, fill=None, times=None,
          time_type="f8", level=4, shuffle=True, endian="native", x=5, seed=None, bounds=False,
          extra=None, values=None, order=("time", "x"), lat_offset=0):
    rng = np.random.default_rng(start if seed is None else seed)
    with netCDF4.Dataset(path, "w", format=fmt) as d:
        d.createDimension("time", None)
        d.createDimension("x", x)
        d.setncattr("title", os.path.basename(path))
        t = d.createVariable("time", time_type, ("time",))
        t.units = units
        if calendar:
            t.calendar = calendar
        t[:] = np.arange(start, start + n) if times is None else times
        if bounds:
            d.createDimension("two", 2)
            t.bounds = "time_bnds"
            b = d.createVariable("time_bnds", "f8", ("time", "two"))
            b[:] = np.stack([t[:] - 0.5, t[:] + 0.5], axis=1)
        more = {}
        if fmt == "NETCDF4":
            more = dict(chunksizes=[dict(time=chunks[0], x=chunks[1])[k] for k in order],
                        zlib=level > 0, complevel=level or 1, shuffle=shuffle, endian=endian)
        v = d.createVariable("v", dtype, order, fill_value=fill, **more)
        v.set_auto_maskandscale(False)
        v.long_name = "values"
        if scale is not None:
            v.scale_factor = scale
        if offset is not None:
            v.add_offset = offset
        if values is None:
            kind = np.dtype(dtype).kind
            values = (rng.random((n, x)) * 100 if kind == "f"
                      else rng.integers(0, 100, (n, x))).astype(dtype)
            if fill is not None and n > 1:
                values[1, 2] = fill
        v[:] = values if order[0] == "time" else values.T
        lat = d.createVariable("lat", "f8", ("x",))
        lat[:] = np.linspace(0, 1, x) + lat_offset
        if extra:
            d.createVariable(extra, "i4", ("time",))[:] = np.arange(n)
    return path


def folder(t, name="data"):
    path = t.path(name)
    os.makedirs(path, exist_ok=True)
    return path


# ---- comparing ----

def judged(files, **more):
    parts = [xr.open_dataset(f, engine="zarr" if os.path.isdir(f) else "netcdf4", **more)
             for f in files]
    return xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override",
                     join="override", combine_attrs="override").load()


def bits(array):
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = array.copy()
        array[np.isnan(array)] = np.nan
    return array.tobytes()


def same(got, want, exact=True):
    assert set(got.variables) == set(want.variables), (list(got), list(want))
    for name in want.variables:
        a, b = got[name], want[name]
        assert a.dims == b.dims and a.shape == b.shape, (name, a.shape, b.shape)
        if exact:
            assert a.dtype == b.dtype, (name, a.dtype, b.dtype)
        assert bits(a.values.astype(b.dtype)) == bits(b.values), name


def compare_zarr(mnt, files, exact=True):
    same(xr.open_dataset(mnt, engine="zarr").load(), judged(files), exact)


def compare_nc(mnt, files, exact=True):
    [name] = os.listdir(mnt)
    path = os.path.join(mnt, name)
    same(xr.open_dataset(path, engine="netcdf4").load(), judged(files), exact)
    want = judged(files, mask_and_scale=False, decode_times=False)
    with h5py.File(path) as f:
        assert f["lat"][...].tolist() == want["lat"].values.tolist()
        assert f["v"].shape == want["v"].shape


def check(t, pattern, files, *options, exact=True):
    """Both views."""
    with t.mount(pattern, "concat=time", "concat_index=none", "view=zarr", *options) as m:
        t.call(compare_zarr, m.path, files, exact, timeout=LIMIT)
    with t.mount(pattern, "concat=time", "concat_index=none", "view=nc", *options) as m:
        t.call(compare_nc, m.path, files, exact, timeout=LIMIT)


def array_info(t, pattern, name="v", *options):
    args = [w for o in ("concat=time", "concat_index=none", *options) for w in ("-o", o)]
    status, out, err = t.run(t.binary, "info", "--json", *args, pattern)
    assert status == 0, err
    [found] = [a for a in json.loads(out)["variables"] if a["path"] == "/" + name]
    return found


def said(path, what):
    return os.getxattr(path, "user.nczarrfs." + what).decode()


def refused(t, pattern, *words, options=("concat=time",)):
    args = [w for o in (*options, "concat_index=none") for w in ("-o", o)]
    status, _, err = t.run(t.binary, "info", *args, pattern)
    assert status == 1, err
    assert len(err.strip().splitlines()) == 1, err
    for word in words:
        assert word in err, (word, err)


# ---- joining ----

def test_equal_files(t):
    """Equal files: chunks are those of the files, byte for byte. SEMANTICS J1, J2"""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 8 * k, 8) for k in range(4)]
    check(t, d + "/*.nc", files)
    check(t, d, files)
    assert array_info(t, d + "/*.nc")["plan"] == "pass"

    def chunk_bytes(mnt):
        for k, path in enumerate(files):
            with h5py.File(path) as f:
                for c in range(4):
                    _, raw = f["v"].id.read_direct_chunk((2 * c, 0))
                    with open(f"{mnt}/v/{4 * k + c}.0", "rb") as g:
                        assert g.read() == raw
                    assert said(f"{mnt}/v/{4 * k + c}.0", "plan") == "pass"
                    assert said(f"{mnt}/v/{4 * k + c}.0", "source") == path
                    with open(path, "rb") as g:
                        g.seek(int(said(f"{mnt}/v/{4 * k + c}.0", "offset")))
                        assert g.read(len(raw)) == raw

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(chunk_bytes, m.path)


def test_lengths(t):
    """Files of unequal lengths, whose chunks line up or not, and an empty one. SEMANTICS J1"""
    d = folder(t)
    files, at = [], 0
    for k, n in enumerate((7, 8, 1, 0, 31, 6)):
        files.append(write(f"{d}/f{k}.nc", at, n))
        at += n
    check(t, d + "/*.nc", [f for f in files if not f.endswith("f3.nc")])
    assert "are not aligned" in json.dumps(array_info(t, d + "/*.nc"))
    for f in files[1:]:
        os.remove(f)
    os.remove(files[0])
    files = [write(f"{d}/g{k}.nc", s, n) for k, (s, n) in enumerate(((0, 4), (4, 2), (6, 3)))]
    check(t, d + "/*.nc", files)
    assert array_info(t, d + "/*.nc")["plan"] == "pass"


def test_chunks_and_chains(t):
    """Other chunks, filters and byte orders in some of the files."""
    d = folder(t)
    files = [write(f"{d}/f0.nc", 0, 8), write(f"{d}/f1.nc", 8, 8, level=9),
             write(f"{d}/f2.nc", 16, 8, level=0, shuffle=False),
             write(f"{d}/f3.nc", 24, 8, endian="big"),
             write(f"{d}/f4.nc", 32, 8, shuffle=False)]
    check(t, d + "/*.nc", files)
    assert array_info(t, d + "/*.nc")["plan"] == "pass"

    def kinds(mnt):
        how = [said(f"{mnt}/v/{k}.0", "plan").split(":")[0] for k in range(20)]
        assert how == ["pass"] * 8 + ["frame"] * 12, how

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(kinds, m.path)
    files.append(write(f"{d}/f5.nc", 40, 8, chunks=(3, 4)))
    check(t, d + "/*.nc", files)


def test_other_axis(t):
    """The dimension need not be the first."""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", s, n, order=("x", "time"))
             for k, (s, n) in enumerate(((0, 4), (4, 6), (10, 3), (13, 4)))]
    check(t, d + "/*.nc", files)
    check(t, d + "/f[01].nc", files[:2])


def test_never_written(t):
    """Chunks that were never written stay so where fill values agree, else they are made."""
    d = folder(t)
    values = np.full((8, 5), 7, "f4")
    files = [write(f"{d}/f0.nc", 0, 8, fill=-1.0, values=values)]
    for k, fill in ((1, -1.0), (2, -1.0)):
        path = f"{d}/f{k}.nc"
        with netCDF4.Dataset(path, "w") as f:
            f.createDimension("time", None)
            f.createDimension("x", 5)
            times = f.createVariable("time", "f8", ("time",))
            times.units = "days since 2000-01-01"
            times[:] = np.arange(8 * k, 8 * k + 8)
            v = f.createVariable("v", "f4", ("time", "x"), fill_value=fill, zlib=True,
                                 chunksizes=(2, 5))
            v.long_name = "values"
            v[6:8] = 3
            f.createVariable("lat", "f8", ("x",))[:] = np.linspace(0, 1, 5)
        files.append(path)
    check(t, d + "/*.nc", files)

    def names(mnt):
        assert not os.path.exists(f"{mnt}/v/4.0") and os.path.exists(f"{mnt}/v/7.0")
        assert sorted(n for n in os.listdir(f"{mnt}/v") if n[0] != ".") == sorted(
            f"{k}.0" for k in (0, 1, 2, 3, 7, 11))

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(names, m.path)


def test_packed(t):
    """scale_factor, add_offset, _FillValue and types of their own in each file: unpacked, as
    xarray does it file by file. SEMANTICS J1"""
    for number, kinds in enumerate((
            [dict(dtype="i2", scale=0.1, offset=5.0, fill=-9),
             dict(dtype="i2", scale=0.2, offset=4.0, fill=-9)],
            [dict(dtype="i2", scale=np.float32(0.1), fill=-9),
             dict(dtype="i2", scale=np.float32(0.5), fill=-8)],
            [dict(dtype="i2", fill=-9), dict(dtype="i2", fill=-8)],
            [dict(dtype="i4", scale=0.25, fill=-9), dict(dtype="i2", scale=0.25, fill=-9)],
            [dict(dtype="f4", fill=-1.0), dict(dtype="f8", fill=-1.0)],
            [dict(dtype="i2"), dict(dtype="i4")],
            [dict(dtype="f4"), dict(dtype="f8")],
            [dict(dtype="i2", scale=0.1), dict(dtype="f4")])):
        d = folder(t, f"p{number}")
        files = [write(f"{d}/f{k}.nc", 6 * k, 6, **kind) for k, kind in enumerate(kinds)]
        check(t, d + "/*.nc", files)
    equal = folder(t, "equal")
    for k in range(2):
        write(f"{equal}/f{k}.nc", 6 * k, 6, dtype="i2", scale=0.1, offset=5.0, fill=-9)
    assert array_info(t, equal + "/*.nc")["type"] == "int16"


def write_plain(path, start, values, creator, fill=None):
    """time and a float variable v; without a fill value of its own unless one is named."""
    values, times = np.array(values, "f4"), np.arange(start, start + len(values), dtype="f8")
    if creator.startswith("h5py"):
        with h5py.File(path, "w") as f:
            f["time"] = times
            f.create_dataset("v", data=values, fillvalue=5 if creator == "h5py 5" else None)
            f["time"].make_scale("time")
            f["v"].dims[0].attach_scale(f["time"])
    elif creator == "zarr":
        g = zarr.open_group(path, "w")
        for name, data in (("time", times), ("v", values)):
            g.create_dataset(name, data=data, fill_value=None)
            g[name].attrs["_ARRAY_DIMENSIONS"] = ["time"]
    else:
        with netCDF4.Dataset(path, "w", format=creator) as f:
            f.createDimension("time", None)
            f.createVariable("time", "f8", ("time",))[:] = times
            f.createVariable("v", "f4", ("time",), fill_value=fill)[:] = values
    return path


def test_unpacked_fill(t):
    """The first file says nothing of missing values, a later one does: what is missing is NaN, and
    so is _FillValue, whatever the first file's chunks are filled with. SEMANTICS J1"""
    def values_zarr(mnt):
        v = xr.open_dataset(mnt, engine="zarr")["v"]
        assert bits(v.values) == bits(np.array([0, 5, 0, np.nan], "f4")), v.values
        assert np.isnan(v.encoding["_FillValue"])
        assert np.isnan(zarr.open(mnt, "r")["v"].fill_value)

    def values_nc(mnt):
        with netCDF4.Dataset(mnt + "/data.nc") as f:
            f["v"].set_auto_mask(False)
            assert np.isnan(f["v"]._FillValue), f["v"]
            assert bits(f["v"][:]) == bits(np.array([0, 5, 0, np.nan], "f4"))
        with h5py.File(mnt + "/data.nc") as f:
            assert np.isnan(f["v"].fillvalue)

    for first in ("h5py", "h5py 5", "zarr", "NETCDF4", "NETCDF3_CLASSIC"):
        d = folder(t, f"{first}/data")
        write_plain(f"{d}/f0", 0, [0, 5], first)
        write_plain(f"{d}/f1", 2, [0, -999], "NETCDF4", fill=-999)
        for view, values in (("zarr", values_zarr), ("nc", values_nc)):
            with t.mount(d + "/*", "concat=time", "concat_index=none", "view=" + view) as m:
                t.call(values, m.path)


def test_time_units(t):
    """Every file counts from its own date, in its own unit. SEMANTICS J1"""
    d = folder(t)
    files = [write(f"{d}/a.nc", 0, 4, units="days since 2000-01-01", bounds=True),
             write(f"{d}/b.nc", 0, 4, units="hours since 2001-01-01", bounds=True,
                   times=np.arange(4) * 6.0),
             write(f"{d}/c.nc", 0, 4, units="days since 1999-01-01", bounds=True,
                   times=np.arange(4) + 2000)]
    check(t, d + "/*.nc", files, exact=False)
    whole = folder(t, "whole")
    files = [write(f"{whole}/a.nc", 0, 4, units="days since 2000-01-01", time_type="i4",
                   bounds=True),
             write(f"{whole}/b.nc", 0, 4, units="hours since 2001-01-01", time_type="i4",
                   times=np.arange(4) * 5, bounds=True)]
    check(t, whole + "/*.nc", files, exact=False)
    assert array_info(t, whole + "/*.nc", "time")["type"] == "int64"


def test_order(t):
    """By the values of the coordinate; without one by the numbers in the names."""
    d = folder(t)
    files = [write(f"{d}/{name}.nc", s, 3) for name, s in (("z", 0), ("m", 3), ("a", 6))]
    check(t, d + "/*.nc", files)
    down = folder(t, "down")
    files = [write(f"{down}/{k}.nc", 0, 3, times=np.arange(20 - 3 * k, 17 - 3 * k, -1.0))
             for k in range(3)]
    check(t, down + "/*.nc", files)
    plain = folder(t, "plain")

    def make(k):
        with netCDF4.Dataset(f"{plain}/f{k}.nc", "w") as f:
            f.createDimension("time", 2)
            f.createVariable("v", "i4", ("time",))[:] = k

    for k in (1, 2, 10, 9):
        make(k)

    def values(mnt):
        assert zarr.open(mnt, "r")["v"][...].tolist() == [1, 1, 2, 2, 9, 9, 10, 10]

    with t.mount(plain + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(values, m.path)


def test_other_formats(t):
    """Classic files, Zarr trees, and some of each."""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", s, n, fmt=fmt) for k, (s, n, fmt) in enumerate((
        (0, 5, "NETCDF3_CLASSIC"), (5, 6, "NETCDF3_64BIT_OFFSET"), (11, 4, "NETCDF4")))]
    check(t, d + "/*.nc", files)
    trees = folder(t, "trees")
    found = []
    for k, f in enumerate(files):
        path = f"{trees}/f{k}.zarr"
        xr.open_dataset(f).to_zarr(path)
        found.append(path)
    check(t, trees + "/*.zarr", found)
    check(t, trees, found)
    shutil.copy(files[2], trees + "/f9.nc")
    shutil.rmtree(found[2])
    check(t, trees + "/*", found[:2] + [trees + "/f9.nc"])


def test_groups_and_texts(t):
    """Arrays in groups, and texts of any length."""
    d = folder(t)
    for k, n in enumerate((3, 4, 2)):
        with netCDF4.Dataset(f"{d}/f{k}.nc", "w") as f:
            f.createDimension("time", None)
            g = f.createGroup("g")
            g.createVariable("v", "i4", ("time",))[:] = np.arange(n) + 10 * k
            f.createVariable("name", str, ("time",))[:] = np.array(
                ["x" * (k + i) for i in range(n)], object)
            f.createVariable("alone", str, ())[...] = "one"

            g.createVariable("time", "i8", ("time",))[:] = -np.arange(n)
            f.createVariable("time", "i8", ("time",))[:] = np.arange(n) + 10 * k

    def values(mnt):
        z = zarr.open(mnt, "r")
        assert z["g/time"][...].tolist() == [0, -1, -2, 0, -1, -2, -3, 0, -1]
        assert z["g/v"][...].tolist() == [0, 1, 2, 10, 11, 12, 13, 20, 21]
        assert list(z["name"][...]) == ["", "x", "xx", "x", "xx", "xxx", "xxxx", "xx", "xxx"]

    def values_nc(mnt):
        with netCDF4.Dataset(mnt + "/data.nc") as f:
            assert f["g/v"][:].tolist() == [0, 1, 2, 10, 11, 12, 13, 20, 21]
            assert list(f["name"][:]) == ["", "x", "xx", "x", "xx", "xxx", "xxxx", "xx", "xxx"]
            assert f.dimensions["time"].isunlimited()

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(values, m.path)
    with t.mount(d + "/*.nc", "concat=time", "concat_index=none", "view=nc") as m:
        t.call(values_nc, m.path)


def test_convert_and_refs(t):
    """info, check, convert and refs take what a mount takes."""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 8 * k, 8) for k in range(3)]
    options = ("-o", "concat=time", "-o", "concat_index=none")
    out = t.path("all.nc")
    status, _, err = t.run(t.binary, "convert", *options, "-o", "view=nc", d + "/*.nc", out)
    assert status == 0, err
    same(xr.open_dataset(out).load(), judged(files))
    status, _, err = t.run(t.binary, "check", *options, d + "/*.nc")
    assert status == 0, err
    status, _, err = t.run(t.binary, "refs", *options, "-o", "inline", d + "/*.nc",
                           t.path("all.json"))
    assert status == 0, err
    import fsspec
    got = xr.open_dataset(fsspec.get_mapper("reference://", fo=t.path("all.json")),
                          engine="zarr", backend_kwargs=dict(consolidated=False)).load()
    same(got, judged(files))


def test_refs_of_many(t):
    """More files than may be open: they are opened ahead by threads, and nothing else changes."""
    d = folder(t)
    files = [write(f"{d}/f{k:02}.nc", 8 * k, 8) for k in range(20)]
    texts = []
    for threads in 1, 2, 8:
        status, out, err = t.run(t.binary, "refs", "-o", "concat=time,concat_index=none,inline",
                                 "-o", f"open_datasets=6,decode_threads={threads}", d + "/*.nc")
        assert status == 0, err
        texts.append(out)
    assert len(set(texts)) == 1
    with open(t.path("all.json"), "w") as f:
        f.write(texts[0])
    import fsspec
    got = xr.open_dataset(fsspec.get_mapper("reference://", fo=t.path("all.json")),
                          engine="zarr", backend_kwargs=dict(consolidated=False)).load()
    same(got, judged(files))


# ---- refusing ----

def test_refused(t):
    """Every join that would be wrong names the file and what is different. SEMANTICS J3"""
    def case(name, words, first=None, **second):
        d = folder(t, name)
        write(f"{d}/one.nc", 0, 4, **(first or {}))
        write(f"{d}/two.nc", second.pop("start", 4), 4, **second)
        refused(t, d + "/*.nc", "two.nc", *words)

    case("overlap", ["one.nc", "overlap"], start=3)
    case("same", ["one.nc", "overlap"], start=0)
    case("length", ["'x'", "6", "5"], x=6, chunks=(2, 6))
    case("rank", ["'/v'"], order=("x", "time"))
    case("missing", ["'/extra'"], first=dict(extra="extra"))
    case("calendar", ["calendar"], calendar="noleap")
    case("months", ["time"], units="months since 2000-01-01")
    case("no units", ["time"], units="m")
    d = folder(t, "bad")
    write(d + "/one.nc", 0, 4)
    with open(d + "/two.nc", "wb") as f:
        f.write(b"no dataset")
    refused(t, d + "/*.nc", "two.nc", "not a file format")
    refused(t, d + "/one.nc", "'level'", "one.nc", options=("concat=level",))
    refused(t, d + "/*.hdf", "no file matches", "*.hdf")
    refused(t, "s3://bucket/*.nc", "is remote", options=("concat=time", "anonymous"))
    status, _, err = t.run(t.binary, "info", d + "/*.nc")
    assert status == 1 and "concat=time" in err, err
    status, _, err = t.run(t.binary, "-o", "concat=time,rw", d + "/*.nc", t.tmp)
    assert status == 2 and "rw" in err, err
    units = folder(t, "units")
    for k, unit in enumerate(("K", "degC")):
        write(f"{units}/f{k}.nc", 4 * k, 4)
        with netCDF4.Dataset(f"{units}/f{k}.nc", "a") as f:
            f["v"].units = unit
    refused(t, units + "/*.nc", "f1.nc", "'/v'", "degC", "K")


def test_others(t):
    """Variables without the dimension: the first file's, or compared."""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 4 * k, 4, lat_offset=k // 2) for k in range(3)]
    check(t, d + "/*.nc", files)
    refused(t, d + "/*.nc", "f2.nc", "'/lat'",
            options=("concat=time", "concat_compat=equals"))
    check(t, d + "/f[01].nc", files[:2], "concat_compat=equals")


def test_left_out(t):
    """What only later files have is left out, and said."""
    d = folder(t)
    files = [write(f"{d}/f0.nc", 0, 4), write(f"{d}/f1.nc", 4, 4, extra="extra")]
    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        assert "'/extra'" in m.messages(), m.messages()

    def values(mnt):
        got = xr.open_dataset(mnt, engine="zarr").load()
        same(got, judged([files[0], files[1]]).drop_vars("extra", errors="ignore"))

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(values, m.path)


def test_mountpoint_hides(t):
    """A mount that would hide files that it joins, or is looked for in them, is refused: it would
    ask itself. SEMANTICS J3"""
    d = folder(t)
    for k, name in enumerate(("a", "b")):
        write(folder(t, f"data/{name}") + "/f.nc", 4 * k, 4)
    other, link = folder(t, "other"), t.path("link")
    os.symlink(d, link)
    os.symlink(d + "/a/f.nc", other + "/f.nc")
    inside = folder(t, "data/a/inside")

    def hidden(pattern, mnt, word):
        status, _, err = t.run(t.binary, "-o", "concat=time,concat_index=none", pattern, mnt)
        assert status == 1 and word in err and "use another directory" in err, err

    hidden(d + "/a/*.nc", d + "/a", "would hide")
    hidden(d + "/a/*.nc", d, "would hide")
    hidden(link + "/a/*.nc", d, "would hide")
    hidden(d + "/*/*.nc", d + "/b", "would hide '" + d + "/b/f.nc'")
    hidden(other + "/*.nc", d, "would hide '" + d + "/a/f.nc'")
    hidden(other, d, "would hide '" + d + "/a/f.nc'")
    hidden(d + "/*/*.nc", folder(t, "data/c"), "searches")
    hidden(link + "/*/*.nc", d + "/c", "searches")
    hidden(d + "/a", inside, "searches")
    files = [write(t.path(f"f{k}.nc"), 4 * k, 4) for k in range(2)]
    for pattern in (t.tmp + "/*.nc", t.tmp + "/data/*/f.nc"):  # the mountpoint is beside them
        with t.mount(pattern, "concat=time", "concat_index=none") as m:
            t.call(compare_zarr, m.path, files)


# ---- changes ----

def shape_of(mnt):
    try:
        with open(mnt + "/v/.zarray") as f:
            return json.load(f)["shape"][0]
    except OSError:
        return None


def test_changes(t):
    """A new file, a changed one and one that is gone are seen; one that does not fit is not shown,
    and disturbs nothing. SEMANTICS J4"""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 4 * k, 4) for k in range(2)]

    def script(mnt):
        eventually(lambda: shape_of(mnt) == 8)
        write(t.path("new.nc"), 8, 4)
        os.rename(t.path("new.nc"), d + "/f2.nc")
        eventually(lambda: shape_of(mnt) == 12)
        compare_zarr(mnt, files + [d + "/f2.nc"])
        write(t.path("new.nc"), 8, 6, seed=9)
        os.rename(t.path("new.nc"), d + "/f2.nc")
        eventually(lambda: shape_of(mnt) == 14)
        compare_zarr(mnt, files + [d + "/f2.nc"])
        os.remove(d + "/f2.nc")
        eventually(lambda: shape_of(mnt) == 8)
        compare_zarr(mnt, files)

    with t.mount(d + "/*.nc", "concat=time", "concat_index=" + t.path("i.idx"),
                 foreground=True) as m:
        t.call(script, m.path, timeout=LIMIT)
        with open(d + "/f5.nc", "wb") as f:
            f.write(b"half a file")
        eventually(lambda: "cannot be joined" in m.messages())
        t.call(compare_zarr, m.path, files)


def test_replaced(t):
    """A virtual file that is open is of one state when a file is replaced by a longer one; files of
    a Zarr tree are of the state in which they are opened. SEMANTICS J6"""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 4 * k, 4) for k in range(2)]
    write(t.path("new.nc"), 4, 6, seed=9)

    def whole(path):
        try:
            with open(path, "rb") as f:
                return f.read()
        except OSError:  # of the former state
            return None

    def script(file, tree):
        path = f"{file}/data.nc"
        with open(path, "rb", buffering=0) as f:
            head = f.read(4096)
            assert shape_of(tree) == 8
            before = whole(path)
            chunks = {n: os.open(f"{tree}/v/{n}", os.O_RDONLY) for n in ("2.0", "3.0")}
            former = {n: whole(f"{tree}/v/{n}") for n in chunks}
            assert all(former.values())
            os.rename(t.path("new.nc"), files[1])
            eventually(lambda: whole(path) not in (None, before))
            eventually(lambda: shape_of(tree) == 10)
            assert before.startswith(head)
            for n, fd in chunks.items():
                try:
                    assert os.pread(fd, 1 << 20, 0) == former[n], n
                except OSError as e:
                    assert e.errno == errno.ESTALE, e
                os.close(fd)
            assert any(whole(f"{tree}/v/{n}") != former[n] for n in chunks)
            for at in range(0, len(before), 4096):
                try:
                    got = os.pread(f.fileno(), 4096, at)
                except OSError as e:
                    assert e.errno == errno.ESTALE, e
                    continue
                assert got == before[at:at + 4096], at
        compare_nc(file, files)
        compare_zarr(tree, files)

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none", "view=nc") as m, \
            t.mount(d + "/*.nc", "concat=time", "concat_index=none") as z:
        t.call(script, m.path, z.path, timeout=LIMIT)


def test_directory(t):
    """Nothing in a directory that is called like a dataset is left out without a word.
    SEMANTICS J3"""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 4 * k, 4) for k in (0, 2)]
    with open(d + "/README.txt", "w") as f:
        f.write("about these files")
    os.mkdir(d + "/old")
    check(t, d, files)
    bad = d + "/f1.nc"
    open(bad, "w").close()
    refused(t, d, "f1.nc", "is empty")
    with open(bad, "wb") as f:
        f.write(b"\0" * 4096)
    refused(t, d, "f1.nc", "f1.nc")
    os.remove(bad)
    os.symlink(d + "/nowhere", bad)
    refused(t, d, "f1.nc", "o such file")
    os.remove(bad)
    os.mkdir(d + "/f1.zarr")
    refused(t, d, "f1.zarr", "Zarr metadata")
    os.rmdir(d + "/f1.zarr")
    write(bad, 4, 4)
    if os.geteuid() != 0:
        os.chmod(bad, 0)
        refused(t, d, "f1.nc", "ermission denied")
        os.chmod(bad, 0o600)
    check(t, d, [files[0], bad, files[1]])


def test_begins_empty(t):
    """Files that are empty, or lead nowhere, when they come are shown as soon as they are whole,
    also where nothing changes their folder. SEMANTICS J4"""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 4 * k, 4) for k in range(2)]
    for name, start in (("new1", 8), ("new2", 12)):
        write(t.path(name), start, 4)

    def grown(mnt, n):
        eventually(lambda: shape_of(mnt) == n)
        compare_zarr(mnt, files)

    with t.mount(d, "concat=time", "concat_index=none", foreground=True) as m:
        t.call(compare_zarr, m.path, files)
        with open(d + "/f2.nc", "wb") as out:
            eventually(lambda: "f2.nc" in m.messages())
            with open(t.path("new1"), "rb") as f:
                out.write(f.read())
        files.append(d + "/f2.nc")
        t.call(grown, m.path, 12, timeout=LIMIT)
        os.symlink(t.path("late"), d + "/f3.nc")
        eventually(lambda: "f3.nc" in m.messages())
        t.call(compare_zarr, m.path, files)
        os.rename(t.path("new2"), t.path("late"))
        files.append(d + "/f3.nc")
        t.call(grown, m.path, 16, timeout=LIMIT)


def test_growing(t):
    """The last file grows where it is."""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 4 * k, 4, fmt="NETCDF3_CLASSIC") for k in range(3)]

    def script(mnt):
        eventually(lambda: shape_of(mnt) == 12)
        with netCDF4.Dataset(files[2], "a") as f:
            f["time"][4:6] = [12, 13]
            f["v"][4:6] = 7
        eventually(lambda: shape_of(mnt) == 14)
        compare_zarr(mnt, files)

    with t.mount(d, "concat=time", "concat_index=none") as m:
        t.call(script, m.path, timeout=LIMIT)


def test_few_open(t):
    """Two members are open at a time, and many threads read all of them."""
    d = folder(t)
    files, at = [], 0
    for k in range(12):
        files.append(write(f"{d}/f{k}.nc", at, 3 + k % 2, chunks=(2, 3)))
        at += 3 + k % 2

    def script(mnt):
        import threading
        want = judged(files)["v"].values
        wrong = []

        def read(seed):
            v = zarr.open(mnt, "r")["v"]
            rng = np.random.default_rng(seed)
            for i in rng.integers(0, at - 5, 60):
                if bits(v[i:i + 5]) != bits(want[i:i + 5]):
                    wrong.append(i)

        threads = [threading.Thread(target=read, args=(k,)) for k in range(6)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        assert not wrong, wrong
        compare_zarr(mnt, files)

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none", "open_datasets=2",
                 "cache_size=0") as m:
        t.call(script, m.path, timeout=LIMIT)


def test_section(t):
    """In a configuration file."""
    d, target = folder(t), folder(t, "target")
    files = [write(f"{d}/f{k}.nc", 4 * k, 4) for k in range(3)]
    conf = t.path("conf")
    with open(conf, "w") as f:
        f.write(f"[mount year]\nsource = {d}/*.nc\ntarget = {target}\nconcat = time\n"
                f"concat_index = {t.path('i.idx')}\n")
    os.chmod(conf, 0o600)
    status, _, err = t.run(t.binary, "mount", "--config", conf, "year")
    assert status == 0, err
    try:
        t.call(compare_zarr, target, files)
    finally:
        status, _, err = t.run(t.binary, "umount", "--config", conf, "year")
    assert status == 0, err
    assert os.path.exists(t.path("i.idx"))
    with open(conf, "w") as f:
        f.write(f"[defaults]\nconcat_index = none\n[mount year]\nsource = {d}/*.nc\n"
                f"target = {target}\nconcat = time\n")
    status, _, err = t.run(t.binary, "mount", "--config", conf, "year")
    assert status == 0, err
    status, _, err = t.run(t.binary, "umount", "--config", conf, "year")
    assert status == 0, err


def test_counted_once(t):
    """A chunk that is assembled from those of several files is one chunk read from the mount."""
    d = folder(t)
    for k in range(3):
        write(f"{d}/f{k}.nc", 3 * k, 3, chunks=(2, 5))

    def read(mnt):
        for k in range(5):
            with open(f"{mnt}/v/{k}.0", "rb") as f:
                assert len(f.read()) == 40

    with t.mount(d + "/*.nc", "concat=time", "concat_index=none") as m:
        t.call(read, m.path)
        status, out, err = t.run(t.binary, "status", "--json", m.path)
        assert status == 0, err
        assert sum(json.loads(out)["chunks"].values()) == 5, out


def test_changed_store(t):
    """A Zarr store among many that changes where it is, and that nothing in the folder tells of.
    SEMANTICS J4"""
    d = folder(t)
    for k in range(4):
        write(t.path("x.nc"), 4 * k, 4)
        status, _, err = t.run(t.binary, "convert", t.path("x.nc"), f"{d}/f{k}.zarr")
        assert status == 0, err
        os.remove(f"{d}/f{k}.zarr/.zmetadata")

    def script(mnt):
        [name] = os.listdir(mnt)
        with h5py.File(f"{mnt}/{name}") as f:
            assert f["v"].shape == (16, 5)
        for k in (2, 0):
            g = zarr.open_group(f"{d}/f{k}.zarr", "r+")
            g["v"].attrs["comment"] = f"new in {k}"
            if k == 2:
                g["time"].append(np.array([11.25, 11.5]))
                g["v"].append(np.full((2, 5), 7, "f4"))

            def look():
                try:
                    with h5py.File(f"{mnt}/{name}") as f:
                        return (f["v"].shape == (18, 5) and (f["v"][12:14] == 7).all() and
                                (k == 2 or f["v"].attrs.get("comment") == b"new in 0"))
                except OSError:  # of the former state
                    return False
            eventually(look)

    with t.mount(d + "/*.zarr", "concat=time", "concat_index=none") as m:
        t.call(script, m.path, timeout=LIMIT)
