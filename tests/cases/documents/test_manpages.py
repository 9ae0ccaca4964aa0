# SPDX-License-Identifier: BSD-3-Clause
"""The examples of the manual pages, run as they stand but for their places: /mnt and /data are in
the test's directory, addresses are those of the test's servers."""
import os
import re

from lib import mounts
from lib.context import ROOT, Skip
from lib.kitchen import bucket, by_fstab, kitchen, leave
from lib.web import WebServer

FURTHER = {  # what a comment of an example says to do then, and how it is seen
    "/mnt/new": "/usr/bin/python3 -c 'import xarray; xarray.open_dataset(\"ocean.nc\").to_zarr("
                "\"/mnt/new\")' && sync /mnt/new && ncdump -h new.nc | grep temperature",
    "/mnt/store": "ncatted -h -a units,temperature,o,c,kelvin /mnt/store/store.nc && "
                  "sync /mnt/store && grep -q kelvin store.zarr/temperature/.zattrs && echo kelvin"}


def shown(page, section):
    """The texts of the literal displays in a section of a manual page."""
    with open(os.path.join(ROOT, "docs", "reference", page), encoding="utf-8") as f:
        text = f.read().partition(f"\n.Sh {section}\n")[2].partition("\n.Sh ")[0]
    return re.findall(r"^\.Bd .*\n((?:.*\n)*?)\.Ed$", text, re.M)


def at_home(t):
    """A kitchen whose data have the names that the manual pages use."""
    console = kitchen(t)
    for old, new in (("model.nc", "ocean.nc"), ("model.zarr", "store.zarr")):
        os.rename(os.path.join(console.folder, old), os.path.join(console.folder, new))
        os.symlink(new, os.path.join(console.folder, old))
    for name in ("data", "both"):
        os.mkdir(os.path.join(console.folder, name))
    os.link(os.path.join(console.folder, "ocean.nc"), os.path.join(console.folder, "data/x.nc"))
    for name in ("ocean", "store", "new"):
        os.makedirs(os.path.join(console.folder, "mnt", name))
    return console


def run(t, console, command):
    status, out, err = t.run("sh", "-c", console.real(command), cwd=console.folder,
                             env=console.env)
    assert status == 0, (command, out, err)
    return out + err


def example(t, console, line):
    """One line: it mounts, something is there, and what its comment says can be done."""
    words = line.partition("#")[0].split()
    if words[0] != "nczarrfs" or words[1] == "umount":
        assert words[0] == "nczarrfs" or run(t, console, line), line
        return words[0] == "nczarrfs" and run(t, console, line)
    place = words[-1]
    real = console.real(place).replace("~", console.folder)
    if mounts.is_mounted(real):
        leave(t)
    run(t, console, line)
    assert mounts.is_mounted(real), line
    names = t.run("ls", real)[1].split()
    assert names or "create" in line, (line, "shows nothing")
    if "then" in line:
        assert run(t, console, FURTHER[place]), line


def test_nczarrfs_1(t):
    """EXAMPLES of nczarrfs(1)."""
    if t.run("ncatted", "--version")[0] or t.run("sh", "-c", "command -v ncdump")[0]:
        raise Skip("no nco, netcdf-bin")
    lines = [x for x in shown("nczarrfs.1", "EXAMPLES")[0].splitlines() if x.strip()]
    assert len(lines) >= 12, lines
    console = at_home(t)
    with WebServer(console.folder) as web, bucket(console) as s3:
        for key in [k for k in s3.buckets["bucket"] if k.startswith("model.zarr/")]:
            s3.buckets["bucket"]["store" + key[5:]] = s3.buckets["bucket"][key]
        console.env["AWS_ENDPOINT_URL"] = s3.url
        console.replace = [("/mnt/", os.path.join(console.folder, "mnt") + "/"),
                           ("https://host/", web.url + "/")]
        try:
            for line in lines:
                example(t, console, line)
        finally:
            leave(t)


def test_nczarrfs_1_fstab(t):
    """The line of fstab in nczarrfs(1), and those in nczarrfs.conf(5)."""
    lines = (shown("nczarrfs.1", "EXAMPLES")[1].replace("/mnt/ocean", "/mnt/one") +
             shown("nczarrfs.conf.5", "SYSTEM MOUNTS")[0])
    console = at_home(t)
    with bucket(console) as s3:
        s3.buckets["bucket"] = {"sst" + k[5:]: v for k, v in s3.buckets["bucket"].items()}
        lines = lines.replace("/data/", console.folder + "/").replace("/mnt/", t.path("places/"))
        out = by_fstab(t, re.sub(r"(s3://\S+ \S+ \S+ ro)", rf"\1,anonymous,endpoint={s3.url}",
                                 lines))
    assert out.count("temperature") == 2 and "sst.nc" in out, out


def test_nczarrfs_conf_5(t):
    """EXAMPLES of nczarrfs.conf(5): the file, and the commands below it."""
    console = at_home(t)
    with bucket(console) as s3:
        s3.buckets["bucket"] = {"sst" + k[5:]: v for k, v in s3.buckets["bucket"].items()}
        console.env["AWS_ENDPOINT_URL"] = s3.url
        console.replace = [("/data/", console.folder + "/"),
                           ("region = eu-central-1", "region = us-east-1")]
        os.rename(console.folder + "/data", console.folder + "/archive.d")
        os.mkdir(console.folder + "/sst")
        os.mkdir(console.folder + "/mounted")
        text = shown("nczarrfs.conf.5", "EXAMPLES")[0]
        console.write(".config/nczarrfs.conf", text.replace("/data/archive", "/data/archive.d")
                      .replace("~/archive", "~/mounted"))
        os.chmod(console.folder + "/.config/nczarrfs.conf", 0o600)
        try:
            run(t, console, "nczarrfs mount archive")
            assert "x.zarr" in t.run("ls", console.folder + "/mounted")[1]
            assert re.search(r"^archive +mounted ", run(t, console, "nczarrfs list"), re.M)
            run(t, console, "nczarrfs umount archive")
            run(t, console, "nczarrfs mount sst")
            assert "sst.nc" in t.run("ls", console.folder + "/sst")[1]
            assert os.listdir(console.folder + "/.cache/sst")
        finally:
            leave(t)
