"""A nookd of the bench's own in a temporary root, and the two C helpers."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
BUILD = TOP / "build" / "bench"
USER = 200_000 + os.getpid() % 400_000 if os.geteuid() == 0 else os.getuid()
PREFIX = []  # in front of every program that is measured


def compile_helpers():
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("client", "limit"):
        source, out = HERE / f"bench_{name}.c", BUILD / f"bench_{name}"
        newest = max(source.stat().st_mtime, (HERE / "bench_net.h").stat().st_mtime)
        if not out.exists() or out.stat().st_mtime < newest:
            subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-O2", "-o",
                            str(out), str(source), "-lpthread"], check=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_json(program, *args, **kw):
    out = subprocess.run([*PREFIX, str(BUILD / f"bench_{program}"), *map(str, args)],
                         check=True, stdout=subprocess.PIPE, **kw).stdout
    return json.loads(out)


class Limit:
    """A bare server of bench_limit; a context manager whose value is its address."""

    def __init__(self, *args):
        self.addr = f"tcp:{free_port()}"
        self.proc = subprocess.Popen(
            [*PREFIX, str(BUILD / "bench_limit"), self.addr, *map(str, args)],
            stdout=subprocess.PIPE)

    def __enter__(self):
        self.proc.stdout.readline()
        return self.addr

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()


class Daemon:
    """One running nookd; a context manager."""

    def __init__(self, binary, *options):
        self.root = Path(tempfile.mkdtemp(prefix="nook-bench-"))
        self.root.chmod(0o755)
        self.work = self.root / "work"
        self.work.mkdir()
        (self.root / "state").mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.work, USER, USER)
        shutil.copy(BUILD / "bench_limit", self.root / "bench_limit")  # for the user to run
        self.socket = self.root / "run" / "api.sock"
        self.unix, self.tcp = f"unix:{self.socket}", f"tcp:{free_port()}"
        self.argv = [str(binary), "serve", "--socket", str(self.socket), "--no-auth",
                     "--listen", "127.0.0.1:" + self.tcp[4:], "--writable", str(self.work),
                     "--output-dir", str(self.work), "--state-dir", str(self.root / "state"),
                     "--user", f"{USER}:{USER}", "--mark-gids", self._marks(),
                     "--log-format", "json", *options]

    @staticmethod
    def _marks():
        first = 100_000_000 + os.getpid() % 400_000 * 5000
        return f"{first}-{first + 4999}"

    def __enter__(self):
        with open(self.root / "stderr", "wb") as err:
            self.proc = subprocess.Popen([*PREFIX, *self.argv], stderr=err,
                                         stdin=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while self._status() != 200:
            if self.proc.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.root / "stderr").read_text())
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.proc.terminate()
        self.proc.wait(30)
        shutil.rmtree(self.root, ignore_errors=True)

    def _status(self):
        try:
            return int(self.client("unix", "drain", "GET", "/readyz")["status"])
        except subprocess.CalledProcessError:
            return 0

    def client(self, over, *args, **kw):
        """What bench_client says after talking to this daemon over "unix" or "tcp"."""
        quiet = {} if "stderr" in kw else {"stderr": subprocess.DEVNULL}
        return run_json("client", getattr(self, over), *args, **quiet, **kw)

    def ask(self, method, target, body=None):
        """A request whose speed does not matter."""
        return self.client("unix", "load", 1, 1, 0, method, target,
                           *([json.dumps(body)] if body is not None else []))

    def hold(self, over, count, read, *request):
        """`count` connections that stay; ends with the returned process."""
        holder = subprocess.Popen([str(BUILD / "bench_client"), getattr(self, over), "hold",
                                   str(count), str(int(read)), *map(str, request)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        return holder

    def status(self, name):
        for line in Path(f"/proc/{self.proc.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
        raise KeyError(name)

    def switches(self):
        """Voluntary context switches of all threads: each is a wake-up."""
        total = 0
        for task in Path(f"/proc/{self.proc.pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
        return total

    def heap(self):
        """KiB of [heap] that are resident."""
        total, inside = 0, False
        for line in Path(f"/proc/{self.proc.pid}/smaps").read_text().splitlines():
            if line[:1].isdigit() or line[:1] in "abcdef":
                inside = line.endswith("[heap]")
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1])
        return total

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.proc.pid}/fd"))
