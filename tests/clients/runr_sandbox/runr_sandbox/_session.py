"""Commands over the exec WebSocket: what `exec_ws` gives."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging

import websockets.asyncio.client
import websockets.sync.client
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from . import _calls
from ._collect import Collector
from ._errors import RunrSandboxError, error_of
from ._events import event_of, is_last
from ._tls import default_context

PIECE = 64 * 1024
OPEN_SECONDS = 30

# The library would log the address with its token.
_silent = logging.Logger("runr_sandbox.websocket")
_silent.disabled = True


@contextlib.contextmanager
def _opening():
    try:
        yield
    except InvalidStatus as error:
        response = error.response
        raise error_of(response.status_code, response.body or b"") from None
    except InvalidHandshake as error:
        raise RunrSandboxError(f"the WebSocket was not opened: {error}",
                               reason="ws_handshake") from error
    except (TimeoutError, asyncio.TimeoutError) as error:
        raise RunrSandboxError("the WebSocket was not opened in time",
                               reason="ws_timeout") from error
    except (OSError, ConnectionClosed) as error:
        raise RunrSandboxError(f"no WebSocket: {error}", reason="ws_error") from error


@contextlib.contextmanager
def _connected():
    try:
        yield
    except ConnectionClosed as error:
        raise RunrSandboxError("the connection ended before the command",
                               reason="ws_closed") from error


class _Session:
    """What both forms share: addresses, messages, and what was collected."""

    def __init__(self, sandbox, start, ssl_context):
        self._sandbox = sandbox
        self._start = start
        self._ssl = ssl_context
        self._ws = self._close = None
        self._collector = Collector()

    def _address(self, token):
        return "ws" + self._sandbox._url[len("http"):] + f"/v1/exec/ws?token={token}"

    def _options(self):
        secure = self._sandbox._url.startswith("https:")
        return {"ssl": (self._ssl or default_context()) if secure else None, "logger": _silent,
                "open_timeout": OPEN_SECONDS, "ping_interval": None, "compression": None,
                "max_size": 1 << 20}

    def _take(self, message):
        """The event of a message, or None."""
        said = json.loads(message)
        event = event_of(said["type"], said, said.get("offset"))
        if event:
            self._collector.take(event)
        return event


def _input(data):
    """Standard input is what goes as binary messages."""
    raw = data.encode() if isinstance(data, str) else bytes(data)
    return [raw[i:i + PIECE] for i in range(0, len(raw), PIECE)]


def _resize(cols, rows):
    return json.dumps({"type": "resize", "cols": cols, "rows": rows})


class Session(_Session):
    """A command that takes input while it runs. Iterate over it for its events; one other thread
    may send meanwhile. Leaving the block ends a command that still runs."""

    def __enter__(self):
        token = self._sandbox._run(_calls.ws_token())
        with contextlib.ExitStack() as opened:
            with _opening():
                self._ws = opened.enter_context(websockets.sync.client.connect(
                    self._address(token), **self._options()))
            self._send(json.dumps(self._start))
            self._close = opened.pop_all().close
        return self

    def __exit__(self, *_):
        self._close()

    def _send(self, message):
        with _connected():
            self._ws.send(message)

    def send_stdin(self, data):
        for piece in _input(data):
            self._send(piece)

    def close_stdin(self):
        """End of input; on a terminal Ctrl+D."""
        self._send('{"type":"close_stdin"}')

    def resize(self, cols, rows):
        self._send(_resize(cols, rows))

    def kill(self):
        self._send('{"type":"kill"}')

    def __iter__(self):
        while not self._collector.result:
            with _connected():
                message = self._ws.recv()
            event = self._take(message)
            if event and is_last(event):
                self._sandbox._run(_calls.fill(event.result))
            if event:
                yield event

    def wait(self):
        """How the command ended, and the output collected from its start on."""
        for _ in self:
            pass
        return self._collector.result


class AsyncSession(_Session):
    """The same for asyncio."""

    async def __aenter__(self):
        token = await self._sandbox._run(_calls.ws_token())
        async with contextlib.AsyncExitStack() as opened:
            with _opening():
                self._ws = await opened.enter_async_context(websockets.asyncio.client.connect(
                    self._address(token), **self._options()))
            await self._send(json.dumps(self._start))
            self._close = opened.pop_all().aclose
        return self

    async def __aexit__(self, *_):
        await self._close()

    async def _send(self, message):
        with _connected():
            await self._ws.send(message)

    async def send_stdin(self, data):
        for piece in _input(data):
            await self._send(piece)

    async def close_stdin(self):
        """End of input; on a terminal Ctrl+D."""
        await self._send('{"type":"close_stdin"}')

    async def resize(self, cols, rows):
        await self._send(_resize(cols, rows))

    async def kill(self):
        await self._send('{"type":"kill"}')

    async def __aiter__(self):
        while not self._collector.result:
            with _connected():
                message = await self._ws.recv()
            event = self._take(message)
            if event and is_last(event):
                await self._sandbox._run(_calls.fill(event.result))
            if event:
                yield event

    async def wait(self):
        """How the command ended, and the output collected from its start on."""
        async for _ in self:
            pass
        return self._collector.result
