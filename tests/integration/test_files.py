"""One file or folder: paths and their forms, stat, mkdir, move, copy, chmod, delete, list."""

import base64
import os
import socket
import stat
from urllib.parse import quote_from_bytes

import pytest

import nook as harness


def q(path):
    """A path of text or bytes for a query."""
    return quote_from_bytes(os.fsencode(path), safe="/")


def get(nook, path, **kw):
    return nook.get(f"/v1/files?path={q(path)}", **kw)


def put(nook, path, body, query="", **kw):
    return nook.request("PUT", f"/v1/files?path={q(path)}{query}", body=body, **kw)


def info(nook, path):
    response = nook.get(f"/v1/files/stat?path={q(path)}")
    assert response.status == 200, response
    return response.json()


def delete(nook, path, query=""):
    return nook.request("DELETE", f"/v1/files?path={q(path)}{query}")


def act(nook, verb, expected=200, **fields):
    response = nook.post(f"/v1/files/{verb}", fields)
    assert response.status == expected, response
    return response.json()


def names(nook, query=""):
    response = nook.get(f"/v1/files/list?{query}")
    assert response.status == 200, response
    return [e["path"] for e in response.json()["entries"]]


def refused(response, status, code):
    assert (response.status, response.code) == (status, code), response


# paths


def test_an_answer_has_the_form_of_the_request(nook):
    assert put(nook, "a//b/./c.txt", b"x").json()["path"] == "a/b/c.txt"
    absolute = str(nook.workspace / "a/b/c.txt")
    assert info(nook, absolute)["path"] == absolute
    assert info(nook, "a/../a/b")["path"] == "a/b"
    assert info(nook, ".")["path"] == "."
    assert info(nook, str(nook.tmp))["name"] == "tmp"
    assert names(nook, f"path={nook.workspace}/a/") == [f"{nook.workspace}/a/b"]
    assert names(nook, "path=a/b/") == ["a/b/c.txt"]


@pytest.mark.parametrize(("path", "status", "code"), [
    ("..", 400, "bad_path"),
    ("../etc/passwd", 400, "bad_path"),
    ("a/../../x", 400, "bad_path"),
    ("n" * 256, 400, "bad_path"),
    ("d/" * 2500, 400, "bad_path"),
    ("/etc/passwd", 403, "forbidden"),
    ("/", 403, "forbidden"),
    ("/proc/self/environ", 403, "forbidden"),
    ("missing", 404, "not_found"),
    ("missing/x", 404, "not_found"),
])
def test_paths_that_lead_nowhere_are_refused_by_their_kind(nook, path, status, code):
    refused(get(nook, path), status, code)
    refused(nook.get(f"/v1/files/stat?path={q(path)}"), status, code)
    if status != 404:
        refused(put(nook, path, b"x"), status, code)
        refused(nook.post("/v1/files/mkdir", {"path": path}), status, code)
        refused(nook.get(f"/v1/files/list?path={q(path)}"), status, code)
        refused(delete(nook, path), status, code)


def test_a_nul_is_refused_in_every_way_it_can_come(nook):
    assert nook.get("/v1/files?path=a%00b").status == 400
    refused(nook.post("/v1/files/mkdir", {"path": "a\0b"}), 400, "bad_json")
    refused(nook.post("/v1/files/mkdir",
                      {"path_base64": base64.b64encode(b"a\0b").decode()}), 400, "bad_path")


def test_a_missing_path_and_unknown_parameters_are_told(nook):
    refused(nook.get("/v1/files"), 400, "bad_path")
    refused(nook.get("/v1/files?path="), 400, "bad_path")
    refused(nook.post("/v1/files/mkdir", {}), 400, "bad_path")
    refused(nook.get("/v1/files?path=a&pth=b"), 400, "bad_request")
    refused(nook.post("/v1/files/mkdir", {"path": "a", "recursive": True}), 400, "bad_request")


WEIRD = [b"\xff\xfe not utf8", "ümlaut €".encode(), b"line\nbreak", b"$HOME `x` %41 %2f", b"-rf",
         b"x" * 255, b"\x1b[31m", b"a+b&c=d?e#f", b"\\", b"'\""]


@pytest.mark.parametrize("name", WEIRD)
def test_a_name_may_be_any_bytes(nook, name):
    made = put(nook, name, b"content")
    assert made.status == 201, made
    assert (nook.workspace / os.fsdecode(name)).read_bytes() == b"content"
    assert get(nook, name).body == b"content"
    listed = nook.get("/v1/files/list").json()["entries"]
    assert len(listed) == 1
    entry = listed[0]
    exact = base64.b64decode(entry["name_base64"]) if "name_base64" in entry \
        else entry["name"].encode()
    assert exact == name
    field = {"path_base64": entry["path_base64"]} if "path_base64" in entry \
        else {"path": entry["path"]}
    act(nook, "chmod", mode="600", **field)
    act(nook, "move", to="plain", **field)
    assert delete(nook, "plain").status == 204


# links


def test_links_inside_are_followed_and_outside_refused(nook):
    put(nook, "real/f", b"inside")
    outside = nook.root / "secret"
    outside.write_text("secret")
    outside.chmod(0o644)
    for target, name in [("real/f", "file"), ("real", "dir"), (str(nook.workspace / "real"), "abs"),
                         ("file", "chain"), (str(outside), "out"), ("../secret", "relout"),
                         (str(nook.root), "outdir"), ("loop", "loop"), ("nowhere", "dangling"),
                         ("../tmp", "other")]:
        os.symlink(target, nook.workspace / name)
    (nook.tmp / "t").write_text("other root")
    for path in ("file", "dir/f", "abs/f", "chain"):
        assert get(nook, path).body == b"inside"
    assert get(nook, "other/t").body == b"other root"
    for path in ("out", "relout", "outdir/secret"):
        refused(get(nook, path), 403, "forbidden")
    refused(get(nook, "loop"), 400, "bad_path")
    refused(get(nook, "dangling"), 404, "not_found")
    assert info(nook, "out")["target"] == str(outside)
    assert info(nook, "dangling")["type"] == "symlink"


def test_a_link_in_the_last_place_is_never_written_through(nook):
    put(nook, "real", b"old")
    outside = nook.root / "outside"
    outside.write_text("old")
    for target, name in [("real", "in"), (str(outside), "out"), ("fresh", "dangling")]:
        os.symlink(target, nook.workspace / name)
        refused(put(nook, name, b"new"), 400, "bad_path")
        refused(nook.post("/v1/files/chmod", {"path": name, "mode": "777"}), 400, "bad_path")
        assert os.readlink(nook.workspace / name) == target
        act(nook, "move", path=name, to=name + "2")
        assert os.readlink(nook.workspace / (name + "2")) == target
        assert delete(nook, name + "2").status == 204
    assert (nook.workspace / "real").read_bytes() == b"old"
    assert outside.read_text() == "old"
    assert not (nook.workspace / "fresh").exists()


# special files


def test_what_is_no_regular_file_is_refused_at_once(nook):
    put(nook, "dir/x", b"")
    os.mkfifo(nook.workspace / "fifo", 0o666)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(nook.workspace / "socket"))
        for name in ("dir", "fifo", "socket"):
            refused(get(nook, name), 400, "bad_path")
            refused(put(nook, name, b"x"), 400, "bad_path")
        assert info(nook, "fifo")["type"] == "other"
        assert info(nook, "dir")["type"] == "dir"
        assert set(names(nook, "recursive=1")) == {"dir", "dir/x", "fifo", "socket"}
        act(nook, "copy", path=".", to=str(nook.tmp / "copy"))
        assert sorted(os.listdir(nook.tmp / "copy")) == ["dir"]
        for name in ("fifo", "socket"):
            assert delete(nook, name).status == 204


@pytest.mark.root
def test_a_device_is_never_opened(nook):
    os.mknod(nook.workspace / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(nook.workspace / "none", 0o666 | stat.S_IFBLK, os.makedev(240, 250))
    for name in ("null", "none"):
        refused(get(nook, name), 400, "bad_path")
        refused(put(nook, name, b"x"), 400, "bad_path")


# rights


@pytest.mark.root
def test_files_are_touched_with_the_users_own_rights(nook):
    theirs = nook.workspace / "theirs"
    theirs.mkdir(mode=0o755)
    (theirs / "secret").write_text("secret")
    (theirs / "secret").chmod(0o600)
    made = put(nook, "mine", b"x").json()
    assert (made["uid"], made["gid"]) == (nook.user, nook.user)
    for response in (get(nook, "theirs/secret"), put(nook, "theirs/new", b"x"),
                     put(nook, "theirs/secret", b"x"), delete(nook, "theirs/secret"),
                     nook.post("/v1/files/chmod", {"path": "theirs/secret", "mode": "666"}),
                     nook.post("/v1/files/mkdir", {"path": "theirs/d"}),
                     nook.post("/v1/files/move", {"path": "theirs/secret", "to": "got"}),
                     nook.post("/v1/files/copy", {"path": "theirs/secret", "to": "got"})):
        refused(response, 403, "forbidden")
    assert (theirs / "secret").read_text() == "secret"
    assert os.listdir(theirs) == ["secret"]


def test_a_readable_root_is_read_and_not_written(start_nook, tmp_path):
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and str(folder) not in ("/", "/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / "data").write_text("read me")
    nook = start_nook("--readable", tmp_path)
    assert get(nook, tmp_path / "data").body == b"read me"
    refused(put(nook, tmp_path / "data", b"x"), 403, "forbidden")
    refused(put(nook, tmp_path / "new/x", b"x"), 403, "forbidden")
    act(nook, "copy", path=str(tmp_path / "data"), to="copy")
    refused(nook.post("/v1/files/move", {"path": str(tmp_path / "data"), "to": "m"}), 403,
            "forbidden")
    assert not (tmp_path / "new").exists()


# stat, mkdir, chmod, delete


def test_stat_tells_what_the_file_system_says(nook):
    put(nook, "f", b"12345", "&mode=0640")
    os.utime(nook.workspace / "f", ns=(10**18, 1234567890_987654321))
    entry = info(nook, "f")
    assert (entry["name"], entry["type"], entry["size"], entry["mode"]) == ("f", "file", 5, "0640")
    assert entry["mtime"] == "2009-02-13T23:31:30.987Z"
    assert entry["uid"] == os.stat(nook.workspace / "f").st_uid
    assert "target" not in entry and "name_base64" not in entry


def test_mkdir_makes_parents_and_is_content_with_a_folder(nook):
    assert act(nook, "mkdir", path="a/b/c", mode="700")["mode"] == "0700"
    assert info(nook, "a/b")["mode"] == "0755"
    assert act(nook, "mkdir", path="a/b/c", mode="755")["mode"] == "0700"
    assert act(nook, "mkdir", path=".")["type"] == "dir"
    put(nook, "file", b"")
    act(nook, "mkdir", 409, path="file")
    act(nook, "mkdir", 400, path="file/sub")


@pytest.mark.parametrize("mode", ["8", "77", "07777", "1777", "4755", "0x1ff", "-644", "rwx", ""])
def test_a_mode_is_permission_bits_only(nook, mode):
    refused(nook.post("/v1/files/mkdir", {"path": "d", "mode": mode}), 400, "bad_request")
    refused(put(nook, "f", b"", f"&mode={mode}"), 400, "bad_request")
    assert names(nook) == []


def test_chmod_of_a_tree_can_take_away_its_own_way_in(nook):
    put(nook, "t/a/b/f", b"x")
    os.symlink("/etc/passwd", nook.workspace / "t/link")
    assert act(nook, "chmod", path="t", mode="0400", recursive=True)["mode"] == "0400"
    act(nook, "chmod", path="t", mode="700")
    assert info(nook, "t/a")["mode"] == "0400"
    refused(nook.post("/v1/files/chmod", {"path": "t"}), 400, "bad_request")


def test_delete_is_careful_unless_told_otherwise(nook):
    put(nook, "d/sub/f", b"x")
    refused(delete(nook, "d"), 409, "not_empty")
    assert delete(nook, "d/sub/f").status == 204
    assert delete(nook, "d/sub/").status == 204
    put(nook, "d/locked/f", b"x")
    (nook.workspace / "d/locked").chmod(0o500)
    assert delete(nook, "d", "&recursive=true").status == 204
    refused(delete(nook, "d"), 404, "not_found")
    refused(delete(nook, ".", "&recursive=true"), 403, "forbidden")
    refused(delete(nook, str(nook.tmp), "&recursive=true"), 403, "forbidden")
    assert nook.workspace.is_dir()


def make_deep(nook, levels):
    """Deeper than any path can say, and of the user, whose command it is."""
    result = nook.exec(f"python3 - <<'E'\nimport os\nfor i in range({levels}):\n os.mkdir('d')\n"
                       " os.chdir('d')\nopen('f','w')\nE", timeout=120)
    assert result["exit_code"] == 0, result


def test_a_very_deep_tree_is_told_to_be_one_and_is_removed(nook):
    make_deep(nook, 4200)
    page = nook.get("/v1/files/list?recursive=true&limit=10000").json()
    assert 100 < len(page["entries"]) < 3000 and page["too_deep"] is True  # as far as paths reach
    assert "too_deep" not in nook.get("/v1/files/list?depth=1000").json()
    chmod = {"path": "d", "mode": "755", "recursive": True}
    assert nook.post("/v1/files/chmod", chmod, wait=120).status == 200
    assert nook.request("DELETE", "/v1/workspace", wait=120).status == 204
    assert nook.get("/v1/files/list").json() == {"entries": [], "next": None}


@pytest.mark.skipif(harness.scaled(10) < 10, reason="70,000 folders")
def test_modes_are_set_at_any_depth(nook):
    """Deeper than one walk goes, with a mode that keeps its owner out of what is above."""
    make_deep(nook, 70_000)
    chmod = {"path": "d", "mode": "400", "recursive": True}
    assert nook.post("/v1/files/chmod", chmod, wait=120).status == 200
    fd, depth = os.open(nook.workspace, os.O_PATH), 0
    try:
        while True:
            inner = os.open("d", os.O_PATH | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd, depth = inner, depth + 1
            assert stat.S_IMODE(os.stat(fd).st_mode) == 0o400, depth
    except FileNotFoundError:
        assert stat.S_IMODE(os.stat("f", dir_fd=fd).st_mode) == 0o400
    finally:
        os.close(fd)
    assert depth == 70_000
    assert nook.request("DELETE", "/v1/workspace", wait=120).status == 204


@pytest.mark.parametrize("to", ["d/new", "d/e", "d/e/x/y", "link/new"])
@pytest.mark.parametrize("verb", ["copy", "move"])
def test_a_folder_does_not_go_into_itself(nook, verb, to):
    put(nook, "d/e/f", b"x")
    os.symlink("d", nook.workspace / "link")
    before = names(nook, "recursive=true")
    error = act(nook, verb, 400, path="d", to=to, overwrite=True)["error"]
    assert (error["code"], to in error["message"]) == ("bad_request", True), error
    assert names(nook, "recursive=true") == before


def test_a_tree_deeper_than_paths_is_not_copied_and_leaves_nothing(nook):
    make_deep(nook, 2200)
    response = nook.post("/v1/files/copy", {"path": "d", "to": "e"}, wait=120)
    assert response.status in (400, 414) and "too long" in response.json()["error"]["message"]
    assert os.listdir(nook.workspace) == ["d"]
    assert nook.post("/v1/files/move", {"path": "d", "to": "e"}).status == 200  # only a name
    assert delete(nook, "e", "&recursive=true").status == 204


def test_emptying_the_workspace_leaves_the_folder(nook):
    put(nook, "a/b/c", b"x")
    put(nook, ".hidden", b"x")
    os.symlink(nook.tmp, nook.workspace / "link")
    (nook.tmp / "kept").write_text("x")
    before = os.stat(nook.workspace)
    assert nook.request("DELETE", "/v1/workspace").status == 204
    assert names(nook) == []
    assert (nook.tmp / "kept").exists()
    after = os.stat(nook.workspace)
    assert (after.st_ino, after.st_mode, after.st_uid) == \
        (before.st_ino, before.st_mode, before.st_uid)


# move and copy


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_what_is_there_is_only_replaced_when_told(nook, verb):
    put(nook, "a", b"new")
    put(nook, "b", b"old")
    put(nook, "dir/x", b"1")
    put(nook, "full/y", b"2")
    act(nook, verb, 409, path="a", to="b")
    act(nook, verb, 409, path="dir", to="full")
    act(nook, verb, 404, path="missing", to="c")
    act(nook, verb, 400, path="dir", to="dir/sub/x")
    assert act(nook, verb, path="a", to="b", overwrite=True)["path"] == "b"
    assert get(nook, "b").body == b"new"
    act(nook, verb, path="dir", to="full", overwrite=True)
    assert names(nook, "recursive=1&path=full") == ["full/x"]
    act(nook, verb, path="b", to="full", overwrite=True)
    assert get(nook, "full").body == b"new"
    assert (get(nook, "a").status, get(nook, "dir/x").status) == \
        ((404, 404) if verb == "move" else (200, 200))
    assert not [n for n in names(nook, "recursive=1") if ".nook-" in n]


def test_a_copy_is_like_what_it_was_made_from(nook):
    put(nook, "t/bin/run", b"#!/bin/sh\n", "&mode=755")
    put(nook, "t/data", os.urandom(3_000_000))
    put(nook, "t/ro/f", b"x")
    (nook.workspace / "t/ro").chmod(0o555)
    os.symlink("data", nook.workspace / "t/link")
    assert act(nook, "copy", path="t", to="new/parents/t")["type"] == "dir"
    copy = nook.workspace / "new/parents/t"
    assert (copy / "data").read_bytes() == (nook.workspace / "t/data").read_bytes()
    assert os.readlink(copy / "link") == "data"
    assert stat.S_IMODE((copy / "bin/run").stat().st_mode) == 0o755
    assert stat.S_IMODE((copy / "ro").stat().st_mode) == 0o555
    act(nook, "copy", path="t/link", to="link2")
    assert os.readlink(nook.workspace / "link2") == "data"


@pytest.mark.root
def test_a_move_to_another_file_system_is_complete(nook):
    other = nook.workspace / "other"
    other.mkdir()
    harness.subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=4m,uid={nook.user}", "t", other],
                           check=True)
    try:
        put(nook, "t/sub/f", b"content", "&mode=700")
        os.symlink("f", nook.workspace / "t/sub/l")
        os.utime(nook.workspace / "t/sub/f", (10**9, 10**9))
        act(nook, "move", path="t", to="other/t")
        assert not (nook.workspace / "t").exists()
        assert (other / "t/sub/f").read_bytes() == b"content"
        assert os.readlink(other / "t/sub/l") == "f"
        st = (other / "t/sub/f").stat()
        assert (stat.S_IMODE(st.st_mode), int(st.st_mtime)) == (0o700, 10**9)
        put(nook, "big", b"x" * 6_000_000)
        act(nook, "move", 507, path="big", to="other/new/big")
        assert (nook.workspace / "big").stat().st_size == 6_000_000
        assert sorted(os.listdir(other)) == ["t"]
        put(nook, "odd/f", b"x")
        os.mkfifo(nook.workspace / "odd/fifo")
        act(nook, "move", 501, path="odd", to="other/odd")
        assert sorted(os.listdir(nook.workspace / "odd")) == ["f", "fifo"]
        assert sorted(os.listdir(other)) == ["t"]
    finally:
        harness.subprocess.run(["umount", "--lazy", other], check=True)


# list


def test_pages_are_in_byte_order_of_paths_and_complete(nook):
    made = ["a", "a-b", "a.c/x", "a/b", "a/b-/y", "a/b/c", "a0", "b/z", "é", "z"]
    for path in made:
        if path not in ("a", "a/b"):
            put(nook, path, b"")
    everything = names(nook, "recursive=true")
    assert everything == sorted(everything, key=str.encode)
    assert set(made) <= set(everything)
    for limit in (1, 2, 3, 7):
        pages, cursor = [], ""
        while True:
            page = nook.get(f"/v1/files/list?recursive=1&limit={limit}{cursor}").json()
            pages += [e["path"] for e in page["entries"]]
            assert len(page["entries"]) <= limit
            if page["next"] is None:
                break
            cursor = "&cursor=" + page["next"]
        assert pages == everything
    assert names(nook) == [p for p in everything if "/" not in p]
    assert names(nook, "depth=2") == [p for p in everything if p.count("/") < 2]
    absolute = names(nook, f"recursive=1&path={nook.workspace}")
    assert absolute == [f"{nook.workspace}/{p}" for p in everything]


def test_a_page_goes_on_behind_what_has_vanished(nook):
    for name in "abcdef":
        put(nook, f"{name}/x", b"")
    page = nook.get("/v1/files/list?recursive=1&limit=4").json()
    assert [e["path"] for e in page["entries"]] == ["a", "a/x", "b", "b/x"]
    delete(nook, "b", "&recursive=1")
    put(nook, "a/late", b"")
    assert names(nook, f"recursive=1&limit=3&cursor={page['next']}") == ["c", "c/x", "d"]


@pytest.mark.parametrize("query", ["limit=0", "limit=10001", "limit=x", "depth=0", "cursor=!!",
                                   "cursor=", "recursive=yes"])
def test_a_list_that_makes_no_sense_is_refused(nook, query):
    refused(nook.get("/v1/files/list?" + query), 400, "bad_request")


def test_links_are_listed_and_not_followed(nook):
    put(nook, "d/f", b"")
    os.symlink("d", nook.workspace / "l")
    os.symlink(".", nook.workspace / "d/self")
    assert names(nook, "recursive=1") == ["d", "d/f", "d/self", "l"]
    assert names(nook, "path=l") == ["l/f", "l/self"]
    refused(nook.get("/v1/files/list?path=d/f"), 400, "bad_path")


def test_a_huge_folder_is_listed_with_little_memory(nook):
    count = harness.scaled(100_000, 2000)
    folder = nook.workspace / "many"
    folder.mkdir()
    os.chown(folder, nook.user, nook.user)
    for i in range(count):
        (folder / f"file-{i:06d}-with-a-longer-name").touch()
    before = nook.rss()
    seen, cursor = [], ""
    while True:
        page = nook.get(f"/v1/files/list?path=many&limit=10000{cursor}", wait=60).json()
        seen += [e["name"] for e in page["entries"]]
        if page["next"] is None:
            break
        cursor = "&cursor=" + page["next"]
    assert seen == sorted(os.listdir(folder))
    if not harness.is_sanitized():
        assert nook.rss() - before < 24 << 20
    assert delete(nook, "many", "&recursive=1").status == 204


def test_what_stands_all_the_while_is_listed_once_however_its_folder_changes(nook):
    """Names before, between and behind the cursor come and go while the pages are read."""
    kept = [f"kept-{i:04d}" for i in range(harness.scaled(3000, 300))]
    folder = nook.workspace / "d"
    folder.mkdir()
    for name in kept:
        (folder / name).touch()
    os.chown(folder, nook.user, nook.user)
    with nook.exec_stream(["python3", "-c", "import os, itertools\nprint('up', flush=True)\n"
                           "for i in itertools.count():\n"
                           " n = 'd/kept-%04d.%d' % (i * 7 % 3000, i % 5)\n"
                           " open(n, 'w').close(); os.rename(n, 'd/moved'); os.unlink('d/moved')"],
                          timeout=100) as stream:
        stream.next_event("started")
        stream.next_event("stdout")
        for limit in (100, 37):
            seen, cursor = [], ""
            while cursor is not None:
                page = nook.get(f"/v1/files/list?path=d&limit={limit}{cursor}").json()
                seen += [e["name"] for e in page["entries"]]
                cursor = "&cursor=" + page["next"] if page["next"] else None
            assert seen == sorted(set(seen))
            assert [n for n in seen if n in set(kept)] == kept
