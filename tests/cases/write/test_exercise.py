# SPDX-License-Identifier: BSD-3-Clause
"""Random operations on files of a writable mount (tests/tools/exercise.c), against a model."""
import os
import threading

import numpy as np

ALL = os.environ.get("NCZARRFS_FAULTS") == "all"
LIMIT = 3600 if ALL else 120
OPERATIONS = 1000000 if ALL else 20000


def make_store(path):
    import zarr
    g = zarr.open_group(path, mode="w")
    rng = np.random.default_rng(1)
    for name, kind, compressor in (("a", "<f4", zarr.Zlib(1)), ("b", "<i4", None)):
        v = g.create_dataset(name, shape=(60, 100), chunks=(7, 30), dtype=kind,
                             compressor=compressor)
        v[:] = rng.integers(0, 100, (60, 100)).astype(kind)
        v.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    return path


def exercise(t, *args):
    tool = os.path.join(os.path.dirname(os.path.abspath(t.binary)), "tests", "exercise")
    status, out, err = t.run(tool, *args, timeout=LIMIT)
    assert status == 0, f"exercise {' '.join(args)}: {status} {out}{err}"


def test_scratch_and_dataset(t):
    """Scratch files, two at once, and then the dataset's file: its bytes may be anything until it
    is closed; it is closed as it was."""
    n = OPERATIONS
    with t.mount(make_store(t.path("x.zarr")), "rw") as m:
        wrong = []

        def scratch(name, seed, ops):
            try:
                exercise(t, "-n", str(ops), "-s", str(seed), os.path.join(m.path, name))
            except AssertionError as error:
                wrong.append(str(error))
        two = [threading.Thread(target=scratch, args=(f"tmp{i}", i, n // 4)) for i in (1, 2)]
        for thread in two:
            thread.start()
        for thread in two:
            thread.join()
        assert not wrong, "\n".join(wrong)
        scratch("large", 3, n // 4)
        exercise(t, "-n", str(n // 4), "-c", "1500", "-m", "65536", os.path.join(m.path, "x.nc"))
        assert not wrong, "\n".join(wrong)

        def values(path):
            import netCDF4
            import zarr
            g = zarr.open_group(t.path("x.zarr"), mode="r")
            with netCDF4.Dataset(path) as d:
                for name in "ab":
                    assert np.array_equal(d[name][:], g[name][:]), name
        t.call(values, os.path.join(m.path, "x.nc"))
