# SPDX-License-Identifier: BSD-3-Clause
"""Servers and lines that fail, in every way that lib/web.py knows, while a dataset is opened, while
a chunk is read and while a range of a file is read: right data or an error, in time; never a fill
value in place of data, never a hang, and afterwards the mount is as good as before.

Which request fails is in the address or in the number of the chunk, so that all faults of a kind of
operation happen at once, on one mount."""
import concurrent.futures
import os
import re
import signal
import ssl
import subprocess
import time

from lib import mounts
from lib.context import eventually
from lib.web import FAULTS, WebServer

KINDS = sorted(FAULTS)
# What a client gets the right data from all the same.
HARMLESS = ("whole_for_part",)
# Whole answers of a server that says nothing wrong of them: what it said of the object is kept
# until it is asked again. Bytes whose checksum does not match are asked for once more.
LIES = ("endless_body", "range_other_size")
# Wrong bytes, or a wrong length, that only a checksum or nobody finds.
UNSEEN = ("flipped",) + LIES
# With sanitizers what takes no time takes some.
QUICK = ("timeout=%d" % (2 if "-asan" in os.environ.get("NCZARRFS", "") else 1), "max_attempts=2")
CHUNK = 1 << 16


def chunk_of(i):
    import numpy
    return numpy.random.default_rng(i).integers(1, 255, CHUNK, "u1")


def make_tree(path):
    """A chunk for each fault, with a checksum each; 0, the fill value, is in none."""
    import numcodecs
    import numpy
    import zarr
    root = zarr.open_group(path, mode="w")
    v = root.create_dataset("v", shape=(len(KINDS) * CHUNK,), chunks=(CHUNK,), dtype="u1",
                            fill_value=0, compressor=None, filters=[numcodecs.CRC32()])
    v[:] = numpy.concatenate([chunk_of(i) for i in range(len(KINDS))])
    v.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    zarr.consolidate_metadata(path)


def make_file(path):
    import h5py
    import numpy
    with h5py.File(path, "w") as f:
        f.create_dataset("pad", data=numpy.zeros(6 << 20, "u1"))  # more than is fetched at once
        d = f.create_dataset("v", (len(KINDS), CHUNK), "u1", chunks=(1, CHUNK), fletcher32=True)
        for i in range(len(KINDS)):
            d[i] = chunk_of(i)


class Fate:
    """Which request has which fault: /@KIND/... always; chunks and ranges while armed."""

    def __init__(self):
        self.armed = False
        self.where = {}  # first byte in file.h5: kind

    def __call__(self, h):
        m = re.match(r"/@(\w+)(/.*)", h.path)
        if m:
            h.path = m.group(2)
            return FAULTS[m.group(1)](h) if h.local() else False
        m = re.search(r"a\.zarr/v/(\d+)$", h.path.split("?")[0])
        if self.armed and m:
            return FAULTS[KINDS[int(m.group(1))]](h)
        if self.armed and h.path.endswith(".h5"):
            first = h.bytes_of()[0]
            near = [k for at, k in self.where.items() if at - CHUNK < first <= at]
            # a request may be for several chunks, of which only the reader has checksums
            return FAULTS[near[0]](h) if near and near[0] not in UNSEEN else False
        return False


def read_chunk(path, i):
    """What a program makes of one chunk, whose checksum the mount has looked at: the data, or the
    name of an error."""
    try:
        with open(f"{path}/v/{i}", "rb") as f:
            return f.read()
    except FileNotFoundError:
        return "absent"
    except OSError as e:
        return type(e).__name__


def read_all(read, path, good):
    """What is read while faults are there (good is None), or until everything is well again, at the
    latest when what changed has been opened anew."""
    end = time.monotonic() + 60
    with concurrent.futures.ThreadPoolExecutor(len(KINDS)) as pool:
        while True:
            got = list(pool.map(lambda i: read(path, i), range(len(KINDS))))
            if not good or good(got) or time.monotonic() > end:
                return got
            time.sleep(0.2)


def check_chunks(path, damaged):
    """damaged: the faults are there."""
    def right(got):
        return [g == chunk_of(i).tobytes() or not damaged and KINDS[i] in LIES
                for i, g in enumerate(got)]
    got = read_all(read_chunk, path, None if damaged else lambda g: all(right(g)))
    for kind, r, g in zip(KINDS, right(got), got):
        assert r or damaged and g == "OSError" and kind not in HARMLESS, (
            kind, g if isinstance(g, str) else len(g))
    n = sum(right(got))
    assert not damaged or n <= 6, [k for k, r in zip(KINDS, right(got)) if r]
    print(n, "of", len(KINDS), "right")


def test_chunks(t):
    make_tree(t.path("a.zarr"))
    fate = Fate()
    with WebServer(t.tmp, fault=fate) as web, \
            t.mount(web.url + "/a.zarr", "view=zarr", *QUICK) as m:
        fate.armed = True
        t.call(check_chunks, m.path, True, timeout=60)
        fate.armed = False
        t.call(check_chunks, m.path, False, timeout=60)


def read_decoded(path, damaged):
    """The number of chunks that are right; None: one is not that should be."""
    import h5py
    import numpy
    right = 0
    with h5py.File(path, "r") as f:
        for i, kind in enumerate(KINDS):
            try:
                data = f["v"][i * CHUNK:(i + 1) * CHUNK]
            except OSError:
                if not damaged and kind not in LIES:
                    return None
                assert kind not in HARMLESS, kind
                continue
            assert numpy.array_equal(data, chunk_of(i)), kind
            right += 1
    return right


def check_decoded(path, damaged):
    end = time.monotonic() + 60
    while True:
        try:
            right = read_decoded(path, damaged)
        except OSError:
            right = None  # it is another file now
        if right is not None or time.monotonic() > end:
            break
        time.sleep(0.2)
    assert right is not None and (not damaged or right <= 6), right
    print(right, "of", len(KINDS), "right")


def test_decoded(t):
    """The virtual file of the same: what is decoded here is checked here."""
    make_tree(t.path("a.zarr"))
    fate = Fate()
    with WebServer(t.tmp, fault=fate) as web, \
            t.mount(web.url + "/a.zarr", "timeout=1", "max_attempts=1") as m:
        fate.armed = True
        t.call(check_decoded, os.path.join(m.path, "a.nc"), True, timeout=100)
        fate.armed = False
        t.call(check_decoded, os.path.join(m.path, "a.nc"), False, timeout=60)


def read_row(path, i):
    """A chunk of the file as it is stored, behind which its own checksum is."""
    import numpy
    try:
        with open(f"{path}/v/{i}.0", "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return "absent"
    except OSError as e:
        return type(e).__name__
    good = len(data) in (CHUNK, CHUNK + 4) and numpy.array_equal(
        numpy.frombuffer(data[:CHUNK], "u1"), chunk_of(i))
    return "right" if good else "wrong"


def check_rows(path, damaged):
    got = read_all(read_row, path, None if damaged else lambda got: set(got) == {"right"})
    for kind, g in zip(KINDS, got):
        assert g == "right" or damaged and g == "OSError", (kind, g)
    right = got.count("right")
    assert not damaged or right < len(KINDS), "no fault was met"
    print(right, "of", len(KINDS), "right")


def test_ranges(t):
    import h5py
    make_file(t.path("file.h5"))
    fate = Fate()
    with h5py.File(t.path("file.h5"), "r") as f:
        for i, kind in enumerate(KINDS):
            fate.where[f["v"].id.get_chunk_info(i).byte_offset] = kind
    with WebServer(t.tmp, fault=fate) as web, \
            t.mount(web.url + "/file.h5", "view=zarr", "filter=keep", *QUICK) as m:
        t.call(lambda: os.listdir(m.path + "/v"))
        fate.armed = True
        t.call(check_rows, m.path, True, timeout=60)
        fate.armed = False
        t.call(check_rows, m.path, False, timeout=60)


def info(t, url, *options, env=None):
    words = [w for o in options for w in ("-o", o)]
    return t.run(t.binary, "info", *words, url, env=env)


def test_open(t):
    """Every fault, of everything that is asked while a tree and a file are opened."""
    make_tree(t.path("a.zarr"))
    make_file(t.path("file.h5"))
    with WebServer(t.tmp, fault=Fate()) as web:
        good = {n: info(t, f"{web.url}/{n}")[1] for n in ("a.zarr", "file.h5")}
        jobs = [(k, n) for k in KINDS for n in good]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            got = list(pool.map(lambda j: info(t, f"{web.url}/@{j[0]}/{j[1]}", *QUICK), jobs))
    assert all("v" in g for g in good.values()), good
    for (kind, name), (status, out, err) in zip(jobs, got):
        right = out.splitlines()[3:] == good[name].splitlines()[3:]
        assert status == 0 and right or status == 1 and err.startswith("nczarrfs: error: "), (
            kind, name, status, out, err)
        # "flipped": a bit of a chunk that nobody reads here
        assert status == 1 or kind in HARMLESS + LIES + ("flipped", "other_etag"), (
            kind, name, out)


def test_secrets_unsaid(t):
    """Neither in messages nor where other users look."""
    make_tree(t.path("a.zarr"))
    with WebServer(t.tmp, fault=Fate()) as web:
        host = web.url.split("://")[1]
        for kind in ("s401", "s403", "reset", "to_file", "garbage", "truncated"):
            url = f"http://user:SECRET@{host}/@{kind}/a.zarr?X-Amz-Signature=SECRET"
            status, out, err = info(t, url, *QUICK)
            assert status == 1 and err and "SECRET" not in out + err, err


def test_no_such_host(t):
    status, _, err = info(t, "http://no-such-host.invalid/a.zarr", *QUICK)
    assert status == 1 and "no-such-host.invalid" in err, err
    with WebServer(t.tmp) as web:
        url = web.url
    status, _, err = info(t, url + "/a.zarr", *QUICK)
    assert status == 1 and "127.0.0.1" in err, err


# TLS.

def certificate(t, name, *options, host="IP:127.0.0.1,DNS:localhost", ca=None):
    """A certificate and its key; signed by itself without a ca. Returns (certificate, key)."""
    cert, key = t.path(name + ".pem"), t.path(name + ".key")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", cert,
             "-addext", f"subjectAltName={host}"]
    if ca:
        words += ["-CA", ca[0], "-CAkey", ca[1]]
    status, _, err = t.run(*words, *options)
    assert status == 0, err
    return cert, key


def expired(t, ca):
    """One that was good once."""
    key, request, cert = t.path("old.key"), t.path("old.csr"), t.path("old.pem")
    os.makedirs(t.path("ca"))
    for name in ("index.txt", "serial"):
        with open(t.path(os.path.join("ca", name)), "w") as f:
            f.write("01\n" if name == "serial" else "")
    with open(t.path("ca.cnf"), "w") as f:
        f.write(f"[ca]\ndefault_ca=d\n[d]\ndir={t.path('ca')}\nnew_certs_dir=$dir\n"
                "database=$dir/index.txt\nserial=$dir/serial\ndefault_md=sha256\npolicy=p\n"
                "x509_extensions=x\n[p]\ncommonName=supplied\n"
                "[x]\nsubjectAltName=IP:127.0.0.1\n")
    for words in (("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=old", "-keyout",
                   key, "-out", request),
                  ("ca", "-batch", "-config", t.path("ca.cnf"), "-cert", ca[0], "-keyfile", ca[1],
                   "-startdate", "200101000000Z", "-enddate", "210101000000Z", "-in", request,
                   "-out", cert, "-notext")):
        status, _, err = t.run("openssl", *words)
        assert status == 0, err
    return cert, key


def context(pair):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*pair)
    return tls


def test_certificates(t):
    make_tree(t.path("a.zarr"))
    ca = certificate(t, "ca", host="DNS:ca")
    ours = "ca_file=" + ca[0]
    good = certificate(t, "good", ca=ca)
    cases = (  # who, options, what is said; None: it works
        (good, (ours,), None),
        (good, (), "-o ca_file="),
        (good, ("insecure",), None),
        (certificate(t, "self"), (ours,), "-o ca_file="),
        (certificate(t, "self2"), ("insecure",), None),
        (certificate(t, "other", host="DNS:other.example", ca=ca), (ours,), "127.0.0.1"),
        (expired(t, ca), (ours,), "expired"),
        (good, ("ca_file=" + t.path("a.zarr/.zgroup"),), "ca_file"),
        (good, ("ca_file=/nonexistent",), "ca_file"),
    )
    for pair, options, said in cases:
        with WebServer(t.tmp, tls=context(pair)) as web:
            status, out, err = info(t, web.url + "/a.zarr", *options, *QUICK)
            name = os.path.basename(pair[0])
            if said:
                assert status == 1 and said in err, (name, options, status, err)
                assert not web.asked, (name, "was asked all the same")
            else:
                assert status == 0 and "v" in out, (name, options, err)


def test_no_way_back_to_plain(t):
    """From https:// to http:// nothing is followed, and no credentials go anywhere else."""
    make_tree(t.path("a.zarr"))
    ca = certificate(t, "ca", host="DNS:ca")
    tls = context(certificate(t, "good", ca=ca))
    told = []
    with WebServer(t.tmp) as plain:
        def away(h):
            told.append(h.headers.get("Authorization"))
            h.say(307, Location=plain.url + h.path)
            return True
        with WebServer(t.tmp, tls=tls, fault=away) as web:
            url = web.url.replace("://", "://user:SECRET@") + "/a.zarr"
            status, _, err = info(t, url, "ca_file=" + ca[0], *QUICK)
        assert status == 1 and "redirect" in err and "SECRET" not in err, err
        assert told and told[0].startswith("Basic ") and not plain.asked, told


# Servers that hang.

class Hung:
    def __init__(self):
        self.on = False

    def __call__(self, h):
        return h.hang() if self.on else False


def children(path, n):
    """Programs that wait for chunks, begun and asked."""
    found = [subprocess.Popen(["cat", f"{path}/v/{i}"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) for i in range(n)]
    found += [subprocess.Popen(["stat", f"{path}/v/{i + n}"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL) for i in range(n)]
    return found


def await_requests(web, n):
    eventually(lambda: len(web.asked) >= n, report=lambda: web.asked)


def await_ends(programs, seconds):
    for p in programs:
        try:
            p.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("a program cannot be killed") from None


def test_hung_server(t):
    """Programs that are killed die at once, and unmounting works, however long the timeout is. More
    programs than the mount has threads."""
    make_tree(t.path("a.zarr"))
    hung = Hung()
    with WebServer(t.tmp, fault=hung) as web:
        for end in ("kill", "unmount", "terminate"):
            hung.on = False
            m = t.mount(web.url + "/a.zarr", "view=zarr", "timeout=600", foreground=True)
            web.forget()
            hung.on = True
            programs = children(m.path, 12)
            await_requests(web, 1)  # the kernel looks names of a directory up in turn
            if end == "kill":
                for p in programs:
                    p.kill()
                await_ends(programs, 20)
                hung.on = False
                t.call(lambda: open(m.path + "/v/30", "rb").read())
            elif end == "unmount":
                assert mounts.unmount(m.path, lazy=True)[0]
                for p in programs:
                    p.kill()
                m.ended = True
            else:
                m.ended = True
                os.kill(m.process.pid, signal.SIGTERM)
                m.exit_status(20)
            problems = m.unmount(20)
            t.forget(m)
            assert not problems, problems
            if end != "kill":
                assert m.exit_status() == 0, (end, m.messages())
            await_ends(programs, 20)


def test_signals_that_do_not_end(t):
    """A program that is told something while it waits gets its data all the same."""
    make_tree(t.path("a.zarr"))
    with WebServer(t.tmp, delay=0.5) as web, t.mount(web.url + "/a.zarr", "view=zarr") as m:
        def read():
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
            for i in range(2):
                fd = os.open(f"{m.path}/v/{i}", os.O_RDONLY)
                assert len(os.read(fd, CHUNK)) == CHUNK
                os.close(fd)
        t.call(read)
