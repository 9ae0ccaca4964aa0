# SPDX-License-Identifier: BSD-3-Clause
"""zarr-python 3 and its xarray, on a writable mount of a netCDF-4 file: they see there what
they see in a directory that they wrote, before and after everything is in the file. They are
in Debians of their own: without `make peers` these tests are skipped."""
import functools
import os

from lib import peers
from lib.context import ROOT, Skip

LIMIT = 120.0
ZARR = ("create", "partial", "fill", "resize", "append", "attrs", "group", "consolidate")
XARRAY = ("xarray_new", "xarray_append", "xarray_variable", "xarray_region")
SHARDS = ("shards",)
LIKE = ("shape", "chunks", "dims", "attrs", "dtype", "bits", "fill", "error")


def use(peer):
    path = os.path.join(os.environ.get("NCZARRFS_PEERS_DIR") or os.path.join(ROOT,
                                                                             "build", "peers"),
                        peer)
    os.environ["NCZARRFS_PEERS"] = path
    peers.root()


def work(t, names, form, *roots):
    path = peers.root()
    peers._install(path, "rw_zarr3.py", "opt")
    for root in roots:
        peers.enter(t, "zarr-python 3", path, ["python3", "-W", "ignore", "/opt/rw_zarr3.py",
                                               peers.inside(t, root), str(form), *names], 60)


def attrs(found):
    return {k: v for k, v in found.items() if k not in ("_ARRAY_DIMENSIONS", "_FillValue")}


def through(a, b):
    """What a netCDF-4 file makes of a: dimensions have names, a fill value of zeros is none."""
    if a["dims"] is None and all(d.startswith("phony_dim") for d in b["dims"] or ()):
        a = dict(a, dims=b["dims"])
    if b["fill"] is None and (not a["fill"] or a["dims"] is None):
        a = dict(a, fill=None)
    return a


def same(native, got, when):
    bad = []
    for path in sorted(set(native["arrays"]) | set(got["arrays"])):
        a, b = native["arrays"].get(path), got["arrays"].get(path)
        if not a or not b:
            bad.append(f"{path} is {'missing' if a else 'one too many'}")
            continue
        a = through(a, b)
        for key in LIKE:
            x, y = a.get(key), b.get(key)
            if key == "attrs":
                x, y = attrs(x), attrs(y)
            if x != y and not (x != x and y != y):
                bad.append(f"{path}: {key} is {str(y)[:80]}, {str(x)[:80]} expected")
    for path in sorted(set(native["groups"]) | set(got["groups"])):
        a, b = native["groups"].get(path), got["groups"].get(path)
        if a is None or b is None or attrs(a["attrs"]) != attrs(b["attrs"]):
            bad.append(f"group {path}: {b}, {a} expected")
    assert not bad, f"{when}:\n" + "\n".join(bad[:20])


def run(peer, form, names, t):
    use(peer)
    native, file = t.path("native"), t.path("new.nc")
    os.mkdir(native)
    with t.mount(file, "rw", "create") as m:    # no format, no shards: as they are written
        work(t, names, form, native, m.path)
        seen = peers.read(t, "zarr-python 3", {"native": native, "mount": m.path})
        same(seen["native"], seen["mount"], "staged")
    with t.mount(file, f"zarr_format={form}") as m:
        after = peers.read(t, "zarr-python 3", {"mount": m.path})["mount"]
    same(seen["native"], after, "in the file")


def cases():
    whole = peers.everything() or os.environ.get("NCZARRFS_WRITING_ALL") == "1"
    for peer in "trixie", "forky":
        for form in 2, 3:
            for label, names in ("zarr", ZARR), ("xarray", XARRAY), ("shards", SHARDS):
                if names == SHARDS and form == 2:
                    continue
                if not whole and (peer == "trixie") != (form == 2):
                    continue  # one format of each
                yield f"{label}-{peer}-v{form}", functools.partial(run, peer, form, names)
