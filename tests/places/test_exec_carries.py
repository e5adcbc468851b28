"""`nookd proxy` through a place's own exec: every byte comes through, or the client can tell.

At full count a gibibyte each way, and sixteen streams of 64 MiB: NOOK_SCALE=16, with -rP -o timeout=7200.
"""

import hashlib
import os
import threading
import time

import pytest

import ws_client
from nook import scaled
from wire import Closed, output_of, wait_until

pytestmark = pytest.mark.place

MIB = 1 << 20
SIZE = scaled(64, 4)    # MiB of one stream
EACH = scaled(4)        # MiB of each of many
STREAMS = 16
AT_ONCE = 16            # MiB of one file: the workspace of some places is small
PIECE = 64 << 10
WINDOW = 4 * PIECE      # less than what the buffers on the way take
BLOCK = os.urandom(MIB)


def mebibyte(number):
    """No two of them are the same: what is lost, doubled or moved is seen."""
    return number.to_bytes(8, "big") + BLOCK[8:]


def put(conn, name, numbers, hashes):
    conn.send(f"PUT /v1/files?path={name} HTTP/1.1\r\nHost: {conn.host}\r\n"
              + "".join(f"{key}: {value}\r\n" for key, value in conn.common)
              + f"Content-Length: {len(numbers) * MIB}\r\n\r\n")
    for number in numbers:
        piece = mebibyte(number)
        hashes.update(piece)
        conn.send(piece)
    answer = conn.read_response("PUT")
    assert answer.status in (200, 201), answer


def files_there_and_back(place, name, count):
    """So many MiB as files, up and down on one connection."""
    sent, got = hashlib.sha256(), hashlib.sha256()
    with place.connect(wait=120) as conn:
        for first in range(0, count, AT_ONCE):
            put(conn, name, range(first, min(first + AT_ONCE, count)), sent)
            conn.send_request("GET", f"/v1/files?path={name}")
            head = conn.read_head()
            assert head.status == 200
            for piece in conn.read_body(head):
                got.update(piece)
        assert conn.request("DELETE", f"/v1/files?path={name}").status == 204
    assert got.digest() == sent.digest()


def events_are_whole(place, name, count):
    """So many MiB that a command writes, as server-sent events."""
    want, got, length = hashlib.sha256(), hashlib.sha256(), 0
    with place.connect(wait=120) as conn:
        put(conn, name, range(1), hashlib.sha256())
        command = f"i=0; while [ $i -lt {count} ]; do cat {name}; i=$((i+1)); done; rm {name}"
        stream = conn.stream("POST", "/v1/exec/stream", json={"command": command})
        for event in stream.events():
            if event.name == "stdout":
                piece, _, _ = output_of([event])
                got.update(piece)
                length += len(piece)
                assert event.id == length
    assert event.name == "exit" and event.data["exit_code"] == 0, event
    for _ in range(count):
        want.update(mebibyte(0))
    assert got.digest() == want.digest()


def words_there_and_back(place, _, count):
    """So many MiB through a WebSocket, a command and back, both ways at once."""
    sent, got = hashlib.sha256(), hashlib.sha256()
    with ws_client.session(place, ["cat"], wait=120) as talk:
        talk.open()
        for number in range(count):
            data = mebibyte(number)
            sent.update(data)
            for at in range(0, MIB, PIECE):
                talk.send(data[at:at + PIECE])
                while number * MIB + at + PIECE - talk.offset > WINDOW:
                    take(talk, got)
        talk.say("close_stdin")
        while talk.offset < count * MIB:
            take(talk, got)
        assert talk.finish()["exit_code"] == 0
    assert got.digest() == sent.digest()


def take(talk, hashes):
    """One message; what it carried is not kept."""
    talk.take()
    kept = talk.out[ws_client.STDOUT]
    while kept:
        hashes.update(kept.pop())


KINDS = {"files": files_there_and_back, "events": events_are_whole, "websocket": words_there_and_back}


def kinds_of(place):
    return list(KINDS) if place.shell else ["files"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_comes_through(place, kind):
    if kind not in kinds_of(place):
        pytest.skip(f"{place.name} has no shell")
    began = time.monotonic()
    KINDS[kind](place, "through.bin", SIZE)
    took = time.monotonic() - began
    print(f"{place.name}: {kind}, {SIZE} MiB {'one way' if kind == 'events' else 'each way'} "
          f"in {took:.1f} s, {SIZE / took:.0f} MiB/s")


def test_many_at_once_do_not_mix(place):
    kinds, wrong = kinds_of(place), []

    def one(number):
        try:
            KINDS[kinds[number % len(kinds)]](place, f"through{number}.bin", EACH)
        except BaseException as e:  # pylint: disable=broad-except
            wrong.append(f"{number}: {e!r}")

    began = time.monotonic()
    threads = [threading.Thread(target=one, args=(number,)) for number in range(STREAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    assert wrong == []
    print(f"{place.name}: {STREAMS} at once, {EACH} MiB each, {took:.1f} s, "
          f"{STREAMS * EACH / took:.0f} MiB/s")


def end_after_a_cut(place, read):
    """What reading on tells once the exec is gone."""
    place.cut()
    with pytest.raises((Closed, ws_client.Ended)) as told:
        while True:
            read()
    return told.value


def only_where_an_exec_cuts(place):
    if not place.cuts:
        pytest.skip(f"{place.name} has no exec that ends a connection")


def test_a_download_that_the_exec_cuts_is_not_taken_for_whole(place):
    only_where_an_exec_cuts(place)
    with place.connect() as conn:
        put(conn, "through.bin", range(8), hashlib.sha256())
        conn.send_request("GET", "/v1/files?path=through.bin")
        pieces = conn.read_body(conn.read_head())
        assert next(pieces)
        end_after_a_cut(place, lambda: next(pieces))
    assert place.request("DELETE", "/v1/files?path=through.bin").status == 204


def test_an_event_stream_that_the_exec_cuts_lacks_its_end(place):
    only_where_an_exec_cuts(place)
    if not place.shell:
        pytest.skip(f"{place.name} has no shell")
    with place.exec_stream("while :; do echo 0123456789; done", timeout=60) as stream:
        events = stream.events()
        assert next(events).name == "started" and next(events).name == "stdout"
        end_after_a_cut(place, lambda: next(events))


def test_a_websocket_that_the_exec_cuts_lacks_its_close(place):
    only_where_an_exec_cuts(place)
    if not place.shell:
        pytest.skip(f"{place.name} has no shell")
    with ws_client.session(place, ["cat"]) as talk:
        talk.open()
        talk.send(b"word")
        talk.until_output("word")
        assert end_after_a_cut(place, talk.take).code is None


def test_what_an_exec_loses_at_its_end_is_noticed(place):
    """Some runtimes lose the last bytes of a program that ends at once behind them."""
    broken, count = 0, scaled(25, 3)
    with place.connect() as conn:
        put(conn, "through.bin", range(1), hashlib.sha256())
    for _ in range(count):
        with place.connect() as conn:
            conn.send_request("GET", "/v1/files?path=through.bin", headers=[("Connection", "close")])
            try:
                assert conn.read_response().body == mebibyte(0)
            except Closed:
                broken += 1
    assert place.request("DELETE", "/v1/files?path=through.bin").status == 204
    print(f"{place.name}: {broken} of {count} answers that ended their exec were cut, and told so")
