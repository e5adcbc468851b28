#!/usr/bin/env python3
"""An OCI image of a root folder, without a container engine: image.py ROOT OUT.tar NAME:TAG [WORD…]

The words are the entry point (/sbin/nookd serve). One layer; files keep their modes and owners, times
are zero, so that the same folder gives the same image. `ctr images import`, `podman load` and `skopeo`
take the archive. What a folder of the image holds comes from who calls: container/Containerfile says how
the images of this project are put together.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    tar.addfile(info, io.BytesIO(data))


def layer_of(root):
    """The folder as a tar, names in order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(Path(root).rglob("*")):
            info = tar.gettarinfo(path, arcname=str(path.relative_to(root)))
            info.mtime = 0
            info.uname = info.gname = ""
            if info.isreg():
                with open(path, "rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return out.getvalue()


class Layout:
    """An image layout that is being written into a tar."""

    def __init__(self, tar):
        self.tar = tar

    def blob(self, data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        add(self.tar, f"blobs/sha256/{digest}", data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}",
                "size": len(data), **more}

    def json(self, value, kind, **more):
        return self.blob(json.dumps(value, sort_keys=True).encode(), kind, **more)


def write(root, out, name, entrypoint):
    layer = layer_of(root)
    with tarfile.open(out, "w") as tar:
        layout = Layout(tar)
        machine = os.uname().machine
        config = layout.json({
            "architecture": MACHINES.get(machine, machine), "os": "linux",
            "config": {"Entrypoint": entrypoint,
                       "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"]},
            "rootfs": {"type": "layers",
                       "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        }, "config.v1+json")
        packed = layout.blob(gzip.compress(layer, mtime=0), "layer.v1.tar+gzip")
        manifest = layout.json({"schemaVersion": 2,
                                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": config, "layers": [packed]}, "manifest.v1+json",
                               annotations={"io.containerd.image.name": name,
                                            "org.opencontainers.image.ref.name": name})
        add(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
        add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    write(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:] or ["/sbin/nookd", "serve"])
