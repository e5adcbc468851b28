"""ANY /v1/proxy/PORT/…: servers on the sandbox's loopback, good ones and bad ones."""

import hashlib
import os
import socket
import struct
import threading
import time

import pytest

import nook as harness
import ws_client
from wire import Closed, Connection, connect_tcp, wait_until


class Server:
    """A listening socket; every connection is given to `talk` in a thread of its own."""

    def __init__(self, talk, family=socket.AF_INET, backlog=64):
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self.talk = talk
        self.heads = []  # of the requests that came, as text
        self.peers = []
        self.ended = threading.Semaphore(0)  # one for each connection that is over
        self.threads = []
        self.socks = []
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, peer = self.listener.accept()
            except OSError:
                return
            self.peers.append(peer)
            self.socks.append(sock)
            thread = threading.Thread(target=self._run, args=(sock,))
            self.threads.append(thread)
            thread.start()

    def _run(self, sock):
        with sock:
            conn = Connection(sock, wait=60)
            try:
                head = conn.read_until(b"\r\n\r\n").decode("latin-1")
                self.heads.append(head)
                self.talk(conn, head)
            except (OSError, Closed, AssertionError):
                pass
        self.ended.release()

    def path(self, rest=""):
        return f"/v1/proxy/{self.port}/{rest}"

    def header(self, name, nth=-1):
        """All values of a header of a request that came."""
        lines = [line.split(": ", 1) for line in self.heads[nth].split("\r\n")[1:] if line]
        return [value for key, value in lines if key.lower() == name.lower()]

    def wait_ended(self, seconds=10):
        assert self.ended.acquire(timeout=seconds * harness.wire.PATIENCE), "it is still connected"

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for sock in self.socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()


@pytest.fixture
def serve():
    """A factory of servers: serve(talk), or serve(bytes) for one fixed answer."""
    made = []

    def start(talk, **kw):
        if isinstance(talk, bytes):
            answer = talk
            made.append(Server(lambda conn, head: conn.send(answer), **kw))
        else:
            made.append(Server(talk, **kw))
        return made[-1]

    yield start
    for server in made:
        server.close()


def reply(body=b"ok", status="200 OK", headers=""):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def read_body(conn, head):
    """Pieces of a request's body."""
    low = head.lower()
    if "transfer-encoding: chunked" in low:
        yield from conn._chunks()
    elif "content-length: " in low:
        left = int(low.split("content-length: ")[1].split("\r\n")[0])
        while left:
            data = conn.recv(min(left, 1 << 20))
            if not data:
                raise Closed("the request ended early")
            left -= len(data)
            yield data


def echo(conn, head):
    """Answers with the request's body, chunked as it came."""
    conn.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for data in read_body(conn, head):
        conn.send(b"%x\r\n%b\r\n" % (len(data), data))
    conn.send(b"0\r\n\r\n")


# heads

def test_path_and_query_go_through_byte_for_byte(nook, serve):
    server = serve(reply())
    for rest in ("", "a/b", "a//b/../c/", "%2e%2E/%7Euser/%c3%a9+x", "a?", "a?x=1&x=2&y=%20+&token=t",
                 "?a=b?c/d", ";v=1,2@!$'()*", "?" + "&".join(f"p{i}=1" for i in range(100))):
        assert nook.get(server.path(rest)).body == b"ok"
        assert server.heads[-1].split("\r\n")[0] == f"GET /{rest} HTTP/1.1"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_goes_through_with_its_body(nook, serve, method):
    server = serve(echo)
    assert nook.request(method, server.path(), body=b"hello").body == b"hello"
    assert server.heads[-1].startswith(f"{method} / HTTP/1.1\r\n")


def test_head_has_the_length_and_no_body(nook, serve):
    server = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-A: b\r\n\r\n")
    with nook.connect() as conn:
        response = conn.request("HEAD", server.path())
        assert (response.status, response.header("Content-Length")) == (200, "12345")
        assert conn.request("GET", "/healthz").status == 200


def test_the_server_sees_a_plain_client_of_its_own(tcp_nook, serve):
    server = serve(reply())
    headers = {"Cookie": "a=b", "X-Request-Id": "r1", "Accept": "x/y", "TE": "trailers",
               "Connection": "keep-alive, X-Private", "X-Private": "1", "Keep-Alive": "5",
               "Proxy-Authorization": "p", "Proxy-Connection": "x", "Upgrade": "h2c"}
    response = tcp_nook.request("GET", server.path("x"), tcp=True, headers=headers.items())
    assert response.status == 200
    assert response.header("X-Request-Id") == "r1"
    for name in ("Authorization", "TE", "X-Private", "Keep-Alive", "Proxy-Authorization",
                 "Proxy-Connection", "Upgrade"):
        assert server.header(name) == [], name
    assert tcp_nook.token not in server.heads[-1]
    assert server.header("Host") == [f"localhost:{server.port}"]
    assert server.header("Connection") == ["close"]
    assert server.header("Cookie") == ["a=b"]
    assert server.header("X-Forwarded-For") == ["127.0.0.1"]
    assert server.header("X-Forwarded-Host") == [f"127.0.0.1:{tcp_nook.port}"]
    assert server.header("X-Forwarded-Proto") == ["http"]
    assert server.header("X-Forwarded-Prefix") == [f"/v1/proxy/{server.port}"]


def test_what_a_proxy_in_front_has_said_stands(nook, serve):
    server = serve(reply())
    said = {"X-Forwarded-For": "10.0.0.9", "X-Forwarded-Host": "box.example", "X-Forwarded-Proto":
            "https", "X-Forwarded-Prefix": "/s/1"}
    assert nook.get(server.path(), headers=said.items()).status == 200
    assert server.header("X-Forwarded-For") == ["10.0.0.9"]
    assert server.header("X-Forwarded-Host") == ["box.example"]
    assert server.header("X-Forwarded-Proto") == ["https"]
    assert server.header("X-Forwarded-Prefix") == [f"/s/1/v1/proxy/{server.port}"]


def test_authorization_is_the_servers_only_where_it_is_not_ours(nook, serve):
    server = serve(reply())
    for value in (f"Bearer {nook.token}", f"bearer  {nook.token}", nook.token):
        assert nook.get(server.path(), headers=[("Authorization", value)]).status == 200
        assert server.header("Authorization") == []
        assert nook.token not in server.heads[-1]
    assert nook.get(server.path(), headers=[("Authorization", "Basic dTpw")]).status == 200
    assert server.header("Authorization") == ["Basic dTpw"]


def test_the_token_is_asked_for(tcp_nook, serve):
    server = serve(reply())
    assert tcp_nook.get(server.path(), tcp=True, auth=False).code == "unauthorized"
    assert tcp_nook.get(server.path("?token=" + tcp_nook.token), tcp=True,
                        auth=False).code == "unauthorized"
    assert server.heads == []


def test_an_answer_comes_back_as_it_is_but_for_what_is_between_neighbours(nook, serve):
    server = serve(reply(b"\x00\xff", "404 Not Here", "Content-Type: a/b\r\nSet-Cookie: a=1\r\n"
                         "set-cookie: b=2\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: 3\r\n"
                         "X-Request-Id: theirs\r\nX-Nook-Instance: theirs\r\nX-Empty:\r\n"))
    with nook.connect() as conn:
        response = conn.request("GET", server.path(), headers=[("X-Request-Id", "ours")])
        assert (response.status, response.body) == (404, b"\x00\xff")
        assert [v for k, v in response.headers if k.lower() == "set-cookie"] == ["a=1", "b=2"]
        assert response.header("X-Request-Id") == "ours"
        assert response.header("X-Empty") is None or response.header("X-Empty") == ""
        assert [v for k, v in response.headers if k == "X-Nook-Instance"] != ["theirs"]
        for name in ("Connection", "X-Hop", "Keep-Alive"):
            assert response.header(name) is None
        assert conn.request("GET", "/healthz").status == 200  # the connection lives on


# bodies

@pytest.mark.parametrize("answer, body", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    (b"HTTP/1.1 200\r\n\r\nuntil the end", b"until the end"),
    (b"HTTP/1.0 200 OK\r\nServer: old\r\n\r\nold", b"old"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: x\r\n\r\n", b"abc"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b""),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nmore", b"ok"),
])
def test_each_way_to_frame_a_body_is_understood(nook, serve, answer, body):
    server = serve(answer)
    with nook.connect() as conn:
        assert conn.request("GET", server.path()).body == body
        assert conn.request("GET", server.path()).body == body


def test_early_hints_come_early(nook, serve):
    go = threading.Event()

    def talk(conn, head):
        conn.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        go.wait(30)
        conn.send(reply())

    server = serve(talk)
    with nook.connect() as conn:
        conn.send_request("GET", server.path())
        hint = conn.read_head()
        assert (hint.status, hint.header("Link")) == (103, "</a>")
        go.set()
        assert conn.read_response().body == b"ok"


def test_a_body_is_asked_for_only_when_the_server_is_there(nook, serve):
    server = serve(echo)
    with nook.connect() as conn:
        conn.send_request("POST", server.path(),
                          headers=[("Expect", "100-continue"), ("Content-Length", "2")])
        assert conn.read_head().status == 100
        conn.send(b"hi")
        assert conn.read_response().body == b"hi"
    assert server.header("Expect") == []
    with nook.connect() as conn:
        conn.send_request("POST", f"/v1/proxy/{harness.free_port()}/",
                          headers=[("Expect", "100-continue"), ("Content-Length", "2")])
        assert conn.read_head().status == 502


def test_a_large_body_is_exact_both_ways_and_memory_is_flat(nook, serve):
    size = harness.scaled(1 << 30, least=1 << 23) >> 20
    block = os.urandom(1 << 20)
    server = serve(echo)
    got, want = hashlib.sha256(), hashlib.sha256()
    before = nook.rss()
    with nook.connect(wait=60) as conn:
        conn.send(f"POST {server.path()} HTTP/1.1\r\nHost: x\r\n"
                  f"Content-Length: {size << 20}\r\n\r\n")

        def send():
            for i in range(size):
                piece = i.to_bytes(8, "big") + block[8:]
                want.update(piece)
                conn.send(piece)

        sender = threading.Thread(target=send)
        sender.start()
        head = conn.read_head()
        for piece in conn.read_body(head):
            got.update(piece)
        sender.join()
    assert got.hexdigest() == want.hexdigest()
    assert harness.is_sanitized() or nook.rss() - before < 4 << 20


def test_a_chunked_upload_comes_chunked(nook, serve):
    server = serve(echo)
    parts = [os.urandom(n) for n in (1, 65536, 3, 200000)]
    assert nook.request("PUT", server.path(), body=parts, chunked=True).body == b"".join(parts)
    assert server.header("Transfer-Encoding") == ["chunked"]
    assert server.header("Content-Length") == []


def test_events_come_as_they_are_written(nook, serve):
    turn = threading.Semaphore(0)

    def talk(conn, head):
        conn.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for i in range(3):
            conn.send(f"event: tick\ndata: {i}\n\n")
            turn.acquire(timeout=30)

    server = serve(talk)
    with nook.stream("GET", server.path()) as stream:
        for i in range(3):
            assert stream.next_event("tick").data == i
            turn.release()
        assert stream.read() == b""


def test_an_answer_before_the_end_of_the_request_is_an_answer(nook, serve):
    server = serve(reply(b"too much", "413 Content Too Large"))
    with nook.connect() as conn:
        conn.send(f"POST {server.path()} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 40}\r\n\r\n")
        for _ in range(64):
            try:
                conn.send_some(bytes(1 << 16))
            except OSError:
                break
        response = conn.read_response()
        assert (response.status, response.body) == (413, b"too much")


def test_many_at_once_do_not_mix(nook, serve):
    server = serve(lambda conn, head: conn.send(reply(head.split(" ")[1].encode())))
    wrong = []

    def work(i):
        with nook.connect() as conn:
            for k in range(10):
                body = conn.request("GET", server.path(f"{i}/{k}")).body
                if body != f"/{i}/{k}".encode():
                    wrong.append(body)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(harness.scaled(100, 8))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_server_on_ipv6_loopback_is_found(nook, serve):
    try:
        server = serve(reply(), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no ::1 here")
    assert nook.get(server.path()).body == b"ok"


@pytest.mark.root
def test_the_connection_belongs_to_the_user_of_the_sandbox(nook, serve):
    owners = []

    def talk(conn, head):
        port = server.peers[-1][1]
        for line in open("/proc/net/tcp"):
            words = line.split()
            if words[1].endswith(f":{port:04X}"):
                owners.append(int(words[7]))
        conn.send(reply())

    server = serve(talk)
    assert nook.get(server.path()).body == b"ok"
    assert owners == [nook.user]


# WebSocket

def ws_talk(after):
    """A server that accepts the upgrade, and goes on with `after`."""
    def talk(conn, head):
        key = head.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0].encode()
        accept = ws_client.base64.b64encode(hashlib.sha1(key + ws_client.GUID).digest()).decode()
        conn.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n")
        after(conn)
    return talk


def echo_raw(conn):
    while data := conn.recv():
        conn.send(data)


def open_ws(nook, server, **kw):
    conn = nook.connect(**kw)
    try:
        return ws_client.Socket(conn, server.path("ws?x=1"), protocol="chat")
    except BaseException:
        conn.close()
        raise


def test_a_websocket_goes_through_byte_for_byte(nook, serve):
    server = serve(ws_talk(echo_raw))
    data = os.urandom(harness.scaled(1 << 26, 1 << 20))
    with open_ws(nook, server) as sock:
        assert sock.response.header("Sec-WebSocket-Protocol") == "chat"
        assert server.header("Upgrade") == ["websocket"]
        assert server.header("Connection") == ["Upgrade"]
        assert len(server.header("Sec-WebSocket-Key")) == 1
        sender = threading.Thread(target=sock.raw, args=(data,))
        sender.start()
        assert sock.conn.read_exactly(len(data)) == data
        sender.join()
    server.wait_ended()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_client_of_a_websocket_that_leaves_is_missed_at_once(tcp_nook, serve, tcp):
    server = serve(ws_talk(echo_raw))
    open_ws(tcp_nook, server, tcp=tcp).conn.close()
    server.wait_ended()


def test_half_a_websocket_still_hears_the_rest(nook, serve):
    def after(conn):
        data = b""
        while piece := conn.recv():
            data += piece
        conn.send(data[::-1])

    server = serve(ws_talk(after))
    with open_ws(nook, server) as sock:
        sock.raw(b"abc")
        sock.conn.half_close()
        assert sock.conn.read_exactly(3) == b"cba"
        assert sock.conn.at_end()


def test_a_server_that_leaves_a_websocket_ends_it(nook, serve):
    server = serve(ws_talk(lambda conn: conn.send(b"bye")))
    with open_ws(nook, server) as sock:
        assert sock.conn.read_exactly(3) == b"bye"
        assert sock.conn.at_end()


def test_a_refused_upgrade_is_an_answer(nook, serve):
    server = serve(reply(b"no", "403 Forbidden"))
    with pytest.raises(ws_client.Refused) as refused:
        open_ws(nook, server)
    assert (refused.value.response.status, refused.value.response.body) == (403, b"no")


# back-pressure

def test_a_client_that_does_not_read_holds_up_the_server_and_not_memory(nook, serve):
    sent = []

    def talk(conn, head):
        conn.send("HTTP/1.1 200 OK\r\n\r\n")
        while True:
            n = conn.send_some(bytes(1 << 16))
            sent.append(n)
            if not n:
                assert conn._ready(time.monotonic() + 30, write=True)

    server = serve(talk)
    before = nook.rss()
    with nook.connect() as conn:
        conn.send_request("GET", server.path())
        conn.read_head()
        wait_until(lambda: 0 in sent[-1:], 30, "the server is held up")
        assert harness.is_sanitized() or nook.rss() - before < 2 << 20
        assert nook.get("/healthz").status == 200
        for _ in range(200):
            assert conn.recv()
    server.wait_ended()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_server_that_does_not_read_holds_up_the_client_and_not_memory(tcp_nook, serve, tcp):
    gone = threading.Event()
    server = serve(lambda conn, head: gone.wait(60))
    before = tcp_nook.rss()
    with tcp_nook.connect(tcp=tcp) as conn:
        conn.send(f"PUT {server.path()} HTTP/1.1\r\nHost: {conn.host}\r\nContent-Length: {1 << 40}\r\n"
                  f"Authorization: Bearer {tcp_nook.token}\r\n\r\n")
        stuck = 0
        end = time.monotonic() + 60

        def is_stuck():
            return not conn.send_some(bytes(1 << 18)) and not conn._ready(
                time.monotonic() + 0.2, write=True)

        wait_until(is_stuck, 60, "the client is held up")
        assert harness.is_sanitized() or tcp_nook.rss() - before < 2 << 20
        assert tcp_nook.get("/healthz").status == 200
    gone.set()
    server.wait_ended()


# ends

@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_leaves_takes_the_server_with_it(tcp_nook, serve, tcp, begun):
    def talk(conn, head):
        if begun:
            conn.send("HTTP/1.1 200 OK\r\n\r\n:\n\n")
        assert conn.at_end(wait=60)

    server = serve(talk)
    conn = tcp_nook.connect(tcp=tcp)
    conn.send_request("GET", server.path())
    if begun:
        conn.read_head()
    wait_until(lambda: server.heads, 10, "the request is there")
    conn.close()
    server.wait_ended()
    assert tcp_nook.alive()


@pytest.mark.parametrize("tcp", [False, True])
def test_one_who_only_shuts_its_side_gets_the_answer(tcp_nook, serve, tcp):
    server = serve(reply(bytes(1 << 20)))
    with tcp_nook.connect(tcp=tcp) as conn:
        conn.send_request("GET", server.path())
        conn.half_close()
        assert len(conn.read_response().body) == 1 << 20


def test_an_exchange_that_is_open_keeps_the_sandbox_from_idling(start_nook, serve):
    nook = start_nook("--idle-timeout", 1)
    go = threading.Event()

    def talk(conn, head):
        conn.send("HTTP/1.1 200 OK\r\n\r\n")
        go.wait(60)
        conn.send("late")

    server = serve(talk)
    with nook.stream("GET", server.path()) as stream:
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 2.5, 30)
        go.set()
        assert stream.read() == b"late"
    assert nook.wait(30) == 0


# bad servers

def test_a_port_that_nobody_listens_on_is_502(nook):
    port = harness.free_port()
    response = nook.get(f"/v1/proxy/{port}/")
    assert (response.status, response.code) == (502, "bad_gateway")
    assert str(port) in response.json()["error"]["message"]


BAD_ANSWERS = {
    "nothing": b"",
    "not HTTP": b"SSH-2.0-OpenSSH_9\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "the same length twice": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "length and coding": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                         b"0\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
    "a length too large": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a coding in 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n",
    "a bare line feed": b"HTTP/1.1 200 OK\nX-A: b\n\n\r\n\r\n",
    "a bare carriage return": b"HTTP/1.1 200 OK\r\nX-A: b\rX-C: d\r\n\r\n",
    "NUL": b"HTTP/1.1 200 OK\r\nX-A: \0\r\n\r\n",
    "an escape": b"HTTP/1.1 200 OK\r\nX-A: \x1b[2J\r\n\r\n",
    "a space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nab",
    "a line without a name": b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
    "status 99": b"HTTP/1.1 099 Low\r\n\r\n",
    "status 600": b"HTTP/1.1 600 High\r\n\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "101 unasked": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   b"Connection: Upgrade\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 10000,
    "too many lines": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 101 + b"\r\n",
    "interim answers without end": b"HTTP/1.1 102 Processing\r\n\r\n" * 1000,
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_is_502(nook, serve, name):
    server = serve(BAD_ANSWERS[name])
    with nook.connect() as conn:
        conn.send_request("GET", server.path())
        response = conn.read_head()
        while response.status == 102:
            response = conn.read_head()
        response.body = b"".join(conn.read_body(response))
        assert (response.status, response.code) == (502, "bad_gateway"), response
        assert response.header("X-A") is None
        assert conn.request("GET", "/healthz").status == 200
    server.wait_ended()


def test_a_reset_in_place_of_an_answer_is_502(nook, serve):
    def talk(conn, head):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert nook.get(serve(talk).path()).code == "bad_gateway"


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nxyz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\n\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nffffffffffffffffff\r\n",
])
def test_an_answer_that_breaks_off_is_broken_for_the_client_too(nook, serve, answer):
    server = serve(answer)
    with nook.stream("GET", server.path()) as stream, pytest.raises(Closed):
        assert stream.status == 200
        stream.read()


@pytest.mark.parametrize("accept", ["", "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"])
def test_an_upgrade_that_answers_another_key_is_502(nook, serve, accept):
    server = serve(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   b"Connection: Upgrade\r\n" + accept.encode() + b"\r\n")
    with pytest.raises(ws_client.Refused) as refused:
        open_ws(nook, server)
    assert refused.value.response.status == 502


# bad clients

@pytest.mark.parametrize("port", ["0", "65536", "99999", "08080", "+80", "-1", "0x50", "%38080", "8e3",
                                  "8080.", "localhost", "127.0.0.1:80", "[::1]:80", "80%2f", "123456"])
def test_what_is_no_port_is_400(nook, port):
    assert nook.get(f"/v1/proxy/{port}/").code == "bad_request"


def test_a_port_needs_a_slash_behind_it(nook):
    assert nook.get("/v1/proxy/8080").status == 404
    assert nook.get("/v1/proxy//x").status == 404


def test_our_own_port_is_never_proxied_to(tcp_nook):
    for rest in ("healthz", "v1/exec", f"v1/proxy/{tcp_nook.port}/"):
        assert tcp_nook.get(f"/v1/proxy/{tcp_nook.port}/{rest}").code == "forbidden"


def test_a_second_address_of_ours_is_ours_too(start_nook):
    port = harness.free_port()
    try:
        nook = start_nook("--listen", f"[::1]:{port}", tcp=True)
    except AssertionError:
        pytest.skip("no ::1 here")
    assert nook.get(f"/v1/proxy/{port}/healthz").code == "forbidden"


def test_identity_headers_never_reach_a_server(nook, serve):
    server = serve(reply())
    headers = [("x-runbox-other", "1"), ("X-RUNBOX-Tenant", "2")]
    assert nook.get(server.path(), headers=headers).status == 200
    assert "runbox" not in server.heads[-1].lower()


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("head", [
    b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(SMUGGLED),
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(SMUGGLED),
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"X: y\r\n Transfer-Encoding: chunked\r\n",
    b"X: y\rTransfer-Encoding: chunked\r\n",
    b"X: y\nTransfer-Encoding: chunked\n",
])
def test_a_request_with_two_readings_reaches_nobody(nook, serve, head):
    server = serve(echo)
    with nook.connect() as conn:
        conn.send(b"POST %b HTTP/1.1\r\nHost: x\r\n%b\r\n0\r\n\r\n%b" % (
            server.path().encode(), head, SMUGGLED))
        assert conn.read_response().status in (400, 501)
        assert conn.at_end()
    assert server.heads == []


def test_lines_that_connection_names_do_not_change_the_framing(nook, serve):
    server = serve(echo)
    named = "Content-Length, Transfer-Encoding, Host, Connection, X-Forwarded-Prefix"
    response = nook.post(server.path(), body=SMUGGLED, headers=[("Connection", named)])
    assert response.body == SMUGGLED
    assert server.header("Content-Length") == [str(len(SMUGGLED))]
    assert len(server.header("Host")) == 1
    assert len(server.heads) == 1


def test_a_pipelined_request_waits_for_its_turn(nook, serve):
    server = serve(echo)
    with nook.connect() as conn:
        conn.send((f"POST {server.path('1')} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                   f"GET {server.path('2')} HTTP/1.1\r\nHost: x\r\n\r\n"))
        assert conn.read_response().body == b"abc"
        assert conn.read_response().body == b""
    assert [head.split()[1] for head in server.heads] == ["/1", "/2"]


def test_a_request_that_breaks_off_is_not_made_whole(nook, serve):
    got = []

    def talk(conn, head):
        try:
            for data in read_body(conn, head):
                got.append(data)
            got.append("whole")
        except Closed:
            got.append("broken")

    server = serve(talk)
    with nook.connect() as conn:
        conn.send(f"POST {server.path()} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\n")
        wait_until(lambda: got, 10, "a piece of the body is there")
    server.wait_ended()
    assert got[-1] == "broken"


def test_an_origin_that_is_not_allowed_is_refused_before(nook, serve):
    server = serve(reply())
    assert nook.get(server.path(), headers=[("Origin", "http://evil")]).code == "forbidden"
    assert server.heads == []


def test_nothing_is_left_of_many_that_left(nook, serve):
    server = serve(lambda conn, head: conn.at_end(wait=60))
    fds = len(nook.fds())
    count = harness.scaled(200, 20)
    conns = [nook.connect() for _ in range(count)]
    for conn in conns:
        conn.send_request("GET", server.path())
    wait_until(lambda: len(server.heads) == count, 60, "all are there")
    for conn in conns:
        conn.close()
    for _ in range(count):
        server.wait_ended(60)
    wait_until(lambda: len(nook.fds()) <= fds, 20, "all descriptors are closed")


# identities

ANSWERING = """
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())
s = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), H)
s.serve_forever()
"""


def starts_server(nook, name, port):
    """An identity's own server; its answer is its name."""
    headers = [("X-Runbox-Identity", name)]
    command = ["python3", "-c", ANSWERING, name, str(port)]
    made = nook.post("/v1/processes", {"command": command}, headers=headers)
    assert made.status == 201, made
    wait_until(lambda: nook.get(f"/v1/proxy/{port}/").body == name.encode(), 30, "it answers")


@pytest.mark.root
@pytest.mark.parametrize("without", [(), ("--without", "sock_diag")])
def test_an_identity_reaches_its_own_servers_and_nobody_elses(start_nook, without):
    nook = start_nook(*without, identities=True)
    port = harness.free_port()
    starts_server(nook, "alice", port)
    own = nook.get(f"/v1/proxy/{port}/", headers=[("X-Runbox-Identity", "alice")])
    assert own.body == b"alice"
    other = nook.get(f"/v1/proxy/{port}/", headers=[("X-Runbox-Identity", "bob")])
    nobody = nook.get(f"/v1/proxy/{harness.free_port()}/", headers=[("X-Runbox-Identity", "bob")])
    assert (other.status, other.code) == (nobody.status, nobody.code) == (502, "bad_gateway")
    message = other.json()["error"]["message"]
    assert message.replace(str(port), "") == "nothing listens on port  of the sandbox's loopback"
