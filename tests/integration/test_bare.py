"""A root that lacks what others have: /proc, devices, the folders above those that are asked for."""

import io
import os
import stat
import subprocess
import tarfile

import pytest

import nook as harness
from nook import refuse
from wire import wait_until

WITHOUT = ["unshare", "--mount", "sh", "-c",
           'for at in $0; do mount -t tmpfs none "$at" || exit; done; exec "$@"']


def can_hide():
    return harness.IS_ROOT and subprocess.run([*WITHOUT, "/proc /dev", "true"], check=False,
                                              capture_output=True).returncode == 0


@pytest.fixture
def bare(start_nook):
    if harness.is_sanitized():
        pytest.skip("a sanitizer reads /proc")
    if not can_hide():
        pytest.skip("nothing can be mounted here")
    return start_nook(wrap=[*WITHOUT, "/proc /dev"])


def test_commands_run_without_proc_and_devices(bare):
    assert bare.get("/v1/capabilities").json()["isolation"]["proc"]["available"] is False
    result = bare.exec("cat; echo end")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (0, "end\n", "")
    assert bare.exec(["cat"], stdin="given")["stdout"] == "given"


def test_files_are_written_whole_without_proc(bare):
    for content, status in ((b"first", 201), (b"second", 200)):
        assert bare.request("PUT", "/v1/files?path=a/b", body=content).status == status
        assert bare.get("/v1/files?path=a/b").body == content
    assert os.listdir(bare.workspace / "a") == ["b"]


def test_what_needs_proc_says_so_where_there_is_none(bare):
    closed = bare.workspace / "closed"
    closed.write_text("x")
    closed.chmod(0)
    os.chown(closed, bare.user, bare.user)
    with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w") as tar:
        tar.addfile(tarfile.TarInfo("x"))
    answers = [bare.get("/v1/archive?path=."),
               bare.request("PUT", "/v1/archive?path=.", body=packed.getvalue()),
               bare.get("/v1/files/watch?path=."),
               bare.post("/v1/files/chmod", {"path": "closed", "mode": "600"})]
    assert [answer.status for answer in answers] == [501] * len(answers)
    assert {answer.json()["error"]["code"] for answer in answers} == {"not_supported"}


@pytest.mark.root
def test_folders_that_are_missing_are_made_with_those_above_them(start_nook, tmp_path):
    tmp_path.chmod(0o755)
    deep, work = tmp_path / "run/of/it/api.sock", tmp_path / "home/of/sandbox"
    nook = start_nook("--socket", deep, "--writable", work,
                      wrap=["sh", "-c", 'umask 077; exec "$@"', "-"], socket=False, tcp=True)
    wait_until(deep.exists, what="the socket is there")
    assert stat.S_IMODE(deep.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(work.parent.stat().st_mode) == 0o755
    assert (work.stat().st_uid, stat.S_IMODE(work.stat().st_mode)) == (nook.user, 0o755)


def test_a_writable_root_that_is_no_folder_ends_the_start(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    status, text = refuse("--socket", tmp_path / "run/api.sock", "--output-dir", tmp_path,
                          "--writable", file)
    assert (status, text.count("\n")) == (2, 1)
    assert str(file) in text
