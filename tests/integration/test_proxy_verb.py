"""`nookd proxy`: standard input and output are one connection to the API, whatever they are."""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager

import pytest

import nook as harness
import ws_client
from wire import Connection, wait_until

GET_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def start_proxy(nook, prefix=(), **kw):
    kw = {"stderr": subprocess.PIPE, **kw}
    return subprocess.Popen([*prefix, str(nook.binary), "proxy"], bufsize=0,
                            env={**nook.env, "NOOKD_SOCKET": str(nook.socket)}, **kw)


def finish(proc, wait=30):
    """Exit status (128 + N for a signal) and standard error; standard output is not read."""
    code = proc.wait(wait * harness.wire.PATIENCE)
    with proc.stderr:
        err = proc.stderr.read()
    for end in (proc.stdin, proc.stdout):
        if end:
            end.close()
    return (128 - code if code < 0 else code), err


def pump(source, sink, done):
    """Copies until the end of `source`, and then tells `sink`'s side."""
    try:
        while data := os.read(source, 1 << 16):
            while data:
                data = data[os.write(sink, data):]
    except OSError:
        pass
    done()


@contextmanager
def through_pipes(proc):
    """A connection whose bytes go through the pipes of `proc`."""
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    threads = [
        threading.Thread(target=pump, args=(fd, proc.stdin.fileno(), proc.stdin.close)),
        threading.Thread(target=pump, args=(proc.stdout.fileno(), fd,
                                            lambda: theirs.shutdown(socket.SHUT_WR)))]
    for thread in threads:
        thread.start()
    try:
        with Connection(ours) as conn:
            yield conn
    finally:
        for thread in threads:
            thread.join()
        theirs.close()


@contextmanager
def through_socket(nook):
    """A connection whose other end is standard input and output of the verb at once."""
    ours, theirs = socket.socketpair()
    with theirs:
        proc = start_proxy(nook, stdin=theirs, stdout=theirs)
    try:
        with Connection(ours) as conn:
            yield conn, proc
    finally:
        if proc.poll() is None:
            proc.kill()
        finish(proc)


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def test_requests_on_one_connection_are_answered_in_order(nook):
    proc = start_proxy(nook, **PIPES)
    with through_pipes(proc) as conn:
        for _ in range(5):
            assert conn.request("GET", "/healthz").json()["status"] == "ok"
        conn.send(GET_HEALTH * 3)
        assert [conn.read_response().status for _ in range(3)] == [200] * 3
        assert conn.request("POST", "/v1/exec", json={"command": "echo hi"}).json()[
            "stdout"] == "hi\n"
    assert finish(proc) == (0, b"")


def test_an_event_stream_comes_as_it_is_written(nook):
    proc = start_proxy(nook, **PIPES)
    with through_pipes(proc) as conn:
        stream = conn.stream("POST", "/v1/exec/stream",
                             json={"command": "echo one; read x; echo $x", "stdin_open": True})
        started = stream.next_event("started").data
        assert stream.next_event("stdout").data == {"text": "one\n"}
        nook.post(f"/v1/processes/{started['id']}/stdin", {"text": "two\n"})
        assert stream.next_event("stdout").data == {"text": "two\n"}
        assert stream.next_event("exit").data["exit_code"] == 0
    assert finish(proc) == (0, b"")


def test_a_websocket_speaks_both_ways(nook):
    with through_socket(nook) as (conn, proc):
        session = ws_client.Session(conn, start={"command": ["cat"]})
        session.open()
        session.send(b"there and back")
        assert session.recv_message() | {"offset": 14} == {
            "type": "stdout", "text": "there and back", "offset": 14}
        session.close()
        assert proc.wait(20 * harness.wire.PATIENCE) == 0


def test_the_end_of_input_leaves_the_answer_alone(nook):
    body = json.dumps({"command": "cat; echo end", "stdin": "x" * 1000}).encode()
    request = (b"POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    done = nook.cli("proxy", input=request)
    head, _, text = done.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(text)["stdout"] == "x" * 1000 + "end\n"
    assert (done.returncode, done.stderr) == (0, b"")


def test_files_can_be_both_ends(nook):
    question, answer = nook.root / "question", nook.root / "answer"
    question.write_bytes(GET_HEALTH + LAST)
    with open(question, "rb") as source, open(answer, "ab") as sink:
        sink.write(b"before\n")
        sink.flush()
        proc = start_proxy(nook, stdin=source, stdout=sink)
        assert finish(proc) == (0, b"")
    assert answer.read_bytes().startswith(b"before\nHTTP/1.1 200 ")
    assert answer.read_bytes().count(b'"status":"ok"') == 2


def upload_head(path, size):
    return (f"PUT /v1/files?path={path} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {size}\r\nConnection: close\r\n\r\n").encode()


def test_a_large_upload_and_download_are_exact(nook):
    size = harness.scaled(1 << 30, least=1 << 22) >> 20 << 20
    block = os.urandom(1 << 20)
    want = hashlib.sha256()
    proc = start_proxy(nook, **PIPES)
    proc.stdin.write(upload_head("big", size))
    for i in range(size >> 20):
        piece = i.to_bytes(8, "big") + block[8:]
        want.update(piece)
        proc.stdin.write(piece)
    proc.stdin.close()
    assert proc.stdout.read(15) == b"HTTP/1.1 201 Cr"
    assert finish(proc) == (0, b"")

    got = hashlib.sha256()
    proc = start_proxy(nook, **PIPES)
    proc.stdin.write(b"GET /v1/files?path=big HTTP/1.1\r\nHost: localhost\r\n"
                     b"Connection: close\r\n\r\n")
    with open(proc.stdout.fileno(), "rb", closefd=False) as answer:
        while answer.readline() != b"\r\n":
            pass
        while piece := answer.read(1 << 20):
            got.update(piece)
    assert finish(proc) == (0, b"")
    assert got.hexdigest() == want.hexdigest()


def test_an_answer_that_nobody_reads_holds_up_neither_memory_nor_input(nook):
    (nook.workspace / "big").write_bytes(bytes(1 << 20) * 64)
    with through_socket(nook) as (conn, proc):
        conn.send(b"GET /v1/files?path=big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert conn.recv(1 << 12).startswith(b"HTTP/1.1 200 ")
        # The daemon does not read on meanwhile: what is sent waits, and does not wait for us.
        wait_until(lambda: not conn.send_some(GET_HEALTH * 5000), 30, "all buffers are full")
        peak = int(harness.status_field(proc.pid, "VmHWM").split()[0])
        assert harness.is_sanitized() or peak < 24 << 10
        rest = 0
        while rest < 60 << 20:
            rest += len(conn.recv())
        assert proc.poll() is None


def test_flags_that_others_share_are_left_alone(nook):
    ends = [*os.pipe(), *os.pipe()]
    try:
        before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in ends]
        proc = start_proxy(nook, stdin=ends[0], stdout=ends[3])
        os.write(ends[1], GET_HEALTH)
        assert os.read(ends[2], 15) == b"HTTP/1.1 200 OK"
        assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in ends] == before
        os.close(ends.pop(1))
        assert finish(proc) == (0, b"")
        assert not any(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in ends)
    finally:
        for fd in ends:
            os.close(fd)


def test_many_at_once_do_not_mix(nook):
    def one(i, results):
        proc = start_proxy(nook, **PIPES)
        with through_pipes(proc) as conn:
            for k in range(4):
                said = conn.request("POST", "/v1/exec", json={"command": ["echo", f"{i}.{k}"]})
                results.append((said.json()["stdout"], f"{i}.{k}\n"))
        assert finish(proc, 60) == (0, b"")

    count, results = harness.scaled(100, least=8), []
    threads = [threading.Thread(target=one, args=(i, results)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 * count
    assert [got for got, want in results if got != want] == []


# ends

def test_without_a_daemon_it_is_125(nook):
    done = nook.cli("proxy", "--socket", nook.root / "none", input=b"")
    assert done.returncode == 125
    assert b"cannot connect" in done.stderr


def test_operands_are_refused(nook):
    assert nook.cli("proxy", "8080", input=b"").returncode == 125


def test_it_ends_when_the_daemon_ends_the_connection(nook):
    proc = start_proxy(nook, **PIPES)
    proc.stdin.write(LAST)
    assert proc.wait(20 * harness.wire.PATIENCE) == 0  # standard input is still open
    assert proc.stdout.read(15) == b"HTTP/1.1 200 OK"
    assert finish(proc) == (0, b"")


def test_it_ends_when_the_daemon_is_killed(start_nook):
    nook = start_nook()
    nook.expect_exit = None
    proc = start_proxy(nook, **PIPES)
    proc.stdin.write(GET_HEALTH)
    assert proc.stdout.read(15) == b"HTTP/1.1 200 OK"
    nook.kill()
    assert proc.wait(20 * harness.wire.PATIENCE) in (0, 125)
    finish(proc)


def test_it_ends_when_nobody_reads_its_output(nook):
    proc = start_proxy(nook, **PIPES)
    proc.stdin.write(GET_HEALTH)
    assert proc.stdout.read(15) == b"HTTP/1.1 200 OK"
    proc.stdout.close()
    assert proc.wait(20 * harness.wire.PATIENCE) == 141
    finish(proc)


def test_both_ends_gone_ends_it_also_in_the_middle_of_an_answer(nook):
    with through_socket(nook) as (conn, proc):
        conn.send_request("POST", "/v1/exec/stream", json={"command": "yes"})
        conn.read_until(b"stdout")
        conn.close()
        assert proc.wait(20 * harness.wire.PATIENCE) == 141
    wait_until(lambda: nook.get("/v1/processes?running=true").json()["processes"] == [], 20,
               "the command goes with its client")


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(nook, signo):
    proc = start_proxy(nook, **PIPES)
    proc.stdin.write(GET_HEALTH)
    assert proc.stdout.read(15) == b"HTTP/1.1 200 OK"
    proc.send_signal(signo)
    assert finish(proc)[0] == 128 + signo


# through a container runtime

def box_config(nook):
    """A bundle with this machine's own files: what counts here is the way in."""
    subprocess.run(["runc", "spec"], cwd=nook.root, check=True)
    config = json.loads((nook.root / "config.json").read_text())
    seen = [d for d in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(d)]
    seen += [str(nook.root), str(nook.binary.parent)]
    (nook.root / "box").mkdir()
    config["root"] = {"path": str(nook.root / "box"), "readonly": False}
    config["process"].update(terminal=False, args=["sleep", "1000"])
    config["linux"].pop("resources", None)
    config["mounts"] += [{"destination": d, "source": d, "type": "bind",
                          "options": ["rbind", "ro"]} for d in seen]
    (nook.root / "config.json").write_text(json.dumps(config))


@pytest.fixture
def box(nook):
    """The command that runs another within a container of runc, in which the socket is seen."""
    if not harness.IS_ROOT or not shutil.which("runc"):
        pytest.skip("needs runc and root")
    state = ["runc", "--root", str(nook.root / "runc")]
    name = f"nook-{os.getpid()}"
    box_config(nook)
    log = nook.root / "runc.log"
    with open(log, "wb") as out:
        made = subprocess.run([*state, "run", "--detach", "--bundle", str(nook.root), name],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
    if made.returncode:
        pytest.skip(f"runc makes no container here: {log.read_text()[-300:]}")
    yield [*state, "exec", name, "env", f"NOOKD_SOCKET={nook.socket}"]
    subprocess.run([*state, "delete", "--force", name], check=False, capture_output=True)


def test_a_connection_through_runc_exec_is_exact(nook, box):
    size = harness.scaled(1 << 28, least=1 << 22) >> 20 << 20
    block = os.urandom(1 << 20)
    proc = start_proxy(nook, prefix=box, **PIPES)
    with through_pipes(proc) as conn:
        conn.send(upload_head("big", size).replace(b"Connection: close\r\n", b""))
        for _ in range(size >> 20):
            conn.send(block)
        assert conn.read_response().status == 201
        conn.send(b"GET /v1/files?path=big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = conn.read_head()
        assert int(answer.header("Content-Length")) == size
        for _ in range(size >> 20):
            assert conn.read_exactly(1 << 20) == block
        assert conn.request("GET", "/healthz").status == 200
    assert finish(proc)[0] == 0


def test_many_at_once_through_runc_exec(nook, box):
    def one(results):
        proc = start_proxy(nook, prefix=box, **PIPES)
        with through_pipes(proc) as conn:
            results.append(conn.request("GET", "/healthz").status)
        results.append(finish(proc, 60)[0])

    results = []
    threads = [threading.Thread(target=one, args=(results,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0] * 8 + [200] * 8
