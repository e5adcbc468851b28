"""What went wrong in other daemons of this kind: a regression test for each lesson about archives,
paths and mounts that test_hygiene.py and the corpus of archives do not hold already.
"""

import io
import os
import tarfile

import pytest

import trees
from nook import refuse
from test_processes import show, start
from wire import wait_until

needs_root = pytest.mark.root


def tar_of(*members):
    """Each (name, type, data or target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, value in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            data = value if kind == tarfile.REGTYPE else b""
            info.size = len(data)
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname = value
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def outside_of(nook):
    """A folder that the user may write, and that no request may reach."""
    folder = nook.root / "outside"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def names_in(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: m for m in tar}


def test_CVE_2018_1002100_an_archive_made_inside_has_no_name_that_leaves(nook):
    """kubectl cp; likewise CVE-2019-1002101, -11246, -11249 and -11251."""
    nook.exec("mkdir -p d/sub && echo x > d/sub/f && ln -s ../../.. d/up && ln -s /etc d/abs"
              " && ln -s sub d/rel && ln -s up/etc d/chain && ln -s /etc/passwd d/file")
    members = names_in(trees.get(nook, "d").body)
    for name, member in members.items():
        assert not name.startswith("/") and ".." not in name.split("/"), name
        parents = name.split("/")[:-1]
        assert not any(members["/".join(parents[:i + 1])].issym() for i in range(len(parents))
                       if "/".join(parents[:i + 1]) in members), name
    links = {n: m.linkname for n, m in members.items() if m.issym()}
    assert sorted(links.values()) == ["../../..", "/etc", "/etc/passwd", "sub", "up/etc"]
    assert not any(m.issym() for m in names_in(trees.get(nook, "d", links="skip").body).values())


@pytest.mark.parametrize("member", ["a/f", "a/b/f"])
def test_CVE_2007_4559_and_2021_32803_a_folder_that_became_a_link_is_looked_at_anew(nook, member):
    """node-tar's cache of checked folders; tarfile's filter, CVE-2025-4517 likewise."""
    outside = outside_of(nook)
    data = tar_of(("a", tarfile.DIRTYPE, b""), ("a/first", tarfile.REGTYPE, b"1"),
                  ("a", tarfile.SYMTYPE, str(outside)), ("A", tarfile.SYMTYPE, str(outside)),
                  (member, tarfile.REGTYPE, b"2"), ("A/f", tarfile.REGTYPE, b"3"),
                  ("/" + member, tarfile.REGTYPE, b"4"), ("../" + member, tarfile.REGTYPE, b"5"))
    answer = trees.put(nook, "dest", data)
    assert answer.status == 200 and answer.json()["refused_count"] > 0
    assert list(outside.iterdir()) == []


@needs_root
@pytest.mark.parametrize("how", ["mkdir", "upload", "archive", "move", "copy"])
def test_CVE_2026_87766_parents_are_made_through_no_link(nook, how):
    """bubblewrap followed a link of a parent while it made files."""
    outside = outside_of(nook)
    os.symlink(outside, nook.workspace / "link")
    (nook.workspace / "have").write_text("x")
    requests = {
        "mkdir": lambda: nook.post("/v1/files/mkdir", {"path": "link/a/b"}),
        "upload": lambda: nook.request("PUT", "/v1/files?path=link/a/b", body=b"x"),
        "archive": lambda: trees.put(nook, "link/a", tar_of(("f", tarfile.REGTYPE, b"x"))),
        "move": lambda: nook.post("/v1/files/move", {"path": "have", "to": "link/a"}),
        "copy": lambda: nook.post("/v1/files/copy", {"path": "have", "to": "link/a"}),
    }
    assert requests[how]().status in (400, 403, 404), how
    assert list(outside.iterdir()) == []
    assert (nook.workspace / "have").read_text() == "x"


def test_GHSA_fjv8_j4p5_cr9m_no_id_or_name_becomes_a_path(nook, tmp_path):
    name = "../../escaped"
    status, said = refuse("--socket", tmp_path / "run" / "sock", "--id", name)
    assert status == 2 and "--id" in said
    before = {str(p) for p in nook.root.rglob("*")}
    assert nook.post("/v1/processes", {"command": "true", "name": name}).status == 400
    p = start(nook, "echo done; sleep 1000", name="...escaped")
    keyed = nook.post("/v1/exec", {"command": "true"}, headers=[("Idempotency-Key", name)])
    assert keyed.status == 200
    for path in ("/v1/processes/..%2f..%2fescaped", "/v1/processes/%2e%2e",
                 "/v1/contexts/..%2f..%2fetc"):
        assert nook.get(path).status in (200, 400, 404)
    assert show(nook, p["id"])["name"] == "...escaped"
    assert nook.terminate() == 0
    made = {str(p) for p in nook.root.rglob("*")} - before
    assert not [p for p in made if "escaped" in p], made
    assert not (nook.root.parent / "escaped").exists()


def test_agno_file_calls_need_no_shell_and_take_names_literally(nook):
    """A client had to build `mkdir -p {path}`."""
    name = "$(touch owned);`touch owned`;a b'\"&|"
    assert nook.post("/v1/files/mkdir", {"path": f"{name}/sub"}).status == 200
    assert nook.post("/v1/files/move", {"path": f"{name}/sub", "to": f"{name}/-rf"}).status == 200
    entries = trees.query(name)
    listed = nook.get(f"/v1/files/list?{entries}").json()["entries"]
    assert [e["path"] for e in listed] == [f"{name}/-rf"]
    assert nook.get(f"/v1/files/stat?{entries}").json()["type"] == "dir"
    assert nook.request("DELETE", f"/v1/files?{entries}&recursive=true").status == 204
    assert list(nook.workspace.iterdir()) == []


@needs_root
def test_CVE_2021_30465_and_2024_12087_the_daemon_mounts_nothing_once_it_serves(nook):
    """runc's and rsync's races need a mount, or a root that follows; also CVE-2025-31133."""
    def mounts():  # others on this machine may mount meanwhile
        with open(f"/proc/{nook.pid}/mountinfo", encoding="utf-8") as table:
            return [line for line in table if str(nook.root) in line]

    (nook.workspace / "m").mkdir()
    trees.put(nook, "d", tar_of(("f", tarfile.REGTYPE, b"x")))
    nook.exec("true", report_files=True)
    nook.post("/v1/sandbox/pause")
    nook.post("/v1/sandbox/resume")
    start(nook, "true", tty=True)
    assert nook.exec("mount --bind /etc m")["exit_code"] != 0
    assert mounts() == []


@needs_root
@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                                  "/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper",
                                  "/proc/self/oom_score_adj"])
def test_CVE_2023_28642_the_kernels_own_files_are_not_the_commands_to_write(nook, path):
    value = "-1000" if path.endswith("adj") else "0"  # one may raise one's own, not lower it
    done = nook.exec(["sh", "-c", f"test -e {path} || exit 9; echo {value} > {path}"])
    assert done["exit_code"] != 0, path


@needs_root
def test_xattr_capabilities_and_set_id_bits_of_an_archive_are_not_restored(nook):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("tool")
        info.mode, info.size = 0o6755, 2
        capability = b"\1\0\0\2\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        info.pax_headers = {"SCHILY.xattr.security.capability": capability.decode("latin1"),
                            "SCHILY.xattr.user.note": "hello"}
        tar.addfile(info, io.BytesIO(b"x\n"))
    assert trees.put(nook, ".", out.getvalue()).status == 200
    tool = nook.workspace / "tool"
    assert tool.stat().st_mode & 0o7777 == 0o755
    assert os.listxattr(tool) == []
    assert wait_until(lambda: tool.stat().st_uid == nook.user, 5)
