#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/json_keys.h"

#define MANY 5000

static char texts[MANY][24];

static void add(struct nk_json_keys *k, const char *text)
{
    assert_int_equal(nk_json_keys_add(k, (const uint8_t *)text, strlen(text)), 0);
}

static void fill(struct nk_json_keys *k, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "k%zu", i);
        add(k, texts[i]);
    }
}

static void different_keys_pass_however_many(void **state)
{
    const uint8_t *twice = NULL;

    (void)state;
    for (size_t n = 0; n < 100; n++) {
        struct nk_json_keys k;

        nk_json_keys_init(&k);
        fill(&k, n);
        assert_int_equal(nk_json_keys_close(&k, 0, &twice), 0);
        assert_null(twice);
        nk_json_keys_fini(&k);
    }
}

static void the_second_of_two_is_found_among_many(void **state)
{
    static const size_t sizes[] = {2, 7, 8, 9, 40, MANY};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct nk_json_keys k;
        const uint8_t *twice = NULL;

        nk_json_keys_init(&k);
        fill(&k, sizes[i] - 1);
        add(&k, "k\\u0030");
        assert_int_equal(nk_json_keys_close(&k, 0, &twice), -EEXIST);
        assert_memory_equal(twice, "k\\u0030", 7);
        nk_json_keys_fini(&k);
    }
}

static void an_inner_object_has_keys_of_its_own(void **state)
{
    struct nk_json_keys k;
    const uint8_t *twice = NULL;

    (void)state;
    nk_json_keys_init(&k);
    add(&k, "a");
    add(&k, "a");
    assert_int_equal(nk_json_keys_close(&k, 1, &twice), 0);
    assert_int_equal(k.count, 1);
    add(&k, "b");
    assert_int_equal(nk_json_keys_close(&k, 0, &twice), 0);
    nk_json_keys_fini(&k);
}

static void a_beginning_is_not_the_whole(void **state)
{
    struct nk_json_keys k;
    const uint8_t *twice = NULL;

    (void)state;
    nk_json_keys_init(&k);
    add(&k, "ab");
    add(&k, "a");
    add(&k, "");
    add(&k, "abc");
    assert_int_equal(nk_json_keys_close(&k, 0, &twice), 0);
    nk_json_keys_fini(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_keys_pass_however_many),
        cmocka_unit_test(the_second_of_two_is_found_among_many),
        cmocka_unit_test(an_inner_object_has_keys_of_its_own),
        cmocka_unit_test(a_beginning_is_not_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
