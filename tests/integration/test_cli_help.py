"""What the binary says of itself, and what is made of that: the state as a table, completion, manual."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from nook import BINARY, ROOT

COMPLETION = ROOT / "container/nookd.bash-completion"


def said(*words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, check=True).stdout


def verbs():
    return re.findall(r"^  (\w+)", said("--help").split("\nverbs:\n")[1], re.M)


def options():
    """The options of serve, from the table that the daemon reads them by."""
    return {"--" + name for name in json.loads(said("--print-config"))} - {"--config"}


def complete(*words):
    """What bash offers for the last of these words."""
    script = f'source "{COMPLETION}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
             '_nookd "$1"; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, "bash", str(BINARY), *words], check=True,
                          capture_output=True, text=True)
    assert not done.stderr
    return set(done.stdout.split())


def test_every_verb_of_the_contract_is_there_and_has_help():
    assert set(verbs()) >= {"exec", "run", "sh", "ps", "logs", "kill", "attach", "cp", "ls", "rm",
                            "mkdir", "info", "health", "call", "proxy"}
    for verb in verbs():
        assert said(verb, "--help").startswith(f"usage: nookd {verb}"), verb


def test_info_is_a_table(start_nook):
    nook = start_nook("--id", "sb-7")
    nook.exec("true")
    done = nook.cli("info")
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(maxsplit=1) for line in done.stdout.decode().splitlines())
    assert (rows["id"], rows["status"], rows["expires"]) == ("sb-7", "active", "never")
    assert rows["commands"].startswith("0 running, ")
    assert "bash" in rows["languages"]
    lacking = {name for name, one in nook.get("/v1/capabilities").json()["isolation"].items()
               if not one["available"]}
    assert set(rows["lacking"].split(", ")) == (lacking or {"none"})


def test_info_gives_the_state_as_the_api_does(start_nook):
    nook = start_nook("--id", "sb-7")
    done = nook.cli("info", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["id"] == "sb-7"
    done = nook.cli("info", "--json", "--socket", nook.socket)
    assert json.loads(done.stdout)["id"] == "sb-7"


def test_info_without_a_daemon_is_our_failure(nook, tmp_path):
    for more in ([], ["--json"]):
        assert nook.cli("info", *more, "--socket", tmp_path / "none").returncode == 125
    assert nook.cli("info", "operand").returncode == 125


def test_bash_completes_verbs_options_and_choices():
    assert complete("") >= set(verbs()) | {"serve", "--help"}
    assert complete("he") >= {"health"}
    assert complete("serve", "--") >= options()
    assert complete("exec", "--") >= {"--cwd", "--env", "--timeout", "--detach", "--socket"}
    assert complete("kill", "-") >= {"-s", "--signal"}
    assert complete("serve", "--log-format", "") == {"text", "json"}
    assert complete("serve", "--log-level", "w") == {"warn"}
    assert complete("cp", "a") == set()


def test_the_manual_has_every_verb_and_option(tmp_path):
    page = tmp_path / "nookd.1"
    page.write_bytes(subprocess.run([sys.executable, ROOT / "container/man.py", BINARY], check=True,
                                    capture_output=True).stdout)
    plain = page.read_text().replace("\\-", "-")
    for verb in verbs():
        assert f".SS {verb}\n" in plain
    tagged = set(re.findall(r"^\.B (--[a-z-]+)", plain, re.M))
    assert tagged - {"--config"} == options()
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed: the page was read, but not by it")
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error", page], capture_output=True,
                          text=True, check=False)
    assert lint.returncode == 0, lint.stdout
