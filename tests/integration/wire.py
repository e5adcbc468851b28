"""A small HTTP client that shows every byte: raw sends, streamed reads, server-sent events.

Every wait has a deadline (PATIENCE times longer under a sanitizer); reaching it is a failure.
"""

import base64
import json
import os
import select
import socket
import time

PATIENCE = float(os.environ.get("NOOK_PATIENCE", "1"))


def deadline(seconds):
    """The moment on the monotonic clock that a wait of so many seconds ends."""
    return time.monotonic() + seconds * PATIENCE


def wait_until(fn, seconds=10, what=None):
    """Calls `fn` until it returns something true, and returns that."""
    end = deadline(seconds)
    pause = 0.001
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what or fn}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


class Response:
    def __init__(self, status, reason, version, headers):
        self.status = status
        self.reason = reason
        self.version = version
        self.headers = headers  # [(name, value)] as they came
        self.body = b""

    def header(self, name, default=None):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return default

    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    @property
    def code(self):
        """The stable code of an error answer."""
        return self.json()["error"]["code"]

    def __repr__(self):
        return f"<{self.status} {self.reason} {self.body[:300]!r}>"


class Event:
    """One server-sent event; `comment` is set instead for a comment line."""

    def __init__(self, name=None, id=None, data=None, comment=None):
        self.name = name
        self.id = id
        self.raw = data
        self.comment = comment

    @property
    def data(self):
        return json.loads(self.raw)

    def __repr__(self):
        return f"<event {self.name} {self.id} {(self.raw or self.comment or '')[:200]}>"


class Closed(Exception):
    """The other side closed before what was waited for."""


class Connection:
    """One socket. `wait` is the deadline of each single operation, in seconds."""

    def __init__(self, sock, host="localhost", headers=(), wait=30):
        self.sock = sock
        self.host = host
        self.common = list(headers)
        self.wait = wait
        self.buffer = b""
        sock.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with a reset (TCP)."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def _ready(self, end, write=False):
        left = max(0, end - time.monotonic())
        poll = select.poll()
        poll.register(self.sock, select.POLLOUT if write else select.POLLIN)
        return bool(poll.poll(left * 1000))

    def send(self, data):
        """All of it, or an AssertionError at the deadline."""
        end = deadline(self.wait)
        view = memoryview(data if isinstance(data, bytes) else data.encode())
        while view:
            try:
                view = view[self.sock.send(view):]
            except BlockingIOError:
                assert self._ready(end, write=True), f"{len(view)} bytes were not taken in time"

    def send_some(self, data):
        """What the socket takes at once; the number of bytes."""
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0

    def recv(self, size=1 << 18, wait=None):
        """Some bytes; b"" at the end. What earlier reads left over comes first."""
        if self.buffer:
            data, self.buffer = self.buffer[:size], self.buffer[size:]
            return data
        return self._fresh(size, deadline(self.wait if wait is None else wait))

    def _fresh(self, size, end):
        while True:
            try:
                return self.sock.recv(size)
            except BlockingIOError:
                assert self._ready(end), "nothing came in time"
            except ConnectionResetError:
                return b""

    def silent_for(self, seconds):
        """Whether nothing comes for so long. For what must not happen; use it sparingly."""
        return not self.buffer and not self._ready(time.monotonic() + seconds)

    def at_end(self, wait=None):
        """Whether the other side closes without another byte."""
        return self.recv(wait=wait) == b""

    def read_until(self, mark, limit=1 << 20):
        """The bytes up to and including `mark`."""
        end = deadline(self.wait)
        while mark not in self.buffer:
            assert len(self.buffer) < limit, f"no {mark!r} in {limit} bytes"
            data = self._fresh(1 << 16, end)
            if not data:
                raise Closed(f"closed before {mark!r}; had {self.buffer[:200]!r}")
            self.buffer += data
        at = self.buffer.index(mark) + len(mark)
        out, self.buffer = self.buffer[:at], self.buffer[at:]
        return out

    def read_exactly(self, size):
        end = deadline(self.wait)
        parts, left = [], size
        while left:
            data = self.buffer[:left] or self._fresh(min(left, 1 << 20), end)
            if not data:
                raise Closed(f"closed {left} bytes early")
            if self.buffer:
                self.buffer = self.buffer[len(data):]
            parts.append(data)
            left -= len(data)
            end = deadline(self.wait)
        return b"".join(parts)

    def send_request(self, method, target, json=None, body=None, headers=(), chunked=False):
        """`headers` with a value of None leave a standard one out; a list is one line for each."""
        head = {"Host": self.host}
        head.update(self.common)
        if json is not None:
            body = _dumps(json)
            head["Content-Type"] = "application/json"
        if isinstance(body, str):
            body = body.encode()
        if chunked:
            head["Transfer-Encoding"] = "chunked"
        elif body is not None or method in ("POST", "PUT", "PATCH"):
            head["Content-Length"] = str(len(body or b""))
        head.update(dict(headers))
        lines = [f"{k}: {v}\r\n" for k, values in head.items() if values is not None
                 for v in (values if isinstance(values, list) else [values])]
        data = f"{method} {target} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1")
        if chunked:
            parts = [body] if isinstance(body, bytes) else body
            self.send(data)
            for part in parts or []:
                self.send(b"%x\r\n%b\r\n" % (len(part), part))
            self.send(b"0\r\n\r\n")
        else:
            self.send(data + (body or b""))

    def send_many(self, requests):
        """Requests without bodies, (method, target) each, in one piece."""
        common = "".join(f"{key}: {value}\r\n" for key, value in self.common)
        self.send("".join(f"{method} {target} HTTP/1.1\r\nHost: {self.host}\r\n{common}\r\n"
                          for method, target in requests))

    def read_head(self):
        """Status line and headers; 100 Continue is returned like any other."""
        lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, reason = (lines[0].split(" ", 2) + [""])[:3]
        headers = [tuple(line.split(": ", 1)) for line in lines[1:] if line]
        return Response(int(status), reason, version, headers)

    def read_body(self, response, method="GET"):
        """Pieces of the body as they come; a chunked body that breaks off raises Closed."""
        if method == "HEAD" or response.status in (204, 304) or response.status < 200:
            return
        if response.header("Transfer-Encoding", "").lower() == "chunked":
            yield from self._chunks()
        elif response.header("Content-Length") is not None:
            left = int(response.header("Content-Length"))
            while left:
                data = self.recv(min(left, 1 << 20))
                if not data:
                    raise Closed(f"closed {left} bytes early")
                left -= len(data)
                yield data
        else:
            while True:
                data = self.recv()
                if not data:
                    return
                yield data

    def _chunks(self):
        while True:
            size = int(self.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while self.read_until(b"\r\n") != b"\r\n":
                    pass
                return
            data = self.read_exactly(size)
            assert self.read_exactly(2) == b"\r\n"
            yield data

    def read_response(self, method="GET"):
        response = self.read_head()
        while response.status == 100:
            response = self.read_head()
        response.body = b"".join(self.read_body(response, method))
        return response

    def request(self, method, target, **kw):
        self.send_request(method, target, **kw)
        return self.read_response(method)

    def stream(self, method, target, **kw):
        """Sends, reads the head, and leaves the body to be read."""
        self.send_request(method, target, **kw)
        return Stream(self, self.read_head(), method)


class Stream:
    """An answer whose body is read as it comes. Closing it closes the connection."""

    def __init__(self, conn, response, method):
        self.conn = conn
        self.response = response
        self.status = response.status
        self._pieces = conn.read_body(response, method)
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.conn.close()

    def header(self, name):
        return self.response.header(name)

    def read(self):
        """The rest of the body."""
        data = self._rest + b"".join(self._pieces)
        self._rest = b""
        return data

    def pieces(self):
        if self._rest:
            piece, self._rest = self._rest, b""
            yield piece
        yield from self._pieces

    def all_events(self):
        """Events and comments, until the response ends."""
        while True:
            while b"\n\n" not in self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    assert self._rest == b"", f"half an event: {self._rest[:200]!r}"
                    return
                self._rest += piece
            block, self._rest = self._rest.split(b"\n\n", 1)
            yield _event(block.decode())

    def events(self):
        return (e for e in self.all_events() if e.comment is None)

    def next_event(self, name=None):
        """The next event, which must be of that name if one is given."""
        event = next(self.events(), None)
        assert event is not None, "the stream ended"
        assert name is None or event.name == name, f"{event} is not {name}"
        return event


def _event(block):
    event = Event()
    for line in block.split("\n"):
        if line.startswith(":"):
            event.comment = line[1:].strip()
            continue
        key, _, value = line.partition(": ")
        if key == "event":
            event.name = value
        elif key == "id":
            event.id = int(value)
        elif key == "data":
            assert event.raw is None, "more than one data line"
            event.raw = value
        else:
            raise AssertionError(f"not a line of an event: {line!r}")
    return event


def _dumps(value):
    return json.dumps(value).encode()


def _tried(sock, path):
    """A full queue is EAGAIN on a Unix socket; TCP would wait."""
    try:
        sock.connect(str(path))
        return True
    except BlockingIOError:
        return False


def connect_unix(path, **kw):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(10 * PATIENCE)
    try:
        wait_until(lambda: _tried(sock, path), 30, "a place in the queue of the socket")
    except BaseException:
        sock.close()
        raise
    return Connection(sock, **kw)


def connect_tcp(port, **kw):
    sock = socket.create_connection(("127.0.0.1", port), timeout=10 * PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(sock, host=f"127.0.0.1:{port}", **kw)


def output_of(events):
    """What a stream's stdout and stderr events carry, as bytes, and its closing event."""
    out = {"stdout": [], "stderr": []}
    last = None
    for event in events:
        if event.name in out:
            data = event.data
            out[event.name].append(data["text"].encode() if "text" in data
                                   else base64.b64decode(data["base64"]))
        last = event
    return b"".join(out["stdout"]), b"".join(out["stderr"]), last
