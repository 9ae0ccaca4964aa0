# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know netCDF-4 and HDF5, on a virtual file and on copies that they make of it."""
import os
import subprocess

import h5py
import numpy as np

SECONDS = 60


class Failed(AssertionError):
    pass


def run(*args, seconds=SECONDS):
    """Standard output of a program that has to succeed and has nothing to complain about."""
    env = dict(os.environ, HDF5_USE_FILE_LOCKING="FALSE")
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                          timeout=seconds)
    err = done.stderr.decode(errors="replace").strip()
    if done.returncode:
        raise Failed(f"{' '.join(args[:-1])}: status {done.returncode}: {err[:500]}")
    return done.stdout


def nc_ok(file):
    """Whether netCDF-C gets through such a file at all: it has its own limits (compounds in
    compounds, fixed texts); the real file made by h5py from it is the witness."""
    try:
        run("ncdump", file)
        return True, ""
    except (Failed, subprocess.TimeoutExpired) as error:
        return False, str(error)


def same_h5(a, b):
    """Two HDF5 files hold the same datasets, bit for bit."""
    with h5py.File(a, "r") as x, h5py.File(b, "r") as y:
        def look(name, obj):
            other = y.get(name)
            assert other is not None, f"{name} is not in the copy"
            if isinstance(obj, h5py.Dataset):
                p, q = obj[()], other[()]
                assert obj.dtype == other.dtype, f"{name}: {obj.dtype} and {other.dtype}"
                if np.asarray(p).dtype.kind == "O":
                    assert all(np.array_equal(i, j) for i, j in
                               zip(np.asarray(p).ravel(), np.asarray(q).ravel())), name
                else:
                    assert np.asarray(p).tobytes() == np.asarray(q).tobytes(), f"{name} differs"
            assert set(obj.attrs) == set(other.attrs), f"{name}: attributes differ"
        x.visititems(look)


def h5_tools(file, tmp):
    """h5dump with all data, h5stat, h5repack; the repacked file is equal."""
    assert len(run("h5dump", file)) > 100
    run("h5stat", file)
    packed = os.path.join(tmp, "packed.h5")
    run("h5repack", file, packed)
    same_h5(file, packed)
    os.unlink(packed)


def nc_tools(file, tmp):
    """ncdump with all data; nccopy to a new file, whose dump is the same."""
    text = run("ncdump", "-p", "9,17", file)
    copy = os.path.join(tmp, os.path.basename(file))
    run("nccopy", file, copy)
    again = run("ncdump", "-p", "9,17", copy)
    os.unlink(copy)
    assert text == again, "ncdump of nccopy's copy differs: " + first_difference(text, again)
    return text


def first_difference(a, b):
    for x, y in zip(a.splitlines(), b.splitlines()):
        if x != y:
            return f"{x!r:.200} and {y!r:.200}"
    return "one ends before the other"
