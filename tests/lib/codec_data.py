# SPDX-License-Identifier: BSD-3-Clause
"""Arrays for tests of codecs: every kind of element, in both byte orders, in lengths that do not
suit anybody, with contents that compress well, badly and not at all. Always the same ones."""
import numpy as np

INTEGERS = ["|i1", "|u1"] + [o + k + s for o in "<>" for k in "iu" for s in "248"]
FLOATS = [o + "f" + s for o in "<>" for s in "248"]
NUMBERS = INTEGERS + FLOATS
OTHERS = ["|b1", "<c8", ">c16", "|S1", "|S5", "<U3", ">U1", "|V7", "<M8[s]", ">m8[ms]",
          [("a", "<i2"), ("b", ">f8"), ("c", "|u1")]]
ALL = NUMBERS + OTHERS

# 0 and 1; around 8 and 16, the widths of vectors and groups of bits; around a power of two
LENGTHS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100, 127, 128, 255, 257, 1000)
FEW = (1, 3, 17, 250)
LARGE = (1 << 20) + 9  # bytes: several blocks of all formats but bzip2's
KINDS = ("zeros", "constant", "ramp", "steps", "noise", "extremes")


def name_of(dtype):
    dtype = np.dtype(dtype)
    return "struct" if dtype.names else dtype.str


def _numbers(dtype, n, kind, rng):
    i = np.arange(n)
    if kind == "zeros":
        return np.zeros(n, dtype)
    if kind == "constant":
        return np.full(n, 93, dtype)
    if kind == "ramp":
        return (i % 120).astype(dtype)
    if kind == "steps":
        return (np.cumsum(rng.randint(0, 3, n)) // 5 % 100).astype(dtype)
    if dtype.kind == "f":
        return _floats(dtype, n, kind, rng)
    if kind == "noise":
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype)
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.max, 0, info.max // 2, 1], dtype)
    return ends[i % len(ends)]


def _floats(dtype, n, kind, rng):
    """Noise is finite; extremes are not, and hold NaN with a payload and what is denormal."""
    i = np.arange(n)
    if kind == "noise":
        sign = rng.randint(0, 2, n) * 2 - 1
        return (sign * 10.0 ** rng.uniform(-4, 4, n)).astype(dtype)
    info = np.finfo(dtype)
    with np.errstate(over="ignore"):
        ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny,
                         info.tiny / 4, 1 / 3], dtype)
    return ends[i % len(ends)]


def array(dtype, n, kind):
    """n elements, read-only."""
    dtype = np.dtype(dtype)
    rng = np.random.RandomState(n + 7 * len(kind))
    if dtype.kind in "iuf":
        a = _numbers(dtype, n, kind, rng)
    elif dtype.kind == "b":
        a = _numbers(np.dtype("u1"), n, kind, rng) % 2 == 1
    elif dtype.kind == "c":
        part = _numbers(np.dtype("f8"), 2 * n, kind, rng)
        a = np.empty(n, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            a.real, a.imag = part[::2], part[1::2]
    elif dtype.kind == "U":
        a = _numbers(np.dtype("u1"), n, kind, rng).astype("u4").astype(str).astype(dtype)
    else:
        raw = _numbers(np.dtype("u1"), n * dtype.itemsize, kind, rng)
        a = np.frombuffer(raw.tobytes(), dtype)
    a = np.ascontiguousarray(a)
    a.setflags(write=False)
    return a


def arrays(dtypes=ALL, lengths=LENGTHS, kinds=KINDS):
    """(label, array) of all combinations."""
    for dtype in dtypes:
        for n in lengths:
            for kind in kinds if n else KINDS[:1]:
                yield f"{name_of(dtype)} {n} {kind}", array(dtype, n, kind)


def large(dtypes=("|u1", "<f4", ">i8"), kinds=KINDS, size=LARGE):
    """Arrays of several blocks; the last element is cut off where it does not fit."""
    for dtype in dtypes:
        yield from arrays([dtype], (size // np.dtype(dtype).itemsize,), kinds)


def usual():
    """What every codec of bytes is tried with: all types in a few lengths, all lengths of two."""
    yield from arrays(ALL, (0,) + FEW)
    yield from arrays(["|u1", "<i4"], LENGTHS)
