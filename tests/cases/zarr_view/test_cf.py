# SPDX-License-Identifier: BSD-3-Clause
"""Units of time and packed numbers of the CF conventions, as clients have them: cftime and xarray
are asked for the same values, bit by bit."""
import os
import random
import re
import subprocess
import warnings

from lib.context import Skip

CALENDARS = ("", "standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "all_leap",
             "366_day", "360_day", "julian")
UNITS = ("days", "day", "d", "Hours", "hrs", "h", "minutes", "min", "seconds", "sec", "s",
         "milliseconds", "msec", "ms", "microseconds", "microsec")

# zones whose hour has one digit, which cftime passes over: CF's own example is "-6:00"
BY_UDUNITS = re.compile(r":.*[-+]\d(:\d*)?$|  ")


def asked(t, lines):
    tool = os.path.join(os.path.dirname(t.binary), "tests", "cf_tool")
    if not os.path.exists(tool):
        raise Skip(f"{tool} is not built: make tools")
    done = subprocess.run([tool], input="".join(x + "\n" for x in lines).encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    out = done.stdout.decode().split("\n")[:-1]
    assert len(out) == len(lines), f"{len(out)} answers to {len(lines)} lines"
    return out


def a_date(r, year=None):
    year = year or r.choice((1, 4, 100, 1500, 1581, 1582, 1583, 1700, 1850, 1900, 1970, 1999, 2000,
                             2024, 2100, 9999, r.randint(1, 3000)))
    text = f"{year:04d}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"
    if year == 1582 and r.random() < .8:
        text = f"1582-10-{r.choice((4, 15, 16)):02d}"
    kind = r.randrange(5)
    if kind:
        text += r.choice(" T") + f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}"
    if kind > 1:
        text += f":{r.randint(0, 59):02d}"
    if kind > 2:
        text += f".{r.choice((0, 5, 25, 123456))}"
    if kind > 3:
        text += r.choice(("Z", "+01:00", "-0330", "+05", " -12:45"))
    return text


def test_time_as_cftime(t):
    """A number of one unit as cftime makes it one of another, through a date."""
    try:
        import cftime
    except ImportError:
        raise Skip("there is no cftime")
    r, cases = random.Random(1), []
    while len(cases) < 6000:
        calendar = r.choice(CALENDARS)
        one, other = (f"{r.choice(UNITS)} since {a_date(r)}" for _ in range(2))
        x = r.choice((0, 1, -1, r.randint(-40000, 40000), r.randint(-10**9, 10**9),
                      r.randint(-4000, 4000) / 8))
        try:
            date = cftime.num2date(x, one, calendar or "standard")
            want = cftime.date2num(date, other, calendar or "standard")
        except (ValueError, OverflowError):  # dates beyond what cftime has
            continue
        if date.microsecond and not isinstance(want, int):  # it has no more than microseconds
            continue
        cases.append((f"time {one}|{calendar}|{other}|{calendar}|{x!r}", want))
    whole = 0
    for (line, want), got in zip(cases, asked(t, [c[0] for c in cases])):
        integer, real = got.split()
        assert abs(float(real) - want) <= 1e-15 * abs(want), f"{line}: {got}, cftime has {want!r}"
        if integer != "-":
            assert float(real) == float(int(integer)), f"{line}: {got}"
            whole += 1
    assert whole > 1000, f"only {whole} integers"


def test_time_texts(t):
    """What cftime takes for a date is taken for the same, or refused; never for another."""
    try:
        import cftime
    except ImportError:
        raise Skip("there is no cftime")
    r, lines, wants = random.Random(2), [], []
    zero = "seconds since 2000-01-01"
    while len(lines) < 6000:
        text = f"seconds since {a_date(r, r.randint(1990, 2010))}"
        for _ in range(r.randint(0, 2)):
            at = r.randrange(14, len(text) + 1)
            text = text[:at] + r.choice(("", r.choice("0123456789-:. T+Z"))) + text[at + 1:]
        try:
            want = cftime.date2num(cftime.num2date(0, text, "standard"), zero, "standard")
        except (ValueError, OverflowError, TypeError):
            want = None
        if want is not None and (want != int(want) or BY_UDUNITS.search(text)):
            continue
        lines.append(f"time {text}||{zero}||0")
        wants.append(want)
    taken = 0
    for line, want, got in zip(lines, wants, asked(t, lines)):
        if got.startswith("! ") or want is None:
            continue
        assert float(got.split()[1]) == want, f"{line}: {got}, cftime has {want!r}"
        taken += 1
    assert taken > 2000, f"only {taken} were taken"


def variable(np, r):
    """A variable's elements and attributes, as files have them."""
    kind = r.choice(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"))
    if kind[0] == "f":
        data = np.array([r.choice((0, 1, -1, 1e20, -9999, 1e-30, np.nan, np.inf, 9.96921e36,
                                   r.uniform(-300, 300))) for _ in range(9)]).astype(kind)
    else:
        info = np.iinfo(kind)
        data = np.array([r.choice((info.min, info.max, 0, 1, info.max // 2 + 1,
                                   r.randint(info.min, info.max))) for _ in range(9)], kind)
    own = np.dtype(kind)
    attrs = {}
    if r.random() < .6:
        attrs["_FillValue"] = r.choice(list(data))
    if r.random() < .4:
        of = r.choice((own, np.dtype("f8"), np.dtype("f4"), np.dtype("i2"), np.dtype("i4")))
        few = r.sample(list(data), r.randint(1, 3))
        attrs["missing_value"] = np.array([float(v) if of.kind == "f" else
                                           int(v) if np.isfinite(v) and abs(v) < 3e4 else -1
                                           for v in few]).astype(of)
        if attrs["missing_value"].size == 1:
            attrs["missing_value"] = attrs["missing_value"][0]
    if r.random() < .05:
        attrs["missing_value"] = "none"
    if r.random() < .6:
        attrs["scale_factor"] = a_factor(np, r)
    if r.random() < .5:
        attrs["add_offset"] = a_factor(np, r)
    if r.random() < .3:
        attrs["_Unsigned"] = r.choice(("true", "false", "True"))
    return data, attrs


def a_factor(np, r):
    of = np.dtype(r.choice(("f4", "f8", "f8", "f8", "i2", "i4", "u1")))
    v = r.choice((0.1, 0.01, 1, 273.15, -5, 1e-9, 3.4e38, 1e200, 32767.0, r.uniform(-2, 2)))
    v = of.type(v) if of.kind == "f" else of.type(r.choice((1, 2, 100, 255)))
    if of == "i4":
        v = of.type(r.choice((32768, 65535, 65536, -32768, -32769, 10**9, 7)))
    return np.array([v]) if r.random() < .2 else v


def worded(np, value):
    if isinstance(value, str):
        return "s:" + value.encode().hex()
    value = np.atleast_1d(value)
    return f"{value.dtype.str[1:]}:{value.tobytes().hex()}"


def test_packed_as_xarray(t):
    try:
        import numpy as np
        import xarray as xr
    except ImportError:
        raise Skip("there is no xarray")
    if np.__version__.startswith("2"):
        raise Skip("numpy 2 has other rules for scalars")
    r, lines, wants = random.Random(3), [], []
    while len(lines) < 6000:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            data, attrs = variable(np, r)
            big = r.random() < .3
            shown = data.astype(data.dtype.newbyteorder(">")) if big else data
            var = xr.conventions.decode_cf_variable("v", xr.Variable("x", data, dict(attrs)),
                                                    decode_times=False)
            wants.append(np.asarray(var.values))
        lines.append(" ".join([f"pack {data.dtype.str[1:]}{'>' if big else ''}"] +
                              [f"{k}={worded(np, v)}" for k, v in attrs.items()] +
                              [shown.tobytes().hex()]))
    kinds = set()
    for line, want, got in zip(lines, wants, asked(t, lines)):
        of, _, raw = got.partition(" ")
        assert of == want.dtype.str[1:] and raw == want.tobytes().hex(), \
            f"{line}:\n{got}, xarray has\n{want.dtype.str[1:]} {want.tobytes().hex()} {want!r}"
        kinds.add((line[5:7], of))
    assert len(kinds) > 25, sorted(kinds)
