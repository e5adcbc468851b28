#!/usr/bin/env python3
"""The manual page of a nookd, from what that nookd says of itself: man.py BINARY > nookd.1"""

import re
import subprocess
import sys


def told(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def options_of(help_text):
    """[(option and value, sentence)] of the lines that are set in by two spaces."""
    found = []
    for line in help_text.splitlines():
        match = re.match(r"  (-\S.*?)(?:\s{2,}(\S.*))?$", line)
        more = re.match(r"\s{20,}(\S.*)$", line)
        if match:
            found.append([match[1], match[2] or ""])
        elif more and found:
            found[-1][1] = (found[-1][1] + " " + more[1]).strip()
    return found


def tagged(options):
    return "".join(f".TP\n.B {roff(name)}\n{roff(sentence)}\n" for name, sentence in options)


def page(binary):
    version = told(binary, "--version").split()[1]
    general = told(binary, "--help")
    serve, verbs = general.split("\nverbs:\n")
    before, options = serve.split("options of serve:\n")
    usage, about = before.split("\n\n", 1)
    out = [f'.TH NOOKD 1 "" "nookd {version}"\n.SH NAME\n',
           "nookd \\- the agent inside a sandbox, and its client\n.SH SYNOPSIS\n.nf\n",
           roff(usage.replace("usage: ", "").replace("\n       ", "\n")), "\n.fi\n.SH DESCRIPTION\n",
           roff(about.strip()).replace("\n\n", "\n.PP\n"), "\n.SH OPTIONS OF SERVE\n",
           tagged(options_of(options)), ".SH VERBS\n"]
    for name in re.findall(r"^  (\S+)", verbs, re.M):
        out += [f".SS {name}\n.nf\n", roff(told(binary, name, "--help").strip()), "\n.fi\n"]
    out += [".SH ENVIRONMENT\n",
            tagged([["NOOKD_SOCKET", "the daemon's socket, for the verbs"],
                    ["NOOKD_URL", "http://ADDR:PORT instead of a socket, for the verbs"],
                    ["NOOKD_TOKEN_FILE", "where the bearer token is"],
                    ["NOOKD_...", "each option of serve, in capitals"]]),
            ".SH EXIT STATUS\nOf a verb: that of what it ran; 125 when nookd itself failed. "
            "Of serve: 0, that of PROGRAM, 128+N after signal N, 2 for a wrong option.\n"]
    return "".join(out)


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))
