#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/outlog.h"

static void a_run_never_mixes_streams_and_tells_when_the_other_follows(void **state)
{
    struct nk_outlog log;
    struct nk_outlog_run run;

    (void)state;
    nk_outlog_init(&log, 4096);
    nk_outlog_write(&log, NK_STDOUT, "aaa", 3);
    nk_outlog_write(&log, NK_STDERR, "bb", 2);
    nk_outlog_write(&log, NK_STDOUT, "c", 1);

    assert_true(nk_outlog_at(&log, 0, 100, &run));
    assert_int_equal(run.len, 3);
    assert_int_equal(run.stream, NK_STDOUT);
    assert_true(run.turns);
    assert_true(nk_outlog_at(&log, 3, 1, &run));
    assert_int_equal(run.len, 1);
    assert_int_equal(run.stream, NK_STDERR);
    assert_false(run.turns);
    assert_true(nk_outlog_at(&log, 5, 100, &run));
    assert_memory_equal(run.data, "c", 1);
    assert_int_equal(run.stream, NK_STDOUT);
    assert_false(run.turns);
    assert_false(nk_outlog_at(&log, 6, 100, &run));
    nk_outlog_fini(&log);
}

static void a_late_reader_learns_what_it_missed(void **state)
{
    struct nk_outlog log;
    struct nk_outlog_run run;
    char chunk[100];

    (void)state;
    memset(chunk, 'x', sizeof chunk);
    nk_outlog_init(&log, 512);
    for (int i = 0; i < 20; i++)
        nk_outlog_write(&log, NK_STDOUT, chunk, sizeof chunk);
    assert_int_equal(log.end, 2000);
    assert_int_equal(log.start, 2000 - 512);
    assert_true(nk_outlog_at(&log, 10, 4096, &run));
    assert_int_equal(run.offset, log.start);
    assert_int_equal(run.missed, log.start - 10);
    nk_outlog_fini(&log);
}

static void bytes_that_must_be_kept_are_never_given_out(void **state)
{
    struct nk_outlog log;
    size_t room;
    char chunk[512] = {0};

    (void)state;
    nk_outlog_init(&log, 512);
    nk_outlog_write(&log, NK_STDOUT, chunk, 500);
    assert_non_null(nk_outlog_reserve(&log, 100, 0, &room));
    assert_int_equal(room, 12);
    nk_outlog_commit(&log, NK_STDOUT, 12);
    assert_null(nk_outlog_reserve(&log, 100, 0, &room));
    assert_int_equal(room, 0);
    assert_non_null(nk_outlog_reserve(&log, 100, 30, &room));
    assert_int_equal(room, 30);
    nk_outlog_fini(&log);
}

static void dropping_forgets_bytes_and_keeps_offsets(void **state)
{
    struct nk_outlog log;
    struct nk_outlog_run run;

    (void)state;
    nk_outlog_init(&log, 4096);
    nk_outlog_write(&log, NK_STDERR, "hello", 5);
    nk_outlog_drop(&log);
    assert_int_equal(nk_outlog_memory(&log), 0);
    assert_false(nk_outlog_at(&log, 0, 100, &run));
    nk_outlog_write(&log, NK_STDOUT, "x", 1);
    assert_true(nk_outlog_at(&log, 0, 100, &run));
    assert_int_equal(run.offset, 5);
    assert_int_equal(run.missed, 5);
    nk_outlog_fini(&log);
}

static void shrinking_keeps_every_byte_and_its_stream(void **state)
{
    struct nk_outlog log;
    struct nk_outlog_run run;
    char chunk[3000];

    (void)state;
    memset(chunk, 'o', sizeof chunk);
    nk_outlog_init(&log, 1 << 20);
    nk_outlog_write(&log, NK_STDOUT, chunk, sizeof chunk);
    nk_outlog_write(&log, NK_STDERR, "err", 3);
    (void)nk_outlog_reserve(&log, 200000, UINT64_MAX, &(size_t){0});
    assert_true(log.size > 200000);
    nk_outlog_shrink(&log);
    assert_int_equal(log.size, 4096);
    assert_true(nk_outlog_at(&log, 3000, 100, &run));
    assert_int_equal(run.stream, NK_STDERR);
    assert_memory_equal(run.data, "err", 3);
    nk_outlog_fini(&log);
}

static void forgetting_gives_memory_back_and_keeps_the_rest(void **state)
{
    struct nk_outlog log;
    struct nk_outlog_run run;
    static char chunk[100000];

    (void)state;
    memset(chunk, 'f', sizeof chunk);
    nk_outlog_init(&log, 1 << 20);
    nk_outlog_write(&log, NK_STDOUT, chunk, sizeof chunk);
    nk_outlog_write(&log, NK_STDERR, "tail", 4);
    nk_outlog_forget(&log, 99000);
    assert_int_equal(log.start, 99000);
    assert_int_equal(log.size, 1024);
    assert_true(nk_outlog_at(&log, 100000, 100, &run));
    assert_memory_equal(run.data, "tail", 4);
    assert_int_equal(run.stream, NK_STDERR);
    nk_outlog_write(&log, NK_STDOUT, chunk, 5000);
    assert_int_equal(log.start, 99000);
    nk_outlog_forget(&log, UINT64_MAX);
    assert_int_equal(log.start, log.end);
    nk_outlog_fini(&log);
}

/* A plain array says what the ring must say. */
struct model {
    uint8_t byte[1 << 16];
    uint8_t stream[1 << 16];
    size_t len;
};

static void check_all(const struct nk_outlog *log, const struct model *m)
{
    struct nk_outlog_run run;
    uint64_t pos = log->start;

    assert_int_equal(log->end, m->len);
    while (nk_outlog_at(log, pos, 777, &run)) {
        for (size_t i = 0; i < run.len; i++) {
            assert_int_equal(run.data[i], m->byte[pos + i]);
            assert_int_equal(run.stream, m->stream[pos + i]);
        }
        if (pos + run.len < m->len)
            assert_int_equal(run.turns, m->stream[pos + run.len] != run.stream);
        pos += run.len;
    }
    assert_int_equal(pos, log->end);
}

static void random_writes_read_back_as_a_plain_array_would(void **state)
{
    static struct model m;
    struct nk_outlog log;
    unsigned seed = 12345;

    (void)state;
    for (size_t cap = 512; cap <= 16384; cap *= 4) {
        m.len = 0;
        nk_outlog_init(&log, cap);
        while (m.len < sizeof m.byte - 700) {
            size_t n = (size_t)rand_r(&seed) % 700;
            enum nk_stream s = rand_r(&seed) % 3 ? NK_STDOUT : NK_STDERR;

            for (size_t i = 0; i < n; i++) {
                m.byte[m.len + i] = (uint8_t)rand_r(&seed);
                m.stream[m.len + i] = (uint8_t)s;
            }
            nk_outlog_write(&log, s, m.byte + m.len, n);
            m.len += n;
            if (rand_r(&seed) % 16 == 0)
                check_all(&log, &m);
        }
        check_all(&log, &m);
        assert_true(log.size <= cap);
        nk_outlog_fini(&log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_never_mixes_streams_and_tells_when_the_other_follows),
        cmocka_unit_test(a_late_reader_learns_what_it_missed),
        cmocka_unit_test(bytes_that_must_be_kept_are_never_given_out),
        cmocka_unit_test(dropping_forgets_bytes_and_keeps_offsets),
        cmocka_unit_test(shrinking_keeps_every_byte_and_its_stream),
        cmocka_unit_test(forgetting_gives_memory_back_and_keeps_the_rest),
        cmocka_unit_test(random_writes_read_back_as_a_plain_array_would),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
