# SPDX-License-Identifier: BSD-3-Clause
"""Real servers on this machine (scripts/remote-servers, make check-remote): Ceph's gateway and
Swift, which verify every signature, each in its own way, and nginx. Every dataset of the corpus,
uploaded, shows what it shows here, through both views; Swift, which is slow, has a sample."""
import fcntl
import functools
import html
import json
import os
import re
import shutil
import urllib.parse

from lib import trees, writing
from lib.context import Skip, corpus
from lib.s3_server import ask
from lib.served import serve
from cases.write.test_rw_remote import FILES as WORKS, UNLIMITED, files, same_bytes, same_file
from cases.remote.test_dask import archive_at, make_archive, need_cluster
from cases.remote.test_s3 import ODD, ask as tool, clean, content, write

LIMIT = 240.0
FILES, TREES = ("netcdf4", "hdf5", "classic", "hdf4", "zip"), ("zarr2", "zarr3")
SAMPLE = 12  # every so many datasets Swift has one, too

# row -> why it is not shown as it is here
VDS = "a virtual dataset has its length from other files, which are looked for here only"
DIFFERS = {"hdf5/brtnfld-hdf5/4_vds.h5": VDS, "hdf5/brtnfld-hdf5/vds-eiger.h5": VDS}


def servers():
    path = os.environ.get("NCZARRFS_SERVERS")
    if not path:
        return {}
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def server(name):
    found = servers().get(name)
    if not found:
        raise Skip(f"{name} is not there: make check-remote starts it")
    return dict(found, name=name)


class At:
    """A service for the tool and for mounts."""

    def __init__(self, found):
        self.found, self.url = found, found["url"]
        self.keys, self.tokens = {found["access"]: found["secret"]}, {}

    def env(self, **more):
        return clean(AWS_ACCESS_KEY_ID=self.found["access"],
                     AWS_SECRET_ACCESS_KEY=self.found["secret"], **more)


def once(name, make):
    """make() in whichever test comes first; the others wait for it."""
    here = os.path.dirname(os.environ["NCZARRFS_SERVERS"])
    with open(os.path.join(here, name + ".lock"), "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0, 2)
        if f.tell() == 0:
            make()
            f.write("made\n")


def bucket(found, name):
    ask(found, "PUT", name, ok=(200, 409))


def upload(t, found, name, files):
    """[(key, path)] by the program under test."""
    rows = tool(t, At(found), [("put", key, path) for key, path in files], bucket=name,
                env=At(found).env(), timeout=200)
    wrong = [(f[0], r.text) for f, r in zip(files, rows) if r.rc]
    assert not wrong, wrong[:5]


def below(path, key):
    if os.path.isfile(path):
        return [(key, path)]
    return [(os.path.join(key, os.path.relpath(os.path.join(d, n), path)), os.path.join(d, n))
            for d, _, names in os.walk(path) for n in names]


def stock(t, root):
    """The whole corpus at Ceph's, before the first dataset is compared."""
    found = server("rgw")
    bucket(found, "corpus")
    upload(t, found, "corpus", [f for k in FILES + TREES for f in below(os.path.join(root, k), k)])


def credentials(found):
    """For mounts of this test's process."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    if "access" in found:
        os.environ["AWS_ACCESS_KEY_ID"] = found["access"]
        os.environ["AWS_SECRET_ACCESS_KEY"] = found["secret"]


def at_rgw(t, root, row):
    found = server("rgw")
    once("corpus", lambda: stock(t, root))
    return found, f"s3://corpus/{row}", ["endpoint=" + found["url"]]


def at_swift(t, root, row):
    found = server("swift")
    bucket(found, "sample")
    upload(t, found, "sample", below(os.path.join(root, row), row))
    return found, f"s3://sample/{row}", ["endpoint=" + found["url"]]


def at_nginx(t, root, row):
    found = server("nginx")
    source, place = os.path.join(root, row), os.path.join(found["root"], row)
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.isdir(source):
            serve(source, os.path.dirname(place), os.path.basename(place))
        else:
            shutil.copyfile(source, place)
    return found, f"{found['url']}/{row}" + ("#mode=zarr" if os.path.isdir(source) else ""), []


def same_trees(near, far, listed):
    from clients import same
    print(same.trees(near, far, listed), "files")


def same_files(near, far, _listed):
    from clients import same

    def only(mnt):
        names = os.listdir(mnt)
        assert len(names) == 1, f"one file expected: {names}"
        return os.path.join(mnt, names[0])
    print(same.files(only(near), only(far)), "arrays")


def compare(t, near, far, view, tree, listed):
    if not tree:
        t.call(trees.same, near.path, far.path, timeout=100)
    else:
        t.call(same_trees if view == "zarr" else same_files, near.path, far.path, listed,
               timeout=100)


def dataset(root, row, places, t):
    """Both views, from every place."""
    if row in DIFFERS:
        raise Skip(DIFFERS[row])
    tree = os.path.isdir(os.path.join(root, row))
    asked = 0
    where = []
    for place in places:
        try:
            where.append((place is not at_nginx,) + place(t, root, row))
        except Skip as why:
            print(why)
    if not where:
        raise Skip("no server")
    for view in ("zarr", "nc"):
        source = os.path.join(root, row)
        if tree and not where[0][0]:
            source = os.path.join(where[0][1]["root"], row)  # as it is served
        elif not tree:  # alone: links to other files are followed here only
            source = shutil.copy(source, t.tmp)
        with t.mount(source, "view=" + view, check=False) as near:
            near.damaged = True
            for listed, found, address, options in where:
                credentials(found)
                with t.mount(address, "view=" + view, *options, check=False) as far:
                    far.damaged = True
                    assert near.status == far.status, (
                        f"{view}, {address}: {near.messages()!r} and {far.messages()!r}")
                    if near.status == 0:
                        compare(t, near, far, view, tree, listed)
                        asked += 1
    print(asked, "comparisons")


def rows(root):
    with open(os.path.join(root, "MANIFEST.tsv"), encoding="utf-8") as f:
        paths = [line.split("\t")[0].rstrip("/") for line in list(f)[1:]]
    return [q for p in paths if p.split("/")[0] in FILES + TREES for q in datasets(root, p)]


def datasets(root, row):
    """A folder without a document of its own is several datasets."""
    docs = (".zgroup", ".zarray", "zarr.json", ".zmetadata", ".nczarr")
    path = os.path.join(root, row)
    if not os.path.isdir(path) or any(os.path.exists(os.path.join(path, d)) for d in docs):
        return [row]
    return [row + "/" + name for name in sorted(os.listdir(path))]


def no_servers(_t):
    raise Skip("no servers: make check-remote starts them")


def cases():
    if not servers():
        yield "all", no_servers
        return
    root = corpus()
    for i, row in enumerate(rows(root) if root else []):
        places = [at_rgw] + ([at_swift] if i % SAMPLE == 0 else [])
        if os.path.isdir(os.path.join(root, row)):
            # what nginx serves may have its documents in one, which is another tree
            yield row + "@nginx", functools.partial(dataset, root, row, [at_nginx])
        else:
            places.append(at_nginx)
        yield row, functools.partial(dataset, root, row, places)
    for name in ("rgw", "swift"):
        for f in (keys, errors, ranges, conditions):
            yield f"{name}-{f.__name__}", functools.partial(f, name)
        few = 2 if name == "swift" else 99
        yield f"{name}-written_file", functools.partial(written_file, name, WORKS[:few])
    yield "rgw-styles", styles
    yield "rgw-dask", dask_archive


# ---- requests ----

def keys(name, t):
    """Odd keys are signed as both verifiers want them."""
    at = At(server(name))
    bucket(at.found, "odd")
    odd = [k for k in ODD if k != "%2F"] + ["a//b"]
    data = write(t, "in", b"hello")
    for key in odd:  # as another client writes them
        ask(at.found, "PUT", "odd", "other/" + key, body=key.encode())
    rows_ = tool(t, at, [("put", k, data) for k in odd], bucket="odd", root="own", env=at.env())
    assert [r.rc for r in rows_] == [0] * len(odd), [r.text for r in rows_]
    for key in odd:
        assert ask(at.found, "GET", "odd", "own/" + key)[2] == b"hello", key
        row = tool(t, at, [("all", key, 99, t.path("o"))], bucket="odd", root="other",
                   env=at.env())[0]
        assert row.rc == 0 and content(t, "o") == key.encode(), (key, row.text)
    row = tool(t, at, [("deep", "")], bucket="odd", root="own", env=at.env())[0]
    assert {e[0] for e in row.entries} == set(odd), row.entries


def errors(name, t):
    at = At(server(name))
    bucket(at.found, "errors")
    o = t.path("o")
    ops = [("head", "k"), ("part", "k", 0, 5, o), ("all", "k", 5, o)]
    for row in tool(t, at, ops, bucket="errors", env=at.env()):
        assert row.rc == -2, (row.rc, row.text)
    for row in tool(t, at, ops + [("list", "")], bucket="nobucket", env=at.env()):
        assert row.rc == -5 and "does not exist" in row.text, (row.rc, row.text)
    wrong = clean(AWS_ACCESS_KEY_ID=at.found["access"], AWS_SECRET_ACCESS_KEY="wrong")
    for row in tool(t, at, ops, bucket="errors", env=wrong):
        assert row.rc == -13 and "SignatureDoesNotMatch" in row.text, (row.rc, row.text)
    for row in tool(t, at, ops, bucket="errors", env=clean()):
        assert row.rc in (-13, -5) and row.rc != -2, (row.rc, row.text)


def ranges(name, t):
    at = At(server(name))
    bucket(at.found, "ranges")
    data = os.urandom(100000)
    for key, body in (("k", data), ("empty", b"")):
        ask(at.found, "PUT", "ranges", key, body=body)
    o = t.path("o")
    for what, off, size in ((("part", "k", 5, 20, o), 5, 20), (("all", "k", 100000, o), 0, 100000),
                            (("part", "k", 99990, 99, o), 99990, 10),
                            (("tail", "k", 7, o), 99993, 7), (("tail", "k", 200000, o), 0, 100000)):
        row = tool(t, at, [what], bucket="ranges", env=at.env())[0]
        assert (row.rc, row.off, row.len, row.size) == (0, off, size, 100000), (what, row.text)
        assert content(t, "o") == data[off:off + size], what
    rows_ = tool(t, at, [("part", "k", 100000, 4, o), ("part", "empty", 0, 4, o),
                         ("tail", "empty", 4, o), ("all", "k", 10, o), ("head", "k")],
                 bucket="ranges", env=at.env())
    assert [(r.rc, r.size) for r in rows_] == [(0, 100000), (0, 0), (0, 0), (-34, 100000),
                                               (0, 100000)], [r.text for r in rows_]
    etag = rows_[-1].etag
    rows_ = tool(t, at, [("part", "k", 0, 4, o, etag), ("part", "k", 0, 4, o, '"%s"' % ("0" * 32)),
                         ("head", "k", etag)], bucket="ranges", env=at.env())
    assert [r.rc for r in rows_] == [0, -116, -114], [r.text for r in rows_]


def conditions(name, t):
    """If-None-Match and If-Match where the service has them, -EOPNOTSUPP where not; parts."""
    at = At(server(name))
    place = f"cond-{os.getpid()}"
    bucket(at.found, place)
    one, two = write(t, "one", b"one"), write(t, "two", b"two")
    big = write(t, "big", os.urandom(65 << 20))
    rows_ = tool(t, at, [("put", "k", one, "absent"), ("put", "k", two, "absent"),
                         ("put", "k", one)], bucket=place, env=at.env())
    has = rows_[0].rc == 0
    assert [r.rc for r in rows_] == ([0, -17, 0] if has else [-95, -95, 0])
    etag = rows_[2].etag
    rows_ = tool(t, at, [("put", "k", two, '"%s"' % ("0" * 32)), ("put", "k", two, etag)],
                 bucket=place, env=at.env())
    assert [r.rc for r in rows_] == ([-116, 0] if has else [-95, -95]), [r.text for r in rows_]
    row = tool(t, at, [("put", "big", big)], bucket=place, env=at.env(), timeout=200)[0]
    assert row.rc == 0 and row.size == 65 << 20, row.text
    assert ask(at.found, "GET", place, "big")[2] == content(t, "big")
    rows_ = tool(t, at, [("remove", "big"), ("remove", "big"), ("head", "big")], bucket=place,
                 env=at.env())
    assert [r.rc for r in rows_] == [0, 0, -2], [r.text for r in rows_]


def small_tree(t, found):
    """A tree in bucket "styles"; its path here."""
    import numpy as np
    import zarr
    path = t.path("a.zarr")
    g = zarr.open_group(path, "w")
    a = g.create_dataset("a", data=np.arange(600.).reshape(20, 30), chunks=(5, 30))
    a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    zarr.consolidate_metadata(path)
    bucket(found, "styles")
    upload(t, found, "styles", below(path, "a.zarr"))
    return path


# SEMANTICS K14
def dask_archive(t):
    """An archive in a bucket that all may read, by references and a Dask cluster; the references
    are made of the files before they are uploaded."""
    found = server("rgw")
    need_cluster(t)
    make_archive(t.path("data"), 12)
    place = f"dask-{os.getpid()}"
    bucket(found, place)
    upload(t, found, place, below(t.path("data"), "old data"))
    policy = {"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{place}/*"}]}
    ask(found, "PUT", place, query="policy", body=json.dumps(policy).encode())
    archive_at(t, t.path("data"), f"{found['url']}/{place}/old%20data")


def styles(t):
    """The bucket in the path, in the host's name; TLS and HTTP/2, with a certificate to trust."""
    found = server("rgw")
    path = small_tree(t, found)
    credentials(found)
    ways = [[f"endpoint={found['url']}"], [f"endpoint={found['host_style']}",
                                              "s3_addressing=virtual"]]
    if "tls" in found:
        ways.append([f"endpoint={found['tls']}", "ca_file=" + found["ca"]])
    with t.mount(path) as near:
        for options in ways:
            with t.mount("s3://styles/a.zarr", *options) as far:
                t.call(same_files, near.path, far.path, True)
        if "tls" in found:
            with t.mount("s3://styles/a.zarr", f"endpoint={found['tls']}", check=False) as far:
                assert far.status == 1 and "certificate" in far.messages(), far.messages()


# ---- writing ----

def listing(found, name):
    """{key: bytes} of a bucket, as another client sees it."""
    keys_, token = [], ""
    while True:
        query = "list-type=2" + ("&continuation-token=" + token if token else "")
        text = ask(found, "GET", name, query=query)[2].decode()
        keys_ += [html.unescape(k) for k in re.findall(r"<Key>(.*?)</Key>", text)]
        more = re.search(r"<NextContinuationToken>(.*?)</NextContinuationToken>", text)
        if not more or "<IsTruncated>true" not in text:
            break
        token = urllib.parse.quote(html.unescape(more.group(1)), safe="")
    return {k: ask(found, "GET", name, k)[2] for k in keys_}


def below_root(found, name):
    return {k[len("store.zarr/"):]: v for k, v in listing(found, name).items()}


def written_file(name, works, t):
    """What netCDF-C writes through the virtual file is, object by object, what it writes into a
    directory, and reads back."""
    found = server(name)
    place = f"nc-{os.getpid()}"
    bucket(found, place)
    credentials(found)
    os.environ["HOME"] = t.tmp
    local, address, options = t.path("store.zarr"), f"s3://{place}/store.zarr", (
        "endpoint=" + found["url"], *UNLIMITED)
    with t.mount(local, "rw", "create", *UNLIMITED) as near:
        with t.mount(address, "rw", "create", *options, foreground=True) as far:
            for work in works:
                for m in near, far:
                    writing.file_work(t, work, os.path.join(m.path, "store.nc"))
        same_bytes(files(local), below_root(found, place))
        with t.mount(address, *options) as again:
            writing.models(t, same_file, os.path.join(near.path, "store.nc"),
                           os.path.join(again.path, "store.nc"))
