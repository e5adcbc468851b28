"""exec -i and -t, sh and attach: bytes both ways, the person's terminal, and how it is left."""

import fcntl
import hashlib
import os
import pty
import random
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

import nook as harness
from test_cli import end_of, sleepers, start_cli
from test_processes import lives, show, start
from wire import deadline, wait_until


class Person:
    """A verb of the binary on a terminal that the test holds the other end of."""

    def __init__(self, nook, *args, cols=80, rows=24):
        self.master, slave = pty.openpty()
        self.resize(cols, rows)
        self.slave = os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.proc = subprocess.Popen(
            [str(nook.binary), *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, env={**nook.env, "NOOKD_SOCKET": str(nook.socket)},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, data):
        os.write(self.master, data.encode() if isinstance(data, str) else data)

    def until(self, text, seconds=20):
        """Reads on until `text` was seen; what was read up to its end goes."""
        text = text.encode() if isinstance(text, str) else text
        end = deadline(seconds)
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], \
                f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        before, self.seen = self.seen.split(text, 1)
        return before

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def wait(self, seconds=20):
        code = self.proc.wait(seconds * harness.wire.PATIENCE)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal was not restored"
        return 128 - code if code < 0 else code


def test_input_and_output_are_the_same_bytes_whatever_the_cuts(nook):
    data = random.Random(1).randbytes(harness.scaled(8 << 20, 1 << 20))
    done = nook.cli("exec", "-i", "--", "cat", input=data, wait=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("closed, status, stdout", [(0, 0, b"out"), (1, 125, b""), (2, 0, b"out")])
def test_a_closed_standard_descriptor_is_not_taken_for_another(nook, closed, status, stdout):
    done = nook.cli("exec", "-i", "--", "sh", "-c", "cat; printf out", wait=20,
                    preexec_fn=lambda: os.close(closed), input=None if closed == 0 else b"")
    assert (done.returncode, done.stdout) == (status, stdout)


def test_output_comes_while_input_is_open(nook):
    proc = start_cli(nook, "exec", "-i", "cat", stdin=subprocess.PIPE)
    for line in (b"one\n", b"two\n"):
        proc.stdin.write(line)
        assert proc.stdout.readline() == line
    proc.stdin.close()
    proc.stdin = None
    assert end_of(proc) == (0, b"", b"")


def test_both_outputs_and_the_exit_status_come_back(nook):
    done = nook.cli("exec", "-i", "sh", "-c", "cat; echo bad >&2; exit 9", input=b"good")
    assert (done.returncode, done.stdout, done.stderr) == (9, b"good", b"bad\n")


def test_a_program_that_does_not_read_its_input_ends_all_the_same(nook):
    done = nook.cli("exec", "-i", "true", input=b"x" * (4 << 20))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_session_that_cannot_start_says_so_as_a_shell_does(nook):
    for word, code in (("/nonexistent", 127), ("/etc/passwd", 126)):
        done = nook.cli("exec", "-i", word, input=b"")
        assert done.returncode == code
        assert b"exec_failed" in done.stderr


def test_ctrl_c_on_a_pipe_kills_the_command(nook):
    mark = "77123"
    proc = start_cli(nook, "exec", "-i", "sleep", mark, stdin=subprocess.PIPE)
    wait_until(lambda: sleepers(mark), 20)
    proc.send_signal(signal.SIGINT)
    assert end_of(proc)[0] == 130
    wait_until(lambda: not sleepers(mark), 20)


def test_a_terminal_is_raw_while_the_command_runs_and_restored_after(nook):
    with Person(nook, "exec", "-it", "--", "sh", "-c", "echo ready; read x; echo got $x; exit 5") as p:
        p.until("ready\r\n")
        assert p.is_raw()
        p.type("yes\r")
        p.until("got yes\r\n")
        assert p.wait() == 5


def test_keys_that_mean_something_reach_the_command(nook):
    """Ctrl-C, and a NUL, are bytes here; the terminal inside makes of them what it makes."""
    with Person(nook, "exec", "-it", "--", "sh", "-c",
                "trap 'echo caught' INT; echo ready; sleep 77111; stty raw -echo; echo raw; "
                "od -An -tx1 -N4") as p:
        p.until("ready\r\n")
        wait_until(lambda: sleepers("77111"), 20)
        p.type(b"\x03")
        p.until("caught")
        p.until("raw")
        p.type(b"\x00\x03\x1a\xff")
        p.until("00 03 1a ff")
        assert p.wait() == 0


def test_the_window_is_that_of_the_person_and_follows_it(nook):
    with Person(nook, "exec", "-it", "--", "sh", "-c",
                "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.1; done",
                cols=101, rows=33) as p:
        p.until("33 101\r\n")
        p.resize(132, 43)
        p.until("43 132\r\n")
        assert p.wait() == 0


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_restores_the_terminal_and_kills_the_command(nook, signo):
    mark = f"77{200 + signo}"
    with Person(nook, "exec", "-it", "--", "sh", "-c", f"echo ready; exec sleep {mark}") as p:
        p.until("ready")
        wait_until(lambda: sleepers(mark), 20)
        assert p.is_raw()
        p.proc.send_signal(signo)
        assert p.wait() == 128 + signo
    wait_until(lambda: not sleepers(mark), 20)


def test_the_daemons_end_restores_the_terminal(start_nook):
    nook = start_nook()
    with Person(nook, "exec", "-it", "--", "sh", "-c", "echo ready; exec sleep 1000") as p:
        p.until("ready")
        nook.signal(signal.SIGKILL)
        p.until("nookd: ")
        assert p.wait() == 125
    nook.kill()
    nook.expect_exit = None


def test_a_shell_is_a_shell(nook):
    with Person(nook, "sh") as p:
        p.type("echo $((6*7)); tty | cut -c-5\r")
        p.until("42\r\n")
        p.until("/dev/")
        p.type("exit 3\r")
        assert p.wait() == 3
    done = nook.cli("sh", input=b"echo piped; exit 4\n")
    assert (done.returncode, done.stdout) == (4, b"piped\n")


def test_attach_shows_what_was_and_what_comes_and_ends_with_the_process(nook):
    p = start(nook, "echo before; cat; exit 6", stdin_open=True, name="watched")
    proc = start_cli(nook, "attach", "watched", stdin=subprocess.PIPE)
    assert proc.stdout.readline() == b"before\n"
    proc.stdin.write(b"typed\n")
    assert proc.stdout.readline() == b"typed\n"
    nook.post(f"/v1/processes/{p['id']}/stdin", {"close": True})
    assert end_of(proc) == (6, b"", b"")
    later = nook.cli("attach", "--since", "7", "watched", input=b"")
    assert (later.returncode, later.stdout) == (6, b"typed\n")


def test_leaving_an_attached_terminal_leaves_the_process_alone(nook):
    p = start(nook, "echo ready; cat", tty=True, cols=80, rows=24)
    with Person(nook, "attach", p["id"], cols=90, rows=30) as person:
        person.until("ready")
        person.type("hello\r")
        person.until("hello\r\nhello\r\n")
        assert (show(nook, p["id"])["status"], person.is_raw()) == ("running", True)
        person.type(b"\x1d")
        assert person.wait() == 0
    assert lives(p["pid"])


def test_the_end_of_a_viewers_input_is_not_that_of_the_process(nook):
    p = start(nook, "cat", stdin_open=True)
    proc = start_cli(nook, "attach", p["id"], stdin=subprocess.PIPE)
    proc.stdin.write(b"a\n")
    proc.stdin.close()
    proc.stdin = None
    assert proc.stdout.readline() == b"a\n"
    nook.post(f"/v1/processes/{p['id']}/stdin", {"text": "b\n"})
    assert proc.stdout.readline() == b"b\n"
    proc.send_signal(signal.SIGTERM)
    assert end_of(proc)[0] == 143
    assert lives(p["pid"])


def test_a_detached_terminal_is_found_again(nook):
    done = nook.cli("exec", "-t", "--detach", "--", "sh", "-c", "tty; read x; echo $x")
    assert done.returncode == 0
    id = done.stdout.decode().strip()
    assert show(nook, id)["tty"]
    with Person(nook, "attach", id) as person:
        person.until("/dev/")
        person.type("again\r")
        person.until("again\r\nagain\r\n")
        assert person.wait() == 0


def test_what_cannot_be_attached_to_is_an_error(nook):
    for args, words in ((["none"], b"not_found"), ([], b"one process"),
                        (["--since", "x", "none"], b"")):
        done = nook.cli("attach", *args, input=b"")
        assert done.returncode == 125
        assert words in done.stderr
