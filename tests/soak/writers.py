# SPDX-License-Identifier: BSD-3-Clause
"""Processes that change what is mounted, behind the mount or through it.

Mutator    files and trees on a disk, and those that the web server has: moved over, truncated,
           deleted, written in their place, chunk by chunk
S3Mutator  objects
TreeWriter chunks, through a writable Zarr tree
NcWriter   rows, through a writable virtual file

The last two keep in the ledger what the mount has confirmed."""
import contextlib
import fcntl
import os
import shutil
import time
import traceback

import make
import values
from readers import Reader, Unread, Worker, as_unread
from values import Wrong


class Mutator(Worker):
    def once(self):
        d = self.rng.choice(self.scene.changing)
        g = int(self.led.hi[d.id]) + 1
        way = self.rng.choice(getattr(self, d.form + "_ways"))
        way(self, d, g)
        self.led.good[self.number] += 1
        self.break_for = self.rng.uniform(0.5, 1.5) * self.scene.change_every

    def made(self, d, g):
        """The dataset of generation g, beside its place."""
        path = os.path.join(self.run.tmp, f"next{d.id}")
        make.MAKERS[d.form](path, g, d.id, d.variables)
        return path

    def replace(self, d, g):
        path = self.made(d, g)
        self.led.begin(d.id, g)
        self.led.spoil(d.id)
        os.rename(path, d.path)
        self.led.done(d.id, g)

    def truncate(self, d, g):
        path = self.made(d, g)
        self.led.begin(d.id, g)
        self.led.vanish(d.id) if d.mirrored else self.led.spoil(d.id)  # what is cut is no dataset
        os.truncate(d.path, os.stat(d.path).st_size * self.rng.randrange(100) // 100)
        self.pause(self.rng.random())
        os.rename(path, d.path)
        self.led.appear(d.id)
        self.led.done(d.id, g)

    def delete(self, d, g):
        path = self.made(d, g)
        self.led.begin(d.id, g)
        self.led.vanish(d.id) if d.mirrored else self.led.spoil(d.id)
        if os.path.isdir(d.path):
            os.rename(d.path, path + ".old")
            shutil.rmtree(path + ".old")
        else:
            os.unlink(d.path)
        self.pause(self.rng.random() * 3)
        os.rename(path, d.path)
        self.led.appear(d.id)
        self.led.done(d.id, g)

    def in_place(self, d, g):
        path = self.made(d, g)
        with open(path, "rb") as f:
            data = f.read()
        os.unlink(path)
        self.led.begin(d.id, g)
        self.led.soil(d.id)
        with open(d.path, "r+b", buffering=0) as f:
            step = max(len(data) // self.rng.randint(1, 20), 4096)
            for at in range(0, len(data), step):
                f.write(data[at:at + step])
                time.sleep(self.rng.random() * 0.02)
            f.truncate(len(data))
        self.led.done(d.id, g)

    def tree_swap(self, d, g):
        """The whole tree at once."""
        path = self.made(d, g)
        self.led.begin(d.id, g)
        self.led.vanish(d.id) if d.mirrored else self.led.spoil(d.id)
        os.rename(d.path, path + ".old")
        os.rename(path, d.path)
        self.led.appear(d.id)
        self.led.done(d.id, g)
        shutil.rmtree(path + ".old")

    def tree_chunks(self, d, g):
        """Chunk by chunk, then the documents, each moved into its place."""
        self.led.begin(d.id, g)
        self.led.spoil(d.id)
        for key, data in make.tree_chunks(g, d.id, d.variables):
            make.replaced(os.path.join(d.path, key), data)
            time.sleep(self.rng.random() * 0.01)
        for key, data in make.tree_documents(g, d.variables).items():
            make.replaced(os.path.join(d.path, key), data)
        self.led.done(d.id, g)

    def tree_cut(self, d, g):
        """A chunk is cut off for a while."""
        self.led.begin(d.id, g)
        self.led.spoil(d.id)
        v = self.rng.choice(d.variables)
        path = os.path.join(d.path, v.name, f"{self.rng.randrange(v.rows)}.0")
        os.truncate(path, self.rng.randrange(os.stat(path).st_size))
        self.pause(self.rng.random())
        self.tree_chunks(d, g)

    def tree_in_place(self, d, g):
        """Chunks are written over in their place, in pieces."""
        self.led.begin(d.id, g)
        self.led.soil(d.id)
        for key, data in make.tree_chunks(g, d.id, d.variables):
            with open(os.path.join(d.path, key), "r+b", buffering=0) as f:
                half = self.rng.randrange(len(data))
                f.write(data[:half])
                f.write(data[half:])
                f.truncate(len(data))
        self.tree_chunks(d, g)

    h5_ways = (replace, replace, truncate, delete, in_place)
    tree_ways = (tree_swap, tree_chunks, tree_chunks, tree_cut, tree_in_place, delete)
    zip_ways = (replace, truncate, delete)


class S3Mutator(Worker):
    """Objects of a tree: chunks, then documents, and the consolidated metadata last."""

    def once(self):
        d = self.rng.choice(self.scene.changing)
        g = int(self.led.hi[d.id]) + 1
        self.led.begin(d.id, g)
        self.led.spoil(d.id)
        objects = list(make.tree_chunks(g, d.id, d.variables))
        objects += list(make.tree_documents(g, d.variables).items())
        for key, data in objects:
            self.scene.service.put(f"{d.path}/{key}", data)
        self.led.done(d.id, g)
        self.led.good[self.number] += 1
        self.break_for = self.rng.uniform(0.5, 1.5) * self.scene.change_every


class TreeWriter(Reader):
    """Writes the chunks that are its own; what it was told is kept in the ledger."""

    def once(self):
        while self.led.held[0] and not self.led.stop[0]:
            time.sleep(0.05)
        d = self.dataset()
        mine = [(v, r) for v in d.variables if not v.small for r in range(v.rows)
                if d.cell(v, r) % self.scene.n_writers == self.share]
        var, row = self.rng.choice(mine)
        at, led = d.cell(var, row), self.led
        g = int(led.tried[d.id, at]) + 1
        t0 = time.monotonic()
        try:
            form = self.form(self.read(self.where(d, var.name, ".zarray"))[0], var.name)
            data = values.chunk(g, d.id, var, row)
            for codec in form[0]:
                data = codec.encode(data)
            led.tried[d.id, at] = g
            kind = self.rng.random()
            path = self.where(d, var.name, f"{row}.0")
            self.write(d, at, path, bytes(data), kind)
            led.kept[d.id, at] = g
            led.good[self.number] += 1
            if kind > 0.97:
                self.sync_folder(os.path.dirname(path))
        except OSError as error:
            self.failed(d, at, t0, as_unread(error))
        except Unread as error:
            self.failed(d, at, t0, error)

    def failed(self, d, at, t0, why):
        self.excused(None, t0, why, f"writing {d.name}")
        if not self.led.is_excused(self.scene.number, "down", t0):
            self.led.tried[d.id, at] = self.led.kept[d.id, at]  # it is what it was

    def write(self, d, at, path, data, kind):
        if kind < 0.2:
            return self.write_in_place(d, at, path, data)
        part = f"{path}.{self.number}.partial"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            for i in range(0, len(data), 65536):
                os.write(fd, data[i:i + 65536])
            if kind < 0.3:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(part, path)
        return None

    def sync_folder(self, path):
        """What is waiting goes into the dataset now."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def write_in_place(self, d, at, path, data):
        self.led.torn[d.id, at] += 1
        try:
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        finally:
            self.led.torn[d.id, at] += 1


class NcWriter(Reader):
    """Rows of some variables with h5py, in a process of its own each time: libhdf5 does not let go
    of a file that it could not close."""

    def once(self):
        while self.led.held[0] and not self.led.stop[0]:
            time.sleep(0.05)
        d = self.scene.datasets[0]
        some = [(v, r) for v in d.variables for r in range(v.rows)]
        some = self.rng.sample(some, self.rng.randint(1, 6))
        with d.exclusive_lock():
            t0 = time.monotonic()
            g = int(max(self.led.tried[d.id])) + 1
            for v, r in some:
                self.led.tried[d.id, d.cell(v, r)] = g
            status = in_process(self.write, d, some, g)
            if status is None:
                self.check(d, some, g)
                for v, r in some:
                    self.led.kept[d.id, d.cell(v, r)] = g
                self.led.good[self.number] += 1
            else:
                self.excused(None, t0, Unread(status, f"status {status}"), "writing rows")

    def write(self, d, some, g):
        import h5py
        try:
            with h5py.File(self.where(d), "r+") as f:
                for v, r in some:
                    f[v.name][r] = values.chunk(g, d.id, v, r)
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            os._exit(min(as_unread(error).number, 254) or 255)
        os._exit(0)

    def check(self, d, some, g):
        """What was confirmed is in the store, for everybody."""
        for v, r in some:
            key = f"{v.name}/{r}.0"
            form = self.form(self.scene.stored(d, f"{v.name}/.zarray"), key)
            got = values.seen(self.decode(self.scene.stored(d, key), form, key), d.id, v, r)
            if got != g:
                raise Wrong(f"{key}: generation {got} in the store, {g} was confirmed")


def in_process(func, *args):
    """func ends the process with an errno. None: it worked; 0: it failed without a number, or
    crashed."""
    pid = os.fork()
    if pid == 0:
        try:
            func(*args)
        except BaseException:  # noqa: B902
            traceback.print_exc()
        os._exit(255)
    _, raw = os.waitpid(pid, 0)
    status = os.waitstatus_to_exitcode(raw)
    return None if status == 0 else 0 if status in (255,) or status < 0 else status


@contextlib.contextmanager
def locked(path, how, wants=None):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if wants is not None:
            wants[...] += 1
        try:
            fcntl.flock(fd, how)
        finally:
            if wants is not None:
                wants[...] -= 1
        yield
    finally:
        os.close(fd)
