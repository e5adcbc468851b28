"""What one identity may try, and what the others notice of it."""

import os
import time

import pytest

from nook import descendants_of, scaled, status_field
from wire import wait_until

pytestmark = pytest.mark.root

MIB = 1 << 20
BOMB = ("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n")
HOG = ("import ctypes,os\nc=ctypes.CDLL(None)\nfds=[]\n"
       "while True:\n    fd=c.inotify_init1(0)\n    if fd<0: break\n    fds.append(fd)\n"
       "print(len(fds), flush=True)\nimport time\ntime.sleep(1000)\n")
STOPPER = ("import os,signal\nsignal.signal(signal.SIGCONT, signal.SIG_IGN)\nprint('begun', flush=True)\n"
           "while True:\n    try:\n        os.kill(-1, signal.SIGSTOP)\n    except OSError:\n        pass\n")
ABUSES = {
    "fork bomb": ["python3", "-c", BOMB],
    "disk filler": "i=0; while :; do i=$((i+1)); cat /dev/zero > files/$i; done",
    "printer": ["sh", "-c", "while :; do head -c 100000000 /dev/zero; done"],
    "inotify hog": ["python3", "-c", HOG],
    "stopper": ["python3", "-c", STOPPER],
}


@pytest.fixture
def box(start_nook):
    return start_nook("--max-processes", 64, "--quota-bytes", 64 * MIB, "--max-commands", 16,
                      identities=True, tcp=True)


def work(who):
    """What an honest identity does: milliseconds it took."""
    begun = time.monotonic()
    done = who.exec("head -c 10000 /dev/zero > files/x && wc -c < files/x")
    assert (done["exit_code"], done["stdout"].strip()) == (0, "10000"), done
    assert who.request("PUT", "/v1/files?path=files/y", body=b"y" * 10_000).status in (200, 201)
    assert len(who.get("/v1/files/list?path=files").json()["entries"]) == 2
    with who.stream("GET", "/v1/files/watch?path=files") as watch:
        assert watch.next_event().name == "ready"
    return (time.monotonic() - begun) * 1000


@pytest.mark.parametrize("abuse", ABUSES)
def test_the_work_of_others_is_done_all_the_same(box, abuse, record_property):
    mallory, alice = box.tenant("mallory"), box.tenant("alice")
    rounds = scaled(50, 6)
    work(alice)
    quiet = sorted(work(alice) for _ in range(rounds))[rounds // 2]
    p = mallory.post("/v1/processes", {"command": ABUSES[abuse], "log_bytes": 65536}).json()
    more = []
    if abuse == "stopper":
        wait_until(lambda: mallory.get(f"/v1/processes/{p['id']}/logs").json()["stdout"])
        for _ in range(10):  # each of which is stopped before its exec
            conn = mallory.connect()
            conn.send_request("POST", "/v1/exec", json={"command": "true"})
            more.append(conn)
    loud = sorted(work(alice) for _ in range(rounds))[rounds // 2]
    for conn in more:
        conn.close()
    print(f"{abuse}: {quiet:.1f} ms became {loud:.1f} ms, {loud / quiet:.1f} times")
    record_property("ratio", round(loud / quiet, 2))
    # And it can be ended.
    killed = mallory.post(f"/v1/processes/{p['id']}/kill", {"signal": "KILL"})
    assert killed.status == 200
    uid = os.stat(next(d for d in (box.state / "w").iterdir()
                       if str(d.stat().st_uid) == p["user"])).st_uid
    wait_until(lambda: not running_as(uid), 60, "nothing of it runs")


def running_as(uid):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(status_field(pid, "Uid").split()[0]) == uid and \
                    status_field(pid, "State")[0] not in "ZX":
                found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def test_cve_2024_21626_no_descriptor_or_folder_leads_out_of_a_command(box):
    """A command's cwd is opened as the identity; /proc/self/fd holds nothing of the daemon's."""
    a = box.tenant("alice")
    for n in range(3, 40):
        answer = a.post("/v1/exec", {"command": ["true"], "cwd": f"/proc/self/fd/{n}"})
        assert answer.status == 400 and answer.json()["error"]["stage"] == "chdir", answer
    bob = box.tenant("bob").exec("pwd")["stdout"].strip()
    answer = a.post("/v1/exec", {"command": ["true"], "cwd": bob})
    assert answer.status == 400 and answer.json()["error"]["stage"] == "chdir"


def test_cve_2016_9962_the_daemon_shows_and_lends_nothing_to_an_identity(box):
    """Not dumpable; every capability set of a command is empty, and none can be gained."""
    a = box.tenant("alice")
    for name in ("environ", "mem", "maps", "fd/0", "root/", "cwd/", "exe", "auxv"):
        done = a.exec(["cat", f"/proc/{box.pid}/{name}"])
        assert done["exit_code"] != 0 and done["stdout"] == "", (name, done)
    status = a.exec("cat /proc/self/status")["stdout"]
    words = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(words[caps], 16) == 0, caps
    assert words["NoNewPrivs"] == "1" and words["Seccomp"] == "2"


def test_cve_2021_41091_no_folder_of_the_state_can_be_listed_or_written(box):
    a = box.tenant("alice")
    a.exec("true")
    for folder in (box.state, box.state / "w"):
        st = folder.stat()
        assert (st.st_uid, st.st_mode & 0o777) == (0, 0o711)
        assert a.exec(["ls", str(folder)])["exit_code"] != 0
        assert a.exec(["touch", f"{folder}/x"])["exit_code"] != 0
    for name in ("identities", "lock"):
        assert (box.state / name).stat().st_mode & 0o777 == 0o600


def test_cve_2018_15664_a_swapped_link_gains_no_identity_anothers_files(box):
    """Folder and link trade places as fast as they can while the API reads and writes below them."""
    a, b = box.tenant("alice"), box.tenant("bob")
    a.exec("echo secret > files/s; chmod 711 .; chmod 755 files; chmod 644 files/s")
    target = a.exec("pwd")["stdout"].strip() + "/files"
    swap = ("import ctypes,os\nos.mkdir('files/d')\nopen('files/d/s','w').write('mine')\n"
            f"os.symlink({target!r}, 'files/l')\nswap=ctypes.CDLL(None).renameat2\n"
            "print('on', flush=True)\n"
            "while swap(-100, b'files/d', -100, b'files/l', 2) == 0: pass\n")
    p = b.post("/v1/processes", {"command": ["python3", "-c", swap]}).json()
    wait_until(lambda: b.get(f"/v1/processes/{p['id']}/logs").json()["stdout"])
    seen = set()
    with b.connect() as conn:
        for i in range(scaled(5000, 300)):
            answer = conn.request("GET", "/v1/files?path=files/d/s")
            seen.add(answer.status)
            assert b"secret" not in answer.body
            conn.request("PUT", f"/v1/files?path=files/d/w{i % 3}", body=b"w")
    assert {200, 403} <= seen  # the race was on
    assert sorted(os.listdir(target)) == ["s"]


def test_huggingface_pr_16_a_file_api_resolves_with_the_identitys_rights(box):
    """Final link, intermediate link, link to a socket, a sibling's home; a control that works."""
    a, b = box.tenant("alice"), box.tenant("bob")
    b.exec("echo secret > files/s")
    home = b.exec("pwd")["stdout"].strip()
    a.exec(f"ln -s {home}/files/s files/final; ln -s {home} files/middle; ln -s {box.socket} files/so; "
           "ln -s /etc/shadow files/root; echo mine > files/own; ln -s own files/good")
    assert a.get("/v1/files?path=files/good").text == "mine\n"
    for path in ("files/final", "files/middle/files/s", "files/so", "files/root"):
        for target in (f"/v1/files?path={path}", f"/v1/archive?path={path}&links=skip"):
            answer = a.get(target)
            assert answer.status in (400, 403, 404) or b"secret" not in answer.body, (target, answer)
        assert a.request("PUT", f"/v1/files?path={path}", body=b"x").status in (400, 403, 404)
        assert a.post("/v1/files/chmod", {"path": path, "mode": "777"}).status in (400, 403, 404)
    assert b.exec("cat files/s; stat -c %a .")["stdout"] == "secret\n700\n"


DOWNLOADS = {
    "a file": "/v1/files?path=files/big",
    "a part of a file": "/v1/files?path=files/big",
    "an archive": "/v1/archive?path=files",
    "a compressed archive": "/v1/archive?path=files&format=tar.gz",
    "a stream": "/v1/exec/stream",
    "code as a stream": "/v1/code/stream",
    "a follower": "/v1/processes/p/follow",
    "a watch": "/v1/files/watch?path=files",
}


@pytest.mark.parametrize("tcp, how", [(True, "close"), (True, "reset"), (False, "close")])
def test_a_client_that_leaves_in_the_middle_is_noticed(box, tcp, how):
    """The worker, the command and the descriptors of a download are gone without any more traffic."""
    a = box.tenant("alice")
    a.exec("head -c 20000000 /dev/urandom > files/big")
    a.post("/v1/processes", {"command": "while :; do date; sleep 0.05; done", "name": "p"})
    lasting = "while :; do date; sleep 0.05; done"
    processes = len(descendants_of(box.pid))
    for kind, target in DOWNLOADS.items():
        before = set(box.fds().items())  # connections of requests before may be among them
        with a.connect(tcp=tcp) as conn:
            if "stream" in target:
                conn.send_request("POST", target, json={"code": lasting, "language": "sh"}
                                  if "code" in kind else {"command": lasting})
            else:
                conn.send_request("GET", target, headers=[("Range", "bytes=1000-")]
                                  if "part" in kind else [])
            assert conn.read_head().status in (200, 206), kind
            conn.recv(1000)
            opened = set(box.fds().items()) - before
            assert opened, kind
            if how == "reset":
                conn.reset()
        began = time.monotonic()
        # `date` and `sleep` come and go below the one that is followed.
        wait_until(lambda: not opened & set(box.fds().items()) and
                   len(descendants_of(box.pid)) <= processes + 1, 15, f"nothing is left of {kind}")
        print(f"{kind}, {how}: gone within {(time.monotonic() - began) * 1000:.0f} ms")
    assert a.exec("echo ok")["stdout"] == "ok\n"


def test_an_identity_leaves_no_message_queue_behind(box):
    """They outlive their user, and without a mount nobody can list them."""
    code = ("import ctypes\nprint(ctypes.CDLL(None).mq_open(b'/left-%d', 66, 0o600, None))\n"
            % os.getpid())
    if box.exec(["python3", "-c", code])["stdout"].strip() in ("", "-1"):
        pytest.skip("there are no message queues here")
    box.exec(["python3", "-c", code.replace("mq_open", "mq_unlink")
              .replace(", 66, 0o600, None", "")])
    assert box.tenant("alice").exec(["python3", "-c", code])["stdout"] == "-1\n"


def test_lists_errors_and_metrics_name_nobody(box):
    """Nothing that one can ask for holds another one's words."""
    a, b = box.tenant("secret-alice"), box.tenant(pair=("secret-team", "secret-principal"))
    for who in (a, b):
        who.exec("echo secret-output; echo x > files/secret-file")
        who.post("/v1/processes", {"command": "sleep 1000", "name": "secret-process"})
    box.exec("true")
    uids = {who.exec("id -u")["stdout"].strip() for who in (a, b)}
    for target in ("/metrics", "/v1/capabilities", "/v1/sandbox", "/v1/sandbox/usage",
                   "/v1/processes", "/v1/files/list?path=.&recursive=true", "/v1/contexts"):
        text = box.get(target).text
        assert "secret" not in text and not any(uid in text for uid in uids), target
    texts = [box.stderr(), (box.state / "identities").read_text()]
    assert not any("secret" in text for text in texts)
    for view, other in ((a, b), (b, a)):
        other_uid = other.exec("id -u")["stdout"].strip()
        for target in ("/v1/processes", "/v1/files/list?path=.&recursive=true"):
            assert other_uid not in view.get(target).text
