# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `make bench` about Zarr trees as virtual netCDF-4 files. scripts/bench calls rows(B) with
itself: its helpers are used as B.name."""
import json
import os
import shutil
import subprocess
import time

import inputs

MIB = 1 << 20


def tree_of(B, name, compressor, shuffle):
    """The deflated file's variable as a Zarr tree."""
    def write(out):
        import netCDF4
        import numcodecs
        import zarr
        shutil.rmtree(out, ignore_errors=True)
        with netCDF4.Dataset(B.deflated()) as f:
            v = f["v"]
            filters = [numcodecs.Shuffle(4)] if shuffle else None
            codec = {"zlib": numcodecs.Zlib(4), "blosc": numcodecs.Blosc(), "none": None}
            z = zarr.open_group(out, mode="w").create_dataset(
                "v", shape=v.shape, chunks=(1, 512, 512), dtype="<f4",
                compressor=codec[compressor],
                filters=filters, fill_value=None)
            for t in range(v.shape[0]):
                z[t] = v[t].data
            z.attrs["_ARRAY_DIMENSIONS"] = ["time", "y", "x"]
    return inputs.make(B.IN, f"{name}{B.MB}.zarr", write)


def virtual(B, tree):
    return f"{B.MNT}/{os.path.basename(tree).removesuffix('.zarr')}.nc"


def copy_of(B, tree):
    """The virtual file as a real one: the same chunks."""
    def write(out):
        with B.ours(tree):
            shutil.copyfile(virtual(B, tree), out)
    return inputs.make(B.IN, os.path.basename(tree) + ".nc", write)


def row_passed(B):
    tree = tree_of(B, "zlib", "zlib", True)
    real = copy_of(B, tree)
    B.warm(tree)
    B.warm(real)
    got = B.alternate({
        "mount": B.read_by("h5py", lambda: B.ours(tree), virtual(B, tree), "v"),
        "real": B.read_by("h5py", B.Native, real, "v")})
    r = B.pairs(got, "mount", "real")
    B.row("virtual, passed through: h5py / real file", r, "x", "<= 1.15", r <= 1.15,
          "tree warm, mount cold", f"{B.med(got, 'mount'):.2f} / {B.med(got, 'real'):.2f} s", got)


def row_decoded(B):
    real = B.deflated()
    B.warm(real)
    for name, compressor, options in (("filter=none", "zlib", ("filter=none",)),
                                      ("Blosc", "blosc", ())):
        tree = tree_of(B, compressor, compressor, compressor == "zlib")
        B.warm(tree)
        got = B.alternate({
            "real": B.read_by("h5py", B.Native, real, "v"),
            "mount": B.read_by("h5py", lambda t=tree, o=options: B.ours(t, *o),
                               virtual(B, tree), "v")})
        r = B.pairs(got, "real", "mount")
        B.row(f"virtual, {name}: h5py on deflated file / mount", r, "x", ">= 2.5", r >= 2.5,
              "tree warm, mount cold", f"{B.med(got, 'real'):.2f} / {B.med(got, 'mount'):.2f} s",
              got)


def dd(path):
    start = time.perf_counter()
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=1M"], check=True,
                   stderr=subprocess.DEVNULL)
    return {"seconds": time.perf_counter() - start}


def row_dd(B):
    """The whole file by dd, against a server that hands out one range of a real file."""
    tree = tree_of(B, "raw", "none", False)
    real = copy_of(B, tree)
    size = os.path.getsize(real)
    whole = B.IN + "/whole.nc"  # the bare server takes its ranges from beside the file
    if not os.path.lexists(whole):
        os.symlink(real, whole)
    with open(whole + ".ranges", "w") as f:
        f.write(f"0 {size}\n")
    B.warm(tree)
    B.warm(real)

    def on(mount, path):
        def run():
            with mount():
                return dd(path)
        return run
    got = B.alternate({"ours": on(lambda: B.ours(tree), virtual(B, tree)),
                       "bare": on(lambda: B.bare(whole), f"{B.MNT}/0")})
    r = B.pairs(got, "bare", "ours")
    B.row("virtual, passed through: dd, throughput / bare", r, "x", ">= 0.9", r >= 0.9,
          "tree warm, mount cold",
          f"{size / MIB / B.med(got, 'ours'):.0f} / {size / MIB / B.med(got, 'bare'):.0f} MB/s",
          got)


def row_classic(B):
    """A netCDF-4 file by dd as a classic one, against nccopy to a file and reading that."""
    src = B.deflated()
    copy = B.IN + "/classic-copy.nc"
    B.warm(src)

    def mounted():
        with B.ours(src, "view=classic"):
            return dd(f"{B.MNT}/{os.path.basename(src)}")

    def copied():
        start = time.perf_counter()
        subprocess.run(["nccopy", "-k", "64-bit offset", src, copy], check=True)
        dd(copy)
        return {"seconds": time.perf_counter() - start}
    got = B.alternate({"copy": copied, "mount": mounted})
    os.unlink(copy)
    r = B.pairs(got, "copy", "mount")
    B.row("classic, decoded: nccopy and dd / dd on mount", r, "x", ">= 1.5", r >= 1.5,
          "source warm, mount cold",
          f"{B.med(got, 'copy'):.2f} / {B.med(got, 'mount'):.2f} s", got)


def many_chunks(out, count):
    """count chunks of 64 bytes, deflated to different sizes."""
    import zlib
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(f"{out}/v")
    with open(f"{out}/.zgroup", "w") as f:
        f.write('{"zarr_format": 2}')
    with open(f"{out}/v/.zarray", "w") as f:
        json.dump({"zarr_format": 2, "shape": [count * 16], "chunks": [16], "dtype": "<i4",
                   "compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": 0,
                   "order": "C"}, f)
    kinds = [zlib.compress(bytes(j * k % 251 for j in range(64)), 1) for k in range(7)]
    for i in range(count):
        with open(f"{out}/v/{i}", "wb") as f:
            f.write(kinds[i % 7])


def row_opening(B):
    count = 100000
    tree = inputs.make(B.IN, f"many{count}.zarr", many_chunks, count)

    def walk():
        out = subprocess.run([f"{B.BUILD}/walk", f"{tree}/v", "1"], check=True,
                             capture_output=True, text=True).stdout
        return json.loads(out)

    def first_look():
        with B.ours(tree):
            pids = B.server_pids()
            before = B.peak_mib(pids)
            start = time.perf_counter()
            size = os.stat(virtual(B, tree)).st_size
            return {"seconds": time.perf_counter() - start, "size": size,
                    "chunk": (B.peak_mib(pids) - before) * MIB / count}
    walk()
    got = B.alternate({"ours": first_look, "walk": walk})
    s = B.med(got, "ours")
    B.row("virtual, 100,000 chunks: first look", s, "s", "< 2", s < 2, "directory warm", "", got)
    r = B.pairs(got, "ours", "walk")
    B.row("  ... against readdir and fstatat in C", r, "x", "<= 1.3", r <= 1.3, "directory warm",
          f"{s:.3f} / {B.med(got, 'walk'):.3f} s")
    m = B.med(got, "ours", "chunk")
    B.row("  ... memory a chunk, everything counted", m, "bytes", "<= 200", m <= 200, "", "")


def rows(B):
    row_passed(B)
    row_decoded(B)
    row_dd(B)
    row_classic(B)
    row_opening(B)
