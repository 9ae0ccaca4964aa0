# SPDX-License-Identifier: BSD-3-Clause
"""Values that say where they belong: the generation of a dataset in the upper bits, and below them
14 bits that follow from the dataset, the variable and the index of the element. Whoever reads a
chunk knows from it alone whether it is whole, whose it is and of which generation. No value is 0,
which is what is shown for what was never written."""
import numpy as np

LOW_BITS = 14
LOW = (1 << LOW_BITS) - 1
SMALL = 0xFF  # generations of variables whose numbers have 24 bits are known modulo 256


class Wrong(Exception):
    """A value that must not have been read."""


class Var:
    """A variable of `rows` chunks of `elems` elements each."""

    def __init__(self, number, name, kind, rows, elems):
        self.number, self.name, self.kind = number, name, kind
        self.rows, self.elems = rows, elems
        self.dtype = np.dtype("<f8" if kind == "f8" else "<i4")
        self.small = kind == "low"


def low(dataset, var, row):
    """The lower bits of the elements of one chunk."""
    i = np.arange(row * var.elems, (row + 1) * var.elems, dtype=np.uint32)
    i = i * np.uint32(2654435761) + np.uint32((dataset * 769 + var.number * 97 + 1) * 40503 &
                                              0xFFFFFFFF)
    return (i >> np.uint32(32 - LOW_BITS)).astype(np.int32)


def chunk(generation, dataset, var, row):
    g = (generation & SMALL) if var.small else generation
    return (low(dataset, var, row) | np.int32(max(g, 0) << LOW_BITS)).astype(var.dtype)


def whole(generation, dataset, var):
    return np.stack([chunk(generation, dataset, var, r) for r in range(var.rows)])


def seen(data, dataset, var, row):
    """The generation (modulo 256 of a small one) that all of these elements are of."""
    if data.shape != (var.elems,):
        raise Wrong(f"{var.name}[{row}]: shape {data.shape}, expected ({var.elems},)")
    a = data.astype(np.int32)
    if data.dtype.kind == "f" and not (a == data).all():
        raise Wrong(f"{var.name}[{row}]: no whole numbers")
    g = a >> LOW_BITS
    bad = (a & LOW) != low(dataset, var, row)
    if bad.any() or g.min() != g.max():
        at = int(np.argmax(bad)) if bad.any() else int(np.argmax(g != g[0]))
        kinds, counts = np.unique(g, return_counts=True)
        raise Wrong(f"{var.name}[{row}]: {int(bad.sum())} of {a.size} elements wrong, "
                    f"{int((a == 0).sum())} are 0; first at {at}: {int(a[at])}; generations "
                    f"{dict(zip(kinds[:6].tolist(), counts[:6].tolist()))}")
    return int(g[0])
