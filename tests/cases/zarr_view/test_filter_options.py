# SPDX-License-Identifier: BSD-3-Clause
"""-o filter=SPEC and -o quantize=SPEC on the command line: what is wrong is said in one line with
status 1, nothing is mounted, and `info` says which rules hold."""
import json

import h5py
import numpy as np

from cases.commands.test_cli import folder, misused


def sample(t):
    path = t.path("rules.nc")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(1000.0), chunks=(100,), compression="gzip")
        f["g/w"] = np.arange(3)
    return path


def info(t, *options):
    code, out, err = t.run(t.binary, "info", "--json", *options, sample(t))
    assert code == 0, err
    return json.loads(out)


def test_what_is_wrong_is_said(t):
    rows = (("filter=kep", "unknown filter 'kep'", "did you mean 'keep'"),
            ("filter=shufle", "did you mean 'shuffle'"),
            ("filter=v,nosuch,5", "unknown filter 'nosuch'", "write [VARIABLES,]FILTER"),
            ("filter=*,zstd,x", "parameter 1 of filter 'zstd': 'x' is not a number"),
            ("filter=*,zstd,0x10", "'0x10'"),
            ("filter=*,deflate,256b", "does not fit in 8 bits"),
            ("filter=v&,zstd", "empty variable name"),
            ("filter=v,1|,mode=zarr", "needs an id or a name"),
            ("filter=70000", "use 1 to 65535"),
            ("filter=", "needs a value"),
            ("quantize=bitgrom,3", "bitgrom", "write [VARIABLES,]MODE,N"),
            ("quantize=v,bitround,99", "99"),
            ("filter=zstd,quantize=bitgroom", "bitgroom"),
            ("filter=*,zstd,5,mdoe=zarr", "did you mean 'mode'"))
    source, where = sample(t), folder(t)
    for option, *mention in rows:
        misused(t, source, where, "-o", option, mention=mention)
        misused(t, "info", "-o", option, source, mention=mention)


def test_help_all_the_same(t):
    code, out, _ = t.run(t.binary, "-o", "filter=nosuch", "--help")
    assert code == 0 and "filter=portable|keep|none|SPEC" in out


def test_info_says_which_rules_hold(t):
    got = info(t)
    assert got["filter"] == "portable" and not got["filter_rules"] + got["quantize_rules"]
    got = info(t, "-o", "filter=v&/g/w,shuffle|deflate,5,quantize=*,bitgroom,3,mode=nczarr",
               "-o", "filter=none")
    assert got["filter"] == "none"
    assert got["filter_rules"] == ["v&/g/w,shuffle|deflate,5", "none"]
    assert got["quantize_rules"] == ["*,bitgroom,3"]
    code, out, err = t.run(t.binary, "info", "-o", "filter=/g/*,zstd,filter=keep", sample(t),
                           timeout=60)
    assert code == 0 and "filter    keep\n          /g/*,zstd  (variables: 1)\n" in out, out + err


def test_rule_for_no_variable(t):
    """A misspelt filter may look like the name of a variable: it is said, and is no error."""
    with t.mount(sample(t), "filter=zsdt,5,quantize=nope,bitgroom,3", foreground=True) as m:
        pass
    log = m.messages()
    assert "-o filter=zsdt,5: there is no variable 'zsdt'" in log, log
    assert "-o quantize=nope,bitgroom,3: there is no variable 'nope'" in log, log
    assert len(log.splitlines()) == 2, log
