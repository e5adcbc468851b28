"""Every code block of runr_sandbox/README.md, each against a fresh agent."""

import contextlib
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

import blocks
import index
import runr_sandbox
from nook import ROOT
from runr_sandbox import ApiConnectionError, Sandbox
from wire import wait_until

BLOCKS = blocks.blocks_of("runr_sandbox")
PROJECT = blocks.HERE / "runr_sandbox"


def run(name, **names):
    return blocks.run(BLOCKS[name], **names)


@pytest.fixture
def box(start_box):
    return start_box("--network-enforced-by", "outside")


@pytest.fixture
def sandbox(box):
    sandbox = Sandbox()
    yield sandbox
    sandbox._http.close()


def test_installing_it_from_an_index_brings_what_it_needs(tmp_path):
    address = index.make_index(tmp_path, ["httpx", "websockets"], [PROJECT])
    env = index.make_venv(tmp_path / "venv", address)
    subprocess.run(["sh", "-ec", BLOCKS["runr-sandbox"]], env=env, check=True)
    seen = subprocess.run(["python", "-c", "import runr_sandbox; print(runr_sandbox.__file__)"],
                          env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert seen.stdout.startswith(str(tmp_path / "venv"))


def test_the_environment_says_where_the_api_is():
    ask = "import os; from runr_sandbox import Sandbox; s = Sandbox(); " \
          "print(s._url, s._http.headers['authorization'])"
    done = subprocess.run(["sh", "-ec", BLOCKS["Configuration"] + f'exec {sys.executable} -c "$0"',
                           ask], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "https://runr.example.com Bearer ...\n"


def test_the_quick_start_runs_a_command_and_removes_the_sandbox(box, capsys):
    run("Quick start")
    assert capsys.readouterr().out.startswith("0 Python 3.")
    box.wait_end()


def test_commands(sandbox):
    result = run("Commands", sandbox=sandbox)["result"]
    assert (result.ok, result.exit_code, result.stdout, result.stdout_bytes) == (True, 0, "", b"")
    assert sandbox.files.read("/workspace/in.txt") == b"data"


def put_pip(box):
    """A pip and an index for the user of the sandbox, in its home."""
    home = box.folder / "home"
    address = index.make_index(home / "index")
    index.make_module("requests", home / "index/wheels")
    index.publish(home / "index")
    import pip
    shutil.copytree(Path(pip.__file__).parent, home / "lib/pip",
                    ignore=shutil.ignore_patterns("__pycache__"))
    (home / "bin").mkdir()
    (home / "bin/pip").write_text('#!/bin/sh\nexec python3 -m pip "$@"\n')
    (home / "bin/pip").chmod(0o755)
    return {"PATH": "/home/sandbox/bin:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": "/home/sandbox/lib", "PIP_INDEX_URL": address.replace(
                home.as_uri(), "file:///home/sandbox"), "PIP_BREAK_SYSTEM_PACKAGES": "1",
            "PIP_IGNORE_INSTALLED": "1", "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def test_streaming_shows_pip_at_work(box, capsys):
    with contextlib.closing(Sandbox.create(env=put_pip(box))) as sandbox:
        run("Streaming", sandbox=sandbox)
        said = capsys.readouterr()
        assert "Successfully installed requests-9.9" in said.out, said.err
        assert said.out.endswith("exit code 0\n")
        assert sandbox.exec("python3 -c 'import requests'").ok


def test_an_interactive_interpreter(sandbox, capsys):
    run("Interactive commands", sandbox=sandbox)
    assert capsys.readouterr().out == "0 42\n\n"


def test_an_interactive_terminal(sandbox, capsys):
    sandbox.files.write("/workspace/seen-by-ls", "")
    run("Interactive commands 2", sandbox=sandbox)
    said = capsys.readouterr().out
    assert "seen-by-ls" in said and "\r\n" in said


def test_running_code_draws_a_plot(sandbox, capsys):
    if not sandbox.exec("python3 -c 'import matplotlib'").ok:
        pytest.skip("python3-matplotlib is not installed")
    result = run("Running code", sandbox=sandbox)["result"]
    size = result.outputs[0].size
    assert capsys.readouterr().out == \
        f"done\n\n[FileChange(path='/output/plot.png', size={size})]\n"
    assert Path("plot.png").read_bytes() == sandbox.files.read("/output/plot.png")
    assert Path("plot.png").read_bytes().startswith(b"\x89PNG")


def test_files(sandbox, capsys):
    Path("project/sub").mkdir(parents=True)
    Path("project/sub/f").write_text("deep")
    names = run("Files", sandbox=sandbox)
    assert (names["data"], names["text"]) == (b"a,b\n1,2\n", "a,b\n1,2\n")
    assert capsys.readouterr().out == "file 8 /workspace/data.csv\nfile 18 /workspace/run.sh\n"
    assert Path("result/sub/f").read_text() == "deep"
    assert sandbox.exec("./run.sh; cat a.txt; wc -c < sub/b.bin; ls").stdout == \
        "hi\nA1\na.txt\ndata.csv\nproject\nrun.sh\nsub\n"


def test_background_processes(sandbox, capsys):
    def is_served():
        with contextlib.suppress(OSError), \
                urllib.request.urlopen("http://localhost:8000/") as answer:
            return answer.status == 200

    def end_the_server():
        wait_until(is_served, 20, "the server of the block answers")
        with_it = Sandbox()
        [server] = with_it.processes.list()
        with_it.processes.kill(server.id)
        with_it._http.close()

    second = threading.Thread(target=end_the_server)
    second.start()
    server = run("Background processes", sandbox=sandbox)["server"]
    second.join()
    said = capsys.readouterr().out
    assert f"[Process(id='{server.id}'" in said
    assert "GET / HTTP/1.1" in said
    assert sandbox.processes.list()[0].signal == "TERM"


def test_lifetime(box, sandbox):
    run("Lifetime", sandbox=sandbox)
    box.wait_end()
    with pytest.raises(ApiConnectionError):
        sandbox.info()


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_asyncio(box, capsys):
    run("asyncio")
    assert capsys.readouterr().out == "stdout 2\n\nexit \n"
    box.wait_end()


def test_a_tool_of_an_agent(box, capsys):
    observation = run("A tool of an agent")["observation"]
    assert capsys.readouterr().out == "2432902008176640000\n\n"
    assert {**observation, "stdout": ""} == {"exit_code": 0, "timed_out": False, "stdout": "",
                                            "stderr": "", "files_changed": [], "images": []}
    box.wait_end()


def test_its_own_tests_run_where_it_is_installed_for_development(tmp_path):
    address = index.make_index(tmp_path, ["httpx", "websockets", "pytest", "setuptools"])
    env = index.make_venv(tmp_path / "venv", address)
    env["PYTEST_ADDOPTS"] = "-k session"  # all of them run beside this one
    source = tmp_path / "source"
    shutil.copytree(PROJECT, source, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(["sh", "-ec", BLOCKS["Development"]], env=env, cwd=source,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "failed" not in done.stdout


def test_every_block_is_run():
    used = set(re.findall(r'(?:run\(|BLOCKS\[)"([^"]+)"', Path(__file__).read_text()))
    assert len(BLOCKS) == 14 and used == BLOCKS.keys()
    assert runr_sandbox.__file__.startswith(str(ROOT))
