"""What is left of identities: by a daemon that was killed, by a life before, beside another daemon."""

import ctypes
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nook import Nook, all_pids, scaled, status_field
from wire import Closed, wait_until

pytestmark = pytest.mark.root

LIBC = ctypes.CDLL(None, use_errno=True)


def running_as(uids):
    """Pids of what runs as one of these."""
    found = []
    for pid in all_pids():
        try:
            ids = {int(u) for u in status_field(pid, "Uid").split()}
            state = status_field(pid, "State")
        except (FileNotFoundError, ProcessLookupError, KeyError):
            continue
        if state[0] not in "ZX" and any(u in uids for u in ids):
            found.append(pid)
    return found


def crash(nook):
    """Only the daemon dies; what it started is left."""
    os.kill(nook.pid, signal.SIGKILL)
    nook.proc.wait(20)


def start_again(nook):
    nook.start()
    wait_until(lambda: nook.tenant("probe").exec("true"), 10, "identities are served")


DAEMONIZE = "setsid sh -c 'trap \"\" TERM HUP INT; (sleep 1000 & sleep 1000) & wait' " \
            "> /dev/null 2>&1 < /dev/null & "


def test_a_new_daemon_ends_what_the_old_one_left_running(start_nook):
    nook = start_nook(identities=True)
    for i in range(5):
        who = nook.tenant(f"user-{i}")
        who.exec(DAEMONIZE + "echo begun")
        who.post("/v1/processes", {"command": "trap '' TERM; sleep 1000; sleep 1000"})
    nook.post("/v1/processes", {"command": "sleep 1000"})
    stranger = subprocess.Popen(["sleep", "1000"], user=nook.user, group=nook.user,
                                extra_groups=[])
    try:
        assert len(running_as(nook.uids)) >= 15
        crash(nook)
        assert len(running_as(nook.uids)) >= 15
        nook.start()
        assert running_as(nook.uids) == []
        # Of the sandbox's user only what bears one of our marks.
        assert running_as([nook.user]) == [stranger.pid]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_end_reaches_all_that_identities_run(start_nook):
    nook = start_nook("--grace", 1, identities=True)
    for i in range(3):
        nook.tenant(f"user-{i}").exec(DAEMONIZE + "echo begun")
    assert running_as(nook.uids)
    assert nook.terminate() == 0
    assert running_as(nook.uids) == []


def test_what_was_left_unfinished_in_a_workspace_is_gone_once_its_identity_is_named(start_nook):
    """Of an upload and of code, by a daemon that was killed; only the user's own, and no link away."""
    nook = start_nook(identities=True)
    uids = {who: nook.tenant(who).exec("id -u")["stdout"].strip() for who in ("alice", "bob")}
    home, others = (nook.state / "w" / uids[who] for who in ("alice", "bob"))
    file, run = ".nook-" + "a" * 24 + ".part", ".nook-run-" + "a" * 24
    for who in uids:
        made = nook.tenant(who).exec(
            f"mkdir -p files/d tmp/{run}/in files/{file} && echo half > files/d/{file} && "
            f"echo half > tmp/{run}/in/f && echo half > files/{file}/f && "
            f"echo kept > files/.nook-notes.part && mkdir tmp/.nook-run-mine && "
            f"ln -s {others}/files files/away && ln -s {others}/tmp/{run} tmp/{run[:-1]}b")
        assert made["exit_code"] == 0, made
    of_root = home / "files" / file.replace("a" * 24, "c" * 24)
    of_root.write_text("kept")

    def names(top):
        return {name for _, folders, files in os.walk(top) for name in folders + files}

    before = names(others)
    crash(nook)
    start_again(nook)
    nook.tenant("alice").exec("true")
    kept = {"files", "out", "tmp", "d", ".nook-notes.part", ".nook-run-mine", "away",
            f"{run[:-1]}b", of_root.name}
    wait_until(lambda: names(home) == kept, 20, "the leftovers are gone")
    assert names(others) == before


def test_many_crashes_leave_the_map_whole_and_nothing_running(start_nook):
    """In the middle of cycles that start, write and make new identities."""
    nook = start_nook(identities=True)
    rounds, people = scaled(40, 4), 25
    known = {}

    def cycle(i):
        me = nook.tenant(f"user-{i}")
        try:
            uid = me.exec(f"id -u; echo {i} > files/mine; (sleep 1000 &) > /dev/null 2>&1",
                          stdin="x" * 1000)["stdout"].strip()
            me.request("PUT", f"/v1/files?path=files/whole-{i}", body=b"w" * 200_000)
        except (OSError, Closed, AssertionError):
            return
        if uid:
            assert known.setdefault(i, uid) == uid, (i, uid, known)

    for n in range(rounds):
        with ThreadPoolExecutor(max_workers=people) as pool:
            work = [pool.submit(cycle, i) for i in range((n + 1) * people // 2)]
            wait_until(lambda w=work, n=n: sum(f.done() for f in w) >= (n * 7) % people, 60,
                       "some are through")
            crash(nook)
            for f in work:
                f.result()
        nook.start()
        wait_until(lambda: running_as(nook.uids) == [], 10, "nothing of the life before runs")
    records = (nook.state / "identities").read_text().splitlines()
    assert all(len(r) == 75 for r in records)
    uids = [int(r.split()[1]) for r in records]
    assert len(set(uids)) == len(uids) and len({r.split()[0] for r in records}) == len(uids)
    for i, uid in known.items():
        assert nook.tenant(f"user-{i}").exec("id -u")["stdout"].strip() == uid
    for place in (nook.state / "w").iterdir():
        assert place.name.isdigit() and place.stat().st_uid == int(place.name)
        assert {"files", "out", "tmp"} <= set(os.listdir(place))
        for whole in (place / "files").glob("whole-*"):
            assert whole.stat().st_size == 200_000


def make_ipc(uid):
    """One object of each kind, made by that user: (shm, sem, msg)."""
    code = ("import ctypes,os\nc=ctypes.CDLL(None)\n"
            "print(c.shmget(0, 4096, 0o1600), c.semget(0, 1, 0o1600), c.msgget(0, 0o1600))")
    out = subprocess.run([sys.executable, "-c", code], user=uid, group=uid, extra_groups=[],
                         capture_output=True, text=True, check=True, cwd="/").stdout
    return [int(word) for word in out.split()]


def ipc_of(uid):
    found = []
    for kind, column in (("shm", 7), ("sem", 4), ("msg", 7)):
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if int(words[column]) == uid:
                found.append((kind, int(words[1])))
    return found


def test_a_uid_is_given_out_again_only_when_nothing_is_left_of_it(start_nook, tmp_path):
    """Not even where the state folder was lost, and with it who had the uid."""
    nook = start_nook(identities=True)
    uid = int(nook.tenant("first").exec("id -u")["stdout"])
    shared = [Path("/tmp"), Path("/dev/shm"), nook.tmp]
    mine = [folder / f"left-{uid}" for folder in shared if folder.is_dir()]
    words = " ".join(map(str, mine))
    made = nook.tenant("first").exec(
        f"for d in {words}; do mkdir -p $d/in && echo secret > $d/in/f && ln -s /etc $d/l && "
        "chmod 0 $d/in && echo secret > $d.txt || exit 1; done")
    assert made["exit_code"] == 0, made
    other = nook.tmp / "of-root"
    other.write_text("kept")
    try:
        make_ipc(uid)
        has_ipc = True
    except (OSError, subprocess.CalledProcessError):
        has_ipc = False
    assert not has_ipc or len(ipc_of(uid)) == 3
    crash(nook)
    (nook.state / "identities").unlink()
    (nook.state / "w" / str(uid)).rename(tmp_path / "gone")
    nook.start()
    second = nook.tenant("second")
    assert int(second.exec("id -u")["stdout"]) == uid
    for place in mine:
        assert not place.exists() and not place.with_name(place.name + ".txt").exists()
    assert second.exec(f"find {words.split()[0]}* /dev/shm -user {uid} 2>/dev/null")["stdout"] == ""
    assert other.read_text() == "kept"
    assert ipc_of(uid) == []


def test_a_uid_whose_workspace_is_there_is_nobody_elses(start_nook):
    """The map was lost, the workspaces were not."""
    nook = start_nook(identities=True)
    first = nook.tenant("first").exec("id -u; echo secret > files/s")["stdout"].strip()
    assert nook.terminate() == 0
    (nook.state / "identities").unlink()
    nook.start()
    second = nook.tenant("second").exec("id -u; cat files/s")
    assert second["stdout"].split("\n")[0] != first and "secret" not in second["stdout"]


def test_a_uid_that_somebody_runs_as_is_not_given_out(start_nook):
    nook = start_nook(identities=True)
    assert nook.terminate() == 0
    stranger = subprocess.Popen(["sleep", "1000"], user=nook.uids[0], group=nook.uids[0],
                                extra_groups=[])
    try:
        nook.start()
        uid = int(nook.tenant("first").exec("id -u")["stdout"])
        assert uid == nook.uids[1]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_no_uid_left_is_said_and_those_that_have_one_go_on(start_nook):
    nook = start_nook(identities=range(1_999_999_000, 1_999_999_003))
    people = [nook.tenant(f"user-{i}") for i in range(3)]
    assert len({p.exec("id -u")["stdout"] for p in people}) == 3
    answer = nook.tenant("one-more").post("/v1/exec", {"command": "true"})
    assert (answer.status, answer.code) == (503, "overloaded")
    assert people[0].exec("echo ok")["stdout"] == "ok\n"


def beside(nook, *args):
    """Another daemon on the same state folder and uids."""
    return Nook("--state-dir", nook.state, *args, identities=nook.uids)


def test_two_daemons_on_one_state_folder_agree(start_nook):
    nook = start_nook(identities=True)
    people = scaled(60, 20)
    nook.tenant("early").post("/v1/processes", {"command": "sleep 1000", "name": "mine"})
    other = beside(nook)
    try:
        # The second one swept nothing away.
        assert nook.tenant("early").get("/v1/processes/mine").json()["status"] == "running"

        def uid_of(i):
            who = (nook, other)[i % 2].tenant(f"user-{i // 2}")
            return i // 2, who.exec(f"id -u; echo {i} >> files/seen")["stdout"].strip()

        with ThreadPoolExecutor(max_workers=16) as pool:
            seen = list(pool.map(uid_of, range(2 * people)))
        assert len({uid for _, uid in seen}) == people
        assert len(set(seen)) == people
        for i in range(people):
            text = nook.tenant(f"user-{i}").get("/v1/files?path=files/seen").text
            assert sorted(map(int, text.split())) == [2 * i, 2 * i + 1]
        # The end of one ends what it runs, and nothing of the other.
        other.tenant("early").post("/v1/processes", {"command": "sleep 1000"})
        assert other.terminate() == 0
        assert nook.tenant("early").get("/v1/processes/mine").json()["status"] == "running"
        assert len(nook.tenant("early").get("/v1/processes").json()["processes"]) == 1
    finally:
        wrong = other.finish()
        other.remove()
    assert not wrong
