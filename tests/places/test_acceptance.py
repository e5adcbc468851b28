"""The same acceptance in every place: each resource once, terminals, archives, a tree that is killed."""

import hashlib
import io
import os
import re
import tarfile

import pytest

import ws_client
from wire import output_of, wait_until

pytestmark = pytest.mark.place


def shell_only(place):
    if not place.shell:
        pytest.skip(f"{place.name} has no shell")


def test_it_is_healthy_and_ready(place):
    assert place.get("/healthz").json()["status"] == "ok"
    assert place.get("/readyz").status == 200


def test_the_self_test_says_what_this_kernel_has(place):
    found = place.get("/v1/capabilities").json()["isolation"]
    lacking = {name for name, one in found.items() if not one["available"]}
    for name in lacking:
        assert found[name]["reason"], name
    # What confines commands is there everywhere.
    assert not lacking & {"uid_drop", "no_new_privs", "seccomp", "kill_tree", "file_identity",
                          "identities"}, found
    if not place.gvisor:
        assert not lacking & {"close_range", "openat2", "pidfd", "subreaper"}, found
    print(f"{place.name} lacks {sorted(lacking) or 'nothing'}")


def test_a_command_runs_as_the_sandbox_user(place):
    shell_only(place)
    result = place.exec("id -u; id -g; pwd; echo oops >&2; exit 3")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == \
        (3, "1000\n1000\n/workspace\n", "oops\n")


def test_identities_see_nothing_of_each_other(place):
    """Each has a uid and a workspace of its own, and what is another's is not there."""
    shell_only(place)

    def ask(name, method, target, body=None):
        with place.connect() as conn:
            return conn.request(method, target, json=body,
                                headers=[("X-Runbox-Identity", name)])

    def run(name, command):
        answer = ask(name, "POST", "/v1/exec", {"command": command})
        assert answer.status == 200, answer
        return answer.json()["stdout"].split()

    uid, home = run("one", "id -u; pwd; echo mine >files/a; chmod 666 files/a")
    other_uid, other_home = run("other", "id -u; pwd")
    assert len({"1000", uid, other_uid}) == 3
    assert run("other", f"cat {home}/files/a 2>/dev/null || echo refused") == ["refused"]
    assert run("one", "cat files/a") == ["mine"] and home != other_home
    p = ask("one", "POST", "/v1/processes", {"command": "sleep 1000"}).json()
    for name, status in (("other", 404), ("one", 200)):
        assert ask(name, "GET", f"/v1/processes/{p['id']}").status == status
    assert run("other", f"kill -9 {p['pid']} 2>/dev/null || echo refused") == ["refused"]
    assert ask("one", "DELETE", f"/v1/processes/{p['id']}").status == 204
    assert ask("other", "GET", "/v1/files?path=files/a").status == 404


def test_a_command_needs_no_shell(place):
    result = place.exec(["/sbin/nookd", "--version"])
    assert (result["exit_code"], result["stdout"][:6]) == (0, "nookd ")


def test_a_program_of_the_place_runs(place):
    """Dynamically linked, where the place has a C library of its own."""
    shell_only(place)
    assert place.exec(["/bin/uname"])["stdout"] == "Linux\n"


def test_what_cannot_be_started_is_an_error(place):
    refused = place.post("/v1/exec", {"command": ["/no/such/tool"]})
    assert (refused.status, refused.code) == (400, "exec_failed")


def test_commands_carry_no_privileges(place):
    shell_only(place)
    status = place.exec("cat /proc/self/status")["stdout"]
    for name in ("CapEff", "CapPrm", "CapInh"):
        assert re.search(rf"^{name}:\s*0+$", status, re.M), status


def test_a_stream_is_whole(place):
    shell_only(place)
    with place.exec_stream("seq 20000; echo end >&2") as stream:
        stdout, stderr, end = output_of(stream.events())
    assert stdout == b"".join(b"%d\n" % n for n in range(1, 20001))
    assert (stderr, end.data["exit_code"]) == (b"end\n", 0)


def test_output_that_is_no_text_is_exact(place):
    shell_only(place)
    command = "dd if=/dev/urandom of=random.bin bs=64k count=64 2>/dev/null; cat random.bin"
    with place.exec_stream(command) as stream:
        stdout, _, _ = output_of(stream.events())
    told = place.exec("wc -c <random.bin; sha256sum <random.bin")["stdout"].split()
    assert told[:2] == [str(len(stdout)), hashlib.sha256(stdout).hexdigest()]
    assert len(stdout) > 1 << 20  # gVisor reads less at once


def test_a_timeout_ends_the_whole_tree(place):
    shell_only(place)
    result = place.exec("echo begun; setsid sleep 1234 & sleep 1234", timeout=0.5)
    assert (result["timed_out"], result["stdout"]) == (True, "begun\n")
    wait_until(lambda: "sleep 1234" not in _processes(place), 20, "no process of it is left")


def _processes(place):
    """Command lines of all processes there; ps of its own is left out by the caller's pattern."""
    return place.exec("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null "
                      "| grep -v tr")["stdout"]


def test_a_killed_process_takes_its_daemons_along(place):
    shell_only(place)
    started = place.post("/v1/processes", {
        "command": "(setsid sh -c 'sleep 2345 & sleep 2345') & sleep 2345"}).json()
    wait_until(lambda: _processes(place).count("sleep 2345") >= 3, 20, "the tree has grown")
    answer = place.post(f"/v1/processes/{started['id']}/kill", {"signal": "KILL"})
    assert answer.status == 200, answer
    ended = place.get(f"/v1/processes/{started['id']}?wait=20").json()
    assert (ended["status"], ended["signal"]) == ("exited", "KILL")
    wait_until(lambda: "sleep 2345" not in _processes(place), 20, "no process of it is left")


def test_a_process_goes_on_without_its_client(place):
    shell_only(place)
    started = place.post("/v1/processes", {"command": "echo up; read line; echo got $line",
                                           "stdin_open": True}).json()
    wait_until(lambda: "up" in place.get(f"/v1/processes/{started['id']}/logs?raw=true").text, 20,
               "it has begun")
    assert started["id"] in place.get("/v1/processes").text
    assert place.post(f"/v1/processes/{started['id']}/stdin", {"text": "word\n"}).status == 200
    ended = place.get(f"/v1/processes/{started['id']}?wait=20").json()
    assert ended["exit_code"] == 0
    assert place.get(f"/v1/processes/{started['id']}/logs?raw=true").text == "up\ngot word\n"


def test_files_are_written_read_listed_moved_and_removed(place):
    data = bytes(range(256)) * 1000
    put = place.request("PUT", "/v1/files?path=a/b.bin", body=data)
    assert put.status in (200, 201), put
    assert place.get("/v1/files?path=a/b.bin").body == data
    part = place.get("/v1/files?path=a/b.bin", headers=[("Range", "bytes=256-511")])
    assert (part.status, part.body) == (206, bytes(range(256)))
    assert "b.bin" in place.get("/v1/files/list?path=a").text
    assert place.request("DELETE", "/v1/files?path=a&recursive=true").status in (200, 204)
    assert place.get("/v1/files?path=a/b.bin").status == 404


def test_a_file_belongs_to_the_user_and_none_leads_out(place):
    shell_only(place)
    assert place.request("PUT", "/v1/files?path=mine", body=b"x").status in (200, 201)
    assert place.exec("ls -ln mine")["stdout"].split()[2:4] == ["1000", "1000"]
    place.exec("ln -s /etc/passwd out")
    assert place.get("/v1/files?path=out").status in (403, 404)


@pytest.mark.parametrize("compressed", ["tar", "tar.gz", "tar.zst"])
def test_archives_go_in_and_out(place, compressed):
    files = {"t/one": b"1" * 100000, "t/sub/two": b"2", "t/three": os.urandom(2 << 20)}
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as packing:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packing.addfile(info, io.BytesIO(data))
    put = place.request("PUT", "/v1/archive?path=.", body=tar.getvalue(),
                        headers=[("Content-Type", "application/x-tar")], wait=60)
    assert put.status == 200, put
    got = place.get(f"/v1/archive?path=t&format={compressed}", wait=60)
    assert got.status == 200, got
    # Python of Debian 12 reads no zstd: the place itself does, and what it made of it is read plain.
    put = place.request("PUT", "/v1/archive?path=again", body=got.body, wait=60)
    assert put.status == 200, put
    got = place.get("/v1/archive?path=again&base=again", wait=60)
    with tarfile.open(fileobj=io.BytesIO(got.body)) as unpacking:
        found = {m.name.removeprefix("./"): unpacking.extractfile(m).read()
                 for m in unpacking if m.isfile()}
    assert found == files
    assert place.request("DELETE", "/v1/files?path=again&recursive=true").status in (200, 204)


def test_a_terminal_is_one(place):
    shell_only(place)
    with ws_client.session(place, ["/bin/sh"], tty=True, cols=101, rows=37) as terminal:
        terminal.open()
        terminal.say("stdin", text="stty size; tty\n")
        terminal.until_output("37 101")
        terminal.say("resize", cols=80, rows=24)
        terminal.say("stdin", text="stty size; exit 7\n")
        terminal.until_output("24 80")
        assert terminal.finish()["exit_code"] == 7


def test_an_interrupt_reaches_a_program_in_a_terminal(place):
    shell_only(place)
    with ws_client.session(place, ["/bin/sh"], tty=True) as terminal:
        terminal.open()
        terminal.say("stdin", text="sleep 3456\n")
        wait_until(lambda: "sleep 3456" in _processes(place), 20, "it sleeps")
        terminal.say("signal", signal="INT")
        wait_until(lambda: "sleep 3456" not in _processes(place), 20, "it was interrupted")
        terminal.say("stdin", text="echo status $?\n")
        terminal.until_output("status 130")
        terminal.say("stdin", text="exit 0\n")
        terminal.finish()


def test_orphans_are_reaped(place):
    shell_only(place)
    place.exec("for n in 1 2 3 4 5 6 7 8; do (setsid sleep 0.05 &) ; done")
    zombies = "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
    wait_until(lambda: place.exec(zombies)["stdout"].strip() == "0", 20, "no zombie is left")


def test_process_1_is_what_the_place_says(place):
    shell_only(place)
    line = place.exec("tr '\\0' ' ' </proc/1/cmdline")["stdout"]
    assert line.startswith("/sbin/nookd serve") == place.pid1


def test_the_client_verbs_work_inside(place):
    done = place.cli("exec", "--", "/sbin/nookd", "--version")
    assert done.stdout.startswith(b"nookd ")
    assert place.cli("exec", "--", "/no/such/tool", check=False).returncode == 127
    if place.shell:
        done = place.cli("exec", "-i", "--", "cat", input=b"a\nb\n")
        assert done.stdout == b"a\nb\n"
        assert place.cli("exec", "--", "sh", "-c", "exit 42", check=False).returncode == 42
