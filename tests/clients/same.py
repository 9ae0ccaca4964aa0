# SPDX-License-Identifier: BSD-3-Clause
"""Two mounts of the same dataset, one of them from far away: what one shows, the other does."""
import errno
import os

import numpy as np


def names(folder):
    return set(os.listdir(folder))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def no_file(path):
    """A name that may be shown where nothing can be listed; opening says that it is not there."""
    try:
        read(path)
    except OSError as error:
        return error.errno == errno.ENOENT
    return False


def trees(near, far, listed=False):
    """Every file, byte for byte; returns how many. listed: no more names than near."""
    n = 0
    for folder, dirs, files in os.walk(near):
        below = os.path.relpath(folder, near)
        other = os.path.join(far, below)
        have, want = names(other), set(dirs) | set(files)
        assert want <= have, f"{below}: {sorted(want - have)[:5]} are not shown"
        more = sorted(have - want)
        assert not (listed and more), f"{below}: {more[:5]} are shown as well"
        for name in more[:20]:
            assert no_file(os.path.join(other, name)), f"{below}/{name} is there as well"
        for name in sorted(files):
            a, b = read(os.path.join(folder, name)), read(os.path.join(other, name))
            assert a == b, (f"{below}/{name}: {len(b)} bytes {b[:40]!r}, not {len(a)} "
                            f"{a[:40]!r}")
            assert os.path.getsize(os.path.join(other, name)) == len(b), f"{below}/{name}"
            n += 1
    return n


def equal(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return all(np.array_equal(np.asarray(x), np.asarray(y)) if not isinstance(x, tuple)
                   else repr(x) == repr(y) for x, y in zip(a.ravel(), b.ravel()))
    return a.tobytes() == b.tobytes()


def attributes(path, a, b):
    assert sorted(a.attrs) == sorted(b.attrs), f"{path}: {sorted(a.attrs)} {sorted(b.attrs)}"
    for key in a.attrs:
        x, y = a.attrs[key], b.attrs[key]
        if key in ("DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties"):
            continue  # references, and the name of the program
        assert equal(x, y), f"{path}: attribute {key} is {y!r}, not {x!r}"


def files(near, far):
    """Two virtual netCDF files by h5py: the same but for how chunks are stored."""
    import h5py
    n = 0
    with h5py.File(near, "r") as f, h5py.File(far, "r") as g:
        paths, others = [], []
        f.visit(paths.append)
        g.visit(others.append)
        assert paths == others, f"{others} instead of {paths}"
        attributes("/", f, g)
        for path in paths:
            a, b = f[path], g[path]
            attributes(path, a, b)
            if isinstance(a, h5py.Group):
                continue
            if not isinstance(a, h5py.Dataset):
                continue
            assert a.shape == b.shape and a.dtype == b.dtype, f"{path}: {b.shape} {b.dtype}"
            assert a.maxshape == b.maxshape, path
            x, y = a[()], b[()]
            assert equal(x, y), (f"{path}: {np.asarray(y).ravel()[:4]}, not "
                                 f"{np.asarray(x).ravel()[:4]}")
            n += 1
    return n
