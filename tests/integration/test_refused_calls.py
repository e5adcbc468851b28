"""What another kernel or disk refuses: quotas, and calls that are only faster than others."""

import io
import os
import subprocess
import sys
import tarfile

import pytest

import trees
from nook import ROOT
from trees import get, put

REFUSING = ROOT / "tests/integration/refusing.py"


@pytest.fixture
def nook_where(start_nook):
    """nook_where(RULE, …): a daemon to which the kernel refuses that."""
    def start(*rules):
        wrap = [sys.executable, str(REFUSING), *rules, "--"]
        tried = subprocess.run([*wrap, "/bin/true"], capture_output=True, text=True, check=False)
        if tried.returncode == 77:
            pytest.skip(f"no call can be made to fail here: {tried.stderr}")
        assert tried.returncode == 0, tried.stderr
        return start_nook(wrap=wrap)
    return start


def tar_of(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, size in entries:
            info = tarfile.TarInfo(name)
            info.size = size
            t.addfile(info, io.BytesIO(os.urandom(size)))
    return out.getvalue()


def test_a_quota_of_the_disk_is_told_and_leaves_no_half_file(nook_where):
    nook = nook_where("pwrite64[2]>=4097=EDQUOT")
    response = put(nook, "d", tar_of(("first", 1), ("big", 3 << 20), ("last", 1)))
    assert (response.status, response.code) == (409, "quota_exceeded"), response
    assert response.json()["done"]["files"] == 1
    assert os.listdir(nook.workspace / "d") == ["first"]
    assert put(nook, "d", tar_of(("small", 4000))).json()["files"] == 1


def test_a_quota_of_the_disk_ends_an_upload_and_leaves_no_file(nook_where):
    nook = nook_where("write[2]>=4097=EDQUOT")
    response = nook.request("PUT", "/v1/files?path=big", body=bytes(3 << 20))
    assert (response.status, response.code) == (409, "quota_exceeded"), response
    assert nook.request("PUT", "/v1/files?path=small", body=bytes(4000)).status == 201
    assert os.listdir(nook.workspace) == ["small"]


@pytest.mark.parametrize("rules", [
    pytest.param(["splice=EPERM"], id="bytes cannot move by themselves"),
    pytest.param(["splice=ENOSYS"], id="nobody has heard of that"),
    pytest.param(["linkat[4]==0x1000=ENOENT"], id="a name comes by way of /proc"),
    pytest.param(["linkat=EPERM"], id="files cannot get a name later"),
])
def test_archives_go_both_ways_where_the_kernel_can_less(nook_where, rules):
    nook = nook_where(*rules)
    top = nook.workspace / "src"
    (top / "deep" / "er").mkdir(parents=True)
    for i in range(40):
        (top / "deep" / f"f{i}").write_bytes(os.urandom(1000 * i))
    (top / "deep" / "er" / "big").write_bytes(os.urandom(5 << 20))
    trees.own(top, nook.user)
    packed = get(nook, "src/", base="src")
    assert packed.status == 200
    for _ in range(2):  # into nothing, and over what is there
        assert put(nook, "back", packed.body).json()["files"] == 41
        trees.same(trees.describe(top / "deep"), trees.describe(nook.workspace / "back" / "deep"))
