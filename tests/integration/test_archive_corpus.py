"""Every case of the malicious corpus: nothing outside is touched, and the answer says what was not
done."""

import json
import os
import stat

import pytest

import nook as harness
import tar_corpus
from trees import put


def snapshot(folder):
    """Everything that could change in a tree: names, kinds, modes, sizes, contents, links."""
    out = {}
    for base, folders, files in os.walk(os.fsencode(folder)):
        for name in [b"."] + folders + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            content = open(path, "rb").read() if stat.S_ISREG(st.st_mode) else b""
            out[path] = (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), st.st_nlink, content,
                         st.st_uid, st.st_mtime_ns if stat.S_ISREG(st.st_mode) else 0)
    return out


@pytest.fixture
def place(nook):
    """(target, victim): two folders of the user beside each other."""
    target, victim = nook.workspace / "target", nook.workspace / "victim"
    for folder in (target, victim):
        folder.mkdir()
        folder.chmod(0o750)
    (victim / "secret").write_bytes(b"secret")
    (victim / "secret").chmod(0o640)
    for path in (target, victim, victim / "secret"):
        if harness.IS_ROOT:
            os.chown(path, nook.user, nook.user)
    return target, victim


def check_result(result, case):
    assert result["refused_count"] >= case.refused, result
    if case.status == 200:
        assert result["refused_count"] == case.refused, result
    assert len(result["refused"]) == min(100, result["refused_count"])
    for refusal in result["refused"]:
        assert refusal["reason"] and "path" in refusal


def check_tree(target, nook):
    """No special file, no set-id bit, nobody else's file, nothing half-made."""
    for base, folders, files in os.walk(os.fsencode(target)):
        for name in folders + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            assert stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode) or \
                stat.S_ISLNK(st.st_mode), path
            if not stat.S_ISLNK(st.st_mode):
                assert stat.S_IMODE(st.st_mode) & 0o7000 == 0, path
                assert not os.listxattr(path, follow_symlinks=False), path
            assert st.st_uid == nook.user, path
            assert not name.startswith(b".nook-"), path


@pytest.mark.parametrize("case", tar_corpus.CASES, ids=str)
def test_an_archive_stays_in_its_folder(nook, place, case):
    target, victim = place
    beside = snapshot(victim)
    others = sorted(os.listdir(nook.workspace))
    before = os.lstat(target)

    response = put(nook, "target", case.make(os.fsencode(victim)))

    assert response.status == case.status, response
    body = response.json()
    if case.status != 200:
        assert body["error"]["code"] == case.code
    check_result(body if case.status == 200 else body["done"], case)
    assert snapshot(victim) == beside
    assert sorted(os.listdir(nook.workspace)) == others
    assert stat.S_IMODE(os.lstat(target).st_mode) == stat.S_IMODE(before.st_mode)
    check_tree(target, nook)
    for name, content in case.present.items():
        assert content is None or (target / name).read_bytes() == content, name
    for name in case.absent:
        assert not os.path.lexists(target / name), name


REFUSING = [c for c in tar_corpus.CASES if c.refused]


@pytest.mark.parametrize("case", REFUSING, ids=str)
def test_strict_ends_at_the_first_refusal(nook, place, case):
    target, victim = place
    beside = snapshot(victim)
    response = put(nook, "target", case.make(os.fsencode(victim)), strict="true")
    assert (response.status, response.code) == (400, "bad_request"), response
    assert response.json()["done"]["refused_count"] == 1
    assert snapshot(victim) == beside
    check_tree(target, nook)


def test_a_second_unpacking_follows_no_link_of_the_first(nook, place):
    """Two archives, each harmless: the first makes a link, the second goes through it."""
    target, victim = place
    beside = snapshot(victim)
    first = tar_corpus.symlink(b"d", os.fsencode(victim)) + tar_corpus.END
    second = tar_corpus.file(b"d/secret") + tar_corpus.folder(b"d/", 0o777) + tar_corpus.END
    assert put(nook, "target", first).json()["links"] == 1
    assert put(nook, "target", second).json()["refused_count"] == 2
    assert snapshot(victim) == beside


def test_only_the_first_hundred_refusals_are_told(nook, place):
    data = b"".join(tar_corpus.file(b"../x%d" % i) for i in range(250)) + tar_corpus.END
    result = put(nook, "target", data).json()
    assert result["refused_count"] == 250
    assert [r["path"] for r in result["refused"]] == [f"../x{i}" for i in range(100)]


def test_a_refused_name_that_is_not_utf8_comes_exactly(nook, place):
    result = put(nook, "target", tar_corpus.file(b"../\xff\x1b\n") + tar_corpus.END)
    refusal = result.json()["refused"][0]
    assert refusal["path"] == "../\ufffd\x1b\n"
    assert refusal["path_base64"] == "Li4v/xsK"
    assert b"\x1b" not in result.body and b"\n" not in result.body.strip()
    assert json.loads(result.body)


def test_a_hundred_folders_deep_goes_and_what_is_deeper_is_refused(nook, place):
    target, _ = place
    deepest = b"d/" * 99 + b"f"
    for name, reasons in ((deepest, []), (b"d/" + deepest, ["too many folders deep"]),
                          (b"./d//" + deepest[2:], [])):
        entry = tar_corpus.long_name(name) + tar_corpus.file(b"short")
        result = put(nook, "target", entry + tar_corpus.END).json()
        assert [r["reason"] for r in result["refused"]] == reasons, name
        assert result["files"] == (0 if reasons else 1)
    assert os.path.isfile(target / os.fsdecode(deepest))
