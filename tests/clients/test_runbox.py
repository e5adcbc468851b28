"""The Runbox client against a real agent."""

import ast
import io
import os
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead
from pathlib import Path

import fastapi
import pytest
from fastapi.responses import StreamingResponse

import front
import runbox
from nook import scaled
from runbox import Client, FileUpload, Identity, RunboxError
from test_readme_runbox import served
from wire import connect_tcp, wait_until

WITH_RUNBOX = {**os.environ, "PYTHONPATH": str(Path(runbox.__file__).parents[1])}


def client_of(nook, **kw):
    return Client(f"http://127.0.0.1:{nook.port}", api_key=nook.token, **kw)


@pytest.fixture
def nook(start_nook):
    return start_nook(tcp=True)


@pytest.fixture
def client(nook):
    return client_of(nook)


def failing(call, *args, **kw):
    """The RunboxError of a call that must fail."""
    with pytest.raises(RunboxError) as caught:
        call(*args, **kw)
    return caught.value


# commands


def test_a_result_is_the_answer(client, nook):
    result = client.exec("mkdir made; echo x > made/f; echo out; echo err >&2; exit 3")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "out\n", "err\n")
    assert result["files"] == [{"path": f"{nook.workspace}/made/f", "size": 2}]
    assert result["duration_ms"] > 0
    assert client.exec("touch other", report_files=False)["files"] == []


def test_a_command_has_its_input_environment_and_folder(client):
    client.exec("mkdir sub")
    result = client.exec(["sh", "-c", "cat; echo $A; basename $PWD"], stdin="in ", env={"A": "1"},
                         cwd="sub")
    assert result["stdout"] == "in 1\nsub\n"


def test_a_command_over_its_time_is_an_error_of_its_own(client):
    error = failing(client.exec, "sleep 600", timeout=0.2)
    assert (error.code, error.status) == ("timeout", 408)
    assert error.body["exit_code"] == 137 and "after 0." in error.message


def test_attachments_are_in_place_before_the_start(client, tmp_path):
    (tmp_path / "local").write_bytes(b"from disk")
    stream = io.BytesIO(b"skipped, streamed")
    stream.seek(9)
    names = ["plain", "sub/deep", 'quo"te \\', "caf\u00e9 \u2028", "line\nend"]
    files = [FileUpload(names[0], path=tmp_path / "local"), FileUpload(names[1], stream=stream),
             *(FileUpload(name, stream=io.BytesIO(b"")) for name in names[2:])]
    result = client.exec("cat files/plain files/sub/deep", files=files)
    listed = {entry["path"] for entry in client.list("files", recursive=True)
              if entry["type"] == "file"}
    assert listed == {"files/" + name for name in names}
    assert result["stdout"] == "from diskstreamed"
    assert not stream.closed


def test_a_stream_of_unknown_length_is_sent_as_it_comes(client):
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:
        def write():
            with open(writing, "wb") as file:
                file.write(b"x" * 1_000_000)
        writer = threading.Thread(target=write)
        writer.start()
        result = client.exec("wc -c < files/f", files=[FileUpload("f", stream=stream)])
        writer.join()
    assert result["stdout"].strip() == "1000000"


def test_an_attachment_is_a_path_or_a_stream():
    for wrong in ({}, {"path": "x", "stream": io.BytesIO()}):
        with pytest.raises(ValueError):
            FileUpload("name", **wrong)


def test_all_slots_taken_is_busy(start_nook):
    client = client_of(start_nook("--max-commands", 1, tcp=True))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.exec, "touch up; until [ -e go ]; do sleep 0.01; done")
        wait_until(lambda: any(entry["path"] == "up" for entry in client.list()))
        error = failing(client.exec, "true")
        client.upload("go", "", directory=".")
        assert first.result()["exit_code"] == 0
    assert (error.status, error.code) == (409, "busy")


def test_an_interrupt_ends_the_command_too(client, nook):
    script = "import sys; from runbox import Client\n" \
             "Client(sys.argv[1], api_key=sys.argv[2]).exec('touch up; sleep 600')"
    caller = subprocess.Popen([sys.executable, "-c", script, f"http://127.0.0.1:{nook.port}",
                               nook.token], env=WITH_RUNBOX, stderr=subprocess.DEVNULL)
    wait_until((nook.workspace / "up").exists)
    caller.send_signal(signal.SIGINT)
    assert caller.wait(30) != 0
    wait_until(lambda: nook.get("/v1/processes").json()["processes"][0]["reason"] == "client_gone")


def test_threads_share_a_client(client):
    with ThreadPoolExecutor(16) as pool:
        numbers = [str(n) for n in range(scaled(200, 40))]
        results = list(pool.map(lambda n: client.exec(["echo", n], report_files=False), numbers))
    assert [r["stdout"] for r in results] == [n + "\n" for n in numbers]


# files


def test_uploads_say_where_they_went(client, tmp_path):
    (tmp_path / "report.xlsx").write_bytes(b"data")
    entry = client.upload_file(tmp_path / "report.xlsx")
    assert (entry["path"], entry["size"]) == ("files/report.xlsx", 4)
    entry = client.upload_file(tmp_path / "report.xlsx", "other", directory="in")
    assert entry["path"] == "in/other"
    assert client.upload("notes.txt", "text")["path"] == "files/notes.txt"
    batch = client.upload_batch([FileUpload("b", stream=io.BytesIO(b"1")),
                                 FileUpload("a", path=tmp_path / "report.xlsx")])
    assert [(e["path"], e["size"]) for e in batch] == [("files/b", 1), ("files/a", 4)]
    assert client.exec("cat files/notes.txt")["stdout"] == "text"


def test_a_list_is_whole(client):
    client.exec("mkdir many; cd many; i=1000; while [ $i -lt 2100 ]; do : > $i; i=$((i+1)); done",
                report_files=False)
    assert [e["name"] for e in client.list("many")] == [str(n) for n in range(1000, 2100)]
    assert client.list()[0]["type"] == "dir" and len(client.list(recursive=True)) == 1101
    client.delete_workspace()
    assert client.list() == []


def test_a_body_over_the_limit_is_refused_with_its_reason(start_nook):
    client = client_of(start_nook("--max-upload", 100_000, tcp=True))
    for stream in (io.BytesIO(b"x" * 20_000_000), Endless(20_000_000)):
        error = failing(client.upload_batch, [FileUpload("f", stream=stream)])
        assert (error.status, error.code) == (413, "too_large")
    assert client.upload("f", b"x" * 1000)["size"] == 1000


class Endless:
    """A stream that cannot tell its length."""

    def __init__(self, size):
        self._left = size

    def read(self, size):
        size = min(size, self._left)
        self._left -= size
        return b"x" * size


def test_what_is_wrong_has_its_status_and_code(client, nook):
    assert (failing(client.list, "none").status, failing(client.list, "none").code) == \
        (404, "not_found")
    assert failing(client.open_path, "../../etc/passwd").code == "bad_path"
    assert failing(client.iter_path, "none").status == 404
    assert failing(client.iter_archive, ["none"]).status == 404
    assert failing(client.exec, ["/no/such"]).body["error"]["errno"] == "ENOENT"
    stranger = Client(f"http://127.0.0.1:{nook.port}", api_key="wrong")
    error = failing(stranger.exec, "true")
    assert (error.status, error.code) == (401, "unauthorized")
    assert str(error).endswith("(401 unauthorized)") and "wrong" not in str(error)


def test_identities_that_are_off_are_refused(client):
    for identity in (Identity(token="user-42"), Identity(namespace="team-a", principal="user-42")):
        error = failing(client.exec, "true", identity=identity)
        assert (error.status, error.code) == (501, "not_supported")


# downloads


def test_a_file_comes_to_a_path_or_a_sink(client, tmp_path):
    data = os.urandom(3_000_000)
    client.upload("f", data, directory="out")
    target, sink = tmp_path / "f", io.BytesIO()
    target.write_text("old")
    client.download_path("out/f", target)
    client.download_path_to("out/f", sink)
    assert target.read_bytes() == sink.getvalue() == data
    assert b"".join(client.iter_path("out/f", chunk_size=1000)) == data
    assert os.listdir(tmp_path) == ["f"]
    client.download_path("out/f", os.devnull)
    assert not os.path.isfile(os.devnull)


def test_a_range_is_passed_on(client):
    client.upload("f", b"0123456789")
    response = client.open_path("files/f", range_header="bytes=2-4")
    with response:
        assert (response.status, response.getheader("Content-Range")) == (206, "bytes 2-4/10")
        assert response.read() == b"234"
    assert b"".join(client.iter_path("files/f", range_header="bytes=-3")) == b"789"
    assert b"".join(client.iter_path("files/f", range_header=None)) == b"0123456789"
    assert failing(client.iter_path, "files/f", range_header="bytes=20-").status == 416


def test_an_archive_holds_every_path(client, tmp_path):
    client.exec("mkdir -p out tmp/step2 other;"
                "echo 1 > out/a; echo 2 > tmp/step2/b; echo > other/c")
    paths, sink = ["out", "tmp/step2"], io.BytesIO()
    client.download_archive(paths, tmp_path / "artifacts.tar")
    client.download_archive_to(paths, sink)
    for file in (io.BytesIO((tmp_path / "artifacts.tar").read_bytes()), io.BytesIO(sink.getvalue()),
                 io.BytesIO(b"".join(client.iter_archive(paths)))):
        with tarfile.open(fileobj=file) as tar:
            assert [m.name for m in tar if m.isfile()] == ["out/a", "tmp/step2/b"]
            assert tar.extractfile("out/a").read() == b"1\n"
    with client.open_archive(["out"]) as response:
        assert response.getheader("Content-Type") == "application/x-tar"


@pytest.mark.parametrize("head", [b"Content-Length: 100\r\n\r\nshort",
                                  b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"])
def test_a_body_that_breaks_off_is_an_error_and_leaves_the_old_file(tmp_path, head):
    (tmp_path / "f").write_text("old")

    def answer(listener):
        for _ in range(3):
            with listener.accept()[0] as conn:
                conn.recv(65536)
                conn.sendall(b"HTTP/1.1 200 OK\r\n" + head)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer, args=(listener,))
        server.start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}")
        for call in (lambda: client.download_path("x", tmp_path / "f"),
                     lambda: client.download_path_to("x", io.BytesIO()),
                     lambda: list(client.iter_archive(["x"]))):
            with pytest.raises(IncompleteRead):
                call()
        server.join()
    assert (tmp_path / "f").read_text() == "old" and os.listdir(tmp_path) == ["f"]


def connections(nook):
    """Sockets of the agent that are no listeners, and its workers."""
    return nook.get("/metrics").text.split("\nnook_http_connections ")[1].split("\n")[0], \
        len(nook.children())


@pytest.mark.parametrize("kind", ["iter_path", "iter_archive", "open_path"])
def test_the_agent_lets_go_when_a_reader_leaves(client, nook, kind):
    client.exec("mkdir out; truncate -s 1G out/big", report_files=False)
    before = connections(nook), len(nook.fds())
    body = getattr(client, kind)(["out"] if kind == "iter_archive" else "out/big")
    if kind == "open_path":
        assert body.read(10) == b"\0" * 10
    else:
        next(body)
    body.close()
    wait_until(lambda: (connections(nook), len(nook.fds())) == before, 10, "the agent lets go")


def test_a_forwarded_download_ends_when_its_client_leaves(client, nook):
    client.exec("mkdir out; truncate -s 1G out/big", report_files=False)
    before = connections(nook)
    app = fastapi.FastAPI()

    @app.get("/files")
    def download(path: str):
        return StreamingResponse(client.iter_path(path))

    with served(app) as url:
        with connect_tcp(int(url.rsplit(":", 1)[1])) as conn:
            conn.send_request("GET", "/files?path=out/big")
            assert conn.read_head().status == 200
            conn.recv()
        wait_until(lambda: connections(nook) == before, 10, "the agent lets go")


MEMORY = """
import resource, sys
from runbox import Client, FileUpload
client = Client(sys.argv[1], api_key=sys.argv[2])
size = int(sys.argv[3])
client.upload_file(sys.argv[4], "small")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = client.exec("wc -c < files/big", files=[FileUpload("big", path=sys.argv[5])],
                     report_files=False)
assert int(result["stdout"]) == size
with open("/dev/null", "wb") as sink:
    client.download_path_to("files/big", sink)
assert sum(map(len, client.iter_archive(["files"]))) > size
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_flat_whatever_the_size(nook, tmp_path):
    size = scaled(1 << 30)
    (tmp_path / "small").write_bytes(b"x")
    with open(tmp_path / "big", "wb") as file:
        file.truncate(size)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, f"http://127.0.0.1:{nook.port}", nook.token, str(size),
         tmp_path / "small", tmp_path / "big"], capture_output=True, text=True, check=False,
        env=WITH_RUNBOX)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 16_000  # KiB


# health and limits


def test_health_and_readiness(client, nook):
    assert client.health()["status"] == client.ready()["status"] == client.wait_ready()["status"]
    stranger = Client(f"http://127.0.0.1:{nook.port}")
    assert stranger.ready()["status"] == "ok"


def test_capabilities_tell_limits_and_tools(start_nook):
    client = client_of(start_nook("--max-commands", 7, tcp=True))
    told = client.capabilities()
    assert told["limits"]["max_commands"] == 7
    assert told["tools"] and all(tool["path"].startswith("/") for tool in told["tools"].values())
    assert told["languages"]["sh"]["available"] is True


def test_metrics_are_those_of_prometheus(client):
    client.exec("true")
    assert "\nnook_commands_exited_total 1\n" in client.metrics()


class Patient(Client):
    """Tells of the first time that it was refused."""

    def __init__(self, *args):
        super().__init__(*args)
        self.refused = threading.Event()

    def ready(self):
        try:
            return super().ready()
        except ConnectionRefusedError:
            self.refused.set()
            raise


def test_waiting_for_an_agent_that_comes_later():
    asked = []

    def serve(listener, client):
        client.refused.wait(30)
        listener.listen()
        for status, body in (("503 X", '{"error":{"code":"starting","message":"m"}}'),
                             ("200 OK", '{"status":"ok"}')):
            with listener.accept()[0] as conn:
                asked.append(conn.recv(65536))
                conn.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                             .encode())

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        client = Patient(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server = threading.Thread(target=serve, args=(listener, client))
        server.start()
        assert client.wait_ready(timeout=60) == {"status": "ok"}
        server.join()
    assert len(asked) == 2 and asked[0].startswith(b"GET /readyz ")


def test_waiting_has_an_end():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        client = Client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        error = failing(client.wait_ready, timeout=0.1)
        assert error.code == "timeout" and isinstance(error.__cause__, ConnectionRefusedError)
        with pytest.raises(ConnectionRefusedError):
            client.health()


def test_a_silent_runner_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)
        with pytest.raises(TimeoutError):
            client.health()


@pytest.mark.skipif(not front.HAS_OPENSSL, reason="openssl is not installed")
def test_it_speaks_tls_with_whom_it_trusts(nook, tmp_path):
    certificate = front.make_certificate(tmp_path)
    with front.tls(nook.port, *certificate) as port:
        trusting = ssl.create_default_context(cafile=str(certificate[0]))
        client = Client(f"https://localhost:{port}/", api_key=nook.token, ssl_context=trusting)
        assert client.exec("echo safe")["stdout"] == "safe\n"
        with pytest.raises(ssl.SSLError):
            Client(f"https://localhost:{port}").health()


def test_an_address_must_be_one():
    for wrong in ("localhost:8099", "ftp://x", "http://"):
        with pytest.raises(ValueError):
            Client(wrong)


def test_it_needs_the_standard_library_alone_and_no_newer_python_than_it_says():
    files = list(Path(runbox.__file__).parent.glob("*.py"))
    names = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(), feature_version=(3, 9))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.split(".")[0])
    assert len(files) > 4 and names <= sys.stdlib_module_names
