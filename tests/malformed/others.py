"""Classic files, archives and trees in which something was changed."""
import json
import os
import shutil
import struct
import zipfile

import numpy as np

from gen import z_bad, z_three
from gen.classic import BYTE, INT, SHORT, Classic, Var
from malformed import made

V = np.arange(6, dtype=">i4")


# ---- classic netCDF ----

def classic(path, version=1, **of_v):
    Classic(version, [("x", 6)], [], [Var("good", (0,), INT, V), Var("v", (0,), INT, V, **of_v)]
            ).write(path)


def replace(path, old, new):
    with open(path, "rb") as f:
        data = f.read()
    assert data.count(old) == 1, (path, data.count(old))
    with open(path, "wb") as f:
        f.write(data.replace(old, new))


@made("begin-negative.nc", words=("begin-negative",))
def begin_negative(path):
    classic(path, begin=2**32 - 4)


@made("begin-in-header.nc", words=("begin-in-header", "inside the header"))
def begin_in_header(path):
    """A variable that lies in the header."""
    classic(path)
    with open(path, "rb") as f:
        data = f.read()
    replace(path, struct.pack(">I", data.rindex(V.tobytes())), struct.pack(">I", 4))


@made("begin-overlap.nc", right={"good/0": V.tobytes(), "v/0": None})
def begin_overlap(path):
    """Two variables in one place; netCDF-C reads both, too."""
    classic(path)
    with open(path, "rb") as f:
        data = f.read()
    good = data.index(V.tobytes())
    replace(path, struct.pack(">I", data.rindex(V.tobytes())), struct.pack(">I", good))


@made("vsize.nc", right={"good/0": V.tobytes(), "v/0": V.tobytes()})
def vsize(path):
    """Sizes that are stated are not believed: the shape says them."""
    classic(path, vsize=2**32 - 4)


@made("dimension-2-63.nc", words=("dimension-2-63",))
def dimension_2_63(path):
    Classic(5, [("x", 2)], [], [Var("v", (0,), BYTE, [1, 2])]).write(path)
    replace(path, b"x\0\0\0" + struct.pack(">Q", 2), b"x\0\0\0" + struct.pack(">Q", 2**63))


@made("same-names.nc", right={"v/0": None})
def same_names(path):
    Classic(1, [("x", 2)], [], [Var("v", (0,), SHORT, [1, 2]), Var("v", (0,), SHORT, [3, 4])]
            ).write(path)


# ---- archives; what is right is asked of the virtual file ----

def archive(path, more=(), drop=()):
    folder = path + ".tmp"
    z_bad.base(folder, "raw")
    z_bad.archive(folder, path)
    shutil.rmtree(folder)
    with zipfile.ZipFile(path, "a") as z:
        for name, data in more:
            info = zipfile.ZipInfo("x")
            info.filename = name
            z.writestr(info, data)


RIGHT = z_bad.values("raw")


@made("zip-same-names.zarr.zip", right={"good": RIGHT.tobytes()})
def zip_same_names(path):
    """A name twice: the later entry holds, as everywhere."""
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive(path, [("good/.zattrs", b"{}")])


@made("zip-backslash.zarr.zip", words=("zip-backslash",))
def zip_backslash(path):
    archive(path, [("good\\0", b"12345678")])


@made("zip-bomb.zarr.zip", right={"good": RIGHT.tobytes()}, errors=("v",))
def zip_bomb(path):
    """A chunk of 28 bytes that inflates to 64 MiB, as another name for one that is right."""
    folder = path + ".tmp"
    z_bad.base(folder, "raw")
    os.unlink(os.path.join(folder, "v", "1"))
    z_bad.archive(folder, path)
    shutil.rmtree(folder)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as z:
        z.writestr("v/1", bytes(64 << 20))


@made("zip-entry-larger.zarr.zip", words=("zip-entry-larger",))
def zip_entry_larger(path):
    """An entry that is longer than the archive."""
    archive(path)
    z_bad.patch(path, "v/1", 20, struct.pack("<II", 1 << 30, 1 << 30), 18)


# ---- shards ----

def shard(path, change=None, **document):
    z_bad.base(path, "v3shard")
    if change:
        z_bad.shard_index(path, *change)
    if document:
        name = os.path.join(path, "v", "zarr.json")
        with open(name, encoding="utf-8") as f:
            doc = json.load(f)
        doc.update(document)
        with open(name, "w", encoding="utf-8") as f:
            json.dump(doc, f)


@made("shard-into-index.zarr", right={"good": RIGHT.tobytes()})
def shard_into_index(path):
    """A chunk whose bytes are those of the index: nothing says that they are not."""
    z_bad.base(path, "v3shard")
    size = os.path.getsize(os.path.join(path, "v", "c", "0"))
    z_bad.shard_index(path, 1, (size - 4 * z_bad.N, 4 * z_bad.N))


@made("shard-overlap.zarr", right={"good": RIGHT.tobytes()})
def shard_overlap(path):
    shard(path, (1, (0, 4 * z_bad.N)))


@made("shard-not-dividing.zarr", words=("shard-not-dividing", "v/zarr.json"))
def shard_not_dividing(path):
    """Inner chunks that do not divide the shard."""
    shard(path, codecs=[z_three.sharding((3,), z_three.LITTLE)], chunk_grid={
        "name": "regular", "configuration": {"chunk_shape": [4 * z_bad.N + 1]}})
