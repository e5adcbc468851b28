"""The methods that `Sandbox` and `AsyncSandbox` share.

`_run(operation)` gives an operation's result, or a coroutine of it; `_events(call)` an iterator of
events, or an async one; `_collect(events)` their result. A command whose end is waited for is read
as a stream too: so it ends when nobody waits any more, and a dead connection is noticed.
"""

from __future__ import annotations

import os

from . import _calls
from ._errors import RunrSandboxError


def settings(api_url, api_key):
    """(url, key), from the environment where they are not given."""
    url = api_url or os.environ.get("RUNR_API_URL")
    if not url:
        raise RunrSandboxError("no API: set RUNR_API_URL or pass api_url", reason="no_api_url")
    return url.rstrip("/"), api_key or os.environ.get("RUNR_API_KEY")


class Files:
    """`sandbox.files`"""

    def __init__(self, sandbox):
        self._run = sandbox._run

    def read(self, path):
        """A file's bytes."""
        return self._run(_calls.read_file(path))

    def read_text(self, path, encoding="utf-8"):
        call = _calls.read_file(path)
        call.parse = lambda data: data.decode(encoding)
        return self._run(call)

    def write(self, path, content, *, mode=None):
        """Text or bytes into a file, as a whole or not at all; missing folders are made."""
        return self._run(_calls.write_file(path, content, mode))

    def list(self, path="."):
        """The entries of a folder, in order of their paths."""
        return self._run(_calls.list_files(path))

    def mkdir(self, path):
        """A folder and the ones above it; content with one that exists."""
        return self._run(_calls.mkdir(path))

    def remove(self, path, *, recursive=False):
        return self._run(_calls.remove(path, recursive))

    def upload_dir(self, source, path):
        """What is in a local directory into a folder of the sandbox, as one tar archive."""
        return self._run(_calls.upload_dir(source, path))

    def upload_files(self, files, path="."):
        """{name: text or bytes} into a folder; names may have folders of their own."""
        return self._run(_calls.upload_files(files, path))

    def download_dir(self, path, target):
        """What is in a folder of the sandbox into a local one, which is made.

        Returns the names that were left out: links that lead outside, devices.
        """
        return self._run(_calls.download_dir(path, target))


class Processes:
    """`sandbox.processes`: commands in the background."""

    def __init__(self, sandbox):
        self._run = sandbox._run
        self._events = sandbox._events

    def start(self, command, *, stdin=None, timeout=None, env=None, cwd=None, name=None):
        return self._run(_calls.start(command=command, stdin=stdin, timeout=timeout, env=env,
                                      cwd=cwd, name=name))

    def list(self):
        """All that run and the newest that have ended, newest first."""
        return self._run(_calls.list_processes())

    def logs(self, process_id):
        """The newest output."""
        return self._run(_calls.process_logs(process_id))

    def follow(self, process_id):
        """Its output so far and then as it comes, until its `exit` event."""
        return self._events(_calls.follow(process_id))

    def kill(self, process_id, *, signal="TERM"):
        """A signal to all that the process started."""
        return self._run(_calls.kill_process(process_id, signal))


class Api:
    """A sandbox's methods, but for how it is made and closed."""

    id = None  # once it is made or found
    _removed = False

    def _attach(self):
        self.files = Files(self)
        self.processes = Processes(self)

    # commands and code

    def exec(self, command, *, stdin=None, timeout=None, env=None, cwd=None):
        """Runs a shell string or an argv list to its end."""
        return self._collect(self.exec_stream(command, stdin=stdin, timeout=timeout, env=env,
                                              cwd=cwd))

    def exec_stream(self, command, *, stdin=None, timeout=None, env=None, cwd=None):
        """The same, its output as it comes; the last event is `exit`."""
        return self._events(_calls.exec_call("/v1/exec/stream", command=command, stdin=stdin,
                                             timeout=timeout, env=env, cwd=cwd))

    def run_code(self, code, language=None, *, stdin=None, timeout=None, env=None, cwd=None):
        """Runs source code; by default in the sandbox's own language."""
        return self._collect(self.run_code_stream(code, language, stdin=stdin, timeout=timeout,
                                                  env=env, cwd=cwd))

    def run_code_stream(self, code, language=None, *, stdin=None, timeout=None, env=None,
                        cwd=None):
        """The same, its output as it comes; the last event is `result`."""
        return self._events(_calls.code_stream(code=code, language=language, stdin=stdin,
                                               timeout=timeout, env=env, cwd=cwd))

    def exec_ws(self, command=None, *, code=None, language=None, tty=False, cols=80, rows=24,
                stdin=None, timeout=None, env=None, cwd=None, ssl_context=None):
        """A command, or code, that takes input while it runs; a context manager."""
        if (command is None) == (code is None):
            raise ValueError("exec_ws takes a command or code")
        body = _calls.request(command=command, code=code, language=language, stdin=stdin,
                              timeout=timeout, env=env, cwd=cwd)
        terminal = {"tty": True, "cols": cols, "rows": rows} if tty else {}
        return self._session({"type": "start", **body, **terminal}, ssl_context)

    # lifetime

    def info(self):
        """What the sandbox is now."""
        return self._run(_calls.show())

    def set_timeout(self, seconds):
        """Live so many more seconds, up to the longest that is allowed."""
        return self._run(_calls.patch(ttl_seconds=seconds))

    def keepalive(self):
        """Resets the idle timer."""
        return self._run(_calls.act("keepalive"))

    def pause(self):
        """Stops every command where it is."""
        return self._run(_calls.act("pause"))

    def resume(self):
        return self._run(_calls.act("resume"))

    def set_network(self, network):
        """What may be reached: ["host:port", …], "all" or "none"."""
        return self._run(_calls.patch(network=network))

    def kill(self):
        """Removes the sandbox now; content when it was removed before."""
        return self._run(self._kill())

    def _kill(self):
        if not self._removed:
            yield _calls.end()
            self._removed = True

    def _open(self, operation):
        info = yield from operation
        self.id = info.id
        return info


def create_options(**fields):
    """The operation that gives a sandbox what was asked for."""
    def run():
        return (yield _calls.patch(**fields))
    return run()
