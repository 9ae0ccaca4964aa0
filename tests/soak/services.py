# SPDX-License-Identifier: BSD-3-Clause
"""Servers that remote sources are on, each in a process of its own, with faults now and then."""
import http.client
import os
import random
import signal
import time

from lib import s3_server, web

# What a client can notice: a wrong byte in a whole answer is nobody's to notice here.
FAULTS = ("reset", "reset_inside", "truncated", "no_answer", "s429", "s500", "s502", "s503",
          "garbage", "nothing", "other_etag", "no_length", "stall_inside")
# of S3: those that need no file on a disk
S3_FAULTS = ("reset", "no_answer", "s429", "s500", "s502", "s503", "garbage", "nothing")


class Service:
    names = FAULTS

    def __init__(self, scene):
        self.scene, self.pid = scene, 0
        self.level = scene.run.shared_cell()  # of 1000 requests that fail

    def fault(self, handler):
        level = int(self.level[0])
        if "User-Agent" not in handler.headers:  # a request of the test itself
            return False
        if not level or self.rng.randrange(1000) >= level:
            return False
        name = self.rng.choice(self.names)
        if handler.command != "GET" and name not in ("reset", "no_answer", "s429", "s500", "s503"):
            name = "s503"
        if self.needs_file(name) and not self.has_file(handler):
            name = "s503"
        return web.FAULTS[name](handler)

    def needs_file(self, name):
        return name in ("reset_inside", "truncated", "other_etag", "no_length", "stall_inside")

    def has_file(self, handler):
        return bool(handler.local())

    def start(self):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.rng = random.Random(f"{self.scene.run.seed}/{self.scene.name}")
            with self.server() as s:
                os.write(write, s.url.encode())
                os.close(write)
                while os.getppid() == self.scene.run.pid:
                    s.forget()
                    time.sleep(1)
            os._exit(0)
        os.close(write)
        self.url = os.read(read, 1000).decode()
        os.close(read)

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


class Web(Service):
    def __init__(self, scene, folder):
        super().__init__(scene)
        self.folder = folder

    def server(self):
        return web.WebServer(self.folder, fault=self.fault)


class S3(Service):
    names = S3_FAULTS

    def server(self):
        return s3_server.S3Server(keys={"AKID": "secret"}, buckets={"b": {}}, fault=self.fault)

    def ask(self, *args, **more):
        end = time.monotonic() + 60
        while True:
            try:
                return s3_server.ask({"url": self.url, "access": "AKID", "secret": "secret"},
                                     *args, **more)
            except (OSError, AssertionError, http.client.HTTPException):
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def put(self, key, data):
        self.ask("PUT", "b", key, body=data)

    def get(self, key):
        return self.ask("GET", "b", key)[2]
