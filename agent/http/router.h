/*
 * The form of the route table, and finding a row in it.
 *
 * A row says everything that is enforced before a handler runs; `http/` enforces the body rules,
 * `api/gate.c` the rest. The table is static, made by the caller, and outlives the router.
 *
 * A pattern is literal segments and `{name}` segments; `{rest...}` as the last one takes all that
 * follows, slashes too. Parameters are percent-decoded once, after the split at slashes. The method
 * ANY is each of those that there are.
 */
#ifndef NK_HTTP_ROUTER_H
#define NK_HTTP_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nk_req;

/* 0 when it replied or took over the duty to reply; -1 when nothing was sent: the server replies
 * from `err`. */
typedef int (*nk_handler_fn)(struct nk_req *req, struct nk_err *err);

enum nk_method {
    NK_GET,
    NK_HEAD,
    NK_POST,
    NK_PUT,
    NK_PATCH,
    NK_DELETE,
    NK_OPTIONS,
    NK_METHOD_COUNT,
};

/* _WS_TICKET: bearer, or the parameter `token`, which such a row knows without naming it. */
enum nk_auth { NK_AUTH_TOKEN, NK_AUTH_NONE, NK_AUTH_WS_TICKET };
enum nk_ident { NK_IDENT_NONE, NK_IDENT_OPTIONAL };

enum nk_body {
    NK_BODY_NONE,     /* a body is 400 */
    NK_BODY_JSON,     /* an object, parsed before the handler; other types are 415 */
    NK_BODY_JSON_OPT, /* the same, but an empty body without a type counts as {} */
    NK_BODY_EXEC,     /* JSON, or multipart/form-data: then the handler runs first and streams it */
    NK_BODY_STREAM,   /* any type; the handler runs first and takes the bytes as they come */
};

#define NK_ROUTE_QUERIES 8

struct nk_route {
    const char *method;
    const char *path;
    const char *operation; /* the operationId of proto/openapi.yaml */
    nk_handler_fn handler;
    enum nk_auth auth;
    enum nk_ident ident;
    enum nk_body body;
    uint64_t body_max;                   /* 0: the server's json_max, for streams upload_max */
    const char *query[NK_ROUTE_QUERIES]; /* the parameters it knows; any other is 400 */
    const char *query_many;              /* the one of them that may come again; NULL: none may */
    unsigned while_paused : 1;           /* works on a paused sandbox (what starts nothing) */
    unsigned while_ending : 1;           /* works during shutdown */
    unsigned touches : 1;                /* is activity: resets the idle timer */
    unsigned websocket : 1;              /* an upgrade; plain requests get 426 */
    unsigned keyed : 1;                  /* takes an Idempotency-Key */
    unsigned opaque : 1;                 /* the query is another server's: not looked at */
};

#define NK_ROUTER_PARAMS 4

struct nk_route_match {
    const struct nk_route *route; /* borrowed: static */
    struct {
        const char *name; /* borrowed: points into the pattern, not NUL-terminated */
        size_t name_len;
        const char *text; /* borrowed: points into the path given, still encoded */
        size_t len;
    } params[NK_ROUTER_PARAMS];
    size_t param_count;
    uint32_t allow; /* where no row has this method: 1 << enum nk_method of those that have one */
};

/* `path` without query, still encoded. A HEAD finds the GET row where there is none of its own.
 * 0; -1 with NK_NOT_FOUND, or NK_METHOD_NOT_ALLOWED and err->value = allow. */
int nk_router_find(const struct nk_route *routes, size_t count, enum nk_method method,
                   const char *path, struct nk_route_match *out, struct nk_err *err);

const char *nk_router_method_name(enum nk_method m);

#endif
