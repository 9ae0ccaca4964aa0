# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages' examples do what the pages say: lines of a display that begin with "$ " are
commands, what follows each is what it prints ("..." stands for anything); and they refer to each
other."""
import os
import re
import shutil

from lib import mounts
from lib.context import ROOT, Skip

DOCS = os.path.join(ROOT, "docs", "reference")
PAGES = sorted(n for n in os.listdir(DOCS) if re.search(r"\.[1-8]$", n))


def source(page):
    with open(os.path.join(DOCS, page), encoding="utf-8") as f:
        return f.read()


def displays(page):
    """Literal displays as they are printed: [[line]]."""
    for text in re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", source(page), re.M):
        yield [re.sub(r"^\\&", "", line).replace(r"\e", "\\").replace(r"\-", "-")
               for line in text.splitlines()]


def commands(page):
    """[(command, [expected lines])]; a command goes on to the end of its here-document."""
    found, end = [], None
    for line in (x for d in displays(page) if d[0].startswith("$ ") for x in d):
        if end is not None:
            found[-1][0].append(line)
            end = None if line == end else end
        elif line.startswith("$ "):
            found.append(([line[2:]], []))
            here = re.search(r"<<(\w+)", line)
            end = here.group(1) if here else None
        else:
            found[-1][1].append(line)
    return [("\n".join(c), expected) for c, expected in found]


def like(expected, printed):
    pattern = "".join(".*".join(re.escape(p) for p in line.rstrip().split("...")) + r" *\n"
                      for line in expected)
    return re.fullmatch(pattern, printed)


def run_all(t, page):
    env = {"PATH": f"{os.path.dirname(os.path.abspath(t.binary))}:/usr/bin:{os.environ['PATH']}",
           "LC_ALL": "C.UTF-8", "HOME": t.tmp}
    for program in ("ncgen", "ncdump"):
        if not shutil.which(program):
            raise Skip(f"no {program}")
    found = commands(page)
    assert found, f"{page} has no examples of this kind"
    try:
        for command, expected in found:
            status, out, err = t.run("sh", "-c", command, cwd=t.tmp, env=env)
            assert status == 0 and like(expected, out + err), (
                f"{page}: $ {command}\nends with {status} and prints\n{out}{err}instead of\n"
                + "\n".join(expected))
    finally:
        for mnt in (os.path.join(t.tmp, n) for n in ("back", "mnt")):
            if os.path.ismount(mnt):
                mounts.unmount(mnt)
    print(len(found), "commands")


def test_mapping(t):
    """nczarrfs-mapping(7)."""
    run_all(t, "nczarrfs-mapping.7")


def test_see_also(t):
    """Every page of ours leads to all others, and no page to one that is not there."""
    for page in PAGES:
        also = set(re.findall(r"^\.Xr (nczarrfs\S*) (\d)",
                              source(page).partition(".Sh SEE ALSO")[2], re.M))
        want = {tuple(n.rsplit(".", 1)) for n in PAGES if n != page}
        assert also == want, f"{page}: SEE ALSO has {sorted(also)}, not {sorted(want)}"
        for name, section in re.findall(r"\.Xr (nczarrfs\S*) (\d)", source(page)):
            assert f"{name}.{section}" in PAGES, f"{page}: there is no {name}({section})"
