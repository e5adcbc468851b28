"""POST /v1/code and /v1/code/stream: code in every language, and what is around it."""

import base64
import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import zlib
from pathlib import Path

import pytest

import nook as harness
from code_samples import BIG, LOCAL, SAMPLES, WHERE
from nook import scaled
from test_exec import is_gone, pid_in
from wire import output_of, wait_until

NPM = harness.ROOT / "build/npm/node_modules/.bin"
PATH = f"{NPM}:/usr/bin:/bin"
TOOLS = {"python": "python3", "javascript": "node", "typescript": "tsx", "bash": "bash", "sh": "sh",
         "php": "php", "ruby": "ruby", "go": "go"}
FOLDERS = Path("/tmp")  # where the code lies while it runs


def is_there(tool):
    return shutil.which(tool, path=PATH) is not None


if not is_there("tsx") and is_there("esbuild"):
    TOOLS["typescript"] = "esbuild"
LANGUAGES = [pytest.param(language, marks=pytest.mark.skipif(
    not is_there(tool), reason=f"{tool} is not installed")) for language, tool in TOOLS.items()]
NODE = pytest.mark.skipif(not is_there("node"), reason="node is not installed")


class Coder:
    """A daemon that finds the tools of the tests, and shorter calls of it."""

    def __init__(self, nook):
        self.nook = nook
        self.env = {"HOME": str(nook.home)}  # where go and tsx may keep what they can use again

    def post(self, code, language=None, headers=(), wait=240, **fields):
        fields = {"env": self.env, **fields}
        if language:
            fields["language"] = language
        return self.nook.post("/v1/code", {"code": code, **fields}, headers=headers, wait=wait)

    def run(self, code, language=None, **fields):
        response = self.post(code, language, **fields)
        assert response.status == 200, response
        return response.json()

    def sample(self, language, name, **fields):
        return self.run(SAMPLES[language][name], language, **fields)

    def stream(self, code, language, **fields):
        body = {"code": code, "language": language, "env": self.env, **fields}
        return self.nook.stream("POST", "/v1/code/stream", json=body, wait=240)


def changed(result):
    return [c["path"] for c in result["files_changed"]]


def folders_of(nook):
    """Private folders of code of this daemon's user that are there."""
    out = []
    for path in FOLDERS.glob(".nook-run-*"):
        try:
            if path.stat().st_uid == nook.user:
                out.append(path)
        except FileNotFoundError:
            pass
    return out


@pytest.fixture
def coder(start_nook):
    nook = start_nook("--max-output", 16 << 20, env={"PATH": PATH})
    yield Coder(nook)
    wait_until(lambda: folders_of(nook) == [])


# every language

@pytest.mark.parametrize("language", LANGUAGES)
def test_hello(coder, language):
    result = coder.sample(language, "hello")
    assert (result["stdout"], result["stderr"], result["exit_code"]) == ("hello\n", "", 0)
    assert (result["language"], result["files_changed"], result["outputs"]) == (language, [], [])
    assert (result["files"], result["reason"]) == ([], "exited")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_exit_code_and_standard_error_are_the_programs_own(coder, language):
    result = coder.sample(language, "fail")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "", "bad\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_uncaught_error_names_the_file_and_the_line(coder, language):
    result = coder.sample(language, "throw")
    assert result["exit_code"] not in (0, None)
    assert "boom" in result["stderr"]
    assert WHERE.get(language, "") in result["stderr"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_code_that_does_not_compile_is_an_exit_code_and_standard_error(coder, language):
    result = coder.sample(language, "broken")
    assert result["exit_code"] != 0
    assert (result["stdout"], result["reason"]) == ("", "exited")
    assert result["stderr"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_standard_input_reaches_the_code(coder, language):
    text = "über\n" + "line\n" * 30000
    assert coder.sample(language, "upper", stdin=text)["stdout"][4:] == text[4:].upper()
    assert coder.sample(language, "upper")["stdout"] == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_arguments_reach_the_code(coder, language):
    args = ["a", "b c", "", "--flag", "'\"$(x)", "ä"]
    assert coder.sample(language, "args", args=args)["stdout"] == "|".join(args) + "\n"
    assert coder.sample(language, "args")["stdout"] == "\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_and_bytes_come_exactly(coder, language):
    assert coder.sample(language, "text")["stdout"] == "häßlich ☃ 𝄞\n"
    result = coder.sample(language, "binary")
    assert base64.b64decode(result["stdout_base64"]) == bytes(range(256))


@pytest.mark.parametrize("language", LANGUAGES)
def test_much_output_comes_whole(coder, language):
    result = coder.sample(language, "big")
    assert (result["exit_code"], result["stdout_size"]) == (0, BIG)
    assert result["stdout"] == "x" * BIG


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_endless_loop_ends_at_its_timeout_with_all_it_started(coder, language):
    for seconds in (2, 10, 60):  # some compile first, whatever the machine does beside
        result = coder.sample(language, "loop", timeout=seconds)
        if result["stdout"]:
            break
    assert (result["exit_code"], result["timed_out"], result["reason"]) == (137, True, "timeout")
    assert result["stdout"] == "before\n"
    wait_until(lambda: not coder.nook.descendants(), 10, "the last of them is reaped")


@pytest.mark.parametrize("language", LANGUAGES)
def test_output_of_children_is_output(coder, language):
    assert coder.sample(language, "children")["stdout"] == "child\nparent\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_working_directory_is_where_it_runs(coder, language):
    result = coder.sample(language, "write")
    path = coder.nook.workspace / "made"
    assert path.read_text() == "12345"
    assert result["files_changed"] == [{"path": str(path), "size": 5}]
    assert path.stat().st_uid == coder.nook.user


@pytest.mark.parametrize("language", LANGUAGES)
def test_files_of_the_working_directory_can_be_imported(coder, language):
    for name, text in LOCAL.items():
        path = coder.nook.workspace / "sub" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = coder.sample(language, "local", cwd="sub")
    assert (result["stdout"], result["stderr"]) == ("1 2\n", "")


# languages and their names

@pytest.mark.parametrize(("alias", "language"), [
    ("py", "python"), ("python3", "python"), ("PYTHON", "python"), ("js", "javascript"),
    ("node", "javascript"), ("nodejs", "javascript"), ("sh", "sh"), ("ts", "typescript"),
    ("golang", "go")])
def test_a_language_has_other_names(coder, alias, language):
    if not is_there(TOOLS[language]):
        pytest.skip(f"{TOOLS[language]} is not installed")
    assert coder.run(SAMPLES[language]["hello"], alias)["language"] == language


def test_the_first_language_that_is_there_is_the_default(coder):
    assert coder.run("print(6 * 7)")["language"] == "python"


def test_a_sandbox_may_have_a_language_of_its_own(start_nook):
    nook = start_nook("--runtime", "sh")
    result = nook.post("/v1/code", {"code": "echo $0"}).json()
    assert result["language"] == "sh"
    nook.request("PATCH", "/v1/sandbox", json={"runtime": "bash"})
    assert nook.post("/v1/code", {"code": "echo $0"}).json()["language"] == "bash"


@pytest.mark.parametrize("language", ["cobol", "", "python4", "../python", "{tool}"])
def test_an_unknown_language_is_refused_by_name(nook, language):
    for target in ("/v1/code", "/v1/code/stream"):
        response = nook.post(target, {"code": "x", "language": language})
        assert (response.status, response.code) == (400, "bad_language")
        assert language in response.json()["error"]["message"]


@pytest.mark.parametrize(("language", "tool"), [
    ("python", "python3"), ("javascript", "node"), ("typescript", "tsx"), ("php", "php"),
    ("ruby", "ruby"), ("go", "go"), ("bash", "bash")])
def test_a_missing_tool_is_named(nook, language, tool):
    for target in ("/v1/code", "/v1/code/stream"):
        response = nook.post(target, {"code": "x", "language": language,
                                      "env": {"PATH": str(nook.root)}})
        assert (response.status, response.code) == (501, "not_supported")
        assert tool in response.json()["error"]["message"]
    assert folders_of(nook) == []


def test_a_tool_is_looked_for_as_the_user_sees_it(nook):
    """One in a folder that only root may enter, and one that nobody may run, are not there."""
    hidden = nook.root / "hidden"
    hidden.mkdir(mode=0o700)
    plain = nook.root / "plain"
    plain.mkdir()
    for folder in (hidden, plain):
        (folder / "ruby").write_text("#!/bin/sh\necho wrong")
        (folder / "ruby").chmod(0o755 if folder == hidden else 0o644)
    where = f"{hidden}:relative::{plain}"
    if harness.IS_ROOT:
        response = nook.post("/v1/code", {"code": "x", "language": "ruby", "env": {"PATH": where}})
        assert (response.status, response.code) == (501, "not_supported")
    found = nook.root / "found"
    found.mkdir()
    (found / "ruby").write_text('#!/bin/sh\necho right')
    (found / "ruby").chmod(0o755)
    result = nook.post("/v1/code", {"code": "x", "language": "ruby",
                                    "env": {"PATH": f"{where}:{found}:/usr/bin:/bin"}}).json()
    assert result["stdout"] == "right\n"


@NODE
@pytest.mark.parametrize("tool", ["tsx", "ts-node", "deno", "bun", "esbuild"])
def test_typescript_by_each_tool_that_is_there(start_nook, tool):
    if not is_there(tool):
        pytest.skip(f"{tool} is not installed")
    nook = start_nook(env={"PATH": "/usr/bin:/bin"})
    folder = nook.root / "bin"
    folder.mkdir()
    for name in (tool, "node", "sh"):
        (folder / name).symlink_to(os.path.realpath(shutil.which(name, path=PATH)))
    coder = Coder(nook)
    coder.env["PATH"] = str(folder)
    (nook.workspace / "typed.ts").write_text(LOCAL["typed.ts"])
    for name, out in (("hello", "hello\n"), ("local", "1 2\n"), ("text", "häßlich ☃ 𝄞\n")):
        assert coder.sample("typescript", name)["stdout"] == out
    result = coder.sample("typescript", "throw")
    assert "main-code.ts:2" in result["stderr"]
    assert coder.sample("typescript", "broken")["exit_code"] != 0
    assert coder.sample("typescript", "args", args=["a b", ""])["stdout"] == "a b|\n"
    assert coder.sample("typescript", "upper", stdin="x")["stdout"] == "X"


def test_node_strips_types_itself_where_it_can(start_nook):
    """A stand-in tells its version and its arguments: which flags it gets depends on that."""
    nook = start_nook(env={"PATH": "/usr/bin:/bin"})
    folder = nook.root / "bin"
    folder.mkdir()
    env = {"PATH": f"{folder}:/bin:/usr/bin/nothing"}
    if os.path.islink("/bin"):  # then the real node may be in it
        (folder / "sh").symlink_to("/bin/dash" if os.path.exists("/bin/dash") else "/bin/sh")
        env = {"PATH": str(folder)}

    def use(version):
        path = folder / "node"
        path.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo v%s; exit; }\n'
                        'for a; do echo "${a##*/}"; done\n' % version)
        path.chmod(0o755)
        return nook.post("/v1/code", {"code": "x", "language": "ts", "env": env, "args": ["y"]})

    response = use("22.5.9")
    assert (response.status, response.code) == (501, "not_supported")
    assert "node 22.6" in response.json()["error"]["message"]
    start = ["--disable-warning=ExperimentalWarning", "node-start.cjs", "main-code.ts", "y"]
    assert use("22.6.0").json()["stdout"].split() == ["--experimental-strip-types", *start]
    assert use("23.6.0").json()["stdout"].split() == start
    assert use("24.0.0").json()["stdout"].split() == start


@NODE
def test_javascript_modules_and_scripts_both_run(coder):
    (coder.nook.workspace / "other.mjs").write_text("export const x = 5\n")
    (coder.nook.workspace / "node_modules/dep").mkdir(parents=True)
    (coder.nook.workspace / "node_modules/dep/index.js").write_text("module.exports = 'dep'\n")
    module = ("import { x } from './other.mjs'\nimport dep from 'dep'\n"
              "const y = await Promise.resolve(x + 1)\nconsole.log(x, y, dep, import.meta.url)")
    url = f"file://{coder.nook.workspace}/main-code.js"
    assert coder.run(module, "js")["stdout"] == f"5 6 dep {url}\n"
    script = ("console.log(require('dep'), require.main === module, __dirname)\n"
              "import('./other.mjs').then(m => console.log(m.x))")
    assert coder.run(script, "js")["stdout"] == f"dep true {coder.nook.workspace}\n5\n"


def test_php_needs_no_opening_tag(coder):
    if not is_there("php"):
        pytest.skip("php is not installed")
    assert coder.run("echo 6 * 7;", "php")["stdout"] == "42"
    assert coder.run("text <?= 6 * 7 ?>", "php")["stdout"] == "text 42"


# runtimes of a folder

def describe(folder, name, **description):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(description))


def test_a_runtime_can_be_described_in_a_folder(start_nook, tmp_path):
    describe(tmp_path / "r", "awk", id="awk", aliases=["mawk"], tool=["nothing", "awk"],
             file="program.awk", argv=["{tool}", "-v", "dir={cwd}", "-f", "{file}", "{args}", "-"],
             env={"GREETING": "from {file}"})
    describe(tmp_path / "r", "sh", id="sh", tool="/bin/sh", argv=["{tool}", "-e", "{file}"])
    nook = start_nook("--runtimes", tmp_path / "r")
    code = 'BEGIN { print dir, x, ENVIRON["GREETING"] }'
    for name in ("awk", "MAWK"):
        result = nook.post("/v1/code", {"code": code, "language": name, "args": ["x=1"]}).json()
        assert result["language"] == "awk"
        assert result["stdout"].startswith(f"{nook.workspace}  from /tmp/.nook-run-")
    result = nook.post("/v1/code", {"code": "false; echo on", "language": "sh"}).json()
    assert (result["stdout"], result["exit_code"]) == ("", 1)  # its own, in place of the built-in one
    languages = nook.get("/v1/capabilities").json()["languages"]
    assert languages["awk"]["available"] and languages["awk"]["tool"] == "awk"


@pytest.mark.parametrize(("description", "word"), [
    ({"tool": "x", "argv": ["{tool}"]}, "id"),
    ({"id": "x", "argv": ["{tool}"]}, "tool"),
    ({"id": "x", "tool": "x"}, "argv"),
    ({"id": "x", "tool": "x", "argv": ["{nothing}"]}, "{nothing}"),
    ({"id": "x", "tool": "x", "argv": ["a"], "more": 1}, "more"),
    ({"id": "x", "tool": "x", "argv": ["a"], "file": "a/b"}, "file"),
    ({"id": "x y", "tool": "x", "argv": ["a"]}, "id"),
    ({"id": "x", "tool": "x", "argv": "a"}, "argv"),
    ({"id": "x", "tool": "x", "argv": ["a"], "env": {"A": 1}}, "env"),
])
def test_a_wrong_description_stops_the_start(tmp_path, description, word):
    describe(tmp_path, "mine", **description)
    code, err = harness.refuse("--runtimes", tmp_path, "--socket", tmp_path / "run/s",
                               "--writable", tmp_path)
    assert code == 2 or code == 1
    assert "mine.json" in err and word in err
    assert len(err.strip().splitlines()) == 1


def test_a_default_language_that_does_not_exist_stops_the_start(tmp_path):
    code, err = harness.refuse("--runtime", "cobol", "--socket", tmp_path / "run/s",
                               "--writable", tmp_path)
    assert code != 0 and "cobol" in err


def test_capabilities_tell_languages_and_tools(coder):
    answer = coder.nook.get("/v1/capabilities").json()
    for language, tool in TOOLS.items():
        entry = answer["languages"][language]
        if is_there(tool):
            assert entry["available"] and entry["reason"] is None
            assert entry["tool"] in answer["tools"]
            assert answer["tools"][entry["tool"]]["version"] == entry["version"]
        elif language != "typescript":
            assert not entry["available"] and tool in entry["reason"]
    python = subprocess.run([shutil.which("python3", path=PATH), "-V"], capture_output=True,
                            text=True, check=True).stdout.split()[1]
    assert answer["languages"]["python"]["version"] == python
    assert answer["languages"]["sh"]["version"] is None
    # asked of the programs, but no command of anybody
    assert coder.nook.get("/v1/processes").json() == {"processes": []}
    assert "nook_command_starts_total 0\n" in coder.nook.get("/metrics").text
    assert coder.nook.get("/v1/capabilities").json() == answer


# the private file

def test_the_code_is_private_and_gone_afterwards(coder):
    result = coder.run("import os, sys\nfolder = os.path.dirname(__file__)\n"
                       "print(folder)\nprint(oct(os.stat(folder).st_mode & 0o777),"
                       " oct(os.stat(__file__).st_mode & 0o777), os.listdir(folder))\n"
                       "print(open('/proc/self/cmdline').read().count('secret word'))")
    folder, modes, count = result["stdout"].splitlines()
    assert modes == "0o700 0o600 ['main-code.py']"
    assert count == "0"
    assert not os.path.exists(folder)
    assert changed(result) == []


def test_whatever_code_leaves_in_its_folder_goes_too(coder):
    code = ("import os\nos.chdir(os.path.dirname(__file__))\nos.makedirs('a/b/c')\n"
            "open('a/b/c/file', 'w').close()\nos.symlink('/etc/passwd', 'a/link')\n"
            "os.symlink('..', 'a/up')\nos.chmod('a/b', 0)\nos.chmod('.', 0o500)")
    assert coder.run(code)["exit_code"] == 0
    assert folders_of(coder.nook) == []
    assert os.path.exists("/etc/passwd")


def test_code_that_moves_its_folder_away_harms_nobody(coder):
    code = ("import os\nfolder = os.path.dirname(__file__)\nos.rename(folder, 'moved')\n"
            f"os.symlink({str(coder.nook.workspace)!r}, folder)\nopen('kept', 'w').close()\n"
            "print(folder)")
    result = coder.run(code)
    assert (coder.nook.workspace / "kept").exists()
    os.unlink(result["stdout"].strip())


STAY = "import os\nopen('pid', 'w').write(f'{os.getpid()}\\n')\nimport time\ntime.sleep(1000)"


@pytest.mark.parametrize("how", ["kill", "delete", "client", "term"])
def test_the_folder_goes_however_the_code_ends(coder, how):
    nook = coder.nook
    stream = coder.stream(STAY, "python")
    id = stream.next_event("started").data["id"]
    pid = pid_in(nook)
    assert len(folders_of(nook)) == 1
    if how == "kill":
        nook.post(f"/v1/processes/{id}/kill", {"signal": "KILL"})
        assert output_of(stream.events())[2].data["killed"]
    elif how == "delete":
        nook.request("DELETE", f"/v1/processes/{id}")
        assert output_of(stream.events())[2].name == "result"
    elif how == "client":
        stream.close()
    else:
        nook.signal(signal.SIGTERM)
        nook.wait()
    wait_until(lambda: is_gone(pid))
    wait_until(lambda: folders_of(nook) == [])
    stream.close()


def test_the_folder_that_a_killed_agent_left_goes_at_the_next_start(start_nook):
    """Not that of another agent of the same user, which runs, nor what only has such a name."""
    nook, other = start_nook(), start_nook()
    gone = nook.stream("POST", "/v1/code/stream", json={"code": STAY, "language": "python"})
    pid_in(nook)
    left = folders_of(nook)
    held = other.stream("POST", "/v1/code/stream", json={"code": STAY, "language": "python"})
    pid_in(other)
    assert len(left) == 1 and len(folders_of(other)) == 2
    nook.kill()
    gone.close()
    kept = FOLDERS / (left[0].name[:-24] + 24 * "a")
    link = FOLDERS / (left[0].name[:-24] + 24 * "b")
    kept.write_text("")
    os.chown(kept, nook.user, nook.user)
    link.symlink_to(nook.workspace)
    os.lchown(link, nook.user, nook.user)
    try:
        nook.start()
        wait_until(lambda: not left[0].exists())
        nook.terminate()
        assert kept.exists() and link.is_symlink() and (nook.workspace / "pid").exists()
        assert len(folders_of(other)) == 3  # its own, and these two
    finally:
        kept.unlink()
        link.unlink()
    held.close()
    wait_until(lambda: folders_of(other) == [])


def test_a_start_that_fails_leaves_nothing(coder):
    response = coder.post("print(1)", "python", cwd="/nonexistent")
    assert (response.status, response.code) == (400, "exec_failed")
    assert response.json()["error"]["stage"] == "chdir"
    wait_until(lambda: folders_of(coder.nook) == [])


def test_without_a_folder_for_temporary_files_the_working_directory_has_the_code(coder):
    """Where /tmp cannot be written to; here it always can, so only the other way is shown."""
    result = coder.run("print(__file__)")
    assert result["stdout"].startswith("/tmp/.nook-run-")


# files that changed

def test_changes_below_every_root_are_told_in_order(coder):
    nook = coder.nook
    (nook.workspace / "old").write_text("old")
    (nook.workspace / "same").write_text("same")
    for name in ("old", "same"):
        os.chown(nook.workspace / name, nook.user, nook.user)
    code = f"""
import os
open('old', 'a').write('er')
os.makedirs('deep/er', exist_ok=True)
open('deep/er/new', 'w').write('123')
open({str(nook.output / 'report.txt')!r}, 'w').write('')
open({str(nook.tmp / 'scratch')!r}, 'w').write('x')
open({str(nook.home / 'note')!r}, 'wb').write(b'xy')
open('same').read()
open('gone', 'w').close()
os.unlink('gone')
os.makedirs('__pycache__')
open('__pycache__/x.pyc', 'w').close()
"""
    result = coder.run(code)
    want = {nook.workspace / "old": 5, nook.workspace / "deep/er/new": 3,
            nook.output / "report.txt": 0, nook.tmp / "scratch": 1, nook.home / "note": 2}
    assert result["files_changed"] == sorted(
        ({"path": str(p), "size": s} for p, s in want.items()), key=lambda c: c["path"])
    assert changed(coder.run("pass")) == []


def test_a_rewrite_of_the_same_size_and_time_is_a_change(coder):
    path = coder.nook.workspace / "file"
    for _ in range(5):
        coder.run("open('file', 'w').write('before')")
        result = coder.run("import os\nst = os.stat('file')\nopen('file', 'w').write('after!')\n"
                           "os.utime('file', ns=(st.st_atime_ns, st.st_mtime_ns))")
        assert result["files_changed"] == [{"path": str(path), "size": 6}]


def test_files_of_others_are_no_change_of_the_user(coder):
    if not harness.IS_ROOT:
        pytest.skip("needs root")
    release = coder.nook.workspace / "go"
    done = threading.Event()

    def other():
        wait_until(lambda: (coder.nook.workspace / "waiting").exists())
        (coder.nook.workspace / "of-root").write_text("x")
        release.touch()
        done.set()

    threading.Thread(target=other).start()
    result = coder.run("import os, time\nopen('waiting', 'w').close()\n"
                       "while not os.path.exists('go'):\n    time.sleep(0.01)")
    assert done.wait(10)
    assert changed(result) == [str(coder.nook.workspace / "waiting")]


def test_names_that_are_no_text_come_exactly(coder):
    result = coder.run("open(b'a\\xffb', 'w').close()")
    entry, = result["files_changed"]
    assert base64.b64decode(entry["path_base64"]) == os.fsencode(coder.nook.workspace) + b"/a\xffb"


def test_exec_reports_files_where_it_is_asked(coder):
    nook = coder.nook
    assert nook.exec("echo 1 > a")["files"] == []
    result = nook.exec("echo 22 > b; echo 1 > a", report_files=True)
    assert result["files"] == [{"path": str(nook.workspace / n), "size": s}
                               for n, s in (("a", 2), ("b", 3))]
    assert "files_changed" not in result
    with nook.exec_stream("echo 4444 > d; echo done", report_files=True) as stream:
        out, _, last = output_of(stream.events())
    assert (out, last.name) == (b"done\n", "exit")
    assert last.data["files"] == [{"path": str(nook.workspace / "d"), "size": 5}]


def test_a_background_child_does_not_hold_up_the_changes(coder):
    result = coder.nook.exec("sleep 1000 & echo x > a; echo done", report_files=True)
    assert (result["stdout"], len(result["files"])) == ("done\n", 1)
    listed = coder.nook.get("/v1/processes").json()["processes"]
    assert [(p["status"], p["tree"]) for p in listed] == [("exited", True)]
    coder.nook.request("DELETE", f"/v1/processes/{result['id']}")


def test_a_process_reports_files_too(coder):
    made = coder.nook.post("/v1/processes", {"command": "echo 1 > a", "report_files": True})
    assert made.status == 201
    with coder.nook.stream("GET", f"/v1/processes/{made.json()['id']}/follow") as stream:
        last = output_of(stream.events())[2]
    assert [f["path"] for f in last.data["files"]] == [str(coder.nook.workspace / "a")]


def test_a_change_is_found_in_a_large_tree(coder):
    count = scaled(30_000, 3000)
    coder.run(f"import os\nfor i in range({count}):\n    if i % 100 == 0:\n"
              "        os.makedirs(f'd{i // 10000}/s{i // 100}')\n"
              "    open(f'd{i // 10000}/s{i // 100}/f{i}', 'w').close()", timeout=200)
    wanted = [coder.nook.workspace / "d0/s7/f777", coder.nook.workspace / "d0/s8/new"]
    result = coder.run("open('d0/s7/f777', 'w').write('x')\nopen('d0/s8/new', 'w').close()")
    assert changed(result) == list(map(str, wanted))
    assert changed(coder.run("pass")) == []


# images

def png(width=2, height=2):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes(3 * width) for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


IMAGES = {
    "a.dat": (png(), "image/png"),
    "b": (b"\xff\xd8\xff\xe0" + b"x" * 100, "image/jpeg"),
    "c.png": (b"GIF89a" + b"x" * 100, "image/gif"),
    "d": (b"RIFF\x10\0\0\0WEBPVP8 " + b"x" * 100, "image/webp"),
    "e.txt": (b'<?xml version="1.0"?>\n<!-- c -->\n<svg xmlns="x"></svg>', "image/svg+xml"),
    "f.svg": (b"<svg>\n</svg>", "image/svg+xml"),
}


def write_all(folder, files):
    return "import os\n" + "".join(
        f"open(os.path.join({str(folder)!r}, {name!r}), 'wb').write({data!r})\n"
        for name, data in files.items())


def test_images_are_told_by_their_content(coder):
    files = {name: data for name, (data, _) in IMAGES.items()}
    files.update({"no.png": b"no image", "g.html": b"<html><svg></svg></html>", "empty.png": b"",
                  "h.svg": b"<svgx/>"})
    result = coder.run(write_all(coder.nook.output, files))
    assert len(result["files_changed"]) == len(files)
    assert [(o["path"], o["mime"], base64.b64decode(o["data_base64"]), o["size"])
            for o in result["outputs"]] == [
        (str(coder.nook.output / name), mime, data, len(data))
        for name, (data, mime) in sorted(IMAGES.items())]


def test_only_images_of_the_output_folder_are_outputs(coder):
    result = coder.run(write_all(coder.nook.workspace, {"a.png": png()}) +
                       f"os.symlink('a.png', {str(coder.nook.output / 'link.png')!r})")
    assert (len(result["files_changed"]), result["outputs"]) == (1, [])


def test_images_are_bounded_in_number_and_size(start_nook):
    nook = start_nook("--max-outputs", 3000, env={"PATH": PATH})
    coder = Coder(nook)
    one = b"GIF89a" + b"x" * 994
    result = coder.run(write_all(nook.output, {f"{i}": one for i in range(5)}))
    assert [bool(o["data_base64"]) for o in result["outputs"]] == [True] * 3 + [False] * 2
    small = b"GIF89a"
    result = coder.run(write_all(nook.output, {f"s{i:03}": small for i in range(70)}))
    assert [bool(o["data_base64"]) for o in result["outputs"]] == [True] * 64 + [False] * 6


def test_an_output_folder_outside_of_the_roots_is_looked_at(start_nook):
    nook = start_nook(env={"PATH": PATH})
    folder = nook.root / "elsewhere"
    folder.mkdir()
    os.chmod(folder, 0o777)
    nook2 = start_nook("--output-dir", folder, env={"PATH": PATH})
    result = Coder(nook2).run(write_all(folder, {"a.png": png()}))
    assert [o["path"] for o in result["outputs"]] == [str(folder / "a.png")]


SEED = """
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [1, 4, 9])
plt.savefig("/output/plot.png")
print("done")
"""


def has_matplotlib():
    find = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('matplotlib'))"
    return is_there("python3") and subprocess.run(
        [shutil.which("python3", path=PATH), "-c", find], check=False, cwd="/").returncode == 0


@pytest.fixture
def output_folder():
    """/output of this machine, made for a while where there is none; its owner."""
    folder = Path("/output")
    made = not folder.exists()
    if made:
        folder.mkdir()
        os.chown(folder, harness.USER, harness.USER)
    elif os.listdir(folder) or folder.stat().st_uid == 0:
        pytest.skip("/output is in use on this machine")
    yield folder.stat().st_uid
    (folder / "plot.png").unlink(missing_ok=True)
    if made:
        folder.rmdir()


@pytest.mark.root
@pytest.mark.skipif(not has_matplotlib(), reason="python3-matplotlib is not installed")
def test_a_plot_comes_back_intact(start_nook, output_folder):
    """The example of the published client, word for word."""
    nook = start_nook("--writable", "/output", "--output-dir", "/output", user=output_folder,
                      env={"PATH": PATH})
    result = Coder(nook).run(SEED, "python", timeout=120)
    assert (result["stdout"], result["exit_code"]) == ("done\n", 0), result["stderr"]
    assert changed(result) == ["/output/plot.png"]
    output, = result["outputs"]
    data = base64.b64decode(output["data_base64"])
    assert (output["path"], output["mime"]) == ("/output/plot.png", "image/png")
    assert data == Path("/output/plot.png").read_bytes() and len(data) == output["size"]
    check_png(data, 640, 480)


def check_png(data, width, height):
    """Every chunk whole, and as many pixels as it says."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, pixels, kinds = 8, b"", []
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
        kinds.append(kind)
        pixels += body if kind == b"IDAT" else b""
        at += 12 + size
    assert (kinds[0], kinds[-1]) == (b"IHDR", b"IEND")
    assert struct.unpack(">II", data[16:24]) == (width, height)
    assert len(zlib.decompress(pixels)) == height * (1 + 4 * width)


# streams, keys, clients that go

def test_a_stream_ends_with_the_result(coder):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n" + write_all(
        coder.nook.output, {"a.png": png()}) + "sys.exit(4)"
    with coder.stream(code, "python") as stream:
        assert stream.next_event("started").data["offset"] == 0
        out, err, last = output_of(stream.events())
    assert (out, err, last.name) == (b"out\n", b"err\n", "result")
    assert (last.data["exit_code"], last.data["language"]) == (4, "python")
    assert changed(last.data) == [str(coder.nook.output / "a.png")]
    assert base64.b64decode(last.data["outputs"][0]["data_base64"]) == png()
    assert "stdout" not in last.data


def test_output_streams_while_the_code_runs(coder):
    code = ("import os, time\nprint('first', end='')\nwhile not os.path.exists('go'):\n"
            "    time.sleep(0.01)\nprint('second')")
    with coder.stream(code, "python") as stream:
        stream.next_event("started")
        assert stream.next_event("stdout").data == {"text": "first"}
        (coder.nook.workspace / "go").touch()
        assert output_of(stream.events())[0] == b"second\n"


def test_standard_input_of_a_stream_may_stay_open(coder):
    with coder.stream("print(input(), end='')\nprint(input())", "python", stdin="one\n",
                      stdin_open=True) as stream:
        id = stream.next_event("started").data["id"]
        assert stream.next_event("stdout").data == {"text": "one"}
        coder.nook.post(f"/v1/processes/{id}/stdin", {"text": "two\n"})
        assert output_of(stream.events())[0] == b"two\n"


def test_code_under_a_key_runs_once(coder):
    headers = [("Idempotency-Key", "k")]
    code = "open('count', 'a').write('x')\nprint(open('count').read())"
    first = coder.post(code, "python", headers=headers)
    again = coder.post(code, "python", headers=headers)
    assert first.status == again.status == 200
    assert first.json() == again.json()
    assert len(first.json()["files_changed"]) == 1
    assert (coder.nook.workspace / "count").read_text() == "x"
    other = coder.post(code + " ", "python", headers=headers)
    assert (other.status, other.code) == (409, "conflict")


def test_a_stream_under_a_key_is_replayed_with_its_images(coder):
    body = {"code": write_all(coder.nook.output, {"a.png": png()}) + "print('x')",
            "language": "python"}
    ends = []
    for _ in range(2):
        with coder.nook.stream("POST", "/v1/code/stream", json=body,
                               headers=[("Idempotency-Key", "k")]) as stream:
            out, _, last = output_of(stream.events())
        assert out == b"x\n"
        ends.append(last.data)
    assert ends[0] == ends[1]
    assert base64.b64decode(ends[1]["outputs"][0]["data_base64"]) == png()


@pytest.mark.parametrize("how", ["plain", "stream"])
def test_a_client_that_goes_away_kills_its_code(coder, how):
    body = {"code": STAY, "language": "python"}
    conn = coder.nook.connect()
    conn.send_request("POST", "/v1/code" + ("/stream" if how == "stream" else ""), json=body)
    pid = pid_in(coder.nook)
    conn.close()
    wait_until(lambda: is_gone(pid))


@pytest.mark.parametrize("fields", [{"detach": True}, {}])
def test_code_goes_on_without_its_client_where_it_should(coder, fields):
    """Also where the client leaves while the code is still being prepared."""
    headers = [] if fields else [("Idempotency-Key", "k")]
    conn = coder.nook.connect()
    conn.send_request("POST", "/v1/code", json={
        "code": "open('done', 'w').close()", "language": "python", **fields}, headers=headers)
    conn.close()
    wait_until(lambda: (coder.nook.workspace / "done").exists())
    wait_until(lambda: [p["status"] for p in coder.nook.get("/v1/processes").json()["processes"]]
               == ["exited"])


def test_a_client_that_leaves_early_starts_nothing(coder):
    for _ in range(scaled(50)):
        conn = coder.nook.connect()
        conn.send_request("POST", "/v1/code", json={"code": "while True: pass",
                                                    "language": "python"})
        conn.close()
    wait_until(lambda: coder.nook.get("/v1/processes?running=true").json()["processes"] == [])
    wait_until(lambda: folders_of(coder.nook) == [])


def test_many_runs_at_once_do_not_mix(coder):
    count = scaled(24, 6)
    results = [None] * count

    def run(i):
        results[i] = coder.run(f"open('f{i}', 'w').write('x')\nprint({i})")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    for i, result in enumerate(results):
        assert result["stdout"] == f"{i}\n"
        assert str(coder.nook.workspace / f"f{i}") in changed(result)


def test_code_takes_a_command_slot(start_nook):
    nook = start_nook("--max-commands", 1, env={"PATH": PATH})
    coder = Coder(nook)
    with coder.stream(STAY, "python") as stream:
        stream.next_event("started")
        response = coder.post("print(1)", "python")
        assert (response.status, response.code) == (409, "busy")
    wait_until(lambda: coder.post("print(1)", "python").status == 200)


def test_environment_of_the_request_counts_before_that_of_the_runtime(coder):
    code = "import os\nprint(os.environ['PYTHONUNBUFFERED'], os.environ['PYTHONPATH'])"
    out = coder.run(code)["stdout"].split()
    assert out == ["1", str(coder.nook.workspace)]
    out = coder.run(code, env={"PYTHONUNBUFFERED": "x", "PYTHONPATH": "/mine"})["stdout"].split()
    assert out == ["x", f"{coder.nook.workspace}:/mine"]


def test_the_code_of_a_million_bytes_runs(coder):
    code = "x = '" + "y" * 900_000 + "'\nprint(len(x))"
    assert coder.run(code)["stdout"] == "900000\n"


def test_code_without_a_word_runs(coder):
    assert coder.run("", "python")["exit_code"] == 0


def test_code_over_a_websocket(coder):
    from ws_client import Session
    nook = coder.nook
    start = {"code": "print(input())\n" + write_all(nook.output, {"a.png": png()}),
             "language": "py", "env": coder.env}
    with nook.connect() as conn, Session(conn, start=start) as session:
        session.open()
        session.say("stdin", text="hello\n")
        while True:
            message = session.recv_message()
            if message["type"] in ("result", "exit", "error"):
                break
    assert message["type"] == "result"
    assert (message["language"], message["exit_code"]) == ("python", 0)
    assert message["outputs"][0]["data_base64"] is None
    assert changed(message) == [str(nook.output / "a.png")]
