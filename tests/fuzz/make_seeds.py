#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_seeds.py [PROGRAM]: writes the inputs in tests/fuzz/seeds anew: what numcodecs and libhdf5
make of small arrays, in the form of fuzz_codec.c. A folder for each codec, called as FUZZ_CODEC
wants it; and some by hand for the other targets. PROGRAM: codec_tool, which says what the
parameters of Zarr's codecs are here, and encodes for filters that no other library here has."""
import os
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

from cases.zarr_view.test_codecs import encoded, numcodecs_codec  # noqa: E402
from gen import classic  # noqa: E402
from lib import codec_data as data  # noqa: E402
from lib import h5_chunks as h5  # noqa: E402
from lib.codecs import CodecTool  # noqa: E402

SEEDS = os.path.join(HERE, "seeds")
SIZE_MAX = 1000

ZARR = [
    {"id": "gzip", "level": 1}, {"id": "zstd", "level": 1}, {"id": "lz4"}, {"id": "zlib"},
    {"id": "bz2", "level": 1}, {"id": "lzma", "preset": 0},
    {"id": "lzma", "format": 2, "preset": 0}, {"id": "crc32"}, {"id": "adler32"},
    {"id": "shuffle", "elementsize": 4},
] + [{"id": "blosc", "cname": c, "clevel": 5, "shuffle": s}
     for c, s in (("blosclz", 1), ("lz4", 2), ("lz4hc", 0), ("zlib", 1), ("zstd", 2))]
TYPED = [
    ("<i4", {"id": "delta", "dtype": "<i4", "astype": "<i2"}),
    (">f8", {"id": "delta", "dtype": ">f8"}),
    ("<f8", {"id": "fixedscaleoffset", "dtype": "<f8", "astype": "<i2", "scale": 2,
             "offset": 1}),
    ("<f8", {"id": "quantize", "dtype": "<f8", "astype": "<f4", "digits": 2}),
    ("<f4", {"id": "bitround", "keepbits": 5}),
    ("<i4", {"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<i4"}),
    ("|b1", {"id": "packbits"}),
]
HDF5 = [
    (h5.DEFLATE, 5), (h5.SHUFFLE,), (h5.FLETCHER32,), (h5.SZIP, 4, 8), (h5.SZIP, 32, 16),
    (h5.NBIT,), (h5.SCALEOFFSET, 2, 0), (h5.SCALEOFFSET, 2, 5), (h5.SCALEOFFSET, 0, 2),
    (h5.LZF,), (h5.BZIP2, 1), (h5.BLOSC, 0, 0, 0, 0, 5, 1, 1), (h5.LZ4,), (h5.LZ4, 64),
]
OURS = [  # by formula, or by this program
    (h5.ZSTD, 3), (h5.BITSHUFFLE, 0, 0), (h5.BITSHUFFLE, 16, 2), (h5.BITSHUFFLE, 0, 3, 3),
    (h5.BITGROOM, 3), (h5.GRANULARBR, 3), (32032, 3),
]
STRUCT = [("a", "<i2"), ("b", ">f8"), ("c", "S3")]


SPECS = [
    "307,9", "*,zstd,5", "v1&/g/v2,shuffle|deflate,4", "v3,none", "1,5|2|3", "none", "32000",
    "*,blosc,0,0,0,0,5,1,1", "*,bitgroom,3", "/g*,granularbr,5", "bitround,9", "v,szip,32,8",
    "*,307,-17b,23ub,-25S,27US,77,93U,12345678.5f,12345678.5d,-9223372036854775807L",
    "lz4,18446744073709551615UL", "*,32008,0,2|fletcher32|gzip,3", "/a/b\\&c&d?[e-g],lzma",
]


def answer(rc, kind, payload, how=0):
    """One answer of a plugin's process, as fuzz_plugin.c reads it."""
    return bytes([0, how, -rc, kind, len(payload)]) + payload


def entry(what, number, can, name):
    return struct.pack("<III64s", what, number, can, name)


FILTER = struct.pack("<I", 3) + entry(1, 500, 127, b"some filter; see there")
PLUGIN = [
    answer(0, 8, FILTER) * 2 + answer(0, 4, b"\1\2\3") * 6,
    answer(0, 8, FILTER + entry(2, 500, 127, b"some")) + answer(0, 8, FILTER)
    + answer(-74, 0, b"damaged") * 3 + answer(0, 0, b"{\"id\": \"fuzz\"}") * 3,
    answer(0, 8, bytes(4)) + b"\1" * 8 + answer(0, 3 * 4, b"x" + b"\xff" * 8),
    answer(0, 4 | 16, b"abc" + bytes(2)) * 4 + answer(-5, 0, b"", 2) * 3, bytes(60),
]
CHAINS = [bytes([n, 0, 4, trip, 40, 0]) + bytes((7 * k + first) % 23 for k in range(22 * n))
          + bytes(range(40)) for n in (1, 2, 4) for trip in (0, 1) for first in (1, 9)]


class Context:
    """What CodecTool wants of a test."""

    def __init__(self, program, folder):
        self.binary = os.path.join(os.path.dirname(program), "..", "nczarrfs")
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def number(self):
        return 1


def put(names, spec, elem, size, stored):
    folder = os.path.join(SEEDS, names[spec[0]])
    os.makedirs(folder, exist_ok=True)
    head = struct.pack("<B", len(spec) - 1) + b"".join(struct.pack("<I", v) for v in spec[1:])
    out = head + struct.pack("<BI", elem, size) + stored
    if len(out) <= SIZE_MAX:
        with open(os.path.join(folder, f"{len(os.listdir(folder)):02}"), "wb") as f:
            f.write(out)


def arrays(dtype):
    yield data.array(dtype, 1, "ramp")
    yield data.array(dtype, 40, "ramp")
    yield data.array(dtype, 20, "noise")
    yield data.array(dtype, 300, "steps")


def zarr(tool, names):
    for dtype, config in [("<i4", c) for c in ZARR] + TYPED:
        spec = tool.zarr2(dtype, [config])[0]
        for a in arrays(dtype):
            put(names, spec, a.itemsize, a.nbytes, encoded(numcodecs_codec(config), a))


def of_crc32c(tool, names):
    for number in (n for n, name in names.items() if name.startswith("crc32c")):
        for a in arrays("<i4"):
            tool.h5([(number,)], 4)
            put(names, (number,), 4, a.nbytes, tool.encode(a.tobytes()))


def hdf5(names):
    with h5.File() as file:
        for f in HDF5:
            floats = f[0] == h5.SCALEOFFSET and f[1] == 0
            types = ("<f4", ">f8") if floats else ("<i4", ">i2")
            for dtype in types + ((STRUCT,) if f[0] == h5.NBIT else ()):
                for a in arrays(dtype):
                    try:
                        dset = file.dataset(dtype, a.shape, [f])
                    except h5.Refused:
                        continue
                    mask, stored = dset.write(a)
                    if not mask and f[0] in names:
                        put(names, dset.filters()[0], a.itemsize, a.nbytes, stored)


def ours(tool, names):
    for f in OURS:
        for dtype in ("<f4", "<f8"):
            for a in arrays(dtype) if f[0] in names else ():
                tool.h5([f], a.itemsize)
                spec = f if f[0] == 32032 else tool.prepare(dtype, a.shape)[0]
                stored = a.tobytes() if f[0] == 32032 else tool.encode(a.tobytes())
                put(names, spec, a.itemsize, a.nbytes, stored)


def by_hand():
    for name, inputs in (("spec", [x.encode() for x in SPECS]), ("plugin", PLUGIN),
                         ("codecs", CHAINS)):
        folder = os.path.join(SEEDS, name)
        os.makedirs(folder, exist_ok=True)
        for i, data_ in enumerate(inputs):
            with open(os.path.join(folder, f"{i:02}"), "wb") as f:
                f.write(data_)


def classic_files():
    """Of each version, of one record variable, of a number of records that is not written."""
    made = [classic.mixed(1, 2), classic.mixed(2, 2), classic.mixed(5, 2),
            classic.single(1, classic.SHORT, 5), classic.odd_names(),
            classic.mixed(1, 3, numrecs=classic.STREAMING)]
    folder = os.path.join(SEEDS, "cdf")
    os.makedirs(folder, exist_ok=True)
    for i, c in enumerate(made):
        c.write(os.path.join(folder, f"{i:02}"))


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else
                              os.path.join(ROOT, "build", "tests", "codec_tool"))
    with tempfile.TemporaryDirectory() as folder:
        with CodecTool(Context(program, folder)) as tool:
            names = {c["id"]: f"{c['name']}-{c['id']}" for c in tool.codecs()
                     if "plugin" not in c["can"]}
            for name in names.values():
                for base, _, files in os.walk(os.path.join(SEEDS, name)):
                    for f in files:
                        os.unlink(os.path.join(base, f))
            zarr(tool, names)
            of_crc32c(tool, names)
            hdf5(names)
            ours(tool, names)
    by_hand()
    classic_files()
    total = sum(os.path.getsize(os.path.join(b, f)) for b, _, fs in os.walk(SEEDS) for f in fs)
    print(f"{len(names)} codecs, {total} bytes")


if __name__ == "__main__":
    main()
