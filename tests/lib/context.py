# SPDX-License-Identifier: BSD-3-Clause
"""What a test gets: a private directory, mounts, and child processes with time limits."""
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import zlib

from lib import mounts

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Skip(Exception):
    """Raised with the reason why a test cannot run here."""


class Crashed(AssertionError):
    """A client that died of a signal: netCDF-C 4.9.0 does on some valid files, now and then."""


def corpus():
    """The folder of real files, or None."""
    path = os.environ.get("NCZARRFS_CORPUS") or os.path.join(
        os.path.dirname(ROOT), "shared", "corpus")
    return path if os.path.isdir(path) else None


def sampled(items, one_in, key=str):
    """One in so many of items, always the same ones wherever the corpus lies, but all of them
    where all tests are run (run-tests.py --all, or -k)."""
    if os.environ.get("NCZARRFS_ALL"):
        return list(items)
    above = corpus() or ""
    return [x for x in items if zlib.crc32(key(x).removeprefix(above).encode()) % one_in == 0]


def library_only(report, damaged=True):
    """Whether every fault in a sanitizer's report happened where it may: the first frame that is
    neither the sanitizer's nor libc's is that of a plugin of the tests, which is there to crash,
    or, of damaged sources, libhdf5's or libhdf4's. Those crash on damaged files, and what they
    leak when they give one up is not ours; the same in one of our functions is."""
    may = r"tests/plugins/|libhdf5|libdf|libmfhdf" if damaged else r"tests/plugins/"
    faults = re.split(r"\n(?==+\n==|Direct leak|Indirect leak)", report)
    for fault in faults:
        frames = re.findall(r"^ +#\d+ .*", fault, re.M)
        ours = [f for f in frames if not re.search(
            r"libsanitizer|sysdeps|libc\.so|/lib(a|ub|t|l)san| (nptl|stdlib|elf|signal)/", f)]
        if "runtime error:" in fault or (frames and not (ours and re.search(may, ours[0]))):
            return False
    return True


def sanitizer_env(path):
    """An environment in which sanitizers write their reports to files path.<pid>."""
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = ("detect_leaks=1:exitcode=99:allocator_may_return_null=1:"
                           f"log_path={path}")
    # children make all signals plain, but not these: a crash is a report, not only a child less;
    # and gcc's libubsan writes to standard error alone, which a daemon does not have
    env["ASAN_OPTIONS"] += ":handle_segv=2:handle_sigbus=2:handle_sigfpe=2:handle_abort=2"
    env["UBSAN_OPTIONS"] = f"print_stacktrace=1:abort_on_error=1:log_path={path}"
    env["TSAN_OPTIONS"] = f"exitcode=99:log_path={path}"
    env["LSAN_OPTIONS"] = "suppressions=" + os.path.join(ROOT, "tests", "lib", "lsan.supp")
    return env


def sanitizer_reports(path):
    """The reports that processes with sanitizer_env(path) wrote, as text."""
    folder, base = os.path.split(path)
    text = ""
    for name in sorted(os.listdir(folder)):
        if name.startswith(base + "."):
            with open(os.path.join(folder, name), errors="replace") as f:
                text += f.read()
    return text


def eventually(condition, seconds=30.0, report=None):
    """Poll until condition() is true and return its value. For what happens a moment after a call
    has returned: the kernel sends the release of a file after close(2), and changes by other
    programs are noticed within a second. report() is the message of the failure."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, report() if report else "it does not come about"
        time.sleep(0.02)
    return value


def eventually_passes(check, *args, seconds=30.0,
                      errors=(AssertionError, OSError, KeyError, ValueError)):
    """Call check(*args) until it raises none of errors; its last failure is raised."""
    end = time.monotonic() + seconds
    while True:
        try:
            return check(*args)
        except errors:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


class Mount:
    """One running nczarrfs. Leaving the context unmounts, waits for the process to end and
    fails on a server that died or that a sanitizer complained about."""

    def __init__(self, context, source, *options, wait=60.0, check=True, wrapper=(),
                 foreground=False):
        self.context = context
        self.number = context.number()
        self.path = os.path.join(context.tmp, f"mnt{self.number}")
        wait *= context.slow
        os.mkdir(self.path)
        self.log = os.path.join(context.tmp, f"log{self.number}")
        self.sanitizer = os.path.join(context.tmp, f"sanitizer{self.number}")
        self.pids = []
        self.process = None
        self.foreground = foreground
        self.check = check
        self.damaged = False  # set for damaged sources: libhdf5's own faults do not count
        self.ended = False    # set by a test that makes the server end itself
        self.fails = False    # set by a test in which not everything written can be kept
        args = list(wrapper) + [context.binary]
        for option in options:
            args += ["-o", option]
        if foreground:
            args.append("-f")
        args += [source, self.path]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=sanitizer_env(self.sanitizer),
                                            cwd=context.tmp)
        if foreground:
            self.status = self._wait_mounted(wait)
        else:
            try:
                self.status = self.process.wait(wait)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"nczarrfs does not return within {wait:.0f} s") from None
        self.pids = [p for p in mounts.processes_of(self.path)]
        if check and self.status != 0:
            raise AssertionError(f"mounting failed with status {self.status}: {self.messages()}")
        if check and not mounts.is_mounted(self.path):
            raise AssertionError(f"status 0 but nothing is mounted: {self.messages()}")

    def _wait_mounted(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return self.process.returncode
            if mounts.is_mounted(self.path):
                return 0
            time.sleep(0.01)
        self.kill()
        raise AssertionError(f"not mounted within {seconds:.0f} s: {self.messages()}")

    def messages(self):
        with open(self.log, errors="replace") as f:
            text = f.read().replace("AddressSanitizer:DEADLYSIGNAL\n", "")
        return text.strip()

    def memory_peak(self):
        return max([mounts.memory_peak(p) for p in self.pids], default=0)

    def server_alive(self):
        return bool(self.pids) and any(mounts.alive(p) for p in self.pids)

    def kill(self):
        pids = set(self.pids) | set(mounts.processes_of(self.path))
        for number in (signal.SIGSTOP, signal.SIGKILL):  # one that is left would end orderly
            for pid in pids:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        # children started after the mount hold the locks of datasets as well
        mounts.wait_gone(pids, 30 * self.context.slow)

    def exit_status(self, seconds=30.0):
        """Of a mount in the foreground: it ends when everything that was written is where it
        belongs."""
        return self.process.wait(seconds * self.context.slow)

    def sanitizer_text(self):
        text = sanitizer_reports(self.sanitizer)
        log = self.messages()
        if "Sanitizer" in log or "runtime error:" in log:
            text += log
        if text and library_only(text, self.damaged):
            return ""
        return text

    def unmount(self, seconds=30.0):
        """Unmount and wait for the end of the process; the problems found, as text."""
        problems = []
        seconds *= self.context.slow  # the search for leaks at the end takes its time
        if self.status == 0 and not self.ended and not mounts.is_mounted(self.path):
            problems.append("the mount has gone: " + self.messages())
        if mounts.is_mounted(self.path):
            if not self.server_alive():
                problems.append("the server died: " + self.messages())
            ok, text = mounts.unmount(self.path)
            end = time.monotonic() + 5 * self.context.slow
            while not ok and "busy" in text and time.monotonic() < end:
                time.sleep(0.05)  # a client that was just killed may not be gone yet
                ok, text = mounts.unmount(self.path)
            if not ok:
                problems.append("cannot unmount: " + text)
                self.kill()  # without its server the kernel gives up every request
                mounts.unmount(self.path, lazy=True)
        if not mounts.wait_gone(self.pids, seconds):
            problems.append(f"the server does not end within {seconds:.0f} s of unmounting")
            self.kill()
        elif (self.foreground and not (self.ended or self.status) and
              self.exit_status() != int(self.fails)):
            problems.append(f"it ended with status {self.exit_status()}: {self.messages()}")
        text = self.sanitizer_text()
        if text:
            problems.append("sanitizer report:\n" + text)
        return "\n".join(problems)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        problems = self.unmount()
        self.context.forget(self)
        if problems and kind is None and self.check:
            raise AssertionError(problems)
        if problems:
            print(problems)
        return False


class Context:
    def __init__(self, tmp):
        self.tmp = tmp
        self.binary = os.environ["NCZARRFS"]
        self.sanitized = mounts.is_sanitized(self.binary)
        self.slow = mounts.slowness(self.binary)
        self._count = 0
        self._open = []

    def number(self):
        self._count += 1
        return self._count

    def path(self, name):
        return os.path.join(self.tmp, name)

    def mount(self, source, *options, **keywords):
        m = Mount(self, source, *options, **keywords)
        self._open.append(m)
        return m

    def forget(self, m):
        if m in self._open:
            self._open.remove(m)

    def close(self):
        for m in list(self._open):
            m.unmount()

    def run(self, *args, timeout=60.0, env=None, cwd=None, binary=False):
        """A command with a time limit: (status, stdout, stderr)."""
        timeout *= self.slow
        full = dict(os.environ)
        full.update(env or {})
        p = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=full, cwd=cwd or self.tmp)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            try:
                p.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                pass
            raise AssertionError(f"{args[0]} does not end within {timeout:.0f} s") from None
        if binary:
            return p.returncode, out, err.decode(errors="replace")
        return p.returncode, out.decode(errors="replace"), err.decode(errors="replace")

    def call(self, func, *args, timeout=60.0):
        """Run func(*args) in a child process. It may return None or raise; what it prints and
        its failure become ours. For everything that touches a mount."""
        read, write = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            status = 0
            try:
                func(*args)
            except Skip as skip:
                os.write(write, str(skip).encode(errors="replace")[:4000])
                status = 77
            except BaseException as error:  # noqa: B902 - handed to the parent
                text = str(error) if isinstance(error, AssertionError) and str(error) else (
                    traceback.format_exc())
                os.write(write, text.encode(errors="replace")[-20000:])
                status = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        os.close(write)
        return self._collect(pid, read, func, timeout)

    def _collect(self, pid, read, func, timeout):
        end = time.monotonic() + timeout * self.slow
        text = b""
        os.set_blocking(read, False)
        while True:
            try:
                text += os.read(read, 65536)
            except BlockingIOError:
                pass
            got, raw = os.waitpid(pid, os.WNOHANG)
            if got:
                break
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                os.close(read)
                raise AssertionError(f"{func.__name__} does not end within {timeout:.0f} s")
            time.sleep(0.005)
        try:
            text += os.read(read, 65536)
        except BlockingIOError:
            pass
        os.close(read)
        status = os.waitstatus_to_exitcode(raw)
        if status == 77:
            raise Skip(text.decode(errors="replace"))
        if status == 1:
            raise AssertionError(text.decode(errors="replace"))
        if status < 0:
            raise Crashed(f"{func.__name__} died of signal {-status}")
        if status != 0:
            raise AssertionError(f"{func.__name__} ended with status {status}")
