"""The important part of the suite inside gVisor: what its kernels lack, the daemon does in other ways.

Each scenario is one of `integration/`'s, asked of a place; the number or keyword of its list stands in
its name.
"""

import contextlib
import subprocess
import threading
import time

import pytest

import ws_client
from wire import output_of, wait_until

pytestmark = pytest.mark.place


@pytest.fixture(autouse=True)
def only_in_gvisor(place):
    if not place.gvisor:
        pytest.skip(f"{place.name} is no gVisor")


def start(place, command, **fields):
    answer = place.post("/v1/processes", {"command": command, **fields})
    assert answer.status == 201, answer
    return answer.json()


def show(place, p, wait=None):
    return place.get(f"/v1/processes/{p['id']}" + (f"?wait={wait}" if wait else ""), wait=90).json()


def out_of(place, p):
    return place.get(f"/v1/processes/{p['id']}/logs").json()["stdout"]


def forget(place, *processes):
    for p in processes:
        assert place.request("DELETE", f"/v1/processes/{p['id']}").status == 204


def said_by(argv):
    """What a program in the place, as root, writes."""
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout



# process 1


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 128, 255])
def test_I1_exit_codes_come_back_unchanged(place, code):
    assert place.exec(f"exit {code}")["exit_code"] == code


@pytest.mark.parametrize("name, number", [("HUP", 1), ("INT", 2), ("KILL", 9),
                                          ("USR1", 10), ("TERM", 15)])
def test_I2_death_by_a_signal_is_told_as_such(place, name, number):
    done = place.exec(f"kill -{name} $$")
    assert (done["signal"], done["exit_code"]) == (name, 128 + number)


def test_I3_orphans_of_staggered_length_are_all_reaped(place):
    p = start(place, "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.$i & sleep 0.0$i &); done; echo up")
    assert show(place, p, wait=30)["exit_code"] == 0

    def zombies():
        script = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z' || true"
        return said_by(place.inside("/bin/sh", "-c", script)).strip()

    wait_until(lambda: zombies() == "0" and not show(place, p)["tree"], 30, "none is left")


@pytest.mark.parametrize("code, command", [("ENOENT", "/nowhere"), ("EACCES", "/workspace")])
def test_I22_what_cannot_be_started_says_why(place, code, command):
    refused = place.post("/v1/exec", {"command": [command]})
    assert refused.code == "exec_failed"
    assert (refused.json()["error"]["errno"], refused.json()["error"]["stage"]) == (code, "exec")


# hygiene


def test_CVE_2024_21626_a_command_has_three_descriptors(place):
    assert place.exec(["ls", "/proc/self/fd"])["stdout"].split() == ["0", "1", "2", "3"]
    loop = "for i in 1 2 3 4 5 6 7 8; do ls /proc/self/fd | wc -l & done; wait"
    assert set(place.exec(loop)["stdout"].split()) == {"4"}


def test_CVE_2019_5736_the_binary_cannot_be_written_from_inside(place):
    assert place.exec("echo x >> /sbin/nookd; echo x >> /proc/1/exe")["exit_code"] != 0
    assert place.exec(["/sbin/nookd", "--version"])["exit_code"] == 0


def test_CVE_2016_9962_nothing_of_the_daemon_opens_for_the_code_inside(place):
    for name in ("mem", "cwd/etc", "root/etc"):
        assert place.exec(f"exec 3</proc/1/{name}")["exit_code"] != 0, name
    # What old gVisor opens anew by its name is what has one: the log, and the user's own folders.
    inner = "for f in /proc/1/fd/*; do case $(readlink $f) in pipe:*|socket:*|anon_inode:*)" \
            " (exec 3<$f) 2>/dev/null && echo $f;; esac; done"
    assert place.exec(inner)["stdout"] == ""
    assert place.exec("kill -KILL 1")["exit_code"] != 0
    assert place.exec("kill -STOP 1")["exit_code"] != 0


def test_token_theft_no_secret_is_in_the_daemons_environment_or_arguments(place):
    """Old gVisor shows both to anybody."""
    token = said_by(place.inside("cat", "/run/nookd/token")).strip()
    seen = place.exec("cat /proc/1/environ /proc/1/cmdline /proc/self/environ 2>/dev/null")["stdout"]
    assert "NOOKD_TOKEN" not in seen and (not token or token not in seen)


def test_setgroups_order_the_user_cannot_become_root_again(place):
    status = place.exec("grep -E '^(Uid|Gid|Groups)' /proc/self/status")["stdout"].split("\n")
    words = {line.split(":")[0]: line.split()[1:] for line in status if line}
    assert set(words["Uid"]) == {"1000"} and set(words["Gid"]) == {"1000"}
    assert "0" not in words["Groups"] and len(words["Groups"]) <= 2
    capabilities = place.exec("grep -E '^Cap(Prm|Eff|Inh)' /proc/self/status")["stdout"].split()
    assert set(capabilities[1::2]) == {"0" * 16}


def test_hardlinks_and_special_files_block_nobody(place):
    made = place.exec("rm -f fifo dev; mkfifo fifo 2>/dev/null || busybox mkfifo fifo;"
                      "busybox mknod dev c 1 5; true")
    assert made["exit_code"] == 0
    for name in ("fifo", "dev"):
        refused = place.get(f"/v1/files?path={name}")
        assert refused.status in (400, 403, 404), name


def test_the_socket_does_not_open_for_the_code_inside(place):
    done = place.exec(["/sbin/nookd", "call", "GET", "/v1/sandbox"])
    assert done["exit_code"] != 0 and '"id"' not in done["stdout"]


# trees, pause, time


def test_a_kill_reaches_what_daemonized_twice(place):
    p = start(place, "for i in 1 2 3 4 5 6 7 8; do setsid sh -c '(setsid sleep 1000 &) ; sleep 1000' &"
                     " done; echo up; wait")
    wait_until(lambda: out_of(place, p) == "up\n", 30, "they run")
    count = ["/bin/sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | "
                              "grep -o 'sleep 1000' | wc -l"]
    wait_until(lambda: int(said_by(place.inside(*count))) >= 16, 30, "all sleep")
    place.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    assert show(place, p, wait=30)["reason"] == "killed"
    wait_until(lambda: int(said_by(place.inside(*count))) <= 1, 30, "none is left")
    forget(place, p)


def test_a_fork_bomb_ends_with_its_timeout_and_health_answers(place):
    stop, answered, wrong = threading.Event(), [], []

    def ask():
        try:
            with place.connect(wait=30) as conn:
                while not stop.wait(0.02):
                    assert conn.request("GET", "/healthz").status == 200
                    answered.append(1)
        except Exception as e:  # noqa: BLE001 - told below
            wrong.append(e)

    place.request("PATCH", "/v1/sandbox", json={"limits": {"processes": 60}})
    health = threading.Thread(target=ask)
    health.start()
    try:
        done = place.exec("b() { b | b & }; b; sleep 1000", timeout=2)
        assert done["timed_out"]
    finally:
        wait_until(lambda: answered or wrong, 30, "health was asked for")
        stop.set()
        health.join()
        place.request("PATCH", "/v1/sandbox", json={"limits": {"processes": None}})
    assert wrong == [] and place.exec("echo fine")["stdout"] == "fine\n"


def test_a_pause_in_the_middle_of_a_stream_loses_nothing(place):
    command = "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); sleep 0.02; done"
    with place.exec_stream(command) as stream:
        events = stream.events()
        head = [next(events) for _ in range(5)]
        assert place.post("/v1/sandbox/pause", wait=60).json()["status"] == "paused"
        refused = place.post("/v1/exec", {"command": "true"})
        assert (refused.status, refused.code) == (409, "paused")
        assert place.get("/healthz").status == 200
        assert place.post("/v1/sandbox/resume", wait=60).json()["status"] == "active"
        out, _, end = output_of([*head, *events])
    assert out == "".join(f"{i}\n" for i in range(60)).encode()
    assert end.data["exit_code"] == 0


@contextlib.contextmanager
def paused(place):
    """All stands still inside the block."""
    assert place.post("/v1/sandbox/pause", wait=60).json()["status"] == "paused"
    try:
        yield
    finally:
        assert place.post("/v1/sandbox/resume", wait=60).json()["status"] == "active"


def test_a_pause_in_the_middle_of_a_terminal_and_an_upload_loses_nothing(place):
    data = b"half" * 40_000
    with ws_client.session(place, "stty -echo; echo up; cat", tty=True, wait=60) as ws, \
            place.connect(wait=60) as upload:
        ws.open()
        ws.until_output("up")
        upload.send_request("PUT", "/v1/files?path=half", body=data[:len(data) // 2],
                            headers=[("Content-Length", str(len(data)))])
        with paused(place):
            ws.send(b"typed\n")
            upload.send(data[len(data) // 2:])
            assert upload.read_response().status in (200, 201)  # the daemon's own work goes on
            assert place.get("/healthz").status == 200
            assert b"typed" not in ws.stdout
        ws.until_output("typed")
        ws.say("kill")
        ws.finish()
    assert place.get("/v1/files?path=half").body == data


def test_a_timeout_stands_still_while_paused_and_a_kill_does_not_wait(place):
    timed = start(place, "sleep 1000", timeout=1)
    killed = start(place, "sleep 1000")
    with paused(place):
        for method, path, body in (("POST", "/v1/exec", {"command": "true"}),
                                   ("POST", "/v1/processes", {"command": "true"})):
            refused = place.request(method, path, json=body)
            assert (refused.status, refused.code) == (409, "paused")
        place.post(f"/v1/processes/{killed['id']}/kill", {"signal": "KILL"})
        assert show(place, killed, wait=30)["reason"] == "killed"
        assert show(place, timed, wait=1.5)["status"] == "running"
    done = show(place, timed, wait=30)
    assert (done["timed_out"], done["exit_code"]) == (True, 137)
    with paused(place):
        pass  # a pause of nothing
    assert place.exec("echo fine")["stdout"] == "fine\n"


def test_a_background_child_does_not_keep_the_end_back(place):
    done = place.exec("sleep 1000 & echo hi")
    assert (done["stdout"], done["exit_code"]) == ("hi\n", 0)
    p = next(p for p in place.get("/v1/processes").json()["processes"] if p["id"] == done["id"])
    assert p["tree"] is True
    forget(place, p)


def test_input_flows_both_ways_and_its_end_is_heard(place):
    with ws_client.session(place, "sort") as ws:
        ws.open()
        ws.send(b"b\nc\n")
        ws.say("stdin", text="a\n")
        ws.say("close_stdin")
        assert ws.finish()["exit_code"] == 0
        assert ws.stdout == b"a\nb\nc\n"


def test_a_terminal_says_its_size_and_is_told_of_a_new_one(place):
    with ws_client.session(place, "trap 'stty size' WINCH; stty size; while :; do sleep 0.1; done",
                           tty=True, cols=91, rows=31) as ws:
        ws.open()
        ws.until_output("31 91")
        ws.say("resize", cols=92, rows=32)
        ws.until_output("32 92")
        ws.say("kill")
        ws.finish()


def test_many_commands_at_once_lose_no_end(place):
    count, wrong = 40, []

    def run(i):
        try:
            done = place.exec(f"echo {i}; exit {i}")
            assert (done["stdout"], done["exit_code"]) == (f"{i}\n", i)
        except Exception as e:  # noqa: BLE001 - told below
            wrong.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert wrong == []


# files


@pytest.mark.parametrize("path", ["../etc/passwd", "a/../../etc/passwd", "%2e%2e/etc/passwd",
                                  "/etc/shadow", "link/passwd", "rel/passwd"])
def test_CVE_2026_32147_no_path_leads_out_of_the_roots(place, path):
    place.exec("ln -sfn /etc link; ln -sfn ../etc rel")
    assert place.get(f"/v1/files?path={path}").status in (400, 403, 404)


SWAPPER = "mkdir -p d o; while :; do mv d t; mv l d; mv d l; mv t d; done"


def test_CVE_2018_15664_no_swap_of_a_folder_and_a_link_leads_out(place):
    place.exec("rm -rf d l t; mkdir d; echo inside > d/passwd; ln -s /etc l")
    swapper = start(place, SWAPPER)
    inside = refused = 0
    end = time.monotonic() + 3
    with place.connect() as conn:
        while time.monotonic() < end:
            answer = conn.request("GET", "/v1/files?path=d/passwd")
            assert b"root:" not in answer.body
            inside += answer.status == 200
            refused += answer.status != 200
    forget(place, swapper)
    print(f"{place.name}: {inside} inside, {refused} refused")
    assert inside + refused > 10
