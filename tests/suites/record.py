# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest, used by run.py in the process of a suite: it writes one line for each test as
the test ends, so that the results of a process that dies or hangs are not lost, and limits the
time of one test. The virtual files of NCZARRFS_SUITE_VIRTUAL take the place of the files that
xarray's tests make."""
import contextlib
import os
import signal

import pytest

OUT = open(os.environ["NCZARRFS_SUITE_OUT"], "a", encoding="utf-8")
SECONDS = int(os.environ["NCZARRFS_SUITE_SECONDS"])
found = {}


def number(signum, frame):
    raise TimeoutError(f"the test takes more than {SECONDS} seconds")


def line(what, nodeid, text=""):
    OUT.write(f"{what}\t{nodeid}\t{text[:400]!r}\n")
    OUT.flush()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    line("begun", item.nodeid)
    signal.signal(signal.SIGALRM, number)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    line(*found.pop(item.nodeid, ("failed", item.nodeid, "no report")))


def pytest_runtest_logreport(report):
    old = found.get(report.nodeid, ("passed",))[0]
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr)
        if old != "failed":
            found[report.nodeid] = ("failed", report.nodeid, text)
    elif report.skipped and old == "passed":
        found[report.nodeid] = ("skipped", report.nodeid, "")
    else:
        found.setdefault(report.nodeid, ("passed", report.nodeid, ""))


def pytest_collectreport(report):
    if report.failed:
        line("failed", report.nodeid, str(report.longrepr)[-400:])


def pytest_collection_finish(session):
    files = os.environ.get("NCZARRFS_SUITE_VIRTUAL")
    if not files:
        return
    from xarray.tests import test_backends

    free = files.split(":")
    native = test_backends.create_tmp_file
    @contextlib.contextmanager
    def create_tmp_file(suffix=".nc", allow_cleanup_failure=False):
        if suffix != ".nc" or not free:
            with native(suffix, allow_cleanup_failure) as path:
                yield path
            return
        path = free.pop(0)
        try:
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
            free.append(path)

    test_backends.create_tmp_file = create_tmp_file
