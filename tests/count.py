#!/usr/bin/env python3
"""Adds up what the runners of tests/run.sh counted (JUnit files of a folder); one line a file."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def count(path):
    """(passed, failed, skipped) of one file."""
    passed = failed = skipped = 0
    for case in ET.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    totals = [0, 0, 0]
    for path in sorted(Path(sys.argv[1]).glob("*.xml")):
        counts = count(path)
        totals = [a + b for a, b in zip(totals, counts)]
        print(f"{path.stem:24} {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    print(f"total: {totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")


if __name__ == "__main__":
    main()
