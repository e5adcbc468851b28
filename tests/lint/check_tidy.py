#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy) or cppcheck over the sources that a build directory knows.

usage: check_tidy.py clang-tidy|cppcheck BUILD    exit status 77 where the tool is missing
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Silent on code that is right; style is clang-format's and the house check's.
CPPCHECK = ["--enable=warning,performance,portability", "--std=c11", "--inline-suppr", "--quiet",
            "--error-exitcode=1", "--suppress=missingIncludeSystem", "--suppress=unknownMacro",
            "--suppress=normalCheckLevelMaxBranches", "--suppress=nullPointerRedundantCheck",
            "--suppress=autoVariables", "--suppress=uninitvar"]


def sources(build):
    """The project's own files, without their tests."""
    entries = json.loads((Path(build) / "compile_commands.json").read_text())
    files = {str(Path(e["directory"], e["file"]).resolve()) for e in entries}
    return sorted(f for f in files if f.startswith(str(ROOT / "agent") + os.sep))


def tidy(build, path):
    return ["clang-tidy", "--quiet", "--warnings-as-errors=*", "-p", build, path]


def cppcheck(_, path):
    return ["cppcheck", *CPPCHECK, "-I", str(ROOT / "agent"), "-D_GNU_SOURCE", "-D__x86_64__",
            '-DNOOK_VERSION="0"', path]


def run(command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    lines = [line for line in done.stdout.splitlines()
             if "warnings generated" not in line and line.strip()]
    if done.returncode != 0:
        print("\n".join(lines), flush=True)
    return done.returncode


def main():
    tool, build = sys.argv[1:3]
    if not shutil.which(tool):
        print(f"skipped: no {tool} here")
        return 77
    command = {"clang-tidy": tidy, "cppcheck": cppcheck}[tool]
    files = sources(build)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = list(pool.map(run, [command(build, f) for f in files]))
    print(f"{tool}: {len(files)} files, {sum(c != 0 for c in codes)} with findings")
    return 1 if any(codes) or not files else 0


if __name__ == "__main__":
    sys.exit(main())
