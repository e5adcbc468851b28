"""Bad input: each with its status and code, each answer of one form, and nothing started."""

import json

import pytest

from wire import wait_until

TARGETS = ("/v1/exec", "/v1/exec/stream")


def started(nook):
    """Starts of commands, failed ones too."""
    for line in nook.get("/metrics").text.splitlines():
        if line.startswith("nook_command_starts_total "):
            return int(line.split()[1])
    raise AssertionError("no such metric")


def expect(response, status, code, word=None):
    assert (response.status, response.code) == (status, code), response
    assert response.header("Content-Type") == "application/json"
    assert response.header("X-Request-Id") and response.header("X-Nook-Instance")
    error = response.json()
    assert list(error) == ["error"]
    assert error["error"]["message"]
    if word:
        assert word in error["error"]["message"], response


BAD_FIELDS = [
    ({}, "command"),
    ({"command": None}, "command"),
    ({"command": 7}, "command"),
    ({"command": {}}, "command"),
    ({"command": []}, "empty"),
    ({"command": [""]}, "command[0]"),
    ({"command": ["ls", 1]}, "command[1]"),
    ({"command": "true", "comand": 1}, "comand"),
    ({"command": "true", "stdin": 1}, "stdin"),
    ({"command": "true", "stdin": "", "stdin_base64": ""}, "stdin"),
    ({"command": "true", "stdin_base64": "a"}, "stdin_base64"),
    ({"command": "true", "stdin_base64": "YQ"}, "stdin_base64"),
    ({"command": "true", "stdin_open": "no"}, "stdin_open"),
    ({"command": "true", "timeout": 0}, "timeout"),
    ({"command": "true", "timeout": -1}, "timeout"),
    ({"command": "true", "timeout": 1e99}, "timeout"),
    ({"command": "true", "timeout": 86401}, "timeout"),
    ({"command": "true", "timeout": "5"}, "timeout"),
    ({"command": "true", "timeout": None}, "timeout"),
    ({"command": "true", "env": []}, "env"),
    ({"command": "true", "env": {"A": 1}}, "env.A"),
    ({"command": "true", "env": {"A": None}}, "env.A"),
    ({"command": "true", "env": {"": "x"}}, "env"),
    ({"command": "true", "env": {"1A": "x"}}, "1A"),
    ({"command": "true", "env": {"A=B": "x"}}, "A=B"),
    ({"command": "true", "env": {"Ä": "x"}}, "Ä"),
    ({"command": "true", "env": {"A": "x" * (128 * 1024 + 1)}}, "env.A"),
    ({"command": "true", "cwd": 1}, "cwd"),
    ({"command": "true", "user": 1}, "user"),
    ({"command": "true", "report_files": "yes"}, "report_files"),
    ({"command": "true", "max_output": -1}, "max_output"),
    ({"command": "true", "max_output": 0.5}, "max_output"),
    ({"command": "true", "max_output": 1 << 40}, "max_output"),
    ({"command": "true", "detach": 1}, "detach"),
    ([], "object"),
    ("true", "object"),
    (None, "object"),
]


def test_bad_fields_are_named_and_start_nothing(nook):
    before = started(nook)
    for target in TARGETS:
        for body, word in BAD_FIELDS:
            response = nook.request("POST", target, body=json.dumps(body))
            expect(response, 400, "bad_request", word)
    assert started(nook) == before


BAD_JSON = [
    b"", b"{", b"nonsense", b'{"command":"true"', b'{"command":"true"} x', b"{'command':'true'}",
    b'{"command":"a\\u0000b"}', b'{"command":"a\x00b"}', b'{"command":"\xff"}',
    b'{"command":"\\ud800"}', b'{"command":"true","command":"false"}',
    b'{"command":"true","timeout":NaN}', b'{"command":"true","timeout":Infinity}',
    b'{"command":"true","timeout":01}', b'{"command":"a\nb"}', b'{"command":"true",}',
    b"[" * 40 + b"]" * 40, b'\xef\xbb\xbf{"command":"true"}',
]


def test_bad_json_is_refused_and_starts_nothing(nook):
    before = started(nook)
    for target in TARGETS:
        for body in BAD_JSON:
            expect(nook.request("POST", target, body=body), 400, "bad_json")
    assert started(nook) == before


def test_an_empty_cwd_is_a_bad_path(nook):
    expect(nook.post("/v1/exec", {"command": "true", "cwd": ""}), 400, "bad_path", "cwd")


def test_a_body_has_a_type_and_a_size(nook):
    command = '{"command":"true"}'
    response = nook.request("POST", "/v1/exec", body=command,
                            headers={"Content-Type": "application/x-www-form-urlencoded"})
    expect(response, 415, "unsupported_media_type", "curl --json")
    response = nook.request("POST", "/v1/exec", body=command, headers={"Content-Type": None})
    assert response.status == 200
    response = nook.request("POST", "/v1/exec", body=command,
                            headers={"Content-Type": "application/json; charset=utf-8"})
    assert response.status == 200
    for chunked in (False, True):
        response = nook.request("POST", "/v1/exec", body=b" " * (1 << 20) + command.encode(),
                                chunked=chunked)
        expect(response, 413, "too_large")


def test_unknown_and_repeated_parameters_are_named(nook):
    expect(nook.request("POST", "/v1/exec?colour=red", json={"command": "true"}), 400,
           "bad_request", "colour")
    expect(nook.get("/healthz?x=1"), 400, "bad_request", "x")


def test_a_get_takes_no_body(nook):
    expect(nook.request("GET", "/healthz", body="{}"), 400, "bad_request")


def test_unknown_paths_and_methods(nook):
    for path in ("/", "/v1", "/v1/exec/", "/v1/nothing", "/healthz/x", "/v2/exec"):
        expect(nook.get(path), 404, "not_found")
    for method, path, allow in (("GET", "/v1/exec", "POST"), ("DELETE", "/v1/exec/stream", "POST"),
                                ("POST", "/healthz", "GET, HEAD"), ("OPTIONS", "/v1/exec", "POST")):
        response = nook.request(method, path)
        expect(response, 405, "method_not_allowed")
        assert response.header("Allow") == allow


def test_a_request_id_of_the_client_comes_back_where_it_may(nook):
    for given, kept in (("abc-1", True), ("x" * 128, True), ("x" * 129, False), ("a b", False),
                        ("", False)):
        response = nook.get("/healthz", headers={"X-Request-Id": given})
        assert (response.header("X-Request-Id") == given) == kept
    first, second = (nook.get("/healthz").header("X-Request-Id") for _ in range(2))
    assert first != second


def test_a_truncated_body_starts_nothing(nook):
    before = started(nook)
    with nook.connect() as conn:
        conn.send("POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
                  '{"command":"true"}')
        conn.half_close()
        response = conn.recv()
        assert response == b"" or b" 400 " in response.split(b"\r\n")[0]
    assert started(nook) == before


def test_a_program_that_cannot_be_started_is_not_its_own_127(nook):
    response = nook.post("/v1/exec", {"command": ["/no/such/program"]})
    expect(response, 400, "exec_failed", "/no/such/program")
    error = response.json()["error"]
    assert (error["errno"], error["stage"]) == ("ENOENT", "exec")
    assert nook.exec("nosuchprogram")["exit_code"] == 127


def test_a_message_is_text_whatever_the_client_sent(nook):
    response = nook.request("GET", "/v1/nothing%FF%0A", headers={})
    expect(response, 404, "not_found")


@pytest.mark.parametrize("target", TARGETS)
def test_work_is_refused_while_the_agent_ends(start_nook, target):
    nook = start_nook("--grace", 20)
    with nook.connect() as conn, nook.connect() as late:
        late.request("GET", "/healthz")
        conn.send_request("POST", "/v1/exec", json={
            "command": "trap 'touch got; while [ ! -e go ]; do sleep 0.01; done; exit 0' TERM; "
                       "touch up; while :; do sleep 0.01; done"})
        wait_until((nook.workspace / "up").exists, 10, "the command runs")
        nook.signal(15)
        wait_until((nook.workspace / "got").exists, 10, "the command was told")
        expect(late.request("POST", target, json={"command": "true"}), 503, "shutting_down")
        (nook.workspace / "go").touch()
        assert conn.read_response().json()["exit_code"] == 0
    assert nook.wait() == 0
