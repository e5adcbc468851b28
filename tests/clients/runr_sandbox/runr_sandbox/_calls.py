"""Each operation as the HTTP calls that it takes, without doing them.

An operation is a `Call`, or a generator that yields calls and is sent their results; what it yields
besides is a function that blocks. `_sync.py` and `_async.py` each do these in their own way.
"""

from __future__ import annotations

import base64
import json
import tempfile
from dataclasses import dataclass
from typing import Any, Callable

from . import _archive
from ._errors import NotFoundError
from ._models import Entry, SandboxInfo, Unpacked, logs, pick, process

INLINE_STDIN = 512 * 1024  # more than this goes as a form, which the API streams


@dataclass
class Call:
    method: str
    path: str
    params: Any = None
    body: Any = None  # becomes JSON
    content: Any = None  # bytes, or an open binary file
    form: list | None = None
    sink: Any = None  # an open binary file for the body
    parse: Callable[[bytes], Any] = json.loads
    patient: bool = False  # its answer comes only when all is done

    def to(self, build):
        """The same, its JSON built into something."""
        self.parse = lambda data: build(json.loads(data))
        return self


def nothing(_):
    return None


def _given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


def _input(stdin):
    if isinstance(stdin, str) and "\0" not in stdin:
        return {"stdin": stdin}
    data = stdin.encode() if isinstance(stdin, str) else bytes(stdin)
    return {"stdin_base64": base64.b64encode(data).decode()}


def request(stdin=None, **fields):
    """The JSON of a start."""
    body = _given(**fields)
    return body if stdin is None else {**body, **_input(stdin)}


def _exec_form(stdin, body):
    data = stdin.encode() if isinstance(stdin, str) else bytes(stdin)
    return [("request", (None, json.dumps(body).encode(), "application/json")),
            ("stdin", ("stdin", data, "application/octet-stream"))]


# commands and code


def exec_call(path, stdin=None, **fields):
    if stdin is not None and len(stdin) > INLINE_STDIN:
        return Call("POST", path, form=_exec_form(stdin, request(**fields)))
    return Call("POST", path, body=request(stdin, **fields))


def fill(result):
    """Reads the outputs that were too large to come with the result."""
    for output in getattr(result, "outputs", ()):
        if output.data is None:
            output.data = yield read_file(output.path)


def code_stream(**options):
    return Call("POST", "/v1/code/stream", body=request(**options))


def ws_token():
    return Call("POST", "/v1/exec/ws-token").to(lambda data: data["token"])


# files


def read_file(path):
    return Call("GET", "/v1/files", {"path": path}, parse=bytes)


def write_file(path, content, mode):
    params = {"path": path}
    if mode is not None:
        params["mode"] = f"{mode:03o}"
    data = content.encode() if isinstance(content, str) else bytes(content)
    return Call("PUT", "/v1/files", params, content=data).to(lambda data: pick(Entry, data))


def list_files(path):
    entries, cursor = [], None
    while True:
        page = yield Call("GET", "/v1/files/list", _given(path=path, cursor=cursor))
        entries += [pick(Entry, entry) for entry in page["entries"]]
        cursor = page["next"]
        if cursor is None:
            return entries


def mkdir(path):
    return Call("POST", "/v1/files/mkdir", body={"path": path}).to(lambda data: pick(Entry, data))


def remove(path, recursive):
    params = {"path": path, "recursive": "true" if recursive else "false"}
    return Call("DELETE", "/v1/files", params, parse=nothing)


def upload(pack, source, path, strict):
    with (yield lambda: pack(source)) as file:
        params = {"path": path, "strict": "true" if strict else "false"}
        call = Call("PUT", "/v1/archive", params, content=file, patient=True)
        return (yield call.to(lambda data: pick(Unpacked, data)))


def upload_dir(source, path):
    return upload(_archive.pack_dir, source, path, False)


def upload_files(contents, path):
    return upload(_archive.pack_files, contents, path, True)


def download_dir(path, target):
    with tempfile.TemporaryFile() as file:
        yield Call("GET", "/v1/archive", {"path": path, "base": path}, sink=file, patient=True)
        return (yield lambda: _archive.unpack(file, target))


# processes


def start(**options):
    return Call("POST", "/v1/processes", body=request(**options)).to(process)


def list_processes():
    return Call("GET", "/v1/processes").to(lambda data: [process(p) for p in data["processes"]])


def process_logs(process_id):
    return Call("GET", f"/v1/processes/{process_id}/logs").to(logs)


def follow(process_id):
    return Call("GET", f"/v1/processes/{process_id}/follow")


def kill_process(process_id, signal):
    return Call("POST", f"/v1/processes/{process_id}/kill", body={"signal": signal}).to(process)


# the sandbox


def _info(data):
    return pick(SandboxInfo, data)


def show():
    return Call("GET", "/v1/sandbox").to(_info)


def patch(**fields):
    return Call("PATCH", "/v1/sandbox", body=_given(**fields)).to(_info)


def act(verb):
    return Call("POST", f"/v1/sandbox/{verb}").to(_info)


def end():
    return Call("DELETE", "/v1/sandbox", parse=nothing)


def find(sandbox_id):
    info = yield show()
    if info.id != sandbox_id:
        raise NotFoundError(f"no sandbox {sandbox_id}", status=404, reason="not_found")
    return info


def find_all(status, metadata):
    info = yield show()
    if status is not None and info.status != status:
        return []
    if any(info.metadata.get(k, ...) != v for k, v in (metadata or {}).items()):
        return []
    return [info]
