# SPDX-License-Identifier: BSD-3-Clause
"""nczarrfs check of a directory that holds datasets: each is checked as one alone, what only has
the name of one is said, and a check that did not come to its end goes on."""
import json
import os
import shutil
import signal
import subprocess

import h5py
import numpy as np
import zarr

GOOD, DAMAGED, FAILED = 0, 1, 2


def check(t, *args, status=GOOD):
    got, out, err = t.run(t.binary, "check", *args, timeout=60)
    assert got == status, f"status {got}: {out}{err}"
    return (json.loads(out) if "--json" in args and out else out), err


def make_h5(path, n=100):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(n * 10.0).reshape(n, 10), chunks=(10, 10),
                         fletcher32=True)


def hurt_h5(path):
    with h5py.File(path) as f:
        c = f["v"].id.get_chunk_info(3)
    with open(path, "r+b") as f:
        f.seek(c.byte_offset + 9)
        f.write(b"xxxx")


def make_tree(path):
    zarr.open_group(path, "w").create_dataset("v", data=np.arange(100.0), chunks=10)


def make_all(t):
    """d: a.nc, sub/b.h5, sub/c.zarr, sub/deep/no_suffix, and what is no dataset"""
    d = t.path("d")
    os.makedirs(d + "/sub/deep")
    make_h5(d + "/a.nc")
    make_h5(d + "/sub/b.h5")
    make_tree(d + "/sub/c.zarr")
    shutil.copy(d + "/a.nc", d + "/sub/deep/no_suffix")
    with open(d + "/readme.txt", "w") as f:
        f.write("about these")
    os.symlink("..", d + "/sub/loop")
    os.symlink("/nowhere", d + "/sub/broken.nc")
    os.mkdir(d + "/.gone.nc.nczarrfs")  # a state directory
    shutil.copy(d + "/a.nc", d + "/.gone.nc.nczarrfs/x.nc")
    return d, [d + "/" + x for x in ("a.nc", "sub/b.h5", "sub/c.zarr", "sub/deep/no_suffix")]


def test_each(t):
    """SEMANTICS K6: a line for each dataset and one for all; links and state directories are left
    alone"""
    d, paths = make_all(t)
    out, err = check(t, d)
    lines = out.splitlines()
    assert [x.split(": ")[0] for x in lines] == paths + [d] and not err, out + err
    assert all(x.endswith("all good") for x in lines[:-1])
    assert lines[-1] == d + ": 4 datasets, 1 other files: 4 good"
    hurt_h5(paths[1])
    out, _ = check(t, d, status=DAMAGED)
    assert "damaged  /v chunk 3.0, at byte" in out and out.endswith("3 good, 1 damaged\n"), out
    os.truncate(paths[0], 0)
    got, err = check(t, "--json", d, status=FAILED)
    assert [x["source"] for x in got["datasets"]] == paths
    assert [x["good"] for x in got["datasets"]] == [False, False, True, True], got
    assert (got["datasets_good"], got["datasets_damaged"], got["datasets_failed"]) == (2, 1, 1)
    assert not got["good"] and not got["complete"] and got["other_files"] == 1
    assert "a.nc" in err and len(err.splitlines()) == 1, err
    assert got["datasets"][1]["damaged"][0]["chunk"] == [3, 0]


def test_quick_and_empty(t):
    d, paths = make_all(t)
    hurt_h5(paths[1])
    got, _ = check(t, "--json", "--quick", d)
    assert got["good"] and all(x["quick"] for x in got["datasets"])
    os.mkdir(t.path("none"))
    out, err = check(t, t.path("none"), status=FAILED)
    assert not out and "no datasets found in this directory" in err, (out, err)


def test_resume(t):
    """SEMANTICS K6: those that were done are not read again, what changed since is"""
    d, paths = make_all(t)
    hurt_h5(paths[1])
    with open(paths[0], "r+b") as f:
        head = f.read(8)
        f.seek(0)
        f.write(b"nothing!")  # it cannot be opened, so that there is something left to do
    os.rename(paths[0], d + "/z.nc")
    state = t.path("state")
    command = ("--json", "--resume", state, d)
    got, _ = check(t, *command, status=FAILED)
    assert len(os.listdir(state)) == 3
    assert not any(x["resumed"] for x in got["datasets"][:3])
    got, _ = check(t, *command, status=FAILED)
    assert all(x["resumed"] and x["bytes_read"] == 0 for x in got["datasets"][:3]), got
    assert got["datasets"][0]["damaged"][0]["chunk"] == [3, 0]
    with open(d + "/z.nc", "r+b") as f:
        f.write(head)
    zarr.open_group(paths[2], "r+")["v"][5] = 7
    got, _ = check(t, *command, status=DAMAGED)
    assert [x["resumed"] for x in got["datasets"]] == [True, False, True, False], got
    assert got["complete"] and not os.path.exists(state)
    with open(state, "w") as f:
        f.write("mine")
    assert "is not a directory" in check(t, *command, status=FAILED)[1]
    assert open(state).read() == "mine"


def test_interrupted(t):
    """Ctrl-C ends all of it, and not one dataset after the other"""
    d = t.path("d")
    os.mkdir(d)
    make_h5(d + "/000.nc", 10)
    for i in range(1, 400):
        os.link(d + "/000.nc", f"{d}/{i:03}.nc")
    p = subprocess.Popen([t.binary, "check", d], stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert p.stdout.readline().startswith(d + "/000.nc: ")
    os.killpg(p.pid, signal.SIGINT)
    out, _ = p.communicate(timeout=60 * t.slow)
    assert p.returncode == FAILED and out.endswith("incomplete\n"), out[-300:]
    assert len(out.splitlines()) < 300, out
