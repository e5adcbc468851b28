"""The static binary itself: one file, small, the same whoever builds it, and told what it is made of."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from place import BINARY, interpreter_of
from nook import ROOT, SCALE
from wire import PATIENCE

MAX_BYTES = 2_250_000
BUILD = BINARY.parent

pytestmark = [
    pytest.mark.place,
    pytest.mark.skipif(not (BUILD / "nookd.map").exists(), reason=f"{BINARY} is no static build"),
]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sections_of(data):
    table, size, count, names = struct.unpack_from("<Q10xHHH", data, 40)
    heads = [struct.unpack_from("<IIQQQQ", data, table + n * size) for n in range(count)]
    text = data[heads[names][4]:heads[names][4] + heads[names][5]]
    return {text[h[0]:text.index(b"\0", h[0])].decode() for h in heads}


def build_in(folder, preset="static", wait=1200):
    """Another build of the same sources, without a compiler cache."""
    env = {**os.environ, "CCACHE_DISABLE": "1"}
    env.pop("CMAKE_C_COMPILER_LAUNCHER", None)
    for command in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env,
                              timeout=wait * PATIENCE, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder / "build" / preset / "nookd"


def copy_of_the_sources(folder):
    for name in ("agent", "container"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "build").mkdir()
    (folder / "build/deps").symlink_to((ROOT / "build/deps").resolve())


def test_it_is_one_stripped_file_of_bounded_size():
    data = BINARY.read_bytes()
    print(f"{len(data)} bytes")
    assert not interpreter_of(BINARY)
    assert ".symtab" not in sections_of(data)
    assert len(data) <= MAX_BYTES


def test_it_holds_no_path_of_the_machine_that_built_it():
    data = BINARY.read_bytes()
    for path in {str(ROOT), str((ROOT / "build/deps").resolve()), os.path.expanduser("~") + "/"}:
        assert path.encode() not in data, path


@pytest.mark.timeout(1500)
def test_a_build_in_another_folder_is_the_same_to_the_byte(tmp_path):
    folder = tmp_path / "elsewhere/nook"
    folder.mkdir(parents=True)
    copy_of_the_sources(folder)
    assert sha256(build_in(folder)) == sha256(BINARY)


def test_the_sbom_names_all_that_was_linked():
    told = subprocess.run([sys.executable, ROOT / "container/sbom.py", BUILD, ROOT / "build/deps"],
                          capture_output=True, text=True, check=True).stdout
    sbom = json.loads(told)
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.5")
    assert sbom["metadata"]["component"]["hashes"][0]["content"] == sha256(BINARY)
    versions = {part["name"]: part["version"] for part in sbom["components"]}
    fetched = dict(line.split() for line in
                   (ROOT / "build/deps/static/versions").read_text().splitlines())
    assert set(fetched) | {"llhttp"} <= set(versions)
    assert {name: versions[name] for name in fetched} == fetched
    assert any(name.startswith("libc6") for name in versions)
    assert all(part["licenses"] and part["purl"] for part in sbom["components"])
    assert set(sbom["dependencies"][0]["dependsOn"]) == {p["bom-ref"] for p in sbom["components"]}


def test_an_image_of_it_is_the_same_twice(tmp_path):
    root = tmp_path / "root"
    (root / "sbin").mkdir(parents=True)
    shutil.copy(BINARY, root / "sbin/nookd")
    made = []
    for name in ("one.tar", "two.tar"):
        made.append(tmp_path / name)
        subprocess.run([sys.executable, ROOT / "container/image.py", root, made[-1],
                        "localhost/nookd:1"], check=True)
    print(f"image of the binary alone: {made[0].stat().st_size} bytes")
    assert sha256(made[0]) == sha256(made[1])
    with tarfile.open(made[0]) as image:
        for member in image:
            if member.name.startswith("blobs/sha256/"):
                data = image.extractfile(member).read()
                assert hashlib.sha256(data).hexdigest() == member.name.rsplit("/", 1)[1]
        index = json.load(image.extractfile("index.json"))
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == "localhost/nookd:1"


@pytest.mark.timeout(1500)
def test_a_build_for_arm64_starts(tmp_path):
    if SCALE < 1:
        pytest.skip("a second build of everything, for runs by hand")
    for tool in ("aarch64-linux-gnu-gcc", "qemu-aarch64"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path / "arm64"
    folder.mkdir()
    copy_of_the_sources(folder)
    binary = build_in(folder, "static-arm64")
    print(f"arm64: {binary.stat().st_size} bytes")
    assert binary.stat().st_size <= MAX_BYTES
    assert struct.unpack_from("<H", binary.read_bytes(), 18)[0] == 183
    for word in ("--version", "--print-routes"):
        ours, theirs = (subprocess.run([*command, word], capture_output=True, check=True).stdout
                        for command in ([BINARY], ["qemu-aarch64", binary]))
        assert ours == theirs
