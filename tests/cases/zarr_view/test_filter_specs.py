# SPDX-License-Identifier: BSD-3-Clause
"""Filter specifications as text against netCDF-C's own parser (libnetcdf's
ncaux_h5filterspec_parselist), over generated texts: what is accepted here means the same there, and
all of its documented syntax is accepted here."""
import ctypes
import ctypes.util
import os
import random
import subprocess

from lib.context import Skip

TAGS = {"": (32, True), "u": (32, False), "b": (8, True), "ub": (8, False), "s": (16, True),
        "us": (16, False), "l": (64, True), "ul": (64, False)}


SZIP = 4


class Spec(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("n", ctypes.c_size_t),
                ("params", ctypes.POINTER(ctypes.c_uint))]


def library():
    name = ctypes.util.find_library("netcdf")
    if not name:
        raise Skip("there is no libnetcdf")
    return ctypes.CDLL(name)


def theirs(lib, text):
    """netCDF-C's reading of a list of filters, in our canonical text; None: refused."""
    fmt, n = ctypes.c_int(), ctypes.c_size_t()
    v = ctypes.POINTER(ctypes.POINTER(Spec))()
    if lib.ncaux_h5filterspec_parselist(text.encode(), ctypes.byref(fmt), ctypes.byref(n),
                                        ctypes.byref(v)):
        return None
    seen = {}  # a filter that is defined again keeps its place
    for i in range(n.value):
        one = v[i].contents
        params = one.params[:one.n]
        if one.id == SZIP and len(params) == 4:  # shown as ncdump shows those of a file
            params = [params[0] & 38, params[1]]
        seen[one.id] = ",".join(str(p) for p in [one.id, *params])
    return "|".join(seen.values())


def ours(t, texts, verb="parse"):
    """Our reading of each text; None: refused."""
    tool = os.path.join(os.path.dirname(t.binary), "tests", "spec_tool")
    if not os.path.exists(tool):
        raise Skip(f"{tool} is not built: make tools")
    done = subprocess.run([tool], input="".join(f"{verb} {x}\n" for x in texts).encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    out = done.stdout.decode().split("\n")[:-1]
    assert len(out) == len(texts), f"{len(out)} answers to {len(texts)} texts"
    return [None if x.startswith("! ") else x for x in out]


def any_case(r, text):
    return "".join(r.choice((c.lower(), c.upper())) for c in text)


def whole(r):
    tag = r.choice(list(TAGS))
    bits, signed = TAGS[tag]
    low = -(1 << bits - 1) if signed else 0
    # a positive number of 64 bits with "l" is signed; shorter ones may use the sign bit
    high = (1 << (63 if tag == "l" else bits)) - 1
    v = r.choice((low, high, 0, 1, r.randint(low, high), r.randint(max(low, -100), 100)))
    return "0" * r.choice((0, 0, 0, 2)) * (v >= 0) + str(v) + any_case(r, tag)


def real(r):
    text = r.choice((f"{r.uniform(-1e3, 1e3):.{r.randint(0, 12)}f}", repr(r.uniform(-1, 1)),
                     f"{r.randint(-9, 9)}e{r.randint(-30, 30)}", f".{r.randint(0, 99)}",
                     f"{r.randint(0, 99)}.", f"{r.random():.5E}"))
    return text if text.endswith(".") and r.random() < 0.5 else text + r.choice("fFdD")


def good_text(r):
    """A text in the documented syntax, with blanks where netCDF-C takes them."""
    def blanks():
        return r.choice(("", "", "", " ", "\t "))
    def one():
        return ",".join([blanks() + str(r.randint(1, 65535))] +
                        [blanks() + r.choice((whole, whole, real))(r)
                         for _ in range(r.randint(0, 6))])
    return "|".join(one() for _ in range(r.choice((1, 1, 1, 2, 3, 5))))


def comparable(text):
    """netCDF-C 4.9.0 reads behind the end of an empty parameter, and does not know trailing
    blanks: such texts are not shown to it."""
    return all(x.strip(" \t") and not x[-1] in " \t" for x in text.replace("|", ",").split(","))


def test_documented_syntax(t):
    lib, r = library(), random.Random(1)
    texts = [good_text(r) for _ in range(20000)]
    for text, got in zip(texts, ours(t, texts)):
        want = theirs(lib, text)
        assert want is not None, f"netCDF-C refuses '{text}'"
        assert got == want, f"'{text}': {got}, netCDF-C has {want}"


def test_any_text(t):
    """Texts that are damaged here and there, and texts of characters that matter."""
    lib, r = library(), random.Random(2)
    texts, alphabet = [], "0123456789-+.,|uUbBsSlLfFdDeExX \t"
    for _ in range(20000):
        text = good_text(r)
        for _ in range(r.randint(1, 3)):
            at = r.randrange(len(text) + 1)
            text = text[:at] + r.choice(("", r.choice(alphabet))) + text[at + r.randint(0, 1):]
        texts.append(text)
    texts += ["7," + "".join(r.choice(alphabet) for _ in range(r.randint(1, 9)))
              for _ in range(20000)]
    accepted = 0
    for text, got in zip(texts, ours(t, texts)):
        if got is None or not comparable(text):
            continue
        accepted += 1
        want = theirs(lib, text)
        assert got == want, f"'{text}': {got}, netCDF-C has {want}"
    assert accepted > 5000, accepted


def test_blanks_are_left_out(t):
    """Blanks behind a parameter: netCDF-C refuses them, here they mean nothing."""
    r = random.Random(3)
    texts = [good_text(r) for _ in range(2000)]
    spaced = ["".join(" " * r.randint(0, 2) + c + " " * r.randint(0, 2) if c in ",|" else c
                      for c in x) + "  " for x in texts]
    assert ours(t, texts) == ours(t, spaced)


def test_canonical_text_reads_back(t):
    r = random.Random(4)
    texts = [good_text(r) for _ in range(2000)]
    once = ours(t, texts)
    assert once == ours(t, once)


def test_names(t):
    names = {"deflate": 1, "zlib": 1, "shuffle": 2, "fletcher32": 3, "bzip2": 307, "bz2": 307,
             "blosc": 32001, "zstd": 32015}
    texts = [f"{any_case(random.Random(5), n)},5" for n in names]
    assert ours(t, texts) == [f"{i},5" for i in names.values()]


def test_what_netcdf_drops_is_refused(t):
    """It reads numbers with sscanf: 0x10 is 0 there, 1.5 is 1, 4294967296 is 0, 12LU is 12."""
    lib = library()
    for text, there in (("7,0x10", "7,0"), ("7,1.5", "7,1"), ("7,4294967296", "7,0"),
                        ("7,12LU", "7,12"), ("7,300b", "7,44"), ("7,-5U", "7,4294967291"),
                        ("7x,5", "7,5"), ("-1,5", "4294967295,5"), ("7,5|", "7,5")):
        assert theirs(lib, text) == there, text
        assert ours(t, [text]) == [None], text
