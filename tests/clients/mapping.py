# SPDX-License-Identifier: BSD-3-Clause
"""How a value of a Zarr array looks in netCDF-4, for the comparers of virtual files: the table of
docs/dev/reading/virtual-file.md once more, written apart from the program."""
import re

import numpy as np

CF = {"D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds",
      "us": "microseconds", "ns": "nanoseconds"}


def present(a):
    """An array of the oracle as h5py should give it. Texts of a fixed size are compared by text,
    see texts()."""
    kind = a.dtype.kind
    if kind == "b":
        return a.astype("i1")
    if kind in "mM":
        return a.view(a.dtype.str[0] + "i8")
    if a.dtype.names and _odd(a.dtype):
        return np.ascontiguousarray(a).view(_fields(a.dtype)).reshape(a.shape)
    return a


def _odd(dtype):
    """Whether a structure has fields that netCDF has no type for."""
    return any(dtype[n].base.kind in "bmMUS" or (dtype[n].base.names and _odd(dtype[n].base))
               for n in dtype.names)


def _fields(dtype):
    """Booleans as bytes, times as int64, characters as code points, texts as characters."""
    out = []
    for n in dtype.names:
        base, shape = dtype[n].base, dtype[n].shape
        if base.kind == "b":
            base = np.dtype("u1")
        elif base.kind in "mM":
            base = np.dtype(base.str[0] + "i8")
        elif base.kind == "U":
            base, shape = np.dtype(base.str[0] + "u4"), shape + (base.itemsize // 4,)
        elif base.kind == "S" and base.itemsize > 1:
            base, shape = np.dtype("S1"), shape + (base.itemsize,)
        elif base.names:
            base = _fields(base)
        out.append((n, base, shape) if shape else (n, base))
    return np.dtype(out)


def name(n):
    """A name as netCDF takes it; docs/dev/reading/virtual-file.md has the rule."""
    ok = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
    meant = n.startswith(("_nc4_non_coord_", "_%")) or re.search("%[0-9A-F]{2}", n)
    head = n[:1] not in ok and n[:1] < "\x80" or n.startswith(("_nc4_non_coord_", "_%"))
    if n and not head and not meant and n[-1] != " " and not re.search("[\0-\x1f\x7f/]", n):
        return n
    out = "_" if head else ""
    for i, c in enumerate(n):
        bad = c < " " or c in "\x7f/%" or i == 0 and head or i + 1 == len(n) and c == " "
        out += f"%{ord(c):02X}" if bad else c
    return out if n else "_%00"


def path(p):
    """A path of such names."""
    return "/".join(name(n) if n else "" for n in p.split("/"))


def texts(a):
    """Any kind of text as a list of str, trailing NULs cut off."""
    out = []
    for x in np.asarray(a).ravel():
        if isinstance(x, bytes):
            x = x.decode("utf-8", "surrogateescape")
        out.append(str(x).rstrip("\0"))
    return out


def is_text(dtype):
    return dtype.kind in "SUO"


def units(dtype):
    """CF units of a time, or None."""
    if dtype.kind not in "mM":
        return None
    unit, n = np.datetime_data(dtype)
    if n != 1 or unit not in CF:
        return None
    return CF[unit] + (" since 1970-01-01" if dtype.kind == "M" else "")
