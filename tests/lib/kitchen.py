# SPDX-License-Identifier: BSD-3-Clause
"""A kitchen for what documents show: a home with the data of docs/how-to/README.md, a server of the
bucket that documents name, lines of fstab mounted apart from the machine."""
import glob
import os
import re

from lib import mounts
from lib.console import Console, blocks, environment, sections
from lib.context import ROOT, Skip
from lib.s3_server import S3Server

PAGES = os.path.join(ROOT, "docs", "how-to")
DATA = "README", "The data"
KEY, SECRET = "AKIDCOOKBOOK0001", "not+much/of/a/secret"
BUCKET = "https://s3.example.org"  # in documents


def recipes():
    """{(page, title): text} of the sections of docs/how-to that have commands, and of the data."""
    found = {}
    for path in sorted(glob.glob(PAGES + "/*.md")):
        with open(path, encoding="utf-8") as f:
            for title, text in sections(f.read()):
                if title == DATA[1] or re.search("^```(console|fstab)$", text, re.M):
                    found[os.path.basename(path)[:-3], title] = text
    return found


def objects(folder):
    """Keys and contents of a tree, as a bucket has them."""
    above = os.path.dirname(folder)
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, above)] = f.read()
    return found


def kitchen(t):
    """A console in t.tmp/home, which is HOME and has the data and an empty mnt."""
    home = t.path("home")
    os.makedirs(os.path.join(home, "mnt"))
    env = {k: v for k, v in environment(t.binary).items() if not k.startswith("AWS_")}
    env.update(HOME=home, XDG_CONFIG_HOME=os.path.join(home, ".config"), AWS_ACCESS_KEY_ID=KEY,
               AWS_SECRET_ACCESS_KEY=SECRET, AWS_EC2_METADATA_DISABLED="true")
    if t.run("/usr/bin/python3", "-c", "import netCDF4, xarray, zarr")[0]:
        raise Skip("no python3-netcdf4, python3-xarray, python3-zarr, which the data need")
    t.run("/bin/sh", os.path.join(ROOT, "scripts", "python", "install"), t.path("site"))
    env["PYTHONPATH"] = t.path("site")
    console = Console(home, env)
    for _, name, content in blocks(recipes()[DATA]):
        if name:
            console.write(name, content)
    status, out, err = t.run("/usr/bin/python3", "data.py", cwd=home, env=env)
    assert status == 0, out + err
    return console


def bucket(console):
    """A server with the Zarr store of the data in a public bucket, for a with statement."""
    s3 = S3Server({KEY: SECRET}, {"bucket": objects(os.path.join(console.folder, "model.zarr"))})
    s3.public.add("bucket")
    return s3


def leave(t):
    """Take off what is still mounted, wait for the servers' end; what had to be taken off."""
    left = [p for p, _ in mounts.table() if p.startswith(t.tmp + "/")]
    pids = mounts.processes_of(t.path("home"))
    mounts.unmount_below(t.tmp)
    assert mounts.wait_gone(pids, 60), "a server does not end"
    return left


FSTAB = r"""
set -e
trap 'umount -l "$T"/places/* 2>/dev/null || true' EXIT
mount --bind "$T/bin" /usr/local/bin
mount -T "$T/fstab" -a
for m in "$T"/places/*; do findmnt -n -o FSTYPE,OPTIONS "$m"; ls "$m"; umount "$m"; done
"""


def by_fstab(t, text):
    """mount -a of lines whose places to mount on are below t.path("places"), in a mount namespace
    of its own: what is mounted, with its options, and the names in it."""
    if os.geteuid() != 0:
        raise Skip("only root mounts by fstab")
    if t.sanitized:
        raise Skip("mount(8) starts it without the environment that sanitizers need")
    with open(t.path("fstab"), "w", encoding="utf-8") as f:
        f.write(text)
    places = re.findall(re.escape(t.path("places")) + r"/\S+", text)
    for place in places:
        os.makedirs(place)
    os.mkdir(t.path("bin"))
    os.symlink(t.binary, t.path("bin/nczarrfs"))
    status, out, err = t.run("unshare", "-m", "--propagation", "private", "sh", "-c", FSTAB,
                             env={"T": t.tmp, "HOME": t.tmp}, timeout=60)
    assert mounts.wait_gone(mounts.processes_of(t.path("places")), 60)
    if "unshare" in err:
        raise Skip("no mount namespaces here")
    assert status == 0, out + err
    assert places and len(re.findall(r"^fuse\.nczarrfs +ro,", out, re.M)) == len(places), out
    return out
