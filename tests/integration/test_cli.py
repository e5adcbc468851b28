"""The client verbs of the binary: exact bytes both ways, and exit statuses as a shell expects."""

import hashlib
import os
import signal
import socket
import subprocess
import threading

import pytest

import nook as harness
from wire import wait_until


def start_cli(nook, *args, env=None, **kw):
    """A verb left running; its environment is that of nook.cli."""
    kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
    # Unbuffered: what a readline took too much would be lost to communicate.
    return subprocess.Popen([str(nook.binary), *map(str, args)], bufsize=0,
                            env={**nook.env, "NOOKD_SOCKET": str(nook.socket), **(env or {})}, **kw)


def end_of(proc, wait=20):
    """Its exit status (128 + N for a signal), standard output and standard error."""
    out, err = proc.communicate(timeout=wait * harness.wire.PATIENCE)
    return 128 - proc.returncode if proc.returncode < 0 else proc.returncode, out, err


def sleepers(mark):
    """Processes that carry `mark` in their arguments, and are not zombies."""
    found = []
    for pid in harness.all_pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if mark.encode() in words and b"exec" not in words:
            found.append(pid)
    return found


class FakeDaemon:
    """Answers every connection to a Unix socket with the same bytes, and hangs up."""

    def __init__(self, folder, answer):
        self.path = folder / "fake.sock"
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(4)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with conn:
                data = b""
                while b"\r\n\r\n" not in data:
                    piece = conn.recv(65536)
                    if not piece:
                        break
                    data += piece
                conn.sendall(self.answer)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@pytest.fixture
def fake_daemon(tmp_path):
    made = []

    def make(answer):
        made.append(FakeDaemon(tmp_path, answer))
        return {"NOOKD_SOCKET": str(made[-1].path), "PATH": os.environ["PATH"]}

    yield make
    for fake in made:
        fake.close()


def run_nookd(*args, env, **kw):
    return subprocess.run([str(harness.BINARY), *args], env=env, capture_output=True, check=False,
                          timeout=30 * harness.wire.PATIENCE, **kw)


def chunked(*parts):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts)


STARTED = b'event: started\nid: 0\ndata: {"id":"a","pid":2,"offset":0}\n\n'
OUTPUT = b'event: stdout\nid: 3\ndata: {"text":"hi\\n"}\n\n'


# exec

def test_exec_writes_every_byte_to_the_stream_it_belongs_to(nook):
    script = r"printf 'a\000\377\303\251\n'; printf 'err\376' >&2"
    done = nook.cli("exec", "--", "sh", "-c", script)
    assert done.stdout == b"a\x00\xff\xc3\xa9\n"
    assert done.stderr == b"err\xfe"
    assert done.returncode == 0


def test_exec_passes_a_large_output_unchanged(nook):
    size = harness.scaled(64 << 20, least=1 << 20)
    (nook.workspace / "big").write_bytes(os.urandom(1 << 20) * (size >> 20))
    done = nook.cli("exec", "--cwd", nook.workspace, "cat", "big", wait=120)
    want = hashlib.sha256((nook.workspace / "big").read_bytes()).hexdigest()
    assert hashlib.sha256(done.stdout).hexdigest() == want


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("exit 125", 125),
    ("kill -TERM $$", 128 + signal.SIGTERM), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_exec_ends_as_the_command_ended(nook, script, status):
    done = nook.cli("exec", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


def test_exec_kills_at_its_timeout_and_says_137(nook):
    done = nook.cli("exec", "--timeout", "0.2", "sh", "-c", "echo begun; sleep 1000")
    assert (done.returncode, done.stdout) == (137, b"begun\n")


def test_exec_says_as_a_shell_why_a_program_did_not_start(start_nook):
    # A folder in PATH that the user may not enter would make it EACCES.
    nook = start_nook(env={"PATH": "/usr/bin:/bin"})
    plain = nook.workspace / "plain"
    plain.write_text("no program")
    plain.chmod(0o644)
    missing = nook.cli("exec", "no-such-program")
    refused = nook.cli("exec", plain)
    nowhere = nook.cli("exec", "--cwd", "/no/such/place", "true")
    assert [d.returncode for d in (missing, refused, nowhere)] == [127, 126, 125]
    for done in (missing, refused, nowhere):
        assert done.stderr.startswith(b"nookd: exec_failed: ") and done.stdout == b""


def test_exec_sets_directory_and_variables_and_the_last_one_counts(nook):
    done = nook.cli("exec", "--cwd", nook.output, "--env", "A=1", "--env", "B=x y=z", "--env=A=2",
                    "sh", "-c", 'pwd; echo "$A/$B"')
    assert done.stdout.decode() == f"{nook.output}\n2/x y=z\n"


def test_exec_leaves_the_options_of_the_command_to_the_command(nook):
    done = nook.cli("exec", "echo", "--help", "-x", "--")
    assert done.stdout == b"--help -x --\n"
    done = nook.cli("exec", "--", "echo", "-t")
    assert done.stdout == b"-t\n"


def test_exec_gives_standard_input_only_when_asked(nook):
    data = b"\x00\xff input\n" * 1000
    assert nook.cli("exec", "-i", "cat", input=data).stdout == data
    assert nook.cli("exec", "cat", input=data).stdout == b""
    assert nook.cli("exec", "-i", "cat", input=b"").stdout == b""


def test_exec_refuses_input_that_does_not_fit_before_it_starts_anything(nook):
    done = nook.cli("exec", "-i", "--detach", "sh", "-c", "touch begun; cat", input=b"x" * (1 << 20))
    assert done.returncode == 125 and b"standard input is longer" in done.stderr
    assert not (nook.workspace / "begun").exists()


@pytest.mark.parametrize("args, word", [
    ([], b"no command"), (["--foo"], b"--foo"),
    (["--timeout", "x", "true"], b"--timeout"), (["--timeout", "-1", "true"], b"--timeout"),
    (["--env", "novalue", "true"], b"novalue"), (["--env", "1X=1", "true"], b"1X"),
    (["--cwd"], b"--cwd")])
def test_exec_says_what_is_wrong_with_its_arguments(nook, args, word):
    done = nook.cli("exec", *args)
    assert (done.returncode, done.stdout) == (125, b"")
    assert word in done.stderr and done.stderr.count(b"\n") == 1


def test_exec_refuses_arguments_that_json_cannot_carry(nook):
    done = subprocess.run([os.fsencode(nook.binary), b"exec", b"echo", b"\xff"], check=False,
                          env={**nook.env, "NOOKD_SOCKET": str(nook.socket)}, capture_output=True,
                          timeout=30 * harness.wire.PATIENCE)
    assert done.returncode == 125 and b"not UTF-8" in done.stderr


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_exec_takes_its_command_with_it(nook, signo):
    proc = start_cli(nook, "exec", "sh", "-c", "echo begun; exec sleep 4711.25")
    assert proc.stdout.readline() == b"begun\n"
    wait_until(lambda: sleepers("4711.25"), what="the command sleeps")
    proc.send_signal(signo)
    status, _, err = end_of(proc)
    assert (status, err) == (128 + signo, b"")
    wait_until(lambda: not sleepers("4711.25"), what="the command is killed")


def test_a_killed_exec_takes_its_command_with_it(nook):
    proc = start_cli(nook, "exec", "sh", "-c", "echo begun; exec sleep 4712.25")
    assert proc.stdout.readline() == b"begun\n"
    proc.kill()
    end_of(proc)
    wait_until(lambda: not sleepers("4712.25"), what="the command is killed")


def test_an_exec_that_was_started_without_ctrl_c_does_not_hear_it(nook):
    script = "echo begun; until test -e gate; do sleep 0.05; done; echo done"
    proc = start_cli(nook, "exec", "--cwd", nook.workspace, "sh", "-c", script,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert proc.stdout.readline() == b"begun\n"
    proc.send_signal(signal.SIGINT)
    (nook.workspace / "gate").touch()
    assert end_of(proc) == (0, b"done\n", b"")


def test_an_interrupt_is_heard_also_when_nobody_takes_the_output(nook):
    proc = start_cli(nook, "exec", "sh", "-c", "yes begun4713")
    assert proc.stdout.readline() == b"begun4713\n"
    # Its pipe is full once it stops making progress in /proc/PID/io.
    seen = [None]

    def is_stuck():
        with open(f"/proc/{proc.pid}/io", encoding="ascii") as f:
            now = f.read()
        stuck, seen[0] = now == seen[0], now
        return stuck

    wait_until(is_stuck, what="the pipe is full")
    proc.send_signal(signal.SIGINT)
    proc.wait(20 * harness.wire.PATIENCE)
    assert end_of(proc)[0] == 130
    wait_until(lambda: not sleepers("begun4713"), what="the command is killed")


def test_exec_ends_like_a_tool_when_its_reader_leaves(nook):
    proc = start_cli(nook, "exec", "yes", "begun4714")
    assert proc.stdout.readline() == b"begun4714\n"
    proc.stdout.close()
    proc.stdout = None
    status, _, err = end_of(proc)
    assert (status, err) == (128 + signal.SIGPIPE, b"")
    wait_until(lambda: not sleepers("begun4714"), what="the command is killed")


@pytest.mark.parametrize("verb", [["logs", "-f"], ["attach"]])
def test_who_watches_a_quiet_process_ends_with_its_reader_and_leaves_the_process_alone(nook, verb):
    job = nook.post("/v1/processes", {"command": "echo begun; exec sleep 4715.25"}).json()
    proc = start_cli(nook, *verb, job["id"])
    assert proc.stdout.readline() == b"begun\n"
    proc.stdout.close()
    proc.stdout = None
    status, _, err = end_of(proc)
    assert (status, err) == (128 + signal.SIGPIPE, b"")
    assert nook.get(f"/v1/processes/{job['id']}").json()["status"] == "running"


def test_a_full_disk_under_the_output_is_told(nook):
    with open("/dev/full", "wb") as full:
        proc = start_cli(nook, "exec", "echo", "hi", stdout=full)
        status, _, err = end_of(proc)
    assert status == 125 and b"No space left" in err


@pytest.mark.parametrize("answer", [
    chunked(STARTED, OUTPUT) + b"0\r\n\r\n",
    chunked(STARTED, OUTPUT),
    chunked(STARTED, OUTPUT) + b"40\r\nevent: exit\nid: 3\ndata: {",
    chunked(STARTED, OUTPUT, b"event: exit\nid: 3\ndata: {\"exit_code\":0}\n") + b"0\r\n\r\n",
    chunked(STARTED, OUTPUT, b"event: exit\nid: 3\ndata: {}\n\n") + b"0\r\n\r\n",
    chunked(STARTED, OUTPUT, b"event: exit\nid: 3\ndata: {\"exit_code\":256}\n\n"),
    chunked(STARTED, OUTPUT, b"event: stdout\nid: 4\ndata: {\"text\":\"\n\n"),
    chunked(STARTED, OUTPUT) + b"zz\r\n"])
def test_a_stream_without_its_closing_event_is_broken(fake_daemon, answer):
    done = run_nookd("exec", "x", env=fake_daemon(answer))
    assert (done.returncode, done.stdout) == (125, b"hi\n")
    assert done.stderr.startswith(b"nookd: ") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 20", b"SSH-2.0-x\r\n\r\n",
                                    b"HTTP/1.1 502 x\r\nContent-Length: 3\r\n\r\n<p>"])
def test_an_answer_that_is_none_is_told(fake_daemon, answer):
    done = run_nookd("exec", "x", env=fake_daemon(answer))
    assert (done.returncode, done.stdout) == (125, b"") and done.stderr.startswith(b"nookd: ")


def test_an_error_event_is_told(fake_daemon):
    answer = chunked(STARTED, b'event: error\nid: 0\ndata: '
                     b'{"code":"internal","message":"it \\u001b[31mbroke"}\n\n')
    done = run_nookd("exec", "x", env=fake_daemon(answer))
    assert (done.returncode, done.stderr) == (125, b"nookd: internal: it ?[31mbroke\n")


def test_without_a_daemon_exec_says_so(tmp_path):
    done = run_nookd("exec", "true", env={"NOOKD_SOCKET": str(tmp_path / "none.sock")})
    assert done.returncode == 125 and b"none.sock" in done.stderr


def test_the_option_names_the_socket_before_the_environment(nook, tmp_path):
    wrong = {"NOOKD_SOCKET": str(tmp_path / "none.sock")}
    assert nook.cli("exec", "--socket", nook.socket, "true", env=wrong).returncode == 0


# over TCP

def test_a_url_and_a_token_file_reach_the_daemon_too(tcp_nook):
    env = {"NOOKD_URL": f"http://127.0.0.1:{tcp_nook.port}",
           "NOOKD_TOKEN_FILE": str(tcp_nook.token_file)}
    done = tcp_nook.cli("exec", "sh", "-c", "echo hi; exit 3", env=env)
    assert (done.returncode, done.stdout) == (3, b"hi\n")


def test_a_wrong_token_is_told_and_never_shown(tcp_nook, tmp_path):
    wrong = tmp_path / "token"
    wrong.write_text("not-the-token\n")
    env = {"NOOKD_URL": f"http://127.0.0.1:{tcp_nook.port}/", "NOOKD_TOKEN_FILE": str(wrong)}
    done = tcp_nook.cli("exec", "true", env=env)
    assert done.returncode == 125 and done.stderr.startswith(b"nookd: unauthorized: ")
    call = tcp_nook.cli("call", "GET", "/v1/capabilities", env=env)
    assert call.returncode == 1 and b"unauthorized" in call.stdout
    assert b"not-the-token" not in done.stderr + call.stdout + call.stderr


# health

def test_health_is_one_line_and_0(nook):
    done = nook.cli("health")
    assert done.returncode == 0 and done.stdout.startswith(b"ok version ")
    assert done.stdout.count(b"\n") == 1 and done.stderr == b""


def test_health_needs_no_token(tcp_nook):
    env = {"NOOKD_URL": f"http://127.0.0.1:{tcp_nook.port}"}
    assert tcp_nook.cli("health", env=env).returncode == 0


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n",
                                    b"HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\n{}",
                                    b"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n"])
def test_health_is_1_for_anything_else(fake_daemon, answer):
    done = run_nookd("health", env=fake_daemon(answer))
    assert done.returncode == 1 and (done.stdout + done.stderr).count(b"\n") == 1


def test_health_is_1_without_a_daemon_or_with_wrong_arguments(tmp_path):
    env = {"NOOKD_SOCKET": str(tmp_path / "none.sock")}
    assert run_nookd("health", env=env).returncode == 1
    assert run_nookd("health", "--foo", env=env).returncode == 1


# call

def test_call_prints_the_body_and_tells_the_status(nook):
    good = nook.cli("call", "POST", "/v1/exec", "--data", '{"command":"echo hi"}')
    assert good.returncode == 0 and b'"stdout":"hi\\n"' in good.stdout
    bad = nook.cli("call", "GET", "/v1/no-such-thing")
    assert bad.returncode == 1 and b'"not_found"' in bad.stdout and bad.stderr == b""


def test_call_takes_its_data_from_a_file_or_standard_input(nook, tmp_path):
    body = b'{"command":["printf","%s","' + b"x" * 100000 + b'"]}'
    (tmp_path / "body").write_bytes(body)
    for args, data in ((["--data", f"@{tmp_path / 'body'}"], None), (["--data", "-"], body)):
        done = nook.cli("call", "POST", "/v1/exec", *args, input=data)
        assert done.returncode == 0 and b"x" * 100000 in done.stdout


def test_call_prints_a_stream_as_it_comes(nook):
    script = '{"command":"echo first; until test -e gate; do sleep 0.05; done; echo second",' \
             f'"cwd":"{nook.workspace}"}}'
    proc = start_cli(nook, "call", "POST", "/v1/exec/stream", "--data", script)
    while b"first" not in proc.stdout.readline():
        pass
    (nook.workspace / "gate").touch()
    status, out, _ = end_of(proc)
    assert status == 0 and b"second" in out and b"event: exit" in out


def test_call_reads_the_refusal_of_a_body_that_is_too_large(nook):
    done = nook.cli("call", "POST", "/v1/exec", "--data", "-", input=b" " * (8 << 20))
    assert done.returncode == 1 and b'"too_large"' in done.stdout


def test_call_says_125_where_there_is_no_whole_answer(fake_daemon, tmp_path):
    env = fake_daemon(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    done = run_nookd("call", "GET", "/", env=env)
    assert (done.returncode, done.stdout) == (125, b"half")
    none = run_nookd("call", "GET", "/", env={"NOOKD_SOCKET": str(tmp_path / "none.sock")})
    assert (none.returncode, none.stdout) == (125, b"")


@pytest.mark.parametrize("args", [[], ["GET"], ["GET", "/", "x"], ["GET", "no-slash"],
                                  ["GET", "/a b"], ["GET", "/", "--data", "@/no/such/file"]])
def test_call_refuses_what_is_no_call(nook, args):
    done = nook.cli("call", *args)
    assert done.returncode == 125 and done.stderr.startswith(b"nookd: ")


# processes

def test_a_detached_command_is_listed_followed_and_killed(nook):
    script = "echo out; echo err >&2; exec sleep 4715.25"
    started = nook.cli("exec", "--detach", "sh", "-c", script)
    assert (started.returncode, started.stderr) == (0, b"")
    id = started.stdout.decode().strip()
    wait_until(lambda: sleepers("4715.25"), what="the command sleeps")

    listed = nook.cli("ps", "--running").stdout.decode().splitlines()
    assert listed[0].split() == ["ID", "NAME", "STATUS", "STARTED", "COMMAND"]
    assert len(listed) == 2 and id in listed[1] and "running" in listed[1]
    logs = nook.cli("logs", id)
    assert (logs.returncode, logs.stdout, logs.stderr) == (0, b"out\n", b"err\n")

    follower = start_cli(nook, "logs", "-f", "--since", "4", id)
    killed = nook.cli("kill", "-s", "KILL", id)
    assert (killed.returncode, killed.stdout, killed.stderr) == (0, b"", b"")
    assert end_of(follower) == (0, b"", b"err\n")
    wait_until(lambda: "exited KILL" in nook.cli("ps").stdout.decode(), what="it is told as ended")
    assert len(nook.cli("ps", "--running").stdout.splitlines()) == 1


def test_logs_of_an_ended_process_come_whole_and_from_an_offset(nook):
    nook.cli("exec", "sh", "-c", r"printf '0123456789\000\377'")
    record = nook.get("/v1/processes").json()["processes"][0]
    assert nook.cli("logs", record["id"]).stdout == b"0123456789\0\xff"
    assert nook.cli("logs", "--since", "8", record["id"]).stdout == b"89\0\xff"
    assert nook.cli("logs", "-f", "--since", "12", record["id"]).stdout == b""
    beyond = nook.cli("logs", "--since", "13", record["id"])
    assert beyond.returncode == 125 and b"bad_request" in beyond.stderr


@pytest.mark.parametrize("args", [["logs", "nope"], ["logs", "-f", "nope"], ["kill", "nope"],
                                  ["kill", "no/such?thing"]])
def test_a_process_that_is_not_there_is_told(nook, args):
    done = nook.cli(*args)
    assert done.returncode == 125 and done.stderr.startswith(b"nookd: not_found: ")


def test_a_signal_that_is_none_is_told(nook):
    id = nook.cli("exec", "--detach", "sleep", "4716.25").stdout.decode().strip()
    done = nook.cli("kill", "-s", "NONSENSE", id)
    assert done.returncode == 125 and done.stderr.startswith(b"nookd: bad_signal: ")
    assert nook.cli("kill", id).returncode == 0


# help

@pytest.mark.parametrize("verb", ["exec", "ps", "logs", "kill", "call", "health"])
def test_every_verb_explains_itself_without_a_daemon(verb):
    env = {"NOOKD_SOCKET": "/no/such/socket"}
    done = run_nookd(verb, "--help", env=env)
    assert done.returncode == 0 and done.stdout.startswith(f"usage: nookd {verb}".encode())
    assert done.stderr == b"" and run_nookd(verb, "-h", env=env).stdout == done.stdout
    assert verb.encode() in run_nookd("--help", env={}).stdout
    assert run_nookd("help", env={}).stdout == run_nookd("--help", env={}).stdout


def test_a_verb_that_is_none_is_named_and_2():
    done = run_nookd("frobnicate", env={})
    assert done.returncode == 2 and b"frobnicate" in done.stderr
