"""Time that is not what it seems, in a machine of its own: a wall clock that jumps by a year, a
machine that stands still, one that is saved and goes on as another.

What is measured goes on from where it was, and nothing expires or lives for ever.
"""

import contextlib
import hashlib
from datetime import datetime

import pytest

import place as places
import ws_client
import wire
from conftest import WANTED
from wire import output_of, wait_until

pytestmark = pytest.mark.place
YEAR = 366 * 86400
COUNT = "i=0; while [ $i -lt {} ]; do echo $i; i=$((i+1)); sleep 0.1; done"


@pytest.fixture(scope="module")
def machine():
    if "vm" not in WANTED:
        pytest.skip("no machine is wanted")
    try:
        one = places.Watched("vm")
    except places.Absent as why:
        pytest.skip(f"vm: {why}")
    yield one
    one.remove()


def seconds_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def sandbox(machine):
    return machine.get("/v1/sandbox").json()


def clock(machine):
    return seconds_of(machine.get("/v1/sandbox/usage").json()["time"])


def left(machine, name):
    """Seconds to a time that the sandbox shows, by the clock that it shows."""
    return seconds_of(sandbox(machine)[name]) - clock(machine)


def start(machine, command, **fields):
    answer = machine.post("/v1/processes", {"command": command, **fields})
    assert answer.status == 201, answer
    return answer.json()


def show(machine, p, wait=None):
    query = f"?wait={wait}" if wait else ""
    return machine.get(f"/v1/processes/{p['id']}{query}", wait=90).json()


def numbers(count):
    return "".join(f"{i}\n" for i in range(count)).encode()


class Middle:
    """In the middle of all that takes time: a stream, a terminal, an upload, a log, a timeout."""

    def __init__(self, machine, stack):
        self.machine = machine
        self.stream = stack.enter_context(machine.exec_stream(COUNT.format(40), timeout=60))
        self.events = self.stream.events()
        self.head = [next(self.events) for _ in range(4)]
        self.terminal = stack.enter_context(
            ws_client.session(machine, "stty -echo; echo up; cat", tty=True, wait=60))
        self.terminal.open()
        self.terminal.until_output("up")
        self.data = bytes(range(256)) * 2048
        self.upload = stack.enter_context(machine.connect(wait=60))
        half = len(self.data) // 2
        self.upload.send_request("PUT", "/v1/files?path=half.bin", body=self.data[:half], headers=[
            ("Content-Length", str(len(self.data)))])
        self.logged = start(machine, COUNT.format(60))
        self.timed = start(machine, "sleep 1000", timeout=8)
        self.asked = start(machine, "sleep 1000", timeout=3600)

    def check(self):
        """All goes on, and comes to the end that it would have had."""
        assert show(self.machine, self.timed)["status"] == "running", "its time is not over"
        self.terminal.send(b"typed\n")
        self.terminal.until_output("typed")
        self.terminal.say("kill")
        self.terminal.finish()
        self.upload.send(self.data[len(self.data) // 2:])
        assert self.upload.read_response().status in (200, 201)
        stored = self.machine.get("/v1/files?path=half.bin").body
        assert hashlib.sha256(stored).digest() == hashlib.sha256(self.data).digest()
        out, _, end = output_of([*self.head, *self.events])
        assert (out, end.data["exit_code"]) == (numbers(40), 0)
        assert 3000 < end.data["duration_ms"] < 60_000
        self.check_commands()

    def check_commands(self):
        done = show(self.machine, self.timed, wait=60)
        assert (done["timed_out"], done["exit_code"]) == (True, 137)
        assert show(self.machine, self.asked)["status"] == "running"
        assert self.machine.request("DELETE", f"/v1/processes/{self.asked['id']}").status == 204
        assert show(self.machine, self.logged, wait=60)["exit_code"] == 0
        out = self.machine.get(f"/v1/processes/{self.logged['id']}/logs").json()["stdout"]
        assert out.encode() == numbers(60)


def give_time(machine):
    times = {"ttl_seconds": 3600, "idle_timeout": 1800}
    assert machine.request("PATCH", "/v1/sandbox", json=times).status == 200


def has_time(machine):
    """What was given is there, but for what the test has taken."""
    assert 3600 - 600 < left(machine, "expires_at") <= 3600
    with machine.connect() as conn:
        assert conn.request("POST", "/v1/sandbox/keepalive").status == 200
    idle = sandbox(machine)["idle_at"]
    if idle:  # null while something runs in front
        assert 1800 - 600 < seconds_of(idle) - clock(machine) <= 1801


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["forth", "back"])
def test_a_jump_of_the_wall_clock_changes_only_what_is_shown(machine, jump):
    key = [("Idempotency-Key", f"jump{jump}")]
    give_time(machine)
    first = machine.post("/v1/exec", {"command": "echo once"}, headers=key).json()
    ticket = machine.post("/v1/exec/ws-token").json()["token"]
    before = clock(machine)
    with contextlib.ExitStack() as stack:
        middle = Middle(machine, stack)
        try:
            machine.set_clock(jump)
            assert abs(clock(machine) - before - jump) < 600, "the clock was set"
            with ws_client.session(machine, ["echo", "hi"], auth=False,
                                   target=f"/v1/exec/ws?token={ticket}") as ws:
                assert ws.finish()["exit_code"] == 0
            again = machine.post("/v1/exec", {"command": "echo once"}, headers=key).json()
            assert again["id"] == first["id"], "it was not run again"
            has_time(machine)
            middle.check()
            has_time(machine)
        finally:
            machine.set_clock(-jump)
    assert machine.exec("echo fine")["stdout"] == "fine\n"


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["forth", "back"])
def test_what_a_run_has_written_is_told_over_a_jump(machine, jump):
    machine.exec("rm -rf made; mkdir made")
    code = "cd made; echo a >first; echo up; while [ ! -e go ]; do sleep 0.1; done; echo b >second"
    with machine.stream("POST", "/v1/code/stream", json={"code": code, "language": "sh"}) as stream:
        assert stream.status == 200, stream.read()
        events = stream.events()
        head = [next(events) for _ in range(2)]
        machine.set_clock(jump)
        try:
            machine.exec("touch made/go")
            _, _, end = output_of([*head, *events])
        finally:
            machine.set_clock(-jump)
    names = {one["path"].rsplit("/", 1)[-1] for one in end.data["files_changed"]}
    assert {"first", "second"} <= names


def test_a_machine_that_stood_still_goes_on_exactly(machine):
    give_time(machine)
    with contextlib.ExitStack() as stack:
        middle = Middle(machine, stack)
        machine.tell("stop")
        with machine.connect(wait=1) as conn, pytest.raises((AssertionError, OSError, wire.Closed)):
            conn.request("GET", "/healthz")
        machine.tell("cont")
        middle.check()
        has_time(machine)


def test_a_machine_that_was_saved_goes_on_as_another_a_year_later(machine):
    """Connections are gone with the host's side of them; commands, logs and times are not."""
    give_time(machine)
    with contextlib.ExitStack() as stack:
        middle = Middle(machine, stack)
        machine.save()
        machine.restore()
        machine.set_clock(YEAR)
        has_time(machine)
        middle.check_commands()
        has_time(machine)
    with ws_client.session(machine, "cat") as ws:
        ws.open()
        ws.send(b"new\n")
        ws.until_output("new")
    machine.set_clock(-YEAR)


@pytest.mark.parametrize("what, jump", [("ttl_seconds", -YEAR), ("idle_timeout", YEAR)])
def test_a_time_is_over_when_it_is_over_whatever_the_clock_says(what, jump, machine):
    """The last ones: each ends the machine."""
    if machine.qemu.poll() is not None:
        machine.leave()
        machine.start()
        machine.wait_answer()
    give_time(machine)
    changed = machine.request("PATCH", "/v1/sandbox", json={what: 6})
    assert changed.status == 200
    machine.set_clock(jump)
    assert sandbox(machine)["status"] == "active"
    wait_until(lambda: machine.qemu.poll() is not None, 90, "the machine has ended")
