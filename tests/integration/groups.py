"""Control groups as the tests see them: which one a process is in, and what the daemon can do."""

import os
import secrets
from pathlib import Path

from nook import status_field


def mount_of(controller=None):
    """Where version 2, or a controller of version 1, is mounted and may be written; else None."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        kind, _, options = right.split(" ", 2)
        if kind == ("cgroup" if controller else "cgroup2") \
                and (not controller or controller in options.split(",")) \
                and left.split()[3] == "/" and os.access(left.split()[4], os.W_OK):
            return Path(left.split()[4])
    return None


def path_of(pid, controller=None):
    """Its group's path in version 2, or of a controller of version 1."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if controllers.split(",").count(controller) if controller else number == "0":
            return path
    return None


def folder_of(pid, controller=None):
    return mount_of(controller) / path_of(pid, controller).lstrip("/")


def made_by(nook):
    """Whether the daemon makes control groups, by its own word."""
    isolation = nook.get("/v1/capabilities").json()["isolation"]
    return isolation["cgroup"]["available"]


def ours(base):
    """Folders that daemons have made in a group."""
    return sorted(p.name for p in base.iterdir() if p.name.startswith("nookd-"))


def is_frozen(pid):
    """Stopped by a signal, or by its group."""
    if status_field(pid, "State")[0] == "T":
        return True
    events = folder_of(pid) / "cgroup.events" if mount_of() else None
    return bool(events) and events.exists() and "frozen 1" in events.read_text().splitlines()


class Subtree:
    """A group of version 2 for one test; what is put in front of a command starts it in there."""

    def __init__(self):
        self.path = mount_of() / f"nooktest-{secrets.token_hex(4)}"
        self.path.mkdir()

    @property
    def enter(self):
        return ["sh", "-c", f'echo 0 >{self.path}/cgroup.procs && exec "$@"', "enter"]

    def remove(self):
        """Everything in it is over."""
        for folder, _, _ in os.walk(self.path, topdown=False):
            os.rmdir(folder)
