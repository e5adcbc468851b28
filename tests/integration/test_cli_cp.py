"""`nookd cp`: files and folders both ways, standard input and output, and what goes wrong."""

import io
import os
import select
import stat
import subprocess
import tarfile

import pytest

import nook as harness
import tar_corpus
import trees
from wire import wait_until

FAILED = 125


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def ok(done):
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout


def tree_of(path):
    tree = trees.describe(path)
    tree.pop(b".")
    return tree


def test_a_folder_goes_in_and_out_as_with_cp_r(nook, here):
    (here / "src").mkdir()
    trees.odd_tree(here / "src", 300)
    tree = tree_of(here / "src")
    ok(nook.cli("cp", here / "src", ":new/place"))
    trees.same(tree_of(nook.workspace / "new/place"), tree)
    # Into a folder that is there.
    ok(nook.cli("cp", here / "src", ":new"))
    trees.same(tree_of(nook.workspace / "new/src"), tree)
    ok(nook.cli("cp", ":new/place", here / "out"))
    trees.same(tree_of(here / "out"), tree)
    ok(nook.cli("cp", ":new/place", here / "out"))
    trees.same(tree_of(here / "out/place"), tree)
    # A dot has no name of its own.
    ok(nook.cli("cp", ".", ":dot", cwd=here / "src"))
    trees.same(tree_of(nook.workspace / "dot"), tree)
    ok(nook.cli("cp", ":", here / "all"))
    assert sorted(os.listdir(here / "all")) == ["dot", "new"]


def test_a_file_goes_in_and_out_with_its_mode(nook, here):
    data = os.urandom(300000)
    (here / "f").write_bytes(data)
    (here / "f").chmod(0o750)
    ok(nook.cli("cp", here / "f", ":a"))
    assert (nook.workspace / "a").read_bytes() == data
    assert (nook.workspace / "a").stat().st_mode & 0o7777 == 0o750
    (nook.workspace / "d").mkdir()
    trees.own(nook.workspace, nook.user)
    ok(nook.cli("cp", here / "f", ":d"))
    ok(nook.cli("cp", here / "f", ":new/"))
    assert (nook.workspace / "d/f").read_bytes() == (nook.workspace / "new/f").read_bytes() == data
    (here / "back").write_text("old")
    ok(nook.cli("cp", ":a", here / "back"))
    ok(nook.cli("cp", ":a", here))
    assert (here / "back").read_bytes() == (here / "a").read_bytes() == data
    assert (here / "back").stat().st_mode & 0o7777 == 0o750
    assert sorted(os.listdir(here)) == ["a", "back", "f"]


def test_standard_input_and_output(nook, here):
    ok(nook.cli("cp", "-", ":f", input=b"from stdin"))
    assert (nook.workspace / "f").read_bytes() == b"from stdin"
    assert ok(nook.cli("cp", ":f", "-")) == b"from stdin"
    archive = ok(nook.cli("cp", ":.", "-"))
    with tarfile.open(fileobj=io.BytesIO(archive)) as t:
        assert sorted(t.getnames()) == [".", "./f"]
    ok(nook.cli("cp", "-", ":d/", input=archive))
    assert (nook.workspace / "d/f").read_bytes() == b"from stdin"
    ok(nook.cli("cp", ":f", "/dev/null"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_link_there_is_what_it_leads_to(nook, here):
    (nook.workspace / "d").mkdir()
    (nook.workspace / "d/f").write_text("x")
    os.symlink("d", nook.workspace / "l")
    os.symlink("d/f", nook.workspace / "lf")
    trees.own(nook.workspace, nook.user)
    ok(nook.cli("cp", ":l", here / "out"))
    assert os.listdir(here / "out") == ["f"]
    assert ok(nook.cli("cp", ":lf", "-")) == b"x"


@pytest.mark.parametrize("args", [
    (), ("a",), ("a", "b"), (":a", ":b"), ("a", "b", ":c"), ("", ":a"), ("--no-such", "a", ":b"),
])
def test_a_call_that_makes_no_sense_is_refused(nook, args):
    done = nook.cli("cp", *args)
    assert done.returncode == FAILED and done.stderr.startswith(b"nookd: ") and not done.stdout


def test_what_is_not_there_is_named(nook, here):
    for args in ((here / "nope", ":a"), (":nope", here / "a"), (":nope", "-"), (":/etc", "-"),
                 ("/dev/null", ":a"), (here, ":/etc/x")):
        done = nook.cli("cp", *args)
        assert done.returncode == FAILED, args
        assert done.stderr.startswith(b"nookd: ") and done.stderr.count(b"\n") == 1
    assert os.listdir(here) == [] and os.listdir(nook.workspace) == []
    (here / "sub").mkdir()
    (nook.workspace / "f").write_text("x")
    done = nook.cli("cp", here / "sub", ":f")
    assert done.returncode == FAILED and b"f" in done.stderr


def test_refused_entries_are_told_and_are_no_success(nook):
    data = tar_corpus.file(b"../x\x1b[31m") + tar_corpus.file(b"ok") + tar_corpus.END
    done = nook.cli("cp", "-", ":d/", input=data)
    assert done.returncode == 1
    assert b"not copied: ../x?[31m" in done.stderr and b"1 entries" in done.stderr
    assert (nook.workspace / "d/ok").exists()


def test_an_archive_that_is_cut_off_is_an_error(nook):
    data = tar_corpus.file(b"ok") + tar_corpus.file(b"cut", bytes(5000))[:3000]
    done = nook.cli("cp", "-", ":d/", input=data)
    assert done.returncode == FAILED and b"bad_request" in done.stderr
    assert os.listdir(nook.workspace / "d") == ["ok"]


@pytest.mark.root
def test_a_stream_that_breaks_off_is_an_error(nook, here):
    (nook.workspace / "d").mkdir()
    trees.own(nook.workspace, nook.user)
    (nook.workspace / "d/secret").write_text("x")
    (nook.workspace / "d/secret").chmod(0o600)
    for there in (here / "out", "-"):
        done = nook.cli("cp", ":d", there)
        assert done.returncode == FAILED
        assert b"secret: Permission denied" in done.stderr


def test_a_hostile_sandbox_cannot_write_outside_of_the_target(nook, here):
    """What `kubectl cp` got wrong three times: links made there are never followed here."""
    (here / "victim").mkdir()
    (here / "out").mkdir()
    os.symlink(here / "victim", here / "out/d")
    (nook.workspace / "s/d").mkdir(parents=True)
    (nook.workspace / "s/d/f").write_text("evil")
    trees.own(nook.workspace, nook.user)
    done = nook.cli("cp", ":s/.", here / "out")
    assert done.returncode == 1 and b"link" in done.stderr
    assert os.listdir(here / "victim") == []


def test_progress_is_shown_on_a_terminal_alone(nook, here):
    master, slave = os.openpty()
    env = {**nook.env, "NOOKD_SOCKET": str(nook.socket)}
    try:
        copy = subprocess.Popen([nook.binary, "cp", "-", ":f"], stdin=subprocess.PIPE, stderr=slave,
                                stdout=subprocess.PIPE, env=env)
        shown = []

        def feed():
            copy.stdin.write(bytes(1 << 16))
            if select.select([master], [], [], 0)[0]:
                shown.append(os.read(master, 4096))
            return b"MiB/s" in b"".join(shown)
        wait_until(feed, 30, "a line of progress")
        out, _ = copy.communicate(timeout=30)
        assert copy.returncode == 0 and out == b""
    finally:
        os.close(slave)
        os.close(master)


def test_help_tells_of_cp():
    done = subprocess.run([harness.BINARY, "cp", "--help"], capture_output=True, check=True,
                          timeout=20)
    assert b":DST" in done.stdout
