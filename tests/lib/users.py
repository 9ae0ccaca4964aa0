# SPDX-License-Identifier: BSD-3-Clause
"""Mounts of a user without rights, by a harness that runs as root.

A child in a mount namespace of its own gets a /dev/fuse that everybody may open, and a tmpfs that
everybody may look at; both vanish with it, and nothing of it is seen from outside."""
import ctypes
import os
import shutil
import subprocess

from lib.context import Skip

NOBODY = 65534
CLONE_NEWNS = 0x20000
MS_BIND, MS_PRIVATE, MS_REC = 4096, 1 << 18, 16384
MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        raise Skip(f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source, target, kind, flags, data=b""):
    _check(_libc.mount(source.encode(), target.encode(), kind.encode(), flags, data),
           f"mount on {target}")


def _forget_mounts():
    """Those of other tests, which could not end as long as this namespace has them."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as f:
        others = [line.split()[1] for line in f if line.split()[2].startswith("fuse")]
    for place in reversed(others):
        _libc.umount2(place.replace("\\040", " ").encode(), MNT_DETACH)


def enter(binary):
    """In a child of the harness: a folder of a user's own, with the program in it. Returns
    (folder, program)."""
    if os.geteuid() != 0:
        raise Skip("not root: no other user can be tried")
    if not shutil.which("setpriv") or not shutil.which("fusermount3"):
        raise Skip("no setpriv or no fusermount3")
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    _mount("none", "/", "none", MS_REC | MS_PRIVATE)
    _forget_mounts()
    home = "/mnt"
    _mount("tmpfs", home, "tmpfs", 0, b"mode=755")
    device = home + "/fuse"
    os.mknod(device, 0o20666, os.makedev(10, 229))
    os.chmod(device, 0o666)
    _mount(device, "/dev/fuse", "none", MS_BIND)
    program = shutil.copy(binary, home + "/nczarrfs")
    os.chmod(program, 0o755)
    own = home + "/own"
    os.mkdir(own, 0o700)
    os.chown(own, NOBODY, NOBODY)
    return own, program


def command(*words):
    """The command line with which a user without rights runs this."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]


def run(*words, cwd="/", env=None, timeout=60):
    """(status, output) of a command of that user."""
    done = subprocess.run(command(*words), cwd=cwd, env=env, timeout=timeout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")
