#include "toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy_vectors.h"

/* Long inputs are long by one field; cutting that at every byte shows nothing more. */
#define EVERY_OFFSET_UP_TO 600
#define LONG_STEP 997

static struct toy_vector *vectors;
static size_t vector_count;
static unsigned wrong;

static int first_status(const struct toy *t)
{
    int status = 0;

    return t->reply && sscanf(t->reply, "HTTP/1.1 %3d", &status) == 1 ? status : 0;
}

static void send_cut(struct toy *t, const struct toy_vector *v, size_t cut, size_t piece)
{
    toy_send(t, v->bytes, cut);
    for (size_t at = cut; at < v->len && !t->reply_over; at += piece) {
        toy_send(t, v->bytes + at, v->len - at < piece ? v->len - at : piece);
        toy_read(t);
    }
}

/* A kept connection answers once more; a closed one ends by itself. */
static void check_after(struct toy *t, const struct toy_vector *v)
{
    if (v->close) {
        toy_expect_end(t);
        return;
    }
    toy_forget(t);
    toy_say(t, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    toy_expect(t, "\r\n\r\nhello");
}

static void check(struct toy *t, const struct toy_vector *v, size_t cut, size_t piece)
{
    toy_connect(t);
    send_cut(t, v, cut, piece);
    toy_expect(t, "\r\n\r\n");
    if (first_status(t) != v->status) {
        print_error("%s, cut at %zu into %zu: %d, not %d\n", v->name, cut, piece, first_status(t),
                    v->status);
        wrong++;
    } else {
        assert_int_equal(toy_count(t, "\r\nX-Request-Id: "), 1);
        check_after(t, v);
    }
    toy_forget(t);
    toy_drop(t);
    toy_turn(t);
}

static void a_request_fed_whole_gets_the_answer_of_the_table(void **state)
{
    struct toy t;

    (void)state;
    wrong = 0;
    toy_init(&t);
    toy_open(&t);
    for (size_t i = 0; i < vector_count; i++)
        check(&t, &vectors[i], vectors[i].len, 1);
    toy_stop(&t);
    assert_int_equal(wrong, 0);
}

static void a_request_fed_byte_by_byte_gets_the_same(void **state)
{
    struct toy t;

    (void)state;
    wrong = 0;
    toy_init(&t);
    toy_open(&t);
    for (size_t i = 0; i < vector_count; i++) {
        if (vectors[i].len <= EVERY_OFFSET_UP_TO)
            check(&t, &vectors[i], 0, 1);
    }
    toy_stop(&t);
    assert_int_equal(wrong, 0);
}

static void a_request_split_at_any_offset_gets_the_same(void **state)
{
    struct toy t;

    (void)state;
    wrong = 0;
    toy_init(&t);
    toy_open(&t);
    for (size_t i = 0; i < vector_count; i++) {
        size_t step = vectors[i].len <= EVERY_OFFSET_UP_TO ? 1 : LONG_STEP;

        for (size_t cut = 1; cut < vectors[i].len; cut += step)
            check(&t, &vectors[i], cut, vectors[i].len);
    }
    toy_stop(&t);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_fed_whole_gets_the_answer_of_the_table),
        cmocka_unit_test(a_request_fed_byte_by_byte_gets_the_same),
        cmocka_unit_test(a_request_split_at_any_offset_gets_the_same),
    };
    int failed;

    vectors = toy_vectors_load(TOY_DIR "/vectors.txt", &vector_count);
    if (!vectors)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    toy_vectors_free(vectors, vector_count);
    return failed;
}
