"""Commands on a terminal of their own: sizes, keys, job control, ends, and whole programs on it."""

import json
import os
import re
import shlex
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import groupby

import pytest

from nook import IS_ROOT, children_of, is_sanitized, proc_stat, scaled, status_field
from screen import Terminal, draw
from test_exec import is_gone, pid_in
from test_processes import lives, start
from wire import wait_until

SIZE_BODY = {"cols": 90, "rows": 30}
# Says its size at every change of it; what it waits with is ended by the signal too.
WATCH_SIZE = """trap 'kill $!' EXIT
trap 'echo "<$(stty size)>"' WINCH
echo ready
while :; do sleep 1000 & wait $!; kill $!; done 2>/dev/null"""
BASH = ["bash", "--norc", "-i"]


def needs(*names):
    """The first of these programs that is there; skips where there is none."""
    for name in names:
        found = shutil.which(name, path="/usr/bin:/bin:/usr/local/bin")
        if found:
            return found
    pytest.skip(f"no {' or '.join(names)} here")


def needs_kernel(nook, mechanism):
    """Skips where the kernel's terminals lack something."""
    state = nook.get("/v1/capabilities").json()["isolation"][mechanism]
    if not state["available"]:
        pytest.skip(f"no {mechanism} here: {state['reason']}")


def run(nook, command, **fields):
    """Output of a command on a terminal that ends by itself, as text; its lines end with \\n."""
    terminal = Terminal(nook, command, **fields)
    terminal.end()
    return terminal.output().decode().replace("\r\n", "\n")


def test_a_command_has_a_terminal_for_everything(nook):
    out = run(nook, "tty; tty <&1; tty <&2; tty </dev/tty; test -t 0 && test -t 1 && test -t 2 && echo yes")
    name = out.split("\n")[0]
    assert re.fullmatch(r"/dev/pts/\d+", name)
    assert out == f"{name}\n{name}\n{name}\n/dev/tty\nyes\n"


def test_it_leads_its_own_session_and_is_in_the_foreground(nook):
    terminal = Terminal(nook, ["cat"])
    fields = open(f"/proc/{terminal.pid}/stat").read().rsplit(") ", 1)[1].split()
    group, session, tty, front = (int(fields[i]) for i in (2, 3, 4, 5))
    assert (group, session, front) == (terminal.pid,) * 3
    assert tty != 0
    assert int(open(f"/proc/{nook.pid}/stat").read().rsplit(") ", 1)[1].split()[4]) != tty


@pytest.mark.root
def test_the_terminal_belongs_to_the_user_alone(nook):
    terminal = Terminal(nook, ["cat"])
    info = os.stat(os.readlink(f"/proc/{terminal.pid}/fd/0"))
    assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (nook.user, nook.user, 0o600)


def test_it_begins_with_the_usual_settings(nook):
    words = run(nook, "stty -a").split()
    for word in ("icanon", "isig", "iexten", "echo", "iutf8", "icrnl", "ixon", "opost", "onlcr"):
        assert word in words, word


def test_the_size_is_there_from_the_start(nook):
    assert run(nook, "stty size") == "24 80\n"
    assert run(nook, "stty size", cols=132, rows=43) == "43 132\n"
    assert run(nook, "stty size", cols=65535, rows=65535) == "65535 65535\n"
    assert run(nook, "stty size", cols=1, rows=1) == "1 1\n"


@pytest.mark.parametrize("size", [{"cols": 0}, {"rows": 0}, {"cols": 65536}, {"rows": -1},
                                  {"cols": 80.5}, {"rows": "24"}])
def test_a_size_that_is_none_starts_nothing(nook, size):
    response = nook.post("/v1/processes", {"command": "true", "tty": True, **size})
    assert (response.status, response.code) == (400, "bad_request")
    assert next(iter(size)) in response.json()["error"]["message"]


def test_programs_learn_what_they_may_print(nook):
    ask = 'echo "$TERM $COLORTERM $LANG"'
    assert run(nook, ask) == "xterm-256color truecolor C.UTF-8\n"
    own = {"TERM": "dumb", "COLORTERM": "", "LANG": "POSIX"}
    assert run(nook, ask, env=own) == "dumb  POSIX\n"
    assert nook.exec('echo "${TERM-none} ${COLORTERM-none}"')["stdout"] == "none none\n"


def test_errors_are_printed_on_the_same_terminal(nook):
    terminal = Terminal(nook, "echo one; echo two >&2; echo three")
    done = terminal.end()
    assert terminal.output() == b"one\r\ntwo\r\nthree\r\n"
    assert (done["stdout_size"], done["stderr_size"], done["tty"]) == (17, 0, True)


def test_a_new_size_is_told_once(nook):
    terminal = Terminal(nook, WATCH_SIZE)
    terminal.printed(b"ready")
    for cols, rows in ((100, 40), (1, 1), (65535, 65535), (80, 24)):
        response = terminal.resize(cols, rows)
        assert (response.status, response.json()["id"]) == (200, terminal.id)
        terminal.printed(f"<{rows} {cols}>".encode())
    nook.post(f"/v1/processes/{terminal.id}/kill")
    terminal.end()
    told = re.findall(rb"<(.*?)>", terminal.output())
    if "terminal_signals" in os.environ.get("NOOK_SERVE_ARGS", ""):
        told = [size for size, _ in groupby(told)]  # the kernel and nookd both tell
    assert told == [b"40 100", b"1 1", b"65535 65535", b"24 80"]


@pytest.mark.parametrize("body", [{"cols": 0, "rows": 24}, {"cols": 80, "rows": 65536}, {"cols": 80},
                                  {"rows": 24}, {}, {"cols": 80, "rows": "24"},
                                  {"cols": 80, "rows": 24, "x": 1}])
def test_a_wrong_size_is_refused_and_changes_nothing(nook, body):
    terminal = Terminal(nook, "read x; stty size", cols=77, rows=11)
    response = nook.post(f"/v1/processes/{terminal.id}/resize", body)
    assert (response.status, response.code) == (400, "bad_request")
    terminal.send("\n")
    terminal.end()
    assert terminal.output() == b"\r\n11 77\r\n"


def test_what_has_no_terminal_has_no_size(nook):
    pipes = start(nook, "sleep 1000")
    response = nook.post(f"/v1/processes/{pipes['id']}/resize", SIZE_BODY)
    assert (response.status, response.code) == (409, "conflict")
    ended = Terminal(nook, "true")
    ended.end()
    response = ended.resize(90, 30)
    assert (response.status, response.code) == (409, "conflict")
    response = nook.post("/v1/processes/nothing/resize", SIZE_BODY)
    assert (response.status, response.code) == (404, "not_found")


LINES = b"one\ntwo\nthree\n"
ECHOED = b"one\r\ntwo\r\nthree\r\n"
BACKWARDS = b"three\r\ntwo\r\none\r\n"


def test_the_end_of_input_after_whole_lines(nook):
    needs_kernel(nook, "terminal_eof")
    terminal = Terminal(nook, ["tac"])
    assert terminal.send(LINES, close=True) == {"offset": 14, "closed": True}
    assert terminal.end()["exit_code"] == 0
    assert terminal.output() == ECHOED + BACKWARDS


def test_the_end_of_input_in_the_middle_of_a_line(nook):
    needs_kernel(nook, "terminal_eof")
    terminal = Terminal(nook, ["tac"])
    terminal.send(LINES[:-1], close=True)
    assert terminal.end()["exit_code"] == 0
    assert terminal.output() == ECHOED[:-2] + b"threetwo\r\none\r\n"


@pytest.mark.parametrize("typed", [b"", b"abc\x15", b"abc\x04", b"a\r"])
def test_the_end_of_input_on_an_empty_line_is_typed_once(nook, typed):
    """A second reader of the same terminal would see the end typed twice."""
    needs_kernel(nook, "terminal_eof")
    terminal = Terminal(nook, "cat; read x && echo more=$x")
    terminal.send(typed, close=True)
    assert wait_until(lambda: status_field(terminal.pid, "Name") == "sh" and
                      children_of(terminal.pid) == [], 10)
    assert terminal.shown()["status"] == "running"


def test_input_given_with_the_start_ends_after_it(nook):
    needs_kernel(nook, "terminal_eof")
    terminal = Terminal(nook, ["tac"], stdin=LINES.decode())
    assert terminal.end()["exit_code"] == 0
    assert terminal.output() == ECHOED + BACKWARDS
    kept = Terminal(nook, ["cat"], stdin="first\n", stdin_open=True)
    kept.printed(b"first\r\nfirst\r\n")
    kept.send("second\n", close=True)
    assert kept.end()["exit_code"] == 0
    assert kept.output() == b"first\r\nfirst\r\nsecond\r\nsecond\r\n"


def test_a_raw_terminal_is_sent_the_character(nook):
    terminal = Terminal(nook, "stty raw -echo; echo ready; head -c 4 | od -An -tx1")
    terminal.printed(b"ready")
    terminal.send("abc", close=True)
    terminal.end()
    assert b"61 62 63 04" in terminal.output()


def test_a_program_may_have_another_eof_character(nook):
    needs_kernel(nook, "terminal_eof")
    terminal = Terminal(nook, "stty eof x; echo ready; cat; echo over")
    terminal.printed(b"ready")
    terminal.send("ab\x04c", close=True)
    terminal.end()
    assert terminal.output().endswith(b"ab\x04cover\r\n")


def test_after_its_end_no_more_input_is_taken(nook):
    terminal = Terminal(nook, "cat; sleep 1000")
    terminal.close()
    response = nook.post(f"/v1/processes/{terminal.id}/stdin", {"text": "x"})
    assert (response.status, response.code) == (409, "conflict")


def test_control_c_interrupts(nook):
    terminal = Terminal(nook, ["cat"])
    terminal.send("a line\n")
    terminal.printed(b"a line\r\na line\r\n")
    terminal.send("\x03")
    done = terminal.end()
    assert (done["exit_code"], done["signal"], done["reason"]) == (130, "INT", "signaled")
    assert terminal.output().endswith(b"^C")


def foreground(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(") ", 1)[1].split()[5])


def in_front(shell, name):
    """Waits until a job of this name is in the foreground; before its exec it heeds no key."""
    def there():
        job = foreground(shell.pid)
        return job != shell.pid and status_field(job, "Name") == name and job
    return wait_until(there, 10)


def test_a_shell_has_job_control(nook):
    needs("bash")
    shell = Terminal(nook, BASH, env={"PS1": "$ "})
    shell.send('case $- in *m*) echo has-"job"-control;; esac\n')
    shell.printed(b"has-job-control\r\n")
    shell.send("sleep 1000; echo status=$?\n")
    in_front(shell, "sleep")
    shell.send("\x03")
    shell.printed(b"^C")
    shell.send("echo was-$?\n")
    shell.printed(b"was-130\r\n")
    assert lives(shell.pid)
    shell.send("exit 7\n")
    done = shell.end()
    assert (done["exit_code"], done["signal"]) == (7, None)


def test_a_job_is_stopped_put_behind_and_fetched_back(nook):
    needs("bash")
    shell = Terminal(nook, BASH, env={"PS1": "$ "})
    shell.send("sleep 1000\n")
    job = in_front(shell, "sleep")
    shell.send("\x1a")
    shell.printed(b"Stopped")
    assert proc_stat(job)[0] == "T"
    shell.send("bg\n")
    wait_until(lambda: proc_stat(job)[0] == "S", 10)
    shell.send("echo in-fr\"\"ont\n")
    shell.printed(b"in-front\r\n")
    shell.send("fg\n")
    wait_until(lambda: foreground(shell.pid) == job, 10)
    shell.send("\x03")
    wait_until(lambda: is_gone(job), 10)
    shell.send("exit\n")
    assert shell.end()["exit_code"] == 130


def behind(script):
    """Shell text that runs `script` in the background and goes on once it has come that far."""
    return f"sh -c {shlex.quote('echo $$ > pid; ' + script)} & until [ -s pid ]; do sleep 0.02; done"


def test_the_end_of_the_program_is_the_end(nook):
    """Not that of the terminal, which a background child still has open."""
    terminal = Terminal(nook, f"setsid {behind('exec sleep 1000')}; echo hi")
    done = terminal.end()
    assert (done["exit_code"], done["reason"], terminal.output()) == (0, "exited", b"hi\r\n")
    wait_until(lambda: terminal.shown()["tree"], 10)
    nook.request("DELETE", f"/v1/processes/{terminal.id}")
    wait_until(lambda: is_gone(pid_in(nook)), 10)


def test_what_a_background_child_prints_later_is_in_the_log(nook):
    later = "trap '' HUP; until [ -e go ]; do sleep 0.02; done; echo later; exec sleep 1000"
    terminal = Terminal(nook, f"{behind(later)}; echo hi")
    done = terminal.end()
    assert (done["stdout_size"], done["log_end"]) == (4, 4)
    (nook.workspace / "go").touch()
    assert terminal.printed(b"later") == b"hi\r\nlater\r\n"
    after = terminal.shown()
    assert (after["stdout_size"], after["log_end"], after["tree"]) == (4, 11, True)
    nook.post(f"/v1/processes/{terminal.id}/kill", {"signal": "KILL"})
    wait_until(lambda: is_gone(pid_in(nook)), 10)


def test_who_is_left_in_front_is_hung_up(nook):
    terminal = Terminal(nook, behind("exec sleep 1000"))
    terminal.end()
    wait_until(lambda: is_gone(pid_in(nook)), 10)


def test_an_end_is_no_error(nook):
    before = len(nook.stderr())  # what the start had to say of the kernel
    for command in ("true", "exit 3", "kill -9 $$", "setsid sleep 1000 & true"):
        Terminal(nook, command).end()
    levels = {json.loads(line)["level"] for line in nook.stderr()[before:].splitlines() if line}
    assert levels <= {"debug", "info"}, nook.stderr()


def test_the_last_bytes_before_a_kill_are_kept(nook):
    terminal = Terminal(nook, "echo before; kill -KILL $$")
    done = terminal.end()
    assert (done["signal"], terminal.output()) == ("KILL", b"before\r\n")
    slow = Terminal(nook, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 1000 & wait; done")
    slow.printed(b"ready")
    nook.post(f"/v1/processes/{slow.id}/kill")
    assert slow.end()["exit_code"] == 5
    assert slow.output() == b"ready\r\nbye\r\n"


def test_no_tail_is_lost(nook):
    """Many short commands that print more than a terminal holds and end at once. NOOK_SCALE=5: 10,000."""
    want = b"".join(b"%d\r\n" % n for n in range(1, 20001))

    def some(count):
        with nook.connect() as conn:
            for _ in range(count):
                p = conn.request("POST", "/v1/processes",
                                 json={"command": ["seq", "20000"], "tty": True}).json()
                path = f"/v1/processes/{p['id']}"
                done = conn.request("GET", f"{path}?wait=60").json()
                assert (done["exit_code"], done["stdout_size"]) == (0, len(want)), done
                assert conn.request("GET", f"{path}/logs?raw=true").body == want
                conn.request("DELETE", path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, [25] * scaled(80)))


def test_a_program_that_closes_its_terminal_goes_on(nook):
    terminal = Terminal(nook, "exec <&- >&- 2>&-; until [ -e go ]; do sleep 0.02; done; echo back >/dev/tty; exit 4")
    (nook.workspace / "go").touch()
    done = terminal.end()
    assert (done["exit_code"], done["signal"], terminal.output()) == (4, None, b"back\r\n")


def test_ended_terminals_leave_no_descriptor(nook):
    Terminal(nook, "true").end()
    before = len(nook.fds())
    for command in ("true", "kill -9 $$", ["no-such-program"], "setsid true &"):
        body = {"command": command, "tty": True, "stdin": "x"}
        response = nook.post("/v1/processes", body)
        assert response.status == (400 if command == ["no-such-program"] else 201), response
    wait_until(lambda: len(nook.fds()) <= before, 10, "descriptors go")
    wait_until(lambda: not nook.zombies(), 10, "the dead are reaped")


@pytest.mark.skipif(is_sanitized(), reason="memory of a sanitized binary is not its own")
def test_an_idle_terminal_costs_little(nook):
    count = 60
    warm = [Terminal(nook, ["cat"]) for _ in range(4)]
    before, fds = nook.rss(), len(nook.fds())
    idle = [Terminal(nook, ["cat"]) for _ in range(count)]
    assert (nook.rss() - before) / count < 16 * 1024
    wait_until(lambda: len(nook.fds()) - fds <= 3 * count, 10)
    for terminal in warm + idle:
        terminal.close()
    for terminal in warm + idle:
        terminal.end()


def test_a_pasted_flood_that_nobody_reads_hurts_nobody(nook):
    needs_kernel(nook, "terminal_eof")
    deaf = Terminal(nook, ["sleep", "1000"])
    before = nook.rss()
    with ExitStack() as calls:
        for _ in range(12):
            call = calls.enter_context(nook.connect())
            call.send_request("POST", f"/v1/processes/{deaf.id}/stdin",
                              json={"text": "a line of the flood\n" * 40000})
        other = Terminal(nook, ["tac"])
        other.send(LINES, close=True)
        assert other.end()["exit_code"] == 0
        if not is_sanitized():
            assert nook.rss() - before < 48 << 20
    nook.post(f"/v1/processes/{deaf.id}/kill", {"signal": "KILL"})
    assert deaf.end()["signal"] == "KILL"


def test_control_c_passes_a_flood_of_output(nook):
    terminal = Terminal(nook, ["yes"], log_bytes=4096)
    terminal.printed(b"y\r\ny\r\n")
    terminal.send("\x03")
    assert terminal.end()["signal"] == "INT"


def test_a_shell_heeds_the_end_of_the_agent(start_nook):
    """It ignores TERM: only hanging up ends it before its grace is over."""
    needs("bash")
    nook = start_nook("--grace", 3600)
    shell = Terminal(nook, BASH)
    shell.send("echo re\"\"ady\n")
    shell.printed(b"ready\r\n")
    assert nook.terminate() == 0


def test_who_heeds_the_end_has_time_for_it(start_nook):
    """It is not hung up at once, which it would not survive."""
    nook = start_nook("--grace", 3600)
    terminal = Terminal(nook, "trap 'echo over > told; exit' TERM; echo ready; while :; do sleep 0.02; done")
    terminal.printed(b"ready")
    assert nook.terminate() == 0
    assert (nook.workspace / "told").read_text() == "over\n"


def test_without_terminals_they_are_refused(start_nook):
    nook = start_nook("--without", "terminal")
    response = nook.post("/v1/processes", {"command": "true", "tty": True})
    assert (response.status, response.code) == (501, "not_supported")
    assert "terminal" in response.json()["error"]["message"]
    assert nook.exec("echo hi")["stdout"] == "hi\n"


def test_where_the_kernel_tells_no_size_the_agent_does(start_nook):
    """A size that is no change is told by no kernel."""
    nook = start_nook("--without", "terminal_signals")
    terminal = Terminal(nook, WATCH_SIZE, cols=90, rows=30)
    terminal.printed(b"ready")
    terminal.resize(90, 30)
    terminal.printed(b"<30 90>")


def test_where_the_kernel_hangs_nobody_up_the_agent_does(start_nook):
    """Who is not in front is told by no kernel."""
    nook = start_nook("--without", "terminal_signals")
    terminal = Terminal(nook, behind("exec sleep 1000") + "; set -m; sh -c 'kill -KILL $PPID; sleep 1000'")
    assert terminal.end()["signal"] == "KILL"
    wait_until(lambda: is_gone(pid_in(nook)), 10)


def test_where_the_kernel_knows_no_eof_the_agent_hangs_up(start_nook):
    nook = start_nook("--without", "terminal_eof")
    terminal = Terminal(nook, "stty raw; echo ready; exec sleep 1000")
    terminal.printed(b"ready")
    terminal.close()
    done = terminal.end()
    assert (done["signal"], done["reason"]) == ("HUP", "signaled")
    heeds = Terminal(nook, ["tac"])
    heeds.send(LINES, close=True)
    assert heeds.end()["exit_code"] == 0


def test_an_editor_is_driven_by_keys(nook):
    vim = needs("vim", "vim.tiny")
    terminal = Terminal(nook, [vim, "-N", "-u", "NONE", "-i", "NONE", "text"], cols=70, rows=20)
    terminal.shows("text")
    terminal.send("ihello wörld\x1byyp")
    lines = terminal.shows("hello wörld")
    wait_until(lambda: terminal.screen()[1] == "hello wörld", 10)
    assert len(lines) == 20
    terminal.resize(60, 10)
    wait_until(lambda: terminal.output().count(b"\x1b[2J") + terminal.output().count(b"\x1b[H") > 1, 10)
    terminal.send(":wq\r")
    assert terminal.end()["exit_code"] == 0
    assert (nook.workspace / "text").read_text() == "hello wörld\nhello wörld\n"


def test_a_pager_shows_page_after_page(nook):
    less = needs("less")
    (nook.workspace / "long").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    terminal = Terminal(nook, [less, "long"], rows=11, env={"LESS": ""})
    terminal.shows("line 10")
    terminal.send(" ")
    lines = terminal.shows("line 20")
    assert lines[:10] == [f"line {n}" for n in range(11, 21)]
    terminal.send("G")
    terminal.shows("line 1000")
    terminal.send("q")
    assert terminal.end()["exit_code"] == 0


def test_a_monitor_draws_its_screen_and_quits(nook):
    top = needs("top")
    terminal = Terminal(nook, [top, "-d", "1"], cols=100, rows=30)
    lines = terminal.shows("PID USER")
    assert any("load average" in line for line in lines)
    terminal.send("q")
    assert terminal.end()["exit_code"] == 0


def test_an_interpreter_is_talked_to(nook):
    python = needs("python3")
    terminal = Terminal(nook, [python, "-i", "-q"])
    terminal.shows(">>>")
    terminal.send("6 * 7\n")
    terminal.shows("42")
    terminal.send("import time; time.sleep(1000)\n")
    terminal.printed(b"sleep(1000)\r\n")
    terminal.send("\x03")
    terminal.shows("KeyboardInterrupt")
    terminal.close()
    terminal.end()


def test_who_comes_later_sees_the_same_screen(nook):
    vim = needs("vim", "vim.tiny")
    terminal = Terminal(nook, [vim, "-N", "-u", "NONE", "-i", "NONE", "text"])
    terminal.shows("text")
    terminal.send("oone\rtwo\x1bggdd")
    terminal.shows("two")
    wait_until(lambda: terminal.screen()[0] == "one", 10)
    half = len(terminal.output()) // 2
    response = nook.get(f"/v1/processes/{terminal.id}/logs?raw=true&since={half}")
    assert draw(terminal.output()[:half] + response.body) == terminal.screen()
    terminal.send(":q!\r")
    assert terminal.end()["exit_code"] == 0


@pytest.mark.skipif(not IS_ROOT, reason="marks need root")
def test_a_kill_reaches_every_job_of_a_shell(nook):
    needs("bash")
    shell = Terminal(nook, BASH)
    shell.send("sleep 1000 & echo $! > pid; setsid sleep 1001 & echo $! > pid2\n")
    first, second = pid_in(nook), pid_in(nook, "pid2")
    nook.post(f"/v1/processes/{shell.id}/kill", {"signal": "KILL"})
    done = shell.end()
    assert (done["signal"], done["reason"], done["killed"]) == ("KILL", "killed", True)
    wait_until(lambda: is_gone(first) and is_gone(second), 10)
