"""POST /v1/exec: one command, one whole answer."""

import base64
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nook import is_sanitized, proc_stat, scaled
from wire import wait_until

# A program that writes its pid to a file, then stays until it is killed.
STAY = "echo $$ > pid; exec sleep 1000"


def pid_in(nook, name="pid"):
    """The number a command wrote to a file of its working directory."""
    path = nook.workspace / name

    def read():
        text = path.read_text() if path.exists() else ""
        return text.endswith("\n") and int(text)

    return wait_until(read, 10, f"a command writes {path}")


def is_gone(pid):
    stat = proc_stat(pid)
    return stat is None or stat[0] == "Z"


def test_a_string_goes_to_the_shell_and_a_list_does_not(nook):
    assert nook.exec("echo $((1 + 1))")["stdout"] == "2\n"
    assert nook.exec(["echo", "$((1 + 1))", ""])["stdout"] == "$((1 + 1)) \n"


def test_the_result_has_every_field(nook):
    result = nook.exec("echo out; echo err >&2; exit 3")
    assert result.pop("duration_ms") >= 0
    assert len(result.pop("id")) == 24
    assert result == {
        "exit_code": 3, "signal": None, "timed_out": False, "killed": False, "reason": "exited",
        "stdout": "out\n", "stderr": "err\n", "stdout_size": 4, "stderr_size": 4,
        "stdout_truncated": False, "stderr_truncated": False, "files": []}


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 128, 255])
def test_an_exit_code_is_the_programs_own(nook, code):
    result = nook.exec(f"exit {code}")
    assert (result["exit_code"], result["signal"], result["reason"]) == (code, None, "exited")


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "HUP", "USR1"])
def test_death_by_a_signal_is_named(nook, name):
    result = nook.exec(f"kill -{name} $$; sleep 10")
    number = getattr(signal, f"SIG{name}")
    assert (result["exit_code"], result["signal"]) == (128 + number, name)
    assert (result["reason"], result["killed"], result["timed_out"]) == ("signaled", False, False)


def test_stdin_is_empty_unless_it_was_given(nook):
    assert nook.exec("readlink /proc/self/fd/0; cat")["stdout"] == "/dev/null\n"
    assert nook.exec("cat", stdin="hällo")["stdout"] == "hällo"
    assert nook.exec("cat", stdin="")["stdout"] == ""
    result = nook.exec("cat", stdin_base64=base64.b64encode(b"\0\xff").decode())
    assert base64.b64decode(result["stdout_base64"]) == b"\0\xff"


def test_much_stdin_reaches_a_slow_program_whole(nook):
    data = "0123456789abcdef" * 50000
    result = nook.exec("sleep 0.2; cat", stdin=data)
    assert result["stdout"] == data


def test_stdin_that_nobody_reads_is_no_error(nook):
    result = nook.exec("exec 0<&-; echo done", stdin="x" * 300000)
    assert (result["stdout"], result["exit_code"]) == ("done\n", 0)


def test_the_environment_is_built_and_not_inherited(start_nook):
    nook = start_nook("--env", "FROM_OPTION=1", env={"SECRET_OF_THE_DAEMON": "x"})
    env = dict(line.split("=", 1) for line in nook.exec(["env"])["stdout"].splitlines())
    assert "SECRET_OF_THE_DAEMON" not in env
    assert env["FROM_OPTION"] == "1"
    assert env["PATH"]
    assert not [k for k in env if k.startswith("NOOKD")]
    assert nook.token not in "".join(env.values())


def test_env_of_the_request_comes_on_top(nook):
    out = nook.exec('printf "%s|" "$A" "$HOME" "${EMPTY-unset}"',
                    env={"A": "ä b\n", "HOME": "/elsewhere", "EMPTY": ""})["stdout"]
    assert out == "ä b\n|/elsewhere||"


def test_cwd_is_the_working_directory_or_what_was_asked(nook):
    (nook.workspace / "sub").mkdir()
    assert nook.exec("pwd")["stdout"] == f"{nook.workspace}\n"
    assert nook.exec("pwd", cwd="sub")["stdout"] == f"{nook.workspace}/sub\n"
    assert nook.exec("pwd", cwd="/")["stdout"] == "/\n"


def test_a_child_has_three_descriptors_and_no_more(nook):
    for _ in range(20):
        out = nook.exec(["ls", "/proc/self/fd"])["stdout"].split()
        assert out[:3] == ["0", "1", "2"]
        assert len(out) == 4  # ls itself has the folder open


def test_bytes_that_are_no_text_come_exactly_and_repaired(nook):
    result = nook.exec(["printf", r"a\377b"])
    assert result["stdout"] == "a�b"
    assert base64.b64decode(result["stdout_base64"]) == b"a\xffb"
    assert "stderr_base64" not in result
    assert "stdout_base64" not in nook.exec("echo ä")


def test_the_newest_bytes_are_kept_and_all_are_counted(nook):
    result = nook.exec("seq 100000; seq 5 >&2", max_output=1000)
    whole = "".join(f"{i}\n" for i in range(1, 100001))
    assert result["stdout"] == whole[-1000:]
    assert result["stdout_size"] == len(whole)
    assert (result["stdout_truncated"], result["stderr_truncated"]) == (True, False)
    assert result["stderr"] == "1\n2\n3\n4\n5\n"


def test_of_no_output_at_all_the_size_is_still_told(nook):
    result = nook.exec("printf abc", max_output=0)
    assert (result["stdout"], result["stdout_size"], result["stdout_truncated"]) == ("", 3, True)


def test_a_last_line_needs_no_newline(nook):
    assert nook.exec("printf 'a\nb'")["stdout"] == "a\nb"


def test_a_timeout_kills_the_tree_and_keeps_what_was_written(nook):
    result = nook.exec("echo before; (setsid sh -c 'echo $$ > pid; exec sleep 1000' &); sleep 1000",
                       timeout=0.5)
    assert result["stdout"] == "before\n"
    assert (result["exit_code"], result["timed_out"], result["killed"]) == (137, True, False)
    assert result["reason"] == "timeout"
    pid = pid_in(nook)
    wait_until(lambda: is_gone(pid), 5, "what left the session is killed too")


def test_the_default_timeout_is_the_options(start_nook):
    nook = start_nook("--timeout", "0.3", "--max-timeout", "10")
    assert nook.exec("sleep 1000")["timed_out"] is True
    assert nook.exec("sleep 0.5", timeout=9)["timed_out"] is False
    response = nook.post("/v1/exec", {"command": "true", "timeout": 10.1})
    assert (response.status, response.code) == (400, "bad_request")


def test_a_background_child_does_not_hold_up_the_answer(nook):
    for start in ("sleep 1000 & echo hi", "setsid sleep 1000 & echo hi"):
        result = nook.exec(start)
        assert (result["stdout"], result["exit_code"]) == ("hi\n", 0)
        assert result["duration_ms"] < 10000


def test_a_background_child_that_goes_on_writing_is_left_alone(nook):
    nook.exec("(while :; do echo x; echo y > beat; sleep 0.01; done) & echo hi")
    beat = nook.workspace / "beat"
    for _ in range(3):
        wait_until(beat.exists, 10, "the background child lives")
        beat.unlink()


def test_the_last_words_of_a_handler_are_not_lost(nook):
    command = ("trap 'head -c 60000 /dev/zero | tr \"\\0\" x; exit 7' TERM; kill -TERM $$; "
               "sleep 1000")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: nook.exec(command), range(scaled(1000, 20))))
    assert {(r["exit_code"], r["stdout_size"], len(r["stdout"])) for r in results} == \
        {(7, 60000, 60000)}


def run_on_one_connection(nook, numbers):
    wrong = []
    with nook.connect(wait=60) as conn:
        for n in numbers:
            response = conn.request("POST", "/v1/exec", json={"command": f"echo {n}; exit {n % 256}"})
            result = response.json()
            if (response.status, result.get("stdout"), result.get("exit_code")) != \
                    (200, f"{n}\n", n % 256):
                wrong.append(response)
    return wrong


def test_many_short_commands_are_each_complete(nook):
    count = scaled(10000, 320)
    fds = len(nook.fds())
    with ThreadPoolExecutor(32) as pool:
        wrong = list(pool.map(lambda i: run_on_one_connection(nook, range(i, count, 32)), range(32)))
    assert not sum(wrong, [])
    wait_until(lambda: len(nook.fds()) <= fds, 10, "its descriptors are back to where they were")
    wait_until(lambda: not nook.zombies(), 10, "the dead are reaped")


def test_a_client_that_leaves_takes_its_command_along(tcp_nook):
    for tcp in (True, False):
        conn = tcp_nook.connect(tcp=tcp)
        conn.send_request("POST", "/v1/exec", json={"command": STAY})
        pid = pid_in(tcp_nook)
        if tcp:
            conn.reset()
        else:
            conn.close()
        wait_until(lambda p=pid: is_gone(p), 10, "the command of a client that left ends")
        (tcp_nook.workspace / "pid").unlink()


def test_a_client_that_only_ends_its_input_gets_its_answer(tcp_nook):
    for tcp in (True, False):
        with tcp_nook.connect(tcp=tcp) as conn:
            conn.send_request("POST", "/v1/exec", json={"command": "sleep 0.3; echo late"})
            conn.half_close()
            response = conn.read_response()
            assert (response.status, response.json()["stdout"]) == (200, "late\n")


def test_all_slots_taken_is_busy_and_says_when_to_come_again(start_nook):
    nook = start_nook("--max-commands", 2)
    command = "echo $$ > pid{}; while [ ! -e go ]; do sleep 0.01; done"
    with nook.connect() as one, nook.connect() as two:
        one.send_request("POST", "/v1/exec", json={"command": command.format(1)})
        two.send_request("POST", "/v1/exec", json={"command": command.format(2)})
        pid_in(nook, "pid1")
        pid_in(nook, "pid2")
        for target in ("/v1/exec", "/v1/exec/stream"):
            response = nook.post(target, {"command": "true"})
            assert (response.status, response.code) == (409, "busy")
            assert int(response.header("Retry-After")) > 0
        (nook.workspace / "go").touch()
        assert one.read_response().json()["exit_code"] == 0
        assert two.read_response().json()["exit_code"] == 0
    assert nook.exec("true")["exit_code"] == 0


@pytest.mark.root
def test_commands_run_as_the_user_and_in_no_other_group(nook):
    out = nook.exec("id -u; id -g; id -ru; id -rg")["stdout"].split()
    assert out == [str(nook.user)] * 4
    groups = [int(g) for g in nook.exec("id -G")["stdout"].split()]
    assert [g for g in groups if g != nook.user and g not in nook.marks] == []


@pytest.mark.root
def test_only_allowed_users_can_be_asked_for(start_nook):
    nook = start_nook("--allow-user", "nobody")
    result = nook.exec("id -un; echo $HOME $USER", user="nobody", cwd="/")
    assert result["stdout"].splitlines()[0] == "nobody"
    assert result["stdout"].splitlines()[1].endswith(" nobody")
    for user in ("root", "0", "daemon", ""):
        for target in ("/v1/exec", "/v1/exec/stream"):
            response = nook.post(target, {"command": "id", "user": user})
            assert (response.status, response.code) == (403, "forbidden")


@pytest.mark.root
def test_an_allowed_user_that_does_not_exist_is_named(start_nook):
    nook = start_nook("--allow-user", "nosuchuser")
    response = nook.post("/v1/exec", {"command": "id", "user": "nosuchuser"})
    assert (response.status, response.code) == (400, "bad_request")
    assert "nosuchuser" in response.json()["error"]["message"]


@pytest.mark.slow
def test_memory_is_bounded_by_max_output(nook):
    if is_sanitized():
        pytest.skip("a sanitizer's memory is not nookd's")
    size = scaled(256 << 20, 32 << 20)
    peak = [0]
    over = threading.Event()

    def watch():
        while not over.wait(0.01):
            peak[0] = max(peak[0], nook.rss())

    watcher = threading.Thread(target=watch)
    before = nook.rss()
    watcher.start()
    try:
        result = nook.exec(f"head -c {size} /dev/zero | tr '\\0' x", max_output=8 << 20)
    finally:
        over.set()
        watcher.join()
    assert result["stdout_size"] == size
    assert len(result["stdout"]) == 8 << 20
    assert peak[0] - before < 40 << 20


def test_commands_of_many_clients_run_side_by_side(nook):
    command = "touch up{}; while [ $(ls up* | wc -l) -lt 8 ]; do sleep 0.02; done"
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(nook.exec, command.format(i), timeout=60) for i in range(8)]
        assert {(r.result()["exit_code"], r.result()["timed_out"]) for r in runs} == {(0, False)}


def test_the_agent_ends_with_a_command_running(nook):
    with nook.connect() as conn:
        conn.send_request("POST", "/v1/exec",
                          json={"command": "trap 'echo bye; exit 4' TERM; echo $$ > pid; "
                                           "while :; do sleep 0.05; done"})
        pid_in(nook)
        nook.signal(signal.SIGTERM)
        response = conn.read_response()
    assert response.status == 200
    assert (response.json()["stdout"], response.json()["exit_code"]) == ("bye\n", 4)
    assert response.json()["reason"] == "shutdown"
    assert nook.wait() == 0


