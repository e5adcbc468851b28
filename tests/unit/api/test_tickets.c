#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/tickets.h"
#include "base/clock.h"

struct fixture {
    struct nk_tickets *tickets;
    struct nk_err err;
};

static int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    nk_clock_fake(1000, 0);
    *state = &f;
    return nk_tickets_new(&f.tickets);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    nk_tickets_free(f->tickets);
    nk_clock_real();
    return 0;
}

static void a_ticket_is_good_for_one_use(void **state)
{
    struct fixture *f = *state;
    char token[NK_ID_MAX];
    int somebody;
    void *identity = NULL;

    assert_int_equal(nk_tickets_issue(f->tickets, &somebody, token, &f->err), 0);
    assert_int_equal(nk_tickets_take(f->tickets, "anything", &identity), -1);
    assert_int_equal(nk_tickets_take(f->tickets, "", &identity), -1);
    assert_int_equal(nk_tickets_take(f->tickets, token, &identity), 0);
    assert_ptr_equal(identity, &somebody);
    assert_int_equal(nk_tickets_take(f->tickets, token, &identity), -1);
}

static void a_ticket_ends_with_its_time(void **state)
{
    struct fixture *f = *state;
    char early[NK_ID_MAX], late[NK_ID_MAX];
    void *identity = NULL;

    assert_int_equal(nk_tickets_issue(f->tickets, NULL, early, &f->err), 0);
    nk_clock_fake(1001, 0);
    assert_int_equal(nk_tickets_issue(f->tickets, NULL, late, &f->err), 0);
    nk_clock_fake(1000 + NK_TICKETS_MS, 0);
    assert_int_equal(nk_tickets_take(f->tickets, early, &identity), -1);
    assert_int_equal(nk_tickets_take(f->tickets, late, &identity), 0);
}

static void nobody_can_use_up_what_others_need(void **state)
{
    struct fixture *f = *state;
    char token[NK_ID_MAX];
    int greedy, modest;

    for (int i = 0; i < NK_TICKETS_OWNER; i++)
        assert_int_equal(nk_tickets_issue(f->tickets, &greedy, token, &f->err), 0);
    assert_int_equal(nk_tickets_issue(f->tickets, &greedy, token, &f->err), -1);
    assert_int_equal(f->err.code, NK_OVERLOADED);
    assert_int_equal(nk_tickets_issue(f->tickets, &modest, token, &f->err), 0);
    nk_clock_fake(1000 + NK_TICKETS_MS, 0);
    assert_int_equal(nk_tickets_issue(f->tickets, &greedy, token, &f->err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ticket_is_good_for_one_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_ticket_ends_with_its_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_can_use_up_what_others_need, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
