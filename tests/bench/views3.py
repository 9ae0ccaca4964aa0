# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about classic netCDF files and about sharded views. scripts/bench calls each
of ROWS with itself: its helpers are used as B.name.

zarr-python 3 is in the Debian that scripts/peers-chroot makes (NCZARRFS_PEERS, build/peers/trixie):
without it, or without root, the rows that need it say so and are left out."""
import json
import os
import subprocess

import inputs

MIB = 1 << 20


# ---- classic netCDF files beside the bare server ----

def classic(B, kind, count, size):
    """A classic file of `count` chunks of `size` bytes, and where they are in it."""
    path = inputs.make(B.IN, f"classic-{kind}{B.MB}.nc", getattr(inputs, f"classic_{kind}"),
                       count, size)
    if not os.path.exists(path + ".ranges"):
        inputs.ranges(path, size, count, path + ".ranges")
    return path


def chunk_names(B, src, count, size):
    """The files of variable v, in order, after a look at how the mount cuts it."""
    with B.ours(src), open(f"{B.MNT}/v/.zarray") as f:
        meta = json.load(f)
    n = 4
    for c in meta["chunks"]:
        n *= c
    if n != size:
        raise SystemExit(f"bench: {src}: chunks of {n} bytes, not {size}")
    return [".".join([str(i)] + ["0"] * (len(meta["shape"]) - 1)) for i in range(count)]


def read_names(B, mount, directory, names, size):
    listed = f"{B.BUILD}/names"
    with open(listed, "w") as f:
        f.writelines(n + "\n" for n in names)
    touch = str(min(2 * len(names) * size // MIB + 64, 3000))
    with mount() as m:
        before = m.cpu()
        out = subprocess.run([f"{B.BUILD}/reader", "-l", listed, "-b", str(size), "--touch",
                              touch, directory], check=True, capture_output=True,
                             text=True).stdout
        got = json.loads(out.splitlines()[-1])
        got["cpu_mib"] = (m.cpu() - before) / (len(names) * size / MIB) * 1e6
    return got


def row_classic(B):
    for kind, what, size in (("fixed", "cut chunks of 4 MiB", 4 * MIB),
                             ("records", "records of 1 MiB", MIB)):
        count = max(B.MB * MIB // size, 1)
        src = classic(B, kind, count, size)
        B.warm(src)
        names = chunk_names(B, src, count, size)
        numbers = [str(i) for i in range(count)]
        got = B.alternate({
            "bare": lambda: read_names(B, lambda: B.bare(src), B.MNT, numbers, size),
            "ours": lambda: read_names(B, lambda: B.ours(src), f"{B.MNT}/v", names, size)})
        if got["bare"][0]["sum"] != got["ours"][0]["sum"]:
            raise SystemExit(f"bench: {src}: other bytes than the bare server's")
        r = B.pairs(got, "ours", "bare", "mb_s")
        B.row(f"classic, {what}, C: ours / bare", r, "x", ">= 0.95", r >= 0.95,
              "source warm, mount cold",
              f"{B.med(got, 'ours', 'mb_s'):.0f} / {B.med(got, 'bare', 'mb_s'):.0f} MB/s, of it "
              f"server cpu {B.med(got, 'ours', 'cpu_mib'):.0f} / "
              f"{B.med(got, 'bare', 'cpu_mib'):.0f} us a MiB", got)


# ---- shards, read by zarr-python 3 ----

# In a mount namespace of its own: the mount is seen inside for as long as the client runs.
ENTER = """mount --rbind "$1" "$2/mnt" &&
exec chroot "$2" env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 OPENBLAS_NUM_THREADS=1 python3 - /mnt/v
"""


def peers(B):
    """The directory with zarr-python 3 in it; None: there is none, and why was said."""
    path = os.environ.get("NCZARRFS_PEERS") or f"{B.TOP}/build/peers/trixie"
    if os.geteuid() != 0:
        print("  left out: zarr-python 3 is run by chroot, which only root can")
    elif not os.path.exists(f"{path}/.ready"):
        print("  left out: no zarr-python 3 here: scripts/peers-chroot")
    else:
        return path
    return None


def read_zarr3(B, path, mount):
    def run():
        with mount(), open(f"{B.TOP}/tests/bench/client3.py", "rb") as client:
            out = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                  ENTER, "sh", B.MNT, path], stdin=client, check=True,
                                 capture_output=True, text=True).stdout
        return json.loads(out.splitlines()[-1])
    return run


def row_shards(B):
    """Many small chunks: a file of each, or many in one."""
    print(f"{B.SMALL} chunks of 4 KiB, whole, zarr-python 3:")
    path = peers(B)
    if not path:
        return
    src = B.small()
    B.warm(src)
    got = B.alternate({"chunks": read_zarr3(B, path, lambda: B.ours(src, "zarr_format=3")),
                       "shards": read_zarr3(B, path, lambda: B.ours(src, "shards"))},
                      min(B.RUNS, 3))
    a, b = got["chunks"][0], got["shards"][0]
    if a["sum"] != b["sum"] or not b["shard"] or a["shard"]:
        raise SystemExit(f"bench: {src}: {b} with shards, {a} without")
    r = B.pairs(got, "chunks", "shards")
    B.row(f"{B.SMALL} x 4 KiB, zarr-python {b['zarr']}: chunks / shards", r, "x", ">= 1", r >= 1,
          "source warm, mount cold",
          f"{B.med(got, 'chunks'):.2f} / {B.med(got, 'shards'):.2f} s, "
          f"{b['shard'] // b['chunk']} chunks in a shard", got)


ROWS = {"classic": row_classic, "shards": row_shards}
