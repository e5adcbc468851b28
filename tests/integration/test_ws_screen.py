"""What a person sees on a terminal that is left and come back to: the same screen."""

import pytest

from screen import draw
from test_processes import show, start
from test_tty import needs
from wire import wait_until
from ws_client import attach

# A program, what is typed, what the screen then shows, and how it is left.
PROGRAMS = {
    "vim": (["vim", "vim.tiny"], ["-N", "-u", "NONE", "-i", "NONE", "text"],
            "ione\rtwo\rthree\x1bggddp", "three", ":q!\r"),
    "less": (["less"], ["long"], "  ", "line 60", "q"),
    "python": (["python3"], ["-i", "-q"], "print('x' * 7)\n", "xxxxxxx\n", "exit()\n"),
    "bash": (["bash"], ["--norc", "-i"], "printf 'a\\tb\\n'; echo $COLUMNS\n", "80\n", "exit\n"),
}


def shows(viewer, text):
    """Takes in output until the screen has the text on it."""
    while text.rstrip("\n") not in "\n".join(draw(viewer.stdout)):
        viewer.take()
    return draw(viewer.stdout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_screen_that_is_left_is_found_as_it_was(nook, name):
    tools, args, typed, seen, leave = PROGRAMS[name]
    (nook.workspace / "long").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    p = start(nook, [needs(*tools), *args], tty=True, env={"LESS": "", "PS1": "$ "})
    with attach(nook, p["id"]) as first, attach(nook, p["id"]) as other:
        while not first.stdout:
            first.take()
        first.say("stdin", text=typed)
        before = shows(first, seen)
        shows(other, seen)
    end = wait_until(lambda: show(nook, p["id"])["log_end"])
    with attach(nook, p["id"]) as back:
        assert (back.first["cols"], back.first["rows"]) == (80, 24)
        while back.offset < max(end, first.offset):
            back.take()
        # The same bytes draw the same screen; what the program added later lies behind them.
        assert draw(back.stdout[:first.offset]) == before
        assert back.stdout[:first.offset] == first.stdout
        back.say("stdin", text=leave)
        assert back.finish()["exit_code"] == 0
