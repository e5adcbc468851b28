"""An operator without luck: limits that are too low, disks that answer no more, what is not mounted."""

import io
import tarfile

import pytest

import nook as harness
from wire import wait_until

needs_root = pytest.mark.root


def under(words):
    """A wrapper that does something first, in the daemon's own process."""
    return ["sh", "-c", words + '; exec "$@"', "sh"]


def one_file_of(size):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo("large")
        member.size = size
        tar.addfile(member, io.BytesIO(bytes(size)))
    return out.getvalue()


def test_a_limit_of_the_operator_on_the_size_of_files_fails_a_write_and_ends_nobody(start_nook):
    nook = start_nook(wrap=under("ulimit -f 2048"))  # blocks of 512 bytes
    beyond = bytes(3 << 20)
    response = nook.request("PUT", "/v1/files?path=large", body=beyond)
    assert (response.status, response.json()["error"]["code"]) == (413, "too_large")
    assert nook.get("/v1/files/stat?path=large").status == 404
    nook.exec("truncate -s 1000000 half; cat half half half > whole; true")
    copied = nook.post("/v1/files/copy", {"path": "half", "to": "copy"})
    assert copied.status == 200
    unpacked = nook.request("PUT", "/v1/archive?path=.", body=one_file_of(len(beyond)))
    assert [one["path"] for one in unpacked.json()["refused"]] == ["large"], unpacked
    assert nook.alive()
