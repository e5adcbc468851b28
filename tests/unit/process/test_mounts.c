#include "process/mounts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT 77 /* this machine has no such namespace for us */

/* A root directory that is empty, in a mount namespace that goes with this child. */
static bool enter_empty_root(const char *folder)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, NULL) == 0 && chroot(folder) == 0 && chdir("/") == 0;
}

static int make_all(void)
{
    static const char *const want[] = {"/proc/self/status", "/sys/kernel", "/dev/null",
                                       "/dev/urandom",      "/dev/fd",     "/dev/ptmx",
                                       "/dev/pts/ptmx",     "/dev/shm",    "/run"};
    struct stat st;

    nk_mounts_make();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (access(want[i], F_OK) < 0)
            return 10 + (int)i;
    return stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode) && (st.st_mode & 0777) == 0666 ? 0
                                                                                             : 1;
}

static int leave_what_is_there(void)
{
    struct stat before, after;

    if (mkdir("/run", 0755) < 0 || mount("none", "/run", "tmpfs", 0, "mode=0711") < 0)
        return CANNOT;
    nk_mounts_make();
    if (stat("/run", &before) < 0 || (before.st_mode & 0777) != 0711)
        return 1;
    nk_mounts_make(); /* again: nothing is put over what the first call made */
    return stat("/run", &after) == 0 && after.st_dev == before.st_dev ? 0 : 2;
}

static void run_in_empty_root(int (*fn)(void))
{
    char folder[] = "/tmp/nook-mounts-XXXXXX";
    pid_t pid;
    int status;

    if (geteuid() != 0)
        skip(); /* needs root */
    assert_non_null(mkdtemp(folder));
    pid = fork();
    if (pid == 0)
        _exit(enter_empty_root(folder) ? fn() : CANNOT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(rmdir(folder), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void an_empty_root_gets_all_that_programs_expect(void **state)
{
    (void)state;
    run_in_empty_root(make_all);
}

static void what_is_mounted_already_stays(void **state)
{
    (void)state;
    run_in_empty_root(leave_what_is_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_root_gets_all_that_programs_expect),
        cmocka_unit_test(what_is_mounted_already_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
