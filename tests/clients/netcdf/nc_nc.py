# SPDX-License-Identifier: BSD-3-Clause
"""A netCDF-4 file shown as a netCDF-4 file (view=nc): ncdump prints the same, but for the rows of
docs/reference/differences.md: names of types, enumerations, the classic model."""
from clients import compare_ncdump

ATOMIC = ("byte", "ubyte", "short", "ushort", "int", "uint", "int64", "uint64", "float", "double",
          "char", "string")
ADDED = ("flag_values", "flag_meanings", "dtype", "_Encoding")  # rows enum-attrs, narrow-netcdf


def same_kind(want, got):
    """Row type-names: a type of the user's own has another name; enum-attrs: or is a number."""
    return want == got or want not in ATOMIC or (want, got) in compare_ncdump.NARROWER


def group(path, want, got, problems):
    mine = [d for d in got["dims"] if not d.startswith("string") or d in want["dims"]]
    if [d for d in mine if not d.startswith("phony_")] != [
            d for d in want["dims"] if not d.startswith("phony_")]:
        problems.append(f"{path}: dimensions {mine}, {list(want['dims'])} in the file")
    mine = [v for v in got["vars"] if v in want["vars"]]
    if list(want["vars"]) != mine:  # of types without a name netCDF-C shows no variables
        problems.append(f"{path}: variables {mine}, {list(want['vars'])} expected")
        return
    for name, (kind, dims) in want["vars"].items():
        where, (got_kind, got_dims) = f"{path}/{name}", got["vars"][name]
        if not same_kind(kind, got_kind):
            problems.append(f"{where}: type {got_kind}, {kind} in the file")
        if dims != got_dims[:len(dims)] and not any("phony_dim" in d for d in dims):
            problems.append(f"{where}: dimensions {got_dims}, {dims} in the file")
        enum = kind not in ATOMIC and got_kind in ATOMIC
        if not enum and not compare_ncdump.same_words(want["data"].get(name, []),
                                                      got["data"].get(name, [])):
            problems.append(f"{where}: data {got['data'].get(name)!r:.200}, "
                            f"{want['data'].get(name)!r:.200} in the file")
    attributes(path, want, got, problems)


def attributes(path, want, got, problems):
    for key, value in want["attrs"].items():
        mine = got["attrs"].get(key)
        enum = want["vars"].get(key[0], ("int",))[0] not in ATOMIC
        if any("\ufffd" in word for word in value):
            continue  # not UTF-8: row latin1-text
        if mine is None:
            problems.append(f"{path}/{key[0]}:{key[1]} is missing")
        elif not enum and not compare_ncdump.same_words(value, mine):
            problems.append(f"{path}/{key[0]}:{key[1]}: {mine!r:.200}, {value!r:.200} in the file")
    for var, name in set(got["attrs"]) - set(want["attrs"]):
        if name not in ADDED and (not var or var in want["vars"]):
            problems.append(f"{path}/{var}:{name} is not in the file")


def compare(original, file):
    """Returns "equal", or why there is nothing to compare."""
    text, why = compare_ncdump.ncdump(original)
    if text is None:
        return "netCDF-C cannot read the file itself: " + why
    mine, why = compare_ncdump.ncdump(file)
    assert mine is not None, "of the virtual file: " + why
    want, got = compare_ncdump.parse(text), compare_ncdump.parse(mine)
    problems = []
    for path in want:
        if path not in got:
            problems.append(f"{path}: group is missing")
        else:
            group(path, want[path], got[path], problems)
    assert not problems, "\n".join(problems[:30])
    return "equal"
