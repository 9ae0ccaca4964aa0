# SPDX-License-Identifier: BSD-3-Clause
"""HDF4 files: what libhdf4 reads from them is what programs read from the mount, bit for bit."""
import functools
import os
import random
import shutil
import subprocess

import numpy

from clients import hdf4
from lib import clients
from lib.context import Skip, corpus

LIMIT = 90.0


def need(t):
    _, out, _ = t.run(t.binary, "--version")
    if "HDF4 not built in" in out:
        raise Skip("HDF4 is not built in")
    try:
        import pyhdf.SD  # noqa: F401
    except ImportError:
        raise Skip("python3-hdf4 is not installed") from None


def compare_tree(model, mnt):
    hdf4.compare_zarr(model, mnt)
    hdf4.compare_xarray(model, mnt)


def compare_file(model, file):
    hdf4.compare_netcdf(model, file)
    hdf4.compare_h5py(model, file)


def only_file(mnt):
    return os.path.join(mnt, os.listdir(mnt)[0])


def compare_both(model, base):
    compare_tree(model, base + ".zarr")
    compare_file(model, base + ".nc4")


def compare(file, t):
    need(t)
    model = hdf4.load(file)
    with t.mount(file) as m:
        t.call(compare_tree, model, m.path)
    with t.mount(file, "view=nc", "unsupported=skip") as m:
        t.call(compare_file, model, only_file(m.path))


def make(t, kind):
    """A file that tests/tools/hdf4_make.c writes."""
    need(t)
    tool = os.path.join(os.path.dirname(t.binary), "tests", "hdf4_make")
    if not os.path.exists(tool):
        raise Skip("make tools has not been run")
    path = t.path(f"{kind}.hdf")
    status, _, err = t.run(tool, kind, path)
    assert status == 0, err
    return tool, path


def generated(kind, t):
    _, path = make(t, kind)
    compare(path, t)


for _kind in ("chunks", "rewritten", "records", "scales", "groups", "large"):
    globals()[f"test_{_kind}"] = functools.partial(generated, _kind)


def by_tool(tool, path, model):
    """Elements as libhdf4 gives them to a C program: pyhdf does not know every type."""
    for i, a in enumerate(model["arrays"]):
        p = subprocess.run([tool, "values", path, str(i)], stdout=subprocess.PIPE, check=True,
                           timeout=30)
        assert a["values"] in (None, p.stdout), f"pyhdf and libhdf4 differ in {a['name']}"
        a["values"] = p.stdout


def test_types(t):
    """Standard, native and little-endian forms; arrays that were never written."""
    tool, path = make(t, "types")
    model = hdf4.load(path)
    by_tool(tool, path, model)
    with t.mount(path) as m:
        t.call(compare_tree, model, m.path)
    with t.mount(path, "view=nc") as m:
        t.call(compare_file, model, only_file(m.path))


def zarr_values(mnt, want):
    import zarr
    root = zarr.open_group(mnt, "r")
    assert sorted(root.array_keys()) == sorted(want)
    for name, values in want.items():
        hdf4.same(root[name][...], values, name)


def test_names(t):
    _, path = make(t, "names")
    model = hdf4.load(path)
    values = [numpy.frombuffer(a["values"], a["dtype"]) for a in model["arrays"]]
    names = ["same", "same_4_2", "same_6", "a_b", f"a_b_{model['arrays'][4]['ref']}", "_", "__",
             "gr\u00fcn", "with blank", "x:y", "same_4", 250 * "n", 249 * "n" + "m"]
    with t.mount(path) as m:
        t.call(zarr_values, m.path, dict(zip(names, values)))
    notes = "\n".join(hdf4.notes(clients.info(t, path)))
    for note in ("/same_6: has the name 'same' in the file",
                 "/a_b: has the name 'a/b' in the file"):
        assert note in notes, notes


def test_notes(t):
    """What is not shown is said."""
    _, path = make(t, "groups")
    notes = hdf4.notes(clients.info(t, path))
    assert any("1 raster image, 1 Vdata table, 2 Vgroups" in n for n in notes), notes


def outside(mnt, values):
    for name in ("outside", "hidden"):
        folder = os.path.join(mnt, name)
        for chunk in os.listdir(folder):
            if not chunk.startswith("."):
                with open(os.path.join(folder, chunk), "rb") as f:
                    hdf4.fails(f.read, f"{name}/{chunk}")
    one_array(mnt, "inside", numpy.frombuffer(values, "i4"))


def test_external(t):
    """No other file is opened, whether the file says so where the interface tells of it
    (outside) or in the middle of its chunks (hidden). libhdf4 reads both."""
    tool, path = make(t, "external")
    model = hdf4.load(path)
    by_tool(tool, path, model)
    names = [a["name"] for a in model["arrays"]]
    assert all(any(a["values"]) for a in model["arrays"]), "the judge reads nothing"
    with t.mount(path) as m:
        t.call(outside, m.path, model["arrays"][names.index("inside")]["values"])
    assert "which is not read" in t.run(t.binary, "info", path)[1]


def mutants(data, n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        out = bytearray(data)
        for _ in range(rng.choice((1, 2, 8, 40))):
            out[rng.randrange(4, len(out))] = rng.choice((0, 1, 255, 128, rng.randrange(256)))
        yield bytes(out[:rng.randrange(64, len(out))]) if rng.random() < 0.2 else bytes(out)


def read_all(folder):
    """Every byte that can be read; errors are allowed."""
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                with open(os.path.join(base, name), "rb") as f:
                    f.read(1 << 20)
            except OSError as error:
                assert error.errno not in (107, 103), f"the mount died: {error}"


def test_damage(t):
    """Damaged files: one line, or a mount that lives."""
    opened = 0
    for kind in ("scales", "chunks", "groups"):
        _, path = make(t, kind)
        with open(path, "rb") as f:
            data = f.read()
        for bad in mutants(data, 8, kind):
            with open(path, "wb") as f:
                f.write(bad)
            with t.mount(path, "open_timeout=20", check=False) as m:
                m.damaged = True
                if m.status != 0:
                    assert len(m.messages().splitlines()) == 1, m.messages()
                    continue
                opened += 1
                t.call(read_all, m.path)
                assert m.server_alive(), m.messages()
    assert opened, "every one was refused"


def test_library_crash(t):
    """A file that crashes libhdf4 itself: one line that says so."""
    _, path = make(t, "crash")
    with t.mount(path, check=False) as m:
        m.damaged = True
        text = m.messages()
        assert m.status == 1, text
        if t.sanitized:  # which reports it, where it may: no file can be opened there
            assert "the HDF4 library" in text, text
            return
        assert "the HDF4 library crashed" in text, text
        assert len(text.splitlines()) == 1, text


def one_array(mnt, name, values):
    import zarr
    hdf4.same(zarr.open_group(mnt, "r")[name][...], values, name)


def test_hdp(t):
    """Another program than pyhdf: hdp of hdf4-tools."""
    _, path = make(t, "large")
    if not shutil.which("hdp"):
        raise Skip("hdf4-tools is not installed")
    out = t.path("out")
    status, _, err = t.run("hdp", "dumpsds", "-i", "0", "-d", "-b", "-o", out, path)
    assert status == 0, err
    values = numpy.fromfile(out, "i4").reshape(512, 600)
    assert values.any()
    with t.mount(path) as m:
        t.call(one_array, m.path, "chunked", values)


def folder(path, t):
    """All HDF4 files of a directory, which is mirrored: each has a tree and a file beside it."""
    need(t)
    with t.mount(path, "unsupported=skip") as m:
        for name in sorted(os.listdir(path)):
            model = hdf4.load(os.path.join(path, name))
            try:
                t.call(compare_both, model, os.path.join(m.path, os.path.splitext(name)[0]))
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


def cases():
    root = corpus()
    base = os.path.join(root, "hdf4") if root else ""
    for name in sorted(os.listdir(base)) if os.path.isdir(base) else ():
        yield f"corpus/{name}", functools.partial(folder, os.path.join(base, name))
