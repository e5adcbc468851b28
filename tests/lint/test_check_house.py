#!/usr/bin/env python3
"""Shows that each house rule can fail, and that a tidy tree passes all of them."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_house  # noqa: E402

HEADER = """/*
 * A header that breaks no rule.
 */
#ifndef NK_BASE_TIDY_H
#define NK_BASE_TIDY_H

#include <stddef.h>

struct nk_tidy {
    char *data; /* owned */
};

typedef int (*nk_tidy_fn)(void *ctx);

extern const struct nk_tidy nk_tidy_table[];
extern char **environ;
enum nk_tidy_kind { NK_TIDY_ONE = 1 };
_Static_assert(sizeof(int) == 4, "int");

int nk_tidy_count(const struct nk_tidy *t, size_t (*each)(void *));
static inline int nk_tidy_twice(int n)
{
    return 2 * n;
}

#endif
"""
SOURCE = """#include "base/tidy.h"

#include <string.h>

static const char *const names[] = {"a", "b"};
const struct nk_tidy nk_tidy_table[] = {{.data = NULL}};

/* fork() in a comment, and "fork()" in a string, are no calls. */
static int pick(const struct nk_tidy *t)
{
    static const int table[] = {1, 2};

    if (!t->data) {
        for (int i = 0; i < 2; i++) {
            while (i < 1) {
                if (strlen("fork()") > 3) {
                    i += (int)sizeof((struct nk_tidy){0});
                }
            }
        }
    }
    return table[0] + (names[0] ? 1 : 0);
}

int nk_tidy_count(const struct nk_tidy *t, size_t (*each)(void *))
{
    return pick(t) + (int)each(NULL);
}
"""

TREE = {
    "CMakeLists.txt": "", "README.md": "", "LICENSE": "Copy" "right (c) someone\n",
    ".gitignore": "/build/\n", "agent/base/tidy.h": HEADER, "agent/base/tidy.c": SOURCE,
}


def function(body, head="static void f(void)"):
    return f"{head}\n{{\n{body}\n}}\n"


def header(guard, body=""):
    return f"/*\n * What it is.\n */\n#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


# What is added to the tidy tree, and the rule that must find it.
BAD = {
    "something_else_at_the_top": ("top", {"Makefile": ""}),
    "a_folder_at_the_top": ("top", {"src/a.txt": ""}),
    "base_knows_http": ("rooms", {"agent/base/x.c": '#include "http/router.h"\n'}),
    "http_knows_process": ("rooms", {"agent/http/x.c": '#include "process/spawn.h"\n'}),
    "process_knows_files": ("rooms", {"agent/process/x.h": header(
        "NK_PROCESS_X_H", '#include "files/path.h"')}),
    "a_room_knows_config": ("rooms", {"agent/api/x.c": '#include "config.h"\n'}),
    "a_room_knows_app": ("rooms", {"agent/api/x.c": '#include "app.h"\n'}),
    "config_knows_http": ("rooms", {"agent/config.c": '#include "http/router.h"\n'}),
    "cli_knows_process": ("rooms", {"agent/cli/x.c": '#include "process/spawn.h"\n'}),
    "a_unit_test_reaches_upwards": ("rooms", {
        "tests/unit/http/test_x.c": '#include "process/spawn.h"\n'}),
    "an_unknown_room": ("rooms", {"agent/misc/x.c": ""}),
    "llhttp_outside_its_home": ("libraries", {"agent/http/x.c": "#include <llhttp.h>\n"}),
    "cjson_outside_its_home": ("libraries", {"agent/api/x.c": "#include <cjson/cJSON.h>\n"}),
    "seccomp_outside_its_home": ("libraries", {"agent/process/x.c": "#include <seccomp.h>\n"}),
    "archive_outside_its_home": ("libraries", {"agent/files/x.c": "#include <archive.h>\n"}),
    "libuv_in_base": ("libraries", {"agent/base/x.c": "#include <uv.h>\n"}),
    "clone_outside_its_home": ("calls", {"agent/process/x.c": function("    clone(0);")}),
    "clone_by_number": ("calls", {"agent/process/x.c": function("    syscall(SYS_clone, 0);")}),
    "setresuid_outside_its_home": ("calls", {"agent/api/x.c": function("    setresuid(1, 1, 1);")}),
    "waitpid_outside_its_home": ("calls", {"agent/process/x.c": function(
        "    waitpid(1, NULL, 0);")}),
    "getenv_outside_its_home": ("calls", {"agent/app.c": function('    getenv("A");')}),
    "exit_outside_its_home": ("calls", {"agent/app.c": function("    exit(1);")}),
    "a_wait_by_the_wall_clock": ("calls", {"agent/http/x.c": function(
        "    int64_t until = nk_clock_wall_ms() + 5;")}),
    "the_wall_clock_itself": ("calls", {"agent/http/x.c": function(
        "    clock_gettime(CLOCK_REALTIME, 0);")}),
    "one_function_in_two_files_of_a_stem": ("stems", {
        "agent/base/x.c": "", "agent/http/x.c": ""}),
    "a_test_with_the_stem_of_another": ("stems", {
        "tests/unit/base/test_x.c": "", "tests/unit/http/test_x.c": ""}),
    "a_long_file": ("sizes", {"agent/base/x.c": "\n" * 501}),
    "a_long_header": ("sizes", {"agent/base/x.h": header("NK_BASE_X_H", "\n" * 150)}),
    "a_long_function": ("sizes", {"agent/base/x.c": function("\n".join(["    g();"] * 58))}),
    "a_long_test": ("sizes", {"tests/unit/base/test_x.c": "\n" * 501}),
    "many_branches": ("sizes", {"agent/base/x.c": function(
        "\n".join(f"    if (a == {i}) b();" for i in range(16)))}),
    "many_cases": ("sizes", {"agent/base/x.c": function(
        "    switch (a) {\n" + "    case 1:\n" * 16 + "    }")}),
    "many_parameters": ("sizes", {"agent/base/x.c": function(
        "    g();", "int nk_x_f(int a, int b, int c, int d, int e, int (*f)(int, int), int g)")}),
    "deep_nesting": ("sizes", {"agent/base/x.c": function(
        "if (a) { for (;;) { while (b) { do { switch (c) { case 1: } } while (d); } } }")}),
    "a_missing_guard": ("guards", {"agent/base/x.h": "/*\n * X.\n */\nint a(void);\n"}),
    "a_guard_of_another_name": ("guards", {"agent/base/x.h": header("NK_X_H")}),
    "a_guard_around_a_part": ("guards", {
        "agent/base/x.h": header("NK_BASE_X_H") + "#include <stdio.h>\n"}),
    "a_header_without_a_comment": ("guards", {
        "agent/base/x.h": header("NK_BASE_X_H").split("*/\n")[1]}),
    "a_counter": ("state", {"agent/base/x.c": "static int counter;\n"}),
    "a_cache_in_a_function": ("state", {"agent/base/x.c": function("    static char buf[8];")}),
    "a_pointer_that_can_move": ("state", {"agent/base/x.c": 'static const char *name = "a";\n'}),
    "a_hook": ("state", {"agent/base/x.c": "static void (*hook)(int);\n"}),
    "a_struct_object": ("state", {"agent/base/x.c": "static struct s { int a; } all[4];\n"}),
    "an_initialised_table": ("state", {"agent/base/x.c": "static int t[] = {1, 2};\n"}),
    "a_thread_variable": ("state", {"agent/http/x.c": "static _Thread_local int depth;\n"}),
    "a_typedef_of_a_struct": ("typedefs", {"agent/base/x.c": "typedef struct s s_t;\n"}),
    "ifdef_in_a_function": ("macros", {"agent/base/x.c": function("#ifdef A\n    g();\n#endif")}),
    "a_macro_that_returns": ("macros", {
        "agent/base/x.h": header("NK_BASE_X_H", "#define TRY(x) do { if (x) \\\n return -1; } while (0)")}),
    "a_macro_that_builds_names": ("macros", {"agent/base/x.c": "#define F(x) nk_##x\n"}),
    "a_public_function_without_prefix": ("names", {"agent/base/x.c": function(
        "    g();", "int x_open(void)")}),
    "a_public_function_of_no_file": ("names", {"agent/base/x.c": function(
        "    g();", "int nk_y_open(void)")}),
    "a_static_function_with_prefix": ("names", {"agent/base/x.c": function(
        "    g();", "static int nk_x_open(void)")}),
    "a_drawing": ("drawings", {"agent/base/x.c": "/* ------ the middle ------ */\n"}),
    "a_vendored_folder": ("foreign", {"agent/vendor/a.txt": ""}),
    "a_licence_text": ("foreign", {"agent/base/x.c": "/* Copy" "right (c) 2020 N. N. */\n"}),
    "a_large_file": ("foreign", {"tests/big.bin": "x" * (1 << 20) + "y"}),
    "a_home_folder": ("machine", {"tests/a.sh": "cd /ho" "me/someone/nookd\n"}),
    "a_registry_host": ("machine", {"container/a.sh": "curl https://py" "pi.org/simple\n"}),
}


def make(folder, files):
    for name, text in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(files):
    with tempfile.TemporaryDirectory() as folder:
        make(folder, files)
        return check_house.findings(folder)


class HouseRules(unittest.TestCase):
    def test_a_tidy_tree_passes(self):
        self.assertEqual(found(TREE), [])

    def test_each_forbidden_call_is_found(self):
        for name in sorted(check_house.FORBIDDEN):
            with self.subTest(name):
                lines = found({**TREE, "agent/base/x.c": function(f"    {name}(a);")})
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(f"[calls] {name} ", lines[0])

    def test_a_call_in_its_home_is_fine(self):
        for name, homes in check_house.HOMES.items():
            for home in homes:
                with self.subTest(name, home=home):
                    self.assertEqual(found({**TREE, f"agent/{home}": function(f"    {name}(a);")}),
                                     [])

    def test_the_path_of_the_tree_itself_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            make(folder, {**TREE, "tests/a.txt": f"see {Path(folder).resolve()}/agent\n"})
            lines = check_house.findings(folder)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("[machine]", lines[0])


def make_test(rule, files):
    def test(self):
        lines = found({**TREE, **files})
        self.assertTrue(lines, "nothing was found")
        for line in lines:
            self.assertIn(f"[{rule}]", line)
            self.assertTrue(re.match(r"\S+:\d+: ", line), line)
    return test


for _name, (_rule, _files) in BAD.items():
    setattr(HouseRules, f"test_{_rule}_{_name}", make_test(_rule, _files))

if __name__ == "__main__":
    unittest.main()
