# SPDX-License-Identifier: BSD-3-Clause
"""Lines of fstab and mount(8), as root in a mount namespace of its own, in which nczarrfs is a
program of the system."""
import os

import h5py
import numpy as np

from lib.context import Skip

SCRIPT = r"""
set -e
# Unmount the mounts of others, only in this namespace and the last one first. Their paths have
# octal escapes, to which %b needs a 0. If a directory was removed, its mount is gone already.
grep ' - fuse.nczarrfs ' /proc/self/mountinfo | sed 's/\\/\\0/g' | tac |
	while read -r _ _ _ _ m _; do umount -l "$(printf %b "$m")" || :; done
mount --bind "$T/bin" /usr/local/bin
check() { test -e "$T/mnt/v/0"; findmnt -n -o FSTYPE,SOURCE,OPTIONS "$T/mnt"; }
echo line; mount -T "$T/fstab" "$T/mnt"; check
echo twice; mount -T "$T/fstab" "$T/mnt" 2>&1 || echo refused
nczarrfs umount "$T/mnt"
echo all; mount -T "$T/fstab" -a; check; umount "$T/mnt"
echo type; WORDS=ro,dev,suid,exec,async,x-a.b=c
mount -t fuse.nczarrfs "$T/x.nc" "$T/mnt" -o $WORDS,commit_delay=5 2>&1 || echo refused
mount -t fuse.nczarrfs "$T/x.nc" "$T/mnt" -o $WORDS,max_attempts=5; check
nczarrfs status --json "$T/mnt" | tr ',' '\n' | grep -A3 max_attempts | tr -d '\n '; echo
umount "$T/mnt"
echo helper; mount -t fuse "nczarrfs#$T/x.nc" "$T/mnt"; check; umount "$T/mnt"
echo defaults; cp -a /etc "$T/etc"; mount --bind "$T/etc" /etc
printf '[defaults]\nmax_attempts = 4\n[mount sys]\nsource=%s\ntarget=%s\n' "$T/x.nc" "$T/mnt" \
	>/etc/nczarrfs.conf
chmod 644 /etc/nczarrfs.conf
HOME=/nonexistent nczarrfs --print-config | grep max_attempts
nczarrfs mount -a; check
nczarrfs umount -a; echo "left: $(grep -c fuse.nczarrfs /proc/self/mountinfo)"
"""


def test_fstab(t):
    """SEMANTICS G6: a line of fstab with the words of mount(8), mount -a, -t fuse.nczarrfs,
    mount.fuse's form; the system's file; umount -a"""
    if os.geteuid() != 0:
        raise Skip("only root mounts by fstab")
    if t.sanitized:
        raise Skip("mount(8) starts it without the environment that sanitizers need")
    for d in ("mnt", "bin"):
        os.mkdir(t.path(d))
    os.symlink(t.binary, t.path("bin/nczarrfs"))
    with h5py.File(t.path("x.nc"), "w") as f:
        f["v"] = np.arange(4.0)
    with open(t.path("fstab"), "w") as f:
        f.write(f"{t.path('x.nc')} {t.path('mnt')} fuse.nczarrfs ro,user,nofail,_netdev,"
                "x-systemd.automount,x-systemd.idle-timeout=60,x-gvfs-hide,comment=a,noatime,"
                "allow_other,max_attempts=3 0 0\n")
    status, out, err = t.run("unshare", "-m", "--propagation", "private", "sh", "-c", SCRIPT,
                             env={"T": t.tmp, "HOME": t.tmp}, timeout=60)
    if "unshare" in err:
        raise Skip("no mount namespaces here")
    assert status == 0, (out, err)
    parts = {}
    for line in out.splitlines():
        if line in ("line", "twice", "all", "type", "helper", "defaults"):
            name = line
        parts.setdefault(name, []).append(line)
    for name in ("line", "all", "type", "helper", "defaults"):
        assert any(x.startswith("fuse.nczarrfs") and t.path("x.nc") in x and "nosuid,nodev" in x
                   for x in parts[name]), (name, out)
    assert "allow_other" in parts["line"][1] and "noexec" in parts["line"][1], out
    assert "already" in " ".join(parts["twice"]) and "refused" in parts["twice"], out
    assert "refused" in parts["type"] and "only with rw" in " ".join(parts["type"]), out
    assert any("/etc/nczarrfs.conf:2" in x for x in parts["defaults"]), out
    assert parts["defaults"][-1] == "left: 0", out
