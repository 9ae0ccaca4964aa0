# SPDX-License-Identifier: BSD-3-Clause
"""Every chain of filters in the corpus: what HDF5 files have is read through the mount by a
zarr-python that has no plugins, what Zarr trees have is read from the virtual netCDF-4 file by a
libhdf5 that has none. Chains that nobody here can decode are named, with what is expected of them
instead: metadata, errors, and a message that says what can be done."""
import collections
import contextlib
import functools
import io
import json
import os

import numpy as np

import gen
from clients import compare_chains
from clients.netcdf import nc_h5py
from gen import trees
from lib import h5_chunks
from lib.context import Skip, corpus, sampled
from cases.zarr_view.test_corpus import files
from cases.netcdf_view.test_virtual import virtual

LIMIT = 600.0

# Filters that no package of Debian's has: what files with them are.
NOBODY = {300: "a test's", 305: "lzo", 312: "a test's", 405: "a test's", 32002: "mafisc",
          32017: "sz", 32018: "jpeg-ls", 32019: "jpeg", 32026: "blosc2"}
# Filters that only a plugin has: errors or values, as that is there or not.
PLUGIN = {32013: "zfp, package hdf5-filter-plugin-zfp-serial"}

# Examples of the HDF Group hold these 32 x 64 numbers in DS1.
I, J = np.mgrid[0:32, 0:64]
KNOWN = {"h5ex_d_": I * J - J, "h5ex_d_sofloat": (I + 1) / (J + 0.3) + J}
ABOUT = {"h5ex_d_bitgroom": 5e-3, "h5ex_d_granularbr": 5e-3, "h5ex_d_sofloat": 1e-2,
         "h5ex_d_zfp": 1e-3}
OTHER_DATA = ("h5ex_d_jpeg", "h5ex_d_zstd", "h5ex_d_unlim", "h5ex_d_sz.")


def info(t, file, *options):
    """What `info --json` says, and the file with it; None where it cannot be opened."""
    words = [w for o in options for w in ("-o", o)]
    status, out, _ = t.run(t.binary, "info", "--json", *words, file, timeout=60)
    if status != 0:
        return None, None
    path = t.path(f"info{t.number()}.json")
    with open(path, "w") as f:
        f.write(out)
    return json.loads(out), path


def compare_file(t, file, report):
    """Lines of the report on one file; [] when it has no filters."""
    said, path = info(t, file)
    if said is None or not any(v["filters"] for v in said["variables"]):
        return []
    with open(report, "w"):
        pass
    with t.mount(file) as m:
        try:
            t.call(compare_chains.compare, file, m.path, path, report, timeout=180)
        except AssertionError as error:
            if "Unable to open file" not in str(error):
                raise AssertionError(f"{file}: {str(error)[-3000:]}") from None
    with open(report) as f:
        return [json.loads(line) for line in f]


def hdf5(folder, t):
    """All files of a folder of the corpus."""
    found = collections.defaultdict(collections.Counter)
    problems = []
    for file in sampled(files(os.path.join(corpus(), folder)), 4):
        try:
            for how, chain, path in compare_file(t, file, t.path("report")):
                found[tuple(chain)][how] += 1
        except AssertionError as error:
            problems.append(str(error))
    for chain, verdicts in sorted(found.items()):
        print("|".join(str(f) for f in chain), dict(verdicts))
        problems += judge(chain, verdicts)
    assert not problems, "\n".join(problems)
    assert found, "there is no file with filters"


def judge(chain, verdicts):
    """Each chain was compared with values at least once and never failed, or is of a filter that
    nobody has and always failed. A sample of the files may have a chain where it says nothing: in
    a damaged file, an empty array."""
    every = bool(os.environ.get("NCZARRFS_ALL"))
    nobody = [f for f in chain if f in NOBODY]
    if nobody:
        if set(verdicts) - {"error", "empty"} or (every and "error" not in verdicts):
            return [f"{chain}: {dict(verdicts)}, but nobody has {NOBODY[nobody[0]]}"]
        return []
    if any(f in PLUGIN for f in chain):
        return []
    if verdicts["error"]:
        return [f"{chain}: {verdicts['error']} arrays cannot be read"]
    if verdicts["nobody"]:
        return [f"{chain}: {verdicts['nobody']} arrays were compared with nothing"]
    if every and not verdicts["formula"] + verdicts["libhdf5"]:
        return [f"{chain}: {dict(verdicts)}: no values were compared"]
    return []


def examples(t):
    """The values that the HDF Group's examples are known to have."""
    import zarr
    seen = 0
    for file in files(os.path.join(corpus(), "hdf5")):
        name = os.path.basename(file).replace("testfiles__", "")
        if not name.startswith("h5ex_d_") or name.startswith(OTHER_DATA):
            continue
        said, _ = info(t, file)
        first = said["variables"][0]
        if first["problem"] or first["path"] != "/DS1" or first["shape"] != [32, 64]:
            continue
        stem = os.path.splitext(name)[0]
        want = KNOWN.get(stem, KNOWN["h5ex_d_"])
        with t.mount(file) as m:
            def look(mnt):
                got = zarr.open_group(mnt, mode="r")["DS1"][:]
                off = np.abs(got - want) / np.maximum(np.abs(want), 1)
                if stem in ("h5ex_d_bitgroom", "h5ex_d_granularbr"):
                    off[0, :] = 0  # negative numbers are 2^64 more there
                assert off.max() <= ABOUT.get(stem, 0), f"{name}: off by {off.max()}"
            t.call(look, m.path)
        seen += 1
    print(seen, "examples")
    assert seen >= 12, f"only {seen} examples"


def with_zarr(t, source, seen):
    """The chains of a tree, unless all have been seen twice."""
    said, _ = info(t, source)
    chains = {json.dumps(v["filters"]) for v in (said or {"variables": []})["variables"]
              if v["filters"]}
    new = [c for c in chains if seen[c] < 2]
    seen.update(chains)
    return new


def stock_compare(source, mnt):
    """Every array must have been compared: what the oracle says that it cannot is a failure."""
    h5_chunks.forget_plugins()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        nc_h5py.compare(source, virtual(mnt), ())
    lines = [x for x in said.getvalue().splitlines() if "not compared" in x]
    assert not lines, "\n".join(lines)


def read_virtual(t, source, options=()):
    """The virtual file, read by a libhdf5 without plugins, against what zarr-python says."""
    with t.mount(source, *options) as m:
        try:
            t.call(stock_compare, source, m.path)
        except AssertionError as error:
            return f"{source}: {str(error)[-2000:]}"
    return ""


def zarr_corpus(t):
    """Trees of the corpus, those with chains that have not been seen twice already."""
    from cases.netcdf_view.test_virtual_corpus import REFUSED, rows
    seen, problems = collections.Counter(), []
    for row in sampled(rows(corpus()), 2):
        source = os.path.join(corpus(), row)
        if row not in REFUSED and with_zarr(t, source, seen):
            problems.append(read_virtual(t, source))
    for chain, n in sorted(seen.items()):
        print(n, chain)
    assert not any(problems), "\n".join(p for p in problems if p)
    assert seen, "there is no tree with codecs"


def zarr_generated(t):
    """Trees that the tests write: all codecs."""
    problems = []
    for name in ("codecs", "float_codecs", "packed_bits", "v3_codecs", "larger"):
        made = trees.load()[name]
        source = t.path(made.name + made.ending)
        made.write(source)
        for options in ((), ("filter=none",)):
            problems.append(read_virtual(t, source, options))
    assert not any(problems), "\n".join(p for p in problems if p)


def generated(t):
    """Files that the tests write: those with filters."""
    found = collections.defaultdict(collections.Counter)
    for name, feature in sampled(gen.load().items(), 2, lambda i: i[0]):
        file = t.path(name + ".nc")
        feature.write(file)
        if os.path.exists(file):
            for how, chain, path in compare_file(t, file, t.path("report")):
                found[tuple(chain)][how] += 1
            os.unlink(file)
    problems = []
    for chain, verdicts in sorted(found.items()):
        print("|".join(str(f) for f in chain), dict(verdicts))
        if 32999 not in chain:
            problems += judge(chain, verdicts)
    assert not problems, "\n".join(problems)


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with netcdf4, hdf5 and zarr2 in it")


def cases():
    yield "generated", generated
    yield "zarr_generated", zarr_generated
    if not corpus():
        yield "corpus", no_corpus
        return
    yield "hdf5", functools.partial(hdf5, "hdf5")
    yield "netcdf4", functools.partial(hdf5, "netcdf4")
    yield "examples", examples
    yield "zarr", zarr_corpus
