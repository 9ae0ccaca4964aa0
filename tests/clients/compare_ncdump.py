#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare_ncdump.py FILE MOUNTPOINT: ncdump of the mount (mode=nczarr) against
ncdump of the file: variables, dimensions, lengths, values, attributes, group by group.

Debian's netCDF-C 4.9.0 takes the mount for pure Zarr: types of attributes are inferred, all
dimensions are in the root group, char, string, big-endian and user-defined data crash it or come
out wrong. Files with such things are excused, with the reason; h5py judges them elsewhere."""
import os
import re
import resource
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clients import oracle  # noqa: E402

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[;{}=,]|(?:\\.|[^\s;{}=,"])+', re.S)
SECTIONS = ("types:", "dimensions:", "variables:", "data:")


INTS = ("byte", "short", "int", "int64"), ("ubyte", "ushort", "uint", "uint64")
NARROWER = {(row[i], row[j]) for row in INTS for j in range(4) for i in range(j)}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ncdump(what, seconds=40):
    """CDL of a file or URL, or None and why not."""
    try:
        done = subprocess.run(["ncdump", "-p", "9,17", what], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return None, f"ncdump does not end within {seconds} s"
    if done.returncode:
        return None, (f"ncdump ends with {done.returncode}: "
                      + done.stderr.decode(errors="replace").strip())
    return done.stdout.decode("utf-8", "replace"), ""


def parse(cdl):
    """{group: {"dims", "vars", "attrs", "data"}} of a dump."""
    tokens = [t for t in TOKEN.findall(cdl) if not t.startswith("//")]
    groups = {}
    at = tokens.index("{") + 1
    parse_group(tokens, at, "", groups)
    return groups


def parse_group(tokens, at, path, groups):
    g = groups[path] = {"dims": {}, "vars": {}, "attrs": {}, "data": {}}
    section = ""
    while at < len(tokens):
        t = tokens[at]
        if t == "}":
            return at + 1
        if t in SECTIONS:
            section = t
            at += 1
        elif t == "group:":
            assert tokens[at + 2] == "{"
            at = parse_group(tokens, at + 3, path + "/" + unescape(tokens[at + 1]), groups)
            section = ""
        else:
            end = at
            while tokens[end] != ";":
                end += 1
            statement(tokens[at:end], section, g)
            at = end + 1
    return at


def unescape(name):
    return re.sub(r"\\(.)", r"\1", name)


def statement(words, section, g):
    if "=" in words:
        left, right = words[:words.index("=")], words[words.index("=") + 1:]
        values = [w for w in right if w not in (",", "{", "}")]
        if section == "types:":
            return
        if section == "dimensions:":
            g["dims"][unescape(left[0])] = values[0]
        elif section == "data:":
            g["data"][unescape(left[0])] = values
        else:
            name = left[-1]                      # [type] var:attr or :attr
            var, _, attr = name.partition(":")
            g["attrs"][unescape(var), unescape(attr)] = values
    elif section == "variables:":
        text = " ".join(w if w != "," else "," for w in words)
        kind, _, rest = text.partition(" ")
        name, _, dims = rest.partition("(")
        found = [unescape(d.strip()) for d in dims.rstrip(")").split(",") if d.strip()]
        g["vars"][unescape(name.strip())] = (kind, found)


def number(word):
    """Value of a CDL number; None for anything else."""
    m = re.fullmatch(r"(-?(?:NaN|Infinity|inf|nan)f?|[-+]?[0-9.]+(?:e[-+]?\d+)?)"
                     r"(?:[fFdDbBsSlL]|[uU][bBsSlL]*|LL|ULL)*", word)
    if not m:
        return None
    text = m.group(1).rstrip("f") if "n" not in m.group(1).lower() else m.group(1)
    text = text.replace("Infinityf", "Infinity").replace("NaNf", "NaN")
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def same_word(a, b):
    if a == b:
        return True
    x, y = number(a), number(b)
    if x is None or y is None:
        return False
    if isinstance(x, float) or isinstance(y, float):
        return x == y or (x != x and y != y) or np.float32(x) == np.float32(y)
    return x == y


def same_words(a, b):
    """ncdump breaks texts at their newlines: one text is several words."""
    if a and b and all(w.startswith('"') for w in a + b):
        return "".join(w[1:-1] for w in a) == "".join(w[1:-1] for w in b)
    return len(a) == len(b) and all(same_word(x, y) for x, y in zip(a, b))


def excuse(model, nc):
    """Why netCDF-C 4.9.0 cannot be asked about this file through a mount, or None."""
    if nc is None:
        return "netCDF-C cannot read the file itself"
    if model.external:
        return "netCDF-C follows external links, the mount only below its external_root"
    lengths = {}
    for path, array in model.arrays.items():
        t = array.type
        if t.kind != "plain" or t.numpy.kind not in "iuf" or t.numpy == np.dtype("f2"):
            return f"{path}: 4.9.0 has no NCZarr form of its type"
        if t.numpy.byteorder == ">" and t.numpy.itemsize > 1:
            return f"{path}: 4.9.0 swaps big-endian data"
        if t.enum is not None or t.tail or array.null:
            return f"{path}: not a netCDF type"
        if path not in nc["vars"]:
            return f"{path}: not shown by netCDF-C"
        entry = nc["vars"][path]
        if not entry["shape"]:
            return f"{path}: 4.9.0 shows scalars as arrays"
        if 0 in entry["shape"] + array.shape or array.virtual():
            return f"{path}: 4.9.0 refuses dimensions of length 0 (a virtual dataset may be one)"
        if np.prod(array.shape, dtype=object) > 10_000_000:
            return f"{path}: too large to print"
        if entry["shape"] != array.shape or array.undefined():
            return f"{path}: netCDF-C fills up or reads past what is there"
        for name, n in zip(entry["dims"], entry["shape"]):
            if lengths.setdefault(name, n) != n:
                return f"dimension {name}: 4.9.0 puts all dimensions into the root group"
    return attribute_excuse(model)


def attribute_excuse(model):
    objects = [(p, a.dataset) for p, a in model.arrays.items()]
    objects += [(p, g.group) for p, g in model.groups.items()]
    for path, oid in objects:
        for name, a in oracle.attributes(oid):
            if a is None or a.value is None or not a.value:
                return f"{path}:{name}: 4.9.0 has no such attribute"
            if len(a.value) > 1 and (isinstance(a.value[0], str) or a.type.numpy.kind in "iu"):
                return f"{path}:{name}: 4.9.0 takes a list's type from its first number"
            if isinstance(a.value[0], str) and re.match(r"\s*[{\[]", a.value[0]):
                return f"{path}:{name}: 4.9.0 parses texts that look like JSON"
            if not isinstance(a.value[0], str) and a.type.numpy.kind == "f" and not all(
                    np.isfinite(v) for v in a.value):
                return f"{path}:{name}: 4.9.0 has no NaN in attributes"
    return None


def compare(file, mnt):
    model = oracle.Model(file)
    reason = excuse(model, oracle.netcdf_model(file))
    if reason:
        return "excused: " + reason
    want_text, why = ncdump(file)
    if want_text is None:
        return "excused: " + why
    got_text, why = ncdump(f"file://{mnt}#mode=nczarr,file")
    assert got_text is not None, "of the mount: " + why
    want, got = parse(want_text), parse(got_text)
    problems = []
    for path, g in want.items():
        if path not in got:
            problems.append(f"{path}: group is missing")
            continue
        compare_group(path, g, got[path], want, got, problems)
    if problems:
        raise AssertionError("\n".join(problems[:40]))
    return "equal"


def length_of(name, path, groups):
    while True:
        if name in groups.get(path, {"dims": {}})["dims"]:
            words = groups[path]["dims"][name]
            return words
        if not path:
            return None
        path = path.rpartition("/")[0]


def filled(group, name):
    """Data with the fill value for "_": in the mount, 4.9.0 does not know the type of the
    _FillValue attribute and prints the number."""
    words = group["data"].get(name, [])
    fill = group["attrs"].get((name, "_FillValue"))
    return [fill[0] if fill and w == "_" else w for w in words]


def compare_group(path, want, got, all_want, all_got, problems):
    for name, (kind, dims) in want["vars"].items():
        where = f"{path}/{name}"
        if name not in got["vars"]:
            problems.append(f"{where} is missing")
            continue
        got_kind, got_dims = got["vars"][name]
        narrower = (kind, got_kind) in NARROWER  # row narrow-netcdf
        if kind != got_kind and not narrower:
            problems.append(f"{where}: type {kind}, through the mount {got_kind}")
        if dims != got_dims and not all(d.startswith("phony_dim") for d in dims):
            problems.append(f"{where}: dimensions {dims}, through the mount {got_dims}")
        if not same_words(filled(want, name), filled(got, name)):
            problems.append(f"{where}: data {want['data'].get(name)!r:.300}, through the mount "
                            f"{got['data'].get(name)!r:.300}")
    for key, values in want["attrs"].items():
        if key not in got["attrs"]:
            problems.append(f"{path}/{key[0]}:{key[1]} is missing")
        elif not same_words(values, got["attrs"][key]):
            problems.append(f"{path}/{key[0]}:{key[1]}: {values!r:.200}, through the mount "
                            f"{got['attrs'][key]!r:.200}")
    extra = set(got["vars"]) - set(want["vars"])
    if extra:
        problems.append(f"{path}: variables {sorted(extra)} are not in the file")


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    try:
        print(compare(*argv[1:]))
    except AssertionError as error:
        print(error)
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv)
