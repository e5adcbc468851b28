"""A daemon of its own for each test: started in a temporary root, watched, and ended cleanly.

NOOK_BINARY      the nookd to test
NOOK_SERVE_ARGS  more arguments of `nookd serve` ("--without openat2,pidfd")
NOOK_SCALE       how large loads are (0.1 under sanitizers)
NOOK_PATIENCE    how many times longer deadlines are
"""

import contextlib
import copy
import itertools
import os
import re
import secrets
import shlex
import shutil
import signal as signals
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import wire
from wire import wait_until

SCALE = float(os.environ.get("NOOK_SCALE", "1"))
ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("NOOK_BINARY", ROOT / "build/dev/nookd")).resolve()
IS_ROOT = os.geteuid() == 0
USER = 200_000 + os.getpid() % 400_000  # has no entry in passwd, nor other processes
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|"
                       r"LeakSanitizer: detected|SUMMARY: \w*Sanitizer")


def scaled(count, least=1):
    """A load's size, smaller where NOOK_SCALE says so."""
    return max(least, int(count * SCALE))


def is_sanitized():
    """Whether the binary carries a sanitizer, whose memory and speed are not nookd's own."""
    data = BINARY.read_bytes()
    return b"__asan_init" in data or b"__tsan_init" in data


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def proc_stat(pid):
    """(state, parent, session) of a process; None where it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2:].split()
    return fields[0], int(fields[1]), int(fields[3])


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children_of(pid):
    """Direct children, zombies too."""
    out = []
    for child in all_pids():
        stat = proc_stat(child)
        if stat and stat[1] == pid:
            out.append(child)
    return out


def orphans():
    """(pid, state) of what outlived its nookd and came to this process, its subreaper."""
    own = os.getsid(0)
    pairs = [(pid, proc_stat(pid)) for pid in children_of(os.getpid())]
    return [(pid, stat[0]) for pid, stat in pairs if stat and stat[2] != own]


def reap_orphans():
    """What a process 1 does for a daemon that is neither that nor a subreaper."""
    for pid, state in orphans():
        if state == "Z":
            os.waitpid(pid, 0)


def descendants_of(pid):
    found, todo = [], [pid]
    while todo:
        more = children_of(todo.pop())
        found += more
        todo += more
    return found


def status_field(pid, name):
    """A line of /proc/PID/status, as text."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    raise KeyError(name)


_daemons = itertools.count()


def own_marks():
    """A range of mark groups that no other daemon on this machine uses meanwhile."""
    slot = (os.getpid() * 64 + next(_daemons) % 64) % 500_000
    first = 100_000_000 + slot * 5000
    return range(first, first + 5000)


def own_uids():
    """Uids for identities, likewise."""
    slot = (os.getpid() * 64 + next(_daemons) % 64) % 500_000
    first = 2_000_000_000 + slot * 1000
    return range(first, first + 1000)


class Asker:
    """What is asked of a daemon, wherever it is: over connections that the class below makes."""

    def connect(self, tcp=None, auth=True, wait=30):
        raise NotImplementedError

    def request(self, method, target, tcp=None, auth=True, wait=30, **kw):
        """One request on a connection of its own."""
        with self.connect(tcp, auth, wait) as conn:
            return conn.request(method, target, **kw)

    def get(self, target, **kw):
        return self.request("GET", target, **kw)

    def post(self, target, json=None, **kw):
        return self.request("POST", target, json=json, **kw)

    def stream(self, method, target, tcp=None, auth=True, wait=30, **kw):
        """An answer to be read as it comes; a context manager."""
        conn = self.connect(tcp, auth, wait)
        try:
            return conn.stream(method, target, **kw)
        except BaseException:
            conn.close()
            raise

    def exec(self, command, **fields):
        """The result of a command that must start."""
        response = self.post("/v1/exec", {"command": command, **fields}, wait=120)
        assert response.status == 200, response
        return response.json()

    def exec_stream(self, command, **fields):
        """A command's event stream; a context manager."""
        stream = self.stream("POST", "/v1/exec/stream", json={"command": command, **fields})
        assert stream.status == 200, stream.read()
        return stream


class Nook(Asker):
    """One running daemon.

    `expect_exit` is what it must end with at teardown (0); None: whatever it likes.
    """

    def __init__(self, *args, tcp=False, socket=True, user=None, program=None, env=None, pid1=False,
                 token=True, binary=BINARY, identities=False, wrap=()):
        self.root = Path(tempfile.mkdtemp(prefix="nook-"))
        self.root.chmod(0o755)
        self.binary = Path(binary)
        self.workspace = self.root / "workspace"
        self.output = self.root / "output"
        self.tmp = self.root / "tmp"
        self.home = self.root / "home"
        self.state = self.root / "state"
        self.socket = self.root / "run" / "api.sock" if socket else None
        self.token = secrets.token_urlsafe(24)
        self.token_file = self.root / "token"
        self.stderr_file = self.root / "stderr"
        self.stdout_file = self.root / "stdout"
        self.port = free_port() if tcp else None
        self.user = user if user is not None else (USER if IS_ROOT else os.getuid())
        self.marks = own_marks()
        self.uids = own_uids() if identities is True else identities
        self.named = []  # headers that say for which identity requests are
        self.expect_exit = 0
        self.pid1 = pid1
        self._make_folders()
        self.argv = [*wrap, *self._arguments(args, program, token, user)]
        self.env = self._environment(env)
        self.start()

    def _make_folders(self):
        for folder in (self.workspace, self.output, self.tmp, self.home):
            folder.mkdir()
            if IS_ROOT:
                os.chown(folder, self.user, self.user)
        self.tmp.chmod(0o1777)
        self.state.mkdir(mode=0o700)
        self.token_file.write_text(self.token)
        self.token_file.chmod(0o400)

    def _arguments(self, args, program, token, user):
        out = [str(self.binary), "serve", "--socket", str(self.socket or "none"),
               "--state-dir", str(self.state), "--output-dir", str(self.output),
               "--log-format", "json", "--log-level", "debug"]
        for folder in (self.workspace, self.output, self.tmp, self.home):
            out += ["--writable", str(folder)]
        if token:
            out += ["--token-file", str(self.token_file)]
        if IS_ROOT:
            out += ["--user", f"{self.user}:{self.user}"]
            out += ["--mark-gids", f"{self.marks[0]}-{self.marks[-1]}"]
        if self.uids:
            out += ["--identities", "--uid-range", f"{self.uids[0]}-{self.uids[-1]}"]
        if self.port:
            out += ["--listen", f"127.0.0.1:{self.port}"]
        out += shlex.split(os.environ.get("NOOK_SERVE_ARGS", ""))
        out += [str(a) for a in args]
        if program:
            out += ["--", *map(str, program)]
        if self.pid1:
            out = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *out]
        return out

    def _environment(self, more):
        env = {k: v for k, v in os.environ.items()
               if k == "PATH" or k.endswith("SAN_OPTIONS") or k.startswith("GCOV_")}
        env.setdefault("ASAN_OPTIONS", "exitcode=99:detect_leaks=1:allocator_may_return_null=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.setdefault("TSAN_OPTIONS", "exitcode=66")
        env.update(more or {})
        return env

    def start(self, ready=True):
        """Again, after it has ended: the same root, arguments and socket."""
        with open(self.stderr_file, "wb") as err, open(self.stdout_file, "wb") as out:
            self.proc = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=out,
                                         stderr=err, env=self.env, cwd="/")
        self.pid = self.proc.pid
        try:
            if self.pid1:
                self.pid = wait_until(lambda: self._only_child(), 10, "process 1 starts")
            if ready:
                self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def _only_child(self):
        assert self.proc.poll() is None, f"unshare ended: {self.stderr()}"
        kids = children_of(self.proc.pid)
        return kids and os.readlink(f"/proc/{kids[0]}/exe") == str(self.binary) and kids[0]

    def wait_ready(self):
        def ready():
            assert self.proc.poll() is None, \
                f"nookd ended with {self.proc.returncode} at its start: {self.stderr()}"
            try:
                return self.get("/readyz").status == 200
            except (ConnectionRefusedError, FileNotFoundError):
                return False
        wait_until(ready, 20, "nookd is ready")

    # what it is asked

    def tenant(self, token=None, pair=None):
        """The same daemon, asked for an identity: a token, or namespace and principal."""
        view = copy.copy(self)
        view.named = [("X-Runbox-Identity", token)] if token is not None else \
            [("X-Runbox-Namespace", pair[0]), ("X-Runbox-Principal", pair[1])]
        return view

    def connect(self, tcp=None, auth=True, wait=30):
        """A connection; over TCP with the bearer token in every request unless auth is False."""
        if tcp is None:
            tcp = self.socket is None
        if not tcp:
            return wire.connect_unix(self.socket, headers=self.named, wait=wait)
        headers = [("Authorization", f"Bearer {self.token}")] if auth else []
        headers += self.named
        return wire.connect_tcp(self.port, headers=headers, wait=wait)

    def cli(self, *args, input=None, wait=60, env=None, **kw):
        """A client verb of the same binary, talking to the socket."""
        return subprocess.run([str(self.binary), *map(str, args)], input=input,
                              capture_output=True, timeout=wait * wire.PATIENCE, check=False,
                              env={**self.env, "NOOKD_SOCKET": str(self.socket), **(env or {})},
                              **kw)

    # what it looks like

    def stderr(self):
        return self.stderr_file.read_text(errors="replace")

    def fds(self):
        """Its open descriptors: {number: target}."""
        out = {}
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                out[int(name)] = os.readlink(f"/proc/{self.pid}/fd/{name}")
            except FileNotFoundError:
                pass
        return out

    def rss(self):
        """Resident bytes."""
        return int(status_field(self.pid, "VmRSS").split()[0]) * 1024

    def children(self):
        return children_of(self.pid)

    def descendants(self):
        return descendants_of(self.pid)

    def zombies(self):
        return [p for p in self.children() if (proc_stat(p) or "?")[0] == "Z"]

    # its end

    def alive(self):
        return self.proc.poll() is None

    def signal(self, signo):
        os.kill(self.pid, signo)

    def wait(self, seconds=20):
        """The exit status, as a shell counts it."""
        end = wire.deadline(seconds)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.proc.wait(0.2)
                return 128 - code if code < 0 else code
            reap_orphans()
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.proc.args, seconds)

    def terminate(self, signo=signals.SIGTERM, seconds=20):
        self.signal(signo)
        return self.wait(seconds)

    def kill(self):
        """At once, with all that it started."""
        pids = descendants_of(self.proc.pid)
        for pid in [self.proc.pid, *pids]:
            try:
                os.kill(pid, signals.SIGKILL)
            except ProcessLookupError:
                pass
        self.proc.wait(20)
        self._leftovers()

    def finish(self):
        """Ends it if it runs; everything wrong with how it ended, as sentences."""
        wrong = []
        if self.expect_exit is not None:
            if self.proc.poll() is not None and self.expect_exit == 0 and self.proc.returncode != 0:
                wrong.append(f"nookd had ended by itself with {self.proc.returncode}")
            elif self.proc.poll() is None:
                wrong += self._end_in_peace()
        if self.proc.poll() is None:
            self.kill()
        report = SANITIZER.search(self.stderr())
        if report:
            wrong.append(f"a sanitizer spoke: {self.stderr()[report.start():][:6000]}")
        wrong += self._leftovers()
        return wrong

    def _end_in_peace(self):
        try:
            code = self.terminate()
        except subprocess.TimeoutExpired:
            self.kill()
            return ["nookd did not end within its deadline after TERM"]
        if code != self.expect_exit:
            return [f"nookd ended with {code} and not {self.expect_exit}"]
        return []

    def _leftovers(self):
        wrong = []
        for pid, state in orphans():
            if state != "Z":
                name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if name:  # one without a name is on its way out already: a start that failed
                    wrong.append(f"process {pid} outlived nookd: {name}")
                    os.kill(pid, signals.SIGKILL)
            os.waitpid(pid, 0)
        return wrong

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)


def refuse(*args, env=None, wait=20, wrap=()):
    """`nookd serve` with arguments that must stop it at once: (exit status, standard error)."""
    clean = {"PATH": os.environ["PATH"], **(env or {})}
    done = subprocess.run([*wrap, str(BINARY), "serve", *map(str, args)], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=wait * wire.PATIENCE,
                          env=clean, check=False)
    return done.returncode, done.stderr
