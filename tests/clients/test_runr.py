"""The RunR client against a real agent, in both its forms."""

import ast
import asyncio
import contextlib
import os
import shutil
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import front
import runr_sandbox
from forms import Form
from nook import scaled
from runr_sandbox import AsyncSandbox, Sandbox
from wire import wait_until

PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
         "rkJggg==")


@pytest.fixture(params=["sync", "asyncio"])
def form(request):
    form = Form(request.param)
    yield form
    form.close()


@pytest.fixture
def start(start_nook, monkeypatch):
    """An agent that the environment names."""
    def start(*options):
        nook = start_nook(*options, tcp=True)
        monkeypatch.setenv("RUNR_API_URL", f"http://127.0.0.1:{nook.port}")
        monkeypatch.setenv("RUNR_API_KEY", nook.token)
        monkeypatch.setenv("NO_PROXY", "*")
        return nook
    return start


@pytest.fixture
def agent(start):
    return start()


@pytest.fixture
def made(form):
    """made(**options): a sandbox whose connections the test's end releases."""
    with contextlib.ExitStack() as undo:
        def create(**options):
            sandbox = form.create(**options)
            undo.callback(form.release, sandbox)
            return sandbox
        yield create


@pytest.fixture
def sandbox(agent, made):
    return made()


def failing(call, *args, **kw):
    """The exception of a call that must fail."""
    with pytest.raises(runr_sandbox.RunrSandboxError) as caught:
        call(*args, **kw)
    return caught.value


def newest(nook):
    """The record of the command that was started last."""
    return nook.get("/v1/processes?limit=1").json()["processes"][0]


def wait_gone(nook):
    wait_until(lambda: newest(nook)["status"] == "exited", 10, "the command ends")
    assert newest(nook)["reason"] == "client_gone"


# commands


def test_a_command_is_a_string_or_a_list(sandbox):
    assert sandbox.exec("echo $0 | tr -d /").stdout == "binsh\n"
    assert sandbox.exec(["echo", "$0"]).stdout == "$0\n"
    result = sandbox.exec("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert not result.ok and result.reason == "exited" and result.duration_ms > 0


def test_a_command_has_its_input_environment_and_folder(sandbox, agent):
    sandbox.files.mkdir("sub")
    result = sandbox.exec("cat; echo $A; pwd", stdin="text", env={"A": "1"},
                          cwd=str(agent.workspace / "sub"))
    assert result.stdout == f"text1\n{agent.workspace}/sub\n"
    assert sandbox.exec("cat", stdin=b"\xff\0x").stdout_bytes == b"\xff\0x"
    assert sandbox.exec("cat", stdin="a\0b").stdout_bytes == b"a\0b"


def test_input_larger_than_a_json_body_is_streamed(sandbox):
    data = os.urandom(1_500_000)
    assert sandbox.exec("wc -c", stdin=data).stdout.strip() == "1500000"
    with_events = list(sandbox.exec_stream("sha256sum", stdin=data))
    whole = subprocess.run(["sha256sum"], input=data, capture_output=True, check=True)
    assert with_events[0].data == whole.stdout


def test_bytes_that_are_no_text_stay_exact(sandbox):
    result = sandbox.exec(r"printf 'a\377b'")
    assert (result.stdout_bytes, result.stdout) == (b"a\xffb", "a\ufffdb")


def test_a_command_over_its_time_was_killed(sandbox):
    result = sandbox.exec("sleep 600", timeout=0.2)
    assert (result.exit_code, result.timed_out, result.ok) == (137, True, False)


def test_a_program_that_is_not_there_is_told_before_anything_runs(sandbox):
    for call in (sandbox.exec, lambda c: list(sandbox.exec_stream(c)), sandbox.processes.start):
        error = failing(call, ["/no/such/program"])
        assert type(error) is runr_sandbox.BadRequestError
        assert (error.status, error.reason) == (400, "exec_failed")
        assert error.body["error"]["errno"] == "ENOENT" and "/no/such" in error.message


def test_events_come_while_the_command_runs(sandbox, agent):
    seen = []
    for event in sandbox.exec_stream(
            "echo one; until [ -e go ]; do sleep 0.01; done; printf two >&2; exit 4"):
        seen.append((event.type, event.data, event.exit_code))
        if event.data == b"one\n":
            sandbox.files.write("go", "")
    assert seen == [("stdout", b"one\n", None), ("stderr", b"two", None), ("exit", b"", 4)]


def test_separators_of_lines_in_text_do_not_cut_it(sandbox):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\n"
    assert "".join(e.text for e in sandbox.exec_stream(["printf", "%s", text])) == text


def test_leaving_a_stream_ends_its_command(sandbox, agent):
    events = sandbox.exec_stream("echo up; sleep 600")
    assert next(events).text == "up\n"
    events.close()
    wait_gone(agent)


def test_threads_share_a_sandbox(agent):
    sandbox = Sandbox.create()
    with ThreadPoolExecutor(16) as pool:
        numbers = [str(n) for n in range(scaled(200, 40))]
        assert [r.stdout for r in pool.map(lambda n: sandbox.exec(["echo", n]), numbers)] == \
            [n + "\n" for n in numbers]
    sandbox.close()
    assert agent.wait() == 0


def test_a_task_that_is_cancelled_ends_its_command(agent):
    async def main():
        sandbox = await AsyncSandbox.create()
        for start in (sandbox.exec, lambda c: sandbox.exec_stream(c).__anext__()):
            task = asyncio.ensure_future(start("echo up > up; sleep 600"))
            await asyncio.to_thread(wait_until, (agent.workspace / "up").exists)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(wait_gone, agent)
            await sandbox.files.remove("up")
        await sandbox.close()

    asyncio.run(main())


def test_many_commands_run_at_once_on_one_loop(agent):
    async def main():
        async with AsyncSandbox.create() as sandbox:
            numbers = [str(n) for n in range(scaled(200, 40))]
            results = await asyncio.gather(*(sandbox.exec(["echo", n]) for n in numbers))
            assert [r.stdout for r in results] == [n + "\n" for n in numbers]
            async for event in sandbox.exec_stream("yes"):
                break
            await asyncio.to_thread(wait_gone, agent)

    asyncio.run(main())
    assert agent.wait() == 0


# the exec WebSocket


def test_a_program_reads_each_line_as_it_is_sent(sandbox):
    with sandbox.exec_ws(["cat"]) as session:
        events = iter(session)
        for word in ("one\n", "two\n", "\u00e9\u2028\n"):
            session.send_stdin(word)
            assert next(events).text == word
        session.send_stdin(b"\xff\0\n")
        assert next(events).data == b"\xff\0\n"
        session.close_stdin()
        assert [(e.type, e.exit_code) for e in events] == [("exit", 0)]
        result = session.wait()
    assert result.stdout_bytes == "one\ntwo\n\u00e9\u2028\n".encode() + b"\xff\0\n"


def test_another_thread_sends_while_this_one_reads(agent):
    data = os.urandom(scaled(20_000_000))
    sandbox = Sandbox.create()

    def send(session):
        session.send_stdin(data)
        session.close_stdin()

    with sandbox.exec_ws("cat") as session:
        sender = threading.Thread(target=send, args=(session,))
        sender.start()
        got = b"".join(event.data for event in session)
        sender.join()
    assert got == data
    sandbox.close()


def test_killing_a_session_tells_so(sandbox):
    with sandbox.exec_ws("echo up; sleep 600") as session:
        events = iter(session)
        assert next(events).text == "up\n"
        session.kill()
        last = next(events)
    assert (last.type, last.killed, last.exit_code) == ("exit", True, 137)


def test_a_session_has_the_options_of_a_command(sandbox, agent):
    with sandbox.exec_ws("cat; echo $A; pwd", stdin="first\n", env={"A": "1"},
                         cwd=str(agent.tmp)) as session:
        session.close_stdin()
        assert session.wait().stdout == f"first\n1\n{agent.tmp}\n"
    with sandbox.exec_ws("sleep 600", timeout=0.2) as session:
        assert (session.wait().timed_out, session.wait().exit_code) == (True, 137)


def test_leaving_a_session_ends_its_command(sandbox, agent):
    with sandbox.exec_ws("echo up; sleep 600") as session:
        next(iter(session))
    wait_gone(agent)


def test_a_session_is_left_in_the_middle_of_a_flood(sandbox, agent):
    with sandbox.exec_ws("yes") as session:
        next(iter(session))
    wait_gone(agent)


def test_a_terminal_has_its_size_and_its_end_of_input(sandbox):
    with sandbox.exec_ws("stty size; read x; stty size; cat; test -t 1 && echo tty", tty=True,
                         cols=100, rows=30) as session:
        events = iter(session)
        said = ""
        while "30 100\r\n" not in said:
            said += next(events).text
        session.resize(120, 40)
        session.send_stdin("\n")
        while "40 120\r\n" not in said:
            said += next(events).text
        session.close_stdin()
        rest = list(events)
    assert rest[-1].exit_code == 0 and {e.type for e in rest[:-1]} == {"stdout"}
    assert said + "".join(e.text for e in rest) == "30 100\r\n\r\n40 120\r\ntty\r\n"


def test_code_runs_over_a_session(sandbox):
    with sandbox.exec_ws(code="read x; echo got $x", language="sh") as session:
        session.send_stdin("this\n")
        events = list(session)
        result = session.wait()
    assert [e.type for e in events] == ["stdout", "result"]
    assert (result.stdout, result.language) == ("got this\n", "sh")


def test_a_session_whose_program_is_not_there(sandbox):
    with sandbox.exec_ws(["/no/such/program"]) as session:
        error = failing(session.wait)
    assert (error.reason, error.body["error"]["code"]) == ("exec_error", "exec_failed")


def test_an_agent_that_goes_ends_a_session_with_its_last_word(sandbox, agent):
    with sandbox.exec_ws("echo up; sleep 600") as session:
        events = iter(session)
        next(events)
        agent.expect_exit = None
        agent.kill()
        assert failing(lambda: list(events)).reason == "ws_closed"


@pytest.mark.skipif(not front.HAS_OPENSSL, reason="openssl is not installed")
def test_a_session_over_tls_trusts_whom_it_is_told_to(agent, form, tmp_path, monkeypatch):
    certificate = front.make_certificate(tmp_path)
    with front.tls(agent.port, *certificate) as port:
        monkeypatch.setenv("RUNR_API_URL", f"https://localhost:{port}")
        assert failing(form.create).reason == "connection"

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        sandbox = form.create()
        with sandbox.exec_ws("echo safe") as session:
            assert session.wait().stdout == "safe\n"
        monkeypatch.delenv("SSL_CERT_FILE")

        def said(**options):
            with sandbox.exec_ws("echo own", **options) as session:
                return session.wait().stdout

        own = ssl.create_default_context(cafile=str(certificate[0]))
        assert said(ssl_context=own) == "own\n"
        assert failing(said).reason == "ws_error"
        form.release(sandbox)


# code


def test_code_runs_in_the_sandboxs_language_or_another(agent, made):
    sandbox = made(runtime="sh")
    assert sandbox.run_code("echo $0 $((1 + 1)) | sed 's/.* //'").stdout == "2\n"
    result = sandbox.run_code("import sys\nprint(sys.stdin.read() + 'x')", "python", stdin="in ")
    assert (result.stdout, result.language, result.ok) == ("in x\n", "python", True)
    assert sandbox.run_code("while :; do :; done", timeout=0.3).timed_out
    error = failing(sandbox.run_code, "x", "cobol")
    assert (type(error), error.reason) == (runr_sandbox.BadRequestError, "bad_language")


def test_code_tells_files_and_images(agent, made, tmp_path):
    sandbox = made(runtime="sh")
    code = f"echo data > made; echo {PIXEL} | base64 -d > {agent.output}/dot.png"
    for result in (sandbox.run_code(code), list(sandbox.run_code_stream(code))[-1].result):
        changed = {change.path: change.size for change in result.files_changed}
        assert changed == {f"{agent.workspace}/made": 5, f"{agent.output}/dot.png": 70}
        [image] = result.outputs
        assert (image.mime, image.size, len(image.data)) == ("image/png", 70, 70)
        image.save(tmp_path / "dot.png")
        assert (tmp_path / "dot.png").read_bytes() == image.data


def test_images_beyond_what_an_answer_holds_are_read(start, made):
    agent = start("--max-outputs", 10)
    sandbox = made(runtime="sh")
    code = f"echo {PIXEL} | base64 -d > {agent.output}/dot.png"
    assert len(sandbox.run_code(code).outputs[0].data) == 70
    assert len(list(sandbox.run_code_stream(code))[-1].result.outputs[0].data) == 70


def test_streamed_code_ends_with_its_result(agent, made):
    sandbox = made(runtime="sh")
    events = list(sandbox.run_code_stream("echo one; echo two >&2; exit 5"))
    assert {e.type: e.text for e in events} == {"stdout": "one\n", "stderr": "two\n", "result": ""}
    assert (events[-1].exit_code, events[-1].result.language) == (5, "sh")


# files


def test_a_file_is_written_and_read(sandbox, agent):
    entry = sandbox.files.write("sub/folder/f", "caf\u00e9", mode=0o700)
    assert (entry.path, entry.size, entry.mode, entry.type) == ("sub/folder/f", 5, "0700", "file")
    assert sandbox.files.read("sub/folder/f") == "caf\u00e9".encode()
    assert sandbox.files.read_text(str(agent.workspace / "sub/folder/f")) == "caf\u00e9"
    assert sandbox.files.read_text("sub/folder/f", encoding="latin-1") == "caf\u00c3\u00a9"
    sandbox.files.write("sub/folder/f", b"\0\xff")
    assert sandbox.files.read("sub/folder/f") == b"\0\xff"


def test_a_list_is_whole_and_in_order(sandbox):
    sandbox.exec("mkdir many; cd many; i=1000; while [ $i -lt 2100 ]; do : > $i; i=$((i+1)); done")
    assert [e.name for e in sandbox.files.list("many")] == [str(n) for n in range(1000, 2100)]
    assert [(e.type, e.path) for e in sandbox.files.list()] == [("dir", "many")]


def test_what_cannot_be_done_with_files_has_its_class(sandbox):
    sandbox.files.write("full/f", "x")
    assert type(failing(sandbox.files.read, "none")) is runr_sandbox.NotFoundError
    assert type(failing(sandbox.files.list, "none")) is runr_sandbox.NotFoundError
    assert type(failing(sandbox.files.write, "/etc/x", "")) is runr_sandbox.PermissionDeniedError
    assert failing(sandbox.files.write, "../../x", "").reason == "bad_path"
    error = failing(sandbox.files.remove, "full")
    assert (type(error), error.reason) == (runr_sandbox.ConflictError, "not_empty")
    sandbox.files.remove("full", recursive=True)
    assert sandbox.files.list() == []


def a_project(folder):
    (folder / "sub/empty").mkdir(parents=True)
    (folder / "sub/f").write_text("deep")
    (folder / "name \u00e9\n\"'").write_bytes(os.urandom(100_000))
    (folder / "run").write_text("#!/bin/sh\necho ran\n")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("sub/f")
    return folder


def test_a_folder_comes_back_as_it_went(sandbox, tmp_path):
    here, there = a_project(tmp_path / "project"), tmp_path / "a/result"
    done = sandbox.files.upload_dir(str(here), "deep/project")
    assert (done.files, done.links, done.refused_count) == (3, 1, 0)
    assert sandbox.exec("./run", cwd="deep/project").stdout == "ran\n"
    assert sandbox.files.download_dir("deep/project", there) == []
    subprocess.run(["diff", "-r", "--no-dereference", here, there], check=True)
    assert (there / "sub/empty").is_dir() and os.access(there / "run", os.X_OK)
    assert os.readlink(there / "link") == "sub/f"


def test_what_leads_outside_is_left_out_of_a_download(sandbox, tmp_path):
    sandbox.exec("mkdir p; cd p; ln -s /etc/passwd abs; ln -s ../../x up; echo in > f; ln -s f ok")
    assert sorted(name.removeprefix("./") for name in
                  sandbox.files.download_dir("p", tmp_path / "r")) == ["abs", "up"]
    assert sorted(os.listdir(tmp_path / "r")) == ["f", "ok"]


def test_uploaded_files_are_where_their_names_say(sandbox):
    sandbox.files.upload_files({"a.txt": "A", "sub/b.bin": b"\x00", "caf\u00e9": ""}, "in/here")
    assert sandbox.exec("find in -type f | sort; cat in/here/a.txt").stdout == \
        "in/here/a.txt\nin/here/caf\u00e9\nin/here/sub/b.bin\nA"
    assert failing(sandbox.files.upload_files, {"../x": ""}, "in").status == 400


def test_uploading_what_is_no_folder_is_refused_here(sandbox, tmp_path):
    (tmp_path / "f").write_text("")
    for wrong in ("f", "none"):
        with pytest.raises(NotADirectoryError):
            sandbox.files.upload_dir(tmp_path / wrong, "x")


# processes


def test_a_process_is_listed_followed_and_ended(sandbox):
    p = sandbox.processes.start(
        "echo up; echo err >&2; until [ -e go ]; do sleep 0.01; done; exit 6", name="job")
    assert (p.status, p.name, p.exit_code) == ("running", "job", None)
    assert [q.id for q in sandbox.processes.list()] == [p.id]
    wait_until(lambda: sandbox.processes.logs("job").log_end == 7)
    logs = sandbox.processes.logs(p.id)
    assert (logs.stdout, logs.stderr) == ("up\n", "err\n")
    seen = []
    for event in sandbox.processes.follow(p.id):
        seen.append((event.type, event.text))
        sandbox.files.write("go", "")
    assert sorted(seen[:2]) == [("stderr", "err\n"), ("stdout", "up\n")]
    assert seen[2:] == [("exit", "")] and event.exit_code == 6
    assert failing(sandbox.processes.start, "true", name="x" * 1000).status == 400


def test_a_signal_reaches_all_that_a_process_started(sandbox):
    p = sandbox.processes.start("sleep 600 & trap 'echo bye; exit 7' USR1; echo up; wait")
    wait_until(lambda: sandbox.processes.logs(p.id).stdout == "up\n")
    sandbox.processes.kill(p.id, signal="USR1")
    assert "".join(e.text for e in sandbox.processes.follow(p.id)) == "up\nbye\n"
    ended = sandbox.processes.kill(p.id, signal="KILL")
    assert (ended.status, ended.exit_code) == ("exited", 7)
    for call in (sandbox.processes.logs, sandbox.processes.kill):
        assert type(failing(call, "none")) is runr_sandbox.NotFoundError
    assert type(failing(lambda: list(sandbox.processes.follow("none")))) is \
        runr_sandbox.NotFoundError


# the sandbox


def test_create_sets_what_it_is_given(start, made):
    agent = start("--network-enforced-by", "outside", "--id", "sb-9")
    sandbox = made(runtime="nodejs" if shutil.which("node") else "sh", ttl_seconds=600,
                   idle_timeout=300, network=["api.example.com:443"],
                   metadata={"agent": "planner", "n": 1}, env={"A": "1"}, limits={"fsize": 1000})
    info = agent.get("/v1/sandbox").json()
    assert (sandbox.id, info["idle_timeout"], info["env"]) == ("sb-9", 300, {"A": "1"})
    assert info["metadata"] == {"agent": "planner", "n": 1}
    assert info["network"] == {"allow": ["api.example.com:443"], "enforced_by": "outside"}
    assert info["created_at"] < info["idle_at"] < info["expires_at"]
    assert sandbox.info().metadata == info["metadata"]
    assert sandbox.exec("echo $A; head -c 5000 /dev/zero > f; wc -c < f").stdout == "1\n1000\n"


def test_a_sandbox_is_found_by_its_id_status_and_metadata(start, form, made):
    agent = start("--id", "sb-9")
    sandbox = made(metadata={"agent": "planner", "deep": {"a": 1}})
    found = form.connect("sb-9")
    assert found.exec("echo same").stdout == "same\n"
    form.release(found)
    assert type(failing(form.connect, "sb-8")) is runr_sandbox.NotFoundError
    [info] = form.list(status="active", metadata={"deep": {"a": 1}})
    assert (info.id, info.status) == ("sb-9", "active")
    assert form.list(metadata={"agent": "other"}) == []
    sandbox.pause()
    assert form.list(status="active") == [] and len(form.list(status="paused")) == 1
    sandbox.resume()
    assert agent.alive()


def test_a_network_list_that_nobody_enforces_is_refused_and_changes_nothing(agent, form, made):
    error = failing(form.create, network=["h:1"], metadata={"a": 1})
    assert type(error) is runr_sandbox.NotSupportedError
    assert "--network-enforced-by" in error.message
    sandbox = made()
    assert sandbox.info().metadata == {}
    assert failing(sandbox.set_network, ["h:1"]).status == 501
    assert sandbox.set_network("all").network["allow"] == "all"


def test_its_life_is_prolonged_up_to_the_longest(start, made):
    start("--max-ttl", 100, "--ttl", 50)
    sandbox = made()
    first = sandbox.info().expires_at
    longer = sandbox.set_timeout(90).expires_at
    cut = sandbox.set_timeout(1800).expires_at
    assert first < longer < cut
    assert sandbox.keepalive().id == sandbox.id


def test_nothing_starts_while_it_is_paused(sandbox):
    assert sandbox.pause().status == "paused"
    error = failing(sandbox.exec, "true")
    assert (type(error), error.reason) == (runr_sandbox.ConflictError, "paused")
    assert sandbox.resume().status == "active"
    assert sandbox.exec("true").ok


def test_the_end_of_the_block_is_the_end_of_the_sandbox(agent, form):
    with form.create() if form.name == "sync" else contextlib.closing(form.create()) as sandbox:
        sandbox.processes.start("sleep 600")
    assert agent.wait() == 0


def test_a_wrong_key_is_refused_everywhere(agent, form):
    sandbox = form.create()
    form.release(sandbox)
    error = failing(form.create, api_key="wrong")
    assert (type(error), error.status, error.reason) == \
        (runr_sandbox.AuthenticationError, 401, "unauthorized")
    assert "wrong" not in str(error)
    assert type(failing(form.list, api_key="wrong")) is runr_sandbox.AuthenticationError


def test_it_needs_no_newer_python_than_it_says():
    package = Path(runr_sandbox.__file__).parent
    files = list(package.glob("*.py"))
    for file in files:
        ast.parse(file.read_text(), feature_version=(3, 9))
    assert len(files) > 5
