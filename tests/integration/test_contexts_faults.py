"""What goes wrong with the interpreters of others, and what code can do to ours, one by one."""

import os
import signal
import threading

import pytest

import nook as harness
from contexts import LANGUAGES, Context, needs
from nook import scaled
from test_cgroups import needs as has_controller
from test_code import PATH
from test_exec import is_gone
from test_torture import SHIM, Shim
from wire import Closed, wait_until


@pytest.fixture
def nook(start_nook):
    return start_nook(env={"PATH": PATH})


@pytest.fixture
def python(nook):
    return Context(nook)


# of the peers


def test_output_of_child_processes_is_not_lost(python):
    code = ("import subprocess, sys\nfor i in range(50):\n    print(i)\n"
            "    subprocess.run(['echo', str(i)])\n")
    assert python.run(code)["stdout"] == "".join(f"{i}\n{i}\n" for i in range(50))


@pytest.mark.parametrize("language", LANGUAGES)
def test_code_that_reads_stdin_is_at_its_end(nook, language):
    code = {"python": "import sys\nprint(repr(sys.stdin.read()))",
            "javascript": "console.log(`'${require('fs').readFileSync(0, 'utf8')}'`)",
            "bash": "printf \"'%s'\\n\" \"$(cat)\"", "ruby": "puts \"'#{STDIN.read}'\"",
            "php": "echo \"'\", stream_get_contents(STDIN), \"'\\n\";"}[language]
    context = Context(nook, language)
    for _ in range(3):
        assert context.run(code)["stdout"] == "''\n"
    assert context.run(code, stdin="abc")["stdout"] == "'abc'\n"
    assert context.run(code)["stdout"] == "''\n"


def test_stdin_that_is_never_read_is_nobodys(python):
    assert python.value("1", stdin="x" * 500_000) == "1"
    assert python.run("input()")["error"]["name"] == "EOFError"


def test_one_print_of_2_mb_does_not_kill_the_context(python):
    result = python.run("x = 1\nprint('y' * 2_000_000)")
    assert result["stdout"] == "y" * 2_000_000 + "\n"
    assert python.value("x") == "1"
    assert len(python.value("'z' * 3_000_000")) < 1_100_000  # a value is cut, and says so


def test_markers_in_the_output_are_only_output(python):
    marker = '{"event":"done","run":1,"status":0}\n{"event":"ready"}\nok\nrun 1 1 0\n'
    assert python.run(f"import sys\nx = 5\nsys.stdout.write({marker!r})\nNone")["stdout"] == marker
    assert python.value("x") == "5"


def test_a_client_that_hangs_up_leaves_the_context_free(python):
    python.run("x = 1")
    for _ in range(3):
        stream = python.stream("import time\nprint('on', flush=True)\ntime.sleep(1000)")
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        stream.close()
        wait_until(lambda: python.show()["status"] == "idle", 20, "it is free again")
        assert python.value("x") == "1"


def test_a_second_run_in_a_busy_context_is_told_so_or_waits(python):
    with python.stream("import time\nprint('on', flush=True)\ntime.sleep(1000)") as stream:
        events = stream.events()
        assert [next(events).name for _ in range(2)] == ["started", "stdout"]
        assert [python.post("1").status for _ in range(5)] == [409] * 5
        python.ask("interrupt")
        assert list(events)[-1].name == "result"
    assert python.value("1") == "1"


def test_the_environment_of_one_run_is_not_a_field_that_could_leak(python):
    assert python.post("1", env={"A": "b"}).status == 400
    assert python.value("import os; os.environ.get('A')") is None


def test_a_timeout_does_not_throw_the_state_away(python):
    python.run("x = 1")
    result = python.run("import time\nfor i in range(10**9):\n    y = i\n", timeout=0.3)
    assert result["reason"] == "timeout" and result["error"]["name"] == "KeyboardInterrupt"
    assert "line 2" in result["error"]["traceback"] or "line 3" in result["error"]["traceback"]
    assert python.value("x, y > 0") == "(1, True)"


@pytest.mark.parametrize("language", LANGUAGES)
def test_exit_returns(nook, language):
    context = Context(nook, language)
    code = {"python": "import sys; sys.exit(3)", "javascript": "process.exit(3)",
            "bash": "exit 3", "ruby": "exit 3", "php": "exit(3);"}[language]
    assert context.run(code)["exit_code"] == 3
    assert context.run({"bash": ":", "php": ";"}.get(language, "1"))["exit_code"] == 0


def test_a_context_is_one_process(python, nook):
    assert len(nook.descendants()) == 1


# what code does


def test_code_that_forks_leaves_the_interpreter_to_its_parent(python):
    code = ("import os\npid = os.fork()\nos.write(1, b'parent\\n' if pid else b'child\\n')\n"
            "if pid: os.waitpid(pid, 0)\nx = pid")
    lines = python.run(code)["stdout"].split()
    assert sorted(lines) == ["child", "parent"]
    assert python.value("x > 0") == "True"
    result = python.run("if os.fork() == 0: raise ValueError('in the child')\nos.wait()[1]")
    assert result["result"] == {"text/plain": "256"}  # it ended with 1
    assert "in the child" in result["stderr"]


def test_what_a_child_writes_after_the_end_goes_to_the_log_only(python, nook):
    result = python.run("import subprocess\n"
                        "p = subprocess.Popen(['sh', '-c', 'sleep 0.3; echo late'])\nprint('now')")
    assert result["stdout"] == "now\n"
    logs = f"/v1/processes/{result['id']}/logs"
    wait_until(lambda: nook.get(logs).json()["stdout"] == "now\nlate\n", 20, "it is written")
    assert nook.get(f"/v1/processes/{result['id']}").json()["stdout_size"] == 4
    assert python.run("print('next')")["stdout"] == "next\n"


def test_threads_go_on_between_runs(python):
    python.run("import threading\ngo = threading.Event()\ndone = []\n"
               "def wait():\n    go.wait()\n    done.append(1)\n    display('from a thread')\n"
               "t = threading.Thread(target=wait)\nt.start()")
    result = python.run("go.set()\nt.join()\ndone")
    assert result["result"] == {"text/plain": "[1]"}
    assert result["displays"] == [{"text/plain": "'from a thread'"}]


CRASHES = [
    ("import os; os._exit(0)", 0, None), ("import os; os.kill(os.getpid(), 9)", 137, "KILL"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 139, "SEGV"),
    ("import os, threading, time\nthreading.Thread(target=lambda: os._exit(5)).start()\n"
     "time.sleep(1000)", 5, None),
]


def test_a_crash_is_told_as_what_it_is(python):
    for code, exit_code, name in CRASHES:
        result = python.run("print('before')\n" + code)
        assert (result["exit_code"], result["signal"]) == (exit_code, name)
        assert result["reason"] == ("signaled" if name else "exited")
        assert (result["stdout"], result["error"]["name"]) == ("before\n", "InterpreterEnded")
        assert python.run("1")["context_reset"] is True
        assert python.run("1")["context_reset"] is False


def test_an_end_between_two_runs_is_noticed(python, nook):
    pid = int(python.value("import os; os.getpid()"))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: python.show()["status"] == "dead", 20, "it is noticed")
    assert python.run("1")["context_reset"] is True


def test_want_of_memory_is_an_error_where_the_interpreter_lives_on(start_nook):
    python = Context(start_nook("--memory", 300 << 20, env={"PATH": PATH}))
    result = python.run("x = 1\nbytearray(1 << 30)")
    assert result["error"]["name"] == "MemoryError"
    assert python.value("x") == "1"


@has_controller("memory")
def test_an_interpreter_that_the_kernel_ends_for_want_of_memory_says_oom(nook):
    if harness.is_sanitized():
        pytest.skip("a start on a sanitizer's memory takes long")
    if not nook.get("/v1/capabilities").json()["isolation"]["cgroup"]["available"]:
        pytest.skip("there are no control groups here")
    limit = {"limits": {"memory": 96 << 20}}
    assert nook.request("PATCH", "/v1/sandbox", json=limit).status == 200
    python = Context(nook)
    result = python.run("x = [bytearray(b'x' * (8 << 20)) for _ in range(50)]", timeout=60)
    assert (result["reason"], result["exit_code"], result["signal"]) == ("oom", 137, "KILL")
    assert python.run("1")["context_reset"] is True


def test_code_that_ignores_the_interrupt_is_killed(python):
    result = python.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                        "while True: pass", timeout=0.2)
    assert (result["reason"], result["signal"], result["exit_code"]) == ("timeout", "KILL", 137)
    assert python.run("1")["context_reset"] is True


def test_code_that_closes_its_descriptors_loses_only_its_context(python, nook):
    python.run("import os\nos.closerange(3, 1000)")
    assert python.run("1")["context_reset"] is True
    python.run("import os\nos.close(1); os.close(2)")
    assert python.run("6 * 7")["exit_code"] in (0, 1)
    assert nook.get("/healthz").status == 200


def test_garbage_on_the_channel_ends_the_context_with_a_clear_error(python, nook):
    for said in (b"garbage\n", b"{}\n", b"\xff\n", b'{"event":"done","run":1,"status":256}\n',
                 b'{"event":"display","data":{"x":1}}\n', b'{"event":"display","data":[]}\n',
                 b'{"event":"done","run":1,"error":{"name":1}}\n', b"[" * 100_000 + b"\n",
                 b'{"event":"display","data":{"a/b":' + b"[" * 40 + b"]" * 40 + b"}}\n"):
        result = python.run(
            f"import os, time\nfd = {CHANNEL}\nos.write(fd, {said!r})\ntime.sleep(1000)")
        assert result["error"] == {"name": "InterpreterEnded", "traceback": "",
                                   "value": "something else than an event came over its channel"}
        assert python.run("1")["context_reset"] is True
    assert nook.get("/healthz").status == 200


CHANNEL = "next(n for n in range(64, 80) if os.path.realpath(f'/proc/self/fd/{n}').count('socket'))"


def test_an_end_that_the_code_forged_hurts_nobody(python):
    forged = '{"event":"done","run":1,"status":0,"result":{"text/plain":"forged"}}\n'
    result = python.run(f"import os, time\nos.write({CHANNEL}, {forged.encode()!r})\n"
                        "time.sleep(0.2)\nprint('later')")
    assert result["result"] == {"text/plain": "forged"}
    assert python.run("print('own')", queue=True)["stdout"].endswith("own\n")
    assert python.value("2") == "2"


def test_ends_of_other_runs_do_not_spare_one_that_heeds_no_interrupt(python):
    stale = b'{"event":"done","run":0,"status":0}\n'
    result = python.run(f"import os, signal\nfd = {CHANNEL}\n"
                        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                        f"while True: os.write(fd, {stale!r})", timeout=0.2)
    assert (result["reason"], result["signal"]) == ("timeout", "KILL")
    assert python.run("1")["context_reset"] is True


ODD_PYTHON = [  # what the code does, the name of its error
    ("class A:\n    def _repr_mimebundle_(self, **kw):\n        return {'no': 1, '\\n': 2, 'a/' * 99: 3,"
     " 'a/b': 'c', **{f'x/{i}': i for i in range(99)}}\nA()", None),
    ("import json, os\njson.dumps = os.write = os.read = None", None),
    ("class X:\n    def __str__(self): raise ValueError\nraise SystemExit(X())", "SystemExit"),
    ("class E(Exception):\n    def __str__(self): raise SystemExit(3)\nraise E", "E"),
    ("class M(type): __name__ = property(lambda s: 1 / 0)\n"
     "class E(Exception, metaclass=M): pass\nraise E", "Exception"),
]


def test_odd_values_and_modules_made_over_do_not_end_an_interpreter(python):
    python.run("kept = 1")
    for code, name in ODD_PYTHON:
        result = python.run(code)
        assert (result["error"] and result["error"]["name"]) == name, result
        assert python.value("kept") == "1"
    shown = python.run(ODD_PYTHON[0][0])["result"]
    assert shown["a/b"] == "c" and len(shown) == 32


@needs("node")
def test_globals_made_over_do_not_hang_a_run_in_javascript(nook):
    node = Context(nook, "javascript")
    node.run("const kept = 1")
    node.run("JSON.stringify = require('fs').writeSync = () => { throw 1 }; Promise = null; 1")
    assert node.value("kept") == "1"
    for threw in ("new Proxy({}, {get() { throw 5 }})",
                  "Object.defineProperty(new Error('m'), 'stack', {get() { throw 1 }})"):
        assert node.run("throw " + threw)["error"]["name"] == "Thrown"
    assert node.value("kept") == "1"


def test_break_and_continue_outside_of_a_loop_end_only_the_code_in_bash(nook):
    bash = Context(nook, "bash")
    bash.run("kept=1")
    for word in ("break", "continue", "set -x; continue 2", "break 1"):
        result = bash.run(f"echo a; {word}; echo b", timeout=60)
        assert (result["stdout"].split()[0], result["error"]) == ("a", None)
        assert bash.run("{ set +x; } 2>/dev/null; echo $kept", timeout=60)["stdout"] == "1\n"


@needs("ruby")
def test_an_object_without_methods_is_a_value_in_ruby(nook):
    ruby = Context(nook, "ruby")
    assert "NoMethodError" in ruby.value("kept = BasicObject.new")
    assert ruby.value("JSON.define_singleton_method(:generate) { |*| raise 'no' }; 1") == "1"


def test_a_bash_context_without_our_functions_ends_and_runs_nothing_twice(nook):
    bash = Context(nook, "bash")
    bash.run("echo once >>ran; unset -f __nook_next __nook_read")
    wait_until(lambda: bash.show()["status"] == "dead", 20, "it has ended")
    assert bash.run("cat ran", timeout=60)["stdout"] == "once\n"


@needs("php")
def test_a_form_of_a_value_that_fails_is_left_out_in_php(nook):
    php = Context(nook, "php")
    shown = php.run("class R { function _repr_html_() { throw new Exception('r'); } } new R")
    assert shown["error"] is None and list(shown["result"]) == ["text/plain"]
    assert php.run("echo 1; ?>text")["stdout"] == "1text"


def test_one_line_without_end_is_cut_off(python, nook):
    result = python.run(f"import os\nfd = {CHANNEL}\nwhile True: os.write(fd, b'x' * 65536)")
    assert "more in one line" in result["error"]["value"]
    assert nook.get("/healthz").status == 200
    assert python.run("1")["context_reset"] is True


def test_a_flood_of_shown_values_is_bounded(python, nook):
    before = nook.rss()
    result = python.run(f"for i in range({scaled(40, 10)}): display('x' * 1_000_000)")
    assert result["exit_code"] == 0
    told = [d["text/plain"] for d in result["displays"]]
    kept = [text for text in told if text is not None]
    assert len(told) == scaled(40, 10) and len(kept) <= 16
    if not harness.is_sanitized():
        wait_until(lambda: nook.rss() < before + (48 << 20), 20, "the memory is given back")


def test_a_reader_that_stands_still_slows_only_its_own_run(python, nook):
    other = Context(nook)
    stream = python.stream("for i in range(200_000): print('x' * 100)")
    assert other.value("1") == "1"
    assert nook.rss() < 200 << 20 or harness.is_sanitized()
    stream.close()
    wait_until(lambda: python.show()["status"] == "idle", 60, "it is free again")
    assert python.value("2") == "2"


def test_values_that_are_no_json_are_told_all_the_same(python):
    odd = ("class Odd:\n"
           "    def __repr__(self): return 'odd \\ud800 \\0'\n"
           "    def _repr_html_(self): return '<b>\\0</b>'\n"
           "    def _repr_json_(self): return {1: float('nan'), 'a': 10**100, 'b': [[]]}\n"
           "    def _repr_png_(self): return b'\\x89PNG'\n"
           "    def _repr_svg_(self): raise ValueError\n"
           "Odd()")
    assert python.run(odd)["result"] == {
        "text/plain": "odd ? \ufffd", "text/html": "<b>\ufffd</b>", "image/png": "iVBORw==",
        "application/json": {"1": None, "a": str(10**100), "b": [[]]}}
    result = python.run("class Bad:\n    def __repr__(self): raise ValueError('no')\nBad()")
    assert "ValueError" in result["result"]["text/plain"]
    result = python.run("class E(Exception):\n    def __str__(self): raise ValueError\nraise E")
    assert result["error"]["name"] == "E"
    deep = "x = []\nfor i in range(500): x = [x]\nclass D:\n    def _repr_json_(self): return x\nD()"
    assert "application/json" not in python.run(deep)["result"]
    assert python.run("def r(): r()\nr()")["error"]["name"] == "RecursionError"


def test_an_interrupt_at_any_moment_leaves_the_context_usable(python):
    python.run("x = 1")
    stop = threading.Event()

    def interrupt():
        while not stop.is_set():
            python.ask("interrupt")
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        for _ in range(scaled(200, 40)):
            result = python.run("display(x)\nx")
            assert result["exit_code"] in (0, 130) and not result["context_reset"], result
    finally:
        stop.set()
        thread.join()
    assert python.value("x") == "1"


def test_a_context_whose_creator_left_before_the_answer_is_ended(nook):
    slow = nook.workspace / "python3"
    slow.write_text("#!/bin/sh\n: >begun\nsleep 1000\n")
    slow.chmod(0o755)
    for _ in range(scaled(10, 3)):
        conn = nook.connect()
        conn.send_request("POST", "/v1/contexts", json={
            "language": "python", "env": {"PATH": f"{nook.workspace}:/bin"}})
        wait_until((nook.workspace / "begun").exists, 20, "it is starting")
        (nook.workspace / "begun").unlink()
        conn.reset()
        wait_until(lambda: not nook.get("/v1/contexts").json()["contexts"]
                   and not nook.descendants(), 20, "what nobody heard of is gone")


def test_deletes_and_restarts_in_the_midst_of_everything(nook):
    for round in range(scaled(20, 6)):
        bash = Context(nook, "bash")
        conns = [nook.connect() for _ in range(3)]
        for conn in conns:
            conn.send_request("POST", bash.path + "/code", json={"code": "sleep 0.01", "queue": True})
        if round % 3 == 0:
            bash.ask("restart")
        if round % 3 == 1:
            bash.delete()
        for conn in conns:
            assert conn.read_response("POST").status in (200, 404)
            conn.close()
        nook.request("DELETE", bash.path)
    wait_until(lambda: not nook.descendants(), 20, "nothing is left")


@pytest.mark.root
@pytest.mark.skipif(not harness.IS_ROOT, reason="needs root")
def test_identities_see_nothing_of_each_others_contexts(start_nook):
    nook = start_nook("--max-contexts", 1, identities=True, env={"PATH": PATH})
    one = [("X-Runbox-Identity", "one")]
    two = [("X-Runbox-Identity", "two")]
    mine = Context(nook, headers=one)
    yours = Context(nook, headers=two)  # the bound is each one's
    uids = [c.value("import os; os.getuid()") for c in (mine, yours)]
    assert uids[0] != uids[1]
    assert mine.made["cwd"] == mine.value("import os; os.getcwd()").strip("'")
    for method, tail, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/interrupt", {}),
                               ("POST", "/restart", {}), ("POST", "/code", {"code": "1"}),
                               ("POST", "/code/stream", {"code": "1"})):
        kw = {"json": body} if body is not None else {}
        assert nook.request(method, mine.path + tail, headers=two, **kw).status == 404
        assert nook.request(method, mine.path + tail, **kw).status == 404
    listed = nook.get("/v1/contexts", headers=one).json()["contexts"]
    assert [c["id"] for c in listed] == [mine.made["id"]]
    assert nook.get("/v1/contexts").json()["contexts"] == []
    changed = mine.run("open('made', 'w').write('x')")["files_changed"]
    assert changed == [{"path": "made", "size": 1}]
    assert mine.value("1") == "1"


@pytest.mark.slow
def test_every_allocation_of_a_context_may_fail_once(start_nook, tmp_path):
    if harness.is_sanitized() or not SHIM.exists():
        pytest.skip("the shim is not built, or a sanitizer has an allocator of its own")
    shim = Shim(tmp_path / "shim")
    nook = start_nook(env={"LD_PRELOAD": str(SHIM), "FAILALLOC": str(tmp_path / "shim"),
                           "PATH": PATH})
    bash = Context(nook, "bash")
    fds = len(nook.fds())
    for target, body in ((bash.path + "/code", {"code": "echo x; exit 0", "stdin": "y" * 70_000,
                                               "queue": True}),
                         (bash.path + "/code/stream", {"code": "echo x", "queue": True}),
                         (bash.path + "/restart", {}), ("/v1/contexts", {"language": "bash"})):
        for k in range(1, 400):
            with nook.connect(wait=60) as conn:
                shim.fail_at(k)
                try:
                    answer = conn.request("POST", target, json=body)
                    assert answer.status in (200, 201, 400, 500, 501, 503), answer
                except (Closed, ConnectionError):
                    answer = None
                hit = shim.hit
                shim.fail_at(0)
            for made in nook.get("/v1/contexts").json()["contexts"]:
                if made["id"] != bash.made["id"]:
                    nook.request("DELETE", f"/v1/contexts/{made['id']}")
            if not hit:
                break
        else:
            pytest.fail("more allocations than anybody can believe")
        assert bash.run("echo fine", queue=True)["stdout"] == "fine\n"
    bash.delete()
    wait_until(lambda: not nook.descendants(), 20, "nothing is left")
    wait_until(lambda: len(nook.fds()) <= fds, 20, "every descriptor is back")


# what is shown


def has_module(nook, name):
    return nook.exec(["python3", "-c", f"import {name}"])["exit_code"] == 0


def test_figures_are_shown_at_the_end_of_a_run_or_when_asked(nook):
    if not has_module(nook, "matplotlib"):
        pytest.skip("matplotlib is not installed")
    python = Context(nook)
    result = python.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\n"
                        "plt.plot([3])\nprint('drawn')\nNone", timeout=120)
    assert [sorted(d) for d in result["displays"]] == [["image/png", "text/plain"]] * 2
    assert all(d["image/png"].startswith("iVBORw0KGgo") for d in result["displays"])
    assert python.run("1")["displays"] == []
    result = python.run("fig, ax = plt.subplots()\nax.plot([1])\nplt.show()\nfig.get_figwidth() > 0")
    assert len(result["displays"]) == 1 and "Agg" not in result["stderr"]
    result = python.run("fig, ax = plt.subplots()\nax.plot([1])\nfig")
    assert result["result"]["image/png"].startswith("iVBORw0KGgo") and result["displays"] == []


def test_matplotlib_is_not_loaded_by_us(python):
    assert python.value("import sys; 'matplotlib' in sys.modules") == "False"


def test_tables_of_pandas_come_as_html(nook):
    if not has_module(nook, "pandas"):
        pytest.skip("pandas is not installed")
    python = Context(nook)
    result = python.run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': [3, 4]})", timeout=120)
    assert "<table" in result["result"]["text/html"]
    assert result["result"]["text/plain"].split()[:2] == ["a", "b"]
    assert python.run("display(pd.DataFrame({'c': [1]}))")["displays"][0]["text/html"]


@needs("node")
def test_values_of_javascript_come_as_they_are_inspected(nook):
    node = Context(nook, "javascript")
    assert node.value("({ a: [1, { b: 2 }] })") == "{ a: [ 1, { b: 2 } ] }"
    assert node.value("new Map([[1, 'x']])") == "Map(1) { 1 => 'x' }"
    assert node.value("undefined") is None
    shown = node.run("display({ _repr_html_: () => '<b>x</b>' })")["displays"]
    assert shown[0]["text/html"] == "<b>x</b>"
    assert node.value("const c = {}; c.c = c; c") == "<ref *1> { c: [Circular *1] }"


def test_a_bash_context_keeps_descriptors_traps_and_options(nook):
    bash = Context(nook, "bash")
    bash.run("exec 5<<<'kept'; set -x; shopt -s nullglob; alias hi='echo hi'")
    result = bash.run("read -r l <&5; echo $l")
    assert result["stdout"] == "kept\n" and "+ echo kept" in result["stderr"]
    assert bash.run("set +x; shopt nullglob")["stdout"].split()[-1] == "on"
    assert bash.run("ls /proc/self/fd | wc -l; exec 5<&-")["stdout"] == "5\n"  # with its own


@pytest.mark.skipif(not harness.IS_ROOT, reason="needs marks")
def test_what_a_dead_interpreter_left_behind_goes_with_it(python, nook):
    result = python.run("import os, subprocess\n"
                        "p = subprocess.Popen(['setsid', 'sleep', '1000'])\n"
                        "print(p.pid, flush=True)\nos._exit(1)")
    wait_until(lambda: is_gone(int(result["stdout"])), 20, "its child ends")
    assert python.run("1")["context_reset"] is True
