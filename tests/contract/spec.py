"""The contract in proto/, loaded once: operations, schemas, events, and validators for them."""

import json
from functools import lru_cache
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, ValidationError  # noqa: F401
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

TOP = Path(__file__).resolve().parents[2]
PROTO = TOP / "proto"
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")


@lru_cache
def load(name):
    return yaml.safe_load((PROTO / name).read_text())


@lru_cache
def registry():
    names = ("openapi.yaml", "events.yaml", "messages.yaml")
    return Registry().with_resources(
        (name, Resource(contents=load(name), specification=DRAFT202012)) for name in names)


def validator(ref):
    """For a reference like "openapi.yaml#/components/schemas/Result"."""
    return Draft202012Validator({"$ref": ref}, registry=registry(),
                                format_checker=Draft202012Validator.FORMAT_CHECKER)


def validate(schema, value):
    """A schema that stands within openapi.yaml."""
    Draft202012Validator(rebase(schema), registry=registry()).validate(value)


def rebase(node):
    """The same with its local references pointing into openapi.yaml."""
    if isinstance(node, dict):
        return {k: "openapi.yaml" + v if k == "$ref" and v.startswith("#") else rebase(v)
                for k, v in node.items()}
    return [rebase(v) for v in node] if isinstance(node, list) else node


def check(schema, value):
    """Raises where `value` is not what components/schemas/<schema> says."""
    validator(f"openapi.yaml#/components/schemas/{schema}").validate(value)


def check_event(name, value):
    validator(f"events.yaml#/events/{name}").validate(value)


def check_stream(operation, events):
    """`events`: (name, data) in order. Form, order, and every event's schema."""
    form = load("events.yaml")["streams"][operation]
    names = [name for name, _ in events]
    assert names[-1] in form["last"], names[-3:]
    if "first" in form:
        assert names.pop(0) in form["first"]
    assert set(names[:-1]) <= set(form["then"]), sorted(set(names))
    for name, data in events:
        check_event(name, data)


def check_session(operation, messages):
    """`messages`: (who, object) in order. Form, order, and every message's schema."""
    form = load("messages.yaml")["sessions"][operation]
    for who, message in messages:
        validator(f"messages.yaml#/{who}/{message['type']}").validate(message)
    said = {w: [m["type"] for who, m in messages if who == w] for w in ("client", "agent")}
    opening = form.get("client_first", [])
    assert said["client"][:len(opening)] == opening
    assert set(said["client"][len(opening):]) <= set(form["client"])
    assert said["agent"][0] in form["first"]
    assert said["agent"][-1] in form["last"]
    assert set(said["agent"][1:-1]) <= set(form["then"]), said["agent"]


def session_example(name):
    lines = [json.loads(line) for line in (PROTO / "examples" / name).read_text().splitlines()]
    return [next(iter(line.items())) for line in lines]


def operations():
    """(path, method, operation) of all there are."""
    for path, item in load("openapi.yaml")["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method.upper(), item[method]


def resolve(node):
    """What a reference within openapi.yaml points to; anything else is itself."""
    while isinstance(node, dict) and "$ref" in node:
        target = load("openapi.yaml")
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def parameters(operation, place):
    return [p["name"] for p in map(resolve, operation.get("parameters", [])) if p["in"] == place]


def example(name):
    return json.loads((PROTO / "examples" / name).read_text())


def parse_sse(text):
    """(name, id, data) of each event; comments are passed over. The text must be whole events."""
    assert text == "" or text.endswith("\n\n"), "cut off in an event"
    events = []
    for block in text.split("\n\n"):
        fields = {}
        for line in block.split("\n"):
            if line.startswith(":") or not line:
                continue
            name, _, value = line.partition(": ")
            assert name not in fields, f"{name} twice in one event"
            fields[name] = value
        if fields:
            assert {"event", "data"} <= set(fields) <= {"event", "id", "data"}, fields
            at = int(fields["id"]) if "id" in fields else None
            events.append((fields["event"], at, json.loads(fields["data"])))
    return events
