# SPDX-License-Identifier: BSD-3-Clause
"""What a mount shows, as plain data: for comparing two mounts of one dataset."""
import hashlib
import itertools
import os
import stat

NAMES_MAX = 20000      # of one folder that are listed: some files claim billions of chunks
FILES_MAX = 400        # of those, spread evenly over the sorted names
BYTES_MAX = 64 << 20   # of one file


def _some(names):
    step = len(names) // FILES_MAX + 1
    return names[::step]


def _content(path):
    """Length and hash of what is read; the name of the error when something cannot be."""
    digest, n = hashlib.sha1(), 0
    try:
        with open(path, "rb", buffering=0) as f:
            while n < BYTES_MAX:
                part = f.read(1 << 20)
                if not part:
                    break
                digest.update(part)
                n += len(part)
    except OSError as error:
        return "error", error.errno
    return n, digest.hexdigest()


def seen(top):
    """{path: (kind, size, content)} of everything below a folder; of large folders a part."""
    found, todo = {}, [""]
    while todo:
        here = todo.pop()
        try:
            with os.scandir(os.path.join(top, here)) as it:
                names = sorted(entry.name for entry in itertools.islice(it, NAMES_MAX))
        except OSError as error:
            found[here] = ("error", error.errno)
            continue
        found[here] = ("names", hashlib.sha1("\0".join(names).encode()).hexdigest(), len(names))
        for name in _some(names):
            path = os.path.join(here, name)
            full = os.path.join(top, path)
            try:
                st = os.lstat(full)
            except OSError as error:
                found[path] = ("error", error.errno)
                continue
            if stat.S_ISDIR(st.st_mode):
                todo.append(path)
            else:
                found[path] = ("file", st.st_size, _content(full))
    return found


def same(a, b):
    """Two mounts show the same; prints how much that was."""
    x, y = seen(a), seen(b)
    wrong = [f"{p or '/'}: {x.get(p)} and {y.get(p)}" for p in sorted(set(x) | set(y))
             if x.get(p) != y.get(p)]
    assert not wrong, "%d of %d differ: %s" % (len(wrong), len(x), "; ".join(wrong[:5]))
    print(len(x), "names")
