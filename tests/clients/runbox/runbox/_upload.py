"""Files as a form, read piece by piece while it is sent."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import urllib.parse
from dataclasses import dataclass
from typing import BinaryIO

PIECE = 256 * 1024


@dataclass(frozen=True)
class FileUpload:
    """A file by its `path`, or an open binary `stream`, which is read from where it is and never
    closed. `name` is what it is called in the workspace."""

    name: str
    path: str | os.PathLike | None = None
    stream: BinaryIO | None = None

    def __post_init__(self):
        if (self.path is None) == (self.stream is None):
            raise ValueError(f"{self.name}: a path or a stream, and not both")

    def open(self):
        """A context manager of the open file."""
        if self.path is not None:
            return open(self.path, "rb")
        return contextlib.nullcontext(self.stream)


def _size_left(file):
    """Bytes from here to the end, or None where that cannot be known."""
    try:
        here = file.tell()
        end = file.seek(0, io.SEEK_END)
        file.seek(here)
        return end - here
    except (AttributeError, OSError, ValueError):
        return None


def _name_param(name):
    """RFC 8187 where a quoted string could not carry it."""
    if name.isascii() and name.isprintable():
        return 'filename="' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "filename*=UTF-8''" + urllib.parse.quote(name, safe="")


class Form:
    """multipart/form-data: `parts` are (headers, open binary file)."""

    def __init__(self):
        self._boundary = secrets.token_hex(16)
        self._parts = []

    @property
    def type(self):
        return f"multipart/form-data; boundary={self._boundary}"

    def add_json(self, name, data):
        self._add(f'name="{name}"', io.BytesIO(data))

    def add_file(self, name, file):
        self._add(f'name="file"; {_name_param(name)}', file)

    def _add(self, how, file):
        head = f"--{self._boundary}\r\nContent-Disposition: form-data; {how}\r\n\r\n"
        self._parts.append((head.encode(), file))

    def _tail(self):
        return f"--{self._boundary}--\r\n".encode()

    def size(self):
        """Of the whole body, or None where a stream does not know."""
        sizes = [_size_left(file) for _, file in self._parts]
        if None in sizes:
            return None
        return sum(sizes) + sum(len(head) + 2 for head, _ in self._parts) + len(self._tail())

    def pieces(self):
        for head, file in self._parts:
            yield head
            while True:
                piece = file.read(PIECE)
                if not piece:
                    break
                yield piece
            yield b"\r\n"
        yield self._tail()
