# SPDX-License-Identifier: BSD-3-Clause
"""docs/how-to: every section with commands is a recipe. It is played as it stands, in a directory
of its own with the data of docs/how-to/README.md, on real mounts, and what it prints is compared
(tests/lib/console.py). A recipe whose "Needs:" names a package that is not installed is skipped."""
import re
import socket
import subprocess

from lib.console import blocks
from lib.context import Skip
from lib.kitchen import BUCKET, bucket, by_fstab, kitchen, leave, recipes
from lib.web import WebServer

# Of each package that a recipe needs, what ends with status 0 when it is there.
PROBES = {"attr": "command -v getfattr", "cdo": "cdo --version", "curl": "curl --version",
          "gdal-bin": "gdalinfo --version",
          "gfortran": "gfortran --version", "hdf5-tools": "h5dump --version",
          "libnetcdff-dev": "nf-config --flibs", "nco": "ncks --version",
          "netcdf-bin": "command -v ncdump",
          "python3-gdal": "/usr/bin/python3 -c 'from osgeo import gdal'",
          "python3-netcdf4": "/usr/bin/python3 -c 'import netCDF4'"}


def needed(text):
    """The packages of a recipe's line "Needs: `a`, `b`.", which may be wrapped anywhere."""
    line = re.search(r"Needs:\s+((?:`[\w.-]+`,?\s*)+)\.", text)
    return re.findall(r"`([\w.-]+)`", line[1]) if line else []


def absent(package, env):
    """Whether a package is not here: Debian's python3-x is the module x."""
    probe = PROBES.get(package)
    if probe is None:
        assert package.startswith("python3-"), f"how is it seen whether {package} is here?"
        probe = "/usr/bin/python3 -c 'import %s'" % package.removeprefix("python3-")
    return subprocess.run(["sh", "-c", probe], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60).returncode != 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def recipe(t, text):
    console = kitchen(t)
    missing = [p for p in needed(text) if absent(p, console.env)]
    if missing:
        raise Skip("no " + ", ".join(missing))
    port = free_port()
    with WebServer(console.folder) as web, bucket(console) as s3:
        console.replace = [("https://data.example.org", web.url), (BUCKET, s3.url),
                           ("127.0.0.1:8000", "127.0.0.1:" + port),
                           ("cors.py 8000", "cors.py " + port)]
        try:
            problems = console.play(text)
        finally:
            left = leave(t)
    assert not problems, "\n".join(problems)
    assert console.ran, "nothing was run"
    assert not left, f"the recipe leaves mounts behind: {left}"


BOOT = "named-mounts-and-boot", "Mounts at boot"


def cases():
    for (page, title), text in recipes().items():
        if (page, title) != BOOT:
            name = page + "-" + re.sub(r"\W+", "-", title.lower()).strip("-")
            yield name, lambda t, text=text: recipe(t, text)


def test_mounts_at_boot(t):
    """The lines of fstab of that recipe; what its unit runs is in test_config.py."""
    lines, = [c for lang, _, c in blocks(recipes()[BOOT]) if lang == "fstab"]
    console = kitchen(t)
    with bucket(console) as s3:
        out = by_fstab(t, lines.replace("/data/", console.folder + "/").replace(
            "/mnt/", t.path("places") + "/").replace(BUCKET, s3.url))
    assert "temperature" in out and "model.nc" in out, out
