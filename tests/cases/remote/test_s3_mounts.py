# SPDX-License-Identifier: BSD-3-Clause
"""Mounts from a small S3 of ours, which verifies signatures: both views show what they show of the
same dataset on a disk; few requests; refusals are errors and never fill values; no secret is ever
shown. Requests themselves are test_s3.py's; real services test_servers.py's."""
import errno
import os
import shutil

from lib import trees
from lib.s3_server import S3Server
from cases.remote.test_s3 import KEY, KEYS, SECRET
from cases.remote.test_servers import same_files, same_trees

N = 12  # chunks of the tree's first array


def environ(**more):
    """Of this test's process, and so of its mounts."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ.update({"HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}, **more)


def signed(**more):
    environ(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, **more)


def make_tree(path, consolidated=True):
    import numpy as np
    import zarr
    g = zarr.open_group(path, "w")
    a = g.create_dataset("a", data=np.arange(N * 50.).reshape(N, 50), chunks=(1, 50))
    a.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    b = g.require_group("deep er+").create_dataset("b", data=np.arange(7), chunks=(3,))
    b.attrs["_ARRAY_DIMENSIONS"] = ["z"]
    if consolidated:
        zarr.consolidate_metadata(path)
    return path


def make_file(path):
    import h5py
    import numpy as np
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(4000.).reshape(40, 100), chunks=(10, 100),
                         compression="gzip")
        f.create_dataset("texts", data=["one", "two"], dtype=h5py.string_dtype())
    return path


def read(path):
    with open(path, "rb", buffering=0) as f:
        return f.read()


def gets(s3):
    return [a for a in s3.asked if a[0] == "GET" and "list-type" not in a[1]]


def test_equal(t):
    """Trees, with consolidated documents and without, and a file, in both styles of addresses."""
    signed()
    make_tree(t.path("a.zarr"))
    make_tree(t.path("b.zarr"), False)
    make_file(t.path("f.nc"))
    with S3Server(KEYS) as s3:
        for name in ("a.zarr", "b.zarr", "f.nc"):
            s3.upload("b", t.path(name), "some folder/" + name)
        host = ["endpoint=" + s3.url.replace("127.0.0.1", "localhost"), "s3_addressing=virtual"]
        for name in ("a.zarr", "b.zarr", "f.nc"):
            for view in ("zarr", "nc"):
                options = host if name == "b.zarr" else ["endpoint=" + s3.url]
                with t.mount(t.path(name), "view=" + view) as near, \
                        t.mount("s3://b/some%20folder/" + name, "view=" + view, *options) as far:
                    if name == "f.nc":
                        t.call(trees.same, near.path, far.path)
                    else:
                        t.call(same_trees if view == "zarr" else same_files, near.path, far.path,
                               True)
        wrong = [s for s in s3.said if s[1] != "NoSuchKey"]
        assert not wrong, wrong


def test_requests(t):
    """A consolidated tree costs three requests at most before its first chunk, each chunk one GET,
    reading again nothing."""
    signed()
    make_tree(t.path("a.zarr"))
    with S3Server(KEYS) as s3:
        s3.upload("b", t.path("a.zarr"), "a.zarr")
        with t.mount("s3://b/a.zarr", "endpoint=" + s3.url, "view=zarr", "prefetch_size=0") as m:
            assert len(s3.asked) <= 3, s3.asked
            s3.forget()

            def chunks():
                for i in range(N):
                    read(os.path.join(m.path, f"a/{i}.0"))
            t.call(chunks)
            asked = gets(s3)
            assert len(asked) == len(set(a[1] for a in asked)) == N, asked
            assert not any(a[0] == "HEAD" for a in s3.asked), s3.asked
            s3.forget()
            t.call(chunks)
            assert not gets(s3), s3.asked


def refusal(t, s3, *words):
    with t.mount("s3://b/a.zarr", "endpoint=" + s3.url, check=False) as m:
        text = m.messages()
        assert m.status == 1 and len(text.splitlines()) == 1, text
        for word in words:
            assert word in text, text
        assert SECRET not in text and "wrong-secret" not in text


def test_refused(t):
    make_tree(t.path("a.zarr"))
    with S3Server(KEYS) as s3:
        s3.upload("b", t.path("a.zarr"), "a.zarr")
        environ()
        refusal(t, s3, "no credentials", "environment", "default")
        environ(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY="wrong-secret")
        refusal(t, s3, "SignatureDoesNotMatch", "environment")
        environ(AWS_PROFILE="nobody")
        refusal(t, s3, "profile 'nobody' does not exist")
        s3.public.add("b")
        environ()
        with t.mount("s3://b/a.zarr", "endpoint=" + s3.url, "anonymous") as m:
            t.call(read, os.path.join(m.path, "a.nc"))


# SEMANTICS E13
def test_forbidden_chunk(t):
    """Without permission to list, S3 says 403 of a chunk that is not there: that is an error, never
    a fill value."""
    signed()
    make_tree(t.path("a.zarr"))
    os.unlink(t.path("a.zarr/a/3.0"))
    with S3Server(KEYS) as s3:
        s3.upload("b", t.path("a.zarr"), "a.zarr")

        def chunk(top):
            assert len(read(os.path.join(top, "a/2.0"))) > 0
            try:
                read(os.path.join(top, "a/3.0"))
            except OSError as error:
                assert error.errno in (errno.EIO, errno.EACCES), error
            else:
                raise AssertionError("a chunk that may not be read was read")

        def values(top):
            import h5py
            try:
                with h5py.File(os.path.join(top, "a.nc"), "r") as f:
                    assert f["a"][2, 7] == 107
                    row = f["a"][3]
            except OSError:
                return
            raise AssertionError(f"values in place of what may not be read: {row[:4]}")
        for view, look in (("zarr", chunk), ("nc", values)):
            s3.unlistable.clear()
            with t.mount("s3://b/a.zarr", "endpoint=" + s3.url, "view=" + view) as m:
                s3.unlistable.add("b")
                t.call(look, m.path)
                assert (403, "AccessDenied") in s3.said


def test_places(t):
    """Credentials of files, of .ncrc and of the address; none of them is shown, whatever is
    logged."""
    home = t.path("home")
    os.makedirs(home + "/.aws")
    with open(home + "/.aws/credentials", "w") as f:
        f.write(f"[other]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
                "region=eu-south-7\n")
    make_tree(t.path("a.zarr"))
    with S3Server(KEYS, region="eu-south-7") as s3:
        s3.upload("b", t.path("a.zarr"), "a.zarr")
        ways = [("s3://b/a.zarr", {"AWS_PROFILE": "other"}, []),
                ("s3://b/a.zarr#aws.profile=other", {}, []),
                ("s3://b/a.zarr", {}, ["profile=other"]),
                (s3.url + "/b/a.zarr#mode=zarr,s3&aws.profile=other", {"AWS_ENDPOINT_URL": ""}, []),
                ("s3://b/a.zarr#mode=zarr&aws.profile=other", {"AWS_ENDPOINT_URL_S3": s3.url}, [])]
        for i, (address, env, options) in enumerate(ways):
            environ(**dict({"AWS_ENDPOINT_URL": s3.url}, **env))
            os.environ["HOME"] = home
            with t.mount(address, "debug", *options, foreground=True) as m:
                t.call(read, os.path.join(m.path, "a.nc"))
                text = m.messages() + str(read("/proc/mounts"))
                assert SECRET not in text and "Signature=" not in text
            assert (403, "AccessDenied") not in s3.said, (i, s3.said)
        shutil.rmtree(home + "/.aws")
        with open(home + "/.ncrc", "w") as f:
            f.write(f"AWS.ACCESS_KEY_ID={KEY}\nAWS.SECRET_ACCESS_KEY={SECRET}\n"
                    "AWS.REGION=eu-south-7\n")
        environ(AWS_ENDPOINT_URL=s3.url)
        os.environ["HOME"] = home
        with t.mount("s3://b/a.zarr") as m:
            t.call(read, os.path.join(m.path, "a.nc"))


def denied(s3):
    return {x[1] for x in s3.said} - {"ExpiredToken", "NoSuchKey", "NotModified"}


def test_rotation(t):
    """Keys in a file that end before each read, and before what is written is committed: the
    requests are refused, and sent again with those that are in the file by then."""
    home = t.path("home")
    os.makedirs(home + "/.aws")
    make_tree(t.path("a.zarr"))
    want = {f"a/{i}.0": read(t.path(f"a.zarr/a/{i}.0")) for i in range(N)}

    def rotate(token):
        s3.tokens[KEY] = token
        with open(home + "/.aws/credentials", "w") as f:
            f.write(f"[default]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
                    f"aws_session_token={token}\n")
    environ()
    os.environ["HOME"] = home
    with S3Server(KEYS) as s3:
        rotate("first")
        s3.upload("b", t.path("a.zarr"), "a.zarr")
        with t.mount("s3://b/a.zarr", "endpoint=" + s3.url, "view=zarr",
                     "filter=keep", "prefetch_size=0") as m:
            def same(path, data):
                assert read(os.path.join(m.path, path)) == data, path
            for i, (path, data) in enumerate(want.items()):
                rotate(f"t{i}")
                t.call(same, path, data)
            refused = [x for x in s3.said if x[1] == "ExpiredToken"]
            assert len(refused) >= N and not denied(s3), s3.said

        def write(file):
            import netCDF4
            with netCDF4.Dataset(file, "a") as d:
                d["a"][0] = d["a"][1]
        with t.mount("s3://b/a.zarr", "endpoint=" + s3.url, "rw") as m:
            rotate("written")
            t.call(write, os.path.join(m.path, "a.nc"))
        assert s3.buckets["b"]["a.zarr/a/0.0"].data == want["a/1.0"]
        assert not denied(s3), s3.said
