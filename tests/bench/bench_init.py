"""Process 1 under what hostile users do: how long bombs, orphans and pauses take, and how long
health waits for its answer beside them.

usage: bench_init.py [ROUNDS] [SECONDS]    rounds of what ends, seconds of each load

Prints a table and one line of JSON. NOOK_BINARY is the nookd (build/dev/nookd). Needs root. Health
is asked every 2 ms by a client in C, which has realtime priority where chrt is at hand: its own
waiting is not counted, the daemon's is.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
sys.dont_write_bytecode = True

import daemon
import nook as harness
from init_run import PYTHON, Init
from test_init import DOUBLE_FORKS
from test_processes import GROWING
from test_sandbox import seconds_of
from wire import output_of, wait_until

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
WAYS = {"with control groups": (), "without": ("--without", "cgroup")}
AIM = {"with control groups": 1000, "without": 3000}
rows = []


def row(name, reached, unit, aim):
    rows.append({"figure": name, "reached": round(reached, 1), "unit": unit, "aim": aim,
                 "met": reached <= aim})
    missed = "" if reached <= aim else "missed"
    print(f"{name:60} {reached:>9.1f} {unit:3} {f'<= {aim}':>9} {missed}", flush=True)


def milliseconds_until(fn):
    began = time.monotonic()
    while not fn():
        pass
    return (time.monotonic() - began) * 1000


class Running(harness.Nook):
    """A daemon; a context manager."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for wrong in self.finish():
            print(f"wrong: {wrong}", file=sys.stderr)
        self.remove()

    def start_command(self, command, **fields):
        return self.post("/v1/processes", {"command": command, **fields}).json()

    def health_beside(self, command, **fields):
        """The longest answer while the command runs, which its timeout ends."""
        body = json.dumps({"command": command, "timeout": SECONDS, "max_output": 1024, **fields})
        got = daemon.run_json("client", f"unix:{self.socket}", "load", 1, 1, 1, "POST", "/v1/exec",
                              body)
        assert got["bad"] == 0 and self.alive()
        return got["health"]["max_us"] / 1000


def double_forks(count=10_000):
    for name, pid1 in (("process 1", True), ("a subreaper", False)):
        took = []
        for _ in range(ROUNDS):
            run = Init([PYTHON, "-c", DOUBLE_FORKS, str(count)], pid1=pid1)
            try:
                main = [str(run.main)]
                children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
                assert run.line(240) == "up"
                took.append(milliseconds_until(lambda: children.read_text().split() == main))
            finally:
                run.finish()
        row(f"{count} double forks, last zombie gone, as {name}", max(took), "ms", 200)


BOMB = """
import os, time
for i in range({count}):
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
print("up", flush=True)
time.sleep(1000)
"""


def members(nook):
    """Who carries a mark of that daemon."""
    out = []
    for pid in harness.all_pids():
        try:
            groups = harness.status_field(pid, "Groups").split()
            if any(int(g) in nook.marks for g in groups) and harness.proc_stat(pid)[0] != "Z":
                out.append(pid)
        except (OSError, KeyError, TypeError):
            pass
    return out


def end_of_bomb(way, script, count):
    """Also where it does not end in time: a machine that others use is not left with it."""
    with Running("--max-processes", count, *WAYS[way]) as nook:
        p = nook.start_command([PYTHON, "-c", script.format(count=count)])
        wait_until(lambda: len(members(nook)) >= count * 0.95, 60, "the bomb is there")
        with nook.connect(wait=60) as conn:
            began = time.monotonic()
            conn.request("POST", f"/v1/processes/{p['id']}/kill", json={"signal": "KILL"})
            while members(nook) and time.monotonic() < began + 30:
                pass
            return (time.monotonic() - began) * 1000


def bombs():
    for name, script, count in (("setsid bomb", BOMB, 500), ("bomb that goes on", GROWING, 100)):
        for way in WAYS:
            took = [end_of_bomb(way, script, count) for _ in range(ROUNDS)]
            row(f"{count}-process {name} gone, {way}", max(took), "ms", AIM[way])


HOG = "import time\nwhile True:\n try:\n  x = []\n  while True: x.append(bytearray(1 << 20))\n" \
      " except MemoryError: pass\n"
DESCRIPTORS = """
import os, resource, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
for i in range(max(1, -(-20000 // (hard - 8)))):
    if os.fork() == 0:
        try:
            while True: os.open("/dev/null", os.O_RDONLY)
        except OSError:
            time.sleep(1000)
time.sleep(1000)
"""


def beside(what, command, *options):
    with Running(*options) as nook:
        row(f"health beside {what}, longest", nook.health_beside(command), "ms", 50)


def health():
    beside("nothing", "sleep 1000")
    beside("a memory hog", [PYTHON, "-c", HOG], "--memory", 256 << 20)
    beside("a fork bomb at its limit of 500", "bash -c ':(){ :|:& };: 2>/dev/null; sleep 1000'",
           "--max-processes", 500)
    beside("20000 descriptors", [PYTHON, "-c", DESCRIPTORS], "--nofile", 20_100)
    full_disk()


def full_disk():
    with Running() as nook:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=1777", "none", nook.tmp],
                       check=True)
        full = nook.tmp / "full"
        try:
            fill = f"while :; do cat /dev/zero >{full}; rm -f {full}; done 2>/dev/null"
            row("health beside a full disk, longest", nook.health_beside(fill), "ms", 50)
        finally:
            wait_until(lambda: not nook.descendants(), 30, "nobody uses it")
            subprocess.run(["umount", nook.tmp], check=True)


def pause(seconds=10, lines=500):
    """Beside a stream, and a timeout that must be later by just that long."""
    for way in WAYS:
        with Running(*WAYS[way]) as nook, nook.connect(wait=60) as conn:
            def change(word):
                return milliseconds_until(
                    lambda: conn.request("POST", f"/v1/sandbox/{word}").status == 200)
            timed = nook.start_command("sleep 1000", timeout=4)
            count = f"i=0; while [ $i -lt {lines} ]; do echo $i; i=$((i+1)); sleep 0.005; done"
            with nook.exec_stream(count) as stream:
                events = stream.events()
                head = [next(events) for _ in range(20)]
                stood = time.monotonic()
                paused = change("pause")
                time.sleep(seconds)
                resumed = change("resume")
                stood = time.monotonic() - stood
                out, _, _ = output_of([*head, *events])
            done = nook.get(f"/v1/processes/{timed['id']}?wait=30", wait=60).json()
        late = seconds_of(done["ended_at"]) - seconds_of(done["started_at"]) - 4 - stood
        name = f"a pause of {seconds} s, {way}"
        row(f"{name}: its request", paused, "ms", 1000)
        row(f"{name}: resume", resumed, "ms", 1000)
        row(f"{name}: of {lines} lines lost", lines - out.count(b"\n"), "", 0)
        row(f"{name}: a timeout is off by", abs(late) * 1000, "ms", 200)


def main():
    if os.geteuid() != 0:
        sys.exit("needs root")
    daemon.compile_helpers()
    if shutil.which("chrt"):
        daemon.PREFIX[:] = ["chrt", "-f", "1"]
    for figure in (double_forks, bombs, health, pause):
        figure()
    print(json.dumps({"rounds": ROUNDS, "seconds": SECONDS, "cores": os.cpu_count(),
                      "load": os.getloadavg()[0], "rows": rows}))


if __name__ == "__main__":
    main()
