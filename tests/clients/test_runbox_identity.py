"""The Runbox client on behalf of several identities."""

import io
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from nook import scaled
from runbox import Client, FileUpload, Identity
from test_runbox import client_of, failing

TOKEN = Identity(token="user-42")
SCOPED = Identity(namespace="team-a", principal="user-42")

pytestmark = pytest.mark.root


@pytest.fixture
def nook(start_nook):
    return start_nook(tcp=True, identities=True)


@pytest.fixture(params=[TOKEN, SCOPED], ids=["token", "tenant and user"])
def client(nook, request):
    return client_of(nook, identity=request.param)


def uid_of(client, **kw):
    return client.exec("id -u", **kw)["stdout"]


def test_every_call_acts_in_the_workspace_of_the_identity(client, nook, tmp_path):
    client.upload("a", b"A", directory="out")
    result = client.exec("cat files/in out/a; echo made > tmp/made", stdin="x",
                         files=[FileUpload("in", stream=io.BytesIO(b"in "))])
    assert result["stdout"] == "in A"
    assert {"path": "tmp/made", "size": 5} in result["files"]
    assert [e["path"] for e in client.list("out")] == ["out/a"]
    assert b"".join(client.iter_path("out/a", range_header="bytes=0-0")) == b"A"
    client.download_path("tmp/made", tmp_path / "made")
    assert (tmp_path / "made").read_text() == "made\n"
    with tarfile.open(fileobj=io.BytesIO(b"".join(client.iter_archive(["out", "tmp/made"])))) as tar:
        assert {m.name for m in tar if m.isfile()} == {"out/a", "tmp/made"}
    assert os.listdir(nook.workspace) == []


def test_an_identity_is_bound_once_or_given_to_a_call(nook):
    bound, free = client_of(nook, identity=SCOPED), client_of(nook)
    uids = {uid_of(bound), uid_of(bound, identity=TOKEN), uid_of(free)}
    assert len(uids) == 3
    assert uid_of(free, identity=SCOPED) == uid_of(bound)
    free.upload("mine", b"1", identity=TOKEN)
    assert [e["name"] for e in free.list("files", identity=TOKEN)] == ["mine"]
    assert bound.list("files") == []


def test_another_ones_path_is_missing(nook):
    client = client_of(nook, identity=TOKEN)
    client.upload("secret", b"1")
    for call in (client.open_path, client.iter_path, client.list):
        error = failing(call, "files/secret", identity=SCOPED)
        missing = failing(call, "files/none", identity=SCOPED)
        assert (error.status, error.code) == (missing.status, missing.code) == (404, "not_found")
    assert failing(client.iter_archive, ["files/secret"], identity=SCOPED).status == 404


@pytest.mark.parametrize("wrong", [
    Identity(token="a", namespace="b", principal="c"), Identity(namespace="b"),
    Identity(principal="c"), Identity(token="a", principal="c"), Identity(token=""),
    Identity(token="x" * 257)])
def test_what_is_not_exactly_one_form_is_refused_by_the_runner(nook, wrong):
    client = client_of(nook, identity=wrong)
    for call in (lambda: client.exec("true"), lambda: client.list(),
                 lambda: client.upload("f", b""), client.delete_workspace):
        error = failing(call)
        assert (error.status, error.code) == (400, "bad_identity")


def test_emptying_a_workspace_keeps_the_uid(client):
    before = uid_of(client)
    client.upload("f", b"1")
    client.delete_workspace()
    assert [e["path"] for e in client.list(recursive=True)] == ["files", "out", "tmp"]
    assert uid_of(client) == before


def test_health_and_limits_are_told_to_everybody(client):
    assert client.ready()["status"] == client.health()["status"] == "ok"
    assert client.capabilities()["features"]["identities"] is True
    assert "nook_build_info" in client.metrics()
    assert client.wait_ready(timeout=30)


def test_one_client_serves_many_identities_at_once(nook):
    client = Client(f"http://127.0.0.1:{nook.port}", api_key=nook.token)

    def live(n):
        identity = Identity(namespace=f"team-{n % 3}", principal=f"user-{n}")
        client.upload("mine", str(n).encode(), identity=identity)
        result = client.exec("cat files/mine; echo out > out/f; ls out", identity=identity)
        return result["stdout"] == f"{n}f\n", uid_of(client, identity=identity)

    count = scaled(60, 12)
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(live, range(count)))
    assert all(right for right, _ in said) and len({uid for _, uid in said}) == count
