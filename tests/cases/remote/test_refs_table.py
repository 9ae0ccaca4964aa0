# SPDX-License-Identifier: BSD-3-Clause
"""Tables of chunks: each row has all that is needed to fetch and decode one chunk. Read by a small
reader written from the specification, and by hyparquet and DuckDB where make check-npm put
them."""
import base64
import json
import os
import shutil
import subprocess

import h5py
import numpy as np
import zarr

from cases.remote.test_refs import each_array, make_h5 as make_one, refs
from cases.remote.test_refs_dir import DATASETS, make_archive, make_late
from clients import chunk_table
from lib import npm, parquet

COLUMNS = ["dataset", "variable", "chunk", "url", "offset", "length", "data", "zarray", "zattrs"]


def rows_of(path):
    columns = parquet.rows(path)
    assert list(columns) == COLUMNS
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


# SEMANTICS K15
def test_one(t):
    file, out = t.path("a.h5"), t.path("a.parquet")
    make_one(file)
    with h5py.File(file, "a") as f:
        d = f.create_dataset("odd", data=np.arange(40, dtype="i4"), chunks=(10,),
                             compression="gzip")
        d.id.write_direct_chunk((10,), np.arange(50, 60, dtype="i4").tobytes(), filter_mask=1)
    refs(t, "--table", file, out, fails="-o inline")
    assert not os.path.exists(out)
    text = refs(t, "--table", "--inline", file, out)
    assert text.startswith(f"{out}: table of the chunks of {file}, "), text
    rows = rows_of(out)
    found = chunk_table.variables(rows)
    n = 0
    for name, want in each_array(file):
        assert np.array_equal(found["", name], want), name
        n += 1
    assert n == len(found) == 8
    assert sum(r["variable"] == "sparse" for r in rows) == 3, "absent chunks have no row"
    inlined, = (r for r in rows if r["data"] is not None)
    assert (inlined["variable"], inlined["chunk"], inlined["url"], inlined["offset"]) == (
        "odd", "1", None, None) and inlined["length"] == len(inlined["data"])
    attrs = {r["variable"]: json.loads(r["zattrs"]) for r in rows}
    assert attrs["sparse"]["_FillValue"] == 3
    # the chunks are those of the references
    doc = json.loads(refs(t, "--inline", file))["refs"]
    refs_ = {k: v for k, v in doc.items() if not k.rsplit("/", 1)[-1].startswith(".")}
    assert refs_ == {f"{r['variable']}/{r['chunk']}":
                     "base64:" + base64.b64encode(r["data"]).decode() if r["data"] is not None
                     else [r["url"], r["offset"], r["length"]] for r in rows}


def test_documented_function(t):
    """It decodes every kind of type and chunk that a table has: compound types, strings, a scalar,
    edges, an array in Fortran order."""
    inner = np.dtype([("x", "<i2"), ("y", "<f8", (2, 3))])
    compound = np.zeros(7, np.dtype([("a", "<i4"), ("b", inner), ("c", "S3")]))
    compound["a"] = np.arange(7)
    compound["b"]["x"] = np.arange(7) * 2
    compound["b"]["y"] = np.arange(42).reshape(7, 2, 3)
    compound["c"] = [b"ab", b"", b"xyz"] * 2 + [b"q"]
    rng = np.random.default_rng(4)
    want = {"compound": compound, "one": compound[3],
            "edges": rng.integers(0, 9, (7, 5, 3)).astype(">i4"),
            "fixed": np.array([b"ab", b"c", b"def", b""]), "scalar": np.float32(2.5),
            "flags": rng.random(9) > 0.5}
    with h5py.File(t.path("a.h5"), "w") as f:
        f.create_dataset("compound", data=compound, chunks=(4,), compression="gzip")
        f.create_dataset("one", data=compound[3])
        f.create_dataset("edges", data=want["edges"], chunks=(4, 2, 3), shuffle=True,
                         compression="gzip")
        f.create_dataset("fixed", data=want["fixed"], chunks=(3,))
        f.create_dataset("scalar", data=want["scalar"])
        f.create_dataset("flags", data=want["flags"], chunks=(4,))
        f.create_dataset("strings", data=["a", "bcd", "", "h\u00e4"], chunks=(3,),
                         dtype=h5py.string_dtype())
    refs(t, "--table", "--inline", t.path("a.h5"), t.path("a.parquet"))
    found = chunk_table.variables(rows_of(t.path("a.parquet")))
    assert list(found["", "strings"]) == ["a", "bcd", "", "h\u00e4"]
    for name, values in want.items():
        assert np.array_equal(found["", name], values), name
    assert len(found) == len(want) + 1
    root = zarr.open_group(t.path("a.zarr"), "w")
    root.create_dataset("f", data=want["edges"], chunks=(4, 2, 3), order="F")
    root.create_dataset("d", data=compound, chunks=(5,))
    root.create_dataset("o", data=np.array(["a", "bcd", ""], object), dtype=str, chunks=(2,))
    refs(t, "--table", "--inline", t.path("a.zarr"), t.path("b.parquet"))
    found = chunk_table.variables(rows_of(t.path("b.parquet")))
    assert np.array_equal(found["", "f"], want["edges"])
    assert np.array_equal(found["", "d"], compound)
    assert list(found["", "o"]) == ["a", "bcd", ""]


def test_directory(t):
    top, out = t.path("data"), t.path("all.parquet")
    native = make_archive(top)
    refs(t, "--table", top, out)
    with open(out, "rb") as f:
        good = f.read()
    rows = rows_of(out)
    assert list(dict.fromkeys(r["dataset"] for r in rows)) == DATASETS
    whole = [r for r in rows if r["dataset"] == "t.zarr"]
    assert all(r["offset"] is None and r["length"] is None for r in whole) and len(whole) == 3
    found = chunk_table.variables(rows)
    for group, file in native.items():
        for name, want in each_array(file):
            assert np.array_equal(found[group, name], want), (group, name)
    assert np.array_equal(found["t.zarr", "v"], np.arange(600.0).reshape(20, 30))
    # what cannot be referenced is left out without a trace, also after many of its rows
    make_late(top + "/2020/late.h5")
    with open(top + "/2021/bad.nc", "w") as f:
        f.write("CDF\1")
    os.unlink(out)
    refs(t, "--table", top, out, fails=f"2 of {len(DATASETS) + 2} datasets")
    assert not os.path.exists(out)
    for threads in 1, 8:
        refs(t, "--table", "-o", f"unsupported=skip,decode_threads={threads}", top, out)
        assert len(rows_of(out)) == len(rows)
        with open(out, "rb") as f:
            assert chunk_table.variables(rows_of(out)).keys() == found.keys()
            if threads == 1:
                good = f.read()
            else:
                assert f.read() == good, "it depends on the number of threads"
        os.unlink(out)


def test_output(t):
    file, out = t.path("a.h5"), t.path("a.parquet")
    make_one(file)
    refs(t, "--table", file, out)
    refs(t, "--table", file, out, fails="already exists")
    refs(t, "--table", file, t.path("a.json"), fails="ends in .parquet")
    os.mkdir(t.path("d"))
    refs(t, "--table", file, t.path("d"), fails="is a directory")
    with open(out, "rb") as f:
        want = f.read()
    for to in ((), ("-",)):
        got = subprocess.run([t.binary, "refs", "--table", file, *to], stdout=subprocess.PIPE,
                             check=True).stdout
        assert got == want
    status, out, err = t.run(t.binary, "refs", "--json", "--table", file, t.path("b.parquet"))
    assert status == 0 and json.loads(out)["format"] == "table", err


def make_big(path):
    """More chunks than a row group has rows."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(120000) % 251, dtype="u1", chunks=(1,))


def test_big(t):
    make_big(t.path("big.h5"))
    refs(t, "--table", t.path("big.h5"), t.path("big.parquet"))
    columns = parquet.rows(t.path("big.parquet"))
    assert columns["chunk"] == [str(i) for i in range(120000)]
    with open(t.path("big.h5"), "rb") as f:
        data = f.read()
    assert all(data[o] == i % 251 for i, o in enumerate(columns["offset"]))
    assert set(columns["length"]) == {1}
    # a failure in the second row group of a dataset takes the first one back
    os.mkdir(t.path("d"))
    shutil.move(t.path("big.h5"), t.path("d/b.h5"))
    with h5py.File(t.path("d/b.h5"), "a") as f:
        d = f.create_dataset("w", data=np.zeros(9, "u1"), chunks=(1,), compression="gzip")
        d.id.write_direct_chunk((8,), b"x", filter_mask=1)
    for name in "a", "c":
        make_one(t.path(f"d/{name}.h5"))
    refs(t, "--table", "-o", "unsupported=skip", t.path("d"), t.path("d.parquet"))
    rows = rows_of(t.path("d.parquet"))
    assert list(dict.fromkeys(r["dataset"] for r in rows)) == ["a.h5", "c.h5"]
    assert np.array_equal(*(list(chunk_table.variables(
        [r for r in rows if r["dataset"] == n and r["variable"] == "plain"]).values())[0]
        for n in ("a.h5", "c.h5")))


def comparable(rows):
    """As parquet.mjs prints them."""
    return [{k: str(v) if isinstance(v, int) else
             base64.b64encode(v).decode() if isinstance(v, bytes) else v
             for k, v in row.items()} for row in rows]


def test_readers(t):
    """What others read is what we read; a table of several row groups, too."""
    make_archive(t.path("data"))
    with h5py.File(t.path("data/odd.h5"), "w") as f:
        f.create_dataset("texts", data=["a", "bcd", ""], dtype=h5py.string_dtype())
    make_big(t.path("big.h5"))
    refs(t, "--table", "--inline", t.path("data"), t.path("all.parquet"))
    refs(t, "--table", t.path("big.h5"), t.path("big.parquet"))
    want = comparable(rows_of(t.path("all.parquet")))
    columns = parquet.rows(t.path("big.parquet"))
    for reader in "hyparquet", "duckdb":
        assert read(t, reader, t.path("all.parquet")) == want, reader
        got = read(t, reader, t.path("big.parquet"), "chunk", "offset")
        assert [(r["chunk"], int(r["offset"])) for r in got] == list(
            zip(columns["chunk"], columns["offset"])), reader


def read(t, reader, path, *columns):
    return npm.read(t, "@duckdb" if reader == "duckdb" else reader, "parquet.mjs", reader, path,
                    *columns)
