/* Who may come in, and what is said to those who may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/gate.h"
#include "api/tickets.h"
#include "fake_req.h"

static const char *const origins[] = {"https://app.example", NULL};
static const char *const hosts[] = {"box.example", NULL};

static const struct nk_route open_row = {"GET", "/healthz", .auth = NK_AUTH_NONE,
                                         .while_ending = 1};
static const struct nk_route token_row = {"POST", "/v1/exec", .ident = NK_IDENT_OPTIONAL,
                                          .keyed = 1};

static struct nk_api make_api(void)
{
    struct nk_api api = {
        .set = {.auth = true, .origins = origins, .hosts = hosts},
    };

    nk_secret_set(&api.token, "sesame", 6);
    return api;
}

/* A request with the right token and host, and one more header. */
static struct nk_req good(struct nk_api *api, const char *name, const char *value)
{
    return (struct nk_req){
        .app = api,
        .route = &token_row,
        .method = NK_POST,
        .headers = {{"Host", "127.0.0.1:8099"}, {"Authorization", "Bearer sesame"}, {name, value}},
    };
}

static void expect(struct nk_req *req, enum nk_code code)
{
    struct nk_err err = {0};
    int rc = nk_gate_check(req, &err);

    assert_int_equal(err.code, code);
    assert_int_equal(rc, code == NK_OK ? 0 : -1);
}

static void the_right_token_opens(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);

    (void)state;
    expect(&req, NK_OK);
    req.headers[1].value = "bearer   sesame";
    expect(&req, NK_OK);
}

static void any_other_token_does_not(void **state)
{
    static const char *const values[] = {
        "Bearer", "Bearer ", "Bearer sesam", "Bearer sesame1", "Bearer sesame ", "Basic sesame",
        "sesame", "",        "Bearer Sesame"};
    struct nk_api api = make_api();

    (void)state;
    for (size_t i = 0; i < NK_COUNT(values); i++) {
        struct nk_req req = good(&api, NULL, NULL);

        req.headers[1].value = values[i];
        expect(&req, NK_UNAUTHORIZED);
    }
}

static void two_tokens_are_none(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, "Authorization", "Bearer sesame");

    (void)state;
    expect(&req, NK_UNAUTHORIZED);
}

static void without_a_token_set_nobody_enters(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);

    (void)state;
    memset(&api.token, 0, sizeof api.token);
    expect(&req, NK_UNAUTHORIZED);
    req.headers[1].value = "Bearer ";
    expect(&req, NK_UNAUTHORIZED);
}

static void the_token_is_judged_before_everything_else(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = {
        .app = &api,
        .headers = {{"Host", "evil.example"}, {"Origin", "http://evil.example"}},
    };

    (void)state;
    expect(&req, NK_UNAUTHORIZED);
    api.ending = true;
    req.route = &token_row;
    expect(&req, NK_UNAUTHORIZED);
}

static void an_unknown_path_needs_the_token_too(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);

    (void)state;
    req.route = NULL;
    expect(&req, NK_OK);
    req.headers[1].value = "Bearer no";
    expect(&req, NK_UNAUTHORIZED);
}

static void health_and_the_socket_need_none(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = {.app = &api, .route = &open_row, .headers = {{"Host", "localhost"}}};

    (void)state;
    expect(&req, NK_OK);
    req.route = &token_row;
    expect(&req, NK_UNAUTHORIZED);
    req.local = true;
    expect(&req, NK_OK);
    req.local = false;
    api.set.auth = false;
    expect(&req, NK_OK);
}

static void hosts_are_addresses_localhost_and_configured_names(void **state)
{
    static const char *const yes[] = {"127.0.0.1",   "10.1.2.3:80",    "[::1]",
                                      "[::1]:8099",  "localhost",      "LOCALHOST:1",
                                      "box.example", "Box.Example:99", "[fe80::1]:"};
    static const char *const no[] = {
        "",       "evil.example", "localhost.evil.example", "127.0.0.1.", "127.0.0.1:x", "[::1",
        "[::1]x", "::1",          "box.example.evil",       "127.1",      "[127.0.0.1]", ":80"};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(yes); i++)
        assert_true(nk_gate_host_allowed(yes[i], hosts));
    for (size_t i = 0; i < NK_COUNT(no); i++)
        assert_false(nk_gate_host_allowed(no[i], hosts));
}

static void another_host_is_forbidden_but_on_the_socket(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);

    (void)state;
    req.headers[0].value = "evil.example";
    expect(&req, NK_FORBIDDEN);
    req.local = true;
    expect(&req, NK_OK);
}

static void another_origin_is_forbidden_everywhere(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, "Origin", "https://evil.example");

    (void)state;
    expect(&req, NK_FORBIDDEN);
    req.local = true;
    expect(&req, NK_FORBIDDEN);
    assert_null(fake_req_sent(&req, "Access-Control-Allow-Origin"));
}

static void an_allowed_origin_gets_cors_headers_also_on_refusals(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, "Origin", "https://app.example");

    (void)state;
    expect(&req, NK_OK);
    assert_string_equal(fake_req_sent(&req, "Access-Control-Allow-Origin"), "https://app.example");
    assert_string_equal(fake_req_sent(&req, "Vary"), "Origin");

    req = good(&api, "Origin", "https://app.example");
    req.headers[1].value = "Bearer no";
    expect(&req, NK_UNAUTHORIZED);
    assert_non_null(fake_req_sent(&req, "Access-Control-Allow-Origin"));
}

static void a_preflight_of_an_allowed_origin_needs_no_token(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);

    (void)state;
    req.method = NK_OPTIONS;
    req.route = NULL;
    req.headers[1] = (struct fake_header){"Origin", "https://app.example"};
    expect(&req, NK_OK);
    assert_int_equal(req.status, 204);
    assert_non_null(fake_req_sent(&req, "Access-Control-Allow-Methods"));

    req.status = 0;
    req.headers[0].value = "evil.example";
    expect(&req, NK_FORBIDDEN);
    req.headers[0].value = "localhost";
    req.headers[1].value = "https://evil.example";
    expect(&req, NK_UNAUTHORIZED);
    assert_int_equal(req.status, 0);
}

static void malformed_identities_are_refused_before_they_are_unsupported(void **state)
{
    static const struct {
        struct fake_header a, b;
        enum nk_code code;
    } cases[] = {
        {{"X-Runbox-Identity", "t"}, {NULL, NULL}, NK_NOT_SUPPORTED},
        {{"X-Runbox-Namespace", "n"}, {"X-Runbox-Principal", "p"}, NK_NOT_SUPPORTED},
        {{"X-Runbox-Namespace", "n"}, {NULL, NULL}, NK_BAD_IDENTITY},
        {{"X-Runbox-Principal", "p"}, {NULL, NULL}, NK_BAD_IDENTITY},
        {{"X-Runbox-Identity", "t"}, {"X-Runbox-Principal", "p"}, NK_BAD_IDENTITY},
        {{"X-Runbox-Identity", "t"}, {"X-Runbox-Identity", "t"}, NK_BAD_IDENTITY},
        {{"X-Runbox-Identity", ""}, {NULL, NULL}, NK_BAD_IDENTITY},
        {{"X-Runbox-Identity", "a b"}, {NULL, NULL}, NK_BAD_IDENTITY},
        {{"X-Runbox-Identity", "\xc3\xa4"}, {NULL, NULL}, NK_BAD_IDENTITY},
    };
    struct nk_api api = make_api();

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++) {
        struct nk_req req = good(&api, cases[i].a.name, cases[i].a.value);

        req.headers[3] = cases[i].b;
        expect(&req, cases[i].code);
    }
}

static void identities_and_keys_have_a_longest_form(void **state)
{
    struct nk_api api = make_api();
    char text[300];
    struct nk_req req = good(&api, "X-Runbox-Identity", text);

    (void)state;
    memset(text, 'x', sizeof text);
    text[256] = '\0';
    expect(&req, NK_NOT_SUPPORTED);
    text[256] = 'x';
    text[257] = '\0';
    expect(&req, NK_BAD_IDENTITY);

    req = good(&api, "Idempotency-Key", text);
    expect(&req, NK_BAD_REQUEST);
    text[129] = '\0';
    expect(&req, NK_BAD_REQUEST);
    text[128] = '\0';
    expect(&req, NK_OK);
    text[0] = '\0';
    expect(&req, NK_BAD_REQUEST);
}

static void a_ticket_opens_a_socket_once_and_says_for_whom(void **state)
{
    static const struct nk_route row = {.path = "/v1/exec/ws", .auth = NK_AUTH_WS_TICKET};
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);
    char token[NK_ID_MAX];
    int identity;

    (void)state;
    assert_int_equal(nk_tickets_new(&api.tickets), 0);
    assert_int_equal(nk_tickets_issue(api.tickets, &identity, token, NULL), 0);
    req.headers[1] = (struct fake_header){NULL, NULL};
    req.token = token;
    expect(&req, NK_UNAUTHORIZED); /* not on other rows */
    req.route = &row;
    expect(&req, NK_OK);
    assert_ptr_equal(req.identity, &identity);
    expect(&req, NK_UNAUTHORIZED);
    req.token = NULL;
    expect(&req, NK_UNAUTHORIZED);
    /* A bad one is refused also where none is needed. */
    req.local = true;
    expect(&req, NK_OK);
    req.token = "never";
    expect(&req, NK_UNAUTHORIZED);
    nk_tickets_free(api.tickets);
}

static void rows_that_know_no_identity_or_key_do_not_look(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, "X-Runbox-Principal", "p");

    (void)state;
    req.route = &open_row;
    expect(&req, NK_OK);
    req = good(&api, "Idempotency-Key", "");
    req.route = &open_row;
    expect(&req, NK_OK);
}

static void work_is_refused_while_the_sandbox_ends(void **state)
{
    struct nk_api api = make_api();
    struct nk_req req = good(&api, NULL, NULL);

    (void)state;
    api.ending = true;
    expect(&req, NK_SHUTTING_DOWN);
    req.route = &open_row;
    expect(&req, NK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_token_opens),
        cmocka_unit_test(any_other_token_does_not),
        cmocka_unit_test(two_tokens_are_none),
        cmocka_unit_test(without_a_token_set_nobody_enters),
        cmocka_unit_test(the_token_is_judged_before_everything_else),
        cmocka_unit_test(an_unknown_path_needs_the_token_too),
        cmocka_unit_test(health_and_the_socket_need_none),
        cmocka_unit_test(hosts_are_addresses_localhost_and_configured_names),
        cmocka_unit_test(another_host_is_forbidden_but_on_the_socket),
        cmocka_unit_test(another_origin_is_forbidden_everywhere),
        cmocka_unit_test(an_allowed_origin_gets_cors_headers_also_on_refusals),
        cmocka_unit_test(a_preflight_of_an_allowed_origin_needs_no_token),
        cmocka_unit_test(malformed_identities_are_refused_before_they_are_unsupported),
        cmocka_unit_test(identities_and_keys_have_a_longest_form),
        cmocka_unit_test(a_ticket_opens_a_socket_once_and_says_for_whom),
        cmocka_unit_test(rows_that_know_no_identity_or_key_do_not_look),
        cmocka_unit_test(work_is_refused_while_the_sandbox_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
