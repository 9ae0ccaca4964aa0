# SPDX-License-Identifier: BSD-3-Clause
"""The same piece of work done natively and on a writable mount, and what both made compared."""
import os

from lib.context import Crashed, ROOT
from lib.replay import replay

RECORDED = os.path.join(ROOT, "tests", "recorded")


def recorded(name):
    return os.path.join(RECORDED, name)


def has(name):
    return os.path.exists(recorded(name))


def _replay(name, root, strict, rename):
    replay(recorded(name), root, strict, rename)


def again(t, name, root, strict=False, rename=()):
    """Make the calls of a recording below root, in a process of its own. rename: other names of
    files."""
    t.call(_replay, name, root, strict, dict(rename))


def _file_work(name, file, tmp):
    from clients import rw_files
    getattr(rw_files, name)(file, tmp)


def file_work(t, name, file):
    """One of tests/clients/rw_files.py. netCDF-C crashes now and then; natively, too."""
    scratch(t)
    t.call(_file_work, name, file, t.path("beside"))


def scratch(t):
    os.makedirs(t.path("beside"), exist_ok=True)


def models(t, func, *args, timeout=60):
    """func(*args) in a process of its own, which asserts; again when netCDF-C crashes."""
    for _ in range(2):
        try:
            t.call(func, *args, timeout=timeout)
            return
        except Crashed as why:
            print(why)
    t.call(func, *args, timeout=timeout)


def quiet(mount, *but):
    """Nothing was said that is not expected."""
    lines = [x for x in mount.messages().splitlines() if not any(b in x for b in but)]
    assert not lines, "\n".join(lines)
