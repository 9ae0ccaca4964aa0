#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Record what programs that write do to files: their system calls, with all that they wrote.

    tests/record-writers.py OUT ROOT[=AS]... COMMAND    below ROOT, into the recording OUT; AS: what
                                                        else ROOT is called, in a chroot
    tests/record-writers.py --show RECORDING...     condensed (docs/dev/writing/writers.md)

A recording is a text of one JSON array a line, in the order in which calls began, as
tests/lib/replay.py makes them again. Names that are made up at random become numbers. Needs strace,
to record; what was recorded is in tests/recorded."""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib

CALLS = ("open,openat,creat,close,write,pwrite64,writev,pwritev,read,pread64,readv,preadv,lseek,"
         "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,truncate,ftruncate,fsync,"
         "fdatasync,sync_file_range,flock,fcntl,fallocate,link,linkat,symlink,symlinkat,chmod,"
         "fchmod,fchmodat,utimensat,chown,fchown,fchownat,lchown,"
         "mmap,msync,copy_file_range,sendfile,"
         "dup,dup2,dup3,setxattr,fsetxattr,clone,clone3,fork,vfork,ioctl")


def pack(data):
    """Bytes as text: as they are where they are text, else compressed."""
    try:
        text = data.decode("ascii")
        if all(c.isprintable() or c in "\n\t" for c in text) and len(text) < 6000:
            return "t" + text
    except UnicodeDecodeError:
        pass
    return "z" + base64.b64encode(zlib.compress(data, 9)).decode()


def unpack(text):
    if text[0] == "t":
        return text[1:].encode()
    return zlib.decompress(base64.b64decode(text[1:]))


def split(text):
    """The arguments of a call."""
    out, depth, word, quoted = [], 0, "", False
    for c in text:
        if c == '"':
            quoted = not quoted
        if not quoted:
            if c in "([{":
                depth += 1
            elif c in ")]}":
                depth -= 1
            elif c == "," and depth == 0:
                out.append(word.strip())
                word = ""
                continue
        word += c
    return out + [word.strip()]


def string(word):
    found = re.match(r'"((?:\\x[0-9a-f]{2})*)"', word)
    return bytes.fromhex(found[1].replace("\\x", "")) if found else b""


def number(word):
    return int(re.match(r"-?\d+", word)[0])


class Recorder:
    def __init__(self, *roots):
        self.roots = roots
        self.events = []
        self.files = {}     # (process, descriptor) -> handle
        self.process = {}   # thread -> process
        self.count = 0
        self.made_up = {}

    def name(self, path):
        """Below the root, without what is random; None: not ours."""
        for root in self.roots:
            if path == root or path.startswith(root + "/"):
                path = path[len(root) + 1:]
                break
        else:
            return None

        def fixed(found):
            return self.made_up.setdefault(found[0], f"{len(self.made_up) + 1:032x}"[
                -len(found[0]):])
        path = re.sub(r"[0-9a-f]{32}", fixed, path)
        return re.sub(r"\.pid\d+\.", ".pid1.", path)

    def at(self, fd, word):
        path = string(word).decode()
        if fd is None or path.startswith("/"):
            return self.name(path)
        base = re.search(r"<(.*)>", fd)
        if not base:
            return None
        base = bytes.fromhex(base[1].replace("\\x", "")).decode() if "\\x" in base[1] else base[1]
        return self.name(os.path.normpath(os.path.join(base, path)))

    def handle(self, pid, word):
        return self.files.get((self.process.get(pid, pid), number(word)))

    def add(self, *event):
        self.events.append(list(event))

    def call(self, pid, what, args, result):
        if what in ("clone", "clone3", "fork", "vfork"):
            if result > 0:
                own = "CLONE_THREAD" in args
                parent = self.process.get(pid, pid)
                self.process[result] = parent if own else result
                if not own:
                    for (p, fd), h in list(self.files.items()):
                        if p == parent:
                            self.files[result, fd] = h
            return
        a = split(args)
        if result < 0 and what not in ("rmdir", "ftruncate"):
            return
        getattr(self, "on_" + what, self.other)(pid, what, a, result)

    def other(self, pid, what, a, result):
        h = self.handle(pid, a[0]) if re.match(r"\d", a[0]) else None
        if h is not None:
            self.add(what, h, *a[1:])

    # open and what has a descriptor

    def on_openat(self, pid, what, a, result):
        name = self.at(a[0], a[1])
        if name is None:
            return
        flags = re.sub(r"\|?O_(CLOEXEC|LARGEFILE|NOFOLLOW|NOCTTY|NOATIME)", "", a[2])
        if "O_DIRECTORY" in flags:
            return
        self.count += 1
        self.files[self.process.get(pid, pid), result] = self.count
        self.add("open", self.count, name, flags, a[3] if len(a) > 3 else "0")

    def on_open(self, pid, what, a, result):
        self.on_openat(pid, what, ["AT_FDCWD</>"] + a, result)

    def on_creat(self, pid, what, a, result):
        self.on_openat(pid, what, ["AT_FDCWD</>", a[0], "O_WRONLY|O_CREAT|O_TRUNC", a[1]], result)

    def on_close(self, pid, what, a, result):
        h = self.files.pop((self.process.get(pid, pid), number(a[0])), None)
        if h is not None:
            self.add("close", h)

    def on_write(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("write", h, pack(string(a[1])[:result]))

    def on_pwrite64(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("pwrite", h, number(a[3]), pack(string(a[1])[:result]))

    def on_writev(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            data = b"".join(string(x) for x in re.findall(r'iov_base=("[^"]*")', a[1]))
            self.add("write", h, pack(data[:result]))

    def on_read(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("read", h, number(a[2]), zlib.crc32(string(a[1])[:result]))

    def on_pread64(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("pread", h, number(a[3]), number(a[2]), zlib.crc32(string(a[1])[:result]))

    def on_copy_file_range(self, pid, what, a, result):
        source, target = self.handle(pid, a[0]), self.handle(pid, a[2])
        if source is not None and target is not None and result:
            self.add("copy", source, target, result)

    def on_lseek(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("seek", h, result)

    def on_ftruncate(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("ftruncate", h, number(a[1]))

    def on_fcntl(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None and "LK" in a[1]:
            self.add("fcntl", h, a[1], a[2])

    def on_mmap(self, pid, what, a, result):
        h = self.handle(pid, a[4]) if re.match(r"\d", a[4]) else None
        if h is not None:
            self.add("mmap", h, a[1], a[2], a[3])

    def on_ioctl(self, pid, what, a, result):
        pass

    # names

    def names(self, what, *names):
        if None not in names:
            self.add(what, *names)

    def on_rename(self, pid, what, a, result):
        self.names("rename", self.at(None, a[0]), self.at(None, a[1]))

    def on_renameat(self, pid, what, a, result):
        self.names("rename", self.at(a[0], a[1]), self.at(a[2], a[3]))

    on_renameat2 = on_renameat

    def on_unlink(self, pid, what, a, result):
        self.names("unlink", self.at(None, a[0]))

    def on_unlinkat(self, pid, what, a, result):
        self.names("rmdir" if "AT_REMOVEDIR" in a[2] else "unlink", self.at(a[0], a[1]))

    def on_mkdir(self, pid, what, a, result):
        self.names("mkdir", self.at(None, a[0]))

    def on_mkdirat(self, pid, what, a, result):
        self.names("mkdir", self.at(a[0], a[1]))

    def on_rmdir(self, pid, what, a, result):
        self.names("rmdir" if result == 0 else "rmdir-fails", self.at(None, a[0]))

    def on_truncate(self, pid, what, a, result):
        name = self.at(None, a[0])
        if name is not None:
            self.add("truncate", name, number(a[1]))

    def on_chmod(self, pid, what, a, result):
        name = self.at(None, a[0])
        if name is not None:
            self.add("chmod", name, a[1])

    def on_fchmodat(self, pid, what, a, result):
        name = self.at(a[0], a[1])
        if name is not None:
            self.add("chmod", name, a[2])

    def on_fsetxattr(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("fsetxattr", h, string(a[1]).decode())

    def on_link(self, pid, what, a, result):
        self.names("link", self.at(None, a[0]), self.at(None, a[1]))

    def on_linkat(self, pid, what, a, result):
        self.names("link", self.at(a[0], a[1]), self.at(a[2], a[3]))

    def on_fchmod(self, pid, what, a, result):
        h = self.handle(pid, a[0])
        if h is not None:
            self.add("fchmod", h, a[1])

    def on_utimensat(self, pid, what, a, result):
        name = self.at(a[0], a[1]) if "NULL" not in a[1] else None
        h = self.handle(pid, a[0]) if re.match(r"\d", a[0]) and "NULL" in a[1] else None
        if name is not None:
            self.add("utimens", name)
        elif h is not None:
            self.add("futimens", h)


def calls(folder):
    """(thread, name, arguments, result) of all threads, in the order in which they began."""
    found = []
    for file in os.listdir(folder):
        pid = int(file.rpartition(".")[2])
        with open(os.path.join(folder, file)) as f:
            for line in f:
                m = re.match(r"([\d.]+) (\w+)\((.*)\) += (-?\d+)", line)
                if m:
                    found.append((float(m[1]), pid, m[2], m[3], int(m[4])))
    return [x[1:] for x in sorted(found, key=lambda x: x[0])]


def record(out, root, command):
    root, *others = root.split("=")
    roots = [os.path.realpath(root), *others]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["strace", "-f", "-ff", "-ttt", "-y", "-xx", "-s", "100000000",
                               "-e", "trace=" + CALLS, "-o", os.path.join(folder, "s"), *command])
        if done.returncode:
            sys.exit(f"{command} ends with {done.returncode}")
        r = Recorder(*roots)
        for call in calls(folder):
            r.call(*call)
    with open(out, "w") as f:
        for event in tidy(r.events):
            f.write(json.dumps(event) + "\n")


def tidy(events):
    """Without files that were opened, and neither read nor written."""
    used = {e[1] for e in events if e[0] not in ("open", "close", "seek", "mmap") and
            isinstance(e[1], int)}
    used |= {e[2] for e in events if e[0] == "copy"}
    made = {e[1] for e in events if e[0] == "open" and re.search("CREAT|TRUNC", e[3])}
    return [e for e in events if not isinstance(e[1], int) or e[1] in used | made]


def size(text):
    return len(unpack(text))


def condensed(events):
    """Lines for people: one for each name, runs of equal calls as one."""
    names, lines = {}, []
    for e in events:
        what = e[0]
        if what == "open":
            names[e[1]] = e[2]
            line = f"open {e[2]} {e[3].replace('O_', '')}"
        elif what in ("write", "pwrite", "read", "pread"):
            line = {"write": "write", "pwrite": "write at", "read": "read",
                    "pread": "read at"}[what] + " " + names[e[1]]
            amount = size(e[-1]) if "write" in what else e[2 if what == "read" else 3]
            if lines and lines[-1][0] == line:
                lines[-1][1].append(amount)
            else:
                lines.append((line, [amount]))
            continue
        elif what == "copy":
            line = f"copy_file_range {names[e[1]]} -> {names[e[2]]}"
        elif isinstance(e[1], int):
            line = f"{what} {names[e[1]]} " + " ".join(str(x) for x in e[2:])
        else:
            line = f"{what} " + " -> ".join(str(x) for x in e[1:])
        lines.append((line.strip(), None))
    out = []
    for line, amounts in lines:
        if amounts is None:
            out.append(line)
        elif len(amounts) == 1:
            out.append(f"{line} {amounts[0]}")
        else:
            out.append(f"{line} {len(amounts)} times {min(amounts)} to {max(amounts)}")
    return out


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def main():
    if sys.argv[1] == "--show":
        for path in sys.argv[2:]:
            print(f"-- {os.path.basename(path)}")
            print("\n".join(condensed(load(path))))
    else:
        record(sys.argv[1], sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    main()
