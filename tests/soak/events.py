# SPDX-License-Identifier: BSD-3-Clause
"""Disturbances: what happens to servers, their children, readers, disks and lines, one at a time,
in an order that the seed decides."""
import contextlib
import os
import random
import resource
import shutil
import signal
import time


class Events:
    def __init__(self, run):
        self.run = run
        self.rng = random.Random(f"{run.seed}/events")
        self.counts = {}
        self.kinds = [(3, self.stop_server), (3, self.stop_child), (2, self.stop_reader),
                      (4, self.kill_child), (2, self.fewer_files), (3, self.cache), (4, self.line),
                      (2, self.full_disk), (1, self.kill_server)]
        if run.args.events:
            names = run.args.events.split(",")
            self.kinds = [(n, k) for n, k in self.kinds if k.__name__ in names]

    def once(self):
        kind = self.rng.choices([k for _, k in self.kinds], [n for n, _ in self.kinds])[0]
        scene = self.at = self.rng.choice(self.run.scenes)
        try:
            what = kind(scene)
        except ProcessLookupError:
            what = None  # it has ended by itself
        if what:
            self.counts[what] = self.counts.get(what, 0) + 1
            self.run.emit({"kind": "event", "event": what, "scene": self.at.name})

    def wait(self, low, high):
        self.run.rest(self.rng.uniform(low, high) * self.run.args.last)

    def one(self, accept):
        """One of the scenes that accept() takes; in the order of the seed."""
        some = [s for s in self.run.scenes if accept(s)]
        self.at = self.rng.choice(some) if some else None
        return self.at

    @contextlib.contextmanager
    def stopped(self, pid):
        try:
            os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)

    def family(self, scene):
        some = self.run.watch.family(scene.process.pid)
        server = self.run.watch.server_of(some)
        forker = next((p for p in some if server and p.name == "nczarrfs-forker"), None)
        guests = [p for p in some if forker and p.parent == forker.pid]
        return some, server, guests

    def stop_server(self, scene):
        _, server, _ = self.family(scene)
        if not server:
            return None
        with self.stopped(server.pid):
            self.wait(0.05, 2.5)
        return "server stopped"

    def stop_child(self, scene):
        """The forker, the supervisor or a guest."""
        some, server, _ = self.family(scene)
        some = [p for p in some if not server or p.pid != server.pid]
        if not some:
            return None
        with self.stopped(self.rng.choice(some).pid):
            self.wait(0.05, 2.5)
        return "child stopped"

    def stop_reader(self, _scene):
        with self.stopped(self.rng.choice(self.run.pids)):
            self.wait(0.05, 2.5)
        return "reader stopped"

    def kill_child(self, _scene):
        """Guests: what the library, plugins and decoders run in."""
        with_guests = [(s, g) for s in self.run.scenes for g in [self.family(s)[2]] if g]
        if not with_guests:
            return None
        scene, guests = self.rng.choice(with_guests)
        self.at = scene
        guest = self.rng.choice(guests)
        self.run.led.excuse(scene.number, "kill", True)
        with contextlib.suppress(OSError):
            os.kill(guest.pid, signal.SIGKILL)
        self.wait(0.5, 1)
        self.run.led.excuse(scene.number, "kill", False)
        return f"{guest.name} killed"

    def fewer_files(self, scene):
        _, server, _ = self.family(scene)
        if not server:
            return None
        try:
            used = len(os.listdir(f"/proc/{server.pid}/fd"))
        except OSError:
            return None
        old = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        self.run.led.excuse(scene.number, "few", True)
        try:
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE,
                             (min(old[1], used + self.rng.randint(0, 4)), old[1]))
            self.wait(0.5, 3)
        finally:
            with contextlib.suppress(OSError):
                resource.prlimit(server.pid, resource.RLIMIT_NOFILE, old)
            self.run.led.excuse(scene.number, "few", False)
        return "few descriptors"

    def cache(self, _scene):
        """The cache goes, is emptied, cannot be written, has no room: none of it is an error."""
        scene = self.one(lambda s: s.cache_dir)
        if not scene:
            return None
        folder, disk = scene.cache_dir, scene.small_disk
        kind = self.rng.choice(("moved", "removed", "emptied", "read-only", "full", "cut"))
        with contextlib.suppress(OSError):
            if kind == "moved":
                os.rename(folder, folder + ".away")
                self.wait(0.5, 3)
                shutil.rmtree(folder + ".away", ignore_errors=True)
            elif kind == "removed":
                shutil.rmtree(folder, ignore_errors=True)
            elif kind in ("emptied", "cut"):
                for name in os.listdir(folder):
                    path = os.path.join(folder, name)
                    if kind == "cut":
                        os.truncate(path, os.stat(path).st_size // 3)
                    else:
                        os.unlink(path)
            elif kind == "read-only":
                disk.read_only(True)
                self.wait(0.5, 3)
                disk.read_only(False)
            else:
                disk.fill()
                self.wait(0.5, 3)
                disk.empty()
        return "cache " + kind

    def line(self, _scene):
        scene = self.one(lambda s: s.service)
        if not scene:
            return None
        self.run.led.excuse(scene.number, "fault", True)
        scene.service.level[0] = self.rng.choice((50, 300, 1000))
        self.wait(1, 6)
        scene.service.level[0] = 0
        self.run.led.excuse(scene.number, "fault", False)
        return "bad line"

    def full_disk(self, _scene):
        scene = self.one(lambda s: s.writable and s.small_disk)
        if not scene:
            return None
        self.run.led.excuse(scene.number, "full", True)
        scene.small_disk.fill()
        self.wait(1, 5)
        scene.small_disk.empty()
        self.run.led.excuse(scene.number, "full", False)
        return "disk full"

    def kill_server(self, _scene):
        """Of a writable mount: what was confirmed is there when it is mounted again."""
        scene = self.one(lambda s: s.writable)
        if not scene:
            return None
        _, server, _ = self.family(scene)
        if not server:
            return None
        self.run.led.excuse(scene.number, "down", True)
        scene.paused = True
        if self.rng.random() < 0.5:
            os.kill(server.pid, signal.SIGKILL)
            with contextlib.suppress(Exception):
                scene.process.wait(30)
        scene.kill()
        self.run.clear(scene)
        time.sleep(self.rng.random())
        scene.start()
        scene.paused = False
        self.run.led.excuse(scene.number, "down", False)
        return "server killed and mounted again"
