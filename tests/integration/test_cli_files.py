"""`nookd ls`, `nookd rm`, `nookd mkdir`."""

import os

from test_files import put


def ok(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def failed(done, word):
    assert done.returncode == 125 and word in done.stderr and done.stdout == b"", done


def test_ls_lists_folders_and_files(nook):
    for name in ("b", "a/x", "a-b", b"\xff\n"):
        put(nook, name, b"12345")
    os.symlink("a", nook.workspace / "link")
    assert ok(nook.cli("ls")) == b"a\na-b\nb\nlink\n\xff\n\n"
    assert ok(nook.cli("ls", "a")) == b"x\n"
    assert ok(nook.cli("ls", nook.workspace / "a")) == b"x\n"
    assert ok(nook.cli("ls", "-R", ".")) == b"a\na-b\na/x\nb\nlink\n\xff\n\n"
    assert ok(nook.cli("ls", "b")) == b"b\n"
    assert ok(nook.cli("ls", "link/")) == b"x\n"
    line = ok(nook.cli("ls", "-l", "b")).split()
    assert line[:2] == [b"file", b"0644"] and line[3] == b"5" and line[-1] == b"b"
    assert ok(nook.cli("ls", "-l", "link")).endswith(b"link -> a\n")
    failed(nook.cli("ls", "missing"), b"missing")
    failed(nook.cli("ls", "/etc"), b"/etc")


def test_ls_pages_through_large_folders(nook):
    nook.exec("mkdir many; cd many; seq 12000 | xargs touch", timeout=60)
    assert ok(nook.cli("ls", "many")).decode().split() == sorted(map(str, range(1, 12001)))


def test_rm_removes_what_it_is_told_and_no_more(nook):
    for name in ("a", "b", "d/e/f", "kept"):
        put(nook, name, b"")
    ok(nook.cli("rm", "a", "b"))
    failed(nook.cli("rm", "d"), b"not empty")
    done = nook.cli("rm", "-r", "missing", "d")
    failed(done, b"missing")
    assert ok(nook.cli("ls")) == b"kept\n"
    failed(nook.cli("rm"), b"needs a path")


def test_mkdir_makes_parents_with_a_mode(nook):
    ok(nook.cli("mkdir", "-m", "700", "a/b", os.fsdecode(b"\xfe")))
    ok(nook.cli("mkdir", "a/b"))
    assert (nook.workspace / "a/b").stat().st_mode & 0o7777 == 0o700
    assert os.listdir(os.fsencode(nook.workspace)).count(b"\xfe") == 1
    failed(nook.cli("mkdir", "-m", "4755", "x"), b"mode")
    assert b"usage" in nook.cli("mkdir", "--help").stdout
