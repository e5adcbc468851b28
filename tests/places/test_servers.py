"""/v1/proxy/PORT/… to a server inside. Where nothing else is there, it is nookd that serves: started as
a command, without root, on a port of loopback, it has plain answers, event streams and WebSocket.
"""

import os

import pytest

import ws_client
from nook import free_port
from wire import output_of, wait_until

pytestmark = pytest.mark.place


def start(place, port, headers=()):
    argv = ["/sbin/nookd", "serve", "--socket", "none", "--listen", f"127.0.0.1:{port}", "--no-auth",
            "--id", f"inner-{port}"]
    made = place.post("/v1/processes", {"command": argv}, headers=headers)
    assert made.status == 201, made
    return made.json()


def answers(place, port, headers=()):
    return place.get(f"/v1/proxy/{port}/readyz", headers=headers).status == 200


@pytest.fixture(scope="module")
def inner(place):
    """The path of the proxy to a server that answers."""
    port = free_port()
    started = start(place, port)
    wait_until(lambda: answers(place, port), 60, "the server inside answers")
    yield f"/v1/proxy/{port}"
    assert place.request("DELETE", f"/v1/processes/{started['id']}").status == 204
    assert place.get(f"/v1/proxy/{port}/").status == 502


def test_requests_and_answers_go_to_a_server_inside(place, inner):
    told = place.get(inner + "/v1/sandbox")
    assert (told.status, told.json()["id"]) == (200, f"inner-{inner.rsplit('/', 1)[1]}")
    assert place.get(inner + "/no/such/path").code == "not_found"
    body = os.urandom(1 << 20)
    assert place.request("PUT", inner + "/v1/files?path=inner.bin", body=body).status == 201
    assert place.get("/v1/files?path=inner.bin").body == body
    part = place.get(inner + "/v1/files?path=inner.bin", headers=[("Range", "bytes=1000-1999")])
    assert (part.status, part.body) == (206, body[1000:2000])
    assert place.request("DELETE", inner + "/v1/files?path=inner.bin").status == 204


def test_a_stream_of_a_server_inside_comes_as_it_is_written(place, inner):
    command = ["/sbin/nookd", "--version"]
    with place.stream("POST", inner + "/v1/exec/stream", json={"command": command}) as stream:
        stdout, _, end = output_of(stream.events())
    assert stdout.startswith(b"nookd ") and end.data["exit_code"] == 0


def test_a_websocket_reaches_a_server_inside(place, inner):
    command = ["cat"] if place.shell else ["/sbin/nookd", "--version"]
    with ws_client.session(place, command, target=inner + "/v1/exec/ws") as talk:
        talk.open()
        if place.shell:
            data = os.urandom(100_000)
            talk.send(data)
            while talk.offset < len(data):
                talk.take()
            assert talk.stdout == data
            talk.say("close_stdin")
        assert talk.finish()["exit_code"] == 0


def test_an_identity_reaches_its_own_server_alone(place):
    port = free_port()
    own, other = ([("X-Runbox-Identity", name)] for name in ("one", "other"))
    started = start(place, port, headers=own)
    wait_until(lambda: answers(place, port, own), 60, "the server inside answers its owner")
    refused = place.get(f"/v1/proxy/{port}/readyz", headers=other)
    assert (refused.status, refused.code) == (502, "bad_gateway")
    assert place.request("DELETE", f"/v1/processes/{started['id']}", headers=own).status == 204


def test_a_port_that_nobody_listens_on_is_told(place):
    refused = place.get(f"/v1/proxy/{free_port()}/")
    assert (refused.status, refused.code) == (502, "bad_gateway")
