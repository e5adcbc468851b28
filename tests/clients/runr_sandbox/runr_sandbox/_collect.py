"""The output of a command that is read as events, for its result."""

from __future__ import annotations

import collections

KEPT = 8 * 1024 * 1024  # bytes of each stream


class _Newest:
    """The newest bytes of a stream."""

    def __init__(self):
        self._pieces = collections.deque()
        self._size = 0
        self.truncated = False

    def add(self, data):
        self._pieces.append(data)
        self._size += len(data)
        while self._size > KEPT:
            over = self._size - KEPT
            first = self._pieces.popleft()
            if len(first) > over:
                self._pieces.appendleft(first[over:])
            self._size -= min(len(first), over)
            self.truncated = True

    def data(self):
        return b"".join(self._pieces)


class Collector:
    """Takes every event; `result`: that of the last one, with the output."""

    def __init__(self):
        self._streams = {"stdout": _Newest(), "stderr": _Newest()}
        self.result = None

    def take(self, event):
        if event.type in self._streams:
            self._streams[event.type].add(event.data)
        if event.result:
            self.result = event.result
            for name, newest in self._streams.items():
                setattr(self.result, f"{name}_bytes", newest.data())
                setattr(self.result, f"{name}_truncated", newest.truncated)
