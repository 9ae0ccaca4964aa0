# SPDX-License-Identifier: BSD-3-Clause
"""What all processes of a run know: generations, what is being changed, what went wrong when; and
what each has done. Plain numbers in shared memory, each with one writer at a time.

A mutator says what it is going to do before it does it and when it is done, so that a reader knows
which generations, and which errors, are right between the beginning and the end of its read:

    begin(d, g)  g may be seen from now on           done(d, g)  what was before g is over
    spoil(d)     reading may be an error from now on  (until done, and LAG seconds longer)
    soil(d)      the source itself is half one generation and half another, until done
"""
import errno
import mmap
import time

import numpy as np

RING = 4096
ERRORS = 200
ROWS = 512  # of a dataset that is written through the mount
REASONS = ("down", "fault", "few", "kill", "full")
CHANGED = {errno.EIO, errno.ESTALE}
# The errors that each reason excuses. 0: libhdf5 said no number.
EXCUSED = {
    "down": {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ESTALE, errno.ENOENT,
             errno.ENODEV, errno.EBUSY, 0},
    "fault": {errno.EIO, errno.ESTALE, 0},
    # ESTALE: a dataset that was committed and cannot be opened again until there are some
    "few": {errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE, 0},
    "kill": {errno.EIO, 0},
    "full": {errno.ENOSPC, errno.EDQUOT, errno.EIO, 0},
}


def shared(shape, dtype="i8"):
    n = int(np.prod(shape)) * 8
    return np.frombuffer(mmap.mmap(-1, max(n, 8)), dtype)[:int(np.prod(shape))].reshape(shape)


class Ledger:
    def __init__(self, datasets, scenes, workers, lag):
        self.lag = lag
        # of datasets
        self.lo, self.hi = shared(datasets), shared(datasets)
        self.ended = shared((datasets, RING), "f8")
        self.busy, self.gone = shared(datasets), shared(datasets)
        self.quiet, self.back = shared(datasets, "f8"), shared(datasets, "f8")
        self.dirty, self.clean = shared(datasets), shared(datasets, "f8")
        self.mixed = shared(datasets)  # reads of such
        # of chunks of datasets that are written through a mount
        self.kept, self.tried = shared((datasets, ROWS)), shared((datasets, ROWS))
        self.torn = shared((datasets, ROWS))  # odd: being written in place
        # of scenes
        self.since = shared((scenes, len(REASONS)))
        self.until = shared((scenes, len(REASONS)), "f8")
        # of workers
        self.started = shared(workers, "f8")
        self.ops, self.good, self.bytes = shared(workers), shared(workers), shared(workers)
        self.stale = shared(workers, "f8")
        self.slow = shared(workers, "f8")
        self.errors = shared((workers, ERRORS))
        self.stop = shared(1)
        self.held = shared(1)  # writers wait

    # ---- of datasets ----
    def begin(self, d, g):
        self.hi[d] = g

    def done(self, d, g):
        now = time.monotonic()
        for old in range(int(self.lo[d]), g):
            self.ended[d, old % RING] = now
        self.lo[d] = g
        self.busy[d] = 0
        self.quiet[d] = now
        if self.dirty[d]:
            self.clean[d] = now
            self.dirty[d] = 0

    def spoil(self, d):
        self.busy[d] = 1

    def soil(self, d):
        self.spoil(d)
        self.dirty[d] = 1

    def is_soiled(self, d, t0):
        """Whether a read that began at t0 may be of a source that was such a mixture. What was
        read then is in caches until the change is noticed."""
        if not self.dirty[d] and self.clean[d] < t0 - self.lag:
            return False
        self.mixed[d] += 1
        return True

    def vanish(self, d):
        self.spoil(d)
        self.gone[d] = 1

    def appear(self, d):
        self.back[d] = time.monotonic()
        self.gone[d] = 0

    def check(self, d, g, before, t0, small=False):
        """The generation g that was read is one that could be; before: lo[d] when the read began,
        at t0. Returns for how long it was over."""
        top = int(self.hi[d])
        if small:
            g = top - ((top - g) & 0xFF)
        if g > top or g < 1:
            return None
        if g >= before or self.ended[d, g % RING] >= t0:
            return 0.0
        return t0 - float(self.ended[d, g % RING]) if before - g < RING else 1e9

    # ---- of scenes ----
    def excuse(self, s, reason, on):
        r = REASONS.index(reason)
        if not on:
            self.until[s, r] = time.monotonic()
        self.since[s, r] += 1 if on else -1

    def is_excused(self, s, reason, t0, more=0.0):
        r = REASONS.index(reason)
        return self.since[s, r] > 0 or self.until[s, r] >= t0 - more

    def allowed(self, s, d, t0):
        """The errors that a read which began at t0 may have."""
        codes = set()
        if d is not None:
            if self.busy[d] or self.quiet[d] >= t0 - self.lag:
                codes |= CHANGED | {0}
            if self.gone[d] or self.back[d] >= t0 - self.lag:
                codes |= {errno.ENOENT}
        for reason, some in EXCUSED.items():
            if self.is_excused(s, reason, t0, self.lag if reason != "kill" else 5.0):
                codes |= some
        return codes
