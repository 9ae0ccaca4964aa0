# SPDX-License-Identifier: BSD-3-Clause
"""References are complete and of one state of the source, or there are none: shortages, sources
that change, outputs that appear meanwhile, interruptions."""
import os
import subprocess

import h5py
import numpy as np
import zarr

from cases.remote.test_refs import refs
from cases.remote.test_refs_dir import make_h5 as make_small
from cases.write.test_fault_loops import CLASSES, Injector


def make_long(path):
    """More references than a pipe holds."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.zeros(20000, "u1"), chunks=(1,))


# SEMANTICS K16
def test_shortage(t):
    """A dataset that cannot be opened now is not left out."""
    top, out = t.path("data"), t.path("a.json")
    os.mkdir(top)
    make_small(top + "/a.h5", 1)
    make_small(top + "/b.h5", 2)
    zarr.open_group(top + "/c.zarr", "w").create_dataset("v", data=np.arange(9.0), chunks=(3,))
    refs(t, top, out)
    with open(out) as f:
        good = f.read()
    os.unlink(out)
    inject = Injector(t)
    failed = 0
    for more in 0, 1 << 30:
        for at in range(1, 30):
            inject.arm(*CLASSES["threads"], at, more)
            failed += not whole(t, good, inject.wrapper, top, out)
            if not inject.disarm():
                break
    assert failed > 3
    ends = [whole(t, good, ("prlimit", f"--nofile={n}"), top, out) for n in range(6, 64)]
    assert ends[-1] and ends.count(False) > 8, ends


def whole(t, good, wrapper, top, out):
    """Whether references were written, which are then those of all datasets."""
    status, _, err = t.run(*wrapper, t.binary, "refs", "-o", "unsupported=skip,decode_threads=2",
                           top, out)
    assert "left out" not in err, err
    if status:
        assert not os.path.exists(out), err
        return False
    with open(out) as f:
        assert f.read() == good, err
    os.unlink(out)
    return True


def changed(t, path, *args):
    """Run the command into a pipe, and change a file that it reads. Returns what was written and
    the message."""
    p = subprocess.Popen([t.binary, "refs", *args], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = p.stdout.read(4096)  # the rest does not fit the pipe
    with open(path, "ab") as f:
        f.write(b"more")
    out, err = p.communicate(timeout=60 * t.slow)
    assert p.returncode == 1 and b"changed" in err and b"again" in err, err
    return text + out


# SEMANTICS K17
def test_changes(t):
    """A source that is changed while its references are written has none."""
    os.mkdir(t.path("d"))
    make_long(t.path("d/a.h5"))
    make_small(t.path("d/b.h5"), 1)
    for args in ([t.path("d/a.h5")], [t.path("d")], ["-o", "unsupported=skip", t.path("d")],
                 ["--inline", "-o", "concat_index=none,concat=x", t.path("d/[a].h5")]):
        if "--inline" in args:
            with h5py.File(t.path("d/a.h5"), "w") as f:
                v = f.create_dataset("v", data=np.zeros(20000, "u1"), chunks=(1,))
                f["x"] = np.arange(20000)
                f["x"].make_scale("x")
                v.dims[0].attach_scale(f["x"])
        text = changed(t, t.path("d/a.h5"), *args)
        assert not text.rstrip().endswith(b"}}"), args
