# SPDX-License-Identifier: BSD-3-Clause
"""Many files as one (-o concat=): the index that is kept of them."""
import os

from cases.concat.test_concat import LIMIT, compare_nc, compare_zarr, folder, write


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def opened(t, pattern, index, *options):
    """How many members are opened to be looked at: what the log says of it."""
    status, _, err = t.run(t.binary, "info", "-o", "concat=time,debug", "-o",
                           "concat_index=" + index, pattern)
    assert status == 0, err
    found = [line for line in err.splitlines() if "members are read" in line]
    return int(found[0].split("': ")[1].split()[0]) if found else 0


def test_index(t):
    """With an index only new and changed files are opened; a damaged index is made again.
    SEMANTICS J5"""
    d = folder(t)
    index = t.path("some.idx")
    for k in range(300):
        write(f"{d}/f{k}.nc", 2 * k, 2, fmt="NETCDF3_CLASSIC")
    pattern = d + "/*.nc"

    def old(*names):  # what was written this very moment is not believed to stay as it is
        for name in names:
            os.utime(f"{d}/{name}", (1e9, 1e9))

    old(*os.listdir(d))
    assert opened(t, pattern, index) == 300
    assert opened(t, pattern, index) == 0
    write(f"{d}/f300.nc", 600, 2, fmt="NETCDF3_CLASSIC")
    write(f"{d}/f7.nc", 14, 2, fmt="NETCDF3_CLASSIC", seed=99)
    assert opened(t, pattern, index) == 2
    old("f7.nc", "f300.nc")
    assert opened(t, pattern, index) == 2
    assert opened(t, pattern, index) == 0
    with open(index, "rb") as f:
        whole = f.read()
    for damaged in (b"", whole[:-1], whole[:100], whole[:5000] + b"\0" + whole[5001:],
                    whole[:8] + b"\xff" * 4096, whole + b"x"):
        with open(index, "wb") as f:
            f.write(damaged)
        assert opened(t, pattern, index) == 301
        assert opened(t, pattern, index) == 0
        with open(index, "rb") as f:
            assert f.read() == whole
    lie = whole.replace(b"days since 2000-01-01", b"days since 1999-01-01")
    assert lie != whole
    with open(index, "wb") as f:
        f.write(lie[:8] + crc32c(lie[12:]).to_bytes(4, "little") + lie[12:])
    with t.mount(pattern, "concat=time", "concat_index=" + index) as m:
        t.call(compare_zarr, m.path, [f"{d}/f{k}.nc" for k in range(301)], timeout=LIMIT)
    with t.mount(pattern, "concat=time", "concat_index=" + index, "view=nc") as m:
        t.call(compare_nc, m.path, [f"{d}/f{k}.nc" for k in range(301)], timeout=LIMIT)
    status, _, err = t.run(t.binary, "info", "-o", "concat=time", "-o",
                           "concat_index=/proc/none/x", d + "/f1*.nc")
    assert status == 0 and len(err.strip().splitlines()) == 1 and "index" in err, err


def test_index_is_no_file_of_others(t):
    """What concat_index= names is overwritten only when it is an index."""
    d = folder(t)
    files = [write(f"{d}/f{k}.nc", 8 * k, 8) for k in range(2)]
    was = {f: open(f, "rb").read() for f in files}
    note = t.path("note.txt")
    with open(note, "w") as f:
        f.write("dear to somebody")

    def info(index, status=0):
        got, _, err = t.run(t.binary, "info", "-o", f"concat=time,concat_index={index}",
                            d + "/*.nc")
        assert got == status, err
        return err
    for index in (files[1], note):
        assert "not an index: use another file" in info(index, 1)
    assert "matches the pattern" in info(d + "/new.nc", 1)
    with open(note) as f:
        assert f.read() == "dear to somebody"
    assert was == {f: open(f, "rb").read() for f in files}
    info(t.path("index"))
    with open(t.path("index"), "rb") as f:
        assert f.read(7) == b"nczjoin"
    info(t.path("index"))
