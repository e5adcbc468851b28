"""Every code block of runbox/README.md, each against a fresh agent."""

import contextlib
import io
import re
import subprocess
import tarfile
import threading
from pathlib import Path

import fastapi
import httpx
import pytest
import uvicorn
from fastapi.responses import StreamingResponse

import blocks
import index
from runbox import Client, FileUpload, Identity, RunboxError
from wire import wait_until

BLOCKS = blocks.blocks_of("runbox")


def run(name, **names):
    return blocks.run(BLOCKS[name], FileUpload=FileUpload, Identity=Identity, **names)


@pytest.fixture(params=[Identity(token="user-42"),
                        Identity(namespace="team-a", principal="user-42")],
                ids=["token", "tenant and user"])
def client(start_box, request):
    """At the address that is the default."""
    return Client(api_key=start_box("--identities").token, identity=request.param)


@pytest.fixture
def outcome(client):
    """A workspace with results in it."""
    client.exec("mkdir -p out tmp/step2; printf 'a,b\\n1,2\\n' > out/report.csv;"
                "head -c 5000 /dev/urandom > out/report.pdf; echo two > tmp/step2/f;"
                "echo rest > tmp/rest")


@contextlib.contextmanager
def served(app):
    """The address of an application that a real server runs."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, 20, "the server starts")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def test_installing_it_from_an_index_brings_nothing_else(tmp_path):
    address = index.make_index(tmp_path, [], [blocks.HERE / "runbox"])
    env = index.make_venv(tmp_path / "venv", address)
    subprocess.run(["sh", "-ec", BLOCKS["runbox-sdk"]], env=env, check=True)
    seen = subprocess.run(["python", "-c", "import runbox; print(runbox.__file__)"], env=env,
                          cwd=tmp_path, capture_output=True, text=True, check=True)
    assert seen.stdout.startswith(str(tmp_path / "venv"))


def test_the_quick_start(start_box, capsys):
    start_box("--identities")
    result = run("Quick start")["result"]
    assert capsys.readouterr().out == "0 42\n\n"
    assert result["exit_code"] == 0


def test_run_a_command(client):
    Path("input.csv").write_text("x\ny\n")
    client.exec("echo 'import sys; print(open(sys.argv[1]).read().upper())' > analyze.py")
    names = run("Run a command", client=client)
    assert (names["result"]["exit_code"], names["result"]["stdout"]) == (0, "x\ny\n")
    assert names["handle"].closed
    assert {"stderr", "files", "duration_ms"} <= names["result"].keys()


def test_files(client):
    for name in ("report.xlsx", "a.csv", "b.csv"):
        Path(name).write_text(name)
    before = client.exec("mkdir -p out; echo 1 > out/f; id -u > out/uid; cat out/uid")["stdout"]
    names = run("Files", client=client)
    assert names["uploaded"]["path"] == "files/report.xlsx"
    assert [entry["path"] for entry in names["entries"]] == ["out/f", "out/uid"]
    assert [entry["path"] for entry in client.list(recursive=True)] == ["files", "out", "tmp"]
    assert client.exec("id -u")["stdout"] == before


def test_downloads(client, outcome):
    sink = io.BytesIO()
    run("Downloads", client=client, sink=sink)
    assert Path("report.csv").read_bytes() == b"a,b\n1,2\n"
    with tarfile.open("artifacts.tar") as tar:
        assert {"out/report.csv", "tmp/step2/f", "tmp/rest"} <= set(tar.getnames())
    assert sink.getvalue().startswith(b"a,b\n1,2\n")
    with tarfile.open(fileobj=io.BytesIO(sink.getvalue()[8:])) as tar:
        assert set(tar.getnames()) - {"out", "out/"} == {"out/report.csv", "out/report.pdf"}


def test_forwarding_a_file(client, outcome):
    app = run("Streaming and forwarding", client=client)["app"]
    with served(app) as url:
        answer = httpx.get(f"{url}/files", params={"path": "out/report.csv"}, trust_env=False)
    assert (answer.status_code, answer.content) == (200, b"a,b\n1,2\n")
    assert answer.headers["content-type"] == "application/octet-stream"


def test_forwarding_a_range(client, outcome):
    app = fastapi.FastAPI()
    run("Streaming and forwarding 2", client=client, app=app, StreamingResponse=StreamingResponse)
    with served(app) as url:
        params = {"path": "out/report.csv", "range": "bytes=2-4"}
        answer = httpx.get(f"{url}/files", params=params, trust_env=False)
        whole = httpx.get(f"{url}/files", params={"path": "out/report.csv"}, trust_env=False)
    assert (answer.content, whole.content) == (b"b\n1", b"a,b\n1,2\n")


def test_forwarding_an_archive(client, outcome):
    app = fastapi.FastAPI()
    run("Streaming and forwarding 3", client=client, app=app, StreamingResponse=StreamingResponse)
    with served(app) as url:
        answer = httpx.get(f"{url}/archive", trust_env=False)
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        names = tar.getnames()
    assert "out/report.pdf" in names and "tmp/step2/f" in names and "tmp/rest" not in names


def test_the_answer_itself(client, outcome, capsys):
    chunks = []
    run("Streaming and forwarding 4", client=client, handle=chunks.append)
    assert capsys.readouterr().out == "206 1024\n"
    client.download_path("out/report.pdf", "whole")
    assert b"".join(chunks) == Path("whole").read_bytes()[:1024]


def test_health_and_limits(client):
    run("Health and limits", client=client)


def test_errors(client, outcome):
    run("Errors", client=client)
    with pytest.raises(RunboxError) as caught:
        client.list("out")
    assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_every_block_is_run():
    used = set(re.findall(r'(?:run\(|BLOCKS\[)"([^"]+)"', Path(__file__).read_text()))
    assert len(BLOCKS) == 11 and used == BLOCKS.keys()
