# SPDX-License-Identifier: BSD-3-Clause
"""Mounts whose n-th write fails or is their last (tests/faults/shim.c), and what must be true
afterwards: the dataset is one of the states that the writer made, with everything in it that a
close or fsync had confirmed.

A workload has `steps`, each of which is confirmed to its writer or not. After a fault, with c steps
confirmed, the dataset must be what c steps make, or c + 1 when the next one had begun."""
import errno
import os
import random
import shutil
import struct
import sys
import time
import traceback

from lib import mounts
from lib.context import ROOT, Skip

COUNT, FAIL, FULL, SHORT, KILL, KILL_HALF, KILL_ONE = range(7)
PIDS, CALLS = 256, 4096
HEAD = "=IIIIIII"  # armed, kind, at, code, count, fired, n_pids

KINDS = {
    "ENOSPC": (FULL, errno.ENOSPC),
    "EDQUOT": (FULL, errno.EDQUOT),
    "EIO": (FAIL, errno.EIO),
    "short": (SHORT, 0),
    "kill": (KILL, 0),
    "kill-half": (KILL_HALF, 0),
    "kill-one": (KILL_ONE, 0),
}


class Shim:
    """The state that is shared with the library in the processes of a mount."""

    def __init__(self, t):
        build = os.path.dirname(os.path.abspath(t.binary))
        self.preload = os.path.join(build, "tests", "libfaults.so")
        if t.sanitized:
            raise Skip("a sanitizer's own library has to be the first")
        if not os.path.exists(self.preload):
            raise Skip("tests/libfaults.so is not built: make tools")
        self.file = t.path("faults")
        with open(self.file, "wb") as f:
            f.write(bytes(struct.calcsize(HEAD) + 4 * PIDS + CALLS))

    def wrapper(self, *folders):
        return ("env", "LD_PRELOAD=" + self.preload, "FAULTS_STATE=" + self.file,
                "FAULTS_DIRS=" + ":".join(os.path.realpath(f) for f in folders))

    def _read(self):
        with open(self.file, "rb") as f:
            return struct.unpack(HEAD, f.read(struct.calcsize(HEAD)))

    def arm(self, kind, at, code=0):
        """Count from now on. The pids of processes are kept: they enlisted when they began."""
        with open(self.file, "r+b") as f:
            f.seek(4)
            f.write(struct.pack("=IIIII", kind, at, code, 0, 0))
            f.seek(0)
            f.write(struct.pack("=I", 1))

    def disarm(self):
        with open(self.file, "r+b") as f:
            f.write(struct.pack("=I", 0))

    def forget(self):
        with open(self.file, "r+b") as f:
            f.write(bytes(struct.calcsize(HEAD) + 4 * PIDS))

    @property
    def count(self):
        return self._read()[4]

    @property
    def fired(self):
        return self._read()[5] != 0

    @property
    def pids(self):
        with open(self.file, "rb") as f:
            data = f.read()
        n = min(struct.unpack_from(HEAD, data)[6], PIDS)
        return [p for p in struct.unpack_from(f"={n}I", data, struct.calcsize(HEAD)) if p]

    def calls(self):
        with open(self.file, "rb") as f:
            f.seek(struct.calcsize(HEAD) + 4 * PIDS)
            return f.read(self.count).decode("ascii", "replace")


class Client:
    """A writer: a process that makes one step after the other, and says what came of each."""

    def __init__(self, steps, where):
        read, write = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)  # HDF5 has much to say about a server that is gone
            os.dup2(null, 2)
            self._run(steps, where, write)
        os.close(write)
        self.pipe = read

    @staticmethod
    def _run(steps, where, out):
        for step in steps:
            os.write(out, b"b")
            for attempt in range(2):
                try:
                    step(where)
                    os.write(out, b"c")
                    break
                except OSError as error:
                    gone = error.errno in (errno.ENOTCONN, errno.ECONNABORTED)
                    if gone or attempt:
                        os.write(out, b"E%d," % (error.errno or 0))
                        os._exit(0)
                    os.write(out, b"e%d," % (error.errno or 0))
                except BaseException:
                    os.write(out, b"x" + traceback.format_exc().encode()[-2000:])
                    os._exit(0)
        os._exit(0)

    def wait(self, seconds):
        """(steps begun, steps confirmed, text of an exception that is no OSError)."""
        end = time.monotonic() + seconds
        late = False
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > end:
                late = True
                os.kill(self.pid, 9)
                break
            time.sleep(0.002)
        if not late:
            os.waitpid(self.pid, 0)
        os.set_blocking(self.pipe, False)
        text = b""
        try:
            while True:
                more = os.read(self.pipe, 65536)
                if not more:
                    break
                text += more
        except BlockingIOError:
            pass
        os.close(self.pipe)
        said, _, wrong = text.partition(b"x")
        self.said = said.decode()
        return said.count(b"b"), said.count(b"c"), wrong.decode(errors="replace"), late


class Rig:
    """One workload on one dataset.
    make     make(path): the dataset as it was
    steps    functions of the mount's path
    check    check(path, n): raises unless the dataset at path is what n steps make of it; called
             in a process of its own"""

    def __init__(self, t, name, make, steps, check, options=()):
        self.t, self.name, self.steps, self.check = t, name, steps, check
        self.options = ("rw",) + tuple(options)
        self.shim = Shim(t)
        self.template = t.path("template-" + name)
        make(self.template)
        self.round = 0

    def fresh(self):
        self.round += 1
        folder = self.t.path(f"round{self.round}")
        os.mkdir(folder)
        path = os.path.join(folder, self.name)
        if os.path.isdir(self.template):
            shutil.copytree(self.template, path)
        else:
            shutil.copy(self.template, path)
        return folder, path

    def mount(self, folder, path):
        self.shim.forget()
        return self.t.mount(path, *self.options, wrapper=self.shim.wrapper(folder), check=False)

    def end(self, m, killed):
        """Unmount, whatever is left of it."""
        if killed:
            m.ended = True
            for _ in range(3):
                if not mounts.is_mounted(m.path) or mounts.unmount(m.path, lazy=True)[0]:
                    break
        text = m.unmount()
        self.t.forget(m)
        return text

    def recover(self, path, again):
        """By the command, or by another mount."""
        if again:
            m = self.t.mount(path, *self.options)
            text = m.unmount()
            self.t.forget(m)
            assert not text, f"a mount that recovers: {text}"
        else:
            status, out, err = self.t.run(self.t.binary, "recover", path)
            # files that no document describes yet are kept, and told of
            assert status == 0 or "belong to the dataset" in err, (
                f"recover ends with {status}: {out}{err}")

    def recover_badly(self, folder, path, at):
        """A recovery that dies, too."""
        self.shim.forget()
        self.shim.arm(KILL_HALF, at)
        words = self.shim.wrapper(folder)[1:]
        status, _, _ = self.t.run(self.t.binary, "recover", path,
                                  env=dict(w.split("=", 1) for w in words))
        pids = self.shim.pids
        self.shim.disarm()
        assert mounts.wait_gone(pids, 20), f"recover, killed, leaves processes: {status}"

    def left_behind(self, folder):
        return [n for n in os.listdir(folder) if n != self.name]

    def verify(self, path, confirmed, begun, what):
        wrong = []
        for n in {confirmed, begun}:
            try:
                self.t.call(self.check, path, n)
                return n
            except AssertionError as error:
                wrong.append(f"{n}: {str(error)[-500:]}")
        raise AssertionError(f"{what}: {confirmed} steps confirmed of {begun} begun, but the "
                             "dataset is not what they make:\n" + "\n".join(wrong))

    def one(self, kind, at, moment=None):
        """A round with the fault at call `at`; False when there is no such call. With `moment`
        the mount is killed after so many seconds instead."""
        folder, path = self.fresh()
        m = self.mount(folder, path)
        what = f"{self.name}: {kind} at call {at}" if moment is None else (
            f"{self.name}: killed after {moment * 1000:.0f} ms")
        if m.status != 0:
            raise AssertionError(f"{what}: mounting failed: {m.messages()}")
        number, code = KINDS[kind]
        dies = kind.startswith("kill")
        self.shim.arm(number if moment is None else COUNT, at, code)
        client = Client(self.steps, m.path)
        if moment is not None:
            time.sleep(moment)
            for pid in self.shim.pids:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
        begun, confirmed, wrong, late = client.wait(60)
        fired = self.shim.fired or moment is not None
        if kind == "kill-one":  # of the server: the mount goes; of a commit: it goes on
            m.ended = not mounts.is_mounted(m.path)
        text = self.end(m, dies and fired and kind != "kill-one")
        calls = self.shim.calls()
        fired = fired or self.shim.fired
        if dies and fired:
            mounts.wait_gone(m.pids, 10)
        self.shim.disarm()
        assert not late, f"{what}: the writer hangs after {confirmed} steps"
        assert not wrong or fired, f"{what}: {wrong}"
        if not fired:
            assert confirmed == len(self.steps), (
                f"{what}: no fault, but {client.said}: {m.messages()}")
            assert not text, f"{what}: {text}"
        if dies and fired:
            for k in range(self.round % 3):
                self.recover_badly(folder, path, 1 + self.round * 7 % (30 * (k + 1)))
        if fired or self.left_behind(folder):
            self.recover(path, self.round % 2 == 0)
        if confirmed == len(self.steps):
            assert not self.left_behind(folder), f"{what}: left behind: {os.listdir(folder)}"
        try:
            self.verify(path, confirmed, begun, what + f" ({calls[max(0, at - 6):at]}"
                        f"|{calls[at:at + 4]})")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{client.said}\n{m.messages()}") from None
        shutil.rmtree(folder)
        return fired

    def calls(self):
        """How many calls there are without a fault."""
        folder, path = self.fresh()
        m = self.mount(folder, path)
        assert m.status == 0, m.messages()
        self.shim.arm(COUNT, 0)
        client = Client(self.steps, m.path)
        begun, confirmed, wrong, late = client.wait(60)
        text = self.end(m, False)
        n = self.shim.count
        assert confirmed == len(self.steps) and not wrong and not late, (
            f"{self.name}: {client.said} without a fault: {wrong or text} {m.messages()}")
        assert not text, text
        self.verify(path, confirmed, confirmed, "without a fault")
        shutil.rmtree(folder)
        return n

    def sweep(self, kind, rounds=None):
        """The fault at every call, or at so many of them, spread evenly. Returns how many."""
        n = self.calls()
        places = range(1, n + 1)
        if rounds is not None and n > rounds:
            offset = random.Random(f"{self.name} {kind}").random()
            places = sorted({1 + int((i + offset) * n / rounds) for i in range(rounds)})
        return self.rounds(lambda at: self.one(kind, at), places)

    def rounds(self, func, places):
        """func of every place; what fails is told at the end, of many the first."""
        done, wrong = 0, []
        for place in places:
            try:
                done += func(place)
            except AssertionError as error:
                wrong.append(str(error))
        assert not wrong, f"{len(wrong)} rounds failed:\n" + "\n".join(wrong[:8])
        assert done > 0, "no fault ever happened"
        return done

    def moments(self, rounds, seed=1):
        """kill -9 of all processes at random moments."""
        rnd = random.Random(seed)
        start = time.monotonic()
        self.calls()
        longest = max(0.05, (time.monotonic() - start) * 0.8)
        return self.rounds(lambda moment: self.one("kill", 0, moment),
                           [rnd.random() ** 2 * longest for _ in range(rounds)])
