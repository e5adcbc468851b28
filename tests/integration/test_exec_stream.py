"""POST /v1/exec/stream: the output as it comes, and exactly one end."""

import base64
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from nook import is_sanitized, scaled
from test_exec import STAY, is_gone, pid_in
from wire import output_of, wait_until

EURO = "€".encode()  # e2 82 ac


def run(nook, command, **fields):
    """All events of a command that ends."""
    with nook.exec_stream(command, **fields) as stream:
        return list(stream.events())


def size_of(event):
    data = event.data
    return len(data["text"].encode()) if "text" in data else len(base64.b64decode(data["base64"]))


def check_form(events):
    """started, outputs whose offsets add up, one closing event."""
    assert events[0].name == "started"
    assert events[0].id == events[0].data["offset"] == 0
    assert [e.name for e in events].count("exit") == 1 and events[-1].name == "exit"
    at = 0
    for event in events[1:-1]:
        assert event.name in ("stdout", "stderr")
        assert 0 < size_of(event) <= 65536
        at += size_of(event)
        assert event.id == at
    end = events[-1].data
    assert events[-1].id == at == end["stdout_size"] + end["stderr_size"]
    assert end["id"] == events[0].data["id"]
    return end


def test_a_stream_is_started_then_output_then_one_exit(nook):
    events = run(nook, "echo out; echo err >&2; exit 3")
    end = check_form(events)
    assert end.pop("duration_ms") >= 0
    assert end == {
        "id": events[0].data["id"], "exit_code": 3, "signal": None, "timed_out": False,
        "killed": False, "reason": "exited", "stdout_size": 4, "stderr_size": 4,
        "stdout_truncated": False, "stderr_truncated": False, "files": []}
    assert output_of(events)[:2] == (b"out\n", b"err\n")


def test_the_answer_is_an_event_stream_that_nothing_stores(nook):
    with nook.exec_stream("true") as stream:
        assert stream.header("Content-Type") == "text/event-stream"
        assert stream.header("Cache-Control") == "no-store"
        check_form(list(stream.events()))


def test_started_comes_before_the_command_says_anything(nook):
    with nook.exec_stream("read x; echo $x", stdin_base64="") as stream:
        assert stream.next_event("started").data["pid"] > 0
    with nook.exec_stream(STAY) as stream:
        pid = stream.next_event("started").data["pid"]
        assert pid_in(nook) == pid


def test_output_comes_while_the_command_runs(nook):
    command = "for i in 1 2 3; do echo $i; while [ ! -e go$i ]; do sleep 0.01; done; done"
    with nook.exec_stream(command) as stream:
        stream.next_event("started")
        for i in (1, 2, 3):
            assert stream.next_event("stdout").data == {"text": f"{i}\n"}
            (nook.workspace / f"go{i}").touch()
        assert stream.next_event("exit").data["exit_code"] == 0


def test_both_streams_keep_their_order_of_reading(nook):
    command = ("for i in 1 2 3 4 5; do echo o$i; while [ ! -e a$i ]; do sleep 0.01; done; "
               "echo e$i >&2; while [ ! -e b$i ]; do sleep 0.01; done; done")
    with nook.exec_stream(command) as stream:
        stream.next_event("started")
        for i in range(1, 6):
            assert stream.next_event("stdout").data == {"text": f"o{i}\n"}
            (nook.workspace / f"a{i}").touch()
            assert stream.next_event("stderr").data == {"text": f"e{i}\n"}
            (nook.workspace / f"b{i}").touch()
        assert stream.next_event("exit")


def test_half_a_character_is_sent_after_a_while_and_as_bytes(nook):
    command = r"printf 'a\342\202'; while [ ! -e go ]; do sleep 0.01; done; printf '\254b'"
    with nook.exec_stream(command) as stream:
        stream.next_event("started")
        assert stream.next_event("stdout").data == {"text": "a"}
        assert stream.next_event("stdout").data == {"base64": base64.b64encode(EURO[:2]).decode()}
        (nook.workspace / "go").touch()
        rest = list(stream.events())
    assert output_of(rest)[0] == EURO[2:] + b"b"


def test_half_a_character_goes_out_before_bytes_of_the_other_stream(nook):
    events = run(nook, r"printf '\342\202'; sleep 0.02; printf E >&2; sleep 0.02; printf '\254'")
    check_form(events)
    order = [(e.name, e.data) for e in events[1:-1]]
    assert order == [("stdout", {"base64": base64.b64encode(EURO[:2]).decode()}),
                     ("stderr", {"text": "E"}),
                     ("stdout", {"base64": base64.b64encode(EURO[2:]).decode()})]


def test_half_a_character_at_the_end_is_not_lost(nook):
    events = run(nook, r"printf 'x\360\237\230'")
    check_form(events)
    assert output_of(events)[0] == b"x\xf0\x9f\x98"


def test_text_in_any_pieces_stays_text(nook):
    """A writer that cuts at every byte, faster than the time that a half is held for."""
    code = "import os\nfor b in ('aä€😀' * 200).encode(): os.write(1, bytes([b]))"
    events = run(nook, ["python3", "-c", code])
    check_form(events)
    assert output_of(events)[0] == ("aä€😀" * 200).encode()
    if not is_sanitized():
        assert all("text" in e.data for e in events[1:-1])


def test_every_byte_value_comes_through(nook):
    code = "import os\nfor i in range(64): os.write(1 + i % 2, bytes(range(256)) * 40)"
    events = run(nook, ["python3", "-c", code])
    check_form(events)
    assert output_of(events)[:2] == (bytes(range(256)) * 40 * 32,) * 2


def test_no_event_is_larger_than_64_kib(nook):
    events = run(nook, "head -c 3000000 /dev/zero | tr '\\0' '\\n'")
    check_form(events)
    assert output_of(events)[0] == b"\n" * 3000000


def test_a_timeout_is_an_exit_like_any_other(nook):
    events = run(nook, "echo before; sleep 1000", timeout=0.4)
    end = check_form(events)
    assert output_of(events)[0] == b"before\n"
    assert (end["timed_out"], end["exit_code"], end["reason"]) == (True, 137, "timeout")


def test_a_background_child_does_not_hold_up_the_end(nook):
    for start in ("sleep 1000 & echo hi", "setsid sleep 1000 & echo hi"):
        events = run(nook, start)
        check_form(events)
        assert output_of(events)[0] == b"hi\n"


def test_what_cannot_start_is_a_plain_error(nook):
    (nook.workspace / "plain").write_text("no program\n")
    for fields, errno, stage in (
            ({"command": ["/nonexistent"]}, "ENOENT", "exec"),
            ({"command": ["nonexistent-program"], "env": {"PATH": "/usr/bin:/bin"}}, "ENOENT",
             "exec"),
            ({"command": [str(nook.workspace / "plain")]}, "EACCES", "exec"),
            ({"command": "true", "cwd": "missing"}, "ENOENT", "chdir"),
            ({"command": "true", "cwd": "plain"}, "ENOTDIR", "chdir")):
        for target in ("/v1/exec/stream", "/v1/exec"):
            response = nook.post(target, fields)
            assert (response.status, response.code) == (400, "exec_failed")
            assert response.header("Content-Type") == "application/json"
            error = response.json()["error"]
            assert (error["errno"], error["stage"]) == (errno, stage)


def test_a_slow_reader_gets_every_byte_of_a_full_pipe(nook):
    size = 1 << 20
    with nook.exec_stream(f"head -c {size} /dev/zero | tr '\\0' x; echo $$ > pid") as stream:
        stream.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.next_event("started")
        events = []
        for event in stream.events():
            events.append(event)
        out, _, last = output_of(events)
    assert len(out) == size and last.data["exit_code"] == 0


def test_a_reader_that_stops_stops_its_command_and_loses_nothing(nook):
    """The command can be only as far ahead as the buffers on the way are large."""
    command = ["python3", "-c",
               "import os\nn = 0\nblock = b'x' * 4096\n"
               "f = os.open('sent', os.O_CREAT | os.O_WRONLY, 0o644)\n"
               "while n < 32 << 20:\n n += os.write(1, block)\n os.pwrite(f, b'%020d' % n, 0)"]
    sent = nook.workspace / "sent"
    with nook.exec_stream(command) as stream:
        stream.next_event("started")
        before = -1

        def settled():
            nonlocal before
            now = int(sent.read_text() or 0) if sent.exists() else 0
            same = now == before and now > 0
            before = now
            return same

        wait_until(lambda: settled() and settled(), 20, "the command stands still")
        assert before < 4 << 20
        out, _, last = output_of(stream.events())
    assert len(out) == 32 << 20
    assert last.data["exit_code"] == 0


def test_a_client_that_leaves_takes_its_command_along(tcp_nook):
    for tcp in (True, False):
        for how in ("close", "reset"):
            if how == "reset" and not tcp:
                continue
            stream = tcp_nook.stream("POST", "/v1/exec/stream", tcp=tcp, json={"command": STAY})
            stream.next_event("started")
            pid = pid_in(tcp_nook)
            getattr(stream.conn, how)()
            wait_until(lambda p=pid: is_gone(p), 10, f"{how}, tcp {tcp}: the command ends")
            (tcp_nook.workspace / "pid").unlink()


def test_a_client_that_only_ends_its_input_reads_on(tcp_nook):
    command = "while [ ! -e go ]; do sleep 0.01; done; echo late"
    for tcp in (True, False):
        with tcp_nook.stream("POST", "/v1/exec/stream", tcp=tcp,
                             json={"command": command}) as stream:
            stream.next_event("started")
            stream.conn.half_close()
            if tcp:  # it is probed at once, and again
                everything = stream.all_events()
                assert next(everything).comment is not None
                assert next(everything).comment is not None
            (tcp_nook.workspace / "go").touch()
            out, _, last = output_of(stream.events())
            assert (out, last.name) == (b"late\n", "exit")
        (tcp_nook.workspace / "go").unlink()


@pytest.mark.slow
def test_a_silent_stream_is_kept_awake(nook):
    with nook.stream("POST", "/v1/exec/stream", json={"command": "sleep 1000"}) as stream:
        stream.next_event("started")
        assert next(stream.all_events()).comment is not None


def stream_on_one_connection(nook, numbers):
    wrong = []
    for n in numbers:
        with nook.exec_stream(f"echo {n}; exit {n % 256}") as stream:
            events = list(stream.events())
        out, _, last = output_of(events)
        names = [e.name for e in events]
        if out != b"%d\n" % n or names != ["started", "stdout", "exit"] or \
                last.data["exit_code"] != n % 256:
            wrong.append(events)
    return wrong


def test_many_short_streams_are_each_complete(nook):
    count = scaled(10000, 320)
    fds = len(nook.fds())
    with ThreadPoolExecutor(32) as pool:
        wrong = list(pool.map(lambda i: stream_on_one_connection(nook, range(i, count, 32)),
                              range(32)))
    assert not sum(wrong, [])
    wait_until(lambda: len(nook.fds()) <= fds, 10, "its descriptors are back to where they were")
    wait_until(lambda: not nook.zombies(), 10, "the dead are reaped")


@pytest.mark.slow
def test_memory_stays_flat_under_a_gibibyte(nook):
    size = scaled(1 << 30, 64 << 20)
    run(nook, "head -c 10000000 /dev/zero | tr '\\0' x")
    before = peak = nook.rss()
    got = 0
    with nook.exec_stream(f"head -c {size} /dev/zero | tr '\\0' x") as stream:
        for i, piece in enumerate(stream.pieces()):
            got += piece.count(b"x")
            if i % 256 == 0:
                peak = max(peak, nook.rss())
            last = piece
    assert got >= size  # an x in a name would only add
    assert b"event: exit" in last
    if not is_sanitized():
        assert peak - before < 4 << 20


@pytest.mark.slow
@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_clients_that_never_read_cost_a_bounded_amount_and_it_comes_back(tcp_nook, tcp):
    nook = tcp_nook
    if is_sanitized():
        pytest.skip("a sanitizer's memory is not nookd's")
    run(nook, "seq 1000000")
    before = nook.rss()
    streams = []
    try:
        for _ in range(64):
            streams.append(nook.stream("POST", "/v1/exec/stream", json={"command": "yes"}, tcp=tcp))
        for stream in streams:
            stream.next_event("started")
        seen = -1

        def settled():
            nonlocal seen
            last, seen = seen, read_bytes(nook)
            return last == seen

        wait_until(lambda: settled() and settled(), 20, "all commands stand still")
        wait_until(lambda: nook.rss() - before < 64 * 256 * 1024, 10, "what was read is forgotten")
    finally:
        for stream in streams:
            stream.close()
    wait_until(lambda: nook.rss() - before < 4 << 20, 20, "the memory is given back")


def read_bytes(nook):
    for line in nook.get("/metrics").text.splitlines():
        if line.startswith("nook_command_output_bytes_total "):
            return int(line.split()[1])
    raise AssertionError("no such metric")
