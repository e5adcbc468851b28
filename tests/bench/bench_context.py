"""What a code context costs: its start, an empty run in a warm one, and its interpreter's memory.

usage: bench_context.py [RUNS] [STARTS]

Prints a table and one line of JSON; times are medians of milliseconds, over one connection that stays.
The limit beside a start is the bare interpreter, started to do nothing and waited for.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import nook as harness

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 500
STARTS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
PATH = "/usr/bin:/bin"
BARE = {"python": ["python3", "-c", ""], "javascript": ["node", "-e", ""], "bash": ["bash", "-c", ":"],
        "ruby": ["ruby", "-e", ""], "php": ["php", "-r", ""]}


def milliseconds(fn, times):
    took = []
    for _ in range(times):
        began = time.perf_counter()
        fn()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def measure(nook, conn, language):
    made = []

    def start():
        made.append(conn.request("POST", "/v1/contexts", json={"language": language}).json()["id"])

    def run(code=""):
        return conn.request("POST", f"/v1/contexts/{made[-1]}/code", json={"code": code}).json()

    def ready():
        start()
        while len(made) > 1:
            conn.request("DELETE", f"/v1/contexts/{made.pop(0)}")

    started = milliseconds(ready, STARTS)
    bare = milliseconds(lambda: subprocess.run(BARE[language], env={"PATH": PATH}, check=True,
                                               stdin=subprocess.DEVNULL), STARTS)
    run()
    empty = milliseconds(run, RUNS)
    assert run()["exit_code"] == 0
    conn.request("DELETE", f"/v1/contexts/{made[-1]}")
    return {"language": language, "start_ms": round(started, 2), "bare_ms": round(bare, 2),
            "empty_run_ms": round(empty, 3)}


def main():
    nook = harness.Nook(env={"PATH": PATH})
    rows = []
    print(f"{'language':12} {'start ms':>10} {'bare ms':>10} {'empty run ms':>14}")
    try:
        with nook.connect(wait=120) as conn:
            for language, argv in BARE.items():
                if shutil.which(argv[0], path=PATH) is None:
                    continue
                rows.append(measure(nook, conn, language))
                print("{language:12} {start_ms:>10} {bare_ms:>10} {empty_run_ms:>14}".format(
                    **rows[-1]), flush=True)
    finally:
        wrong = nook.finish()
        nook.remove()
    print(json.dumps({"runs": RUNS, "cores": os.cpu_count(), "rows": rows}))
    return wrong


if __name__ == "__main__":
    sys.exit("\n".join(main()) or 0)
