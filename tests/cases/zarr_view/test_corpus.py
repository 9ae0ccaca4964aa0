# SPDX-License-Identifier: BSD-3-Clause
"""Files that others made: everything in netcdf4 and hdf5 equals what the usual readers see,
everything in bad is survived."""
import functools
import os
import stat

from lib import clients, mounts
from lib.context import Crashed, Skip, corpus, library_only, sanitizer_env, sanitizer_reports
from clients import compare_xarray, oracle

LIMIT = 180.0
ONE_IN = {"netcdf4/*": 4, "hdf5/*": 4}
BAD_LIMIT = 120.0
MEMORY = 1 << 30


def h5py_opens(file):
    ok, result = oracle.in_child(lambda: bool(oracle.Model(file)), 30)
    return ok and result


def check_refused(m):
    lines = m.messages().splitlines()
    assert m.status == 1, f"status {m.status} for a source that cannot be mounted"
    assert len(lines) == 1, f"{len(lines)} lines on standard error: {m.messages()!r:.500}"
    assert not mounts.is_mounted(m.path), "a mount is left behind"


def compare_good(file, t):
    readable = h5py_opens(file)
    with t.mount(file, check=readable) as m:
        if m.status != 0:
            check_refused(m)
            raise Skip("h5py cannot open it; the mount says: " + m.messages()[:200])
        if not readable:
            t.call(read_everything, m.path, timeout=60)
            return
        notes = clients.info(t, file)
        nc = oracle.netcdf_model(file)
        clients.zarr(t, file, m, notes, nc=nc)
        if nc and netcdf_reads(file):
            try:
                clients.xarray(t, file, m, notes)
            except (Skip, Crashed) as why:
                # what crashes is netCDF-C on the file itself: nothing of the mount runs in there
                print("xarray:", why)
    if not nc:
        print("netCDF-C cannot read the file itself")
        return
    with t.mount(file, "mode=nczarr") as m:
        print(clients.ncdump(t, file, m, timeout=120))


def netcdf_reads(file):
    """Whether netCDF-C gets through the whole file alive: else xarray has nothing to compare."""
    def read():
        import xarray
        for group in oracle.Model(file).groups:
            with xarray.open_dataset(file, engine="netcdf4", group=group, decode_cf=False) as ds:
                for v in ds.variables.values():
                    if v.nbytes < compare_xarray.LIMIT:
                        v.load()
        return True
    ok, _ = oracle.in_child(read, 30)
    return ok


def read_everything(folder):
    """Every file and every byte; errors are allowed, a dead mount is not. At most a few hundred
    files of each array: some damaged files claim billions of chunks."""
    todo = [(folder, 0)]
    count = 0
    while todo:
        here, depth = todo.pop()
        try:
            names = []
            with os.scandir(here) as it:
                for entry in it:
                    names.append(entry.name)
                    if len(names) > 400:
                        break
        except OSError as error:
            assert error.errno not in (107, 103), f"the mount died at {here}: {error}"
            continue
        for name in names:
            full = os.path.join(here, name)
            count += 1
            if count > 6000 or depth > 80:
                return
            try:
                st = os.lstat(full)
                if stat.S_ISDIR(st.st_mode):
                    todo.append((full, depth + 1))
                    continue
                with open(full, "rb") as f:
                    total = 0
                    while total < 64 << 20:
                        part = f.read(1 << 20)
                        if not part:
                            break
                        total += len(part)
                    assert total >= 64 << 20 or total == st.st_size, (
                        f"{full}: size {st.st_size} but {total} bytes read")
            except OSError as error:
                assert error.errno not in (107, 103), f"the mount died at {full}: {error}"


def survive_bad(file, t):
    other = "view=zarr" if file.endswith(".zip") or "/." in file else "view=nc"
    for options in ((), ("filter=none", "sandbox_codecs", other)):
        with t.mount(file, *options, check=False, wait=60) as m:
            m.damaged = True
            if m.status != 0:
                check_refused(m)
                text = m.sanitizer_text()
                assert not text, text
                continue
            t.call(read_everything, m.path, timeout=60)
            assert m.server_alive(), "the server died: " + m.messages()
            peak = m.memory_peak()
            assert t.sanitized or peak < MEMORY, f"{peak >> 20} MiB of memory"
        problems = m.sanitizer_text()
        assert not problems, problems
    survive_info(file, t)


def survive_info(file, t):
    log = t.path("info-sanitizer")
    status, out, err = t.run(t.binary, "info", file, timeout=60, env=sanitizer_env(log))
    reports = sanitizer_reports(log)
    assert library_only(reports), reports
    if status not in (0, 1) and reports:
        return  # the sanitizer ended it for a fault of the library
    assert status in (0, 1), f"info ends with {status}: {err}"
    err = err.replace("AddressSanitizer:DEADLYSIGNAL\n", "")
    assert status == 0 or len(err.splitlines()) == 1, f"info says {err!r:.500}"


def files(folder):
    for base, dirs, names in os.walk(folder):
        dirs.sort()
        for name in sorted(names):
            yield os.path.join(base, name)


def no_corpus(t):
    raise Skip("no corpus: set NCZARRFS_CORPUS to a folder with netcdf4, hdf5 and bad in it")


def cases():
    root = corpus()
    if not root:
        yield "all", no_corpus
        return
    for folder, func, limit in (("netcdf4", compare_good, LIMIT), ("hdf5", compare_good, LIMIT),
                                ("bad", survive_bad, BAD_LIMIT)):
        for file in files(os.path.join(root, folder)):
            test = functools.partial(func, file)
            test.limit = limit
            yield os.path.relpath(file, root), test
