"""What a hostile user of the sandbox, or a short one of memory, can do to the daemon: nothing."""

import json
import mmap
import resource
import threading

import pytest

from nook import BINARY, is_sanitized, scaled, status_field
from test_processes import listed, start
from wire import Closed, wait_until


def in_threads(count, fn):
    """Runs fn(i) for each i at once; what went wrong, and what came back."""
    wrong, out = [], [None] * count

    def guarded(i):
        try:
            out[i] = fn(i)
        except Exception as e:  # noqa: BLE001 - told in the main thread
            wrong.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
    assert wrong == []
    return out


@pytest.mark.slow
@pytest.mark.root
def test_a_user_who_stops_everything_it_may_stops_no_start_and_not_the_daemon(start_nook):
    """kill(-1, SIGSTOP) in a loop, and processes that spin, while others of that user start."""
    nook = start_nook("--max-processes", 2000)
    total, clients = scaled(5000, 160), 8
    stopper = start(nook, ["python3", "-c",
                           "import os, signal\nprint('on', flush=True)\n"
                           "while True:\n try: os.kill(-1, signal.SIGSTOP)\n"
                           " except ProcessLookupError: pass"])
    wait_until(lambda: nook.get(f"/v1/processes/{stopper['id']}/logs").json()["stdout"])
    stop_health = threading.Event()
    answered = []

    def health():
        with nook.connect() as conn:
            while not stop_health.is_set():
                assert conn.request("GET", "/healthz").status == 200
                answered.append(1)

    def starts(_):
        ends = {"done": 0, "killed": 0, "refused": 0}
        with nook.connect(wait=60) as conn:
            for _ in range(total // clients):
                # A command that is stopped for ever is ended by its timeout.
                body = {"command": ["true"], "timeout": 0.2}
                response = conn.request("POST", "/v1/exec", json=body)
                if response.status == 200:
                    done = response.json()
                    assert done["exit_code"] in (0, 137), done
                    ends["done" if done["exit_code"] == 0 else "killed"] += 1
                else:
                    assert (response.status, response.code) == (503, "overloaded"), response
                    ends["refused"] += 1
        return ends

    watcher = threading.Thread(target=health)
    watcher.start()
    try:
        ends = in_threads(clients, starts)
    finally:
        stop_health.set()
        watcher.join(30)
    assert sum(sum(e.values()) for e in ends) == total // clients * clients
    assert len(answered) > 10
    nook.request("DELETE", f"/v1/processes/{stopper['id']}")
    wait_until(lambda: not listed(nook, "?running=true"), 30)
    assert nook.exec("echo fine")["stdout"] == "fine\n"


@pytest.mark.slow
def test_processes_that_spin_do_not_keep_the_daemon_from_answering(start_nook):
    nook = start_nook("--max-processes", 2000)
    count = scaled(256, 32)
    spinner = start(nook, f"i=0; while [ $i -lt {count} ]; do (while :; do :; done) & "
                          "i=$((i+1)); done; echo on; wait")
    wait_until(lambda: nook.get(f"/v1/processes/{spinner['id']}/logs").json()["stdout"] == "on\n",
               60)
    for _ in range(scaled(50, 10)):
        assert nook.get("/healthz").status == 200
        assert nook.exec("echo fine")["stdout"] == "fine\n"
    nook.post(f"/v1/processes/{spinner['id']}/kill", {"signal": "KILL"})
    wait_until(lambda: not nook.descendants(), 60, "all of them are gone")


@pytest.mark.slow
def test_no_child_ever_sees_a_descriptor_of_ours_and_all_come_back(nook):
    """Each of many starts at once has 0, 1 and 2; the daemon's own count is where it was."""
    total, clients = scaled(10_000, 640), 64
    nook.exec("true")
    before = len(nook.fds())
    # The descriptor of the folder that ls reads itself is the one more.
    command = ["sh", "-c", "exec ls /proc/self/fd"]

    def starts(_):
        with nook.connect(wait=120) as conn:
            for _ in range(total // clients):
                response = conn.request("POST", "/v1/exec", json={"command": command})
                assert response.json()["stdout"].split() == ["0", "1", "2", "3"], response

    in_threads(clients, starts)
    wait_until(lambda: len(nook.fds()) <= before, 10, "every descriptor is back")
    wait_until(lambda: not nook.zombies(), 10, "the dead are reaped")


@pytest.mark.slow
@pytest.mark.root
def test_a_fork_bomb_ends_with_its_timeout(start_nook):
    nook = start_nook("--max-processes", 200)
    bomb = nook.post("/v1/exec", {"command": ["bash", "-c", ":(){ :|:& };: 2>/dev/null; sleep 100"],
                                  "timeout": 2}, wait=60)
    assert bomb.status == 200 and bomb.json()["timed_out"], bomb
    wait_until(lambda: not nook.descendants(), 30, "nothing of it is left")
    assert nook.exec("echo fine")["stdout"] == "fine\n"


# Memory that is refused. The shim counts allocations from a mark and refuses the one asked for.

SHIM = BINARY.parent / "tests" / "libfailalloc.so"


class Shim:
    def __init__(self, path):
        path.write_bytes(b"\0" * 4096)
        path.chmod(0o600)
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    def fail_at(self, k):
        """The k-th allocation from now on is refused; 0: none."""
        self.map[0:8] = (0).to_bytes(8, "little")
        self.map[8:16] = k.to_bytes(8, "little")

    @property
    def hit(self):
        return int.from_bytes(self.map[0:8], "little") >= int.from_bytes(self.map[8:16], "little")


def scenario(method, target, body=None, headers=()):
    return method, target, body, list(headers)


SCENARIOS = {
    "health": scenario("GET", "/healthz"),
    "metrics": scenario("GET", "/metrics"),
    "capabilities": scenario("GET", "/v1/capabilities"),
    "exec": scenario("POST", "/v1/exec", {"command": "echo out; echo err >&2", "env": {"A": "1"}}),
    "argv and stdin": scenario("POST", "/v1/exec", {"command": ["cat"], "stdin": "x" * 100_000}),
    "missing program": scenario("POST", "/v1/exec", {"command": ["/nonexistent"]}),
    "timeout": scenario("POST", "/v1/exec", {"command": "sleep 100", "timeout": 0.01}),
    "stream": scenario("POST", "/v1/exec/stream", {"command": "seq 20000; echo e >&2"}),
    "report files": scenario("POST", "/v1/exec", {"command": "echo x > f", "report_files": True}),
    "code": scenario("POST", "/v1/code", {"code": "cat > f; echo $1", "language": "sh",
                                          "args": ["a"], "stdin": "x"}),
    "code stream": scenario("POST", "/v1/code/stream", {"code": "echo x", "language": "bash"}),
    "bad json": scenario("POST", "/v1/exec", None, [("Content-Type", "application/json")]),
    "start": scenario("POST", "/v1/processes", {"command": "true", "name": "n"}),
    "list": scenario("GET", "/v1/processes"),
    "show": scenario("GET", "/v1/processes/here"),
    "logs": scenario("GET", "/v1/processes/here/logs"),
    "follow": scenario("GET", "/v1/processes/ended/follow"),
    "stdin": scenario("POST", "/v1/processes/here/stdin", {"text": "hello"}),
    "kill": scenario("POST", "/v1/processes/here/kill", {"signal": "CONT"}),
    "unknown": scenario("GET", "/v1/nothing"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_allocation_of_a_request_may_fail_once(start_nook, tmp_path, name):
    """The request is answered, refused or its connection closed; the next one works."""
    if is_sanitized():
        pytest.skip("the sanitizer has an allocator of its own")
    if not SHIM.exists():
        pytest.skip(f"{SHIM} is not built")
    method, target, body, headers = SCENARIOS[name]
    shim = Shim(tmp_path / "shim")
    nook = start_nook(env={"LD_PRELOAD": str(SHIM), "FAILALLOC": str(tmp_path / "shim")})
    start(nook, "cat", name="here", stdin_open=True)
    start(nook, "echo hello", name="ended")
    wait_until(lambda: nook.get("/v1/processes/ended").json()["status"] == "exited")
    raw = None if body is None else json.dumps(body).encode()
    if raw is not None:
        headers = [*headers, ("Content-Type", "application/json")]
    fds = len(nook.fds())
    statuses, k = {}, 0
    while k < 400:
        k += 1
        conn = nook.connect(wait=20)
        shim.fail_at(k)
        try:
            status = conn.request(method, target, body=raw, headers=headers).status
        except (Closed, ConnectionError, BrokenPipeError):
            status = "closed"
        conn.close()
        hit = shim.hit
        shim.fail_at(0)
        statuses[status] = statuses.get(status, 0) + 1
        assert nook.get("/healthz").status == 200, f"after allocation {k}"
        if not hit:
            break
    else:
        pytest.fail("more allocations than anybody can believe")
    assert set(statuses) <= {200, 201, 204, 400, 404, 409, 500, 503, "closed"}, statuses
    assert nook.exec("echo fine")["stdout"] == "fine\n"
    wait_until(lambda: len(nook.fds()) <= fds, 10, "every descriptor is back")
    wait_until(lambda: {p["id"] for p in listed(nook, "?running=true")} ==
               {nook.get("/v1/processes/here").json()["id"]}, 20, "nothing else runs")
    wait_until(lambda: not nook.zombies(), 10, "the dead are reaped")


def test_commands_are_the_first_to_go_when_memory_is_short(nook):
    p = start(nook, "sleep 1000")
    own = int(open(f"/proc/{nook.pid}/oom_score_adj").read())
    assert int(open(f"/proc/{p['pid']}/oom_score_adj").read()) >= max(500, own)
    assert status_field(p["pid"], "NoNewPrivs") == "1"


def test_a_daemon_without_descriptors_refuses_and_recovers(start_nook):
    nook = start_nook()
    limit = len(nook.fds()) + 40
    resource.prlimit(nook.pid, resource.RLIMIT_NOFILE, (limit, limit))
    conns = []
    try:
        for _ in range(60):
            conn = nook.connect(wait=5)
            conn.send_request("POST", "/v1/exec", json={"command": "sleep 1000"})
            conns.append(conn)
        assert nook.alive()
        wait_until(lambda: len(nook.fds()) >= limit - 4, 10, "descriptors run out")
    finally:
        for conn in conns:
            conn.close()
    wait_until(lambda: nook.post("/v1/exec", {"command": "true"}).status == 200, 20,
               "commands start again")
