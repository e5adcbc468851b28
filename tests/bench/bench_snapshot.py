"""What finding out which files changed costs a run: two looks at a tree of many files.

usage: bench_snapshot.py [FILES] [RUNS]

Prints a table and one line of JSON. The limit of the machine is one bare stat of each file, by one
thread, folder by folder; times are medians.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import nook as harness

FILES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 9


def milliseconds(fn):
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        fn()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def make_tree(top, owner):
    for i in range(FILES):
        if i % 100 == 0:
            folder = top / f"d{i // 10000}" / f"s{i // 100}"
            folder.mkdir(parents=True)
        path = folder / f"file-{i}"
        path.touch()
        os.chown(path, owner, owner)


def stat_all(top):
    """Every file once, as cheaply as Python can: its own cost is taken off by listing alone."""
    for folder, _, names in os.walk(top):
        fd = os.open(folder, os.O_RDONLY)
        for name in names:
            os.stat(name, dir_fd=fd, follow_symlinks=False)
        os.close(fd)


def main():
    nook = harness.Nook()
    try:
        def plain():
            nook.exec(["true"])

        def reported():
            nook.exec(["true"], report_files=True)

        empty = {"exec": milliseconds(plain), "report_files": milliseconds(reported)}
        make_tree(nook.workspace, nook.user)
        full = {"exec": milliseconds(plain), "report_files": milliseconds(reported)}
        cost = full["report_files"] - full["exec"]
        bare = milliseconds(lambda: stat_all(nook.workspace))
        figures = {"files": FILES, "exec_ms": full["exec"], "report_files_ms": full["report_files"],
                   "report_files_empty_ms": empty["report_files"], "look_ms": cost / 2,
                   "share": cost / full["report_files"], "stat_all_ms": bare}
        print(f"{FILES} files, {RUNS} runs, medians")
        print(f"  exec                              {full['exec']:8.2f} ms")
        print(f"  exec with report_files, no tree   {empty['report_files']:8.2f} ms")
        print(f"  exec with report_files            {full['report_files']:8.2f} ms")
        print(f"  one look                          {cost / 2:8.2f} ms"
              f"   {cost / 2 / FILES * 1e6:.0f} ns a file")
        print(f"  its share of the run              {figures['share']:8.1%}")
        print(f"  a bare walk with stat, in Python  {bare:8.2f} ms")
        print(json.dumps({k: round(v, 3) for k, v in figures.items()}))
    finally:
        nook.finish()
        nook.remove()


main()
