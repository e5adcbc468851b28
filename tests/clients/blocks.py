"""The code blocks of the clients' READMEs."""

import re
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
HEADING_OR_BLOCK = re.compile(r"^#+ ([^\n]+)$|^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks_of(package):
    """{"Heading": text}; the later ones under a heading are "Heading 2", "Heading 3"."""
    found, heading, count = {}, "", 0
    for match in HEADING_OR_BLOCK.finditer((HERE / package / "README.md").read_text()):
        if match[1]:
            heading, count = match[1], 0
            continue
        count += 1
        found[heading if count == 1 else f"{heading} {count}"] = textwrap.dedent(match[3])
    return found


def run(text, **names):
    """Runs Python source with these names predefined; all the names that it leaves."""
    exec(compile(text, "README.md", "exec"), names)  # the file is ours
    return names
