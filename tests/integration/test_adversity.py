"""An operator without luck: limits that are too low, disks that answer no more, what is not mounted."""

import contextlib
import ctypes
import io
import os
import signal
import tarfile

import pytest

import nook as harness
from nook import proc_stat
from wire import wait_until

needs_root = pytest.mark.root


def under(words):
    """A wrapper that does something first, in the daemon's own process."""
    return ["sh", "-c", words + '; exec "$@"', "sh"]


def without_proc():
    if harness.is_sanitized():
        pytest.skip("a sanitizer needs /proc itself")
    return ["unshare", "--mount", *under("umount -l /proc")]


@contextlib.contextmanager
def dead_disk(folder):
    """From now on whoever looks into the folder waits, until he is killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR)
    except OSError as e:
        pytest.skip(f"no file system without an answer can be made here: {e}")
    try:
        options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"dead", os.fsencode(folder), b"fuse", 0, options) < 0:
            pytest.skip(f"it cannot be mounted: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.umount2(os.fsencode(folder), 2)  # MNT_DETACH
    finally:
        os.close(fuse)


@contextlib.contextmanager
def asked_for_ever(nook, count, method, target, **kw):
    """Requests that nobody answers, each on a connection that stays."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(nook.connect()).send_request(method, target, **kw)
        yield


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


@needs_root
def test_a_state_folder_that_answers_no_more_does_not_hold_the_end(start_nook):
    nook = start_nook("--idle-timeout", "1000")
    with dead_disk(nook.state):
        assert nook.request("PATCH", "/v1/sandbox", json={"ttl_seconds": 999}).status == 200
        assert nook.exec("echo hi")["stdout"] == "hi\n"
        assert nook.request("DELETE", "/v1/sandbox").status == 202
        assert nook.wait(30) == 0


@needs_root
def test_a_volume_that_answers_no_more_holds_neither_kills_nor_the_end(start_nook):
    """More requests wait for it than there are threads: a tree is found and ended all the same."""
    nook = start_nook("--grace", "0.5")
    (nook.workspace / "volume").mkdir()
    with dead_disk(nook.workspace / "volume"), \
            asked_for_ever(nook, 12, "GET", "/v1/files?path=volume/a"):
        result = nook.exec("setsid sleep 1000 & sleep 1000", timeout=0.5)
        assert result["timed_out"]
        wait_until(lambda: not nook.children(), 20, "the whole tree is gone")
        assert nook.request("POST", "/v1/sandbox/pause").json()["status"] == "paused"
        assert nook.request("POST", "/v1/sandbox/resume").json()["status"] == "active"
        assert nook.get("/healthz").status == 200
        assert nook.request("DELETE", "/v1/sandbox").status == 202
        assert nook.wait(40) == 0


def is_running(nook, name):
    return nook.get(f"/v1/processes/{name}").json()["status"] == "running"


def test_so_few_descriptors_that_no_command_could_start_end_the_start(tmp_path):
    status, said = harness.refuse("--socket", tmp_path / "run/api.sock", "--no-auth",
                                  "--state-dir", tmp_path / "state",
                                  wrap=under("ulimit -n 63"))
    assert (status, "the limit of open files is 63" in said) == (2, True), said


@needs_root
@pytest.mark.parametrize("args", [[], ["--without", "subreaper"]], ids=["reaps", "others_reap"])
def test_without_proc_a_kill_and_the_end_reach_the_group_of_a_command(start_nook, args):
    nook = start_nook("--grace", "600", *args, wrap=without_proc())
    script = "sleep 1000 & trap 'echo heard; exit 3' TERM; echo up; wait"
    for name in ("one", "two"):
        assert nook.post("/v1/processes", {"command": script, "name": name}).status == 201
        wait_until(lambda n=name: nook.get(f"/v1/processes/{n}/logs").json()["stdout"], 20, "up")
    killed = nook.post("/v1/processes/one/kill", {"signal": "TERM"})
    assert killed.status == 200
    wait_until(lambda: not is_running(nook, "one"), 20, "the first has ended")
    assert nook.get("/v1/processes/one").json()["exit_code"] == 3
    assert nook.get("/v1/processes/one/logs").json()["stdout"] == "up\nheard\n"
    assert nook.terminate() == 0


@needs_root
def test_without_proc_a_child_that_nobody_finds_does_not_hold_the_end(start_nook):
    nook = start_nook("--grace", "0.5", wrap=without_proc())
    left = [int(nook.exec("setsid sleep 1000 & echo $!")["stdout"])]
    script = "setsid sleep 1000 & echo $!; sleep 1000"
    nook.post("/v1/processes", {"command": script, "name": "gone"})
    left.append(int(wait_until(lambda: nook.get("/v1/processes/gone/logs").json()["stdout"], 20,
                               "it runs")))
    assert nook.request("DELETE", "/v1/processes/gone").status == 204
    left += nook.descendants()
    assert nook.terminate() == 0
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all((proc_stat(pid) or "Z")[0] == "Z" for pid in left), 20, "killed")


@needs_root
@pytest.mark.parametrize("mode, inside", [(0o1777, []), (0o755, ["etc"]), (0o555, [])],
                         ids=["like_tmp", "like_the_root", "like_proc"])
def test_a_state_folder_that_is_not_ours_alone_is_left_as_it_is(tmp_path, mode, inside):
    folder = tmp_path / "state"
    folder.mkdir()
    for name in inside:
        (folder / name).mkdir()
    folder.chmod(mode)
    status, said = harness.refuse("--socket", tmp_path / "run/api.sock", "--identities",
                                  "--state-dir", folder, "--writable", tmp_path / "files",
                                  "--output-dir", tmp_path / "files", "--user", "12345:12345")
    assert (status, "not nookd's alone" in said) == (2, True), said
    assert folder.stat().st_mode & 0o7777 == mode
    assert not (folder / "w").exists()
