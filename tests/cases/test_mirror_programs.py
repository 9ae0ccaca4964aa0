"""Programs that take a mirrored directory for a directory: those that ask for modes, copy extended
attributes, walk through it, copy or remove it as a whole."""
import errno
import os
import shutil
import subprocess

import numpy as np

from lib.context import Skip

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


def native_and_mounted(d, m, files):
    """d, m: open directories, since those above them may be private."""
    for at in d, m:
        assert os.access("f", os.R_OK | os.X_OK, dir_fd=at)
        assert not os.access("none", os.F_OK, dir_fd=at)
    native, mounted = ({name: allowed(name, at) for name in files} for at in (d, m))
    assert mounted == native, f"{os.getuid()}: {mounted}, on the disk {native}"


def as_user(uid, groups, *args):
    os.setgroups(groups)
    os.setgid(uid)
    os.setuid(uid)
    native_and_mounted(*args)


# SEMANTICS P31
def test_access(t):
    """Each mode, asked by root and, with allow_other, by the owner, a member of the group and another
    user, has the answer that the directory itself gives."""
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
    at = os.open(d, os.O_PATH)
    with t.mount(d, "rw") as m:
        mounted = os.open(m.path, os.O_PATH)
        native_and_mounted(at, mounted, files)
        os.close(mounted)
        run = subprocess.run(["test", "-x", m.path + "/644"], check=False)
        assert run.returncode == 1, run
        assert allowed(m.path + "/a.zarr") == "rwx" and allowed(m.path + "/a.nc") == "rw"
        assert "x" not in allowed(m.path + "/c.nc4")
    with t.mount(d) as m:
        for name in files:
            assert "w" not in allowed(f"{m.path}/{name}"), name
        fails((errno.EROFS,), os.open, m.path + "/644", os.O_WRONLY)
        assert allowed(m.path + "/a.zarr") == "rx" and allowed(m.path + "/a.zarr/.zgroup") == "r"
    if os.getuid():
        raise Skip("only root can be another user")
    with t.mount(d, "rw,allow_other") as m:
        for uid, groups in (1234, []), (77, [4321]), (77, [1, 2]):
            mounted = os.open(m.path, os.O_PATH)
            t.call(as_user, uid, groups, at, mounted, files)
            os.close(mounted)


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
    for own in "user.nczarrfs.source", "user.nczarrfs.mine":
        fails((errno.EPERM,), os.setxattr, path, own, b"x")
        os.setxattr(real, own, b"x")
        fails((errno.ENODATA,), os.getxattr, path, own)
        os.removexattr(real, own)
    for other in "system.posix_acl_access", "security.mine":
        fails((errno.ENOTSUP,), os.getxattr, path, other)
    for gone in "user.beside", "user.long", ENTRY:
        os.removexattr(path, gone)
    fails((errno.ENODATA,), os.removexattr, path, ENTRY)
    fails((errno.ENODATA,), os.getxattr, path, ENTRY)
    assert os.listxattr(path) == [] and os.listxattr(real) == []


def short(path):
    """A buffer that is too small is ERANGE, and none at all asks for the length."""
    import ctypes
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
