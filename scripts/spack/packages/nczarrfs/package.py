# SPDX-License-Identifier: BSD-3-Clause
"""A package for Spack: spack repo add scripts/spack && spack install nczarrfs."""
import os

from spack.package import *

try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.makefile import MakefilePackage
except ImportError:
    pass


class Nczarrfs(MakefilePackage):
    """Mount netCDF and HDF5 files as Zarr stores, and Zarr stores as netCDF-4 files."""

    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("hdf4", default=True, description="read HDF4 files")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    for name in ("bzip2", "c-blosc", "curl", "expat", "hdf5", "jansson", "libaec", "libdeflate",
                 "libfuse@3.14:", "liblzf", "libmicrohttpd", "libseccomp", "lz4", "openssl",
                 "snappy", "xz", "zlib-api", "zstd"):
        depends_on(name)
    depends_on("hdf@4.2.15: +shared", when="+hdf4")

    @property
    def build_targets(self):
        return ["all"] if "+hdf4" in self.spec else ["all", "HDF4_LIBS="]

    @property
    def install_targets(self):
        plugins = os.path.join(self.prefix.lib, "hdf5", "plugin")
        return ["install", f"prefix={self.prefix}", f"PLUGINDIR={plugins}"]
