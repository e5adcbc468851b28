#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/creds.h"
#include "process/pty.h"

#define DEADLINE_MS 10000

struct pair {
    int master, slave;
};

static int open_pair(void **state)
{
    static struct pair pair;

    *state = &pair;
    return nk_pty_open(80, 24, NULL, &pair.master, &pair.slave);
}

static int close_pair(void **state)
{
    struct pair *p = *state;

    (void)close(p->master);
    (void)close(p->slave);
    return 0;
}

/* What a program reads next. */
static ssize_t read_next(int fd, char *out, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, DEADLINE_MS), 1);
    return read(fd, out, size);
}

static void change(int slave, void (*fn)(struct termios *t))
{
    struct termios t;

    assert_int_equal(tcgetattr(slave, &t), 0);
    fn(&t);
    assert_int_equal(tcsetattr(slave, TCSANOW, &t), 0);
}

static void both_ends_are_born_closed_to_programs(void **state)
{
    struct pair *p = *state;

    assert_true(fcntl(p->master, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(p->slave, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(p->master, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(p->slave, F_GETFL) & O_NONBLOCK);
    assert_true(isatty(p->slave));
}

static void it_does_not_become_our_terminal(void **state)
{
    struct pair *p = *state;
    pid_t session;

    assert_int_equal(ioctl(p->slave, TIOCGSID, &session), -1);
    assert_int_equal(nk_pty_foreground(p->master, getsid(0)), 0);
}

static void it_has_the_size_from_the_start(void **state)
{
    int master, slave;
    struct winsize size;

    (void)state;
    assert_int_equal(nk_pty_open(65535, 1, NULL, &master, &slave), 0);
    assert_int_equal(ioctl(slave, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_col, 65535);
    assert_int_equal(size.ws_row, 1);
    assert_int_equal(nk_pty_resize(master, 132, 43), 0);
    assert_int_equal(ioctl(slave, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_col, 132);
    assert_int_equal(size.ws_row, 43);
    (void)close(master);
    assert_int_equal(nk_pty_resize(master, 80, 24), -EBADF);
    (void)close(slave);
}

static void it_begins_with_the_usual_settings(void **state)
{
    struct pair *p = *state;
    struct termios t;

    assert_int_equal(tcgetattr(p->slave, &t), 0);
    assert_int_equal(t.c_iflag, ICRNL | IXON | IUTF8);
    assert_int_equal(t.c_oflag, OPOST | ONLCR);
    assert_int_equal(t.c_lflag, ISIG | ICANON | IEXTEN | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE);
    assert_int_equal(t.c_cc[VINTR], 3);
    assert_int_equal(t.c_cc[VEOF], 4);
    assert_int_equal(t.c_cc[VERASE], 127);
    assert_int_equal(t.c_cc[VMIN], 1);
}

static void as_root_it_is_given_away(void **state)
{
    const struct nk_creds owner = {.uid = 54321, .gid = 54322};
    struct stat st;
    int master, slave;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root */
    assert_int_equal(nk_pty_open(80, 24, &owner, &master, &slave), 0);
    assert_int_equal(fstat(slave, &st), 0);
    assert_int_equal(st.st_uid, 54321);
    assert_int_equal(st.st_gid, 54322);
    assert_int_equal(st.st_mode & 0777, 0600);
    (void)close(master);
    (void)close(slave);
}

static unsigned ends(struct pair *p, uint8_t last)
{
    uint8_t byte = 0;
    unsigned n = nk_pty_end_of_input(p->master, last, &byte);

    assert_int_equal(byte, 4);
    return n;
}

static void the_end_is_typed_once_on_an_empty_line(void **state)
{
    struct pair *p = *state;
    /* return, EOF itself, kill, and those that make a signal and so empty the line */
    static const uint8_t empty[] = {NK_PTY_NO_BYTE, '\n', '\r', 4, 21, 3, 28, 26};

    for (size_t i = 0; i < sizeof empty; i++)
        assert_int_equal(ends(p, empty[i]), 1);
}

static void and_twice_on_another(void **state)
{
    struct pair *p = *state;
    static const uint8_t other[] = {'x', ' ', 0, 127, 23, 0xff};

    for (size_t i = 0; i < sizeof other; i++)
        assert_int_equal(ends(p, other[i]), 2);
}

static void make_raw(struct termios *t)
{
    cfmakeraw(t);
}

static void keep_returns_and_lines(struct termios *t)
{
    t->c_iflag &= ~(tcflag_t)ICRNL;
    t->c_lflag |= NOFLSH;
}

static void what_ends_a_line_is_the_programs_choice(void **state)
{
    struct pair *p = *state;

    change(p->slave, keep_returns_and_lines);
    assert_int_equal(ends(p, '\r'), 2);
    assert_int_equal(ends(p, 3), 2);
    change(p->slave, make_raw);
    assert_int_equal(ends(p, 'x'), 1);
}

static void take_another_eof(struct termios *t)
{
    t->c_cc[VEOF] = 'q';
}

static void take_no_eof(struct termios *t)
{
    t->c_cc[VEOF] = 0;
}

static void the_character_is_the_programs_choice(void **state)
{
    struct pair *p = *state;
    uint8_t byte = 0;

    change(p->slave, take_another_eof);
    assert_int_equal(nk_pty_end_of_input(p->master, 'x', &byte), 2);
    assert_int_equal(byte, 'q');
    change(p->slave, take_no_eof);
    assert_int_equal(nk_pty_end_of_input(p->master, 'x', &byte), 0);
    change(p->slave, make_raw);
    assert_int_equal(nk_pty_end_of_input(p->master, 'x', &byte), 1);
    assert_int_equal(byte, 4);
}

static void a_program_sees_the_line_and_then_the_end(void **state)
{
    struct pair *p = *state;
    uint8_t byte = 0;
    char text[16];

    assert_int_equal(write(p->master, "abc", 3), 3);
    for (unsigned n = nk_pty_end_of_input(p->master, 'c', &byte); n > 0; n--)
        assert_int_equal(write(p->master, &byte, 1), 1);
    assert_int_equal(read_next(p->slave, text, sizeof text), 3);
    assert_memory_equal(text, "abc", 3);
    assert_int_equal(read_next(p->slave, text, sizeof text), 0);
}

static void a_master_whose_slave_is_gone_is_at_its_end(void **state)
{
    char text[16];
    int master, slave;

    (void)state;
    assert_int_equal(nk_pty_open(80, 24, NULL, &master, &slave), 0);
    assert_int_equal(read(master, text, sizeof text), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(write(slave, "last", 4), 4);
    (void)close(slave);
    assert_int_equal(read_next(master, text, sizeof text), 4);
    assert_int_equal(read_next(master, text, sizeof text), -1);
    assert_int_equal(errno, EIO);
    (void)close(master);
}

/* Room for two descriptors, then one, then none: both, or neither. */
static void without_descriptors_nothing_stays_open(void **state)
{
    struct rlimit before, lim;
    int master = -7, slave = -7;
    int next = dup(STDIN_FILENO);

    (void)state;
    assert_true(next >= 0);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    lim = before;
    for (int room = 1; room >= 0; room--) {
        lim.rlim_cur = (rlim_t)(next + room);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
        assert_int_equal(nk_pty_open(80, 24, NULL, &master, &slave), -EMFILE);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(master, -7);
    assert_int_equal(slave, -7);
    assert_int_equal(dup(STDIN_FILENO), next);
    (void)close(next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_ends_are_born_closed_to_programs, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(it_does_not_become_our_terminal, open_pair, close_pair),
        cmocka_unit_test(it_has_the_size_from_the_start),
        cmocka_unit_test_setup_teardown(it_begins_with_the_usual_settings, open_pair, close_pair),
        cmocka_unit_test(as_root_it_is_given_away),
        cmocka_unit_test_setup_teardown(the_end_is_typed_once_on_an_empty_line, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(and_twice_on_another, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(what_ends_a_line_is_the_programs_choice, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(the_character_is_the_programs_choice, open_pair,
                                        close_pair),
        cmocka_unit_test_setup_teardown(a_program_sees_the_line_and_then_the_end, open_pair,
                                        close_pair),
        cmocka_unit_test(a_master_whose_slave_is_gone_is_at_its_end),
        cmocka_unit_test(without_descriptors_nothing_stays_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
