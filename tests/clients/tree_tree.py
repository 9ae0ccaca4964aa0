# SPDX-License-Identifier: BSD-3-Clause
"""A Zarr tree shown as a Zarr tree (view=zarr): zarr-python reads from the mount what the oracle
reads from the tree. What the model between cannot say differs as
docs/dev/reading/virtual-file.md has it: characters are UTF-8, times are integers with units,
attributes have netCDF's types."""
import numpy as np

from clients import mapping, tree

ADDED = ("_FillValue", "units", "calendar", "numpy_dtype", "dtype", "_Encoding")


def plain(v):
    """Whether an attribute keeps its form: no booleans, nulls, objects, lists of lists; one
    element is none of a list, numbers of a list have one type."""
    if isinstance(v, list):
        kinds = {type(x) for x in v}
        return len(v) > 1 and len(kinds) == 1 and kinds <= {int, float, str}
    return isinstance(v, (int, float, str)) and not isinstance(v, bool)


def same_attrs(path, want, got, problems):
    for key, value in want.items():
        if key == "_ARRAY_DIMENSIONS" or not plain(value):
            continue
        if repr(got.get(key)) != repr(value):  # repr: NaN is itself, 1 is not 1.0
            problems.append(f"{path}: attribute {key} is {got.get(key)!r}, not {value!r}")
    for key in set(got) - set(want) - set(ADDED):
        if key != "_ARRAY_DIMENSIONS":
            problems.append(f"{path}: attribute {key} comes from nowhere")


def stored(a):
    """Fields and times as the tree has them."""
    if a.dtype.kind in "mM":
        return a.view(a.dtype.str[0] + "i8")
    if a.dtype.names:
        def fields(t):
            if not t.names:
                return np.dtype(t.str[0] + "i8") if t.kind in "mM" else (
                    np.dtype("u1") if t.kind == "b" else t)
            return np.dtype([(n, fields(t[n].base), t[n].shape) for n in t.names])
        return np.ascontiguousarray(a).view(fields(a.dtype)).reshape(a.shape)
    return a


def same_values(a, b, problems):
    want, got = a.values(), b.values()
    if want.dtype.kind == "U":
        ok = mapping.texts(got) == mapping.texts(want)
    elif want.dtype.kind == "O":
        ok = all(x == y if isinstance(y, (str, bytes)) and isinstance(x, (str, bytes)) else
                 np.asarray(x).tobytes() == (y if isinstance(y, bytes) else
                                             np.asarray(y).tobytes())
                 for x, y in zip(got.ravel(), want.ravel()))
    else:
        want = stored(want)
        ok = got.dtype.newbyteorder("=") == want.dtype.newbyteorder("=") and (
            tree.bits(got.astype(want.dtype)) == tree.bits(want))
    if not ok:
        problems.append(f"{a.path}: {got.dtype} {got.ravel()[:3]}, {want.dtype} "
                        f"{want.ravel()[:3]} expected")


def compare(source, mnt):
    problems = []
    want, got = tree.load(source), tree.load(mnt)
    for path, attrs in want.groups.items():
        if path not in got.groups:
            problems.append(f"{path}: group is missing")
        else:
            same_attrs(path, attrs, got.groups[path], problems)
    for path, a in want.arrays.items():
        b = got.arrays.get(path)
        if b is None or b.shape != a.shape:
            problems.append(f"{path}: {b and b.shape}, shape {a.shape} expected")
            continue
        if a.dims and b.dims != a.dims:
            problems.append(f"{path}: dimensions {b.dims}, {a.dims} expected")
        same_attrs(path, a.attrs, b.attrs, problems)
        try:
            same_values(a, b, problems)
        except tree.Unreadable as why:
            print(f"{path}: not compared: {why}")
    assert not problems, "\n".join(problems[:30])
