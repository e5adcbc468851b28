"""A machine of its own has control groups of version 2 with their controllers: limits, want of memory,
kill and freeze by the kernel.
"""

import pytest

from wire import wait_until

pytestmark = pytest.mark.place


@pytest.fixture(autouse=True)
def only_with_controllers(place):
    if place.name != "vm":
        pytest.skip(f"{place.name} has the groups of this host")


def test_a_machine_has_groups(place):
    state = place.get("/v1/capabilities").json()["isolation"]["cgroup"]
    assert state == {"available": True, "reason": None}
    p = place.post("/v1/processes", {"command": "sleep 1; cat /proc/self/cgroup"}).json()
    done = place.get(f"/v1/processes/{p['id']}?wait=60", wait=90).json()
    assert done["exit_code"] == 0
    group = place.get(f"/v1/processes/{p['id']}/logs").json()["stdout"].strip()
    assert group.startswith("0::/nookd-") and "/m" in group


def test_a_memory_hog_ends_at_the_limit_of_all_with_its_reason(place):
    limit = 32 << 20
    patched = place.request("PATCH", "/v1/sandbox", json={"limits": {"memory": limit}})
    assert (patched.status, patched.json()["limits"]["memory"]) == (200, limit)
    try:
        for command in (["tail", "/dev/zero"], "tail /dev/zero; exit $?"):
            done = place.exec(command)
            assert (done["reason"], done["exit_code"]) == ("oom", 137), done
        assert place.exec("echo fine")["stdout"] == "fine\n"
    finally:
        place.request("PATCH", "/v1/sandbox", json={"limits": {"memory": None}})


def test_the_limit_of_processes_is_one_of_all_commands(place):
    place.request("PATCH", "/v1/sandbox", json={"limits": {"processes": 20}})
    try:
        done = place.exec("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do"
                          " sleep 1 & done; echo all")
        assert "all" not in done["stdout"] and done["exit_code"] != 0
    finally:
        place.request("PATCH", "/v1/sandbox", json={"limits": {"processes": None}})
    assert place.exec("true & true & true & echo all")["stdout"] == "all\n"


def test_pause_and_kill_are_the_kernels(place):
    command = "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); sleep 0.02; done"
    p = place.post("/v1/processes", {"command": command}).json()
    q = place.post("/v1/processes", {"command": "setsid sleep 1000 & sleep 1000"}).json()
    show = f"/v1/processes/{p['id']}"
    wait_until(lambda: place.get(show).json()["log_end"] > 10, 30)
    assert place.post("/v1/sandbox/pause", wait=60).json()["status"] == "paused"
    stood = place.get(show).json()["log_end"]
    assert place.get(show + "?wait=0.5").json()["log_end"] == stood
    place.post(f"/v1/processes/{q['id']}/kill", {"signal": "KILL"})
    killed = place.get(f"/v1/processes/{q['id']}?wait=30", wait=60).json()
    assert killed["reason"] == "killed"
    assert place.post("/v1/sandbox/resume", wait=60).json()["status"] == "active"
    assert place.get(show + "?wait=60", wait=90).json()["exit_code"] == 0
    out = place.get(show + "/logs").json()["stdout"]
    assert out.split() == [str(i) for i in range(100)]
