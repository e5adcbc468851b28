"""What a running daemon answers is what proto/openapi.yaml says, status, type and body."""

import json
import re
import sys

import pytest

import spec

sys.path.insert(0, str(spec.TOP / "tests" / "integration"))
import nook as harness  # noqa: E402
import ws_client  # noqa: E402


@pytest.fixture(scope="module")
def nook():
    one = harness.Nook("--max-commands", 4, tcp=True)
    yield one
    wrong = one.finish()
    one.remove()
    assert not wrong


def operation_of(method, target):
    path = target.split("?")[0]
    for pattern, verb, operation in spec.operations():
        form = re.sub(r"\{[a-z]+\}", "[^/]+", pattern.replace("{rest...}", ".*"))
        if verb == method and re.fullmatch(form, path):
            return operation
    raise AssertionError(f"no operation for {method} {path}")


def check_answer(method, target, response):
    """Of an answer with a body that is not a stream."""
    responses = operation_of(method, target)["responses"]
    answer = spec.resolve(responses.get(str(response.status), responses["default"]))
    if response.status >= 400:
        spec.validate(answer["content"]["application/json"]["schema"], response.json())
        status = spec.load("openapi.yaml")["components"]["schemas"]["ErrorCode"]["x-nook-status"]
        assert status[response.code] == response.status
        return
    if "content" not in answer:
        assert response.body == b""
        return
    media = response.header("Content-Type").split(";")[0]
    schema = answer["content"][media].get("schema")
    if media == "application/json":
        spec.validate(schema, response.json())


def ask(nook, method, target, expected, **kw):
    response = nook.request(method, target, **kw)
    assert response.status == expected, response
    check_answer(method, target, response)
    return response


def test_the_agents_own_answers(nook):
    for target in ("/healthz", "/readyz", "/metrics", "/v1/capabilities"):
        ask(nook, "GET", target, 200)
        ask(nook, "GET", target + "?x=1", 400)
    ask(nook, "GET", "/v1/capabilities", 401, tcp=True, auth=False)


@pytest.mark.parametrize("request_of", ["exec_shell.json", "exec_list.json"])
def test_requests_of_the_examples_run(nook, request_of):
    body = {**spec.example(request_of), "cwd": str(nook.workspace)}
    result = ask(nook, "POST", "/v1/exec", 200, json=body).json()
    assert result["exit_code"] == 0


@pytest.mark.parametrize("body", [
    {"command": "echo out; echo err >&2; exit 3"},
    {"command": "kill -TERM $$"},
    {"command": "echo x; sleep 1000", "timeout": 0.2},
    {"command": ["printf", r"\377\0"]},
    {"command": "seq 10000", "max_output": 100},
])
def test_results_and_streams_of_every_kind_of_end(nook, body):
    spec.check("ExecRequest", body)
    ask(nook, "POST", "/v1/exec", 200, json=body)
    with nook.stream("POST", "/v1/exec/stream", json=body) as stream:
        assert stream.header("Content-Type") == "text/event-stream"
        events = spec.parse_sse(stream.read().decode())
    spec.check_stream("execStream", [(name, data) for name, _, data in events])


@pytest.mark.parametrize(("body", "status"), [
    ({"command": ["/nonexistent"]}, 400),
    ({"command": "true", "cwd": "/nonexistent"}, 400),
    ({"command": "true", "cwd": ""}, 400),
    ({"command": []}, 400),
    ({}, 400),
    ({"command": "true", "user": "root"}, 403),
])
def test_errors_of_commands(nook, body, status):
    for target in ("/v1/exec", "/v1/exec/stream"):
        ask(nook, "POST", target, status, json=body)
    ask(nook, "POST", "/v1/processes", status, json=body)


PICTURE = r"""printf '<svg xmlns="http://www.w3.org/2000/svg"/>' > "$1/a.svg"; echo drawn"""


@pytest.mark.parametrize("body", [
    {"code": "echo out; echo err >&2; exit 3", "language": "sh"},
    {"code": PICTURE, "language": "sh"},
    {"code": "cat; printf '\\377' > bytes", "language": "bash", "stdin": "in"},
    {"code": "sleep 1000", "language": "sh", "timeout": 0.2},
])
def test_results_and_streams_of_code(nook, body):
    body = {**body, "args": [str(nook.output)]}
    spec.check("CodeRequest", body)
    result = ask(nook, "POST", "/v1/code", 200, json=body).json()
    assert result["language"] == body["language"]
    assert len(result["outputs"]) == (body["code"] == PICTURE)
    with nook.stream("POST", "/v1/code/stream", json=body) as stream:
        assert stream.header("Content-Type") == "text/event-stream"
        events = spec.parse_sse(stream.read().decode())
    spec.check_stream("codeStream", [(name, data) for name, _, data in events])


@pytest.mark.parametrize(("body", "status"), [
    ({"code": "x", "language": "cobol"}, 400),
    ({"code": "x", "language": "ruby", "env": {"PATH": "/nonexistent"}}, 501),
    ({"code": "x", "language": "sh", "cwd": "/nonexistent"}, 400),
    ({"code": "x", "language": "sh", "user": "root"}, 403),
    ({"code": 1}, 400),
    ({"code": "x", "language": "sh", "args": "y"}, 400),
    ({"code": "x", "command": "y"}, 400),
    ({"code": "x", "report_files": True}, 400),
    ({"language": "sh"}, 400),
    ({}, 400),
])
def test_errors_of_code(nook, body, status):
    for target in ("/v1/code", "/v1/code/stream"):
        ask(nook, "POST", target, status, json=body)


def test_requests_that_the_schema_refuses_are_refused(nook):
    """One way round of: the schema of a request says what the reader takes."""
    for body in ({"command": ""}, {"command": ["a", ""]}, {"command": "a", "timeout": 0.001},
                 {"command": "a", "max_output": 0}, {"command": "a", "env": {"_": ""}}):
        spec.check("ExecRequest", body)
    for body in ({}, {"command": []}, {"command": [""]}, {"command": 1}, {"command": "a", "x": 1},
                 {"command": "a", "timeout": 0}, {"command": "a", "timeout": -1},
                 {"command": "a", "stdin": "", "stdin_base64": ""},
                 {"command": "a", "env": {"1": ""}}, {"command": "a", "env": {"A": 1}},
                 {"command": "a", "max_output": -1}, {"command": "a", "detach": "yes"}):
        with pytest.raises(spec.ValidationError):
            spec.check("ExecRequest", body)
        ask(nook, "POST", "/v1/exec", 400, json=body)


def test_processes_from_start_to_end(nook):
    body = {"command": "cat; printf '\\377' >&2", "name": "reader", "stdin_open": True,
            "cwd": str(nook.workspace)}
    spec.check("ProcessRequest", body)
    made = ask(nook, "POST", "/v1/processes", 201, json=body).json()
    ask(nook, "POST", "/v1/processes", 409, json=body)
    target = f"/v1/processes/{made['id']}"
    assert ask(nook, "GET", target, 200).json()["status"] == "running"
    ask(nook, "GET", "/v1/processes", 200)
    ask(nook, "GET", "/v1/processes?running=true&limit=1", 200)
    ask(nook, "POST", target + "/stdin", 200, json={"text": "hello\n"})
    ask(nook, "POST", target + "/stdin", 409, json={"text": "x", "offset": 1000})
    ask(nook, "POST", target + "/stdin", 200, json={"close": True})
    ask(nook, "POST", target + "/resize", 409, json={"cols": 1, "rows": 1})
    ended = ask(nook, "GET", target + "?wait=30", 200).json()
    assert (ended["status"], ended["exit_code"]) == ("exited", 0)
    ask(nook, "GET", target + "/logs", 200)
    ask(nook, "GET", target + "/logs?raw=true&stream=stdout", 200)
    ask(nook, "GET", target + "/logs?since=1&tail=1", 400)
    ask(nook, "GET", target + "/logs?since=999", 400)
    with nook.stream("GET", target + "/follow?since=2") as stream:
        events = spec.parse_sse(stream.read().decode())
    spec.check_stream("processFollow", [(name, data) for name, _, data in events])
    ask(nook, "POST", target + "/kill", 200, json={"signal": "TERM"})
    ask(nook, "POST", target + "/kill", 400, json={"signal": "NOSUCH"})
    ask(nook, "DELETE", target, 204)
    ask(nook, "GET", target, 404)


def test_a_follower_that_fell_behind_gets_a_gap_that_fits(nook):
    made = ask(nook, "POST", "/v1/processes", 201, json={
        "command": "seq 100000", "log_bytes": 4096, "cwd": str(nook.workspace)}).json()
    target = f"/v1/processes/{made['id']}"
    ask(nook, "GET", target + "?wait=30", 200)
    ask(nook, "GET", target + "/logs?since=0", 410)
    with nook.stream("GET", target + "/follow") as stream:
        events = spec.parse_sse(stream.read().decode())
    spec.check_stream("processFollow", [(name, data) for name, _, data in events])


def test_files_from_upload_to_removal(nook):
    made = ask(nook, "PUT", "/v1/files?path=a/b.txt&mode=640", 201, body=b"hello").json()
    assert (made["path"], made["size"], made["mode"]) == ("a/b.txt", 5, "0640")
    ask(nook, "PUT", "/v1/files?path=a/b.txt", 200, body=b"hello again")
    etag = ask(nook, "GET", "/v1/files?path=a/b.txt", 200).header("ETag")
    ask(nook, "GET", "/v1/files?path=a/b.txt", 206, headers={"Range": "bytes=0-4"})
    ask(nook, "GET", "/v1/files?path=a/b.txt", 304, headers={"If-None-Match": etag})
    ask(nook, "GET", "/v1/files?path=a/b.txt", 416, headers={"Range": "bytes=99-"})
    ask(nook, "GET", "/v1/files?path=a", 400)
    ask(nook, "GET", "/v1/files?path=/etc/passwd", 403)
    ask(nook, "GET", "/v1/files/stat?path=a/b.txt", 200)
    ask(nook, "GET", "/v1/files/stat?path=missing", 404)
    ask(nook, "GET", "/v1/files/list", 200)
    ask(nook, "GET", "/v1/files/list?recursive=1&limit=1", 200)
    for verb, body in (("mkdir", {"path": "d", "mode": "0700"}),
                       ("copy", {"path": "a/b.txt", "to": "d/c.txt"}),
                       ("move", {"path": "d/c.txt", "to": "d/m.txt"}),
                       ("chmod", {"path": "d/m.txt", "mode": "600"})):
        spec.check({"move": "Move", "copy": "Move"}.get(verb, verb.capitalize()) + "Request", body)
        ask(nook, "POST", f"/v1/files/{verb}", 200, json=body)
    ask(nook, "POST", "/v1/files/copy", 409, json={"path": "a/b.txt", "to": "d/m.txt"})
    nook.exec("ln -s a/b.txt link")
    assert ask(nook, "GET", "/v1/files/stat?path=link", 200).json()["target"] == "a/b.txt"
    ask(nook, "DELETE", "/v1/files?path=d", 409)
    ask(nook, "DELETE", "/v1/files?path=d&recursive=true", 204)
    ask(nook, "DELETE", "/v1/files?path=d", 404)


def test_uploads_and_archives(nook):
    body = (b'--b\r\nContent-Disposition: form-data; name="f"; filename="x/y.txt"\r\n\r\nhi\r\n'
            b"--b--\r\n")
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = ask(nook, "POST", "/v1/files?dir=up", 200, body=body, headers=kind).json()
    assert [f["path"] for f in answer["files"]] == ["up/x/y.txt"]
    tar = ask(nook, "GET", "/v1/archive?path=up", 200).body
    back = ask(nook, "PUT", "/v1/archive?path=again", 200, body=tar).json()
    assert (back["files"], back["refused_count"]) == (1, 0)
    ask(nook, "GET", "/v1/archive?path=missing", 404)
    ask(nook, "PUT", "/v1/archive?path=again", 400, body=b"no archive at all" * 100)
    ask(nook, "DELETE", "/v1/workspace", 204)
    assert ask(nook, "GET", "/v1/files/list", 200).json()["entries"] == []


def test_changes_of_files_until_their_folder_is_gone(nook):
    ask(nook, "POST", "/v1/files/mkdir", 200, json={"path": "seen"})
    ask(nook, "GET", "/v1/files/watch?path=missing", 404)
    with nook.stream("GET", "/v1/files/watch?path=seen&recursive=true") as stream:
        ask(nook, "PUT", "/v1/files?path=seen/a/b", 201, body=b"x")
        ask(nook, "POST", "/v1/files/move", 200, json={"path": "seen/a/b", "to": "seen/a/c"})
        ask(nook, "DELETE", "/v1/files?path=seen&recursive=true", 204)
        events = spec.parse_sse(stream.read().decode())
    spec.check_stream("fileWatch", [(name, data) for name, _, data in events])


def recorded(session):
    """Plays on to the end and gives every message of the agent, in order."""
    said = []
    try:
        while True:
            said.append(("agent", session.recv_message()))
    except ws_client.Ended as end:
        return said, end.code


def test_a_session_from_its_start_to_its_end(nook):
    messages = [m for who, m in spec.session_example("exec_session.ndjson") if who == "client"]
    messages[1:1] = [{"type": "signal", "signal": "CONT"}]
    with ws_client.session(nook) as session:
        for message in messages:
            session.send(json.dumps(message))
        agent, code = recorded(session)
    assert code == 1000
    spec.check_session("execWs", [("client", m) for m in messages] + agent)
    with ws_client.session(nook, ["/nonexistent"]) as session:
        agent, code = recorded(session)
    assert code == 1011
    spec.check("ErrorBody", {k: v for k, v in agent[0][1].items() if k != "type"})
    spec.validator("messages.yaml#/agent/error").validate(agent[0][1])


def test_a_viewer_of_a_process(nook):
    made = ask(nook, "POST", "/v1/processes", 201, json={
        "command": "seq 100000; cat >&2; exec 0<&-; sleep 1000", "log_bytes": 4096,
        "stdin_open": True, "cwd": str(nook.workspace)}).json()
    with ws_client.attach(nook, made["id"]) as viewer:
        agent = [("agent", viewer.first)]
        viewer.say("stdin", text="x", offset=0)
        viewer.say("kill")
        more, code = recorded(viewer)
    assert code == 1000
    spec.check_session("processAttach", agent + more)


def test_upgrades_that_are_refused(nook):
    ask(nook, "GET", "/v1/exec/ws", 426)
    ask(nook, "GET", "/v1/processes/none/ws", 426)
    ask(nook, "GET", "/v1/exec/ws", 401, tcp=True, auth=False)
    token = ask(nook, "POST", "/v1/exec/ws-token", 200, json={}).json()["token"]
    ask(nook, "GET", f"/v1/exec/ws?token={token}", 426, tcp=True, auth=False)
    ask(nook, "GET", f"/v1/exec/ws?token={token}", 401, tcp=True, auth=False)


def test_a_context_from_its_start_to_its_end(nook):
    body = {**spec.example("context_create.json"), "cwd": str(nook.workspace)}
    made = ask(nook, "POST", "/v1/contexts", 201, json=body).json()
    one = f"/v1/contexts/{made['id']}"
    assert ask(nook, "GET", "/v1/contexts", 200).json() == {"contexts": [made]}
    assert ask(nook, "GET", one, 200).json() == made
    for code in (spec.example("context_code.json")["code"], "1/0", "display(1)", "input()"):
        spec.check("ContextCodeRequest", {"code": code})
        result = ask(nook, "POST", one + "/code", 200, json={"code": code, "timeout": 60}).json()
        events = nook.stream("POST", one + "/code/stream", json={"code": code}).read().decode()
        spec.check_stream("contextCodeStream",
                          [(name, data) for name, _, data in spec.parse_sse(events)])
        assert result["exit_code"] == (code in ("1/0", "input()"))
    start = {"type": "start", "code": "display(2)\ninput()", "context": made["id"]}
    with ws_client.session(nook) as session:
        session.send(json.dumps(start))
        session.send(json.dumps({"type": "stdin", "text": "typed\n"}))
        agent, code = recorded(session)
    assert (code, agent[-1][1]["result"]) == (1000, {"text/plain": "'typed'"})
    spec.check_session("execWs", [("client", start)] + agent)
    ask(nook, "POST", one + "/interrupt", 200)
    ask(nook, "POST", one + "/restart", 200)
    ask(nook, "POST", one + "/restart", 400, json={"x": 1})
    ask(nook, "POST", one + "/code", 400, json={"code": "1", "language": "python"})
    ask(nook, "DELETE", one, 204)
    for method, tail in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt"), ("POST", "/restart")):
        ask(nook, method, one + tail, 404)
    ask(nook, "POST", one + "/code", 404, json={"code": "1"})
    ask(nook, "POST", "/v1/contexts", 400, json={"language": "klingon"})
    ask(nook, "POST", "/v1/contexts", 501, json={"language": "sh"})


def test_ports_that_cannot_be_reached(nook):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        ask(nook, method, f"/v1/proxy/{harness.free_port()}/x", 502)
    ask(nook, "GET", "/v1/proxy/0/", 400)
    ask(nook, "GET", f"/v1/proxy/{nook.port}/", 403)


def test_every_operation_is_asked_by_some_test_here():
    text = (spec.TOP / "tests" / "contract" / "test_answers.py").read_text()
    for path, _, _ in spec.operations():
        tail = path.replace("/v1/processes/{id}", "").replace("/v1/files/", "")
        tail = tail.replace("/v1/contexts/{id}", "").split("{")[0]
        assert tail in text, path


def test_the_sandbox_and_its_end():
    one = harness.Nook("--network-enforced-by", "outside")
    try:
        ask(one, "GET", "/v1/sandbox", 200)
        patch = json.loads((spec.TOP / "proto/examples/sandbox_patch.json").read_text())
        ask(one, "PATCH", "/v1/sandbox", 200, json=patch)
        ask(one, "PATCH", "/v1/sandbox", 400, json={"colour": "red"})
        ask(one, "PATCH", "/v1/sandbox", 501, json={"limits": {"disk": 1}})
        for target in ("/v1/sandbox/keepalive", "/v1/sandbox/pause", "/v1/sandbox/resume"):
            ask(one, "POST", target, 200)
        ask(one, "GET", "/v1/sandbox/usage", 200)
        ask(one, "PUT", "/v1/sandbox/token", 204, json={"token": "x" * 40})
        ask(one, "DELETE", "/v1/sandbox", 202)
        assert one.wait() == 0
    finally:
        wrong = one.finish()
        one.remove()
    assert not wrong
