# SPDX-License-Identifier: BSD-3-Clause
"""Mount netCDF, HDF5 and HDF4 files as Zarr stores, and Zarr stores as netCDF-4 files.

    with nczarrfs.mount("model.nc") as path:
        dataset = xarray.open_zarr(path)

The program nczarrfs does the work. It is $NCZARRFS, or the first of that name on PATH.
"""
import atexit
import json
import os
import shutil
import subprocess
import tempfile
import weakref

__all__ = ["Error", "Mount", "can_mount", "mount", "references"]
__version__ = "1.0.0"

_mounts = weakref.WeakSet()


class Error(OSError):
    """A message of the program nczarrfs."""


def _program():
    found = os.environ.get("NCZARRFS") or shutil.which("nczarrfs")
    if not found:
        raise Error("the program nczarrfs is not on PATH: install it, or set NCZARRFS")
    return found


def _options(options):
    """Arguments: rw=True is -o rw, zarr_format=3 is -o zarr_format=3; False and None give none."""
    arguments = []
    for name, value in options.items():
        if value is not None and value is not False:
            arguments += ["-o", name if value is True else f"{name}={value}"]
    return arguments


def _run(*arguments):
    done = subprocess.run([_program(), *arguments], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        message = done.stderr.strip() or f"nczarrfs ended with status {done.returncode}"
        raise Error(message.replace("nczarrfs: error: ", ""))
    return done.stdout


def can_mount():
    """Whether this machine has what a mount needs: /dev/fuse and fusermount3."""
    return os.path.exists("/dev/fuse") and shutil.which("fusermount3") is not None


class Mount:
    """A mount. `path` is the Zarr store or the netCDF-4 file that it shows; for a directory of
    datasets it is the mountpoint. close() unmounts, and waits until written data are in the
    source; leaving a with statement and the end of the interpreter do so, too."""

    def __init__(self, source, mountpoint=None, **options):
        self._temporary = None
        if mountpoint is None:
            mountpoint = self._temporary = tempfile.mkdtemp(prefix="nczarrfs-")
        self.mountpoint = os.path.abspath(os.fspath(mountpoint))
        self._open = False
        try:
            _run(*_options(options), "--", os.fspath(source), self.mountpoint)
            self._open = True
            _mounts.add(self)
            self.path = self._shown(options)
        except BaseException:
            self.close()
            raise

    def _shown(self, options):
        if options.get("root"):
            return os.path.join(self.mountpoint, options["root"])
        status = json.loads(_run("status", "--json", self.mountpoint))
        names = os.listdir(self.mountpoint)
        if status["view"] == "netcdf" and len(names) == 1:
            return os.path.join(self.mountpoint, names[0])
        return self.mountpoint

    def close(self):
        """Unmount. Error if the mount is in use, or written data are not in the source."""
        if self._open:
            _run("umount", self.mountpoint)
            self._open = False
        if self._temporary:
            os.rmdir(self._temporary)
            self._temporary = None
        _mounts.discard(self)

    def __enter__(self):
        return self.path

    def __exit__(self, kind, value, traceback):
        self.close()


def mount(source, mountpoint=None, **options):
    """Mount source: a path, an address or a pattern of files.

    mountpoint: a directory; None: a temporary one. options: those of `nczarrfs -o`, such as
    rw=True, zarr_format=3, concat="time". Returns a Mount; in a with statement, its path."""
    return Mount(source, mountpoint, **options)


def references(source, out, **options):
    """Write references to the chunks of source, as kerchunk does, into the JSON file out."""
    _run("refs", *_options({"inline": True, **options}), "--", os.fspath(source), os.fspath(out))


@atexit.register
def _close_all():
    for each in list(_mounts):
        try:
            each.close()
        except OSError:
            pass  # in use: the mount stays, and `nczarrfs umount` removes it
