"""What an agent seldom does: errors of every kind, streams that break off, wrong handshakes."""

import json
import logging
import socket

import pytest

import runr_sandbox
from fake_server import INFO, RESULT, FakeServer, sse
from forms import Form
from runr_sandbox import _collect, _session
from runr_sandbox._events import EventReader


@pytest.fixture(params=["sync", "asyncio"])
def form(request):
    form = Form(request.param)
    yield form
    form.close()


@pytest.fixture
def fake(monkeypatch):
    fake = FakeServer()
    monkeypatch.setenv("RUNR_API_URL", fake.url + "/")
    monkeypatch.setenv("RUNR_API_KEY", "key")
    monkeypatch.setenv("NO_PROXY", "*")
    yield fake
    fake.close()


@pytest.fixture
def sandbox(form, fake):
    sandbox = form.connect("sb-1")
    yield sandbox
    form.release(sandbox)


def stream_of(fake, *events, cut=None):
    data = sse(*events)
    fake.answers["POST", "/v1/exec/stream"] = (200, data[:cut])


def test_create_sends_what_is_given_and_nothing_else(form, fake):
    sandbox = form.create("python", ttl_seconds=60, metadata={"a": 1}, network=["h:1"])
    sandbox.close()
    patch, delete = fake.requests
    assert patch[:2] == ("PATCH", "/v1/sandbox")
    assert json.loads(patch[3]) == {"runtime": "python", "ttl_seconds": 60, "metadata": {"a": 1},
                                    "network": ["h:1"]}
    assert patch[2]["Authorization"] == "Bearer key"
    assert delete[:2] == ("DELETE", "/v1/sandbox")


def test_a_sandbox_is_removed_once(form, fake):
    sandbox = form.connect("sb-1")
    sandbox.kill()
    sandbox.kill()
    sandbox.close()
    assert [request[0] for request in fake.requests] == ["GET", "DELETE"]
    with pytest.raises(runr_sandbox.RunrSandboxError) as caught:
        sandbox.exec("true")
    assert caught.value.reason == "closed"


def test_list_filters_by_status_and_metadata(form, fake):
    [info] = form.list(status="active", metadata={"agent": "planner"})
    assert (info.id, info.runtime) == ("sb-1", "python")
    assert len(form.list()) == 1
    assert form.list(status="paused") == []
    assert form.list(metadata={"agent": "planner", "other": None}) == []
    assert form.list(metadata={"n": 2}) == []


def test_another_id_is_not_found(form, fake):
    with pytest.raises(runr_sandbox.NotFoundError):
        form.connect("sb-2")


@pytest.mark.parametrize("status, name", [
    (400, "BadRequestError"), (401, "AuthenticationError"), (403, "PermissionDeniedError"),
    (404, "NotFoundError"), (409, "ConflictError"), (410, "NotFoundError"),
    (413, "TooLargeError"), (418, "RunrSandboxError"), (429, "UnavailableError"),
    (500, "ServerError"), (501, "NotSupportedError"), (503, "UnavailableError")])
def test_every_status_has_its_class(sandbox, fake, status, name):
    body = {"error": {"code": "some_code", "message": "said so"}}
    fake.answers["POST", "/v1/exec/stream"] = (status, body)
    with pytest.raises(runr_sandbox.RunrSandboxError) as caught:
        sandbox.exec("true")
    error = caught.value
    assert type(error) is getattr(runr_sandbox, name)
    assert (error.status, error.message, error.reason, error.body) == \
        (status, "said so", "some_code", body)
    assert str(error) == f"said so ({status} some_code)"


def test_an_answer_that_is_no_json_is_an_error_too(sandbox, fake):
    fake.answers["POST", "/v1/exec/stream"] = (502, b"<html>")
    with pytest.raises(runr_sandbox.ServerError) as caught:
        sandbox.exec("true")
    assert (caught.value.status, caught.value.reason, caught.value.body) == (502, None, "<html>")


def test_without_an_address_it_says_what_to_set(monkeypatch):
    monkeypatch.delenv("RUNR_API_URL", raising=False)
    with pytest.raises(runr_sandbox.RunrSandboxError, match="RUNR_API_URL"):
        runr_sandbox.Sandbox.create()


def test_nobody_there_is_a_connection_error(form, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("NO_PROXY", "*")
        with pytest.raises(runr_sandbox.ApiConnectionError) as caught:
            form.create(api_url=url)
    assert (caught.value.status, caught.value.reason) == (None, "connection")


def test_a_call_gives_up_on_a_silent_api(form, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("NO_PROXY", "*")
        with pytest.raises(runr_sandbox.ApiConnectionError) as caught:
            form.create(api_url=f"http://127.0.0.1:{silent.getsockname()[1]}", request_timeout=0.1)
    assert caught.value.reason == "timeout"


# streams


def test_events_are_the_same_however_the_bytes_are_cut():
    data = b": hello\n\n" + sse(
        ("started", {"id": "c"}), ("stdout", {"text": "a\u2028b\x0b\u00e9"}),
        ("stderr", {"base64": "/w=="}), ("exit", RESULT)).replace(b"\n", b"\r\n")
    for size in (1, 3, 1000):
        reader = EventReader()
        events = [event for at in range(0, len(data), size)
                  for event in reader.feed(data[at:at + size])]
        assert [event.type for event in events] == ["stdout", "stderr", "exit"]
        assert events[0].text == "a\u2028b\x0b\u00e9"
        assert (events[1].data, events[1].text, events[1].offset) == (b"\xff", "\ufffd", 2)
        assert (events[2].text, events[2].exit_code) == ("", 0)


@pytest.mark.parametrize("cut", [None, -1, -30])
def test_a_stream_without_its_last_event_is_broken(sandbox, fake, cut):
    more = [] if cut is None else [("exit", RESULT)]
    stream_of(fake, ("stdout", {"text": "x"}), *more, cut=cut)
    events = iter(sandbox.exec_stream("x"))
    assert next(events).text == "x"
    with pytest.raises(runr_sandbox.RunrSandboxError) as caught:
        next(events)
    assert caught.value.reason == "stream_closed"


def test_a_stream_that_ends_with_an_error_raises_it(sandbox, fake):
    stream_of(fake, ("error", {"code": "internal", "message": "lost it"}))
    with pytest.raises(runr_sandbox.RunrSandboxError, match="lost it") as caught:
        list(sandbox.exec_stream("x"))
    assert (caught.value.reason, caught.value.body["error"]["code"]) == ("exec_error", "internal")


def test_a_follower_hears_of_a_gap(sandbox, fake):
    fake.answers["GET", "/v1/processes/p/follow"] = (200, sse(
        ("gap", {"from": 0, "to": 5}), ("stdout", {"text": "x"}), ("exit", RESULT)))
    assert [(e.type, e.text) for e in sandbox.processes.follow("p")] == \
        [("gap", ""), ("stdout", "x"), ("exit", "")]


def test_an_output_too_large_for_the_result_is_read(sandbox, fake):
    output = {"path": "/output/a.png", "mime": "image/png", "size": 3, "data_base64": None}
    fake.answers["POST", "/v1/code/stream"] = (200, sse(("result", {**RESULT,
                                                                    "outputs": [output]})))
    fake.answers["GET", "/v1/files"] = (200, b"PNG")
    assert sandbox.run_code("x").outputs[0].data == b"PNG"
    [last] = sandbox.run_code_stream("x")
    assert last.result.outputs[0].data == b"PNG"


# the exec WebSocket


def refused_session(sandbox):
    """The error with which a session cannot be opened."""
    with pytest.raises(runr_sandbox.RunrSandboxError) as caught:
        with sandbox.exec_ws("x"):
            pass
    return caught.value


def ended_session(sandbox):
    with sandbox.exec_ws("x") as session, pytest.raises(runr_sandbox.RunrSandboxError) as caught:
        session.wait()
    return caught.value


def test_a_session_says_what_to_start_and_sends_input(sandbox, fake):
    got = []

    def script(ws):
        got.append(ws.recv())
        ws.send("started", id="c", pid=1, offset=0)
        got.extend([ws.recv(), ws.recv(), ws.recv(), ws.recv()])
        ws.send("stdout", text="out", offset=3)
        ws.send("stdin_error", code="EPIPE")
        ws.send("stderr", base64="/w==", offset=4)
        ws.send("exit", **RESULT)
        ws.close()

    fake.script = script
    with sandbox.exec_ws(["a", "b"], tty=True, cols=100, rows=30, env={"A": "1"}) as session:
        session.send_stdin("text")
        session.resize(1, 2)
        session.kill()
        session.close_stdin()
        result = session.wait()
    assert got == [{"type": "start", "command": ["a", "b"], "env": {"A": "1"}, "tty": True,
                    "cols": 100, "rows": 30}, b"text", {"type": "resize", "cols": 1, "rows": 2},
                   {"type": "kill"}, {"type": "close_stdin"}]
    assert (result.stdout, result.stderr_bytes, result.exit_code) == ("out", b"\xff", 0)
    assert fake.queries[-1] == "token=once-only"


def test_a_result_holds_the_newest_output(sandbox, fake, monkeypatch):
    monkeypatch.setattr(_collect, "KEPT", 10)

    def script(ws):
        ws.recv()
        for text in ("abcdef", "ghijkl", "mn"):
            ws.send("stdout", text=text)
        ws.send("exit", **RESULT)
        ws.close()

    fake.script = script
    with sandbox.exec_ws("x") as session:
        result = session.wait()
    assert (result.stdout, result.stdout_truncated) == ("efghijklmn", True)
    assert not result.stderr_truncated


def test_an_error_message_ends_a_session(sandbox, fake):
    def script(ws):
        ws.recv()
        ws.send("error", code="exec_failed", message="no such program")
        ws.close(1011)

    fake.script = script
    error = ended_session(sandbox)
    assert (error.reason, error.message) == ("exec_error", "no such program")
    assert error.body["error"]["code"] == "exec_failed"


@pytest.mark.parametrize("code", [None, 1000])
def test_a_connection_that_ends_before_the_command_is_told(sandbox, fake, code):
    def script(ws):
        ws.recv()
        ws.send("stdout", text="x")
        if code:
            ws.close(code)

    fake.script = script
    assert ended_session(sandbox).reason == "ws_closed"


def test_a_refused_upgrade_has_the_class_of_its_status(sandbox, fake):
    body = {"error": {"code": "overloaded", "message": "too many"}}
    fake.answers["GET", "/v1/exec/ws"] = (503, body)
    error = refused_session(sandbox)
    assert type(error) is runr_sandbox.UnavailableError
    assert (error.status, error.reason, error.body) == (503, "overloaded", body)


def test_a_wrong_handshake_is_told(sandbox, fake):
    fake.script, fake.accept = (lambda ws: None), "wrong"
    assert refused_session(sandbox).reason == "ws_handshake"


def test_a_handshake_that_never_comes_times_out(sandbox, fake, monkeypatch):
    monkeypatch.setattr(_session, "OPEN_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"ws://127.0.0.1:{silent.getsockname()[1]}/"
        monkeypatch.setattr(_session._Session, "_address", lambda *_: address)
        assert refused_session(sandbox).reason == "ws_timeout"


def test_a_host_that_is_not_there_is_an_error_of_the_socket(sandbox, fake, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}/"
        monkeypatch.setattr(_session._Session, "_address", lambda *_: address)
        assert refused_session(sandbox).reason == "ws_error"


def test_the_token_is_in_no_log(sandbox, fake, caplog):
    caplog.set_level(logging.DEBUG)

    def script(ws):
        ws.recv()
        ws.send("exit", **RESULT)
        ws.close()

    fake.script = script
    with sandbox.exec_ws("x") as session:
        session.wait()
    assert "ws-token" in caplog.text and "once-only" not in caplog.text
    assert INFO["id"] == sandbox.id


def test_a_session_takes_a_command_or_code(sandbox):
    for wrong in ({}, {"command": "x", "code": "y"}):
        with pytest.raises(ValueError):
            sandbox.exec_ws(**wrong)
