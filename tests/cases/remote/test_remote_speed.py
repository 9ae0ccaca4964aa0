# SPDX-License-Identifier: BSD-3-Clause
"""What reading over a slow line costs: requests and bytes are counted, memory is looked at, time is
not (that is `scripts/bench remote`)."""
import contextlib
import os

from lib.web import Handler, WebServer

CHUNKS = 40


class Counting(Handler):
    """Counts what is sent of files."""

    def pour(self, f, n):
        with self.server.web.lock:
            self.server.web.sent = getattr(self.server.web, "sent", 0) + n
        super().pour(f, n)


def tree(folder, chunks, side):
    import numpy as np
    import zarr
    rng = np.random.default_rng(5)
    group = zarr.open_group(f"{folder}/a.zarr", "w")
    a = group.create_dataset("t", shape=(chunks, side, side), chunks=(1, side, side), dtype="f4",
                             compressor=None)
    a[:] = rng.random((chunks, side, side), dtype="f4")
    a.attrs["_ARRAY_DIMENSIONS"] = ["time", "y", "x"]
    zarr.consolidate_metadata(f"{folder}/a.zarr")


@contextlib.contextmanager
def served(t, chunks=CHUNKS, side=256, **keywords):
    folder = t.path("data")
    os.makedirs(folder)
    tree(folder, chunks, side)
    with WebServer(folder, handler=Counting, **keywords) as web:
        web.sent = 0
        yield web


def in_order(mnt, local):
    import netCDF4
    import numpy as np
    import zarr
    want = zarr.open(local, "r")["t"]
    with netCDF4.Dataset(f"{mnt}/a.nc") as nc:
        for i in range(want.shape[0]):
            assert np.array_equal(nc["t"][i], want[i]), i


def chunks_asked(web):
    return [p for _, p, _ in web.asked if "/t/" in p and not p.split("/")[-1].startswith(".")]


def test_requests(t):
    """At most three requests before the first chunk, one for each chunk, none for a second read."""
    with served(t, delay=0.02) as web:
        with t.mount(f"{web.url}/a.zarr") as m:
            t.call(in_order, m.path, f"{web.folder}/a.zarr")
            asked = chunks_asked(web)
            assert len(web.asked) - len(asked) <= 3, web.asked
            assert len(asked) == CHUNKS == len(set(asked)), asked
            web.forget()
            t.call(in_order, m.path, f"{web.folder}/a.zarr")
            assert not web.asked, web.asked


# SEMANTICS C13
def test_restart_with_a_disk_cache(t):
    """A mount that finds its cache directory warm asks whether things are what they were, and
    fetches none of them; a damaged cache gives the right bytes, too."""
    chunks = 12
    with served(t, chunks=chunks) as web:
        cache = t.path("cache")
        for kind in ("cold", "warm", "damaged"):
            if kind == "damaged":
                with open(f"{cache}/data-1", "r+b") as f:
                    for off in range(0, os.fstat(f.fileno()).st_size, 4099):
                        f.seek(off)
                        f.write(b"\xa5")
            web.forget()
            web.sent = 0
            with t.mount(f"{web.url}/a.zarr", f"cache_dir={cache}", "disk_cache_size=64M") as m:
                t.call(in_order, m.path, f"{web.folder}/a.zarr")
            if kind == "warm":
                assert web.sent == 0, web.sent
                assert len(web.asked) <= chunks + 3, web.asked
            else:
                assert web.sent >= chunks << 18, web.sent


def test_mounts_share_a_disk_cache(t):
    """What one mount has fetched, another one that is there at the same time finds on the disk."""
    with served(t, chunks=4) as web:
        options = (f"cache_dir={t.path('cache')}", "disk_cache_size=64M")
        one = t.mount(f"{web.url}/a.zarr", *options)
        two = t.mount(f"{web.url}/a.zarr", *options)
        one.ended = True
        with two:
            with one:
                t.call(in_order, one.path, f"{web.folder}/a.zarr")
                status, _, err = t.run(t.binary, "--no-config", "umount", one.path)
                assert status == 0, err  # it has ended, and all it fetched is on the disk
            web.sent = 0
            t.call(in_order, two.path, f"{web.folder}/a.zarr")
            assert web.sent == 0, web.sent


def stream(mnt, readers):
    """Threads that read all of the file, each from a place of its own, in pieces."""
    import threading
    path = f"{mnt}/a.nc"
    size = os.stat(path).st_size
    piece, wrong = 256 << 10, []

    def one(k):
        fd = os.open(path, os.O_RDONLY)
        try:
            for i in range(k * 7, k * 7 + 24):
                off = (i * 5 * piece) % (size - piece)
                if len(os.pread(fd, piece, off)) != piece:
                    wrong.append(off)
        except OSError as error:
            wrong.append(error)
        finally:
            os.close(fd)
    threads = [threading.Thread(target=one, args=(k,)) for k in range(readers)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    assert not wrong, wrong[:3]


# SECURITY S53
def test_memory_of_many_readers(t):
    """64 readers of more than the caches hold: the server stays below its budgets and what it needs
    for requests besides."""
    with served(t, chunks=64, side=512) as web:
        with t.mount(f"{web.url}/a.zarr", "remote_cache_size=16M", "prefetch_size=4M",
                     "cache_size=16M") as m:
            before = m.memory_peak()
            t.call(stream, m.path, 64)
            used = m.memory_peak() - before
            assert t.sanitized or used < (16 + 16 + 24) << 20, used >> 20
