"""The error codes of the source, the table of problem.c and proto/openapi.yaml are one list."""

import re

import spec


def codes_of_source():
    text = (spec.TOP / "agent" / "base" / "err.h").read_text()
    body = re.search(r"enum nk_code \{(.*?)\};", text, re.S).group(1)
    names = re.findall(r"\bNK_([A-Z_]+)\b", body)
    return [n.lower() for n in names if n not in ("OK", "CODE_COUNT")]


def table_of_problem():
    text = (spec.TOP / "agent" / "api" / "problem.c").read_text()
    rows = re.findall(r'\[NK_([A-Z_]+)\] = \{(\d+), "([a-z_]+)"', text)
    return {code.lower(): (int(status), name) for code, status, name in rows if code != "OK"}


def test_every_code_of_the_source_has_a_row_and_its_own_name():
    table = table_of_problem()
    assert sorted(table) == sorted(codes_of_source())
    assert {code: name for code, (_, name) in table.items()} == {code: code for code in table}


def test_the_enum_of_the_contract_is_the_table():
    enum = spec.load("openapi.yaml")["components"]["schemas"]["ErrorCode"]
    assert enum["enum"] == codes_of_source()
    assert enum["x-nook-status"] == {c: status for c, (status, _) in table_of_problem().items()}


def test_stages_of_the_contract_are_the_steps_of_a_start():
    body = spec.load("openapi.yaml")["components"]["schemas"]["ErrorBody"]
    text = (spec.TOP / "agent" / "process" / "spawn.h").read_text()
    steps = [s.lower() for s in re.findall(r"\bNK_STEP_([A-Z]+)\b", text)]
    steps = [s for s in steps if s not in ("NONE", "none", "count")]
    assert [s for s in body["properties"]["stage"]["enum"] if s] == steps
