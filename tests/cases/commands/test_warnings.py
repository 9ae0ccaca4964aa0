# SPDX-License-Identifier: BSD-3-Clause
"""What is skipped is a warning: a dataset whose name is taken, a directory without datasets, a
chunk rule for a dimension that does not exist."""
import json
import os
import shutil

import netCDF4

OTHER = "is not shown as"


def make(path, dim="time"):
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension(dim, 4)
        d.createVariable("v", "f4", (dim,))[:] = 1


def folder(t, name="d"):
    path = t.path(name)
    os.mkdir(path)
    return path


def warnings(m):
    prefix = "nczarrfs: warning: "
    return [x[len(prefix):] for x in m.messages().splitlines() if x.startswith(prefix)]


def test_taken_name(t):
    """Before the mount for the top directory, and once when it is listed."""
    top = folder(t)
    make(top + "/a.nc")
    make(top + "/b.nc")
    with open(top + "/a.zarr", "w") as f:
        f.write("no dataset\n")
    want = f"'{top}/a.nc' is not shown as 'a.zarr': that name exists"
    with t.mount(top, foreground=True) as m:
        assert warnings(m) == [want], m.messages()
        for _ in range(3):
            assert sorted(os.listdir(m.path)) == ["a.nc", "a.zarr", "b.nc", "b.zarr"]
        assert warnings(m) == [want, f"in '{top}', 'a.nc' is not shown as 'a.zarr': that name "
                               "exists"], m.messages()


def test_taken_name_below(t):
    """In a sub-directory it is known when that is listed; two datasets may want one name."""
    top = folder(t)
    below = folder(t, "d/sub")
    make(below + "/a.nc")
    shutil.copy(below + "/a.nc", below + "/a.h5")
    with t.mount(top, foreground=True) as m:
        assert warnings(m) == [], m.messages()
        assert sorted(os.listdir(m.path + "/sub")) == ["a.h5", "a.nc", "a.zarr"]
        assert warnings(m) == [f"in '{below}', 'a.h5' is not shown as 'a.zarr': that name "
                               "shows 'a.nc'"], m.messages()


def test_names_of_both(t):
    """A dataset in both formats: neither hides the other."""
    top = folder(t)
    make(top + "/a.nc")
    assert t.run(t.binary, "convert", top + "/a.nc", top + "/a.zarr")[0] == 0
    with t.mount(top, foreground=True) as m:
        got = [x for x in warnings(m) if OTHER in x]
        assert len(got) == 2 and f"'{top}/a.zarr' is not shown as 'a.nc'" in got[1], got
        assert sorted(os.listdir(m.path)) == ["a.nc", "a.zarr"]


def test_no_datasets(t):
    top = folder(t)
    start = f"no datasets found in '{top}' (looked for .nc "
    with t.mount(top, foreground=True) as m:
        assert len(warnings(m)) == 1 and warnings(m)[0].startswith(start), m.messages()
    with open(top + "/a.nc", "w") as f:
        f.write("text\n")
    with t.mount(top, foreground=True) as m:
        assert len(warnings(m)) == 1 and warnings(m)[0].startswith(start), m.messages()
    with t.mount(top, "rw", foreground=True) as m:
        assert warnings(m) == [], m.messages()
    os.mkdir(top + "/sub")
    with t.mount(top, foreground=True) as m:
        assert warnings(m) == [], m.messages()


def test_no_such_dimension(t):
    """In a chunk rule, with the name that was meant."""
    make(t.path("a.nc"))
    store = t.path("a.zarr")
    assert t.run(t.binary, "convert", t.path("a.nc"), store)[0] == 0
    for rule, want in (("tme=4", f"-o chunks: no dimension 'tme' in '{store}': did you mean "
                        "'time'?"),
                       ("zzz=4", f"-o chunks: no dimension 'zzz' in '{store}'"),
                       ("time=2", None)):
        with t.mount(store, "rw", "chunks=" + rule, foreground=True) as m:
            assert warnings(m) == ([want] if want else []), m.messages()


def test_no_such_dimension_of_several(t):
    """Other datasets of a directory may have it: a warning needs a name that is nearly the same."""
    top = folder(t)
    make(top + "/a.nc")
    for rule, want in (("tme=4", f"-o chunks: no dimension 'tme' in '{top}/a.nc': did you mean "
                        "'time'?"), ("zzz=4", None), ("ti=4", None), ("time=2", None)):
        with t.mount(top, "rw", "chunks=" + rule, foreground=True) as m:
            os.listdir(m.path + "/a.zarr")
            assert warnings(m) == ([want] if want else []), m.messages()


def test_not_a_directory(t):
    """Only arguments that are swapped are called so."""
    make(t.path("a.nc"))
    make(t.path("b.nc"))
    os.mkdir(t.path("empty"))
    for source, want in (("b.nc", "name an empty directory"),
                         ("empty", "write nczarrfs SOURCE MOUNTPOINT, in this order")):
        status, out, err = t.run(t.binary, t.path(source), t.path("a.nc"))
        assert status == 1 and f"'{t.path('a.nc')}': not a directory: {want}" in err, err


def test_rule_for_no_variable_rw(t):
    """A writable mount warns as well; rules of an empty dataset are for new variables."""
    with netCDF4.Dataset(t.path("a.nc"), "w") as d:
        d.createDimension("time", 4)
        d.createVariable("time", "f4", ("time",))[:] = 1
    store = t.path("a.zarr")
    assert t.run(t.binary, "convert", t.path("a.nc"), store)[0] == 0
    for source in (t.path("a.nc"), store):
        for rule, want in (("filter=tme,zstd,5", ["-o filter=tme,zstd,5: there is no variable "
                                                  "'tme': did you mean 'time'?"]),
                           ("quantize=zzzzz,bitgroom,3", ["-o quantize=zzzzz,bitgroom,3: there "
                                                          "is no variable 'zzzzz'"]),
                           ("filter=time,zstd,5", [])):
            with t.mount(source, "rw", rule, foreground=True) as m:
                assert warnings(m) == want, m.messages()
    with t.mount(t.path("new.nc"), "create", "filter=time,zstd,5", foreground=True) as m:
        assert warnings(m) == [], m.messages()


MISSPELT = (("filter=nope,zstd", "-o filter=nope,zstd: there is no variable 'nope'"),
            ("rechunk=nope,time=2", "-o rechunk=nope,time=2: there is no variable 'nope'"),
            ("rechunk=v,tme=2", "-o rechunk: no dimension 'tme' in '%s': did you mean 'time'?"),
            ("rechunk=v,time=2", None))


def test_rules_of_commands(t):
    """A command warns of a misspelt rule as a mount does."""
    path = t.path("a.nc")
    make(path)
    for rule, want in MISSPELT:
        want = f"nczarrfs: warning: {want.replace('%s', path)}" if want else ""
        with t.mount(path, rule, foreground=True) as m:
            assert [f"nczarrfs: warning: {w}" for w in warnings(m)] == ([want] if want else [])
        for command in ("info", path), ("convert", "--force", path, t.path("a.zarr")):
            code, _, err = t.run(t.binary, command[0], "-o", rule, *command[1:])
            assert code == 0 and (err.count(want) == 1 if want else "warning" not in err), err
        err = t.run(t.binary, "refs", "-o", rule, path, t.path("r.json"))[2]
        assert err.count(want) == 1 if want else "warning" not in err, err


def test_rules_of_several(t):
    """A rule that nearly matches one of the datasets and matches none before is warned of once."""
    top = folder(t)
    for name in "abc":
        make(f"{top}/{name}.nc", "timer" if name == "a" else "time")
    for rule, want in (("rechunk=tims=2", "-o rechunk: no dimension 'tims' in '%s/b.nc': did you "
                        "mean 'time'?"),
                       ("filter=zzz,zstd", None), ("rechunk=zzz=2", None),
                       ("rechunk=timer=2", None)):  # a.nc has it
        for rw in (), ("rw",) * (rule[0] == "f"):
            with t.mount(top, rule, *rw, foreground=True) as m:
                for name in "abc":
                    os.listdir(f"{m.path}/{name}.zarr")
                want = want and want.replace("%s", top)
                assert warnings(m) == ([want] if want else []), m.messages()


def test_check_of_several(t):
    """The status is the worst; JSON is an array."""
    make(t.path("a.nc"))
    make(t.path("b.nc"))
    a, b, no = t.path("a.nc"), t.path("b.nc"), t.path("no.nc")
    status, out, err = t.run(t.binary, "check", a, b)
    assert (status, err) == (0, "") and out.count("all good") == 2, out + err
    status, out, err = t.run(t.binary, "check", a, no, b)
    assert status == 2 and out.count("all good") == 2 and err.count(no) == 1, out + err
    status, out, err = t.run(t.binary, "check", "--json", a, no, b)
    got = json.loads(out)
    assert status == 2 and [x.get("good") for x in got] == [True, None, True], out
    assert got[1]["source"] == no and got[1]["error"], out
    status, out, err = t.run(t.binary, "check", "--resume", t.path("state"), a, b)
    assert status == 2 and not out and "--resume: give one SOURCE only" in err, err
