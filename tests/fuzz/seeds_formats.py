#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""seeds_formats.py: the first inputs of the targets that read parts of datasets (zarr, h5raw,
verify, zip), written anew in tests/fuzz/seeds. What run.py --merge found stays. Deterministic but
for what libhdf5 writes of the time."""
import io
import os
import struct
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(HERE, "seeds")
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

import mutated  # noqa: E402

SIZE_MAX = 4000
TREES_MAX = 36


def put(target, inputs):
    folder = os.path.join(SEEDS, target)
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.isdigit():
            os.unlink(os.path.join(folder, name))
    for i, data in enumerate(inputs):
        with open(os.path.join(folder, f"{i:02}"), "wb") as f:
            f.write(data)
    print(f"{target}: {len(inputs)} inputs, {sum(map(len, inputs))} bytes")


def changes(*of):
    """An input of fuzz_verify.c."""
    return b"\1" + b"".join(struct.pack("<I", place)[:3] + bytes([width, kind])
                            + struct.pack("<Q", value)[:6] for place, width, kind, value in of)


def archives():
    made = []
    for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
        for top in "", "top/":
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", method) as z:
                for name in ".zgroup", "v/.zarray", "v/0", "v/1", "w/c/0/1":
                    z.writestr(zipfile.ZipInfo(top + name), name.encode() * 9,
                               compress_type=method)
                z.comment = b"" if top else b"comment"
            made.append(out.getvalue())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z, z.open(zipfile.ZipInfo("a"), "w", force_zip64=True) as f:
        f.write(b"zip64")
    return made + [out.getvalue()]


def main():
    trees, files = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, data in mutated.generated_trees(folder):
            if kind != "zip" and len(data) <= SIZE_MAX:
                trees[kind, name] = data
        for _, name, data in mutated.new_style(folder):
            if len(data) <= 2 * SIZE_MAX:
                files.append(data)
        for kind, name, data in mutated.generated(folder):
            if kind == "hdf5" and len(data) <= SIZE_MAX and len(files) < 14:
                files.append(data)
    chosen = [trees[k] for k in sorted(trees)]
    chosen = chosen[::max(1, -(-len(chosen) // TREES_MAX))]
    put("zarr", [bytes([(37 * i) & 255 if i % 4 else 0x0e | (i << 3 & 0xf0)]) + data
                 for i, data in enumerate(chosen)])
    put("h5raw", files)
    put("zip", archives())
    put("verify", [b"\1", b"\0"] + [changes((64 + 8 * i, 3, i % 4, i), (700 + 24 * i, 2, 2, 3))
                                  for i in range(16)])


if __name__ == "__main__":
    main()
