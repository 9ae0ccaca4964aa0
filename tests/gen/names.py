# SPDX-License-Identifier: BSD-3-Clause
"""Names that a file system, JSON or Zarr could trip over."""
import h5py
import numpy as np

from gen import feature
from gen.dims import dataset, ramp


@feature(clients=("zarr", "xarray", "ncdump"))
def utf8_names(path):
    """UTF-8 in names of groups, dimensions, variables, attributes."""
    with dataset(path) as ds:
        ds.createDimension("größe", 3)
        v = ds.createVariable("température", "f4", ("größe",))
        v[:] = [1, 2, 3]
        v.setncattr("unité", "°C")
        g = ds.createGroup("日本")
        g.createVariable("データ", "i4", ("größe",))[:] = [4, 5, 6]


@feature(clients=("zarr",))
def names_like_chunks(path):
    """Arrays and groups that are called like chunks and metadata files."""
    with h5py.File(path, "w") as f:
        f["0.0"] = ramp((2, 2))
        f["0"] = ramp((2,))
        f["g/0"] = ramp((2,))
        f["1.2.3/v"] = ramp((2,))


@feature(clients=("zarr",))
def names_like_metadata(path):
    """Arrays called .zarray and .zgroup would hide the real ones: they are left out."""
    with h5py.File(path, "w") as f:
        for n in (".zarray", ".zgroup", ".zattrs", ".zmetadata"):
            f[n] = ramp((2,))
            f["g/" + n] = ramp((2,))
        f["ok"] = ramp((3,))


@feature(clients=("zarr",))
def odd_names(path):
    """Spaces, quotes, control characters, backslashes, Latin-1, the longest name, too long."""
    with h5py.File(path, "w") as f:
        for i, n in enumerate(("with space", "quo\"te", "back\\slash", "tab\there", "new\nline",
                               "-dash", "star*", "percent%41", "n" * 255)):
            f[n] = np.arange(i + 1)
            f[n].attrs[n[:60]] = n
        f["n" * 256] = ramp((2,))
        f[b"latin\xe9"] = ramp((2,))


@feature(clients=("zarr",))
def many_entries(path):
    """A group with 5,000 arrays and an array with 5,000 chunks: listings in many pieces."""
    with h5py.File(path, "w", libver="latest") as f:
        g = f.create_group("g")
        for i in range(1000):
            g[f"a{i}"] = i
        f.create_dataset("chunks", data=np.arange(5000, dtype="i2"), chunks=(1,))
