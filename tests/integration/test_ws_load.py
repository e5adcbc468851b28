"""Sessions under load: back-pressure both ways, cuts at any byte, many short commands."""

import base64
import hashlib
import json
import os
import random
import threading
import time

import pytest

import wire
from nook import is_sanitized, scaled
from test_processes import lives, show
from wire import wait_until
from ws_client import BINARY, TEXT, attach, frame, session

MIB = 1 << 20


def blob(size, seed=1):
    return random.Random(seed).randbytes(size)


def test_a_paste_that_nobody_reads_grows_nothing_and_stops_nobody(nook):
    """10 MB for a program that does not read: the socket fills, the daemon does not."""
    data = blob(10 * MIB)
    with session(nook, "sleep 1000", binary=True) as s:
        s.open()
        before = nook.rss()
        sent = 0
        pieces = b"".join(frame(BINARY, data[at:at + 65536]) for at in range(0, len(data), 65536))
        idle = 0
        while sent < len(pieces) and idle < 50:
            n = s.conn.send_some(pieces[sent:sent + MIB])
            sent += n
            idle = 0 if n else idle + 1
            if not n:
                assert nook.get("/healthz").status == 200
        assert sent < len(pieces), "all of it was taken"
        assert nook.exec("echo others")["stdout"] == "others\n"
        if not is_sanitized():
            assert nook.rss() - before < 4 * MIB
        pid = s.first["pid"]
    wait_until(lambda: not lives(pid), what="the client is gone, also while it is not read")


def test_a_paste_arrives_whole_once_the_program_reads(nook):
    data = blob(scaled(10 * MIB, MIB))
    os.mkfifo(nook.workspace / "go")
    os.chmod(nook.workspace / "go", 0o666)
    with session(nook, "read x < go; sha256sum", cwd=str(nook.workspace)) as s:
        s.open()

        def paste():
            for at in range(0, len(data), 100_000):
                s.send(data[at:at + 100_000])
            s.say("close_stdin")
        sender = threading.Thread(target=paste)
        sender.start()
        with open(nook.workspace / "go", "w") as f:
            f.write("\n")
        end = s.finish()
        sender.join()
        assert end["exit_code"] == 0
        assert s.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_a_reader_that_stops_stops_the_command_and_loses_nothing(nook):
    size = scaled(20 * MIB, 4 * MIB)
    with session(nook, ["head", "-c", str(size), "/dev/zero"], binary=True) as s:
        id = s.open()["id"]
        wait_until(lambda: written_settles(nook, id), 20, "it is stopped")
        held = show(nook, id)["stdout_size"]
        assert held < size, "what is not read is not written either"
        assert s.finish()["exit_code"] == 0
        assert s.stdout == bytes(size)


def written_settles(nook, id):
    before = show(nook, id)["stdout_size"]
    time.sleep(0.1)  # two looks at a figure that must not move
    return 0 < before == show(nook, id)["stdout_size"]


@pytest.mark.parametrize("how", ["signal", "kill", "stdin"])
def test_ctrl_c_is_not_behind_the_output(tcp_nook, how):
    """`yes` to a reader of 100 KB/s: the interrupt does not wait for what is queued."""
    with session(tcp_nook, ["yes"], tcp=True, tty=how == "stdin", binary=True) as s:
        pid = s.open()["pid"]
        for _ in range(3):
            assert s.conn.recv(10_000)
            time.sleep(0.1)  # the throttle
        if how == "stdin":
            s.send(b"\x03")
        elif how == "kill":
            s.say("kill")
        else:
            s.say("signal", signal="INT")
        end = wire.deadline(5)
        while lives(pid):
            assert time.monotonic() < end, "it waited behind the output"
            s.conn.recv(1000)
            time.sleep(0.01)


@pytest.mark.parametrize("kind", ["ws", "binary", "tty", "pipes"])
def test_many_short_commands_each_have_one_end(nook, kind):
    """Complete output, exactly one closing message, close 1000."""
    for i in range(scaled(10_000, 50)):
        if kind == "pipes":
            result = nook.exec(["echo", str(i)])
            assert (result["exit_code"], result["stdout"]) == (0, f"{i}\n")
            continue
        with session(nook, ["echo", str(i)], tty=kind == "tty", binary=kind == "binary") as s:
            end = s.finish()
            assert (end["type"], end["exit_code"], s.code) == ("exit", 0, 1000)
            assert s.stdout == (f"{i}\r\n" if kind == "tty" else f"{i}\n").encode()
            assert s.others == [end]
    wait_until(lambda: nook.children() == [])


STEP = 256 * 1024  # written for each line that is read: less than the ring holds


def test_output_cut_anywhere_is_resumed_byte_for_byte(nook):
    """The connection breaks at random points; a viewer from the last offset gets exactly the rest."""
    size = scaled(100 * MIB, 2 * MIB) // STEP * STEP
    cuts = scaled(1000, 20)
    dice = random.Random(7)
    source = nook.workspace / "source"
    source.write_bytes(blob(size, 7))
    command = f"exec 3<source; while read x; do dd bs={STEP} count=1 <&3 2>/dev/null; done"
    with session(nook, command, cwd=str(nook.workspace), detach=True) as s:
        id = s.open()["id"]
    digest, seen, asked = hashlib.sha256(), 0, 0
    while seen < size:
        with attach(nook, id, since=seen, binary="true") as viewer:
            target = min(size, seen + dice.randrange(size // cuts * 2) + 1)
            while seen < target:
                if seen == asked:
                    viewer.send(b"\n")
                    asked += STEP
                message = viewer.take()
                digest.update(message["bytes"])
                seen = viewer.offset
            assert not viewer.gaps
            # Now and then the cut comes in the middle of what is being sent.
            if dice.random() < 0.5 and seen < asked:
                viewer.conn.read_exactly(dice.randrange(1, 64))
    assert digest.digest() == hashlib.sha256(source.read_bytes()).digest()


def test_input_cut_anywhere_is_resumed_byte_for_byte(nook):
    """What was not acknowledged is sent again; the program gets every byte once."""
    size = scaled(100 * MIB, 2 * MIB)
    cuts = scaled(1000, 20)
    dice = random.Random(8)
    data = blob(size, 8)
    with session(nook, "sha256sum; cat", detach=True) as s:
        id = s.open()["id"]
    acked = 0
    while acked < size:
        with attach(nook, id) as viewer:
            assert viewer.first["stdin_offset"] >= acked
            acked = viewer.first["stdin_offset"]
            acked = send_some(viewer, data, acked, dice.randrange(size // cuts * 2) + 1, dice)
    with attach(nook, id) as viewer:
        assert viewer.first["stdin_offset"] == size
        viewer.say("close_stdin")
        assert viewer.finish()["exit_code"] == 0
        assert viewer.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


def send_some(s, data, at, target, dice):
    """Sends on from `at` in messages, cuts the last of them anywhere; what was acknowledged."""
    end = min(len(data), at + target)
    s.acked = at
    while at < end:
        piece = data[at:at + dice.randrange(1, 60_000)]
        words = json.dumps({"type": "stdin", "base64": base64.b64encode(piece).decode(),
                            "offset": at}).encode()
        bytes_ = frame(TEXT, words)
        at += len(piece)
        if at >= end and dice.random() < 0.8:
            s.conn.send(bytes_[:dice.randrange(len(bytes_))])
            break
        s.conn.send(bytes_)
        while s.conn._ready(0) or s.conn.buffer:
            s.take()
    s.conn.close()
    return s.acked
