# SPDX-License-Identifier: BSD-3-Clause
"""The engine "nczarrfs" of xarray: datasets are read as Zarr through a mount of their own, or
without FUSE through references."""
import os
import tempfile

import xarray
from xarray.backends import BackendEntrypoint

import nczarrfs

# Names of files that no other engine of xarray opens.
ENDINGS = (".hdf", ".h4", ".hdf4")


class _Shown:
    """The input of xarray's engine "zarr" for a source: a mount, or references in a file."""

    def __init__(self, source, options):
        options = {"view": "zarr", **(options or {})}
        self.mount = self.folder = None
        if nczarrfs.can_mount():
            self.mount = nczarrfs.mount(source, **options)
            self.arguments = {"filename_or_obj": self.mount.path}
        else:
            options.pop("view")
            self.folder = tempfile.TemporaryDirectory(prefix="nczarrfs-")
            out = os.path.join(self.folder.name, "references.json")
            nczarrfs.references(source, out, **options)
            self.arguments = {"filename_or_obj": "reference://", "consolidated": False,
                              "storage_options": {"fo": out}}

    def close(self):
        if self.mount:
            self.mount.close()
        if self.folder:
            self.folder.cleanup()


def _open(function, source, mount_options, arguments):
    """Let function open what is shown of a source; closing the result ends the mount."""
    shown = _Shown(source, mount_options)
    try:
        opened = function(**shown.arguments, engine="zarr", **arguments)
    except BaseException:
        shown.close()
        raise
    close = getattr(opened, "_close", None)

    def close_both():
        try:
            if close:
                close()
        finally:
            shown.close()
    opened.set_close(close_both)
    return opened


class NczarrfsBackendEntrypoint(BackendEntrypoint):
    """Opens netCDF, HDF5, HDF4 and many files as one through the file system nczarrfs."""

    description = "Open netCDF, HDF5, HDF4 and many files as one through nczarrfs"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "mask_and_scale",
                               "decode_times", "concat_characters", "decode_coords",
                               "use_cftime", "decode_timedelta", "group", "mount_options")

    def open_dataset(self, filename_or_obj, *, drop_variables=None, mount_options=None,
                     **arguments):
        """mount_options: options of `nczarrfs -o`, such as {"concat": "time"}."""
        return _open(xarray.open_dataset, filename_or_obj, mount_options,
                     {"drop_variables": drop_variables, **arguments})

    def open_datatree(self, filename_or_obj, *, drop_variables=None, mount_options=None,
                      **arguments):
        """The same for all groups, with versions of xarray that have DataTree."""
        return _open(xarray.open_datatree, filename_or_obj, mount_options,
                     {"drop_variables": drop_variables, **arguments})

    def guess_can_open(self, filename_or_obj):
        return isinstance(filename_or_obj, (str, os.PathLike)) and \
            os.fspath(filename_or_obj).lower().endswith(ENDINGS)
