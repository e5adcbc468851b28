"""The calls."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import time
import urllib.parse

from ._body import Body
from ._errors import RunboxError, timeout_of
from ._transport import Transport
from ._upload import FileUpload, Form

BASE_URL = "http://localhost:8099"
PIECE = 64 * 1024
COPIED = 256 * 1024


def _query(path, *pairs):
    known = [(name, value) for name, value in pairs if value is not None]
    return path + ("?" + urllib.parse.urlencode(known) if known else "")


def _given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


@contextlib.contextmanager
def _replacing(target):
    """A file beside `target` that takes its place once all is written."""
    if os.path.lexists(target) and (os.path.islink(target) or not os.path.isfile(target)):
        with open(target, "wb") as file:  # a link, a device or a pipe is written through
            yield file
        return
    folder, name = os.path.split(os.path.abspath(target))
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _copy(response, sink):
    for chunk in Body(response, COPIED):
        sink.write(chunk)


class Client:
    """A runner. Threads may share it: it holds no connection and no state.

    `identity`: on whose behalf, in every call that is given no other. `timeout`: seconds without
    a byte from the runner until a call gives up; a command's own time comes on top.
    """

    def __init__(self, base_url=BASE_URL, api_key=None, identity=None, *, timeout=60,
                 ssl_context=None):
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._transport = Transport(base_url, headers, ssl_context)
        self._identity = identity
        self._timeout = timeout

    # commands

    def exec(self, command, *, timeout=None, files=(), stdin=None, env=None, cwd=None,
             report_files=True, identity=None):
        """Runs a shell string or an argv list to its end; the result as a dict.

        `files` are there as files/NAME before it starts. `stdin` is text. RunboxError with the
        code `timeout` where it was still running after `timeout` seconds.
        """
        request = _given(command=command, timeout=timeout, stdin=stdin, env=env, cwd=cwd,
                         report_files=report_files)
        wait = None if timeout is None else timeout + self._timeout
        if files:
            result = self._upload("/v1/exec", files, identity, request, wait)
        else:
            result = self._json("POST", "/v1/exec", identity, request, wait)
        if result["timed_out"]:
            raise timeout_of(result)
        return result

    # files

    def upload_file(self, path, name=None, *, directory="files", identity=None):
        """A local file, streamed, to DIRECTORY/NAME; its entry as a dict."""
        file = FileUpload(name or os.path.basename(path), path=path)
        return self.upload_batch([file], directory=directory, identity=identity)[0]

    def upload(self, name, data, *, directory="files", identity=None):
        """Bytes or text to DIRECTORY/NAME; its entry as a dict."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        file = FileUpload(name, stream=io.BytesIO(raw))
        return self.upload_batch([file], directory=directory, identity=identity)[0]

    def upload_batch(self, files, *, directory="files", identity=None):
        """Several files in one request; their entries in order."""
        target = _query("/v1/files", ("dir", directory))
        return self._upload(target, files, identity)["files"]

    def list(self, path=".", *, recursive=False, identity=None):
        """The entries of a folder as dicts, in order of their paths."""
        entries, cursor = [], None
        while True:
            page = self._json("GET", _query(
                "/v1/files/list", ("path", path), ("recursive", "true" if recursive else None),
                ("cursor", cursor)), identity)
            entries += page["entries"]
            cursor = page["next"]
            if cursor is None:
                return entries

    def delete_workspace(self, *, identity=None):
        """Removes every file; the identity and its uid stay."""
        self._open("DELETE", "/v1/workspace", identity).close()

    # downloads

    def open_path(self, path, *, range_header=None, identity=None):
        """The http.client.HTTPResponse of a file, to be closed by the caller."""
        headers = {"Range": range_header} if range_header else {}
        return self._open("GET", _query("/v1/files", ("path", path)), identity, headers)

    def open_archive(self, paths, *, identity=None):
        """The http.client.HTTPResponse of a tar of several files and folders."""
        pairs = [("path", path) for path in paths]
        return self._open("GET", _query("/v1/archive", *pairs), identity)

    def iter_path(self, path, *, range_header=None, chunk_size=PIECE, identity=None):
        """A file's bytes in chunks, or those of a range; an error is raised at once."""
        return Body(self.open_path(path, range_header=range_header, identity=identity),
                    chunk_size)

    def iter_archive(self, paths, *, chunk_size=PIECE, identity=None):
        """A tar of several files and folders in chunks."""
        return Body(self.open_archive(paths, identity=identity), chunk_size)

    def download_path(self, path, target, *, identity=None):
        """A file to a local one, which is replaced only by the whole."""
        with self.open_path(path, identity=identity) as response, _replacing(target) as file:
            _copy(response, file)

    def download_path_to(self, path, sink, *, identity=None):
        """A file into anything with write()."""
        _copy(self.open_path(path, identity=identity), sink)

    def download_archive(self, paths, target, *, identity=None):
        """A tar of several files and folders to a local file."""
        with self.open_archive(paths, identity=identity) as response, _replacing(target) as file:
            _copy(response, file)

    def download_archive_to(self, paths, sink, *, identity=None):
        """A tar of several files and folders into anything with write()."""
        _copy(self.open_archive(paths, identity=identity), sink)

    # health and limits

    def health(self):
        return self._json("GET", "/healthz", None)

    def ready(self):
        """RunboxError with the code `starting` until it is."""
        return self._json("GET", "/readyz", None)

    def wait_ready(self, timeout=30):
        """What ready() says once it says so; RunboxError with the code `timeout` when it is too
        late, caused by what was last in the way."""
        end = time.monotonic() + timeout
        while True:
            try:
                return self.ready()
            except (OSError, RunboxError) as error:
                if getattr(error, "status", 503) != 503:
                    raise
                if time.monotonic() >= end:
                    raise RunboxError(408, "timeout",
                                      f"the runner is not ready after {timeout} s") from error
            time.sleep(0.05)

    def capabilities(self):
        """Limits, languages and tools, isolation."""
        return self._json("GET", "/v1/capabilities", None)

    def metrics(self):
        """The text that Prometheus reads."""
        with self._open("GET", "/metrics", None) as response:
            return response.read().decode()

    # how

    def _open(self, method, target, identity, headers=None, body=None, timeout=...):
        who = identity or self._identity
        sent = {**(who.headers() if who else {}), **(headers or {})}
        wait = self._timeout if timeout is ... else timeout
        return self._transport.open(method, target, sent, body, wait)

    def _json(self, method, target, identity, request=None, timeout=...):
        body = None if request is None else json.dumps(request).encode()
        headers = {} if request is None else {"Content-Type": "application/json"}
        with self._open(method, target, identity, headers, body, timeout) as response:
            return json.loads(response.read())

    def _upload(self, target, files, identity, request=None, timeout=...):
        form = Form()
        with contextlib.ExitStack() as opened:
            if request is not None:
                form.add_json("request", json.dumps(request).encode())
            for file in files:
                form.add_file(file.name, opened.enter_context(file.open()))
            size = form.size()
            length = {"Transfer-Encoding": "chunked"} if size is None else \
                {"Content-Length": str(size)}
            headers = {"Content-Type": form.type, **length}
            with self._open("POST", target, identity, headers, form.pieces(), timeout) as answer:
                return json.loads(answer.read())
