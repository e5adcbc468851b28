"""A process that swaps a folder and a link as fast as it can, while archives go in and out."""

import io
import os
import subprocess
import sys
import tarfile
import time

import pytest

import tar_corpus
import trees
from nook import scaled
from trees import get, put
from wire import deadline, wait_until

# Exchanges two names for ever (RENAME_EXCHANGE; where the kernel has none, by three renames).
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])
print("on", flush=True)
while True:
    for _ in range(1000):
        if libc.renameat2(-100, b"d", -100, b"other", 2) != 0:
            os.rename("d", "t"); os.rename("other", "d"); os.rename("t", "other")
"""


@pytest.fixture
def arena(nook):
    """(folder, victim): in `folder` the names d and other, a folder and a link to the victim, change
    places all the time."""
    folder, victim = nook.workspace / "arena", nook.workspace / "victim"
    for path in (folder, victim, folder / "d"):
        path.mkdir()
    (victim / "secret").write_text("secret")
    (folder / "d" / "inside").write_text("inside")
    os.symlink(victim, folder / "other")
    trees.own(nook.workspace, nook.user)
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, folder], stdout=subprocess.PIPE)
    try:
        assert swapper.stdout.readline() == b"on\n"
        yield folder, victim
    finally:
        swapper.kill()
        swapper.wait()
        swapper.stdout.close()


def naive_write(folder):
    """Checks the real path, then opens it: what this test must catch."""
    try:
        if os.path.realpath(folder / "d").startswith(str(folder)):
            with open(folder / "d" / "naive", "w"):
                pass
    except OSError:
        pass


def test_the_race_is_on(arena):
    """The control: a writer that checks first and opens then does escape."""
    folder, victim = arena
    end = deadline(60)
    while not (victim / "naive").exists():
        naive_write(folder)
        assert time.monotonic() < end, "the naive writer never escaped: there is no race"


def test_CVE_2018_15664_unpacking_never_escapes_a_swapper(nook, arena):
    folder, victim = arena
    rounds, inside, refused = scaled(20, 3), 0, 0
    for n in range(rounds):
        data = b"".join(
            tar_corpus.folder(b"d/", 0o777) + tar_corpus.file(b"d/f%d-%d" % (n, i))
            + tar_corpus.symlink(b"d/s%d-%d" % (n, i), b"secret")
            + tar_corpus.hardlink(b"h%d-%d" % (n, i), b"d/secret")
            + tar_corpus.file(b"d/sub%d/x" % i) for i in range(1000)) + tar_corpus.END
        result = put(nook, "arena", data)
        assert result.status == 200, result
        inside += result.json()["files"]
        refused += result.json()["refused_count"]
        assert os.listdir(victim) == ["secret"]
        assert (victim / "secret").stat().st_nlink == 1
        assert victim.stat().st_mode & 0o777 == 0o755
    assert inside > 0 and refused > 0, "the swapper was not seen at all"


def test_packing_never_escapes_a_swapper(nook, arena):
    folder, victim = arena
    kinds = set()
    for _ in range(scaled(400, 40)):
        response = get(nook, "arena", base="arena")
        assert response.status == 200
        with tarfile.open(fileobj=io.BytesIO(response.body)) as t:
            for member in t:
                assert not member.name.endswith("secret"), "the victim's file was packed"
                kinds.add((member.name, member.type))
    assert ("./d", tarfile.DIRTYPE) in kinds and ("./d", tarfile.SYMTYPE) in kinds, kinds
    # Asked for by name, the way there is walked anew each time.
    seen = set()

    def both():
        response = get(nook, "arena/d/inside", base="arena")
        seen.add(response.status)
        if response.status == 200:
            with tarfile.open(fileobj=io.BytesIO(response.body)) as t:
                for member in t:
                    assert t.extractfile(member).read() == b"inside"
        return {200, 404} <= seen
    wait_until(both, 60, "the name was both a folder and a link")
