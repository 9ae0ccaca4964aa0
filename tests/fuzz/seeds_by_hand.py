#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""seeds_by_hand.py [TARGET ...]: the first inputs of targets that no library of others makes files
for, written anew in tests/fuzz/seeds; what run.py --merge found stays."""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(HERE, "seeds")


def piece(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<H", len(data)) + data


URLS = [
    "https://example.com/a/b.zarr", "http://user:pa%20ss@host.example:8080/x?y=z&sig=abc#mode=s3",
    "s3://bucket/key/with%20space", "http://[::1]:9000/p", "file:///tmp/x.nc",
        "HTTPS://EXAMPLE.com",
    "http://h/?X-Amz-Signature=1&token=2", "http://u@h/%41%zz", "gs3://b/k?", "http://h:0/", "x://",
    "http://127.0.0.1:65535/%F0%9F%98%80",
]
ADDRESSES = URLS + [
    "s3://bucket/a.zarr#mode=zarr,s3&aws.profile=work&aws.region=eu-west-1",
    "https://bucket.s3.eu-west-1.amazonaws.com/a/b.zarr#mode=nczarr,s3",
    "https://s3.us-east-1.amazonaws.com/bucket/a.nc#mode=bytes",
    "https://storage.googleapis.com/b/k", "file://x.zarr#mode=zarr,file", "/plain/path.nc",
    "http://h/x#mode=dap2", "http://h/x#noxarray", "[mode=zarr]https://h/x.zarr",
    "gs3://bucket/tree#mode=zarr,consolidated&xarray",
]
OPTIONS = [
    "filter=none,cache_size=64M,mode=nczarr", "filter=*,zstd,5,default_chunk_size=1M",
    "filter=v1&/g/v2,shuffle|deflate,4,quantize=*,bitgroom,3", "rw,create,chunks=v,10,20,noxattr",
    "unlimited=time,x,allow_other,max_threads=4", "shards=8M,zarr_format=3,dimension_separator=/",
    "a.nc\n/mnt\n-o\nfilter=keep,ro", "info\n--json\nhttps://h/x.nc", "--help", "--version",
    "-f\n-d\n-ofsname=a\\,b,timeout=5\ns3://b/x.zarr\n/mnt", "refs\nx.nc\n-\n-oinline",
    "recover\na\nb\nc\n-ostate_dir=/x", "chunks=/g/*,1,1,filter=a\\\\,b,lz4,none",
    "max_connections=5,max_attempts=3,revalidate=0,private_redirects,insecure,profile=p,region=r",
    "endpoint=http://127.0.0.1:9000,s3_addressing=virtual,anonymous,requester_pays\n",
    "filters\n--json",
    "mount\nx\ny\n-o\nattr_timeout=3,entry_timeout=1\n-s", "-odisk=1", "cache_dir=/c,cache_size=1G",
]
RC = [
    "AWS.PROFILE=work\nAWS.REGION=eu-west-1\n# comment\nHTTP.TIMEOUT=30\n",
    "[https://host.example:8080/data]HTTP.CREDENTIALS.USERPASSWORD=name:secret\n",
    "[host.example:8080]HTTP.CREDENTIALS.USER=n\n[host.example:8080/]HTTP.CREDENTIALS.PASSWORD=p",
    "HTTP.SSL.VERIFYPEER=0\nHTTP.NETRC=/x/netrc\nHTTP.SSL.CAINFO = /ca\r\n",
    "[http://[::1]:1/x]AWS.ACCESS_KEY_ID=a\n[]HTTP.TIMEOUT\n[x",
]
AWS = [
    ("[profile work]\nregion = eu-west-1\nrole_arn=arn:x\nsource_profile = base\n",
     "[work]\naws_access_key_id = AK\naws_secret_access_key = SK\naws_session_token=T\n"),
    ("[default]\nregion=x\n[profile work]\ns3 =\n  addressing_style = path\nsso_session=a\n",
     "# c\n; d\n[other]\naws_access_key_id=1\n[work]\naws_access_key_id=2\n"),
    ("[work\n", ""), ("[sso-session work]\nx=1\n[profile\twork]\ncredential_process=y\n", "[work]"),
]
NETRC = [
    "machine host login me password \"a \\\"b\" \ndefault login any password p\n",
    "machine other login x\nmacdef init\nget a\n\nmachine host\nlogin y # c\npassword z account q",
    "default login a:b password c", "machine 127.0.0.1 login l password",
]
LISTING = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>t/</Prefix>
<KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>
<NextContinuationToken>1/xyz+=</NextContinuationToken>
<Contents><Key>t/.zarray</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>
<ETag>&quot;abc&quot;</ETag><Size>300</Size><StorageClass>STANDARD</StorageClass></Contents>
<Contents><Key>t/a%20b+c</Key><ETag>W/"x"</ETag><Size>0</Size></Contents>
<CommonPrefixes><Prefix>t/v/</Prefix></CommonPrefixes></ListBucketResult>"""
XML = [
    LISTING, "<Error><Code>NoSuchKey</Code><Message>no</Message><Region>eu</Region></Error>",
    "<a:ListBucketResult xmlns:a='x'><a:Contents><a:Key>k</a:Key><a:Size>9</a:Size></a:Contents>"
    "</a:ListBucketResult>", "<InitiateMultipartUploadResult><UploadId>u&amp;1</UploadId>"
    "</InitiateMultipartUploadResult>", "<!DOCTYPE a [<!ENTITY x 'y'>]><ListBucketResult/>",
    "<ListBucketResult><Contents><Size>18446744073709551615</Size></Contents></ListBucketResult>",
    "<ListBucketResult>" + "<a>" * 17, "<AssumeRoleResponse><Credentials><AccessKeyId>A"
    "</AccessKeyId></Credentials></AssumeRoleResponse>",
]


def answer(status, headers, body, end=0):
    """One answer as fuzz_http.c reads it."""
    return (struct.pack("<H", status) + b"".join(piece(h) for h in headers) + piece("")
            + b"".join(piece(b) for b in body) + piece("") + bytes([end]))


HTTP = [
    bytes([1]) + struct.pack("<H", 1000) + answer(
        200, ["HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n", "ETag: \"x\"\r\n", "\r\n"],
            ["hello"]),
    bytes([8]) + struct.pack("<HHB", 9, 10, 4) + answer(
        206, ["Content-Range: bytes 10-14/100\r\n", "Content-Length: 5\r\n",
              "Last-Modified: Mon, 02 Jan 2023 03:04:05 GMT\r\n"], ["he", "llo"]),
    bytes([8 + 4]) + struct.pack("<HHB", 9, 2, 4) + answer(
        200, ["Content-Length: 12\r\n"], ["abcd", "efghijkl"]),
    bytes([1]) + struct.pack("<H", 9) + answer(302, ["Location: https://other.example/x\r\n"], [])
    + answer(307, ["Location: ../y?z\r\n"], []) + answer(404, [],
        ["<Error><Code>NoSuchKey</Code>"]),
    bytes([0]) + struct.pack("<H", 9) + answer(301, ["Location: http://127.0.0.1/\r\n"], []),
    bytes([16]) + struct.pack("<H", 9) + answer(301, ["Location: http://10.0.0.1/\r\n"], [])
    + answer(301, ["Location: http://[::1]/a b\r\n"], []),
    bytes([2]) + struct.pack("<H", 9) + answer(
        503, ["Retry-After: 120\r\n", "Date: Mon, 02 Jan 2023 03:04:05 GMT\r\n",
              "Transfer-Encoding: chunked\r\n"], ["SlowDown", "<Code>SlowDown</Code>"]),
    bytes([64]) + struct.pack("<H", 9) + answer(416, ["Content-Range: bytes */100\r\n",
                                                      "Content-Encoding: gzip\r\n",
                                                      "x-amz-bucket-region: eu-west-1\r\n"], []),
    bytes([1 + 32]) + struct.pack("<H", 9) + answer(308, ["Location: //h2.example:444/p#f\r\n"],
        []),
]
KEYS = ('{"Code": "Success", "AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": "T", '
        '"Expiration": "2030-01-02T03:04:05Z"}')
STS = ("<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
       "<SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>"
       "<Expiration>2030-01-02T03:04:05.123Z</Expiration></Credentials></AssumeRoleResult>"
       "</AssumeRoleResponse>")


def served(*answers):
    return b"".join(struct.pack("<H", s) + piece(b) for s, b in answers)


SERVICES = [
    b"\0" + served((200, KEYS)), b"\0" + served((200, '{"AccessKeyId": 1}')),
    b"\1" + served((200, "TOKEN"), (200, "my role\nother"), (200, KEYS)),
    b"\1" + served((404, "")), b"\1" + served((200, "T"), (404, "")),
    b"\1" + served((200, "a b\r\nX: y")), b"\2" + served((200, STS)), b"\3" + served((200, STS)),
    b"\2" + served((403, "<Error><Code>AccessDenied</Code></Error>")),
    b"\4" + b"2026-11-22T10:00:00Z", b"\0042030-02-31T23:59:60.5+00:00", b"\0049999-12-31T00:00:00",
]
SIGN = [
    bytes([f]) + struct.pack("<I", 1369353600) + b"".join(piece(x) for x in (
        "GET", "examplebucket.s3.amazonaws.com", "/test.txt", "prefix=a&list-type=2&x", "us-east-1",
        "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "token",
        "Range: bytes=0-9", "x-amz-meta-a:  two   blanks ", "A:1", "a:2"))
    for f in (0, 1, 3, 7, 15)
] + [bytes([3, 0, 0, 0, 0]) + b"".join(piece(x) for x in ("", "", "", "", "", "", "", "",
    "nocolon"))]
CACHE = [
    bytes([f]) + b"".join(bytes([w]) + struct.pack("<I", off) + piece(data)
                          for w, off, data in rows)
    for f in (0, 1) for rows in (
        [(0, 0, "\xff" * 64)], [(1, 8, b"xx"), (3, 40, b"\0\0\1\0")], [(1, 70, b"")],
        [(4, 3, b"other")], [(0, 16, bytes(16)), (1, 5000, b"nzcache1" + bytes(40))],
    )
]
TEXT = [b"0", b"10K", b"18446744073709551615", b"5G", b"007", "\u00fc\u4e00\U0001f600".encode(),
        b"\xed\xa0\x80", b"\"\\\n\x01", struct.pack("<d", 0.1), struct.pack("<d", 1e300), bytes(8),
        struct.pack("<d", float("inf")), struct.pack("<d", float("nan")), b"\xc3\x28latin\xff"]
JSON = [
    b'{"zarr_format": 2, "shape": [10, 20], "chunks": [5, 5], "dtype": "<f4", "fill_value": NaN, '
    b'"order": "C", "filters": null, "compressor": {"id": "zlib", "level": 5}}',
    b'[1, -2, 3.5, 1e5, 0., .5, 1.e5, Infinity, -Infinity, 18446744073709551615, '
    b'-9223372036854775808]',
    b'{"a": {"b": [true, false, null, "x\\u00e9\\ud83d\\ude00\\n\\/"]}}', b'"\xff"',
        b'[[[[[[[[]]]]]]]]',
    b'{"a": 1, "a": 2}', b'5.0', b'1e400', b'-0', b'{"\\u0000": "\\u0000x"}', b'[1,]', b'123abc',
]


def rec(kind, flags, key, data=b""):
    return bytes([kind, flags]) + piece(key) + piece(data)


STAGE = [
    b"\0" + rec(1, 0, "v/0", b"data") + rec(2, 0, "g") + rec(3, 0, "old") + rec(1, 0, "g/x", b"y"),
    b"\4" + rec(1, 0, "a", b"1") + rec(5, 1, b"a\0b") + rec(4, 0, b"n\0base/k") + rec(6, 1, b"b\0c")
    + rec(3, 2, "b") + rec(2, 0, "dir") + rec(5, 0, b"c\0d/e", b"moved"),
    b"\2" + rec(1, 0, "v/0", b"data") + rec(1, 0, "v/1", b"d") + rec(3, 0, "v") + rec(2, 0, "v") * 3
    + struct.pack("<H", 100) + b"\xff",
    b"\2" + rec(1, 0, "v/0", b"data") * 6 + struct.pack("<H", 60), b"\1NZSTAGE1" + bytes(60),
    b"\0" + rec(1, 0, "../x") + rec(9, 0, "k"), b"\0" + rec(4, 0, b"a\0../b"), b"\0" + rec(5, 1,
        b"x\0y"),
]
PAGE = bytes(range(256)) * 4


def journal(flags, done, new_end, old, pages):
    out = bytes([flags, done]) + struct.pack("<H", new_end) + piece(old)
    for head, data in pages:
        out += head + piece(data)
    return out


JOURNAL = [
    journal(0, 1, 9000, PAGE * 8, [(b"\0", b"new" * 50), (b"\0", b"B" * 4096)]),
    journal(0, 0, 3000, PAGE * 9, [(b"\0", b"x")]), journal(0, 9, 20000, b"", []),
    journal(0, 2, 8192, PAGE * 8, [(b"\0", PAGE), (b"\0", PAGE[::-1] * 4)]),
    journal(1, 0, 5000, PAGE * 4, [(struct.pack("<QQ", 0, 0), b"y"), (struct.pack("<QQ", 9, 1),
        b"")]),
    journal(1, 0, 5000, PAGE, [(struct.pack("<QQ", 2**51, 2**40), b"y")]),
    journal(4, 0, 5000, PAGE * 4, [(b"\0", b"x"), (b"\0", b"y"), (b"\0", b"z")]) + b"\x10\x10\xff",
    journal(2, 0, 100, b"file", []) + b"NZJOURN\n\1\0\0\0", journal(8, 0, 900, PAGE * 2, [(b"\0",
        b"x")]),
]


def step(op, n, key):
    return bytes([b"AIPDRXVY".index(op.encode()), n]) + piece(key)


MANIFEST = [
    bytes([f]) + b"".join(rows) for f in (0, 1, 4, 5, 8) for rows in (
        [step("P", 0, "v/0"), step("P", 1, "n/c/0"), step("D", 2, "v/.zarray"), step("R", 3,
            ".zmetadata")],
        [step("A", 0, "v"), step("I", 0, "w"), step("X", 0, "g/.zgroup")],
        [step("V", 0, "v/.zarray"), step("D", 1, "v/.zarray"), step("Y", 0, "v/0")],
        [step("P", 0, "l/x"), step("P", 1, "f"), step("A", 0, "../outside")],
    )
] + [b"\2nczarrfs commit 1\n" + bytes(30)]


def parquet():
    found = []
    folder = os.path.join(SEEDS, "refs")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        if data[:4] == b"PAR1" and len(data) < 4000:
            found.append(b"\0" + data)
    rows = b"".join([b"\0" + struct.pack("<IH", 100, 50) + piece("s3://b/k"), b"\1"
        + piece(b"raw\0x"),
                     b"\2", b"\6" + struct.pack("<IH", 7, 8) + piece("s3://b/k")])
    return found + [b"\1" + rows, b"\1" + rows * 8, b"\2\x15\x02\x19\x2c\x18\x03abc\x00\x00\x00",
                    b"\3\x03\x20\x00\x03\x88\xc6\xfa\x08\x05",
                        b"\3\x20\x08\x00\x10\x01\x02\x03\x04",
                    b"\4\x0a\x00\x0a\x10hello\x0a\x05", b"\4\x06\x00\x06\x14abcdef"]


WRAP = [bytes([f, e]) + struct.pack("<I", n) + bytes(range(200)) * 3
        for f in range(8) for e, n in ((3, 1), (0, 100))] + [
    bytes([16, 3]) + struct.pack("<I", 2**31 - 30) + b"x" * 50,
    b"\x08\3\4" + b"\2\0\0\0ab\0\0\0\0\5\0\0\0\xc3\xa9\xe4\xb8\x80",
    b"\x08\1\1" + b"\xff\xff\xff\xff", b"\x09\0" + b"frame" * 9, b"\x09\4" + b"blosc" * 9,
]


def plan(rule, quant, kind, size, dims, access, filters, uniform=0):
    out = piece(rule) + piece(quant) + bytes([kind, size, len(dims)])
    for n, c in dims:
        out += struct.pack("<HB", n, c - 1)
    out += (bytes([access]) if kind != 8 else b"") + bytes([0, 1, uniform, len(filters)])
    for which, params in filters:
        out += bytes([which]) + b"".join(bytes([8, v]) for v in params)
        out += b"\0" if len(params) < 8 else b""
    return out


PLAN = [
    plan("", "", 3, 1, [(100, 50)], 0, [(0, [5])]),
    plan("*,zstd,5", "", 1, 2, [(100, 50), (7, 3)], 0, [(1, [4]), (0, [4])]),
    plan("shuffle|deflate,4", "*,bitgroom,3", 3, 2, [(100, 50)], 0, [(1, [4]), (11, [3])], 1),
    plan("v,none", "v,bitround,9", 3, 0x81, [(9, 9)], 1, [(2, [])]),
    plan("blosc,0,0,0,0,5,1,1", "", 2, 0, [], 0, [(8, [2, 2, 4, 0, 5, 1, 1])]),
    plan("", "", 8, 0, [(5, 2)], 2, [(0, [1])]), plan("szip,4,8", "", 1, 2, [(64, 64)], 0, [(16,
        [1])]),
    plan("", "granularbr,3", 5, 9, [(3, 2), (4, 3), (5, 4)], 0, [(3, [4, 8]), (4, [1]), (0, [1]),
        (2, [])]),
]
STATE = [b"\0/v\t1,5|2,4\nzarr_format\t3\ndimension_separator\t/\n/g/w\tnone\n", b"\0",
    b"\0zarr_format\t2",
         b"\1" + struct.pack("<IIIIIBB", 1 << 20, 4096, 0, 0, 7, 1, 2) + struct.pack("<6H", 0, 3,
             1, 1, 5, 9),
         b"\1" + struct.pack("<IIIIIBB", 5000, 6000, 0, 1, 7, 0, 0), b"\2NCRWMAP1" + bytes(70)]

BASE_LIST = (b"\0" b"00000000000000ff .zgroup\0" b"\0#cbf29ce484222325 .zgroup\0"
             b"\0" b"0000000000000000 v/.zattrs\0" b"\0" b"0123456789abc")
KEYS = [bytes([how]) + piece(text) + b"".join(piece(k) for k in keys) for how, text, keys in [
    (0, b"", [b".zgroup", b"v/0"]), (3, BASE_LIST, [b".zgroup", b"v/.zattrs"]),
    (1, BASE_LIST, [b"v/c.partial", b"a/../b", b"zarr.json"]), (2, b"x\0", [b".zmetadata"])]]

CONF = [
    "[defaults]\ncache_size = 64M\nrw\n\n[mount archive]\nsource = /data/year\ntarget = /mnt\n"
    "auto = no\n", "[source /data/*.nc]\nfilter = v,zstd,3\nfilter = *,deflate,1\nro = yes\n",
    "; words\n# more\n[source s3://b/*]\nanonymous\n"
    "[source https://host.example/*]\ntimeout = 5\n",
    "[mount a]\nsource = x.nc\ntarget = y\noptions = rw,cache_size=1M\n[mount a]\n",
    "\ufeff[defaults]\r\nmode = nczarr\r\nzarr_format = 3\r\n", "[defaults]\ncache_sise = 1\n",
    "[source *]\nsource = https://u:secret@host.example/x\n", "key = 1\n[",
    "[defaults]\n a = b\n  c"]


def sized(data, nul=False):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<Q", len(data) + nul) + data + b"\0" * nul


def join_form(path, units):
    """The form of an int16 array v(time, x) with units and a fill value: join_form.c."""
    dims = b"".join(struct.pack("<QQ", n, c) + sized(d, True)
                    for n, c, d in ((6, 2, "time"), (4, 4, "x")))
    kind = struct.pack("<BBI", 1, 0, 2)
    attrs = (sized("units", True) + struct.pack("<BIQB", 5, len(units), 1, 1) + sized(units) +
             sized("_FillValue", True) + struct.pack("<BIQB", 1, 2, 1, 0) + sized(b"\1\0"))
    return (sized(path, True) + kind + struct.pack("<BBBII", 0, 1, 0, 0, 2) + dims +
            sized(kind + struct.pack("<I", 0)) + sized(struct.pack("<4I", 2, 1, 2, 1)) +
            sized(b"\1\0") + struct.pack("<I", 2) + attrs)


def joins():
    """Index files of joined datasets, without magic number and checksum."""
    forms = [join_form("/v", "days since 2000-01-01"), join_form("/w", "K")]
    members = b"".join(
        sized(path, True) + bytes(56) + struct.pack("<QQIIII", 6, 0, 2, 0, 1, 0xffffffff) +
        sized(b"") for path in ("/d/a.nc", "/d/b10.nc", "/other.nc"))
    head = sized("time", True) + b"\0"
    return [head + bytes(16), head + struct.pack("<Q", 2) + b"".join(map(sized, forms)) +
            struct.pack("<Q", 3) + members]


def codecs():
    """A few of each codec's own inputs, with its number in front."""
    found = []
    for name in sorted(os.listdir(SEEDS)):
        number = name.rpartition("-")[2]
        if not number.isdigit():
            continue
        folder = os.path.join(SEEDS, name)
        for f in sorted(x for x in os.listdir(folder) if len(x) == 2)[:3]:
            with open(os.path.join(folder, f), "rb") as x:
                found.append(struct.pack("<I", int(number)) + x.read())
    return found


SERVE = (["\0" + x for x in ("/", "/t/0.0.0", "/a%20b/%C3%A9/", "/../x", "/%2e%2e/", "//a//",
                              "/%00")]
         + ["\1" + x for x in ("bytes=0-9", "bytes=-5", "bytes=7-", "bytes=5-2", "bytes=0-1,3-4",
                              "bytes=18446744073709551616-")]
         + ["\2" + x for x in ('"1f-0-2a-100"', 'W/"x", "1f-0-2a-100"', "*", '"a')]
         + ["\3" + x for x in ("localhost:8080", "127.0.0.1", "[::1]:1", "localhost.x", "[::1")]
         + ["\4" + "<a href='x'>&\""])


def first():
    return {
        "url": URLS, "address": ADDRESSES, "options": OPTIONS,
        "config": ["\0" + x for x in RC] + [b"\1" + piece(a) + b.encode() for a, b in AWS]
        + ["\2" + x for x in NETRC],
        "s3xml": XML, "http": HTTP, "services": SERVICES, "sign": SIGN, "diskcache": CACHE,
        "text": TEXT, "json": JSON, "stage": STAGE, "journal": JOURNAL, "manifest": MANIFEST,
        "parquet": parquet(), "wrap": WRAP, "plan": PLAN, "state": STATE,
        "serve": SERVE, "keys": KEYS, "conf": CONF, "codec": codecs(),
        "join": joins(),
    }


def main():
    for target, inputs in first().items():
        if sys.argv[1:] and target not in sys.argv[1:]:
            continue
        folder = os.path.join(SEEDS, target)
        os.makedirs(folder, exist_ok=True)
        for i, data in enumerate(inputs):
            with open(os.path.join(folder, f"{i:03}" if len(inputs) > 99 else f"{i:02}"),
                "wb") as f:
                f.write(data.encode() if isinstance(data, str) else data)


if __name__ == "__main__":
    main()
