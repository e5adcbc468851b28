"""From the bytes of a stream, or the messages of a WebSocket, to events."""

from __future__ import annotations

import base64
import json

from ._errors import RunrSandboxError
from ._models import Event, code_result, exec_result


def event_of(name, data, offset=None):
    """An event for the user; None for what only the client needs."""
    if name in ("stdout", "stderr"):
        raw = base64.b64decode(data["base64"]) if "base64" in data else data["text"].encode()
        return Event(name, raw, offset)
    if name == "exit":
        return Event(name, offset=offset, result=exec_result(data))
    if name == "result":
        return Event(name, offset=offset, result=code_result(data))
    if name == "gap":
        return Event(name, offset=offset)
    if name == "error":
        raise RunrSandboxError(data["message"], reason="exec_error", body={"error": data})
    return None


class EventReader:
    """Server-sent events. Lines end at LF alone: text may hold any other separator."""

    def __init__(self):
        self._rest = b""
        self._name = None
        self._id = None
        self._data = []

    def feed(self, chunk):
        """The events that these bytes complete."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode())
            if event:
                yield event

    def _line(self, line):
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._name = value
        elif name == "id":
            self._id = int(value)
        elif name == "data":
            self._data.append(value)
        return None

    def _end(self):
        name, data = self._name, self._data
        self._name, self._data = None, []
        return event_of(name, json.loads("\n".join(data)), self._id) if data else None


def is_last(event):
    return event.result is not None


def broken():
    return RunrSandboxError("the stream ended before its last event", reason="stream_closed")
