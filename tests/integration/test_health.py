"""Health, readiness, capabilities, metrics."""

import json
import re

import pytest

from wire import wait_until

MECHANISMS = {"openat2", "close_range", "pidfd", "subreaper", "cgroup", "landlock", "seccomp",
              "uid_drop", "kill_tree"}


def metrics(nook):
    values = {}
    for line in nook.get("/metrics").text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    return values


def test_health_says_who_answers(nook):
    response = nook.get("/healthz")
    body = response.json()
    assert response.status == 200
    assert body["status"] == "ok"
    assert re.fullmatch(r"\d+\.\d+\.\d+", body["version"])
    assert body["instance"] == response.header("X-Nook-Instance")
    assert body["uptime_ms"] >= 0
    later = nook.get("/healthz").json()
    assert later["uptime_ms"] >= body["uptime_ms"]
    assert later["instance"] == body["instance"]


def test_the_instance_is_new_at_each_start(start_nook):
    one, two = start_nook(), start_nook()
    assert one.get("/healthz").json()["instance"] != two.get("/healthz").json()["instance"]


def test_head_is_get_without_a_body(nook):
    for path in ("/healthz", "/readyz", "/metrics", "/v1/capabilities"):
        response = nook.request("HEAD", path)
        assert (response.status, response.body) == (200, b"")


def test_readiness_has_the_form_of_health(nook):
    assert nook.get("/readyz").json().keys() == nook.get("/healthz").json().keys()


def test_capabilities_tell_what_works_and_why_not(nook):
    body = nook.get("/v1/capabilities").json()
    assert body["api"] == 1
    assert body["version"] == nook.get("/healthz").json()["version"]
    assert set(body["isolation"]) >= MECHANISMS
    for name, state in body["isolation"].items():
        assert set(state) == {"available", "reason"}, name
        assert (state["reason"] is None) == state["available"], name
    assert body["features"] == {"identities": False, "network": False, "pause": True,
                                "contexts": True}


def test_limits_are_those_of_the_options(start_nook):
    nook = start_nook("--max-commands", 7, "--max-output", 4096, "--timeout", "1.5",
                      "--max-timeout", 60)
    limits = nook.get("/v1/capabilities").json()["limits"]
    assert limits["max_commands"] == 7
    assert limits["max_output"] == 4096
    assert limits["timeout_ms"] == 1500
    assert limits["max_timeout_ms"] == 60000
    assert limits["max_upload"] is None


@pytest.mark.parametrize("name", ["openat2", "close_range", "pidfd", "subreaper"])
def test_a_mechanism_left_out_is_told_and_commands_still_run(start_nook, name):
    nook = start_nook("--without", name)
    state = nook.get("/v1/capabilities").json()["isolation"][name]
    assert state["available"] is False
    assert "without" in state["reason"]
    assert nook.exec("echo hi")["stdout"] == "hi\n"


def test_metrics_are_text_that_prometheus_reads(nook):
    response = nook.get("/metrics")
    assert response.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    declared = set()
    for line in response.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge") and name not in declared
            declared.add(name)
        elif not line.startswith("# HELP "):
            match = re.fullmatch(r'(nook_[a-z_]+)(\{[a-z]+="[^"]*"\})? \d+', line)
            assert match and match.group(1) in declared, line
    assert response.text.endswith("\n")


def test_metrics_count_what_happens(nook):
    before = metrics(nook)
    nook.exec("printf 12345")
    nook.exec("sleep 1000", timeout=0.1)
    nook.post("/v1/exec", {"command": ["/nonexistent"]})
    after = metrics(nook)
    gained = {name: after[name] - before[name] for name in after}
    assert gained["nook_command_starts_total"] == 3
    assert gained["nook_command_starts_failed_total"] == 1
    assert gained["nook_commands_exited_total"] == 2
    assert gained["nook_commands_timed_out_total"] == 1
    assert gained["nook_command_output_bytes_total"] == 5
    assert gained['nook_http_answers_total{class="4xx"}'] == 1
    assert gained['nook_http_answers_total{class="2xx"}'] == 3
    assert after["nook_commands_running"] == 0


def test_what_went_well_does_not_fill_the_log(nook):
    for _ in range(3):
        nook.get("/healthz")
    nook.exec("true")
    assert nook.post("/v1/exec", {"command": []}).status == 400

    def lines(operation):
        return [json.loads(line) for line in nook.stderr().splitlines()
                if f'"operation":"{operation}"' in line]

    wait_until(lambda: len(lines("exec")) == 2, 10, "the requests are logged")
    assert [(line["status"], line["level"]) for line in lines("exec")] == \
        [(200, "debug"), (400, "info")]
    assert {line["level"] for line in lines("health")} == {"debug"}
