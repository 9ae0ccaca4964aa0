# SPDX-License-Identifier: BSD-3-Clause
"""netCDF's examples of filters: several for a variable, their order, defining one again, leaving
them out, and one that nobody has. What nccopy, ncgen and the library write for a definition is what
codec_chain_prepare says, what `info` shows of the file, and readable through the mount."""
import ctypes
import ctypes.util
import itertools
import json
import os
import struct
import subprocess

import h5py
import numpy as np
import zarr

from lib.context import Skip

SHAPE, CHUNK = (24, 50), (10, 20)
TYPES = {"f4": "float", "f8": "double", "i2": "short"}
NC_FLOAT, NC_NETCDF4, NC_CHUNKED = 5, 0x1000, 0

# ids, names and parameters as a user types them; blosc's needs its plugin, which Debian has
DEFLATE, SHUFFLE, SUMS, BZIP2 = "1,5", "2", "3", "307,9"
BLOSC = "32001,0,0,0,0,5,1,1"
ORDERS = ["|".join(p) for n in (1, 2, 3) for p in
          itertools.permutations((DEFLATE, SHUFFLE, SUMS), n)]
ORDERS += ["|".join(p) for p in itertools.permutations((BZIP2, SHUFFLE, SUMS))]
ORDERS += ["|".join(p) for p in itertools.permutations((BZIP2, DEFLATE))]
AGAIN = ["1,5|2|1,7", "1,5|307,9|1,7", "307,1|3|307,2|2", "2|2|1,3", "3|1,1|3", "2,99|1,1",
         "3,1,2|1,1"]
TYPED = ["307,5b", "1,7UB", "307, 9", " 1,\t3", "32001,0,0,0,0,9U,0us,+1"]
BLOSCS = [BLOSC, "32001,0,0,0,0,9", "32001,1,1,1,1", "32001,9,9,9,9,7,2,5", BLOSC + "|3|2"]
NBITS = ["5", "5|1,3", "2|5|3"]
SZIPS = ["4,32,16", "4,4,8|2|3", "4,36,8"]  # options nn, ec, both; pixels of a block
SPECS = ORDERS + AGAIN + TYPED + BLOSCS + NBITS


def needs(*filters):
    for one in filters:
        if not h5py.h5z.filter_avail(one):
            raise Skip(f"HDF5 has no plugin for filter {one}")


def definitions(t):
    """{variable: spec}: each for variables of three types."""
    code, out, err = t.run(t.binary, "filters")
    assert code == 0, err
    specs = SPECS + SZIPS * ("szip" in out)
    return {f"v{i}_{d}": s for i, s in enumerate(specs) for d in TYPES
            if d != "f8" or s not in SZIPS or "3" not in s.split("|")}


def tool(t, lines):
    """Answers of tests/tools/spec_tool.c."""
    path = os.path.join(os.path.dirname(t.binary), "tests", "spec_tool")
    if not os.path.exists(path):
        raise Skip(f"{path} is not built: make tools")
    done = subprocess.run([path], input="".join(x + "\n" for x in lines).encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split("\n")[:-1]


def stored(path, name):
    """The chain of a variable as the file has it: [[id, param ...] ...]."""
    with h5py.File(path, "r") as f:
        d = f[name]
        p = d.id.get_create_plist()
        return d.dtype.itemsize, d.chunks, [
            [p.get_filter(i)[0], *p.get_filter(i)[2]] for i in range(p.get_nfilters())]


def text_of(chain):
    return "|".join(",".join(str(v) for v in one) for one in chain)


def values(dtype):
    return (np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE) % 97).astype(dtype)


def plain(t, names, name="plain.nc", **more):
    """A file whose variables have chunks and no filters; names: {name: type}."""
    import netCDF4
    path = t.path(name)
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("y", SHAPE[0])
        ds.createDimension("x", SHAPE[1])
        for n, dtype in names.items():
            ds.createVariable(n, dtype, ("y", "x"), chunksizes=CHUNK, **more)[:] = values(dtype)
    return path


def nccopy(t, source, target, *rules):
    args = [x for r in rules for x in ("-F", r)]  # -M 0: small chunks are kept
    code, _, err = t.run("nccopy", "-M", "0", *args, source, target, timeout=120)
    assert code == 0, f"nccopy {args}: {err}"
    return target


def check_chains(t, path, wanted):
    """wanted: {variable: the chain as text}, in the file, in what info says and in ncdump."""
    code, out, err = t.run(t.binary, "info", "--json", path)
    assert code == 0, err
    variables = {v["path"].lstrip("/"): v for v in json.loads(out)["variables"]}
    code, cdl, err = t.run("ncdump", "-hsF", path)
    assert code == 0, err
    for name, want in wanted.items():
        chain = stored(path, name)[2]
        assert text_of(chain) == want, f"{name}: the file has {text_of(chain)}, not {want}"
        shown = [[f["id"], *f["params"]] for f in variables[name]["filters"]]
        assert shown == chain, f"{name}: info says {shown}, the file has {chain}"
        dump = [x.split('"')[1] for x in cdl.split("\n") if f"\t{name}:_Filter = " in x]
        text = variables[name]["_Filter"]
        assert (dump or [""]) == [text], f"{name}: ncdump says {dump}, info '{text}'"


def check_values(t, path, names, *options):
    def check(mnt):
        for name, dtype in names.items():
            got = zarr.open(f"{mnt}/{name}", mode="r")[:]
            assert (got == values(dtype)).all(), f"{name} differs"
    with t.mount(path, *options) as m:
        t.call(check, m.path)


def prepared(t, path, specs):
    """What is to be stored for {variable: spec}, by codec_chain_prepare."""
    lines = []
    for name, spec in specs.items():
        size, chunk, _ = stored(path, name)
        lines.append(f"prepare {size} {','.join(map(str, chunk))} {spec}")
    return dict(zip(specs, tool(t, lines)))


def test_nccopy_definitions(t):
    """All orders, filters that are named again, typed constants, with three types."""
    needs(307, 32001)
    specs = definitions(t)
    names = {n: n.split("_")[1] for n in specs}
    path = nccopy(t, plain(t, names), t.path("out.nc"), *[f"{n},{s}" for n, s in specs.items()])
    check_chains(t, path, prepared(t, path, specs))
    check_values(t, path, names)


def test_library_definitions(t):
    """nc_def_var_filter one by one, with the older functions in between."""
    needs(307)
    found = ctypes.util.find_library("netcdf")
    if not found:
        raise Skip("there is no libnetcdf")
    lib = ctypes.CDLL(found)

    def ok(rc, what):
        assert rc == 0, f"{what}: {rc}"

    def define(nc, v, step):
        if step == "deflate":
            return lib.nc_def_var_deflate(nc, v, 0, 1, 5)
        if step == "shuffle+deflate":
            return lib.nc_def_var_deflate(nc, v, 1, 1, 6)
        if step == "fletcher32":
            return lib.nc_def_var_fletcher32(nc, v, 1)
        one, *params = [int(x) for x in step.split(",")]
        return lib.nc_def_var_filter(nc, v, one, ctypes.c_size_t(len(params)),
                                     (ctypes.c_uint * max(1, len(params)))(*params))
    rows = {
        "a": (["deflate", "fletcher32", "2"], "3|2,4|1,5"),
        "b": (["fletcher32", "shuffle+deflate"], "3|2,4|1,6"),
        "c": (["shuffle+deflate", "fletcher32"], "3|2,4|1,6"),
        "d": (["307,9", "deflate", "2", "fletcher32"], "3|2,4|307,9|1,5"),
        "e": (["deflate", "307,9", "1,8"], "1,8|307,9"),
        "f": (["307,2", "307,3", "2", "307,4"], "2,4|307,4"),
        "g": (["1,1", "shuffle+deflate", "deflate"], "2,4|1,5"),
    }
    path, nc, y, x, v = t.path("lib.nc"), *(ctypes.c_int() for _ in range(4))
    ok(lib.nc_create(path.encode(), NC_NETCDF4, ctypes.byref(nc)), "create")
    ok(lib.nc_def_dim(nc, b"y", ctypes.c_size_t(SHAPE[0]), ctypes.byref(y)), "dim")
    ok(lib.nc_def_dim(nc, b"x", ctypes.c_size_t(SHAPE[1]), ctypes.byref(x)), "dim")
    data = np.ascontiguousarray(values("f4"))
    for name, (steps, _) in rows.items():
        ok(lib.nc_def_var(nc, name.encode(), NC_FLOAT, 2, (ctypes.c_int * 2)(y, x),
                          ctypes.byref(v)), "var")
        ok(lib.nc_def_var_chunking(nc, v, NC_CHUNKED, (ctypes.c_size_t * 2)(*CHUNK)), "chunks")
        for step in steps:
            ok(define(nc, v, step), f"{name}: {step}")
        ok(lib.nc_put_var_float(nc, v, data.ctypes.data_as(ctypes.POINTER(ctypes.c_float))),
           "put")
    ok(lib.nc_close(nc), "close")
    check_chains(t, path, {n: want for n, (_, want) in rows.items()})
    check_values(t, path, {n: "f4" for n in rows})
    # the same as text: definitions one behind the other are a chain
    text = {n: "|".join({"deflate": "1,5", "fletcher32": "3", "shuffle+deflate": "2|1,6"}
                        .get(s, s) for s in steps) for n, (steps, _) in rows.items()}
    assert prepared(t, path, text) == {n: want for n, (_, want) in rows.items()}


CDL = """netcdf f {{
dimensions: y = 4 ; x = 5 ;
variables:
{}
data:
{}
}}
"""


def test_ncgen_attributes(t):
    """_Filter, and the older special attributes, in CDL."""
    needs(307)
    rows = {
        "one": ('_Filter = "307,9"', "307,9"),
        "two": ('_Filter = "307,9|2"', "2,4|307,9"),
        "typed": ('_Filter = "307, 9ub|1,1s"', "307,9|1,1"),
        "again": ('_Filter = "1,2|307,1|1,3"', "1,3|307,1"),
        "old": ('_DeflateLevel = 4 ; {v}:_Shuffle = "true" ; {v}:_Fletcher32 = "true"',
                "3|2,4|1,4"),
        "both": ('_Shuffle = "true" ; {v}:_Filter = "307,2"', "2,4|307,2"),
        "none": ('_Storage = "chunked"', ""),
    }
    lines, data = [], []
    for name, (attrs, _) in rows.items():
        lines.append(f"float {name}(y, x) ; {name}:_ChunkSizes = 2, 5 ; "
                     f"{name}:{attrs.format(v=name)} ;")
        data.append(f"{name} = {', '.join(str(i) for i in range(20))} ;")
    with open(t.path("f.cdl"), "w") as f:
        f.write(CDL.format("\n".join(lines), "\n".join(data)))
    path = t.path("f.nc")
    code, _, err = t.run("ncgen", "-4", "-o", path, t.path("f.cdl"))
    assert code == 0, err
    check_chains(t, path, {n: want for n, (_, want) in rows.items()})

    def check(mnt):
        for name in rows:
            got = zarr.open(f"{mnt}/{name}", mode="r")[:]
            assert (got == np.arange(20, dtype="f4").reshape(4, 5)).all(), name
    with t.mount(path) as m:
        t.call(check, m.path)


def test_netcdf_refuses_and_so_do_we(t):
    """What nc_def_var_filter, or the filter itself, does not take."""
    source = plain(t, {"v": "f4"})
    for spec in ("1,10", "1,-1", "1,1,1", "1,4|4,32,16", "40000,1"):
        code, _, _ = t.run("nccopy", "-F", f"v,{spec}", source, t.path("no.nc"))
        assert code != 0, f"nccopy takes {spec}"
        got, = tool(t, [f"prepare 4 10,20 {spec}"])
        assert got.startswith("! "), f"{spec} becomes {got}"


def test_szip_behind_a_checksum(t):
    """libhdf5 loses the checksum of elements of eight bytes: nobody can read what nccopy writes.
    Here such a chain is refused, and the variable shown as it is, with a note."""
    needs(4)
    source = plain(t, {"v": "f8"})
    path = nccopy(t, source, t.path("lost.nc"), "v,4,4,8|3")
    with h5py.File(path, "r") as f:
        try:
            f["v"][:]
        except OSError:
            pass
        else:
            raise Skip("this libhdf5 does not lose it")
    got, = tool(t, ["prepare 8 10,20 4,4,8|3"])
    assert got.startswith("! 95") and "fletcher32" in got, got
    check_values(t, source, {"v": "f8"}, "filter=v,4,4,8|3")


def test_defaults_where_netcdf_has_none(t):
    """deflate without a level is an error there; a plugin without parameters takes its own."""
    rows = {"deflate": "1,4", "1": "1,4", "zstd": "32015,3", "bzip2": "307,9", "307": "307,9",
            "blosc": "32001,2,2,4,800,5,1,1", "lz4": "32004"}
    got = tool(t, [f"prepare 4 10,20 {s}" for s in rows])
    assert dict(zip(rows, got)) == rows


# ---- which variables ----

KEPT = object()  # no rule: what the file has

# rows of the table in netCDF's filters.md: -F none, -F var,..., and what comes of it
PRECEDENCE = (
    (("none",), "none"),
    (("none", "v,none"), "none"),
    (("none", "v,307,9"), "307,9"),
    ((), KEPT),
    (("w,307,9",), KEPT),
    (("v,none",), "none"),
    (("v,307,9",), "307,9"),
    (("*,307,9",), "307,9"),
    (("*,none",), "none"),
    (("w&v,307,1",), "307,1"),
    (("/v,2|1,3",), "2|1,3"),
    (("/g/v,307,9",), KEPT),
    # what the table does not say: the more exact, then the later
    (("*,307,9", "v,none"), "none"),
    (("v,none", "*,307,9"), "none"),
    (("v,1,1", "*,307,9"), "1,1"),
    (("v,1,1", "v,1,2"), "1,2"),
    (("*,1,1", "*,1,2"), "1,2"),
    (("*,1,1", "none"), "none"),
    (("307,9",), "307,9"),
)


def test_precedence(t):
    lines = []
    for rules, _ in PRECEDENCE:
        lines += ["forget"] + [f"rule {r}" for r in rules] + ["for /v"]
    answers = iter(tool(t, lines))
    for rules, want in PRECEDENCE:
        assert next(answers) == "ok"
        for r in rules:
            assert next(answers) == "ok", r
        got = next(answers)
        assert got == ("-" if want is KEPT else want), f"{rules}: {got}"


def test_precedence_of_nccopy(t):
    """The rows of that table in which nccopy 4.9 does as it says: the same chains as here. Told
    "none" once it suppresses all filters (row 3); it keeps deflate, shuffle and fletcher32 of the
    input, and applies both what is for all and what is for one variable. Only a single rule for a
    variable of an input without filters is as documented."""
    needs(307)
    source = plain(t, {"v": "f4", "w": "f4"})
    for i, (rules, want) in enumerate(PRECEDENCE):
        if len(rules) > 1 or rules == ("307,9",):
            continue
        path = nccopy(t, source, t.path(f"p{i}.nc"), *rules)
        chain = text_of(stored(path, "v")[2])
        expect = "" if want in (KEPT, "none") else prepared(t, path, {"v": want})["v"]
        assert chain == expect, f"{rules}: nccopy writes '{chain}', not '{expect}'"


# ---- a filter that nobody has ----

NOBODY = 32999


def unknown(t):
    """A file whose variable v has a filter without a plugin: the id is patched in."""
    path = t.path("unknown.nc")
    with h5py.File(path, "w") as f:
        f.create_dataset("ok", data=values("f4"), chunks=CHUNK)
        d = f.create_dataset("v", shape=(20,), dtype="i4", chunks=(10,), compression="gzip")
        d[:] = 1
    with open(path, "r+b") as f:
        at = f.read().find(b"deflate\0")
        assert at > 8
        f.seek(at - 8)
        f.write(struct.pack("<H", NOBODY))
    code, out, err = t.run("ncdump", "-v", "v", path)
    assert code != 0 and "filter" in err.lower(), err
    return path


def test_unknown_filter(t):
    """As in netCDF-C, the variable is there, and reading it is an error. What is wrong is said
    with the variable, the filter's id and what to do; the rest can be read."""
    path = unknown(t)
    code, out, err = t.run(t.binary, "info", "--json", path)
    assert code == 0, err
    v, = [v for v in json.loads(out)["variables"] if v["path"] == "/v"]
    assert [f["id"] for f in v["filters"]] == [NOBODY]
    assert str(NOBODY) in v["problem"] and "HDF5_PLUGIN_PATH" in v["problem"], v["problem"]

    def check(mnt):
        assert (zarr.open(mnt + "/ok", mode="r")[:] == values("f4")).all()
        a = zarr.open(mnt + "/v", mode="r")
        assert a.shape == (20,) and a.dtype == "i4"
        for part in (slice(0, 10), slice(10, 20), slice(None)):
            try:
                got = a[part]
            except OSError:
                continue
            raise AssertionError(f"{got} instead of an error")
    with t.mount(path, foreground=True) as m:
        t.call(check, m.path)
    log = [x for x in m.messages().splitlines() if "/v" in x]
    assert len(log) == 1, log
    assert str(NOBODY) in log[0] and "HDF5_PLUGIN_PATH" in log[0], log


# ---- the mount shows what nccopy writes ----

def chains(mnt, path, names):
    """The chains of a virtual file."""
    return {n: text_of(stored(f"{mnt}/{os.path.basename(path)}", n)[2]) for n in names}


def test_same_chains_as_nccopy(t):
    """-o filter=SPEC for every definition above gives, in a virtual netCDF-4 file, the ids, the
    order and the parameters that nccopy -F SPEC writes for the same file, and the same values."""
    needs(307, 32001)
    specs = definitions(t)
    names = {n: n.split("_")[1] for n in specs}
    source = plain(t, names)
    rules = [f"{n},{s}" for n, s in specs.items()]
    nccopy(t, source, t.path("out.nc"), *rules)
    want = {n: text_of(stored(t.path("out.nc"), n)[2]) for n in names}

    def check(mnt):
        got = chains(mnt, source, names)
        for n in names:
            assert got[n] == want[n], f"'{specs[n]}': {got[n]}, nccopy writes {want[n]}"
        with h5py.File(f"{mnt}/{os.path.basename(source)}", "r") as f:
            for n, dtype in names.items():
                assert (f[n][:] == values(dtype)).all(), f"'{specs[n]}' differs"
    with t.mount(source, "view=nc", *[f"filter={r}" for r in rules]) as m:
        t.call(check, m.path)


# as netCDF's table has it, on inputs with and without filters
INPUTS = {"plain": "", "zipped": "2,4|1,3", "sums": "3", "shuf": "2,4",
          "blo": "32001,2,2,4,800,5,1,1"}
ON_INPUTS = (
    ((), INPUTS),
    (("none",), dict.fromkeys(INPUTS, "")),
    (("none", "blo,307,9"), {**dict.fromkeys(INPUTS, ""), "blo": "307,9"}),
    (("none", "plain&sums,2|1,1"), {**dict.fromkeys(INPUTS, ""), "plain": "2,4|1,1",
                                    "sums": "2,4|1,1"}),
    (("*,none",), dict.fromkeys(INPUTS, "")),
    (("blo,none",), {**INPUTS, "blo": ""}),
    (("zipped&blo,none",), {**INPUTS, "blo": "", "zipped": ""}),
    (("*,307,9",), dict.fromkeys(INPUTS, "307,9")),
    (("*,307,9", "plain,none"), {**dict.fromkeys(INPUTS, "307,9"), "plain": ""}),
    (("plain,none", "*,307,9"), {**dict.fromkeys(INPUTS, "307,9"), "plain": ""}),
    (("s*,1,2",), {**INPUTS, "sums": "1,2", "shuf": "1,2"}),
    (("zipped,1,9",), {**INPUTS, "zipped": "1,9"}),
    (("zipped,deflate,9|shuffle",), INPUTS),  # its chunks are so already, at another level
    (("*,1,1", "blo,2|307,2", "none"), {**dict.fromkeys(INPUTS, ""), "blo": "2,4|307,2"}),
)


def test_precedence_through_the_mount(t):
    needs(307, 32001)
    rules = [f"{n},{s}" for n, s in INPUTS.items() if s]
    source = nccopy(t, plain(t, dict.fromkeys(INPUTS, "f4")), t.path("in.nc"), *rules)
    assert {n: text_of(stored(source, n)[2]) for n in INPUTS} == INPUTS
    for rules, want in ON_INPUTS:
        def check(mnt, want=want, rules=rules):
            got = chains(mnt, source, INPUTS)
            assert got == want, f"{rules}: {got}"
            with h5py.File(f"{mnt}/in.nc", "r") as f:
                for n in INPUTS:
                    assert (f[n][:] == values("f4")).all(), f"{rules}: {n}"
        with t.mount(source, "view=nc", "filter=keep", *[f"filter={r}" for r in rules]) as m:
            t.call(check, m.path)


def test_same_chains_in_a_zarr_tree(t):
    """The same text for a Zarr tree: codecs by numcodecs' names, with what the text says."""
    rows = {
        "shuffle|deflate,5": (["shuffle"], "zlib", {"level": 5}),
        "deflate,5|shuffle": (["shuffle"], "zlib", {"level": 5}),
        "1": ([], "zlib", {"level": 4}),
        "gzip,3": ([], "gzip", {"level": 3}),
        "ZSTD": ([], "zstd", {"level": 3}),
        "zstd,-5": ([], "zstd", {"level": -5}),
        "2|bz2,7": (["shuffle"], "bz2", {"level": 7}),
        "lz4": ([], "lz4", {"acceleration": 1}),
        "32004,4096": ([], "lz4", {"acceleration": 1}),
        "blosc": ([], "blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}),
        "32001,0,0,0,0,9,2,5": ([], "blosc", {"cname": "zstd", "clevel": 9, "shuffle": 2}),
    }
    names = {f"v{i}": s for i, s in enumerate(rows)}
    source = plain(t, dict.fromkeys(names, "f4"))

    def check(mnt):
        for n, spec in names.items():
            filters, compressor, members = rows[spec]
            with open(f"{mnt}/{n}/.zarray") as f:
                doc = json.load(f)
            assert [x["id"] for x in doc["filters"] or []] == filters, f"'{spec}': {doc}"
            assert doc["compressor"]["id"] == compressor, f"'{spec}': {doc}"
            got = {k: doc["compressor"][k] for k in members}
            assert got == members, f"'{spec}': {doc}"
            assert (zarr.open(f"{mnt}/{n}", mode="r")[:] == values("f4")).all(), spec
    with t.mount(source, *[f"filter={n},{s}" for n, s in names.items()]) as m:
        t.call(check, m.path)
