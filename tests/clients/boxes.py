"""A fresh agent for each block of a README: real /workspace and port 8099, in a network of its own.

The sandbox is the one that container/run.sh makes.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess

import pytest

import nook as harness
from wire import PATIENCE, wait_until

PORT = 8099
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def own_network():
    """This thread, and what it starts meanwhile, in a network with a loopback and nothing else."""
    with open("/proc/thread-self/ns/net", "rb") as before:
        _checked(_libc.unshare(CLONE_NEWNET))
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
            yield
        finally:
            _checked(_libc.setns(before.fileno(), CLONE_NEWNET))


def can_make_boxes():
    if not harness.IS_ROOT or not all(shutil.which(tool) for tool in ("bwrap", "curl")):
        return False
    return subprocess.run(
        ["unshare", "--net", "bwrap", "--ro-bind", "/", "/", "--unshare-pid", "true"],
        capture_output=True, check=False).returncode == 0


class Box:
    """A running sandbox: `url` and `token` of its agent; `folder` holds its writable roots."""

    def __init__(self, folder, *options):
        self.url = f"http://localhost:{PORT}"
        self.folder = folder
        self._run("--detach", "--", *options)
        self.token = (folder / "run/token").read_text().strip()
        self.pid = int((folder / "pid").read_text())

    def _run(self, *args):
        env = {**os.environ, "NOOK_BINARY": str(harness.BINARY), "NOOK_PORT": str(PORT),
               "NOOK_SANDBOX": str(self.folder)}
        # No pipe: the sandbox in the background would keep it open.
        done = subprocess.run(["sh", harness.ROOT / "container/run.sh", *map(str, args)], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              timeout=60 * PATIENCE, check=False)
        assert done.returncode == 0, f"run.sh {args} ended with {done.returncode}"

    def has_ended(self):
        return not os.path.exists(f"/proc/{self.pid}/root/run/nookd")

    def wait_end(self):
        wait_until(self.has_ended, 20, "the sandbox ends")

    def log(self):
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self):
        log = self.log()
        self._run("--stop")
        wait_until(self._reaped, 20, "nothing of the sandbox is left")
        assert not harness.SANITIZER.search(log), log

    def _reaped(self):
        """bubblewrap itself comes to this process, which is its subreaper."""
        for pid in harness.children_of(os.getpid()):
            stat = harness.proc_stat(pid)
            if stat and stat[0] == "Z" and stat[2] != os.getsid(0):
                os.waitpid(pid, 0)
        return self.has_ended()


@pytest.fixture
def start_box(tmp_path, monkeypatch):
    """start_box(*options): one agent, on port 8099; the working directory is an empty one."""
    if not can_make_boxes():
        pytest.skip("bubblewrap, curl or a network namespace cannot be had here")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    running = []

    def start(*options):
        box = Box(tmp_path / "box", *options)
        running.append(box)
        monkeypatch.setenv("RUNR_API_URL", box.url)
        monkeypatch.setenv("RUNR_API_KEY", box.token)
        monkeypatch.setenv("RUNBOX_API_KEY", box.token)
        monkeypatch.setenv("NO_PROXY", "*")
        return box

    with own_network():
        yield start
        for box in running:
            box.stop()
