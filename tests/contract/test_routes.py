"""`nookd --print-routes` and proto/openapi.yaml are one table, row by row."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import spec

BINARY = Path(os.environ.get("NOOK_BINARY", spec.TOP / "build/dev/nookd"))
FLAGS = ("identity", "while_paused", "while_ending", "touches", "websocket", "keyed")
IDENTITY = ["X-Runbox-Identity", "X-Runbox-Namespace", "X-Runbox-Principal"]
MEDIA = {
    "none": None,
    "json": {"application/json"},
    "json_opt": {"application/json"},
    "exec": {"application/json", "multipart/form-data"},
    "stream": None,  # any
}


def methods_of(row):
    """A row for each method; that of ANY is one operation for each, and demands no body."""
    if row["method"] != "ANY":
        return [{**row, "body_required": row["body"] != "json_opt"}]
    return [{**row, "method": method.upper(), "operation": row["operation"] + method.capitalize(),
             "body_required": False} for method in spec.METHODS]


def table():
    done = subprocess.run([BINARY, "--print-routes"], capture_output=True, check=True, timeout=30)
    return {(row["method"], row["path"]): row
            for one in json.loads(done.stdout) for row in methods_of(one)}


ROUTES = table()
OPERATIONS = {(method, path): op for path, method, op in spec.operations()}


def test_no_row_is_there_twice_and_no_operation_id_either():
    names = [row["operation"] for row in ROUTES.values()]
    assert len(set(names)) == len(names)


def test_both_have_the_same_methods_and_paths():
    assert sorted(ROUTES) == sorted(OPERATIONS)


@pytest.mark.parametrize("key", sorted(set(ROUTES) & set(OPERATIONS)), ids=" ".join)
def test_a_row_is_its_operation(key):
    row, op = ROUTES[key], OPERATIONS[key]
    assert op["operationId"] == row["operation"]
    hints = op["x-nook"]
    assert set(hints) <= {"body", *FLAGS}
    assert hints["body"] == row["body"]
    assert {name: hints.get(name, False) for name in FLAGS} == {name: row[name] for name in FLAGS}
    security = op.get("security", spec.load("openapi.yaml")["security"])
    assert security == {"none": [], "token": [{"token": []}],
                        "ticket": [{"token": []}, {"ticket": []}]}[row["auth"]]


@pytest.mark.parametrize("key", sorted(set(ROUTES) & set(OPERATIONS)), ids=" ".join)
def test_parameters_of_a_row_are_those_of_its_operation(key):
    row, op = ROUTES[key], OPERATIONS[key]
    query = spec.parameters(op, "query")
    assert query == row["query"] + (["token"] if row["auth"] == "ticket" else [])
    in_path = [part[1:-1].removesuffix("...") for part in key[1].split("/") if part[:1] == "{"]
    assert spec.parameters(op, "path") == in_path
    headers = spec.parameters(op, "header")
    assert [h for h in headers if h in IDENTITY] == (IDENTITY if row["identity"] else [])
    assert ("Idempotency-Key" in headers) == row["keyed"]


@pytest.mark.parametrize("key", sorted(set(ROUTES) & set(OPERATIONS)), ids=" ".join)
def test_the_body_of_a_row_is_that_of_its_operation(key):
    row, op = ROUTES[key], OPERATIONS[key]
    body = spec.resolve(op.get("requestBody"))
    assert (body is None) == (row["body"] == "none")
    if body is None:
        return
    assert body.get("required", False) == row["body_required"]
    if MEDIA[row["body"]]:
        assert set(body["content"]) == MEDIA[row["body"]]


@pytest.mark.parametrize("key", sorted(OPERATIONS), ids=" ".join)
def test_an_operation_says_what_it_answers(key):
    responses = OPERATIONS[key]["responses"]
    assert [s for s in responses if str(s)[0] in "123"], "no success"
    assert "default" in responses
    for response in map(spec.resolve, responses.values()):
        assert response["description"]
