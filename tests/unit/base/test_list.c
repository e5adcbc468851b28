#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
    int number;
    struct nk_list link;
};

static void items_come_back_in_order(void **state)
{
    struct nk_list head;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    int n = 0;

    (void)state;
    nk_list_init(&head);
    assert_true(nk_list_empty(&head));
    for (int i = 0; i < 3; i++)
        nk_list_append(&head, &items[i].link);
    for (struct nk_list *at = head.next; at != &head; at = at->next)
        assert_int_equal(nk_list_entry(at, struct item, link)->number, n++);
    assert_int_equal(n, 3);
}

static void removing_twice_has_no_effect(void **state)
{
    struct nk_list head;
    struct item a = {.number = 1}, b = {.number = 2};

    (void)state;
    nk_list_init(&head);
    nk_list_remove(&a.link);
    assert_false(nk_list_linked(&a.link));
    nk_list_append(&head, &a.link);
    nk_list_append(&head, &b.link);
    assert_true(nk_list_linked(&a.link));
    nk_list_remove(&a.link);
    nk_list_remove(&a.link);
    assert_false(nk_list_linked(&a.link));
    assert_ptr_equal(head.next, &b.link);
    assert_ptr_equal(head.prev, &b.link);
    nk_list_remove(&b.link);
    assert_true(nk_list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_back_in_order),
        cmocka_unit_test(removing_twice_has_no_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
