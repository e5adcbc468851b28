/* Unit tests of code/outcome.c. */
#include "code/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct nk_json *parse(const char *text)
{
    struct nk_json *root = NULL;

    assert_int_equal(nk_json_parse(text, strlen(text), &root, NULL), 0);
    return root;
}

static void show(struct nk_outcome *o, uint64_t offset, const char *text)
{
    struct nk_json *root = parse(text);

    nk_outcome_show(o, offset, root);
    nk_json_free(root);
}

static void check(const struct nk_buf *buf, const char *text)
{
    assert_int_equal(nk_buf_left(buf), strlen(text));
    assert_memory_equal(nk_buf_front(buf), text, strlen(text));
}

static void what_is_shown_is_kept_as_it_is_told(void **state)
{
    struct nk_outcome *o = nk_outcome_new(1000);

    (void)state;
    show(o, 5, "{ \"text/plain\" : \"x\", \"a/b\": [1, true, null] }");
    check(&nk_outcome_at(o, 0)->json, "{\"text/plain\":\"x\",\"a/b\":[1,true,null]}");
    assert_int_equal(nk_outcome_at(o, 0)->offset, 5);
    assert_null(nk_outcome_at(o, 1));
    nk_outcome_told(o, 0); /* others will want it yet */
    assert_true(nk_buf_left(&nk_outcome_at(o, 0)->json) > 0);
    nk_outcome_free(o);
}

static void beyond_the_bound_only_the_types_are_kept(void **state)
{
    struct nk_outcome *o = nk_outcome_new(30);

    (void)state;
    show(o, 0, "{\"text/plain\":\"0123456789\"}");
    show(o, 0, "{\"text/plain\":\"0123456789\"}");
    check(&nk_outcome_at(o, 1)->json, "{\"text/plain\":null}");
    nk_outcome_free(o);
}

static void what_one_reader_was_told_makes_room(void **state)
{
    struct nk_outcome *o = nk_outcome_new(30);

    (void)state;
    o->once = true;
    for (size_t i = 0; i < 3 * NK_OUTCOME_DISPLAYS; i++) {
        show(o, i, "{\"text/plain\":\"0123456789\"}");
        check(&nk_outcome_at(o, i)->json, "{\"text/plain\":\"0123456789\"}");
        assert_int_equal(nk_outcome_at(o, i)->offset, i);
        nk_outcome_told(o, i);
    }
    assert_int_equal(o->bytes, 0);
    assert_true(o->room <= NK_OUTCOME_DISPLAYS);
    nk_outcome_free(o);
}

static void a_bundle_that_is_too_large_for_a_message_has_no_data(void **state)
{
    struct nk_outcome *o = nk_outcome_new(1000);
    struct nk_json *root = parse("{\"text/plain\":\"0123456789\",\"image/png\":\"x\"}");
    struct nk_buf buf = {0};
    struct nk_json_out out = {.buf = &buf};

    (void)state;
    nk_outcome_set_result(o, root);
    nk_json_free(root);
    nk_outcome_write(&out, NULL, &o->result, 10);
    check(&buf, "{\"text/plain\":null,\"image/png\":null}");
    nk_buf_fini(&buf);
    nk_outcome_drop(o);
    out.comma = false;
    nk_outcome_write(&out, NULL, &o->result, 10);
    check(&buf, "null");
    nk_buf_fini(&buf);
    nk_outcome_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_is_kept_as_it_is_told),
        cmocka_unit_test(beyond_the_bound_only_the_types_are_kept),
        cmocka_unit_test(what_one_reader_was_told_makes_room),
        cmocka_unit_test(a_bundle_that_is_too_large_for_a_message_has_no_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
