"""Viewers of a process: replay, then live, several at once, and none of them in anybody's way."""

import json
import random

import pytest

from nook import scaled
from test_processes import lives, show, start
from wire import wait_until
from ws_client import Refused, attach, session


def lines(count):
    return "".join(f"{i}\n" for i in range(1, count + 1)).encode()


def test_a_viewer_sees_what_was_and_what_comes_without_loss_or_repeat(nook):
    p = start(nook, "seq 1 1000; read x; seq 1001 2000", stdin_open=True)
    wait_until(lambda: show(nook, p["id"])["log_end"] == len(lines(1000)))
    with attach(nook, p["id"]) as viewer:
        assert viewer.first["status"] == "running"
        assert (viewer.first["log_start"], viewer.first["log_end"]) == (0, len(lines(1000)))
        assert (viewer.first["tty"], viewer.first["stdin_offset"]) == (False, 0)
        viewer.say("stdin", text="go\n", offset=0)
        assert viewer.finish()["exit_code"] == 0
        assert viewer.stdout == lines(2000)
        assert viewer.acked == 3
    with attach(nook, p["id"], since=len(lines(1000))) as late:
        assert late.first["status"] == "exited"
        assert late.finish()["exit_code"] == 0
        assert late.stdout == lines(2000)[len(lines(1000)):]


@pytest.mark.parametrize("binary", ["true", "false"])
def test_a_viewer_from_any_offset_gets_exactly_the_rest(nook, binary):
    data = random.Random(3).randbytes(50_000)
    p = start(nook, ["sh", "-c", "cat; cat >&2 < /etc/hostname"], stdin_open=True)
    with attach(nook, p["id"], binary=binary) as viewer:
        viewer.send(data)
        viewer.say("close_stdin")
        viewer.finish()
        whole = viewer.stdout + viewer.stderr
        assert viewer.stdout == data
    for since in [0, 1, len(data) - 1, len(data), len(data) + 1, len(whole) - 1, len(whole),
                  *random.Random(4).sample(range(len(whole)), 20)]:
        with attach(nook, p["id"], since=since, binary=binary) as viewer:
            viewer.finish()
            assert viewer.stdout + viewer.stderr == whole[since:]


def test_what_cannot_be_viewed_is_a_plain_error(nook):
    p = start(nook, "seq 100000", log_bytes=4096)
    show(nook, p["id"], wait=30)
    for target, status, code in ((f"/v1/processes/{p['id']}/ws?since=1", 410, "gone"),
                                 (f"/v1/processes/{p['id']}/ws?since=999999999", 400, "bad_request"),
                                 (f"/v1/processes/{p['id']}/ws?since=x", 400, "bad_request"),
                                 (f"/v1/processes/{p['id']}/ws?binary=2", 400, "bad_request"),
                                 (f"/v1/processes/{p['id']}/ws?x=1", 400, "bad_request"),
                                 ("/v1/processes/none/ws", 404, "not_found")):
        with pytest.raises(Refused) as e:
            session(nook, target=target)
        assert (e.value.response.status, e.value.response.code) == (status, code)


def test_several_viewers_see_the_same_and_each_can_type(nook):
    p = start(nook, ["cat"], tty=True, cols=80, rows=24)
    with attach(nook, p["id"]) as one, attach(nook, p["id"], binary="true") as two, \
            attach(nook, p["id"]) as three:
        one.say("stdin", text="first\n")
        for viewer in (one, two, three):
            viewer.until_output("first\r\nfirst\r\n")
        three.say("resize", cols=90, rows=30)
        three.say("stdin", text="second\n")
        one.until_output("second\r\nsecond\r\n")
        two.send(b"third\n")
        for viewer in (one, two, three):
            viewer.until_output("third\r\nthird\r\n")
        assert one.stdout == two.stdout == three.stdout
        assert one.close() == 1000
        two.say("signal", signal="TERM")
        assert two.finish()["signal"] == three.finish()["signal"] == "TERM"
        assert two.stdout == three.stdout
    assert show(nook, p["id"])["reason"] == "signaled"


def test_leaving_leaves_the_process_alone(tcp_nook):
    p = start(tcp_nook, "sleep 1000")
    for tcp in (False, True):
        with attach(tcp_nook, p["id"], tcp=tcp) as viewer:
            assert viewer.close() == 1000
        with attach(tcp_nook, p["id"], tcp=tcp):
            pass
        with attach(tcp_nook, p["id"], tcp=tcp) as viewer:
            viewer.send("nonsense")
            viewer.take_until(lambda m: m["type"] == "error")
            assert viewer.ended() == 1011
    assert lives(p["pid"])


def test_a_stopped_viewer_slows_nobody_and_learns_what_it_missed(nook):
    size = scaled(30 << 20, 6 << 20)
    p = start(nook, f"read x; yes 0123456789abcde | head -c {size}; echo; echo over", stdin_open=True,
              log_bytes=1 << 18)
    with attach(nook, p["id"]) as stopped, attach(nook, p["id"], binary="true") as busy:
        busy.say("stdin", text="go\n")
        # `stopped` reads nothing until the process is over, by which time most of it is forgotten.
        assert busy.finish()["exit_code"] == 0
        missed = sum(to - since for since, to in busy.gaps)
        assert len(busy.stdout) + missed == size + 6
        assert busy.stdout.endswith(b"\nover\n")
        assert stopped.finish()["exit_code"] == 0
        assert stopped.gaps, "it was told of everything"
        missed = sum(to - since for since, to in stopped.gaps)
        assert len(stopped.stdout) + missed == size + 6
        assert stopped.stdout.endswith(b"\nover\n")


def test_a_viewer_beside_a_session_changes_nothing_for_it(nook):
    with session(nook, "seq 1 100000", binary=True) as owner:
        id = owner.open()["id"]
        with attach(nook, id) as viewer:
            assert owner.finish()["exit_code"] == 0
            assert owner.stdout == lines(100000)
            viewer.finish()
            assert sum(b - a for a, b in viewer.gaps) + len(viewer.stdout) == len(lines(100000))
            assert viewer.stdout.endswith(b"\n100000\n")


def test_a_forgotten_process_ends_for_its_viewers(nook):
    p = start(nook, "echo here; sleep 1000")
    with attach(nook, p["id"]) as viewer:
        viewer.until_output("here")
        assert nook.request("DELETE", f"/v1/processes/{p['id']}").status == 204
        assert viewer.finish()["reason"] == "killed"


def test_the_output_of_a_background_child_comes_after_the_end_to_nobody(nook):
    p = start(nook, "(sleep 0.7; echo late) & echo now")
    with attach(nook, p["id"]) as viewer:
        assert viewer.finish()["exit_code"] == 0
        assert viewer.stdout == b"now\n"


def test_viewers_come_and_go_while_it_talks(nook):
    p = start(nook, "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; sleep 1000")
    expected = b"".join(b"%d\n" % i for i in range(20000))
    seen = b""
    dice = random.Random(5)
    for _ in range(scaled(60, 10)):
        if seen == expected:
            break
        with attach(nook, p["id"], since=len(seen)) as viewer:
            pieces = dice.randrange(1, 4)
            while pieces > 0 and viewer.offset < len(expected):
                viewer.take()
                pieces -= 1
            if dice.random() < 0.5:
                viewer.close()
            seen += viewer.stdout
    assert seen == expected[:len(seen)] and seen
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})


def test_attached_is_json_of_one_line(nook):
    p = start(nook, "true")
    with session(nook, target=f"/v1/processes/{p['id']}/ws") as viewer:
        first = viewer.recv()
        assert "\n" not in first and json.loads(first)["id"] == p["id"]
