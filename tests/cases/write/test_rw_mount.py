# SPDX-License-Identifier: BSD-3-Clause
"""A writable mount as such: what may be written, who may write it, when it is in the dataset, and
what happens to it when something goes wrong."""
import errno
import os
import shutil
import signal
import stat
import zipfile

from lib import mounts
from lib.context import eventually


def state(path):
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.nczarrfs")


def in_child(t, func, *args):
    """Clients touch the mount from a process of their own."""
    t.call(func, *args, timeout=60)


def expect_errno(codes, func, *args):
    try:
        func(*args)
    except OSError as error:
        assert error.errno in codes, f"{error} for {args}, expected {codes}"
        return
    raise AssertionError(f"{args}: no error")


# ---- datasets ----

def make_nc(path, form="NETCDF4"):
    import netCDF4
    with netCDF4.Dataset(path, "w", format=form) as d:
        d.createDimension("t", None)
        d.createDimension("x", 4)
        kind = {"zlib": True} if form == "NETCDF4" else {}
        d.createVariable("v", "f4", ("t", "x"), **kind)[:] = [[1] * 4, [5] * 4]


def make_zarr(path):
    import numpy as np
    import zarr
    group = zarr.open_group(path, "w")
    data = np.repeat(np.float32([1, 5]), 4).reshape(2, 4)
    array = group.create_dataset("v", data=data, chunks=(1, 4))
    array.attrs["_ARRAY_DIMENSIONS"] = ["t", "x"]


def write_tree(path, value):
    import zarr
    zarr.open_group(path, "r+")["v"][1] = value


def new_tree(path):
    import zarr
    array = zarr.open_group(path, "a").create_dataset("w", shape=(3,), chunks=(2,), dtype="i4")
    array.attrs["_ARRAY_DIMENSIONS"] = ["y"]
    array[:] = [7, 8, 9]


def expect_tree(path, value):
    import zarr
    assert zarr.open_group(path, "r")["v"][1].tolist() == [value] * 4


def write_nc(path, value):
    import netCDF4
    with netCDF4.Dataset(path, "a") as d:
        d["v"][1] = value


def expect_nc(path, value):
    import netCDF4
    with netCDF4.Dataset(path) as d:
        assert d["v"][1].tolist() == [value] * 4, d["v"][:]


def expect_new_nc(path):
    import netCDF4
    with netCDF4.Dataset(path) as d:
        assert d["w"][:].tolist() == [7, 8, 9] and d["w"].dimensions == ("y",)


def datasets(t):
    """Both kinds, made once a test: (source, what is written below the mount, writer, judge of
    the mount, judge of the source)."""
    nc, tree = t.path("a.nc"), t.path("b.zarr")
    t.call(make_nc, nc)
    t.call(make_zarr, tree)
    return ((nc, "", write_tree, expect_tree, expect_nc),
            (tree, "b.nc", write_nc, expect_nc, expect_tree))


def below(m, name):
    return os.path.join(m.path, name) if name else m.path


# ---- tests ----

# SEMANTICS C9, W5, W21
def test_both_ways(t):
    """What was written is read in the mount at once; what was written into the virtual file is in
    the tree when it has been closed, and of a tree in the file when the process has ended; nothing
    is left beside it."""
    for path, name, write, expect_in, expect_source in datasets(t):
        with t.mount(path, "rw,commit_delay=3600000", foreground=True) as m:
            in_child(t, write, below(m, name), 42)
            in_child(t, expect_source, path, 42 if name else 5)
            in_child(t, expect_in, below(m, name), 42)
            assert os.path.isdir(state(path))
        in_child(t, expect_source, path, 42)
        assert not os.path.exists(state(path)), os.listdir(state(path))


def test_create(t):
    """`-o create` makes what the name says."""
    nc, tree = t.path("new.nc"), t.path("new.zarr")
    with t.mount(nc, "create", foreground=True) as m:
        in_child(t, new_tree, m.path)
    in_child(t, expect_new_nc, nc)
    with t.mount(tree, "create,zarr_format=2", foreground=True) as m:
        in_child(t, make_nc, below(m, "new.nc"))
        in_child(t, write_nc, below(m, "new.nc"), 3)
    in_child(t, expect_tree, tree, 3)
    for path in nc, tree:
        with t.mount(path, "create", check=False) as m:
            assert m.status == 1 and "leave out create" in m.messages(), m.messages()


# SEMANTICS X7
def test_what_cannot_be_written(t):
    nc, tree = t.path("a.nc"), t.path("b.zarr")
    classic, archive = t.path("c.nc"), t.path("d.zarr.zip")
    t.call(make_nc, nc)
    t.call(make_zarr, tree)
    t.call(make_nc, classic, "NETCDF3_CLASSIC")
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr(".zgroup", '{"zarr_format": 2}')
    hdf4 = t.path("e.hdf")
    with open(hdf4, "wb") as f:
        f.write(b"\x0e\x03\x13\x01" + bytes(200))
    for path, option, mention in ((classic, "rw", "nccopy -4"), (archive, "rw", "archive"),
                                  (hdf4, "rw", "HDF4"),
                                  (nc, "rw,view=nc", "-o view=auto"),
                                  (tree, "rw,view=zarr", "-o view=auto"),
                                  (t.path("none.nc"), "rw", "no such file"),
                                  (nc, "rw,chunks=x", "chunks=x")):
        with t.mount(path, option, check=False) as m:
            assert m.status == (2 if "=x" in option else 1), (path, option, m.status)
            assert mention in m.messages(), (path, option, m.messages())
            assert len(m.messages().split("\n")) == 1, m.messages()
        assert not os.path.exists(state(path))
    inside = os.path.join(tree, "v")
    status, _, text = t.run(t.binary, "-o", "rw", tree, inside)
    assert status == 1 and "is inside" in text, text
    assert not os.path.exists(state(tree))


# SEMANTICS L1, L2
def test_one_writer(t):
    for path, name, _, expect_in, _ in datasets(t):
        with t.mount(path, "rw") as m:
            with t.mount(path, "rw", check=False) as second:
                assert second.status == 1 and m.path in second.messages(), second.messages()
                assert "being written by another nczarrfs" in second.messages()
            with t.mount(path) as reader:
                assert not reader.messages(), reader.messages()
                in_child(t, expect_in, below(reader, name), 5)
        with t.mount(path, "rw"):  # the first has ended
            pass
    d = t.path("dir")
    os.mkdir(d)
    t.call(make_nc, d + "/a.nc")
    t.call(make_nc, d + "/b.nc")
    with t.mount(d, "rw") as m, t.mount(d, "rw", foreground=True) as second:
        in_child(t, write_tree, m.path + "/a.zarr", 42)
        in_child(t, expect_errno, (errno.EROFS,), write_tree, second.path + "/a.zarr", 43)
        in_child(t, write_tree, second.path + "/b.zarr", 44)
        lines = [x for x in second.messages().splitlines() if "written by another nczarrfs" in x]
        assert len(lines) == 1 and m.path in lines[0] and "a.nc" in lines[0], second.messages()
    in_child(t, expect_nc, d + "/a.nc", 42)
    in_child(t, expect_nc, d + "/b.nc", 44)


def _permissions(mnt, source, name):
    info, real = os.stat(os.path.join(mnt, name)), os.stat(source)
    assert stat.S_IMODE(os.stat(mnt).st_mode) & 0o300 == 0o300
    assert stat.S_IMODE(info.st_mode) & 0o222 == stat.S_IMODE(real.st_mode) & 0o222
    assert (info.st_uid, info.st_gid) == (real.st_uid, real.st_gid)
    assert os.statvfs(mnt).f_blocks == os.statvfs(source).f_blocks
    os.chown(os.path.join(mnt, name), real.st_uid, real.st_gid)
    expect_errno((errno.EPERM,), os.chown, os.path.join(mnt, name), real.st_uid + 1, -1)
    expect_errno((errno.EPERM,), os.symlink, "x", os.path.join(mnt, "link"))
    expect_errno((errno.EPERM,), os.mkfifo, os.path.join(mnt, "fifo"))


# SEMANTICS P18, P28
def test_permissions(t):
    """Attributes say what can be done; the mount's own options hold."""
    for (path, _, _, _, _), name in zip(datasets(t), ("v/.zarray", "b.nc")):
        os.chmod(path, 0o600 if os.path.isfile(path) else 0o700)
        with t.mount(path, "rw") as m:
            in_child(t, _permissions, m.path, path, name)
            with open("/proc/mounts") as f:
                options = [line.split()[3] for line in f if line.split()[1] == m.path][0]
        assert {"rw", "nosuid", "nodev"} <= set(options.split(",")), options


def _sync(mnt):
    fd = os.open(mnt, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def _bytes(path):
    with open(path, "rb") as f:
        return f.read()


def _empty_documents(mnt):
    """As fsspec's touch: created or truncated by one open, written by another. The kernel sends the
    release of a file after close(2) has returned."""
    attrs, new = os.path.join(mnt, "v/.zattrs"), os.path.join(mnt, "g/.zgroup")
    before = _bytes(attrs)
    os.mkdir(os.path.dirname(new))
    for path, there in (attrs, before), (new, None):
        for mode in "wb", "ab":
            open(path, mode).close()
            eventually(lambda: os.path.exists(path) == (there is not None),
                       report=lambda: path)
    eventually(lambda: _bytes(attrs) == before, report=lambda: _bytes(attrs))
    with open(new, "wb") as f:
        assert os.path.getsize(new) == 0
        assert os.listdir(os.path.dirname(new)) == [".zgroup"]
        f.write(b'{"zarr_format": 2}')


def _truncate_document(mnt):
    expect_errno([errno.EINVAL], os.truncate, os.path.join(mnt, "v/.zattrs"), 0)


def _has_group(path):
    import netCDF4
    with netCDF4.Dataset(path) as d:
        assert list(d.groups) == ["g"], d.groups
        assert d["v"].dimensions == ("t", "x")


def test_empty_documents(t):
    """A document that is created or truncated, and not written yet, is no fault: the log has no
    line of it. One that a program was refused is "empty"."""
    file = t.path("a.nc")
    t.call(make_nc, file)
    with t.mount(file, "rw", foreground=True) as m:
        in_child(t, _empty_documents, m.path)
        assert m.messages() == "", m.messages()
        in_child(t, _truncate_document, m.path)
    assert m.messages() == f"nczarrfs: error: '{file}': 'v/.zattrs': empty", m.messages()
    t.call(_has_group, file)


# SEMANTICS W4, W6
def test_sync(t):
    """After `sync MNT` it is in the dataset, while the mount goes on."""
    for path, name, write, expect_in, expect_source in datasets(t):
        with t.mount(path, "rw,commit_delay=3600000", foreground=True) as m:
            in_child(t, write, below(m, name), 11)
            in_child(t, _sync, m.path)
            in_child(t, expect_source, path, 11)
            in_child(t, write, below(m, name), 12)
        in_child(t, expect_source, path, 12)


def _below_mirror(d):
    """Two below each of the directories, and the directory itself."""
    return [os.path.join(d, x, name) for x in ("sub", "sub2", "") for name in ("a", "b")]


def _write_all(mnt, value):
    for path in _below_mirror(mnt):
        write_tree(path + ".zarr", value)


def _expect_all(d, *values):
    for path, value in zip(_below_mirror(d), values):
        expect_nc(path + ".nc", value)


# SEMANTICS W4
def test_sync_of_a_mirror(t):
    """A real directory of a mirror: what was confirmed for the datasets below it, and no others; an
    error of one is that of the call, and the others are put into theirs."""
    d = t.path("dir")
    for path in _below_mirror(d):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        t.call(make_nc, path + ".nc")
    with t.mount(d, "rw,commit_delay=3600000,open_datasets=64", foreground=True) as m:
        in_child(t, _write_all, m.path, 11)
        in_child(t, _expect_all, d, *[5] * 6)
        in_child(t, _sync, m.path + "/sub")
        in_child(t, _expect_all, d, 11, 11, 5, 5, 5, 5)
        in_child(t, _sync, m.path)
        in_child(t, _expect_all, d, *[11] * 6)
        in_child(t, _write_all, m.path, 12)
        with open(d + "/sub/a.nc", "ab") as f:
            f.write(b"more")
        in_child(t, expect_errno, (errno.ESTALE,), _sync, m.path)
        assert state(d + "/sub/a.nc") in m.messages(), m.messages()
        in_child(t, _expect_all, d, 11, *[12] * 5)
        m.fails = True
    in_child(t, _expect_all, d, 11, *[12] * 5)


# SEMANTICS W6
def test_sigterm(t):
    """SIGTERM is unmounting: everything that was confirmed is written first."""
    for path, name, write, _, expect_source in datasets(t):
        with t.mount(path, "rw,commit_delay=3600000", foreground=True) as m:
            in_child(t, write, below(m, name), 21)
            m.ended = True
            os.kill(m.process.pid, signal.SIGTERM)
            assert m.exit_status() == 0, m.messages()
        in_child(t, expect_source, path, 21)


def _recover(t, *paths, options=()):
    status, out, err = t.run(t.binary, "recover", *options, *paths, timeout=60)
    return status, out + err


def _kill(m):
    m.ended = True
    m.kill()
    mounts.unmount(m.path, lazy=True)


# SEMANTICS W1, W2
def test_killed(t):
    """What close has confirmed survives kill -9 of everything: `nczarrfs recover`, or the next
    mount, puts it into the dataset."""
    for path, name, write, expect_in, expect_source in datasets(t):
        for value, way in ((31, "recover"), (32, "mount"), (33, "read")):
            with t.mount(path, "rw,commit_delay=3600000") as m:
                in_child(t, write, below(m, name), value)
                _kill(m)
            if way == "recover":
                status, text = _recover(t, path)
                assert status == 0 and path in text, text
            else:
                with t.mount(path, *(["rw"] if way == "mount" else [])) as m:
                    in_child(t, expect_in, below(m, name), value)
            in_child(t, expect_source, path, value)
            assert not os.path.exists(state(path)), os.listdir(state(path))
    status, text = _recover(t, path, t.path("a.nc"))
    assert status == 0 and text.count("nothing to recover") == 2, text
    status, text = _recover(t, path, t.path("none.nc"))
    assert status == 1 and "none.nc': no such file" in text, text


# SEMANTICS W8, W12
def test_kept(t):
    """Another program changes the file while something waits: it is not overwritten, the exit
    status says so, what was written is kept, and goes in when the user says so."""
    path, aside = t.path("a.nc"), t.path("aside.nc")
    t.call(make_nc, path)
    with t.mount(path, "rw,commit_delay=3600000", foreground=True) as m:
        m.fails = True
        in_child(t, write_tree, m.path, 51)
        shutil.copy2(path, aside)
        with open(path, "ab") as f:
            f.write(b"more")
    assert "not all pending writes" in m.messages(), m.messages()
    assert state(path) in m.messages(), m.messages()
    with open(path, "rb") as f:
        changed = f.read()
    for form in ("recover", "rw", "read"):
        if form == "recover":
            status, text = _recover(t, path)
            assert status == 1 and text.count("changed by another program") == 1, text
            assert state(path) in text, text
            continue
        with t.mount(path, *([form] if form == "rw" else []), check=False) as m:
            assert m.status == (form == "rw"), m.messages()
            assert "changed by another program" in m.messages(), m.messages()
            assert state(path) in m.messages(), m.messages()
            if form == "read":
                in_child(t, expect_tree, m.path, 5)
    with open(path, "rb") as f:
        assert f.read() == changed
    os.replace(aside, path)
    os.unlink(os.path.join(state(path), "base"))
    status, text = _recover(t, path)
    assert status == 0, text
    in_child(t, expect_nc, path, 51)
    assert not os.path.exists(state(path))


def _noise(path, seed, make=False):
    import numpy as np
    import zarr
    data = np.random.default_rng(seed).random((8, 65536))
    if make:
        array = zarr.open_group(path, "a").create_dataset("v", shape=data.shape, dtype="f8",
                                                          chunks=(1, 65536), compressor=None)
        array.attrs["_ARRAY_DIMENSIONS"] = ["t", "x"]
        array[:] = data
    assert (zarr.open_group(path, "r")["v"][:] == data).all()


def _nc_noise(path, seed):
    import netCDF4
    import numpy as np
    with netCDF4.Dataset(path) as d:
        assert (d["v"][:] == np.random.default_rng(seed).random((8, 65536))).all()


def _commit_process(m):
    for pid in mounts.processes_of(m.path):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == "nczarrfs-commit":
                    return pid
        except OSError:
            pass
    return None


# SEMANTICS W9
def test_commit_dies(t):
    """The process that writes the file dies while it does: the mount goes on, nothing is lost, the
    file is what it was, and the next commit makes up for it."""
    def content():
        with open(path, "rb") as f:
            return f.read()
    path = t.path("new.nc")
    with t.mount(path, "create,commit_delay=3600000,filter=*,deflate,6", foreground=True) as m:
        in_child(t, _noise, m.path, 1, True)
        before = content()
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                try:
                    _sync(m.path)
                except OSError as error:
                    os._exit(error.errno)
                os._exit(0)
            commit = None
            while not commit:
                assert not os.waitpid(pid, os.WNOHANG)[0], "it was too quick to be killed"
                commit = _commit_process(m)
            os.kill(commit, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert status == errno.EIO, os.strerror(status)
            assert "died (signal 9)" in m.messages(), m.messages()
            in_child(t, _noise, m.path, 1)
            assert content() == before
        in_child(t, _sync, m.path)
        in_child(t, _nc_noise, path, 1)
        in_child(t, _noise, m.path, 1)
    in_child(t, _nc_noise, path, 1)


def test_state_dir(t):
    for path, name, write, _, expect_source in datasets(t):
        beside = t.path("states")
        os.makedirs(beside, exist_ok=True)
        with t.mount(path, f"rw,state_dir={beside}", foreground=True) as m:
            in_child(t, write, below(m, name), 61)
            assert len(os.listdir(beside)) == 1
            assert not os.path.exists(state(path))
        in_child(t, expect_source, path, 61)
        assert os.listdir(beside) == []
        shutil.rmtree(beside)
