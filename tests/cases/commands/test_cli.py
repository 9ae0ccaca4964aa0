# SPDX-License-Identifier: BSD-3-Clause
"""The command line: an error is one line that says what, where and what to do, with status 2 for a
wrong command line and status 1 for all else, and nothing is mounted."""
import json
import os
import re
import shlex
import signal
import socket

import h5py
import netCDF4
import numpy as np

from lib import mounts
from lib.context import Skip


def sample(t, name="good.nc"):
    path = t.path(name)
    with h5py.File(path, "w") as f:
        f["v"] = np.arange(10000.0)
        f["g/w"] = np.arange(3)
    return path


def refused(t, *args, mention=(), status=1):
    code, out, err = t.run(t.binary, *args)
    lines = err.splitlines()
    assert code == status, f"{args} ends with {code}, not {status}: {err}"
    assert len(lines) == 1, f"{args}: {len(lines)} lines on standard error: {err!r}"
    assert out == "", f"{args}: {out!r} on standard output"
    assert lines[0].startswith("nczarrfs: error: "), lines[0]
    for word in mention:
        assert word in lines[0], f"{args}: '{word}' is not in: {lines[0]}"
    here = [p for p, _ in mounts.table() if p.startswith(t.tmp)]
    assert not here, f"{args}: left mounted: {here}"


def misused(t, *args, mention=()):
    """A wrong command line."""
    refused(t, *args, mention=mention, status=2)


def folder(t, name="mnt"):
    path = t.path(name)
    os.makedirs(path, exist_ok=True)
    return path


def test_not_hdf5(t):
    path = t.path("text.nc")
    with open(path, "w") as f:
        f.write("hello, this is text\n" * 1000)
    refused(t, path, folder(t), mention=[path])


def test_empty_file(t):
    path = t.path("empty.nc")
    open(path, "w").close()
    refused(t, path, folder(t), mention=[path])


def test_truncated(t):
    good = sample(t)
    data = open(good, "rb").read()
    for n in (9, 50, 100, len(data) // 2, len(data) - 1):
        path = t.path(f"cut{n}.nc")
        with open(path, "wb") as f:
            f.write(data[:n])
        refused(t, path, folder(t), mention=[path])


def test_directory_as_source(t):
    """A directory that is no dataset is mirrored, unless one view of it is asked for."""
    for view in ("zarr", "nc"):
        refused(t, t.tmp, folder(t), "-o", f"view={view}", mention=[t.tmp])


def test_missing_source(t):
    refused(t, t.path("no.nc"), folder(t), mention=[t.path("no.nc")])


def test_loop_of_links(t):
    """One line, also for a mount that only reads."""
    os.symlink("b.nc", t.path("a.nc"))
    os.symlink("a.nc", t.path("b.nc"))
    for args in ((), ("--rw",)):
        refused(t, *args, t.path("a.nc"), folder(t),
                mention=[f"'{t.path('a.nc')}': too many levels of symbolic links"])


def test_special_files(t):
    os.mkfifo(t.path("fifo"))
    refused(t, t.path("fifo"), folder(t), mention=["fifo"])
    refused(t, "/dev/null", folder(t), mention=["/dev/null"])
    s = socket.socket(socket.AF_UNIX)
    s.bind(t.path("sock"))
    refused(t, t.path("sock"), folder(t), mention=["sock"])


def test_no_permission(t):
    if os.getuid() == 0:
        raise Skip("root may read everything")
    path = sample(t)
    os.chmod(path, 0)
    refused(t, path, folder(t), mention=[path])


def test_missing_mountpoint(t):
    """A mountpoint that is missing is created, but for its parents."""
    refused(t, sample(t), t.path("no/where"), mention=[t.path("no/where"), "parent directory",
                                                       "mkdir -p"])
    os.symlink("nothing", t.path("link"))
    refused(t, sample(t), t.path("link"), mention=[t.path("link"), "symbolic link"])
    assert not os.path.lexists(t.path("no")) and not os.path.lexists(t.path("nothing"))


def test_mountpoint_is_made(t):
    """A mountpoint that the mount created is removed when the mount ends, however it ends; one
    that existed stays. A mount that fails leaves none."""
    path, new = sample(t), t.path("new")
    for end in ("umount", "fusermount3", "signal", "killed"):
        code, _, err = t.run(t.binary, path, new)
        assert code == 0 and mounts.is_mounted(new), (end, err)
        pids = mounts.processes_of(new)
        if end == "umount":
            assert t.run(t.binary, "umount", new) == (0, "", "")
            assert not os.path.lexists(new)
        elif end == "fusermount3":
            assert t.run("fusermount3", "-u", new)[0] == 0
        else:
            server = json.loads(t.run(t.binary, "status", "--json", new)[1])["pid"]
            os.kill(server, signal.SIGTERM if end == "signal" else signal.SIGKILL)
        assert mounts.wait_gone(pids, 20), end
        assert not os.path.lexists(new), end
    for args in ((t.path("no.nc"),), ("-o", "view=nc", "-o", "metrics=/dev/null", path)):
        refused(t, *args, new)
        assert not os.path.lexists(new), args
    code, _, err = t.run(t.binary, path, folder(t, "old"))
    assert code == 0, err
    assert t.run(t.binary, "umount", t.path("old")) == (0, "", "")
    assert os.path.isdir(t.path("old"))


def test_mounted_is_said(t):
    """-v says what is mounted, where, and how it is unmounted."""
    with netCDF4.Dataset(t.path("a.nc"), "w") as d:
        d.createDimension("x", 1)
    os.mkdir(t.path("d"))
    rows = ((("a.nc", "mnt"), "'a.nc' (netCDF-4) as Zarr v2 on mnt;", "mnt"),
            (("--zarr-format=3", "a.nc", "a b"), "'a.nc' (netCDF-4) as Zarr v3 on 'a b';",
             "'a b'"),
            (("--rw", "a.nc", "mnt"), "'a.nc' as Zarr v2, read-write, on mnt;", "mnt"),
            (("d", "mnt"), "'d' as a directory in both formats on mnt;", "mnt"))
    for args, what, where in rows:
        code, out, err = t.run(t.binary, "-v", *args, cwd=t.tmp)
        want = f"nczarrfs: note: mounted {what} unmount with: nczarrfs umount {where}"
        assert code == 0 and not out and want in err.splitlines(), (args, err)
        code, _, err = t.run(t.binary, "umount", args[-1], cwd=t.tmp)
        assert code == 0, err


def test_file_as_mountpoint(t):
    open(t.path("file"), "w").close()
    refused(t, sample(t), t.path("file"), mention=[t.path("file")])


def test_busy_mountpoint(t):
    """Mounting twice on one place: the second is refused, the first goes on."""
    path = sample(t)
    with t.mount(path) as m:
        code, out, err = t.run(t.binary, path, m.path)
        assert code == 1 and len(err.splitlines()) == 1, f"{code}: {out}{err}"
        assert m.path in err, err
        t.call(lambda: os.stat(os.path.join(m.path, ".zgroup")))


def test_mountpoint_not_empty(t):
    """What a mountpoint has in it is hidden, and that is said, in one line; of an empty one
    nothing is."""
    path = sample(t)
    open(os.path.join(folder(t, "full"), "x"), "w").close()
    code, out, err = t.run(t.binary, path, t.path("full"))
    assert mounts.unmount(t.path("full"))[0]
    assert code == 0 and len(err.splitlines()) == 1, err
    assert f"'{t.path('full')}' is not empty" in err, err
    code, out, err = t.run(t.binary, path, folder(t, "bare"))
    assert mounts.unmount(t.path("bare"))[0]
    assert code == 0 and not err, err


def test_the_other_way_round(t):
    """nczarrfs MOUNTPOINT SOURCE would hide the dataset behind an empty mirror."""
    tree = folder(t, "s.zarr")
    with open(os.path.join(tree, ".zgroup"), "w") as f:
        f.write('{"zarr_format": 2}')
    refused(t, folder(t, "empty"), tree, mention=["SOURCE MOUNTPOINT", tree, t.path("empty")])
    assert not mounts.is_mounted(tree)


def test_bad_options(t):
    path, mnt = sample(t), folder(t)
    misused(t, "-o", "mode=zar", path, mnt, mention=["mode", "zar"])
    misused(t, "-o", "filter=fast", path, mnt, mention=["filter", "fast"])
    misused(t, "-o", "dimension_separator=_", path, mnt, mention=["dimension_separator"])
    misused(t, "-o", "nosuchoption", path, mnt, mention=["nosuchoption"])
    misused(t, "-o", "default_chunk_size=-1", path, mnt, mention=["chunk_size"])
    misused(t, "-o", "default_chunk_size=99999999999999999999", path, mnt, mention=["chunk_size"])
    misused(t, "-o", "cache_size=x", path, mnt, mention=["cache_size"])
    misused(t, "-o", "rw,ro", path, mnt, mention=["-o ro: conflicts with rw"])
    misused(t, "--nosuch", path, mnt, mention=["--nosuch"])


def test_wrong_number_of_arguments(t):
    path, mnt = sample(t), folder(t)
    misused(t, path)
    misused(t, path, mnt, "third", mention=["third"])
    misused(t, "info")
    refused(t, "info", t.path("no.nc"), mention=["no.nc"])
    misused(t, "filters", path, mention=["nczarrfs filters"])
    misused(t, "--json", path, mnt, mention=["--json"])


def test_misspelt_command(t):
    """A first word that is no file is a command that is misspelt, whatever is behind it."""
    path = sample(t)
    for args, meant in ((("chek", path), "check"), (("convrt", path, t.path("q.zarr")), "convert"),
                        (("serv", path, t.path("a"), t.path("b")), "serve")):
        misused(t, *args, mention=["no such command", f"did you mean nczarrfs {meant}?"])
    misused(t, "verify", path, mention=["'verify'", "no such command", "--help"])
    refused(t, "verify", folder(t), mention=["'", "verify'", "no such file"])
    misused(t, path, folder(t), t.path("x"), mention=["too many arguments", "usage: nczarrfs"])


def test_unquoted_pattern(t):
    """When the shell has replaced a pattern by several files, the message says so."""
    files = [sample(t, f"{i}.nc") for i in range(3)]
    for args in ([*files, folder(t)], ["--concat=x", *files, t.path("mnt")],
                 ["mount", "--concat=x", *files, t.path("mnt")],
                 ["refs", *files, t.path("out.json")], ["convert", *files, t.path("c.zarr")]):
        misused(t, *args, mention=["too many arguments", files[2], "quote a pattern: '*.nc'"])


def test_mount_by_the_word(t):
    """nczarrfs mount SOURCE MOUNTPOINT is nczarrfs SOURCE MOUNTPOINT; one operand is a name."""
    path, mnt = sample(t), folder(t)
    code, out, err = t.run(t.binary, "mount", path, mnt)
    assert code == 0 and not out + err, (code, out, err)
    t.call(lambda: os.stat(os.path.join(mnt, ".zgroup")))
    code, out, err = t.run(t.binary, "unmount", mnt)
    assert code == 0 and not out + err, (code, out, err)
    code, out, err = t.run(t.binary, "mount", "good.nc", "mnt", cwd=t.tmp)
    assert code == 0 and t.run(t.binary, "ls")[1].count(mnt + " ") == 1, err
    assert t.run(t.binary, "umount", mnt)[0] == 0
    misused(t, "mount", path, mention=[f"'{path}' is a file, not a named mount: "
                                       f"run nczarrfs mount {path} MOUNTPOINT"])
    misused(t, "mount", t.tmp, mention=[f"'{t.tmp}' is a directory, not a named mount"])
    misused(t, "mount", "s3://b/x.nc", mention=["'s3://b/x.nc' is a URL, not a named mount"])
    refused(t, "mount", "nothing", mention=["'nothing'", "no mount has this name"])
    refused(t, "mount", t.path("no.nc"), mnt, mention=[t.path("no.nc"), "no such file"])


def test_closed_output(t):
    """What cannot be printed is an error, also where standard output was closed; a mount prints
    nothing."""
    path = sample(t)
    for args in (["info", path], ["refs", path], ["check", path], ["recover", path], ["filters"],
                 ["list", "--json"], ["--help"]):
        got, _, err = t.run("sh", "-c", '"$@" >&-', "sh", t.binary, *args)
        assert got == (2 if args[0] == "check" else 1), (args, got, err)
        assert len(err.splitlines()) == 1, (args, err)
    got, _, err = t.run("sh", "-c", '"$@" >&-', "sh", t.binary, path, folder(t))
    assert got == 0 and not err, (got, err)
    t.call(lambda: os.stat(t.path("mnt/.zgroup")))
    assert mounts.unmount(t.path("mnt"))[0]


def test_help_and_version(t):
    code, out, err = t.run(t.binary, "--help")
    assert code == 0 and not err, err
    for word in ("SOURCE", "MOUNTPOINT", "--mode=", "--filter=", "info", "filters"):
        assert word in out, f"{word} is not in --help"
    assert len(out.splitlines()) < 90, out
    code, whole, err = t.run(t.binary, "help", "options")
    assert code == 0 and not err and "--allow-other" in whole and "\nRemote:\n" in whole, whole
    for word in ("--version", "version"):
        code, out, err = t.run(t.binary, word)
        assert code == 0 and not err, err
        assert re.search(r"nczarrfs \d+\.\d+\.\d+", out), out
        for name in ("HDF5", "FUSE"):
            assert name.lower() in out.lower(), f"{name} is not in {word}: {out}"


def test_help_of_commands(t):
    """Each command's help is about that command: its usage, its flags, two examples. The
    examples are command lines that are understood."""
    _, out, _ = t.run(t.binary, "--help")
    listed = out.partition("\nCommands:\n")[2].partition("\n\n")[0]
    words = re.findall(r"^  ([a-z]+) ", listed, re.M)
    assert len(words) == 14, words
    for word in words:
        code, out, err = t.run(t.binary, word, "--help")
        assert code == 0 and not err, (word, err)
        assert out.startswith("usage: nczarrfs ") and "\nFlags:\n" in out, (word, out)
        assert t.run(t.binary, "help", word)[1] == out, word
        examples = out.partition("\nExamples:\n")[2].splitlines()
        assert len(examples) == 2, (word, out)
        for line in examples:
            name, *args = shlex.split(line)
            assert name == "nczarrfs", line
            if word in ("help", "version"):
                continue
            code, _, err = t.run(t.binary, "--no-config", "--print-config", *args)
            assert code == 0, (line, err)
    out = t.run(t.binary, "refs", "--help")[1]
    assert "--rechunk" in out
    for option in "--classic-format", "--chunk-key-encoding", "--page-cache", "--noxattr":
        assert option not in out, f"refs rejects or ignores {option}"
    code, out, err = t.run(t.binary, "help", "convrt")
    assert code == 2 and "did you mean nczarrfs help convert?" in err, err


def test_bare(t):
    """Without arguments: a short usage on standard error."""
    code, out, err = t.run(t.binary)
    assert code == 2 and out == "", (code, out)
    assert err.startswith("usage: nczarrfs ") and err.endswith("\nTry 'nczarrfs --help'.\n"), err
    assert len(re.findall("^  nczarrfs ", err, re.M)) == 3, err


def test_long_options(t):
    """Every option is a long one, also for commands that mount nothing."""
    path = sample(t)
    code, out, err = t.run(t.binary, "convert", "--zarr-format", "3", "--filter=none", path,
                           t.path("c.zarr"))
    assert code == 0 and os.path.exists(t.path("c.zarr/zarr.json")), err
    code, out, _ = t.run(t.binary, "--print-config", "--zarr-format=3", "--rw", path, "/x")
    assert code == 0 and "zarr_format = 3 " in out and "rw = yes" in out, out
    misused(t, "info", "--zarr-format=4", path, mention=["--zarr-format: unknown value '4'"])
    misused(t, "info", "--zar-format=3", path, mention=["did you mean --zarr-format?"])


def test_info(t):
    path = sample(t)
    code, out, err = t.run(t.binary, "info", path)
    assert code == 0 and not err, err
    assert "v" in out and "10000" in out, out
    code, out, err = t.run(t.binary, "info", "--json", path)
    assert code == 0 and not err, err
    json.loads(out)


def test_info_says_why(t):
    """Pass through or transcode, and the reason, for each variable."""
    path = t.path("f.nc")
    with h5py.File(path, "w") as f:
        f.create_dataset("pass", data=np.arange(100), chunks=(10,), compression="gzip")
        f.create_dataset("odd", data=np.arange(100), chunks=(10,), scaleoffset=0)
    code, out, _ = t.run(t.binary, "info", "-v", path)
    assert code == 0
    plans = [x.strip() for x in out.splitlines() if x.strip().startswith("plan ")]
    assert len(plans) == 2, out
    assert re.match(r"plan +decode: .*scaleoffset", plans[0]), out
    assert re.match(r"plan +pass: .*deflate", plans[1]), out


def test_filters(t):
    """Every filter by all its names; the table and the JSON say the same."""
    code, out, err = t.run(t.binary, "filters")
    assert code == 0 and not err, err
    rows = out.splitlines()
    code, out, err = t.run(t.binary, "filters", "--json")
    assert code == 0 and not err, err
    filters = json.loads(out)["filters"]
    assert isinstance(json.loads(out)["libraries"], list)
    by_id = {f["hdf5"]: f for f in filters if f["hdf5"]}
    for number, name, zarr2 in ((1, "deflate", "zlib"), (2, "shuffle", "shuffle"),
                                (307, "bzip2", "bz2"), (32015, "zstd", "zstd"),
                                (32001, "blosc", "blosc"), (32022, "bitgroom", None)):
        f = by_id[number]
        assert (f["name"], f["zarr2"]) == (name, zarr2), f
        assert f["decode"] is True and f["encode"] is True and f["plugin"] is None, f
        assert f["lossy"] == (number == 32022), f
    assert by_id[1]["hdf5_stock"] and by_id[1]["zarr_stock"] and not by_id[307]["hdf5_stock"]
    assert {f["zarr3"] for f in filters} >= {"gzip", "zstd", "blosc", "crc32c"}
    for f in filters:
        want = [f["name"], str(f["hdf5"] or "-"), f["zarr2"] or "-", f["zarr3"] or "-"]
        assert sum(row.split()[:4] == want for row in rows) == 1, (want, rows)
    code, out, err = t.run(t.binary, "filters", "-v")
    assert code == 0 and not err and "libraries" in out, out + err


def test_relative_paths(t):
    """A relative source and mountpoint work although the server leaves the directory."""
    sample(t)
    folder(t, "rel")
    code, _, err = t.run(t.binary, "good.nc", "rel", cwd=t.tmp)
    assert code == 0, err
    t.call(lambda: os.listdir(t.path("rel/v")))
    assert mounts.unmount(t.path("rel"))[0]


def test_descriptors_closed(t):
    """The server in the background does not keep the caller's pipes open."""
    path, mnt = sample(t), folder(t)
    code, out, err = t.run("sh", "-c", '"$0" "$1" "$2" | cat', t.binary, path, mnt)
    assert code == 0, err
    assert mounts.unmount(mnt)[0]


def made(t, name, *what, fails=None):
    """Mounts with create; what was made, as a second mount without it finds it."""
    path = t.path(name)
    if fails:
        m = t.mount(path, "rw,create", check=False)
        m.unmount()
        assert m.status == 1 and fails in m.messages(), (name, m.status, m.messages())
        assert not os.path.lexists(path), name
        return
    with t.mount(path, "rw,create"):
        pass
    with t.mount(path, "rw") as m:
        assert os.listdir(m.path) == list(what), (name, os.listdir(m.path))


# SEMANTICS X12
def test_create_by_name(t):
    """What is made has the format that its name says, in letters of either case, and is found in it
    by the next mount; a name of another format is refused, here and at an address."""
    for name in "a.zarr", "X.ZARR", "b.Zr3":
        made(t, name, name[0] + ".nc")
        assert os.path.isdir(t.path(name)), name
    for name in "a.nc", "A.NC4", "a.cdf", "a.he5", "A.HDF5", "plain":
        made(t, name)
        with open(t.path(name), "rb") as f:
            assert f.read(4) == b"\x89HDF", name
    for name in "a.nc3", "a.hdf", "A.H4", "a.zip", "a.zarr.zip", "a.json", "a.parq":
        made(t, name, fails="cannot create a dataset with this ending")
    os.mkdir(t.path("mnt-far"))
    for name in ("x.hdf5", "x.he5", "x.cdf", "X.NC", "x.nc3", "x.hdf", "x.zip", "x.zarr.zip",
                 "x.parq"):
        code, out, err = t.run(t.binary, "-o", "rw,create,anonymous,endpoint=http://127.0.0.1:9",
                               "s3://b/" + name, t.path("mnt-far"), timeout=20)
        assert code == 1 and "only Zarr stores can be" in err, (name, code, err)


def test_list(t):
    """A header, and a line for each mount; a note on standard error when there is none."""
    path = sample(t)
    with t.mount(path) as m:
        code, out, err = t.run(t.binary, "list")
        assert code == 0 and not err, err
        rows = [line.split() for line in out.splitlines()]
        assert rows[0] == ["NAME", "STATE", "MODE", "MOUNTPOINT", "SOURCE"], out
        assert rows[1:].count(["-", "mounted", "ro", m.path, path]) == 1, out
    alone = ("awk '$3 == \"fuse.nczarrfs\" { print $2 }' /proc/self/mounts | "
             "xargs -r -n 1 umount -l; exec \"$@\"")
    code, out, err = t.run("unshare", "--mount", "sh", "-c", alone, "sh", t.binary, "list")
    if "unshare" in err:
        raise Skip("no mount namespaces: " + err)
    assert (code, out) == (0, ""), out
    assert err == ("nczarrfs: note: nothing is mounted, and no configuration file names a "
                   "mount\n"), err


def test_refs_say_what_was_written(t):
    path, to = sample(t), t.path("r.json")
    code, out, err = t.run(t.binary, "refs", path, to)
    assert code == 0 and not err, err
    assert re.fullmatch(f"{re.escape(to)}: references to {re.escape(path)}, [0-9.]+ (bytes|KiB) "
                        "written\n", out), out
    code, out, err = t.run(t.binary, "refs", path, "-")
    assert code == 0 and json.loads(out), err
    code, out, err = t.run(t.binary, "refs", path, t.path("r.parq"))
    assert out == f"{t.path('r.parq')}: references to {path}, Parquet files written\n", out + err
