# SPDX-License-Identifier: BSD-3-Clause
"""Configuration files and named mounts, end to end: nczarrfs.conf(5), mount, umount, list,
--print-config, and what becomes of a mount whose server died."""
import json
import os
import shutil
import signal
import socket
import subprocess

import h5py
import numpy as np

from lib import mounts
from lib.context import Skip, sanitizer_env


class Home:
    """A user's files: a home with a configuration, a source and places to mount on."""

    def __init__(self, t, text, places=("one", "two")):
        self.t = t
        self.home = t.path("home")
        os.makedirs(os.path.join(self.home, ".config"))
        self.file = os.path.join(self.home, ".config", "nczarrfs.conf")
        self.source = t.path("x.nc")
        with h5py.File(self.source, "w") as f:
            f["v"] = np.arange(10.0)
        for p in places:
            os.makedirs(os.path.join(self.home, p))
        self.write(text)
        self.env = {"HOME": self.home, "XDG_CONFIG_HOME": ""}
        self.pids = []

    def write(self, text):
        with open(self.file, "w") as f:
            f.write(text.format(source=self.source, home=self.home))
        os.chmod(self.file, 0o600)

    def place(self, name):
        return os.path.join(self.home, name)

    def run(self, *args, status=0):
        if args[0] == "mount":  # as without, but that it finds their processes
            args = ("--config", self.file, *args)
        got, out, err = self.t.run(self.t.binary, *args, env=self.env)
        assert got == status, (args, got, out, err)
        self.pids += mounts.processes_of(self.home)
        return out, err

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        mounts.unmount_below(self.home)


TEXT = """
[defaults]
max_attempts = 3
[source {home}/../*.nc]
timeout = 7
[mount first]
source = {source}
target = ~/one
options = max_threads=3,x-anything
commit_delay = 4
rw = yes
[mount second]
source = {source}
target = {home}/two
[mount third]
source = {source}
target = {home}/three
auto = no
"""


def listed(home):
    return {r["target"]: r for r in json.loads(home.run("list", "--json")[0])
            if r["target"].startswith(home.home)}


def test_named(t):
    """SEMANTICS G1, G4: a mount by name, several, all; what is mounted is listed, and unmounted
    by its name"""
    with Home(t, TEXT) as h:
        one, two = h.place("one"), h.place("two")
        assert listed(h)[one]["state"] == "not mounted"
        h.run("mount", "first")
        row = listed(h)[one]
        assert (row["name"], row["state"], row["source"], row["writable"]) == (
            "first", "mounted", h.source, True), row
        assert row["where"] == f"{h.file}:6", row
        assert os.path.exists(os.path.join(one, "v", "0"))
        h.run("mount", "-a")  # the rest: not what is there, not what has auto = no
        assert {k: r["state"] for k, r in listed(h).items()} == {
            one: "mounted", two: "mounted", h.place("three"): "not mounted"}
        out, err = h.run("umount", "first", two)
        assert not out and not err, (out, err)
        assert not mounts.is_mounted(one) and not mounts.is_mounted(two)
        assert "'first': not mounted" in h.run("umount", "first", status=1)[1]
        assert "did you mean 'first'" in h.run("mount", "frist", status=1)[1]
        assert "not an nczarrfs mountpoint" in h.run("umount", h.home, status=1)[1]
        h.run("mount", "-o", "ro", "first", "second")  # in two processes, with the same options
        assert not listed(h)[one]["writable"]
        with open(os.path.join(one, ".zgroup")):  # in use
            err = h.run("umount", "first", "second", status=1)[1]
            assert "in use" in err and one in err and two not in err, err
            assert mounts.is_mounted(one) and not mounts.is_mounted(two)
        h.run("umount", "first")
        assert mounts.wait_gone(h.pids, 20)


def test_flags_of_several(t):
    """SEMANTICS G1: flags and options reach every mount of one command, however they are written"""
    with Home(t, TEXT) as h:
        targets = [h.place("one"), h.place("two")]
        for flags in (("-v", "mount", "first", "second"), ("mount", "first", "second", "-v"),
                      ("-va", "mount"), ("-av", "mount"), ("mount", "-a", "-v"),
                      ("mount", "--all", "--verbose"), ("-vaoro", "mount"),
                      ("-avo", "ro", "mount"), ("-voro,timeout=9", "mount", "first", "second")):
            h.run("--config", h.file, *flags)
            h.pids += mounts.processes_of(h.home)
            rows = listed(h)
            assert all(rows[x]["state"] == "mounted" for x in targets), (flags, rows)
            assert rows[targets[0]]["writable"] == (not any("ro" in x for x in flags)), flags
            h.run("umount", *targets)
        assert mounts.wait_gone(h.pids, 20)
        assert "in place of names" in h.run("--config", h.file, "-va", "mount", "first",
                                            status=2)[1]


def test_print(t):
    """SEMANTICS G1: --print-config says where every value is from, and can be read back"""
    with Home(t, TEXT) as h:
        out, _ = h.run("--print-config", "-o", "cache_size=3M", "mount", "first")
        got = {}
        for line in out.splitlines():
            if " = " in line:
                key, _, rest = line.partition(" = ")
                value, _, where = rest.partition(" ; ")
                got[key] = (value.strip(), where.replace(h.file, "FILE"))
        assert got["cache_size"] == ("3M", "command line")
        assert got["commit_delay"] == ("4", "FILE:10")
        assert got["max_threads"] == ("3", "FILE:9")
        assert got["max_attempts"] == ("3", "FILE:3")
        assert got["max_connections"] == ("16", "built in")
        again = t.path("again.conf")
        with open(again, "w") as f:
            f.write(out)
        os.chmod(again, 0o600)
        second, _ = h.run("--config", again, "--print-config", h.source)
        assert ([x.partition(" ;")[0].strip() for x in out.splitlines() if " = " in x] ==
                [x.partition(" ;")[0].strip() for x in second.splitlines() if " = " in x])
        h.write("[defaults]\ncache_sise = 1\n")
        err = h.run("info", h.source, status=2)[1]
        assert f"{h.file}:2: cache_sise" in err and "did you mean 'cache_size'" in err, err
        h.run("--no-config", "info", h.source)


def test_dead_mount_is_healed(t):
    """SEMANTICS G5: a mount onto a place whose server died takes the dead one off, and says so"""
    with Home(t, TEXT) as h:
        one = h.place("one")
        h.run("mount", "first")
        pids = mounts.processes_of(h.home)
        assert len(pids) > 2, pids
        for p in pids:
            os.kill(p, signal.SIGSTOP)  # nobody cleans up
        for p in pids:
            os.kill(p, signal.SIGKILL)
        assert mounts.wait_gone(pids, 20)
        assert mounts.is_mounted(one), "somebody took it off: the test tests nothing"
        assert listed(h)[one]["state"] == "dead"
        _, err = h.run("mount", "first")
        assert "its server had died" in err and one in err, err
        assert os.listdir(one) and listed(h)[one]["state"] == "mounted"
        h.run("umount", "first")
        assert not mounts.is_mounted(one)
        assert mounts.wait_gone(h.pids, 20)


def test_told_when_ready(t):
    """In the foreground a service manager is told: systemd's protocol; SIGTERM ends it with what
    was written in the file."""
    with Home(t, TEXT) as h:
        one, path = h.place("one"), t.path("notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            s.settimeout(60)
            env = {**sanitizer_env(t.path("sanitizer")), **h.env, "NOTIFY_SOCKET": path}
            with subprocess.Popen([t.binary, "-f", "mount", "first", "-o",
                                   "commit_delay=3600000"], env=env) as p:
                assert s.recv(100) == b"READY=1"
                with open(os.path.join(one, "v", "0"), "r+b") as f:
                    f.write(np.float64(42).tobytes())
                p.send_signal(signal.SIGTERM)
                assert s.recv(100) == b"STOPPING=1"
                assert p.wait(60) == 0
        with h5py.File(h.source) as f:
            assert f["v"][0] == 42


def test_unit_is_good(t):
    unit = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts",
                        "nczarrfs@.service")
    with open(unit) as f:
        text = f.read()
    if not any(os.access(os.path.join(d, "systemd-analyze"), os.X_OK)
               for d in ("/usr/bin", "/bin")):
        raise Skip("no systemd-analyze")
    copy = t.path("nczarrfs@x.service")
    with open(copy, "w") as f:
        f.write(text.replace("ExecStart=nczarrfs", f"ExecStart={t.binary}"))
    status, out, err = t.run("systemd-analyze", "verify", "--man=no", copy)
    assert status == 0 and "nczarrfs@x" not in out + err, out + err


def test_another_source(t):
    """SEMANTICS G9: what is mounted by hand on the target of a named mount is not that one; the
    same source by another path is."""
    with Home(t, TEXT) as h:
        one, other = h.place("one"), t.path("other.nc")
        shutil.copy(h.source, other)
        h.run("mount", "-a")
        h.run("umount", "first")
        h.run(other, one)
        assert listed(h)[one]["state"] == "another source"
        assert listed(h)[one]["source"] == other
        err = h.run("mount", "-a", status=1)[1]
        assert "[mount first]" in err and other in err and f"nczarrfs umount '{one}'" in err, err
        err = h.run("umount", "first", status=1)[1]
        assert f"nczarrfs umount '{one}'" in err and mounts.is_mounted(one), err
        h.run("umount", one)
        link = t.path("link.nc")
        os.symlink(h.source, link)
        for source in (link, f"{h.home}/../{os.path.basename(h.source)}"):
            h.run(source, one)
            assert listed(h)[one]["state"] == "mounted", listed(h)
            h.run("mount", "-a")
            h.run("umount", "first")
        h.run("umount", "second")
        assert mounts.wait_gone(h.pids, 20)


def test_values_are_checked(t):
    """SEMANTICS G2: the message of a value that is no good names file and line, also where no
    source asks for it, and nothing is mounted. Rules, which depend on the filters that there are,
    are checked when they are used. The message writes an option as a file has it."""
    with Home(t, "") as h:
        for line, words in (
                ("rw = 1", ["rw = yes"]), ("rw", ["rw = yes"]), ("ro = on", ["ro = yes"]),
                ("endpoint = foo", ["endpoint: write http://"]),
                ("log = x=y", ["log='x=y' is not a log level: write COMPONENT=LEVEL"]),
                ("timeout = soon", ["bad number"])):
            h.write("[source /nothing/*]\nmax_attempts = 3\n" + line + "\n")
            err = h.run("info", h.source, status=2)[1]
            assert err.startswith(f"nczarrfs: error: {h.file}:3: "), err
            assert all(w in err for w in words), err
        for line in ("filter = nne", "quantize = x", "filter = shuffle|nothing"):
            h.write("[defaults]\nmax_attempts = 3\n" + line + "\n")
            err = h.run("info", h.source, status=2)[1]
            assert err.startswith(f"nczarrfs: error: {h.file}:3: {line.replace(' = ', '=')}"), err
        h.write("[defaults]\nfilter = none\nfilter = nonee\nfilter = b,shuffle\n")
        err = h.run("info", h.source, status=2)[1]
        assert err.startswith(f"nczarrfs: error: {h.file}:3: filter=nonee"), err
        h.write("[mount first]\nsource = {source}\ntarget = ~/one\nrw = yes\nchunks = time\n")
        err = h.run("mount", "first", status=2)[1]
        assert err.startswith(f"nczarrfs: error: {h.file}:5: chunks=time: "), err
        assert not mounts.is_mounted(h.place("one"))
        err = h.run("-o", "filter=nne", "info", h.source, status=2)[1]
        assert err.startswith("nczarrfs: error: -o filter=nne: "), err


def test_file_that_is_not_read(t):
    """Who asks for a mount of a file that is not read is told why it is not."""
    with Home(t, "[mount first]\nsource = {source}\ntarget = ~/one\n") as h:
        os.chmod(h.file, 0o622)
        for args in (("list",), ("mount", "first"), ("umount", "first")):
            got, _, err = t.run(t.binary, *args, env=h.env)
            assert f"{h.file}: not read: others may write to it: run chmod" in err, (args, err)
            assert got == (args[0] != "list"), (args, got, err)


COMPLETE = r"""
source "$1"
shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_nczarrfs "$1"
printf '%s\n' "${COMPREPLY[@]}"
"""


def test_completion(t):
    """bash completes names of the configuration, places where something is mounted, and options."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts",
                          "completion", "nczarrfs.bash")

    def completed(*words):
        got, out, err = t.run("bash", "-c", COMPLETE, "bash", script, t.binary, *words, env=h.env)
        assert not err, err
        return out.split("\n")

    with Home(t, TEXT, places=("one", "with a blank")) as h:
        place = h.place("with a blank")
        h.run(h.source, place)
        assert {"first", "second", "third"} <= set(completed("mount", ""))
        assert completed("mount", "fi")[0] == "first"
        got = completed("umount", "")
        assert "first" in got and place in got, got
        for command in ("status", "log", "umount"):
            assert completed(command, place[:-3])[0] == place, command
        h.run("umount", place)
        assert place not in completed("umount", "")
        assert completed("convert", "--zarr-f")[0] == "--zarr-format="
        assert completed("convert", "--zarr-format=")[:2] == ["2", "3"]
        assert completed("convert", "--zarr-format", "")[:2] == ["2", "3"]
        assert completed("--unsup")[0] == "--unsupported="
        assert "--rw" not in completed("convert", "--")
        assert completed("help", "conv")[0] == "convert"
