# SPDX-License-Identifier: BSD-3-Clause
"""Mount table, processes and FUSE, without ever touching a mounted directory.

Nothing here opens, stats or lists anything below a mountpoint: a server that hangs must not be
able to hang the harness. What is mounted is read from /proc."""
import os
import signal
import subprocess
import time


def _unescape(text):
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def table():
    """[(mountpoint, type)] of everything mounted, oldest first."""
    rows = []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, _, right = line.partition(" - ")
            rows.append((_unescape(left.split()[4]), right.split()[0]))
    return rows


def is_mounted(path):
    return any(p == path for p, _ in table())


def unmount(path, lazy=False, seconds=20):
    """One attempt; (True, "") when it worked. Even umount can hang on a server that does not
    answer, so it is not waited for longer than that."""
    done = subprocess.Popen(["fusermount3", "-uz" if lazy else "-u", path],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    end = time.monotonic() + seconds
    while done.poll() is None:
        if time.monotonic() > end:
            done.kill()
            return False, "fusermount3 -u does not return"
        time.sleep(0.005)
    return done.returncode == 0, done.stdout.read().decode(errors="replace").strip()


def unmount_below(folder):
    for path, _ in reversed(table()):
        if path == folder or path.startswith(folder + "/"):
            ok, _ = unmount(path)
            if not ok:
                unmount(path, lazy=True)


def processes_of(text):
    """Ids of processes whose command line names text (a private path, so they are ours)."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if any(w == text.encode() or w.startswith(text.encode() + b"/") for w in words):
            found.append(int(entry))
    return found


def kill_below(folder):
    for pid in processes_of(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_gone(pids, seconds):
    """True when all processes have ended in time."""
    end = time.monotonic() + seconds
    while any(alive(p) for p in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def memory_peak(pid):
    """Highest resident size of a process in bytes, 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def is_sanitized(binary):
    """Whether the program was built with a sanitizer: tests then get more time and memory."""
    try:
        with open(binary, "rb") as f:
            data = f.read()
        return b"__asan_init" in data or b"__tsan_init" in data
    except OSError:
        return False


def slowness(binary):
    """What limits of time are multiplied by: three, so that they hold on a machine with other work
    (NCZARRFS_SLOW has another factor), and four with a sanitizer. Limits only end what hangs; no
    test asserts a time by them."""
    return (4.0 if is_sanitized(binary) else 1.0) * float(os.environ.get("NCZARRFS_SLOW") or 3)


def fuse_problem():
    """None, or one line on why nothing can be mounted here."""
    if not os.path.exists("/dev/fuse"):
        return ("no /dev/fuse: this machine cannot mount FUSE filesystems (modprobe fuse; in a "
                "container: docker run --device /dev/fuse --cap-add SYS_ADMIN)")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be opened ({error.strerror}): FUSE is not usable here"
    return None
