# SPDX-License-Identifier: BSD-3-Clause
"""A writable virtual file as a file: who has it open keeps what he opened, descriptors that are
closed in the middle, names beside it, mappings, and what is done about a file that is none."""
import functools
import mmap
import os
import random
import subprocess
import sys

from lib.context import Skip, eventually, eventually_passes

LIMIT = 60.0
SHAPE = (6, 40, 50)


# ---- in processes of their own: netCDF-C and h5py ----

def _make(path):
    import numpy as np
    import zarr
    g = zarr.open_group(path, mode="w")
    v = g.create_dataset("v", shape=SHAPE, chunks=(1, 40, 25), dtype="<i4",
                         compressor=zarr.Zlib(level=1) if hasattr(zarr, "Zlib") else None,
                         fill_value=-1)
    v[:] = np.arange(v.size, dtype="i4").reshape(SHAPE)
    v.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]
    w = g.create_dataset("w", shape=(1000,), chunks=(100,), dtype="<f8", compressor=None,
                         fill_value=0)
    w[:] = np.arange(1000) / 4
    w.attrs["_ARRAY_DIMENSIONS"] = ["n"]


def _values(path, name, index, want):
    import numpy as np
    import zarr
    got = zarr.open_group(path, mode="r")[name][index]
    assert np.array_equal(got, want), f"{name}{index}: {got} instead of {want}"


def _is(path, want):
    """What a file or a store says of v[1, 0, 0] and w[3]."""
    import h5py
    with h5py.File(path, "r") as f:
        got = int(f["v"][1, 0, 0]), float(f["w"][3])
    assert got == tuple(want), f"{path}: {got} instead of {want}"


def _edit(path, v, w=None):
    import h5py
    with h5py.File(path, "r+") as f:
        f["v"][1] = v
        if w is not None:
            f["w"][3] = w


OLD = (2000, 0.75)


def store(t):
    path = t.path("s.zarr")
    t.call(_make, path)
    return path


def state(path):
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.nczarrfs")


def nothing_left(path):
    assert not os.path.exists(state(path)), os.listdir(state(path))


# ---- epochs ----

def _reader_beside_writers(file, zarr):
    """A reader whose chunks were not read yet, while they are replaced twice."""
    import h5py
    import numpy as np
    want = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)
    os.environ["HDF5_USE_FILE_LOCKING"] = "TRUE"
    with h5py.File(file, "r", rdcc_nbytes=0) as reader:
        assert reader["v"][0, 0, 0] == 0
        fd = reader.id.get_vfd_handle()
        for k in 5, 6:
            subprocess.run([sys.executable, "-c", f"import h5py\nf = h5py.File({file!r}, 'r+')\n"
                            f"f['v'][1:4] = {k}\nf['w'][:] = {k}\nf.create_dataset('n{k}', "
                            f"data=[{k}])\nf.close()"], check=True)
            with h5py.File(file, "r") as newer:
                assert (newer["v"][1:4] == k).all() and (newer["w"][:] == k).all()
                assert np.array_equal(newer["v"][4:], want[4:])
                assert newer[f"n{k}"][0] == k
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            assert np.array_equal(reader["v"][1:3], want[1:3])
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        assert np.array_equal(reader["v"][:], want), "the reader sees what was written later"
        assert np.array_equal(reader["w"][:], np.arange(1000) / 4)


# SEMANTICS C11
def run_readers(t):
    path = store(t)
    with t.mount(path, "rw") as m:
        t.call(_reader_beside_writers, os.path.join(m.path, "s.nc"), path)
        t.call(_values, path, "v", (slice(1, 4), 0, 0), [6, 6, 6])
    nothing_left(path)


def _locks(file):
    os.environ["HDF5_USE_FILE_LOCKING"] = "TRUE"
    import h5py
    with h5py.File(file, "r+") as writer:
        writer["w"][0] = 9
        again = subprocess.run([sys.executable, "-c", f"import h5py\nh5py.File({file!r}, 'r+')"],
                               capture_output=True, check=False)
        assert again.returncode != 0 and b"lock" in again.stderr, again.stderr


def _synced(file, zarr):
    """fsync makes a commit, and what follows is another one."""
    import netCDF4
    d = netCDF4.Dataset(file, "a")
    fd = [int(x) for x in os.listdir("/proc/self/fd")
          if os.path.realpath(f"/proc/self/fd/{x}") == os.path.realpath(file)]
    for step in range(3):
        d["w"][step * 300:step * 300 + 50] = -step - 1
        d.setncattr("step", step)
        if step == 1:
            d.createVariable("late", "i4", ("n",))[:] = 4
        d.sync()
        os.fsync(fd[0])
        _values(zarr, "w", step * 300, -step - 1)
        with netCDF4.Dataset(file) as other:
            assert other.step == step and other["w"][step * 300] == -step - 1
    d["w"][999] = 77
    d.close()
    _values(zarr, "w", 999, 77)
    _values(zarr, "late", slice(0, 2), [4, 4])


# SEMANTICS W3
def run_sync(t):
    path = store(t)
    with t.mount(path, "rw") as m:
        file = os.path.join(m.path, "s.nc")
        t.call(_locks, file)
        t.call(_synced, file, path)
        t.call(_is, file, (2000, -1.0))
    nothing_left(path)


# ---- closes in the middle, files that are none ----

def _forked(file):
    """A child that ends closes what it inherited, while the file is half written."""
    import h5py
    with open(file, "rb") as f:
        whole = f.read()
    fd = os.open(file, os.O_RDWR | os.O_TRUNC)
    os.write(fd, whole[:3000])
    pid = os.fork()
    if pid == 0:
        try:
            os.close(fd)
            os._exit(0)
        except OSError as why:
            os._exit(why.errno)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0, "half a file was committed"
    os.write(fd, whole[3000:])
    os.close(fd)
    with h5py.File(file, "r") as f:
        assert f["v"][1, 0, 0] == OLD[0]


def run_closes(t):
    path = store(t)
    with t.mount(path, "rw") as m:
        file = os.path.join(m.path, "s.nc")
        t.call(_forked, file)
        t.call(_values, path, "v", (1, 0, 0), OLD[0])
        t.call(_edit, file, 8)
        t.call(_values, path, "v", (1, 0, 0), 8)
    nothing_left(path)


def spoil(file):
    fd = os.open(file, os.O_RDWR)
    os.pwrite(fd, b"no superblock", 0)
    os.pwrite(fd, b"?" * 5000, 3000)
    try:
        os.close(fd)
    except OSError:
        return
    raise AssertionError("a file that is no HDF5 file was closed without an error")


# SEMANTICS W8, W10
def run_kept(t):
    """What cannot be committed is an error of the close, is kept, and tried again; what is there
    already is not harmed."""
    path = store(t)
    with t.mount(path, "rw", foreground=True) as m:
        m.fails = True
        file = os.path.join(m.path, "s.nc")
        with open(file, "rb") as f:
            whole = f.read()
        spoil(file)
        with open(file, "rb") as f:
            assert f.read(13) == b"no superblock", "what was written is gone"
        t.call(_values, path, "v", (1, 0, 0), OLD[0])
    assert "kept in" in m.messages(), m.messages()  # logged after the answer to close
    names = os.listdir(state(path))
    assert any(n.endswith(".map") for n in names) and any(n.endswith(".now") for n in names), names
    with t.mount(path, "rw", foreground=True) as m:  # it is no better now
        t.call(_is, os.path.join(m.path, "s.nc"), OLD)
        assert "earlier mount" in m.messages(), (m.messages(), os.listdir(state(path)))
    # somebody mends it by hand
    now = os.path.join(state(path), [n for n in os.listdir(state(path)) if n.endswith(".now")][0])
    with open(now, "r+b") as f:
        f.write(whole[:13])
        f.seek(3000)
        f.write(whole[3000:8000])
    with t.mount(path, "rw") as m:
        t.call(_is, os.path.join(m.path, "s.nc"), OLD)
    nothing_left(path)


# SEMANTICS C3, W12
def run_foreign(t):
    """Another program writes into the store: seen when nobody writes here, refused when somebody
    does."""
    path = store(t)
    with t.mount(path, "rw") as m:
        file = os.path.join(m.path, "s.nc")
        t.call(_is, file, OLD)
        t.call(_foreign, path, "first")
        eventually_passes(t.call, _has, file, "first")
        t.call(_refused, file, path)
        eventually_passes(t.call, _has, file, "first", "second")
        t.call(_values, path, "v", (1, 0, 0), OLD[0])
    assert os.path.exists(state(path))


def _foreign(path, name):
    import zarr
    g = zarr.open_group(path, mode="a")
    a = g.create_dataset(name, shape=(5,), chunks=(5,), dtype="<i4", compressor=None)
    a[:] = 1
    a.attrs["_ARRAY_DIMENSIONS"] = ["five"]


def _has(file, *names):
    import h5py
    with h5py.File(file, "r") as f:
        assert set(names) <= set(f), sorted(f)


def _refused(file, path):
    with open(file, "rb") as f:
        whole = f.read()
    fd = os.open(file, os.O_RDWR)
    os.pwrite(fd, whole[:100], 0)
    _foreign(path, "second")
    try:
        os.close(fd)
    except OSError:
        return
    raise AssertionError("what somebody else wrote was overwritten")


# ---- names ----

# SEMANTICS P1, P2
def run_names(t):
    path = store(t)
    with t.mount(path, "rw") as m:
        file, other = (os.path.join(m.path, n) for n in ("s.nc", "other"))
        with open(file, "rb") as f:
            whole = f.read()
        with open(other, "wb") as f:
            f.write(whole[:5000])
        assert sorted(os.listdir(m.path)) == ["other", "s.nc"]
        try:
            os.rename(other, file)
            raise AssertionError("half a file took the dataset's place")
        except OSError:
            pass
        assert os.path.getsize(other) == 5000
        t.call(_is, file, OLD)
        with open(other, "r+b") as f:
            f.write(whole)
        t.call(_edit, other, 3, 4.5)
        os.rename(other, file)
        assert os.listdir(m.path) == ["s.nc"]
        t.call(_is, file, (3, 4.5))
        os.rename(file, other)  # a backup
        assert os.listdir(m.path) == ["other"]
        t.call(_values, path, "v", (1, 0, 0), 3)
        with open(file, "wb") as f:
            f.write(whole)
        t.call(_is, file, OLD)
        t.call(_is, other, (3, 4.5))
        os.unlink(file)
        assert os.listdir(m.path) == ["other"]
        for call in (lambda: os.mkdir(other + "d"), lambda: os.symlink("x", other + "l")):
            try:
                call()
                raise AssertionError("only files can be made")
            except OSError:
                pass
    t.call(_values, path, "v", (1, 0, 0), OLD[0])
    with t.mount(path, "rw") as m:
        file, other = (os.path.join(m.path, n) for n in ("s.nc", "other"))
        assert sorted(os.listdir(m.path)) == ["other", "s.nc"], "what was left is not there"
        t.call(_is, other, (3, 4.5))
        os.unlink(other)
    nothing_left(path)


# ---- bytes ----

class Shadow:
    """A file, and what it has to be."""

    def __init__(self, path, seed):
        self.random = random.Random(seed)
        self.path = path
        self.fd = os.open(path, os.O_RDWR)
        self.want = bytearray(os.pread(self.fd, 1 << 22, 0))
        self.first = bytes(self.want)

    def place(self, room):
        r = self.random
        off = r.randrange(room)
        return off, r.randrange(1, r.choice((10, 5000, 70000)))

    def write(self):
        off, n = self.place(max(len(self.want) + 20000, 1))
        data = self.random.randbytes(n)
        assert os.pwrite(self.fd, data, off) == n
        self.want.extend(bytes(max(0, off - len(self.want))))
        self.want[off:off + n] = data

    def read(self):
        off, n = self.place(len(self.want) + 1)
        assert os.pread(self.fd, n, off) == self.want[off:off + n], f"{n} bytes at {off}"

    def truncate(self):
        n = self.random.randrange(len(self.first) + 50000)
        if self.random.random() < .5:
            os.ftruncate(self.fd, n)
        else:
            os.truncate(self.path, n)
        self.want = self.want[:n] + bytes(max(0, n - len(self.want)))

    def reopen(self):
        """By another descriptor: the first one stays open, so that nothing is committed."""
        fd = os.open(self.path, os.O_RDONLY)
        off, n = self.place(len(self.want) + 1)
        assert os.pread(fd, n, off) == self.want[off:off + n], f"{n} bytes at {off}"
        assert os.fstat(fd).st_size == len(self.want) == os.path.getsize(self.path)
        os.close(fd)

    def map(self):
        if not self.want:
            return
        with mmap.mmap(self.fd, len(self.want)) as m:
            for _ in range(4):
                off, n = self.place(len(self.want))
                n = min(n, len(self.want) - off)
                assert m[off:off + n] == self.want[off:off + n], f"{n} mapped bytes at {off}"
                data = self.random.randbytes(n)
                m[off:off + n] = data
                self.want[off:off + n] = data

    def play(self, n):
        steps = (self.write, self.read, self.truncate, self.reopen, self.map)
        for _ in range(n):
            self.random.choices(steps, (40, 40, 2, 5, 5))[0]()

    def restore(self):
        os.ftruncate(self.fd, len(self.first))
        os.pwrite(self.fd, self.first, 0)


def _bytes(file, seed, n):
    s = Shadow(file, seed)
    s.play(n)
    s.restore()
    os.close(s.fd)


# SEMANTICS P7, P11
def run_bytes(t):
    path = store(t)
    with t.mount(path, "rw") as m:
        file, other = (os.path.join(m.path, n) for n in ("s.nc", "other"))
        reader = os.open(file, os.O_RDONLY)
        first = os.pread(reader, 1 << 22, 0)
        with open(other, "wb") as f:
            f.write(first)
        t.call(_bytes, other, 1, 1500)
        for seed in 2, 3:
            t.call(_bytes, file, seed, 1500)
            t.call(_is, file, OLD)
        os.posix_fadvise(reader, 0, 0, os.POSIX_FADV_DONTNEED)
        assert os.pread(reader, 1 << 22, 0) == first, "a reader sees what was written later"
        os.close(reader)
        os.unlink(other)
    t.call(_values, path, "v", (1, 0, 0), OLD[0])
    nothing_left(path)


# ---- a full disk ----

# SEMANTICS E12
def run_full(t):
    """The file system is full: the writer is told, and the store and the file are what they were.
    When there is room again they can be written again."""
    small = t.path("small")
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small],
                      capture_output=True, check=False).returncode:
        raise Skip("cannot mount a small file system")
    try:
        path = os.path.join(small, "s.zarr")
        t.call(_make, path)
        with t.mount(path, "rw") as m:
            file, other = (os.path.join(m.path, n) for n in ("s.nc", "other"))
            fd = os.open(other, os.O_RDWR | os.O_CREAT)
            try:
                for k in range(64):
                    os.pwrite(fd, b"x" * 65536, k * 65536)
                raise AssertionError("more was written than there is room for")
            except OSError:
                pass
            try:
                t.call(_edit, file, 3)  # h5py dies of it, now and then
            except AssertionError:
                pass
            else:
                raise AssertionError("an edit succeeded without room for it")
            os.close(fd)
            os.unlink(other)
            t.call(_values, path, "v", (1, 0, 0), OLD[0])
            # there is room, and the edit that failed is gone, with the release of their files
            eventually(lambda: os.statvfs(small).f_bavail * os.statvfs(small).f_bsize > 1 << 19)
            eventually_passes(t.call, _edit, file, 5)
            t.call(_is, file, (5, OLD[1]))
    finally:
        subprocess.run(["umount", small], check=False)


def cases():
    for name, run in (("readers", run_readers), ("sync", run_sync), ("closes", run_closes),
                      ("kept", run_kept), ("foreign", run_foreign), ("names", run_names),
                      ("bytes", run_bytes), ("full", run_full)):
        yield name, functools.partial(run)
