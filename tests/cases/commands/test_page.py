# SPDX-License-Identifier: BSD-3-Clause
"""The page of `nczarrfs serve` in a browser: a variable is picked and read with the keyboard alone,
and what it shows is what netCDF-C reads. Needs node, Debian's chromium and playwright-core (make
check-page gets them). Pictures of it: build/page/*.png."""
import json
import os
import re
import shutil

import h5py
import netCDF4
import numpy as np

from lib.context import ROOT, Skip
from lib.serving import Serving

HERE = os.path.join(ROOT, "tests", "clients", "page")
MODULES = os.path.join(ROOT, "build", "page", "client", "node_modules")
LIMIT = 300.0


def make(path):
    lat, lon = np.linspace(-90, 90, 61), np.arange(120) * 3.0
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "A sample"
        for name, values, units in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east"),
                                    ("time", np.arange(5) * 6, "hours since 2024-01-01")):
            ds.createDimension(name, len(values))
            v = ds.createVariable(name, "f8", (name,))
            v.units = units
            v[:] = values
        v = ds.createVariable("temp", "i2", ("time", "lat", "lon"), zlib=True,
                              chunksizes=(1, 31, 60), fill_value=-999)
        v.scale_factor, v.add_offset, v.units = 0.01, 270.0, "K"
        v.long_name = "air temperature"
        rng = np.random.default_rng(5)
        wave = 30 * np.cos(np.deg2rad(lat))[:, None] + 4 * np.sin(np.deg2rad(3 * lon))[None, :]
        data = wave + rng.random((5, 61, 120)) + np.arange(5)[:, None, None]
        v[:] = np.ma.masked_where(data > 34.5, 270 + data)
        m = ds.createVariable("mean", "f8", ("time",))
        m.units = "K"
        m[:] = 288 + np.sin(np.arange(5))
        g = ds.createGroup("ocean")
        g.createDimension("n", 3)
        g.createVariable("names", str, ("n",))[:] = np.array(["north", "sea", "\u00d8"], object)
    with h5py.File(path, "a") as f:
        d = f.create_dataset("bad", (20, 20), "i4", chunks=(10, 20), compression="gzip")
        d[...] = np.arange(400).reshape(20, 20)
        info = d.id.get_chunk_info(0)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset)
        f.write(b"\xff" * info.size)


def needed():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not shutil.which("node") or not chromium:
        raise Skip("node or chromium is missing: make check-page installs them")
    if not os.path.isdir(os.path.join(MODULES, "playwright-core")):
        raise Skip("playwright-core is missing: make check-page gets it from npm")
    return chromium


def check_values(seen, path):
    values = dict(seen["values"])
    with netCDF4.Dataset(path) as ds:
        temp = ds["temp"]
        for name, k in (("middle", 0), ("moved", 0), ("slid", 2), ("mouse", 2)):
            found = re.fullmatch(r"lat (\S+) degrees_north \[(\d+)\], lon (\S+) degrees_east "
                                 r"\[(\d+)\]: (.*)", values[name])
            assert found, values[name]
            i, j = int(found.group(2)), int(found.group(4))
            number = found.group(1).replace("\u2212", "-")
            assert float(number) == float(ds["lat"][i]), values[name]
            assert float(found.group(3)) == float(ds["lon"][j]), values[name]
            want = temp[k, i, j]
            if want is np.ma.masked:
                assert found.group(5) == "missing", (values[name], want)
            else:
                assert found.group(5).endswith(" K"), values[name]
                assert abs(float(found.group(5)[:-2]) - want) < 1e-4, (values[name], want)
        assert "[30]" in values["middle"] and "[60]" in values["middle"]
        assert "[31]" in values["moved"] and "[61]" in values["moved"], "north is up"
        assert seen["slider"] == "2024-01-01 12:00", seen["slider"]
        found = re.fullmatch(r"time (.*) \[2\]: (\S+) K", values["line"])
        assert found and found.group(1) == "2024-01-01 12:00", values["line"]
        assert abs(float(found.group(2)) - ds["mean"][2]) < 1e-4, values["line"]
    assert values["texts"] == "north, sea, \u00d8", repr(values["texts"])


def look(t, path, *options):
    """What somebody sees of it, without problems on the way."""
    chromium = needed()
    with Serving(t, path, *options) as s:
        if b"missing = true" in s.get("/page/zarr.js").body[-200:]:
            raise Skip("the page was built without its picture: make page")
        status, out, err = t.run("node", os.path.join(HERE, "look.mjs"), MODULES, chromium,
                                 s.url + "/", os.path.join(ROOT, "build", "page"), timeout=240,
                                 env={"HOME": t.tmp})
        assert status == 0, out + err
        seen = json.loads(out)
        assert "failed" not in seen, seen
        outside = [r for r in seen["requests"]
                   if not r.startswith(s.url + "/") and not r.startswith("data:")]
        assert not outside, outside
    assert not seen["problems"], seen["problems"]
    check_values(seen, path)
    return seen


def test_shards(t):
    """Zarr v3, with Blosc, whose decoder makes code as it begins: the worker may."""
    path = t.path("sample.nc")
    make(path)
    seen = look(t, path, "-o", "shards")
    assert "damaged" in seen["error"], seen["error"]


def test_look(t):
    path = t.path("sample.nc")
    make(path)
    seen = look(t, path, "-o", "filter=none")
    assert seen["first"].startswith("temp"), seen["first"]
    assert seen["colours"] > 100, "it is a picture"
    assert seen["outline"] != "0px", "the focus is seen"
    assert "20 chunks, all written" in seen["chunks"], seen["chunks"]
    assert "chunk" in seen["error"] and "bad" in seen["error"], seen["error"]
    for name, page in seen["judged"].items():
        assert page["lang"] == "en" and page["h1"] == 1 and page["title"], (name, page)
        assert not page["unlabelled"] and not page["nameless"] and not page["ids"], (name, page)
        assert page["contrast"][0] >= 4.5, (name, page["contrast"])
        assert page["overflow"] <= 0, (name, page)


def test_without_picture(t):
    """The page is there in any build; nothing that is in it comes from elsewhere."""
    path = t.path("sample.nc")
    make(path)
    with Serving(t, path) as s:
        page = s.get("/")
        assert page.status == 200 and page["Content-Type"] == "text/html; charset=utf-8"
        names = re.findall(rb'(?:href|src)="(/page/[^"]+)"', page.body)
        names += [b"/page/" + n for n in re.findall(rb'from "\./([^"]+)"',
                                                   s.get("/page/page.js").body)]
        assert len(names) > 4
        for name in names:
            got = s.get(name.decode())
            assert got.status == 200 and got["X-Content-Type-Options"] == "nosniff", name
            assert not re.search(rb'(?:src|href)="https?:', got.body), name
