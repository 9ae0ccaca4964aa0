# SPDX-License-Identifier: BSD-3-Clause
"""Damaged chunks: what a codec encoded is cut, lengthened, has bits flipped, sizes that lie, and is
decoded with parameters that a hostile file could have. Whatever comes, the process lives, gives as
many bytes as were declared or an error, and never asks for memory that the chunk cannot need; with
sanitizers it touches no byte that is not its own. Formats with a checksum give no wrong bytes."""
import functools
import random
import struct

import numpy as np

from lib import codec_data as data
from lib import h5_chunks as h5
from lib.codecs import CodecError, CodecTool
from lib.context import Skip

LIMIT = 60.0
MEMORY = {"lzma": 768, "lzma_alone": 768}  # MiB; an encoder of preset 9 has 674
EDGES = (0, 1, 2, 7, 0xff, 0x100, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff)
DECODE_ERRORS = ("EBADMSG", "EOPNOTSUPP")
ANY_ERRORS = DECODE_ERRORS + ("ERANGE",)


def arrays(dtype):
    yield data.array(dtype, 40, "ramp")
    yield data.array(dtype, 24, "noise")
    yield data.array(dtype, 3000, "steps")
    yield data.array(dtype, 1, "ramp")


def cuts(stored, rng):
    places = range(len(stored))
    if len(stored) > 200:
        places = sorted(rng.sample(places, 60)) + list(range(16)) + [len(stored) - 1]
    return [stored[:n] for n in places]


def longer(stored, rng):
    return [stored + more for more in (b"\0", b"\xff", bytes(4), rng.randbytes(5), bytes(200),
                                       stored, rng.randbytes(3000))]


def flips(stored, rng):
    """Every bit of the head and the tail, some of the rest."""
    n = len(stored)
    places = set(range(min(n, 40))) | set(range(max(n - 12, 0), n))
    places |= set(rng.sample(range(n), min(n, 40)))
    for at in sorted(places):
        for bit in range(8):
            out = bytearray(stored)
            out[at] ^= 1 << bit
            yield bytes(out)


def fields(stored, rng, size):
    """Numbers of two, four and eight bytes where a head or a tail may have one."""
    n = len(stored)
    for at in sorted(set(range(min(n, 24))) | set(range(max(n - 12, 0), n))):
        for v in EDGES + (size - 1, size + 1, n, n + 1, rng.getrandbits(32)):
            for form in ("<H", "<I", ">I", "<Q", ">Q"):
                width = struct.calcsize(form)
                if at + width > n or v < 0 or rng.randrange(6):
                    continue
                out = bytearray(stored)
                struct.pack_into(form, out, at, v & ((1 << 8 * width) - 1))
                yield bytes(out)


def others(rng):
    yield b""
    for n in (1, 2, 3, 4, 7, 8, 11, 12, 16, 17, 64, 1000):
        yield bytes(n)
        yield b"\xff" * n
        yield rng.randbytes(n)


def try_decode(tool, stored, size, label):
    """The bytes, or None where the tool says that they are damaged."""
    try:
        got = tool.decode(stored, size)
    except CodecError as error:
        assert error.code in DECODE_ERRORS, f"{label}: {error}"
        got = None
    try:
        some = tool.decode_any(stored, size)
        assert len(some) <= size, f"{label}: {len(some)} bytes, at most {size} allowed"
        assert got is None or some == got, f"{label}: other bytes when the length is unknown"
    except CodecError as error:
        assert error.code in ANY_ERRORS, f"{label}: {error}"
    return got


def damage(tool, label, stored, raw, checked, rng):
    """Returns how many were tried and how many of them could be decoded."""
    n = good = 0
    for what, made, sure in (("cut", cuts(stored, rng), checked),
                             ("longer", longer(stored, rng), False),
                             ("flipped", flips(stored, rng), checked),
                             ("field", fields(stored, rng, len(raw)), False),
                             ("anything", others(rng), False)):
        for i, bad in enumerate(made):
            where = f"{label}, {what} {i}: {bad[:80].hex()}"
            got = try_decode(tool, bad, len(raw), where)
            good += got is not None
            assert not sure or got in (None, raw), where + ": wrong bytes in spite of a checksum"
            n += 1
        for size in (0, 1, len(raw) - 1, len(raw) + 1, 2 * len(raw), 1 << 20):
            if size != len(raw):
                assert try_decode(tool, stored, size, f"{label}, as {size} bytes") is None, (
                    f"{label}: {len(raw)} bytes taken for {size}")
    return n, good


def hostile(params, rng):
    """Parameters of a file that means no good."""
    yield ()
    yield params[:1]
    yield params[:-1]
    yield params + (0xffffffff,) * 12
    yield (0,) * len(params)
    yield (0xffffffff,) * len(params)
    for i in range(len(params)):
        for v in (0, 1, 2, 3, 8, 31, 33, 255, 65536, 0x7fffffff, 0x80000000, 0xffffffff,
                  params[i] + 1, params[i] - 1, rng.getrandbits(32)):
            yield params[:i] + (v & 0xffffffff,) + params[i + 1:]
    for _ in range(100):
        yield tuple(rng.choice((v, rng.choice(EDGES) & 0xffffffff, rng.randrange(40)))
                    for v in params)


def hostile_parameters(tool, label, chain, elem, stored, size, rng):
    for i, f in enumerate(chain):
        for params in hostile(tuple(f[1:]), rng):
            tool.h5(chain[:i] + [(f[0],) + params] + chain[i + 1:], elem)
            where = f"{label}, parameters {params}"
            try_decode(tool, stored, size, where)
            try:
                tool.encode(bytes(size))
            except CodecError as error:
                assert error.code in ("EOPNOTSUPP", "ERANGE", "EINVAL", "EBADMSG"), (
                    f"{where}: {error}")
    tool.h5(chain, elem)


class Row:
    """set: a function of (tool, dtype, chunk) that sets a chain and returns it as (id,
    parameter, ...). checked: the format has a checksum that finds every flipped bit."""

    def __init__(self, setter, dtypes=("<i4", ">f8", "|u1"), checked=False):
        self.set, self.dtypes, self.checked = setter, dtypes, checked


def zarr(*configs, **more):
    return Row(lambda tool, dtype, chunk: tool.zarr2(dtype, list(configs)), **more)


def visible(*filters, **more):
    """An HDF5 chain with the parameters that a user gives."""
    def setter(tool, dtype, chunk):
        tool.h5(filters, np.dtype(dtype).itemsize)
        return tool.prepare(dtype, chunk)
    return Row(setter, **more)


def libhdf5(*filters, **more):
    """The same with the parameters that libhdf5 stores; the chunk is its own."""
    row = visible(*filters, **more)
    row.file = True
    return row


def chunk_of(tool, row, file, dtype, a):
    """(chain, stored bytes, what they mean)."""
    if not hasattr(row, "file"):
        chain = row.set(tool, dtype, a.shape)
        stored = tool.encode(a.tobytes())
        return chain, stored, tool.decode(stored, a.nbytes)
    row_filters = row.set.__closure__[0].cell_contents
    dset = file.dataset(dtype, a.shape, row_filters)
    mask, stored = dset.write(a)
    chain = dset.filters()
    tool.h5(chain, a.dtype.itemsize)
    tool.decode(stored, a.nbytes, mask)
    return chain, stored, None if mask else dset.read(a.dtype).tobytes()


def run(name, row, t):
    rng = random.Random(name)
    counts = [0, 0]
    with CodecTool(t) as tool, h5.File() as file:
        tool.h5([(1,)])
        before = tool.memory()
        for dtype in row.dtypes:
            for a in arrays(dtype):
                try:
                    chain, stored, raw = chunk_of(tool, row, file, dtype, a)
                except CodecError as error:
                    if name.startswith("szip") and len(a) < 32:
                        continue  # a block is longer
                    if error.code == "EOPNOTSUPP":
                        raise Skip(str(error)) from None
                    raise
                if raw is None:
                    continue  # left out by libhdf5
                label = f"{name} {dtype} {len(a)}"
                n, good = damage(tool, label, stored, raw, row.checked, rng)
                counts[0] += n
                counts[1] += good
                hostile_parameters(tool, label, chain, a.dtype.itemsize, stored, a.nbytes, rng)
        more = tool.memory() - before
        assert t.sanitized or more < MEMORY.get(name, 64) << 20, f"{more >> 20} MiB of memory"
    print(f"{more >> 20} MiB; {counts[0]} damaged chunks, {counts[1]} of them decoded to something")


def blosc(cname, shuffle):
    return {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle}


ROWS = {
    "zlib": zarr({"id": "zlib", "level": 1}, checked=True),
    "gzip": zarr({"id": "gzip", "level": 1}, checked=True),
    "bz2": zarr({"id": "bz2", "level": 1}, checked=True, dtypes=("<i4",)),
    "lzma": zarr({"id": "lzma", "preset": 0}, checked=True, dtypes=("<i4",)),
    "lzma_alone": zarr({"id": "lzma", "format": 2, "preset": 0}, dtypes=("<i4",)),
    "zstd": zarr({"id": "zstd", "level": 1}),
    "lz4": zarr({"id": "lz4"}),
    "blosclz": zarr(blosc("blosclz", 1)),
    "blosc_lz4": zarr(blosc("lz4", 2)),
    "blosc_zstd": zarr(blosc("zstd", 0)),
    "blosc_zlib": zarr(blosc("zlib", 1)),
    "crc32": zarr({"id": "crc32"}, checked=True),
    "adler32": zarr({"id": "adler32"}, checked=True),
    "crc32c": zarr({"id": "crc32c"}, checked=True),
    "shuffle": zarr({"id": "shuffle", "elementsize": 4}),
    "packbits": zarr({"id": "packbits"}, dtypes=("|b1",)),
    "bitround": zarr({"id": "bitround", "keepbits": 5}, dtypes=("<f4", "<f8")),
    "delta": zarr({"id": "delta", "dtype": "<i4"}, dtypes=("<i4",)),
    "fixedscaleoffset": zarr({"id": "fixedscaleoffset", "dtype": "<f8", "astype": "<i2",
                              "scale": 2, "offset": 1}, dtypes=("<f8",)),
    "quantize": zarr({"id": "quantize", "dtype": "<f8", "astype": "<f4", "digits": 2},
                     dtypes=("<f8",)),
    "astype": zarr({"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<i4"},
                   dtypes=("<i4",)),
    "zarr_chain": zarr({"id": "delta", "dtype": "<i4"}, {"id": "shuffle", "elementsize": 4},
                       {"id": "crc32"}, {"id": "zstd"}, dtypes=("<i4",)),
    "fletcher32": visible((h5.FLETCHER32,), checked=True),
    "h5_shuffle": visible((h5.SHUFFLE,)),
    "h5_deflate": visible((h5.DEFLATE, 5), checked=True),
    "h5_lz4": visible((h5.LZ4,)),
    "h5_lz4_blocks": visible((h5.LZ4, 64)),
    "h5_bzip2": visible((h5.BZIP2, 1), checked=True, dtypes=("<i4",)),
    "h5_zstd": visible((h5.ZSTD, 3)),
    "h5_blosc": visible((h5.BLOSC, 0, 0, 0, 0, 5, 1, 1)),
    "szip_ec": visible((h5.SZIP, 4, 8)),
    "szip_nn": visible((h5.SZIP, 32, 16)),
    "scaleoffset": visible((h5.SCALEOFFSET, 2, 0), dtypes=("<i4", ">u2", "|i1", "<i8")),
    "scaleoffset_float": visible((h5.SCALEOFFSET, 0, 2), dtypes=("<f4", ">f8")),
    "nbit": libhdf5((h5.NBIT,), dtypes=(
        "<i4", ">f8", [("a", "<i2"), ("b", ">f8"), ("c", "S3")])),
    "lzf": visible((h5.LZF,)),
    "bitshuffle": visible((h5.BITSHUFFLE, 0, 0)),
    "bitshuffle_lz4": visible((h5.BITSHUFFLE, 0, 2)),
    "bitshuffle_zstd": visible((h5.BITSHUFFLE, 0, 3, 3)),
    "bitgroom": visible((h5.BITGROOM, 3), dtypes=("<f4", "<f8")),
    "granularbr": visible((h5.GRANULARBR, 3), dtypes=("<f4", "<f8")),
    "h5_chain": visible((h5.SHUFFLE,), (h5.DEFLATE, 1), (h5.FLETCHER32,)),
    "netcdf_chain": visible((h5.FLETCHER32,), (h5.SHUFFLE,), (h5.ZSTD, 1), checked=True),
}


# SEMANTICS E5
def cases():
    for name, row in ROWS.items():
        yield name, functools.partial(run, name, row)
