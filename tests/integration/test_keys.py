"""Idempotency-Key: what was started under a key is started once."""

import threading

import pytest

from nook import scaled
from test_processes import listed, show, start
from wire import output_of, wait_until

EXEC, STREAM, PROCESSES = "/v1/exec", "/v1/exec/stream", "/v1/processes"


def key(value):
    return [("Idempotency-Key", value)]


def keyed(nook, target, value, command, **kw):
    return nook.post(target, {"command": command, **kw}, headers=key(value), wait=90)


COUNT = "echo x >> count; wc -l < count"


def test_a_repeat_gets_the_first_answer(nook):
    first = keyed(nook, EXEC, "k", COUNT)
    again = keyed(nook, EXEC, "k", COUNT)
    assert first.status == again.status == 200
    assert first.json() == again.json()
    assert keyed(nook, EXEC, "other", COUNT).json()["stdout"].strip() == "2"


def test_a_key_belongs_to_its_route(nook):
    keyed(nook, EXEC, "k", COUNT)
    assert keyed(nook, PROCESSES, "k", COUNT).status == 201
    wait_until(lambda: (nook.workspace / "count").read_text() == "x\nx\n")


def test_another_body_under_the_same_key_is_a_conflict(nook):
    keyed(nook, EXEC, "k", COUNT)
    response = keyed(nook, EXEC, "k", COUNT + " ")
    assert (response.status, response.code) == (409, "conflict")
    assert (nook.workspace / "count").read_text() == "x\n"


@pytest.mark.parametrize("bad", ["x" * 129, "a b", "\x80"])
def test_a_malformed_key_is_refused(nook, bad):
    response = keyed(nook, EXEC, bad, COUNT)
    assert (response.status, response.code) == (400, "bad_request")
    assert not (nook.workspace / "count").exists()


def test_a_repeat_joins_the_one_that_runs(nook):
    command = COUNT + "; while [ ! -e go ]; do sleep 0.01; done; echo done"
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(keyed(nook, EXEC, "k", command)))
               for _ in range(4)]
    for t in threads:
        t.start()
    wait_until(lambda: (nook.workspace / "count").exists())
    (nook.workspace / "go").touch()
    for t in threads:
        t.join(30)
    assert {a.body for a in answers} == {answers[0].body}
    assert answers[0].json()["stdout"] == "1\ndone\n"
    assert len(listed(nook)) == 1


def test_a_stream_is_replayed_from_the_log(nook):
    body = {"command": "echo one; echo two >&2; exit 4"}
    streams = []
    for _ in range(2):
        with nook.stream("POST", STREAM, json=body, headers=key("k")) as stream:
            assert stream.next_event("started").data["offset"] == 0
            streams.append(output_of(stream.events()))
    for out, err, last in streams:
        assert (out, err, last.data["exit_code"]) == (b"one\n", b"two\n", 4)
    assert streams[0][2].data == streams[1][2].data
    assert len(listed(nook)) == 1


def test_a_failed_start_is_remembered_and_a_refusal_is_not(start_nook):
    nook = start_nook("--max-commands", 1)
    for _ in range(2):
        response = keyed(nook, EXEC, "k", ["/nonexistent"])
        assert (response.status, response.code) == (400, "exec_failed")
    busy = start(nook, "sleep 1000")
    assert keyed(nook, EXEC, "later", COUNT).code == "busy"
    nook.request("DELETE", f"/v1/processes/{busy['id']}")
    # forgotten at once, it holds its slot until it has ended
    done = wait_until(lambda: (later := keyed(nook, EXEC, "later", COUNT)).status == 200 and later)
    assert done.json()["stdout"].strip() == "1"
    assert keyed(nook, EXEC, "bad", COUNT, cwd="").status == 400
    assert keyed(nook, EXEC, "bad", COUNT).json()["stdout"].strip() == "2"


def test_the_keyed_command_of_a_cut_connection_goes_on_and_is_found_again(nook):
    command = "echo started; echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo end"
    for target, how in ((EXEC, "plain"), (STREAM, "stream")):
        for name in ("go", "pid"):
            (nook.workspace / name).unlink(missing_ok=True)
        conn = nook.connect()
        conn.send_request("POST", target, json={"command": command}, headers=key(how))
        wait_until(lambda: (nook.workspace / "pid").exists())
        conn.close()
        (nook.workspace / "go").touch()
        wait_until(lambda: not listed(nook, "?running=true"), 20, "it ends by itself")
        if target == EXEC:
            result = keyed(nook, EXEC, how, command).json()
            assert (result["stdout"], result["reason"]) == ("started\nend\n", "exited")
        else:
            with nook.stream("POST", STREAM, json={"command": command},
                             headers=key(how)) as stream:
                out, _, last = output_of(stream.events())
            assert (out, last.data["reason"]) == (b"started\nend\n", "exited")


def test_a_keyed_record_is_outside_the_bound_of_remembered_ones(nook):
    kept = keyed(nook, EXEC, "k", "echo kept").json()
    for _ in range(258):
        nook.exec("true")
    assert keyed(nook, EXEC, "k", "echo kept").json() == kept
    assert show(nook, kept["id"])["exit_code"] == 0
    assert len(listed(nook)) == 257


def test_keys_are_bounded(nook):
    with nook.connect() as conn:
        for i in range(1024):
            response = conn.request("POST", PROCESSES, json={"command": ["true"]},
                                    headers=key(f"k{i}"))
            assert response.status == 201, response
        over = conn.request("POST", PROCESSES, json={"command": ["true"]}, headers=key("over"))
        assert (over.status, over.code) == (503, "overloaded")
        known = conn.request("POST", PROCESSES, json={"command": ["true"]}, headers=key("k7"))
        assert known.status == 201


def test_detached_commands_go_on_without_their_client(nook):
    command = "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo end > out"
    conn = nook.connect()
    conn.send_request("POST", EXEC, json={"command": command, "detach": True})
    wait_until(lambda: (nook.workspace / "pid").exists())
    conn.close()
    (nook.workspace / "go").touch()
    wait_until(lambda: [p["status"] for p in listed(nook)] == ["exited"], 20, "it goes on to its end")
    assert (nook.workspace / "out").exists()
    assert listed(nook)[0]["reason"] == "exited"


@pytest.mark.slow
def test_three_at_once_start_one(nook):
    """Every key sent three times at the same moment: one process each."""
    count = scaled(1000, 60)
    wrong = []

    def send_three(i):
        body = {"command": f"echo x >> marks; echo {i}"}
        conns = [nook.connect(wait=90) for _ in range(3)]
        for conn in conns:
            conn.send_request("POST", EXEC, json=body, headers=key(f"three-{i}"))
        answers = [conn.read_response() for conn in conns]
        for conn in conns:
            conn.close()
        if len({a.body for a in answers}) != 1 or answers[0].json()["stdout"] != f"{i}\n":
            wrong.append(answers)
        other = nook.post(EXEC, {"command": "true"}, headers=key(f"three-{i}"))
        if (other.status, other.code) != (409, "conflict"):
            wrong.append(other)

    def worker(first):
        for i in range(first, count, 8):
            try:
                send_three(i)
            except Exception as e:  # noqa: BLE001 - told in the main thread
                wrong.append(e)

    threads = [threading.Thread(target=worker, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert wrong == []
    assert (nook.workspace / "marks").read_text() == "x\n" * count
