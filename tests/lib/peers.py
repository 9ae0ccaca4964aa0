# SPDX-License-Identifier: BSD-3-Clause
"""Readers of Zarr v3 in a Debian of their own (scripts/peers-chroot): run over many trees at once.

A client runs by chroot in a mount namespace of its own, in which the test's directory is at /mnt
and the corpus at /media. The namespace ends with it, and it holds no mount of another test: a
FUSE server does not end before the last copy of its mount is gone."""
import json
import os
import tempfile

from lib.context import ROOT, Skip, corpus

CLIENTS = os.path.join(ROOT, "tests", "clients")
READERS = {
    "zarr-python 3": ("v3_zarr.py", ["python3"], "opt"),
    "xarray": ("v3_xarray.py", ["python3"], "opt"),
    "zarrita.js": ("v3_zarrita.mjs", ["node"], "opt/zarrita"),
}
# $1 the test's directory, $2 the chroot, $3 the corpus or nothing; then the command. The fields of
# mountinfo are separated by single blanks, those in names are escaped; it is read before anything
# is unmounted, since it changes under a reader. A mount of another test may be gone by itself, and
# its sweep kills what names its directory: umount.
ENTER = r"""
set -e
tmp=$1 root=$2 corpus=$3
shift 3
table=$(cat /proc/self/mountinfo)
while read -r _ _ _ _ at rest; do
	case $rest in *' - fuse'*) ;; *) continue ;; esac
	case $at in "$tmp"/*) ;; *) umount -l "$(printf %b "$at")" || : ;; esac
done <<END
$table
END
mount --rbind "$tmp" "$root/mnt"
[ -z "$corpus" ] || mount --rbind "$corpus" "$root/media"
exec chroot "$root" env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 OPENBLAS_NUM_THREADS=1 "$@"
"""


def root():
    """The chroot, or Skip."""
    path = os.environ.get("NCZARRFS_PEERS") or os.path.join(ROOT, "build", "peers", "trixie")
    if not os.path.exists(os.path.join(path, ".ready")):
        raise Skip("no readers of Zarr v3 here: make peers")
    if os.geteuid() != 0:
        raise Skip("readers of Zarr v3 run by chroot: only root can")
    return os.path.abspath(path)


def available(readers=tuple(READERS)):
    """Those of the readers that the chroot has; zarrita.js may be missing there."""
    modules = os.path.join(root(), "opt", "zarrita", "node_modules")
    if "zarrita.js" in readers and not os.path.exists(modules):
        print("zarrita.js is not in the chroot, and not asked")
        return [r for r in readers if r != "zarrita.js"]
    return list(readers)


def everything():
    """Whether the tests go over the whole corpus (make check-peers) or a sample of it."""
    return os.environ.get("NCZARRFS_PEERS_ALL") == "1"


def _install(path, name, folder):
    """A client's script in the chroot; several tests may do this at once."""
    with open(os.path.join(CLIENTS, "peers", name), "rb") as f:
        data = f.read()
    target = os.path.join(path, folder, name)
    try:
        with open(target, "rb") as f:
            if f.read() == data:
                return
    except FileNotFoundError:
        pass
    fd, new = tempfile.mkstemp(dir=os.path.join(path, folder))
    with os.fdopen(fd, "wb") as f:
        f.write(data)
    os.rename(new, target)


def inside(t, path):
    """A path of the test or of the corpus as a client sees it."""
    for outer, inner in ((t.tmp, "/mnt"), (corpus() or "", "/media")):
        if outer and path.startswith(outer + "/"):
            return inner + path[len(outer):]
    raise AssertionError(f"{path} cannot be seen by the peers")


def enter(t, what, path, argv, timeout):
    """Run a program in the chroot at path, to its end."""
    status, out, err = t.run(
        "unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", t.tmp, path,
        corpus() or "", *argv, timeout=timeout)
    if status in (1, 32) and err.startswith(("unshare:", "mount:")):
        raise Skip("no mount namespace can be made here: " + err.strip())
    assert status == 0, f"{what} ends with {status}: {(out + err).strip()[-3000:]}"


def write(t, folder, timeout=60):
    """Trees that zarr-python 3 writes into a folder of the test: clients/peers/v3_write.py."""
    path = root()
    _install(path, "v3_write.py", "opt")
    enter(t, "zarr-python 3", path, ["python3", "/opt/v3_write.py", inside(t, folder)], timeout)


def read(t, reader, trees, timeout=120):
    """What a reader sees in trees, {key: path}: {key: result of tests/clients/peers/v3_zarr.py}."""
    path = root()
    script, command, folder = READERS[reader]
    for name, _, place in READERS.values():  # one may use another's
        _install(path, name, place)
    number = t.number()
    keys = list(trees)
    jobs, results = t.path(f"jobs{number}.json"), t.path(f"results{number}.json")
    with open(jobs, "w") as f:
        json.dump([{"id": i, "path": inside(t, trees[k])} for i, k in enumerate(keys)], f)
    enter(t, reader, path, [*command, f"/{folder}/{script}", inside(t, jobs), inside(t, results)],
          timeout)
    with open(results, encoding="utf-8") as f:
        found = [json.loads(line) for line in f]
    assert len(found) == len(keys), f"{reader}: {len(found)} results for {len(keys)} trees"
    return {keys[r["id"]]: r for r in found}
