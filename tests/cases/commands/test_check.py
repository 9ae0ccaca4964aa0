# SPDX-License-Identifier: BSD-3-Clause
"""nczarrfs check: what is good is said to be good, one byte that is changed in a chunk is named
with variable, chunk and place, whatever holds the chunk; a check that was killed goes on where it
was, and a source that changed is checked from its beginning; a terminal sees how far it is, a pipe
does not."""
import json
import os
import pty
import re
import subprocess
import zipfile

import h5py
import numcodecs
import numpy as np
import zarr

from lib.context import Skip, corpus
from lib.held import Held
from lib.web import WebServer

GOOD, DAMAGED, FAILED = 0, 1, 2


def check(t, *args, status=GOOD):
    got, out, err = t.run(t.binary, "check", "--json", *args, timeout=60)
    assert got == status, f"status {got}: {out}{err}"
    return json.loads(out) if out else err


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 0x55]))


def make_h5(path, n=200):
    rng = np.random.default_rng(3)
    with h5py.File(path, "w") as f:
        f.create_dataset("g/summed", data=rng.integers(0, 99, (n, 40)).astype("i4"),
                         chunks=(10, 20), fletcher32=True)
        f.create_dataset("packed", data=rng.integers(0, 99, (n, 40)).astype(">i2"),
                         chunks=(10, 40), shuffle=True, compression="gzip", fletcher32=True)
        f.create_dataset("contiguous", data=np.arange(5000.0))
        f.create_dataset("texts", data=["a", "bcd", ""], dtype=h5py.string_dtype())
        f.create_dataset("scalar", data=np.float32(2))
        f.create_dataset("empty", shape=(0, 4), maxshape=(None, 4), chunks=(2, 4), dtype="i4")
        f.create_dataset("absent", shape=(100,), chunks=(10,), dtype="i4")


def place(path, name, coord):
    with h5py.File(path) as f:
        d = f[name].id
        for i in range(d.get_num_chunks()):
            c = d.get_chunk_info(i)
            if c.chunk_offset == coord:
                return c.byte_offset, c.size
    raise AssertionError(f"no chunk {coord}")


def test_hdf5(t):
    """SEMANTICS K1"""
    path = t.path("a.nc")
    make_h5(path)
    got = check(t, path)
    assert got["good"] and got["complete"] and got["damaged"] == []
    assert got["variables"] == 7 and got["chunks"] == 40 + 20 + 1 + 1 + 1
    at, size = place(path, "g/summed", (20, 20))
    flip(path, at + size - 9)
    where, n = place(path, "packed", (30, 0))
    flip(path, where + n // 2)
    got = check(t, path, status=DAMAGED)
    assert not got["good"] and got["complete"]
    packed, summed = got["damaged"]  # in the order of the file
    assert (summed["variable"], summed["chunk"]) == ("/g/summed", [2, 1])
    assert summed["where"] == {"object": None, "offset": at, "length": size}
    assert "fletcher32" in summed["why"], got
    assert (packed["variable"], packed["chunk"]) == ("/packed", [3, 0])
    assert packed["where"] == {"object": None, "offset": where, "length": n}
    status, out, err = t.run(t.binary, "check", path)
    assert status == DAMAGED and err == ""
    lines = out.splitlines()
    assert len(lines) == 3 and "\033" not in out, out
    assert lines[1].startswith(f"damaged  /g/summed chunk 2.1, at byte {at}, {size} bytes: ")
    assert lines[2].endswith(": 2 damaged")
    quick = check(t, "--quick", path)
    assert quick["quick"] and quick["good"] and quick["chunks"] == got["chunks"]
    status, out, err = t.run(t.binary, "check", "-o", "decode_threads=1,cache_size=1M", path)
    assert status == DAMAGED and out.splitlines() == lines


def make_tree(path, **how):
    rng = np.random.default_rng(4)
    g = zarr.open_group(path, mode="w")
    g.create_dataset("g/v", data=rng.integers(0, 9, (60, 60)).astype("i4"), chunks=(20, 20), **how)
    return path


def test_tree(t):
    """Chunks with a checksum in their frame, a chunk that is cut off, one that cannot be read."""
    crc = make_tree(t.path("crc.zarr"), compressor=None, filters=[numcodecs.CRC32()])
    gz = make_tree(t.path("gz.zarr"), compressor=numcodecs.GZip(1))
    raw = make_tree(t.path("raw.zarr"), compressor=None)
    blosc = make_tree(t.path("blosc.zarr"))
    for path in (gz, raw, blosc):
        assert check(t, path)["chunks"] == 9
    flip(gz + "/g/v/1.2", os.path.getsize(gz + "/g/v/1.2") - 6)
    with open(raw + "/g/v/0.1", "ab") as f:
        f.truncate(1599)
    flip(blosc + "/g/v/2.0", 12)
    for path, chunk in ((gz, [1, 2]), (raw, [0, 1]), (blosc, [2, 0])):
        bad = check(t, path, status=DAMAGED)["damaged"]
        key = "g/v/%d.%d" % tuple(chunk)
        assert [(d["variable"], d["chunk"], d["where"]["object"]) for d in bad] == [
            ("/g/v", chunk, key)], bad
    os.rename(gz + "/g/v/1.2", t.path("x"))
    os.symlink("nowhere", gz + "/g/v/1.2")
    assert [d["chunk"] for d in check(t, gz, status=DAMAGED)["damaged"]] == [[1, 2]]
    status, out, err = t.run(t.binary, "check", crc)
    assert status == GOOD or "crc32" in out + err  # who has no such filter says so


def zipped(t, tree, name):
    path = t.path(name)
    with zipfile.ZipFile(path, "w") as z:
        for folder, _, names in sorted(os.walk(tree)):
            for n in sorted(names):
                full = os.path.join(folder, n)
                z.write(full, os.path.relpath(full, tree))
    return path


def test_zip(t):
    """Chunks without any checksum of their own: the archive has one. SEMANTICS K1"""
    path = zipped(t, make_tree(t.path("raw.zarr"), compressor=None), "raw.zip")
    assert check(t, path)["chunks"] == 9
    with zipfile.ZipFile(path) as z:
        info = z.getinfo("g/v/1.1")
    flip(path, info.header_offset + 30 + len(info.filename) + 100)
    bad = check(t, path, status=DAMAGED)["damaged"]
    assert [d["chunk"] for d in bad] == [[1, 1]] and "checksum" in bad[0]["why"], bad


def test_refused(t):
    status, out, err = t.run(t.binary, "check", t.path("nowhere.nc"))
    assert status == FAILED and out == "" and len(err.splitlines()) == 1, err
    status, out, err = t.run(t.binary, "check")
    assert status == FAILED and "usage: nczarrfs check" in err
    with open(t.path("text.nc"), "w") as f:
        f.write("no dataset\n" * 100)
    assert t.run(t.binary, "check", t.path("text.nc"))[0] == FAILED
    make_h5(t.path("a.nc"), 20)
    with open(t.path("mine"), "w") as f:
        f.write("a text that somebody wants to keep\n")
    err = check(t, "--resume", t.path("mine"), t.path("a.nc"), status=FAILED)
    assert "use another file" in err, err
    assert open(t.path("mine")).read().startswith("a text")
    assert t.run(t.binary, "info", "--resume", t.path("mine"), t.path("a.nc"))[0] == 2


OPTIONS = "prefetch_size=64K,remote_cache_size=1M,decode_threads=2"


def test_resume(t):
    """SEMANTICS K2"""
    with h5py.File(t.path("a.h5"), "w") as f:
        d = f.create_dataset("v", shape=(128, 8192), chunks=(1, 8192), dtype="f8",
                             fletcher32=True)
        d[:] = np.random.default_rng(1).random((128, 8192))
    at, n = place(t.path("a.h5"), "v", (3, 0))
    flip(t.path("a.h5"), at + n // 2)
    state = t.path("state")
    held = Held(t, "a.h5", place(t.path("a.h5"), "v", (80, 0))[0] + 1000)
    with WebServer(t.tmp, fault=held.fault) as web:
        where = web.url + "/a.h5"
        command = ["-o", OPTIONS, "--resume", state, where]
        killed = ([t.binary, "check"] + command, state, r"^at \d+ \d+ (\d+)$", 10)
        held.kill(*killed)
        got = check(t, *command, status=DAMAGED)
        assert got["resumed"] and got["complete"] and got["chunks"] == 128, got
        assert [d["chunk"] for d in got["damaged"]] == [[3, 0]]
        assert 48 << 16 <= got["bytes_read"] < 127 << 16, got["bytes_read"]
        assert not os.path.exists(state)
        held.kill(*killed)
        flip(t.path("a.h5"), at + n // 2)
        os.utime(t.path("a.h5"), (1e9, 1e9))
        got = check(t, *command)
        assert not got["resumed"] and got["good"] and got["bytes_read"] > 127 << 16, got


def test_terminal(t):
    """How far it is, on a terminal only; colours there only, and not with NO_COLOR."""
    make_h5(t.path("a.nc"), 3000)
    flip(t.path("a.nc"), place(t.path("a.nc"), "packed", (0, 0))[0] + 20)

    def seen(**env):
        leader, follower = pty.openpty()
        p = subprocess.Popen([t.binary, "check", "-o", "decode_threads=1", t.path("a.nc")],
                             stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
                             env={**os.environ, "TERM": "xterm", **env})
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(leader)
        assert p.wait(60 * t.slow) == DAMAGED
        return text.decode()

    text = seen()
    assert re.search(r"\r\[[=> ]{24}\] +\d+ %  \d+ chunks, ", text), text
    assert "\033[31mdamaged\033[0m" in text
    assert "\033[31m" not in seen(NO_COLOR="1")
    assert "\r[" not in seen(TERM="dumb")


def test_json(t):
    """Other commands say what they did to programs, too."""
    make_h5(t.path("a.nc"), 20)
    status, out, err = t.run(t.binary, "recover", "--json", t.path("a.nc"), t.path("b.nc"))
    done, failed = map(json.loads, out.splitlines())
    assert status == 1 and done["recovered"] and done["error"] is None, out + err
    assert not failed["recovered"] and "b.nc" in failed["error"], failed
    status, out, err = t.run(t.binary, "refs", "--json", "-o", "inline", t.path("a.nc"),
                             t.path("r.json"))
    assert status == 0, err
    assert json.loads(out)["references"] == t.path("r.json") and os.path.exists(t.path("r.json"))
    status, out, err = t.run(t.binary, "log", "--json", t.tmp)
    assert status == 2 and "--json" in err, err


def test_corpus(t):
    """Real files of each format are good."""
    root = corpus()
    if not root:
        raise Skip("no corpus")
    for path in ("netcdf4/gauteh-hidefix/coads_climatology.nc4",
                 "classic/Unidata-tds/nc_test_cdf2.nc",
                 "zip/keller-mark-pizzarr/data.zarr.zip"):
        full = os.path.join(root, path)
        if os.path.exists(full):
            assert check(t, full)["good"], path
        else:
            print("no", path)
