"""A fake of the API in this process: answers as told, and does its own WebSocket framing."""

import base64
import hashlib
import json
import struct
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WS_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
INFO = {"id": "sb-1", "status": "active", "runtime": "python", "idle_timeout": None,
        "created_at": "2026-01-01T00:00:00.000Z", "expires_at": None,
        "metadata": {"agent": "planner", "n": 1}, "network": {"allow": "all"}, "unknown": [1]}
RESULT = {"id": "c1", "exit_code": 0, "timed_out": False, "files_changed": [], "outputs": []}


def sse(*events):
    """Events as bytes: each a (name, data)."""
    return "".join(f"event: {name}\nid: {i}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
                   for i, (name, data) in enumerate(events)).encode()


class WebSocket:
    """The server's side of RFC 6455, on the streams of a request."""

    def __init__(self, rfile, wfile):
        self._in = rfile
        self._out = wfile

    def _frame(self, opcode, data):
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
        self._out.write(head + data)
        self._out.flush()

    def send(self, name, **fields):
        self._frame(TEXT, json.dumps({"type": name, **fields}).encode())

    def close(self, code=1000):
        self._frame(CLOSE, struct.pack("!H", code))

    def recv(self):
        """The next message: JSON, or bytes; None at the end."""
        message = b""
        while True:
            head = self._in.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size > 125:
                size = int.from_bytes(self._in.read(2 if size == 126 else 8), "big")
            mask = self._in.read(4)
            data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self._in.read(size)))
            opcode = head[0] & 0x0F
            if opcode == CLOSE:
                return None
            if opcode == PING:
                self._frame(PONG, data)
            elif opcode != PONG:
                message += data
                kind = opcode or kind
                if head[0] & 0x80:
                    return json.loads(message) if kind == TEXT else message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self):
        fake = self.server.fake
        path = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fake.requests.append((self.command, path.path, dict(self.headers), body))
        fake.queries.append(path.query)
        if path.path == "/v1/exec/ws" and fake.script:
            self._upgrade(fake.script)
            return
        status, answer = fake.answers.get((self.command, path.path), (404, {
            "error": {"code": "not_found", "message": "nothing there"}}))
        self._answer(status, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self, status, data):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _upgrade(self, script):
        key = self.headers["Sec-WebSocket-Key"] + WS_GUID
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.close_connection = True
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", self.server.fake.accept or accept)
        self.end_headers()
        script(WebSocket(self.rfile, self.wfile))

    def log_message(self, *_):
        pass


class FakeServer:
    """`answers`: {(method, path): (status, JSON or bytes)}; `script(ws)`: what a WebSocket does."""

    def __init__(self):
        self.requests = []
        self.queries = []
        self.script = None
        self.accept = None
        self.answers = {
            ("GET", "/v1/sandbox"): (200, INFO), ("PATCH", "/v1/sandbox"): (200, INFO),
            ("DELETE", "/v1/sandbox"): (202, INFO),
            ("POST", "/v1/exec/ws-token"): (200, {"token": "once-only"}),
        }
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.fake = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
