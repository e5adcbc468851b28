"""Control groups: a group for each tree that lives, kill and freeze by it, limits, want of memory."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import groups
from groups import folder_of, is_frozen, made_by, path_of
from nook import BINARY, SANITIZER, descendants_of, is_sanitized, scaled, status_field
from test_processes import lives, pids_in, show, start
from wire import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(groups.mount_of() is None, reason="no control group can be made here"),
]


@pytest.fixture
def nook(start_nook):
    nook = start_nook()
    if not made_by(nook):
        pytest.skip("this daemon is told to make no control groups")
    return nook


def needs(controller):
    return pytest.mark.skipif(groups.mount_of(controller) is None,
                              reason=f"no controller {controller} of version 1 here")


def in_group(pid):
    """Its own one: below the daemon's folder, named by its mark."""
    parts = path_of(pid).split("/")
    return len(parts) > 2 and parts[-2].startswith("nookd-") and parts[-1].startswith("m")


def test_a_tree_that_lives_gets_a_group_that_goes_with_it(nook):
    p = start(nook, "setsid sh -c 'echo $$ > pid; sleep 1000' & sleep 1000")
    deep = pids_in(nook.workspace / "pid", 1)[0]
    wait_until(lambda: in_group(p["pid"]) and in_group(deep), 10, "the tree is in its group")
    assert path_of(p["pid"]) == path_of(deep)
    own = folder_of(deep)
    other = start(nook, "sleep 1000")
    wait_until(lambda: in_group(other["pid"]), 10, "the other tree has one too")
    assert path_of(other["pid"]) != path_of(deep)
    assert not in_group(nook.pid)
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    wait_until(lambda: not lives(deep) and not own.exists(), 20, "the group went with its tree")
    assert show(nook, other["id"])["status"] == "running"
    kept = folder_of(other["pid"]).parent
    assert nook.terminate() == 0
    assert not kept.exists()


def test_a_short_command_is_in_the_daemons_own_group(nook):
    assert nook.exec("cat /proc/self/cgroup")["stdout"].splitlines()[-1].endswith(path_of(nook.pid))


def test_what_stops_itself_stays_stopped_after_a_pause(nook):
    p = start(nook, "sh -c 'echo $$ > pid; kill -STOP $$; echo woken'")
    pid = pids_in(nook.workspace / "pid", 1)[0]
    wait_until(lambda: status_field(pid, "State")[0] == "T", 10, "it stopped itself")
    assert nook.post("/v1/sandbox/pause").json()["status"] == "paused"
    assert is_frozen(p["pid"]) and in_group(pid)
    assert nook.post("/v1/sandbox/resume").json()["status"] == "active"
    assert show(nook, p["id"], wait=0.3)["log_end"] == 0
    os.kill(pid, signal.SIGCONT)
    assert show(nook, p["id"], wait=30)["log_end"] == 6


@pytest.mark.parametrize("tree", [True, False])
def test_a_frozen_command_can_act_on_term(nook, tree):
    p = start(nook, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done")
    q = start(nook, "while :; do sleep 0.01; done")
    wait_until(lambda: show(nook, p["id"])["log_end"] == 3)
    nook.post("/v1/sandbox/pause")
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "TERM", "tree": tree})
    assert show(nook, p["id"], wait=30)["exit_code"] == 3
    assert is_frozen(q["pid"])


def test_starts_that_are_under_way_are_through_before_the_freeze(nook):
    for _ in range(scaled(30, 5)):
        running = [nook.connect() for _ in range(4)]
        for conn in running:
            conn.send_request("POST", "/v1/exec", json={"command": "sleep 0.02; echo done"})
        assert nook.post("/v1/sandbox/pause").status == 200
        assert nook.post("/v1/sandbox/resume").status == 200
        for conn in running:
            with conn:
                answer = conn.read_response("POST")
                assert answer.status == 200 and answer.json()["stdout"] == "done\n" \
                    or answer.code == "paused", answer


@needs("memory")
def test_a_memory_hog_ends_at_the_limit_with_its_reason(nook):
    if is_sanitized():
        pytest.skip("a start on a sanitizer's memory takes long")
    limit = 64 << 20
    patched = nook.request("PATCH", "/v1/sandbox", json={"limits": {"memory": limit}})
    assert (patched.status, patched.json()["limits"]["memory"]) == (200, limit)
    hog = "x = bytearray(300 << 20); print(len(x))"
    for command in (["python3", "-c", hog], f"python3 -c '{hog}'; exit $?"):
        done = nook.exec(command)
        assert (done["reason"], done["exit_code"], done["stdout"]) == ("oom", 137, ""), done
    assert nook.get("/healthz").status == 200
    assert nook.exec(["python3", "-c", "print(len(bytearray(20 << 20)))"])["exit_code"] == 0
    nook.request("PATCH", "/v1/sandbox", json={"limits": {"memory": None}})
    assert nook.get("/v1/sandbox").json()["limits"]["memory"] is None
    assert nook.exec(["python3", "-c", hog])["exit_code"] == 0


@needs("pids")
def test_the_limit_of_processes_is_one_of_all_commands_together(nook):
    patched = nook.request("PATCH", "/v1/sandbox", json={"limits": {"processes": 30}})
    assert patched.json()["limits"]["processes"] == 30
    start(nook, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1000 & done;"
                " echo > up; wait")
    wait_until(lambda: (nook.workspace / "up").exists(), 20, "twenty sleep")
    done = nook.exec("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.5 & done; echo all")
    assert "all" not in done["stdout"] and done["exit_code"] != 0
    nook.request("PATCH", "/v1/sandbox", json={"limits": {"processes": None}})
    assert nook.exec("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do true & done; echo all")["stdout"] \
        == "all\n"


def test_limits_that_are_not_given_stay(nook):
    limits = {"memory": 256 << 20, "processes": 100}
    assert nook.request("PATCH", "/v1/sandbox", json={"limits": limits}).status == 200
    nook.request("PATCH", "/v1/sandbox", json={"limits": {"fsize": 1 << 20}})
    now = nook.get("/v1/sandbox").json()["limits"]
    assert {k: now[k] for k in limits} == limits


def test_what_a_killed_daemon_left_is_ended_by_the_next(nook):
    p = start(nook, "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 1000")
    deep = pids_in(nook.workspace / "pid", 1)[0]
    wait_until(lambda: in_group(deep), 10, "it is in its group")
    kept = folder_of(deep).parent
    nook.kill()
    wait_until(lambda: not lives(p["pid"]), 10, "the command went with its daemon")
    nook.start()
    wait_until(lambda: not lives(deep) and not kept.exists(), 10, "the next one swept")
    assert nook.exec("true")["exit_code"] == 0


def test_a_daemon_that_lives_keeps_its_groups_beside_another(nook, start_nook):
    p = start(nook, "sleep 1000")
    wait_until(lambda: in_group(p["pid"]), 10, "it is in its group")
    beside = start_nook()
    assert beside.exec("true")["exit_code"] == 0
    assert show(nook, p["id"])["status"] == "running" and folder_of(p["pid"]).exists()


def test_without_them_nothing_is_made_and_all_else_works(start_nook):
    nook = start_nook("--without", "cgroup")
    state = nook.get("/v1/capabilities").json()["isolation"]["cgroup"]
    assert state == {"available": False, "reason": "disabled by --without"}
    p = start(nook, "sleep 0.3; sleep 1000")
    wait_until(lambda: show(nook, p["id"], wait=0.5)["status"] == "running")
    assert path_of(p["pid"]) == path_of(nook.pid)
    nook.post("/v1/sandbox/pause")
    assert status_field(p["pid"], "State")[0] == "T"
    nook.post("/v1/sandbox/resume")
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    assert show(nook, p["id"], wait=30)["reason"] == "killed"


@pytest.mark.pid1
def test_process_1_makes_them_in_a_namespace_of_its_own():
    """A delegated subtree seen through a control group namespace, as in a container."""
    root = Path(tempfile.mkdtemp(prefix="nook-"))
    root.chmod(0o755)
    subtree = groups.Subtree()
    sock = root / "run" / "api.sock"
    script = f"""
        mount -t cgroup2 none /sys/fs/cgroup
        exec {BINARY} serve --socket {sock} --user 12345:12345 --writable {root}/w \
            --output-dir {root}/w --state-dir {root}/state
    """
    (root / "w").mkdir()
    os.chown(root / "w", 12345, 12345)
    argv = [*subtree.enter, "unshare", "--cgroup", "--mount", "--pid", "--fork", "--kill-child",
            "--mount-proc", "sh", "-c", script]
    with open(root / "stderr", "wb") as err:
        proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    try:
        call = [BINARY, "call", "--socket", sock]

        def ready():
            assert proc.poll() is None, (root / "stderr").read_text()
            return subprocess.run([*call, "GET", "/readyz"], capture_output=True,
                                  check=False).returncode == 0

        wait_until(ready, 20, "it is ready")
        done = subprocess.run([BINARY, "exec", "--socket", sock, "--", "sh", "-c",
                               "sleep 0.6; tail -n 1 /proc/self/cgroup"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "/nookd-" in done.stdout and "/m" in done.stdout, done
        assert groups.ours(subtree.path) != []
        subprocess.run([*call, "DELETE", "/v1/sandbox"], capture_output=True, check=False)
        proc.wait(30)
        assert not SANITIZER.search((root / "stderr").read_text())
    finally:
        for pid in descendants_of(proc.pid):
            os.kill(pid, signal.SIGKILL)
        proc.kill()
        proc.wait()
        wait_until(lambda: not (subtree.path / "cgroup.procs").read_text(), 10, "all are gone")
        subtree.remove()
        shutil.rmtree(root)
