"""Both forms of the client under one set of tests: `Blocking` makes the asyncio one block."""

import asyncio
import contextlib
import inspect
import threading

from runr_sandbox import AsyncSandbox, Sandbox


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, awaitable):
        async def wait():
            return await awaitable
        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An object of the asyncio form whose methods block."""

    def __init__(self, it, loop):
        self._it = it
        self._loop = loop

    def __getattr__(self, name):
        value = getattr(self._it, name)
        if inspect.ismethod(value):
            return lambda *args, **kw: self._result(value(*args, **kw))
        return Blocking(value, self._loop) if name in ("files", "processes") else value

    def _result(self, value):
        if hasattr(value, "__aenter__"):
            return self._context(value)
        if inspect.isawaitable(value):
            return self._loop.run(value)
        return self._events(value) if hasattr(value, "__aiter__") else value

    @contextlib.contextmanager
    def _context(self, value):
        inner = self._loop.run(value.__aenter__())
        try:
            yield Blocking(inner, self._loop)
        finally:
            self._loop.run(value.__aexit__(None, None, None))

    def __iter__(self):
        return self._events(self._it)

    def _events(self, events):
        iterator = events.__aiter__()
        try:
            while True:
                try:
                    yield self._loop.run(iterator.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run(iterator.aclose())


class Form:
    """`create`, `connect`, `list` of one form, as the blocking one has them."""

    def __init__(self, name):
        self.name = name
        self._loop = None if name == "sync" else Loop()

    def close(self):
        if self._loop:
            self._loop.close()

    def _made(self, opening):
        async def wait():
            return await opening
        return Blocking(self._loop.run(wait()), self._loop)

    def create(self, *args, **kw):
        if not self._loop:
            return Sandbox.create(*args, **kw)
        return self._made(AsyncSandbox.create(*args, **kw))

    def connect(self, *args, **kw):
        if not self._loop:
            return Sandbox.connect(*args, **kw)
        return self._made(AsyncSandbox.connect(*args, **kw))

    def list(self, **kw):
        if not self._loop:
            return Sandbox.list(**kw)
        return self._loop.run(AsyncSandbox.list(**kw))

    def release(self, sandbox):
        """Its connections, but not the sandbox."""
        if self._loop:
            self._loop.run(sandbox._it._http.aclose())
        else:
            sandbox._http.close()
