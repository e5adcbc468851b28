"""Every example in proto/examples is used, and is what its schema says."""

import pytest

import spec


def walk(node):
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def examples():
    """(file, operation, media type, schema) of each example that openapi.yaml names."""
    document = spec.load("openapi.yaml")
    nodes = [(op["operationId"], op) for _, _, op in spec.operations()]
    for operation, top in [*nodes, (None, document["components"])]:
        for node in walk(top):
            for media, content in node.get("content", {}).items() if "content" in node else ():
                for one in content.get("examples", {}).values():
                    yield one["externalValue"], operation, media, content["schema"]


ALL = sorted(examples(), key=lambda e: e[0])


def test_every_file_is_named_by_an_operation():
    on_disk = {f"examples/{p.name}" for p in (spec.PROTO / "examples").iterdir()}
    assert on_disk == {name for name, *_ in ALL}


@pytest.mark.parametrize(("name", "operation", "media", "schema"), ALL, ids=[e[0] for e in ALL])
def test_an_example_is_what_its_schema_says(name, operation, media, schema):
    if media == "text/event-stream":
        events = spec.parse_sse((spec.PROTO / name).read_text())
        spec.check_stream(operation, [(event, data) for event, _, data in events])
    elif media == "application/x-ndjson":
        spec.check_session(operation, spec.session_example(name.removeprefix("examples/")))
    else:
        spec.validate(schema, spec.example(name.removeprefix("examples/")))


def test_schemas_are_themselves_valid():
    from jsonschema import Draft202012Validator
    for schema in spec.load("openapi.yaml")["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for _, _, _, schema in ALL:
        Draft202012Validator.check_schema(schema)
    for schema in spec.load("events.yaml")["events"].values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere():
    for node in walk(spec.load("openapi.yaml")):
        if isinstance(node.get("$ref"), str):
            assert spec.resolve(node) is not None
