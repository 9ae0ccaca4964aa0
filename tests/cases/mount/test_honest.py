# SPDX-License-Identifier: BSD-3-Clause
"""What could not be read is never taken for absent. zarr-python asks os.path.isfile before it opens
a chunk: a look-up that fails would become fill values. Each of these was seen to fail (fill values
where data is) with look-ups that answered EIO."""
import errno
import os

import h5py
import numpy as np
import zarr

from gen import filters
from lib.context import eventually

VALUES = np.arange(1, 1001)


def write(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(10,), compression="gzip")
    return path


def refuses(array, part):
    """Reading that part is an error; True once it is (a file system is told of changes)."""
    try:
        got = array[part]
    except OSError:
        return True
    assert (got == VALUES[part]).all(), f"fill values instead of an error: {got}"
    return False


def reading(path):
    """The errno of opening a path and reading it; 0."""
    try:
        with open(path, "rb") as f:
            f.read()
    except OSError as error:
        return error.errno
    return 0


# SEMANTICS C6, E1
def test_source_gone_or_garbage(t):
    path = write(t.path("a.h5"))

    def check(mnt):
        array = zarr.open(mnt + "/v", mode="r")
        assert (array[:20] == VALUES[:20]).all()
        os.rename(path, path + ".gone")
        step = iter(range(2, 50))
        eventually(lambda: refuses(array, slice(*[10 * (next(step)), 1000])))
        assert os.path.isfile(mnt + "/v/99"), "a name that was there is not known any more"
        with open(path + ".new", "w") as f:
            f.write("garbage")
        os.rename(path + ".new", path)  # one change: a name that is replaced twice may be ESTALE
        eventually(lambda: refuses(array, slice(900, 910)))
        names = sorted(os.listdir(mnt + "/v"))
        eventually(lambda: reading(mnt + "/v/98") == errno.EIO)  # not before the change is noticed
        for name in "98", "7", ".zarray":
            got = reading(mnt + "/v/" + name)
            assert got == errno.EIO, (name, got)
        assert sorted(os.listdir(mnt + "/v")) == names and "98" in names
        os.rename(path + ".gone", path)

        def back():
            try:
                return (array[:] == VALUES).all()
            except OSError:
                return False
        eventually(back)
    with t.mount(path) as m:
        t.call(check, m.path)


# SEMANTICS E2, E3
def test_filter_that_nobody_has(t):
    path = t.path("a.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=VALUES, chunks=(10,), compression="gzip")
        f.create_dataset("ok", data=VALUES, chunks=(10,), shuffle=True)
    filters.rename_deflate(path)

    def check(mnt):
        root = zarr.open_group(mnt, mode="r")
        assert refuses(root["v"], slice(0, 10))
        assert (root["ok"][:] == VALUES).all()
    with t.mount(path) as m:
        t.call(check, m.path)


# SEMANTICS E1, E2
def test_damaged_index(t):
    """The chunk index of a variable is overwritten: every read of it is an error."""
    path = write(t.path("a.h5"))
    with open(path, "r+b") as f:
        data = f.read()
        at = data.index(b"TREE\x01")
        while at >= 0:
            f.seek(at)
            f.write(b"XXXX")
            at = data.find(b"TREE\x01", at + 4)

    def check(mnt):
        assert refuses(zarr.open(mnt + "/v", mode="r"), slice(0, 10))
    with t.mount(path) as m:
        t.call(check, m.path)


# SEMANTICS E1
def test_damaged_object(t):
    """Of a variable and a group whose headers are overwritten nobody is told that they are absent;
    of what never was there, and of what no Zarr array can be, everybody is."""
    path = t.path("a.h5")
    with h5py.File(path, "w", libver="earliest") as f:
        for name in ("v", "ok", "g/inner"):
            f.create_dataset(name, data=VALUES, chunks=(10,))
        f.create_dataset("refs", shape=(2,), dtype=h5py.ref_dtype)
        f["nowhere"] = h5py.SoftLink("/not/there")
        at = [h5py.h5o.get_info(f[name].id).addr for name in ("v", "g")]
    with open(path, "r+b") as f:
        for offset in at:
            f.seek(offset)
            f.write(b"\xff" * 16)

    def error(path):
        try:
            os.stat(path)
        except OSError as why:
            return why.errno
        return 0

    def check(mnt):
        assert error(mnt + "/ok/.zarray") == 0
        for name in ("v", "v/.zarray", "v/0", "g", "g/inner/.zarray", "nowhere"):
            assert error(f"{mnt}/{name}") == errno.EIO, name
        for name in ("w", "refs", "refs/.zarray", "ok/.zgroup"):
            assert error(f"{mnt}/{name}") == errno.ENOENT, name
        assert sorted(n for n in os.listdir(mnt) if n[0] != ".") == ["ok"]
    with t.mount(path) as m:
        t.call(check, m.path)
