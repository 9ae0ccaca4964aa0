# SPDX-License-Identifier: BSD-3-Clause
"""make install and make uninstall: what is put where, with which modes, and that it works from
there; the recipe for containers. docs/dev/packaging.md."""
import os
import re
import shutil
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import h5py
import numpy as np

from lib.context import ROOT, Skip

PLACES = {"bindir": "/usr/bin", "libdir": "/usr/lib/some-triplet", "mandir": "/usr/share/man",
          "docdir": "/usr/share/doc/nczarrfs", "datadir": "/usr/share",
          "unitdir": "/usr/lib/systemd/user", "PLUGINDIR": "/usr/lib/some-triplet/hdf5/plugins"}


def make(t, root, target, umask=0o22, **places):
    """What is built is taken as it is: -o all."""
    if not shutil.which("make"):
        raise Skip("no make")
    old = os.umask(umask)
    try:
        status, out, err = t.run(
            "make", "-C", ROOT, "-o", "all", target, f"DESTDIR={root}",
            f"BUILD={os.path.dirname(os.path.abspath(t.binary))}",
            *(f"{k}={v}" for k, v in places.items()), env={"MAKEFLAGS": "", "MAKELEVEL": ""})
    finally:
        os.umask(old)
    assert status == 0, f"make {target}: {out}{err}"
    return out


def tree(root):
    """{path below root: mode} of files and of directories, apart."""
    files, dirs = {}, {}
    for folder, _, names in os.walk(root):
        dirs[folder[len(root):]] = os.stat(folder).st_mode & 0o7777
        for name in names:
            path = os.path.join(folder, name)
            assert not os.path.islink(path), path
            files[path[len(root):]] = os.stat(path).st_mode & 0o7777
    return files, dirs


def listed(folder, pattern):
    path = os.path.join(ROOT, folder)
    return [n for n in (os.listdir(path) if os.path.isdir(path) else [])
            if re.fullmatch(pattern, n)]


def expected(t):
    plugins = os.path.join(os.path.dirname(os.path.abspath(t.binary)), "plugins")
    want = {"/usr/bin/nczarrfs": 0o755}
    want.update({f"{PLACES['PLUGINDIR']}/{n}": 0o644 for n in os.listdir(plugins)
                 if n.endswith(".so")})
    want.update({f"/usr/share/man/man{n[-1]}/{n}": 0o644
                 for n in listed("docs/reference", r".*\.[1-8]")})
    doc = PLACES["docdir"]
    want.update({f"{doc}/{n}": 0o644 for n in listed(".", r".*\.md|LICENSE|CITATION\.cff")})
    want.update({f"{doc}/{os.path.relpath(d, ROOT)}/{n}": 0o644
                 for d, _, names in os.walk(os.path.join(ROOT, "docs"))
                 for n in names if n.endswith(".md") or d.endswith("images")})
    want.update({f"{doc}/examples/{n}": 0o644 for n in listed("docs", r".*\.conf")})
    want.update({f"{PLACES['unitdir']}/{n}": 0o644
                 for n in listed("scripts", r".*\.(service|mount)")})
    for name in listed("scripts/completion", r"_.*|.*\.(bash|zsh|fish)"):
        shell = {"b": "bash-completion/completions/nczarrfs", "z": "zsh/site-functions/_nczarrfs",
                 "f": "fish/vendor_completions.d/nczarrfs.fish"}
        kind = "z" if name.startswith("_") else name.rpartition(".")[2][0]
        want[f"/usr/share/{shell[kind]}"] = 0o644
    if listed("scripts", "mount.fuse.nczarrfs"):
        want["/usr/sbin/mount.fuse.nczarrfs"] = 0o755
    return want


def test_places_and_removal(t):
    """Everything is where it is asked for, for everybody to read whatever the umask was; and goes
    again, but not what others put beside it."""
    root = t.path("root")
    out = make(t, root, "install", umask=0o77, prefix="/usr", **PLACES)
    files, dirs = tree(root)
    want = expected(t)
    assert len([f for f in want if f.endswith(".md")]) > 30
    assert "/usr/share/man/man1/nczarrfs.1" in want
    assert set(files) == set(want), \
        f"missing {set(want) - set(files)}, unexpected {set(files) - set(want)}"
    assert files == want, [(f, oct(m)) for f, m in files.items() if want[f] != m]
    assert set(dirs.values()) == {0o755}, dirs
    assert f"plugins: {sum('.so' in f for f in files)} in" in out, out
    other = f"{PLACES['docdir']}/docs/somebody.txt"
    open(root + other, "w").close()
    make(t, root, "uninstall", prefix="/usr", **PLACES)
    assert list(tree(root)[0]) == [other]
    os.unlink(root + other)
    make(t, root, "install", prefix="/usr", **PLACES)
    make(t, root, "uninstall", prefix="/usr", **PLACES)
    left, dirs = tree(root)
    assert not left and not [d for d in dirs if "nczarrfs" in d], dirs


def test_defaults(t):
    """Below /usr/local, and our plugins where libhdf5 looks."""
    root = t.path("root")
    make(t, root, "install")
    files, _ = tree(root)
    for path in ("/usr/local/bin/nczarrfs", "/usr/local/share/man/man1/nczarrfs.1",
                 "/usr/local/share/doc/nczarrfs/docs/dev/reading/mapping.md"):
        assert path in files, path
    make(t, root, "uninstall")
    assert not tree(root)[0]


def test_flags_of_the_caller(t):
    """CPPFLAGS, CFLAGS and LDFLAGS, from the environment or as arguments, replace the optimisation
    and keep the flags that the program needs; PREFIX is taken like prefix."""
    out = t.path("b")
    flags = {"CPPFLAGS": "-DGIVEN_CPP", "CFLAGS": "-O1 -DGIVEN_C", "LDFLAGS": "-L/given"}
    targets = [f"{out}/obj/base/core/buf.o", f"{out}/nczarrfs", "HDF4_LIBS="]
    bare = {"MAKEFLAGS": "", "MAKELEVEL": ""}
    for args, env in (([], flags), ([f"{k}={v}" for k, v in flags.items()], {})):
        status, text, err = t.run("make", "-C", ROOT, "-n", "V=1", f"BUILD={out}", *targets, *args,
                                  env={**bare, **env})
        assert status == 0, err
        compiled = [line for line in text.splitlines() if line.endswith("base/core/buf.c")][0]
        linked = [line for line in text.splitlines() if f"-o {out}/nczarrfs" in line][0]
        for word in ("-DGIVEN_CPP", "-DGIVEN_C", "-O1", "-std=c17", "-I.", "-D_GNU_SOURCE"):
            assert f" {word} " in compiled, compiled
        assert " -O2 " not in compiled, compiled
        for word in ("-O1", "-L/given", "-Wl,-z,relro,-z,now", "-lpthread"):
            assert f" {word} " in linked + " ", linked
    root = t.path("root")
    make(t, root, "install", PREFIX="/opt/here")
    assert "/opt/here/bin/nczarrfs" in tree(root)[0]


SYSTEMS = {"debian": "ID=debian\n", "ubuntu": "ID=ubuntu\nID_LIKE=debian\n",
           "fedora": "ID=fedora\n", "other": "ID=other\n"}


def test_dependencies_by_system(t):
    """install-deps has the package names of Debian, Ubuntu and Fedora, installs missing packages
    with the system's own package manager, and names the packages where it knows none."""
    log, tools = t.path("log"), t.path("tools")
    os.mkdir(tools)
    for name, body in (("id", "echo 0"), ("rpm", '[ "$4" = zlib-devel ]'), ("dpkg-query", "exit 1"),
                       *((n, f'echo "{n} $*" >>{log}') for n in ("dnf", "apt-get"))):
        with open(f"{tools}/{name}", "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{body}\n")
        os.chmod(f"{tools}/{name}", 0o755)

    def run(system, *args):
        with open(t.path(system), "w", encoding="utf-8") as f:
            f.write(SYSTEMS[system])
        return t.run(f"{ROOT}/scripts/install-deps", *args,
                     env={"OS_RELEASE": t.path(system), "PATH": f"{tools}:{os.environ['PATH']}"})

    for system, known, other in (("debian", "libfuse3-dev", "fuse3-devel"),
                                 ("ubuntu", "libfuse3-dev", "fuse3-devel"),
                                 ("fedora", "fuse3-devel", "libfuse3-dev")):
        status, out, err = run(system, "-l", "build")
        assert status == 0 and known in out.split() and other not in out.split(), (system, out, err)
    status, out, err = run("fedora", "-y", "build")
    assert status == 0, out + err
    with open(log, encoding="utf-8") as f:
        said = f.read()
    assert re.fullmatch(r"dnf install -y .*\bfuse3-devel .*\n", said), said
    assert "zlib-devel" not in said
    os.unlink(log)
    status, out, err = run("ubuntu", "-y", "build")
    assert status == 0, out + err
    with open(log, encoding="utf-8") as f:
        said = f.read().splitlines()
    assert said[0] == "apt-get -q update" and " libfuse3-dev " in said[1], said
    os.unlink(log)
    for system, what in (("other", "build"), ("fedora", "suites")):
        status, out, err = run(system, "-y", what)
        assert status == 0 and "install the equivalents of: " in err, (out, err)
    assert not os.path.exists(log)


def read_chunks(mnt):
    import zarr
    assert np.array_equal(zarr.open(mnt, mode="r")["v"][:], np.arange(100))


def test_works_from_there(t):
    """Nothing knows where it was built: no path of the source tree, no RPATH; the installed program
    mounts, and finds the plugins that were installed with it."""
    root = t.path("root")
    make(t, root, "install", prefix="/usr", **PLACES)
    program = root + "/usr/bin/nczarrfs"
    plugins = root + PLACES["PLUGINDIR"]
    for path in [program] + [os.path.join(plugins, n) for n in os.listdir(plugins)]:
        with open(path, "rb") as f:
            data = f.read()
        if not t.sanitized:
            assert os.fsencode(ROOT) + b"/" not in data, f"{path} names {ROOT}"
        if shutil.which("readelf"):
            _, out, _ = t.run("readelf", "-dW", path)
            assert "(NEEDED)" in out and "PATH)" not in out, out
    status, out, err = t.run(program, "filters", "-v", env={"HDF5_PLUGIN_PATH": plugins})
    assert status == 0, err
    for name in os.listdir(plugins):
        assert name in out + err, f"{name} is not found: {out}{err}"
    status, out, _ = t.run("make", "-s", "-C", ROOT, "print-version",
                           env={"MAKEFLAGS": "", "MAKELEVEL": ""})
    version = out.strip()
    status, out, err = t.run(program, "--version")
    assert f"nczarrfs {version}" in out + err
    path = t.path("a.nc")
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(100), chunks=(10,), compression=1)
    t.binary = program
    with t.mount(path) as m:
        t.call(read_chunks, m.path)


def test_container_and_pod(t):
    """The recipe's commands are shell, what it copies is there; the pod's version is ours, and its
    options are those of the program: the first thing that is wrong is the source."""
    folder = os.path.join(ROOT, "scripts", "container")
    loader = SourceFileLoader("recipe", os.path.join(folder, "try-recipe"))
    recipe = module_from_spec(spec_from_loader("recipe", loader))
    loader.exec_module(recipe)
    words = recipe.instructions(os.path.join(folder, "Containerfile"))
    assert {w for w, _ in words} <= {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME",
                                     "ENTRYPOINT", "CMD"}
    for word, rest in words:
        if word == "RUN":
            status, _, err = t.run("sh", "-n", "-c", rest)
            assert status == 0, err
            for script in re.findall(r"\bscripts/[a-z-]+", rest):
                assert os.access(os.path.join(ROOT, script), os.X_OK), script
    try:
        import yaml
    except ImportError:
        raise Skip("no python3-yaml") from None
    with open(os.path.join(folder, "pod.yaml"), encoding="utf-8") as f:
        pod = yaml.safe_load(f)
    sidecar = pod["spec"]["initContainers"][0]
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as f:
        version = re.search(r"^VERSION := (.*)$", f.read(), re.M).group(1)
    assert sidecar["image"] == f"nczarrfs:{version}" and sidecar["restartPolicy"] == "Always"
    args = sidecar["args"]
    options = args[args.index("-o") + 1].replace("/cache", t.path("cache"))
    assert ",disk_cache_size=" in options and ",cache_size=" not in options, options
    os.mkdir(t.path("data"))
    os.mkdir(t.path("cache"))
    status, _, err = t.run(t.binary, "-o", options, t.path("nothing.zarr"), t.path("data"))
    assert status == 1 and "no such file or directory" in err, err
