"""Identities: a uid, a workspace and an account of its own for each, and nothing of another's seen."""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import nook as harness
from nook import BINARY, scaled
from wire import wait_until
from ws_client import Refused, session

pytestmark = pytest.mark.root

ROUTES = json.loads(subprocess.run([BINARY, "--print-routes"], capture_output=True,
                                   check=True).stdout)
ROUTES = [{**row, "method": row["method"].replace("ANY", "PUT")} for row in ROUTES]
LONGEST = "x" * 256
TOKEN, NAMESPACE, PRINCIPAL = "X-Runbox-Identity", "X-Runbox-Namespace", "X-Runbox-Principal"
BAD_FORMS = {
    "both forms": [(TOKEN, "a"), (NAMESPACE, "b"), (PRINCIPAL, "c")],
    "a token and half a pair": [(TOKEN, "a"), (PRINCIPAL, "c")],
    "a namespace alone": [(NAMESPACE, "b")],
    "a principal alone": [(PRINCIPAL, "c")],
    "an empty token": [(TOKEN, "")],
    "an empty principal": [(NAMESPACE, "b"), (PRINCIPAL, "")],
    "a token too long": [(TOKEN, LONGEST + "x")],
    "a namespace too long": [(NAMESPACE, LONGEST + "x"), (PRINCIPAL, "c")],
    "a token twice": [(TOKEN, "a"), (TOKEN, "a")],
    "a principal twice": [(NAMESPACE, "b"), (PRINCIPAL, "c"), (PRINCIPAL, "c")],
    "a space inside": [(TOKEN, "a b")],
    "bytes beyond ASCII": [(TOKEN, "\xe4")],
}
GOOD_FORMS = {
    "a token": [(TOKEN, LONGEST)],
    "a pair": [(NAMESPACE, LONGEST), (PRINCIPAL, LONGEST)],
    "a token in lower case": [(TOKEN.lower(), "!~")],
}


@pytest.fixture
def box(start_nook):
    return start_nook(identities=True, tcp=True)


def ask(nook, route, headers, auth=True, target=None):
    """The smallest request of a route, over TCP."""
    target = target or re.sub(r"\{[\w.]+\}", "none", route["path"])
    body = b"{}" if route["body"] in ("json", "json_opt", "exec") else b""
    more = []
    if route["websocket"]:
        more = [("Upgrade", "websocket"), ("Connection", "Upgrade"),
                ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")]
    lines = {}
    for name, value in [*headers, *more]:
        lines.setdefault(name, []).append(value)
    with nook.connect(tcp=True, auth=auth) as conn:
        kw = {"body": body} if body else {}
        conn.send_request(route["method"], target, headers=lines.items(), **kw)
        answer = conn.read_head()
        if answer.status != 101 and answer.header("Content-Type") != "text/event-stream":
            answer.body = b"".join(conn.read_body(answer, route["method"]))
        return answer


def named(routes):
    return [r for r in routes if r["identity"]]


def test_without_the_right_token_no_route_says_anything_of_identities(box):
    for route in ROUTES:
        if route["auth"] == "none":
            continue
        for headers in ([], [(TOKEN, "a")], *BAD_FORMS.values()):
            assert ask(box, route, headers, auth=False).status == 401, route
            wrong = [("Authorization", "Bearer wrong"), *headers]
            assert ask(box, route, wrong, auth=False).status == 401, route


@pytest.mark.parametrize("form", BAD_FORMS)
def test_a_form_that_is_none_is_refused_by_every_route_that_takes_one(box, form):
    for route in named(ROUTES):
        answer = ask(box, route, BAD_FORMS[form])
        assert (answer.status, answer.code) == (400, "bad_identity"), (route, answer)
    assert not os.listdir(box.state / "w")


@pytest.mark.parametrize("form", GOOD_FORMS)
def test_each_form_is_taken_by_every_route(box, form):
    for route in named(ROUTES):
        answer = ask(box, route, GOOD_FORMS[form])
        assert answer.status not in (401, 500, 501, 503), (route, answer)
        if answer.status == 400:
            assert answer.code != "bad_identity", (route, answer)
    assert len(os.listdir(box.state / "w")) == 1


def test_no_two_forms_name_the_same_identity(box):
    names = [{"token": "ab"}, {"pair": ("a", "b")}, {"pair": ("ab", "ab")}, {"pair": ("b", "a")},
             {"token": "a/b"}, {"pair": ("a", "/b")}, {"pair": ("a/", "b")}, {"token": "AB"}]
    uids = [box.tenant(**name).exec("id -u")["stdout"] for name in names]
    assert len(set(uids)) == len(names)
    assert uids == [box.tenant(**name).exec("id -u")["stdout"] for name in names]


def test_an_identity_has_a_uid_a_home_and_a_folder_for_temporary_files(box):
    a = box.tenant("alice")
    out = a.exec("id -u; id -g; id -G; pwd; echo $HOME; echo $TMPDIR; echo $USER; ls -A; "
                 "stat -c %a . files out tmp")["stdout"].split("\n")
    uid = int(out[0])
    home = f"{box.state}/w/{uid}"
    assert uid in box.uids
    assert out[1] == str(uid)
    groups = [int(g) for g in out[2].split()]
    assert groups[0] == uid and len(groups) == 2 and groups[1] in box.marks
    assert out[3:7] == [home, home, home + "/tmp", str(uid)]
    assert out[7:] == ["files", "out", "tmp", "700", "700", "700", "700", ""]


def test_the_workspace_is_the_only_root(box):
    a = box.tenant("alice")
    home = a.exec("pwd")["stdout"].strip()
    assert a.request("PUT", "/v1/files?path=files/x", body=b"1").json()["path"] == "files/x"
    assert a.get(f"/v1/files?path={home}/files/x").text == "1"
    shared = [box.workspace, box.output, box.tmp, box.home, "/tmp", "/etc/passwd", box.state,
              f"{box.state}/w", f"{box.state}/identities", "/proc/self/environ"]
    for path in shared:
        for target in (f"/v1/files?path={path}", f"/v1/files/stat?path={path}",
                       f"/v1/files/list?path={path}", f"/v1/archive?path={path}",
                       f"/v1/files/watch?path={path}"):
            answer = a.get(target)
            assert (answer.status, answer.code) == (403, "forbidden"), (target, answer)
        for method, target in (("PUT", f"/v1/files?path={path}/x"),
                               ("DELETE", f"/v1/files?path={path}"),
                               ("PUT", f"/v1/archive?path={path}")):
            answer = a.request(method, target, body=b"" if method == "PUT" else None)
            assert (answer.status, answer.code) == (403, "forbidden"), (target, answer)


def same(one, other, *words):
    """Whether two answers differ in nothing but the words that were asked for."""
    texts = []
    for answer, word in zip((one, other), words):
        head = sorted((k.lower(), v) for k, v in answer.headers
                      if k.lower() not in ("x-request-id", "date", "content-length"))
        texts.append((answer.status, head, answer.body.replace(word.encode(), b"*")))
    return texts[0] == texts[1]


def test_another_ones_process_is_as_one_that_is_not_there(box):
    a, b = box.tenant("alice"), box.tenant("bob")
    p = a.post("/v1/processes", {"command": "sleep 1000", "name": "mine"}).json()
    never = "z" * len(p["id"])
    tried = 0
    for route in named(ROUTES):
        if "{id}" not in route["path"] or "context" in route["path"]:
            continue
        for theirs, none in ((p["id"], never), ("mine", "none")):
            answers = [ask(b, route, b.named, target=route["path"].replace("{id}", word))
                       for word in (theirs, none)]
            assert answers[0].status == 404, (route, answers)
            assert same(*answers, theirs, none), answers
            tried += 1
    assert tried >= 16
    assert b.get("/v1/processes").json() == {"processes": []}
    assert box.get("/v1/processes").json() == {"processes": []}
    assert box.get(f"/v1/processes/{p['id']}").status == 404
    assert a.get("/v1/processes/mine").json()["status"] == "running"
    # A name is free for everybody.
    assert b.post("/v1/processes", {"command": "true", "name": "mine"}).status == 201


def test_a_context_belongs_to_the_identity(box):
    a, b = box.tenant("alice"), box.tenant("bob")
    made = a.post("/v1/contexts", {"language": "python"})
    if made.status == 501:
        pytest.skip("no python for contexts here")
    id = made.json()["id"]
    run = a.post(f"/v1/contexts/{id}/code", {"code": "import os; print(os.getuid(), os.getcwd())"})
    uid = a.exec("id -u")["stdout"].strip()
    assert run.json()["stdout"] == f"{uid} {box.state}/w/{uid}\n"
    for route in named(ROUTES):
        if not route["path"].startswith("/v1/contexts/"):
            continue
        answers = [ask(b, route, b.named, target=route["path"].replace("{id}", word))
                   for word in (id, "z" * len(id))]
        assert answers[0].status in (400, 404), (route, answers)  # 400: no code is given
        assert same(*answers, id, "z" * len(id)), (route, answers)
    assert b.post(f"/v1/contexts/{id}/code", {"code": "1"}).status == 404
    assert b.get("/v1/contexts").json() == box.get("/v1/contexts").json() == {"contexts": []}
    assert a.get(f"/v1/contexts/{id}").json()["status"] == "idle"


def test_another_ones_file_is_as_one_that_is_not_there(box):
    a, b = box.tenant("alice"), box.tenant("bob")
    assert a.request("PUT", "/v1/files?path=files/secret", body=b"s").status == 201
    home = a.exec("pwd; chmod 755 . files; chmod 644 files/secret")["stdout"].strip()
    b.exec("true")
    theirs, none = f"{home}/files/secret", f"{box.state}/w/1/files/secret"
    for method, target in (("GET", "/v1/files?path="), ("GET", "/v1/files/stat?path="),
                           ("GET", "/v1/files/list?path="), ("DELETE", "/v1/files?path="),
                           ("GET", "/v1/archive?path="), ("GET", "/v1/files/watch?path=")):
        answers = [b.request(method, target + path) for path in (theirs, none)]
        assert answers[0].status == 403 and same(*answers, theirs, none), answers
    for path in ("../" + os.path.basename(home), "../../w", "files/../../x"):
        assert b.get(f"/v1/files/stat?path={path}").code == "bad_path"
    # Nor through a link of one's own.
    b.exec(["ln", "-s", theirs, "files/link"])
    b.exec(["ln", "-s", home, "files/folder"])
    assert b.get("/v1/files?path=files/link").status == 403
    assert b.get("/v1/files/list?path=files/folder").status in (400, 403, 404)
    assert a.get("/v1/files?path=files/secret").text == "s"


def test_a_command_reaches_nothing_of_another_identity(box):
    a, b = box.tenant("alice"), box.tenant("bob")
    a.exec("echo secret > files/s; echo secret > tmp/s; ln -s /etc/passwd out/l")
    p = a.post("/v1/processes", {"command": ["sleep", "1000"], "env": {"SECRET": "hidden"}}).json()
    home = f"{box.state}/w/{a.exec('id -u')['stdout'].strip()}"
    tries = ["cat {h}/files/s", "ls {h}", "ls {h}/tmp", "echo x > {h}/files/n", "rm -rf {h}/files",
             "ls {s}", "ls {s}/w", "cat {s}/identities", "cat {s}/lock", "echo x > {s}/w/n",
             "mkdir {s}/w/n", "mv {h} {s}/w/n", "kill -9 {p}", "kill -STOP {p}",
             "cat /proc/{p}/environ", "cat /proc/{p}/maps", "ls -l /proc/{p}/fd",
             "ls /proc/{p}/cwd/", "cat /proc/{p}/mem", "cat /proc/{d}/environ", "ls /proc/{d}/fd",
             "cat /proc/{d}/mem", "kill -9 {d}", "cd {h}", "renice 19 -p {p}",
             "cat {t}", "ls {r}/run"]
    for text in tries:
        command = text.format(h=home, s=box.state, p=p["pid"], d=box.pid, t=box.token_file,
                              r=box.root)
        done = b.exec(command)
        assert done["exit_code"] != 0 and "secret" not in done["stdout"] \
            and "hidden" not in done["stdout"], (command, done)
    b.exec("kill -9 -1; kill -STOP -1")
    assert a.get(f"/v1/processes/{p['id']}").json()["status"] == "running"
    assert a.get("/v1/files?path=files/s").text == "secret\n"


def test_a_command_has_no_descriptor_but_its_own(box):
    seen = box.tenant("alice").exec("for f in /proc/self/fd/*; do echo ${f##*/}; done; true")
    assert set(seen["stdout"].split()) <= {"0", "1", "2", "3"}  # 3: the shell's own of the folder
    listed = box.tenant("bob").exec(["ls", "/proc/self/fd"])["stdout"].split()
    assert listed == ["0", "1", "2", "3"]


def test_paths_are_told_from_the_workspace_on(box):
    a = box.tenant("alice")
    done = a.exec("echo 1 > files/new; echo 2 > out/two", report_files=True)
    assert [f["path"] for f in done["files"]] == ["files/new", "out/two"]
    code = "import os\nopen('out/p.svg','w').write('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')\n" \
           "open(os.path.join(os.environ['TMPDIR'], 'left'), 'w').write('x')\nprint(os.getcwd())"
    answer = a.post("/v1/code", {"code": code, "language": "python"})
    assert answer.status == 200, answer
    result = answer.json()
    assert result["exit_code"] == 0, result
    assert [f["path"] for f in result["files_changed"]] == ["out/p.svg", "tmp/left"]
    assert [f["path"] for f in result["outputs"]] == ["out/p.svg"]
    assert result["outputs"][0]["data_base64"]
    tar = a.get("/v1/archive?path=out").body
    names = subprocess.run(["tar", "tf", "-"], input=tar, capture_output=True, check=True).stdout
    assert sorted(names.decode().split()) == ["out/", "out/p.svg", "out/two"]
    assert b"report" not in box.get("/v1/files/list?path=.").body


def test_another_user_cannot_be_asked_for(start_nook):
    nook = start_nook("--allow-user", "nobody", identities=True)
    assert nook.exec(["id", "-un"], user="nobody")["stdout"] == "nobody\n"
    answer = nook.tenant("alice").post("/v1/exec", {"command": "id", "user": "nobody"})
    assert (answer.status, answer.code) == (403, "forbidden")


def test_a_ticket_opens_for_the_identity_that_asked_for_it_only(box):
    a, b = box.tenant("alice"), box.tenant("bob")
    uid = a.exec("id -u")["stdout"]

    def ticket(who):
        return who.post("/v1/exec/ws-token", {}).json()["token"]

    def use(who, token):
        return session(who, ["id", "-u"], target=f"/v1/exec/ws?token={token}")

    for who in (box, a):
        with use(who, ticket(a)) as s:
            assert s.finish()["exit_code"] == 0
            assert s.stdout.decode() == uid
    with pytest.raises(Refused) as never:
        use(b, "a" * 24)
    for who, token in ((b, ticket(a)), (a, ticket(box)), (b, ticket(box))):
        with pytest.raises(Refused) as e:
            use(who, token)
        assert same(never.value.response, e.value.response, "a" * 24, token)


def test_a_key_belongs_to_the_identity(box):
    key = [("Idempotency-Key", "one")]
    a, b = box.tenant("alice"), box.tenant("bob")
    first = a.post("/v1/exec", {"command": "id -u"}, headers=key).json()
    assert a.post("/v1/exec", {"command": "id -u"}, headers=key).json() == first
    assert a.post("/v1/exec", {"command": "true"}, headers=key).code == "conflict"
    other = b.post("/v1/exec", {"command": "id -u"}, headers=key).json()
    assert other["stdout"] != first["stdout"]
    assert box.post("/v1/exec", {"command": "true"}, headers=key).status == 200


def test_emptying_a_workspace_leaves_its_folders_and_its_uid(box):
    a, b = box.tenant("alice"), box.tenant("bob")
    b.exec("echo 1 > files/b")
    uid = a.exec("mkdir -p files/x/y other/files/out; touch files/f files/x/y/z out/o tmp/t top; "
                 "chmod 0 files/x; id -u")["stdout"]
    a.exec("rm -rf out; ln -s files out")
    p = a.post("/v1/processes", {"command": "cd files && sleep 1000 && pwd"}).json()
    assert a.request("DELETE", "/v1/workspace").status == 204
    entries = a.get("/v1/files/list?path=.&recursive=true").json()["entries"]
    assert [(e["path"], e["type"]) for e in entries] == \
        [("files", "dir"), ("out", "dir"), ("tmp", "dir")]
    assert a.exec("id -u")["stdout"] == uid
    assert os.readlink(f"/proc/{p['pid']}/cwd").endswith("/files")
    assert b.get("/v1/files?path=files/b").text == "1\n"


def test_an_identity_is_the_same_after_a_restart(box):
    people = [box.tenant(f"user-{i}") for i in range(5)]
    before = [p.exec("id -u; cat files/mine 2>/dev/null; id -u > files/mine")["stdout"]
              for p in people]
    assert len(set(before)) == 5
    assert box.terminate() == 0
    box.start()
    people = [box.tenant(f"user-{i}") for i in range(5)]
    after = [p.exec("id -u; cat files/mine")["stdout"] for p in reversed(people)][::-1]
    assert after == [uid * 2 for uid in before]


def test_slots_are_counted_for_each(start_nook):
    nook = start_nook("--max-commands", 2, identities=True)
    a, b = nook.tenant("alice"), nook.tenant("bob")
    for who in (a, b, nook):
        for _ in range(2):
            assert who.post("/v1/processes", {"command": "sleep 1000"}).status == 201
        answer = who.post("/v1/exec", {"command": "true"})
        assert (answer.status, answer.code) == (409, "busy")
        assert answer.header("Retry-After")


def test_processes_are_counted_for_each(start_nook):
    nook = start_nook("--max-processes", 24, identities=True)
    a, b = nook.tenant("alice"), nook.tenant("bob")
    bomb = "for i in $(seq 100); do sleep 1000 & done; wait"
    with a.exec_stream(bomb) as stream:
        next(e for e in stream.events() if e.name == "stderr")  # cannot fork
        assert b.exec("for i in 1 2 3 4; do sleep 0 & done; wait; echo ok")["stdout"] == "ok\n"
        assert nook.exec("echo ok")["stdout"] == "ok\n"


def test_where_they_are_off_they_are_not_supported(tcp_nook):
    for route in named(ROUTES):
        answer = ask(tcp_nook, route, [(TOKEN, "a")])
        assert (answer.status, answer.code) == (501, "not_supported"), (route, answer)
    capabilities = tcp_nook.get("/v1/capabilities").json()
    assert capabilities["features"]["identities"] is False
    assert "--identities" in capabilities["isolation"]["identities"]["reason"]


def run_in_user_namespace():
    done = subprocess.run(["unshare", "--user", "--map-root-user", "true"], check=False,
                          capture_output=True)
    return done.returncode == 0


def test_where_the_kernel_cannot_isolate_they_are_not_supported(start_nook):
    """In a namespace where only root has a uid nobody else can be become."""
    if not run_in_user_namespace():
        pytest.skip("no user namespace can be made here")
    nook = start_nook("--identities", user=0, wrap=["unshare", "--user", "--map-root-user"])
    nook.expect_exit = None
    answer = nook.tenant("alice").post("/v1/exec", {"command": "true"})
    assert (answer.status, answer.code) == (501, "not_supported")
    capabilities = nook.get("/v1/capabilities").json()
    assert capabilities["features"]["identities"] is False
    reason = capabilities["isolation"]["identities"]["reason"]
    assert reason and reason in answer.json()["error"]["message"]


@pytest.mark.parametrize("options, word", [
    (["--uid-range", "70000-70010", "--mark-gids", "70005-70020"], "--mark-gids"),
    (["--uid-range", "1000-2000", "--user", "1500"], "--user"),
    (["--uid-range", "1000-2000", "--user", "77", "--program-user", "1500"], "--program-user"),
    (["--uid-range", "100000-4000000"], "--uid-range"),
])
def test_ranges_that_would_mix_people_up_are_refused(tmp_path, options, word):
    code, text = harness.refuse("--identities", "--socket", tmp_path / "s" / "api.sock",
                                "--state-dir", tmp_path / "state", "--writable", tmp_path,
                                *options)
    assert code in (1, 2) and word in text, text


def test_a_damaged_map_stops_the_start(box):
    box.tenant("alice").exec("true")
    box.tenant("bob").exec("true")
    assert box.terminate() == 0
    text = (box.state / "identities").read_bytes()
    (box.state / "identities").write_bytes(b"?" + text[1:])
    code, said = harness.refuse(*box.argv[2:])
    assert code in (1, 2) and "identities" in said and "damaged" in said
    (box.state / "identities").write_bytes(text)
    box.start()


def test_many_at_once_are_not_mixed_up_and_none_starves(start_nook):
    """Every cycle of each sees its own uid, its own files and its own processes only."""
    nook = start_nook("--max-commands", 8, identities=True)
    count = scaled(200, 20)

    def live(i):
        me = nook.tenant(f"token-{i}") if i % 2 else nook.tenant(pair=(f"ns-{i % 7}", f"p-{i}"))
        uids = set()
        for cycle in range(3):
            name = f"files/of-{i}-{cycle}"
            assert me.request("PUT", f"/v1/files?path={name}", body=name.encode()).status == 201
            done = me.exec(f"id -u; cat files/of-{i}-*; echo $$ > files/pid-{cycle}")
            uid, _, text = done["stdout"].partition("\n")
            assert text == "".join(f"files/of-{i}-{c}" for c in range(cycle + 1)), done
            uids.add(uid)
            names = {e["name"] for e in me.get("/v1/files/list?path=files").json()["entries"]}
            assert names == {f"{kind}-{c}" for kind in (f"of-{i}", "pid") for c in range(cycle + 1)}
            records = me.get("/v1/processes").json()["processes"]
            assert len(records) == cycle + 1 and {p["user"] for p in records} == uids
        assert len(uids) == 1
        return uids.pop()

    with ThreadPoolExecutor(max_workers=min(count, 50)) as pool:
        uids = list(pool.map(live, range(count)))
    assert len(set(uids)) == count
    assert len((nook.state / "identities").read_bytes().splitlines()) == count
    wait_until(lambda: not nook.zombies(), 10, "everything is reaped")
