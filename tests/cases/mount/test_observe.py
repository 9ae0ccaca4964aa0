# SPDX-License-Identifier: BSD-3-Clause
"""What a mount says of itself: where bytes come from (extended attributes), `nczarrfs status`, the
socket of -o metrics=, levels of the log. Statements are checked against h5py, against the bytes
themselves, and numbers against what was done."""
import ctypes
import errno
import json
import os
import re
import socket
import stat
import subprocess
import threading

import h5py
import numpy as np
import zarr

import gen
from lib import mounts
from lib.context import ROOT, Skip, corpus
from lib.web import WebServer

PREFIX = "user.nczarrfs."
PAGE = os.path.join(ROOT, "docs", "reference", "metrics-and-attributes.md")
KINDS = ("source", "offset", "length", "chain", "plan")


def told(path, name):
    """An attribute, or None where nothing is said."""
    try:
        return os.getxattr(path, PREFIX + name).decode()
    except OSError as e:
        assert e.errno == errno.ENODATA, (path, name, e)
        return None


def sample(path):
    """Chunks that pass, that lose a checksum, that are odd, and that nobody passes."""
    data = np.arange(6000, dtype="f4").reshape(60, 100)
    with h5py.File(path, "w") as f:
        f.create_dataset("plain", data=data, chunks=(20, 50))
        f.create_dataset("deflate", data=data, chunks=(20, 50), compression="gzip", shuffle=True)
        f.create_dataset("sums", data=data, chunks=(20, 50), compression="gzip", fletcher32=True)
        f.create_dataset("scaled", data=data.astype("i4"), chunks=(20, 50), scaleoffset=0)
        f.create_dataset("contiguous", data=data)
        f.create_dataset("absent", (60, 100), "f4", chunks=(20, 50), fillvalue=3)
        d = f.create_dataset("odd", (2, 50), "f4", chunks=(1, 50), compression="gzip")
        d.id.write_direct_chunk((0, 0), data[0, :50].tobytes(), filter_mask=1)
        d[1] = data[1, :50]
    return data


def status(t, path, *args):
    code, out, err = t.run(t.binary, "status", "--json", *args, path)
    assert code == 0, err
    return json.loads(out)


def check_chunk(path, found):
    """The statements about one chunk file against the bytes. Returns its plan."""
    said = {k: told(path, k) for k in KINDS}
    plan = said["plan"]
    assert plan and said["chain"], (path, said)
    found[plan.split(":")[0]] = found.get(plan.split(":")[0], 0) + 1
    if not plan.startswith("pass"):
        return said
    with open(path, "rb") as f:
        shown = f.read()
    assert said["source"], (path, said)
    with open(said["source"], "rb") as f:
        f.seek(int(said["offset"]))
        stored = f.read(int(said["length"]))
    cut = re.search(r"without the last (\d+) bytes", plan)
    zeros = re.search(r"with (\d+) zeros", plan)
    if cut:
        stored = stored[:-int(cut.group(1))]
    if zeros:
        stored += bytes(int(zeros.group(1)))
    assert shown == stored, (path, said, len(shown), len(stored))
    return said


def walk(root, most, found, budget=20 << 20):
    """Up to `most` chunk files of each variable in a Zarr v2 tree."""
    for folder, _, names in os.walk(root):
        if ".zarray" not in names:
            continue
        assert told(folder, "plan") and told(folder, "chain"), folder
        chunks = sorted(n for n in names if not n.startswith("."))
        for n in chunks[:most]:
            if os.path.getsize(os.path.join(folder, n)) < budget:
                check_chunk(os.path.join(folder, n), found)


def test_where_bytes_are(t):
    """SEMANTICS R16: for a chunk that passes, the bytes at source[offset:offset+length] are those
    of the file."""
    path = t.path("a.h5")
    sample(path)
    found = {}
    with t.mount(path) as m:
        for kind in KINDS:
            assert told(m.path, kind) is None and told(m.path + "/.zgroup", kind) is None
        walk(m.path, 1000, found)
        with h5py.File(path) as f:
            for name in ("plain", "deflate", "sums"):
                d = f[name]
                for i in range(d.id.get_num_chunks()):
                    info = d.id.get_chunk_info(i)
                    key = ".".join(str(o // c) for o, c in zip(info.chunk_offset, d.chunks))
                    chunk = f"{m.path}/{name}/{key}"
                    assert int(told(chunk, "offset")) == info.byte_offset, chunk
                    assert int(told(chunk, "length")) == info.size, chunk
                    assert told(chunk, "source") == path
            first = m.path + "/contiguous/0.0"
            assert told(first, "source") == path
            assert int(told(first, "length")) == os.path.getsize(first) == 60 * 100 * 4
            assert int(told(first, "offset")) == f["contiguous"].id.get_offset()
        plans = {n: told(f"{m.path}/{n}/{k}", "plan") for n, k in (
            ("plain", "0.0"), ("sums", "0.0"), ("odd", "0.0"), ("odd", "1.0"), ("scaled", "0.0"),
            ("absent", "0.0"))}
        assert plans["plain"] == "pass", plans
        assert plans["sums"] == "pass: without the last 4 bytes"
        assert plans["scaled"].startswith("decode: "), plans
        assert told(m.path + "/odd/0.0", "plan").startswith("frame: "), plans
        assert told(m.path + "/odd/0.0", "chain") == "none"
        assert told(m.path + "/odd/1.0", "chain") == "1,4"
        assert plans["absent"] == "fill: it was never written", plans
        assert told(m.path + "/absent/0.0", "offset") is None
        assert told(m.path + "/scaled", "plan").startswith("decode: ")
        # info has the same words
        code, out, err = t.run(t.binary, "info", "--json", path)
        assert code == 0, err
        for v in json.loads(out)["variables"]:
            want = v["plan"] if v["plan"] == "pass" else f"{v['plan']}: {v['reason']}"
            assert told(m.path + v["path"], "plan") == want, v
    assert found == {"pass": 20, "decode": 6, "fill": 6, "frame": 1}, found


def test_not_listed(t):
    """Copies with attributes do not carry statements about another file's bytes."""
    path = t.path("a.h5")
    sample(path)
    with t.mount(path) as m:
        for name in ("", "/plain", "/plain/0.0", "/.zgroup"):
            assert os.listxattr(m.path + name) == [], name
        assert os.listxattr(m.path + "/deflate") == ["user._Filter", "user._Codecs"]
        code, out, err = t.run("getfattr", "-n", PREFIX + "plan", "--only-values",
                               m.path + "/plain/0.0")
        assert (code, out) == (0, "pass"), err
        code, _, err = t.run("cp", "-a", m.path + "/plain", t.path("copy"))
        assert code == 0, err
        assert os.listxattr(t.path("copy") + "/0.0") == []
        for name in (PREFIX, PREFIX + "Plan", PREFIX + "pieces", PREFIX + "plan.x"):
            try:
                raise AssertionError(os.getxattr(m.path + "/plain/0.0", name))
            except OSError as e:
                assert e.errno == errno.ENODATA, (name, e)
    with t.mount(path, "noxattr") as m:
        try:
            raise AssertionError(os.getxattr(m.path + "/plain/0.0", PREFIX + "plan"))
        except OSError as e:
            assert e.errno == errno.EOPNOTSUPP, e


def test_shards(t):
    """Pieces of a shard: the bytes at each place are those in the source."""
    path = t.path("a.h5")
    sample(path)
    with t.mount(path, "zarr_format=3", "shards=16K", "filter=keep") as m, open(path, "rb") as f:
        for name in ("plain", "deflate"):
            shard = f"{m.path}/{name}/c/0/0"
            assert told(shard, "plan").startswith("shard: "), told(shard, "plan")
            assert told(shard, "source") == path and told(shard, "offset") is None
            with open(shard, "rb") as s:
                data = s.read()
            pieces = [line.split() for line in told(shard, "pieces").splitlines()]
            assert len(pieces) > 1, pieces
            for _, at, size, plan, off, length in pieces:
                f.seek(int(off))
                stored = f.read(int(length))
                piece = data[int(at):int(at) + int(size)]
                assert piece.endswith(stored) and plan in ("pass", "head"), (name, at, plan)
                assert plan == "head" or piece == stored


def test_other_views(t):
    """A virtual file, Zarr trees of directories and archives, mirrors, writable mounts."""
    data = np.arange(600, dtype="i4").reshape(20, 30)
    g = zarr.open_group(t.path("s.zarr"), "w")
    g.create_dataset("v", data=data, chunks=(10, 30))
    g.create_dataset("w", data=data, chunks=(10, 30), compressor=None)
    z = zarr.open_group(zarr.ZipStore(t.path("z.zip"), mode="w", compression=0), "w")
    z.create_dataset("v", data=data, chunks=(10, 30), compressor=None)
    z.store.close()
    sample(t.path("a.h5"))
    found = {}
    with t.mount(t.path("s.zarr")) as m:
        assert told(m.path + "/s.nc", "source") == t.path("s.zarr")
        assert sum(int(n) for n in re.findall(r"\d+", told(m.path + "/s.nc", "plan"))) == 2
        assert told(m.path + "/s.nc", "offset") is None
    for name in ("s.zarr", "z.zip"):
        with t.mount(t.path(name), "view=zarr", "filter=keep") as m:
            walk(m.path, 10, found)
            want = t.path("s.zarr/v/0.0") if name == "s.zarr" else t.path("z.zip")
            assert told(m.path + "/v/0.0", "source") == want
    assert found["pass"] >= 6, found
    with t.mount(t.tmp) as m:
        inner = m.path + "/a.zarr/plain"
        assert check_chunk(inner + "/0.0", found)["source"] == t.path("a.h5")
        assert told(inner, "source") == t.path("a.h5")
        assert told(m.path + "/s.nc", "source") == t.path("s.zarr")
        assert told(m.path + "/a.h5", "source") is None
        assert status(t, m.path)["open_datasets"] == 2
    with t.mount(t.path("a.h5"), "rw", foreground=True) as m:
        assert check_chunk(m.path + "/plain/0.0", found)["source"] == t.path("a.h5")


def like_h5py(file, tree, most):
    """Offsets and lengths of chunks as h5py has them. Returns how many were compared. HDF5 1.10
    gives wrong coordinates where a dimension that is not the first has no limit: there they are
    those of some chunk."""
    compared = 0

    def visit(name, d):
        nonlocal compared
        if not isinstance(d, h5py.Dataset) or not d.chunks or not d.id.get_num_chunks():
            return
        for i in range(min(most, d.id.get_num_chunks())):
            at = [0] * len(d.shape)
            at[-1] = min(i, -(-d.shape[-1] // d.chunks[-1]) - 1) * d.chunks[-1]
            info = d.id.get_chunk_info_by_coord(tuple(at))
            chunk = os.path.join(tree, name, ".".join(
                str(o // c) for o, c in zip(at, d.chunks)))
            said = told(chunk, "offset") if info.size and os.path.exists(chunk) else None
            if said is not None:
                known = [info]
                if None in d.maxshape[1:]:
                    known = [d.id.get_chunk_info(k) for k in range(d.id.get_num_chunks())]
                # it counts from the end of a user block
                places = [(x.byte_offset + f.userblock_size, x.size) for x in known]
                assert (int(said), int(told(chunk, "length"))) in places, (chunk, said, places)
                compared += 1
    with h5py.File(file) as f:
        f.visititems(visit)
    return compared


def test_every_feature(t):
    """Every file that tests/gen writes (of a sample in make check), in one mirror: what is said of
    passed chunks is so, and as h5py has it."""
    folder, found, compared = t.path("all"), {}, 0
    os.mkdir(folder)
    features = list(gen.load().items())
    for name, feature in features if os.environ.get("NCZARRFS_ALL") else features[::3]:
        if name in ("many_variables", "many_entries", "large_contiguous"):
            continue  # seconds to write
        try:
            feature.write(os.path.join(folder, name + ".nc"))
        except Exception:  # this machine's libraries cannot write it
            continue
    with t.mount(folder, "unsupported=skip") as m:
        for name in sorted(n for n in os.listdir(m.path) if n.endswith(".zarr")):
            tree, file = os.path.join(m.path, name), os.path.join(folder, name[:-5] + ".nc")
            walk(tree, 3, found)
            if h5py.is_hdf5(file):
                compared += like_h5py(file, tree, 3)
    assert found.get("pass", 0) > 20 and found.get("decode", 0) > 4, found
    assert compared > 20, compared


def test_corpus_sample(t):
    """Chunks of files of others."""
    if not corpus():
        raise Skip("no corpus")
    found = {}
    for kind in ("netcdf4", "hdf5", "classic"):
        folder = os.path.join(corpus(), kind)
        files = sorted(os.path.relpath(os.path.join(d, n), folder)
                       for d, _, names in os.walk(folder) for n in names
                       if n.endswith((".nc", ".h5", ".nc4")))
        if not files:
            continue
        with t.mount(folder, "unsupported=skip") as m:
            for file in files[::max(1, len(files) // 12)]:
                tree = os.path.join(m.path, os.path.splitext(file)[0] + ".zarr")
                if os.path.isdir(tree):
                    walk(tree, 2, found, 1 << 20)
    assert found.get("pass", 0) > 20, found


# ---- status ----

def test_counts(t):
    """N chunks read are N chunks counted, and their bytes."""
    path = t.path("a.h5")
    sample(path)
    with t.mount(path) as m:
        before = status(t, m.path)
        assert before["chunks"] == dict.fromkeys(before["chunks"], 0), before["chunks"]
        size = 0
        for name, keys in (("plain", 6), ("deflate", 6), ("sums", 6), ("scaled", 6),
                           ("absent", 6), ("odd", 1)):
            for i in range(keys):
                with open(f"{m.path}/{name}/{i // 2}.{i % 2}", "rb") as f:
                    size += len(f.read())
        s = status(t, m.path)
        assert s["chunks"]["pass"] == 18 and s["chunks"]["decode"] == 6, s["chunks"]
        assert s["chunks"]["fill"] == 6 and s["chunks"]["frame"] == 1, s["chunks"]
        assert s["read_bytes"] - before["read_bytes"] == size, (s["read_bytes"], size)
        assert s["chunks_made"] == 7, s  # some of them ahead of the reader
        assert s["cache_misses"]["decoded"] + s["cache_hits"]["decoded"] == 7, s
        assert s["errors"] == dict.fromkeys(s["errors"], 0), s["errors"]
        assert s["mount"] == m.path and s["source"] == path and s["view"] == "zarr"
        assert s["pid"] in m.pids and s["open_datasets"] == 1 and s["workers_started"] >= 1
        assert s["options"]["mode"] == "zarr" and s["memory_bytes"]["decoded"] > 0
        assert s["memory_bytes"]["index"] > 0 and s["memory_bytes"]["model"] > 0
        assert s["requests"]["ioctl"] >= 2, s["requests"]
        # the same in words; what is 0 is left out
        code, out, err = t.run(t.binary, "status", m.path + "/")
        assert code == 0 and re.search(r"^chunks +pass 18, frame 1, fill 6, decode 6$", out, re.M)
        assert "written_bytes" not in out, out


def test_errors_are_counted(t):
    path = t.path("bad.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", (30, 10), "f4", chunks=(1, 10), fletcher32=True)
        d[:] = 1.5
        places = [d.id.get_chunk_info(i).byte_offset for i in range(30)]
    with open(path, "r+b") as f:
        for at in places:
            f.seek(at)
            f.write(b"\xff" * 8)
    with t.mount(path, "filter=none", foreground=True) as m:
        for i in range(30):
            try:
                with open(f"{m.path}/v/{i}.0", "rb") as f:
                    f.read()
                raise AssertionError("damage was read")
            except OSError as e:
                assert e.errno == errno.EIO, e
        s = status(t, m.path)
        assert s["errors"]["EIO"] >= 30, s["errors"]
        assert s["faults"]["codec"] + s["faults"]["source"] >= 30, s["faults"]
        lines = [x for x in m.messages().splitlines() if "chunk" in x]
        assert 1 <= len(lines) <= 20, lines
        assert s["log_lines"]["error"] == len(m.messages().splitlines()), s["log_lines"]


def test_no_mount_of_ours(t):
    """Clear messages: no mount, not its root, an absent name; a dead one."""
    path = t.path("a.h5")
    sample(path)
    with t.mount(path) as m:
        for place in (t.tmp, path, t.path("none"), "/", m.path + "/plain", "/proc"):
            code, out, err = t.run(t.binary, "status", place)
            assert code == 1 and not out and "not an nczarrfs mountpoint" in err, err
        os.symlink(m.path, t.path("link"))
        assert status(t, t.path("link"))["mount"] == m.path
        code, _, err = t.run(t.binary, "status", "mnt1", cwd=t.tmp)
        assert code == 0, err
        # other requests of this kind are not for us
        libc = ctypes.CDLL(None, use_errno=True)
        fd = os.open(m.path, os.O_RDONLY)
        room = ctypes.create_string_buffer(1 << 14)
        assert libc.ioctl(fd, ctypes.c_ulong(0xc0105a01), room) == -1
        assert ctypes.get_errno() == errno.ENOTTY
        os.close(fd)
    code, _, err = t.run(t.binary, "status")
    assert code == 2 and "MOUNTPOINT missing: usage: nczarrfs status" in err, err
    code, _, err = t.run(t.binary, "status", "--json", "a", "b")
    assert code == 2 and "too many arguments" in err, err


def test_dead_server(t):
    path = t.path("a.h5")
    sample(path)
    m = t.mount(path)
    pids = [status(t, m.path)["pid"]]
    os.kill(pids[0], 19)  # SIGSTOP: a server that hangs; its supervisor would unmount a dead one
    try:
        p = subprocess.Popen([t.binary, "status", m.path], stderr=subprocess.PIPE)
        err = p.communicate(timeout=60)[1].decode()
    finally:
        os.kill(pids[0], 18)
    assert p.returncode == 1 and "no answer within 5 seconds" in err, err
    with m:
        assert status(t, m.path)["pid"] == pids[0]


def test_parallel(t):
    """8 at a time, while 4 others read: all answers are whole, none is lost."""
    path = t.path("a.h5")
    sample(path)
    with t.mount(path) as m:
        script = (f"import os\nfor r in range(40):\n for i in range(6):\n  f=os.open('{m.path}/"
                  "scaled/%d.%d'%(i//2,i%2),os.O_RDONLY|os.O_DIRECT)\n  os.close(f)\n")
        readers = [subprocess.Popen(["/usr/bin/python3", "-c", script]) for _ in range(4)]
        bad = []

        def ask():
            for _ in range(4):
                try:
                    status(t, m.path)
                except (AssertionError, ValueError) as e:
                    bad.append(repr(e))
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        for r in readers:
            r.wait(60)
        assert not bad, bad[:3]
        assert status(t, m.path)["requests"]["ioctl"] >= 33


def test_other_users(t):
    """With allow_other everybody may ask; the log is the owner's, and so are names of files."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    path = t.path("a.h5")
    sample(path)
    os.chmod(path, 0o644)
    for p in (t.tmp, os.path.dirname(t.tmp)):
        os.chmod(p, 0o711)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with t.mount(path, "allow_other", f"metrics={t.path('m.sock')}") as m:
        code, out, err = t.run(*other, t.binary, "status", "--json", m.path)
        if code == 127 or "ermission" in err and "exec" in err:
            raise Skip("the program is not for everybody")
        assert code == 0, err
        assert json.loads(out)["options"]["metrics"] == "(shown to its owner only)", out
        assert status(t, m.path)["options"]["metrics"] == t.path("m.sock")
        code, _, err = t.run(*other, t.binary, "log", m.path, "http=debug")
        assert code == 1 and "only its owner and root" in err, err
        assert "http=warn" in status(t, m.path)["log"]
        code, out, err = t.run(*other, t.binary, "log", m.path)
        assert code == 0 and out.startswith("fuse=warn,"), out + err
    with t.mount(path) as m:
        code, _, err = t.run(*other, t.binary, "status", m.path)
        assert code == 1 and "only the user who mounted it may query it" in err, err


def test_far_away(t):
    """A server that hangs does not keep the mount from saying how it is."""
    zarr.open_group(t.path("a.zarr"), "w").create_dataset("v", data=np.arange(64), chunks=(8,))
    zarr.consolidate_metadata(t.path("a.zarr"))
    gate = threading.Event()

    def fault(h):
        if h.path.endswith("v/3"):
            gate.wait(30)
        return False
    with WebServer(t.tmp, fault=fault) as web, t.mount(
            web.url + "/a.zarr", "view=zarr", "filter=keep", f"metrics={t.path('m.sock')}") as m:
        p = subprocess.Popen(["cat", m.path + "/v/3"], stdout=subprocess.PIPE)
        while not any(a[1].endswith("v/3") for a in list(web.asked)):
            pass
        s = status(t, m.path)
        assert s["requests_running"] >= 1 and s["remote_requests"] >= 2, s
        assert "nczarrfs_requests_running" in ask_socket(t.path("m.sock"))
        gate.set()
        assert len(p.communicate(timeout=60)[0]) == os.path.getsize(t.path("a.zarr/v/3"))
        assert told(m.path + "/v/3", "source") == web.url + "/a.zarr/v/3"
        s = status(t, m.path)
        assert s["remote_read_bytes"] > 0 and s["memory_bytes"]["remote"] > 0, s
        assert s["cache_hits"]["blocks"] + s["cache_misses"]["blocks"] > 0, s


def test_writes_are_counted(t):
    with h5py.File(t.path("w.h5"), "w") as f:
        f.create_dataset("v", data=np.zeros(100, "f4"), chunks=(50,))
    with t.mount(t.path("w.h5"), "rw", "commit_delay=3600000", foreground=True) as m:
        with open(m.path + "/v/0", "r+b") as f:
            f.write(np.ones(50, "f4").tobytes())
        s = status(t, m.path)
        assert s["written_bytes"] == 200 and s["requests"]["write"] == 1, s
        assert s["pending_commits"] == 1 and s["memory_bytes"]["staging"] >= 200, s
        fd = os.open(m.path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        s = status(t, m.path)
        assert s["commits"] == {"done": 1, "failed": 0} and s["pending_commits"] == 0, s


# ---- the socket ----

def ask_socket(path, text=b""):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(path)
        if text:
            s.sendall(text)
        parts = []
        while True:
            part = s.recv(65536)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)


def strict(text):
    """OpenMetrics 1.0, checked hard: {(sample name, labels): value}."""
    assert text.endswith("# EOF\n") and "\r" not in text
    lines, samples, families, now = text[:-6].split("\n")[:-1], {}, {}, None
    for line in lines:
        m = re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\n]*)", line)
        if m:
            kind, name, rest = m.groups()
            if kind == "TYPE":
                assert name not in families, f"{name} twice"
                assert rest in ("counter", "gauge", "info"), line
                families[name] = {"TYPE": rest, "samples": 0}
                now = name
            assert name == now and (kind == "TYPE" or kind not in families[name]), line
            assert families[name]["samples"] == 0, f"{line}: after samples"
            families[name][kind] = rest
            assert kind != "UNIT" or name.endswith("_" + rest), line
            assert kind != "HELP" or rest.endswith("."), line
            continue
        m = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (\d+)', line)
        assert m, line
        name, labels, value = m.group(1), m.group(2), int(m.group(3))
        suffix = {"counter": "_total", "gauge": "", "info": "_info"}[families[now]["TYPE"]]
        assert name == now + suffix, f"{line}: in {now}"
        pairs = re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)', labels)
        assert ",".join(f'{k}="{v}"' for k, v in pairs) == labels, labels
        assert pairs[0][0] == "mount" and len({k for k, _ in pairs}) == len(pairs), line
        key = (name, tuple(pairs))
        assert key not in samples, f"{line}: twice"
        samples[key] = value
        families[now]["samples"] += 1
    for name, f in families.items():
        assert f["samples"] and "HELP" in f and name.startswith("nczarrfs_"), name
    return samples


def test_socket(t):
    path, sock = t.path("a.h5"), t.path("m, \"1\".sock")
    sample(path)
    os.mkdir(t.path("mm"))
    code, _, err = t.run(t.binary, "--metrics", path + "/x/m", path, t.path("mm"))
    assert code == 1 and "-o metrics: " in err, err
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(sock)
    dead.close()  # as a mount that died leaves it
    code, _, err = t.run(t.binary, "--metrics", sock, path, t.path("mm"))
    try:
        assert code == 0, err
        st = os.lstat(sock)
        assert stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600, oct(st.st_mode)
        with open(t.path("mm") + "/plain/0.0", "rb") as f:
            f.read()
        plain = strict(ask_socket(sock))
        assert plain["nczarrfs_chunks_total", (("mount", t.path("mm")), ("plan", "pass"))] == 1
        answer = ask_socket(sock, b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
        head, _, body = answer.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.0 200 OK\r\n"), head
        assert "application/openmetrics-text; version=1.0.0; charset=utf-8" in head
        assert f"Content-Length: {len(body.encode())}" in head
        assert strict(body).keys() == plain.keys()
        assert ask_socket(sock, b"HEAD / HTTP/1.1\r\n\r\n").endswith("close\r\n\r\n")
        assert " 405 " in ask_socket(sock, b"POST / HTTP/1.0\r\n\r\n")
        if subprocess.call(["which", "curl"], stdout=subprocess.DEVNULL) == 0:
            code, out, err = t.run("curl", "-sS", "--unix-socket", sock, "http://x/metrics")
            assert code == 0, err
            strict(out)
        # half a request keeps nobody from the next answer for long
        slow = socket.socket(socket.AF_UNIX)
        slow.connect(sock)
        slow.sendall(b"GET ")
        strict(ask_socket(sock))
        slow.close()
        # the same numbers, by the other way
        s = status(t, t.path("mm"))
        told_by = {(k[0][9:-6], dict(k[1]).get("plan")): v for k, v in plain.items()
                   if k[0] == "nczarrfs_chunks_total"}
        assert {k[1]: v for k, v in told_by.items()} == s["chunks"]
        # what is served is not taken away, what is no socket neither
        os.mkdir(t.path("m2"))
        code, _, err = t.run(t.binary, "-o", "metrics=" + sock.replace(",", "\\,"), path,
                             t.path("m2"))
        assert code == 1 and "in use by another process" in err and os.path.exists(sock), err
        code, _, err = t.run(t.binary, "-o", f"metrics={path}", path, t.path("m2"))
        assert code == 1 and "not a socket of yours" in err and os.path.isfile(path), err
        code, _, err = t.run(t.binary, "-o", f"metrics={t.path('m2')}/s", path, t.path("m2"))
        assert code == 1 and "below the mountpoint" in err, err
        assert not mounts.is_mounted(t.path("m2"))
    finally:
        pids = mounts.processes_of(t.path("mm"))
        mounts.unmount(t.path("mm"))
    assert mounts.wait_gone(pids, 30) and not os.path.lexists(sock)


# ---- the log ----

def test_log_levels(t):
    path = t.path("a.h5")
    sample(path)
    with t.mount(path, "log=http=debug:write=error", foreground=True) as m:
        code, out, err = t.run(t.binary, "log", m.path)
        assert code == 0 and "http=debug,write=error" in out, out + err
        code, out, err = t.run(t.binary, "log", m.path, "fuse=debug,codec=info")
        assert code == 0 and out.startswith("fuse=debug,source=warn,codec=info,"), out + err
        try:
            os.stat(m.path + "/plain/not.there")
        except OSError:
            pass
        with open(m.path + "/plain/0.0", "rb") as f:
            f.read()
        assert "read of inode" in m.messages(), m.messages()
        n = len(m.messages())
        code, out, err = t.run(t.binary, "log", m.path, "error")
        assert code == 0, err
        with open(m.path + "/plain/0.1", "rb") as f:
            f.read()
        assert "read of inode" not in m.messages()[n:]
        code, _, err = t.run(t.binary, "log", m.path, "everything=debug")
        assert code == 2 and "COMPONENT=LEVEL" in err, err
    with t.mount(path, "log=nett=debug", check=False) as m:
        assert m.status == 2 and "fuse, source, codec" in m.messages(), m.messages()


# ---- the documents ----

def test_tables(t):
    """The page of metrics and attributes lists every metric and attribute, and no other."""
    with open(PAGE, encoding="utf-8") as f:
        doc = f.read()
    path = t.path("a.h5")
    sample(path)
    with t.mount(path, f"metrics={t.path('m')}") as m:
        said = strict(ask_socket(t.path("m")))
        have = {}
        for name, labels in said:
            have.setdefault(name, set()).update(v for k, v in labels if k not in (
                "mount", "version"))
        assert told(m.path + "/plain", "plan") == "pass"
    rows = re.findall(r"^\| `(nczarrfs_\w+)` \| \w+ \| (.*?) ?\|", doc, re.M)
    listed = {name: set(re.findall(r"`(\w+)`", labels.partition(":")[2])) for name, labels in rows}
    assert listed == have, (sorted(set(listed) ^ set(have)), {
        k: listed[k] ^ have[k] for k in listed if k in have and listed[k] != have[k]})
    with open(os.path.join(ROOT, "translate", "chunkio", "provenance.c"), encoding="utf-8") as f:
        names = set(re.findall(r'\[PROVENANCE_\w+\] = "(\w+)"', f.read()))
    assert set(re.findall(r"^\| `user\.nczarrfs\.(\w+)` \|", doc, re.M)) == names
