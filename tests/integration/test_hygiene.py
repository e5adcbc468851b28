"""What the code inside may not see or touch of the daemon: one test for each lesson learnt elsewhere.

The attacks run as the sandbox user through the API and, as root, as a second uid from outside.
"""

import json
import os
import shutil
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nook as harness
from nook import refuse, scaled, status_field
from wire import wait_until

needs_root = pytest.mark.root
SECRET = "a-secret-of-the-test-0123456789"
# Of system calls: the last ones are the daemon's own daily bread.
PROFILE = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
    {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28},
    {"names": ["accept4", "epoll_wait", "epoll_pwait", "no_such_call"],
     "action": "SCMP_ACT_KILL_PROCESS"}]}
CAPS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
KEPT = {0, 1, 3, 5, 6, 7, 8}  # CHOWN DAC_OVERRIDE FOWNER KILL SETGID SETUID SETPCAP


def result(nook, script, **fields):
    """Exit code and output of a shell command of the sandbox user."""
    done = nook.exec(["sh", "-c", script], **fields)
    return done["exit_code"], done["stdout"]


def as_second_uid(argv):
    """As a uid that is neither root's nor the sandbox user's: the exit status."""
    uid = harness.USER + 1

    def become():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return subprocess.run(argv, preexec_fn=become, capture_output=True, check=False, timeout=60,
                          cwd="/")


def test_CVE_2024_21626_a_command_has_its_three_descriptors_and_no_other(nook):
    def one(_):
        return result(nook, "for i in $(seq 0 99); do [ -h /proc/$$/fd/$i ] && echo $i; done")[1]
    with ThreadPoolExecutor(16) as pool:
        seen = set(pool.map(one, range(scaled(200, 16))))
    assert seen == {"0\n1\n2\n"}


@pytest.mark.parametrize("fd", range(3, 12))
def test_CVE_2024_21626_no_descriptor_of_the_daemon_is_a_working_directory(nook, fd):
    response = nook.post("/v1/exec", {"command": ["pwd"], "cwd": f"/proc/self/fd/{fd}"})
    assert response.status == 400


@needs_root
def test_CVE_2019_5736_the_binary_cannot_be_written_from_inside(nook):
    before = harness.BINARY.read_bytes()
    code, _ = result(nook, f"echo x >> /proc/{nook.pid}/exe || echo x >> {harness.BINARY}")
    assert code != 0 and harness.BINARY.read_bytes() == before


@needs_root
@pytest.mark.parametrize("what", ["environ", "mem", "maps", "fd", "fd/0", "cwd", "exe", "root"])
def test_CVE_2016_9962_nothing_of_the_daemon_in_proc_opens_for_the_code_inside(start_nook, what):
    nook = start_nook(tcp=True, token=False, env={"NOOKD_TOKEN": SECRET})
    nook.token = SECRET
    path = f"/proc/{nook.pid}/{what}"
    look = ["ls", path] if what == "fd" else ["readlink", path] if what in ("cwd", "exe", "root") \
        else ["head", "-c", "1", path]
    assert nook.exec(look)["exit_code"] != 0
    assert as_second_uid(look).returncode != 0
    code, _ = result(nook, "head -c 1 /proc/$$/environ >/dev/null")
    assert code == 0  # the look itself works


PTRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(0 if libc.ptrace(16, int(sys.argv[1]), 0, 0) == 0 else 9)
"""


@needs_root
def test_CVE_2016_9962_the_daemon_is_neither_traced_nor_killed_from_inside(nook):
    code = nook.exec(["/usr/bin/python3", "-c", PTRACE, str(nook.pid)])["exit_code"]
    assert code == 9
    assert as_second_uid(["/usr/bin/python3", "-c", PTRACE, str(nook.pid)]).returncode == 9
    assert result(nook, f"kill -0 {nook.pid}")[0] != 0
    assert as_second_uid(["sh", "-c", f"kill -KILL {nook.pid}"]).returncode != 0
    result(nook, "kill -KILL -1")
    assert nook.get("/healthz").status == 200


def test_CVE_2016_9962_the_daemon_is_not_dumpable_and_leaves_no_core(nook):
    assert status_field(nook.pid, "CoreDumping") == "0"
    limits = open(f"/proc/{nook.pid}/limits").read()
    assert [line for line in limits.splitlines() if line.startswith("Max core file size")][0] \
        .split()[4:6] == ["0", "0"]
    if harness.IS_ROOT:
        assert os.stat(f"/proc/{nook.pid}/environ").st_uid == 0


def test_CVE_2022_29162_a_command_has_no_capability_in_any_set(nook):
    _, out = result(nook, "grep ^Cap /proc/self/status")
    found = {line.split(":")[0]: int(line.split()[1], 16) for line in out.splitlines()}
    wanted = CAPS if harness.IS_ROOT else CAPS[:3]
    assert {name: found[name] for name in wanted} == dict.fromkeys(wanted, 0)


@needs_root
def test_CVE_2022_29162_the_daemon_keeps_only_the_capabilities_it_needs(nook):
    for name in ("CapPrm", "CapEff"):
        caps = int(status_field(nook.pid, name), 16)
        assert {bit for bit in range(64) if caps >> bit & 1} <= KEPT
    assert int(status_field(nook.pid, "CapBnd"), 16) == 0


@needs_root
def test_CVE_2021_41091_the_folder_of_the_socket_is_closed_to_others(nook):
    assert stat.S_IMODE(nook.socket.parent.stat().st_mode) == 0o700
    assert result(nook, f"ls {nook.socket.parent}")[0] != 0
    assert as_second_uid(["ls", str(nook.socket.parent)]).returncode != 0


def test_CVE_2022_0492_the_code_inside_mounts_nothing_and_makes_no_namespace(nook):
    for command in ("mount -t tmpfs none /tmp", "unshare --user true", "unshare --mount true"):
        assert result(nook, command)[0] != 0, command


@needs_root
def test_setgroups_order_ids_and_groups_are_those_of_the_user_and_root_is_out_of_reach(nook):
    _, out = result(nook, "grep -E '^(Uid|Gid|Groups)' /proc/self/status")
    lines = {line.split(":")[0]: [int(x) for x in line.split(":")[1].split()]
             for line in out.splitlines()}
    assert lines["Uid"] == lines["Gid"] == [nook.user] * 4
    assert [g for g in lines["Groups"] if g not in nook.marks] == []
    assert nook.exec(["/usr/bin/python3", "-c", "import os; os.setuid(0)"])["exit_code"] != 0


@needs_root
def test_CVE_2021_4034_a_setuid_binary_gives_nothing(nook):
    target = nook.workspace / "as_root"
    shutil.copy(shutil.which("id"), target)
    os.chmod(target, 0o4755)
    code, out = result(nook, "./as_root -u", cwd=str(nook.workspace))
    assert (code, out) == (0, f"{nook.user}\n")


def test_CVE_2023_4911_no_new_privileges_are_set_for_every_command(nook):
    assert result(nook, "grep NoNewPrivs /proc/self/status")[1].split()[1] == "1"


TIOCSTI = """
import fcntl, os, sys
fd = os.open("/dev/tty", os.O_RDWR)
fcntl.ioctl(fd, 0x5412, b"x")
"""


def test_a_seccomp_profile_holds_for_commands_and_leaves_the_daemon_alone(start_nook, tmp_path):
    file = Path("/run") / f"nook-{os.getpid()}.json"
    file.write_text(json.dumps(PROFILE))
    try:
        nook = start_nook("--seccomp", file)
        for _ in range(3):
            done = nook.exec("mkdir d; grep -E 'Seccomp:|NoNewPrivs' /proc/self/status & wait")
            assert "No space left" in done["stderr"]
            assert sorted(done["stdout"].split()) == ["1", "2", "NoNewPrivs:", "Seccomp:"]
        killed = nook.exec(["python3", "-c", "import select; select.epoll().poll(0)"])
        assert killed["signal"] == "SYS"
        assert nook.exec("true")["exit_code"] == 0
        file.chmod(0o666)
        status, said = refuse("--socket", tmp_path / "run" / "sock", "--seccomp", file)
        assert status == 2 and "changed by others" in said
    finally:
        file.unlink()


@pytest.mark.parametrize("text", ["", "{}", '{"defaultAction": "yes"}', None])
def test_a_seccomp_profile_that_cannot_be_read_stops_the_start(tmp_path, text):
    file = tmp_path / "profile"
    if text is not None:
        file.write_text(text)
    status, said = refuse("--socket", tmp_path / "run" / "sock", "--seccomp", file)
    assert status == 2 and "--seccomp" in said and said.count("\n") == 1


def test_CVE_2017_5226_a_command_has_no_terminal_of_the_daemon_and_pushes_no_input(nook):
    assert nook.exec(["sh", "-c", "exec 3</dev/tty"])["exit_code"] != 0
    _, out = result(nook, "cut -d' ' -f 1,6 /proc/self/stat; echo $$")
    own = out.split()
    assert own[1] == own[2]  # the session is the command's own
    assert nook.exec(["/usr/bin/python3", "-c", TIOCSTI])["exit_code"] != 0


def test_CVE_2025_9074_loopback_needs_the_token_from_inside_too(tcp_nook):
    script = ("import http.client,sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]));"
              "c.request('POST', '/v1/exec', '{\"command\": \"id\"}',"
              "{'Content-Type': 'application/json'}); print(c.getresponse().status)")
    out = tcp_nook.exec(["/usr/bin/python3", "-c", script, str(tcp_nook.port)])
    assert out["stdout"] == "401\n", out


@needs_root
def test_CVE_2025_9074_the_socket_does_not_open_for_the_code_inside(nook):
    script = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    argv = ["/usr/bin/python3", "-c", script, str(nook.socket)]
    assert nook.exec(argv)["exit_code"] != 0
    assert as_second_uid(argv).returncode != 0


@pytest.mark.parametrize("name", ["evil.example", "rebound.example:80", "localhost.evil.example"])
def test_CVE_2024_28224_dns_rebinding_hosts_are_refused(tcp_nook, name):
    response = tcp_nook.get("/v1/capabilities", tcp=True, headers={"Host": name})
    assert response.status in (400, 403, 421)


@pytest.mark.parametrize("path", ["/v1/capabilities", "/v1/exec/ws"])
def test_CVE_2023_0957_a_browser_page_is_refused_by_its_origin(tcp_nook, path):
    head = {"Origin": "http://evil.example"}
    if path.endswith("/ws"):
        head |= {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                 "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert tcp_nook.get(path, tcp=True, headers=head).status == 403


def test_CVE_2024_28179_a_websocket_needs_the_token_as_any_request(tcp_nook):
    head = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert tcp_nook.get("/v1/exec/ws", tcp=True, auth=False, headers=head).status == 401


def test_token_theft_the_token_is_in_no_argument_environment_log_or_answer(start_nook):
    nook = start_nook(tcp=True, token=False, env={"NOOKD_TOKEN": SECRET})
    nook.token = SECRET
    nook.get("/v1/nothing", tcp=True)
    nook.get("/v1/capabilities", tcp=True, auth=False,
             headers={"Authorization": f"Bearer {SECRET}x"})
    for file in ("cmdline", "environ"):
        assert SECRET.encode() not in open(f"/proc/{nook.pid}/{file}", "rb").read()
    assert SECRET not in nook.stderr()
    _, out = result(nook, "env; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | "
                    "tr '\\0' '\\n'")
    assert SECRET not in out


def test_same_uid_mode_is_announced(start_nook):
    if harness.IS_ROOT:
        nook = start_nook("--user", "root")
        wait_until(lambda: "commands run as root" in nook.stderr(), 10)
    else:
        nook = start_nook()
        wait_until(lambda: "same_uid" in nook.stderr(), 10)


def test_that_requests_may_ask_for_root_is_announced(start_nook):
    nook = start_nook("--allow-user", "daemon", "--allow-user", "root")
    wait_until(lambda: "requests may run commands as root" in nook.stderr(), 10)


def test_CVE_2003_0063_names_with_escapes_do_not_reach_the_log_raw(nook):
    nook.post("/v1/exec", {"command": ["/no\x1b[31m\nsuch\x9b"]})
    nook.get("/v1/files?path=/%1b%5b31m%0aname")
    text = nook.stderr()
    assert "\x1b" not in text and "\x9b" not in text
    assert all(line.startswith("{") for line in text.splitlines())


def test_pid_reuse_a_process_that_has_ended_is_signalled_no_more(nook):
    id = nook.post("/v1/processes", {"command": ["true"]}).json()["id"]
    assert nook.get(f"/v1/processes/{id}?wait=30").json()["status"] == "exited"
    after = nook.post(f"/v1/processes/{id}/kill", {"signal": "KILL"})
    assert after.status == 200, after
    assert (after.json()["status"], after.json()["reason"]) == ("exited", "exited")


@needs_root
def test_fork_bombs_end_at_the_limit_and_the_daemon_answers(start_nook):
    nook = start_nook("--max-processes", "60")
    bomb = "b() { b | b & }; b; sleep 1000"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(nook.exec, ["bash", "-c", bomb], timeout=2)
        while not running.done():
            assert nook.get("/healthz").status == 200
            time.sleep(0.02)
    wait_until(lambda: not nook.descendants(), 20, "the bomb is gone")


@needs_root
@pytest.mark.parametrize("make", ["file", "folder", "owner"])
def test_E2B_3411_a_binary_that_others_can_change_is_not_started(tmp_path_factory, make):
    folder = tmp_path_factory.mktemp("bin")
    binary = folder / "nookd"
    shutil.copy(harness.BINARY, binary)
    argv = [str(binary), "serve", "--socket", str(folder / "run/api.sock"), "--writable",
            str(folder), "--", "true"]
    if make == "file":
        os.chmod(binary, 0o777)
    elif make == "folder":
        os.chmod(folder, 0o777)
    else:
        os.chown(binary, 4321, 4321)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and str(folder) in done.stderr and done.stderr.count("\n") == 1
    os.chown(binary, 0, 0)
    os.chmod(binary, 0o755)
    os.chmod(folder, 0o1777)
    assert subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0


def test_E2B_3411_a_configuration_that_others_can_change_is_not_read(tmp_path):
    file = tmp_path / "nookd.json"
    file.write_text('{"grace": 1}')
    os.chmod(file, 0o666)
    status, said = refuse("--config", str(file))
    assert status == 2 and str(file) in said and said.count("\n") == 1


@needs_root
def test_CVE_2019_14271_no_library_of_the_user_is_loaded_by_the_daemon(nook):
    nook.exec(["true"], env={"LD_PRELOAD": "/workspace/evil.so"})
    maps = open(f"/proc/{nook.pid}/maps").read()
    assert "libnss" not in maps and str(nook.root) not in maps


def test_Daytona_4842_keys_of_the_environment_are_names(nook):
    for key in ("1A", "A B", "A=B", "", "A-B", "\u00e9"):
        assert nook.post("/v1/exec", {"command": "true", "env": {key: "x"}}).status == 400
    assert "NOOKD" not in result(nook, "env")[1]


@pytest.mark.parametrize("path", ["../etc/passwd", "a/../../etc/passwd", "..%2fetc%2fpasswd",
                                  "%2e%2e/etc/passwd", "/etc/passwd", "a%00b"])
def test_CVE_2026_32147_paths_do_not_leave_the_roots(nook, path):
    response = nook.get(f"/v1/files?path={path}")
    assert response.status in (400, 403, 404) and "root:" not in response.body.decode()


@needs_root
def test_sandbox_server_16_links_of_the_user_do_not_lead_the_daemon_out(nook):
    outside = nook.root / "outside"
    outside.mkdir(mode=0o700)
    (outside / "secret").write_text(SECRET)
    (nook.workspace / "control").write_text("inside")
    for name, target in (("file", outside / "secret"), ("folder", outside),
                         ("socket", nook.socket), ("shadow", "/etc/shadow")):
        os.symlink(target, nook.workspace / name)
    for path in ("file", "folder/secret", "socket", "shadow"):
        response = nook.get(f"/v1/files?path={nook.workspace}/{path}")
        assert response.status in (400, 403, 404, 409), path
        assert SECRET not in response.body.decode()
    assert nook.get(f"/v1/files?path={nook.workspace}/control").body == b"inside"


@needs_root
def test_hardlinks_and_special_files_give_nothing_and_block_nobody(nook):
    secret = nook.workspace / "secret"
    secret.write_text(SECRET)
    os.chmod(secret, 0o600)
    os.mkfifo(nook.workspace / "fifo")
    os.mknod(nook.workspace / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    for name in ("secret", "fifo", "device"):
        response = nook.get(f"/v1/files?path={nook.workspace}/{name}")
        assert 400 <= response.status < 500, name
