# SPDX-License-Identifier: BSD-3-Clause
"""Readers in JavaScript from npm, where make check-npm put them."""
import json
import os
import shutil

from lib.context import ROOT, Skip

MODULES = os.path.join(ROOT, "build", "npm")


def read(t, module, script, *args):
    """What a script of tests/clients/npm, which uses this module, prints as JSON."""
    if not shutil.which("node") or not os.path.isdir(os.path.join(MODULES, "node_modules", module)):
        raise Skip(f"{module} is not there: make check-npm gets it from npm")
    status, text, err = t.run("node", os.path.join(ROOT, "tests", "clients", "npm", script), *args,
                              timeout=120, env={"NCZARRFS_NPM": MODULES})
    assert status == 0, err
    return json.loads(text)
