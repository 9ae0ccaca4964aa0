# SPDX-License-Identifier: BSD-3-Clause
"""Appends by Zarr tools to a netCDF-4 file, array by array, while commits come between them."""
import os
import signal
import subprocess

import h5py
import netCDF4
import numpy as np
import xarray as xr
import zarr

from lib import mounts
from lib.context import eventually_passes

NAMES = ("a", "b")


def make(path, n=4, fixed=False):
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", n if fixed else None)
        f.createDimension("x", 5)
        f.createVariable("time", "f8", ("time",), chunksizes=(2,))[:] = np.arange(n)
        for k, name in enumerate(NAMES):
            v = f.createVariable(name, "f8", ("time", "x"), chunksizes=(2, 5), zlib=True)
            v[:] = np.arange(5 * n).reshape(n, 5) + 100 * k


def shapes(mnt):
    g = zarr.open_group(mnt, "r")
    return [g[n].shape[0] for n in ("time", *NAMES)]


def sync(mnt):
    subprocess.run(["sync", mnt], check=True)


def one_by_one(mnt, commit):
    """As a model does that computes between two variables. Everybody sees his own length."""
    for k, name in enumerate(NAMES):
        zarr.open_group(mnt, "r+")[name].append(np.full((3, 5), 7.0 + k))
        commit(mnt)
        commit(mnt)
    assert shapes(mnt) == [4, 7, 7], shapes(mnt)
    zarr.open_group(mnt, "r+")["a"][0] = 1.0
    zarr.open_group(mnt, "r+")["time"].attrs["units"] = "days since 2000-01-01"
    commit(mnt)
    assert shapes(mnt) == [4, 7, 7], shapes(mnt)
    zarr.open_group(mnt, "r+")["time"].append(np.arange(4.0, 7.0))
    commit(mnt)
    assert shapes(mnt) == [7, 7, 7], shapes(mnt)


def expect(path):
    with xr.open_dataset(path, decode_times=False) as ds:
        assert ds["time"].values.tolist() == list(range(7))
        assert ds["time"].attrs["units"] == "days since 2000-01-01"
        for k, name in enumerate(NAMES):
            want = np.vstack([np.arange(20.0).reshape(4, 5) + 100 * k,
                              np.full((3, 5), 7.0 + k)])
            want[0] = 1.0 if name == "a" else want[0]
            assert (ds[name].values == want).all(), ds[name].values


def test_one_by_one(t):
    """SEMANTICS W25: unlimited dimensions and fixed ones"""
    for fixed in (False, True):
        source = t.path(f"m{fixed}.nc")
        make(source, fixed=fixed)
        with t.mount(source, "rw") as m:
            t.call(one_by_one, m.path, sync)
        expect(source)
        assert not os.path.exists(t.path(f".m{fixed}.nc.nczarrfs"))


def one_more(mnt):
    """All arrays are longer, and one is longer still, when the commit begins: the others stay as
    long as their writer left them."""
    g = zarr.open_group(mnt, "r+")
    g["time"].append(np.arange(4.0, 7.0))
    for k, name in enumerate((*NAMES, "b")):
        g[name].append(np.full((3, 5), 7.0 + k))
    sync(mnt)
    assert shapes(mnt) == [7, 7, 10], shapes(mnt)
    zarr.open_group(mnt, "r+")["a"].append(np.full((3, 5), 9.5))
    sync(mnt)
    assert shapes(mnt) == [7, 10, 10], shapes(mnt)
    zarr.open_group(mnt, "r+")["time"].append(np.arange(7.0, 10.0))
    sync(mnt)
    assert shapes(mnt) == [10, 10, 10], shapes(mnt)


def test_one_more(t):
    """SEMANTICS W25: what the commit itself has written"""
    for new in (False, True):
        source = t.path(f"m{new}.nc")
        make(source)
        if new:
            make(t.path("other.nc"))
            os.unlink(source)
        with t.mount(source, "rw,create" if new else "rw", "commit_delay=60000") as m:
            if new:
                with xr.open_dataset(t.path("other.nc"), decode_times=False) as ds:
                    ds.load().to_zarr(m.path, consolidated=False, encoding={
                        n: {"chunks": (2, 5)} for n in NAMES})
            t.call(one_more, m.path)
        with xr.open_dataset(source, decode_times=False) as ds:
            assert ds["time"].values.tolist() == list(range(10))
            for name, want in (("a", (7.0, 9.5)), ("b", (8.0, 9.0))):
                assert ds[name].values[4:, 0].tolist() == [*3 * [want[0]], *3 * [want[1]]], name


def by_xarray(mnt, sets):
    for ds in sets:
        ds.to_zarr(mnt, append_dim="time")


def test_larger_than_the_stage(t):
    """xarray's append of variables each of which takes several commits."""
    rng = np.random.default_rng(3)
    sets = [xr.Dataset({n: (("time", "x"), rng.random((40, 5000))) for n in NAMES},
                       {"time": np.arange(40.0) + 40 * k}) for k in range(3)]
    source = t.path("m.nc")
    sets[0].to_netcdf(source, unlimited_dims=["time"], encoding={
        n: {"chunksizes": (8, 5000)} for n in NAMES})
    with t.mount(source, "rw", "stage_size=1M", "commit_delay=1") as m:
        t.call(by_xarray, m.path, sets[1:])
    with xr.open_dataset(source) as got:
        want = xr.concat(sets, "time")
        for name in ("time", *NAMES):
            assert got[name].shape == want[name].shape
            assert got[name].values.tobytes() == want[name].values.tobytes(), name


def grow(mnt):
    zarr.open_group(mnt, "r+")["a"].append(np.full((3, 5), 7.0))
    sync(mnt)
    assert shapes(mnt) == [4, 7, 4], shapes(mnt)


def test_ends_in_between(t):
    """What is shown shorter than it is in the file is nothing that waits: at the end of the mount,
    after its death, and when another program changes the file."""
    for name in ("unmounted", "killed", "changed"):
        source = t.path(name + ".nc")
        make(source)
        m = t.mount(source, "rw")
        m.ended = name != "changed"
        with m:
            t.call(grow, m.path)
            if name == "killed":
                for pid in reversed(m.pids):
                    os.kill(pid, signal.SIGKILL)
                assert mounts.wait_gone(m.pids, 20)
                if mounts.is_mounted(m.path):
                    mounts.unmount(m.path)
            elif name == "unmounted":
                status, _, err = t.run(t.binary, "--no-config", "umount", m.path)
                assert status == 0, err
            else:
                with h5py.File(source, "r+") as f:
                    f.attrs["by"] = "another"

                t.call(put, m.path)
        status, _, err = t.run(t.binary, "recover", source)
        assert status == 0, err
        with netCDF4.Dataset(source) as f:
            assert f["a"].shape == f["b"].shape == (7, 5)
            assert (f["a"][4:] == 7).all() and f["b"][4:].mask.all()
            assert name != "changed" or f["b"].note == "good"
        assert not os.path.exists(t.path(f".{name}.nc.nczarrfs"))


def other_program_seen(mnt):
    """An OSError is possible once, of what was read of the file as it was."""
    assert zarr.open_group(mnt, "r").attrs.get("by") == "another", "the change is not seen"


def put(mnt):
    eventually_passes(other_program_seen, mnt, seconds=60, errors=(AssertionError, OSError))
    assert shapes(mnt) == [7, 7, 7]  # the file as it is now
    zarr.open_group(mnt, "r+")["b"].attrs["note"] = "good"
    sync(mnt)
