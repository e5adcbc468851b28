"""An answer's body in chunks."""

from __future__ import annotations

import asyncio
import http.client
import threading


class Body:
    """An iterator that closes the answer at its end, or when it is closed.

    A framework may iterate with `async for` instead: threads read, and the answer is closed when
    the task that iterates is over, so also when its client has left and nobody asks for more.
    """

    def __init__(self, response, size):
        self._response = response
        self._size = size
        self._lock = threading.Lock()  # a close waits for the read of another thread

    def __iter__(self):
        return self

    def __next__(self):
        chunk = self._read()
        if not chunk:
            raise StopIteration
        return chunk

    def _read(self):
        with self._lock:
            if self._response.closed:
                return b""
            try:
                chunk = self._response.read1(self._size)
                # Of a body with a length http.client does not tell that it broke off.
                if not chunk and self._response.length:
                    raise http.client.IncompleteRead(b"", self._response.length)
            except BaseException:
                self._response.close()
                raise
            if not chunk:
                self._response.close()
            return chunk

    def close(self):
        with self._lock:
            self._response.close()

    async def __aiter__(self):
        loop = asyncio.get_running_loop()

        def on_done(_):
            loop.run_in_executor(None, self.close)

        asyncio.current_task().add_done_callback(on_done)
        while True:
            chunk = await loop.run_in_executor(None, self._read)
            if not chunk:
                return
            yield chunk
