# SPDX-License-Identifier: BSD-3-Clause
"""`nczarrfs serve` for a test: started, asked by HTTP, ended; what a sanitizer says is a failure.

    with Serving(t, file, "-o", "filter=none") as s:
        answer = s.get("/data/.zgroup", Range="bytes=0-3")
"""
import http.client
import re
import select
import signal
import socket
import subprocess
import time

from lib.context import library_only, sanitizer_env, sanitizer_reports


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __getitem__(self, name):
        return self.headers.get(name)


class Serving:
    def __init__(self, t, source, *options, port="0"):
        self.t = t
        self.log = t.path(f"serve{t.number()}")
        self.sanitizer = self.log + "-sanitizer"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [t.binary, "serve", "-p", port, *options, source], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, env=sanitizer_env(self.sanitizer), cwd=t.tmp)
        self.url = self._where(60 * t.slow)
        self.port = int(re.search(r":(\d+)$", self.url).group(1))
        self.host = "127.0.0.1"

    def _where(self, seconds):
        said = b""
        end = time.monotonic() + seconds
        while said.count(b"\n") < 2:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.process.kill()
                raise AssertionError(f"it does not say where: {self.messages()}")
            part = self.process.stdout.read1(4096)
            if not part:
                raise AssertionError(f"it ended ({self.process.wait()}): {self.messages()}")
            said += part
        return re.search(rb"Zarr URL: +(http://\S+)/data/\n", said).group(1).decode()

    def listens(self):
        """The address of IPv4 at which it listens, as in /proc/net/tcp."""
        with open("/proc/net/tcp", encoding="ascii") as f:
            found = [row.split()[1] for row in f if f":{self.port:04X} 00000000:0000 0A" in row]
        address, = found
        return address.partition(":")[0]

    def messages(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def ask(self, method, path, body=None, host=None, **headers):
        """path as it is, not encoded."""
        c = http.client.HTTPConnection(self.host, self.port, timeout=60 * self.t.slow)
        try:
            c.putrequest(method, path, skip_host=host is not None, skip_accept_encoding=True)
            if host:
                c.putheader("Host", host)
            for name, value in headers.items():
                c.putheader(name.replace("_", "-"), value)
            if body is not None:
                c.putheader("Content-Length", str(len(body)))
            c.endheaders(body)
            r = c.getresponse()
            return Answer(r.status, r.headers, r.read())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def raw(self, data):
        """Bytes to the socket; all that comes back until it is closed, or nothing comes."""
        with socket.create_connection((self.host, self.port), timeout=20 * self.t.slow) as s:
            got = b""
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while part := s.recv(65536):
                    got += part
            except OSError:
                pass
            return got

    def end(self, sig=signal.SIGTERM):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(30 * self.t.slow)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it does not end: {self.messages()}") from None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        status = self.end()
        self.process.stdout.close()
        text = sanitizer_reports(self.sanitizer)
        if text and not library_only(text):
            raise AssertionError(f"sanitizer report:\n{text}")
        if kind is None and status != 0:
            raise AssertionError(f"it ended with status {status}: {self.messages()}")
        return False
