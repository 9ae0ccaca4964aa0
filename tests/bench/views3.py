"""Rows of `make bench` about classic netCDF files and about sharded views. scripts/bench calls each
of ROWS with itself: its helpers are used as B.name."""
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
    with mount():
        out = subprocess.run([f"{B.BUILD}/reader", "-l", listed, "-b", str(size), "--touch",
                              touch, directory], check=True, capture_output=True,
                             text=True).stdout
    return json.loads(out.splitlines()[-1])


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
              f"{B.med(got, 'ours', 'mb_s'):.0f} / {B.med(got, 'bare', 'mb_s'):.0f} MB/s", got)


ROWS = {"classic": row_classic}
