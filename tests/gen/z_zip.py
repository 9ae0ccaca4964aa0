# SPDX-License-Identifier: BSD-3-Clause
"""Zip archives: stored and deflated entries, a folder around everything, big and small."""
import os
import shutil
import zipfile

from gen.trees import archive, tree
from gen import z_codecs, z_shapes


def packed(path, write, **more):
    folder = path + ".tmp"
    write(folder)
    archive(folder, path, **more)
    shutil.rmtree(folder)


@tree(ending=".zarr.zip", clients=("h5py", "h5tools", "nctools"))
def zip_stored(path):
    """Entries as they are: chunks are passed through from inside the archive."""
    packed(path, z_codecs.codecs)


@tree(ending=".zarr.zip", clients=("h5py", "h5tools", "nctools"))
def zip_deflated(path):
    """Deflated entries."""
    packed(path, z_shapes.coordinates, method=zipfile.ZIP_DEFLATED)


@tree(ending=".zip", clients=("h5py", "h5tools", "nctools"))
def zip_in_folder(path):
    """One folder around everything, as NCZarr writes it, with entries for folders."""
    folder = path + ".tmp"
    z_shapes.coordinates(folder)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("top/", b"")
        for base, dirs, names in os.walk(folder):
            dirs.sort()
            for d in dirs:
                z.writestr(os.path.join("top", os.path.relpath(os.path.join(base, d), folder))
                           + "/", b"")
            for name in sorted(names):
                full = os.path.join(base, name)
                z.write(full, os.path.join("top", os.path.relpath(full, folder)))
    shutil.rmtree(folder)
