# SPDX-License-Identifier: BSD-3-Clause
"""view=classic: any source as one CDF-1, CDF-2 or CDF-5 file. Byte for byte what nccopy makes of
the same file, where nccopy makes one; elsewhere value for value what the virtual netCDF-4 file
has. What cannot be read is an error of the pages concerned, and never a fill value."""
import errno
import functools
import os
import shutil

import numpy as np

from gen import trees
from lib import npm
from lib.context import Skip, corpus, eventually_passes
from cases.netcdf_view.test_virtual import virtual
from cases.netcdf_view.test_virtual_corpus import rows

LIMIT = 120.0
ONE_IN = {"bad_*": 4, "corpus_*": 6, "tree_*": 2}
KINDS = {1: "classic", 2: "64-bit offset", 5: "cdf5"}
FOLDERS = ("classic", "hdf4", "hdf5", "netcdf4", "zarr2", "zarr3", "zip")
LARGE = 1 << 28
PAGE = 4096


def bytes_of(mnt):
    with open(virtual(mnt), "rb") as f:
        return f.read()


def compare(classic, nc4):
    from clients.netcdf import nc_classic
    if os.stat(virtual(classic)).st_size > LARGE:
        raise Skip("too large to be read")
    nc_classic.compare(virtual(classic), virtual(nc4))


def as_netcdf4(t, source, *options):
    """The classic file has what the virtual netCDF-4 file has, which h5py reads without any
    filter; the notes of the mount."""
    plain = [o for o in options if not o.startswith("filter=")] + ["filter=none"]
    with t.mount(source, "view=nc", *plain) as nc4:
        with t.mount(source, "view=classic", *options) as m:
            t.call(compare, m.path, nc4.path)
            return m.messages()


# ---- files that nccopy can make ----

def values(rng, kind, shape):
    n = int(np.prod(shape, dtype=int))
    if kind == "S1":
        return np.frombuffer(rng.integers(65, 91, n).astype("u1").tobytes(), "S1").reshape(shape)
    return rng.integers(0 if kind[0] == "u" else -99, 100, shape).astype(kind)


def attributes(d, wide):
    """Attributes of all types."""
    d.title = "text"
    d.empty = ""
    for kind in ["i1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if wide else []):
        d.setncattr("one_" + kind, np.dtype(kind).type(7))
        d.setncattr("three_" + kind, np.arange(3).astype(kind))
        largest = np.finfo(kind).max if kind[0] == "f" else np.iinfo(kind).max
        d.setncattr("largest_" + kind, np.dtype(kind).type(largest))


def kitchen(path, wide, records, seed=1):
    """A netCDF-4 file with variables of all types that the format has. records: "many", "one"
    byte variable, or "none"."""
    import netCDF4
    rng = np.random.default_rng(seed)
    kinds = ["i1", "i2", "i4", "f4", "f8", "S1"] + (["u1", "u2", "u4", "i8", "u8"] if wide else [])
    fixed = [(), ("x",), ("y", "x")]
    many = [("t",), ("t", "x"), ("t", "y", "x")] if records == "many" else []
    with netCDF4.Dataset(path, "w") as d:
        attributes(d, wide)
        if records != "none":
            d.createDimension("t", None)
        d.createDimension("x", 5)
        d.createDimension("y", 7)
        size = {"t": 23, "x": 5, "y": 7}
        for dims in fixed + many:
            for kind in kinds:
                shape = tuple(size[n] for n in dims)
                chunks = tuple(min(3, n) for n in shape) if len(dims) > 1 else None
                v = d.createVariable("_".join(("v", kind) + dims), kind, dims, chunksizes=chunks,
                                     zlib=len(dims) > 1, shuffle=len(dims) > 1)
                v.units = "m"
                v[...] = values(rng, kind, shape)
        if records == "one":
            d.createVariable("only", "i1", ("t", "x"))[:] = values(rng, "i1", (23, 5))


def nccopy(t, kind, source, target):
    """nccopy's file. It does not write padding, so that there is anything in it: padding is made
    what netCDF-C writes otherwise, fill values."""
    status, _, err = t.run("nccopy", "-k", KINDS[kind], source, target)
    assert status == 0, err
    with open(target, "rb") as f:
        data = bytearray(f.read())
    records = [v for v in slabs(target) if v[4]]
    for begin, size, fill, stride, n in slabs(target):
        pad = -size % 4 if n == 0 or len(records) > 1 else 0
        for k in range(max(n, 1)):
            at = begin + k * stride + size
            data[at:at + pad] = (fill * pad)[:pad]
    with open(target, "wb") as f:
        f.write(data)
    return bytes(data)


def slabs(file):
    """(begin, bytes, fill value, distance of records, records) of each variable, by ncdump's and
    the format's rules; records: 0 for a variable without."""
    import netCDF4
    with netCDF4.Dataset(file) as d:
        d.set_auto_mask(False)
        found, sizes = [], []
        for v in d.variables.values():
            is_record = v.ndim > 0 and d.dimensions[v.dimensions[0]].isunlimited()
            size = int(np.prod(v.shape[is_record:], dtype=int)) * v.dtype.itemsize
            fill = getattr(v, "_FillValue", netCDF4.default_fillvals[v.dtype.str[1:]])
            fill = b"\0" if v.dtype.kind == "S" else np.array(
                fill, v.dtype.newbyteorder(">")).tobytes()
            found.append([size, fill, is_record, v.shape[0] if is_record else 0])
            sizes.append(size + -size % 4)
        end = os.stat(file).st_size
        recs = [k for k, x in enumerate(found) if x[2]]
        stride = sum(sizes[k] for k in recs) if len(recs) > 1 else sum(found[k][0] for k in recs)
        n = found[recs[0]][3] if recs else 0
        first = end - n * stride
        at = first - sum(s for k, s in enumerate(sizes) if k not in recs)
        result = []
        for group, start in (([k for k in range(len(found)) if k not in recs], at), (recs, first)):
            for k in group:
                result.append((start, found[k][0], found[k][1], stride, found[k][3]))
                start += sizes[k]
        return result


def pieces(file, want):
    """Reads of odd offsets and lengths, past the page cache."""
    fd = os.open(file, os.O_RDONLY)
    try:
        for k in range(200):
            off = k * 7919 % len(want)
            n = 1 + k * 104729 % 3000
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            assert os.pread(fd, n, off) == want[off:off + n], f"{n} bytes at {off} differ"
    finally:
        os.close(fd)


def same_file(mnt, want, name):
    got = bytes_of(mnt)
    assert len(got) == len(want), f"{name}: {len(got)} bytes, {len(want)} expected"
    assert got == want, f"{name}: byte {next(i for i, x in enumerate(got) if x != want[i])} differs"
    assert os.stat(virtual(mnt)).st_size == len(want)
    pieces(virtual(mnt), want)


def bytes_as_nccopy(t, wide, records):
    """SEMANTICS F1"""
    source = t.path("a.nc")
    kitchen(source, wide, records)
    for kind in (5,) if wide else (1, 2, 5):
        want = nccopy(t, kind, source, t.path(f"copy{kind}.nc"))
        with t.mount(source, "view=classic", f"classic_format=cdf{kind}") as m:
            t.call(same_file, m.path, want, f"CDF-{kind}")
    with t.mount(source, "view=classic") as m:  # the first version that holds the data
        head = t.path("head")
        t.call(lambda: shutil.copyfile(virtual(m.path), head))
        with open(head, "rb") as f:
            assert f.read(4) == b"CDF" + bytes([5 if wide else 1])


def as_written(source, target):
    """A copy in CDF-1, by netCDF-C as programs use it."""
    import netCDF4
    with netCDF4.Dataset(source) as a, netCDF4.Dataset(target, "w", format="NETCDF3_CLASSIC") as b:
        a.set_auto_mask(False)
        b.setncatts({n: a.getncattr(n) for n in a.ncattrs()})
        for name, dim in a.dimensions.items():
            b.createDimension(name, None if dim.isunlimited() else len(dim))
        for name, v in a.variables.items():
            fill = v.getncattr("_FillValue") if "_FillValue" in v.ncattrs() else None
            w = b.createVariable(name, v.dtype, v.dimensions, fill_value=fill)
            w.setncatts({n: v.getncattr(n) for n in v.ncattrs() if n != "_FillValue"})
        for name, v in a.variables.items():
            b[name][...] = v[...]


def test_bytes_as_written(t):
    """With padding: a program's copy has the same bytes."""
    import netCDF4
    source = t.path("a.nc")
    kitchen(source, False, "many")
    with netCDF4.Dataset(source, "a") as d:
        d.createVariable("filled", "i1", ("t", "x"), fill_value=3)[:] = np.ones((23, 5))
        d.createVariable("short", "i2", ("t", "x"), fill_value=-3)[:] = np.ones((23, 5))
    as_written(source, t.path("want.nc"))
    with open(t.path("want.nc"), "rb") as f:
        want = f.read()
    with t.mount(source, "view=classic") as m:
        t.call(same_file, m.path, want, "CDF-1")


def test_bytes_narrow(t):
    bytes_as_nccopy(t, False, "many")


def test_bytes_wide(t):
    bytes_as_nccopy(t, True, "many")


def test_bytes_without_records(t):
    bytes_as_nccopy(t, False, "none")


def test_bytes_one_record_variable(t):
    bytes_as_nccopy(t, False, "one")


def test_classic_source(t):
    """A classic file is itself, whatever its chunks are."""
    source = t.path("a.nc")
    kitchen(source, False, "many")
    for kind in (1, 2, 5):
        want = nccopy(t, kind, source, t.path(f"c{kind}.nc"))
        for cut in ("4K", "1M"):
            with t.mount(t.path(f"c{kind}.nc"), "view=classic", f"classic_format=cdf{kind}",
                         f"default_chunk_size={cut}") as m:
                t.call(same_file, m.path, want, f"CDF-{kind}")


def test_empty(t):
    """A file without variables, and one without anything."""
    import netCDF4
    with netCDF4.Dataset(t.path("a.nc"), "w") as d:
        d.title = "nothing"
        d.createDimension("x", 4)
    with netCDF4.Dataset(t.path("b.nc"), "w"):
        pass
    for name, size in (("a.nc", 72), ("b.nc", 32)):
        with t.mount(t.path(name), "view=classic") as m:
            got = t.path("got")
            t.call(lambda: shutil.copyfile(virtual(m.path), got))
        assert os.stat(got).st_size == size, os.stat(got).st_size
        with netCDF4.Dataset(got) as d:
            assert not d.variables


# ---- what classic netCDF has no word for ----

def odd(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as d:
        for name, n in (("x", 3), ("t", None), ("u", None)):
            d.createDimension(name, n)
        d.createVariable("v", "i4", ("t", "x"))[:] = np.arange(6).reshape(2, 3)
        d.createVariable("inner", "i2", ("x", "u"))[:] = np.arange(12).reshape(3, 4)
        d.createVariable("later", "f4", ("t",), fill_value=9)[0] = 1.5  # 1 of 2 records
        d.createVariable("text", str, ("x",))[:] = np.array(["a", "bc", ""], object)
        d.createVariable("vl", d.createVLType("i4", "list"), ("x",))
        c = d.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
        d.createVariable("cp", c, ("x",))
        d["v"].setncattr_string("one", "a string")
        d["v"].setncattr_string("two", ["a", "b"])
        d["v"].wide = np.int64(7)
        d.createGroup("g").createVariable("hidden", "i4", ("x",))[:] = 1


def odd_shown(mnt):
    import netCDF4
    with netCDF4.Dataset(virtual(mnt)) as d:
        d.set_auto_mask(False)
        assert set(d.variables) == {"v", "inner", "later"}, set(d.variables)
        assert d.dimensions["t"].isunlimited() and not d.dimensions["u"].isunlimited()
        assert (d["v"][:] == np.arange(6).reshape(2, 3)).all()
        assert (d["inner"][:] == np.arange(12).reshape(3, 4)).all()
        assert d["later"][:].tolist() == [1.5, 9], "records after the end are fill values"
        assert d["v"].one == "a string"
        assert d["v"].wide == 7 and d["v"].wide.dtype == np.int32
        assert "two" not in d["v"].ncattrs()


def test_left_out(t):
    """SEMANTICS F2"""
    source = t.path("a.nc")
    odd(source)
    with t.mount(source, "view=classic") as m:
        t.call(odd_shown, m.path)
        log = m.messages()
    status, out, err = t.run(t.binary, "info", "-o", "view=classic", source)
    assert status == 0, err
    for word in ("/text: left out: classic netCDF has no elements of variable length",
                 "/vl: left out", "/cp: left out: classic netCDF has no such type",
                 "group 'g' is left out", "dimension 'u' is shown with its present length",
                 "attribute 'two' is left out: classic netCDF has no lists of strings",
                 "1 attributes of unsigned or 64-bit integers are stored as int"):
        assert word in log, f"{word!r} is not in the log:\n{log}"
        assert word in out, f"{word!r} is not in the report:\n{out}"
    assert "netCDF classic (CDF-1) file" in out, out


def test_zero_lengths(t):
    """Only the record dimension can have the length 0."""
    import h5py
    import netCDF4
    with netCDF4.Dataset(t.path("a.nc"), "w") as d:
        d.createDimension("t", None)
        d.createDimension("u", None)
        d.createDimension("x", 3)
        d.createVariable("a", "i2", ("t", "x"))
        d.createVariable("b", "f8", ("u",))
        d.createVariable("c", "f8", ("x",))[:] = [1, 2, 3]
    log = as_netcdf4(t, t.path("a.nc"))
    assert "/b: left out: it is empty" in log, log
    with h5py.File(t.path("b.h5"), "w") as f:
        f["none"] = np.zeros((0, 4))
        f["some"] = np.arange(3)
    as_netcdf4(t, t.path("b.h5"))


def test_short_strings(t):
    """An array of strings that is shorter than its dimension reads as its fill value there, which
    has several characters."""
    import h5py
    import netCDF4
    source = t.path("a.h5")
    with h5py.File(source, "w") as f:
        f.create_dataset("t", data=np.arange(5), maxshape=(None,), chunks=(2,))
        f["t"].make_scale("t")
        s = f.create_dataset("s", shape=(2,), dtype="S3", maxshape=(None,), chunks=(2,),
                             fillvalue=b"abc")
        s[:] = [b"x", b"yz"]
        s.dims[0].attach_scale(f["t"])
    with t.mount(source, "view=classic") as m:
        got = t.path("got.nc")
        t.call(lambda: shutil.copyfile(virtual(m.path), got))
    with netCDF4.Dataset(got) as d:
        d.set_auto_chartostring(False)
        d.set_auto_mask(False)
        assert d["s"].shape == (5, 3), d["s"].shape
        assert d["s"][:].tobytes() == b"x\0\0yz\0" + 3 * b"abc", d["s"][:]


def test_narrow_types(t):
    """With a version that has no such type, a variable is left out."""
    source = t.path("a.nc")
    kitchen(source, True, "none")
    with t.mount(source, "view=classic", "classic_format=cdf1") as m:
        log = m.messages()
        got = t.path("got.nc")
        t.call(lambda: shutil.copyfile(virtual(m.path), got))
    assert "/v_u8: left out: only CDF-5 has unsigned and 64-bit integers" in log, log
    assert "attribute 'largest_u8' is left out: its integers fit only CDF-5" in log, log
    import netCDF4
    with netCDF4.Dataset(got) as d:
        assert d.data_model == "NETCDF3_CLASSIC" and len(d.variables) == 3 * 6, d


# ---- sources ----

def test_quantised(t):
    """The digits that an option keeps, and netCDF's attribute of it."""
    import netCDF4
    source = t.path("a.nc")
    kitchen(source, False, "many")
    with netCDF4.Dataset(source, "a") as d:
        d["v_f8_t_y_x"][:] = np.random.default_rng(2).normal(size=(23, 7, 5))
    as_netcdf4(t, source, "quantize=granularbr,3")
    with t.mount(source, "view=classic", "quantize=granularbr,3") as m:
        got = t.path("got.nc")
        t.call(lambda: shutil.copyfile(virtual(m.path), got))
    with netCDF4.Dataset(got) as a, netCDF4.Dataset(source) as b:
        v = a["v_f8_t_y_x"]
        assert v._QuantizeGranularBitRoundNumberOfSignificantDigits == 3, v
        assert (v[:] != b["v_f8_t_y_x"][:]).any() and np.allclose(v[:], b["v_f8_t_y_x"][:], 1e-2)


def test_concat(t):
    import netCDF4
    for k in range(3):
        with netCDF4.Dataset(t.path(f"part{k}.nc"), "w") as d:
            d.createDimension("t", None)
            d.createDimension("x", 3)
            d.createVariable("v", "f4", ("t", "x"))[:] = np.arange(6).reshape(2, 3) + 10 * k
    with t.mount(t.path("part*.nc"), "concat=t", "view=classic") as m:
        got = t.path("got.nc")
        t.call(lambda: shutil.copyfile(virtual(m.path), got))
    with netCDF4.Dataset(got) as d:
        want = np.concatenate([np.arange(6).reshape(2, 3) + 10 * k for k in range(3)])
        assert (d["v"][:] == want).all()


def of_tree(made, t):
    source = t.path(made.name + made.ending)
    try:
        made.write(source)
    except ImportError as why:
        raise Skip(str(why)) from why
    as_netcdf4(t, source, *made.options)


def rewrite(path, k):
    import netCDF4
    with netCDF4.Dataset(path + ".new", "w") as d:
        d.createDimension("x", 3 + k)
        d.createVariable("v", "i4", ("x",))[:] = np.arange(3 + k) + k
    os.replace(path + ".new", path)


def shows(mnt, k):
    import netCDF4
    with netCDF4.Dataset(virtual(mnt)) as d:
        assert d["v"][:].tolist() == (np.arange(3 + k) + k).tolist()


def test_source_changes(t):
    """SEMANTICS F4"""
    source = t.path("a.nc")
    rewrite(source, 0)
    with t.mount(source, "view=classic") as m:
        t.call(shows, m.path, 0)
        rewrite(source, 5)
        eventually_passes(t.call, shows, m.path, 5)


# ---- faults ----

def damaged_pages(mnt, good, bad):
    """Every page outside the damaged chunk has its bytes; pages inside are errors."""
    fd = os.open(virtual(mnt), os.O_RDONLY)
    lost = 0
    try:
        for at in range(0, len(good), PAGE):
            touches = at < bad[1] and at + PAGE > bad[0]
            try:
                got = os.pread(fd, PAGE, at)
            except OSError as why:
                assert touches, f"page at {at} cannot be read: {why}"
                lost += 1
                continue
            assert not touches, f"page at {at}, in the damaged chunk, can be read"
            assert got == good[at:at + PAGE], f"page at {at} differs"
    finally:
        os.close(fd)
    assert lost


def test_damaged_chunk(t):
    """SEMANTICS F3"""
    import h5py
    source = t.path("a.h5")
    data = np.random.default_rng(1).integers(0, 1000, (8, 40000)).astype("i4")
    with h5py.File(source, "w") as f:
        d = f.create_dataset("v", data=data, chunks=(1, 40000), compression="gzip")
        f["w"] = np.arange(30000.0)
        place = d.id.get_chunk_info(3)
    with t.mount(source, "view=classic") as m:
        copy = t.path("copy")
        t.call(lambda: shutil.copyfile(virtual(m.path), copy))
    with open(copy, "rb") as f:
        good = f.read()
    begin = good.index(data.astype(">i4").tobytes())
    with open(source, "r+b") as f:
        f.seek(place.byte_offset)
        f.write(bytes(place.size))
    with t.mount(source, "view=classic", foreground=True) as m:
        t.call(damaged_pages, m.path, good, (begin + 3 * 160000, begin + 4 * 160000))
        assert "'/v' chunk 3.0" in m.messages(), m.messages()


def test_unreadable(t):
    """An array that cannot be read fails the mount, unless it may be left out."""
    import h5py
    source = t.path("a.h5")
    with h5py.File(source, "w") as f:
        f["good"] = np.arange(5)
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_chunk((4,))
        p.set_filter(32000 + 511, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(f.id, b"bad", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((4,)), p)
    with t.mount(source, "view=classic", check=False) as m:
        assert m.status == 1 and "'/bad' cannot be shown in a classic netCDF file" in (
            m.messages()), m.messages()
    with t.mount(source, "view=classic", "unsupported=skip") as m:
        assert "/bad: left out" in m.messages(), m.messages()
        t.call(bytes_of, m.path)


def refused(t, word, source, *options):
    with t.mount(source, *options, check=False) as m:
        assert m.status and word in m.messages(), m.messages()


def test_options(t):
    source = t.path("a.nc")
    rewrite(source, 0)
    refused(t, "view=classic is read-only", source, "view=classic", "rw")
    refused(t, "classic_format: only with view=classic", source, "classic_format=cdf1")
    refused(t, "use auto, cdf1, cdf2 or cdf5", source, "view=classic", "classic_format=cdf3")
    refused(t, "is a directory, not a dataset: view=classic shows one dataset", t.tmp,
            "view=classic")
    with t.mount(source, "view=classic") as m:
        t.call(cannot_write, m.path)


def cannot_write(mnt):
    for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
        try:
            os.close(os.open(virtual(mnt), flags))
        except OSError:
            continue
        raise AssertionError("the file can be opened for writing")


def huge(path):
    """One variable of 3 GiB, without a chunk, and one after it."""
    import netCDF4
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 3 << 20)
        d.createDimension("y", 1024)
        d.createVariable("a", "i1", ("x", "y"), chunksizes=(1024, 1024))
        d.createVariable("b", "i4", ("y",))[:] = np.arange(1024)


def tail(mnt, begin):
    with open(virtual(mnt), "rb") as f:
        f.seek(begin - 5)
        assert f.read(9) == b"\x81" * 5 + bytes(4), "the end of a and the start of b"
        f.seek(-8, 2)
        assert f.read() == bytes([0, 0, 3, 254, 0, 0, 3, 255])


def test_sizes(t):
    """CDF-2 where CDF-1 has no room; the size is exact, and nothing else is read."""
    source = t.path("a.nc")
    huge(source)
    refused(t, "would begin at byte", source, "view=classic", "classic_format=cdf1")
    with t.mount(source, "view=classic") as m:
        status, out, err = t.run(t.binary, "info", "-o", "view=classic", source)
        assert "CDF-2" in out, out + err
        size = os.stat(virtual(m.path)).st_size
        t.call(tail, m.path, size - 4096)


# ---- programs ----

def has_large(mnt, size):
    head = bytes_of(mnt)
    assert b"x" * size in head and b"title" in head and b"units" in head


def test_large_attributes(t):
    """All attributes are in the file, or the mount fails: with attributes that exceed the memory
    of the decisions (16 MiB), and with those that only exceed the header (memory/8)."""
    for size, message in ((20 << 20, "its metadata exceeds"), (10 << 20, "the header exceeds")):
        source = t.path(f"large{size}.zarr")
        trees.group(source, {"large": "x" * size, "title": "t"})
        trees.array(source, "v", trees.ramp((4,)), (4,), {"_ARRAY_DIMENSIONS": ["x"],
                                                          "units": "m"})
        refused(t, message, source, "view=classic", "memory=64M")
        with t.mount(source, "view=classic", "memory=256M") as m:
            t.call(has_large, m.path, size)


def xarray_scipy(mnt, source):
    import xarray
    try:
        import scipy.io
    except ImportError as why:
        raise Skip("no scipy") from why
    with scipy.io.netcdf_file(virtual(mnt), "r", mmap=False) as f:
        assert (f.variables["v_f8_t_y_x"].data.shape == (23, 7, 5))
    with xarray.open_dataset(virtual(mnt), engine="scipy") as got:
        with xarray.open_dataset(source, engine="netcdf4") as want:
            for name in want.variables:
                assert got[name].dims == want[name].dims, name
                np.testing.assert_array_equal(got[name].values, want[name].values, name)


def test_scipy(t):
    source = t.path("a.nc")
    kitchen(source, False, "many")
    with t.mount(source, "view=classic") as m:
        t.call(xarray_scipy, m.path, source)


def test_netcdfjs(t):
    """A reader in JavaScript. It gives padding as values of types shorter than 4 bytes, so that
    these are compared with what it reads in nccopy's file."""
    import netCDF4
    source = t.path("a.nc")
    kitchen(source, False, "many")
    for kind, version in (1, "classic format"), (2, "64-bit offset format"):
        nccopy(t, kind, source, t.path("copy.nc"))
        with t.mount(source, "view=classic", f"classic_format=cdf{kind}") as m:
            got = npm.read(t, "netcdfjs", "classic.mjs", os.path.join(m.path, "a.nc"))
        assert got == npm.read(t, "netcdfjs", "classic.mjs", t.path("copy.nc"))
        assert got["version"] == version
        with netCDF4.Dataset(source) as d:
            assert list(d.variables) == list(got["variables"])
            for name, v in d.variables.items():
                seen = got["variables"][name]
                assert seen["dimensions"] == list(v.dimensions), name
                if v.dtype.itemsize >= 4:
                    assert seen["values"] == v[...].data.ravel().tolist(), name


def test_tools(t):
    """ncdump, ncks, cp and cmp."""
    source = t.path("a.nc")
    kitchen(source, False, "many")
    want = t.run("ncdump", "-p", "9,17", source)[1]
    with t.mount(source, "view=classic") as m:
        file = os.path.join(m.path, "a.nc")
        status, out, err = t.run("ncdump", "-p", "9,17", file)
        assert status == 0 and out == want, err
        assert t.run("ncdump", "-k", file)[1].strip() == "classic"
        copy = t.path("copy.nc")
        status, _, err = t.run("cp", file, copy)
        assert status == 0, err
        status, _, err = t.run("cmp", file, copy)
        assert status == 0, err
        if shutil.which("ncks"):
            status, _, err = t.run("ncks", "-O", "-3", "-d", "t,2,4", file, t.path("part.nc"))
            assert status == 0, err
            assert "t = UNLIMITED ; // (3 currently)" in t.run(
                "ncdump", "-h", t.path("part.nc"))[1]


def test_convert(t):
    """A copy is the file that a mount shows."""
    source = t.path("a.nc")
    kitchen(source, False, "many")
    want = nccopy(t, 2, source, t.path("want.nc"))
    status, _, err = t.run(t.binary, "convert", source, t.path("b.nc3"), "-o",
                           "view=classic,classic_format=cdf2")
    assert status == 0, err
    with open(t.path("b.nc3"), "rb") as f:
        assert f.read() == want
    status, _, err = t.run(t.binary, "convert", source, t.path("c.nc3"))
    assert status and "without view=classic: add it" in err, err


def of_corpus(root, row, t):
    """Where the netCDF-4 view can be mounted, the classic one can, and has the same."""
    source = os.path.join(root, row)
    with t.mount(source, "view=nc", check=False) as nc4:
        if nc4.status:
            raise Skip("no netCDF-4 view: " + nc4.messages()[:200])
        with t.mount(source, "view=classic") as m:
            t.call(compare, m.path, nc4.path)


def read_what_can(mnt):
    """All pages, up to a limit: errors are no surprise."""
    fd = os.open(virtual(mnt), os.O_RDONLY)
    try:
        for at in range(0, min(os.fstat(fd).st_size, 1 << 25), 1 << 16):
            try:
                os.pread(fd, 1 << 16, at)
            except OSError as why:
                assert why.errno in (errno.EIO, errno.ESTALE), why
    finally:
        os.close(fd)


def of_bad(root, row, t):
    """A damaged dataset is refused, or its classic file can be read or is an error."""
    with t.mount(os.path.join(root, row), "view=classic", check=False) as m:
        m.damaged = True
        if m.status == 0:
            t.call(read_what_can, m.path)
        assert m.status in (0, 1), m.messages()


def cases():
    for name, made in trees.load().items():
        yield "tree_" + name, functools.partial(of_tree, made)
    root = corpus()
    if not root or not os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        return
    for row in rows(root, FOLDERS):
        yield "corpus_" + row, functools.partial(of_corpus, root, row)
    for row in rows(root, ("bad",)):
        yield "bad_" + row, functools.partial(of_bad, root, row)
