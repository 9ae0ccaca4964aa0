"""A small web server for tests: files below a folder, with ranges, ETags and conditions; what was
asked is remembered, and answers can be late, slow or wrong.

    with WebServer(folder, delay=0.05) as web:
        mount(web.url + "/a.zarr")
        assert len(web.asked) <= 3          # (method, path, range header) of each request

`fault(handler)` may answer instead: called with each Handler; returns True when it did. Runs in
threads of the test's process."""
import email.utils
import hashlib
import http.server
import os
import socketserver
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
            etag = '"%s"' % hashlib.sha1(repr((full, st.st_size, st.st_mtime_ns, st.st_ino))
                                         .encode()).hexdigest()[:20]
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
        self.server.shutdown()
        self.server.server_close()

    def forget(self):
        with self.lock:
            self.asked.clear()
