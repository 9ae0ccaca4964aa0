# SPDX-License-Identifier: BSD-3-Clause
"""Links."""
import os

import h5py

from gen import feature
from gen.dims import ramp


@feature(clients=("zarr",))
def hard_links(path):
    """One array, and one group, under two names."""
    with h5py.File(path, "w") as f:
        f["g/v"] = ramp((4, 5))
        f["same"] = f["g/v"]
        f["h"] = f["g"]


@feature(clients=("zarr",))
def soft_links(path):
    """Soft links, relative, absolute, chained; dangling ones are left out."""
    with h5py.File(path, "w") as f:
        f["g/v"] = ramp((4, 5))
        f["abs"] = h5py.SoftLink("/g/v")
        f["g/rel"] = h5py.SoftLink("v")
        f["group"] = h5py.SoftLink("/g")
        f["chain"] = h5py.SoftLink("/abs")
        f["dangling"] = h5py.SoftLink("/nowhere/v")


@feature(clients=("zarr",))
def cycles(path):
    """Groups that contain themselves: by hard link, by soft link, by two steps."""
    with h5py.File(path, "w") as f:
        f["a/b/v"] = ramp((3,))
        f["a/b/up"] = f["a"]
        f["a/self"] = f["a"]
        f["a/soft"] = h5py.SoftLink("/a")
        f["root"] = h5py.SoftLink("/")
        f["loop1"] = h5py.SoftLink("/loop2")
        f["loop2"] = h5py.SoftLink("/loop1")


@feature(clients=("zarr",))
def external_links(path):
    """External links are refused without external_root; the rest is served."""
    other = os.path.join(os.path.dirname(path), "other.h5")
    with h5py.File(other, "w") as f:
        f["v"] = ramp((3,))
    with h5py.File(path, "w") as f:
        f["ok"] = ramp((3,))
        f["ext"] = h5py.ExternalLink("other.h5", "/v")
        f["gone"] = h5py.ExternalLink("missing.h5", "/v")
        f["etc"] = h5py.ExternalLink("/etc/passwd", "/v")


@feature(clients=("zarr",))
def deep_groups(path):
    """Forty levels of groups."""
    with h5py.File(path, "w") as f:
        f["/".join(f"l{i}" for i in range(40)) + "/v"] = ramp((2,))
