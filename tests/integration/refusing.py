"""Runs a program under a filter that makes system calls fail, as other kernels and disks let them.

usage: refusing.py RULE… -- PROGRAM [ARG…]      a rule: CALL=ERROR, CALL[N]==VALUE=ERROR or CALL[N]>=VALUE=ERROR

Who is refused cannot tell it from the real thing. Linux on two architectures; elsewhere it says so and
ends with 77.
"""

import ctypes
import errno
import os
import platform
import re
import struct
import sys

ARCHES = {
    "x86_64": (0xC000003E, {"write": 1, "pwrite64": 18, "linkat": 265, "splice": 275}),
    "aarch64": (0xC00000B7, {"write": 64, "pwrite64": 68, "linkat": 37, "splice": 76}),
}
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # of a classic BPF program
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
SKIPPED = 77


def step(code, value, yes=0, no=0):
    return struct.pack("=HBBI", code, yes, no, value)


def rule_steps(rule, calls):
    """Falls through to the next rule where this one does not fit. The upper half of an argument is
    not looked at."""
    name, argument, how, value, error = re.fullmatch(
        r"(\w+)(?:\[(\d)\](==|>=)(\w+))?=(\w+)", rule).groups()
    refuse = step(RETURN, ERRNO | getattr(errno, error))
    if argument is None:
        return [step(LOAD, 0), step(EQUAL, calls[name], 0, 1), refuse]
    return [step(LOAD, 0), step(EQUAL, calls[name], 0, 3), step(LOAD, 16 + 8 * int(argument)),
            step(EQUAL if how == "==" else AT_LEAST, int(value, 0), 0, 1), refuse]


def program(rules):
    arch, calls = ARCHES[platform.machine()]
    steps = [step(LOAD, 4), step(EQUAL, arch, 1, 0), step(RETURN, ALLOW)]
    for rule in rules:
        steps += rule_steps(rule, calls)
    return steps + [step(RETURN, ALLOW)]


def main():
    end = sys.argv.index("--")
    if platform.machine() not in ARCHES:
        sys.exit(SKIPPED)
    steps = program(sys.argv[1:end])
    text = ctypes.create_string_buffer(b"".join(steps))
    head = struct.pack("@HP", len(steps), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, head, 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        print(f"no filter: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        sys.exit(SKIPPED)
    os.execv(sys.argv[end + 1], sys.argv[end + 1:])


if __name__ == "__main__":
    main()
