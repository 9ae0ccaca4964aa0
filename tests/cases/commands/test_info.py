# SPDX-License-Identifier: BSD-3-Clause
"""nczarrfs info: a summary, then the header as `ncdump -h` prints it; details with -v and for one
variable; several sources; a directory's datasets, and those that are skipped."""
import json
import os
import shutil

import netCDF4
import numpy as np

from cases.commands.test_cli import misused, refused


def make(path):
    """A file with every type of attribute, groups, unlimited dimensions and odd names."""
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("time", None)
        d.createDimension("x", 3)
        d.title = "plain"
        d.quoted = "a \"b\" 'c' \\ tab\t newline\n é"
        d.setncattr_string("several", ["a", "b\nc"])
        t = d.createVariable("t", "f4", ("time", "x"), fill_value=-999.)
        t[0:4] = 1
        t.units = "K"
        t.floats = np.array([1, 2.5, 1e20, np.nan, np.inf, -np.inf, 0.1, -1e-9], "f4")
        t.doubles = np.array([1, 2.5, 1e20, np.nan, -np.inf, 0.1, 1 / 3, 100], "f8")
        for kind in "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8":
            limits = np.iinfo(kind)
            t.setncattr("a_" + kind, np.array([limits.min, 7, limits.max], kind))
        t.empty = ""
        d.createVariable("name", str, ("x",))
        d.createVariable("letter", "S1", ("x",))
        d.createVariable("scalar", "f8", ())
        d.createVariable("odd name+", "i2", ("x",)).note = "n"
        d.createVariable("time", "i4", ("time",)).units = "days since 2000-01-01"
        g = d.createGroup("g")
        g.note = "a group"
        g.createDimension("z", None)
        g.createVariable("v", "u2", ("x", "z"), zlib=True)
        h = g.createGroup("h")
        h.createVariable("q", "i8", ("z",))
        h.n = np.int64(1)
        d.createGroup("none")


def info(t, *args, status=0):
    got, out, err = t.run(t.binary, "info", *args)
    assert got == status, f"status {got}: {out}{err}"
    assert status or not err, err
    return out


def header(text):
    """The part that is CDL."""
    lines = text.splitlines()
    first = next(i for i, x in enumerate(lines) if x.startswith("netcdf "))
    return lines[first:lines.index("}") + 1]


def ncdump(t, path):
    status, out, err = t.run("ncdump", "-h", path)
    assert status == 0, err
    return out.splitlines()


def test_header_is_that_of_ncdump(t):
    """Dimensions, groups, types and attribute values of a file, line by line."""
    path = t.path("all.nc")
    make(path)
    want = ncdump(t, path)
    got = header(info(t, path))
    assert got == want, "\n".join(x for x in set(got) ^ set(want))


def test_header_of_a_classic_file(t):
    path = t.path("old.nc")
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as d:
        d.createDimension("time", None)
        d.createDimension("x", 3)
        d.title = "old"
        v = d.createVariable("v", "i2", ("time", "x"))
        v.scale_factor = 0.01
        v.flags = np.array([1, 2], "i1")
        v[0:2] = 1
    assert header(info(t, path)) == ncdump(t, path)


def test_header_of_a_store(t):
    """The same dataset as a Zarr store: what it shows is what netCDF-C reads of the mount."""
    path, store = t.path("s.nc"), t.path("s.zarr")
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("x", 3)
        d.title = "store"
        v = d.createVariable("v", "f8", ("x",))
        v.units = "K"
        v.offset = 2.5
    assert t.run(t.binary, "convert", path, store)[0] == 0
    lines = header(info(t, store))
    assert lines == header(info(t, path)) == ncdump(t, path), lines


def test_summary(t):
    path = t.path("all.nc")
    make(path)
    lines = info(t, path).splitlines()
    summary = lines[:lines.index("")]
    assert summary == [
        f"source    {path}",
        summary[1],
        "view      zarr v2: a mount shows a Zarr store",
        "contents  4 groups, 3 dimensions, 8 variables, 3 global attributes",
        "delivery  8 variables: 7 pass through unchanged, 1 holds strings; 0 omitted",
        "filter    portable",
        "warnings  none"], summary
    assert summary[1].startswith("format    netCDF-4, ") and summary[1].endswith("KiB"), summary


def test_details(t):
    """With -v for all, else for the variable that is named; fill values say where they are from."""
    path = t.path("all.nc")
    make(path)
    assert "chunks " not in info(t, path)
    everything = info(t, "-v", path)
    assert everything.count("    chunks    ") == 8, everything
    assert header(everything) == ncdump(t, path)
    forms = (info(t, path, "/scalar"), info(t, "--variable", "scalar", path),
             info(t, "--variable=/scalar", path))
    assert len(set(forms)) == 1, forms
    assert "\tdouble scalar ;\n" in forms[0] and "variable  /scalar\n" in forms[0], forms[0]
    assert "fill      9.969209968386869e+36 (netCDF's default)\n" in forms[0], forms[0]
    assert "letter" not in forms[0]
    assert "    fill      -999 (set by the file)\n" in info(t, path, "/t")
    out = info(t, path, "/g/v")
    assert "fill      65535 (netCDF's default)" in out and "_Filter   2,2|1,4\n" in out, out
    one = json.loads(info(t, "--json", path, "/g/v"))
    assert [v["path"] for v in one["variables"]] == ["/g/v"], one


def test_wrong_variable(t):
    path = t.path("all.nc")
    make(path)
    refused(t, "info", path, "/scalr", mention=["no variable '/scalr'", "did you mean '/scalar'?"])
    refused(t, "info", path, t.path("b.nc"), mention=["no such file"])
    refused(t, "info", t.tmp, "/v", mention=["is a directory, not a dataset"])
    misused(t, "info", "--variable", "v", path, path, mention=["give one SOURCE only"])
    assert "'/v': no such file" in t.run(t.binary, "info", path, "/v", path)[2]
    misused(t, "check", "--variable", "v", path, mention=["not a flag of this command"])


def test_several_sources(t):
    """One after the other, or an array of documents; one that fails does not end the others."""
    for name in "a.nc", "b.nc":
        make(t.path(name))
    a, b, no = t.path("a.nc"), t.path("b.nc"), t.path("no.nc")
    assert info(t, a, b) == info(t, a) + "\n" + info(t, b)
    one = json.loads(info(t, "--json", a))
    assert json.loads(info(t, "--json", a, b))[0] == one
    status, out, err = t.run(t.binary, "info", "--json", a, no, b)
    assert status == 1 and err.count("\n") == 1 and no in err, err
    said = json.loads(out)
    assert [x["source"] for x in said] == [a, no, b], out
    assert "error" in said[1] and "error" not in said[0], out


def test_several_sources_are_configured_one_by_one(t):
    """A section for one source does not change what is said of the others."""
    for name in "a.nc", "b.nc":
        make(t.path(name))
    with open(t.path("conf"), "w") as f:
        f.write(f"[source {t.path('b.nc')}]\nfilter = none\n")
    status, out, err = t.run(t.binary, "info", "--json", "--config", t.path("conf"),
                             t.path("a.nc"), t.path("b.nc"))
    assert status == 0, err
    assert [x["filter"] for x in json.loads(out)] == ["portable", "none"], out


def test_secrets_of_several_addresses(t):
    """A password in an address is in no message."""
    address = "http://me:verysecret@127.0.0.1:1/f.nc"
    status, out, err = t.run(t.binary, "info", "--json", "-o", "timeout=1,max_attempts=1", address,
                             address)
    assert status == 1 and "verysecret" not in out + err, out + err
    assert [x["source"] for x in json.loads(out)] == ["http://127.0.0.1:1/f.nc"] * 2, out


def test_json_has_values(t):
    path = t.path("all.nc")
    make(path)
    got = json.loads(info(t, "--json", path))
    by_path = {v["path"]: v for v in got["variables"]}
    with netCDF4.Dataset(path) as d:
        values = by_path["/t"]["attribute_values"]
        assert list(values) == by_path["/t"]["attributes"] == d["t"].ncattrs(), values
        assert values["units"] == "K" and values["empty"] in ("", []), values
        for name in values:
            if name.startswith("a_"):
                assert values[name] == d["t"].getncattr(name).tolist(), name
    assert got["groups"][0]["attribute_values"]["several"] == ["a", "b\nc"]
    assert by_path["/scalar"]["fill_default"] and not by_path["/t"]["fill_default"]
    assert got["delivery"] == {"pass": 7, "decode": 0, "encode": 0, "strings": 1, "lists": 0,
                               "errors": 0, "omitted": 0}


def test_directory(t):
    """What is shown, and what is not because its name is taken."""
    folder = t.path("d")
    os.mkdir(folder)
    make(os.path.join(folder, "a.nc"))
    assert "mirror, 1 dataset in" in info(t, folder)
    shutil.copy(os.path.join(folder, "a.nc"), os.path.join(folder, "b.nc"))
    with open(os.path.join(folder, "b.zarr"), "w") as f:
        f.write("something else\n")
    out = info(t, folder)
    assert "mirror, 1 dataset in" in out and "\nshown\n    a.nc as a.zarr\n" in out, out
    assert "\nskipped\n    b.nc is not shown as b.zarr: that name exists\n" in out, out
    got = json.loads(info(t, "--json", folder))
    assert got["datasets"] == [{"source": "a.nc", "name": "a.zarr"}], got
    assert got["skipped"] == [{"source": "b.nc", "name": "b.zarr",
                               "reason": "that name exists"}], got
