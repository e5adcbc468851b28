#include "api/gate.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "api/api.h"
#include "api/identify.h"
#include "api/tickets.h"
#include "http/reply.h"
#include "http/request.h"

#define KEY_MAX 128 /* an Idempotency-Key */

static bool is_listed(const char *const *list, const char *text)
{
    for (; list && *list; list++) {
        if (strcasecmp(*list, text) == 0)
            return true;
    }
    return false;
}

static const char *bearer(const struct nk_req *req)
{
    const char *value = nk_req_header(req, "Authorization");

    if (!value || nk_req_header_count(req, "Authorization") != 1)
        return NULL;
    if (strncasecmp(value, "Bearer ", 7) != 0)
        return NULL;
    value += 7;
    return value + strspn(value, " ");
}

static int check_token(const struct nk_req *req, const struct nk_api *api, struct nk_err *err)
{
    const struct nk_route *route = nk_req_route(req);
    const char *token;

    if (!api->set.auth || nk_req_is_local(req))
        return 0;
    if (route && route->auth == NK_AUTH_NONE)
        return 0;
    token = bearer(req);
    if (!token)
        return nk_fail(err, NK_UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN");
    if (!nk_secret_equal(&api->token, token, strlen(token)))
        return nk_fail(err, NK_UNAUTHORIZED, "the token is not the one of this sandbox");
    return 0;
}

static const char *ticket_of(const struct nk_req *req)
{
    const struct nk_route *route = nk_req_route(req);

    return route && route->auth == NK_AUTH_WS_TICKET ? nk_req_query(req, "token") : NULL;
}

/* One that is given is judged, wherever the request comes from: it says for whom it is. */
static int check_access(struct nk_req *req, const struct nk_api *api, struct nk_err *err)
{
    const char *ticket = ticket_of(req);
    void *identity;

    if (!ticket)
        return check_token(req, api, err);
    if (nk_tickets_take(api->tickets, ticket, &identity) < 0)
        return nk_identify_refuse_ticket(err);
    nk_req_set_identity(req, identity);
    return 0;
}

/* The origin of the request where it is one of the allowed ones, else NULL. */
static const char *allowed_origin(const struct nk_req *req, const struct nk_api *api)
{
    const char *origin = nk_req_header(req, "Origin");

    if (!origin || nk_req_header_count(req, "Origin") != 1)
        return NULL;
    return is_listed(api->set.origins, origin) ? origin : NULL;
}

static void add_cors(struct nk_req *req, const char *origin)
{
    nk_reply_header(req, "Access-Control-Allow-Origin", origin);
    nk_reply_header(req, "Access-Control-Expose-Headers",
                    "X-Request-Id, X-Nook-Instance, X-Nook-Offset, Retry-After, Allow, ETag, "
                    "Content-Range, Content-Disposition");
    nk_reply_header(req, "Vary", "Origin");
}

/* Digits after a colon, or nothing. */
static bool is_port(const char *s)
{
    return *s == '\0' || (*s == ':' && s[1 + strspn(s + 1, "0123456789")] == '\0');
}

static bool is_ipv6_host(const char *host)
{
    const char *close = strchr(host, ']');
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    size_t len;

    if (!close || !is_port(close + 1))
        return false;
    len = (size_t)(close - host - 1);
    if (len >= sizeof text)
        return false;
    memcpy(text, host + 1, len);
    text[len] = '\0';
    return inet_pton(AF_INET6, text, &addr) == 1;
}

bool nk_gate_host_allowed(const char *host, const char *const *names)
{
    size_t len = strcspn(host, ":");
    char text[256];
    struct in_addr addr;

    if (host[0] == '[')
        return is_ipv6_host(host);
    if (len == 0 || len >= sizeof text || !is_port(host + len))
        return false;
    memcpy(text, host, len);
    text[len] = '\0';
    if (inet_pton(AF_INET, text, &addr) == 1 || strcasecmp(text, "localhost") == 0)
        return true;
    return is_listed(names, text);
}

static int check_place(struct nk_req *req, const struct nk_api *api, const char *origin,
                       struct nk_err *err)
{
    const char *host = nk_req_header(req, "Host");

    if (nk_req_header(req, "Origin") && !origin)
        return nk_fail(err, NK_FORBIDDEN, "requests from this origin are not allowed");
    if (nk_req_is_local(req))
        return 0;
    if (!host)
        return nk_fail(err, NK_BAD_REQUEST, "a Host header is needed");
    if (!nk_gate_host_allowed(host, api->set.hosts))
        return nk_fail(err, NK_FORBIDDEN, "host %s is not a name of this sandbox", host);
    return 0;
}

static int check_key(const struct nk_req *req, struct nk_err *err)
{
    const char *key = nk_req_header(req, "Idempotency-Key");

    if (!key)
        return 0;
    if (nk_req_header_count(req, "Idempotency-Key") != 1)
        return nk_fail(err, NK_BAD_REQUEST, "Idempotency-Key is repeated");
    if (nk_identify_is_visible(key, KEY_MAX))
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "Idempotency-Key must be 1 to %d visible ASCII characters",
                   KEY_MAX);
}

static int check_row(struct nk_req *req, const struct nk_api *api, struct nk_err *err)
{
    const struct nk_route *route = nk_req_route(req);

    if (!route)
        return 0;
    if (api->ending && !route->while_ending)
        return nk_fail(err, NK_SHUTTING_DOWN, "the sandbox is ending");
    if (route->keyed && check_key(req, err) < 0)
        return -1;
    return route->ident != NK_IDENT_NONE ? nk_identify(req, ticket_of(req) != NULL, err) : 0;
}

static void answer_preflight(struct nk_req *req)
{
    nk_reply_header(req, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
    nk_reply_header(req, "Access-Control-Allow-Headers",
                    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, "
                    "If-None-Match, If-Range, X-Request-Id, X-Runbox-Identity, "
                    "X-Runbox-Namespace, X-Runbox-Principal");
    nk_reply_header(req, "Access-Control-Max-Age", "600");
    nk_reply_empty(req, 204);
}

int nk_gate_check(struct nk_req *req, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    const char *origin = allowed_origin(req, api);
    bool preflight = origin && nk_req_method(req) == NK_OPTIONS;

    /* Also on refusals: the page of an allowed origin may read why. */
    if (origin)
        add_cors(req, origin);
    /* A preflight carries no token by design. */
    if (!preflight && check_access(req, api, err) < 0)
        return -1;
    if (check_place(req, api, origin, err) < 0)
        return -1;
    if (!preflight)
        return check_row(req, api, err);
    answer_preflight(req);
    return 0;
}
