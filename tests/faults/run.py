#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py BUILD [options of loops]: tests/faults/loops.c with inputs of its own and servers for what
is remote; callers of what failed by name, and a table."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True

from lib.s3_server import S3Server  # noqa: E402
from lib.web import WebServer  # noqa: E402


def names(program, addresses):
    """{address: "function (file:line)"}"""
    todo = sorted(set(addresses))
    if not todo:
        return {}
    out = subprocess.run(["addr2line", "-s", "-f", "-e", program] + [
        "%x" % (int(a, 16) - 1) for a in todo], capture_output=True, text=True).stdout.split("\n")
    return {a: f"{out[2 * i]} ({out[2 * i + 1]})" for i, a in enumerate(todo)}


def symbolized(program, text):
    lines = text.split("\n")
    places = re.compile(r"^ (at|signal|leaked)")
    found = [w for line in lines if places.match(line) for w in line.split()
             if re.fullmatch("[0-9a-f]{6,7}", w)]
    known = names(program, found)
    out = []
    for line in lines:
        if places.match(line):
            words = []
            for w in line.split():
                w = known.get(w, w)
                if "libc.so" in w or w.startswith("_start ") or (words and words[-1] == w):
                    continue
                words.append(w)
            line = "    " + " < ".join(words[:16])
        out.append(line)
    return "\n".join(out)


def table(text):
    """Lines for people, from SCENE lines; and the sums."""
    sums = [0] * 4
    lines = [f"{'scene':24}{'faults':>8}{'right':>8}{'errors':>8}{'wrong':>7}{'s':>7}"]
    for line in text.split("\n"):
        if line.startswith("SCENE "):
            name, *n, seconds = line.split()[1:]
            sums = [a + int(b) for a, b in zip(sums, n)]
            lines.append("%-24s%8s%8s%8s%7s%7s" % (name, *n, seconds))
    n = len(lines) - 1
    lines.append(f"{n} scenes, {sums[0]} faults: {sums[1]} right answers, {sums[2]} errors, "
                 f"{sums[3]} wrong")
    return "\n".join(lines), n, sums


def ways(text):
    """The same by what failed."""
    sums = collections.OrderedDict()
    for line in text.split("\n"):
        if line.startswith("DONE "):
            _, _, way, *n = line.split()
            sums[way] = [a + int(b) for a, b in zip(sums.get(way, [0] * 5), n)]
    lines = [f"{'what fails':24}{'calls':>9}{'faults':>8}{'right':>8}{'errors':>8}{'wrong':>7}"]
    for way, n in sums.items():
        lines.append("%-24s%9d%8d%8d%8d%7d" % (way, *n))
    return "\n".join(lines)


def run(build, args, folder=None, limit=None):
    """(status, output) of loops, with everything that it needs in a folder."""
    tmp = folder or tempfile.mkdtemp(prefix="faults-")
    build = os.path.abspath(build)
    program = os.path.join(build, "tests", "loops")
    inputs = os.path.join(tmp, "in")
    try:
        if not os.path.exists(inputs):
            made = subprocess.run([sys.executable, os.path.join(HERE, "inputs.py"), inputs,
                                   os.path.join(build, "nczarrfs")], capture_output=True,
                                  text=True)
            if made.returncode:
                return 2, made.stdout + made.stderr
        with WebServer(inputs) as web, S3Server(buckets={"b": {}}) as s3:
            s3.public = {"b"}
            s3.upload("b", os.path.join(inputs, "v3.zarr"), "v3.zarr")
            env = dict(os.environ, AWS_ENDPOINT_URL=s3.url, HOME=tmp, LC_ALL="C.UTF-8",
                       AWS_EC2_METADATA_DISABLED="true", HDF5_USE_FILE_LOCKING="FALSE")
            p = subprocess.run([program] + args + [inputs, os.path.join(tmp, "work"), web.url,
                                                   s3.url],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
                               timeout=limit)
        return p.returncode, symbolized(program, p.stdout.decode(errors="replace"))
    finally:
        if not folder:
            shutil.rmtree(tmp, ignore_errors=True)


def main():
    start = time.monotonic()
    status, text = run(sys.argv[1], sys.argv[2:])
    said = [line for line in text.split("\n") if not re.match("(DONE|SCENE) ", line)]
    print("\n".join(said))
    print(ways(text))
    lines, _, _ = table(text)
    print(lines)
    print(f"{time.monotonic() - start:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
