"""A place is somewhere that nookd really runs: a container, a sandboxed kernel, a pod, a machine.

Each has a way to run a program inside (what a control plane calls pod exec), and over `nookd proxy`
run that way, connections: everything of `integration/` that asks a daemon works on a place too.
`PLACES[NAME](NAME)` gives one, or raises Absent with the reason why this machine cannot.
"""

import gzip
import json
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

import wire
from nook import Asker, ROOT, children_of, free_port, proc_stat

BINARY = Path(os.environ.get("NOOK_BINARY", ROOT / "build/static/nookd")).resolve()
APPLETS = ("sh cat ls id ps kill sleep head tail tr true false env seq wc dd stty tty mount echo "
           "printf sort sha256sum readlink mkdir rm touch find grep setsid uname ln").split()
# What pods have by default.
CAPABILITIES = ["CAP_" + name for name in (
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP "
    "SETGID SETPCAP SETUID SYS_CHROOT").split()]
SERVE = ["/sbin/nookd", "serve", "--identities"]
MANIFEST = yaml.safe_load((ROOT / "container/kubernetes/pod-gvisor.yaml").read_text())[
    "spec"]["containers"][0]["securityContext"]


class Absent(Exception):
    """This machine cannot have the place; the reason."""


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Absent(f"{program} is not installed")
    if os.geteuid() != 0:
        raise Absent("needs root")


def run(*argv, check=True, wait=60, **kw):
    done = subprocess.run([str(a) for a in argv], capture_output=True, timeout=wait * wire.PATIENCE,
                          check=False, **kw)
    assert not check or done.returncode == 0, (argv, done.returncode, done.stderr[-2000:])
    return done


def make_root(root, shell=True):
    """A root directory from nothing: the binary, a user, mount points, and busybox for a shell."""
    for name in "bin sbin etc dev proc sys tmp run workspace output home/sandbox".split():
        (root / name).mkdir(parents=True)
    shutil.copy(BINARY, root / "sbin/nookd")
    (root / "sbin/nookd").chmod(0o555)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n"
                                     "sandbox:x:1000:1000::/home/sandbox:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nsandbox:x:1000:\n")
    (root / "tmp").chmod(0o1777)
    for name in ("workspace", "output", "home/sandbox"):
        os.chown(root / name, 1000, 1000)
    if shell:
        busybox = static_busybox()
        shutil.copy(busybox, root / "bin/busybox")
        for applet in APPLETS:
            (root / "bin" / applet).symlink_to("busybox")
    return root


def interpreter_of(path):
    """Whether a program asks for a dynamic linker (its PT_INTERP; 64-bit ELF)."""
    data = Path(path).read_bytes()
    table, size, count = struct.unpack_from("<Q14xHH", data, 32)
    return any(struct.unpack_from("<I", data, table + n * size)[0] == 3 for n in range(count))


def static_busybox():
    for path in ("/bin/busybox", "/usr/bin/busybox"):
        if os.path.exists(path) and not interpreter_of(path):
            return path
    raise Absent("no static busybox is installed")


class Place(Asker):
    """One running nookd in a place. `box` is a folder of its own, which goes with it."""

    pid1 = True           # whether nookd is process 1 there
    gvisor = False
    shell = True          # whether there is a busybox
    cuts = True           # whether a connection ends with the exec that carries it

    def __init__(self, name):
        self.name = name
        self.id = f"nook-{os.getpid()}-{time.monotonic_ns() % 10**9}"
        self.box = Path(tempfile.mkdtemp(prefix="nook-place-"))
        self.box.chmod(0o755)
        self.log = self.box / "log"
        self.links = []
        try:
            self.prepare()
            began = time.monotonic()
            self.start()
            self.wait_answer()
            self.took = time.monotonic() - began
            wire.wait_until(lambda: self.get("/readyz").status == 200, 30, f"{name} is ready")
        except BaseException:
            self.remove()
            raise

    def prepare(self):
        """What takes time and is no part of the start."""

    def start(self):
        raise NotImplementedError

    def inside(self, *argv, tty=False):
        """The arguments that run a program in the place with our standard input and output."""
        raise NotImplementedError

    def end(self):
        """TERM, and what nookd ended with; None where the place does not tell."""
        raise NotImplementedError

    def clear(self):
        """Whatever is left of it goes."""

    def wait_answer(self):
        wire.wait_until(lambda: self.cli("health", check=False).returncode == 0, 60,
                        f"{self.name}: nookd answers; its log: {self.stderr()}")

    def cli(self, *args, check=True, wait=60, **kw):
        """A client verb, run inside."""
        return run(*self.inside("/sbin/nookd", *args), check=check, wait=wait, **kw)

    def connect(self, tcp=None, auth=True, wait=30):
        ours, theirs = socket.socketpair()
        link = subprocess.Popen(self.inside("/sbin/nookd", "proxy"), stdin=theirs, stdout=theirs,
                                stderr=subprocess.DEVNULL, start_new_session=True)
        theirs.close()
        self.links = [one for one in self.links if one.poll() is None] + [link]
        return wire.Connection(ours, wait=wait)

    def cut(self):
        """The exec of the last connection is gone, with what it started on this side."""
        os.killpg(self.links[-1].pid, signal.SIGKILL)

    def reap(self):
        """What a cut exec leaves comes to us, the reaper of the tests: before, no pid namespace ends."""
        for pid in children_of(os.getpid()):
            try:
                if Path(f"/proc/{pid}/comm").read_text() == "nookd\n" and proc_stat(pid)[0] == "Z":
                    os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass  # gone meanwhile

    def stderr(self):
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def remove(self):
        for link in self.links:
            link.kill()
            link.wait()
        self.clear()
        shutil.rmtree(self.box, ignore_errors=True)


class Chroot(Place):
    """Process 1 of namespaces of its own in a bare root directory."""

    def prepare(self):
        needs("unshare", "chroot", "nsenter")
        self.root = make_root(self.box / "root", self.shell)

    def start(self):
        with open(self.log, "wb") as log:
            self.proc = subprocess.Popen(
                ["unshare", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child",
                 "chroot", self.root, *SERVE], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": "/bin:/sbin"})
        self.pid = int(wire.wait_until(self._child, 10, "process 1 starts"))

    def _child(self):
        return Path(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children").read_text().strip()

    def inside(self, *argv, tty=False):
        return ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--root", "--wd=/", *argv]

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        wire.wait_until(self._has_ended, 40, "process 1 ends")
        return self.proc.returncode

    def _has_ended(self):
        self.reap()
        return self.proc.poll() is not None

    def clear(self):
        if not getattr(self, "proc", None) or self.proc.poll() is not None:
            return
        if hasattr(self, "pid"):  # it does not follow unshare: it has changed what it may
            os.kill(self.pid, signal.SIGKILL)
        self.proc.kill()
        self.proc.wait()


class Scratch(Chroot):
    """Nothing there but the binary, a user and folders."""

    shell = False


class Musl(Chroot):
    """Programs there are linked to another C library, as in Alpine; and it is not nookd's matter."""

    def prepare(self):
        needs("musl-gcc")
        super().prepare()
        loader = next(Path("/lib").glob("ld-musl-*.so.1"))
        (self.root / "lib").mkdir()
        shutil.copy(loader.resolve(), self.root / "lib" / loader.name)
        source = self.box / "uname.c"
        source.write_text("#include <stdio.h>\n#include <sys/utsname.h>\n"
                          "int main(void) { struct utsname u; return uname(&u) < 0 || "
                          "puts(u.sysname) < 0; }\n")
        (self.root / "bin/uname").unlink()
        run("musl-gcc", "-o", self.root / "bin/uname", source)


class Bundle(Place):
    """What is common to the OCI runtimes: a bundle, and a runtime's own words."""

    runtime = "runc"

    def prepare(self):
        self.find_runtime()
        self.root = make_root(self.box / "bundle/rootfs")
        config = self.box / "bundle/config.json"
        run("runc", "spec", cwd=config.parent)
        config.write_text(json.dumps(self.adapt(json.loads(config.read_text()))))

    def find_runtime(self):
        needs("runc")

    def adapt(self, spec):
        process = spec["process"]
        process.update(args=SERVE, terminal=False, cwd="/", env=["PATH=/bin:/sbin"],
                       noNewPrivileges=False,
                       capabilities={kind: CAPABILITIES for kind in
                                     ("bounding", "effective", "permitted")},
                       rlimits=[{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}])
        spec["root"] = {"path": "rootfs", "readonly": False}
        linux = spec["linux"]
        linux["namespaces"] = [n for n in linux["namespaces"] if n["type"] != "cgroup"]
        linux["resources"] = {"memory": {"limit": 256 << 20}, "pids": {"limit": 256}}
        linux["cgroupsPath"] = f"/nook-places/{self.id}"
        spec["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
                               "options": ["nosuid", "nodev", "mode=1777", "size=64m"]})
        return spec

    def command(self, *argv):
        return [self.runtime, "--root", str(self.box / "state"), *map(str, argv)]

    def start(self):
        with open(self.log, "wb") as log:
            done = subprocess.run(self.command("run", "--detach", "--bundle", self.box / "bundle",
                                               self.id), stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log, check=False, timeout=60)
        if done.returncode != 0:
            raise Absent(f"{self.runtime} cannot start a container: {self.stderr()[-500:]}")

    def inside(self, *argv, tty=False):
        return self.command("exec", *(["-t"] if tty else []), self.id, *argv)

    def state(self):
        done = run(*self.command("state", self.id), check=False)
        return json.loads(done.stdout)["status"] if done.returncode == 0 else "gone"

    def end(self):
        run(*self.command("kill", self.id, "TERM"))
        try:
            wire.wait_until(self.is_over, 40, "the container ends")
        except AssertionError as late:
            raise AssertionError(f"{late}; its log: {self.stderr()}; inside: {self._inside()}") from None

    def is_over(self):
        self.reap()
        return self.state() in ("stopped", "gone")

    def _inside(self):
        try:
            return run(*self.inside("/bin/ps", "-o", "pid,ppid,stat,args"), check=False, wait=10).stdout
        except subprocess.TimeoutExpired:
            return "nothing can be run there any more"

    def clear(self):
        if not shutil.which(self.runtime):
            return
        try:
            run(*self.command("delete", "--force", self.id), check=False, wait=20)
        except subprocess.TimeoutExpired:  # it waits at times for what is gone already
            print(f"{self.name}: the runtime did not end its own delete")
            self._kill_leftovers()

    def _kill_leftovers(self):
        """The runtime's own processes carry the folder of this place among their arguments."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.box).encode() in path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass


class Runc(Bundle):
    """Process 1 of a container of runc."""


class Hardened(Bundle):
    """What container/kubernetes/ asks for: a read-only root, the least capabilities, no new
    privileges, and volumes that belong to root and that all may write."""

    def adapt(self, spec):
        spec = super().adapt(spec)
        least = sorted("CAP_" + name for name in MANIFEST["capabilities"]["add"])
        spec["process"].update(noNewPrivileges=True, capabilities={
            kind: least for kind in ("bounding", "effective", "permitted")})
        spec["root"]["readonly"] = True
        for volume in ("/run", "/var/lib", "/workspace", "/output", "/home/sandbox"):
            (self.root / volume[1:]).mkdir(parents=True, exist_ok=True)
            (self.root / volume[1:]).chmod(0o777)  # runc gives a tmpfs the mode of what it covers
            spec["mounts"].append({"destination": volume, "type": "tmpfs", "source": "tmpfs",
                                   "options": ["nosuid", "nodev", "mode=0777", "size=64m"]})
        return spec


class SharedPid(Bundle):
    """A container that shares its pid namespace, as containers of a pod may: nookd is not process 1."""

    pid1 = False

    def prepare(self):
        needs("unshare")
        self.holder = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sleep",
                                        "3600"], stdin=subprocess.DEVNULL)
        super().prepare()

    def adapt(self, spec):
        spec = super().adapt(spec)
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        child = wire.wait_until(lambda: children.read_text().strip(), 10, "the pod's first process")
        for namespace in spec["linux"]["namespaces"]:
            if namespace["type"] == "pid":
                namespace["path"] = f"/proc/{child}/ns/pid"
        return spec

    def clear(self):
        super().clear()
        self.holder.kill()
        self.holder.wait()


class Gvisor(Bundle):
    """Process 1 under gVisor: the release that `runsc` names, `platform` its way to run code.

    What `runsc exec` was given as its streams is the sandbox's from then on, and outlives it.
    """

    gvisor = True
    cuts = False
    platform = "ptrace"

    def find_runtime(self):
        needs("runc", "runsc")
        self.runtime = "runsc"

    def is_over(self):
        """Of process 1: the release of 2024 may go on to say that the container runs."""
        return super().is_over() or \
            run(*self.inside("/sbin/nookd", "--version"), check=False, wait=20).returncode != 0

    def command(self, *argv):
        return [self.runtime, "--root", str(self.box / "state"), f"--platform={self.platform}",
                "--network=none", "--ignore-cgroups", *map(str, argv)]


class GvisorBackports(Gvisor):
    """The gVisor of Debian's backports, unpacked beside the system; NOOK_RUNSC names it."""

    platform = "systrap"

    def find_runtime(self):
        needs("runc")
        self.runtime = os.environ.get("NOOK_RUNSC") or str(ROOT / "build/places/runsc")
        if not os.access(self.runtime, os.X_OK):
            raise Absent("no runsc of backports: sh tests/places.sh gvisor fetches it")


CRI_CONFIG = """version = 2
root = "{box}/root"
state = "{box}/state"
[grpc]
  address = "{box}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{box}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


class Cri(Place):
    """A pod as a kubelet makes it: containerd, asked through its CRI; images made here."""

    def prepare(self):
        self.crictl = shutil.which("crictl") or str(ROOT / "build/places/crictl")
        needs("containerd", "ctr", "runc", "gcc")
        if not os.access(self.crictl, os.X_OK):
            raise Absent("no crictl: sh tests/places.sh cri builds it")
        self.end_point = f"unix://{self.box}/containerd.sock"
        (self.box / "config.toml").write_text(CRI_CONFIG.format(box=self.box))
        (self.box / "cni").mkdir()
        (self.box / "cni/10-pods.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "pods", "plugins": [{
                "type": "ptp", "ipMasq": False, "ipam": {
                    "type": "host-local", "dataDir": f"{self.box}/ipam",
                    "ranges": [[{"subnet": "10.88.7.0/24"}]]}}]}))
        self.make_images()
        with open(self.box / "containerd.log", "wb") as log:
            self.containerd = subprocess.Popen(
                ["containerd", "--config", self.box / "config.toml"], stdout=log, stderr=log)
        wire.wait_until(lambda: self.ask("version", check=False).returncode == 0, 30,
                        "containerd answers")
        for name in ("pause", "nookd"):
            run("ctr", "-a", self.box / "containerd.sock", "-n", "k8s.io", "images", "import",
                self.box / f"{name}.tar")

    def make_images(self):
        pause = self.box / "pause-root"
        pause.mkdir()
        run("gcc", "-static", "-Os", "-x", "c", "-o", pause / "pause", "-",
            input=b"#include <unistd.h>\nint main(void) { return pause(); }\n")
        tool = ROOT / "container/image.py"
        run(sys.executable, tool, pause, self.box / "pause.tar", "localhost/pause:1", "/pause")
        run(sys.executable, tool, make_root(self.box / "nookd-root"), self.box / "nookd.tar",
            "localhost/nookd:1", *SERVE)

    def ask(self, *words, **kw):
        return run(self.crictl, "-r", self.end_point, "-i", self.end_point, "-t", "30s", *words, **kw)

    def start(self):
        context = {"security_context": {"namespace_options": {"network": 0, "pid": 1, "ipc": 0}}}
        pod = {"metadata": {"name": self.id, "namespace": "default", "uid": self.id, "attempt": 0},
               "hostname": "sb", "log_directory": str(self.box), "linux": context}
        container = {"metadata": {"name": "nookd"}, "image": {"image": "localhost/nookd:1"},
                     "log_path": "log", "linux": {
                         "resources": {"memory_limit_in_bytes": 256 << 20}, **context}}
        for name, value in (("pod", pod), ("container", container)):
            (self.box / f"{name}.json").write_text(json.dumps(value))
        self.pod = self.ask("runp", self.box / "pod.json").stdout.decode().strip()
        self.container = self.ask("create", self.pod, self.box / "container.json",
                                  self.box / "pod.json").stdout.decode().strip()
        self.ask("start", self.container)

    def inside(self, *argv, tty=False):
        return [self.crictl, "-r", self.end_point, "-i", self.end_point, "exec", "-i",
                *(["-t"] if tty else []), self.container, *argv]

    def cli(self, *args, **kw):
        """crictl itself ends with 1, and prints the status."""
        done = super().cli(*args, **kw)
        told = re.search(rb"terminated with exit code (\d+)", done.stderr)
        done.returncode = int(told[1]) if told else done.returncode
        return done

    def end(self):
        self.ask("stop", "--timeout", "20", self.container)
        told = json.loads(self.ask("inspect", self.container).stdout)["status"]
        assert (told["state"], told["exitCode"]) == ("CONTAINER_EXITED", 0), \
            (told, self.stderr())

    def clear(self):
        if not hasattr(self, "containerd"):
            return
        self.ask("rmp", "--force", "--all", check=False)
        self.containerd.terminate()
        self.containerd.wait(30)


VM_MODULES = ("virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover "
              "net_failover virtio_net").split()
VM_INIT = """#!/bin/busybox sh
for module in {modules}; do
    busybox insmod /modules/$module.ko
done
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t cgroup2 cgroup /sys/fs/cgroup
busybox ip link set lo up
busybox ip addr add 10.0.2.15/24 dev eth0
busybox ip link set eth0 up
{before}
exec /sbin/nookd serve --identities --listen 0.0.0.0:8099 --token-file /etc/token
"""


class Vm(Place):
    """A machine whose process 1 is nookd: qemu, without a processor's help, and a kernel of Debian.

    There is no exec from outside: the host's own nookd is the client, over a forwarded port.
    """

    cuts = False
    before = ""   # the last lines of the init ahead of nookd

    def prepare(self):
        needs("qemu-system-x86_64", "cpio")
        self.kernel = next((ROOT / "build/places/vm").glob("boot/vmlinuz-*"), None)
        if not self.kernel:
            raise Absent("no kernel: sh tests/places.sh vm fetches one")
        root = make_root(self.box / "root")
        (root / "modules").mkdir()
        for module in VM_MODULES:
            shutil.copy(next((ROOT / "build/places/vm").rglob(f"{module}.ko")), root / "modules")
        self.token = secrets.token_urlsafe(24)
        self.token_file = self.box / "token"
        for path in (root / "etc/token", self.token_file):
            path.write_text(self.token)
            path.chmod(0o400)
        (root / "init").write_text(VM_INIT.format(modules=" ".join(VM_MODULES), before=self.before))
        (root / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        archive = run("cpio", "--create", "--format=newc", "--quiet", cwd=root,
                      input=names.encode()).stdout
        (self.box / "initrd").write_bytes(gzip.compress(archive, 1))
        self.port = free_port()

    def start(self, *more):
        with open(self.log, "ab") as log:
            self.qemu = subprocess.Popen(
                ["qemu-system-x86_64", "-M", "pc", "-m", "512", "-nodefaults", "-no-user-config",
                 "-no-reboot", "-display", "none", "-serial", "stdio",
                 "-kernel", self.kernel, "-initrd", self.box / "initrd",
                 "-append", "console=ttyS0 quiet rdinit=/init panic=-1",
                 "-netdev", "user,id=net,restrict=on,"
                            f"hostfwd=tcp:127.0.0.1:{self.port}-10.0.2.15:8099",
                 "-device", "virtio-net-pci,romfile=,netdev=net", *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_answer(self):
        wire.wait_until(self._answers, 120, f"{self.name}: nookd answers; {self.stderr()}")

    def _answers(self):
        """The forwarding takes connections long before anybody is there for them."""
        try:
            with self.connect(wait=0.5) as conn:
                return conn.request("GET", "/healthz").status == 200
        except (OSError, AssertionError, wire.Closed):
            return False

    def cli(self, *args, check=True, wait=60, **kw):
        env = {"NOOKD_URL": f"http://127.0.0.1:{self.port}", "NOOKD_TOKEN_FILE": self.token_file}
        return run(BINARY, *args, check=check, wait=wait, env=env, **kw)

    def connect(self, tcp=None, auth=True, wait=30):
        headers = [("Authorization", f"Bearer {self.token}")] if auth else []
        return wire.connect_tcp(self.port, headers=headers, wait=wait)

    def end(self):
        assert self.request("DELETE", "/v1/sandbox").status in (200, 202, 204)
        self.qemu.wait(60 * wire.PATIENCE)

    def clear(self):
        if getattr(self, "qemu", None):
            self.qemu.kill()
            self.qemu.wait()


class Watched(Vm):
    """A machine that can be stopped, saved and restored, and whose clock can be set.

    Its second line runs what comes as root, one command a line: process 1 has it as a child.
    """

    before = """busybox stty -F /dev/ttyS1 raw -echo
(while read -r line; do eval "$line"; echo; done </dev/ttyS1 >/dev/ttyS1 2>&1) &"""

    def start(self, *more):
        for name in ("line", "qmp"):
            (self.box / name).unlink(missing_ok=True)
        super().start("-serial", f"unix:{self.box}/line,server=on,wait=off",
                      "-qmp", f"unix:{self.box}/qmp,server=on,wait=off", *more)
        self.line = self._reach("line")
        self.monitor = self._reach("qmp")
        self._heard()
        self.tell("qmp_capabilities")

    def _reach(self, name):
        def try_it():
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(self.box / name))
                return s.makefile("rwb", buffering=0)
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            finally:
                s.close()  # the file keeps it open
        return wire.wait_until(try_it, 20, f"the machine's {name} is there")

    def _heard(self):
        text = self.monitor.readline()
        assert text, f"the machine is gone: {self.stderr()}"
        return json.loads(text)

    def tell(self, command, **arguments):
        """To the machine itself; what it answers."""
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            heard = self._heard()
            assert "error" not in heard, (command, heard)
            if "return" in heard:
                return heard["return"]

    def do(self, line):
        """Runs it inside as root, and waits for its end."""
        self.line.write(line.encode() + b"\n")
        return self.line.readline().decode().strip()

    def set_clock(self, seconds):
        """The wall clock, so far from where it is."""
        self.do(f"date -s @$(( $(date +%s) + ({int(seconds)}) )) >/dev/null")

    def save(self):
        """Into a file; it goes on as another machine, from there, once that is `restored`."""
        self.tell("migrate", uri=f"exec:cat >{self.box}/saved")
        wire.wait_until(lambda: self.tell("query-migrate").get("status") == "completed", 120, "saved")

    def restore(self):
        self.leave()
        self.start("-incoming", f"exec:cat {self.box}/saved")
        wire.wait_until(lambda: self.tell("query-status")["status"] == "running", 120, "restored")
        self.wait_answer()

    def leave(self):
        for one in ("line", "monitor"):
            if hasattr(self, one):
                getattr(self, one).close()
        super().clear()

    def clear(self):
        self.leave()


PLACES = {
    "scratch": Scratch,
    "busybox": Chroot,
    "musl": Musl,
    "runc": Runc,
    "runc-hardened": Hardened,
    "runc-shared": SharedPid,
    "gvisor": Gvisor,
    "gvisor-backports": GvisorBackports,
    "cri": Cri,
    "vm": Vm,
}
