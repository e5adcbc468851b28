#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/cgroup_files.h"

static void a_value_is_found_by_its_word_alone(void **state)
{
    const char *text = "low 1\noom 5\noom_kill 7\noom_group_kill 9\n";

    (void)state;
    assert_int_equal(nk_cgroup_files_value(text, "oom_kill"), 7);
    assert_int_equal(nk_cgroup_files_value(text, "oom"), 5);
    assert_int_equal(nk_cgroup_files_value(text, "low"), 1);
    assert_int_equal(nk_cgroup_files_value(text, "kill"), 0);
    assert_int_equal(nk_cgroup_files_value("", "low"), 0);
}

static void a_list_has_whole_words(void **state)
{
    (void)state;
    assert_true(nk_cgroup_files_lists("cpu memory pids\n", "pids"));
    assert_true(nk_cgroup_files_lists("memory", "memory"));
    assert_false(nk_cgroup_files_lists("memory_more pids\n", "memory"));
    assert_false(nk_cgroup_files_lists("cpumemory\n", "memory"));
    assert_false(nk_cgroup_files_lists("", "memory"));
}

static void what_is_written_is_read_and_cut_to_what_fits(void **state)
{
    char folder[] = "/tmp/nook-files-XXXXXX";
    char text[4];
    nk_auto_fd int dir = -1;
    nk_auto_fd int file = -1;

    (void)state;
    assert_non_null(mkdtemp(folder));
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(nk_cgroup_files_write(dir, "limit", "12345"), -ENOENT); /* makes none */
    file = openat(dir, "limit", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(nk_cgroup_files_write(dir, "limit", "12345"), 0);
    assert_int_equal(nk_cgroup_files_read(dir, "limit", text, sizeof text), 0);
    assert_string_equal(text, "123");
    assert_int_equal(nk_cgroup_files_read(dir, "other", text, sizeof text), -ENOENT);
    (void)unlinkat(dir, "limit", 0);
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_its_word_alone),
        cmocka_unit_test(a_list_has_whole_words),
        cmocka_unit_test(what_is_written_is_read_and_cut_to_what_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
