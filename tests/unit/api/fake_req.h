/*
 * A request for unit tests: a table of headers, and a record of what was answered. These functions
 * take the place of the http room's, so that no connection is needed. Included once a program.
 */
#ifndef NK_TESTS_FAKE_REQ_H
#define NK_TESTS_FAKE_REQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/router.h"

struct fake_header {
    const char *name;
    const char *value;
};

struct nk_req {
    void *app;
    const struct nk_route *route;
    enum nk_method method;
    bool local;
    struct fake_header headers[8];
    const char *token; /* of the query */
    void *identity;
    struct nk_arena arena;
    nk_req_close_fn close_fn;
    void *close_ctx;
    bool admitted; /* after the gate had put it off */
    enum nk_code refused;
    int status; /* of the answer; 0: none yet */
    char body[4096];
    struct {
        char name[64];
        char value[512];
    } sent[16];
    size_t sent_count;
};

void *nk_req_app(const struct nk_req *req)
{
    return req->app;
}

const struct nk_route *nk_req_route(const struct nk_req *req)
{
    return req->route;
}

enum nk_method nk_req_method(const struct nk_req *req)
{
    return req->method;
}

const char *nk_req_id(const struct nk_req *req)
{
    (void)req;
    return "test";
}

bool nk_req_is_local(const struct nk_req *req)
{
    return req->local;
}

const char *nk_req_header(const struct nk_req *req, const char *name)
{
    for (const struct fake_header *h = req->headers; h->name; h++) {
        if (strcasecmp(h->name, name) == 0)
            return h->value;
    }
    return NULL;
}

unsigned nk_req_header_count(const struct nk_req *req, const char *name)
{
    unsigned n = 0;

    for (const struct fake_header *h = req->headers; h->name; h++)
        n += strcasecmp(h->name, name) == 0;
    return n;
}

const char *nk_req_query(const struct nk_req *req, const char *name)
{
    return strcmp(name, "token") == 0 ? req->token : NULL;
}

void nk_req_set_identity(struct nk_req *req, void *identity)
{
    req->identity = identity;
}

void *nk_req_identity(const struct nk_req *req)
{
    return req->identity;
}

struct nk_arena *nk_req_arena(struct nk_req *req)
{
    return &req->arena;
}

void nk_req_on_close(struct nk_req *req, nk_req_close_fn fn, void *ctx)
{
    req->close_fn = fn;
    req->close_ctx = ctx;
}

void nk_req_admit(struct nk_req *req, const struct nk_err *refused)
{
    req->admitted = true;
    req->refused = refused ? refused->code : NK_OK;
}

void nk_reply_header(struct nk_req *req, const char *name, const char *value)
{
    (void)snprintf(req->sent[req->sent_count].name, sizeof req->sent[0].name, "%s", name);
    (void)snprintf(req->sent[req->sent_count].value, sizeof req->sent[0].value, "%s", value);
    req->sent_count++;
}

void nk_reply_empty(struct nk_req *req, int status)
{
    req->status = status;
}

void nk_reply_take(struct nk_req *req, int status, const char *type, struct nk_buf *body)
{
    (void)type;
    req->status = status;
    (void)snprintf(req->body, sizeof req->body, "%.*s", (int)nk_buf_left(body),
                   (const char *)nk_buf_front(body));
}

static inline const char *fake_req_sent(const struct nk_req *req, const char *name)
{
    for (size_t i = 0; i < req->sent_count; i++) {
        if (strcasecmp(req->sent[i].name, name) == 0)
            return req->sent[i].value;
    }
    return NULL;
}

#endif
