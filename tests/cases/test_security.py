"""SECURITY.md: what the processes of a mount may do, and what can be had of them."""
import os
import signal
import stat
import subprocess
import time

import h5py
import numpy as np

from lib import mounts, users
from lib.context import Skip

MOUNTER = "nczarrfs-mount"


def sample(path):
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(10)
        f.create_dataset("odd", data=np.arange(20).reshape(2, 10), chunks=(1, 10), scaleoffset=0)
        f.create_dataset("text", data=np.array(["a", "bc"], dtype=object), chunks=(1,),
                         dtype=h5py.string_dtype())
    return path


def line(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(x.split()[1] for x in f if x.startswith(name + ":"))


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
        return f.read().strip()


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def server_of(pids):
    """The process that has the kernel's requests: the forker's parent."""
    return parent(next(p for p in pids if comm(p) == "nczarrfs-forker"))


def wake_children(mnt):
    """Elements that only the library can read: a child for them."""
    with open(mnt + "/text/0", "rb") as f:
        f.read()


def test_no_new_privs(t):
    """No process of a mount can gain rights by a program that it starts. SECURITY S2"""
    with t.mount(sample(t.path("a.nc"))) as m:
        t.call(wake_children, m.path)
        pids = mounts.processes_of(m.path)
        assert len(pids) >= 4 and MOUNTER in map(comm, pids), list(map(comm, pids))
        have = {f"{p} {comm(p)}": line(p, "NoNewPrivs") for p in pids}
        assert set(have.values()) == {"1"}, have


def gone(mnt, pids):
    assert mounts.wait_gone(pids, 20), [p for p in pids if mounts.alive(p)]
    assert not mounts.is_mounted(mnt), "the mount is left"


def as_user(binary, hurt, *options):
    own, program = users.enter(binary)
    source, mnt = own + "/a.nc", own + "/m"
    sample(source)
    os.mkdir(mnt)
    for path in (source, mnt):
        os.chown(path, users.NOBODY, users.NOBODY)
    status, text = users.run(program, *options, source, mnt)
    assert status == 0, text
    pids = mounts.processes_of(mnt)
    try:
        status, text = users.run("cat", mnt + "/text/0")
        assert status == 0, text
        rights = {comm(p): line(p, "NoNewPrivs") for p in mounts.processes_of(mnt)}
        assert rights.pop(MOUNTER) == "0"
        assert rights.pop("fusermount3", "0") == "0"
        assert set(rights.values()) == {"1"}, rights
        assert {line(p, "Uid") for p in pids} == {str(users.NOBODY)}
        hurt(mnt, pids)
        gone(mnt, pids)
    finally:
        for pid in pids:
            if mounts.alive(pid):
                os.kill(pid, signal.SIGKILL)


def end_by_fusermount(mnt, pids):
    status, text = users.run("fusermount3", "-u", mnt)
    assert status == 0, text


def end_by_signal(mnt, pids):
    for pid in pids:  # as a terminal does
        os.kill(pid, signal.SIGINT)


def end_of_supervisor(mnt, pids):
    os.kill(parent(server_of(pids)), signal.SIGKILL)


def end_of_server(mnt, pids):
    os.kill(server_of(pids), signal.SIGKILL)


def end_of_both(mnt, pids):
    server = server_of(pids)
    os.kill(parent(server), signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    os.kill(parent(server), signal.SIGKILL)


def test_user(t):
    """A mount of a normal user needs no rights but in the process that mounts, and ends however
    its processes are told to end. SECURITY S1 SECURITY S2"""
    for hurt in (end_by_fusermount, end_by_signal, end_of_supervisor, end_of_server, end_of_both):
        t.call(as_user, t.binary, hurt)
    t.call(as_user, t.binary, end_of_server, "-o", "auto_unmount")
