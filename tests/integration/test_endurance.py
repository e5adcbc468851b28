"""What a sandbox can be put through: pauses in the middle of everything, and hogs of each kind, while
health answers and the daemon stays.
"""

import subprocess
import threading
import time

import pytest

import groups
from nook import SCALE, scaled
from test_processes import lives, show, start
from wire import output_of, wait_until
from ws_client import session

needs_root = pytest.mark.root
PAUSE = max(0.5, 10 * SCALE)  # seconds


class Health:
    """Asks for it all the time, on one connection: each answer has its deadline."""

    def __init__(self, nook):
        self.nook = nook
        self.stop = threading.Event()
        self.worst, self.count, self.wrong = 0, 0, []
        self.thread = threading.Thread(target=self._ask)

    def _ask(self):
        try:
            with self.nook.connect(wait=5) as conn:
                while not self.stop.wait(0.005):
                    began = time.monotonic()
                    assert conn.request("GET", "/healthz").status == 200
                    self.worst = max(self.worst, time.monotonic() - began)
                    self.count += 1
        except Exception as e:  # noqa: BLE001 - told by the test
            self.wrong.append(e)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        wait_until(lambda: self.count > 3 or self.wrong, 20, "health was asked for")
        self.stop.set()
        self.thread.join()
        print(f"health: {self.count} answers, the longest took {self.worst * 1000:.1f} ms")
        assert self.wrong == []


@pytest.fixture(params=[pytest.param(False, id="as_it_is"),
                        pytest.param(True, id="without_groups")])
def either(request, start_nook):
    """With the kernel's freezer where it is to be had, and by signals."""
    return start_nook(*(["--without", "cgroup"] if request.param else []))


def paused(nook, meanwhile=lambda: None):
    """Stands still for a while; the daemon does not."""
    assert nook.post("/v1/sandbox/pause").json()["status"] == "paused"
    with Health(nook):
        end = time.monotonic() + PAUSE
        meanwhile()
        wait_until(lambda: time.monotonic() > end, PAUSE + 30)
    assert nook.post("/v1/sandbox/resume").json()["status"] == "active"


@needs_root
def test_a_pause_in_the_middle_of_a_stream_loses_nothing(either):
    count = 150
    command = f"i=0; while [ $i -lt {count} ]; do echo $i; echo $i >&2; i=$((i+1)); sleep 0.002; done"
    with either.exec_stream(command) as stream:
        events = stream.events()
        head = [next(events) for _ in range(20)]
        paused(either)
        out, err, end = output_of([*head, *events])
    want = "".join(f"{i}\n" for i in range(count)).encode()
    assert (out, err, end.data["exit_code"]) == (want, want, 0)


@needs_root
def test_a_pause_in_the_middle_of_a_terminal_loses_no_key(either):
    echo = "stty -echo raw; echo up; exec cat"
    with session(either, echo, tty=True) as ws:
        ws.open()
        ws.until_output("up")
        ws.say("stdin", text="before ")

        def type_on():
            for i in range(50):
                ws.say("stdin", text=f"{i} ")
            ws.say("resize", cols=100, rows=40)

        paused(either, type_on)
        ws.say("stdin", text="after.")
        ws.until_output("after.")
        typed = ws.stdout[ws.stdout.index(b"before"):]
        assert typed == ("before " + "".join(f"{i} " for i in range(50)) + "after.").encode()
        ws.say("kill")
        ws.finish()


@needs_root
def test_a_pause_in_the_middle_of_uploads_loses_no_byte(either):
    """Into a file, and into a command that stands still and so takes nothing."""
    data = bytes(range(256)) * 8192
    with session(either, "sleep 0.1; sha256sum; echo end") as ws, either.connect() as conn:
        ws.open()
        conn.send(f"PUT /v1/files?path=up HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                  f"{len(data)}\r\n\r\n".encode() + data[:100_000])
        ws.send(data[:100_000])
        sent = threading.Thread(target=lambda: [ws.send(data[i:i + 100_000]) for i in
                                                range(100_000, len(data), 100_000)])

        def go_on():
            sent.start()
            conn.send(data[100_000:200_000])

        paused(either, go_on)
        conn.send(data[200_000:])
        assert conn.read_response("PUT").status == 201
        sent.join(60)
        ws.say("close_stdin")
        ws.until_output("end")
        ws.finish()
    want = subprocess.run(["sha256sum"], input=data, capture_output=True, check=True).stdout
    assert ws.stdout.split()[0] == want.split()[0]
    assert (either.workspace / "up").read_bytes() == data


@needs_root
def test_a_pause_in_the_middle_of_timers_moves_them_on(either):
    """A command's own time, its sleep, and the quiet time after an end."""
    timed = start(either, "sleep 1000", timeout=PAUSE / 2 + 0.3)
    lingering = start(either, "sleep 1000 & echo hi")
    sleeping = start(either, "sleep 0.5; echo slept")
    paused(either)
    assert show(either, timed["id"])["status"] == "running"
    assert show(either, lingering["id"], wait=30)["exit_code"] == 0
    assert show(either, sleeping["id"], wait=30)["log_end"] == 6
    assert show(either, timed["id"], wait=60)["timed_out"]


# hogs


HOG = """
blocks = []
try:
    while True:
        blocks.append(b'x' * (1 << 20))
except MemoryError:
    print('no more')
"""


@needs_root
@pytest.mark.parametrize("held_by", ["each_commands_limit", "the_group"])
def test_a_memory_hog_does_not_keep_health_from_answering(start_nook, held_by):
    by_group = held_by == "the_group"
    nook = start_nook(*([] if by_group else ["--memory", 96 << 20]))
    if by_group:
        if not groups.made_by(nook):
            pytest.skip("no control group is made here")
        body = {"limits": {"memory": 96 << 20}}
        assert nook.request("PATCH", "/v1/sandbox", json=body).status == 200
    with Health(nook):
        for _ in range(scaled(5, 2)):
            done = nook.exec(["python3", "-c", HOG], timeout=60)
            assert done["stdout"] == "no more\n" or done["reason"] == "oom", done
    assert nook.exec("echo fine")["stdout"] == "fine\n"


@needs_root
def test_a_fork_bomb_at_its_limit_does_not_keep_health_from_answering(start_nook):
    nook = start_nook("--max-processes", 100)
    with Health(nook):
        done = nook.exec(["bash", "-c", "b() { b | b & }; b; sleep 1000"], timeout=1)
        assert done["timed_out"]
        wait_until(lambda: not nook.descendants(), 30, "nothing of it is left")
    assert nook.exec("echo fine")["stdout"] == "fine\n"


@needs_root
def test_a_full_disk_does_not_keep_health_from_answering(start_nook):
    nook = start_nook()
    disk = nook.workspace / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0777", "none", disk], check=True)
    try:
        with Health(nook):
            done = nook.exec(f"cat /dev/zero > {disk}/full")
            assert "No space left" in done["stderr"]
            for _ in range(scaled(50, 10)):
                full = nook.request("PUT", f"/v1/files?path={disk}/more", body=b"x" * 100_000)
                assert (full.status, full.code) == (507, "no_space")
                assert nook.exec("echo out; echo err >&2", cwd=str(disk))["stdout"] == "out\n"
        (disk / "full").unlink()
        put = nook.request("PUT", f"/v1/files?path={disk}/more", body=b"x" * 100_000)
        assert put.status == 201 and [p.name for p in disk.iterdir()] == ["more"]
    finally:
        subprocess.run(["umount", disk], check=True)


HOLD = """
import os, sys, time
held = [os.open('/dev/null', os.O_RDONLY) for _ in range(int(sys.argv[1]))]
print(len(held), flush=True)
time.sleep(1000)
"""


@needs_root
def test_twenty_thousand_descriptors_do_not_keep_health_from_answering(start_nook):
    each = scaled(2000, 500)
    nook = start_nook("--nofile", each + 100)
    with Health(nook):
        held = [start(nook, ["python3", "-c", HOLD, str(each)]) for _ in range(10)]
        for p in held:
            wait_until(lambda p=p: show(nook, p["id"])["log_end"] > 0, 60, "they are open")
        assert nook.exec("ls /proc/self/fd | wc -l")["stdout"] == "4\n"
        for p in held:
            nook.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
        wait_until(lambda: not nook.descendants(), 30, "they are gone")


# trees


DOUBLE = """
import os, sys
for i in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.setsid()
        os._exit(0)
    os.waitpid(child, 0)
print('done')
"""


@pytest.mark.slow
@needs_root
def test_ten_thousand_double_forks_of_a_command_leave_no_zombie(nook):
    count = 10_000 if SCALE >= 1 else scaled(2500)
    with Health(nook):
        done = nook.exec(["python3", "-c", DOUBLE, str(count)], timeout=300)
    assert done["stdout"] == "done\n"
    if nook.get("/v1/capabilities").json()["isolation"]["subreaper"]["available"]:
        wait_until(lambda: not nook.zombies() and not nook.descendants(), 10, "all are reaped")


SETSID = """
import os, sys, time
for i in range(int(sys.argv[1])):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            open('pids', 'a').write(f'{os.getpid()}\\n')
            time.sleep(1000)
        os._exit(0)
    os.wait()
open('all', 'w').close()
time.sleep(1000)
"""


@needs_root
def test_a_setsid_bomb_of_five_hundred_is_gone_at_its_kill(either):
    count = scaled(500, 60)
    p = start(either, ["python3", "-c", SETSID, str(count)])
    wait_until(lambda: (either.workspace / "all").exists(), 60, "all have started")
    pids = [int(line) for line in (either.workspace / "pids").read_text().split()]
    wait_until(lambda: len((either.workspace / "pids").read_text().split()) == count, 30)
    with Health(either):
        began = time.monotonic()
        either.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
        wait_until(lambda: not any(map(lives, pids)), 30, "none is left")
        print(f"{count} were gone after {time.monotonic() - began:.3f} s")
    assert show(either, p["id"], wait=30)["reason"] == "killed"
    wait_until(lambda: show(either, p["id"])["tree"] is False, 20, "and that is known")
