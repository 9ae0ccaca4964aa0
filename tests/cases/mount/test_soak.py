# SPDX-License-Identifier: BSD-3-Clause
"""A short form of `make soak` (docs/dev/testing/reliability.md): several processes read and write
real mounts of every kind and check every value, while sources change and servers are disturbed."""
import os
import sys

from lib.context import ROOT

LIMIT = 400.0
SCENES = "file,tree,mirror,lean,wtree,wfile,webfile,s3,ws3"
RUN = os.path.join(ROOT, "tests", "soak", "run.py")


def test_short(t):
    words = ["--time", "10", "--readers", "20", "--lag", "20", "--every", "0.4", "--last", "0.3",
             "--change", "0.15", "--sample", "2", "--only", SCENES, "--tmp", t.tmp, "--out",
             t.path("out"), "-q"]
    status, out, err = t.run(sys.executable, RUN, *words, timeout=400, env={"NCZARRFS": t.binary})
    print(out[-6000:], err[-3000:])
    assert status == 0, "\n".join([x for x in out.splitlines() if "WRONG" in x or "PROBLEM" in x]
                                  or [err[-2000:]])
