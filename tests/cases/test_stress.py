"""Many readers of virtual files while their trees are replaced: every handle gives one version of
the tree or an error, never parts of two, and the mount lives. `make check-tsan` runs this with a
server that reports data races."""
import os
import random
import shutil
import time

import h5py
import numpy as np

from lib import mounts

READERS = 3
VERSIONS = 6
SECONDS = 6.0
CHUNKS = 12
LIMIT = 120.0


def write(path, version):
    """A tree whose elements all say which version it is, in chunks of every plan."""
    import numcodecs
    import zarr
    g = zarr.open_group(path, mode="w")
    g.attrs["version"] = version
    data = np.full((CHUNKS, 3000), version, "i4")
    for name, more in (("raw", {"compressor": None}), ("zlib", {"compressor": zarr.Zlib(1)}),
                       ("blosc", {"compressor": numcodecs.Blosc()}),
                       ("turned", {"compressor": zarr.Zlib(1), "order": "F"})):
        a = g.create_dataset(name, data=data, chunks=(1, 3000), fill_value=None, **more)
        a.attrs["_ARRAY_DIMENSIONS"] = ["n", "x"]
    a = g.create_dataset("text", shape=(CHUNKS,), chunks=(3,), dtype=object,
                         object_codec=numcodecs.VLenUTF8())
    a[:] = np.array([str(version) * 20] * CHUNKS, object)


def read_once(file, rng):
    """Open, look at a few things; all of one version. True when something was read."""
    with h5py.File(file, "r") as nc:
        version = int(nc.attrs["version"])
        for name in rng.sample(["raw", "zlib", "blosc", "turned", "text"], 3):
            at = rng.randrange(CHUNKS)
            got = nc[name][at:at + rng.randrange(1, CHUNKS)]
            if name == "text":
                assert {int(x[:1]) for x in got} == {version}, f"text: {got[:3]} in {version}"
            else:
                assert got.min() == got.max() == version, (
                    f"{name}: {got.min()}..{got.max()} in version {version}")
    return True


def reader(files, seed, end):
    rng = random.Random(seed)
    good = bad = 0
    while time.monotonic() < end:
        try:
            good += read_once(rng.choice(files), rng)
        except (OSError, KeyError, RuntimeError):
            bad += 1  # replaced, or being replaced
    print(f"reader {seed}: {good} good, {bad} not", flush=True)
    assert good > 0, "nothing was ever read"


def replace(t, paths, made, version):
    """Each tree in turn is swapped for another version of it."""
    for i, path in enumerate(paths):
        new, old = t.path(f"new{i}"), t.path(f"old{i}")
        shutil.copytree(made[version], new)
        os.rename(path, old)
        os.rename(new, path)
        shutil.rmtree(old)


def stress(t, source, paths, files_of, *options):
    made = []
    for version in range(VERSIONS):
        made.append(t.path(f"made{version}"))
        write(made[-1], version)
    for path in paths:
        shutil.copytree(made[0], path)
    with t.mount(source, *options) as m:
        files = files_of(m.path)
        end = time.monotonic() + SECONDS * t.slow / 2
        pids = []
        for seed in range(READERS):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    reader(files, seed, end + 2)
                    status = 0
                finally:
                    os._exit(status)
            pids.append(pid)
        version = 0
        while time.monotonic() < end:
            version = (version + 1) % VERSIONS
            replace(t, paths, made, version)
            time.sleep(0.4)  # a pace, not a wait: the readers run beside it
        status = [os.waitpid(pid, 0)[1] for pid in pids]
        assert not any(status), f"readers ended with {status}"
        t.call(last, files, version, t.slow, timeout=60)
        assert m.server_alive(), "the server died: " + m.messages()
        many = max(len(os.listdir(f"/proc/{p}/fd")) for p in m.pids if mounts.alive(p))
        assert many < 200, f"{many} descriptors"


def last(files, version, slow):
    """The last version appears everywhere."""
    for file in files:
        end = time.monotonic() + 20 * slow
        while True:
            try:
                with h5py.File(file, "r") as nc:
                    if int(nc.attrs["version"]) == version and int(nc["raw"][3, 3]) == version:
                        break
            except (OSError, KeyError, RuntimeError):
                pass
            assert time.monotonic() < end, f"{file}: version {version} does not appear"
            time.sleep(0.05)


def test_stress_virtual(t):
    """One tree as a virtual file."""
    path = t.path("x.zarr")
    stress(t, path, [path], lambda mnt: [os.path.join(mnt, "x.nc")])


def test_stress_virtual_decoded(t):
    """The same with everything decoded, ahead of readers."""
    path = t.path("x.zarr")
    stress(t, path, [path], lambda mnt: [os.path.join(mnt, "x.nc")], "filter=none",
           "decode_threads=2", "cache_size=64K")


def test_stress_mirror(t):
    """Six trees in a mirrored directory, three of which may be open."""
    folder = t.path("all")
    os.mkdir(folder)
    paths = [os.path.join(folder, f"t{i}.zarr") for i in range(6)]
    stress(t, folder, paths, lambda mnt: [os.path.join(mnt, f"t{i}.nc") for i in range(6)],
           "open_datasets=3")
