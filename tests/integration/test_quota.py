"""What may be kept: bytes and files, before a body, during it, and after commands grew beyond it."""

import io
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from nook import scaled
from wire import wait_until

pytestmark = pytest.mark.root

MIB = 1 << 20


@pytest.fixture
def box(start_nook):
    return start_nook("--quota-bytes", 4 * MIB, "--quota-files", 100, identities=True, tcp=True)


def put(who, path, size, **kw):
    return who.request("PUT", f"/v1/files?path={path}", body=b"x" * size, **kw)


def is_over(answer):
    return (answer.status, answer.code) == (409, "quota_exceeded")


def names(who, path="files"):
    entries = who.get(f"/v1/files/list?path={path}&recursive=true").json()["entries"]
    return [e["path"] for e in entries]


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, size in files:
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(b"y" * size))
    return out.getvalue()


def test_what_is_known_to_be_too_much_is_refused_before_the_body(box):
    a = box.tenant("alice")
    assert put(a, "files/a", 3 * MIB).status == 201
    with a.connect() as conn:
        conn.send_request("PUT", "/v1/files?path=files/b",
                          headers=[("Content-Length", str(2 * MIB)), ("Expect", "100-continue")])
        assert is_over(conn.read_response("PUT"))
    assert names(a) == ["files/a"]
    assert put(a, "files/b", MIB).status == 201
    assert is_over(put(a, "files/c", 1))
    assert put(a, "files/empty", 0).status == 201
    # Others are not concerned.
    assert put(box.tenant("bob"), "files/b", 4 * MIB).status == 201
    assert put(box, "b", 4 * MIB).status == 201
    assert is_over(put(box, "c", 1))


def test_a_body_of_unknown_length_is_cut_off_and_leaves_nothing(box):
    a = box.tenant("alice")
    answer = a.request("PUT", "/v1/files?path=files/a", chunked=True,
                       body=[b"x" * 65536] * 80)
    assert is_over(answer), answer
    assert names(a) == []
    assert put(a, "files/a", 4 * MIB).status == 201


def test_a_file_that_is_replaced_makes_room_for_the_new_one(box):
    a = box.tenant("alice")
    assert put(a, "files/a", 3 * MIB).status == 201
    for _ in range(3):
        assert put(a, "files/a", 3 * MIB + 5).status == 200
    assert put(a, "files/a", 4 * MIB).status == 200
    assert is_over(put(a, "files/a", 4 * MIB + 1))
    assert put(a, "files/a", 10).status == 200
    assert put(a, "files/b", 4 * MIB - 10).status == 201


def test_many_uploads_at_once_are_not_let_in_together(box):
    a = box.tenant("alice")
    with ThreadPoolExecutor(max_workers=12) as pool:
        known = list(pool.map(lambda i: put(a, f"files/f{i}", MIB).status, range(12)))
    assert sorted(known) == [201] * 4 + [409] * 8
    assert len(names(a)) == 4
    assert a.request("DELETE", "/v1/workspace").status == 204

    def chunked(i):
        return a.request("PUT", f"/v1/files?path=files/f{i}", chunked=True,
                         body=[b"x" * 65536] * 16).status

    with ThreadPoolExecutor(max_workers=12) as pool:
        unknown = list(pool.map(chunked, range(12)))
    assert set(unknown) <= {201, 409} and unknown.count(201) == len(names(a)) <= 4


def test_files_are_counted_too(box):
    a = box.tenant("alice")
    assert put(a, "files/deep/er/one", 1).status == 201  # three
    a.exec("for i in $(seq 95); do : > files/f$i; done")
    assert put(a, "files/last", 1).status == 201
    assert put(a, "files/last", 2).status == 200
    wait_until(lambda: put(a, "files/more", 0).status == 201, 10, "a hundred fit")
    for answer in (put(a, "files/beyond", 0), a.post("/v1/files/mkdir", {"path": "files/d"}),
                   a.post("/v1/files/copy", {"path": "files/last", "to": "files/copied"})):
        assert is_over(answer), answer
    assert a.request("DELETE", "/v1/files?path=files/last").status == 204
    assert a.post("/v1/files/mkdir", {"path": "files/d"}).status == 200
    assert is_over(put(a, "files/beyond", 0))


def test_after_a_command_grew_beyond_it_nothing_more_is_let_in(box):
    a = box.tenant("alice")
    a.exec("for i in 1 2 3; do head -c 2000000 /dev/zero > files/$i; done")
    tar = tar_of([("t", 1)])
    tries = [lambda: put(a, "files/x", 1), lambda: put(a, "files/x", 0),
             lambda: a.post("/v1/exec", {"command": "true"}),
             lambda: a.post("/v1/exec/stream", {"command": "true"}),
             lambda: a.post("/v1/processes", {"command": "true"}),
             lambda: a.post("/v1/code", {"code": "1", "language": "sh"}),
             lambda: a.post("/v1/files/mkdir", {"path": "files/d"}),
             lambda: a.post("/v1/files/copy", {"path": "files/1", "to": "files/c"}),
             lambda: a.request("PUT", "/v1/archive?path=files", body=tar)]
    for attempt in tries:
        answer = attempt()
        assert is_over(answer), answer
    # What is there can be read, moved and removed.
    assert len(a.get("/v1/files?path=files/1").body) == 2_000_000
    assert a.post("/v1/files/move", {"path": "files/1", "to": "out/1"}).status == 200
    assert a.request("DELETE", "/v1/files?path=out/1").status == 204
    assert a.exec("rm files/2; echo ok")["stdout"] == "ok\n"
    assert put(a, "files/x", 1).status == 201


def test_a_command_that_still_runs_is_looked_at_too(box):
    a = box.tenant("alice")
    p = a.post("/v1/processes", {"command": "for i in 1 2 3; do head -c 2000000 /dev/zero > $i; "
                                            "done; echo done; sleep 1000"}).json()
    wait_until(lambda: a.get(f"/v1/processes/{p['id']}/logs").json()["stdout"] == "done\n")
    wait_until(lambda: is_over(put(a, "files/x", 1)), 20, "it is found out")
    assert a.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"}).status == 200
    assert a.request("DELETE", "/v1/workspace").status == 204
    assert put(a, "files/x", 1).status == 201


def test_one_file_cannot_grow_far_beyond_it(box):
    a = box.tenant("alice")
    a.exec("cat /dev/zero > files/big", timeout=30)
    entry = a.get("/v1/files/stat?path=files/big").json()
    assert entry["size"] == 4 * MIB + 1
    assert is_over(put(a, "files/x", 1))


def test_a_command_that_fills_the_disk_is_ended(box):
    a = box.tenant("alice")
    done = a.exec("i=0; while :; do i=$((i+1)); head -c 500000 /dev/zero > files/$i || exit 7; "
                  "sleep 0.02; done", timeout=60)
    assert (done["signal"], done["timed_out"], done["reason"]) == ("KILL", False, "signaled"), done
    assert is_over(a.post("/v1/exec", {"command": "true"}))
    # The workspace of others is untouched, and this one is free again once it is emptied.
    assert box.tenant("bob").exec("echo ok")["stdout"] == "ok\n"
    assert a.request("DELETE", "/v1/workspace").status == 204
    assert a.exec("echo ok")["stdout"] == "ok\n"


def test_what_a_command_left_in_the_background_fills_no_disk_either(box):
    a = box.tenant("alice")
    done = a.exec("setsid sh -c 'for i in $(seq 300); do head -c 500000 /dev/zero > files/$i; "
                  "sleep 0.1; done; : > out/filled; sleep 1000' > /dev/null 2>&1 & echo on")
    assert (done["stdout"], done["exit_code"]) == ("on\n", 0)
    wait_until(lambda: not a.get(f"/v1/processes/{done['id']}").json()["tree"], 60, "it is ended")
    assert names(a, "out") == []
    assert is_over(a.post("/v1/exec", {"command": "true"}))
    assert a.request("DELETE", "/v1/workspace").status == 204
    assert a.exec("echo ok")["stdout"] == "ok\n"


def test_tricks_do_not_hide_what_is_kept(box):
    a = box.tenant("alice")
    # Without a way in.
    a.exec("mkdir files/closed; head -c 3000000 /dev/zero > files/closed/a; chmod 0 files/closed")
    assert is_over(put(a, "files/x", 2_000_000))
    a.exec("chmod 700 files/closed; rm -r files/closed")
    # By the names of files that are being uploaded.
    assert put(a, "files/x", 10).status == 201
    a.exec("head -c 3000000 /dev/zero > files/.nook-tmp-aaaaaaaaaaaaaaaaaaaaaaaa")
    assert is_over(put(a, "files/y", 2_000_000))
    a.exec("rm files/.nook-tmp-*")
    # By more names, some of them elsewhere: one file is one file.
    a.exec("head -c 3000000 /dev/zero > files/a; for i in 1 2 3; do ln files/a files/l$i; done")
    assert is_over(put(a, "files/y", 2_000_000))
    assert put(a, "files/y", 1_000_000).status == 201
    a.exec("rm files/*")
    # By holes, which are there for whoever reads.
    a.exec("truncate -s 3000000 files/sparse")
    assert is_over(put(a, "files/y", 2_000_000))


def test_an_upload_that_breaks_off_gives_its_room_back(box):
    a = box.tenant("alice")
    for _ in range(5):
        with a.connect() as conn:
            conn.send_request("PUT", "/v1/files?path=files/x",
                              headers=[("Content-Length", str(3 * MIB))])
            conn.send(b"x" * 100_000)
    wait_until(lambda: put(a, "files/whole", 4 * MIB).status in (200, 201), 10, "there is room")
    assert names(a) == ["files/whole"]


def test_an_archive_is_bounded(box):
    a = box.tenant("alice")
    answer = a.request("PUT", "/v1/archive?path=files",
                       body=tar_of([("a", MIB), ("b", MIB), ("c", 3 * MIB), ("d", 1)]))
    assert is_over(answer), answer
    assert names(a) == ["files/a", "files/b"]
    answer = a.request("PUT", "/v1/archive?path=files", body=tar_of([(f"f{i}", 0)
                                                                    for i in range(200)]))
    assert is_over(answer), answer
    assert len(names(a)) <= 100
    assert a.request("DELETE", "/v1/workspace").status == 204
    assert a.request("PUT", "/v1/archive?path=files", body=tar_of([("a", 4 * MIB)])).status == 200


def test_copies_are_bounded(box):
    a = box.tenant("alice")
    assert put(a, "files/d/a", 2 * MIB).status == 201
    assert put(a, "files/d/b", 1).status == 201
    answer = a.post("/v1/files/copy", {"path": "files/d", "to": "files/e"})
    assert is_over(answer), answer
    assert names(a) == ["files/d", "files/d/a", "files/d/b"]
    assert a.post("/v1/files/copy", {"path": "files/d/b", "to": "files/e"}).status == 200


def test_parts_of_a_form_are_bounded(box):
    a = box.tenant("alice")

    def form(*files):
        parts = "".join(f'--b\r\nContent-Disposition: form-data; name="f"; filename="{n}"\r\n\r\n'
                        f'{"z" * size}\r\n' for n, size in files) + "--b--\r\n"
        return {"body": parts.encode(),
                "headers": [("Content-Type", "multipart/form-data; boundary=b")]}

    assert a.request("POST", "/v1/files?dir=files", **form(("a", MIB), ("b", MIB))).status == 200
    answer = a.request("POST", "/v1/files?dir=files", **form(("c", MIB), ("d", 2 * MIB), ("e", 1)))
    assert is_over(answer), answer
    assert [f["path"] for f in answer.json()["files"]] == ["files/c"]
    assert names(a) == ["files/a", "files/b", "files/c"]
    request = '--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n' \
              '{"command": "ls files"}\r\n'
    more = form(("d", 2 * MIB))
    more["body"] = request.encode() + more["body"]
    assert is_over(a.request("POST", "/v1/exec", **more))


def test_the_count_is_right_after_a_crash(box):
    a = box.tenant("alice")
    assert put(a, "files/a", 3 * MIB).status == 201
    with a.connect() as conn:
        conn.send_request("PUT", "/v1/files?path=files/b", headers=[("Content-Length", str(MIB))])
        conn.send(b"x" * 500_000)
        box.kill()
    box.start()
    a = box.tenant("alice")
    assert is_over(put(a, "files/c", 2 * MIB))
    a.exec("ls -A files; rm -f files/.nook*")
    assert put(a, "files/c", MIB).status == 201
    assert is_over(put(a, "files/d", 1))


def test_a_large_tree_does_not_make_every_request_wait_for_a_count(start_nook):
    """However often it is asked, counts take a small part of the time."""
    nook = start_nook("--quota-bytes", 1 << 40, "--quota-files", 1_000_000, identities=True)
    a = nook.tenant("alice")
    count = scaled(30_000, 5000)
    a.exec(f"mkdir files/t && cd files/t && seq {count} | xargs touch")
    for _ in range(scaled(100, 10)):
        a.exec("true")
        assert put(a, "files/x", 10).status in (200, 201)
