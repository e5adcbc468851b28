"""`nookd serve -- PROGRAM` as a process of the test: as process 1 of a pid namespace, or not."""

import fcntl
import os
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import time
from pathlib import Path

import nook as harness
import wire
from wire import wait_until

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else shutil.which("python3")
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Init:
    """One run. `before` stands in front of nookd, inside the namespace; `around` outside of it."""

    def __init__(self, program, *args, pid1=False, before=(), around=(), tty=False, stdin=None,
                 cwd="/", env=None, pass_fds=()):
        self.root = Path(tempfile.mkdtemp(prefix="nook-"))
        self.root.chmod(0o755)
        self.pid1 = pid1
        self.stderr_file = self.root / "stderr"
        self.work = self.root / "work"
        self.work.mkdir()
        self.marks = marks = harness.own_marks()
        argv = [*around, *(NAMESPACE if pid1 else ()), *before, harness.BINARY, "serve",
                "--socket", self.root / "run/api.sock", "--writable", self.work,
                "--output-dir", self.work, "--log-format", "json", "--log-level", "debug"]
        if harness.IS_ROOT:
            os.chown(self.work, harness.USER, harness.USER)
            argv += ["--user", f"{harness.USER}:{harness.USER}",
                     "--mark-gids", f"{marks[0]}-{marks[-1]}"]
        argv += [*os.environ.get("NOOK_SERVE_ARGS", "").split(), *args]
        argv += ["--", *program] if program else []
        self.buffer = b""
        self.terminal = None
        self._start([str(a) for a in argv], tty, stdin, str(cwd), env, pass_fds)

    def _start(self, argv, tty, stdin, cwd, env, pass_fds):
        keep = {k: v for k, v in os.environ.items()
                if k == "PATH" or k.endswith("SAN_OPTIONS") or k.startswith("GCOV_")}
        give = {"cwd": cwd, "env": {**keep, **(env or {})}, "pass_fds": pass_fds}
        with open(self.stderr_file, "wb") as err:
            if tty:
                self.terminal, slave = os.openpty()
                self.out = self.terminal
                self.proc = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=err, **give,
                                             preexec_fn=_own_terminal)
                os.close(slave)
            else:
                self.proc = subprocess.Popen(argv, stdin=stdin or subprocess.DEVNULL,
                                             stdout=subprocess.PIPE, stderr=err, **give)
                self.out = self.proc.stdout.fileno()

    @property
    def pid(self):
        """nookd's, as seen from here."""
        def look():
            for pid in [self.proc.pid, *harness.descendants_of(self.proc.pid)]:
                try:
                    if os.path.samefile(f"/proc/{pid}/exe", harness.BINARY) \
                            and harness.status_field(pid, "PPid"):
                        return pid
                except OSError:
                    pass
            return None
        if not getattr(self, "_pid", None):
            self._pid = wait_until(look, 20, "nookd runs")
        return self._pid

    def below(self):
        """Whom PROGRAM has started, itself with them: also who went to another reaper."""
        pids = set(harness.descendants_of(self.pid))
        for pid in harness.all_pids() if harness.IS_ROOT else ():
            try:
                groups = harness.status_field(pid, "Groups").split()
            except (OSError, KeyError):
                continue
            if any(int(group) in self.marks for group in groups):
                pids.add(pid)
        return sorted(pids - {self.pid})

    @property
    def main(self):
        """PROGRAM, as seen from here: the first child that is no clone of nookd (the self-test's are)."""
        return wait_until(lambda: [p for p in harness.children_of(self.pid) if self._is_other(p)],
                          20, "PROGRAM runs")[0]

    @staticmethod
    def _is_other(pid):
        try:
            return not os.path.samefile(f"/proc/{pid}/exe", harness.BINARY)
        except OSError:
            return False

    def _more(self, end):
        left = max(0, end - time.monotonic())
        if not select.select([self.out], [], [], left)[0]:
            raise AssertionError(f"no line in time; had {self.buffer!r}; {self.stderr()}")
        try:
            return os.read(self.out, 65536)
        except OSError:
            return b""  # a terminal whose other side is closed

    def line(self, seconds=20):
        """The next line of PROGRAM's output; None at its end."""
        end = wire.deadline(seconds)
        while b"\n" not in self.buffer:
            data = self._more(end)
            if not data:
                return None
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode().rstrip("\r")

    def until(self, text, seconds=20):
        """Output up to and with `text`, on a terminal too, where there may be no line."""
        end = wire.deadline(seconds)
        want = text.encode()
        while want not in self.buffer:
            data = self._more(end)
            assert data, f"ended before {text!r}: {self.buffer!r}"
            self.buffer += data
        at = self.buffer.index(want) + len(want)
        out, self.buffer = self.buffer[:at], self.buffer[at:]
        return out.decode()

    def rest(self, seconds=20):
        end = wire.deadline(seconds)
        while True:
            data = self._more(end)
            if not data:
                out, self.buffer = self.buffer, b""
                return out.decode()
            self.buffer += data

    def signal(self, signo):
        os.kill(self.pid, signo)

    def wait(self, seconds=30):
        """The exit status as a shell counts it."""
        code = self.proc.wait(seconds * wire.PATIENCE)
        return 128 - code if code < 0 else code

    def stderr(self):
        return self.stderr_file.read_text(errors="replace")

    def states(self):
        """Of all below nookd: one letter each."""
        return [s[0] for s in map(harness.proc_stat, harness.descendants_of(self.pid)) if s]

    def finish(self):
        """Whether it is over or not: nothing of it is left. What a sanitizer said, or ""."""
        for pid in [*harness.descendants_of(self.proc.pid), self.proc.pid]:
            if self.proc.poll() is None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.proc.wait(20)
        if self.proc.stdout:
            self.proc.stdout.close()
        if self.terminal is not None:
            os.close(self.terminal)
        report = harness.SANITIZER.search(self.stderr())
        text = self.stderr()[report.start():][:6000] if report else ""
        shutil.rmtree(self.root, ignore_errors=True)
        return text


def _own_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def reap(pids):
    """Ends what came to this process, which is their subreaper."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
