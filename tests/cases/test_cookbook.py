"""docs/cookbook.md: every recipe is played as it stands, in a directory of its own with the data of its
first section, on real mounts, and what it prints is compared (tests/lib/console.py). A recipe whose
"Needs:" names what is not here is skipped. And the examples of the manual pages."""
import os
import re
import socket
import subprocess

from lib import mounts
from lib.console import Console, blocks, commands, environment, sections
from lib.context import ROOT, Skip
from lib.s3_server import S3Server
from lib.web import WebServer

PAGE = os.path.join(ROOT, "docs", "cookbook.md")
KEY, SECRET = "AKIDCOOKBOOK0001", "not+much/of/a/secret"
# Of each package that a recipe needs, what ends with status 0 when it is there.
PROBES = {"cdo": "cdo --version", "curl": "curl --version", "gdal-bin": "gdalinfo --version",
          "gfortran": "gfortran --version", "hdf5-tools": "h5dump --version",
          "libnetcdff-dev": "nf-config --flibs", "nco": "ncks --version",
          "netcdf-bin": "command -v ncdump",
          "python3-netcdf4": "/usr/bin/python3 -c 'import netCDF4'"}


def page():
    with open(PAGE, encoding="utf-8") as f:
        return sections(f.read())


def needed(text):
    """The packages of a recipe's line "Needs: `a`, `b`.", which may go on in the next."""
    line = re.search(r"Needs: ((?:`[\w.-]+`,?\s*)+)\.", text)
    return re.findall(r"`([\w.-]+)`", line[1]) if line else []


def absent(package, env):
    """Whether a package is not here: Debian's python3-x is the module x."""
    probe = PROBES.get(package)
    if probe is None:
        assert package.startswith("python3-"), f"how is it seen whether {package} is here?"
        probe = "/usr/bin/python3 -c 'import %s'" % package.removeprefix("python3-")
    return subprocess.run(["sh", "-c", probe], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60).returncode != 0


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


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def kitchen(t):
    """A console in t.tmp/home, which is HOME and has the data and an empty mnt."""
    home = t.path("home")
    os.makedirs(os.path.join(home, "mnt"))
    env = {k: v for k, v in environment(t.binary).items() if not k.startswith("AWS_")}
    env.update(HOME=home, XDG_CONFIG_HOME=os.path.join(home, ".config"), AWS_ACCESS_KEY_ID=KEY,
               AWS_SECRET_ACCESS_KEY=SECRET, AWS_EC2_METADATA_DISABLED="true")
    for package in ("python3-netcdf4", "python3-xarray", "python3-zarr"):
        if absent(package, env):
            raise Skip(f"no {package}, which the data need")
    console = Console(home, env)
    for _, name, content in blocks(dict(page())["The data"]):
        if name:
            console.write(name, content)
    status, out, err = t.run("/usr/bin/python3", "data.py", cwd=home, env=env)
    assert status == 0, out + err
    return console


def recipe(t, title):
    text = dict(page())[title]
    console = kitchen(t)
    missing = [p for p in needed(text) if absent(p, console.env)]
    if missing:
        raise Skip("no " + ", ".join(missing))
    tree = os.path.join(console.folder, "model.zarr")
    with WebServer(console.folder) as web, \
            S3Server({KEY: SECRET}, {"bucket": objects(tree)}) as s3:
        s3.public.add("bucket")
        port = str(free_port())
        console.replace = [("https://data.example.org", web.url), ("127.0.0.1:8000",
                           "127.0.0.1:" + port), ("cors.py 8000", "cors.py " + port),
                           ("https://s3.example.org", s3.url)]
        try:
            problems = console.play(text)
        finally:
            left = leave(t)
    assert not problems, "\n".join(problems)
    assert console.ran or title in OTHERS, "nothing was run"
    assert not left, f"the recipe leaves mounts behind: {left}"


def leave(t):
    """Take off what is still mounted, wait for the servers' end; what had to be taken off."""
    left = [p for p, _ in mounts.table() if p.startswith(t.tmp + "/")]
    pids = mounts.processes_of(t.path("home"))
    mounts.unmount_below(t.tmp)
    assert mounts.wait_gone(pids, 60), "a server does not end"
    return left


# Recipes that are played by a test of their own.
OTHERS = ("Mounts at boot",)


def cases():
    for title, _ in page():
        if title not in OTHERS:
            name = re.sub(r"\W+", "-", title.lower()).strip("-")
            yield name, lambda t, title=title: recipe(t, title)


FSTAB = r"""
set -e
mount --bind "$T/bin" /usr/local/bin
mkdir -p "$T/root/model" "$T/root/far"
mount -T "$T/fstab" -a
findmnt -n -l -o TARGET,FSTYPE,OPTIONS -t fuse.nczarrfs | grep "$T/root"
ls "$T/root/model" "$T/root/far"
umount "$T/root/model" "$T/root/far"
"""


def test_mounts_at_boot(t):
    """The lines of fstab of that recipe, by mount -a in a mount namespace of its own."""
    if os.geteuid() != 0:
        raise Skip("only root mounts by fstab")
    if t.sanitized:
        raise Skip("mount(8) starts it without the environment that sanitizers need")
    console = kitchen(t)
    lines = [c for lang, _, c in blocks(dict(page())["Mounts at boot"]) if lang == "fstab"]
    tree = os.path.join(console.folder, "model.zarr")
    os.mkdir(t.path("bin"))
    os.symlink(t.binary, t.path("bin/nczarrfs"))
    with S3Server({}, {"bucket": objects(tree)}) as s3:
        s3.public.add("bucket")
        with open(t.path("fstab"), "w", encoding="utf-8") as f:
            f.write(lines[0].replace("/data/", console.folder + "/").replace(
                "/mnt/", t.path("root") + "/").replace("https://s3.example.org", s3.url))
        status, out, err = t.run("unshare", "-m", "--propagation", "private", "sh", "-c", FSTAB,
                                 env={"T": t.tmp, "HOME": t.tmp}, timeout=60)
        assert mounts.wait_gone(mounts.processes_of(t.path("root")), 60)
    if "unshare" in err:
        raise Skip("no mount namespaces here")
    assert status == 0, out + err
    assert len(re.findall(r"fuse\.nczarrfs ro,", out)) == 2, out
    assert "temperature" in out and "model.nc" in out, out
