# SPDX-License-Identifier: BSD-3-Clause
"""A small S3 for tests: buckets in memory, every signature verified (AWS Signature V4, written from
its specification and with nothing in common with the program's own), objects with ETags, ranges and
conditions, listings in pages, uploads in parts, both styles of addresses.

    with S3Server(keys={"AKID": "secret"}, buckets={"b": {"a/0": b"x"}}) as s3:
        mount("s3://b/a", "endpoint=" + s3.url)
        assert ("GET", "/b/a/0", None) in s3.asked

What can be set at any time: public (buckets that may be read unsigned), unlistable (buckets in
which a missing key is 403), regions {bucket: region}, pays (buckets whose requester pays),
tokens {access key: session token}, skew (seconds that its clock is ahead), page (keys of one
page), conditions (False: 501), fault(handler) as of web.py. said: (status, code) of each answer
that failed."""
import calendar
import email.utils
import hashlib
import hmac
import re
import time
import urllib.parse
import xml.sax.saxutils

from lib.web import Handler, WebServer

EMPTY = hashlib.sha256(b"").hexdigest()
SKEW_MAX = 15 * 60


class Refused(Exception):
    def __init__(self, status, code, **headers):
        super().__init__(code)
        self.status, self.code, self.headers = status, code, headers
        self.more = ""


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, date, region, service, text):
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = mac(key, part)
    return mac(key, text).hex()


def strict(text):
    return urllib.parse.quote(text, safe="-_.~")


def canonical_query(query):
    """From what was sent, decoded and encoded again: a client that encodes in another way signs
    something else."""
    pairs = []
    for part in query.split("&") if query else []:
        name, _, value = part.partition("=")
        pairs.append((strict(urllib.parse.unquote(name)), strict(urllib.parse.unquote(value))))
    return "&".join(f"{n}={v}" for n, v in sorted(pairs))


def verify(handler, body, keys, tokens, region, service="s3", now=None):
    """The access key that signed; Refused otherwise. region: None takes any."""
    auth = handler.headers.get("Authorization")
    m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=(.+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?"
                     r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", auth or "")
    if not m:
        raise Refused(400, "AuthorizationHeaderMalformed")
    access, day, used, serving, names, sign = m.groups()
    if access not in keys:
        raise Refused(403, "InvalidAccessKeyId")
    stamp = handler.headers.get("x-amz-date", "")
    if not re.fullmatch(r"\d{8}T\d{6}Z", stamp) or stamp[:8] != day or serving != service:
        raise Refused(403, "AccessDenied")
    if region and used != region:
        refused = Refused(400, "AuthorizationHeaderMalformed")
        refused.more = f"<Region>{region}</Region>"
        raise refused
    then = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    if abs(then - (now or time.time())) > SKEW_MAX:
        raise Refused(403, "RequestTimeTooSkewed")
    names = names.split(";")
    must = {"host"} | {k.lower() for k in handler.headers if k.lower().startswith("x-amz-")}
    if names != sorted(names) or not must <= set(names):
        raise Refused(403, "AccessDenied")
    digest = handler.headers.get("x-amz-content-sha256")
    if service == "s3" and not digest:
        raise Refused(400, "InvalidRequest")
    digest = digest or hashlib.sha256(body).hexdigest()
    path, _, query = handler.path.partition("?")
    lines = []
    for name in names:
        values = handler.headers.get_all(name) or []
        lines.append(name + ":" + ",".join(" ".join(v.split()) for v in values) + "\n")
    path = urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~") or "/"
    request = "\n".join((handler.command, path, canonical_query(query), "".join(lines),
                         ";".join(names), digest))
    scope = f"{day}/{used}/{service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(request.encode()).hexdigest()))
    if not hmac.compare_digest(signature(keys[access], day, used, service, text), sign):
        raise Refused(403, "SignatureDoesNotMatch")
    token = handler.headers.get("x-amz-security-token")
    if tokens.get(access) != token:
        raise Refused(400, "ExpiredToken" if token else "InvalidToken")
    if digest != "UNSIGNED-PAYLOAD" and digest != hashlib.sha256(body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch")
    return access


class Object:
    def __init__(self, data, etag=None):
        self.data = data
        self.etag = etag or '"%s"' % hashlib.md5(data).hexdigest()
        self.time = time.time()


def xml_name(text):
    return xml.sax.saxutils.escape(text)


class S3Handler(Handler):
    def answer(self, _body):
        s3 = self.server.web
        length = int(self.headers.get("Content-Length") or 0)
        self.sent = self.rfile.read(length) if length else b""
        with s3.lock:
            s3.asked.append((self.command, self.path, self.headers.get("Range")))
            s3.heads.append(dict(self.headers.items()))
        if s3.delay:
            time.sleep(s3.delay)  # the line's, not the test's
        if s3.fault and s3.fault(self):
            return
        try:
            self.serve(s3)
        except Refused as r:
            with s3.lock:
                s3.said.append((r.status, r.code))
            text = (f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{r.code}</Code>'
                    f"<Message>no</Message>{r.more}</Error>").encode()
            self.say(r.status, b"" if self.command == "HEAD" or r.status == 304 else text,
                     Content_Type="application/xml", **r.headers)

    def do_PUT(self):
        self.answer(True)

    def do_POST(self):
        self.answer(True)

    def do_DELETE(self):
        self.answer(True)

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(timestamp or self.server.web.now(), usegmt=True)

    def place(self, s3):
        """(bucket, key) of either style."""
        path = urllib.parse.unquote(self.path.partition("?")[0])
        host = self.headers.get("Host", "").split(":")[0]
        if host.endswith("." + s3.domain):
            return host[:-len(s3.domain) - 1], path[1:]
        bucket, _, key = path[1:].partition("/")
        return bucket, key

    def serve(self, s3):
        bucket, key = self.place(s3)
        query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))
        region = s3.regions.get(bucket, s3.region)
        reads = self.command in ("GET", "HEAD")
        if "Authorization" in self.headers:
            verify(self, self.sent, s3.keys, s3.tokens, region, now=s3.now())
        elif not (reads and bucket in s3.public):
            raise Refused(403, "AccessDenied")
        if bucket in s3.moved:
            raise Refused(301, "PermanentRedirect", x_amz_bucket_region=s3.moved[bucket])
        if bucket not in s3.buckets:
            raise Refused(404, "NoSuchBucket")
        if bucket in s3.pays and self.headers.get("x-amz-request-payer") != "requester":
            raise Refused(403, "AccessDenied")
        objects = s3.buckets[bucket]
        if not key:
            return self.listing(s3, bucket, objects, query)
        if "uploads" in query or "uploadId" in query:
            return self.parts(s3, objects, key, query)
        getattr(self, "object_" + self.command.lower())(s3, bucket, objects, key)

    def find(self, s3, bucket, objects, key):
        if key not in objects:
            if bucket in s3.unlistable:
                raise Refused(403, "AccessDenied")
            raise Refused(404, "NoSuchKey")
        return objects[key]

    def conditions(self, obj):
        if self.headers.get("If-Match") not in (None, "*", obj.etag):
            raise Refused(412, "PreconditionFailed")
        if self.headers.get("If-None-Match") in ("*", obj.etag):
            raise Refused(304, "NotModified", ETag=obj.etag)

    def object_get(self, s3, bucket, objects, key):
        obj = self.find(s3, bucket, objects, key)
        self.conditions(obj)
        span = self.span(len(obj.data))
        if span == "bad":
            raise Refused(416, "InvalidRange")
        headers = {"ETag": obj.etag, "Accept_Ranges": "bytes",
                   "Last_Modified": email.utils.formatdate(obj.time, usegmt=True)}
        if not span:
            return self.say(200, obj.data, **headers)
        first, last = span
        self.say(206, obj.data[first:last + 1], Content_Range="bytes %d-%d/%d" % (
            first, last, len(obj.data)), **headers)

    def object_head(self, s3, bucket, objects, key):
        obj = self.find(s3, bucket, objects, key)
        self.conditions(obj)
        self.say(200, b"", ETag=obj.etag, Content_Length=str(len(obj.data)),
                 Last_Modified=email.utils.formatdate(obj.time, usegmt=True))

    def may_write(self, s3, objects, key):
        absent, match = self.headers.get("If-None-Match"), self.headers.get("If-Match")
        if (absent or match) and not s3.conditions:
            raise Refused(501, "NotImplemented")
        if absent and key in objects:
            raise Refused(412, "PreconditionFailed")
        if match and key not in objects:
            raise Refused(404, "NoSuchKey")
        if match and objects[key].etag.strip('"') != match.strip('"'):
            raise Refused(412, "PreconditionFailed")

    def object_put(self, s3, bucket, objects, key):
        with s3.lock:
            self.may_write(s3, objects, key)
            obj = objects[key] = Object(self.sent)
        self.say(200, b"", ETag=obj.etag)

    def object_delete(self, s3, bucket, objects, key):
        with s3.lock:
            objects.pop(key, None)
        self.say(204)

    def listing(self, s3, bucket, objects, query):
        if self.command == "PUT":
            return self.say(200)
        if self.command == "HEAD":
            return self.say(200)
        if bucket in s3.unlistable:
            raise Refused(403, "AccessDenied")
        if query.get("list-type") != "2":
            raise Refused(501, "NotImplemented")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = query.get("continuation-token", "")
        encode = (lambda t: urllib.parse.quote_plus(t, safe="/")) if (
            query.get("encoding-type") == "url") else xml_name
        rows, seen, last = [], set(), ""
        truncated = False
        with s3.lock:
            for key in sorted(objects, key=lambda k: k.encode()):
                if not key.startswith(prefix):
                    continue
                at = key.find(delimiter, len(prefix)) if delimiter else -1
                name = key[:at + 1] if at >= 0 else key
                if name in seen or (after and name <= after[6:]):
                    continue
                if len(rows) == s3.page:
                    truncated = True
                    break
                seen.add(name)
                last = name
                rows.append(f"<CommonPrefixes><Prefix>{encode(name)}</Prefix></CommonPrefixes>"
                            if at >= 0 else self.row(encode(name), objects[key]))
        token = f"<NextContinuationToken>{xml_name('a+b/= ' + last)}</NextContinuationToken>"
        coded = "<EncodingType>url</EncodingType>" if "encoding-type" in query else ""
        self.say(200, ('<?xml version="1.0" encoding="UTF-8"?>'
                       '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                       f"<Name>{bucket}</Name>{coded}{''.join(rows)}{token if truncated else ''}"
                       f"<IsTruncated>{str(truncated).lower()}</IsTruncated>"
                       "</ListBucketResult>").encode(), Content_Type="application/xml")

    def row(self, name, obj):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(obj.time))
        return (f"<Contents><Key>{name}</Key><LastModified>{stamp}</LastModified>"
                f"<ETag>{xml.sax.saxutils.escape(obj.etag, {chr(34): '&quot;'})}</ETag>"
                f"<Size>{len(obj.data)}</Size><StorageClass>STANDARD</StorageClass></Contents>")

    def parts(self, s3, objects, key, query):
        with s3.lock:
            if "uploads" in query:
                name = "up/+%d" % len(s3.begun)
                s3.begun.append(name)
                s3.uploads[name] = {}
                return self.say(200, f"<R><UploadId>{name}</UploadId></R>".encode())
            up = s3.uploads.get(query["uploadId"])
            if up is None:
                raise Refused(404, "NoSuchUpload")
            if self.command == "PUT":
                obj = up[int(query["partNumber"])] = Object(self.sent)
                return self.say(200, b"", ETag=obj.etag)
            if self.command == "DELETE":
                del s3.uploads[query["uploadId"]]
                return self.say(204)
            self.may_write(s3, objects, key)
            told = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag>",
                              self.sent.decode())
            for number, etag in told:
                if up[int(number)].etag != xml.sax.saxutils.unescape(etag, {"&quot;": '"'}):
                    raise Refused(400, "InvalidPart")
            digest = hashlib.md5(b"".join(bytes.fromhex(up[int(n)].etag.strip('"'))
                                          for n, _ in told)).hexdigest()
            objects[key] = Object(b"".join(up[int(n)].data for n, _ in told),
                                  '"%s-%d"' % (digest, len(told)))
            del s3.uploads[query["uploadId"]]
        self.say(200, b"<CompleteMultipartUploadResult/>")


class S3Server(WebServer):
    def __init__(self, keys=None, buckets=None, region="us-east-1", domain="localhost",
                 delay=0.0, fault=None, tls=None, handler=S3Handler):
        super().__init__("/", delay=delay, fault=fault, tls=tls, handler=handler)
        self.keys = dict(keys or {})
        self.buckets = {b: {k: Object(d) for k, d in o.items()}
                        for b, o in (buckets or {}).items()}
        self.region, self.domain = region, domain
        self.public, self.unlistable, self.pays = set(), set(), set()
        self.regions, self.moved, self.tokens = {}, {}, {}
        self.skew, self.page, self.conditions = 0, 1000, True
        self.uploads, self.begun = {}, []
        self.heads, self.said = [], []

    def now(self):
        return time.time() + self.skew

    def upload(self, bucket, folder, key=""):
        """Every file below a folder (or one file) becomes an object."""
        import os
        objects = self.buckets.setdefault(bucket, {})
        if os.path.isfile(folder):
            with open(folder, "rb") as f:
                objects[key] = Object(f.read())
            return
        for base, _, names in os.walk(folder):
            for name in names:
                full = os.path.join(base, name)
                with open(full, "rb") as f:
                    below = os.path.relpath(full, folder)
                    objects[(key + "/" if key else "") + below] = Object(f.read())

    def forget(self):
        with self.lock:
            self.asked.clear()
            self.heads.clear()
            self.said.clear()


# ---- a client ----

def ask(server, method, bucket, key="", query="", body=b"", ok=(200, 204, 206)):
    """One request to a service as tests know it ({"url", "access", "secret"}), signed from the
    specification: (status, headers, body)."""
    import http.client
    url = urllib.parse.urlsplit(server["url"])
    path = "/" + bucket + ("/" + urllib.parse.quote(key, safe="/-_.~") if key else "")
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(body).hexdigest()
    request = (f"{method}\n{path}\n{canonical_query(query)}\nhost:{url.netloc}\n"
               f"x-amz-content-sha256:{digest}\nx-amz-date:{stamp}\n\n"
               f"host;x-amz-content-sha256;x-amz-date\n{digest}")
    scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    sign = signature(server["secret"], stamp[:8], "us-east-1", "s3", text)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    try:
        connection.request(method, path + ("?" + canonical_query(query) if query else ""), body, {
            "x-amz-date": stamp, "x-amz-content-sha256": digest,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={server['access']}/{scope}, "
            f"SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={sign}"})
        answer = connection.getresponse()
        data = answer.read()
    finally:
        connection.close()
    assert answer.status in ok, f"{method} {path}: {answer.status} {data[:300]!r}"
    return answer.status, answer.headers, data
