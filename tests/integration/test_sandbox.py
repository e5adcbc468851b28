"""The sandbox itself: what it is, how long it lives, pause and resume, its token, its end."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
import time
from datetime import datetime

import pytest

from groups import is_frozen
from nook import BINARY, status_field
from test_processes import listed, pids_in, show, start
from wire import output_of, wait_until


def get(nook):
    return nook.get("/v1/sandbox").json()


def seconds_of(time):
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def patch(nook, **fields):
    return nook.request("PATCH", "/v1/sandbox", json=fields)


def test_it_says_what_it_is(start_nook):
    nook = start_nook("--id", "sb-7", "--ttl", 600, "--idle-timeout", 300)
    box = get(nook)
    assert (box["id"], box["status"], box["idle_timeout"]) == ("sb-7", "active", 300)
    assert box["created_at"] < box["idle_at"] < box["expires_at"]
    assert (box["metadata"], box["env"]) == ({}, {})
    assert box["network"] == {"allow": "all", "enforced_by": "none"}
    nook.exec("true")
    assert get(nook)["counts"] == {"running": 0, "ended": 1, "started": 1}


def test_a_patch_is_all_or_nothing(nook):
    good = {"metadata": {"agent": "planner", "n": 1, "deep": {"a": [True, None]}}}
    assert patch(nook, **good).json()["metadata"] == good["metadata"]
    for bad in ({"ttl_seconds": 0}, {"ttl_seconds": -1}, {"ttl_seconds": "x"},
                {"idle_timeout": 0}, {"metadata": []}, {"metadata": "x"}, {"env": {"1": "x"}},
                {"env": {"A": 1}}, {"limits": {"processes": 0}}, {"limits": {"x": 1}},
                {"network": "some"}, {"network": ["host"]}, {"network": ["host:0"]},
                {"network": ["a b:1"]}, {"nonsense": 1}, {"runtime": "no/such"},
                {"metadata": {"big": "x" * 70000}}):
        response = patch(nook, **{"ttl_seconds": 900, **bad})
        assert response.status == 400, bad
        assert get(nook)["expires_at"] is None, bad
    assert patch(nook, metadata=None).json()["metadata"] == {}
    assert patch(nook).status == 200


def test_env_is_the_default_of_later_commands(nook):
    assert patch(nook, env={"A": "1", "HOME": "/elsewhere"}).json()["env"] == \
        {"A": "1", "HOME": "/elsewhere"}
    assert nook.exec("echo $A $HOME")["stdout"] == "1 /elsewhere\n"
    assert nook.exec("echo $A", env={"A": "2"})["stdout"] == "2\n"
    patch(nook, env={"B": "3"})
    assert nook.exec("echo ${A-none} $B")["stdout"] == "none 3\n"
    patch(nook, env=None)
    assert nook.exec("echo ${A-none} ${B-none}")["stdout"] == "none none\n"


def test_limits_hold_for_later_commands(nook):
    before = get(nook)["limits"]
    assert patch(nook, limits={"fsize": 1000, "processes": 50}).json()["limits"] == \
        {**before, "fsize": 1000, "processes": 50}
    done = nook.exec("grep 'Max processes' /proc/self/limits; head -c 5000 /dev/zero > f; wc -c <f")
    words = done["stdout"].split()
    assert (words[2], words[-1]) == ("50", "1000")
    assert patch(nook, limits={"fsize": None, "processes": None}).json()["limits"] == before
    disk = patch(nook, limits={"disk": 1000})
    assert (disk.status, disk.code) == (501, "not_supported")


def test_changes_at_the_same_time_are_all_kept(nook):
    """Each names its own fields; none may put the others back to what they were."""
    def fields(n):
        return [{"limits": {"processes": 100 + n}}, {"limits": {"memory": (512 + n) << 20}},
                {"limits": {"fsize": 1000 + n}}, {"env": {"N": str(n)}}, {"metadata": {"n": n}}]
    for n in range(12):
        with contextlib.ExitStack() as stack:
            open_ones = [stack.enter_context(nook.connect()) for _ in fields(n)]
            for conn, change in zip(open_ones, fields(n)):
                conn.send_request("PATCH", "/v1/sandbox", json=change)
            assert {conn.read_response().status for conn in open_ones} == {200}
        now = get(nook)
        for change in fields(n):
            for name, value in change.items():
                assert now[name] == value if name != "limits" else value.items() <= now[name].items()


def test_a_change_whose_client_has_left_holds_up_no_other(nook):
    body = b'{"limits":{"processes":150}}'
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(nook.socket))
            s.sendall(b"PATCH /v1/sandbox HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert patch(nook, limits={"processes": 151}).json()["limits"]["processes"] == 151
    assert get(nook)["limits"]["processes"] == 151


def test_a_network_list_is_only_recorded_where_another_enforces_it(start_nook):
    nook = start_nook()
    response = patch(nook, network=["api.example.com:443"], metadata={"a": 1})
    assert (response.status, response.code) == (501, "not_supported")
    assert get(nook)["metadata"] == {}
    assert patch(nook, network="all").status == 200
    outside = start_nook("--network", "none", "--network-enforced-by", "outside")
    assert get(outside)["network"] == {"allow": "none", "enforced_by": "outside"}
    box = patch(outside, network=["api.example.com:443"]).json()
    assert box["network"] == {"allow": ["api.example.com:443"], "enforced_by": "outside"}


def test_the_token_can_be_replaced(tcp_nook):
    response = tcp_nook.request("PUT", "/v1/sandbox/token", json={"token": "new-one"})
    assert response.status == 204
    assert tcp_nook.get("/v1/sandbox", tcp=True).status == 401
    headers = [("Authorization", "Bearer new-one")]
    assert tcp_nook.get("/v1/sandbox", tcp=True, auth=False, headers=headers).status == 200
    for bad in ({}, {"token": ""}, {"token": "a b"}, {"token": "x" * 4097}, {"token": 1},
                {"token": "a", "b": 1}):
        assert tcp_nook.request("PUT", "/v1/sandbox/token", json=bad).status == 400, bad
    assert "new-one" not in tcp_nook.stderr()


def test_usage_has_every_figure(nook):
    nook.get("/v1/sandbox/usage")
    nook.exec("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
    usage = nook.get("/v1/sandbox/usage").json()
    assert usage["cpu_count"] >= 1 and usage["cpu_used_pct"] > 0
    assert 0 < usage["mem_used"] < usage["mem_total"]
    assert 0 < usage["disk_used"] < usage["disk_total"]
    assert usage["processes"] > 0


# its end


def test_deleting_it_ends_everything(nook):
    p = start(nook, "trap 'echo bye > said; exit' TERM; echo up; while :; do sleep 0.01; done")
    wait_until(lambda: show(nook, p["id"])["log_end"] == 3)
    response = nook.request("DELETE", "/v1/sandbox")
    assert response.status == 202 and response.json()["counts"]["running"] == 1
    assert nook.wait() == 0
    assert (nook.workspace / "said").read_text() == "bye\n"

def reads_until_its_end(nook, signo):
    """How many times it has read from anything between the signal and its end."""
    with open(f"/proc/{nook.pid}/io") as io:
        def count():
            try:
                io.seek(0)
                return int(next(line for line in io if line.startswith("syscr")).split()[1])
            except (ProcessLookupError, StopIteration):
                return None
        first = last = count()
        nook.signal(signo)
        while (now := count()) is not None and nook.alive():
            last = now
            time.sleep(0.001)
    return last - first


@pytest.mark.root
@pytest.mark.pid1
def test_the_end_looks_at_all_trees_together(start_nook):
    """One look reads a file of each process. What was left by ended commands is asked, and killed."""
    trees = 100
    nook = start_nook("--grace", 0.3, pid1=True)
    for i in range(trees):
        heeds = "" if i % 2 else "trap '' TERM; "
        nook.exec(f"{heeds}setsid sleep 1000 >/dev/null 2>&1 & echo")
    assert len(nook.descendants()) >= trees
    looks = reads_until_its_end(nook, signal.SIGTERM) / trees
    assert nook.wait() == 0
    assert looks < trees, f"{looks} looks at /proc for the end of {trees} trees"


@pytest.mark.root
@pytest.mark.parametrize("command", ["echo $$ >pid; exec sleep 1000",
                                     "sleep 1000 & echo $! >pid; sleep 0.1"])
def test_the_end_does_not_wait_for_an_output_that_others_hold(nook, command):
    p = start(nook, command)
    pid = pids_in(nook.workspace / "pid", 1)[0]
    wait_until(lambda: "exec" in command or show(nook, p["id"])["status"] == "exited")
    with open(f"/proc/{pid}/fd/1", "wb", buffering=0):
        assert nook.terminate() == 0


def test_it_ends_when_its_time_is_over(start_nook):
    nook = start_nook("--ttl", 1.5, "--grace", 0.1)
    with nook.exec_stream("trap '' TERM; echo up; while :; do sleep 0.01; done") as stream:
        out, _, last = output_of(stream.events())
    assert (out, last.data["reason"], last.data["exit_code"]) == (b"up\n", "ttl", 137)
    assert nook.wait() == 0


@pytest.mark.parametrize("trial", range(8))
def test_an_end_does_not_wait_where_nothing_runs_any_more(start_nook, trial):
    nook = start_nook("--grace", 100)
    assert nook.exec("sleep 600", timeout=0.2)["timed_out"]
    assert nook.terminate() == 0


def test_more_time_is_cut_to_the_longest(start_nook):
    nook = start_nook("--max-ttl", 100, "--ttl", 50)
    first = get(nook)["expires_at"]
    longer = patch(nook, ttl_seconds=90).json()["expires_at"]
    cut = patch(nook, ttl_seconds=100000).json()["expires_at"]
    cleared = patch(nook, ttl_seconds=None).json()["expires_at"]
    assert first < longer < cut <= cleared


def test_a_new_daemon_goes_on_with_the_time_that_is_left(start_nook):
    nook = start_nook("--id", "sb", "--ttl", 3000)
    patch(nook, ttl_seconds=500, idle_timeout=400)
    before = get(nook)
    kept = nook.state / "lifetime"
    wait_until(lambda: kept.exists() and "idle 400000\n" in kept.read_text(), 10)
    nook.kill()  # not even its end is orderly
    nook.start()
    after = get(nook)
    for field in ("created_at", "idle_timeout"):
        assert after[field] == before[field]
    assert abs(seconds_of(after["expires_at"]) - seconds_of(before["expires_at"])) < 0.1
    assert nook.terminate() == 0
    nook.argv[nook.argv.index("sb")] = "another"  # whose state this is not
    nook.start()
    assert get(nook)["expires_at"] > after["expires_at"]
    assert get(nook)["created_at"] > before["created_at"]


def test_a_new_daemon_lives_no_longer_than_it_may(start_nook):
    nook = start_nook("--id", "sb", "--max-ttl", 3000)
    before = get(nook)
    assert nook.terminate() == 0
    nook.argv[nook.argv.index("3000")] = "100"
    nook.start()
    left = seconds_of(get(nook)["expires_at"]) - seconds_of(before["expires_at"])
    assert left < -2000


def test_a_time_that_is_over_is_over_for_the_next_daemon_too(start_nook):
    nook = start_nook("--ttl", 1, "--grace", 0.1)
    assert nook.wait() == 0
    nook.start(ready=False)
    assert nook.wait() == 0


def test_an_ended_sandbox_leaves_no_time_to_the_next(start_nook):
    nook = start_nook("--ttl", 1000)
    before = get(nook)
    assert nook.request("DELETE", "/v1/sandbox").status == 202
    assert nook.wait() == 0 and list(nook.state.iterdir()) == []
    nook.start()
    assert get(nook)["created_at"] > before["created_at"]


def test_it_ends_when_idle_and_not_while_something_runs(start_nook):
    nook = start_nook("--idle-timeout", 1)
    # A foreground command and an open follower are activity; health and lists are not.
    assert nook.exec("sleep 2; echo still here")["stdout"] == "still here\n"
    p = start(nook, "sleep 2; echo end")
    with nook.stream("GET", f"/v1/processes/{p['id']}/follow") as stream:
        assert output_of(stream.events())[0] == b"end\n"
    stop = threading.Event()

    def poke():
        while not stop.wait(0.05):
            try:
                nook.get("/healthz")
                nook.get("/v1/processes")
                nook.get("/v1/sandbox")
            except (ConnectionError, FileNotFoundError, AssertionError, OSError):
                return

    poker = threading.Thread(target=poke)
    poker.start()
    try:
        assert nook.wait(15) == 0
    finally:
        stop.set()
        poker.join(10)


def routes():
    told = subprocess.run([BINARY, "--print-routes"], capture_output=True, check=True).stdout
    return [r for r in json.loads(told)
            if r["operation"] not in ("sandboxDelete", "sandboxPause", "sandboxResume")]


def test_what_counts_as_activity_is_said_of_every_route_and_holds(start_nook):
    nook = start_nook("--idle-timeout", 1000)

    def idle_at():
        """The latest of a few: it is told of two clocks, and who reads them may be held up between."""
        wait_until(lambda: get(nook)["idle_at"], 10)
        return max(seconds_of(get(nook)["idle_at"]) for _ in range(3))

    for route in routes():
        before = idle_at()
        asked = time.monotonic()
        wait_until(lambda since=asked: time.monotonic() - since > 0.04)
        path = re.sub(r"\{[^}]*\}", "x", route["path"])
        with nook.connect() as conn:
            conn.send_request(route["method"].replace("ANY", "GET"), path)
            answer = conn.read_head()
        assert answer.status not in (401, 404, 405) or "{" in route["path"], route["operation"]
        if route["touches"]:
            wait_until(lambda since=before: idle_at() - since > 0.02, 10, route["operation"])
        else:
            assert abs(idle_at() - before) < 0.02, route["operation"]


# pause


@pytest.mark.root
def test_pause_stops_everything_and_resume_goes_on_exactly(nook):
    command = "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); sleep 0.01; done"
    p = start(nook, f"setsid sh -c 'echo $$ > pid; while :; do sleep 0.01; done' & {command}")
    deep = pids_in(nook.workspace / "pid", 1)[0]
    wait_until(lambda: show(nook, p["id"])["log_end"] > 20)
    assert nook.post("/v1/sandbox/pause").json()["status"] == "paused"
    assert is_frozen(p["pid"]) and is_frozen(deep)
    stood = show(nook, p["id"])["log_end"]
    refused = nook.post("/v1/exec", {"command": "true"})
    assert (refused.status, refused.code) == (409, "paused")
    assert nook.get("/healthz").status == 200
    assert nook.post("/v1/sandbox/pause").json()["status"] == "paused"
    assert show(nook, p["id"], wait=0.3)["log_end"] == stood
    assert nook.post("/v1/sandbox/resume").json()["status"] == "active"
    assert show(nook, p["id"], wait=30)["exit_code"] == 0
    out = nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"]
    assert out.split() == [str(i) for i in range(200)]


@pytest.mark.root
def test_a_parent_that_waits_for_its_stopped_vfork_child_is_paused_too(nook):
    """The child is stopped before its exec; the parent cannot be until then."""
    p = start(nook, ["python3", "-c", """if True:
        import ctypes, os
        libc = ctypes.CDLL(None)
        open('pid', 'w').write(str(os.getpid()))
        if libc.syscall(58) == 0:  # vfork
            while True: pass
        """])
    pids_in(nook.workspace / "pid", 1)
    wait_until(lambda: status_field(p["pid"], "State")[0] == "D", 10, "it waits for its child")
    assert nook.post("/v1/sandbox/pause", wait=60).json()["status"] == "paused"
    nook.post("/v1/sandbox/resume")
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    assert show(nook, p["id"], wait=30)["reason"] == "killed"


@pytest.mark.root
def test_a_timeout_stands_still_while_paused(nook):
    p = start(nook, "sleep 1000", timeout=1)
    nook.post("/v1/sandbox/pause")
    assert show(nook, p["id"], wait=1.5)["status"] == "running"
    nook.post("/v1/sandbox/resume")
    done = show(nook, p["id"], wait=30)
    assert (done["timed_out"], done["exit_code"]) == (True, 137)


@pytest.mark.root
def test_a_paused_sandbox_can_be_killed_from_and_ended(nook):
    p = start(nook, "sleep 1000")
    q = start(nook, "sleep 1000")
    nook.post("/v1/sandbox/pause")
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    assert show(nook, p["id"], wait=30)["reason"] == "killed"
    assert [x["id"] for x in listed(nook, "?running=true")] == [q["id"]]
    assert nook.terminate() == 0


@pytest.mark.root
def test_a_paused_sandbox_does_not_idle(start_nook):
    nook = start_nook("--idle-timeout", 1)
    nook.post("/v1/sandbox/pause")
    assert nook.get("/v1/sandbox").json()["idle_at"] is None
    p = wait_until(lambda: nook.get("/v1/sandbox"), 5)
    assert p.json()["status"] == "paused"
    threading.Event().wait(1.6)  # longer than the idle time: nothing may happen
    assert nook.get("/v1/sandbox").json()["status"] == "paused"
    assert nook.post("/v1/sandbox/resume").status == 200


def test_a_resume_whose_client_has_left_lets_the_sandbox_idle_again(start_nook):
    nook = start_nook("--idle-timeout", 1, "--grace", 0.1)
    assert nook.post("/v1/sandbox/pause").status == 200
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(nook.socket))
        s.sendall(b"POST /v1/sandbox/resume HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert nook.wait(30) == 0
