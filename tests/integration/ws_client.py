"""A small WebSocket client that shows every frame: raw sends, whole messages, deadlines.

`Socket` speaks RFC 6455 over a wire.Connection and breaks it where a test says so; `Session` speaks
the messages of /v1/exec/ws and /v1/processes/ID/ws on it.
"""

import base64
import hashlib
import json
import os
import struct

import wire

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
NO_CODE = 1005  # a close frame without one
STDOUT, STDERR = 1, 2


def mask(data, key):
    if not data:
        return b""
    n = len(data)
    pad = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(n, "big")


def frame(opcode, data=b"", fin=True, rsv=0, masked=True, length=None):
    """One frame. `length` 16 or 64 spells the length in that many bits, whatever it is."""
    size = len(data)
    bits = length or (64 if size > 0xffff else 16 if size > 125 else 7)
    mark = {7: size, 16: 126, 64: 127}[bits]
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode, (0x80 if masked else 0) | mark])
    head += {7: b"", 16: struct.pack("!H", size & 0xffff), 64: struct.pack("!Q", size)}[bits]
    if not masked:
        return head + data
    key = os.urandom(4)
    return head + key + mask(data, key)


def close_frame(code=1000, reason=b""):
    return frame(CLOSE, struct.pack("!H", code) + reason)


class Refused(Exception):
    """The upgrade was answered by a plain response."""

    def __init__(self, response):
        super().__init__(str(response))
        self.response = response


class Ended(Exception):
    """The connection is over: the code of the server's close frame, None where none came."""

    def __init__(self, code, reason=b""):
        super().__init__(f"closed with {code} {reason!r}")
        self.code = code
        self.reason = reason


class Socket:
    def __init__(self, conn, target, headers=(), protocol="nook.v1"):
        self.conn = conn
        self.message = b""
        self.opcode = None
        self.closed = None  # an Ended
        self.auto_pong = True
        self.pings = 0
        key = base64.b64encode(os.urandom(16))
        head = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": key.decode()}
        if protocol:
            head["Sec-WebSocket-Protocol"] = protocol
        head.update(dict(headers))
        conn.send_request("GET", target, headers=head.items())
        self.response = conn.read_head()
        if self.response.status != 101:
            self.response.body = b"".join(conn.read_body(self.response))
            conn.close()
            raise Refused(self.response)
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        assert self.response.header("Sec-WebSocket-Accept") == accept

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.conn.close()

    def send(self, data, opcode=None):
        if isinstance(data, str):
            data, opcode = data.encode(), opcode or TEXT
        self.conn.send(frame(opcode or BINARY, data))

    def raw(self, data):
        self.conn.send(data)

    def read_frame(self):
        """(opcode, fin, payload); Ended where the connection closes."""
        try:
            first, second = self.conn.read_exactly(2)
            size = second & 0x7f
            assert not second & 0x80, "a server's frame is masked"
            assert not first & 0x70, "a reserved bit is set"
            if size == 126:
                size, = struct.unpack("!H", self.conn.read_exactly(2))
                assert size > 125
            elif size == 127:
                size, = struct.unpack("!Q", self.conn.read_exactly(8))
                assert size > 0xffff
            return first & 15, bool(first & 0x80), self.conn.read_exactly(size)
        except wire.Closed as e:
            raise Ended(None) from e

    def recv(self):
        """The next message: str or bytes. Pings are answered, a close is Ended (and answered)."""
        while True:
            opcode, fin, data = self.read_frame()
            if opcode == PING:
                self.pings += 1
                if self.auto_pong:
                    self.conn.send(frame(PONG, data))
            elif opcode == CLOSE:
                self._on_close(data)
            elif opcode != PONG:
                self.opcode = opcode or self.opcode
                self.message += data
                if fin:
                    message, self.message = self.message, b""
                    return message.decode() if self.opcode == TEXT else message

    def _on_close(self, data):
        code, reason = NO_CODE, b""
        if data:
            code, = struct.unpack("!H", data[:2])
            reason = data[2:]
            assert code not in (1005, 1006, 1015)
        self.closed = Ended(code, reason)
        try:
            self.conn.send(frame(CLOSE, data[:2]))
        except OSError:
            pass
        raise self.closed

    def close(self, code=1000):
        """Says so, and returns what the server answers, once it has let go."""
        self.conn.send(close_frame(code))
        try:
            while True:
                self.recv()
        except Ended as e:
            assert e.code is None or self.conn.at_end()
            return e.code

    def ended(self):
        """The code that the server closes with; nothing else may come before it."""
        try:
            message = self.recv()
        except Ended as e:
            assert e.code is None or self.conn.at_end()
            return e.code
        raise AssertionError(f"a message came: {message[:200]!r}")


class Session(Socket):
    """`start` fields open a command; without, a process is attached to."""

    def __init__(self, conn, target="/v1/exec/ws", start=None, **kw):
        super().__init__(conn, target, **kw)
        self.out = {STDOUT: [], STDERR: []}
        self.offset = 0
        self.acked = None
        self.gaps = []
        self.others = []
        self.last = None
        if start is not None:
            self.say("start", **start)
        self.first = None

    def say(self, type, **fields):
        self.send(json.dumps({"type": type, **fields}))

    def open(self):
        """The opening message."""
        self.first = self.recv_message()
        assert self.first["type"] in ("started", "attached"), self.first
        return self.first

    def recv_message(self):
        """The next message as an object; binary output as if it were text."""
        data = self.recv()
        if isinstance(data, str):
            return json.loads(data)
        stream, offset = struct.unpack("!BQ", data[:9])
        return {"type": {STDOUT: "stdout", STDERR: "stderr"}[stream], "offset": offset,
                "bytes": data[9:]}

    def take(self):
        """Takes in one message; the object."""
        message = self.recv_message()
        kind = message["type"]
        if kind in ("stdout", "stderr"):
            data = message.get("bytes")
            if data is None:
                data = (message["text"].encode() if "text" in message
                        else base64.b64decode(message["base64"]))
            assert data, "an empty event"
            assert message["offset"] == self.offset + len(data), (message, self.offset)
            self.offset = message["offset"]
            self.out[STDOUT if kind == "stdout" else STDERR].append(data)
        elif kind == "gap":
            assert message["from"] == self.offset
            self.offset = message["to"]
            self.gaps.append((message["from"], message["to"]))
        elif kind == "stdin_ack":
            self.acked = message["offset"]
        else:
            self.others.append(message)
        return message

    def take_until(self, fn):
        """Takes in messages until fn(message) is true, and returns that message."""
        while True:
            message = self.take()
            if fn(message):
                return message

    def until_output(self, text, stream=STDOUT):
        text = text.encode() if isinstance(text, str) else text
        while text not in self.stdout if stream == STDOUT else text not in self.stderr:
            self.take()

    def finish(self):
        """Everything up to the closing message, which is returned; then the close must come."""
        if self.first is None:
            self.open()
        self.last = self.take_until(lambda m: m["type"] in ("exit", "error"))
        self.code = self.ended()
        return self.last

    @property
    def stdout(self):
        return b"".join(self.out[STDOUT])

    @property
    def stderr(self):
        return b"".join(self.out[STDERR])


def echo_program():
    """The echo server of the build that is tested."""
    import nook
    return nook.BINARY.parent / "tests" / "ws_echo"


def session(nook, command=None, tcp=None, wait=30, target="/v1/exec/ws", auth=True, **fields):
    """A command's session; without a command nothing is started."""
    conn = nook.connect(tcp, auth=auth, wait=wait)
    start = {"command": command, **fields} if command is not None else None
    try:
        return Session(conn, target, start)
    except BaseException:
        conn.close()
        raise


def attach(nook, id, tcp=None, wait=30, **query):
    """A viewer of a process; the opening message is read."""
    words = "&".join(f"{k}={v}" for k, v in query.items())
    viewer = session(nook, tcp=tcp, wait=wait, target=f"/v1/processes/{id}/ws?{words}".rstrip("?"))
    viewer.offset = int(query.get("since", -1))
    first = viewer.open()
    if viewer.offset < 0:
        viewer.offset = first["log_start"]
    return viewer
