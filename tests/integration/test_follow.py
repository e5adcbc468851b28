"""Logs and followers: every byte where it belongs, from any offset, whoever else reads."""

import base64
import hashlib
import random
import threading

import pytest

from nook import is_sanitized, scaled
from test_processes import show, start
from wire import output_of, wait_until

# stdout and stderr in turns, with characters that pieces cut in two, and bytes that are no text.
MIXED = r"""
import os, random, sys, time
rng = random.Random(%d)
left = %d
total = left
while left > 0:
    # No further ahead of the reader than the ring is large.
    while total - left > int(open("seen").read() or 0) + (32 << 20):
        time.sleep(0.001)
    n = min(left, rng.randrange(1, 60000))
    kind = rng.randrange(3)
    if kind == 0:
        data = ("zażółć €uro 漢字 🙂 " * (n // 16 + 1)).encode()[:n]
    elif kind == 1:
        data = rng.randbytes(n)
    else:
        data = b"plain text\n" * (n // 11 + 1)
        data = data[:n]
    fd = rng.randrange(1, 3)
    while data:
        data = data[os.write(fd, data):]
    left -= n
"""


def raw_log(nook, id, query=""):
    response = nook.get(f"/v1/processes/{id}/logs?raw=true{query}", wait=60)
    assert response.status == 200, response
    return response.body, int(response.header("X-Nook-Offset"))


def events_of(nook, id, since=None):
    query = "" if since is None else f"?since={since}"
    return nook.stream("GET", f"/v1/processes/{id}/follow{query}")


def bytes_of(event):
    data = event.data
    return data["text"].encode() if "text" in data else base64.b64decode(data["base64"])


def test_logs_as_text_and_as_bytes(nook):
    p = start(nook, "printf 'a\\377b'; sleep 0.05; printf 'err' >&2; sleep 0.05; printf 'c'")
    show(nook, p["id"], wait=30)
    logs = nook.get(f"/v1/processes/{p['id']}/logs").json()
    assert logs["stdout"] == "a�bc"
    assert base64.b64decode(logs["stdout_base64"]) == b"a\xffbc"
    assert (logs["stderr"], "stderr_base64" in logs) == ("err", False)
    assert (logs["log_start"], logs["log_end"]) == (0, 7)
    assert raw_log(nook, p["id"]) == (b"a\xffberrc", 7)
    assert raw_log(nook, p["id"], "&since=2") == (b"berrc", 7)
    assert raw_log(nook, p["id"], "&tail=2") == (b"rc", 7)
    assert raw_log(nook, p["id"], "&stream=stderr") == (b"err", 7)
    assert raw_log(nook, p["id"], "&stream=stdout&tail=2") == (b"bc", 7)
    assert raw_log(nook, p["id"], "&stream=stdout&since=4") == (b"c", 7)
    assert raw_log(nook, p["id"], "&tail=0") == (b"", 7)


@pytest.mark.parametrize("query", ["since=1&tail=1", "since=99", "since=-1", "since=x", "tail=x",
                                   "stream=both", "raw=perhaps", "colour=red", "since=0&since=1"])
def test_a_bad_question_about_logs_is_refused(nook, query):
    p = start(nook, "echo hi")
    show(nook, p["id"], wait=30)
    response = nook.get(f"/v1/processes/{p['id']}/logs?{query}")
    assert (response.status, response.code) == (400, "bad_request")


def test_what_is_no_longer_held_is_gone(nook):
    p = start(nook, "seq 100000", log_bytes=4096)
    done = show(nook, p["id"], wait=30)
    assert done["log_end"] - done["log_start"] <= 4096
    for target in ("logs?since=0", "follow?since=0"):
        response = nook.get(f"/v1/processes/{p['id']}/{target}")
        assert (response.status, response.code) == (410, "gone")
        assert response.json()["error"]["log_start"] == done["log_start"]
    assert nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"].endswith("\n100000\n")


def test_a_follow_ends_with_exit_and_begins_where_asked(nook):
    p = start(nook, "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.01; done; echo three")
    with events_of(nook, p["id"]) as stream:
        assert stream.next_event().data["text"] == "one\n"
        assert stream.next_event("stderr").id == 8
        (nook.workspace / "go").touch()
        assert stream.next_event("stdout").data["text"] == "three\n"
        last = stream.next_event("exit")
        assert (last.id, last.data["exit_code"]) == (14, 0)
        assert stream.read() == b""
    with events_of(nook, p["id"], since=4) as stream:
        out, err, last = output_of(stream.events())
    assert (out, err, last.name) == (b"three\n", b"two\n", "exit")
    headers = [("Last-Event-ID", "8")]
    with nook.stream("GET", f"/v1/processes/{p['id']}/follow", headers=headers) as stream:
        assert output_of(stream.events())[0] == b"three\n"
    for bad in ("x", "-1", "8x", "99"):
        response = nook.get(f"/v1/processes/{p['id']}/follow", headers=[("Last-Event-ID", bad)])
        assert (response.status, response.code) == (400, "bad_request")


@pytest.mark.slow
def test_a_follow_cut_anywhere_goes_on_exactly(nook):
    """Cut at random points of a long mixed output; the pieces are the whole, byte for byte."""
    size = scaled(100 << 20, 4 << 20)
    cuts = scaled(1000, 60)
    rng = random.Random(1)
    (nook.workspace / "mixed.py").write_text(MIXED % (7, size))
    p = start(nook, "while [ ! -e go ]; do sleep 0.01; done; exec python3 mixed.py",
              log_bytes=64 << 20)
    points = sorted(rng.randrange(size) for _ in range(cuts)) + [size + 1]
    seen = {"stdout": hashlib.sha256(), "stderr": hashlib.sha256()}
    pos, ended, count, gaps = 0, False, 0, 0
    (nook.workspace / "seen").write_text("0")
    (nook.workspace / "go").touch()
    while not ended:
        target = next((x for x in points if x > pos), size + 1)
        (nook.workspace / "seen").write_text(str(pos))
        with events_of(nook, p["id"], since=pos) as stream:
            for event in stream.events():
                if event.name == "exit":
                    ended = True
                    break
                if event.name == "gap":
                    gaps += 1
                    pos = event.id
                    continue
                data = bytes_of(event)
                assert event.id == pos + len(data)
                seen[event.name].update(data)
                pos = event.id
                if pos >= target:
                    count += 1
                    break
    done = show(nook, p["id"])
    assert gaps == 0, "the reader was slower than 64 MiB of ring"
    assert pos == done["log_end"] == size
    want = {"stdout": hashlib.sha256(), "stderr": hashlib.sha256()}
    for fd, data in mixed_bytes(7, size):
        want["stdout" if fd == 1 else "stderr"].update(data)
    assert {k: v.hexdigest() for k, v in seen.items()} == \
        {k: v.hexdigest() for k, v in want.items()}
    assert count > cuts // 2


def mixed_bytes(seed, left):
    """What MIXED writes, again."""
    rng = random.Random(seed)
    while left > 0:
        n = min(left, rng.randrange(1, 60000))
        kind = rng.randrange(3)
        if kind == 0:
            data = ("zażółć €uro 漢字 🙂 " * (n // 16 + 1)).encode()[:n]
        elif kind == 1:
            data = rng.randbytes(n)
        else:
            data = (b"plain text\n" * (n // 11 + 1))[:n]
        yield rng.randrange(1, 3), data
        left -= n


def test_a_stalled_follower_disturbs_nobody_and_is_told_what_it_missed(nook):
    """One that stops and several that read on: the gaps told and the bytes seen add up."""
    size = scaled(256 << 20, 32 << 20)
    p = start(nook, f"while [ ! -e go ]; do sleep 0.01; done; yes 0123456789abcde | head -c {size}")
    stalled = nook.connect()
    stalled.send_request("GET", f"/v1/processes/{p['id']}/follow")
    stalled.read_until(b"\r\n\r\n")
    totals = []

    def good():
        got = missed = 0
        with events_of(nook, p["id"]) as stream:
            for event in stream.events():
                if event.name == "gap":
                    missed += event.data["to"] - event.data["from"]
                elif event.name == "exit":
                    break
                else:
                    got += len(bytes_of(event))
        totals.append(got + missed)

    threads = [threading.Thread(target=good) for _ in range(scaled(8, 3))]
    for t in threads:
        t.start()
    (nook.workspace / "go").touch()
    assert show(nook, p["id"], wait=60)["exit_code"] == 0
    for t in threads:
        t.join(120)
    assert totals == [size] * len(threads)
    # The stalled one goes on: what it has, then a gap, then the newest, then the end.
    text = b""
    while b"event: exit" not in text:
        piece = stalled.recv()
        assert piece, "the stalled follower was cut off"
        text += piece
    stalled.close()
    assert b"event: gap" in text


def test_followers_that_leave_at_any_byte_do_no_harm(nook):
    p = start(nook, "yes | head -c 20000000; echo end >&2")
    rng = random.Random(3)
    for _ in range(scaled(200, 50)):
        conn = nook.connect()
        conn.send_request("GET", f"/v1/processes/{p['id']}/follow")
        conn.recv(rng.randrange(1, 5000))
        conn.close()
    done = show(nook, p["id"], wait=60)
    assert (done["exit_code"], done["stdout_size"]) == (0, 20000000)


@pytest.mark.slow
def test_thousands_follow_one_process(nook):
    count = scaled(5000, 200)
    p = start(nook, "echo hello; while [ ! -e go ]; do sleep 0.01; done; echo bye")
    wait_until(lambda: show(nook, p["id"])["log_end"] == 6)
    before = nook.rss()
    conns = []
    for _ in range(count):
        conn = nook.connect(wait=120)
        conn.send_request("GET", f"/v1/processes/{p['id']}/follow")
        conns.append(conn)
    for conn in conns:
        conn.read_until(b"hello")
    if not is_sanitized():
        assert nook.rss() - before < count * 8192
    (nook.workspace / "go").touch()
    for conn in conns:
        conn.read_until(b"bye")
        conn.read_until(b"event: exit")
        conn.close()
    assert nook.get("/healthz").status == 200


# stdin


def test_stdin_is_fed_and_closed(nook):
    p = start(nook, "cat; echo end", stdin="first ", stdin_open=True)
    one = nook.post(f"/v1/processes/{p['id']}/stdin", {"text": "second "}).json()
    assert one == {"offset": 13, "closed": False}
    again = nook.post(f"/v1/processes/{p['id']}/stdin", {"text": "cond ", "offset": 8}).json()
    assert again["offset"] == 13
    more = nook.post(f"/v1/processes/{p['id']}/stdin",
                     {"base64": base64.b64encode(b" third").decode(), "offset": 12,
                      "close": True}).json()
    assert more == {"offset": 18, "closed": True}
    show(nook, p["id"], wait=30)
    assert nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"] == "first second thirdend\n"


def test_stdin_that_cannot_be_taken_is_refused(nook):
    target = "/v1/processes/{}/stdin"
    closed = start(nook, "sleep 1000")
    response = nook.post(target.format(closed["id"]), {"text": "x"})
    assert (response.status, response.code) == (409, "conflict")
    p = start(nook, "cat", stdin_open=True)
    gap = nook.post(target.format(p["id"]), {"text": "x", "offset": 1})
    assert (gap.status, gap.code) == (409, "conflict")
    for bad in ({}, {"text": "a", "base64": "YQ=="}, {"base64": "?"}, {"text": 1},
                {"text": "a", "offset": -1}, {"text": "a", "offset": 0.5}, {"text": "a", "x": 1}):
        assert nook.post(target.format(p["id"]), bad).status == 400, bad
    assert nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"] == ""


def test_a_program_that_does_not_read_holds_up_only_its_own_input(nook):
    p = start(nook, "while [ ! -e go ]; do sleep 0.01; done; exec cat >got", stdin_open=True)
    data = random.Random(5).randbytes(10 << 20)
    before = nook.rss()

    def feed():
        pos = 0
        with nook.connect(wait=90) as conn:
            while pos < len(data):
                part = base64.b64encode(data[pos:pos + 300_000]).decode()
                response = conn.request("POST", f"/v1/processes/{p['id']}/stdin",
                                        json={"base64": part, "offset": pos})
                assert response.status == 200, response
                pos = response.json()["offset"]
            conn.request("POST", f"/v1/processes/{p['id']}/stdin", json={"close": True})

    feeder = threading.Thread(target=feed)
    feeder.start()
    for _ in range(20):
        assert nook.exec("echo fine")["stdout"] == "fine\n"
    if not is_sanitized():
        assert nook.rss() - before < 4 << 20
    (nook.workspace / "go").touch()
    feeder.join(60)
    show(nook, p["id"], wait=30)
    assert (nook.workspace / "got").read_bytes() == data


@pytest.mark.slow
def test_stdin_cut_and_resumed_anywhere_arrives_once(nook):
    size = scaled(100 << 20, 8 << 20)
    data = random.Random(9).randbytes(1 << 20)
    whole = hashlib.sha256()
    for _ in range(size >> 20):
        whole.update(data)
    p = start(nook, "sha256sum", stdin_open=True)
    rng = random.Random(11)
    pos = 0
    while pos < size:
        at = pos % len(data)
        part = data[at:at + rng.randrange(1, 500_000)]
        conn = nook.connect(wait=60)
        conn.send_request("POST", f"/v1/processes/{p['id']}/stdin",
                          json={"base64": base64.b64encode(part).decode(), "offset": pos})
        if rng.random() < 0.5:
            conn.close()  # perhaps before it was read, perhaps after
        else:
            conn.read_response()
            conn.close()
        pos = nook.post(f"/v1/processes/{p['id']}/stdin", {"text": ""}).json()["offset"]
    nook.post(f"/v1/processes/{p['id']}/stdin", {"close": True})
    show(nook, p["id"], wait=60)
    out = nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"]
    assert out.split()[0] == whole.hexdigest()
