# SPDX-License-Identifier: BSD-3-Clause
"""A sample of `make check-suites`: tests that Debian's packages of other programs install pass on
writable mounts as they pass in a directory of the disk."""
import os
import sys

from lib.context import ROOT, Skip

LIMIT = 900.0


def test_sample(t):
    if not os.path.isdir("/usr/lib/python3/dist-packages/_pytest"):
        raise Skip("python3-pytest is not installed")
    status, text, errors = t.run(sys.executable, os.path.join(ROOT, "tests", "suites", "run.py"),
                                 "--sample", "--keep", t.path("suites"), timeout=LIMIT - 10)
    assert status == 0, text + errors
    passed, failed, _ = text.splitlines()[-1].split(", ")
    assert int(passed.split()[0]) > 0 and failed == "0 failed", text
