#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/id.h"

#define MANY 2000

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void ids_are_different_and_plain(void **state)
{
    static char ids[MANY][NK_ID_MAX];

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        nk_id_new(ids[i]);
        assert_int_equal(strlen(ids[i]), NK_ID_MAX - 1);
        assert_int_equal(strspn(ids[i], "abcdefghijklmnopqrstuvwxyz0123456789"), NK_ID_MAX - 1);
    }
    qsort(ids, MANY, sizeof *ids, by_text);
    for (size_t i = 1; i < MANY; i++)
        assert_string_not_equal(ids[i - 1], ids[i]);
}

/* With 2,000 ids, a letter that never shows at a place would mean that its bits are not used. */
static void every_place_takes_every_letter(void **state)
{
    static unsigned seen[NK_ID_MAX - 1][128];
    char id[NK_ID_MAX];

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        nk_id_new(id);
        for (size_t k = 0; k + 1 < NK_ID_MAX; k++)
            seen[k][(unsigned char)id[k]]++;
    }
    for (size_t k = 0; k + 1 < NK_ID_MAX; k++) {
        unsigned letters = 0;

        for (size_t c = 0; c < 128; c++)
            letters += seen[k][c] > 0;
        assert_int_equal(letters, 32);
    }
}

static void random_bytes_fill_any_length(void **state)
{
    static uint8_t a[2000], b[2000], zero[64];

    (void)state;
    nk_id_random(a, sizeof a);
    nk_id_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a + sizeof a - 64, zero, 64);
    nk_id_random(a, 64);
    nk_id_random(b, 64);
    assert_memory_not_equal(a, b, 64);
    nk_id_random(a, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_different_and_plain),
        cmocka_unit_test(every_place_takes_every_letter),
        cmocka_unit_test(random_bytes_fill_any_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
