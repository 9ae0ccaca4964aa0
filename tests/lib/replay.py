# SPDX-License-Identifier: BSD-3-Clause
"""Make the system calls of a recording (tests/record-writers.py) again, below another root.

The recordings keep what programs do in tests that run without the programs. Reads are made,
too; what they give is compared with what the program read where that is the same on every file
system: a file that the recording wrote itself."""
import base64
import errno
import json
import os
import zlib

from lib.context import eventually_passes


def unpack(text):
    if text[0] == "t":
        return text[1:].encode()
    return zlib.decompress(base64.b64decode(text[1:]))


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


class Replay:
    """strict: reads have to give what they gave. rename: other names of files."""

    def __init__(self, root, strict=False, rename=None):
        self.root = root
        self.strict = strict
        self.rename = rename or {}
        self.files = {}   # handle -> descriptor

    def path(self, name):
        name = self.rename.get(name, name)
        return os.path.join(self.root, name) if name else self.root

    def run(self, events):
        try:
            for i, (what, *args) in enumerate(events):
                try:
                    getattr(self, "do_" + what.replace("-", "_"))(*args)
                except OSError as error:
                    raise AssertionError(f"call {i}, {what} {str(args)[:80]}: {error}") from error
        finally:
            for fd in self.files.values():
                os.close(fd)
            self.files.clear()

    def do_open(self, handle, name, flags, mode):
        bits = 0
        for word in flags.split("|"):
            bits |= getattr(os, word)
        self.files[handle] = os.open(self.path(name), bits, int(mode, 8))

    def do_close(self, handle):
        os.close(self.files.pop(handle))

    def do_write(self, handle, data):
        data = unpack(data)
        assert os.write(self.files[handle], data) == len(data), "short write"

    def do_pwrite(self, handle, offset, data):
        data = unpack(data)
        assert os.pwrite(self.files[handle], data, offset) == len(data), "short write"

    def do_read(self, handle, count, crc):
        self.same(os.read(self.files[handle], count), crc)

    def do_pread(self, handle, offset, count, crc):
        self.same(os.pread(self.files[handle], count, offset), crc)

    def same(self, data, crc):
        assert not self.strict or zlib.crc32(data) == crc, "other bytes were read"

    def do_seek(self, handle, offset):
        os.lseek(self.files[handle], offset, os.SEEK_SET)

    def do_copy(self, source, target, count):
        done = 0
        while done < count:
            n = os.copy_file_range(self.files[source], self.files[target], count - done)
            if n == 0:
                break
            done += n
        assert not self.strict or done == count, f"{done} of {count} bytes were copied"

    def do_ftruncate(self, handle, size):
        os.ftruncate(self.files[handle], size)

    def do_truncate(self, name, size):
        os.truncate(self.path(name), size)

    def do_fsync(self, handle, *_):
        os.fsync(self.files[handle])

    do_fdatasync = do_fsync

    def do_flock(self, handle, how):
        import fcntl
        bits = 0
        for word in how.split("|"):
            bits |= getattr(fcntl, word)
        fcntl.flock(self.files[handle], bits)

    def do_mmap(self, *_):
        pass

    def do_mkdir(self, name):
        try:
            os.mkdir(self.path(name))
        except FileExistsError:
            if name:  # the root is there already: mounts have one
                raise

    def do_rmdir(self, name):
        if not name:
            return
        path = self.path(name)
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            # its files are not released yet; when they are, a commit may be first to remove it
            eventually_passes(lambda: os.path.lexists(path) and os.rmdir(path), errors=OSError)

    def do_rmdir_fails(self, name):
        try:
            os.rmdir(self.path(name))
        except OSError:
            return
        raise AssertionError("a directory could be removed that is not empty, or a mount")

    def do_unlink(self, name):
        os.unlink(self.path(name))

    def do_rename(self, name, to):
        os.rename(self.path(name), self.path(to))

    def do_link(self, name, to):
        os.link(self.path(name), self.path(to))

    def do_chmod(self, name, mode):
        os.chmod(self.path(name), int(mode, 8))

    def do_fchmod(self, handle, mode):
        os.fchmod(self.files[handle], int(mode, 8))

    def do_utimens(self, name):
        os.utime(self.path(name), (1e9, 1e9))

    def do_futimens(self, handle):
        os.utime(self.files[handle], (1e9, 1e9))

    def do_fsetxattr(self, handle, name):
        try:  # as cp: who cannot keep ACLs says so
            os.setxattr(self.files[handle], name, b"\2\0\0\0" + bytes.fromhex(
                "01000600ffffffff04000400ffffffff20000400ffffffff"))
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.EPERM):
                raise


def replay(recording, root, strict=False, rename=None):
    Replay(root, strict, rename).run(load(recording))
