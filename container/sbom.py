#!/usr/bin/env python3
"""What a static build is made of, as CycloneDX JSON: sbom.py BUILD-FOLDER [FETCHED-FOLDER]

Only what the linker took counts: the archives and start files in the link's map, which the build
leaves as nookd.map. Versions are those of the fetched sources, and of the packages of this system's C
library and compiler. Nothing in it changes between two builds of the same sources.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

# name of the archive: (source package, licence)
FETCHED = {
    "dep_uv": ("libuv1", "MIT"),
    "dep_cjson": ("cjson", "MIT"),
    "dep_seccomp": ("libseccomp", "LGPL-2.1-only"),
    "dep_archive": ("libarchive", "BSD-2-Clause"),
    "dep_zlib": ("zlib", "Zlib"),
    "dep_zstd": ("libzstd", "BSD-3-Clause"),
    "dep_lzma": ("xz-utils", "LicenseRef-public-domain"),
}
SYSTEM = {"c": "LGPL-2.1-or-later", "m": "LGPL-2.1-or-later",
          "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
          "gcc_eh": "GPL-3.0-or-later WITH GCC-exception-3.1"}


def linked(build):
    """Archives that gave at least one member: {stem: path}."""
    text = (build / "nookd.map").read_text(errors="replace")
    included = text[:text.index("\nDiscarded input sections")]
    found = {}
    for path in re.findall(r"^(\S+\.a)\(", included, re.M):
        found[re.sub(r"^lib|-[0-9.]+$", "", Path(path).stem)] = path
    return found


def package_of(path):
    """(package, version) of a file of this system."""
    out = subprocess.run(["dpkg", "-S", str(Path(path).resolve())], capture_output=True, text=True,
                         check=True).stdout
    package = out.split(": ")[0].split(",")[0]
    version = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True,
                             text=True, check=True).stdout
    return package.split(":")[0], version


def component(name, version, licence, purl):
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [{"expression": licence}] if " " in licence or "LicenseRef" in licence
            else [{"license": {"id": licence}}]}


def components(build, fetched):
    versions = dict(line.split() for line in (fetched / "static/versions").read_text().splitlines())
    out = {}
    for stem, path in sorted(linked(build).items()):
        if stem in FETCHED:
            name, licence = FETCHED[stem]
            purl = f"pkg:deb/debian/{name}@{versions[name]}?arch=source"
            out[name] = component(name, versions[name], licence, purl)
        elif stem == "nook_llhttp":
            folder = next(fetched.glob("llhttp-*"))
            version = folder.name.split("-")[1]
            out["llhttp"] = component("llhttp", version, "MIT", f"pkg:generic/llhttp@{version}")
        elif stem in SYSTEM:
            name, version = package_of(path)
            out[name] = component(name, version, SYSTEM[stem], f"pkg:deb/debian/{name}@{version}")
        elif not stem.startswith("nook_"):
            raise SystemExit(f"sbom: the link took {path}, which no table knows")
    return [out[name] for name in sorted(out)]


def main():
    build = Path(sys.argv[1])
    fetched = Path(sys.argv[2] if len(sys.argv) > 2 else "build/deps")
    binary = (build / "nookd").read_bytes()
    version = re.search(r"CMAKE_PROJECT_VERSION:STATIC=(\S+)",
                        (build / "CMakeCache.txt").read_text()).group(1)
    parts = components(build, fetched)
    ref = f"pkg:generic/nookd@{version}"
    json.dump({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {
            "type": "application", "bom-ref": ref, "name": "nookd", "version": version,
            "purl": ref, "licenses": [{"license": {"id": "MIT"}}],
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(binary).hexdigest()}]}},
        "components": parts,
        "dependencies": [{"ref": ref, "dependsOn": [part["bom-ref"] for part in parts]}],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
