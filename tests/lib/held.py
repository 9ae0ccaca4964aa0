# SPDX-License-Identifier: BSD-3-Clause
"""A command that reads a file from a web server which holds back one byte, killed once the command
has noted how far it is; then the byte is let go."""
import os
import re
import signal
import subprocess
import time


class Held:
    def __init__(self, t, name, byte):
        self.t, self.name, self.byte, self.open = t, name, byte, False

    def fault(self, h):
        """For lib.web.WebServer."""
        m = re.match(r"bytes=(\d+)-(\d+)", h.headers.get("Range") or "")
        return (m and int(m.group(1)) <= self.byte <= int(m.group(2)) and not self.open and
                h.hang())

    def kill(self, args, state, pattern, least):
        """Run args until `pattern` in file `state` gives a number of at least `least`."""
        self.open = False
        p = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
        end = time.monotonic() + 60 * self.t.slow
        while not self._reached(state, pattern, least):
            assert p.poll() is None, p.communicate()
            assert time.monotonic() < end, "how far it is was not noted"
            time.sleep(0.05)
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        self.open = True

    @staticmethod
    def _reached(state, pattern, least):
        if not os.path.exists(state):
            return False
        with open(state) as f:
            m = re.search(pattern, f.read(), re.M)
        return m and int(m.group(1)) >= least
