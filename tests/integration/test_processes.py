"""Processes: started, listed, shown, killed, remembered for a while, forgotten."""

import os
import signal as signals
import threading

import pytest

from groups import is_frozen
from nook import all_pids, is_sanitized, proc_stat, scaled, status_field
from wire import wait_until


def start(nook, command, **fields):
    response = nook.post("/v1/processes", {"command": command, **fields})
    assert response.status == 201, response
    return response.json()


def show(nook, name, wait=None):
    target = f"/v1/processes/{name}" + (f"?wait={wait}" if wait is not None else "")
    response = nook.get(target, wait=90)
    assert response.status == 200, response
    return response.json()


def listed(nook, query=""):
    return nook.get("/v1/processes" + query).json()["processes"]


def lives(pid):
    try:
        return status_field(pid, "State")[0] not in "ZX"
    except (FileNotFoundError, KeyError, ProcessLookupError):
        return False


def test_a_process_is_started_shown_and_ends_by_itself(nook):
    p = start(nook, ["sh", "-c", "echo out; echo err >&2; exit 7"], name="once")
    assert (p["name"], p["status"], p["command"][2][:8]) == ("once", "running", "echo out")
    done = show(nook, p["id"], wait=30)
    assert (done["status"], done["exit_code"], done["reason"]) == ("exited", 7, "exited")
    assert (done["stdout_size"], done["stderr_size"], done["log_end"]) == (4, 4, 8)
    assert done["started_at"] <= done["ended_at"]
    assert show(nook, "once")["id"] == p["id"]


def test_a_name_is_unique_among_the_running_ones(nook):
    first = start(nook, "sleep 1000", name="web")
    again = nook.post("/v1/processes", {"command": "true", "name": "web"})
    assert (again.status, again.code) == (409, "exists")
    nook.post("/v1/processes/web/kill")
    show(nook, first["id"], wait=30)
    second = start(nook, "sleep 1000", name="web")
    assert show(nook, "web")["id"] == second["id"] != first["id"]


def test_the_name_of_a_forgotten_one_is_free_at_once(nook):
    for _ in range(20):  # the kill may take longer than the next start
        start(nook, "sleep 1000", name="web")
        assert nook.request("DELETE", "/v1/processes/web").status == 204
    assert listed(nook) == []


def test_an_id_is_never_taken_for_a_name(nook):
    first = start(nook, "sleep 1000")
    second = start(nook, "sleep 1000", name=first["id"])
    assert show(nook, first["id"])["id"] == first["id"]
    assert nook.request("DELETE", f"/v1/processes/{first['id']}").status == 204
    assert show(nook, second["id"])["status"] == "running"


def test_a_name_of_ended_ones_is_the_newest_of_them(nook):
    keyed = nook.post("/v1/processes", {"command": "true", "name": "once"},
                      headers=[("Idempotency-Key", "k")]).json()
    show(nook, keyed["id"], wait=30)
    second = start(nook, "true", name="once")
    show(nook, second["id"], wait=30)
    assert show(nook, "once")["id"] == second["id"]


def test_a_name_may_be_as_long_as_the_contract_says(nook):
    assert show(nook, start(nook, "sleep 1000", name="x" * 64)["id"])["name"] == "x" * 64


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 65, "ü", "a%2f"])
def test_a_name_that_is_no_path_segment_is_refused(nook, name):
    response = nook.post("/v1/processes", {"command": "true", "name": name})
    assert (response.status, response.code) == (400, "bad_request")
    assert listed(nook) == []


def test_a_wait_ends_with_the_process_or_with_its_time(nook):
    p = start(nook, "while [ ! -e go ]; do sleep 0.01; done")
    assert show(nook, p["id"], wait=0.05)["status"] == "running"
    seen = []
    waiter = threading.Thread(target=lambda: seen.append(show(nook, p["id"], wait=60)))
    waiter.start()
    (nook.workspace / "go").touch()
    waiter.join(30)
    assert seen[0]["status"] == "exited"
    for bad in ("61", "-1", "x", "", "1e1", "nan"):
        assert nook.get(f"/v1/processes/{p['id']}?wait={bad}").status == 400, bad


def test_what_is_not_there_is_not_found(nook):
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/logs"), ("GET", "/follow"),
                         ("POST", "/kill")):
        response = nook.request(method, "/v1/processes/nobody" + tail)
        assert (response.status, response.code) == (404, "not_found")
    response = nook.post("/v1/processes/nobody/stdin", {"text": "x"})
    assert (response.status, response.code) == (404, "not_found")


def test_the_list_has_the_newest_first_and_can_be_cut(nook):
    ids = [start(nook, "sleep 1000")["id"] for _ in range(3)]
    ended = nook.exec("true")["id"]
    assert [p["id"] for p in listed(nook)] == [ended, *reversed(ids)]
    assert [p["id"] for p in listed(nook, "?running=true")] == list(reversed(ids))
    assert [p["id"] for p in listed(nook, "?limit=2")] == [ended, ids[2]]
    for bad in ("?limit=x", "?limit=-1", "?running=maybe", "?color=red"):
        assert nook.get("/v1/processes" + bad).status == 400, bad


def test_environment_values_are_not_shown(nook):
    start(nook, "sleep 1000", env={"SECRET": "s3cr3t"})
    assert "s3cr3t" not in nook.get("/v1/processes").text
    assert "s3cr3t" not in nook.stderr()


# ends


@pytest.mark.parametrize("spelled", ["TERM", "SIGTERM", 15])
def test_a_signal_has_a_name_or_a_number(nook, spelled):
    p = start(nook, "sleep 1000")
    response = nook.post(f"/v1/processes/{p['id']}/kill", {"signal": spelled})
    assert response.status == 200 and response.json()["id"] == p["id"]
    done = show(nook, p["id"], wait=30)
    assert (done["exit_code"], done["signal"], done["reason"]) == (143, "TERM", "killed")
    assert done["killed"] is True


def test_a_program_that_heeds_a_signal_ends_by_itself(nook):
    p = start(nook, "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done")
    wait_until(lambda: show(nook, p["id"])["log_end"] == 3)
    nook.post(f"/v1/processes/{p['id']}/kill")
    done = show(nook, p["id"], wait=30)
    assert (done["exit_code"], done["reason"], done["killed"]) == (5, "exited", False)


@pytest.mark.parametrize("bad", ["NOPE", "", 0, -1, 65, 1.5, True, None, [], "15x", "SIG"])
def test_a_signal_that_is_none_is_refused(nook, bad):
    p = start(nook, "sleep 1000")
    response = nook.post(f"/v1/processes/{p['id']}/kill", {"signal": bad})
    assert (response.status, response.code) == (400, "bad_signal")
    assert show(nook, p["id"])["status"] == "running"


def test_a_kill_is_told_as_one(nook):
    p = start(nook, "trap '' TERM INT; while :; do sleep 1; done")
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    done = show(nook, p["id"], wait=30)
    assert (done["exit_code"], done["signal"], done["reason"]) == (137, "KILL", "killed")
    assert done["killed"] is True
    again = nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    assert again.status == 200 and again.json()["status"] == "exited"


def test_a_stopped_process_can_act_on_term(nook):
    p = start(nook, "trap 'echo bye; exit 3' TERM; echo up; kill -STOP $$; sleep 1000")
    wait_until(lambda: status_field(p["pid"], "State")[0] == "T", 10, "it stops")
    nook.post(f"/v1/processes/{p['id']}/kill")
    assert show(nook, p["id"], wait=30)["exit_code"] == 3
    assert nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"] == "up\nbye\n"


def test_a_signal_can_be_for_the_leader_alone(nook):
    p = start(nook, "sh -c 'trap \"echo child\" USR1; echo up; while :; do sleep 0.01; done' & "
                    "trap 'echo leader; kill $!; exit' USR1; while :; do sleep 0.01; done")
    wait_until(lambda: "up" in nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"])
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "USR1", "tree": False})
    show(nook, p["id"], wait=30)
    assert nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"] == "up\nleader\n"


TREE = ("setsid sh -c 'echo $$ >> pids; exec -a renamed sleep 1000' & "
        "sh -c '(setsid sleep 1000 & echo $! >> pids) &' ; sleep 1000 & echo $! >> pids; "
        "echo $$ >> pids; wait")


def pids_in(path, count):
    def all_there():
        lines = path.read_text().split() if path.exists() else []
        return len(lines) >= count and [int(x) for x in lines]
    return wait_until(all_there, 20, f"{count} pids in {path.name}")


@pytest.mark.root
def test_a_tree_is_signalled_once_not_what_it_starts_on_hearing_it(nook):
    p = start(nook, "trap 'sh -c \"sleep 0.2; echo cleaned\"; exit 3' TERM; echo up; "
                    "while :; do sleep 0.01; done", name="cleans")
    wait_until(lambda: "up" in nook.get("/v1/processes/cleans/logs").json()["stdout"])
    nook.post(f"/v1/processes/{p['id']}/kill")
    done = nook.get(f"/v1/processes/{p['id']}?wait=20").json()
    assert done["exit_code"] == 3
    assert nook.get("/v1/processes/cleans/logs").json()["stdout"] == "up\ncleaned\n"


def test_killing_a_tree_reaches_what_daemonized(nook):
    p = start(nook, ["bash", "-c", TREE])
    pids = pids_in(nook.workspace / "pids", 4)
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    wait_until(lambda: not any(map(lives, pids)), 20, "the whole tree is gone")
    assert show(nook, p["id"], wait=30)["tree"] is False


HEADLESS = """
import ctypes, os, threading, time
if os.fork():
    os._exit(0)
os.setsid()
def go_on():
    while open(f"/proc/{os.getpid()}/stat").read().split()[2] != "Z":
        time.sleep(0.01)
    open("pid", "w").write(str(os.getpid()))
    while True:
        time.sleep(0.01)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(0)
"""


def has_living_thread(pid):
    try:
        return any((proc_stat(f"{pid}/task/{tid}") or "Z")[0] != "Z"
                   for tid in os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return False


@pytest.mark.root
@pytest.mark.parametrize("means", [(), ("--without", "cgroup")], ids=["group", "walk"])
def test_a_process_whose_first_thread_has_ended_is_no_dead_one(start_nook, means):
    """It shows as a zombie, and its other threads do what they like."""
    nook = start_nook(*means)
    p = start(nook, ["python3", "-c", HEADLESS])
    pid = pids_in(nook.workspace / "pid", 1)[0]
    assert proc_stat(pid)[0] == "Z"
    wait_until(lambda: show(nook, p["id"])["status"] == "exited")
    assert show(nook, p["id"])["tree"] is True
    assert nook.post("/v1/sandbox/pause", wait=60).status == 200
    last = next(t for t in os.listdir(f"/proc/{pid}/task") if int(t) != pid)
    assert is_frozen(pid) or proc_stat(f"{pid}/task/{last}")[0] == "T"
    assert nook.post("/v1/sandbox/resume", wait=60).status == 200
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    wait_until(lambda: not has_living_thread(pid), 20, "it is gone")


GROWING = """
import os, time
open("pid", "w").write(str(os.getpid()))
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        time.sleep(0.001)
"""


@pytest.mark.root
@pytest.mark.parametrize("means", [(), ("--without", "cgroup")], ids=["group", "walk"])
def test_a_bomb_that_grows_while_it_is_killed_ends(start_nook, means):
    """Whoever dies makes room for another, in a session of its own, that its killer has not met."""
    nook = start_nook("--max-processes", 40, *means)
    p = start(nook, ["python3", "-c", GROWING])
    pids_in(nook.workspace / "pid", 1)
    wait_until(lambda: len(nook.descendants()) > 20, 20, "it has grown")
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"}, wait=60)
    wait_until(lambda: not nook.descendants(), 30, "nothing of it is left")


@pytest.mark.root
def test_a_background_child_of_an_ended_command_is_seen_and_can_be_killed(nook):
    p = start(nook, "setsid sh -c 'echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 & "
                    "while [ ! -s pid ]; do sleep 0.01; done")
    done = show(nook, p["id"], wait=30)
    assert (done["status"], done["exit_code"], done["tree"]) == ("exited", 0, True)
    pid = pids_in(nook.workspace / "pid", 1)[0]
    assert lives(pid)
    assert listed(nook, "?running=true") == []
    nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    wait_until(lambda: not lives(pid), 20, "the background child is gone")
    wait_until(lambda: show(nook, p["id"])["tree"] is False, 20, "tree is false")


@pytest.mark.root
def test_forgetting_a_process_ends_all_of_it(nook):
    p = start(nook, "setsid sleep 1000 >/dev/null 2>&1 & echo $! > pid")
    pid = pids_in(nook.workspace / "pid", 1)[0]
    show(nook, p["id"], wait=30)
    assert nook.request("DELETE", f"/v1/processes/{p['id']}").status == 204
    assert nook.get(f"/v1/processes/{p['id']}").status == 404
    wait_until(lambda: not lives(pid), 20, "the background child is gone")


def test_a_background_child_holds_no_slot(start_nook):
    nook = start_nook("--max-commands", 1)
    p = start(nook, "sleep 1000 & echo hi")
    assert show(nook, p["id"], wait=30)["tree"] is True
    assert nook.exec("echo free")["stdout"] == "free\n"


def test_what_a_background_child_writes_goes_to_the_log(nook):
    p = start(nook, "(while [ ! -e go ]; do sleep 0.01; done; echo late) & echo hi")
    done = show(nook, p["id"], wait=30)
    assert (done["stdout_size"], done["log_end"]) == (3, 3)
    (nook.workspace / "go").touch()
    wait_until(lambda: show(nook, p["id"])["log_end"] == 8, 20, "the late bytes")
    now = show(nook, p["id"])
    assert now["stdout_size"] == 3
    assert nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"] == "hi\nlate\n"


def test_ports_of_a_tree_are_told(nook):
    p = start(nook, ["python3", "-c",
                     "import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\n"
                     "s.listen()\nprint(s.getsockname()[1], flush=True)\ntime.sleep(1000)"])
    port = int(wait_until(lambda: nook.get(f"/v1/processes/{p['id']}/logs").json()["stdout"], 20))
    assert show(nook, p["id"])["ports"] == [port]
    assert listed(nook)[0]["ports"] == [port]
    other = start(nook, "sleep 1000")
    assert show(nook, other["id"])["ports"] == []


# bounds


def test_only_the_newest_ended_ones_are_remembered(nook):
    alive = start(nook, "sleep 1000", name="alive")
    ids = [nook.exec("true")["id"] for _ in range(260)]
    kept = [p["id"] for p in listed(nook)]
    assert kept == [*reversed(ids[-256:]), alive["id"]]
    assert nook.get(f"/v1/processes/{ids[0]}").status == 404


def test_the_oldest_lose_their_output_first(start_nook):
    nook = start_nook("--log-total", 256 * 1024, "--log-bytes", 65536)
    ids = [nook.exec("head -c 60000 /dev/zero | tr '\\0' x")["id"] for _ in range(8)]
    held = [show(nook, one)["log_start"] == 0 for one in ids]
    assert held[0] is False and held[-1] is True
    assert held == sorted(held)
    gone = nook.get(f"/v1/processes/{ids[0]}/logs?since=0")
    assert (gone.status, gone.code) == (410, "gone")
    assert gone.json()["error"]["log_start"] == 60000


@pytest.mark.slow
def test_many_processes_one_after_another_cost_nothing(nook):
    count = scaled(20000, 600)
    warm = scaled(2000, 300)
    with nook.connect() as conn:
        def run(n):
            for _ in range(n):
                response = conn.request("POST", "/v1/processes", json={"command": ["true"]})
                assert response.status == 201, response
                one = response.json()["id"]
                done = conn.request("GET", f"/v1/processes/{one}?wait=30").json()
                assert done["exit_code"] == 0
        run(warm)
        before, fds = nook.rss(), len(nook.fds())
        run(count - warm)
    assert len(listed(nook)) == 256
    wait_until(lambda: not nook.zombies(), 10, "the dead are reaped")
    wait_until(lambda: len(nook.fds()) <= fds, 10, "descriptors are back")
    if not is_sanitized():
        assert nook.rss() - before < 1 << 20


@pytest.mark.slow
def test_many_clients_at_the_same_processes_do_no_harm(nook):
    """Followers, signals, deletes and looks of the same processes, all at once."""
    stop = threading.Event()
    wrong = []
    names = [f"p{i}" for i in range(8)]

    def client(seed):
        import random
        rng = random.Random(seed)
        with nook.connect() as conn:
            while not stop.is_set():
                name = rng.choice(names)
                what = rng.randrange(7)
                if what == 0:
                    conn.request("POST", "/v1/processes",
                                 json={"command": "yes | head -c 100000; sleep 0.05", "name": name})
                elif what == 1:
                    conn.request("DELETE", f"/v1/processes/{name}")
                elif what == 2:
                    conn.request("POST", f"/v1/processes/{name}/kill",
                                 json={"signal": rng.choice(["TERM", "KILL", "INT"])})
                elif what == 3:
                    follow(name, rng)
                elif what == 4:
                    conn.request("GET", f"/v1/processes/{name}/logs?tail=10")
                elif what == 5:
                    conn.request("POST", f"/v1/processes/{name}/stdin", json={"text": "x"})
                else:
                    conn.request("GET", "/v1/processes")

    def follow(name, rng):
        with nook.connect() as conn:
            conn.send_request("GET", f"/v1/processes/{name}/follow")
            try:
                for _ in range(rng.randrange(4)):
                    conn.recv(rng.randrange(1, 20000), wait=5)
            except AssertionError:
                pass

    def guarded(seed):
        try:
            client(seed)
        except Exception as e:  # noqa: BLE001 - told in the main thread
            wrong.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(scaled(32, 16))]
    for t in threads:
        t.start()
    stop.wait(scaled(60, 12))
    stop.set()
    for t in threads:
        t.join(60)
    assert wrong == []
    assert nook.get("/healthz").status == 200
    for p in listed(nook, "?running=true"):
        nook.request("DELETE", f"/v1/processes/{p['id']}")
    wait_until(lambda: not nook.children(), 20, "every child is reaped")


def test_nothing_of_a_users_is_left_when_the_daemon_ends(nook):
    start(nook, "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; echo $$ > pid; "
                "while :; do sleep 1; done' & while :; do sleep 1; done")
    pid = pids_in(nook.workspace / "pid", 1)[0]
    assert nook.terminate(signals.SIGTERM, seconds=30) == 0
    assert pid not in all_pids() or not lives(pid)
    assert not os.path.exists(nook.socket)
