# SPDX-License-Identifier: BSD-3-Clause
"""Every array of an HDF5 file that has filters, as stock zarr-python reads it from the mount,
against the file's own chunks.

Those are decoded here by formulas (tests/lib/h5_chunks.py), so that no HDF5 plugin is needed; where
there is none, by libhdf5. The report has a line for each array: verdict, chain, path. Verdicts:
formula, libhdf5 (equal to that), error (EIO, with a message that names the filter and what can be
done), empty (no chunk is stored), vlen (of elements without a fixed size: compare_zarr has them),
damaged (libhdf5 cannot read it either), nobody (there is nothing to compare with)."""
import json
import zlib

import numpy as np

from clients import compare_zarr, oracle
from lib import h5_chunks

LIMIT = 64 << 20  # bytes of an array


def by_formula(d):
    """The whole array; None when a filter has no formula here, or a type is not plain."""
    chain = h5_chunks.filters_of(d.id.get_create_plist())
    if d.dtype.kind == "O" or d.dtype.subdtype or d.dtype.hasobject or (
            d.dtype.itemsize != d.id.get_type().get_size()):
        return None
    try:
        out = np.full(d.shape, d.fillvalue, d.dtype)
    except RuntimeError:  # the fill value is undefined
        out = np.zeros(d.shape, d.dtype)
    size = int(np.prod(d.chunks)) * d.dtype.itemsize
    for i in range(d.id.get_num_chunks()):
        at = d.id.get_chunk_info(i).chunk_offset
        try:
            mask, stored = d.id.read_direct_chunk(at)
        except RuntimeError as error:
            if "not allocated" not in str(error):
                raise
            return None  # libhdf5 1.10 loses count in some of the newer indexes
        edge = any(o + c > n for o, c, n in zip(at, d.chunks, d.shape))
        try:
            raw = h5_chunks.decode(chain, mask, stored, size, d.dtype.itemsize)
        except zlib.error:
            if not (edge and len(stored) == size):
                raise
            raw = stored  # edges may be left as they are
        if raw is None:
            return None
        part = np.frombuffer(raw, d.dtype).reshape(d.chunks)
        place = tuple(slice(o, min(o + c, n)) for o, c, n in zip(at, d.chunks, d.shape))
        out[place] = part[tuple(slice(0, s.stop - s.start) for s in place)]
    return out


def by_library(d):
    try:
        return d[()]
    except (OSError, ValueError, TypeError):
        return None


def check_error(root, entry, why, problems):
    """The metadata is there, every read is an error, and the message is of use."""
    path = entry["path"]
    z = root[path.strip("/")]
    if not any(str(f["id"]) in why for f in entry["filters"]):
        problems.add(path, f"the message names no filter: {why}")
    if "HDF5_PLUGIN_PATH" not in why:
        problems.add(path, f"the message says nothing of plugins: {why}")
    try:
        z[...] if z.shape else z[()]
    except OSError:
        return
    problems.add(path, f"it can be read although info says: {why}")


def verdict(d, root, entry, problems):
    if entry["problem"]:
        check_error(root, entry, entry["problem"], problems)
        return "error"
    if entry["plan"] == "vlen":
        return "vlen"
    if d.id.get_num_chunks() == 0:
        return "empty"
    z = root[entry["path"].strip("/")]
    want, how = by_formula(d), "formula"
    if want is None:
        want, how = by_library(d), "libhdf5"
    if want is None:
        try:
            z[...]
        except OSError:
            return "damaged"
        return "nobody"
    want = np.asarray(want)
    got = z[tuple(slice(0, n) for n in z.shape)]
    got = got[tuple(slice(0, n) for n in want.shape[:got.ndim])]
    packed = compare_zarr.pack(want, got.dtype)
    got = got.reshape(packed.shape) if got.size == packed.size else got
    if not compare_zarr.same_bytes(packed, got):
        problems.add(entry["path"], f"{entry['filters']}: "
                     + compare_zarr.first_difference(packed, got))
    return how


def compare(file, mnt, info, report):
    """info: what `info --json` says, a file. report: a file to append to."""
    import h5py
    import zarr
    h5_chunks.forget_plugins()
    problems = compare_zarr.Problems()
    model = oracle.Model(file)
    root = zarr.open_group(zarr.DirectoryStore(mnt), mode="r")
    for entry in compare_zarr.load_json(info)["variables"]:
        array = model.arrays.get(entry["path"])
        if not entry["filters"] or array is None or entry["plan"] == "hidden":
            continue
        d = h5py.Dataset(array.dataset)
        if d.size * d.dtype.itemsize > LIMIT:
            continue
        chain = [f["id"] for f in entry["filters"]]
        try:
            how = verdict(d, root, entry, problems)
        except Exception as error:  # noqa: B902
            problems.add(entry["path"], f"reading {chain} fails: {error!r:.300}")
            continue
        with open(report, "a") as out:
            out.write(json.dumps([how, chain, entry["path"]]) + "\n")
    problems.raise_any()

