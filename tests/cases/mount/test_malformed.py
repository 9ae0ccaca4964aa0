# SPDX-License-Identifier: BSD-3-Clause
"""Malformed datasets (tests/malformed) in one mounted directory: what cannot be opened is an error
and a line in the log, what is damaged in others is an error, the rest is right, and none disturbs
another."""
import errno
import os

from cases.zarr_view.test_corpus import read_everything
from malformed import load

EIO = (errno.EIO,)


def counterpart(mnt, name):
    for ending in ".zarr.zip", ".zarr":
        if name.endswith(ending):
            return os.path.join(mnt, name[:-len(ending)] + ".nc")
    return os.path.join(mnt, os.path.splitext(name)[0] + ".zarr")


def is_error(call):
    try:
        call()
    except OSError as error:
        assert error.errno in EIO or error.errno is None, error  # h5py's have no number
        return
    raise AssertionError("an error was expected")


def content(path):
    with open(path, "rb") as f:
        data = f.read()
    assert len(data) == os.stat(path).st_size
    return data


def in_tree(path, case):
    if case.words is not None:
        return is_error(lambda: os.listdir(path) and content(os.path.join(path, ".zgroup")))
    for name in case.errors:
        assert os.path.exists(os.path.join(path, name)), f"{name} is taken for absent"
        is_error(lambda n=name: content(os.path.join(path, n)))
    for name, data in case.right.items():
        got = content(os.path.join(path, name))
        assert data is None or got == data, f"{name}: {got[:40]}"
    for name in case.absent:
        assert not os.path.exists(os.path.join(path, name)), f"{name} is there"


def in_file(path, case):
    import h5py
    if case.words is not None:
        return is_error(lambda: content(path))
    with h5py.File(path, "r") as f:
        for name, data in case.right.items():
            assert f[name][()].tobytes() == data, name
        for name in case.errors:
            is_error(lambda n=name: f[n][()])


def look(mnt, cases):
    problems = []
    for case in cases:
        path = counterpart(mnt, case.name)
        try:
            if case.nothing:
                assert not os.path.exists(path), "it is shown"
            else:
                (in_file if path.endswith(".nc") else in_tree)(path, case)
        except Exception as error:
            problems.append(f"{case.name}: {type(error).__name__}: {error}")
    read_everything(mnt)
    assert not problems, "\n".join(problems)


def said(t, path, words):
    """What is wrong with a file that is refused is one line that names it."""
    status, _, err = t.run(t.binary, "info", path)
    return [] if status == 1 and len(err.splitlines()) == 1 and all(w in err for w in words) else [
        f"{path}: info ends with {status} and says {err!r}"]


def test_malformed(t):
    """SEMANTICS E20: a damaged dataset is an error where it is damaged, and disturbs no other"""
    folder = t.path("data")
    os.mkdir(folder)
    cases = load()
    for name, case in cases.items():
        case.write(os.path.join(folder, name))
    with t.mount(folder, foreground=True) as m:
        m.damaged = True
        problems = []
        try:
            t.call(look, m.path, list(cases.values()), timeout=80)
        except AssertionError as error:
            problems.append(str(error))
        assert m.server_alive(), "the server died: " + m.messages()
        lines = m.messages()
    for case in cases.values():
        if case.words is not None:
            problems += said(t, os.path.join(folder, case.name), case.words)
    assert not problems, "\n".join(problems) + "\n" + lines
    text = m.sanitizer_text()
    assert not text, text


test_malformed.limit = 120.0
