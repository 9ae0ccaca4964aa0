# SPDX-License-Identifier: BSD-3-Clause
"""HDF5 filters against libhdf5, in both directions: the chunk that it makes we decode, the one
that we make it reads, and the parameters that we prepare are those that it stores. Filters that it
has no code for are compared with the formulas of tests/lib/h5_chunks.py.

Filters of plugins (bzip2, lz4, blosc) need Debian's packages of them: those rows are skipped
without them, and are the only ones."""
import functools
import itertools
import os
import random
import warnings

import numpy as np
from h5py import h5t, h5z

from cases.zarr_view.test_codecs import equal, fails
from lib import codec_data as data
from lib import h5_chunks as h5
from lib.codecs import CodecError, CodecTool
from lib.context import Skip

LIMIT = 60.0

NUMBERS = [d for d in data.NUMBERS if d not in ("<f2", ">f2")]
TYPES = data.NUMBERS + ["|b1", "<c8", ">c16", "|S1", "|S5", "|V7",
                        [("a", "<i2"), ("b", ">f8"), ("c", "|u1")]]
LOSSLESS = ("zeros", "constant", "ramp", "steps", "noise", "extremes")


def usual(kinds=LOSSLESS, lengths=data.FEW + (8, 256), dtypes=TYPES):
    return data.arrays(dtypes, lengths, kinds)


def every_length(dtypes=("|u1", "<i4"), kinds=("ramp", "noise")):
    return data.arrays(dtypes, data.LENGTHS[1:], kinds)


def large(kinds=("steps", "noise"), dtypes=("|u1", "<f4", ">i8")):
    return data.large(dtypes, kinds)


def squares():
    """Chunks of two and three dimensions."""
    for label, a in data.arrays(("|u1", ">i2", "<i4", "<f8"), (360,), ("ramp", "noise")):
        for shape in ((10, 36), (3, 5, 24), (360, 1), (1, 360)):
            yield f"{label} {shape}", a.reshape(shape)


def all_of(*parts):
    return functools.partial(itertools.chain.from_iterable, (p() for p in parts))


def values(label, what, got, want):
    equal(label, what, np.ascontiguousarray(got).tobytes(), np.ascontiguousarray(want).tobytes())


class Case:
    """One array through one chain. same: our bytes are libhdf5's. params: what of the stored
    parameters is compared, a function of (id, parameters)."""

    def __init__(self, tool, file, filters, same=False, params=None):
        self.tool, self.file, self.filters, self.same = tool, file, filters, same
        self.params = params or (lambda f: f)
        codecs = tool.codecs()
        self.have = [next((c["can"] for c in codecs if c["id"] == f[0]), set()) for f in filters]
        for f, can in zip(filters, self.have):
            if "decode" not in can:
                raise Skip(f"filter {f[0]} is not built in")

    def can(self, what):
        return all(what in can for can in self.have)

    def prepared(self, label, a, want, fill=None):
        """Our parameters for what the user gave are libhdf5's; want: None where it refuses."""
        self.tool.h5(self.filters, a.dtype.itemsize)
        dtype = a.dtype
        if dtype.kind == "b" and self.filters[0][0] == h5.SZIP:
            dtype = np.dtype("u1")  # what h5py's enumeration is made of
        try:
            got = self.tool.prepare(dtype, a.shape, fill)
        except CodecError as error:
            assert want is None, f"{label}: {error}, but libhdf5 takes it"
            return
        assert want is not None, f"{label}: parameters {got}, but libhdf5 refuses"
        got, want = [self.params(f) for f in got], [self.params(f) for f in want]
        assert got == want, f"{label}: parameters {got}, libhdf5 has {want}"

    def run(self, label, a, tid=None, fill=None):
        label = f"{self.filters} {label}"
        prepares = any("prepare" in can for can in self.have)
        try:
            self.file.dataset(tid or a.dtype, a.shape, self.filters, h5z.FLAG_MANDATORY, fill)
        except h5.Refused:
            if prepares:
                self.prepared(label, a, None, fill)
            return
        dset = self.file.dataset(tid or a.dtype, a.shape, self.filters, fill=fill)
        working = dset.filters()
        mask, stored = dset.write(a)
        want = dset.read(a.dtype)
        if prepares:
            self.prepared(label, a, working, fill)
        self.tool.h5(working, a.dtype.itemsize)
        equal(label, "decoded", self.tool.decode(stored, a.nbytes, mask), want.tobytes())
        if mask:  # which libhdf5 would go on believing
            dset = self.file.dataset(tid or a.dtype, a.shape, self.filters, fill=fill)
        if self.can("encode"):
            self.encode(label, a, dset, mask, stored, want)

    def encode(self, label, a, dset, mask, stored, want):
        try:
            mine = self.tool.encode(a.tobytes())
        except CodecError as error:
            # what cannot be made smaller: libhdf5 left the filter out as well
            assert error.code == "EOPNOTSUPP" and mask, f"{label}: {error}"
            return
        if self.same and mask == 0:
            equal(label, "encoded", mine, stored)
        equal(label, "we decode ours", self.tool.decode(mine, a.nbytes), want.tobytes())
        dset.put(mine)
        values(label, "libhdf5 reads ours", dset.read(a.dtype), want)
        if self.can("frame") and want.tobytes() == a.tobytes():
            dset.put(self.tool.frame(a.tobytes()))
            values(label, "libhdf5 reads the framed form", dset.read(a.dtype), want)


def finish(case):
    """Called when a row has passed."""
    for f, can in zip(case.filters, case.have):
        if "encode" not in can:
            raise Skip(f"filter {f[0]} cannot be encoded")


def run(rows, needs, t):
    """rows: [(filters, arrays, options of Case)]."""
    h5.need(*needs)
    os.environ["BLOSC_NTHREADS"] = "1"  # more of them order their blocks by chance
    n, case = 0, None
    with CodecTool(t) as tool, h5.File() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for filters, arrays, more in rows:
            case = Case(tool, file, filters, **more)
            for label, a in arrays():
                case.run(label, a)
                n += 1
    print(n, "arrays")
    finish(case)


# ---- single filters ----

def row(filters, arrays, **more):
    return filters, arrays, more


def szip_rows():
    """Both codings and several block sizes; what libhdf5 does not take we do not prepare."""
    rows = [row([(h5.SZIP, 4, 8)], all_of(usual, every_length, squares)),
            row([(h5.SZIP, 32, 16)], all_of(usual, squares)),
            row([(h5.SZIP, 32, 32)], functools.partial(data.large, ("|u1", "<f4", ">i8"),
                                                       ("steps", "noise"), (1 << 18) + 8))]
    return rows + [row([(h5.SZIP, coding, pixels)], functools.partial(
        data.arrays, ("|u1", ">i2", "<i4", "<f8"), (1, 17, 100, 250, 1000),
        ("ramp", "steps", "noise")))
        for coding in (4, 32) for pixels in (2, 4, 10, 32)]


def scale_kinds(dtype):
    """Values whose span fits an integer: extremes do not fit a float's."""
    return LOSSLESS if np.dtype(dtype).kind in "iu" else ("zeros", "constant", "ramp", "steps")


def scaleoffset_params(f):
    """What is behind a fill value of its size is not set by libhdf5."""
    if f[0] != h5.SCALEOFFSET or len(f) < 9:
        return f
    words = (f[5] + 3) // 4 if f[8] else 0
    return f[:9 + words]


def scaleoffset_rows():
    rows = []
    for dtype in NUMBERS:
        kinds = scale_kinds(dtype)
        modes = ((2, 0), (2, 4), (2, 7)) if np.dtype(dtype).kind in "iu" else (
            (0, 0), (0, 2), (0, 5))
        for mode in modes:
            rows.append(row([(h5.SCALEOFFSET,) + mode], functools.partial(
                data.arrays, (dtype,), data.FEW + (8, 1000), kinds), same=True,
                params=scaleoffset_params))
    return rows


def bitshuffle_run(t):
    """Against the formula: blocks of several sizes, with LZ4 and Zstandard behind."""
    with CodecTool(t) as tool:
        can = next((c["can"] for c in tool.codecs() if c["id"] == h5.BITSHUFFLE), None)
        if not can:
            raise Skip("filter 32008 is not built in")
        for block, compression in itertools.product((0, 8, 64, 1024), (0, 2, 3)):
            arrays = usual(("ramp", "noise")) if block == 0 else data.arrays(
                ("|u1", "<i4"), (1, 7, 8, 63, 257, 1000), ("steps", "noise"))
            many = data.large(("<f4",), ("steps",), 100001) if block in (0, 1024) else ()
            for label, a in itertools.chain(arrays, many):
                bitshuffle_one(tool, label, a, block, compression, can)
    if "encode" not in can:
        raise Skip("filter 32008 cannot be encoded")


def bitshuffle_one(tool, label, a, block, compression, can):
    elem = a.dtype.itemsize
    params = (h5.BITSHUFFLE, 0, 4, elem, block, compression, 3)
    label = f"{params} {label}"
    tool.h5([params], elem)
    stored = h5.bitshuffle_encode(a.tobytes(), elem, block, compression)
    equal(label, "decoded", tool.decode(stored, a.nbytes), a.tobytes())
    if "encode" not in can:
        return
    mine = tool.encode(a.tobytes())
    equal(label, "decoded by the formula",
          h5.bitshuffle_decode(mine, elem, a.nbytes, block, compression), a.tobytes())
    if compression == 0:
        equal(label, "encoded", mine, stored)
    if "prepare" in can:
        tool.h5([(h5.BITSHUFFLE, block, compression, 3)], elem)
        got = tool.prepare(a.dtype, a.shape)[0]
        assert got[3:6] == (elem, block, compression), f"{label}: parameters {got}"


def zstd_run(t):
    """The filter is a frame of Zstandard, whatever the array."""
    with CodecTool(t) as tool:
        for label, a in itertools.chain(usual(), large()):
            tool.h5([(h5.ZSTD, 3)], a.dtype.itemsize)
            stored = h5.zstd_encode(a.tobytes())
            equal(label, "decoded", tool.decode(stored, a.nbytes), a.tobytes())
            mine = tool.encode(a.tobytes())
            equal(label, "encoded", mine, stored)
            equal(label, "the framed form", h5.zstd_decode(tool.frame(a.tobytes())), a.tobytes())


def lzf_rows():
    """Steps and noise are left out by libhdf5 where they do not become smaller. What liblzf makes
    is not the same every time, so that ours comes from other code."""
    return [row([(h5.LZF,)], all_of(usual, every_length, large))]


def blosc_rows():
    """Without any parameters the plugin takes blosclz, we lz4."""
    rows = [row([(h5.BLOSC,)], all_of(usual, every_length, large), same=True,
                params=lambda f: f[:5]),
            row([(h5.BLOSC, 0, 0, 0, 0, 5, 1, 1)], all_of(usual, every_length), same=True)]
    return rows + [row([(h5.BLOSC, 0, 0, 0, 0, level, shuffle, code)], functools.partial(
        data.arrays, ("|u1", "<f4", ">i8", "|S5"), data.FEW, ("ramp", "noise")), same=True)
        for level, shuffle, code in itertools.product((1, 5, 9), (0, 1, 2), (0, 1, 2, 4, 5))]


# ---- lossy filters, against netCDF-C, which has the same formulas ----

def quantized(arrays, mode, digits):
    """What netCDF-C stores of each array, by label."""
    import netCDF4
    if not getattr(netCDF4, "__has_quantization_support__", False):
        raise Skip("this netCDF-C cannot quantise")
    found = {}
    with netCDF4.Dataset("quantised", "w", diskless=True, persist=False) as nc:
        for i, (label, a) in enumerate(arrays):
            nc.createDimension(f"d{i}", len(a))
            v = nc.createVariable(f"v{i}", a.dtype, (f"d{i}",), significant_digits=digits,
                                  quantize_mode=mode, fill_value=FILL)
            v.set_auto_mask(False)
            v[:] = a
            nc.sync()
            found[label] = np.asarray(v[:]).tobytes()
    return found


FILL = 93.0  # which `constant` has everywhere, and `ramp` here and there


def quant_run(number, mode, t):
    with CodecTool(t) as tool:
        can = next((c["can"] for c in tool.codecs() if c["id"] == number), set())
        if "decode" not in can:
            raise Skip(f"filter {number} is not built in")
        # with 7 digits of a float netCDF-C shifts by negative numbers
        for dtype, most in (("<f4", 6), ("<f8", 15)):
            arrays = list(data.arrays((dtype,), data.FEW, ("zeros", "constant", "ramp", "steps",
                                                           "noise")))
            for digits in range(1, most + 1):
                want = quantized(arrays, mode, digits)
                tool.h5([(number, digits)], np.dtype(dtype).itemsize)
                got = tool.prepare(dtype, (10,), FILL)[0]
                assert got[:4] == (number, digits, np.dtype(dtype).itemsize, 1), got
                for label, a in arrays:
                    mine = tool.encode(a.tobytes())
                    equal(f"{digits} digits, {label}", "encoded", mine, want[label])
                    equal(f"{digits} digits, {label}", "decoded", tool.decode(mine, len(mine)),
                          mine)


# ---- nbit: types that numpy does not have ----

def nbit_types():
    """(label, type in the file, dtype, values that fit)."""
    for base, dtype in ((h5t.STD_I8LE, "|i1"), (h5t.STD_U16LE, "<u2"), (h5t.STD_U16BE, ">u2"),
                        (h5t.STD_I32LE, "<i4"), (h5t.STD_I32BE, ">i4"), (h5t.STD_U64LE, "<u8"),
                        (h5t.STD_I64BE, ">i8")):
        bits = 8 * np.dtype(dtype).itemsize
        for precision in sorted({1, 3, bits // 2, bits - 1, bits}):
            for offset in sorted({0, (bits - precision) // 2, bits - precision}):
                tid = base.copy()
                tid.set_precision(precision)
                tid.set_offset(offset)
                yield f"{dtype} {precision} bits at {offset}", tid, dtype
    for base, dtype in ((h5t.IEEE_F32LE, "<f4"), (h5t.IEEE_F64BE, ">f8")):
        yield dtype, base, dtype
    short = h5t.IEEE_F32LE.copy()  # a float of 20 bits: sign, 6 of exponent, 13 of fraction
    short.set_fields(26, 20, 6, 7, 13)
    short.set_offset(7)
    short.set_precision(20)
    short.set_size(4)
    short.set_ebias(31)
    yield "float of 20 bits", short, "<f4"


def nbit_compounds():
    part = h5t.STD_I32LE.copy()
    part.set_precision(17)
    odd = h5t.create(h5t.COMPOUND, 16)
    odd.insert(b"a", 0, part)
    odd.insert(b"s", 5, h5t.py_create(np.dtype("S3")))
    odd.insert(b"v", 8, h5t.array_create(h5t.STD_U8BE, (4,)))
    odd.insert(b"w", 12, h5t.STD_I16BE)
    yield "structure", odd
    yield "list of structures", h5t.array_create(odd, (2, 3))


def as_stored(tid, a):
    """The elements as the file's type has them, which is what a filter gets."""
    raw = a.copy()
    memory = h5t.py_create(raw.dtype, logical=True)
    h5t.convert(memory, tid, raw.size, raw)
    return raw


def nbit_run(t):
    with CodecTool(t) as tool, h5.File() as file:
        case = Case(tool, file, [(h5.NBIT,)], same=True)
        for label, tid, dtype in nbit_types():
            for n, kind in itertools.product((1, 7, 64, 1000), ("zeros", "ramp", "steps")):
                a = data.array(dtype, n, kind)
                small = a if a.dtype.kind == "f" else a & 1
                nbit_one(case, f"{label} {n} {kind}", tid, as_stored(tid, small))
        for label, tid in nbit_compounds():
            for n in (1, 9, 200):
                raw = np.frombuffer(data.array("|u1", n * tid.get_size(), "ramp").tobytes(),
                                    f"V{tid.get_size()}")
                nbit_one(case, f"{label} {n}", tid, raw)
    finish(case)


def nbit_one(case, label, tid, raw):
    """libhdf5 is given stored elements, so that it converts nothing."""
    tool = case.tool
    dset = case.file.dataset(tid, raw.shape, case.filters)
    working = dset.filters()
    dset.dset.write(h5.h5s.ALL, h5.h5s.ALL, raw, mtype=tid)
    mask, stored = dset.dset.read_direct_chunk(dset.at)
    want = np.empty_like(raw)
    dset.dset.read(h5.h5s.ALL, h5.h5s.ALL, want, mtype=tid)
    tool.h5(working, raw.dtype.itemsize)
    equal(label, "decoded", tool.decode(stored, raw.nbytes, mask), want.tobytes())
    if not case.can("encode"):
        return
    mine = tool.encode(raw.tobytes())
    equal(label, "encoded", mine, stored)
    dset.put(mine)
    again = np.empty_like(raw)
    dset.dset.read(h5.h5s.ALL, h5.h5s.ALL, again, mtype=tid)
    equal(label, "libhdf5 reads ours", again.tobytes(), want.tobytes())


# ---- chains ----

STOCK = ((h5.SHUFFLE,), (h5.DEFLATE, 5), (h5.FLETCHER32,))
FIRST = ((h5.SZIP, 4, 8), (h5.SCALEOFFSET, 2, 0), (h5.NBIT,))
PLUGINS = ((h5.BZIP2, 3), (h5.BLOSC, 0, 0, 0, 0, 5, 1, 1), (h5.LZ4, 64), (h5.LZF,))
TWICE = (h5.DEFLATE, h5.FLETCHER32, h5.BZIP2)


def chain_arrays():
    return data.arrays(("|u1", ">i2", "<i4", "<u8"), (1, 17, 1000), ("ramp", "steps", "noise"))


def chain_rows(first, others, more, seed):
    """Orders of two to four of `others`, behind each of `first`; `more` of them at random."""
    rng = random.Random(seed)
    chains = [list(c) for n in (2, 3) for c in itertools.permutations(others, n)]
    if len(chains) > more:
        chains = rng.sample(chains, more)
    # libhdf5 sets the parameters of the first of several shuffles alone
    chains += [rng.sample(others + tuple(f for f in others if f[0] in TWICE), 4)
               for _ in range(more // 4)]
    for f in first:
        chains += [[f] + list(c) for n in (1, 2, 3) for c in itertools.permutations(others, n)]
    return [row(c, chain_arrays) for c in chains]


def missing(tool, filters, what):
    have = {c["id"]: c["can"] for c in tool.codecs()}
    return [f[0] for f in filters if what not in have.get(f[0], ())]


def run_chains(rows, needs, t):
    """Chains with a filter that is not there yet are counted, and the rest is run."""
    h5.need(*needs)
    lacking = set()
    with CodecTool(t) as tool, h5.File() as file:
        for filters, arrays, more in rows:
            lacking.update(missing(tool, filters, "encode"))
            if missing(tool, filters, "decode"):
                continue
            case = Case(tool, file, filters, **more)
            case.params = scaleoffset_params
            for label, a in arrays():
                case.run(label, a)
    if lacking:
        raise Skip(f"filters {sorted(lacking)} cannot be encoded")


def masks(t):
    """Every subset of a chain's filters left out, as the mask of the chunk says."""
    chain = [(h5.SHUFFLE,), (h5.DEFLATE, 5), (h5.FLETCHER32,), (h5.DEFLATE, 1)]
    with CodecTool(t) as tool, h5.File() as file:
        for label, a in data.arrays(("|u1", "<i2", ">f8"), (1, 17, 1000), ("ramp", "noise")):
            working = file.dataset(a.dtype, a.shape, chain).filters()
            for mask in range(1 << len(chain)):
                dset = file.dataset(a.dtype, a.shape, chain)
                tool.h5([f for i, f in enumerate(working) if not mask >> i & 1],
                        a.dtype.itemsize)
                stored = tool.encode(a.tobytes())
                dset.put(stored, mask)
                values(f"{label}, mask {mask}", "libhdf5 reads ours", dset.read(a.dtype), a)
                tool.h5(working, a.dtype.itemsize)
                equal(f"{label}, mask {mask}", "decoded",
                      tool.decode(stored, a.nbytes, mask), a.tobytes())
            fails(label + ", a filter too many", "EBADMSG", tool.decode, a.tobytes(), a.nbytes)
            equal(label, "all left out", tool.decode(a.tobytes(), a.nbytes, 0xffffffff),
                  a.tobytes())


ROWS = {
    "deflate": ([row([(h5.DEFLATE, 5)], all_of(usual, every_length, large, squares)),
                 row([(h5.DEFLATE, 0)], every_length), row([(h5.DEFLATE, 9)], every_length)],
                ()),
    "shuffle": ([row([(h5.SHUFFLE,)], all_of(usual, every_length, large), same=True)], ()),
    "fletcher32": ([row([(h5.FLETCHER32,)], all_of(usual, every_length, large), same=True)],
                   ()),
    "szip": (szip_rows(), (h5.SZIP,)),
    "scaleoffset": (scaleoffset_rows(), ()),
    "nbit_full": ([row([(h5.NBIT,)], functools.partial(usual, dtypes=data.NUMBERS),
                       same=True)], ()),
    "bzip2": ([row([(h5.BZIP2, 2)], all_of(every_length), same=True),
               row([(h5.BZIP2, 9)], functools.partial(usual, ("steps",), (17,)), same=True)],
              (h5.BZIP2,)),
    "lzf": (lzf_rows(), (h5.LZF,)),
    "blosc": (blosc_rows(), (h5.BLOSC,)),
    "lz4": ([row([(h5.LZ4,)], all_of(usual, every_length, large), same=True),
             row([(h5.LZ4, 64)], all_of(every_length, large)),
             row([(h5.LZ4, 1000)], all_of(every_length, large))], (h5.LZ4,)),
}


def cases():
    for name, (rows, needs) in ROWS.items():
        yield name, functools.partial(run, rows, needs)
    yield "nbit", nbit_run
    yield "zstd", zstd_run
    yield "bitshuffle", bitshuffle_run
    yield "bitgroom", functools.partial(quant_run, h5.BITGROOM, "BitGroom")
    yield "granularbr", functools.partial(quant_run, h5.GRANULARBR, "GranularBitRound")
    yield "masks", masks
    yield "chains", functools.partial(run_chains, chain_rows(FIRST, STOCK, 100, 1), ())
    yield "chains-of-plugins", functools.partial(
        run_chains, chain_rows((), STOCK + PLUGINS, 60, 2), (h5.BZIP2, h5.BLOSC, h5.LZ4))
