"""Fixtures of the tests that run a daemon: `nook` is a running daemon, `start_nook` starts more."""

import ctypes
import os
import subprocess
import sys

import pytest

import nook as harness

PR_SET_CHILD_SUBREAPER = 36


def pytest_configure(config):
    if not harness.BINARY.exists():
        pytest.exit(f"no {harness.BINARY}: build it, or set NOOK_BINARY", 2)
    # What a dead daemon leaves behind comes to us, and is found.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.fixture(autouse=True)
def adopted():
    """What came to us and died is reaped: the dead count against their user's limit."""
    yield
    if not harness.IS_ROOT:
        return
    for pid in harness.children_of(os.getpid()):
        try:
            if harness.proc_stat(pid)[0] == "Z" and \
                    harness.status_field(pid, "Uid").split()[0] != "0":
                os.waitpid(pid, os.WNOHANG)
        except (OSError, TypeError, AttributeError):
            pass  # gone meanwhile


def _has_pid_namespaces():
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                          capture_output=True, check=False)
    return done.returncode == 0


def pytest_collection_modifyitems(items):
    unable = None
    for item in items:
        if item.get_closest_marker("pid1"):
            if unable is None:
                unable = not harness.IS_ROOT or not _has_pid_namespaces()
            if unable:
                item.add_marker(pytest.mark.skip(reason="no pid namespace can be made here"))
        if item.get_closest_marker("root") and not harness.IS_ROOT:
            item.add_marker(pytest.mark.skip(reason="needs root"))
        if item.get_closest_marker("slow") and harness.SCALE < 0.05:
            item.add_marker(pytest.mark.skip(reason="NOOK_SCALE leaves out long loads"))


@pytest.fixture
def start_nook():
    """A factory: start_nook("--max-commands", 2, tcp=True). All end with the test."""
    running = []

    def start(*args, **kw):
        nook = harness.Nook(*args, **kw)
        running.append(nook)
        return nook

    yield start
    wrong = []
    for nook in reversed(running):
        wrong += nook.finish()
        sys.stdout.write(f"stderr of nookd {nook.pid}, its end:\n{nook.stderr()[-8000:]}\n")
        nook.remove()
    assert not wrong, "; ".join(wrong)


@pytest.fixture
def nook(start_nook):
    return start_nook()


@pytest.fixture
def tcp_nook(start_nook):
    """Listens on loopback too."""
    return start_nook(tcp=True)


@pytest.fixture(autouse=True)
def no_descriptor_is_lost_by_the_test():
    """A leak in the harness would hide one in nookd's clients."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    after = len(os.listdir("/proc/self/fd"))
    assert after <= before + 2, f"the test left {after - before} descriptors open"
