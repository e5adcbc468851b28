"""A package index on disk, made of what is installed and of the two clients; no network."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LEFT_OUT = {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"}


def _tag(dist):
    """The file name's tag, of the wheel's own tags."""
    tags = re.findall(r"^Tag: (\S+)$", dist.read_text("WHEEL"), re.M)
    return "-".join(".".join(sorted(set(part))) for part in zip(*(t.split("-") for t in tags)))


def _repack(name, folder):
    """An installed distribution as the wheel that it came from."""
    dist = importlib.metadata.distribution(name)
    stem = f"{canonicalize_name(dist.name).replace('-', '_')}-{dist.version}"
    names = [file for file in dist.files if ".." not in file.parts and file.suffix != ".pyc"
             and file.name not in LEFT_OUT]
    info = next(file.parts[0] for file in names if file.parts[0].endswith(".dist-info"))
    with zipfile.ZipFile(folder / f"{stem}-{_tag(dist)}.whl", "w") as wheel:
        for file in names:
            wheel.write(dist.locate_file(file), str(file))
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in names))


def _closure(name, found):
    """The distribution and all that it needs here."""
    if canonicalize_name(name) in found:
        return found
    found.add(canonicalize_name(name))
    for text in importlib.metadata.requires(name) or ():
        needed = Requirement(text)
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            _closure(needed.name, found)
    return found


def _build(project, folder, scratch):
    """The wheel of one of the clients; its source folder stays as it is."""
    source = scratch / project.name
    shutil.copytree(project, source, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
                    "--no-build-isolation", "--wheel-dir", folder, source], check=True)


def make_module(name, folder):
    """A wheel of a package that has nothing in it."""
    with zipfile.ZipFile(folder / f"{name}-9.9-py3-none-any.whl", "w") as wheel:
        info = f"{name}-9.9.dist-info"
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                                        "Root-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n")


def make_index(folder, installed=(), projects=()):
    """Wheels of installed distributions with all they need, and of source folders: an index."""
    wheels = Path(folder) / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    needed = set()
    for name in installed:
        _closure(name, needed)
    for name in needed:
        _repack(name, wheels)
    for project in projects:
        _build(project, wheels, Path(folder) / "scratch")
    return publish(folder)


def publish(folder):
    """Pages for the wheels of a folder; the index's address."""
    for wheel in sorted((Path(folder) / "wheels").iterdir()):
        page = Path(folder) / "simple" / canonicalize_name(wheel.name.split("-")[0])
        page.mkdir(parents=True, exist_ok=True)
        with open(page / "index.html", "a") as file:
            file.write(f'<a href="../../wheels/{wheel.name}">{wheel.name}</a>\n')
    return (Path(folder) / "simple").as_uri()


def make_venv(folder, index):
    """A new environment; the variables under which `pip` installs into it from the index."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = Path(folder) / "bin/pip"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {folder}/bin/python "$@"\n')
    pip.chmod(0o755)
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder),
            "PIP_INDEX_URL": index, "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_COMPILE": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
