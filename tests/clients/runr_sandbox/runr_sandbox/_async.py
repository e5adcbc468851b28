"""`AsyncSandbox`: the form for asyncio."""

from __future__ import annotations

import asyncio

import httpx

from . import _calls
from ._api import Api, create_options, settings
from ._collect import Collector
from ._errors import closed, connection_errors, error_of
from ._events import EventReader, broken, is_last
from ._session import AsyncSession
from ._sync import CHUNK, QUIET
from ._tls import default_context


async def _pieces(file):
    while True:
        piece = await asyncio.to_thread(file.read, CHUNK)
        if not piece:
            return
        yield piece


class _Opening:
    """A sandbox to be: `await` it, or enter it with `async with`."""

    def __init__(self, sandbox, operation):
        self._sandbox = sandbox
        self._operation = operation

    def __await__(self):
        return self._sandbox._start(self._operation).__await__()

    async def __aenter__(self):
        return await self

    async def __aexit__(self, *_):
        await self._sandbox.close()


class AsyncSandbox(Api):
    """A sandbox. `async with` removes it at the block's end."""

    def __init__(self, sandbox_id=None, *, api_url=None, api_key=None, request_timeout=60):
        self.id = sandbox_id
        self._url, key = settings(api_url, api_key)
        self._timeout = httpx.Timeout(request_timeout, connect=10)
        self._patient = httpx.Timeout(request_timeout, connect=10, read=None)
        self._quiet = httpx.Timeout(request_timeout, connect=10, read=QUIET)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.AsyncClient(base_url=self._url, headers=headers,
                                         verify=default_context())
        self._attach()

    @classmethod
    def create(cls, runtime=None, *, ttl_seconds=None, idle_timeout=None, network=None,
               metadata=None, env=None, limits=None, **connection):
        """A new sandbox; `connection`: what the constructor takes."""
        return _Opening(cls(**connection), create_options(
            runtime=runtime, ttl_seconds=ttl_seconds, idle_timeout=idle_timeout, network=network,
            metadata=metadata, env=env, limits=limits))

    @classmethod
    def connect(cls, sandbox_id, **connection):
        """One that is there; NotFoundError where it is not."""
        return _Opening(cls(**connection), _calls.find(sandbox_id))

    @classmethod
    async def list(cls, *, status=None, metadata=None, **connection):
        """Those with this status, whose metadata has at least these members."""
        sandbox = cls(**connection)
        try:
            return await sandbox._run(_calls.find_all(status, metadata))
        finally:
            await sandbox._http.aclose()

    async def _start(self, operation):
        try:
            await self._run(self._open(operation))
        except BaseException:
            await self._http.aclose()
            raise
        return self

    async def close(self):
        """Removes the sandbox and releases the HTTP connections."""
        try:
            await self.kill()
        finally:
            await self._http.aclose()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def _run(self, operation):
        if isinstance(operation, _calls.Call):
            return await self._call(operation)
        try:
            step = next(operation)
            while True:
                try:
                    value = await self._step(step)
                except BaseException as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(value)
        except StopIteration as end:
            return end.value

    async def _step(self, step):
        if isinstance(step, _calls.Call):
            return await self._call(step)
        return await asyncio.to_thread(step)

    def _stream(self, call, timeout):
        if self._http.is_closed:
            raise closed()
        content = _pieces(call.content) if hasattr(call.content, "read") else call.content
        return self._http.stream(
            call.method, call.path, params=call.params, json=call.body, content=content,
            files=call.form, timeout=timeout)

    async def _call(self, call):
        timeout = self._patient if call.patient else self._timeout
        with connection_errors():
            async with self._stream(call, timeout) as response:
                if response.is_error:
                    raise error_of(response.status_code, await response.aread())
                if not call.sink:
                    return call.parse(await response.aread())
                async for piece in response.aiter_bytes():
                    await asyncio.to_thread(call.sink.write, piece)
        return None

    async def _events(self, call):
        reader = EventReader()
        with connection_errors():
            async with self._stream(call, self._quiet) as response:
                if response.is_error:
                    raise error_of(response.status_code, await response.aread())
                async for piece in response.aiter_bytes():
                    for event in reader.feed(piece):
                        await self._run(_calls.fill(event.result))
                        yield event
                        if is_last(event):
                            return
        raise broken()

    async def _collect(self, events):
        collector = Collector()
        async for event in events:
            collector.take(event)
        return collector.result

    def _session(self, start, ssl_context):
        return AsyncSession(self, start, ssl_context)
