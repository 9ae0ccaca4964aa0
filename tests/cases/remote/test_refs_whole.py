# SPDX-License-Identifier: BSD-3-Clause
"""References are complete and of one state of the source, or there are none: shortages, sources
that change, outputs that appear meanwhile, interruptions."""
import errno
import glob
import json
import os
import shutil
import signal
import subprocess
import urllib.parse

import h5py
import numpy as np
import zarr

from cases.remote.test_refs import equal_values, from_json, from_parquet, make_h5 as make_one, refs
from cases.remote.test_refs_dir import make_h5 as make_small
from cases.write.test_fault_loops import CLASSES, Injector
from lib.web import WebServer


def make_long(path):
    """More references than a pipe holds."""
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.zeros(20000, "u1"), chunks=(1,))


# SEMANTICS K16
def test_shortage(t):
    """A dataset that cannot be opened now is not left out."""
    top, out = t.path("data"), t.path("a.json")
    os.mkdir(top)
    make_small(top + "/a.h5", 1)
    make_small(top + "/b.h5", 2)
    zarr.open_group(top + "/c.zarr", "w").create_dataset("v", data=np.arange(9.0), chunks=(3,))
    refs(t, top, out)
    with open(out) as f:
        good = f.read()
    os.unlink(out)
    inject = Injector(t)
    failed = 0
    for more in 0, 1 << 30:
        for at in range(1, 30):
            inject.arm(*CLASSES["threads"], at, more)
            failed += not whole(t, good, inject.wrapper, top, out)
            if not inject.disarm():
                break
    assert failed > 3
    failed = 0
    for at in range(1, 400, 3):  # reads that fail: in a shared process, another one reads again
        inject.arm(4, errno.EIO, at, 0)
        failed += not whole(t, good, inject.wrapper, top, out)
        if not inject.disarm():
            break
    assert failed > 3
    ends = [whole(t, good, ("prlimit", f"--nofile={n}"), top, out) for n in range(6, 64)]
    assert ends[-1] and ends.count(False) > 8, ends


def whole(t, good, wrapper, top, out):
    """Whether references were written, which are then those of all datasets."""
    status, _, err = t.run(*wrapper, t.binary, "refs", "-o", "unsupported=skip,decode_threads=2",
                           top, out)
    assert "left out" not in err, err
    if status:
        assert not os.path.exists(out), err
        return False
    with open(out) as f:
        assert f.read() == good, err
    os.unlink(out)
    return True


def changed(t, path, *args):
    """Run the command into a pipe, and change a file that it reads. Returns what was written and
    the message."""
    p = subprocess.Popen([t.binary, "refs", *args], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = p.stdout.read(4096)  # the rest does not fit the pipe
    with open(path, "ab") as f:
        f.write(b"more")
    out, err = p.communicate(timeout=60 * t.slow)
    assert p.returncode == 1 and b"changed" in err and b"again" in err, err
    return text + out


# SEMANTICS K17
def test_changes(t):
    """A source that is changed while its references are written has none."""
    os.mkdir(t.path("d"))
    make_long(t.path("d/a.h5"))
    make_small(t.path("d/b.h5"), 1)
    for args in ([t.path("d/a.h5")], [t.path("d")], ["-o", "unsupported=skip", t.path("d")],
                 ["--inline", "-o", "concat_index=none,concat=x", t.path("d/[a].h5")]):
        if "--inline" in args:
            with h5py.File(t.path("d/a.h5"), "w") as f:
                v = f.create_dataset("v", data=np.zeros(20000, "u1"), chunks=(1,))
                f["x"] = np.arange(20000)
                f["x"].make_scale("x")
                v.dims[0].attach_scale(f["x"])
        text = changed(t, t.path("d/a.h5"), *args)
        assert not text.rstrip().endswith(b"}}"), args


def test_output_appears(t):
    """An output that did not exist when the command began is not replaced, and one that is no
    longer a reference file is not either."""
    make_one(t.path("a.h5"))
    outs = [t.path(n) for n in ("a.json", "a.parq", "a.parquet", "old.json")]

    def appear(_):
        for out in outs:
            with open(out, "w") as f:
                f.write("another's")

    with WebServer(t.tmp, fault=appear) as web:
        for out, option in zip(outs, ("inline", "inline", "table", "inline")):
            for path in filter(os.path.exists, outs):
                os.unlink(path)
            if out.endswith("old.json"):
                refs(t, t.path("a.h5"), out)
            refs(t, "-o", option, web.url + "/a.h5", out, fails="by another program meanwhile")
            with open(out) as f:
                assert f.read() == "another's"
    assert not glob.glob(t.path("*nczarrfs-*")), "something was left behind"


def test_temporary_names(t):
    """A file that a killed run, or one on another machine, left next to the output, and whose name
    has the same process number, neither disturbs a run nor is it removed."""
    make_one(t.path("a.h5"))
    for name in "a.json", "a.parq":
        out = t.path(name)
        left = []

        def leave():
            left.append(f"{out}.nczarrfs-{os.getpid()}")
            with open(left[0], "w") as f:
                f.write("another's")

        p = subprocess.run([t.binary, "refs", t.path("a.h5"), out], preexec_fn=leave,
                           capture_output=True)
        assert p.returncode == 0, p.stderr
        path, = glob.glob(glob.escape(out) + ".nczarrfs-*")
        with open(path) as f:
            assert f.read() == "another's"


def test_interrupted(t):
    """SIGINT and SIGTERM leave nothing."""
    make_one(t.path("a.h5"))
    make_small(t.path("b.h5"), 1)
    for sent in signal.SIGINT, signal.SIGTERM:
        for name in "a.json", "a.parq":
            begun = []

            def stop(handler):
                """The answer that the command waits for while it writes is its end."""
                if not glob.glob(t.path("*nczarrfs-*")):
                    return False
                begun.append(True)
                p.send_signal(sent)
                return handler.hang()

            with WebServer(t.tmp, fault=stop) as web:
                p = subprocess.Popen([t.binary, "refs", web.url + "/a.h5", t.path(name)],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                _, err = p.communicate(timeout=60 * t.slow)
            assert begun and p.returncode == 1 and b"interrupted" in err, (p.returncode, err)
            assert not glob.glob(t.path(name) + "*"), "something was left behind"


def test_options(t):
    """Options that references cannot have are errors before a file is read, and a document is
    followed by nothing."""
    os.mkdir(t.path("d"))
    make_one(t.path("d/a.h5"))
    os.mkdir(t.path("none"))
    for source in "d", "none":
        for flags, out in (([], [t.path("a.parq")]), (["--table"], []),
                           (["--table"], [t.path("a.parquet")])):
            err = refs(t, "-o", "dimension_separator=/,unsupported=skip", *flags, t.path(source),
                       *out, fails="dimension_separator=.")
            assert "left out" not in err
    with open(t.path("defaults.conf"), "w") as f:
        f.write("[defaults]\ndimension_separator = /\n")
    refs(t, "-o", "config=" + t.path("defaults.conf"), t.path("d"), t.path("a.parq"))
    want = refs(t, t.path("d/a.h5"))
    for option in [], ["--json"]:
        assert refs(t, *option, t.path("d/a.h5"), "/dev/stdout") == want


def test_names_that_are_not_text(t):
    """JSON and Parquet have no bytes that are not UTF-8: an error that names the file."""
    top = os.fsencode(t.path("d")) + b"\xff"
    os.mkdir(top)
    make_small(t.path("made.h5"), 1)
    shutil.copy(t.path("made.h5"), top + b"/a.h5")
    shutil.copy(top + b"/a.h5", top + b"/\xe4.h5")
    for name, source in (("a", top + b"/\xe4.h5"), ("b", top + b"/a.h5"), ("c", top)):
        for out, option in ((".json", "inline"), (".parq", "inline"), (".parquet", "table")):
            p = subprocess.run([t.binary, "refs", "-o", option, source, t.path(name + out)],
                               capture_output=True)
            assert p.returncode == 1 and b"not UTF-8" in p.stderr and source in p.stderr, p.stderr
            assert not os.path.exists(t.path(name + out))
    # an address of its own is text
    out = t.path("a.json")
    refs(t, "-o", "address=s3://b/a.h5", os.fsdecode(top + b"/a.h5"), out)
    refs(t, "-o", "address=s3://b,unsupported=skip", os.fsdecode(top), out)
    with open(out, encoding="utf-8") as f:
        assert {k.split("/")[0] for k in json.load(f)["refs"]} == {".zgroup", "a.h5"}


def test_addresses(t):
    """Paths are appended to an address as they are, and not behind its query."""
    os.makedirs(t.path("d/[x] *"))
    for i in range(2):
        with h5py.File(t.path(f"d/[x] */{i}{{u}}.h5"), "w") as f:
            f["x"] = np.arange(3) + 3 * i
            f["x"].make_scale("x")
            v = f.create_dataset("v", data=np.arange(3.0), chunks=(3,))
            v.dims[0].attach_scale(f["x"])
    concat = ("--inline", "-o", "concat=x,concat_index=none")
    for address in "s3://b/[y]*?.nc/{u}", "https://h/[y]*/{u}":
        doc = json.loads(refs(t, *concat, "--address", address, t.path("d/*/*.h5")))["refs"]
        want = "[x] */1{u}.h5"
        if address.startswith("https"):
            want = urllib.parse.quote(want)
        assert doc["v/1"][0] == f"{address}/{want}", doc["v/1"]
    make_one(t.path("d/one.h5"))
    zarr.open_group(t.path("d/a.zarr"), "w").create_dataset("v", data=np.arange(9.0), chunks=(3,))
    for address in "https://h/a?token=1", "http://h/a#part":
        for args in ([t.path("d")], [*concat, t.path("d/*/*.h5")], [t.path("d/a.zarr")],
                     ["-o", "unsupported=skip", t.path("d")]):
            err = refs(t, "--address", address, *args, fails="has a query or a fragment")
            assert address in err, err
        doc = json.loads(refs(t, "--address", address, t.path("d/one.h5")))["refs"]
        assert doc["plain/0.0"][0] == address


def test_braces(t):
    """Readers of JSON expand {{name}} in addresses, those of Parquet do not."""
    os.mkdir(t.path("d"))
    file = t.path("d/{{u}}.h5")
    make_one(file)
    make_one(t.path("d/b.h5"))
    refs(t, file, t.path("a.json"), fails="'{{' in its address")
    refs(t, "--inline", file, t.path("a.json"))
    t.call(equal_values, from_json(t.path("a.json")), file)
    refs(t, file, t.path("a.parq"))
    t.call(equal_values, from_parquet(t.path("a.parq")), file)
    refs(t, "-o", "address=https://h/d", t.path("d"), t.path("b.json"))
    with open(t.path("b.json")) as f:
        assert json.load(f)["refs"]["{{u}}.h5/plain/0.0"][0] == "https://h/d/%7B%7Bu%7D%7D.h5"
    refs(t, "-o", "unsupported=skip", t.path("d"), t.path("b.json"))
    with open(t.path("b.json")) as f:
        assert {k.split("/")[0] for k in json.load(f)["refs"]} == {".zgroup", "b.h5"}
