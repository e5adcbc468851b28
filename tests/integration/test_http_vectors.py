"""Requests that break the rules, and some that only look so: the table that the unit tests use too.

Here the whole daemon answers, on its Unix socket, with its own words.
"""

import re
from pathlib import Path

from wire import Closed

VECTORS = Path(__file__).resolve().parents[1] / "unit/http/vectors.txt"
ESCAPE = re.compile(r"\\(\[(.*?)\*(\d+)\]|x([0-9a-f]{2})|.)")


def unescape(text):
    def one(match):
        what, repeated, count, code = match.groups()
        if count:
            return unescape(repeated) * int(count)
        if code:
            return chr(int(code, 16))
        return {"r": "\r", "n": "\n"}.get(what, what)
    return ESCAPE.sub(one, text)


def vectors():
    for line in VECTORS.read_text().splitlines():
        if not line.startswith("#"):
            status, after, name, text = line.split(" ", 3)
            yield name, int(status), after, unescape(text).encode("latin-1")


def look_at_head(head, status, after):
    assert head.status == status
    assert head.header("X-Request-Id")
    assert head.header("X-Nook-Instance")
    if after == "close":
        assert head.header("Connection") == "close"
    else:
        assert head.header("Connection") in (None, "keep-alive")
    if status == 405:
        assert "GET" in head.header("Allow")
    if status == 426:
        assert head.header("Upgrade") == "websocket"


def look_at(c, status, after):
    head = c.read_head()
    look_at_head(head, status, after)
    head.body = b"".join(c.read_body(head))
    if status >= 400:
        assert head.header("Content-Type") == "application/json"
        assert head.code and head.json()["error"]["message"]
    if after == "close":
        assert c.at_end()
    else:
        c.send_request("GET", "/healthz")
        assert c.read_head().status == 200


def wrong_answers(nook, pieces):
    """The names of the vectors that are answered otherwise than the table says."""
    wrong = []
    has_websocket = nook.get("/v1/exec/ws").status != 404
    for name, status, after, data in vectors():
        if name.startswith("websocket") and not has_websocket:
            continue
        with nook.connect() as c:
            try:
                for piece in pieces(data):
                    c.send(piece)
                look_at(c, status, after)
            except (AssertionError, Closed) as e:
                wrong.append(f"{name}: {e}")
    return wrong


def test_requests_fed_whole_get_the_answers_of_the_table(nook):
    assert wrong_answers(nook, lambda data: [data]) == []


def test_requests_in_two_halves_get_the_same(nook):
    assert wrong_answers(nook, lambda data: [data[:len(data) // 2], data[len(data) // 2:]]) == []
