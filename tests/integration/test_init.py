"""nookd as the init of a PROGRAM: thirty scenarios, as process 1 and as an ordinary process.

Each test's name carries its scenario's number.
"""

import os
import signal
import subprocess

import pytest

import nook as harness
import wire
from groups import is_frozen
from init_run import PYTHON, Init, reap
from nook import proc_stat, refuse, scaled
from wire import wait_until

FAULTS = {signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE,
          signal.SIGSEGV, signal.SIGSYS}
UNSEEN = FAULTS | {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
FORWARDED = [s for s in range(1, 32) if s not in UNSEEN]

# Says which signals reach it. One that begins with "fork" has a child in its group that does too.
LISTENER = """
import os, signal, sys
def said(signo, _):
    os.write(1, f"{name} {signo}\\n".encode())
    if signo in (2, 3, 15):
        os._exit(signo)
name = "main"
for s in range(1, 32):
    if s not in (9, 19, 17, 4, 5, 6, 7, 8, 11):
        signal.signal(s, said)
if sys.argv[1:] == ["fork"] and os.fork() == 0:
    name = "child"
os.write(1, (name + " up\\n").encode())
while True:
    signal.pause()
"""


# Ends once its child did, which it asks to; that one is in another session.
SUPERVISOR = """
import os, signal, subprocess, sys
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
def end(*_):
    child.terminate()
    child.wait()
    os._exit(9)
signal.signal(signal.SIGTERM, end)
os.write(1, b"up\\n")
while True:
    signal.pause()
"""


def listener(*args):
    return [PYTHON, "-c", LISTENER, *args]


@pytest.fixture(params=[pytest.param(True, marks=pytest.mark.pid1, id="as_process_1"),
                        pytest.param(False, id="not_process_1")])
def pid1(request):
    return request.param


def remaining(pids):
    """Who still lives; where orphans come to nookd, nobody may lie about dead either."""
    reaps = "subreaper" not in os.environ.get("NOOK_SERVE_ARGS", "")
    return [p for p in pids if (stat := proc_stat(p)) and (reaps or stat[0] != "Z")]


@pytest.fixture
def runs():
    """Ends every run that the test began, and hears what sanitizers said."""
    begun = []
    yield begun
    said = [text for text in (run.finish() for run in begun) if text]
    assert not said, said[0]


@pytest.fixture
def init(pid1, runs):
    def start(program, *args, **kw):
        run = Init(program, *args, **{"pid1": pid1, **kw})
        runs.append(run)
        return run
    return start


def up(run, count=1):
    """Waits until PROGRAM says that it is."""
    for _ in range(count):
        assert run.line() in ("up", "main up", "child up"), run.stderr()
    return run


def statuses(init, scripts):
    """Of many short runs, some at once."""
    out = []
    for at in range(0, len(scripts), 8):
        batch = [init(["sh", "-c", s]) for s in scripts[at:at + 8]]
        out += [run.wait() for run in batch]
    return out


def test_I1_every_exit_code_comes_back_unchanged(init):
    codes = sorted({0, 1, 2, 125, 126, 127, 128, 129, 255, *range(0, 256, int(1 / harness.SCALE))})
    assert statuses(init, [f"exit {c}" for c in codes]) == codes


def test_I2_death_by_a_signal_is_128_and_its_number(init):
    deadly = [1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 24, 31]
    assert statuses(init, [f"kill -{s} $$" for s in deadly]) == [128 + s for s in deadly]


def only_main_is_left(run, seconds=20):
    """Nothing below nookd but PROGRAM, and no zombie."""
    def look():
        return harness.descendants_of(run.pid) == [main] and run.states() != ["Z"]
    main = run.main
    wait_until(look, seconds, "everything else is reaped")


def test_I3_a_hundred_orphans_of_staggered_length_are_all_reaped(init):
    run = up(init(["bash", "-c", "for i in $(seq -w 100); do (sleep 0.$i & sleep 0.0$i &); done;"
                   "echo up; exec sleep 1000"]))
    only_main_is_left(run)


def test_I4_nested_background_shells_leave_no_zombie(init):
    run = up(init(["bash", "-c", "bash -c 'bash -c \"sleep 0.1 & sleep 0.2 &\" & sleep 0.1 &' &"
                   "wait; echo up; exec sleep 1000"]))
    only_main_is_left(run)


DOUBLE_FORKS = """
import os, sys, time
for i in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
os.write(1, b"up\\n")
time.sleep(1000)
"""


def test_I5_ten_thousand_double_forks_leave_no_zombie(init):
    run = init([PYTHON, "-c", DOUBLE_FORKS, str(scaled(10_000))])
    assert run.line(240) == "up"
    only_main_is_left(run, 5)


SUBREAPER_PROXY = "import ctypes,os,sys; ctypes.CDLL(None).prctl(36,1,0,0,0);" \
                  "os.execvp(sys.argv[1], sys.argv[1:])"


def test_I6_orphans_are_reaped_below_an_intermediate_subreaper(init):
    run = up(init(["bash", "-c", "(sleep 0.1 &); (setsid sleep 0.2 &); echo up; exec sleep 1000"],
                  "--without", "subreaper", before=[PYTHON, "-c", SUBREAPER_PROXY]))
    only_main_is_left(run)
    assert "no_reaping" not in run.stderr()


def test_I7_without_process_1_and_subreaper_it_warns_and_runs(runs):
    run = Init(listener(), "--without", "subreaper")
    runs.append(run)
    up(run)
    wait_until(lambda: "no_reaping" in run.stderr(), 10, "a warning")
    run.signal(signal.SIGTERM)
    assert run.wait() == 15


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_I8_a_signal_reaches_the_child_and_its_death_is_the_status(init, signo):
    run = up(init(["sh", "-c", "echo up; exec sleep 1000"]))
    run.signal(signo)
    assert run.wait() == 128 + signo


def hear(run, signo, count):
    """Sends a signal, and what PROGRAM and its child say to it."""
    run.signal(signo)
    heard = {run.line() for _ in range(count)}
    if signo in STOPS and not run.pid1:
        wait_until(lambda: proc_stat(run.pid)[0] == "T", 10, "nookd stops itself")
        run.signal(signal.SIGCONT)
        assert {run.line() for _ in range(count)} == \
            {text.split()[0] + f" {int(signal.SIGCONT)}" for text in heard}
    return heard


@pytest.mark.parametrize("mode", ["group", "child"])
def test_I9_every_signal_is_forwarded(init, mode):
    run = up(init(listener("fork"), "--signals", mode, "--on-main-exit", "leave"), 2)
    names = ["main", "child"] if mode == "group" else ["main"]
    for signo in FORWARDED:
        if signo not in ENDS:
            assert hear(run, signo, len(names)) == {f"{n} {signo}" for n in names}
    rest = [p for p in harness.descendants_of(run.pid) if p != run.main]
    run.signal(signal.SIGTERM)
    assert run.wait() == 15
    if mode == "child" and not run.pid1:
        assert [p for p in rest if proc_stat(p)] == rest
        reap(rest)


@pytest.mark.parametrize("maps, sent, heard", [
    (["TERM:INT"], signal.SIGTERM, 2),
    (["USR1:USR2", "USR2:USR1"], signal.SIGUSR1, 12),
    (["USR1:USR2", "USR2:USR1"], signal.SIGUSR2, 10),
    (["1:31", "31:1"], 1, 31),
    (["1:31", "31:1"], 31, 1),
])
def test_I10_signals_are_rewritten(init, maps, sent, heard):
    run = up(init(listener(), *[a for m in maps for a in ("--map-signal", m)]))
    run.signal(sent)
    assert run.line() == f"main {heard}"


def test_I10_a_signal_mapped_to_0_is_swallowed(init):
    run = up(init(listener(), "--map-signal", "TERM:0", "--map-signal", "USR1:0"))
    for signo in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        run.signal(signo)
    assert run.line() == "main 12"


@pytest.mark.parametrize("text", ["TERM", "TERM:", ":INT", "TERM:NOPE", "0:1", "1:99", "a:b:c"])
def test_I10_wrong_syntax_is_refused(text):
    status, said = refuse("--map-signal", text, "--", "true")
    assert status == 2 and "--map-signal" in said and said.count("\n") == 1


STUBBORN_PARENT = """
import os, signal, sys
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
child = os.fork()
if child == 0:
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    os.write(1, b"up\\n")
    signal.pause()
_, status = os.waitpid(child, 0)
os._exit(20 + os.WTERMSIG(status))
"""


def test_I11_the_grandchild_dies_then_the_child_then_init(init):
    run = up(init([PYTHON, "-c", STUBBORN_PARENT]))
    run.signal(signal.SIGUSR1)
    assert run.wait() == 20 + signal.SIGUSR1


PIPELINES = "yes | tail >/dev/null & yes | tail >/dev/null & echo up; wait"


def pipeline(run):
    """Its four processes, once they are executed."""
    def look():
        pids = harness.descendants_of(run.pid)
        names = [(p, harness.status_field(p, "Name")) for p in pids]
        found = [p for p, name in names if name in ("yes", "tail")]
        return found if len(found) == 4 else None
    return wait_until(look, 20, "two pipelines run")


def test_I12_pipelines_end_with_the_group(init):
    run = up(init(["bash", "-c", PIPELINES]))
    four = pipeline(run)
    run.signal(signal.SIGTERM)
    assert run.wait() == 143
    assert remaining(four) == []


def test_I12_in_single_mode_the_four_of_the_pipelines_stay(runs):
    run = Init(["bash", "-c", PIPELINES], "--signals", "child", "--on-main-exit", "leave")
    runs.append(run)
    four = pipeline(up(run))
    run.signal(signal.SIGTERM)
    assert run.wait() == 143
    alive = [p for p in four if (proc_stat(p) or "Z")[0] != "Z"]
    reap(four)
    assert alive == four


REST = "(trap 'echo asked; exit' TERM; echo up; while :; do sleep 0.05; done) & read x; exit 6"


@pytest.mark.parametrize("mode", ["term", "leave"])
def test_I13_what_remains_when_main_exits_is_asked_to_end_or_left(init, mode):
    stdin, writer = os.pipe()
    run = init(["bash", "-c", REST], "--on-main-exit", mode, stdin=stdin)
    os.close(stdin)
    up(run)
    rest = [p for p in harness.descendants_of(run.pid) if p != run.main]
    os.write(writer, b"go\n")
    os.close(writer)
    assert run.wait() == 6
    alive = [p for p in rest if (proc_stat(p) or "Z")[0] != "Z"]
    reap(rest)
    assert (run.rest() == "asked\n") == (mode == "term")
    assert bool(alive) == (mode == "leave" and not run.pid1)


MASK_PROXY = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_SETMASK, {10, 12, 34, 40})
signal.signal(1, signal.SIG_IGN)
signal.signal(35, signal.SIG_IGN)
for line in open("/proc/self/status"):
    if line.startswith(("SigBlk", "SigIgn")):
        os.write(1, line.encode())
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_I14_blocked_and_ignored_signals_are_those_that_init_inherited(init):
    run = init(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"],
               before=[PYTHON, "-c", MASK_PROXY])
    lines = run.rest().splitlines()
    assert len(lines) == 4 and lines[:2] == lines[2:]
    assert int(lines[0].split()[1], 16) == sum(1 << (s - 1) for s in (10, 12, 34, 40))
    assert run.wait() == 0


def test_I14_commands_of_the_api_have_theirs_reset(start_nook):
    nook = start_nook(program=["sleep", "1000"])
    nook.expect_exit = 143
    out = nook.exec(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"])["stdout"]
    assert [line.split()[1] for line in out.splitlines()] == ["0" * 16] * 2


def test_I15_the_death_of_the_parent_is_told_by_the_chosen_signal(init, pid1):
    around = () if pid1 else ["sh", "-c", '"$@" & wait', "sh"]
    run = up(init(listener(), "--parent-death", "USR1", around=around))
    pid = run.pid
    wait_until(lambda: '"ready"' in run.stderr(), 20, "nookd is ready")
    run.proc.kill()
    assert run.line() == "main 10"
    os.kill(pid, signal.SIGTERM)
    assert run.line() == "main 15"
    os.waitpid(pid, 0)


def test_I16_on_a_terminal_the_child_is_in_the_foreground_and_has_job_control(init):
    run = init(["bash", "--norc", "-i"], tty=True, env={"PS1": "ask> ", "TERM": "dumb"})
    os.write(run.terminal, b"case $- in *m*) echo job''control;; esac\n")
    run.until("jobcontrol\r\n")
    os.write(run.terminal, b"exit 0\n")
    assert run.wait() == 0


def test_I16_ctrl_c_ends_the_child_in_front_with_130(init):
    run = up(init(["sh", "-c", "echo up; exec sleep 1000"], tty=True))
    os.write(run.terminal, b"\x03")
    assert run.wait() == 130


def test_I17_the_output_through_a_terminal_is_complete(init):
    run = init(["sh", "-c", "stty -echo; echo up; exec tac"], tty=True)
    assert run.line() == "up"
    os.write(run.terminal, b"one\ntwo\nthree\n\x04\x04")
    assert [run.line() for _ in range(3)] == ["three", "two", "one"]
    assert run.wait() == 0


def test_I18_the_hand_over_of_the_terminal_sends_the_child_nothing_and_later_signals_come(init):
    run = up(init(listener(), tty=True))
    for signo in (signal.SIGHUP, signal.SIGCONT, signal.SIGHUP):
        run.signal(signo)
        assert run.line() == f"main {int(signo)}"


@pytest.mark.parametrize("signo", sorted(STOPS))
def test_I19_stop_signals_stop_both_and_cont_wakes_both(init, signo):
    run = up(init(["sh", "-c", "echo up; exec sleep 1000"]))
    main = run.main
    both = [main] if run.pid1 else [main, run.pid]  # the kernel lets nothing stop process 1
    for _ in range(3):
        run.signal(signo)
        wait_until(lambda: all(proc_stat(p)[0] == "T" for p in both), 20, "stopped")
        run.signal(signal.SIGCONT)
        wait_until(lambda: all(proc_stat(p)[0] != "T" for p in both), 20, "woken")
    run.signal(signal.SIGTERM)
    assert run.wait() == 143


def test_I20_init_lives_in_the_root_folder_and_the_child_where_the_caller_was(init):
    run = init(["sh", "-c", "pwd; exec sleep 1000"], cwd="/usr/lib")
    assert run.line() == "/usr/lib"
    assert os.readlink(f"/proc/{run.pid}/cwd") == "/"


@pytest.fixture
def extra(tmp_path):
    fds = [os.open(tmp_path / f"extra{i}", os.O_RDWR | os.O_CREAT) for i in range(3)]
    yield fds
    for fd in fds:
        os.close(fd)


def targets(pid):
    out = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            out[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            pass
    return out


def test_I21_descriptors_of_the_caller_are_not_kept_and_not_passed_on(init, extra):
    run = up(init(["sh", "-c", "echo up; exec sleep 1000"], pass_fds=extra))
    assert not [t for t in targets(run.pid).values() if "extra" in t]
    assert sorted(targets(run.main)) == [0, 1, 2]


def test_I21_a_descriptor_is_passed_on_by_wish_and_listen_pid_is_the_childs(init, extra):
    wished = extra[1]
    run = init(["sh", "-c", "echo $LISTEN_PID $$; exec sleep 1000"], "--pass-fd", wished,
               pass_fds=extra, env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
    named, own = run.line().split()
    assert named == own
    assert sorted(targets(run.main)) == [0, 1, 2, wished]
    assert targets(run.main)[wished].endswith("extra1")


def test_I21_a_descriptor_that_is_not_open_cannot_be_passed_on():
    status, said = refuse("--pass-fd", 77, "--", "true")
    assert status == 2 and "77" in said


@pytest.mark.parametrize("program, status", [
    (["/nowhere/program"], 127), (["no-such-program-here"], 127), (["/etc/passwd"], 126),
    (["/usr"], 126)])
def test_I22_a_program_that_is_missing_is_127_and_one_that_cannot_run_126(init, program, status):
    run = init(program, env={"PATH": "/usr/bin:/bin"})
    assert run.wait() == status
    assert program[0] in run.stderr()


@pytest.mark.parametrize("flag", ["--nope", "--grace=x", "-x"])
def test_I22_a_bad_option_is_one_line_that_names_it(flag):
    status, said = refuse(flag, "--", "true")
    assert (status, said.count("\n")) == (2, 1) and flag.split("=")[0] in said


@pytest.mark.parametrize("args", [["-h"], ["--help"], ["--version"], ["serve", "-h"]])
def test_I23_help_and_version_come_before_anything_else(args):
    done = subprocess.run([harness.BINARY, *args, "--nope", "--", "/nowhere"], timeout=60,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "nookd" in done.stdout


def test_I24_a_plain_run_leaks_nothing(init):
    if not harness.is_sanitized():
        pytest.skip("the binary carries no leak check; the asan preset's does")
    run = init(["true"])
    assert run.wait() == 0
    assert not harness.SANITIZER.search(run.stderr())


def test_I25_main_and_another_child_end_at_once_and_init_still_ends(init):
    script = "(exit 3) & exit 4"
    count = 1000 if harness.SCALE >= 1 else scaled(80, 8)
    assert statuses(init, [script] * count) == [4] * count


def test_I26_a_main_that_exits_127_ends_init_with_127(init):
    assert init(["sh", "-c", "exit 127"]).wait() == 127


SLOW_MEMBER = """
trap 'exit 9' TERM
(trap 'sleep 1; echo second; exit' TERM; echo up; while :; do sleep 0.05; done) &
while :; do sleep 0.05; done
"""


def test_I27_a_group_member_has_its_second_after_main_is_gone(init):
    run = up(init(["bash", "-c", SLOW_MEMBER], "--grace", "60"))
    run.signal(signal.SIGTERM)
    assert run.line(60) == "second"
    assert run.wait() == 9


def test_I27_who_needs_longer_than_the_grace_is_killed(init):
    run = up(init(["bash", "-c", "(trap '' TERM; echo up; while :; do sleep 0.05; done) & sleep 1000"],
                  "--grace", "0.3"))
    below = harness.descendants_of(run.pid)
    run.signal(signal.SIGTERM)
    assert run.wait() == 143
    assert remaining(below) == []


@pytest.mark.parametrize("end", ["term", "exit"])
def test_I28_a_setsid_grandchild_is_ended_too(init, end):
    stdin, writer = os.pipe()
    run = up(init(["bash", "-c", "(setsid sleep 1000 &); setsid sleep 1000 & echo up; read x; exit 3"],
                  stdin=stdin))
    os.close(stdin)
    below = wait_until(lambda: len(run.below()) == 3 and run.below(), 20, "three processes")
    if end == "term":
        run.signal(signal.SIGTERM)
        assert run.wait() == 143
    os.close(writer)
    if end == "exit":
        assert run.wait() == 3
    assert remaining(below) == []


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_I29_a_second_signal_shortens_the_grace(init, second):
    run = up(init(["bash", "-c", "trap 'echo heard' TERM; trap '' INT; echo up;"
                   "while :; do sleep 0.05; done"], "--grace", "600"))
    run.signal(signal.SIGTERM)
    assert run.line() == "heard"
    run.signal(second)
    assert run.wait() == 137
    assert run.stderr().count('"ending"') == 2


def test_I30_a_stopped_child_is_woken_so_that_it_can_act(init):
    run = up(init(["bash", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"],
                  "--grace", "60"))
    main = run.main
    os.kill(main, signal.SIGSTOP)
    wait_until(lambda: proc_stat(main)[0] == "T", 20, "stopped")
    run.signal(signal.SIGTERM)
    assert run.wait() == 9


@pytest.mark.parametrize("signo", sorted(ENDS))
def test_without_a_program_it_ends_with_0(init, signo):
    run = init([])
    wait_until(lambda: '"ready"' in run.stderr(), 20, "nookd is ready")
    run.signal(signo)
    assert run.wait() == 0


@pytest.mark.root
def test_program_runs_as_the_user_of_its_own_option(init):
    run = init(["sh", "-c", "id -u; echo $HOME"], "--program-user", "4321:4321")
    assert run.line() == "4321"
    assert run.line() == "/"
    assert run.wait() == 0


def test_nothing_of_our_own_options_is_in_the_environment_of_program(init):
    run = init(["env"], env={"NOOKD_GRACE": "2", "NOOKD_TOKEN": "a-secret-of-the-test", "OWN": "1"})
    lines = run.rest().splitlines()
    assert "OWN=1" in lines and not [x for x in lines if "NOOKD" in x or "secret" in x]


BARE = ["sh", "-c", "mount --make-rprivate /; while umount -l /proc; do :; done 2>/dev/null;"
        "umount -l /dev/shm /dev/pts 2>/dev/null; exec \"$@\"", "sh"]


@pytest.mark.pid1
def test_process_1_mounts_what_is_missing(runs):
    run = Init(["sh", "-c", "cat /proc/1/comm; test -e /dev/pts/ptmx && echo terminals"], pid1=True,
               before=BARE)
    runs.append(run)
    assert run.rest() == "nookd\nterminals\n", run.stderr()
    assert run.wait() == 0


@pytest.mark.pid1
def test_process_1_runs_without_proc_where_it_may_not_be_mounted(runs):
    if harness.is_sanitized():
        pytest.skip("the sanitizers' own start reads /proc")
    run = Init(["sh", "-c", "test -e /proc/self || echo none; exit 5"], pid1=True,
               before=[*BARE, "setpriv", "--bounding-set=-sys_admin"])
    runs.append(run)
    assert run.rest() == "none\n", run.stderr()
    assert run.wait() == 5


def test_the_daemon_is_ahead_where_it_may_be_and_its_children_are_not(init):
    run = init(["sh", "-c", "nice; exec sleep 1000"])
    assert run.line() == "0"
    with open(f"/proc/{run.pid}/stat") as f:
        nice = int(f.read().rsplit(")", 1)[1].split()[16])
    assert nice == (-5 if harness.IS_ROOT else 0)


def ask(run, method, path):
    with wire.connect_unix(run.root / "run/api.sock", wait=60) as conn:
        return conn.request(method, path)


@pytest.mark.root
@pytest.mark.parametrize("mode", ["group", "child"])
@pytest.mark.parametrize("means", [(), ("--without", "cgroup")], ids=["group_frozen", "stopped"])
def test_a_paused_program_hears_the_end_at_once_with_all_that_it_started(init, means, mode):
    """The grace is longer than the test: whoever is not woken first would be killed after it."""
    run = up(init([PYTHON, "-c", SUPERVISOR], "--grace", "600", "--signals", mode, *means))
    wait_until(lambda: ask(run, "GET", "/readyz").status == 200, 20, "ready")
    assert ask(run, "POST", "/v1/sandbox/pause").json()["status"] == "paused"
    pids = [run.main, *harness.children_of(run.main)]
    assert len(pids) == 2 and all(map(is_frozen, pids))
    run.signal(signal.SIGTERM)
    assert run.wait() == 9
    assert remaining(pids) == []
