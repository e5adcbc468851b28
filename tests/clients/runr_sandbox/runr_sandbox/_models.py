"""What the API's answers become."""

from __future__ import annotations

import base64
import dataclasses
from dataclasses import dataclass, field


def pick(cls, data, /, **more):
    """An object of the members that it knows; an API may say more than a client does."""
    names = {f.name for f in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in data.items() if k in names}, **more)


def bytes_of(data, name):
    """The exact bytes of a text that comes with base64 where it is not UTF-8."""
    exact = data.get(name + "_base64")
    if exact is not None:
        return base64.b64decode(exact)
    return (data.get(name) or "").encode()


@dataclass
class ExecResult:
    """How a command ended, and what it wrote."""

    id: str
    exit_code: int
    timed_out: bool
    signal: str | None = None
    killed: bool = False
    reason: str | None = None
    duration_ms: float = 0
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)
    stdout_truncated: bool = False
    stderr_truncated: bool = False

    @property
    def ok(self):
        return self.exit_code == 0 and not self.timed_out

    @property
    def stdout(self):
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self):
        return self.stderr_bytes.decode("utf-8", "replace")


@dataclass
class FileChange:
    path: str
    size: int


@dataclass
class Output:
    """An image that the code made."""

    path: str
    mime: str
    size: int
    data: bytes | None = field(default=None, repr=False)

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.data)


@dataclass
class CodeResult(ExecResult):
    language: str | None = None
    files_changed: list[FileChange] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)


@dataclass
class Event:
    """A piece of a stream: `stdout` and `stderr` hold `data`, the last one a `result`.

    `gap`: a follower was too slow, and what came between was dropped.
    """

    type: str
    data: bytes = b""
    offset: int | None = None
    result: ExecResult | None = None

    @property
    def text(self):
        return self.data.decode("utf-8", "replace")

    @property
    def exit_code(self):
        return self.result.exit_code if self.result else None

    @property
    def timed_out(self):
        return bool(self.result and self.result.timed_out)

    @property
    def killed(self):
        return bool(self.result and self.result.killed)


@dataclass
class Entry:
    path: str
    name: str
    type: str
    size: int
    mode: str
    mtime: str
    owner: str | None = None
    group: str | None = None
    target: str | None = None


@dataclass
class Process:
    id: str
    name: str | None
    command: str | list[str]
    pid: int
    status: str
    started_at: str
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    killed: bool = False
    reason: str | None = None
    ended_at: str | None = None
    cwd: str | None = None
    ports: list[int] = field(default_factory=list)


@dataclass
class Logs:
    """The newest output of a process; `log_start` and `log_end` are positions in all of it."""

    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)
    log_start: int
    log_end: int

    @property
    def stdout(self):
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self):
        return self.stderr_bytes.decode("utf-8", "replace")


@dataclass
class SandboxInfo:
    id: str
    status: str
    runtime: str | None
    created_at: str
    expires_at: str | None
    idle_timeout: float | None
    metadata: dict
    network: dict
    env: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)


@dataclass
class Unpacked:
    """What an upload made; `refused`: entries that were left out, `{path, reason}`."""

    files: int
    dirs: int
    links: int
    bytes: int
    refused_count: int
    refused: list[dict]


def exec_result(data):
    return pick(ExecResult, data, stdout_bytes=bytes_of(data, "stdout"),
                stderr_bytes=bytes_of(data, "stderr"))


def _output(data):
    inline = data.get("data_base64")
    return pick(Output, data, data=None if inline is None else base64.b64decode(inline))


def code_result(data):
    shaped = {**data, "files_changed": [pick(FileChange, f) for f in data["files_changed"]],
              "outputs": [_output(o) for o in data["outputs"]]}
    return pick(CodeResult, shaped, stdout_bytes=bytes_of(data, "stdout"),
                stderr_bytes=bytes_of(data, "stderr"))


def process(data):
    return pick(Process, data)


def logs(data):
    return Logs(bytes_of(data, "stdout"), bytes_of(data, "stderr"), data["log_start"],
                data["log_end"])
