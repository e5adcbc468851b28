"""Directories as tar files on disk, so that memory stays flat."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile


def _plain(entry):
    """No names of local users; no devices, FIFOs or sockets."""
    if not (entry.isfile() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def pack_dir(path):
    """An open temporary file with what is in a directory."""
    if not os.path.isdir(path):
        raise NotADirectoryError(f"{path} is not a directory")
    file = tempfile.TemporaryFile()
    try:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(path, arcname=".", filter=_plain)
        file.seek(0)
        return file
    except BaseException:
        file.close()
        raise


def pack_files(contents):
    """The same of {name: text or bytes}."""
    file = tempfile.TemporaryFile()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in contents.items():
            data = content.encode() if isinstance(content, str) else bytes(content)
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    file.seek(0)
    return file


def unpack(file, path):
    """Unpacks into a directory what an untrusted sandbox packed; the names it left out.

    Left out: entries and links that lead outside, devices and FIFOs.
    """
    if not hasattr(tarfile, "data_filter"):
        raise RuntimeError("this Python's tarfile has no filters: unpacking would not be safe")
    refused = []

    def safe(entry, where):
        try:
            return tarfile.data_filter(entry, where)
        except tarfile.FilterError:
            refused.append(entry.name)
            return None

    os.makedirs(path, exist_ok=True)
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r|") as tar:
        tar.extractall(path, filter=safe)
    return refused
