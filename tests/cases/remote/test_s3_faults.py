# SPDX-License-Identifier: BSD-3-Clause
"""Faults of an object store while it lists, writes, removes and is asked what an object is: right
answers or an error, in time; never a folder with less in it than there is, never a write that is
said to be done and is not."""
import concurrent.futures
import io

from cases.remote.test_s3 import KEYS, ask, write
from lib.s3_server import S3Server

NAMES = {f"r/n{i}": b"x" * i for i in range(9)}
ENOENT = -2


def real(h):
    """(head, body) of the right answer, which is not sent; what is asked for is done."""
    out, h.wfile = h.wfile, io.BytesIO()
    try:
        h.fault_off = True
        h.answer_right()
        head, _, body = h.wfile.getvalue().partition(b"\r\n\r\n")
    finally:
        h.wfile = out
    return head + b"\r\n\r\n", body


def cut(h, n):
    head, body = real(h)
    return h.raw(head, body[:n] if n >= 0 else body[:len(body) + n])


def with_head(h, old, new):
    head, body = real(h)
    return h.raw(head.replace(old, new, 1), body)


def with_body(h, make):
    head, body = real(h)
    body = make(body)
    lines = [x for x in head.split(b"\r\n") if x and not x.lower().startswith(b"content-length")]
    return h.raw(b"\r\n".join(lines + [b"Content-Length: %d" % len(body), b"", b""]), body)


def status(code, data=b"<Error><Code>InternalError</Code></Error>"):
    def fault(h):
        h.say(code, data)
        return True
    return fault


def after(h, answer):
    """It is done, but that is not said."""
    real(h)
    return answer(h)


FAULTS = {
    "reset": lambda h: h.reset(),
    "reset_after": lambda h: after(h, lambda h: h.reset()),
    "nothing": lambda h: h.raw(""),
    "nothing_after": lambda h: after(h, lambda h: h.raw("")),
    "stall": lambda h: h.hang(),
    "garbage": lambda h: h.raw("\x00\x01\r\n\r\n"),
    "endless": lambda h: (h.raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n<a>") and
                          h.hang()),
    "cut_head": lambda h: h.raw(real(h)[0][:20]),
    "cut_body": lambda h: cut(h, -5),
    "empty_200": lambda h: h.say(200) or True,
    "page": lambda h: h.say(200, b"<html><body>log in</body></html>") or True,
    "error_200": status(200),
    "doctype": lambda h: with_body(h, lambda b: b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + b),
    "half_xml": lambda h: with_body(h, lambda b: b[:len(b) // 2]),
    "length": lambda h: with_head(h, b"Content-Length: ", b"Content-Length: 1"),
    "gzip": lambda h: with_head(h, b"\r\n", b"\r\nContent-Encoding: gzip\r\n"),
    "to_file": lambda h: h.say(302, Location="file:///etc/hostname") or True,
    "to_itself": lambda h: h.say(307, Location=h.path) or True,
    "s400": status(400), "s401": status(401), "s403": status(403), "s404": status(404),
    "s409": status(409), "s412": status(412), "s416": status(416), "s429": status(429),
    "s500": status(500), "s501": status(501), "s503": status(503), "s204": status(204),
    "s206": status(206), "s304": status(304),
}
# What no protocol can show: a wrong length of an object that is only asked for it, an answer that
# has nothing in it.
LIES = {("empty_200", "remove"), ("s204", "remove"), ("doctype", "head"), ("half_xml", "head"),
        ("length", "head")}
# The operations, and what says that one was right.
DONE = {
    "list": lambda row, s3: [e[0] for e in row.entries] == [f"n{i}" for i in range(9)],
    "put": lambda row, s3: s3.buckets["b"].get("r/new") and s3.buckets["b"]["r/new"].data == b"abc",
    "remove": lambda row, s3: "r/n3" not in s3.buckets["b"],
    "head": lambda row, s3: row.size == 4,
}


def one(t, kind, what, folder):
    command = {"list": ("list", ""), "put": ("put", "new", folder), "remove": ("remove", "n3"),
               "head": ("head", "n4")}[what]
    with S3Server(KEYS, {"b": dict(NAMES)}) as s3:
        s3.page = 4

        def fault(h):
            h.answer_right = lambda: s3_right(h, s3)
            return FAULTS[kind](h)
        s3.fault = fault
        row = ask(t, s3, [command], "-t", "2", "-m", "3000", root="r", name=f"{kind}-{what}")[0]
        right = DONE[what](row, s3)
    if row.rc == 0 and (kind, what) not in LIES:
        assert right, (kind, what, "said to be done", row.entries)
    # 404 without NoSuchKey is no word about an object, nor is anything else here
    assert row.rc != ENOENT, (kind, what, row.text)
    assert row.rc == 0 or row.text, (kind, what)
    return row.rc == 0


def s3_right(h, s3):
    s3.fault, keep = None, s3.fault
    try:
        h.serve(s3)
    finally:
        s3.fault = keep


def test_faults(t):
    data = write(t, "in", b"abc")
    jobs = [(k, w) for k in FAULTS for w in DONE]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda j: one(t, j[0], j[1], data), jobs))
    print(sum(done), "of", len(jobs), "right")
    # an answer without fault is one
    assert ("reset_after", "remove") in jobs and sum(done) < len(jobs) / 2
