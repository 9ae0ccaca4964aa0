# SPDX-License-Identifier: BSD-3-Clause
"""A small web server for tests: files below a folder, with ranges, ETags and conditions; what was
asked is remembered, and answers can be late, slow or wrong.

    with WebServer(folder, delay=0.05) as web:
        mount(web.url + "/a.zarr")
        assert len(web.asked) <= 3          # (method, path, range header) of each request

`fault(handler)` may answer instead: called with each Handler; returns True when it did. FAULTS has
them by name: what servers and lines between do wrong. Runs in threads of the test's process."""
import email.utils
import hashlib
import http.server
import os
import select
import socket
import socketserver
import struct
import threading
import time
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def answer(self, body):
        web = self.server.web
        self.asked = self.path  # what a fault may look up is self.path
        with web.lock:
            web.asked.append((self.command, self.path, self.headers.get("Range")))
        if web.delay:
            time.sleep(web.delay)  # the line's, not the test's
        if web.fault and web.fault(self):
            return
        self.file(body)

    def local(self):
        path = urllib.parse.unquote(self.path.split("?")[0]).lstrip("/")
        full = os.path.normpath(os.path.join(self.server.web.folder, path))
        return full if full.startswith(self.server.web.folder) and os.path.isfile(full) else None

    def say(self, status, data=b"", **headers):
        """A whole answer; headers: Content_Type="..." """
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def file(self, body):
        full = self.local()
        if not full:
            return self.say(404, b"not here")
        with open(full, "rb") as f:
            st = os.fstat(f.fileno())
            etag = self.etag(full, st)
            if self.headers.get("If-Match") not in (None, "*", etag):
                return self.say(412, b"changed")
            if self.headers.get("If-None-Match") == etag:
                return self.say(304, ETag=etag)
            span = self.span(st.st_size)
            if span == "bad":
                return self.say(416, Content_Range="bytes */%d" % st.st_size)
            first, last = span or (0, st.st_size - 1)
            self.send_response(206 if span else 200)
            self.send_header("ETag", etag)
            self.send_header("Last-Modified", email.utils.formatdate(st.st_mtime, usegmt=True))
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(last - first + 1))
            if span:
                self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, st.st_size))
            self.end_headers()
            if body:
                f.seek(first)
                self.pour(f, last - first + 1)

    def etag(self, full, st):
        text = repr((full, st.st_size, st.st_mtime_ns, st.st_ino))
        return '"%s"' % hashlib.sha1(text.encode()).hexdigest()[:20]

    def bytes_of(self):
        """(first, bytes, size) of what is asked for, as it is; None: there is no such file."""
        full = self.local()
        if not full:
            return None
        with open(full, "rb") as f:
            data = f.read()
        span = self.span(len(data))
        first, last = (0, len(data) - 1) if span in (None, "bad") else span
        return first, data[first:last + 1], len(data)

    def raw(self, *parts):
        """Bytes as they are, and the end of the connection."""
        self.close_connection = True
        try:
            for p in parts:
                self.wfile.write(p.encode() if isinstance(p, str) else p)
            self.wfile.flush()
        except OSError:
            pass  # the client has had enough
        return True

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
        return True

    def gone(self, seconds):
        """Wait so long; True as soon as the client goes away or the server ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.server.web.ending:
            if select.select([self.connection], [], [], 0.05)[0]:
                return True
        return self.server.web.ending

    def hang(self):
        self.gone(600)
        self.close_connection = True
        return True

    def span(self, size):
        text = self.headers.get("Range")
        if not text or not text.startswith("bytes=") or "," in text:
            return None
        a, _, b = text[6:].partition("-")
        if a == "":
            return (max(0, size - int(b)), size - 1) if int(b) and size else "bad"
        if int(a) >= size:
            return "bad"
        return int(a), min(int(b), size - 1) if b else size - 1

    def pour(self, f, n):
        rate = self.server.web.rate
        while n > 0:
            piece = f.read(min(n, 1 << 16))
            if not piece:
                break
            self.wfile.write(piece)
            n -= len(piece)
            if rate:
                time.sleep(len(piece) / rate)


# Faults: what each answers instead. The bytes, where there are any, are those of the file.

def head_of(h, status="206 Partial Content", length=None, span=None, more=""):
    first, data, size = h.bytes_of()
    first, size = span or (first, size)
    if "ETag" not in more:
        more += "ETag: %s\r\n" % h.etag(h.local(), os.stat(h.local()))
    return "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s%s\r\n" % (
        status, len(data) if length is None else length,
        "Content-Range: bytes %d-%d/%d\r\n" % (first, first + len(data) - 1, size)
        if status.startswith("206") else "", more)


def body_of(h):
    return h.bytes_of()[1]


def trickle(h):
    h.raw(head_of(h))
    for byte in body_of(h):
        if not h.raw(bytes([byte])) or h.gone(1):
            break
    return True


def endless(h, head, piece):
    h.close_connection = True
    try:
        h.wfile.write(head)
        while not h.server.web.ending:
            h.wfile.write(piece)
    except OSError:
        pass
    return True


def flipped(h):
    data = bytearray(body_of(h))
    data[len(data) // 2] ^= 0x10
    return h.raw(head_of(h), bytes(data))


def other_etag(h):
    return h.raw(head_of(h, more='ETag: "%d"\r\n' % time.monotonic_ns()), body_of(h))


def part_of_many(h):
    return h.raw("HTTP/1.1 206 Partial Content\r\n"
                 "Content-Type: multipart/byteranges; boundary=x\r\n"
                 "Content-Length: %d\r\n\r\n" % len(body_of(h)), body_of(h))


def shifted(h, by, of):
    first, _, size = h.bytes_of()
    return h.raw(head_of(h, span=(first + by, size + of)), body_of(h))


def whole(h):
    with open(h.local(), "rb") as f:
        data = f.read()
    return h.raw(head_of(h, "200 OK", len(data)), data)


def status(code, data=b"<Error><Code>Any</Code></Error>", **headers):
    def fault(h):
        h.say(code, data, **headers)
        return True
    return fault


def to(location):
    return status(302, b"", Location=location)


FAULTS = {
    "reset": lambda h: h.reset(),
    "reset_inside": lambda h: h.raw(head_of(h), body_of(h)[:9]) and h.reset(),
    "stall": lambda h: h.hang(),
    "stall_inside": lambda h: h.raw(head_of(h), body_of(h)[:9]) and h.hang(),
    "byte_a_second": trickle,
    "truncated": lambda h: h.raw(head_of(h), body_of(h)[:-3]),
    "no_answer": lambda h: h.raw(""),
    "no_length": lambda h: h.raw("HTTP/1.1 200 OK\r\n\r\n", body_of(h)[:-3]),
    "length_too_small": lambda h: h.raw(head_of(h, length=5), body_of(h)),
    "length_too_large": lambda h: h.raw(head_of(h, length=1 << 40), body_of(h)),
    "length_no_number": lambda h: h.raw(head_of(h).replace("Length: ", "Length: -"), body_of(h)),
    "range_shifted": lambda h: shifted(h, 1, 0),
    "range_other_size": lambda h: shifted(h, 0, 1),
    "range_no_numbers": lambda h: h.raw(head_of(h).replace("bytes ", "bytes x"), body_of(h)),
    "range_of_many": part_of_many,
    "whole_for_part": whole,
    "nothing": lambda h: h.raw("HTTP/1.1 204 No Content\r\n\r\n"),
    "unasked_304": lambda h: h.raw("HTTP/1.1 304 Not Modified\r\n\r\n"),
    "gzip": lambda h: h.raw(head_of(h, more="Content-Encoding: gzip\r\n"), body_of(h)),
    "flipped": flipped,
    "other_etag": other_etag,
    "s400": status(400), "s401": status(401), "s403": status(403), "s416": status(416),
    "s429": status(429), "s500": status(500), "s502": status(502), "s503": status(503),
    "s503_later": status(503, Retry_After="3600"),
    "to_itself": lambda h: to(h.asked)(h),
    "for_ever": lambda h: to("%s?%d" % (h.asked.split("?")[0], time.monotonic_ns()))(h),
    "to_file": to("file:///etc/hostname"),
    "to_private": to("http://10.11.12.13/x"),
    "to_link_local": to("http://169.254.169.254/latest/meta-data/"),
    "to_nowhere": to("http:///"),
    "garbage": lambda h: h.raw("\x00\x01garbage\r\n\r\n"),
    "huge_header": lambda h: h.raw("HTTP/1.1 200 OK\r\n", ("X: %999d\r\n" % 0) * 999, "\r\n"),
    "endless_header": lambda h: endless(h, b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 500),
    "endless_body": lambda h: endless(h, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      b"1000\r\n" + b"x" * 4096 + b"\r\n"),
}


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a client that went away


class WebServer:
    def __init__(self, folder, delay=0.0, rate=0, fault=None, tls=None, handler=Handler):
        """delay: seconds before each answer; rate: bytes a second of one answer; tls: an
        ssl.SSLContext."""
        self.folder = os.path.realpath(folder)
        self.delay, self.rate, self.fault = delay, rate, fault
        self.asked, self.lock = [], threading.Lock()
        self.ending = False
        self.server = _Server(("127.0.0.1", 0), handler)
        self.server.web = self
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending = True  # what hangs ends
        self.server.shutdown()
        self.server.server_close()

    def forget(self):
        with self.lock:
            self.asked.clear()
