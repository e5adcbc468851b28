"""`Sandbox`: the form that blocks."""

from __future__ import annotations

import httpx

from . import _calls
from ._api import Api, create_options, settings
from ._collect import Collector
from ._errors import closed, connection_errors, error_of
from ._events import EventReader, broken, is_last
from ._session import Session
from ._tls import default_context

CHUNK = 256 * 1024
QUIET = 60  # seconds; on a stream the API says something every 15


def _pieces(file):
    while True:
        piece = file.read(CHUNK)
        if not piece:
            return
        yield piece


class Sandbox(Api):
    """A sandbox. `with` removes it at the block's end; threads may share it."""

    def __init__(self, sandbox_id=None, *, api_url=None, api_key=None, request_timeout=60):
        self.id = sandbox_id
        self._url, key = settings(api_url, api_key)
        self._timeout = httpx.Timeout(request_timeout, connect=10)
        self._patient = httpx.Timeout(request_timeout, connect=10, read=None)
        self._quiet = httpx.Timeout(request_timeout, connect=10, read=QUIET)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=self._url, headers=headers,
                                    verify=default_context())
        self._attach()

    @classmethod
    def create(cls, runtime=None, *, ttl_seconds=None, idle_timeout=None, network=None,
               metadata=None, env=None, limits=None, **connection):
        """A new sandbox; `connection`: what the constructor takes."""
        return cls(**connection)._start(create_options(
            runtime=runtime, ttl_seconds=ttl_seconds, idle_timeout=idle_timeout, network=network,
            metadata=metadata, env=env, limits=limits))

    @classmethod
    def connect(cls, sandbox_id, **connection):
        """One that is there; NotFoundError where it is not."""
        return cls(**connection)._start(_calls.find(sandbox_id))

    @classmethod
    def list(cls, *, status=None, metadata=None, **connection):
        """Those with this status, whose metadata has at least these members."""
        sandbox = cls(**connection)
        try:
            return sandbox._run(_calls.find_all(status, metadata))
        finally:
            sandbox._http.close()

    def _start(self, operation):
        try:
            self._run(self._open(operation))
        except BaseException:
            self._http.close()
            raise
        return self

    def close(self):
        """Removes the sandbox and releases the HTTP connections."""
        try:
            self.kill()
        finally:
            self._http.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self, operation):
        if isinstance(operation, _calls.Call):
            return self._call(operation)
        try:
            step = next(operation)
            while True:
                try:
                    value = self._call(step) if isinstance(step, _calls.Call) else step()
                except BaseException as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(value)
        except StopIteration as end:
            return end.value

    def _stream(self, call, timeout):
        if self._http.is_closed:
            raise closed()
        content = _pieces(call.content) if hasattr(call.content, "read") else call.content
        return self._http.stream(
            call.method, call.path, params=call.params, json=call.body, content=content,
            files=call.form, timeout=timeout)

    def _call(self, call):
        timeout = self._patient if call.patient else self._timeout
        with connection_errors(), self._stream(call, timeout) as response:
            if response.is_error:
                raise error_of(response.status_code, response.read())
            if not call.sink:
                return call.parse(response.read())
            for piece in response.iter_bytes():
                call.sink.write(piece)
        return None

    def _events(self, call):
        reader = EventReader()
        with connection_errors(), self._stream(call, self._quiet) as response:
            if response.is_error:
                raise error_of(response.status_code, response.read())
            for piece in response.iter_bytes():
                for event in reader.feed(piece):
                    self._run(_calls.fill(event.result))
                    yield event
                    if is_last(event):
                        return
        raise broken()

    def _collect(self, events):
        collector = Collector()
        for event in events:
            collector.take(event)
        return collector.result

    def _session(self, start, ssl_context):
        return Session(self, start, ssl_context)
