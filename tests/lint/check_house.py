#!/usr/bin/env python3
"""Holds the house rules of agent/README.md: who may know whom, homes, sizes, names, forms.

usage: check_house.py [ROOT]    one line a finding; exit status 1 where there is any
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import c_tokens  # noqa: E402

TOP = {"CMakeLists.txt", "CMakePresets.json", "agent", "proto", "tests", "container", "README.md",
       "LICENSE"}

# Which rooms a room may include, beside itself.
ROOMS = {
    "base": set(),
    "config": {"base"},
    "http": {"base"},
    "process": {"base"},
    "files": {"base", "process"},
    "lifetime": {"base", "process"},
    "tenant": {"base", "process", "files"},
    "code": {"base", "process", "files"},
    "api": {"base", "http", "process", "files", "lifetime", "tenant", "code"},
    "cli": {"base", "http", "files"},
}
ALL = set(ROOMS)
ROOMS["app"] = ALL

# A library's header and the only files that include it; None: every file of rooms but base.
LIBRARIES = {
    "llhttp.h": {"http/parser.c"},
    "cjson/cJSON.h": {"base/json.c", "base/json.h"},
    "cJSON.h": {"base/json.c", "base/json.h"},
    "seccomp.h": {"process/confine.c"},
    "archive.h": {"files/tar_worker.c"},
    "archive_entry.h": {"files/tar_worker.c"},
}
UV_IN_BASE = {"base/job.c", "base/job.h"}

# A dangerous call and its only homes.
HOMES = {
    "clone": {"process/spawn.c"},
    "SYS_clone": {"process/spawn.c"},
    "__NR_clone": {"process/spawn.c", "process/confine.c"},
    "setresuid": {"process/child.c", "base/job.c"},
    "SYS_setresuid": {"process/child.c", "base/job.c"},
    "__NR_setresuid": {"process/child.c", "base/job.c"},
    "waitpid": {"process/reaper.c"},
    "wait": {"process/reaper.c"},
    "wait3": {"process/reaper.c"},
    "wait4": {"process/reaper.c"},
    "waitid": {"process/reaper.c"},
    "getenv": {"config.c"},
    "secure_getenv": {"config.c"},
    "exit": {"main.c"},
    "quick_exit": {"main.c"},
    # The wall clock jumps: it is shown, compared with times of files, and survives a restart of the
    # machine; nothing waits by it.
    "CLOCK_REALTIME": {"base/clock.c"},
    "CLOCK_REALTIME_COARSE": {"code/run_sweep.c", "files/snapshot.c"},
    "nk_clock_wall_ms": {"base/clock.c", "base/log.c", "process/process.c",
                         "code/context.c", "lifetime/lifetime.c", "lifetime/lasting.c",
                         "api/exec_ticket.c", "api/sandbox.c"},
}
FORBIDDEN = {"uv_spawn", "fork", "vfork", "forkpty", "system", "popen", "strcpy", "strcat",
             "sprintf", "vsprintf", "strtok", "strtok_r", "atoi", "atol", "alloca", "setfsuid",
             "setfsgid", "gets", "gettimeofday"}

# File-scope state that is not passed around: the log, the clock of tests, the pool of random ids,
# whom a pool thread has become.
STATEFUL = {"base/log.c", "base/clock.c", "base/id.c", "base/job.c"}

LINES = {".c": 500, ".h": 150}
FUNCTION_LINES = 60
FUNCTION_BRANCHES = 15
FUNCTION_PARAMS = 6
FUNCTION_LEVELS = 4

BRANCHES = {"if", "for", "while", "case", "?"}
FOREIGN_FOLDER = re.compile(r"(^|/)(vendor|third[_-]?party|external|node_modules|deps)(/|$)")
# The brackets keep these patterns from finding themselves.
FOREIGN_TEXT = re.compile(rb"Copyright[ ](?:\([c]\)|\xc2\xa9)|SPDX[-]License|Licensed[ ]under[ ]the")
MACHINE_TEXT = re.compile(
    r"/[U]sers/\w|/[h]ome/(?!sandbox\b)[a-z]\w*/|/[r]oot/\.\w|\b(?:py[p]i\.org|pytho[n]hosted\.org|"
    r"deb[.]debian\.org|crate[s]\.io|registry[.]npmjs|proxy[.]golang)")
DRAWING = re.compile(r"[-=*#~_]{5,}")


class House:
    """The files of a tree, and what was found wrong in them."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.files = self._list()
        self.found = []
        self._texts, self._tokens, self._tops = {}, {}, {}

    def _list(self):
        if (self.root / ".git").exists():
            names = subprocess.run(
                ["git", "-C", str(self.root), "-c", "safe.directory=*", "ls-files", "-z",
                 "--cached", "--others", "--exclude-standard"],
                check=True, capture_output=True).stdout.split(b"\0")
            paths = [Path(n.decode()) for n in names if n]
        else:
            paths = [p.relative_to(self.root) for p in self.root.rglob("*") if p.is_file()]
            paths = [p for p in paths if p.parts[0] not in ("build", ".git")]
        return sorted(p for p in paths if (self.root / p).is_file())

    def text(self, path):
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def tokens(self, path):
        if path not in self._tokens:
            self._tokens[path] = c_tokens.tokens(self.text(path))
        return self._tokens[path]

    def top_level(self, path):
        if path not in self._tops:
            self._tops[path] = c_tokens.top_level(self.tokens(path))
        return self._tops[path]

    def say(self, path, line, rule, message):
        self.found.append(f"{path}:{line}: [{rule}] {message}")

    def c_files(self, *tops):
        for path in self.files:
            if path.suffix in (".c", ".h") and path.parts[0] in tops:
                yield path


def room_of(path):
    """The room that a C file stands in; None where it stands in none."""
    parts = path.parts
    if parts[0] == "agent":
        if len(parts) == 2:
            return "config" if path.stem.startswith("config") else "app"
        return parts[1]
    if parts[:2] == ("tests", "unit") and len(parts) > 3:
        return parts[2]
    return None


def short(path):
    """A path as the tables spell it: without agent/ in front."""
    return "/".join(path.parts[1:])


def check_top(house):
    for name in sorted({p.parts[0] for p in house.files}):
        if name not in TOP and not name.startswith("."):
            house.say(name, 1, "top", "does not belong at the top level")


def includes(house, path):
    """(line, name, quoted) of every include."""
    for t in house.tokens(path):
        match = t.kind == "pp" and re.match(r'#\s*include\s*(["<])([^">]+)', t.text)
        if match:
            yield t.line, match.group(2), match.group(1) == '"'


def check_rooms(house):
    for path in house.c_files("agent", "tests"):
        room = room_of(path)
        if room is None:
            continue
        if room not in ROOMS:
            house.say(path, 1, "rooms", f"there is no room {room}")
            continue
        may = ROOMS[room] | {room}
        for line, name, quoted in includes(house, path):
            other = name.split("/")[0] if "/" in name else None
            if not quoted:
                continue
            if other is None:
                other = room_of(Path("agent") / name)
                if path.parts[0] == "tests" and (house.root / path.parent / name).exists():
                    continue
            if other not in may:
                house.say(path, line, "rooms", f"{room} may not know {other} ({name})")


def check_libraries(house):
    for path in house.c_files("agent"):
        for line, name, _ in includes(house, path):
            homes = LIBRARIES.get(name)
            if homes and short(path) not in homes:
                house.say(path, line, "libraries", f"{name} belongs to {', '.join(sorted(homes))}")
            if name == "uv.h" and path.parts[1] == "base" and short(path) not in UV_IN_BASE:
                house.say(path, line, "libraries", "in base only job.[ch] use libuv")


def check_calls(house):
    for path in house.c_files("agent"):
        toks = [t for t in house.tokens(path) if t.kind != "pp"]
        for i, t in enumerate(toks):
            if t.kind != "word" or (i and toks[i - 1].text in (".", "->")):
                continue
            number = t.text.startswith(("SYS_", "__NR_", "CLOCK_"))
            if not number and (i + 1 == len(toks) or toks[i + 1].text != "("):
                continue
            if t.text in FORBIDDEN:
                house.say(path, t.line, "calls", f"{t.text} is not used here at all")
            homes = HOMES.get(t.text)
            if homes and short(path.with_suffix(".c")) not in homes:
                house.say(path, t.line, "calls",
                          f"{t.text} belongs to {', '.join(sorted(homes))}")


def check_stems(house):
    seen = {}
    for path in house.c_files("agent", "tests"):
        seen.setdefault(path.stem, set()).add(path.parent)
    for stem, folders in sorted(seen.items()):
        if len(folders) > 1:
            names = ", ".join(sorted(map(str, folders)))
            house.say(sorted(folders)[-1] / stem, 1, "stems", f"{stem} stands in {names}")


def levels(body):
    """The deepest nesting of control statements' braces."""
    stack, deepest = [], 0
    for i, t in enumerate(body):
        if t.kind != "op" or t.text not in "{}":
            continue
        if t.text == "}":
            if stack:
                stack.pop()
            continue
        stack.append(opens_block(body, i))
        deepest = max(deepest, sum(stack))
    return deepest


def opens_block(body, brace):
    """Whether this brace is the body of a control statement, and not an initialiser."""
    if brace == 0:
        return False
    before = body[brace - 1]
    if before.text in ("else", "do"):
        return True
    if before.text != ")":
        return False
    depth, i = 0, brace - 1
    while i > 0:
        depth += (body[i].text == ")") - (body[i].text == "(")
        if depth == 0:
            break
        i -= 1
    return body[i - 1].kind == "word" and body[i - 1].text not in ("return", "sizeof")


def check_sizes(house):
    for path in house.c_files("agent", "tests"):
        text = house.text(path)
        count = text.count("\n")
        ours = path.parts[0] == "agent"
        gate = LINES[path.suffix if ours else ".c"]
        if count > gate:
            house.say(path, count, "sizes", f"{count} lines, more than {gate}")
        if not ours:
            continue  # a test's table of cases may be long
        functions, _ = house.top_level(path)
        for f in functions:
            check_function(house, path, f)


def check_function(house, path, f):
    lines = f.last - f.first + 1
    branches = sum(t.text in BRANCHES for t in f.body if t.kind in ("word", "op"))
    deep = levels(f.body)
    for count, gate, what in ((lines, FUNCTION_LINES, "lines"),
                              (branches, FUNCTION_BRANCHES, "branches"),
                              (len(f.params), FUNCTION_PARAMS, "parameters"),
                              (deep, FUNCTION_LEVELS, "levels")):
        if count > gate:
            house.say(path, f.first, "sizes", f"{f.name}: {count} {what}, more than {gate}")


def check_guards(house):
    for path in house.c_files("agent"):
        if path.suffix != ".h":
            continue
        name = "_".join(path.parts[1:]).replace(".", "_").upper()
        guard = f"NK_{name}"
        pp = [t.text for t in house.tokens(path) if t.kind == "pp"]
        good = len(pp) >= 3 and pp[0] == f"#ifndef {guard}" and pp[1] == f"#define {guard}" \
            and pp[-1].startswith("#endif")
        if not good:
            house.say(path, 1, "guards", f"must be guarded by {guard}")
        if not house.text(path).startswith("/*"):
            house.say(path, 1, "guards", "must begin with a comment that says what it is")


def is_variable(toks):
    """Whether a top-level declaration makes an object."""
    words = [t.text for t in toks]
    if words[0] in ("typedef", "_Static_assert") or "environ" in words:
        return False
    flat = outside_braces(toks)
    if any(t.text == "=" for t in flat):
        return True
    if flat and flat[-1].text == "}":
        return False  # a struct, union or enum alone
    if len(flat) == 2 and flat[0].text in ("struct", "union", "enum"):
        return False  # a forward declaration
    for i, t in enumerate(flat):
        if t.text == "(" and flat[i - 1].text != "__attribute__":
            return i + 1 < len(flat) and flat[i + 1].text == "*"
    return True


def outside_braces(toks):
    out, depth = [], 0
    for t in toks:
        depth += t.text == "{"
        if depth == 0 or (t.text == "}" and depth == 1):
            out.append(t)
        depth -= t.text == "}"
    return out


def is_constant(toks):
    """Whether the object itself, not just what it points to, is const."""
    head = []
    for t in outside_braces(toks):
        if t.text in ("=", "["):
            break
        head.append(t.text)
    if "*" in head:
        head = head[len(head) - head[::-1].index("*"):]
    return "const" in head


def local_statics(function):
    """The declarations inside a function that begin with `static`."""
    body = [t for t in function.body if t.kind != "pp"]
    for i, t in enumerate(body):
        if t.text == "static" and t.kind == "word":
            end = next(k for k in range(i, len(body)) if body[k].text in (";", "="))
            yield body[i:end + 1]


def check_state(house):
    for path in house.c_files("agent"):
        if short(path) in STATEFUL:
            continue
        functions, declarations = house.top_level(path)
        objects = [d.tokens for d in declarations if is_variable(d.tokens)]
        objects += [s for f in functions for s in local_statics(f)]
        for toks in objects:
            if not is_constant(toks):
                text = " ".join(t.text for t in toks[:8])
                house.say(path, toks[0].line, "state", f"a variable that outlives its call: {text}")


def check_typedefs(house):
    for path in house.c_files("agent"):
        _, declarations = house.top_level(path)
        for d in declarations:
            words = [t.text for t in d.tokens]
            if words[0] == "typedef" and "( *" not in " ".join(words):
                house.say(path, d.line, "typedefs", "a typedef is for function pointers only")


def check_macros(house):
    for path in house.c_files("agent"):
        functions, _ = house.top_level(path)
        for f in functions:
            for t in f.body:
                if t.kind == "pp" and re.match(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b", t.text):
                    house.say(path, t.line, "macros", f"{t.text.split()[0]} inside {f.name}")
        for t in house.tokens(path):
            if t.kind != "pp" or not re.match(r"#\s*define\b", t.text):
                continue
            if re.search(r"\b(return|goto|break|continue)\b", t.text):
                house.say(path, t.line, "macros", "a macro hides control flow")
            if "##" in t.text:
                house.say(path, t.line, "macros", "a macro builds a name")


def check_names(house):
    known = {}  # room: the stems of its files and the types of its headers
    for path in house.c_files("agent"):
        names = known.setdefault(room_of(path), set())
        names.add(path.stem)
        names.update(re.findall(r"\b(?:struct|enum) nk_(\w+)", house.text(path)))
    for path in house.c_files("agent"):
        if path.suffix == ".c":
            check_file_names(house, path, known[room_of(path)])


def check_file_names(house, path, known):
    functions, _ = house.top_level(path)
    for f in functions:
        if f.name == "main" or f.name in ("nk_fail", "nk_fail_sys"):
            continue
        if f.static and f.name.startswith("nk_"):
            house.say(path, f.first, "names", f"{f.name} is static: no prefix")
        if not f.static and not well_named(f.name, known | {"api", "cmd"}):
            house.say(path, f.first, "names", f"{f.name} is not nk_<file or type>_<verb>")


def well_named(name, known):
    parts = name.split("_")
    return parts[0] == "nk" and any("_".join(parts[1:i]) in known for i in range(2, len(parts) + 1))


def check_drawings(house):
    for path in house.c_files("agent", "tests"):
        for line, text in c_tokens.comments(house.text(path)):
            if DRAWING.search(text):
                house.say(path, line, "drawings", "a comment is no place for drawings")


def check_foreign(house):
    for path in house.files:
        data = (house.root / path).read_bytes()
        if FOREIGN_FOLDER.search(str(path.parent)):
            house.say(path, 1, "foreign", "a folder for other people's files")
        if path != Path("LICENSE") and FOREIGN_TEXT.search(data):
            house.say(path, 1, "foreign", "carries somebody's licence text")
        if len(data) > 1 << 20:
            house.say(path, 1, "foreign", "is larger than 1 MiB")


def check_machine(house):
    own = str(house.root)
    for path in house.files:
        data = (house.root / path).read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            if MACHINE_TEXT.search(line) or (own.count("/") > 1 and own in line):
                house.say(path, number, "machine", "names one machine's path or a registry's host")


CHECKS = (check_top, check_rooms, check_libraries, check_calls, check_stems, check_sizes,
          check_guards, check_state, check_typedefs, check_macros, check_names, check_drawings,
          check_foreign, check_machine)


def findings(root):
    house = House(root)
    for check in CHECKS:
        check(house)
    return house.found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = findings(root)
    for line in found:
        print(line)
    print(f"house: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
