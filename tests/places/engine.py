"""The images of container/Containerfile, built by podman from this tree and run by it: by hand only.

No registry is asked: the Debian that they start from is made here, by mmdebstrap, of the machine's own
package sources. What the engine keeps is in build/places/engine, so that a second run builds little.
"""

import os
import re
import shutil
import time
from pathlib import Path

import place as places
from nook import ROOT
from place import needs, run

STORE = ROOT / "build/places/engine"
BASE = "localhost/debian:12"
BINARY_IMAGE = "localhost/nookd:1"
SANDBOX_IMAGE = "localhost/sandbox:1"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# A machine may trust more than the world does, and then what is built there has to.
BASE_FILE = f"""FROM {BASE}-bare
COPY {CERTIFICATES.name} {CERTIFICATES}
ENV PIP_CERT={CERTIFICATES}
"""


class Image(places.Place):
    """The sandbox image, started as its own health check and entry point say."""

    def prepare(self):
        needs("podman", "runc", "mmdebstrap")
        STORE.mkdir(parents=True, exist_ok=True)
        if self.ask("image", "exists", BASE, check=False).returncode != 0:
            self.make_base()
        tree = self.copy_of_the_tree()
        for target, name in (("nookd", BINARY_IMAGE), ("sandbox", SANDBOX_IMAGE)):
            began = time.monotonic()
            self.build(tree, "--file", tree / "container/Containerfile", "--target", target,
                       "--build-arg", f"DEBIAN={BASE}", "--tag", name)
            print(f"\n{name}: {self.size(name) / 1e6:.1f} MB, built in {time.monotonic() - began:.0f} s")

    def copy_of_the_tree(self):
        """What is worked on meanwhile is not what is built."""
        for name in ("agent", "container"):
            shutil.copytree(ROOT / name, self.box / "tree" / name)
        for name in ("CMakeLists.txt", "CMakePresets.json", ".dockerignore"):
            shutil.copy2(ROOT / name, self.box / "tree")
        return self.box / "tree"

    def ask(self, *words, **kw):
        return run("podman", "--root", STORE / "store", "--runroot", STORE / "run", "--runtime", "runc",
                   *words, **kw)

    def build(self, context, *words):
        self.ask("build", "--format", "docker", "--pull=never", "--isolation", "chroot", *words, context,
                 wait=3600)

    def make_base(self):
        run("mmdebstrap", "--variant=minbase", "bookworm", self.box / "base.tar", wait=900)
        self.ask("import", self.box / "base.tar", f"{BASE}-bare")
        (self.box / "base.tar").unlink()
        context = self.box / "base"
        context.mkdir()
        (context / "Containerfile").write_text(BASE_FILE)
        (context / CERTIFICATES.name).write_bytes(CERTIFICATES.read_bytes())
        self.build(context, "--tag", BASE)

    def size(self, name):
        return int(self.ask("image", "inspect", "--format", "{{.Size}}", name).stdout)

    def files_of(self, name):
        """The paths of all that is no folder in an image."""
        mounted = Path(self.ask("image", "mount", name).stdout.decode().strip())
        found = [str(path.relative_to(mounted)) for path in mounted.rglob("*") if not path.is_dir()]
        self.ask("image", "unmount", name)
        return found

    def start(self):
        self.ask("run", "--detach", "--name", self.id, "--network", "none", "--ulimit",
                 "nofile=1024:1024", "--ulimit", "nproc=4096:4096", SANDBOX_IMAGE, "--identities")

    def inside(self, *argv, tty=False):
        return ["podman", "--root", str(STORE / "store"), "--runroot", str(STORE / "run"),
                "--runtime", "runc", "exec", "-i", *(["-t"] if tty else []), self.id, *map(str, argv)]

    def stderr(self):
        return self.ask("logs", self.id, check=False).stderr.decode(errors="replace")[-4000:]

    def health(self):
        """What the engine's own health check says."""
        return self.ask("healthcheck", "run", self.id, check=False).returncode

    def end(self):
        self.ask("stop", "--time", "30", self.id)
        told = self.ask("inspect", "--format", "{{.State.ExitCode}}", self.id).stdout
        assert re.fullmatch(rb"0\s*", told), told

    def clear(self):
        if os.path.isdir(STORE / "store"):
            self.ask("rm", "--force", "--ignore", self.id, check=False)
