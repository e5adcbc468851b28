"""/v1/contexts: interpreters that keep their state between runs, in every language."""

import itertools
import threading

import pytest

import nook as harness
import ws_client
from contexts import LANGUAGES, Context, needs
from nook import scaled
from test_code import PATH
from test_exec import is_gone
from wire import wait_until


@pytest.fixture
def nook(start_nook):
    return start_nook(env={"PATH": PATH})


@pytest.fixture
def python(nook):
    return Context(nook)


SAMPLES = {  # set, value, child, input, threw, loop, quit
    "python": {
        "set": "x = 41\ndef f(): return x + 1", "value": "f()", "is": "42",
        "child": "import os\nprint('a')\nos.system('echo b; echo c >&2')\nprint('d')",
        "input": "input()", "line": "'word'", "nothing": "import sys; sys.stdin.read() + '.'",
        "throw": "def g():\n    raise ValueError('boom')\n\ng()", "threw": "ValueError",
        "loop": "while True: pass", "quit": "import os; os._exit(7)",
        "big": "print('x' * 2000000)", "broken": "x ===", "marker": "print('{\"event\":\"done\"}')",
    },
    "javascript": {
        "set": "const x = 41; function f() { return x + 1 }", "value": "f()", "is": "42",
        "child": "console.log('a'); require('child_process').spawnSync('sh', ['-c', "
                 "'echo b; echo c >&2'], {stdio: 'inherit'}); console.log('d')",
        "input": "require('fs').readFileSync(0, 'utf8').split('\\n')[0]", "line": "'word'",
        "nothing": "require('fs').readFileSync(0, 'utf8') + '.'",
        "throw": "function g() {\n  throw new TypeError('boom')\n}\ng()", "threw": "TypeError",
        "loop": "for (;;) {}", "quit": "process.exit(7)",
        "big": "console.log('x'.repeat(2000000))", "broken": "x ===",
        "marker": "console.log('{\"event\":\"done\"}')",
    },
    "bash": {
        "set": "x=41; f() { echo $((x + 1)); }; cd /", "value": "f; pwd", "is": "42\n/\n",
        "child": "echo a; sh -c 'echo b; echo c >&2'; echo d",
        "input": "read -r l; echo \"'$l'\"", "line": "'word'\n", "nothing": "cat; echo .",
        "throw": "g() {\n  nosuchcommand\n}\ng", "threw": "nosuchcommand",
        "loop": "while :; do :; done", "quit": "exit 7",
        "big": "printf 'x%.0s' {1..2000}; head -c 1998000 /dev/zero | tr '\\0' x; echo",
        "broken": "if then", "marker": "echo '{\"event\":\"done\"}'",
    },
    "ruby": {
        "set": "x = 41; @y = 1", "value": "x + @y", "is": "42",
        "child": "puts 'a'; system('echo b; echo c >&2'); puts 'd'",
        "input": "gets.chomp", "line": '"word"', "nothing": "STDIN.read + '.'",
        "throw": "def g\n  raise ArgumentError, 'boom'\nend\ng", "threw": "ArgumentError",
        "loop": "loop {}", "quit": "exit! 7", "big": "puts 'x' * 2_000_000", "broken": "x ===",
        "marker": "puts '{\"event\":\"done\"}'",
    },
    "php": {
        "set": "$x = 41; function f() { global $x; return $x + 1; }", "value": "f()", "is": "42",
        "child": "echo \"a\\n\"; passthru('echo b; echo c >&2'); echo \"d\\n\";",
        "input": "rtrim(fgets(STDIN))", "line": "'word'",
        "nothing": "stream_get_contents(STDIN) . '.'",
        "throw": "function g() {\n  throw new LogicException('boom');\n}\ng();",
        "threw": "LogicException", "loop": "while (true) {}", "quit": "exit(7);",
        "big": "echo str_repeat('x', 2000000), \"\\n\";", "broken": "$x ===",
        "marker": "echo '{\"event\":\"done\"}', \"\\n\";",
    },
}


def said(language, result):
    """The value of a run; bash has none but its output."""
    return result["stdout"] if language == "bash" else result["result"]["text/plain"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_state_is_kept_and_the_last_expression_is_told(nook, language):
    sample = SAMPLES[language]
    context = Context(nook, language, name="mine")
    assert {**context.made, "id": 0, "created_at": 0} == {
        "id": 0, "created_at": 0, "language": language, "name": "mine", "status": "idle",
        "cwd": str(nook.workspace)}
    first = context.run(sample["set"])
    assert (first["exit_code"], first["execution_count"], first["context_reset"]) == (0, 1, False)
    second = context.run(sample["value"])
    assert said(language, second) == sample["is"] and second["execution_count"] == 2
    assert (second["language"], second["error"]) == (language, None)
    context.delete()
    assert nook.get(context.path).status == 404


@pytest.mark.parametrize("language", LANGUAGES)
def test_output_of_children_comes_in_order_and_input_breaks_nothing(nook, language):
    sample = SAMPLES[language]
    context = Context(nook, language)
    result = context.run(sample["child"])
    assert (result["stdout"], result["stderr"]) == ("a\nb\nd\n", "c\n")
    assert said(language, context.run(sample["input"], stdin="word\nmore\n")) == sample["line"]
    nothing = said(language, context.run(sample["nothing"]))  # what was left over is nobody's
    assert nothing.strip("'\"\n") == "."
    assert context.run(sample["marker"])["stdout"] == '{"event":"done"}\n'
    big = context.run(sample["big"])
    assert (big["stdout_size"], len(big["stdout"])) == (2_000_001, 2_000_001)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_shows_the_users_lines(nook, language):
    sample = SAMPLES[language]
    context = Context(nook, language)
    result = context.run(sample["throw"])
    assert result["exit_code"] == (127 if language == "bash" else 1)
    if language == "bash":
        assert "line 2: nosuchcommand" in result["stderr"]
    else:
        error = result["error"]
        assert error["name"] == sample["threw"] and "boom" in error["value"]
        assert error["value"] in error["traceback"]
        assert "2" in error["traceback"] and "context" not in error["traceback"]
    broken = context.run(sample["broken"])
    assert broken["exit_code"] != 0
    assert said(language, context.run(sample["value"] if context.run(sample["set"]) else "")) \
        == sample["is"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_timeout_interrupts_and_keeps_the_state(nook, language):
    sample = SAMPLES[language]
    context = Context(nook, language)
    context.run(sample["set"])
    result = context.run(sample["loop"], timeout=0.3)
    assert (result["timed_out"], result["reason"], result["exit_code"]) == (True, "timeout", 137)
    assert result["signal"] is None
    after = context.run(sample["value"])
    assert said(language, after) == sample["is"] and not after["context_reset"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_end_of_the_interpreter_is_told_and_the_next_run_is_fresh(nook, language):
    sample = SAMPLES[language]
    context = Context(nook, language)
    context.run(sample["set"])
    result = context.run(sample["quit"])
    assert (result["exit_code"], result["reason"], result["signal"]) == (7, "exited", None)
    assert result["error"]["name"] == "InterpreterEnded" and "7" in result["error"]["value"]
    assert context.show()["status"] == "dead"
    fresh = context.run(sample["set"])
    assert (fresh["context_reset"], fresh["execution_count"]) == (True, 1)
    again = context.run(sample["value"])
    assert said(language, again) == sample["is"] and not again["context_reset"]


def test_many_runs_keep_their_state(python):
    runs = scaled(1000, 100)
    python.run("total = 0")
    with python.nook.connect() as conn:
        for i in range(runs):
            body = conn.request("POST", python.path + "/code", json={"code": f"total += {i}"}).json()
            assert (body["exit_code"], body["execution_count"]) == (0, i + 2)
    assert python.value("total") == str(sum(range(runs)))


def test_await_at_the_top_and_tasks_that_go_on(python):
    assert python.value("import asyncio\nawait asyncio.sleep(0.01)\n'done'") == "'done'"
    python.run("async def later():\n    global seen\n    await asyncio.sleep(0.05)\n    seen = 1\n"
               "task = asyncio.get_event_loop().create_task(later())")
    python.value("await task")
    assert python.value("seen") == "1"


@needs("node")
def test_await_and_import_at_the_top_in_javascript(nook):
    node = Context(nook, "javascript")
    assert node.value("import path from 'path'\nimport { sep as s } from 'path'\n"
                      "const a = await new Promise(r => setTimeout(() => r(path.join('a', s)), 5)); a"
                      ) == "'a/'"
    assert node.value("const a = 1; let b = 2; class C {}; a + b") == "3"
    assert node.value("const a = 3; let b = 4; class C {}; a + b") == "7"
    assert node.value("(await import('fs')).existsSync('/')") == "true"
    result = node.run("setTimeout(() => { throw new Error('stray') }, 5);\n"
                      "await new Promise(r => setTimeout(r, 10000))")
    assert result["error"]["value"] == "stray"


def test_a_context_has_the_directory_and_environment_it_was_made_with(nook):
    (nook.workspace / "sub").mkdir(mode=0o777)
    one = Context(nook, cwd="sub", env={"REGION": "north"})
    two = Context(nook)
    code = "import os; os.getcwd(), os.environ.get('REGION')"
    assert one.value(code) == repr((f"{nook.workspace}/sub", "north"))
    assert two.value(code) == repr((str(nook.workspace), None))
    assert [c["id"] for c in nook.get("/v1/contexts").json()["contexts"]] == [
        one.made["id"], two.made["id"]]


def test_what_lies_in_the_directory_is_for_the_code_only(nook):
    for name in ("json", "ast", "traceback", "types"):
        (nook.workspace / f"{name}_.py").write_text("")
        (nook.workspace / f"{name}.py").write_text("raise SystemExit('stolen')\n")
    (nook.workspace / "mine.py").write_text("VALUE = 5\n")
    assert Context(nook).value("import mine; mine.VALUE") == "5"


def test_changed_files_and_images_are_told_as_of_other_code(python, nook):
    result = python.run("open('made', 'w').write('12')\n"
                        f"open({str(nook.output)!r} + '/a.gif', 'wb').write(b'GIF89a' + bytes(20))")
    assert [f["path"] for f in result["files_changed"]] == [
        f"{nook.output}/a.gif", f"{nook.workspace}/made"]
    assert [(o["mime"], o["size"]) for o in result["outputs"]] == [("image/gif", 26)]
    assert python.run("1")["files_changed"] == []


def test_max_output_keeps_the_newest_bytes(python):
    result = python.run("print('x' * 5000 + 'end')", max_output=10)
    assert (result["stdout"], result["stdout_truncated"], result["stdout_size"]) == (
        "xxxxxxend\n", True, 5004)


def session_of(nook, **start):
    return ws_client.Session(nook.connect(wait=120), start=start)


def events_of(stream):
    with stream:
        return [(e.name, e.data) for e in stream.events() if e.name]


def test_a_stream_has_what_is_shown_in_its_place(python):
    python.run("import sys")
    events = events_of(python.stream(
        "print('one', flush=True); display(1); print('two', file=sys.stderr); display('é'); 3"))
    names = [name for name, _ in itertools.groupby(name for name, _ in events)]
    assert names == ["started", "stdout", "display", "stderr", "display", "result"]
    assert [data for name, data in events if name == "display"] == [
        {"text/plain": "1"}, {"text/plain": "'é'"}]
    end = events[-1][1]
    assert end["result"] == {"text/plain": "3"} and "displays" not in end
    assert python.run("display(1); display(2)")["displays"] == [
        {"text/plain": "1"}, {"text/plain": "2"}]


def test_a_session_feeds_what_the_code_reads(python, nook):
    start = {"code": "display(0)\nprint(input('? '))\nx = 5\ninput()", "context": python.made["id"]}
    with session_of(nook, **start) as session:
        session.until_output("? ")
        session.say("stdin", text="typed\n")
        session.until_output("typed\n")
        session.say("stdin", text="last\n")
        end = session.take_until(lambda m: m["type"] == "result")
        assert session.ended() == 1000
    assert session.others[1] == {"type": "display", "data": {"text/plain": "0"}, "offset": 0}
    assert (end["result"], end["exit_code"]) == ({"text/plain": "'last'"}, 0)
    assert python.value("x") == "5"


def test_a_session_in_a_context_chooses_nothing_else(python, nook):
    for field in ({"env": {}}, {"cwd": "/"}, {"language": "python"}, {"tty": True}, {"args": []}):
        with session_of(nook, code="1", context=python.made["id"], **field) as session:
            message = session.recv_message()
            assert (message["type"], message["code"]) == ("error", "bad_request"), field
    with session_of(nook, code="1", context="none") as session:
        assert session.recv_message()["code"] == "not_found"


def test_runs_wait_for_their_turn_in_order_or_are_refused(python):
    with python.stream("import time\norder = []\nprint('on', flush=True)\n"
                       "while not order: time.sleep(0.01)\n") as holder:
        events = holder.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        busy = python.post("1")
        assert (busy.status, busy.code) == (409, "busy") and busy.header("Retry-After")
        assert python.show()["status"] == "busy"
        waiting = [python.nook.connect() for _ in range(4)]
        for i, conn in enumerate(waiting):
            conn.send_request("POST", python.path + "/code",
                              json={"code": f"order.append({i})", "queue": True})
            python.show()  # answered after that was read
        python.ask("interrupt")
        for conn in waiting:
            assert conn.read_response("POST").status == 200
            conn.close()
    assert python.value("order") == "[0, 1, 2, 3]"


def test_two_clients_at_once_wait_for_each_other(python):
    python.run("n = 0")
    runs = scaled(100, 20)

    def add():
        for _ in range(runs):
            python.run("m = n; n = m + 1", queue=True)
    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert python.value("n") == str(2 * runs)


def test_an_interrupt_ends_the_run_and_nothing_else(python):
    python.run("x = 1")
    with python.stream("import time\nprint('on', flush=True)\ntime.sleep(1000)") as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        python.ask("interrupt")
        end = list(events)[-1].data
    assert (end["exit_code"], end["reason"], end["error"]["name"]) == (
        130, "exited", "KeyboardInterrupt")
    python.ask("interrupt")  # idle: nothing happens
    assert python.value("x") == "1"


def test_an_interrupt_reaches_what_the_code_waits_for(python):
    with python.stream("import os\nprint('on', flush=True)\n"
                       "print(os.system('sleep 1000'))") as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        wait_until(lambda: any(b"sleep" in p for p in command_lines(python.nook)), 20, "it sleeps")
        python.ask("interrupt")
        list(events)[-1].data
    wait_until(lambda: not any(b"sleep" in p for p in command_lines(python.nook)), 20, "it ends")


def command_lines(nook):
    out = []
    for pid in nook.descendants():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                out.append(file.read())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return out


def test_a_restart_is_fresh_and_no_reset(python):
    python.run("x = 1")
    assert python.ask("restart")["status"] == "idle"
    result = python.run("x")
    assert result["error"]["name"] == "NameError"
    assert (result["execution_count"], result["context_reset"]) == (1, False)


def test_a_restart_kills_the_run_in_it(python):
    with python.stream("import time\nprint('on', flush=True)\ntime.sleep(1000)") as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        python.ask("restart")
        end = list(events)[-1].data
    assert (end["reason"], end["killed"]) == ("killed", True)
    assert python.value("1") == "1"


def test_a_delete_ends_all_that_its_code_left(python):
    pid = int(python.run("import subprocess\n"
                         "p = subprocess.Popen(['setsid', 'sleep', '1000'])\nprint(p.pid)")["stdout"])
    python.delete()
    wait_until(lambda: is_gone(pid), 20, "its child ends")
    wait_until(lambda: not python.nook.descendants(), 20, "its interpreter ends")


def test_what_was_waited_for_in_a_deleted_context_is_404(python):
    with python.stream("import time\nprint('on', flush=True)\ntime.sleep(1000)") as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(python.post("1", queue=True)))
        waiting.start()
        python.delete()
        waiting.join(60)
        assert list(events)[-1].data["reason"] == "killed"
    assert answers[0].status == 404


def test_the_number_of_contexts_is_bounded(start_nook):
    nook = start_nook("--max-contexts", 2, env={"PATH": PATH})
    one, _ = Context(nook, "bash"), Context(nook, "bash")
    response = nook.post("/v1/contexts", {"language": "bash"})
    assert (response.status, response.code) == (409, "busy")
    one.delete()
    Context(nook, "bash")


def test_a_run_takes_a_command_slot_and_an_idle_context_none(start_nook):
    nook = start_nook("--max-commands", 1, env={"PATH": PATH})
    bash = Context(nook, "bash")
    assert nook.exec("true")["exit_code"] == 0
    with bash.stream("echo on; read -r line", stdin_open=True) as stream:
        events = stream.events()
        started = next(events).data
        assert nook.post("/v1/exec", {"command": "true"}).code == "busy"
        listed = nook.get("/v1/processes?running=true").json()["processes"]
        assert [(p["id"], p["command"]) for p in listed] == [
            (started["id"], ["bash", "context", bash.made["id"]])]
        assert nook.post(f"/v1/processes/{started['id']}/stdin",
                         {"text": "x\n", "close": True}).status == 200
        assert list(events)[-1].name == "result"
    assert nook.exec("true")["exit_code"] == 0


def test_a_key_makes_one_context_and_runs_code_once(nook):
    key = [("Idempotency-Key", "k")]
    one, two = Context(nook, headers=key), Context(nook, headers=key)
    assert one.made["id"] == two.made["id"]
    assert len(nook.get("/v1/contexts").json()["contexts"]) == 1
    other = nook.post("/v1/contexts", {"language": "bash"}, headers=key)
    assert (other.status, other.code) == (409, "conflict")
    one.headers = []
    first = one.run("n = globals().get('n', 0) + 1\nn", headers=[("Idempotency-Key", "r")])
    second = one.run("n = globals().get('n', 0) + 1\nn", headers=[("Idempotency-Key", "r")])
    assert first == second and first["result"] == {"text/plain": "1"}
    assert one.value("n") == "1"


def test_what_cannot_be_started_is_told(nook):
    for body, status, code in [
            ({"language": "cobol"}, 400, "bad_language"), ({"language": "sh"}, 501, "not_supported"),
            ({"cwd": "/nonexistent"}, 400, "exec_failed"), ({"x": 1}, 400, "bad_request"),
            ({"language": "python", "env": {"PATH": "/nonexistent"}}, 501, "not_supported"),
            ({"env": {"PYTHONHOME": "/nonexistent"}}, 400, "exec_failed")]:
        response = nook.post("/v1/contexts", {"language": "python", **body}, wait=120)
        assert (response.status, response.code) == (status, code), response
    assert nook.get("/v1/contexts").json() == {"contexts": []}
    wait_until(lambda: not nook.descendants(), 20, "nothing is left")


@pytest.mark.skipif(not harness.IS_ROOT, reason="needs marks")
def test_a_pause_freezes_the_interpreter_and_the_clock_of_its_run(python, nook):
    with python.stream("import time\nprint('on', flush=True)\ntime.sleep(0.2)",
                       timeout=30) as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        assert nook.post("/v1/sandbox/pause").status == 200
        assert nook.post("/v1/contexts", {"language": "bash"}).code == "paused"
        assert nook.post("/v1/sandbox/resume").status == 200
        assert list(events)[-1].data["exit_code"] == 0


def test_the_sandbox_ends_with_contexts_idle_busy_and_dead(nook):
    Context(nook, "bash")
    busy = Context(nook, "bash")
    dead = Context(nook, "bash")
    dead.run("exit 1")
    with busy.stream("echo on; sleep 1000") as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        assert nook.request("DELETE", "/v1/sandbox").status == 202
        assert list(events)[-1].data["reason"] == "shutdown"
    assert nook.wait() == 0


def test_nookd_run_in_a_context(python, nook):
    done = nook.cli("run", "--context", python.made["id"], input=b"x = 20\nprint('out')\nx + 1")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n21\n", b"", 0)
    done = nook.cli("run", "--context", python.made["id"], "-", input=b"display(x)\n1/0")
    assert (done.stdout, done.returncode) == (b"20\n", 1)
    assert b"ZeroDivisionError" in done.stderr and b"line 2" in done.stderr
    for args in (["--context", "../x"], ["--context", "x", "--cwd", "/"],
                 ["--context", "x", "-", "arg"]):
        done = nook.cli("run", *args, input=b"")
        assert done.returncode == 125 and done.stderr.count(b"\n") == 1
