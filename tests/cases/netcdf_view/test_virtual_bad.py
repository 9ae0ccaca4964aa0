# SPDX-License-Identifier: BSD-3-Clause
"""Damaged Zarr stores, generated (tests/gen/z_bad.py) and found in the wild: refused with one line
that names the key, or mounted with an error for exactly what is damaged. What is there and cannot
be read is never a fill value. In a mirrored directory a damaged store disturbs no other."""
import errno
import functools
import json
import os

import numpy as np

from gen import z_bad
from lib import mounts
from lib.context import Skip, corpus
from cases.zarr_view.test_corpus import check_refused, read_everything
from cases.netcdf_view.test_virtual import virtual
from cases.netcdf_view.test_virtual_corpus import rows

LIMIT = 60.0


def same(got, want):
    if want.dtype.kind == "O":
        got = np.array([x.decode() if isinstance(x, bytes) else x for x in got], object)
    assert got.shape == want.shape and (got == want).all(), f"{got} for {want}"


def read_rest(file, made):
    """/good and all chunks of /v but the damaged ones are right, these are errors. Those that may
    be either are right where they are not an error."""
    import h5py
    want = z_bad.values(made.kind)
    with h5py.File(file, "r") as nc:
        same(nc["good"][()], z_bad.values("raw"))
        for i in range(3):
            part = slice(made.length * i, made.length * (i + 1))
            try:
                got = nc["v"][part]
            except OSError:
                assert i in made.chunks + made.beside, f"chunk {i} of /v cannot be read"
                continue
            assert i not in made.chunks, f"chunk {i} of /v gives {got}, an error expected"
            same(got, want[part])


def without(file):
    """/good is right, /v is not there."""
    import h5py
    with h5py.File(file, "r") as nc:
        same(nc["good"][()], z_bad.values("raw"))
        assert "v" not in nc, "/v is shown"


def check_words(m, words):
    check_refused(m)
    for word in words:
        assert word in m.messages(), f"{word!r} is not in the message: {m.messages()}"


def hidden(t, source):
    with t.mount(source, "unsupported=skip") as m:
        t.call(lambda: without(virtual(m.path)))
    status, out, err = t.run(t.binary, "info", "-o", "unsupported=skip", source)
    assert status == 0, err
    notes = [line for line in out.splitlines() if "'/v'" in line or "v/" in line]
    assert notes, f"info does not say that /v is left out:\n{out}"


def damaged(made, t):
    if made.name == "chunk_forbidden" and os.getuid() == 0:
        raise Skip("root may read everything")
    source = t.path(made.name + made.ending)
    made.write(source)
    with t.mount(source, *made.options, check=not made.refused) as m:
        if not made.refused:
            t.call(lambda: read_rest(virtual(m.path), made))
    if made.refused:
        check_words(m, made.refused)
    if made.hide:
        hidden(t, source)


def test_no_store(t):
    """Nothing there; a file that is no archive; an empty folder with a store's name."""
    with t.mount(t.path("nothing.zarr"), check=False) as m:
        check_words(m, ["nothing.zarr"])
    with open(t.path("text.zarr"), "w") as f:
        f.write("no archive")
    with t.mount(t.path("text.zarr"), check=False) as m:
        check_words(m, ["text.zarr"])
    os.mkdir(t.path("x.zarr"))
    with t.mount(t.path("x.zarr"), check=False) as m:
        check_words(m, ["x.zarr", "no Zarr metadata"])


def expect_eio(file):
    assert os.stat(file).st_mode & 0o444
    try:
        with open(file, "rb") as f:
            data = f.read()
    except OSError as error:
        assert error.errno == errno.EIO, f"{file}: {error}"
        return
    raise AssertionError(f"{file}: {len(data)} bytes, an error expected")


NO_ARCHIVES = ("zip_truncated", "zip_head_missing")  # nothing says that they were some


def check_mirror(mnt, mades):
    problems = []
    for made in mades:
        file = os.path.join(mnt, made.name + ".nc")
        try:
            if made.name in NO_ARCHIVES:
                assert not os.path.exists(file), f"{file} is shown"
            elif made.refused:
                expect_eio(file)
            else:
                read_rest(file, made)
            without_damage(os.path.join(mnt, "fine.nc"))
        except (AssertionError, OSError, KeyError) as error:
            problems.append(f"{made.name}: {error}")
    assert not problems, "\n".join(problems)


def without_damage(file):
    import h5py
    with h5py.File(file, "r") as nc:
        same(nc["good"][()], z_bad.values("raw"))
        same(nc["v"][()], z_bad.values("raw"))


def test_in_a_mirror(t):
    """All damaged stores in one directory, around one that is right."""
    folder = t.path("data")
    os.mkdir(folder)
    mades = [m for m in z_bad.BAD.values()
             if not m.options and (m.name != "chunk_forbidden" or os.getuid())]
    for made in mades:
        made.write(os.path.join(folder, made.name + made.ending))
    z_bad.base(os.path.join(folder, "fine.zarr"), "raw")
    with t.mount(folder, foreground=True) as m:
        t.call(check_mirror, m.path, mades, timeout=60)
        assert m.server_alive(), "the server died: " + m.messages()


def test_too_many_dimensions(t):
    """SEMANTICS X8: a variable of 33 dimensions is an error of the mount, which names it and the
    option that hides it; one of 32 is shown."""
    store = t.path("m.zarr")
    os.mkdir(store)
    with open(store + "/.zgroup", "w") as f:
        f.write('{"zarr_format": 2}')
    for n in 32, 33:
        os.mkdir(f"{store}/v{n}")
        with open(f"{store}/v{n}/.zarray", "w") as f:
            json.dump({"zarr_format": 2, "shape": [1] * n, "chunks": [1] * n, "dtype": "<i4",
                       "order": "C", "fill_value": n, "filters": None, "compressor": None}, f)
    with t.mount(store, "view=nc", check=False) as m:
        assert m.status == 1 and "'/v33'" in m.messages(), m.messages()
        assert "33 dimensions" in m.messages() and "v32" not in m.messages(), m.messages()
    with t.mount(store, "view=nc", "unsupported=skip") as m:
        t.call(only_32, os.path.join(m.path, "m.nc"))


def only_32(file):
    import h5py
    with h5py.File(file, "r") as f:
        assert "v33" not in f and f["v32"].shape == (1,) * 32 and f["v32"][...].item() == 32


def test_lines_in_the_log(t):
    """What a mirror says of a few: one line each, which names the store and the key, however often
    it is asked."""
    folder = t.path("data")
    os.mkdir(folder)
    names = ("root_no_json", "no_shape", "unknown_codec", "two_lengths", "zip_up", "three_shape")
    for name in names:
        z_bad.BAD[name].write(os.path.join(folder, name + z_bad.BAD[name].ending))
    with t.mount(folder, foreground=True) as m:
        for _ in range(3):
            for name in names:
                t.call(expect_eio, os.path.join(m.path, name + ".nc"))
        lines = m.messages().splitlines()
    assert len(lines) == len(names), lines
    for name, line in zip(names, lines):
        assert all(w in line for w in (name, *z_bad.BAD[name].refused)), line


test_in_a_mirror.limit = 120.0


def survive(source, t):
    with t.mount(source, check=False) as m:
        if m.status == 0:
            t.call(read_everything, m.path, timeout=40)
            assert m.server_alive(), "the server died: " + m.messages()
        else:
            check_refused(m)
    problems = m.sanitizer_text()
    assert not problems, problems
    with t.mount(source, "unsupported=skip", "filter=none", check=False) as m:
        if m.status == 0:
            t.call(read_everything, m.path, timeout=40)
            assert m.server_alive(), "the server died: " + m.messages()
        else:
            check_refused(m)


def cases():
    for name, made in z_bad.BAD.items():
        yield name, functools.partial(damaged, made)
    root = corpus()
    if root and os.path.exists(os.path.join(root, "MANIFEST.tsv")):
        for row in rows(root, ("bad",)):
            source = os.path.join(root, row)
            if os.path.isdir(source) or row.endswith(".zip"):
                yield row, functools.partial(survive, source)
