# SPDX-License-Identifier: BSD-3-Clause
"""Sources that are addresses: what is shown of them and what never is, what is said when nothing
can be had, both views against the local ones, and mounts whose server does not answer."""
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np

from lib import clients, mounts
from lib.context import eventually
from lib.web import WebServer

SECRET = "geheim7531"


def trees(folder):
    """A netCDF-4 file, a classic one and a consolidated Zarr tree of the same data."""
    import xarray as xr
    rng = np.random.default_rng(1)
    ds = xr.Dataset({"t": (("time", "lat"), rng.random((40, 30)).astype("f4"), {"units": "K"}),
                     "n": (("lat",), np.arange(30, dtype="i4"))},
                    coords={"lat": np.linspace(-90, 90, 30)}, attrs={"title": "far away"})
    os.makedirs(folder, exist_ok=True)
    ds.to_netcdf(f"{folder}/f.nc", encoding={"t": {"zlib": True, "chunksizes": (10, 30)}})
    ds.to_netcdf(f"{folder}/old.nc", format="NETCDF3_64BIT")
    ds.to_zarr(f"{folder}/a b.zarr", consolidated=True,
               encoding={"t": {"chunks": (10, 30), "compressor": None}})


def served(t, **keywords):
    folder = t.path("data")
    trees(folder)
    return WebServer(folder, **keywords)


def same_as_local(mnt, local):
    import netCDF4
    import xarray as xr
    names = [n for n in os.listdir(mnt) if n.endswith(".nc")]
    if not names:
        got = xr.open_zarr(mnt)
    else:
        got = xr.open_dataset(os.path.join(mnt, names[0]))
        with netCDF4.Dataset(os.path.join(mnt, names[0])) as nc:
            assert nc.title == "far away"
    want = xr.open_zarr(local) if os.path.isdir(local) else xr.open_dataset(local)
    xr.testing.assert_identical(want.load(), got.load())


def names_in(mnt):
    assert os.listdir(mnt) == ["a b.nc"], os.listdir(mnt)


def test_views(t):
    """Files and trees over HTTP through the real mount, against the local ones."""
    with served(t) as web:
        for name in ("f.nc", "old.nc", "a b.zarr"):
            local = os.path.join(web.folder, name)
            address = f"{web.url}/{name.replace(' ', '%20')}"
            with t.mount(address) as m:
                t.call(same_as_local, m.path, local)
                if name == "a b.zarr":
                    t.call(names_in, m.path)
                if name == "f.nc":
                    notes = clients.info(t, address)
                    clients.zarr(t, local, m, notes)
                    clients.xarray(t, local, m, notes)
                    clients.ncdump(t, local, m)


def test_info(t):
    """Where it is, and what it took; a consolidated tree at most three requests."""
    with served(t) as web:
        for name in ("f.nc", "a%20b.zarr"):
            web.forget()
            code, out, err = t.run(t.binary, "info", "--json", f"{web.url}/{name}#mode=" +
                                   ("zarr" if "zarr" in name else "bytes"))
            assert code == 0, err
            said = json.loads(out)
            assert said["source"] == f"{web.url}/{name}", said["source"]
            assert said["requests"] == len(web.asked) <= 3, (said["requests"], web.asked)
            assert said["view"] == ("netcdf" if "zarr" in name else "zarr")
        code, out, err = t.run(t.binary, "info", f"{web.url}/f.nc")
        assert code == 0 and f"source    {web.url}/f.nc\n" in out and "request" in out, (out, err)


def shown_anywhere(pids, *texts):
    """Everything that others see of processes and mounts."""
    for pid in pids:
        for file in ("cmdline", "comm", "mountinfo"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{file}", "rb") as f:
                texts += (f.read().decode(errors="replace"),)
    with open("/proc/self/mounts") as f:
        texts += (f.read(),)
    return "\n".join(texts)


# SECURITY S42
def test_secrets(t):
    """User, password and a token in an address reach the server, and nobody else."""
    def wants(h):
        given = h.headers.get("Authorization", "")
        want = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
        if given != want or f"token={SECRET}" not in h.path or "@" in h.path:
            h.say(401, b"no", WWW_Authenticate='Basic realm="x"')
            return True
        return False

    with served(t, fault=wants) as web:
        address = f"http://me:{SECRET}@127.0.0.1:{web.port}/f.nc?token={SECRET}&v=2"
        with t.mount(address, "debug", foreground=True) as m:
            t.call(same_as_local, m.path, os.path.join(web.folder, "f.nc"))
            text = shown_anywhere(m.pids, m.messages())
            assert f"127.0.0.1:{web.port}/f.nc" in text
            assert SECRET not in text, [x for x in text.split("\n") if SECRET in x]
        assert SECRET not in m.messages(), m.messages()
        for arguments in (["info", "-o", "timeout=5", address],
                          ["info", address + "#mode=dap4"], [address, t.path("x"), "y"],
                          [t.path("x"), address], ["recover", address],
                          ["info", "-o", f"endpoint=http://me:{SECRET}@h", "s3://b/k"],
                          ["info", f"s3://me:{SECRET}@b/k"],
                          ["info", f"http://me:{SECRET}/x@127.0.0.1:1/f.nc"],
                          ["info", address.replace("f.nc", "nothing.nc")]):
            code, out, err = t.run(t.binary, *arguments)
            assert SECRET not in out + err, (arguments[0], out, err)


# SECURITY S34
def test_netrc_and_token(t):
    """What is in files is sent to the server that it is for."""
    seen = []

    def note(h):
        seen.append(h.headers.get("Authorization"))
        return False

    for name, text in (("netrc", f"machine 127.0.0.1 login me password {SECRET}\n"),
                       ("token", f"{SECRET}\n")):
        with open(t.path(name), "w") as f:
            f.write(text)
        os.chmod(t.path(name), 0o600)
    basic = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    os.mkdir(t.path("home"))
    with served(t, fault=note) as web:
        with open(t.path("home/.ncrc"), "w") as f:
            f.write(f"# a comment\n[http://127.0.0.1:{web.port}/]HTTP.CREDENTIALS.USER=me\n"
                    f"[http://127.0.0.1:{web.port}/]HTTP.CREDENTIALS.PASSWORD={SECRET}\n"
                    "[http://127.0.0.1:1/]HTTP.CREDENTIALS.USER=other\n"
                    "HTTP.CREDENTIALS.PASSWORD=other\n")
        for options, home, want in ((["-o", "netrc_file=" + t.path("netrc")], t.tmp, basic),
                                    (["-o", "bearer_file=" + t.path("token")], t.tmp,
                                     "Bearer " + SECRET),
                                    ([], t.path("home"), basic), ([], t.tmp, None)):
            seen.clear()
            code, out, err = t.run(t.binary, "info", *options, web.url + "/f.nc",
                                   env={"HOME": home})
            assert code == 0, err
            assert seen and set(seen) == {want}, (options, seen)
            assert SECRET not in out + err


def test_errors(t):
    """One line that says what is wrong, and what to do."""
    os.mkdir(t.path("mnt"))

    def fault(h):
        what = h.path.split("/")[1]
        if what == "forbidden":
            h.say(403, b"no")
        elif what == "page":
            h.say(200, b"<!DOCTYPE html><html></html>")
        elif what == "moved":
            h.say(302, b"", Location="http://169.254.169.254/latest/meta-data")
        elif what == "broken":
            h.say(500, b"oops")
        else:
            return False
        return True

    with served(t, fault=fault) as web:
        open(os.path.join(web.folder, "zero.nc"), "w").close()
        for address, words in (
                (web.url + "/no.zarr", ["not found", ".zgroup", "zarr.json"]),
                (web.url + "/no.nc", ["not found"]),
                (web.url + "/forbidden/x.zarr", ["403"]),
                (web.url + "/forbidden/x.nc", ["403"]),
                (web.url + "/page/x.zarr", ["web page", "login"]),
                (web.url + "/page/x.nc", ["web page", "give the address of the dataset itself"]),
                (web.url + "/moved/x.nc", ["redirect", "private_redirects"]),
                (web.url + "/broken/x.nc", ["500", "2 attempts"]),
                (web.url + "/zero.nc", ["0 bytes"]),
                (web.url + "/f.nc/", ["f.nc"]),
                ("http://127.0.0.1:1/x.zarr", ["connect"]),
                ("http://no.such.host.invalid/x.zarr", ["resolve"]),
                ("https://127.0.0.1:%d/x.nc" % web.port, ["SSL"]),
                ("ftp://127.0.0.1/x.nc", ["unknown protocol", "s3://"]),
                ("http://127.0.0.1/x.nc#mode=dap2", ["OPeNDAP"]),
                ("http://127.0.0.1/x#mode=zar", ["did you mean 'zarr'"]),
                ("s3a://bucket/x", ["write s3://"]), ("s3://", ["host"])):
            code, out, err = t.run(t.binary, "-o", "max_attempts=2,timeout=5", address,
                                   t.path("mnt"), timeout=30)
            if address.endswith("/f.nc/"):
                assert code == 0, err  # a name's ending is only a hint
                mounts.unmount(t.path("mnt"))
                continue
            assert err.count("\n") == 1, (address, err)
            wrong = address.startswith(("ftp:", "s3")) or "#mode=zar" in address
            assert code == (2 if wrong else 1), (address, code)
            for word in words:
                assert word in err, (address, word, err)
    for options, words in (("endpoint=ftp://h", ["endpoint"]),
                           ("endpoint=http://h/x", ["endpoint"]),
                           ("region=evil.example.org/", ["region"]),
                           ("max_attempts=0", ["max_attempts"])):
        code, out, err = t.run(t.binary, "info", "-o", options, "s3://b/k")
        assert code == 2 and all(w in err for w in words), err
    code, out, err = t.run(t.binary, t.path("mnt"), "http://127.0.0.1/x")
    assert code == 2 and "MOUNTPOINT is a URL" in err, err


def test_file_address(t):
    """file:// is a local path, with what comes after the '#' taken off."""
    trees(t.path("data"))
    address = "file://" + t.path("data/a%20b.zarr") + "#mode=zarr,file"
    with t.mount(address) as m:
        t.call(same_as_local, m.path, t.path("data/a b.zarr"))


READER = "import sys; open(sys.argv[1], 'rb').read()"


# SEMANTICS E14
def test_hang(t):
    """A server that stops answering: who waits can be killed, and the mount goes away, by
    fusermount3 and by a signal."""
    go, waits, hang = threading.Event(), threading.Event(), []

    def fault(h):
        if not hang or "/t/" not in h.path:
            return False
        waits.set()
        go.wait(60)
        return False

    def start(m, chunk):
        return subprocess.Popen([sys.executable, "-c", READER, f"{m.path}/t/{chunk}"],
                                stderr=subprocess.DEVNULL)

    with served(t, fault=fault) as web:
        address, options = web.url + "/a%20b.zarr", "view=zarr,timeout=600"
        try:
            with t.mount(address, options) as m:
                hang.append(True)
                reader = start(m, "1.0")
                assert waits.wait(30)
                reader.kill()
                assert reader.wait(30) == -signal.SIGKILL
            hang.clear()
            with t.mount(address, options, foreground=True) as m:
                hang.append(True)
                waits.clear()
                reader = start(m, "2.0")
                assert waits.wait(30)
                m.process.send_signal(signal.SIGTERM)
                assert m.process.wait(30) == 0, m.messages()
                assert reader.wait(30) > 0, "it has read what nobody sent"
                m.ended = True
        finally:
            go.set()


# SEMANTICS C7
def test_changed(t):
    """A file that is replaced is opened again, when somebody uses the mount."""
    import xarray as xr
    with served(t) as web:
        with t.mount(web.url + "/f.nc", "revalidate=1") as m:
            def value():
                code, out, err = t.run(
                    sys.executable, "-c",
                    "import sys, zarr; print(zarr.open(sys.argv[1], mode='r')['n'][0])", m.path)
                return out.strip()
            assert value() == "0"
            web.forget()
            new = os.path.join(web.folder, "f.new")
            ds = xr.open_dataset(os.path.join(web.folder, "f.nc")).load()
            ds["n"] += 7
            ds.to_netcdf(new)
            os.rename(new, os.path.join(web.folder, "f.nc"))
            eventually(lambda: value() == "7", 60)
