#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/capture.h"

static void a_short_result_is_kept_whole(void **state)
{
    struct nk_capture c;
    size_t len;

    (void)state;
    nk_capture_init(&c, 100);
    nk_capture_write(&c, "hello ", 6);
    nk_capture_write(&c, "world", 5);
    assert_memory_equal(nk_capture_bytes(&c, &len), "hello world", 11);
    assert_int_equal(len, 11);
    assert_false(nk_capture_truncated(&c));
    nk_capture_fini(&c);
}

static void the_oldest_bytes_go_first_for_any_way_of_cutting(void **state)
{
    uint8_t all[5000];
    unsigned seed = 99;

    (void)state;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)rand_r(&seed);
    for (int round = 0; round < 300; round++) {
        size_t cap = 1 + (size_t)rand_r(&seed) % 2000;
        size_t done = 0, len;
        struct nk_capture c;
        const uint8_t *kept;

        nk_capture_init(&c, cap);
        while (done < sizeof all) {
            size_t n = (size_t)rand_r(&seed) % 900;

            n = n < sizeof all - done ? n : sizeof all - done;
            nk_capture_write(&c, all + done, n);
            done += n;
            if (rand_r(&seed) % 8)
                continue;
            kept = nk_capture_bytes(&c, &len); /* looking changes nothing */
            assert_memory_equal(kept, all + done - len, len);
        }
        kept = nk_capture_bytes(&c, &len);
        assert_int_equal(len, cap);
        assert_int_equal(c.total, sizeof all);
        assert_memory_equal(kept, all + sizeof all - cap, cap);
        assert_true(nk_capture_truncated(&c));
        nk_capture_fini(&c);
    }
}

static void exactly_the_bound_is_not_truncated(void **state)
{
    struct nk_capture c;
    uint8_t data[777];
    size_t len;

    (void)state;
    memset(data, 7, sizeof data);
    nk_capture_init(&c, sizeof data);
    nk_capture_write(&c, data, sizeof data);
    assert_false(nk_capture_truncated(&c));
    (void)nk_capture_bytes(&c, &len);
    assert_int_equal(len, sizeof data);
    nk_capture_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_result_is_kept_whole),
        cmocka_unit_test(the_oldest_bytes_go_first_for_any_way_of_cutting),
        cmocka_unit_test(exactly_the_bound_is_not_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
