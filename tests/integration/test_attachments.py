"""Commands whose request is a form: files before the start, standard input while it runs."""

import json
import os
import subprocess

import pytest

import wire
from test_files import get, refused


def form(*parts):
    """(disposition, body) of each part."""
    return b"".join(b"--B\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n"
                    % (how.encode(), data) for how, data in parts) + b"--B--\r\n"


def request(**fields):
    return "name=request", json.dumps(fields).encode()


def post(nook, *parts, target="/v1/exec", chunks=None, **kw):
    body = form(*parts)
    headers = {"Content-Type": "multipart/form-data; boundary=B", **kw.pop("headers", {})}
    if chunks:
        body = [body[i:i + chunks] for i in range(0, len(body), chunks)]
    return nook.request("POST", target, body=body, chunked=bool(chunks), headers=headers, **kw)


@pytest.mark.parametrize("chunks", [None, 1000])
def test_files_are_there_before_the_command_starts(nook, chunks):
    data = os.urandom(50_000)
    response = post(nook, request(command="wc -c < files/a; cat files/sub/b; ls files", timeout=20),
                    ('name=x; filename="a"', data), ('name=y; filename="sub/b"', b"second\n"),
                    chunks=chunks)
    assert response.status == 200, response
    assert response.json()["stdout"] == "50000\nsecond\na\nsub\n"
    assert get(nook, "files/a").body == data


def test_input_is_streamed_to_the_command(nook):
    data = os.urandom(3_000_000)
    response = post(nook, request(command="sha256sum; cat files/f"), ('name=f; filename="f"', b"F"),
                    ('name="stdin"; filename="any"', data), chunks=60_000)
    assert response.json()["stdout"].split()[0] == \
        subprocess.run(["sha256sum"], input=data, capture_output=True).stdout.split()[0].decode()
    assert response.json()["stdout"].endswith("-\nF")
    assert not (nook.workspace / "files/any").exists()


def test_an_empty_input_is_an_end_at_once(nook):
    assert post(nook, request(command="cat; echo over"), ("name=stdin", b"")).json()["stdout"] == \
        "over\n"


def test_output_comes_while_input_is_still_sent(nook):
    head = ("POST /v1/exec/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            "Content-Type: multipart/form-data; boundary=B\r\n\r\n")
    begin = form(request(command="cat"), ("name=stdin", b"one\n"))[:-len(b"\r\n--B--\r\n")]

    def chunk(data):
        return b"%x\r\n%b\r\n" % (len(data), data)

    with nook.connect() as conn:
        conn.send(head.encode() + chunk(begin))
        stream = wire.Stream(conn, conn.read_head(), "POST")
        events = stream.events()
        assert next(events).name == "started"
        assert next(events).data["text"] == "one\n"
        conn.send(chunk(b"two\n"))
        assert next(events).data["text"] == "two\n"
        conn.send(chunk(b"\r\n--B--\r\n") + b"0\r\n\r\n")
        last = next(events)
        assert (last.name, last.data["exit_code"]) == ("exit", 0)


def test_a_program_that_does_not_read_gets_no_more_and_may_end(nook):
    data = os.urandom(4_000_000)
    response = post(nook, request(command="head -c 5 | wc -c"), ("name=stdin", data))
    assert response.json()["stdout"] == "5\n"
    response = post(nook, request(command="sleep 1; wc -c"), ("name=stdin", data), chunks=100_000)
    assert response.json()["stdout"] == "4000000\n"


@pytest.mark.parametrize("parts", [
    [],
    [("name=x; filename=a", b"x"), request(command="true")],
    [request(command="true"), request(command="true")],
    [request(command="true"), ("name=other", b"no file")],
    [("name=request", b"[]")],
    [request(command="true", bogus=1), ("name=x; filename=a", b"x")],
    [request(command="true", stdin="x"), ("name=stdin", b"x")],
])
def test_a_form_that_is_no_command_starts_nothing(nook, parts):
    for target in ("/v1/exec", "/v1/exec/stream"):
        refused(post(nook, *parts, target=target), 400, "bad_request")
    assert nook.get("/v1/processes").json()["processes"] == []


def test_other_refusals_keep_their_codes(nook):
    refused(post(nook, ("name=request", b"{")), 400, "bad_json")
    refused(post(nook, request(command="true"), ("name=x; filename=../a", b"")), 400, "bad_path")
    refused(post(nook, request(command=["/nonexistent"]), ("name=x; filename=a", b"")), 400,
            "exec_failed")
    refused(post(nook, request(command="true", user="root")), 403, "forbidden")
    refused(post(nook, ("name=request", b'{"command":"' + b"x" * (2 << 20) + b'"}')), 413,
            "too_large")


def test_a_part_after_the_input_ends_the_command(nook):
    response = post(nook, request(command="cat; sleep 100"), ("name=stdin", b"x"),
                    ("name=x; filename=late", b"late"))
    assert (response.status, response.json()["reason"]) == (200, "client_gone")
    assert not (nook.workspace / "files/late").exists()


def test_a_client_that_leaves_in_the_middle_takes_its_command_along(nook):
    body = form(request(command="echo $$ > pid; cat; sleep 1000"), ("name=stdin", b"some"))[:-9]
    with nook.connect() as conn:
        conn.send("POST /v1/exec HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
                  "Content-Type: multipart/form-data; boundary=B\r\n\r\n")
        conn.send(body)
        wire.wait_until(lambda: (nook.workspace / "pid").exists(), what="it has started")
    wire.wait_until(lambda: not nook.descendants(), what="it has ended")


# under a key


def keyed(nook, *parts, key="k", **kw):
    return post(nook, *parts, headers={"Idempotency-Key": key}, wait=60, **kw)


COUNT = request(command="echo x >> count; cat files/a; wc -l < count")


def test_a_repeated_upload_is_read_and_gets_the_first_answer(nook):
    data = os.urandom(300_000).hex().encode()
    first = keyed(nook, COUNT, ('name=x; filename="a"', data))
    again = keyed(nook, COUNT, ('name=x; filename="a"', data), chunks=70_000)
    assert first.status == again.status == 200
    assert first.json() == again.json()
    other = keyed(nook, COUNT, ('name=x; filename="a"', data[:-1] + b"!"))
    assert (other.status, other.code) == (409, "conflict")
    assert (nook.workspace / "count").read_text() == "x\n"
    assert get(nook, "files/a").body == data


def test_a_repeat_joins_while_the_first_still_sends(nook):
    """Also with input that is streamed: the command runs before its fingerprint is known."""
    parts = (request(command="echo x >> count; sha256sum"), ("name=stdin", os.urandom(500_000)))
    body = form(*parts)
    head = ("POST /v1/exec HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"
            f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {len(body)}\r\n\r\n")
    with nook.connect() as first, nook.connect() as second:
        first.send(head.encode() + body[:200_000])
        wire.wait_until(lambda: (nook.workspace / "count").exists())
        second.send(head.encode() + body)
        first.send(body[200_000:])
        one, two = first.read_response(), second.read_response()
    assert one.status == two.status == 200, (one, two)
    assert one.json() == two.json()
    assert (nook.workspace / "count").read_text() == "x\n"
    late = keyed(nook, *parts)
    assert late.json() == one.json()


@pytest.mark.parametrize("early", [True, False])
def test_a_key_whose_upload_broke_off_is_free_again(nook, early):
    """Before the command was started, or while its input was sent."""
    what = ('name=x; filename="a"', b"y" * 400_000) if early else ("name=stdin", b"y" * 400_000)
    parts = (request(command="echo x >> count; cat > /dev/null"), what)
    body = form(*parts)
    head = ("POST /v1/exec HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"
            f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {len(body)}\r\n\r\n")
    waiting = nook.connect(wait=30)
    with nook.connect() as broken:
        broken.send(head.encode() + body[:200_000])
        if not early:
            wire.wait_until(lambda: (nook.workspace / "count").exists())
        waiting.send(head.encode() + body)
    told = waiting.read_response()
    waiting.close()
    assert told.status in (200, 503), told
    again = keyed(nook, *parts)
    assert again.status == 200 and again.json()["exit_code"] == 0, again


def test_what_is_wrong_with_a_keyed_form_is_not_remembered(nook):
    assert keyed(nook, request(comand="true")).status == 400
    assert keyed(nook, request(command="echo fine")).json()["stdout"] == "fine\n"
    failed = [keyed(nook, request(command=["/nonexistent"]), key="f") for _ in range(2)]
    assert [f.code for f in failed] == ["exec_failed"] * 2


@pytest.mark.root
@pytest.mark.parametrize("target", ["/v1/exec", "/v1/exec/stream"])
@pytest.mark.parametrize("chunks", [None, 60_000])
def test_files_that_the_disk_has_no_room_for_start_nothing_and_leave_none(nook, target, chunks):
    folder = nook.workspace / "files"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=1m,uid={nook.user},mode=755", "t", folder],
                   check=True)
    try:
        before = len(nook.fds())
        response = post(nook, request(command="touch ../ran; touch ran"),
                        ('name=x; filename="a"', b"a" * 1000),
                        ('name=y; filename="sub/much"', bytes(3 << 20)), target=target,
                        chunks=chunks)
        refused(response, 507, "no_space")
        assert sorted(os.listdir(folder)) in (["a"], ["a", "sub"])
        assert not list(folder.glob("**/.nook-*")) and not list(folder.glob("sub/*"))
        assert (folder / "a").stat().st_size == 1000
        assert not (nook.workspace / "ran").exists()
        wire.wait_until(lambda: len(nook.fds()) <= before, what="its descriptors are closed")
        # And there is room for what does fit.
        response = post(nook, request(command="wc -c < files/sub/some"),
                        ('name=y; filename="sub/some"', bytes(900_000)), chunks=chunks)
        assert response.json()["stdout"].strip() == "900000"
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
