# SPDX-License-Identifier: BSD-3-Clause
"""Whether the reports of sanitizers are seen, wherever in a mount they come from: a server, or a
process that it began, with a fault on purpose (base/process/canary.h). Of programs with
sanitizers only; what is built otherwise has no such faults."""
import os
import re

import h5py

from lib import mounts
from lib.context import Skip

KINDS = {"asan": [("heap", "heap-buffer-overflow"), ("wild", "in canary_wild"),
                  ("undefined", "in canary_undefined|signed integer overflow"),
                  ("leak", "detected memory leaks")],
         "tsan": [("race", "data race")]}


def sanitizer_of(binary):
    with open(binary, "rb") as f:
        data = f.read()
    return "tsan" if b"__tsan_init" in data else "asan"


def sung(t, place, kind):
    """What is said of a mount with this fault."""
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        f["v"] = range(10)
    os.environ["NCZARRFS_CANARY"] = f"{place}:{kind}"
    try:
        m = t.mount(path, check=False)
    finally:
        del os.environ["NCZARRFS_CANARY"]
    try:
        return m.unmount()
    finally:
        t.forget(m)


def heard(place, leaks):
    def test(t):
        if not mounts.is_sanitized(t.binary):
            raise Skip("built without sanitizers")
        for kind, text in KINDS[sanitizer_of(t.binary)]:
            if kind == "leak" and not leaks:
                continue  # children end without looking back
            said = sung(t, place, kind)
            assert "sanitizer report:" in said and re.search(text, said), (
                f"{kind} in the {place} goes unnoticed: {said[-2000:]}")
    return test


def cases():
    yield "server", heard("server", True)
    yield "child", heard("child", False)
