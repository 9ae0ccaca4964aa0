# SPDX-License-Identifier: BSD-3-Clause
"""What is mounted: a scene is a mount with its source, its readers and its writers."""
import contextlib
import errno
import fcntl
import os
import resource
import shutil
import subprocess
import time

import make
import readers
import services
import writers
from lib import mounts


class Dataset:
    """form: of the source, a key of make.MAKERS; show: "tree" or "nc"; at: below the mount."""

    def __init__(self, run, name, form, variables, path, show, at, mirrored=False, written=False):
        self.id = run.dataset_number()
        self.name, self.form, self.variables = name, form, variables
        self.path, self.show, self.at = path, show, at
        self.mirrored, self.written = mirrored, written
        self.lock = os.path.join(run.tmp, f"lock{self.id}") if written and show == "nc" else None
        self.run = run
        self.cells, n = {}, 0
        for v in variables:
            self.cells[v.name] = n
            n += v.rows

    def cell(self, var, row):
        return self.cells[var.name] + row

    def made(self):
        """The first generation, in its place."""
        make.MAKERS[self.form](self.path, 1, self.id, self.variables)
        return self

    def born(self):
        led = self.run.led
        led.begin(self.id, 1)
        led.done(self.id, 1)
        led.quiet[self.id] = 0
        led.kept[self.id] = led.tried[self.id] = 1

    def wants(self):
        return self.run.led.torn[self.id, -1:]

    def shared_lock(self):
        """Of virtual files that are written: HDF5 has no readers beside a writer."""
        if not self.lock:
            return contextlib.nullcontext()
        while self.wants()[0] and not self.run.led.stop[0]:
            time.sleep(0.01)
        return writers.locked(self.lock, fcntl.LOCK_SH)

    def exclusive_lock(self):
        return writers.locked(self.lock, fcntl.LOCK_EX, self.wants())


class Scene:
    """options: of the mount; few: RLIMIT_NOFILE; group: memory cgroup (watch.MemoryGroup)."""
    n_writers = 0
    writable = False
    restless = 1.0          # how often a worker takes another dataset
    excuses = frozenset()   # errors that are right at any time
    change_every = 40.0
    cache_dir = None
    small_disk = None
    service = None
    paused = False

    def __init__(self, run, name, n_readers):
        self.run, self.name, self.n_readers = run, name, n_readers
        self.number = run.scene_number()
        self.mnt = os.path.join(run.tmp, "mnt-" + name)
        self.log = os.path.join(run.tmp, "log-" + name)
        os.mkdir(self.mnt)
        self.options, self.few, self.group = [], None, None
        self.datasets, self.changing = [], []
        self.process = None
        self.mounts = 0
        self.make()

    def path(self, *more):
        folder = os.path.join(self.run.tmp, "src-" + self.name)
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, *more)

    def add(self, name, form, variables, path, show, at, changes=True, **more):
        d = Dataset(self.run, f"{self.name}:{name}", form, variables, path, show, at, **more)
        self.datasets.append(d)
        if changes:
            self.changing.append(d)
        return d

    # ---- the mount ----
    def start(self, seconds=120.0):
        def before():
            if self.few:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.few, self.few))
            if self.group:
                self.group.enter()
        words = [self.run.binary, "-f"]
        for option in self.options:
            words += ["-o", option]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                words + [self.source, self.mnt], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=before, cwd=self.run.tmp, env=dict(os.environ, **self.environment()))
        end = time.monotonic() + seconds
        while not mounts.is_mounted(self.mnt):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name}: not mounted: {self.messages()[-2000:]}")
            time.sleep(0.01)
        self.mounts += 1

    def environment(self):
        return {}

    def messages(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def alive(self):
        return self.process.poll() is None and mounts.is_mounted(self.mnt)

    def stop(self, seconds=90.0):
        """Unmount and wait: what was wrong, as text."""
        if self.process is None:
            return ""
        ok, text = True, ""
        end = time.monotonic() + 20
        while mounts.is_mounted(self.mnt):
            ok, text = mounts.unmount(self.mnt)
            if ok or "busy" not in text or time.monotonic() > end:
                break
            time.sleep(0.1)
        if mounts.is_mounted(self.mnt):
            self.kill()
            mounts.unmount(self.mnt, lazy=True)
            return f"{self.name}: cannot be unmounted: {text}"
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"{self.name}: the process does not end"
        return "" if status == 0 else f"{self.name}: it ended with status {status}"

    def kill(self):
        """All of it, at once."""
        for p in self.run.watch.family(self.process.pid):
            with contextlib.suppress(OSError):
                os.kill(p.pid, 9)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)

    def verify(self):
        """After everything has ended: what is not where it should be, as texts."""
        return []

    # ---- workers ----
    def workers(self):
        return [readers.Reader] * self.n_readers + ([writers.Mutator] if self.changing else [])

    def begin(self):
        """Services that the source needs, in this process, before workers are forked."""


class FileTree(Scene):
    """A netCDF-4/HDF5 file as a Zarr tree."""

    def make(self):
        self.source = self.path("a.nc")
        self.add("a", "h5", make.H5_BIG, self.source, "tree", "").made()


class Decoded(FileTree):
    """The same without filters: every chunk is decoded, in processes of their own, and most are
    read ahead."""

    def make(self):
        super().make()
        self.options = ["filter=none", "sandbox_codecs", "cache_size=8M"]


class TreeFile(Scene):
    """A Zarr tree as a virtual file."""

    def make(self):
        self.source = self.path("t.zarr")
        self.add("t", "tree", make.TREE_BIG, self.source, "nc", "t.nc").made()


class Mirror(Scene):
    """A directory of datasets, of which fewer may be open than there are. Some never change: of
    these every error is one too many."""
    n_files, n_trees, n_zips = 6, 4, 2
    change_every = 4.0

    def make(self):
        self.source = self.path()
        self.options = ["open_datasets=5", "cache_size=16M"]
        for i in range(self.n_files):
            self.add(f"f{i}", "h5", make.H5_SMALL, self.path(f"f{i}.nc"), "tree", f"f{i}.zarr",
                     changes=i > 1, mirrored=True).made()
        for i in range(self.n_trees):
            self.add(f"t{i}", "tree", make.TREE_SMALL, self.path(f"t{i}.zarr"), "nc", f"t{i}.nc",
                     changes=i > 0, mirrored=True).made()
        for i in range(self.n_zips):
            self.add(f"z{i}", "zip", make.TREE_SMALL, self.path(f"z{i}.zarr.zip"), "nc",
                     f"z{i}.nc", changes=i > 0, mirrored=True).made()


class Few(Mirror):
    """The same with few descriptors, which become fewer at times."""

    def make(self):
        super().make()
        self.few = 64


class Lean(Mirror):
    """The same with larger chunks in 256 MB of memory."""
    n_files, n_trees, n_zips = 10, 6, 2

    def make(self):
        super().make()
        self.options = list(self.run.lean_options)
        self.group = self.run.memory_group
        for i in range(3):
            self.add(f"b{i}", "h5", make.H5_BIG, self.path(f"b{i}.nc"), "tree", f"b{i}.zarr",
                     changes=i > 0, mirrored=True).made()
            self.add(f"c{i}", "tree", make.TREE_BIG, self.path(f"c{i}.zarr"), "nc", f"c{i}.nc",
                     changes=i > 0, mirrored=True).made()


class Writing(Scene):
    writable = True
    writer = writers.TreeWriter
    n_writers = 3

    def workers(self):
        return [readers.Reader] * self.n_readers + [self.writer] * self.n_writers

    def compare(self, d, var, row, data):
        """One chunk as it is in the end against what was confirmed."""
        import values
        led, at = d.run.led, d.cell(var, row)
        try:
            g = values.seen(data, d.id, var, row)
        except values.Wrong as why:
            return [f"{d.name} in the end: {why}"]
        if led.kept[d.id, at] <= g <= led.tried[d.id, at]:
            return []
        return [f"{d.name} {var.name}[{row}] in the end: generation {g}, confirmed was "
                f"{led.kept[d.id, at]} and {led.tried[d.id, at]} tried"]


class WriteTree(Writing):
    """Chunks written into the Zarr tree of an HDF5 file on a disk that is full at times."""
    VARS = [v for v in make.H5_VARS if v.kind in ("z", "raw", "f8", "so")]

    def make(self):
        self.small_disk = self.run.small_disk(self.name, 96)
        self.source = os.path.join(self.small_disk.path, "w.nc")
        self.options = ["rw", "stage_size=16M", "commit_delay=200"]
        d = self.add("w", "h5", self.VARS, self.source, "tree", "", changes=False, written=True)
        d.made()

    def verify(self):
        import h5py
        bad = []
        for d in self.datasets:
            with h5py.File(d.path, "r") as f:
                for v in d.variables:
                    for r in range(v.rows):
                        bad += self.compare(d, v, r, f[v.name][r])
        return bad


class WriteMirror(WriteTree):
    """Chunks written into the trees of five HDF5 files, of which three may be open: one that is
    closed for want of room is committed, and what is known of it is stale
    (docs/how-to/whole-directories.md)."""
    restless = 0.02
    excuses = frozenset({errno.ESTALE})

    def make(self):
        self.source = self.path()
        self.options = ["rw", "open_datasets=3", "commit_delay=200", "cache_size=8M"]
        for i in range(5):
            self.add(f"m{i}", "h5", self.VARS, self.path(f"m{i}.nc"), "tree", f"m{i}.zarr",
                     changes=False, written=True).made()


class WriteFile(Writing):
    """Rows written into the virtual file of a Zarr tree."""
    writer = writers.NcWriter
    n_writers = 2

    def stored(self, d, key):
        return readers.read_all(os.path.join(d.path, key))[0]

    def make(self):
        self.source = self.path("v.zarr")
        self.options = ["rw"]
        self.add("v", "tree", make.TREE_VARS, self.source, "nc", "v.nc", changes=False,
                 written=True).made()

    def verify(self):
        import zarr
        d, bad = self.datasets[0], []
        group = zarr.open_group(self.source, mode="r")
        for v in d.variables:
            a = group[v.name][...]
            for r in range(v.rows):
                bad += self.compare(d, v, r, a[r])
        return bad


class Remote(Scene):
    """What is far away, with a disk cache on a small disk that has accidents."""

    def cache(self):
        self.small_disk = self.run.small_disk(self.name, 24)
        self.cache_dir = os.path.join(self.small_disk.path, "cache")
        return ["cache_dir=" + self.cache_dir, "disk_cache_size=8M", "remote_cache_size=8M",
                "revalidate=1",
                "timeout=10"]


class Web(Remote):
    """A Zarr tree on a web server as a virtual file."""
    form, name, variables, show, at = "tree", "t.zarr", make.TREE_VARS, "nc", "t.nc"

    def make(self):
        self.options = self.cache()
        self.service = services.Web(self, self.path())
        self.add("web", self.form, self.variables, self.path(self.name_of()), self.show,
                 self.at).made()

    def name_of(self):
        return type(self).name

    def begin(self):
        self.service.start()
        self.source = f"{self.service.url}/{self.name_of()}"


class WebFile(Web):
    """An HDF5 file on a web server as a Zarr tree."""
    form, name, variables, show, at = "h5", "f.nc", make.H5_VARS, "tree", ""


class S3File(Remote):
    """A Zarr tree in a bucket as a virtual file."""

    def make(self):
        self.service = services.S3(self)
        self.options = self.cache()
        self.d = self.add("s3", "tree", make.TREE_VARS, "s/t.zarr", "nc", "t.nc")

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "HOME":
                self.run.tmp}

    def begin(self):
        self.service.start()
        self.options.append("endpoint=" + self.service.url)
        self.source = f"s3://b/{self.d.path}"
        for some in (make.tree_chunks(1, self.d.id, self.d.variables),
                     make.tree_documents(1, self.d.variables).items()):
            for key, data in some:
                self.service.put(f"{self.d.path}/{key}", data)

    def workers(self):
        return [readers.Reader] * self.n_readers + [writers.S3Mutator]


class WriteS3(S3File, Writing):
    """A Zarr tree in a bucket, written through its virtual file."""
    writer = writers.NcWriter
    n_writers = 2

    def make(self):
        self.service = services.S3(self)
        self.options = ["rw", "revalidate=1", "timeout=10", "remote_cache_size=16M",
                        "state_dir=" + self.path()]
        self.d = self.add("s3rw", "tree", make.TREE_VARS, "s/w.zarr", "nc", "w.nc",
                          changes=False, written=True)

    def stored(self, d, key):
        return self.service.get(f"{d.path}/{key}")

    def workers(self):
        return Writing.workers(self)

    def verify(self):
        import numcodecs
        import numpy as np
        d, bad = self.datasets[0], []
        for v in d.variables:
            codec = make.document(v)["compressor"]
            for r in range(v.rows):
                data = self.stored(d, f"{v.name}/{r}.0")
                data = numcodecs.get_codec(codec).decode(data) if codec else data
                bad += self.compare(d, v, r, np.frombuffer(data, v.dtype))
        return bad


# name: (class, of 64 readers)
SCENES = {"file": (FileTree, 7), "decoded": (Decoded, 6), "tree": (TreeFile, 7),
          "mirror": (Mirror, 8), "few": (Few, 5), "lean": (Lean, 8), "wtree": (WriteTree, 4),
          "wmirror": (WriteMirror, 4), "wfile": (WriteFile, 3), "web": (Web, 3),
          "webfile": (WebFile, 3), "s3": (S3File, 3), "ws3": (WriteS3, 3)}


class SmallDisk:
    """A tmpfs of so many MiB; or, without the right to mount, a folder that is never full."""

    def __init__(self, path, mib):
        self.path, self.bytes = path, mib << 20
        os.mkdir(path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}M,mode=700", "soak", path],
                              stderr=subprocess.DEVNULL)
        self.real = done.returncode == 0

    def read_only(self, on):
        if self.real:
            subprocess.run(["mount", "-o", f"remount,{'ro' if on else 'rw'}", self.path],
                           stderr=subprocess.DEVNULL)

    def fill(self):
        if not self.real:
            return
        with contextlib.suppress(OSError), open(self.path + "/filler", "wb", buffering=0) as f:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while f.write(b"x" * size) == size:
                        pass

    def empty(self):
        with contextlib.suppress(OSError):
            os.unlink(self.path + "/filler")

    def end(self):
        if self.real:
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.path, ignore_errors=True)
