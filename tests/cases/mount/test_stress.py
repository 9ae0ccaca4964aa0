# SPDX-License-Identifier: BSD-3-Clause
"""Zarr trees that are rewritten while several programs read them as netCDF-4, alone and in a
mirrored directory: a read of a chunk gives it as it was or as it is, or an error, never a mixture;
the server lives, and does not grow. Part of `make check-tsan`."""
import os
import random
import shutil
import time
import zlib

import h5py
import numcodecs
import numpy as np

from gen.trees import group, put
from cases.mount.test_sanitizers import (Progress, collect, descriptors, in_child, status_of,
                                   threads_of)
from cases.netcdf_view.test_virtual import virtual
from lib.context import eventually_passes

LIMIT = 90.0
SECONDS = 6.0
CHUNKS = 8
ELEMS = 20000   # of a chunk: several requests of the kernel
BLOSC = numcodecs.Blosc("lz4", 1, 1)
ENCODE = {"raw": bytes, "zlib": lambda b: zlib.compress(b, 1), "blosc": lambda b: bytes(
    BLOSC.encode(np.frombuffer(b, "i4")))}
CODECS = {"raw": None, "zlib": {"id": "zlib", "level": 1}, "blosc": BLOSC.get_config()}


def chunk(kind, version):
    return ENCODE[kind](np.full(ELEMS, version, "<i4").tobytes())


def replaced(path, data):
    """As careful writers do: a file of its own, moved into its place."""
    with open(path + "~", "wb") as f:
        f.write(data)
    os.replace(path + "~", path)


def tree(path, version):
    """A tree whose elements all say which version it is."""
    group(path, {"version": version})
    for kind in ENCODE:
        put(path, kind + "/.zarray", {
            "zarr_format": 2, "shape": [CHUNKS, ELEMS], "chunks": [1, ELEMS], "dtype": "<i4",
            "fill_value": None, "order": "C", "compressor": CODECS[kind], "filters": None})
        put(path, kind + "/.zattrs", {"_ARRAY_DIMENSIONS": ["y", "x"], "version": version})
        for i in range(CHUNKS):
            put(path, f"{kind}/{i}.0", chunk(kind, version))


def rewrite(path, version, pause):
    """Chunk by chunk, then the documents."""
    for i in range(CHUNKS):
        for kind in ENCODE:
            replaced(f"{path}/{kind}/{i}.0", chunk(kind, version))
        pause()
    for kind in ENCODE:
        put(path, kind + "/.zattrs~", {"_ARRAY_DIMENSIONS": ["y", "x"], "version": version})
        os.replace(f"{path}/{kind}/.zattrs~", f"{path}/{kind}/.zattrs")
    put(path, ".zattrs~", {"version": version})
    os.replace(path + "/.zattrs~", path + "/.zattrs")


def read_row(file, rng):
    """One chunk of one array: its version, or None for an error."""
    kind = rng.choice(list(ENCODE))
    try:
        with h5py.File(file, "r") as f:
            row = f[kind][rng.randrange(CHUNKS)]
    except (OSError, KeyError, RuntimeError, ValueError):
        return None
    assert row.min() == row.max(), f"{kind}: torn: {row.min()}..{row.max()}"
    return int(row[0])


def reader(find, progress, who, last, seen):
    """Read at random from the files that find() gives; versions are whole and were written."""
    rng = random.Random(who)
    while not progress.ended:
        version = read_row(find(rng), rng)
        if version is not None:
            assert 1 <= version <= last.cells[0], f"version {version}"
            seen.done(who)
        progress.done(who)


def copier(find, progress, who):
    """cp of whole files, and listings."""
    rng = random.Random(who)
    while not progress.ended:
        file = find(rng)
        try:
            os.listdir(os.path.dirname(file))
            with open(file, "rb") as f:
                while f.read(1 << 20):
                    pass
        except OSError:
            pass
        progress.done(who)


def final(file, version):
    """The last version is what is read in the end."""
    def look():
        with h5py.File(file, "r") as f:
            for kind in ENCODE:
                got = f[kind][()]
                assert (got == version).all(), f"{kind}: {np.unique(got)}"
            assert f.attrs["version"] == version
    eventually_passes(look, errors=(AssertionError, OSError, KeyError, RuntimeError))


def stress(t, source, options, find, write, files):
    """Three processes read, one copies, while write(version, pause) changes what they read."""
    progress, seen, last = Progress(4), Progress(4), Progress(1)
    last.cells[0] = 1
    failures = t.path("failure")
    with t.mount(source, *options, foreground=True) as m:
        children = [in_child(failures, reader, lambda rng: find(m.path, rng), progress, i, last,
                             seen) for i in range(3)]
        children.append(in_child(failures, copier, lambda rng: find(m.path, rng), progress, 3))
        grown = []
        try:
            end = time.monotonic() + SECONDS * (4 if t.sanitized else 1)
            version = 1
            while time.monotonic() < end and not [
                    n for n in os.listdir(t.tmp) if n.startswith("failure.")]:
                version += 1
                last.cells[0] = version
                write(version, lambda: time.sleep(0.01))
                grown.append((descriptors(m.pids), status_of(m.pids, "Threads"),
                              status_of(m.pids, "VmRSS")))
        finally:
            progress.end()
            text = collect(children, failures, t)
        assert not text, text + m.messages()
        print("reads", list(progress.cells), "good", list(seen.cells), "versions", version)
        print("descriptors, threads, KiB:", grown[::max(1, len(grown) // 8)])
        assert seen.total() > 20, "hardly anything could be read"
        for file in files(m.path):
            t.call(final, file, version)
        check_growth(t, grown, m)


def check_growth(t, grown, m):
    """Late values against early maxima: of what readers use for a while, the least there was, which
    is how much is there without them."""
    n = len(grown) // 3
    early, late = np.array(grown[:n + 1]).max(axis=0), np.array(grown[-n - 1:]).max(axis=0)
    least = np.array(grown[-n - 1:]).min(axis=0)
    assert least[0] <= early[0] + 8, f"descriptors: {grown}"
    assert least[1] <= early[1] + 8, f"threads: {grown}"
    assert t.sanitized or late[2] < early[2] + (24 << 10), f"KiB: {grown}"
    assert m.server_alive(), "the server died: " + m.messages()


OPTIONS = ("cache_size=2M", "decode_threads=2", "max_idle_threads=4")


# SEMANTICS C1, C3
def test_virtual_file(t):
    """One tree, whose chunks and attributes are replaced one after another."""
    source = t.path("s.zarr")
    tree(source, 1)
    stress(t, source, OPTIONS, lambda mnt, rng: mnt + "/s.nc",
           lambda version, pause: rewrite(source, version, pause), lambda mnt: [mnt + "/s.nc"])


def archive(path, version):
    from gen import trees
    folder = path + ".d"
    tree(folder, version)
    trees.archive(folder, path + "~")
    shutil.rmtree(folder)
    os.replace(path + "~", path)


def test_mirror(t):
    """Six trees, two of them archives; three may be open. One is rewritten in place, one is moved
    away and replaced, one archive is replaced; a netCDF file comes and goes."""
    source = t.path("data")
    os.mkdir(source)
    for i in range(4):
        tree(f"{source}/d{i}.zarr", 1)
    for i in (4, 5):
        archive(f"{source}/d{i}.zip", 1)

    def write(version, pause):
        rewrite(f"{source}/d0.zarr", version, pause)
        tree(t.path("next"), version)
        os.rename(source + "/d1.zarr", t.path("old"))
        os.rename(t.path("next"), source + "/d1.zarr")
        shutil.rmtree(t.path("old"))
        archive(source + "/d4.zip", version)
        with h5py.File(f"{source}/n{version % 3}.nc", "w") as f:
            f["v"] = version
        if os.path.exists(f"{source}/n{(version + 1) % 3}.nc"):
            os.unlink(f"{source}/n{(version + 1) % 3}.nc")
        pause()
    stress(t, source, OPTIONS + ("open_datasets=3",),
           lambda mnt, rng: f"{mnt}/d{rng.randrange(6)}.nc", write,
           lambda mnt: [f"{mnt}/d{i}.nc" for i in (0, 1, 4)])
