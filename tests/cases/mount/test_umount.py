# SPDX-License-Identifier: BSD-3-Clause
"""`nczarrfs umount`: when it returns, what was written is in the dataset, which its exit status
says, and the source is let go of."""
import errno
import json
import os
import signal
import subprocess

import h5py
import numpy as np

from lib import mounts, users
from lib.context import Skip

WRITE = "import zarr; zarr.open_group({!r}, 'r+')['v'][:] = {}"
KEPT = "'{}': some writes are not in the dataset"


def make(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.zeros(1000), chunks=(10,), compression="gzip")


def write(mnt, value):
    import zarr
    zarr.open_group(mnt, "r+")["v"][:] = value


def expect(path, value):
    with h5py.File(path) as f:
        assert (f["v"][:] == value).all(), f["v"][:5]


def umount(t, *what, status=0):
    got, out, err = t.run(t.binary, "--no-config", "umount", *what)
    assert got == status and not out, (got, out, err)
    return err


def writable(t, name="a.nc", *options):
    source = t.path(name)
    make(source)
    m = t.mount(source, "rw", "commit_delay=60000", *options)
    m.ended = True
    return source, m


def sync(mnt):
    fd = os.open(mnt, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def heed_interrupts():
    """As a shell's foreground does: what runs in the background may have been told not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def server_of(t, mnt):
    """The server of a mount, and its supervisor"""
    server = json.loads(t.run(t.binary, "status", "--json", mnt)[1])["pid"]
    with open(f"/proc/{server}/stat") as f:
        return server, int(f.read().rpartition(")")[2].split()[1])


def test_returns_at_the_end(t):
    """SEMANTICS G7: all that was written is there, and the server has ended"""
    source, m = writable(t)
    with m:
        t.call(write, m.path, 5)
        pids = server_of(t, m.path)
        expect(source, 0)  # it is not due for a minute
        assert umount(t, m.path) == ""
        expect(source, 5)
        assert not any(mounts.alive(p) for p in pids), pids


def test_of_a_tree(t):
    """the same of a virtual file over a Zarr tree, and of several mounts by one command"""
    import zarr
    tree = t.path("z.zarr")
    array = zarr.open_group(tree, "w").create_dataset("v", data=np.zeros(10), chunks=5)
    array.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    source, one = writable(t)
    two = t.mount(tree, "rw", "commit_delay=60000")
    two.ended = True

    def change():
        with h5py.File(os.path.join(two.path, "z.nc"), "r+") as f:
            f["v"][:] = 7
    with one, two:
        t.call(write, one.path, 6)
        t.call(change)
        umount(t, one.path, two.path)
        expect(source, 6)
        assert (zarr.open_group(tree, "r")["v"][:] == 7).all()


def test_of_a_mount_of_a_mount(t):
    """SEMANTICS G8: a reading mount's server has ended too, and what its source lies on can be
    unmounted by the same command"""
    source = t.path("a.nc")
    make(source)
    for _ in range(5):
        below = t.mount(source)
        above = t.mount(below.path)
        below.ended = above.ended = True
        with below, above:
            expect(os.path.join(above.path, os.path.basename(below.path) + ".nc"), 0)
            pids = server_of(t, above.path) + server_of(t, below.path)
            assert umount(t, above.path, below.path) == ""
            assert not any(mounts.alive(p) for p in pids), pids


def test_only_the_mount_that_is_meant(t):
    """A name that is given twice is unmounted once, and not what lies below it."""
    source = t.path("a.nc")
    make(source)
    os.mkdir(t.path("mnt"))
    script = """mount -t tmpfs none "$M" && nczarrfs --no-config "$S" "$M" &&
                nczarrfs --no-config umount "$M" "$M"; echo $?
                grep -c " $M .*tmpfs" /proc/self/mountinfo"""
    status, out, err = t.run("unshare", "-m", "--propagation", "private", "sh", "-c",
                             script.replace("nczarrfs", f"'{t.binary}'", 2),
                             env={"S": source, "M": t.path("mnt")}, timeout=60)
    if "unshare" in err:
        raise Skip("no mount namespaces here")
    assert status == 0 and out.split()[-2:] == ["1", "1"], (out, err)
    assert "not an nczarrfs mountpoint" in err, err


def test_after_a_mount_that_was_replaced(t):
    """The processes of a mount that was unmounted leave the next mount on its mountpoint alone, to
    which the kernel may give the same id."""
    source = t.path("a.nc")
    make(source)
    old = t.mount(source)
    old.ended = True
    with old:
        server, supervisor = server_of(t, old.path)
        os.kill(server, signal.SIGSTOP)
        try:
            status, _, err = t.run("umount", "-l", old.path)
            if status:
                raise Skip("umount -l: " + err)
            assert t.run(t.binary, "--no-config", source, old.path)[0] == 0
        finally:
            os.kill(server, signal.SIGKILL)
        assert mounts.wait_gone([server, supervisor], 20)
        assert mounts.is_mounted(old.path)
        expect_mounted = server_of(t, old.path)
        assert expect_mounted[0] != server
        umount(t, old.path)


def test_of_one_that_does_not_end(t):
    """SEMANTICS G8: a reading mount's process that does not end is not waited for without end"""
    source = t.path("a.nc")
    make(source)
    m = t.mount(source)
    m.ended = True
    with m:
        _, supervisor = server_of(t, m.path)
        os.kill(supervisor, signal.SIGSTOP)
        try:
            assert umount(t, m.path) == "" and not mounts.is_mounted(m.path)
            assert mounts.alive(supervisor)
        finally:
            os.kill(supervisor, signal.SIGCONT)
        assert mounts.wait_gone(m.pids, 20)


def test_what_waits_is_said(t):
    """SEMANTICS G7: a chunk of an array that is not there stays in the state directory: that is no
    success"""
    source, m = writable(t)
    with m:
        def stray():
            write(m.path, 8)
            os.mkdir(os.path.join(m.path, "w"))
            with open(os.path.join(m.path, "w", "0"), "wb") as f:
                f.write(b"of what?")
        t.call(stray)
        err = umount(t, m.path, status=1)
        assert KEPT.format(m.path) in err and "a.nc.nczarrfs" in err, err
        expect(source, 8)  # the rest is


def _refused(mnt, leave):
    """zarr-python 2 removes its temporary files, and leaves a directory. leave: one that does not
    remove them, either."""
    import zarr
    g = zarr.open_group(mnt, mode="r+")
    for change in (lambda: g["v"].attrs.update(NAME="a"), lambda: g.attrs.update({"a/b": 1}),
                   lambda: g.create_dataset("f", shape=(4, 4), dtype="i4", order="F")):
        try:
            change()
        except OSError as e:
            assert e.errno in (errno.EOPNOTSUPP, errno.EINVAL), e
            continue
        raise AssertionError("what netCDF cannot hold is taken")
    for name in ["v/.zattrs", "f/.zarray"] if leave else []:
        temporary = os.path.join(mnt, f"{name}.{'0123456789abcdef' * 2}.partial")
        with open(temporary, "w") as f:
            f.write("[1, 2]")
        try:
            os.rename(temporary, os.path.join(mnt, name))
            raise AssertionError("what is no document is taken")
        except OSError as e:
            assert e.errno == errno.EINVAL, e


# SEMANTICS W23
def test_refused_write(t):
    """What a writer was told that it is refused does not wait: not when the mount ends, be it
    committed before or not, nor when it died and is recovered."""
    for way, leave in ("end", False), ("end", True), ("sync", True), ("die", False), ("die", True):
        source, m = writable(t, way + ".nc")
        state = os.path.join(os.path.dirname(source), f".{way}.nc.nczarrfs")
        with m:
            t.call(write, m.path, 7)
            t.call(_refused, m.path, leave)
            if way == "sync":
                t.call(sync, m.path)
            if way == "die":
                m.kill()
                mounts.wait_gone(m.pids, 30)
                mounts.unmount(m.path, lazy=True)
            else:
                assert umount(t, m.path) == ""
        assert os.path.exists(state) == (way == "die"), way
        status, out, err = t.run(t.binary, "recover", source, timeout=60)
        assert status == 0, err
        want = "pending writes are committed" if way == "die" else "nothing to recover"
        assert want in out, out
        assert not os.path.exists(state), os.listdir(state)
        expect(source, 7)


def test_in_a_directory(t):
    """of a directory of datasets each one's state is looked at"""
    folder = t.path("d")
    os.mkdir(folder)
    for name in ("a.nc", "b.nc"):
        make(os.path.join(folder, name))
    m = t.mount(folder, "rw", "commit_delay=60000")
    m.ended = True
    with m:
        def change():
            write(os.path.join(m.path, "a.zarr"), 3)
            write(os.path.join(m.path, "b.zarr"), 4)
            os.mkdir(os.path.join(m.path, "b.zarr", "w"))
            with open(os.path.join(m.path, "b.zarr", "w", "0"), "wb") as f:
                f.write(b"of what?")
        t.call(change)
        err = umount(t, m.path, status=1)
        assert "b.nc.nczarrfs" in err and "a.nc.nczarrfs" not in err, err
        expect(os.path.join(folder, "a.nc"), 3)
        expect(os.path.join(folder, "b.nc"), 4)


def test_terminal(t):
    """what is waited for is said on a terminal, and Ctrl-C ends the waiting only"""
    source, m = writable(t)
    with m:
        t.call(write, m.path, 9)
        _, supervisor = server_of(t, m.path)
        os.kill(supervisor, signal.SIGSTOP)  # it cannot end
        ours, theirs = os.openpty()
        p = subprocess.Popen([t.binary, "--no-config", "umount", m.path], stderr=theirs,
                             preexec_fn=heed_interrupts)
        os.close(theirs)
        try:
            said = b""
            while b"Ctrl-C" not in said:
                said += os.read(ours, 4096)  # fails when it ends
            assert p.poll() is None
            assert b"committing pending writes" in said, said
            p.send_signal(signal.SIGINT)
            assert p.wait(20) == -signal.SIGINT
        finally:
            os.kill(supervisor, signal.SIGCONT)
            os.close(ours)
        assert mounts.wait_gone(m.pids, 20)
        expect(source, 9)


def test_terminated_while_files_are_open(t):
    """SIGTERM while programs have files open: what was flushed is kept, and nothing leaks"""
    folder = t.path("d")
    os.mkdir(folder)
    make(os.path.join(folder, "b.nc"))
    for source, m, to_array in ((*writable(t), ""), (os.path.join(folder, "b.nc"), t.mount(
            folder, "rw", "commit_delay=60000"), "b.zarr")):
        m.ended = True
        with m:
            t.call(write, os.path.join(m.path, to_array), 6)
            server, _ = server_of(t, m.path)
            array = os.path.join(m.path, to_array, "v")
            files = [os.open(os.path.join(array, "0"), os.O_RDWR),
                     os.open(os.path.join(array, "1"), os.O_RDONLY)]
            if to_array:
                files.append(os.open(os.path.join(m.path, "note.txt"), os.O_RDWR | os.O_CREAT))
                os.write(files[-1], b"here")
            os.kill(server, signal.SIGTERM)
            assert mounts.wait_gone(m.pids, 20 * t.slow)
            for fd in files:
                try:
                    os.close(fd)
                except OSError:
                    pass  # there is nobody to flush it any more
        expect(source, 6)


def test_dead(t):
    """of a mount whose server was killed it is not claimed that all is in the dataset"""
    source, m = writable(t)
    with m:
        t.call(write, m.path, 2)
        for pid in m.pids:  # the supervisor with it, who would unmount
            os.kill(pid, signal.SIGKILL)
        assert mounts.wait_gone(m.pids, 20)
        if mounts.is_mounted(m.path):
            assert "its server had died" in umount(t, m.path, status=1)
        got, _, err = t.run(t.binary, "recover", source)
        assert got == 0, err
        expect(source, 2)


def by_a_user(binary):
    own, program = users.enter(binary)
    source, mnt = own + "/a.nc", own + "/mnt"
    make(source)
    os.chown(source, users.NOBODY, users.NOBODY)
    os.mkdir(mnt)
    os.chown(mnt, users.NOBODY, users.NOBODY)

    def run(*words, status=0):
        got, text = users.run(*words, cwd=own)
        assert got == status, (words, got, text)
        return text
    run(program, "--no-config", "-o", "rw,commit_delay=60000", source, mnt)
    run("/usr/bin/python3", "-c", WRITE.format(mnt, 4))
    p = subprocess.Popen(users.command("sh", "-c", f"cd {mnt} && echo in && read x"),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"in\n"
    said = run(program, "--no-config", "umount", mnt, status=1)
    assert "in use" in said and "another user" in said, said
    p.communicate(b"\n")
    run(program, "--no-config", "umount", "mnt")  # from where it stands
    expect(source, 4)
    other = os.path.dirname(own) + "/other"
    os.mkdir(other)
    done = subprocess.run([program, "--no-config", "-o", "allow_other", source, other],
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
    said = run(program, "--no-config", "umount", other, status=1)
    assert "another user" in said and mounts.is_mounted(other), said
    done = subprocess.run([program, "--no-config", "umount", other], check=False)
    assert done.returncode == 0 and not mounts.is_mounted(other)


def test_by_a_user(t):
    """a user without rights unmounts by fusermount3, and it is waited for all the same"""
    t.call(by_a_user, t.binary)
