# SPDX-License-Identifier: BSD-3-Clause
"""docs/reference/security.md: what the processes of a mount may do, and what can be had of them."""
import contextlib
import errno
import json
import os
import signal
import stat
import subprocess
import stat
import subprocess

import h5py
import numpy as np

from lib import mounts, users
from lib.context import Skip
from lib.serving import Serving

MOUNTER = "nczarrfs-mount"


def tell(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def sample(path):
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(10)
        f.create_dataset("odd", data=np.arange(20).reshape(2, 10), chunks=(1, 10), scaleoffset=0)
        f.create_dataset("text", data=np.array(["a", "bc"], dtype=object), chunks=(1,),
                         dtype=h5py.string_dtype())
    return path


def line(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(x.split()[1] for x in f if x.startswith(name + ":"))


def numbers(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(x.split()[1:] for x in f if x.startswith(name + ":"))


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
        return f.read().strip()


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def server_of(pids):
    """The process that has the kernel's requests: the forker's parent."""
    return parent(next(p for p in pids if comm(p) == "nczarrfs-forker"))


def wake_children(mnt):
    """Elements that only the library can read: a child for them."""
    with open(mnt + "/text/0", "rb") as f:
        f.read()


def test_no_new_privs(t):
    """No process of a mount can gain rights by a program that it starts. SECURITY S2"""
    with t.mount(sample(t.path("a.nc"))) as m:
        t.call(wake_children, m.path)
        pids = mounts.processes_of(m.path)
        assert len(pids) >= 4 and MOUNTER in map(comm, pids), list(map(comm, pids))
        have = {f"{p} {comm(p)}": line(p, "NoNewPrivs") for p in pids}
        assert set(have.values()) == {"1"}, have


def waits(pid):
    """What its threads wait for."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/wchan", encoding="ascii") as f:
                found.append(f.read())
    return found


def gone(mnt, pids):
    assert mounts.wait_gone(pids, 60), [(p, waits(p)) for p in pids if mounts.alive(p)]
    assert not mounts.is_mounted(mnt), "the mount is left"


def as_user(binary, hurt, *options):
    own, program = users.enter(binary)
    source, mnt = own + "/a.nc", own + "/m"
    sample(source)
    os.mkdir(mnt)
    for path in (source, mnt):
        os.chown(path, users.NOBODY, users.NOBODY)
    status, text = users.run(program, *options, source, mnt)
    assert status == 0, text
    pids = mounts.processes_of(mnt)
    try:
        status, text = users.run("cat", mnt + "/text/0")
        assert status == 0, text
        rights = {}
        for pid in mounts.processes_of(mnt):
            with contextlib.suppress(FileNotFoundError):  # what opened the file has ended
                rights[comm(pid)] = line(pid, "NoNewPrivs")
        assert rights.pop(MOUNTER) == "0"
        assert rights.pop("fusermount3", "0") == "0"
        assert set(rights.values()) == {"1"}, rights
        for pid in pids:
            if comm(pid) != "fusermount3":  # auto_unmount: libfuse's, which is set-user-id
                assert numbers(pid, "Uid") == [str(users.NOBODY)] * 4, comm(pid)
                assert numbers(pid, "CapEff") == ["0" * 16], comm(pid)
        assert not os.stat(program).st_mode & 0o6000
        hurt(mnt, pids)
        gone(mnt, pids)
    finally:
        for pid in pids:
            if mounts.alive(pid):
                tell(pid, signal.SIGKILL)


def end_by_fusermount(mnt, pids):
    status, text = users.run("fusermount3", "-u", mnt)
    assert status == 0, text


def end_by_signal(mnt, pids):
    for pid in pids:  # as a terminal does
        tell(pid, signal.SIGINT)


def end_of_supervisor(mnt, pids):
    os.kill(parent(server_of(pids)), signal.SIGKILL)


def end_of_server(mnt, pids):
    os.kill(server_of(pids), signal.SIGKILL)


def end_of_both(mnt, pids):
    server = server_of(pids)
    os.kill(parent(server), signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    os.kill(parent(server), signal.SIGKILL)


def test_user(t):
    """A mount of a normal user needs no rights but in the process that mounts, and ends however
    its processes are told to end. SECURITY S1, S2, S3"""
    for hurt in (end_by_fusermount, end_by_signal, end_of_supervisor, end_of_server, end_of_both):
        t.call(as_user, t.binary, hurt)
    t.call(as_user, t.binary, end_of_server, "-o", "auto_unmount")


# ---- what a file may lead to ----

SECRET = b"TOPSECRET!"


def _external(path, name, target):
    """A dataset whose bytes are in another file."""
    from h5py import h5d, h5p, h5s, h5t
    with h5py.File(path, "a") as f:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_external(target.encode(), 0, len(SECRET))
        h5d.create(f.id, name.encode(), h5t.NATIVE_UINT8, h5s.create_simple((len(SECRET),)), dcpl)


def _pattern(path, name, files, source="data"):
    """A virtual dataset of files with the block's number in their name."""
    from h5py import h5d, h5p, h5s, h5t
    n = len(SECRET)
    with h5py.File(path, "a") as f:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        space = h5s.create_simple((n,), (h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5s.UNLIMITED,), (n,), (n,))
        dcpl.set_virtual(space, files.encode(), source.encode(), h5s.create_simple((n,), (n,)))
        h5d.create(f.id, name.encode(), h5t.NATIVE_UINT8,
                   h5s.create_simple((n,), (h5s.UNLIMITED,)), dcpl)


def _virtual(path, name, file, source="data"):
    layout = h5py.VirtualLayout((len(SECRET),), "u1")
    layout[:] = h5py.VirtualSource(file, source, (len(SECRET),), "u1")
    with h5py.File(path, "a") as f:
        f.create_virtual_dataset(name, layout)


def _plain(path, data):
    with h5py.File(path, "w") as f:
        f["data"] = np.frombuffer(data, "u1")


def leading(folder):
    """top/a.h5, which leads to files below top and to files that are not. (path, names of what
    may be read)"""
    root = folder + "/top"
    os.mkdir(root)
    path, good = root + "/a.h5", SECRET.lower()
    with open(folder + "/secret", "wb") as f:
        f.write(SECRET)
    with open(root + "/raw", "wb") as f:
        f.write(good)
    _plain(folder + "/secret.h5", SECRET)
    _plain(folder + "/s0.h5", SECRET)
    for i in range(3):
        _plain(f"{root}/d{i}.h5", good)
    os.symlink(folder + "/secret.h5", root + "/link0.h5")
    os.symlink(folder, root + "/up")
    _external(root + "/raw0.h5", "data", folder + "/secret")
    with h5py.File(root + "/ext0.h5", "w") as f:
        f["data"] = h5py.ExternalLink(folder + "/secret.h5", "/data")
    _virtual(root + "/deep0.h5", "data", folder + "/secret.h5")
    with h5py.File(path, "w") as f:
        f["link"] = h5py.ExternalLink("../secret.h5", "/data")
        f["link_up"] = h5py.ExternalLink("up/secret.h5", "/data")
        f["good_link"] = h5py.ExternalLink("d0.h5", "/data")
    for name, target in (("raw", folder + "/secret"), ("raw_rel", "../secret"),
                         ("raw_up", "up/secret"), ("good_raw", "raw")):
        _external(path, name, target)
    for name, file in (("virtual", folder + "/secret.h5"), ("virtual_rel", "../secret.h5"),
                       ("virtual_link", "link0.h5"), ("virtual_ext", "ext0.h5"),
                       ("virtual_raw", "raw0.h5"), ("virtual_deep", "deep0.h5"),
                       ("good_virtual", "d1.h5")):
        _virtual(path, name, file)
    for name, files in (("pattern_link", "link%b.h5"), ("pattern_ext", "ext%b.h5"),
                        ("pattern_raw", "raw%b.h5"), ("pattern_deep", "deep%b.h5"),
                        ("pattern_up", "up/s%b.h5"), ("pattern_rel", "../s%b.h5"),
                        ("pattern_cwd", "s%b.h5"), ("good_pattern", "d%b.h5")):
        _pattern(path, name, files)
    return path, good


def contents(mnt):
    """What can be read of each array's only chunks, None where an error says so."""
    got = {}
    for name in sorted(os.listdir(mnt)):
        if name.startswith("."):
            continue
        chunks = sorted(n for n in os.listdir(f"{mnt}/{name}") if not n.startswith("."))
        try:
            got[name] = b""
            for chunk in chunks or ["0"]:
                with open(f"{mnt}/{name}/{chunk}", "rb") as f:
                    got[name] += f.read()
        except OSError:
            got[name] = None
    return got


def test_leading_elsewhere(t):
    """External links, external raw data and virtual datasets, in all the ways in which one can lead
    to the other, lead to nothing that is not below external_root; without it that is the source's
    own directory, and with allow_other nothing.
    SECURITY S30"""
    path, good = leading(t.tmp)

    def check(mnt, allowed):
        got = contents(mnt)
        assert not [n for n, data in got.items() if data and SECRET in data], got
        want = {n: good * (3 if n == "good_pattern" else 1) for n in got if n.startswith("good")}
        assert {n: data for n, data in got.items() if data} == (want if allowed else {}), got
        assert len(want) == 4 or not allowed, want
    os.chdir(t.tmp)  # where s0.h5 is
    with t.mount(path, "external_root=" + os.path.dirname(path)) as m:
        t.call(check, m.path, True)
    with t.mount(path) as m:
        t.call(check, m.path, True)
    for option in "allow_other", "allow_root":
        with t.mount(path, option) as m:
            t.call(check, m.path, False)
    with Serving(t, path) as s:
        for name in ("virtual", "virtual_link", "virtual_ext", "virtual_raw", "pattern_link", "raw",
                     "link", "good_link", "good_raw", "good_virtual", "good_pattern"):
            got = s.get(f"/data/{name}/0")
            assert got.status == 500, (name, got.status)
            assert SECRET not in got.body and SECRET.lower() not in got.body, name
    os.mkdir(t.path("empty"))
    with t.mount(path, "external_root=" + t.path("empty")) as m:
        t.call(check, m.path, False)


def _linked(path):
    """Four arrays whose elements are in files beside this one, and one that leads out."""
    import h5py
    import numpy as np
    folder = os.path.dirname(path)
    os.chdir(folder)  # where libhdf5 puts raw data
    os.mkdir(os.path.join(folder, "below"))
    for i in range(3):
        with h5py.File(os.path.join(folder, f"part{i}.h5"), "w") as f:
            f.create_dataset("d", data=np.arange(4) + 10 * i, maxshape=(None,), chunks=(2,))
    with h5py.File(os.path.join(folder, "below", "other.h5"), "w") as f:
        f["d"] = np.arange(5.0)
    with h5py.File(path, "w", libver="latest") as f:
        fixed = h5py.VirtualLayout((3, 4), "i8")
        for i in range(3):
            fixed[i] = h5py.VirtualSource(f"part{i}.h5", "d", (4,))
        f.create_virtual_dataset("fixed", fixed)
        grows = h5py.VirtualLayout((4,), "i8", maxshape=(None,))
        source = h5py.VirtualSource("part1.h5", "d", (4,), maxshape=(None,))
        grows[:h5py.h5s.UNLIMITED] = source[:h5py.h5s.UNLIMITED]
        f.create_virtual_dataset("grows", grows)
        f["link"] = h5py.ExternalLink("below/other.h5", "/d")
        f.create_dataset("raw", (5,), dtype="i4", external=[("raw.bin", 0, 20)])
        f["raw"][:] = np.arange(5)
        out = h5py.VirtualLayout((4,), "i8")
        out[:] = h5py.VirtualSource("../outside.h5", "d", (4,))
        f.create_virtual_dataset("out", out, fillvalue=7)


def _as_h5py(path, mnt):
    import h5py
    import numpy as np
    import zarr
    g = zarr.open_group(mnt, mode="r")
    os.chdir(os.path.dirname(path))
    with h5py.File(path, "r") as f:
        for name in ("fixed", "grows", "link", "raw"):
            assert np.array_equal(g[name][...], f[name][...]) and f[name].size, name
    assert g["out"].shape == (4,)
    try:
        g["out"][...]
    except OSError as error:
        assert error.errno == 5, error
    else:
        raise AssertionError("what leads out of the directory was filled")


def _all_lead_nowhere(mnt):
    for name in "fixed/0.0", "grows/0", "link/0", "raw/0", "out/0":
        try:
            with open(os.path.join(mnt, name), "rb") as f:
                f.read()
        except OSError as error:
            assert error.errno == 5, f"{name}: {error}"
        else:
            raise AssertionError(f"{name} is read")


# SECURITY S30
def test_links_beside(t):
    """Files that an HDF5 file leads to are read where they lie below its directory, as every HDF5
    program does; an array that leads elsewhere is an error, and keeps its length."""
    os.mkdir(t.path("data"))
    path = t.path("data/linked.h5")
    t.call(_linked, path)
    with t.mount(path) as m:
        t.call(_as_h5py, path, m.path)
    with t.mount(path, "allow_other") as m:
        t.call(_all_lead_nowhere, m.path)


# ---- secrets ----

PASSWORD, TOKEN, KEY = "geheim" + "7531", "zeichen" + "8642", "schluessel" + "9753"


def memory_has(pid, *texts):
    """Which of these are in the memory of a process that can be written to: its data, heap, stacks,
    what it shares; its environment and arguments are there as well."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        areas = [x.split()[:2] for x in f if "[vv" not in x]
    with open(f"/proc/{pid}/mem", "rb", 0) as f:
        for area, rights in areas:
            if not rights.startswith("rw"):
                continue
            first, last = (int(x, 16) for x in area.split("-"))
            try:
                f.seek(first)
                data = b""
                while first + len(data) < last:
                    more = f.read(min(1 << 24, last - first - len(data)))
                    if not more:
                        break
                    data += more
            except OSError:
                pass  # nothing was ever there
            found |= {text for text in texts if text.encode() in data}
    return found


def far(t):
    """A server that wants a password and a token, and the address that has both."""
    from lib.web import WebServer
    import base64

    def wants(h):
        want = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        if h.headers.get("Authorization", "") == want and f"token={TOKEN}" in h.path:
            return False
        h.say(401, b"no", WWW_Authenticate='Basic realm="x"')
        return True
    os.mkdir(t.path("data"))
    sample(t.path("data/a.nc"))
    os.environ["AWS_SECRET_ACCESS_KEY"] = KEY
    web = WebServer(t.path("data"), fault=wants)
    return web, f"http://me:{PASSWORD}@127.0.0.1:{web.port}/a.nc?token={TOKEN}"


def dies_with_core(folder):
    """Whether a program that dies leaves a core in its working directory here."""
    before = set(os.listdir(folder))
    subprocess.run(["prlimit", "--core=unlimited:unlimited", "sh", "-c", "kill -ABRT $$"],
                   cwd=folder, check=False)
    left = set(os.listdir(folder)) - before
    for name in left:
        os.unlink(os.path.join(folder, name))
    return bool(left)


def core_limits(pid):
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        return next(x.split()[-3:-1] for x in f if "core file" in x)


def test_cores(t):
    """Only -d with a source on this machine leaves the server its cores; children have none then
    either. SECURITY S40"""
    path = sample(t.path("a.nc"))
    wrapper = ("prlimit", "--core=unlimited:unlimited")
    web, address = far(t)
    with web:
        for source, debug in (path, False), (path, True), (address, True):
            with t.mount(source, *["debug"] * debug, foreground=True, wrapper=wrapper) as m:
                t.call(wake_children, m.path)
                pids = mounts.processes_of(m.path)
                have = {p: core_limits(p) for p in pids}
                own = ["0" if t.sanitized else "unlimited", "unlimited"]  # ASan lowers the first
                mine = own if debug and source == path else ["1", "1"]
                assert len(have) >= 4 and have[server_of(pids)] == mine, have
                for pid, limit in have.items():
                    child = comm(pid) == "nczarrfs-hdf5"
                    assert limit == (["1", "1"] if child else mine), (comm(pid), limit)


def test_secrets_in_processes(t):
    """Processes that others' bytes or the mount table reach have no password, token or key in their
    memory, and none dies with a core. SECURITY S40, S41"""
    if t.sanitized:
        raise Skip("with a sanitizer a process has terabytes of memory to search")
    canary = dies_with_core(t.tmp)
    web, address = far(t)
    with web, t.mount(address, foreground=True, check=False,
                      wrapper=("prlimit", "--core=unlimited:unlimited")) as m:
        assert m.status == 0, m.messages()
        t.call(wake_children, m.path)
        pids = mounts.processes_of(m.path)
        server = server_of(pids)
        assert memory_has(server, PASSWORD, TOKEN), "nothing is found where it has to be"
        for pid in pids:
            with open(f"/proc/{pid}/limits", encoding="ascii") as f:
                core = next(x.split()[-3:] for x in f if "core file" in x)
            assert core[0] in "01" and core[1] in "01", (comm(pid), core)
        have = {f"{p} {comm(p)}": memory_has(p, PASSWORD, TOKEN, KEY)
                for p in pids if p != server}
        assert len(have) >= 4, have
        assert not any(have.values()), have
        m.ended = True
        hit = sorted((p for p in pids if comm(p) != MOUNTER), key=lambda p: p == server)
        for pid in hit:
            tell(pid, signal.SIGABRT)
        gone(m.path, pids)
        left = [n for n in os.listdir(t.tmp) if "core" in n]
        assert not left, left
    if not canary:
        print("cores go elsewhere here: only the limits were looked at")


# ---- descriptors ----

def descriptors(pid):
    """{number: (what it leads to, whether a program that is started would get it)}"""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            leads = os.readlink(f"/proc/{pid}/fd/{name}")
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as f:
                flags = int(next(x.split()[1] for x in f if x.startswith("flags:")), 8)
            found[int(name)] = leads, not flags & os.O_CLOEXEC
    return found


def test_descriptors(t):
    """A mount in the background keeps nothing that was open when it was started; no process has
    anything that a program it starts would get; only the server has /dev/fuse, and the processes
    around it have nothing but the sockets by which they are spoken to. No file of the source is
    mapped. SECURITY S4, S56"""
    with open(t.path("lock"), "w", encoding="ascii"):
        pass
    starter = ("sh", "-c", f'exec 9<{t.path("lock")}; exec "$@"', "sh")
    path = sample(t.path("a.nc"))
    with t.mount(path, wrapper=starter) as m:
        t.call(wake_children, m.path)
        pids = mounts.processes_of(m.path)
        server = server_of(pids)
        for pid in pids:
            have = descriptors(pid)
            what = f"{pid} {comm(pid)}: {have}"
            # sanitizers report to where the mount was started from
            assert {have[i][0] for i in range(2 if t.sanitized else 3)} <= {"/dev/null"}, what
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
                assert t.tmp not in f.read(), what
            assert not any(leads == t.path("lock") for leads, _ in have.values()), what
            # libhdf5 opens files its own way, in a process that starts none
            assert not any(given for i, (leads, given) in have.items()
                           if i > 2 and (comm(pid) != "nczarrfs-hdf5" or leads != path)), what
            assert pid == server or not any(x == "/dev/fuse" for x, _ in have.values()), what
            kinds = sorted(leads.split(":")[0] for i, (leads, _) in have.items() if i > 2)
            if comm(pid) == MOUNTER:
                assert kinds == ["socket"], what
            elif comm(pid) == "nczarrfs-forker":
                assert set(kinds) <= {"socket", "anon_inode"}, what
            elif pid == parent(server):
                assert set(kinds) <= {"anon_inode"}, what


# ---- what is shown ----

def mount_options(path):
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        for row in f:
            left, _, right = row.partition(" - ")
            if left.split()[4] == path:
                return set(left.split()[5].split(",")) | set(right.split()[2].split(","))
    return set()


def odd_folder(folder):
    """A folder with everything that should not be had through a mount of it."""
    import socket
    os.mkdir(folder)
    sample(folder + "/a.nc")
    with open(folder + "/program", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n")
    os.chmod(folder + "/program", 0o6755)
    os.mkdir(folder + "/sticky")
    os.chmod(folder + "/sticky", 0o3777)
    os.mkfifo(folder + "/fifo")
    with contextlib.suppress(PermissionError):
        os.mknod(folder + "/null", 0o20666, os.makedev(1, 3))
    os.chmod(folder + "/null", 0o666)
    here = os.getcwd()
    os.chdir(folder)  # a socket's name has to be short
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("sock")
    os.chdir(here)
    return folder


def shown_plain(mnt):
    seen = []
    for base, folders, files in os.walk(mnt):
        for name in folders + files:
            mode = os.lstat(os.path.join(base, name)).st_mode
            seen.append(name)
            assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), (name, oct(mode))
            assert not mode & 0o6000, (name, oct(mode))
    assert "program" in seen and "x" in seen, seen


def made_plain(mnt, folder):
    for make, mode in ((os.mkfifo, ()), (os.mknod, (0o20666, os.makedev(1, 3)))):
        try:
            make(mnt + "/made", *mode)
            raise AssertionError(f"{make.__name__} works")
        except OSError as error:
            assert error.errno == errno.EPERM, error
    fd = os.open(mnt + "/new", os.O_CREAT | os.O_WRONLY, 0o6755)
    os.close(fd)
    with contextlib.suppress(OSError):
        os.chmod(mnt + "/new", 0o6755)
    assert not os.stat(folder + "/new").st_mode & 0o6000, oct(os.stat(folder + "/new").st_mode)
    assert not os.path.lexists(folder + "/made")


def test_nothing_special(t):
    """nosuid and nodev whatever the options say, default_permissions with allow_other, and nothing
    but plain files, directories and links. SECURITY S10, S11, S12"""
    folder = odd_folder(t.path("odd"))
    with t.mount(folder, "dev,suid,allow_other") as m:
        have = mount_options(m.path)
        assert {"nosuid", "nodev", "allow_other", "default_permissions", "ro"} <= have, have
        t.call(shown_plain, m.path)
    with t.mount(folder, "rw,dev,suid") as m:
        have = mount_options(m.path)
        assert {"nosuid", "nodev"} <= have and "allow_other" not in have, have
        t.call(shown_plain, m.path)
        t.call(made_plain, m.path, folder)


# ---- names ----

N = len(SECRET)
ZARRAY = {"zarr_format": 2, "shape": [N], "chunks": [N], "dtype": "|u1", "compressor": None,
          "fill_value": 0, "order": "C", "filters": None}
UPWARD = ("../out", "..", "a/../../out", "/out", "./out", "a//out", "")


def _write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else json.dumps(data).encode())


def consolidated(folder, *names):
    metadata = {f"{name}/.zarray": ZARRAY for name in names}
    metadata[".zgroup"] = {"zarr_format": 2}
    _write(folder + "/.zmetadata", {"zarr_consolidated_format": 1, "metadata": metadata})
    return folder


def linked_tree(folder):
    """A tree in which an array and a chunk are links to what is outside."""
    consolidated(folder, "in", "linked", "chunk")
    _write(folder + "/.zgroup", {"zarr_format": 2})
    for name in ("in", "chunk"):
        _write(f"{folder}/{name}/.zarray", ZARRAY)
    _write(folder + "/in/0", SECRET.lower())
    os.symlink("../../out", folder + "/linked")
    os.symlink("../../../out/0", folder + "/chunk/0")
    return folder


def named_nczarr(folder):
    """NCZarr's lists of what is in a group."""
    _write(folder + "/.zgroup", {"zarr_format": 2, "_nczarr_superblock": {"version": "2.0.0"},
                                 "_nczarr_group": {"dims": {"../d": N, "/": 1},
                                                   "vars": list(UPWARD), "groups": list(UPWARD)}})
    return folder


def named_zip(path, name, more=()):
    import zipfile
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(".zgroup", json.dumps({"zarr_format": 2}))
        z.writestr(f"{name}/.zarray", json.dumps(ZARRAY))
        z.writestr(f"{name}/0", SECRET.lower())
        for other in more:
            z.writestr(other, b"")
    return path


def references(path, *names):
    refs = {f"{name}/.zarray": json.dumps(ZARRAY) for name in names}
    _write(path, {".zgroup": json.dumps({"zarr_format": 2}), **refs})
    return path


def leading_refs(path):
    """References to files outside, in every way to write one."""
    refs = {".zgroup": json.dumps({"zarr_format": 2}), "in/.zarray": json.dumps(ZARRAY),
            "in/0": SECRET.lower().decode()}
    targets = ("../out/0", "../out/secret", "file://OUT/0", "OUT/0", "file:OUT/0", "local://OUT/0",
               "link", "FILE://OUT/0", "file://localhost/OUT/0")
    for i, target in enumerate(targets):
        out = os.path.join(os.path.dirname(os.path.dirname(path)), "out")
        refs[f"r{i}/.zarray"] = json.dumps(ZARRAY)
        refs[f"r{i}/0"] = [target.replace("OUT", out)]
    _write(path, refs)
    os.symlink("../out/0", os.path.join(os.path.dirname(path), "link"))
    return path


def named_classic(path):
    """A classic file with such names of variables and dimensions."""
    import struct

    def text(s):
        return struct.pack(">I", len(s)) + s.encode() + b"\0" * (-len(s) % 4)
    names = [n for n in UPWARD if n] + ["."]
    head = b"CDF\x01" + struct.pack(">III", 0, 10, 1) + text("../d") + struct.pack(">I", N)
    head += struct.pack(">IIII", 0, 0, 11, len(names))
    size = len(head) + sum(len(text(n)) + 32 for n in names)
    for i, n in enumerate(names):
        head += text(n) + struct.pack(">IIIIIII", 1, 0, 0, 0, 1, 12, size + 12 * i)
    _write(path, head + (SECRET.lower() + b"\0\0") * len(names))
    return path


def plain_names(mnt):
    """Everything that is there is below the mount, under names that are one component, and what
    can be read of it is not from elsewhere."""
    for base, folders, files in os.walk(mnt):
        assert base == mnt or base.startswith(mnt + "/"), base
        for name in folders + files:
            assert name not in ("", ".", "..") and "/" not in name, (base, name)
            path = os.path.join(base, name)
            if not os.path.isdir(path) and not os.path.islink(path):  # who follows it is a client
                with contextlib.suppress(OSError), open(path, "rb") as f:
                    assert SECRET not in f.read(), path


def led_out(mnt, outside, root):
    """outside: (name, whether it can be read when external_root has what it leads to)"""
    for name, with_root in [("in/0", True)] + outside:
        inside = name == "in/0"
        try:
            with open(f"{mnt}/{name}", "rb") as f:
                got = f.read()
            assert inside or (root and with_root), name
            assert got == (SECRET.lower() if inside else SECRET), (name, got)
        except OSError as error:
            assert error.errno == errno.EIO and not (inside or (root and with_root)), (name, error)


def test_names(t):
    """Names that lead upwards, in every place where a format has names, lead nowhere.
    SECURITY S20, S21, S22"""
    _write(t.path("out/.zarray"), ZARRAY)
    _write(t.path("out/0"), SECRET)
    _write(t.path("out/secret"), SECRET)
    good = [linked_tree(t.path("data/tree")), leading_refs(t.path("data/refs.json")),
            named_classic(t.path("data/classic.nc"))]
    bad = [named_nczarr(t.path("data/nczarr"))]
    bad += [consolidated(t.path(f"data/c{i}"), name) for i, name in enumerate(UPWARD)]
    bad += [references(t.path(f"data/r{i}.json"), name) for i, name in enumerate(UPWARD)]
    bad += [named_zip(t.path(f"data/z{i}.zip"), name) for i, name in enumerate(UPWARD)]
    for source in bad:
        code, out, err = t.run(t.binary, "info", "-o", "unsupported=skip", source)
        assert code == 1 and "nczarrfs: error: " in err, (source, out, err)
    dotted = t.path("data/dotted.h5")
    with h5py.File(dotted, "w") as f:
        f.create_dataset("../out", data=np.arange(3))
        f.create_dataset("a/../in", data=np.arange(3))
    good.append(dotted)
    for source in good:
        with t.mount(source, "unsupported=skip", "view=zarr") as m:
            t.call(plain_names, m.path)
            if source == dotted:  # shown, escaped
                t.call(lambda mnt: sorted(os.listdir(mnt + "/a")) == [
                    "%2E.", ".zattrs", ".zgroup"] or 1 / 0, m.path)
                t.call(open, m.path + "/%2E./out/0")
    links = [("chunk/0", False), ("linked/0", False)]
    # "file:PATH", other letters and a host are no addresses of files here
    led = [(f"r{i}/0", i not in (4, 7, 8)) for i in range(9)]
    for source, outside in zip(good, (links, led)):
        for options in (), ("external_root=" + t.tmp,):
            with t.mount(source, "unsupported=skip", "view=zarr", *options) as m:
                t.call(led_out, m.path, outside, bool(options))
    with t.mount(t.path("data")) as m:  # as a mirror, links among them
        t.call(plain_names, m.path)
        t.call(lambda mnt: os.readlink(mnt + "/link") == "../out/0" or 1 / 0, m.path)


# ---- links and files that others plant ----

def plants(place, out):
    """Makes a directory of everybody, another user's, and a link; yields after each."""
    os.mkdir(place)
    os.chmod(place, 0o777)
    yield "belongs to another user, or other users can write to it"
    os.chmod(place, 0o755)
    if os.geteuid() == 0:
        os.chown(place, users.NOBODY, users.NOBODY)
        yield place
    os.rmdir(place)
    os.symlink(out, place)
    yield place
    os.unlink(place)


def test_planted(t):
    """State and cache directories that are not the user's alone are not used, and links in their
    place are not followed. SECURITY S24"""
    from lib.web import WebServer
    path, mnt, out = sample(t.path("a.nc")), t.path("mnt"), t.path("out")
    os.mkdir(mnt)
    os.mkdir(out)
    state, cache = t.path(".a.nc.nczarrfs"), t.path("cache")

    def refused(words):
        code, _, err = t.run(t.binary, "-f", "-o", "rw", path, mnt)
        assert code == 1 and words in err, (code, err)
    for words in plants(state, out):
        refused(words)
    os.mkdir(state, 0o700)
    os.symlink(out + "/lock", state + "/lock")
    refused("lock")
    os.unlink(state + "/lock")
    with WebServer(t.tmp) as web:
        for words in plants(cache, out):
            with t.mount(web.url + "/a.nc", "cache_dir=" + cache, foreground=True) as m:
                t.call(wake_children, m.path)
                assert words in m.messages(), m.messages()
            assert not os.listdir(cache), os.listdir(cache)
    assert not os.listdir(out), os.listdir(out)


def test_planted_in_mirror(t):
    """A link where a mirror makes a store of a file goes, and what it leads to stays.
    SECURITY S23"""
    folder, out = t.path("d"), t.path("out")
    os.mkdir(folder)
    _write(out + "/kept", b"kept")
    os.symlink(out, folder + "/.new.zarr.new.nczarrfs")
    os.symlink(out + "/made.nc", folder + "/made.nc")

    def write(mnt):
        import netCDF4
        with netCDF4.Dataset(t.path("new.nc"), "w") as nc:
            nc.createDimension("x", 3)
            nc.createVariable("v", "i4", ("x",))[:] = [1, 2, 3]
        with open(t.path("new.nc"), "rb") as src, open(mnt + "/new.nc", "wb") as dst:
            dst.write(src.read())
        with contextlib.suppress(OSError):
            os.mkdir(mnt + "/made.zarr")
    with t.mount(folder, "rw", foreground=True) as m:
        t.call(write, m.path)
    assert os.path.isdir(folder + "/new.zarr") and not os.path.exists(folder + "/new.nc")
    assert os.listdir(out) == ["kept"], os.listdir(out)
    assert sorted(os.listdir(folder)) == ["made.nc", "made.zarr", "new.zarr"], os.listdir(folder)


# ---- sizes ----

MIB = 1 << 20
BLANKS = 64 * MIB  # of each bomb

# From a process that is small itself: what it had counts for who comes after it.
MEASURE = """import os, sys
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss << 10)"""


def bomb():
    """zlib's bytes of so many blanks, without making them."""
    import zlib
    z = zlib.compressobj(1)
    return b"".join(z.compress(b" " * MIB) for _ in range(BLANKS // MIB)) + z.flush()


def bombs(folder, n):
    """An array whose chunks are small as they are stored."""
    stored = bomb()
    assert len(stored) < MIB
    _write(folder + "/.zgroup", {"zarr_format": 2})
    _write(folder + "/x/.zarray", dict(ZARRAY, shape=[n * BLANKS], chunks=[BLANKS],
                                       compressor={"id": "zlib", "level": 1}))
    for i in range(n):
        _write(f"{folder}/x/{i}", stored)
    return folder


def bomb_zip(path):
    """Attributes that take more memory than anything should."""
    import zipfile
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        z.writestr(".zgroup", json.dumps({"zarr_format": 2}))
        with z.open(".zattrs", "w") as f:
            f.write(b"{")
            for _ in range(BLANKS // MIB - 1):
                f.write(b" " * MIB)
            f.write(b"}")
    return path


def declared(folder):
    """Files of some bytes that declare very much."""
    huge = 1 << 59
    for name, change in (("shape", {"shape": [huge], "chunks": [huge]}),
                         ("product", {"shape": [1 << 30] * 8, "chunks": [1 << 30] * 8}),
                         ("rank", {"shape": [1] * 100000, "chunks": [1] * 100000}),
                         ("text", {"dtype": "|S4294967295"})):
        _write(f"{folder}/{name}/.zgroup", {"zarr_format": 2})
        _write(f"{folder}/{name}/x/.zarray", dict(ZARRAY, **change))
        yield f"{folder}/{name}"
    for name, text in (("depth", b"[" * 4 * MIB), ("digits", b'{"a": ' + b"9" * 4 * MIB + b"}")):
        _write(f"{folder}/{name}/.zgroup", {"zarr_format": 2})
        _write(f"{folder}/{name}/.zattrs", text)
        yield f"{folder}/{name}"
    for kind, head in ((12, b"\x7f\xff\xff\xff"), (10, b"\xff\xff\xff\xff")):  # attributes, dims
        name = f"{folder}/cdf{kind}.nc"
        _write(name, b"CDF\x01" + bytes(4) + bytes([0, 0, 0, kind]) + head + bytes(100))
        yield name
    end = b"PK\x05\x06" + bytes(4) + b"\xff\xff" * 2 + b"\xff" * 8 + bytes(2)
    end64 = (b"PK\x06\x06" + (44).to_bytes(8, "little") + bytes(12) +
             huge.to_bytes(8, "little") * 2 + (1 << 40).to_bytes(8, "little") + bytes(8))
    local = b"PK\x03\x04" + bytes(22) + b"\7\0\0\0.zgroup"
    _write(folder + "/many.zip", local + end64 + b"PK\x06\x07" + bytes(4) +
           len(local).to_bytes(8, "little") + b"\x01\0\0\0" + end)
    yield folder + "/many.zip"


def peak_of(t, *args):
    """(status, most memory of the program and what it started, in bytes)"""
    _, out, err = t.run("/usr/bin/python3", "-SIc", MEASURE, t.binary, *args)
    assert out, err
    return tuple(int(x) for x in out.split("\n")[-2].split())


def read_bombs(mnt, n):
    """All at the same time; each is what it is said to be."""
    files = [open(f"{mnt}/x/{i}", "rb") for i in range(n)]
    pids = []
    for f in files:
        pids.append(os.fork())
        if pids[-1] == 0:
            os._exit(f.read(100) != b" " * 100)
    assert not any(os.waitpid(pid, 0)[1] for pid in pids)


def no_chunk(path):
    try:
        with open(path, "rb") as f:
            f.read()
    except OSError as error:
        assert error.errno == errno.EIO, error
        return
    raise AssertionError(f"{path} is read")


def test_declared_sizes(t):
    """What a source declares does not decide what memory it is given: options do.
    SECURITY S50, S51, S52"""
    room = 48 * MIB  # of the program itself
    half = "8388608 bytes (half of -o memory)"
    says = {"shape": "max_chunk=4294967296 bytes", "product": "2^62 bytes",
            "rank": half, "text": "exceeds 1048576", "digits": None, "depth": half, "b.zip": half,
            "cdf10.nc": "more than the file's 116 bytes can hold",
            "cdf12.nc": "more than the file's 116 bytes can hold",
            "many.zip": "a zip archive without Zarr metadata files, or an incomplete one"}
    for source in [*declared(t.path("d")), bomb_zip(t.path("b.zip"))]:
        words = says.pop(os.path.basename(source))
        status, peak = peak_of(t, "info", "-o", "memory=16M", source)
        assert status == int(words is not None), (source, status)
        err = t.run(t.binary, "info", "-o", "memory=16M", source)[2]
        assert (words in err and len(err.splitlines()) == 1) if words else err == "", err
        assert t.sanitized or peak < room, f"{source}: {peak >> 20} MiB"
    assert not says, says
    names = named_zip(t.path("names.zip"), "in", [f"in/{i:064}" for i in range(1000)])
    status, _, err = t.run(t.binary, "info", "-o", "memory=128K", names)
    assert status == 1 and "65536 bytes (half of -o memory)" in err, err
    assert t.run(t.binary, "info", "-o", "memory=2M", names)[0] == 0
    indexed = t.path("i.h5")
    with h5py.File(indexed, "w") as f:
        f.create_dataset("v", data=np.arange(20000), chunks=(1,))
    with t.mount(indexed, "memory=512K", foreground=True) as m:
        t.call(lambda mnt: no_chunk(mnt + "/v/0"), m.path)
        assert "'/v' chunk 0" in m.messages()
        assert "131072 bytes (a quarter of -o memory)" in m.messages()
    many = bombs(t.path("bombs"), 4)
    status, _, err = t.run(t.binary, "info", "-o", "max_chunk=63M", many)
    assert status == 1 and "max_chunk" in err, err
    assert peak_of(t, "info", "-o", "max_chunk=64M", many)[0] == 0
    with t.mount(many, "view=zarr", "filter=none", "decode_threads=1") as m:
        t.call(read_bombs, m.path, 4)
        peak = m.memory_peak()
        assert t.sanitized or peak < room + 2 * BLANKS, f"{peak >> 20} MiB"


def test_open_timeout(t):
    """A source that does not come is given up. SECURITY S55"""
    from lib.web import WebServer
    sample(t.path("a.nc"))
    with WebServer(t.tmp, fault=lambda h: h.hang() or True) as web:
        code, _, err = t.run(t.binary, "info", "-o", "open_timeout=1,timeout=60", web.url + "/a.nc")
        assert code == 1 and "not open after 1 seconds" in err, (code, err)
