"""The WebSocket of a command: the handshake, the frames and their limits, every message, the end.

Frames are sent raw, so that what is wrong with them is exactly what the test says.
"""

import base64
import json
import os

import pytest

import ws_client
from nook import scaled
from test_processes import lives, show, start
from wire import wait_until
from ws_client import (BINARY, CLOSE, NO_CODE, PING, PONG, TEXT, Refused, close_frame, frame,
                       session)


def refusal(nook, target="/v1/exec/ws", tcp=False, auth=True, **headers):
    """The plain answer to an upgrade whose headers were changed; None leaves one out."""
    changed = [(k.replace("_", "-"), v) for k, v in headers.items()]
    conn = nook.connect(tcp, auth=auth)
    with pytest.raises(Refused) as e:
        ws_client.Socket(conn, target, changed)
    return e.value.response


# The handshake


@pytest.mark.parametrize("headers", [
    {"Upgrade": None}, {"Upgrade": "h2c"}, {"Connection": "close"},
    {"Sec_WebSocket_Version": None}, {"Sec_WebSocket_Version": "8"},
    {"Sec_WebSocket_Version": "13, 8"}])
def test_what_is_not_this_protocol_is_426_and_told_which_is(nook, headers):
    response = refusal(nook, **headers)
    assert (response.status, response.code) == (426, "upgrade_required")
    assert response.header("Sec-WebSocket-Version") == "13"
    assert response.header("Upgrade") == "websocket"


@pytest.mark.parametrize("headers", [
    {"Sec_WebSocket_Key": None}, {"Sec_WebSocket_Key": "short"},
    {"Sec_WebSocket_Key": "x" * 24}, {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAAAA"},
    {"Content_Length": "1"}])
def test_a_bad_handshake_is_a_bad_request(nook, headers):
    response = refusal(nook, **headers)
    assert (response.status, response.code) == (400, "bad_request")


def test_other_methods_are_not_upgraded(nook):
    assert nook.post("/v1/exec/ws", {}).status == 405
    head = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    assert nook.request("HEAD", "/v1/exec/ws", headers=head.items()).status == 426


@pytest.mark.parametrize(("offered", "chosen"), [
    ("nook.v1", "nook.v1"), ("other, nook.v1", "nook.v1"), ("other", None), (None, None),
    ("nook.v10", None)])
def test_the_subprotocol_is_echoed_where_it_is_offered(nook, offered, chosen):
    with ws_client.Socket(nook.connect(), "/v1/exec/ws", protocol=offered) as s:
        assert s.response.header("Sec-WebSocket-Protocol") == chosen
        assert s.response.header("Sec-WebSocket-Extensions") is None


def test_no_extension_is_ever_agreed_to(nook):
    offer = [("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")]
    with ws_client.Socket(nook.connect(), "/v1/exec/ws", offer) as s:
        assert s.response.header("Sec-WebSocket-Extensions") is None
        s.raw(frame(TEXT, b"{}", rsv=4))
        assert s.ended() == 1002


def test_a_stranger_gets_a_plain_401(tcp_nook):
    for target in ("/v1/exec/ws", "/v1/processes/none/ws", "/v1/exec/ws?token=x"):
        response = refusal(tcp_nook, target, tcp=True, auth=False)
        assert (response.status, response.code) == (401, "unauthorized")


def test_an_origin_that_is_not_allowed_is_403(start_nook):
    nook = start_nook("--allow-origin", "https://good.example", tcp=True)
    assert refusal(nook, tcp=True, Origin="https://bad.example").status == 403
    assert refusal(nook, tcp=True, Host="evil.example").status == 403
    with ws_client.session(nook, "true", tcp=True) as s:
        assert s.finish()["exit_code"] == 0
    conn = nook.connect(True)
    with ws_client.Socket(conn, "/v1/exec/ws", [("Origin", "https://good.example")]) as s:
        assert s.close() == 1000


def test_a_token_opens_one_socket_and_is_never_logged(tcp_nook):
    answer = tcp_nook.post("/v1/exec/ws-token", tcp=True)
    token = answer.json()["token"]
    assert answer.status == 200 and answer.header("Cache-Control") == "no-store"
    target = f"/v1/exec/ws?token={token}"
    with session(tcp_nook, ["echo", "hi"], tcp=True, target=target, auth=False) as s:
        assert s.finish()["exit_code"] == 0
    assert refusal(tcp_nook, target, tcp=True, auth=False).status == 401
    assert refusal(tcp_nook, target).status == 401, "nor where none is needed"
    p = start(tcp_nook, "echo seen; sleep 1000")
    token = tcp_nook.post("/v1/exec/ws-token", {}).json()["token"]
    assert tcp_nook.get(f"/v1/exec?token={token}", tcp=True, auth=False).status == 401
    target = f"/v1/processes/{p['id']}/ws?token={token}"
    with session(tcp_nook, tcp=True, target=target, auth=False) as s:
        assert s.open()["type"] == "attached"
    assert tcp_nook.token not in tcp_nook.stderr() and token not in tcp_nook.stderr()


def test_a_token_is_for_whoever_has_the_right_to_ask(tcp_nook):
    assert tcp_nook.post("/v1/exec/ws-token", tcp=True, auth=False).status == 401
    assert tcp_nook.post("/v1/exec/ws-token", {"x": 1}).status == 400


# Frames


BROKEN = {
    "unmasked": (frame(TEXT, b"{}", masked=False), 1002),
    "reserved_bit": (frame(TEXT, b"{}", rsv=1), 1002),
    "reserved_opcode": (frame(3, b""), 1002),
    "reserved_control": (frame(11, b""), 1002),
    "continuation_of_nothing": (frame(0, b"x"), 1002),
    "message_in_a_message": (frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"), 1002),
    "fragmented_ping": (frame(PING, b"", fin=False), 1002),
    "long_ping": (frame(PING, b"x" * 126), 1002),
    "long_close": (frame(CLOSE, b"\x03\xe8" + b"x" * 124), 1002),
    "short_close": (frame(CLOSE, b"\x03"), 1002),
    "close_1005": (close_frame(1005), 1002),
    "close_1006": (close_frame(1006), 1002),
    "close_1015": (close_frame(1015), 1002),
    "close_999": (close_frame(999), 1002),
    "close_5000": (close_frame(5000), 1002),
    "close_reason": (close_frame(1000, b"\xff"), 1007),
    "length_spelled_long_16": (frame(TEXT, b"{}", length=16), 1002),
    "length_spelled_long_64": (frame(TEXT, b"{}", length=64), 1002),
    "length_negative": (b"\x81\xff\x80" + b"\0" * 11, 1002),
    "too_large": (b"\x81\xff" + (2**20 + 1).to_bytes(8, "big") + b"\0" * 4, 1009),
    "too_large_in_parts": (frame(BINARY, b"x" * 2**20, fin=False) + frame(0, b"x"), 1009),
    "too_many_parts": (frame(BINARY, b"", fin=False) + frame(0, b"", fin=False) * 1024, 1009),
    "not_utf8": (frame(TEXT, b"\xff"), 1007),
    "not_utf8_at_its_end": (frame(TEXT, b"\xe2\x82"), 1007),
    "not_utf8_seen_early": (frame(TEXT, b"\xed\xa0", fin=False), 1007),
    "surrogates": (frame(TEXT, b"\xed\xa0\x80\xed\xb0\x80"), 1007),
    "overlong": (frame(TEXT, b"\xc0\x80"), 1007),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_frame_is_answered_by_its_code(nook, name):
    data, code = BROKEN[name]
    with session(nook) as s:
        s.raw(data)
        assert s.ended() == code
    with session(nook) as s:
        for byte in data[:4096]:
            s.conn.send_some(bytes([byte]))
        if len(data) <= 4096:
            assert s.ended() == code


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1011, 3000, 4999])
def test_a_close_is_answered_by_the_same(nook, code):
    with session(nook) as s:
        assert s.close(code) == code


def test_an_empty_close_is_answered_by_an_empty_one(nook):
    with session(nook) as s:
        s.raw(frame(CLOSE))
        assert s.ended() == NO_CODE


def test_pings_are_answered_in_order_also_inside_of_a_message(nook):
    with session(nook) as s:
        words = json.dumps({"type": "start", "command": ["echo", "ü"]}).encode()
        data = frame(TEXT, words[:1], fin=False)
        for i in range(1, len(words)):
            data += frame(PING, bytes([i])) + frame(0, words[i:i + 1], fin=False)
        s.raw(data + frame(0))
        for i in range(1, len(words)):
            assert s.read_frame() == (PONG, True, bytes([i]))
        assert s.finish()["exit_code"] == 0
        assert s.stdout.decode() == "ü\n"


def test_a_flood_of_pings_is_not_borne(nook):
    with session(nook) as s:
        s.raw(frame(PING, b"x" * 125) * 1000)
        assert s.ended() == 1008


def test_a_client_that_pings_and_never_reads_costs_no_memory(nook):
    before = nook.rss()
    held = [session(nook) for _ in range(scaled(50))]
    try:
        for s in held:
            for _ in range(90):
                s.conn.send_some(frame(PING, b"x" * 125))
        assert nook.get("/healthz").status == 200
        assert nook.rss() - before < 50 * 64 * 1024 + (8 << 20)
    finally:
        for s in held:
            s.conn.close()


def test_every_cut_of_the_bytes_gives_the_same_session(nook):
    data = frame(TEXT, json.dumps({"type": "start", "command": ["cat"]}).encode())
    data += frame(BINARY, b"bytes \xff\n") + frame(TEXT, b'{"type":"close_stdin"}')
    for cut in range(1, len(data), len(data) // scaled(len(data))):
        with session(nook) as s:
            s.raw(data[:cut])
            s.raw(data[cut:])
            assert s.finish()["exit_code"] == 0
            assert s.stdout == b"bytes \xff\n"


# The first message


@pytest.mark.parametrize(("first", "code", "close"), [
    ("nonsense", "bad_json", 1008),
    ("[]", "bad_request", 1008),
    ("{}", "bad_request", 1008),
    ('{"type": 1}', "bad_request", 1008),
    ('{"type": "stdin", "text": "x"}', "bad_request", 1008),
    ('{"type": "start"}', "bad_request", 1008),
    ('{"type": "start", "command": []}', "bad_request", 1008),
    ('{"type": "start", "command": "true", "x": 1}', "bad_request", 1008),
    ('{"type": "start", "command": "true", "tty": true, "cols": 0}', "bad_request", 1008),
    ('{"type": "start", "command": "true", "tty": true, "rows": 65536}', "bad_request", 1008),
    ('{"type": "start", "command": "true", "user": "nobody"}', "forbidden", 1008),
    ('{"type": "start", "command": "true", "code": "true"}', "bad_request", 1008),
    ('{"type": "start", "language": "sh"}', "bad_request", 1008),
    ('{"type": "start", "code": "true", "language": "cobol"}', "bad_language", 1008),
    ('{"type": "start", "command": "true", "command": "x"}', "bad_json", 1008),
    ('{"type": "start", "command": "/nonexistent/x; exec /nonexistent/y"}', None, 1000),
    ('{"type": "start", "command": ["/nonexistent"]}', "exec_failed", 1011),
    ('{"type": "start", "command": "true", "cwd": "/nonexistent"}', "exec_failed", 1011),
])
def test_a_start_that_cannot_be_is_an_error_and_its_code(nook, first, code, close):
    with session(nook) as s:
        s.send(first)
        if code:
            s.first = {}
        last = s.finish()
        assert last.get("code") == code
        assert s.code == close
        if code == "exec_failed":
            assert last["errno"] == "ENOENT"
    wait_until(lambda: nook.children() == [])


def test_a_binary_first_message_is_refused(nook):
    with session(nook) as s:
        s.send(b"start")
        s.first = {}
        assert (s.finish()["code"], s.code) == ("bad_request", 1008)


def test_a_full_house_is_busy(start_nook):
    nook = start_nook("--max-commands", 1)
    with session(nook, "sleep 1000") as first:
        first.open()
        with session(nook, "true") as s:
            s.first = {}
            assert (s.finish()["code"], s.code) == ("busy", 1011)


# Messages


def test_output_carries_offsets_of_both_streams_together(nook):
    with session(nook, "printf abc; sleep 0.2; printf de >&2; sleep 0.2; printf f") as s:
        end = s.finish()
        assert (s.stdout, s.stderr, s.offset) == (b"abcf", b"de", 6)
        assert s.first["offset"] == 0 and s.code == 1000
        assert {k: end[k] for k in ("exit_code", "signal", "reason", "stdout_size", "stderr_size")} \
            == {"exit_code": 0, "signal": None, "reason": "exited", "stdout_size": 4,
                "stderr_size": 2}
        assert "stdout" not in end


def test_bytes_that_are_no_text_come_as_base64_and_characters_stay_whole(nook):
    data = "ä€😀".encode() * 5000 + b"\xff\xfe\x00" + "€".encode()
    with session(nook, ["cat"]) as s:
        s.say("stdin", base64=base64.b64encode(data).decode())
        s.say("close_stdin")
        s.finish()
        assert s.stdout == data


def test_binary_output_is_the_stream_the_offset_and_the_data(nook):
    with session(nook, "printf out; sleep 0.2; printf err >&2", binary=True) as s:
        s.open()
        first = s.recv()
        assert first == b"\x01" + (3).to_bytes(8, "big") + b"out"
        assert s.recv() == b"\x02" + (6).to_bytes(8, "big") + b"err"
        assert json.loads(s.recv())["type"] == "exit"


@pytest.mark.parametrize("text", ["line\n", "\u0000\u0001", "a\\u0000", "\\\u0000", "\uffff",
                                  "ü" * 70000])
def test_text_of_input_arrives_as_it_is(nook, text):
    with session(nook, ["cat"]) as s:
        s.say("stdin", text=text)
        s.say("close_stdin")
        s.finish()
        assert s.stdout == text.encode()


def test_input_of_the_start_comes_first(nook):
    with session(nook, ["cat"], stdin="first ") as s:
        s.say("stdin", text="then", offset=6)
        s.say("close_stdin")
        s.finish()
        assert (s.stdout, s.acked) == (b"first then", 10)


def test_known_input_is_skipped_and_a_gap_is_a_conflict(nook):
    with session(nook, ["cat"]) as s:
        s.say("stdin", text="0123", offset=0)
        s.say("stdin", text="2345", offset=2)
        s.say("stdin", text="01", offset=0)
        s.open()
        s.until_output("012345")
        while s.acked != 6:
            s.take()
        s.say("stdin", text="x", offset=7)
        assert s.finish()["code"] == "conflict"
        assert s.code == 1011
    wait_until(lambda: nook.children() == [])


def test_input_that_nobody_reads_any_more_is_no_end(nook):
    os.mkfifo(nook.workspace / "go")
    os.chmod(nook.workspace / "go", 0o666)
    with session(nook, "exec 0<&-; echo closed; read x < go; echo $x",
                 cwd=str(nook.workspace)) as s:
        s.open()
        s.until_output("closed")
        # The first write may still be taken by the pipe; then it breaks.
        for _ in range(50):
            s.say("stdin", text="x" * 1000)
        error = s.take_until(lambda m: m["type"] == "stdin_error")
        assert error == {"type": "stdin_error", "code": "conflict"}
        with open(nook.workspace / "go", "w") as f:
            f.write("on\n")
        assert s.finish()["exit_code"] == 0
        assert s.stdout.endswith(b"on\n")


def test_closing_input_twice_is_once(nook):
    with session(nook, ["cat"]) as s:
        s.say("close_stdin")
        s.say("close_stdin")
        assert s.finish()["exit_code"] == 0


def test_a_signal_reaches_the_group_and_a_kill_the_tree(nook):
    with session(nook, "trap 'echo caught; exit 4' USR1; echo ready; while :; do sleep 0.05; done") as s:
        s.open()
        s.until_output("ready")
        s.say("signal", signal="USR1")
        assert s.finish()["exit_code"] == 4
    with session(nook, "setsid sleep 1000 & echo ready; wait") as s:
        s.open()
        s.until_output("ready")
        s.say("kill")
        end = s.finish()
        assert (end["signal"], end["killed"], end["exit_code"]) == ("KILL", True, 137)
    with session(nook, "sleep 1000") as s:
        s.open()
        s.say("kill", signal=15)
        assert s.finish()["signal"] == "TERM"
    wait_until(lambda: nook.descendants() == [])


def test_a_signal_to_a_tree_misses_no_child_that_is_being_born(nook):
    for _ in range(scaled(150, 30)):
        with session(nook, "sleep 1000") as s:  # the shell starts it at about that time
            s.open()
            s.say("kill", signal="TERM")
            assert s.finish()["signal"] == "TERM"
    wait_until(lambda: nook.descendants() == [], 10, "all ended by the one signal")


@pytest.mark.parametrize(("message", "code"), [
    ({"type": "nothing"}, "bad_request"),
    ({"type": "stdin"}, "bad_request"),
    ({"type": "stdin", "text": "a", "base64": "YQ=="}, "bad_request"),
    ({"type": "stdin", "base64": "!"}, "bad_request"),
    ({"type": "stdin", "text": "a", "offset": -1}, "bad_request"),
    ({"type": "stdin", "text": "a", "more": 1}, "bad_request"),
    ({"type": "signal"}, "bad_request"),
    ({"type": "signal", "signal": "NONE"}, "bad_signal"),
    ({"type": "kill", "signal": 0}, "bad_signal"),
    ({"type": "resize", "cols": 0, "rows": 1}, "bad_request"),
    ({"type": "resize", "cols": 65536, "rows": 1}, "bad_request"),
    ({"type": "resize", "cols": 1}, "bad_request"),
    ({"type": "resize", "cols": 1, "rows": 1}, "conflict"),
    ({"type": "start", "command": "true"}, "bad_request"),
])
def test_a_message_that_cannot_be_ends_the_session(nook, message, code):
    with session(nook, "sleep 1000") as s:
        s.open()
        s.send(json.dumps(message))
        assert s.finish()["code"] == code
        assert s.code == 1011
    wait_until(lambda: nook.children() == [], what="its command is killed")


def test_windows_of_1_to_65535_columns(nook):
    with session(nook, ["sh", "-c", "stty size; read x; stty size; read x; stty size"], tty=True,
                 cols=1, rows=65535) as s:
        s.open()
        s.until_output("65535 1\r\n")
        s.say("resize", cols=65535, rows=1)
        s.say("stdin", text="\n")
        s.until_output("1 65535\r\n")
        s.say("resize", cols=80, rows=24)
        s.say("stdin", text="\n")
        assert s.finish()["exit_code"] == 0
        assert b"24 80" in s.stdout


def test_ctrl_c_on_a_terminal_is_a_byte_like_any_other(nook):
    with session(nook, ["sh", "-c", "trap 'echo caught; exit 7' INT; echo ready; read x"],
                 tty=True) as s:
        s.open()
        s.until_output("ready")
        s.say("stdin", text="\u0003")
        assert s.finish()["exit_code"] == 7
        assert b"caught" in s.stdout


# Leaving


@pytest.mark.parametrize("how", ["close", "drop", "break"])
@pytest.mark.parametrize("tcp", [False, True])
def test_closing_the_socket_kills_the_tree(tcp_nook, how, tcp):
    with session(tcp_nook, "sleep 1000 & exec sleep 1000", tcp=tcp) as s:
        pid, id = s.open()["pid"], s.first["id"]
        if how == "close":
            assert s.close() == 1000
        elif how == "break":
            s.raw(frame(3))
            assert s.ended() == 1002
    wait_until(lambda: not lives(pid))
    ended = show(tcp_nook, id, wait=30)
    assert (ended["reason"], ended["signal"]) == ("client_gone", "KILL")
    wait_until(lambda: tcp_nook.descendants() == [])


def test_a_detached_command_outlives_its_socket(nook):
    with session(nook, "echo a; read x; echo got $x", detach=True) as s:
        id = s.open()["id"]
        s.until_output("a\n")
        assert s.close() == 1000
    with ws_client.attach(nook, id, since=2) as viewer:
        viewer.say("stdin", text="b\n", offset=viewer.first["stdin_offset"])
        assert viewer.finish()["exit_code"] == 0
        assert (viewer.stdout, viewer.acked) == (b"got b\n", 2)


def test_a_client_that_never_answers_a_close_is_let_go(nook):
    with session(nook, "true") as s:
        s.open()
        while s.read_frame()[0] != CLOSE:
            pass
        # No answer: the daemon waits its time and then goes.
        assert s.conn.at_end(wait=20)


def test_a_session_that_says_nothing_is_let_go(nook):
    with session(nook) as s:
        s.first = {}
        assert (s.finish()["code"], s.code) == ("timeout", 1008)


def test_the_daemons_end_ends_its_sessions(start_nook):
    nook = start_nook()
    with session(nook, "sleep 1000") as s, session(nook, "trap '' TERM; sleep 1000") as stubborn:
        s.open()
        stubborn.open()
        nook.signal(15)
        assert (s.finish()["reason"], s.code) == ("shutdown", 1000)
        assert (stubborn.finish()["reason"], stubborn.code) == ("shutdown", 1000)
    assert nook.wait() == 0


def test_an_ended_session_leaves_nothing_open(nook):
    with session(nook, "true") as s:
        s.finish()
    before = nook.fds()
    for _ in range(20):
        with session(nook, "true") as s:
            s.finish()
    wait_until(lambda: len(nook.fds()) <= len(before))


def test_a_call_that_kills_is_told_in_the_session(nook):
    with session(nook, "sleep 1000") as s:
        s.open()
        nook.post(f"/v1/processes/{s.first['id']}/kill", {"signal": "KILL"})
        end = s.finish()
        assert (end["reason"], end["killed"], s.code) == ("killed", True, 1000)
