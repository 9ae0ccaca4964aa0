# SPDX-License-Identifier: BSD-3-Clause
"""Codecs of Zarr against numcodecs, in both directions: what it encodes we decode, what we encode
it decodes, and both encode to the same bytes where they use the same library.

A row is a codec with its configurations and its arrays. A codec that is not built in, or that
cannot encode, is reported as skipped once the rest of its row has passed."""
import functools
import itertools
import warnings

import numpy as np

from lib import codec_data as data
from lib.codecs import CodecError, CodecTool
from lib.context import Skip

LIMIT = 60.0


def numcodecs_codec(config):
    import numcodecs
    return numcodecs.get_codec(dict(config))


def encoded(codec, a):
    """What numcodecs makes of an array, as bytes. Some of its codecs write into what they get."""
    from numcodecs.compat import ensure_bytes
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ensure_bytes(codec.encode(a.copy()))


def decoded(codec, stored):
    from numcodecs.compat import ensure_bytes
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ensure_bytes(codec.decode(stored))


def differ(label, what, got, want):
    """A message about two byte strings that ought to be equal."""
    at = next((i for i, (x, y) in enumerate(zip(got, want)) if x != y), min(len(got), len(want)))
    return (f"{label}: {what}: {len(got)} bytes, {len(want)} expected, the first difference at "
            f"{at}: {got[at:at + 16].hex()}, not {want[at:at + 16].hex()}")


def equal(label, what, got, want):
    if got != want:
        raise AssertionError(differ(label, what, got, want))


def fails(label, code, func, *args):
    try:
        got = func(*args)
    except CodecError as error:
        assert error.code == code, f"{label}: {error}, {code} expected"
        return
    raise AssertionError(f"{label}: {len(got)} bytes, {code} expected")


class Row:
    """config: a configuration or a function of the dtype that gives one. arrays: a function that
    yields (label, array). same: our bytes are numcodecs', but for no elements. place: filter or
    compressor. refuse: functions of an array that numcodecs cannot do, though we can."""

    def __init__(self, config, arrays, same=False, place="compressor", encode_refuses=None,
                 decode_refuses=None):
        self.config = config if callable(config) else lambda dtype: config
        self.arrays = arrays
        self.same = same
        self.place = place
        self.encode_refuses = encode_refuses or (lambda a: False)
        self.decode_refuses = decode_refuses or (lambda a: False)


def set_chain(tool, row, dtype, config):
    if row.place == "filter":
        tool.zarr2(dtype, [config])
    else:
        tool.zarr2(dtype, None, config)


def check_decode(tool, label, codec, row, a):
    """numcodecs encodes, we decode. Returns what the bytes mean and the bytes, or None."""
    if row.encode_refuses(a):
        return None
    stored = encoded(codec, a)
    want = a.tobytes() if row.decode_refuses(a) else decoded(codec, stored)
    equal(label, "decoded", tool.decode(stored, len(want)), want)
    equal(label, "decoded to an unknown length", tool.decode_any(stored, len(want)), want)
    fails(label + ", room for more", "EBADMSG", tool.decode, stored, len(want) + 1)
    if want:
        fails(label + ", room for less", "EBADMSG", tool.decode, stored, len(want) - 1)
        fails(label + ", less asked for", "ERANGE", tool.decode_any, stored, len(want) - 1)
    return want, stored


def check_encode(tool, label, codec, row, a, known, can):
    """We encode, numcodecs decodes."""
    mine = tool.encode(a.tobytes())
    equal(label, "encoded again", tool.encode(a.tobytes()), mine)
    want = known[0] if known and row.same or "lossy" in can else a.tobytes()
    if known and a.size and (row.same or "lossy" in can):
        equal(label, "encoded", mine, known[1])
    if not row.decode_refuses(a):
        equal(label, "numcodecs decodes ours", decoded(codec, mine), want)
    equal(label, "we decode ours", tool.decode(mine, len(want)), want)
    if "frame" in can:
        framed = tool.frame(a.tobytes())
        equal(label, "we decode the framed form", tool.decode(framed, a.nbytes), a.tobytes())
        if not row.decode_refuses(a):
            equal(label, "numcodecs decodes the framed form", decoded(codec, framed),
                  a.tobytes())


def run(rows, t):
    """Rows of one codec."""
    missing, n = None, 0
    with CodecTool(t) as tool:
        can = {c["zarr2"]: c["can"] for c in tool.codecs()}
        for row in rows:
            for label, a in row.arrays():
                config = row.config(a.dtype)
                label = f"{config} {label}"
                have = can.get(config["id"])
                if not have:
                    raise Skip(f"codec '{config['id']}' is not built in")
                codec = numcodecs_codec(config)
                set_chain(tool, row, a.dtype, config)
                known = check_decode(tool, label, codec, row, a)
                if "encode" in have:
                    check_encode(tool, label, codec, row, a, known, have)
                else:
                    missing = config["id"]
                n += 1
    print(n, "arrays")
    if missing:
        raise Skip(f"codec '{missing}' cannot be encoded")


# ---- the rows ----

def few(dtypes=("|u1", "<f4", ">i8", "|S5"), lengths=(0,) + data.FEW):
    return functools.partial(data.arrays, dtypes, lengths)


def one_large(*kinds):
    return functools.partial(data.large, ("<f4",), kinds or data.KINDS)


def is_empty(a):
    return a.size == 0


def with_levels(name, levels, usual, same, member="level", **more):
    """The usual arrays at one level, a few at the others, large ones at the usual one."""
    rows = [Row({"id": name, member: usual}, data.usual, same, **more),
            Row({"id": name, member: usual}, data.large, same, **more)]
    return rows + [Row({"id": name, member: v}, few(), same, **more) for v in levels]


def blosc_rows():
    rows = []
    for cname, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"),
                                            (-1, 0, 1, 2)):
        config = {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle,
                  "blocksize": 0}
        rows.append(Row(config, few(lengths=(0, 1, 17, 250)), True, decode_refuses=is_empty))
        rows.append(Row(config, one_large("steps", "noise"), True))
        # a block size is not among the parameters that we keep
        rows.append(Row(dict(config, blocksize=4096), one_large("ramp")))
    usual = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    rows.append(Row(usual, data.usual, True, decode_refuses=is_empty))
    return rows + [Row(dict(usual, clevel=v), few(), True, decode_refuses=is_empty)
                   for v in (0, 1, 9)]


def bz2_rows():
    """Each call clears some megabytes, the more the higher the level."""
    return [Row({"id": "bz2", "level": 1}, data.usual, True),
            Row({"id": "bz2", "level": 9}, few(("<f4",), (0, 1, 17)), True),
            Row({"id": "bz2", "level": 1}, one_large("ramp", "noise"), True)]


def lzma_rows():
    """Large dictionaries take their time: the usual arrays with the smallest."""
    rows = [Row({"id": "lzma", "format": 1, "check": -1, "preset": 0}, data.usual, True),
            Row({"id": "lzma", "format": 1, "check": -1, "preset": 0}, one_large(), True)]
    for fmt, check, preset in ((1, -1, None), (1, 0, 1), (1, 1, 1), (1, 4, 1), (1, 10, 9),
                               (2, -1, None), (2, -1, 1)):
        rows.append(Row({"id": "lzma", "format": fmt, "check": check, "preset": preset,
                         "filters": None}, few(("<f4",), (0, 1, 17)), True))
    return rows


def elementsize(size):
    return {"id": "shuffle", "elementsize": size}


def fits(size):
    return lambda a: a.nbytes % size != 0


def shuffle_rows():
    """numcodecs refuses lengths that are no multiple of the element size."""
    rows = [Row(lambda t: elementsize(t.itemsize), data.usual, True, "filter"),
            Row(lambda t: elementsize(t.itemsize), data.large, True, "filter")]
    for size in (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32, 64, 1000):
        rows.append(Row(elementsize(size), few(("|u1",), (1, 3, 15, 16, 17, 255, 256, 2000, 4096,
                                                          12000)),
                        True, "filter", fits(size), fits(size)))
    return rows


def dtypes_of(config):
    return config["dtype"], config["astype"]


def delta_rows():
    """Differences that fit the stored type, and those that wrap where both are the same."""
    def config(astype):
        return lambda t: {"id": "delta", "dtype": t.str, "astype": astype or t.str}
    rows = [Row(config(None), functools.partial(data.arrays, data.INTEGERS), True, "filter",
                is_empty),
            Row(config(None), functools.partial(data.arrays, data.FLOATS, data.FEW,
                                                ("zeros", "ramp", "steps", "noise")),
                True, "filter", is_empty),
            Row(config(None), functools.partial(data.large, ("<i4", ">f8")), True, "filter")]
    pairs = (("<i4", "<i2"), ("<i4", "|i1"), (">i8", "<i4"), ("<u2", "<i4"), (">u4", ">i2"),
             ("<f8", "<f4"), ("<f4", "<f8"), ("<f8", "<i4"), ("<i2", "<f4"), ("<u8", "<i8"))
    return rows + [Row(config(astype), functools.partial(
        data.arrays, (dtype,), data.LENGTHS, ("zeros", "constant", "ramp", "steps")), True,
        "filter", is_empty) for dtype, astype in pairs]


def fixed_rows():
    rows = []
    for dtype, astype, scale, offset in (
            ("<f8", "<i2", 8, 10), ("<f4", "|u1", 2, 0), (">f8", ">i4", 1000, -5),
            ("<f8", "<f4", 0.1, 0), ("<f4", "<f4", 3, 1), (">f4", "<u2", 10, -1000),
            ("<f2", "<i4", 4, 1), ("<i4", "<i2", 1, 100), ("<i8", "<f8", 2, 7),
            ("|u1", "<i2", 1, -3)):
        config = {"id": "fixedscaleoffset", "dtype": dtype, "astype": astype, "scale": scale,
                  "offset": offset}
        rows.append(Row(config, functools.partial(
            data.arrays, (dtype,), data.LENGTHS, ("zeros", "constant", "ramp", "steps")), True,
            "filter"))
    return rows


def quantize_rows():
    rows = []
    for dtype, astype in (("<f4", "<f4"), (">f8", ">f8"), ("<f8", "<f4"), ("<f2", "<f4"),
                          (">f4", "<f2"), ("<f4", "<f8")):
        for digits in (0, 1, 2, 3, 7):
            config = {"id": "quantize", "digits": digits, "dtype": dtype, "astype": astype}
            rows.append(Row(config, functools.partial(
                data.arrays, (dtype,), (0,) + data.FEW,
                ("zeros", "ramp", "steps", "noise")), True, "filter"))
    return rows


def bitround_rows():
    return [Row({"id": "bitround", "keepbits": bits}, functools.partial(
        data.arrays, (dtype,), (0,) + data.FEW), False, "filter")
        for dtype, most in (("<f2", 10), ("<f4", 23), (">f4", 23), ("<f8", 52), (">f8", 52))
        for bits in (1, 5, most - 1, most) if np.dtype(dtype).isnative]


def astype_rows():
    """From every number to every other that can hold what it gets."""
    rows = []
    for dec, enc in itertools.product(data.NUMBERS + ["|b1"], repeat=2):
        config = {"id": "astype", "encode_dtype": enc, "decode_dtype": dec}
        rows.append(Row(config, functools.partial(
            data.arrays, (dec,), (0, 1, 17), ("zeros", "constant", "ramp")), True, "filter"))
    return rows


ROWS = {
    "zlib": with_levels("zlib", (0, 1, 6, 9), 4, False),
    "gzip": with_levels("gzip", (0, 1, 6, 9), 4, False),
    "bz2": bz2_rows(),
    "zstd": with_levels("zstd", (1, 9, 19), 3, True, decode_refuses=is_empty) + [
        # numcodecs 0.11 takes negative levels for its default
        Row({"id": "zstd", "level": -3}, few(), False, decode_refuses=is_empty)],
    "lz4": with_levels("lz4", (2, 100), 1, True, "acceleration", decode_refuses=is_empty),
    "lzma": lzma_rows(),
    "blosc": blosc_rows(),
    "shuffle": shuffle_rows(),
    "crc32": [Row({"id": "crc32"}, data.usual, True), Row({"id": "crc32"}, data.large, True)],
    "adler32": [Row({"id": "adler32"}, data.usual, True),
                Row({"id": "adler32"}, data.large, True)],
    "packbits": [Row({"id": "packbits"}, functools.partial(data.arrays, ("|b1",)), True,
                     "filter"),
                 Row({"id": "packbits"}, functools.partial(data.large, ("|b1",)), True,
                     "filter")],
    "delta": delta_rows(),
    "fixedscaleoffset": fixed_rows(),
    "quantize": quantize_rows(),
    "bitround": bitround_rows(),
    "astype": astype_rows(),
}


def cases():
    for name, rows in ROWS.items():
        yield name, functools.partial(run, rows)
