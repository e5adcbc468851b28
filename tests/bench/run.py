#!/usr/bin/env python3
"""Figures of nookd beside the limit of the machine in the same run. Never a test: nothing fails.

usage: run.py [options] [FIGURE…]     all of them without a name; see README.md
"""

import argparse
import json
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import daemon  # noqa: E402
from figures import FIGURES  # noqa: E402


def arguments():
    p = argparse.ArgumentParser(description="nookd beside the machine's limit")
    p.add_argument("figure", nargs="*", help=" ".join(FIGURES))
    p.add_argument("--binary", default=str(daemon.TOP / "build/release/nookd"))
    p.add_argument("--rounds", type=int, default=7, help="of nookd and limit in turn")
    p.add_argument("--megabytes", type=int, default=256, help="of each transfer")
    p.add_argument("--alive", type=int, default=1000, help="processes that stay")
    p.add_argument("--idle-seconds", type=int, default=20)
    p.add_argument("--realtime", action="store_true",
                   help="all under SCHED_FIFO: less noise where others work too")
    p.add_argument("--json", help="also write the rows into this file")
    opts = p.parse_args()
    for name in opts.figure:
        if name not in FIGURES:
            p.error(f"there is no figure {name}")
    return opts


def line(row):
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
    met = {True: "yes", False: "no", None: ""}[row["met"]]
    return f"{row['figure']:32} {row['reached']:>12} {row['limit']:>16} {ratio:>6} " \
           f"{row['aim']:>20} {met}"


def main():
    opts = arguments()
    daemon.compile_helpers()
    if opts.realtime:
        daemon.PREFIX[:] = ["chrt", "-f", "1"]
    rows = []
    print(f"{'figure':32} {'reached':>12} {'limit here':>16} {'ratio':>6} {'aim':>20} met")
    for name in opts.figure or FIGURES:
        try:
            for row in FIGURES[name](opts):
                rows.append({"group": name, **row})
                print(line(row), flush=True)
        except Exception:  # one figure that cannot be had is no reason to miss the others
            traceback.print_exc()
            print(f"{name:32} {'not measured':>12}")
    text = json.dumps(rows, indent=1)
    if opts.json:
        Path(opts.json).write_text(text + "\n")
    else:
        print(text)


main()
