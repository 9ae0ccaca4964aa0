# SPDX-License-Identifier: BSD-3-Clause
"""Programs that take a mirrored directory for a directory: those that ask for modes, copy extended
attributes, walk through it, copy or remove it as a whole."""
import ctypes
import errno
import os
import shutil
import struct
import subprocess

import numpy as np

from lib import users
from lib.context import Skip, eventually

LIMIT = 120.0
ENTRY = "user.colour"


def fails(codes, func, *args, **words):
    try:
        func(*args, **words)
    except OSError as error:
        assert error.errno in codes, f"{func.__name__}{args}: {error}"
        return
    raise AssertionError(f"{func.__name__}{args}: no error")


def nc(path, form="NETCDF4"):
    import netCDF4
    with netCDF4.Dataset(path, "w", format=form) as d:
        d.createDimension("x", 4)
        d.createVariable("v", "i4", ("x",))[:] = np.arange(4)


def tree(path):
    import zarr
    g = zarr.open_group(path, "w")
    a = g.create_dataset("v", data=np.arange(4), chunks=(2,), compressor=None)
    a.attrs["_ARRAY_DIMENSIONS"] = ["x"]


def put(path, data=b"1", mode=0o644):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


# ---- access(2) ----

MODES = {0o644: "rw", 0o755: "rwx", 0o400: "r", 0o200: "w", 0o100: "x", 0o000: "", 0o011: "",
         0o700: "rwx"}


def allowed(path, at=None):
    return "".join(c for c, bit in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK))
                   if os.access(path, bit, dir_fd=at))


def native_and_mounted(d, m, files, uid=0, groups=()):
    """The same answers in both. The folders above may be private: both are opened first."""
    d, m = os.open(d, os.O_PATH), os.open(m, os.O_PATH)
    if uid:
        os.setgroups(groups)
        os.setgid(uid)
        os.setuid(uid)
    for at in d, m:
        assert os.access("f", os.R_OK | os.X_OK, dir_fd=at)
        assert not os.access("none", os.F_OK, dir_fd=at)
    native, mounted = ({name: allowed(name, at) for name in files} for at in (d, m))
    assert mounted == native, f"{os.getuid()}: {mounted}, on the disk {native}"


# SEMANTICS P31
def test_access(t):
    """Each mode, asked by root and, with allow_other, by the owner, a member of the group and
    another user, has the answer that the directory itself gives."""
    d = t.path("dir")
    os.makedirs(d + "/f")
    os.chmod(d, 0o755)
    files = [f"{mode:03o}" for mode in MODES]
    for name in files:
        put(f"{d}/{name}", mode=int(name, 8))
        if not os.getuid():
            os.chown(f"{d}/{name}", 1234, 4321)
    t.call(nc, d + "/a.nc")
    t.call(nc, d + "/c.nc", "NETCDF3_CLASSIC")
    with t.mount(d, "rw") as m:
        t.call(native_and_mounted, d, m.path, files)
        run = subprocess.run(["test", "-x", m.path + "/644"], check=False)
        assert run.returncode == 1, run
        assert allowed(m.path + "/a.zarr") == "rwx" and allowed(m.path + "/a.nc") == "rw"
        assert "x" not in allowed(m.path + "/c.nc4")
    with t.mount(d) as m:
        libc = ctypes.CDLL(None, use_errno=True)
        for name in files + ["a.nc", "a.zarr", "a.zarr/.zgroup"]:
            assert libc.access(f"{m.path}/{name}".encode(), os.W_OK) == -1, name
            assert ctypes.get_errno() == errno.EROFS, name
        fails((errno.EROFS,), os.open, m.path + "/644", os.O_WRONLY)
        assert allowed(m.path + "/a.zarr") == "rx" and allowed(m.path + "/a.zarr/.zgroup") == "r"
    if os.getuid():
        raise Skip("only root can be another user")
    with t.mount(d, "rw,allow_other") as m:
        for uid, groups in (1234, []), (77, [4321]), (77, [1, 2]):
            t.call(native_and_mounted, d, m.path, files, uid, groups)


def of_a_user(binary):
    own, program = users.enter(binary)
    d, m = own + "/d", own + "/m"
    for folder in d, m:
        os.mkdir(folder)
        os.chown(folder, users.NOBODY, users.NOBODY)
    for mode in 0o060, 0o006, 0o640, 0o070, 0o604, 0o606:
        put(f"{d}/{mode:03o}", mode=mode)
        os.chown(f"{d}/{mode:03o}", 0, 4321)
    put(d + "/own", mode=0o077)
    os.chown(d + "/own", users.NOBODY, 4321)
    status, text = users.run(program, "-o", "rw", d, m)
    assert status == 0, text
    script = ('cd "$1" && for n in *; do for f in r w x; do test -$f $n && echo $n $f; done; done;'
              ' test -e own')
    who = ["setpriv", f"--reuid={users.NOBODY}", f"--regid={users.NOBODY}"]
    try:
        for groups in "--clear-groups", "--groups=4321", "--groups=5,4321,6":
            native, mounted = (subprocess.run([*who, groups, "sh", "-c", script, "sh", place],
                                              stdout=subprocess.PIPE, cwd="/", check=True).stdout
                               for place in (d, m))
            assert mounted == native != b"", f"{groups}: {mounted}, on the disk {native}"
    finally:
        users.run("fusermount3", "-u", m)


# SEMANTICS P31
def test_access_of_a_user(t):
    """A user's own mount, where the kernel checks nothing: others' files, by the user's groups."""
    t.call(of_a_user, t.binary)


# ---- extended attributes ----

def attributes(d, m, name):
    real, path = f"{d}/{name}", f"{m}/{name}"
    os.setxattr(path, ENTRY, b"blue")
    assert os.getxattr(real, ENTRY) == os.getxattr(path, ENTRY) == b"blue"
    fails((errno.EEXIST,), os.setxattr, path, ENTRY, b"red", os.XATTR_CREATE)
    fails((errno.ENODATA,), os.setxattr, path, "user.none", b"red", os.XATTR_REPLACE)
    os.setxattr(path, ENTRY, b"red", os.XATTR_REPLACE)
    os.setxattr(real, "user.beside", b"")
    os.setxattr(path, "user.long", b"x" * 1000)
    assert sorted(os.listxattr(path)) == ["user.beside", ENTRY, "user.long"], os.listxattr(path)
    assert os.getxattr(path, "user.beside") == b"" and len(os.getxattr(path, "user.long")) == 1000
    short(path)
    try:
        os.setxattr(real, "user.huge", b"x" * 65000)
        os.removexattr(real, "user.huge")
    except OSError as native:    # ext4: an inode has a block for them
        fails((native.errno,), os.setxattr, path, "user.huge", b"x" * 65000)
    for own in "user.nczarrfs.source", "user.nczarrfs.mine":
        fails((errno.EPERM,), os.setxattr, path, own, b"x")
        os.setxattr(real, own, b"x")
        fails((errno.ENODATA,), os.getxattr, path, own)
        os.removexattr(real, own)
    for other in "system.posix_acl_access", "security.mine":
        fails((errno.ENOTSUP,), os.getxattr, path, other)
    entries = b"".join(struct.pack("<HHi", tag, 7, -1) for tag in (1, 4, 32))
    for acl in ["system.posix_acl_access"] + ["system.posix_acl_default"] * os.path.isdir(path):
        fails((errno.ENOTSUP,), os.setxattr, path, acl, struct.pack("<I", 2) + entries)
    for gone in "user.beside", "user.long", ENTRY:
        os.removexattr(path, gone)
    fails((errno.ENODATA,), os.removexattr, path, ENTRY)
    fails((errno.ENODATA,), os.getxattr, path, ENTRY)
    assert os.listxattr(path) == [] and os.listxattr(real) == []


def short(path):
    """A buffer that is too small is ERANGE, and none at all asks for the length."""
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(10)
    for call in (lambda n: libc.getxattr(path.encode(), b"user.long", room, ctypes.c_size_t(n)),
                 lambda n: libc.listxattr(path.encode(), room, ctypes.c_size_t(n))):
        assert call(5) == -1 and ctypes.get_errno() == errno.ERANGE
        assert call(0) > 5


def unlinked(m):
    fd = os.open(m + "/open", os.O_CREAT | os.O_RDWR)
    os.unlink(m + "/open")
    os.setxattr(fd, ENTRY, b"of no name")
    assert os.getxattr(fd, ENTRY) == b"of no name"
    os.close(fd)


# SEMANTICS X3, X4
def test_attributes(t):
    d = t.path("dir")
    os.makedirs(d + "/sub")
    put(d + "/file")
    t.call(nc, d + "/a.nc")
    t.call(tree, d + "/b.zarr")
    try:
        os.setxattr(d + "/file", ENTRY, b"")
        os.removexattr(d + "/file", ENTRY)
    except OSError as error:
        raise Skip(f"no user attributes in {d}: {error}") from error
    with t.mount(d, "rw", foreground=True) as m:
        for name in "file", "sub", "a.nc", "b.zarr":
            attributes(d, m.path, name)
        unlinked(m.path)
        for own in "a.zarr", "a.zarr/v", "a.zarr/.zgroup", "b.nc":
            fails((errno.ENOTSUP,), os.setxattr, f"{m.path}/{own}", ENTRY, b"x")
            fails((errno.ENOTSUP,), os.removexattr, f"{m.path}/{own}", ENTRY)
        os.setxattr(m.path + "/file", ENTRY, b"kept")
        shutil.copy2(m.path + "/file", m.path + "/copy")
        assert os.getxattr(d + "/copy", ENTRY) == b"kept"
        assert m.messages() == "", m.messages()
    with t.mount(d) as m:
        assert os.getxattr(m.path + "/file", ENTRY) == b"kept"
        assert os.listxattr(m.path + "/file") == [ENTRY]
        fails((errno.EROFS,), os.setxattr, m.path + "/file", ENTRY, b"x")
    with t.mount(d, "rw,noxattr") as m:
        fails((errno.ENOTSUP,), os.getxattr, m.path + "/file", ENTRY)
        fails((errno.ENOTSUP,), os.setxattr, m.path + "/file", ENTRY, b"x")


# ---- errors that a program earned ----

def earned(m):
    libc = ctypes.CDLL(None, use_errno=True)
    for a, b in (("one", "two"), ("a.zarr", "b.nc")):
        paths = [f"{m}/{name}".encode() for name in (a, b)]
        assert libc.renameat2(-100, paths[0], -100, paths[1], 2) == -1   # RENAME_EXCHANGE
        assert ctypes.get_errno() == errno.EINVAL
    with open(m + "/one", "r+b") as f:
        fails((errno.EFBIG,), os.pwrite, f.fileno(), b"x", 1 << 62)
    fails((errno.EFBIG,), os.truncate, m + "/one", (1 << 63) - 1)
    fails((errno.EEXIST,), os.mkdir, m + "/one")


# SEMANTICS P12, E18
def test_no_line_for_what_was_earned(t):
    """An argument that no file takes is an error of the program, and no line in the log."""
    d = t.path("dir")
    os.mkdir(d)
    put(d + "/one")
    put(d + "/two")
    t.call(nc, d + "/a.nc")
    t.call(tree, d + "/b.zarr")
    with t.mount(d, "rw", foreground=True) as m:
        t.call(earned, m.path)
        assert m.messages() == "", m.messages()


# ---- removing all of it ----

def filled(top, n=3):
    """Datasets of every kind, and what is none, in two folders."""
    for folder in top, top + "/sub":
        os.makedirs(folder, exist_ok=True)
        for i in range(n):
            nc(f"{folder}/a{i}.nc")
            tree(f"{folder}/b{i}.zarr")
            nc(f"{folder}/c{i}.nc", "NETCDF3_CLASSIC")
        tree(folder + "/plain")
        put(folder + "/file")
        os.makedirs(folder + "/empty.zarr")


def below(top):
    return sorted(os.path.relpath(os.path.join(base, name), top)
                  for base, folders, names in os.walk(top) for name in folders + names
                  if not (name.startswith(".") and name.endswith(".nczarrfs")))


def removed(d, m, name, *words, shell=False):
    """rm, by a program of its own."""
    done = subprocess.run(words, shell=shell, cwd=m, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    assert below(f"{d}/{name}") == [], below(f"{d}/{name}")


def others_see(path, *names):
    """What a process that did not remove it is told."""
    for name in names:
        run = subprocess.run(["test", "-e", f"{path}/{name}"], check=False)
        assert run.returncode == 1, f"{name} is there for another process"


# SEMANTICS P30
def test_remove_all(t):
    """rmtree, rm -r and rm -r * remove a directory with its datasets, whose other names go too."""
    d = t.path("dir")
    for name in "rmtree", "rm", "star", "find":
        t.call(filled, f"{d}/{name}")
    for i in range(40):       # more folders than listings are remembered
        t.call(filled, f"{d}/rmtree/f{i}", 1)
    for name in "", "/sub":   # '*' has empty.nc first, which cannot be opened
        os.rmdir(f"{d}/star{name}/empty.zarr")
    with t.mount(d, "rw", foreground=True) as m:
        t.call(shutil.rmtree, m.path + "/rmtree")
        assert not os.path.exists(d + "/rmtree") and not os.path.exists(m.path + "/rmtree")
        removed(d, m.path, "rm", "rm", "-r", "rm")
        assert not os.path.exists(d + "/rm")
        removed(d, m.path, "star", "cd star && rm -r *", shell=True)
        removed(d, m.path, "find", "find", "find", "-depth", "-delete")
        assert os.listdir(d) == ["star"] and os.listdir(m.path + "/star") == []
        assert m.messages() == "", m.messages()


def in_order(d, m):
    """One name after the other, in both orders, and what is seen of it meanwhile."""
    assert set(os.listdir(m)) >= {"a0.nc", "a0.zarr", "b0.nc", "b0.zarr", "a1.nc", "a1.zarr"}
    os.unlink(m + "/a0.nc")
    assert not os.path.exists(d + "/a0.nc")
    others_see(m, "a0.nc", "a0.zarr")
    fails((errno.ENOENT,), os.unlink, m + "/a0.nc")     # the name itself has gone
    fails((errno.EISDIR,), os.unlink, m + "/a0.zarr")
    assert os.listdir(m + "/a0.zarr") == []
    fails((errno.ENOENT,), os.stat, m + "/a0.zarr/.zgroup")
    os.rmdir(m + "/a0.zarr")
    fails((errno.ENOENT,), os.rmdir, m + "/a0.zarr")    # once
    os.unlink(m + "/b0.nc")
    assert not os.path.exists(d + "/b0.zarr")
    os.rmdir(m + "/b0.zarr")
    fails((errno.ENOENT,), os.rmdir, m + "/b0.zarr")
    fails((errno.ENOENT,), os.unlink, m + "/none.nc")


def asks_else(d, m):
    """Absence is absence for who does not walk: without a listing, after a new one, and for who
    opens the name."""
    shutil.rmtree(m + "/a0.zarr")
    assert not os.path.exists(m + "/a0.nc") and not os.path.exists(d + "/a0.nc")
    assert "a1.nc" in os.listdir(m)
    shutil.rmtree(m + "/a1.zarr")
    assert "a1.nc" not in os.listdir(m)
    assert not os.path.exists(m + "/a1.nc")
    os.unlink(m + "/b0.nc")
    fails((errno.ENOENT, errno.EISDIR), open, m + "/b0.zarr", "rb")
    os.listdir(m)
    shutil.rmtree(m + "/a2.zarr")
    fails((errno.ENOENT,), open, m + "/a2.nc", "rb")
    put(m + "/a2.nc")
    assert os.path.exists(d + "/a2.nc")


def idles(m):
    """Absent again for who goes on with something else than removing."""
    assert "a0.nc" in os.listdir(m)
    shutil.rmtree(m + "/a0.zarr")
    assert os.path.exists(m + "/a0.nc")
    eventually(lambda: not os.path.exists(m + "/a0.nc"), 60)
    fails((errno.ENOENT,), os.unlink, m + "/a0.nc")


def writes_else(d, m):
    """What was removed can be written anew under the other name by the same program."""
    assert "a0.zarr" in os.listdir(m)
    os.unlink(m + "/a0.nc")
    tree(m + "/a0.zarr")
    os.unlink(m + "/a1.nc")
    os.makedirs(m + "/a1.zarr", exist_ok=True)
    put(m + "/a1.zarr/.zgroup", b'{"zarr_format": 2}')
    assert os.listdir(m + "/a1.zarr") == [".zgroup"]
    os.unlink(m + "/a2.nc")
    os.makedirs(m + "/a2.zarr/v")
    put(m + "/a2.zarr/.zgroup", b'{"zarr_format": 2}')


def written(d):
    import netCDF4
    with netCDF4.Dataset(d + "/a0.nc") as f:
        f.set_auto_mask(False)
        assert f["v"][:].tolist() == [0, 1, 2, 3]
    for name in "a1.nc", "a2.nc":
        netCDF4.Dataset(f"{d}/{name}").close()


# SEMANTICS P30, E1
def test_remove_by_name(t):
    d = t.path("dir")
    t.call(filled, d)
    with t.mount(d, "rw") as m:
        t.call(in_order, d, m.path)
    for name, func in ("else", asks_else), ("write", writes_else):
        t.call(filled, t.path(name))
        with t.mount(t.path(name), "rw") as m:
            t.call(func, t.path(name), m.path)
    t.call(written, t.path("write"))
    t.call(filled, t.path("idle"))
    with t.mount(t.path("idle"), "rw") as m:
        t.call(idles, m.path)


# ---- one form of each dataset ----

SHOWN = {
    "both": ["a.zarr", "b.nc", "c.zarr", "c.nc4", "d.nc", "p.nc", "a.nc", "b.zarr", "c.nc",
             "d.zarr", "p", "x.h5"],
    "converted": ["a.zarr", "b.nc", "c.zarr", "d.nc", "d.zarr", "p.nc", "x.h5"],
    "zarr": ["a.zarr", "b.zarr", "c.zarr", "d.nc", "d.zarr", "p", "x.h5"],
    "nc": ["a.nc", "b.nc", "c.nc", "d.nc", "d.zarr", "p.nc", "x.h5"],
}


def named(top):
    """Whose names are taken: d.nc and d.zarr are two datasets, x.h5 is none."""
    os.makedirs(top + "/sub")
    nc(top + "/a.nc")
    tree(top + "/b.zarr")
    nc(top + "/c.nc", "NETCDF3_CLASSIC")
    nc(top + "/d.nc")
    tree(top + "/d.zarr")
    tree(top + "/p")
    put(top + "/x.h5")
    nc(top + "/sub/a.nc")


def handed_on(m, to, show):
    """Programs that take the directory whole see each dataset once, and its bytes."""
    text = {"check": True, "capture_output": True, "text": True}
    want = below(m)
    assert sorted(os.listdir(m)) == sorted(SHOWN[show] + ["sub"]), (show, os.listdir(m))
    os.makedirs(to)
    subprocess.run(["cp", "-r", m, to + "/cp"], check=True)
    subprocess.run(["tar", "-cf", to + "/tar", "-C", m, "."], check=True)
    listed = subprocess.run(["tar", "-tf", to + "/tar"], **text)
    listed = sorted(n[2:].rstrip("/") for n in listed.stdout.splitlines() if n != "./")
    assert below(to + "/cp") == want == listed, (want, listed)
    if shutil.which("rsync"):
        subprocess.run(["rsync", "-a", m + "/", to + "/rsync"], check=True)
        assert below(to + "/rsync") == want
    du = subprocess.run(["du", "-a", "--apparent-size", m], **text)
    assert len(du.stdout.splitlines()) == len(want) + 1, du.stdout
    for name in want:
        if os.path.isfile(f"{m}/{name}"):
            with open(f"{m}/{name}", "rb") as a, open(f"{to}/cp/{name}", "rb") as b:
                assert a.read() == b.read(), name


def read_copies(to):
    import netCDF4
    import zarr
    for show in "converted", "zarr":
        for name in "a", "sub/a":
            a = zarr.open_group(f"{to}/{show}/cp/{name}.zarr", "r")["v"]
            assert a[:].tolist() == [0, 1, 2, 3]
    for show in "converted", "nc":
        with netCDF4.Dataset(f"{to}/{show}/cp/b.nc") as f:
            f.set_auto_mask(False)
            assert f["v"][:].tolist() == [0, 1, 2, 3]


def opens(path, name):
    """A dataset has its values, whether it is listed or not; x.h5 is a file as it is."""
    import netCDF4
    import zarr
    if name == "x.h5":
        assert os.path.isfile(path), path
    elif os.path.isdir(path):
        assert zarr.open_group(path, "r")["v"][:].tolist() == [0, 1, 2, 3], path
    else:
        with netCDF4.Dataset(path) as f:
            f.set_auto_mask(False)
            assert f["v"][:].tolist() == [0, 1, 2, 3], path


# SEMANTICS P32
def test_show(t):
    d = t.path("dir")
    t.call(named, d)
    for show in SHOWN:
        with t.mount(d, "show=" + show) as m:
            t.call(handed_on, m.path, t.path("to") + "/" + show, show)
            for name in SHOWN["both"]:       # what is not listed is there
                t.call(opens, f"{m.path}/{name}", os.path.basename(name))
    t.call(read_copies, t.path("to"))
    os.unlink(d + "/c.nc")    # no one can write it as a tree
    with t.mount(d, "rw,show=converted") as m:
        shutil.rmtree(m.path + "/a.zarr")
        done = subprocess.run("rm -r *", shell=True, cwd=m.path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    assert below(d) == [], below(d)


def removed_open(m):
    os.makedirs(m + "/p/x.zarr/v")        # a chunk without its array cannot be in the file
    with open(m + "/p/x.zarr/v/0", "wb") as f:
        f.write(b"abcd")
    shutil.rmtree(m + "/p")
    os.mkdir(m + "/q")
    nc(m + "/q/y.nc")
    with open(m + "/q/y.nc", "rb") as f:  # as lazy readers keep it
        f.read(8)
        shutil.rmtree(m + "/q")
    os.mkdir(m + "/r")
    os.mkdir(m + "/r/z.zarr")
    fails((errno.ENOTEMPTY,), os.rmdir, m + "/r")
    os.mkdir(m + "/r/z.zarr/g")


def test_removed_while_open(t):
    """A directory whose datasets were removed while they were open, or with pending writes that
    have no place in them, is removed; one that has a dataset is not empty."""
    d = t.path("dir")
    os.mkdir(d)
    with t.mount(d, "rw") as m:
        t.call(removed_open, m.path)
        assert sorted(os.listdir(m.path)) == ["r"]
    assert below(d) == ["r", "r/z.nc"], below(d)


# ---- endings in capitals ----

def capitals(m):
    import netCDF4
    import zarr
    assert sorted(os.listdir(m)) == ["A.NC", "A.zarr", "B.ZARR", "B.nc", "C.NC", "C.nc4", "C.zarr",
                                     "D.Nc"], os.listdir(m)
    assert zarr.open_group(m + "/A.zarr", "r")["v"][:].tolist() == [0, 1, 2, 3]
    for name in "B.nc", "C.nc4":
        with netCDF4.Dataset(f"{m}/{name}") as f:
            f.set_auto_mask(False)
            assert f["v"][:].tolist() == [0, 1, 2, 3], name
    fails((errno.ENOENT,), os.stat, m + "/D.zarr")


# SEMANTICS X12
def test_capitals(t):
    """Endings in capitals are those of datasets; mixed ones are not."""
    d = t.path("dir")
    os.mkdir(d)
    for name in "A.NC", "D.Nc":
        t.call(nc, f"{d}/{name}")
    t.call(nc, d + "/C.NC", "NETCDF3_CLASSIC")
    t.call(tree, d + "/B.ZARR")
    with t.mount(d) as m:
        t.call(capitals, m.path)
