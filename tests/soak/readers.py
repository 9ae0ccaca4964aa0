# SPDX-License-Identifier: BSD-3-Clause
"""Processes that read through mounts, and check every value that they get.

A read is right when all of its elements are of one generation that was valid between its beginning
and its end (or `lag` seconds before: a mount follows its source within seconds), or when it fails
with an error that something of that time excuses (ledger.py). Everything else ends the run."""
import errno
import json
import os
import random
import re
import time
import zlib

import numpy as np

import values
from values import Wrong


class Unread(Exception):
    """A read that failed; number: its errno, 0 where libhdf5 said none."""

    def __init__(self, number, text):
        super().__init__(text)
        self.number = number


def as_unread(error):
    if isinstance(error, OSError) and error.errno:
        return Unread(error.errno, str(error))
    found = re.search(r"errno = (\d+)", str(error))
    return Unread(int(found.group(1)) if found else 0, f"{type(error).__name__}: {error}")


def read_all(path):
    """(bytes, size that fstat said before)"""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        parts = []
        while True:
            part = os.read(fd, 1 << 20)
            if not part:
                break
            parts.append(part)
        return b"".join(parts), size
    finally:
        os.close(fd)


class Worker:
    """What all processes of a run have: a number, a scene, random numbers of its own, a pace."""

    def __init__(self, run, number, scene):
        self.run, self.number, self.scene = run, number, scene
        self.led = run.led
        self.rng = random.Random(f"{run.seed}/{number}")
        self.failures = 0
        self.break_for = 0.0  # seconds until the next time
        self.formats = {}
        self.last = None

    def main(self):
        led, n, due = self.led, self.number, time.monotonic()
        while not led.stop[0]:
            led.started[n] = time.monotonic()
            try:
                self.once()
            except Wrong as why:
                self.fail(str(why))
            took = time.monotonic() - led.started[n]
            led.started[n] = 0
            led.ops[n] += 1
            if type(self) is Reader:  # writers wait for each other, and for what they disturb
                led.slow[n] = max(led.slow[n], took)
            due = max(due + self.run.interval, time.monotonic() - 1)
            self.pause(max(due - time.monotonic(), self.break_for))
            self.break_for = 0.0

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while not self.led.stop[0]:
            left = end - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(left, 0.2))

    def fail(self, text):
        self.failures += 1
        self.run.failed(f"{self.scene.name} worker {self.number}: {text}")
        if self.failures > 20:
            self.led.stop[0] = 1

    def dataset(self):
        """One of the scene's; the same for a while."""
        if self.last is None or self.rng.random() < self.scene.restless:
            self.last = self.rng.choice(self.scene.datasets)
        return self.last

    def excused(self, d, t0, why, what):
        """Count an error, or say that it should not have been."""
        self.led.errors[self.number, min(why.number, len(self.led.errors[0]) - 1)] += 1
        self.break_for = 0.02  # errors are quick
        allowed = self.led.allowed(self.scene.number, d, t0) | self.scene.excuses
        if why.number not in allowed:
            self.fail(f"{what}: unexpected error {errno.errorcode.get(why.number, why.number)}: "
                      f"{why}; allowed {sorted(allowed)}")


class Reader(Worker):
    def once(self):
        d = self.dataset()
        kind = self.rng.random()
        if d.show == "nc":
            todo = self.nc_raw if kind < 0.04 else self.nc
        elif kind < 0.80:
            todo = self.tree_chunk
        else:
            todo = (self.tree_list, self.tree_attributes, self.tree_zarr)[
                0 if kind < 0.88 else 1 if kind < 0.96 else 2]
        with d.shared_lock():
            before, t0 = int(self.led.lo[d.id]), time.monotonic()
            try:
                todo(d, before, t0)
                self.led.good[self.number] += 1
            except Wrong:
                if not self.led.is_soiled(d.id, t0):
                    raise
            except Unread as why:
                self.excused(d.id, t0, why, f"{d.name} {todo.__name__}")

    # ---- the answer is one that could be ----
    def settle(self, d, var, row, g, before, t0, what):
        if d.written:
            return
        late = self.led.check(d.id, g, before, t0, var is not None and var.small)
        if late is None:
            raise Wrong(f"{d.name} {what}: generation {g}, but {self.led.hi[d.id]} is the last")
        self.led.stale[self.number] = max(self.led.stale[self.number], late)
        if late > self.led.lag and not self.slow_excuse(t0):
            raise Wrong(f"{d.name} {what}: generation {g} was over {late:.1f} s before the read "
                        f"({before} was the last)")

    def slow_excuse(self, t0):
        """Who cannot open, or ask, cannot follow."""
        return any(self.led.is_excused(self.scene.number, r, t0, self.led.lag)
                   for r in ("few", "fault", "down"))

    def chunk(self, d, var, row, data, before, t0, what):
        try:
            g = values.seen(data, d.id, var, row)
        except Wrong as why:
            led, now = self.led, time.monotonic()
            raise Wrong(f"{d.name} {what} generations {led.lo[d.id]} to {led.hi[d.id]}, read in "
                        f"{now - t0:.1f} s, changed {now - led.quiet[d.id]:.1f} s ago, rewritten "
                        f"in place {now - led.clean[d.id]:.1f} s ago: {why}") from None
        self.led.bytes[self.number] += data.nbytes
        self.settle(d, var, row, g, before, t0, f"{what} {var.name}[{row}]")
        return g

    # ---- Zarr trees ----
    def where(self, d, *more):
        return os.path.join(self.scene.mnt, d.at, *more)

    def read(self, path):
        try:
            return read_all(path)
        except OSError as error:
            raise as_unread(error) from None

    def form(self, raw, what):
        """(codecs to undo, dtype) of a .zarray"""
        if raw not in self.formats:
            import numcodecs
            try:
                doc = json.loads(raw)
            except ValueError:
                raise Wrong(f"{what}: no JSON: {raw[:80]!r} ({len(raw)} bytes)") from None
            codecs = [numcodecs.get_codec(c) for c in (doc["filters"] or [])]
            if doc["compressor"]:
                codecs.append(numcodecs.get_codec(doc["compressor"]))
            if len(self.formats) > 500:
                self.formats.clear()
            self.formats[raw] = codecs, np.dtype(doc["dtype"]), tuple(doc["chunks"])
        return self.formats[raw]

    def decode(self, data, form, what):
        codecs, dtype, _ = form
        try:
            for codec in reversed(codecs):
                data = codec.decode(data)
            return np.frombuffer(data, dtype)
        except Exception as error:  # noqa: B902 - whatever a decoder makes of wrong bytes
            raise Wrong(f"{what}: not decodable: {type(error).__name__}: {error} "
                        f"({len(data)} bytes: {bytes(data[:24]).hex()})") from None

    def tree_chunk(self, d, before, t0):
        var = self.rng.choice(d.variables)
        row = self.rng.randrange(var.rows)
        raw, size = self.read(self.where(d, var.name, ".zarray"))
        form = self.form(raw, f"{d.name}/{var.name}/.zarray")
        if form[2] != (1, var.elems):  # one chunk of a contiguous array may be several rows
            return self.tree_rows(d, var, form, before, t0)
        if d.written:
            return self.tree_written(d, var, row, form, t0)
        what = f"{d.name}/{var.name}/{row}.0"
        data, size = self.read(self.where(d, var.name, f"{row}.0"))
        if len(data) != size:
            raise Wrong(f"{what}: {len(data)} bytes of a file of {size}")
        self.chunk(d, var, row, self.decode(data, form, what), before, t0, "chunk")
        return None

    def tree_rows(self, d, var, form, before, t0):
        data, _ = self.read(self.where(d, var.name, "0.0"))
        a = self.decode(data, form, f"{d.name}/{var.name}/0.0")
        rows, g = form[2][0], set()
        for r in range(min(rows, var.rows)):
            g.add(self.chunk(d, var, r, a[r * var.elems:(r + 1) * var.elems], before, t0, "row"))
        if len(g) > 1:
            raise Wrong(f"{d.name}/{var.name}/0.0: rows of generations {sorted(g)}")

    def tree_written(self, d, var, row, form, t0):
        """Of chunks that are written through the mount: what was confirmed, or is being written."""
        led, at = self.led, d.cell(var, row)
        kept, torn = int(led.kept[d.id, at]), int(led.torn[d.id, at])
        what = f"{d.name}/{var.name}/{row}.0"
        try:
            data, size = self.read(self.where(d, var.name, f"{row}.0"))
            if len(data) != size:
                raise Wrong(f"{what}: {len(data)} bytes of a file of {size}")
            if not data:
                again, size = self.read(self.where(d, var.name, f"{row}.0"))
                raise Wrong(f"{what}: empty; then {len(again)} bytes")
            a = self.decode(data, form, what)
            g = values.seen(a, d.id, var, row)
        except (Wrong, Unread):
            if torn % 2 or led.torn[d.id, at] != torn:
                return  # it was being written in its place
            raise
        led.bytes[self.number] += a.nbytes
        if not kept <= g <= led.tried[d.id, at]:
            raise Wrong(f"{what}: generation {g}, confirmed was {kept} and "
                        f"{led.tried[d.id, at]} tried")

    def tree_list(self, d, before, t0):
        var = self.rng.choice(d.variables)
        try:
            names = set(os.listdir(self.where(d, var.name)))
        except OSError as error:
            raise as_unread(error) from None
        missing = {".zarray"} - names
        if var.kind != "cont":
            missing |= {f"{r}.0" for r in range(var.rows)} - names
        if missing and not self.led.allowed(self.scene.number, d.id, t0):
            raise Wrong(f"{d.name}/{var.name}: the listing has no {sorted(missing)[:5]}")
        if missing:
            raise Unread(errno.EIO, "part of a listing")

    def tree_attributes(self, d, before, t0):
        var = self.rng.choice(d.variables + [None])
        path = self.where(d, *([var.name] if var else []), ".zattrs")
        raw, size = self.read(path)
        try:
            g = json.loads(raw)["generation"]
        except (ValueError, KeyError):
            raise Wrong(f"{path}: {raw[:100]!r} ({len(raw)} bytes of {size})") from None
        self.led.bytes[self.number] += len(raw)
        self.settle(d, None, 0, int(g), before, t0, path)

    def tree_zarr(self, d, before, t0):
        """A whole variable, as programs read it. zarr-python takes every error of a look-up for
        absence: what is 0 must be so because the chunk is absent, and none is."""
        import zarr
        var = self.rng.choice(d.variables)
        if d.written:
            return self.tree_attributes(d, before, t0)
        try:
            a = zarr.open_group(self.where(d), mode="r")[var.name][...]
        except OSError as error:
            raise as_unread(error) from None
        except (zarr.errors.GroupNotFoundError, zarr.errors.PathNotFoundError, KeyError) as error:
            raise Unread(0, f"{type(error).__name__}: {error}") from None
        except (RuntimeError, ValueError, zlib.error) as error:
            if self.led.allowed(self.scene.number, d.id, t0):
                raise Unread(0, str(error)) from None
            raise Wrong(f"{d.name}/{var.name}: {type(error).__name__}: {error}") from None
        for r in range(var.rows):
            try:
                self.chunk(d, var, r, a[r], before, t0, "zarr")
            except Wrong:
                # zarr-python takes a file that it may not look up for an absent one, and leaves
                # its place in memory as it was where there is no fill value
                if self.led.allowed(self.scene.number, d.id, t0):
                    raise Unread(0, "a chunk that was absent for zarr-python") from None
                raise
        return None

    # ---- virtual netCDF-4 files ----
    def nc(self, d, before, t0):
        import h5py
        got = []
        try:
            with h5py.File(self.where(d), "r") as f:
                attribute = int(f.attrs["generation"])
                for _ in range(self.rng.randint(1, 3)):
                    var = self.rng.choice(d.variables)
                    row = self.rng.randrange(var.rows)
                    at = d.cell(var, row) if d.written else 0
                    kept = int(self.led.kept[d.id, at])
                    got.append((var, row, f[var.name][row], kept))
        except (OSError, KeyError, RuntimeError, ValueError) as error:
            failed = as_unread(error)
        else:
            failed = None
            self.settle(d, None, 0, attribute, before, t0, "attribute")
        for var, row, a, kept in got:
            g = self.chunk(d, var, row, a, before, t0, "nc")
            top = self.led.tried[d.id, d.cell(var, row)] if d.written else g
            if d.written and not kept <= g <= top:
                raise Wrong(f"{d.name} {var.name}[{row}]: generation {g}, confirmed was {kept} "
                            f"and {top} tried")
        if failed:
            raise failed

    def nc_raw(self, d, before, t0):
        """The file as bytes: as many as were said."""
        data, size = self.read(self.where(d))
        if len(data) != size or data[:8] != b"\x89HDF\r\n\x1a\n":
            raise Wrong(f"{d.name}: {len(data)} bytes of {size}, begins {data[:8]!r}")
        self.led.bytes[self.number] += len(data)
