"""How nookd starts: options, what is refused and in which words, help, the token, the socket."""

import json
import os
import signal
import socket
import stat
import subprocess

import pytest

import nook as harness
from nook import refuse
from wire import wait_until


def run(*args, env=None):
    return subprocess.run([str(harness.BINARY), *args], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False,
                          env={"PATH": os.environ["PATH"], **(env or {})})


@pytest.mark.parametrize("args, name", [
    (["--nope"], "--nope"),
    (["--nope=1"], "--nope"),
    (["-x"], "-x"),
    (["serve-me"], "serve-me"),
    (["--listen"], "--listen"),
    (["--listen", "localhost:80"], "--listen"),
    (["--listen", "127.0.0.1:70000"], "--listen"),
    (["--max-commands", "0"], "--max-commands"),
    (["--timeout", "nan"], "--timeout"),
    (["--without", "everything"], "--without"),
    (["--env", "1A=b"], "--env"),
    (["--user", "no such user"], "--user"),
    (["--user", "nobody-by-this-name"], "--user nobody-by-this-name"),
    (["--user", "4294967295"], "--user 4294967295"),
    (["--program-user", "nobody-by-this-name"], "--program-user nobody-by-this-name"),
    (["--id", "two\nlines"], "--id"),
    (["--config", "/nonexistent/nookd.json"], "/nonexistent/nookd.json"),
    (["--"], "--"),
    (["--socket", "none"], "--socket"),
    (["--listen", "0.0.0.0:0"], "--listen 0.0.0.0:0"),
    (["--listen", "0.0.0.0:0", "--no-auth"], "--no-auth"),
])
def test_a_malformed_option_ends_the_start_with_one_line_that_names_it(args, name):
    status, text = refuse(*args)
    assert status == 2
    assert name in text
    assert text.count("\n") == 1 and text.endswith("\n")


def test_a_malformed_variable_is_named_as_a_variable():
    status, text = refuse(env={"NOOKD_MAX_COMMANDS": "many"})
    assert (status, text.count("\n")) == (2, 1)
    assert "NOOKD_MAX_COMMANDS" in text


def test_an_unknown_variable_is_refused():
    status, text = refuse(env={"NOOKD_MAX_COMANDS": "1"})
    assert status == 2
    assert "NOOKD_MAX_COMANDS" in text


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_option(flag):
    done = run(flag)
    assert (done.returncode, done.stderr) == (0, "")
    for name in json.loads(run("--print-config").stdout):
        assert f"--{name}" in done.stdout


def test_version_is_one_line():
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nookd ") and done.stdout.count("\n") == 1


def test_without_arguments_and_not_process_1_it_tells_how_it_is_used():
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage" in done.stderr


def test_the_printed_configuration_is_that_of_flags_over_variables(tmp_path):
    file = tmp_path / "nookd.json"
    file.write_text(json.dumps({"max-commands": 3, "grace": 1, "id": "from-file"}))
    done = run("--print-config", "--config", str(file), "--grace", "2.5",
               env={"NOOKD_ID": "from-variable", "NOOKD_GRACE": "9"})
    config = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (config["max-commands"], config["id"], config["grace"]) == (3, "from-variable", 2.5)


def test_a_printed_configuration_can_be_given_back(tmp_path):
    args = ["--without", "pidfd", "--env", "A=b c", "--max-output", "64KiB", "--socket", "none",
            "--listen", "127.0.0.1:1"]
    first = run("--print-config", *args).stdout
    file = tmp_path / "nookd.json"
    file.write_text(first)
    assert run("--print-config", "--config", str(file)).stdout == first


def test_the_token_variable_is_gone_from_the_environment_of_the_process(start_nook):
    nook = start_nook(tcp=True, token=False, env={"NOOKD_TOKEN": "a-token-of-the-test"})
    nook.token = "a-token-of-the-test"
    assert nook.get("/v1/capabilities", tcp=True).status == 200
    with open(f"/proc/{nook.pid}/environ", "rb") as f:
        assert b"a-token-of-the-test" not in f.read()


def test_a_token_file_that_was_named_must_be_there(tmp_path):
    path = tmp_path / "missing"
    status, text = refuse("--token-file", str(path))
    assert status == 2 and str(path) in text


@pytest.mark.parametrize("name", ["openat2", "close_range", "pidfd", "subreaper", "cgroup",
                                  "landlock"])
def test_a_mechanism_that_is_switched_off_is_the_one_that_was_named(start_nook, name):
    nook = start_nook("--without", name)
    isolation = nook.get("/v1/capabilities").json()["isolation"]
    off = [k for k, v in isolation.items() if "--without" in (v["reason"] or "")]
    assert off == [name]


def test_the_socket_lies_in_a_folder_of_its_own_that_others_cannot_enter(nook):
    folder = nook.socket.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_ISSOCK(nook.socket.stat().st_mode)


def test_the_socket_file_goes_with_the_daemon(nook):
    assert nook.terminate() == 0
    assert not nook.socket.exists()


def test_a_stale_socket_is_replaced(start_nook):
    nook = start_nook()
    nook.kill()
    assert nook.socket.exists()
    nook.start()
    assert nook.get("/healthz").status == 200


@pytest.mark.parametrize("name", ["TERM", "INT", "QUIT"])
def test_it_ends_with_0_at_a_signal_that_asks_for_it(nook, name):
    assert nook.terminate(getattr(signal, "SIG" + name)) == 0


def test_readiness_is_told_to_a_notify_socket(start_nook, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        path = tmp_path / "notify"
        listener.bind(str(path))
        listener.settimeout(30)
        start_nook(env={"NOTIFY_SOCKET": str(path)})
        assert b"READY=1" in listener.recv(4096)


def test_every_line_of_the_log_is_json(nook):
    nook.exec(["true"])
    lines = wait_until(lambda: nook.stderr().splitlines(), 10)
    for line in lines:
        assert isinstance(json.loads(line), dict)
