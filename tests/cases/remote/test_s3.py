# SPDX-License-Identifier: BSD-3-Clause
"""S3: requests, errors and credentials, against a small S3 of ours (tests/lib/s3_server.py), by a
program for tests (tests/tools/objects.c); mounts are in test_s3_mounts.py."""
import json
import os
import time
import urllib.parse

from lib.s3_server import Refused, S3Server, verify
from lib.web import Handler, WebServer

KEYS = {"AKIDTEST00000001": "sEcReT/+zarr"}
KEY, SECRET = "AKIDTEST00000001", KEYS["AKIDTEST00000001"]
ODD = ["sp ace", "plus+sign", "q'uote(1)!*", "tilde~", "\u00fcn\u00ef/\u00e9", "pct%25x", "a=b&c",
       "col:on@at", "do..ts", ".zattrs", "semi;co,ma", "hash#q?", "$dollar", "[br]{ace}", "%2F"]


class Row:
    def __init__(self, line):
        words = line.split("\t")
        self.rc, self.size, self.etag = int(words[0]), int(words[1]), words[2]
        self.off, self.len, self.text = int(words[3]), int(words[4]), words[5]
        self.entries = []


def clean(**env):
    """An environment without credentials of its own."""
    full = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    full.update({"HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true", "http_proxy": "",
                 "https_proxy": ""})
    full.update(env)
    return full


def signed(**env):
    return clean(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, **env)


def ask(t, s3, commands, *options, env=None, bucket="b", root="", timeout=60, name="commands"):
    """Rows of the answers."""
    tool = os.path.join(os.path.dirname(t.binary), "tests", "objects")
    url = s3.url.replace("127.0.0.1", "localhost") if "-v" in options else s3.url
    where = [] if "-e" in options else ["-e", url]
    script = t.path(name)
    with open(script, "w", encoding="utf-8") as f:
        f.write("".join("\t".join(str(w) for w in c) + "\n" for c in commands))
    args = " ".join([f"'{tool}'"] + where + list(options) + [bucket, f"'{root}'"])
    full = dict(env if env is not None else signed())
    status, out, err = t.run("env", "-i", *[f"{k}={v}" for k, v in full.items()], "sh", "-c",
                             f"{args} < '{script}'", timeout=timeout)
    for secret in list(s3.keys.values()) + list(s3.tokens.values()):
        assert secret not in out + err, "a secret was shown"
    assert status == 0, err
    rows, entries = [], []
    for line in out.splitlines():
        if line.startswith("entry\t"):
            entries.append(tuple(line.split("\t")[1:]))
        else:
            rows.append(Row(line))
            rows[-1].entries, entries = sorted(entries), []
    assert len(rows) == len(commands), out + err
    return rows


def content(t, name):
    with open(t.path(name), "rb") as f:
        return f.read()


def write(t, name, data):
    with open(t.path(name), "wb") as f:
        f.write(data)
    return t.path(name)


def test_keys(t):
    """Odd keys are signed, sent and listed as they are, in both styles."""
    data = write(t, "in", b"hello")
    for style in ([], ["-v"]):
        with S3Server(KEYS, {"b": {}}) as s3:
            commands = [("put", k, data) for k in ODD] + [("all", k, 99, t.path("o")) for k in ODD]
            rows = ask(t, s3, commands + [("deep", "")], *style, root="r t/+1")
            assert [r.rc for r in rows] == [0] * len(rows), [r.text for r in rows]
            assert not s3.said, s3.said
            assert set(s3.buckets["b"]) == {"r t/+1/" + k for k in ODD}
            assert {e[0] for e in rows[-1].entries} == set(ODD)
            if style:
                assert all(h["Host"].startswith("b.localhost:") for h in s3.heads)


def test_ranges(t):
    data = bytes(range(256)) * 40
    n = len(data)
    with S3Server(KEYS, {"b": {"k": data, "empty": b""}}) as s3:
        o = t.path("o")
        etag = s3.buckets["b"]["k"].etag
        for what, off, size in ((("part", "k", 5, 20, o), 5, 20), (("part", "k", 0, n, o), 0, n),
                                (("part", "k", n - 3, 99, o), n - 3, 3),
                                (("tail", "k", 7, o), n - 7, 7), (("tail", "k", n + 9, o), 0, n),
                                (("all", "k", n, o), 0, n)):
            row = ask(t, s3, [what])[0]
            assert (row.rc, row.off, row.len, row.size, row.etag) == (0, off, size, n, etag), what
            assert content(t, "o") == data[off:off + size], what
        assert len(s3.asked) == 6, s3.asked  # one request each
        rows = ask(t, s3, [("part", "k", n, 4, o), ("part", "empty", 0, 4, o),
                           ("tail", "empty", 4, o), ("all", "k", n - 1, o), ("all", "empty", 0, o),
                           ("head", "k"), ("head", "no"), ("part", "no", 0, 9, o),
                           ("all", "no", 9, o)])
        assert [(r.rc, r.size, r.len) for r in rows[:6]] == [
            (0, n, 0), (0, 0, 0), (0, 0, 0), (-34, n, 0), (0, 0, 0), (0, n, 0)]
        assert [r.rc for r in rows[6:]] == [-2, -2, -2]
        rows = ask(t, s3, [("part", "k", 0, 9, o, etag), ("part", "k", 0, 9, o, '"old"'),
                           ("head", "k", etag), ("head", "k", '"old"')])
        assert [r.rc for r in rows] == [0, -116, -114, 0], [r.text for r in rows]


def test_listing(t):
    names = {f"r/a{i:03}/zarr.json": b"{}" for i in range(25)}
    names.update({f"r/f&<{i}": b"xyz" for i in range(5)})
    names.update({"r/": b"", "r/a000/": b"", "rest": b"", "r/x//y": b""})
    with S3Server(KEYS, {"b": names}) as s3:
        s3.page = 7
        rows = ask(t, s3, [("list", ""), ("deep", "a001"), ("list", "none"), ("list", "a002")],
                   root="r")
        assert [r.rc for r in rows] == [0] * 4, [r.text for r in rows]
        assert {e[0] for e in rows[0].entries} == {f"a{i:03}" for i in range(25)} | {
            f"f&<{i}" for i in range(5)} | {"x"}
        assert {e[1] for e in rows[0].entries} == {"dir", "3"}
        assert [e[0] for e in rows[1].entries] == ["zarr.json"] and not rows[2].entries
        pages = [a for a in s3.asked if "prefix=r%2F&" in a[1] + "&"]
        assert len(pages) == 5 and len(set(pages)) == 5, pages


def bad_list(text):
    def fault(handler):
        if "list-type=2" not in handler.path:
            return False
        handler.say(200, text.encode(), Content_Type="application/xml")
        return True
    return fault


TRUNCATED = "<IsTruncated>true</IsTruncated><NextContinuationToken>"


def test_listing_damaged(t):
    """What is no listing is an error, never an empty folder. SECURITY S54"""
    head = '<?xml version="1.0"?>'
    row = "<Contents><Key>r/k</Key><Size>1</Size></Contents>"
    bad = {
        "doctype": head + '<!DOCTYPE x [<!ENTITY e "y">]><ListBucketResult>&e;</ListBucketResult>',
        "early": head + "<ListBucketResult>" + row,
        "empty": "",
        "html": "<html><body>sign in</body></html>",
        "deep": "<ListBucketResult>" + "<a>" * 99 + "</a>" * 99 + "</ListBucketResult>",
        "long": "<ListBucketResult><Contents><Key>" + "k" * 9999 + "</Key></Contents>",
        "size": f"<ListBucketResult>{row.replace('>1<', '>-1<')}</ListBucketResult>",
        "endless": f"<ListBucketResult>{row}<IsTruncated>true</IsTruncated></ListBucketResult>",
        "again": f"<ListBucketResult>{row}<IsTruncated>true</IsTruncated>"
                 "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
    }
    with S3Server(KEYS, {"b": {}}) as s3:
        for name, text in bad.items():
            s3.fault = bad_list(text)
            row_ = ask(t, s3, [("list", "")], root="r")[0]
            assert row_.rc == -74, (name, row_.rc, row_.text)


def test_listing_without_end(t):
    """Pages that lead back to others, and empty ones that always lead on, are an error.
    SECURITY S54"""
    row = "<Contents><Key>r/k{0}</Key><Size>1</Size></Contents>"
    pages = {"circle": lambda n: row.format(n) + f"{TRUNCATED}{(n + 1) % 7}",
             "empty": lambda n: f"{TRUNCATED}{n + 1}"}
    with S3Server(KEYS, {"b": {}}) as s3:
        for name, page in pages.items():
            count = [0]

            def fault(h, page=page, count=count):
                if h.command != "GET" or "list-type" not in h.path:
                    return False
                count[0] += 1
                h.say(200, f"<ListBucketResult>{page(count[0] - 1)}</NextContinuationToken>"
                           "</ListBucketResult>".encode())
                return True
            s3.fault = fault
            row_ = ask(t, s3, [("list", "")], root="r")[0]
            assert row_.rc == -74, (name, row_.rc, row_.text)
            assert count[0] < 300, (name, count[0])


def test_writing(t):
    small, big = write(t, "s", b"one"), write(t, "big", os.urandom(65 << 20))
    with S3Server(KEYS, {"b": {}}) as s3:
        rows = ask(t, s3, [("put", "k", small, "absent"), ("put", "k", small, "absent"),
                           ("put", "k", small, '"%s"' % ("0" * 32)), ("put", "big", big),
                           ("put", "big", big, "absent"), ("remove", "k"), ("remove", "k")])
        assert [r.rc for r in rows] == [0, -17, -116, 0, -17, 0, 0], [r.text for r in rows]
        assert s3.buckets["b"]["big"].data == content(t, "big") and not s3.uploads
        assert rows[3].size == 65 << 20 and rows[3].etag.endswith('-5"')
        s3.conditions = False
        rows = ask(t, s3, [("put", "n", small, "absent"), ("put", "k" * 1024, small),
                           ("put", "k" * 1025, small)])
        assert [r.rc for r in rows] == [-95, 0, -34], [r.text for r in rows]
        assert "kkkk" in rows[2].text and "1025" in rows[2].text
        # a byte that changes on the way is refused
        s3.fault = lambda h: setattr(h, "sent", b"two") if h.command == "PUT" else False
        row = ask(t, s3, [("put", "x", small)])[0]
        assert row.rc < 0 and "SHA256" in row.text and "x" not in s3.buckets["b"], row.text


def test_parts_fail(t):
    """A part that cannot be sent: the upload is given up, nothing is there."""
    big = write(t, "big", bytes(65 << 20))

    def fault(handler):
        if "partNumber=3" not in handler.path:
            return False
        handler.say(403, b"<Error><Code>AccessDenied</Code></Error>")
        return True
    with S3Server(KEYS, {"b": {}}, fault=fault) as s3:
        row = ask(t, s3, [("put", "big", big)])[0]
        assert row.rc == -13, row.text
        assert not s3.uploads and not s3.buckets["b"]


def lose_answer(t, content, etag):
    """Put b"one", if there is no object. The answer is lost, and the request that is tried again
    meets an object with this content and ETag. Returns the result and the server's answers."""
    small = write(t, "s", b"one")
    lost = []

    def fault(handler):
        if handler.command != "PUT" or lost:
            return False
        lost.append(1)
        objects = handler.server.web.buckets["b"]
        objects["k"] = type(objects["o"])(content, etag)
        handler.close_connection = True
        handler.connection.close()
        return True
    with S3Server(KEYS, {"b": {"o": b""}}, fault=fault) as s3:
        row = ask(t, s3, [("put", "k", small, "absent")])[0]
        assert lost
        assert (412, "PreconditionFailed") in s3.said
        return row


def test_lost_answer(t):
    """The answer to a conditional PUT is lost; the request that is tried again meets its own
    object."""
    row = lose_answer(t, b"one", None)
    assert row.rc == 0, row.text


def test_lost_answer_kms(t):
    """The same if the ETag is not the MD5 of the object, as with keys of KMS: the object is ours
    only if its bytes are."""
    etag = '"%s"' % ("5" * 32)
    row = lose_answer(t, b"one", etag)
    assert row.rc == 0, row.text
    row = lose_answer(t, b"two", etag)
    assert row.rc == -17, (row.rc, row.text)


def test_errors(t):
    """Nothing but a key that is said to be missing is absent."""
    o = t.path("o")
    ops = [("head", "k"), ("part", "k", 0, 5, o), ("all", "k", 5, o), ("list", "")]
    with S3Server(KEYS, {"b": {}, "locked": {}}) as s3:
        s3.unlistable.add("locked")
        for row in ask(t, s3, ops, bucket="nobucket"):
            assert row.rc == -5 and "'nobucket' does not exist" in row.text, (row.rc, row.text)
        for row in ask(t, s3, ops, bucket="locked"):
            assert row.rc == -13 and "ListBucket" in row.text, (row.rc, row.text)
        wrong = clean(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY="wrong")
        for row in ask(t, s3, ops, env=wrong):
            assert row.rc == -13 and "SignatureDoesNotMatch" in row.text, (row.rc, row.text)
            assert "environment" in row.text
        unknown = clean(AWS_ACCESS_KEY_ID="AKIDNOBODY", AWS_SECRET_ACCESS_KEY="x")
        for row in ask(t, s3, ops, env=unknown):
            assert row.rc == -13 and "InvalidAccessKeyId" in row.text, (row.rc, row.text)
        for row in ask(t, s3, ops, env=clean()):
            assert row.rc == -13 and "looked for in: environment, profile 'default'" in row.text
        s3.fault = lambda h: h.say(404, b"<html>no</html>") or True
        for row in ask(t, s3, ops):
            assert row.rc == -5 and "S3 service" in row.text, (row.rc, row.text)
        page = b"<html><body>please sign in, and then ...</body></html>"
        s3.fault = lambda h: h.say(200, page, Content_Type="text/html") or True
        for row in ask(t, s3, ops[1:] + [("all", "k", 999, o)], "-t", "1"):
            assert row.rc in (-5, -27, -74), (row.rc, row.text)


def test_busy(t):
    """503 SlowDown, 200 with an error in it: tried again; an error after a while."""
    failed = []

    def slow(handler):
        if len(failed) % 2:
            failed.append(0)
            return False
        failed.append(1)
        status = 503 if len(failed) < 6 else 200
        handler.say(status, b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>",
                    Content_Type="application/xml")
        return True

    def always(handler):
        handler.say(200, b"<?xml version='1.0'?><Error><Code>InternalError</Code></Error>",
                    Content_Type="application/xml")
        return True
    o = t.path("o")
    with S3Server(KEYS, {"b": {"k": b"12345"}}, fault=slow) as s3:
        rows = ask(t, s3, [("part", "k", 0, 5, o), ("all", "k", 99, o), ("list", ""),
                           ("all", "k", 99, o), ("list", "")])
        assert [r.rc for r in rows] == [0] * 5, [r.text for r in rows]
        s3.fault = always
        rows = ask(t, s3, [("all", "k", 999, o), ("part", "k", 0, 5, o), ("list", "")], "-t", "2")
        assert all(r.rc in (-5, -27) for r in rows), [(r.rc, r.text) for r in rows]


def test_regions(t):
    """The bucket's region is found out, once."""
    o = t.path("o")
    with S3Server(KEYS, {"b": {"k": b"12345"}}) as s3:
        s3.regions["b"] = "eu-central-1"
        rows = ask(t, s3, [("head", "k"), ("all", "k", 9, o), ("head", "k"), ("list", "")])
        assert [r.rc for r in rows] == [0] * 4, [r.text for r in rows]
        assert len(s3.said) == 2, s3.said  # HEAD does not say which: GET does
        s3.forget()
        rows = ask(t, s3, [("head", "k")], "-r", "eu-central-1")
        assert rows[0].rc == 0 and not s3.said
        rows = ask(t, s3, [("all", "k", 9, o)], env=signed(AWS_REGION="eu-central-1"))
        assert rows[0].rc == 0 and not s3.said

        def moved(handler):  # as AWS says it
            if "/eu-central-1/s3" in handler.headers["Authorization"]:
                return False
            handler.say(301, b"<Error><Code>PermanentRedirect</Code></Error>",
                        x_amz_bucket_region="eu-central-1")
            return True
        s3.fault = moved
        rows = ask(t, s3, [("head", "k"), ("list", "")])
        assert [r.rc for r in rows] == [0, 0], [r.text for r in rows]
        # elsewhere: another host is not asked, the same one at another port is
        s3.fault = lambda h: h.say(307, Location="http://s3.example.com/b/k") or True
        row = ask(t, s3, [("all", "k", 9, o)])[0]
        assert row.rc == -5 and "s3.example.com" in row.text and "endpoint=" in row.text, row.text
        with S3Server(KEYS, {}, fault=lambda h: h.say(307, Location=s3.url + h.path) or True) as to:
            s3.fault = None
            row = ask(t, to, [("all", "k", 9, o)], "-r", "eu-central-1")[0]
            assert row.rc == 0, row.text


def test_clock(t):
    with S3Server(KEYS, {"b": {"k": b"12345"}}) as s3:
        s3.skew = 3 * 3600
        rows = ask(t, s3, [("part", "k", 0, 5, t.path("o")), ("list", ""), ("head", "k")])
        assert [r.rc for r in rows] == [0] * 3, [r.text for r in rows]
        assert s3.said == [(403, "RequestTimeTooSkewed")], s3.said


def test_payer(t):
    with S3Server(KEYS, {"b": {"k": b"12345"}}) as s3:
        s3.pays.add("b")
        assert ask(t, s3, [("head", "k")])[0].rc == -13
        assert [r.rc for r in ask(t, s3, [("head", "k"), ("list", "")], "-n")] == [0, 0]
        s3.public.add("b")
        s3.pays.clear()
        s3.forget()
        rows = ask(t, s3, [("head", "k"), ("list", "")], "-a")
        assert [r.rc for r in rows] == [0, 0]
        assert not any("Authorization" in h for h in s3.heads)
        assert ask(t, s3, [("head", "k")], env=clean())[0].rc == 0  # no keys: it is tried


# ---- credentials ----

class Giver(WebServer):
    """A server that gives out keys: IMDSv2, containers, STS."""

    def __init__(self, keys=None):
        super().__init__("/", handler=GiverHandler)
        self.lasts = 3600
        self.given = 0
        self.keys = keys or {}


def document(web):
    web.given += 1
    return json.dumps({"Code": "Success", "AccessKeyId": KEY, "SecretAccessKey": SECRET,
                       "Token": "tok/+=1", "Expiration": stamp(web.lasts)})


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class GiverHandler(Handler):
    def do_PUT(self):
        web = self.server.web
        web.asked.append((self.command, self.path, None))
        assert self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.say(200, b"imds-token")

    def answer(self, _body):
        web = self.server.web
        web.asked.append((self.command, self.path, None))
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path.startswith(roles):
            if self.headers.get("X-aws-ec2-metadata-token") != "imds-token":
                return self.say(401)
            self.say(200, b"a-role" if self.path == roles else document(web).encode())
        elif self.path == "/creds" and self.headers.get("Authorization") == "Bearer c":
            self.say(200, document(web).encode())
        else:
            self.say(404)

    def do_POST(self):
        web = self.server.web
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = dict(urllib.parse.parse_qsl(body.decode()))
        web.asked.append((self.command, form["Action"], None))
        web.form = form
        if form["Action"] == "AssumeRole":
            try:
                verify(self, body, web.keys, {}, None, service="sts")
            except Refused as r:
                return self.say(r.status, f"<ErrorResponse><Error><Code>{r.code}</Code></Error>"
                                "</ErrorResponse>".encode())
        elif form.get("WebIdentityToken") != "jwt.e30.sig":
            return self.say(400, b"<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error>"
                            b"</ErrorResponse>")
        web.given += 1
        self.say(200, (
            '<r xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><x><Credentials>'
            f"<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
            f"<SessionToken>tok/+=1</SessionToken><Expiration>{stamp(web.lasts)}</Expiration>"
            "</Credentials></x></r>").encode())


READ = [("head", "k"), ("list", "")]


def good(t, s3, env, *options):
    rows = ask(t, s3, READ, *options, env=env)
    assert [r.rc for r in rows] == [0, 0], [r.text for r in rows]


def test_files(t):
    """Profiles of config and credentials."""
    home = t.path("home")
    os.makedirs(home + "/.aws")
    with open(home + "/.aws/credentials", "w") as f:
        f.write(f"# keys\n[default]\naws_access_key_id = {KEY}\naws_secret_access_key={SECRET}\n"
                f"[session]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
                "aws_session_token = tok/+=1\n[half]\naws_access_key_id = x\n")
    with open(home + "/.aws/config", "w") as f:
        f.write("[default]\nregion = eu-west-9\ns3 =\n  addressing_style = path\n  region = no\n"
                "[profile far]\nregion=eu-central-1\nsource_profile = default\nrole_arn = arn:x\n"
                "[profile run]\ncredential_process = /bin/false\n"
                "[profile web]\nsso_session = s\n")
    with S3Server(KEYS, {"b": {"k": b"1"}}, region="eu-west-9") as s3:
        good(t, s3, clean(HOME=home))
        assert not s3.said  # the region, too, was the profile's
        s3.tokens[KEY] = "tok/+=1"
        good(t, s3, clean(HOME=home), "-p", "session")
        good(t, s3, clean(HOME=home, AWS_PROFILE="session"))
        good(t, s3, clean(AWS_SHARED_CREDENTIALS_FILE=home + "/.aws/credentials",
                          AWS_PROFILE="session"))
        for profile, word in (("none", "'none' does not exist"), ("run", "credential_process"),
                              ("web", "SSO"), ("half", "only one of")):
            row = ask(t, s3, READ[:1], "-p", profile, env=clean(HOME=home))[0]
            assert row.rc == -13 and word in row.text, row.text
        s3.public.add("b")
        good(t, s3, clean(HOME=home), "-p", "no")
        with open(home + "/.aws/config", "a") as f:
            f.write("[default]\nnonsense\n")
        row = ask(t, s3, READ[:1], env=clean(HOME=home))[0]
        assert row.rc == -22 and "line 15" in row.text, row.text


def test_services(t):
    """Containers, instances, roles, web identity."""
    home = t.path("home")
    os.makedirs(home + "/.aws")
    with open(t.path("jwt"), "w") as f:
        f.write("jwt.e30.sig\n")
    with open(home + "/.aws/config", "w") as f:
        f.write("[profile base]\naws_access_key_id = AKIDBASE\n"
                "aws_secret_access_key = base-secret\n"
                "[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
                "external_id = ex\n[profile two]\nrole_arn = arn:two\nsource_profile = role\n"
                "[profile circle]\nrole_arn = arn:c\nsource_profile = circle\n")
    with S3Server(KEYS, {"b": {"k": b"1"}}) as s3, Giver({"AKIDBASE": "base-secret"}) as web:
        s3.tokens[KEY] = "tok/+=1"
        imds = clean(AWS_EC2_METADATA_SERVICE_ENDPOINT=web.url)
        del imds["AWS_EC2_METADATA_DISABLED"]
        good(t, s3, imds)
        assert len(web.asked) == 3, web.asked  # token, role, keys: once
        good(t, s3, clean(AWS_CONTAINER_CREDENTIALS_FULL_URI=web.url + "/creds",
                          AWS_CONTAINER_AUTHORIZATION_TOKEN="Bearer c"))
        identity = clean(AWS_WEB_IDENTITY_TOKEN_FILE=t.path("jwt"), AWS_ROLE_ARN="arn:r",
                         AWS_ENDPOINT_URL_STS=web.url)
        good(t, s3, identity)
        assert web.form["RoleArn"] == "arn:r"
        role = clean(HOME=home, AWS_ENDPOINT_URL_STS=web.url)
        good(t, s3, role, "-p", "role")
        assert web.form["ExternalId"] == "ex" and web.given == 4
        row = ask(t, s3, READ[:1], "-p", "circle", env=role)[0]
        assert row.rc in (-13, -22), row.text
        # what was named and fails is an error that names it, not the next place
        uri = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
        for env, word in ((clean(**{uri: web.url + "/creds"}), "container"),
                          (clean(**{uri: "http://example.com/"}), "https"),
                          (dict(identity, AWS_WEB_IDENTITY_TOKEN_FILE=t.path("none")), "none"),
                          (dict(identity, AWS_ROLE_ARN=""), "AWS_ROLE_ARN")):
            row = ask(t, s3, READ[:1], env=env)[0]
            assert row.rc < 0 and row.rc != -2 and word in row.text, (row.rc, row.text)


def test_renewal(t):
    """Keys that end soon are renewed before they do."""
    with S3Server(KEYS, {"b": {"k": b"1"}}) as s3, Giver() as web:
        s3.tokens[KEY] = "tok/+=1"
        env = clean(AWS_CONTAINER_CREDENTIALS_FULL_URI=web.url + "/creds",
                    AWS_CONTAINER_AUTHORIZATION_TOKEN="Bearer c")
        web.lasts = -1
        rows = ask(t, s3, [("head", "k")] * 3, env=env)
        assert [r.rc for r in rows] == [0] * 3 and web.given == 3
        web.lasts = 3600
        rows = ask(t, s3, [("head", "k")] * 3, env=env)
        assert [r.rc for r in rows] == [0] * 3 and web.given == 4


def test_rotation(t):
    """Keys in a file that the service calls expired: somebody wrote others by now."""
    home = t.path("home")
    os.makedirs(home + "/.aws")

    def rotate(token):
        with open(home + "/.aws/credentials", "w") as f:
            f.write(f"[default]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
                    f"aws_session_token={token}\n")

    def fault(handler):
        if handler.headers.get("x-amz-security-token") == "old":
            rotate("new")
        return False
    with S3Server(KEYS, {"b": {"k": b"1"}}, fault=fault) as s3:
        s3.tokens[KEY] = "new"
        for op in (("part", "k", 0, 1, t.path("o")), ("list", ""), ("head", "k")):
            rotate("old")
            s3.forget()
            row = ask(t, s3, [op], env=clean(HOME=home))[0]
            assert row.rc == 0, (op, row.text)
            assert {x[1] for x in s3.said} <= {"ExpiredToken"}, s3.said
        s3.fault = None
        rotate("old")
        row = ask(t, s3, [("all", "k", 9, t.path("o"))], env=clean(HOME=home))[0]
        assert row.rc == -13 and "expired (ExpiredToken)" in row.text, (row.rc, row.text)


def test_rotation_of_parts(t):
    """Keys that end while an object is sent in parts: the thread that sends finds others, and the
    parts that were refused are sent again."""
    home = t.path("home")
    os.makedirs(home + "/.aws")
    big = write(t, "big", os.urandom(1 << 16) * (65 << 4))

    def rotate(token):
        with open(home + "/new", "w") as f:
            f.write(f"[default]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
                    f"aws_session_token={token}\n")
        os.rename(home + "/new", home + "/.aws/credentials")
        s3.tokens[KEY] = token  # another part may be refused from here on

    def fault(handler):
        if "partNumber=3&" in handler.path and s3.tokens[KEY] == "old":
            rotate("new")
        return False
    with S3Server(KEYS, {"b": {}}, fault=fault) as s3:
        rotate("old")
        row = ask(t, s3, [("put", "big", big)], env=clean(HOME=home))[0]
        assert row.rc == 0 and s3.tokens[KEY] == "new", row.text
        assert s3.buckets["b"]["big"].data == content(t, "big")
        refused = [a for a in s3.asked if "partNumber=3&" in a[1]]
        assert len(refused) == 2 and {x[1] for x in s3.said} == {"ExpiredToken"}, s3.said


def test_google(t):
    """Google's: region "auto", keys that were written down, nobody else's services are asked."""
    with S3Server(KEYS, {"b": {"k": b"1"}}, region="auto") as s3, Giver() as web:
        good(t, s3, signed(), "-g")
        s3.public.add("b")
        imds = clean(AWS_EC2_METADATA_SERVICE_ENDPOINT=web.url)
        del imds["AWS_EC2_METADATA_DISABLED"]
        good(t, s3, imds, "-g")
        assert not web.asked and not s3.said, (web.asked, s3.said)


def test_no_ranges(t):
    """A service that sends everything: the part of it that was asked for is kept."""
    def fault(handler):
        del handler.headers["Range"]
        return False
    data = os.urandom(3 << 20)
    keys = dict(KEYS)
    with S3Server(keys, {"b": {"k": data}}, fault=fault) as s3:
        s3.public.add("b")
        o = t.path("o")
        for off, n in ((0, 100), (1 << 20, 1 << 20), ((3 << 20) - 5, 100), (3 << 20, 4)):
            row = ask(t, s3, [("part", "k", off, n, o)], "-a")[0]
            assert (row.rc, row.size, row.off) == (0, 3 << 20, off), row.text
            assert content(t, "o") == data[off:off + n]
