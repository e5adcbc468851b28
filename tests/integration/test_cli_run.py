"""nookd run: code from the command line."""

import pytest

from nook import scaled
from test_code import PATH, png, write_all


@pytest.fixture
def nook(start_nook):
    return start_nook(env={"PATH": PATH})


def test_code_from_standard_input_and_from_a_file(nook, tmp_path):
    done = nook.cli("run", "python", input=b"import sys\nprint('h\xc3\xa4')\nsys.exit(3)")
    assert (done.stdout, done.stderr, done.returncode) == ("hä\n".encode(), b"", 3)
    done = nook.cli("run", "sh", "-", "a b", input=b"echo \"$1\" >&2")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"a b\n", 0)
    file = tmp_path / "code"
    file.write_text("echo $1 $X; pwd; exit 4")
    (nook.workspace / "sub").mkdir()
    done = nook.cli("run", "--cwd", "sub", "--env", "X=1", "sh", file, "--flag")
    assert (done.stdout, done.returncode) == (f"--flag 1\n{nook.workspace}/sub\n".encode(), 4)


def test_changed_files_are_listed_and_images_saved(nook, tmp_path):
    code = write_all(nook.output, {"plot.png": png(), ".hidden": png()}) + "open('a', 'w').close()"
    saved = tmp_path / "saved"
    done = nook.cli("run", "--outputs", saved, "python", input=code.encode())
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert f"changed: {nook.workspace}/a" in lines and "saved: plot.png" in lines
    assert (saved / "plot.png").read_bytes() == png()
    assert [p.name for p in saved.iterdir()] == ["plot.png"]
    done = nook.cli("run", "python", input=code.encode())
    assert done.returncode == 0 and b"saved" not in done.stderr


def test_a_name_from_the_sandbox_leads_nowhere_else(nook, tmp_path):
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "plot.png").symlink_to(tmp_path / "victim")
    code = write_all(nook.output, {"plot.png": png()})
    done = nook.cli("run", "--outputs", saved, "python", input=code.encode())
    assert done.returncode == 125
    assert not (tmp_path / "victim").exists()


def test_a_timeout_and_a_signal_are_told_by_the_status(nook):
    assert nook.cli("run", "--timeout", "0.3", "sh", input=b"sleep 1000").returncode == 137
    assert nook.cli("run", "sh", input=b"kill -TERM $$").returncode == 143


@pytest.mark.parametrize(("args", "code", "words"), [
    ([], b"", b"no language"), (["cobol"], b"x", b"cobol"), (["sh", "/nonexistent"], b"", b"cannot"),
    (["sh"], b"\xff", b"not text"), (["sh"], b"a\0b", b"not text"),
    (["--context", "x"], b"", b"no context"),
    (["sh"], b"#" * (2 << 20), b"longer than"), (["--timeout", "x", "sh"], b"", b"--timeout"),
])
def test_what_cannot_be_run_is_told_in_one_line(nook, args, code, words):
    done = nook.cli("run", *args, input=code)
    assert (done.returncode, done.stdout) == (125, b"")
    assert words in done.stderr and done.stderr.count(b"\n") == 1


def test_much_output_is_not_held_back(nook):
    size = scaled(5_000_000, 100_000)
    done = nook.cli("run", "python", input=f"print('x' * {size})".encode())
    assert len(done.stdout) == size + 1
