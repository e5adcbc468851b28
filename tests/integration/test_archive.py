"""GET and PUT /v1/archive: whole trees both ways, names, errors, and what is left after a failure."""

import io
import json
import os
import shutil
import socket
import subprocess
import sysconfig
import tarfile

import pytest

import nook as harness
import trees
from nook import scaled
from trees import get, put
from wire import PATIENCE, Closed, wait_until

FORMATS = {"tar": "application/x-tar", "tar.gz": "application/gzip", "tar.zst": "application/zstd"}
PACKERS = {"plain": [], "pax": ["--format=pax"], "gzip": ["-z"], "xz": ["-J"], "zstd": ["--zstd"]}


def stdlib(top):
    shutil.copytree(sysconfig.get_paths()["stdlib"], top, symlinks=True,
                    ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test"))


def checkout(top):
    if not (harness.ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    subprocess.run(["git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks",
                    harness.ROOT, top], check=True, capture_output=True)


def odd(top):
    top.mkdir()
    trees.odd_tree(top, scaled(50000, 500))


SOURCES = {"stdlib": stdlib, "checkout": checkout, "odd": odd}


def make(nook, source):
    """A tree in the workspace, owned by the user, and what it is."""
    top = nook.workspace / "src"
    SOURCES[source](top)
    trees.own(top, nook.user)
    return top, trees.describe(top)


def names(response):
    with tarfile.open(fileobj=io.BytesIO(response.body)) as t:
        return t.getnames()


def no_worker(nook):
    wait_until(lambda: not nook.children(), 20, "the worker is gone")


def leftovers(folder):
    return [n for _, _, files in os.walk(folder) for n in files if n.startswith(".nook-")]


def tar_of(*entries):
    """An archive of (name, content) files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_packed_unpacks_with_gnu_tar_as_what_gnu_tar_packs(nook, tmp_path, source, form):
    if form == "tar.zst" and not shutil.which("zstd"):
        pytest.skip("no zstd here")
    top, tree = make(nook, source)
    response = get(nook, "src", base="src", format=form)
    assert response.status == 200, response
    assert response.header("Content-Type") == FORMATS[form]
    unpack = {"tar": [], "tar.gz": ["-z"], "tar.zst": ["--zstd"]}[form]
    ours = trees.untar(response.body, tmp_path / "ours", *unpack)
    theirs = trees.untar(trees.tar("-C", top, "-c", "."), tmp_path / "theirs")
    trees.same(trees.describe(ours), tree)
    trees.same(trees.describe(ours), trees.describe(theirs))


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_gnu_tar_packs_unpacks_as_with_gnu_tar(nook, tmp_path, source, packer):
    if packer in ("zstd", "xz") and not shutil.which(packer):
        pytest.skip(f"no {packer} here")
    SOURCES[source](tmp_path / "src")
    tree = trees.describe(tmp_path / "src")
    data = trees.tar("-C", tmp_path / "src", *PACKERS[packer], "-c", ".")
    response = put(nook, "new/place", data)
    assert response.status == 200, response
    result = response.json()
    count = trees.members(tree)
    assert result["refused"] == [] and result["refused_count"] == 0
    # The folder itself is no entry that was made.
    assert (result["files"], result["links"], result["dirs"] + 1) == \
        (count["files"], count["links"], count["dirs"])
    got = trees.describe(nook.workspace / "new/place")
    got.pop(b"."), tree.pop(b".")
    trees.same(got, tree)
    assert leftovers(nook.workspace) == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_tree_goes_out_and_in_again(nook, form):
    _, tree = make(nook, "odd")
    data = get(nook, "src", base="src", format=form).body
    assert put(nook, "back", data).status == 200
    back = trees.describe(nook.workspace / "back")
    back.pop(b"."), tree.pop(b".")
    trees.same(back, tree)
    # And once more over itself: everything is replaced, and no name of ours is left.
    assert put(nook, "back", data).json()["refused_count"] == 0
    back = trees.describe(nook.workspace / "back")
    back.pop(b".")
    trees.same(back, tree)
    assert leftovers(nook.workspace) == []


def test_names_are_relative_to_the_base(nook):
    for name in ("out/report.csv", "out/sub/x"):
        path = nook.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (nook.tmp / "t").write_text("t")
    trees.own(nook.workspace, nook.user)
    work, tmp = str(nook.workspace), str(nook.tmp)
    assert names(get(nook, "out/report.csv")) == ["out/report.csv"]
    assert names(get(nook, work + "/out/report.csv")) == ["out/report.csv"]
    assert names(get(nook, ["out/report.csv", tmp + "/t"])) == ["out/report.csv", tmp[1:] + "/t"]
    assert sorted(names(get(nook, "out"))) == ["out", "out/report.csv", "out/sub", "out/sub/x"]
    assert names(get(nook, "out/sub/x", base="out")) == ["sub/x"]
    assert names(get(nook, "out/sub/x", base=work + "/out/sub/")) == ["x"]
    assert names(get(nook, work + "/out/sub/x", base="/")) == [work[1:] + "/out/sub/x"]
    assert sorted(names(get(nook, "out/sub", base="out/sub"))) == [".", "./x"]
    raw = get(nook, "out/sub", base="out/sub").body
    assert raw[:3] == b"./\0"
    assert names(get(nook, "."))[0] == "."
    assert names(get(nook, "out/../out/sub/x")) == ["out/sub/x"]


@pytest.mark.parametrize(("target", "status", "code"), [
    ("", 400, "bad_request"),
    ("path=nope", 404, "not_found"),
    ("path=f&path=nope", 404, "not_found"),
    ("path=f/x", 400, "bad_path"),
    ("path=../x", 400, "bad_path"),
    ("path=a%00b", 400, "bad_request"),
    ("path=/etc/passwd", 403, "forbidden"),
    ("path=/", 403, "forbidden"),
    ("path=f&base=d", 400, "bad_path"),
    ("path=f&base=nope", 404, "not_found"),
    ("path=f&base=f", 400, "bad_path"),
    ("path=f&format=zip", 400, "bad_request"),
    ("path=f&links=follow", 400, "bad_request"),
    ("path=f&base=d&base=d", 400, "bad_request"),
    ("path=f&colour=blue", 400, "bad_request"),
    ("path=fifo", 400, "bad_path"),
    ("&".join(["path=f"] * 65), 400, "bad_request"),
])
def test_what_cannot_be_packed_is_an_error_before_anything_is_sent(nook, target, status, code):
    (nook.workspace / "f").write_text("x")
    (nook.workspace / "d").mkdir()
    os.mkfifo(nook.workspace / "fifo")
    response = nook.get("/v1/archive?" + target)
    assert (response.status, response.code) == (status, code), response


@pytest.mark.parametrize(("target", "status", "code"), [
    ("", 400, "bad_request"),
    ("path=/etc", 403, "forbidden"),
    ("path=../x", 400, "bad_path"),
    ("path=f", 400, "bad_path"),
    ("path=f/x", 400, "bad_path"),
    ("path=d&strict=maybe", 400, "bad_request"),
    ("path=d&path=d", 400, "bad_request"),
])
def test_a_place_that_cannot_be_unpacked_to_is_an_error(nook, target, status, code):
    (nook.workspace / "f").write_text("x")
    response = nook.request("PUT", "/v1/archive?" + target, body=tar_of(("a", b"a")))
    assert (response.status, response.code) == (status, code), response
    assert list(response.json()) == ["error"]
    assert sorted(os.listdir(nook.workspace)) == ["f"]


@pytest.mark.root
def test_an_old_client_sees_by_a_reset_that_an_archive_is_broken(tcp_nook):
    d = tcp_nook.workspace / "d"
    d.mkdir()
    (d / "a").write_text("a")
    trees.own(tcp_nook.workspace, tcp_nook.user)
    assert b"d/a" in old_get(tcp_nook, "d")
    (d / "secret").touch(mode=0o600)
    with pytest.raises(ConnectionResetError):
        old_get(tcp_nook, "d")


def old_get(nook, path):
    """All that comes in HTTP/1.0, where a body ends with the connection."""
    head = f"Host: localhost\r\nAuthorization: Bearer {nook.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", nook.port), timeout=30 * PATIENCE) as sock:
        sock.sendall(f"GET /v1/archive?path={path} HTTP/1.0\r\n{head}".encode())
        with sock.makefile("rb") as answer:
            return answer.read()


@pytest.mark.root
def test_what_cannot_be_read_is_no_half_archive(nook):
    (nook.workspace / "d").mkdir()
    trees.own(nook.workspace, nook.user)
    secret = nook.workspace / "d" / "secret"
    secret.write_bytes(b"root's own")
    secret.chmod(0o600)
    with pytest.raises(Closed):
        nook.get("/v1/archive?path=d", headers={"X-Request-Id": "half"})
    told = [r for r in map(json.loads, nook.stderr().splitlines()) if r["event"] == "broken_off"]
    assert [(r["request_id"], r["code"], r["level"]) for r in told] == \
        [("half", "forbidden", "warn")]
    assert "d/secret" in told[0]["msg"]
    # Who looks at the framing is told as well; the stream ends early for everybody.
    with nook.connect() as conn:
        conn.send_request("GET", "/v1/archive?path=d")
        assert b'\r\n1;broken="d/secret: Permission denied"' in conn.read_until(b'denied"\r\n')
        assert conn.at_end()
    assert get(nook, "d/secret").code == "forbidden"
    assert nook.get("/healthz").status == 200


def test_links_are_kept_or_skipped(nook):
    d = nook.workspace / "d"
    d.mkdir()
    (d / "a").write_text("content")
    os.link(d / "a", d / "b")
    os.symlink("a", d / "s")
    trees.own(d, nook.user)
    with tarfile.open(fileobj=io.BytesIO(get(nook, "d").body)) as t:
        kinds = {m.name: (m.type, m.linkname) for m in t}
    assert sorted(k[0] for k in kinds.values()) == sorted([b"0", b"1", b"2", b"5"])
    assert kinds["d/s"] == (b"2", "a")
    with tarfile.open(fileobj=io.BytesIO(get(nook, "d", links="skip").body)) as t:
        assert {m.name: m.type for m in t} == {"d": b"5", "d/a": b"0", "d/b": b"0"}
        assert t.extractfile("d/b").read() == b"content"
    # A link that was asked for is itself; with a slash it is what it leads to.
    os.symlink("d", nook.workspace / "l")
    assert names(get(nook, "l")) == ["l"]
    assert sorted(names(get(nook, "l/"))) == ["l", "l/a", "l/b", "l/s"]
    assert names(get(nook, "l/a")) == ["l/a"]


def deep_tree(top, levels, name="d"):
    """Folders in each other, the innermost with a file: deeper than any path can say."""
    os.mkdir(top)
    here = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize(("levels", "name"), [(5000, "d"), (200, "n" * 255)])
def test_a_very_deep_tree_is_packed_whole(nook, levels, name):
    """Also deeper than descriptors go, and with names longer than any path may be."""
    deep_tree(nook.workspace / "deep", levels, name)
    (nook.workspace / "deep" / "beside").write_bytes(b"x")
    try:
        response = get(nook, "deep", format="tar.zst")
        assert response.status == 200
        listed = subprocess.run(["tar", "--zstd", "-t"], input=response.body, capture_output=True,
                                check=True).stdout.decode().split()
        assert len(listed) == levels + 3
        assert sorted(listed)[-1] == "deep" + f"/{name}" * levels + "/end"
        assert "deep/beside" in listed
    finally:
        subprocess.run(["rm", "-rf", nook.workspace / "deep"], check=True)


def test_special_files_are_left_out(nook):
    d = nook.workspace / "d"
    d.mkdir()
    os.mkfifo(d / "fifo")
    (d / "f").write_text("x")
    trees.own(d, nook.user)
    nook.exec(["python3", "-c", "import socket; socket.socket(socket.AF_UNIX).bind('d/sock')"])
    assert sorted(names(get(nook, "d"))) == ["d", "d/f"]


def test_a_file_with_holes_stays_one(nook):
    with open(nook.workspace / "f", "wb") as f:
        f.truncate(1 << 32)
        f.seek(1 << 31)
        f.write(b"middle")
    trees.own(nook.workspace, nook.user)
    response = get(nook, "f")
    assert len(response.body) < 1 << 20
    assert put(nook, "back", response.body).json()["files"] == 1
    back = nook.workspace / "back/f"
    assert back.stat().st_size == 1 << 32 and back.stat().st_blocks < 10000
    with open(back, "rb") as f:
        f.seek(1 << 31)
        assert f.read(8) == b"middle\0\0"


def test_unpacking_replaces_files_and_links_and_keeps_the_folder_as_it_was(nook):
    d = nook.workspace / "d"
    d.mkdir()
    d.chmod(0o700)
    (nook.workspace / "elsewhere").write_text("untouched")
    (d / "file").write_text("old")
    (d / "kept").write_text("kept")
    os.symlink("../elsewhere", d / "link")
    trees.own(nook.workspace, nook.user)
    data = tar_of(("./file", b"new"), ("link", b"new"), ("sub/x", b"x"))
    result = put(nook, "d", data).json()
    assert result == {"files": 3, "dirs": 0, "links": 0, "bytes": 7, "refused_count": 0,
                      "refused": []}
    assert (d / "file").read_text() == (d / "link").read_text() == "new"
    assert not (d / "link").is_symlink()
    assert (nook.workspace / "elsewhere").read_text() == "untouched"
    assert (d / "kept").read_text() == "kept"
    assert d.stat().st_mode & 0o7777 == 0o700
    assert (d / "sub").stat().st_uid == nook.user


def worker_of(nook):
    """The pid of the one worker, once it has given up its rights."""
    def find():
        for pid in nook.children():
            if b"__worker" in open(f"/proc/{pid}/cmdline", "rb").read() and \
                    harness.status_field(pid, "Seccomp") == "2":
                return pid
        return None
    return wait_until(find, 20, "the worker runs")


def half_upload(nook, data, path="d", sent=None):
    """A connection that has sent part of an archive."""
    conn = nook.connect(wait=30)
    half = data[:sent or len(data) // 2]
    conn.send(f"PUT /v1/archive?path={path} HTTP/1.1\r\nHost: localhost\r\n"
              f"Content-Length: {len(data)}\r\n\r\n".encode() + half)
    return conn


BIG = 3 << 20


def big_archive():
    return tar_of(("first", b"1"), ("big", os.urandom(BIG)), ("last", b"2"))


def test_a_client_that_leaves_leaves_no_half_file(nook):
    d = nook.workspace / "d"
    d.mkdir()
    (d / "big").write_text("old")
    trees.own(d, nook.user)
    conn = half_upload(nook, big_archive())
    wait_until(lambda: (d / "first").exists(), 20, "the first file is there")
    conn.close()
    no_worker(nook)
    assert (d / "big").read_text() == "old"
    assert sorted(os.listdir(d)) == ["big", "first"]


def test_a_worker_that_dies_leaves_no_half_file(nook):
    d = nook.workspace / "d"
    data = big_archive()
    with half_upload(nook, data) as conn:
        pid = worker_of(nook)
        wait_until(lambda: (d / "first").exists(), 20, "the first file is there")
        os.kill(pid, 9)
        response = conn.read_response("PUT")
    assert (response.status, response.code) == (500, "internal"), response
    no_worker(nook)
    assert "big" not in os.listdir(d) and "last" not in os.listdir(d)
    assert nook.get("/healthz").status == 200
    assert put(nook, "d", data).json()["files"] == 3
    assert (d / "big").stat().st_size == BIG


def test_a_packing_worker_that_dies_breaks_the_answer_off(nook):
    with open(nook.workspace / "f", "wb") as f:
        f.write(os.urandom(BIG))
    with nook.stream("GET", "/v1/archive?path=f") as stream:
        assert stream.status == 200
        os.kill(worker_of(nook), 9)
        with pytest.raises(Closed):
            stream.read()
    no_worker(nook)


def test_a_reader_that_leaves_ends_the_worker(nook):
    with open(nook.workspace / "f", "wb") as f:
        f.truncate(BIG)
        f.write(os.urandom(BIG))
    with nook.stream("GET", "/v1/archive?path=f") as stream:
        assert stream.status == 200
    no_worker(nook)


def test_a_worker_has_few_rights(nook):
    with half_upload(nook, big_archive()):
        pid = worker_of(nook)
        wait_until((nook.workspace / "d" / "first").exists, 20, "it has given them up")
        field = lambda name: harness.status_field(pid, name)
        assert field("NoNewPrivs") == "1"
        assert int(field("CapEff"), 16) == int(field("CapPrm"), 16) == 0
        assert field("Uid").split() == [str(nook.user)] * 4
        assert int(field("Threads")) == 1
        limits = open(f"/proc/{pid}/limits").read()
        if not harness.is_sanitized():
            assert f"{256 << 20}" in [line for line in limits.splitlines()
                                      if line.startswith("Max address space")][0]
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert sorted(int(n) for n in os.listdir(f"/proc/{pid}/fd"))[:3] == [0, 1, 2]
    no_worker(nook)


@pytest.fixture
def small_disk(nook):
    """mount(options) gives a folder on a file system of its own."""
    mounted = []

    def mount(options):
        folder = nook.workspace / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "t", folder], check=False)
        if done.returncode != 0:
            pytest.skip("cannot mount a tmpfs")
        mounted.append(folder)
        folder.chmod(0o777)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.root
def test_a_full_disk_is_told_and_leaves_no_half_file(nook, small_disk):
    disk = small_disk("size=2m")
    response = put(nook, disk.name, big_archive())
    assert (response.status, response.code) == (507, "no_space"), response
    assert response.json()["done"]["files"] == 1
    assert os.listdir(disk) == ["first"]
    assert put(nook, disk.name, tar_of(("small", b"x" * 100000))).status == 200


@pytest.mark.root
def test_no_inodes_left_is_told(nook, small_disk):
    disk = small_disk("size=10m,nr_inodes=10")
    response = put(nook, disk.name, tar_of(*[(f"f{i}", b"x") for i in range(50)]))
    assert (response.status, response.code) == (507, "no_space"), response
    made = os.listdir(disk)
    assert len(made) == response.json()["done"]["files"] < 10
    assert leftovers(disk) == []


def test_a_bomb_costs_no_memory(nook):
    import tar_corpus
    data = tar_corpus.bomb()
    assert len(data) < 2 << 20
    put(nook, "warm", tar_of(("a", b"a")))
    before = nook.rss()
    for _ in range(3):
        response = put(nook, "d", data)
        assert (response.status, response.code) == (413, "too_large"), response
    assert os.listdir(nook.workspace / "d") == []
    if not harness.is_sanitized():
        assert nook.rss() - before < 8 << 20


def test_memory_is_flat_while_much_goes_both_ways(nook):
    size = scaled(400 << 20, 8 << 20)
    with open(nook.workspace / "f", "wb") as f:
        block = os.urandom(1 << 20)
        for _ in range(size >> 20):
            f.write(block)
    get(nook, "nope")
    before = nook.rss()
    total = peak = 0
    with nook.stream("GET", "/v1/archive?path=f") as down, nook.connect() as up:
        up.send("PUT /v1/archive?path=back HTTP/1.1\r\nHost: localhost\r\n"
                "Transfer-Encoding: chunked\r\n\r\n")
        for piece in down.pieces():
            up.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
            total += len(piece)
            if total >> 24 != (total - len(piece)) >> 24:
                peak = max(peak, nook.rss())
        up.send("0\r\n\r\n")
        assert up.read_response("PUT").json()["bytes"] == size >> 20 << 20
    if not harness.is_sanitized():
        assert peak - before < 8 << 20
    trees.same(trees.describe(nook.workspace / "back", times=False),
               {**trees.describe(nook.workspace / "back", times=False),
                b"f": trees.describe(nook.workspace, times=False)[b"f"]})


def test_only_so_many_archives_at_a_time(nook):
    data = big_archive()
    held = []
    try:
        for i in range(16):
            held.append(half_upload(nook, data, path=f"d{i}", sent=100))
        wait_until(lambda: len(nook.children()) == 16, 20, "all workers run")
        response = get(nook, ".")
        assert (response.status, response.code) == (409, "busy")
        assert response.header("Retry-After")
    finally:
        for conn in held:
            conn.close()
    no_worker(nook)
    assert get(nook, ".").status == 200


def test_the_worker_verb_refuses_to_run_by_itself():
    for args in (["__worker"], ["__worker", "archive"], ["__worker", "archive", "x"],
                 ["__worker", "other"]):
        done = subprocess.run([harness.BINARY, *args], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=20)
        assert done.returncode == 2 and b"daemon" in done.stderr and not done.stdout


def test_a_body_of_unknown_length_and_one_byte_at_a_time(nook):
    data = tar_of(("a", b"content"))
    with nook.connect() as conn:
        conn.send("PUT /v1/archive?path=d HTTP/1.1\r\nHost: localhost\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n")
        for i in range(0, len(data), 97):
            piece = data[i:i + 97]
            conn.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
        conn.send("0\r\n\r\n")
        assert conn.read_response("PUT").json()["files"] == 1
        # The connection is good for more.
        assert names(conn.request("GET", "/v1/archive?path=d/a")) == ["d/a"]
