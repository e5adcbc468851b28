"""The tour of README.md, run as written against the sandbox that container/run.sh makes."""

import re
import shutil
import subprocess
import sys

import pytest

import nook as harness

README = harness.ROOT / "README.md"
STEP = re.compile(r"<!-- tour -->\n```sh\n(.*?)```\n```\n(.*?)```\n", re.S)

# Loopback of a network namespace of its own: the tour's port is free there.
LOOPBACK_UP = """
import fcntl, socket, struct, subprocess, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))
sys.exit(subprocess.call(sys.argv[1:]))
"""


def pattern(text):
    """What the README shows, where "…" stands for anything."""
    return "".join(".*?" if part == "…" else re.escape(part)
                   for part in re.split("(…)", text.strip()))


def can_make_sandboxes():
    tools = all(shutil.which(t) for t in ("bwrap", "curl", "unshare"))
    return harness.IS_ROOT and tools and subprocess.run(
        ["unshare", "--net", "bwrap", "--ro-bind", "/", "/", "--unshare-pid", "true"],
        capture_output=True, check=False).returncode == 0


def test_every_step_of_the_tour_is_found():
    assert README.read_text().count("<!-- tour -->") == len(STEP.findall(README.read_text())) > 5


@pytest.mark.root
def test_the_tour_of_the_readme_runs_as_written(tmp_path):
    if not can_make_sandboxes():
        pytest.skip("bubblewrap, curl or a network namespace cannot be had here")
    box = tmp_path / "build" / "sandbox"
    steps = STEP.findall(README.read_text())
    script = tmp_path / "tour.sh"
    lines = ["export NOOK_SANDBOX=" + str(box), f"export NOOK_BINARY={harness.BINARY}",
             f"run={harness.ROOT}/container/run.sh", "sh $run --detach || exit 1"]
    for i, (commands, _) in enumerate(steps):
        (tmp_path / f"{i}.sh").write_text(commands)
        lines.append(f"sh {i}.sh > {i}.out 2>&1; echo $? > {i}.status")
    script.write_text("\n".join([*lines, f"cp {box}/log log", "sh $run --stop"]) + "\n")

    done = subprocess.run(["unshare", "--net", sys.executable, "-c", LOOPBACK_UP, "sh", script],
                          cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    for i, (commands, shown) in enumerate(steps):
        out = (tmp_path / f"{i}.out").read_text()
        assert (tmp_path / f"{i}.status").read_text().strip() == "0", (commands, out)
        assert re.fullmatch(pattern(shown), out.strip(), re.S), f"{commands}\nshown:\n{shown}\n{out}"
    assert not harness.SANITIZER.search((tmp_path / "log").read_text())
