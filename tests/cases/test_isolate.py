"""What processes that meet bytes of strangers may do, and what a crash of theirs costs."""
import os
import re

import h5py
import numpy as np

from lib import mounts
from lib.context import Skip
from lib.converted import converted
from lib.web import WebServer

SECRET = "Pa5sWord-that-nobody-has-but-us"


def family(m):
    """[(pid, name)] of the processes of a mount but the command's own two."""
    found = []
    for pid in mounts.processes_of(m.path):
        try:
            with open(f"/proc/{pid}/comm") as f:
                found.append((pid, f.read().strip()))
        except OSError:
            pass
    return found


def field(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return re.search(rf"^{name}:\s*(\S+)", f.read(), re.M).group(1)


def plain(t):
    if t.sanitized:
        raise Skip("there is no sandbox in a build with sanitizers")


def one_of(m, name):
    pids = [pid for pid, comm in family(m) if comm == name]
    assert len(pids) == 1, f"{len(pids)} processes {name}: {family(m)}"
    return pids[0]


def confined(pid):
    assert field(pid, "Seccomp") == "2", "no filter of system calls"
    assert field(pid, "NoNewPrivs") == "1", "may gain privileges"
    with open(f"/proc/{pid}/limits") as f:
        limits = {line[:25].strip(): line[26:].split() for line in f}
    assert limits["Max core file size"][0] == "0", limits
    assert limits["Max file size"][0] == "0", limits
    assert limits["Max address space"][0] != "unlimited", limits
    assert limits["Max cpu time"][0] != "unlimited", limits
    assert int(limits["Max open files"][0]) <= 256, limits
    with open(f"/proc/{pid}/environ", "rb") as f:
        assert b"AWS_" not in f.read(), "it has the environment"


def read(path):
    with open(path, "rb") as f:
        f.read()


def test_hdf5_confined(t):
    """The process that reads elements with libhdf5. SEMANTICS R??: parsers are confined"""
    plain(t)
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        converted(f, "odd", np.arange(100), (10,))
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
    try:
        m = t.mount(path)
    finally:
        del os.environ["AWS_SECRET_ACCESS_KEY"]
    with m:
        t.call(read, m.path + "/odd/0")
        confined(one_of(m, "nczarrfs-hdf5"))


def holds(pid, text):
    """Whether a process has a text anywhere in its memory."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            where, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(x, 16) for x in where.split("-"))
            try:
                mem.seek(start)
                if text.encode() in mem.read(min(end - start, 1 << 26)):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


def test_no_secrets(t):
    """Passwords and keys are in the server, and in no process that it has others started by."""
    plain(t)
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        converted(f, "odd", np.arange(100), (10,))
    with WebServer(t.tmp) as web:
        address = f"http://somebody:{SECRET}@127.0.0.1:{web.port}/a.nc"
        env = {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ACCESS_KEY_ID": "AKIA" + SECRET}
        os.environ.update(env)
        try:
            m = t.mount(address, "insecure", "filter=none")
        finally:
            for name in env:
                del os.environ[name]
        with m:
            t.call(read, m.path + "/odd/0")
            found = {comm: holds(pid, SECRET) for pid, comm in family(m)}
            assert found["nczarrfs"], "the server should have it"
            assert not found["nczarrfs-forker"] and not found["nczarrfs-hdf5"], found
