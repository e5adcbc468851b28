#include "http/proxy_head.h"

#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "http/head.h"
#include "http/response.h"

/* Between two neighbours, or framing; Upgrade and Connection are written anew where one was asked. */
static const char *const hop_names[] = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
};

static const char *const forwarded_names[] = {"x-forwarded-for", "x-forwarded-host",
                                              "x-forwarded-proto", "x-forwarded-prefix"};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static void add_line(struct nk_buf *out, const char *name, const char *value)
{
    nk_buf_add_str(out, name);
    nk_buf_add(out, ": ", 2);
    nk_buf_add_str(out, value);
    nk_buf_add(out, "\r\n", 2);
}

/* Connection may name more lines that end at the next neighbour. */
static bool is_named(const struct nk_head *head, const char *name)
{
    const char *list;

    for (unsigned i = 0; (list = nk_head_field(head, "connection", i)); i++) {
        if (nk_head_has_token(list, name))
            return true;
    }
    return false;
}

static bool passes(const struct nk_proxy_head *p, const char *name)
{
    if (is_one_of(name, hop_names, NK_COUNT(hop_names)) ||
        is_one_of(name, forwarded_names, NK_COUNT(forwarded_names)))
        return false;
    if (strcasecmp(name, "host") == 0 || strcasecmp(name, "expect") == 0)
        return false;
    /* For whom it is, is between the caller and us. */
    if (strncasecmp(name, "x-runbox-", 9) == 0)
        return false;
    if (strcasecmp(name, "authorization") == 0 && !p->keeps_auth)
        return false;
    return !is_named(p->head, name);
}

static void add_fields(struct nk_buf *out, const struct nk_proxy_head *p)
{
    const char *at = p->head->fields;

    for (size_t i = 0; i < p->head->field_count; i++) {
        const char *value = at + strlen(at) + 1;

        if (passes(p, at))
            add_line(out, at, value);
        at = value + strlen(value) + 1;
    }
}

/* What another proxy in front of us has said stands; to its lists we add. */
static void add_forwarded(struct nk_buf *out, const struct nk_proxy_head *p)
{
    const char *chain = nk_head_field(p->head, "x-forwarded-for", 0);
    const char *host = nk_head_field(p->head, "x-forwarded-host", 0);
    const char *proto = nk_head_field(p->head, "x-forwarded-proto", 0);
    const char *prefix = nk_head_field(p->head, "x-forwarded-prefix", 0);
    const char *path = p->head->path;

    if (chain || *p->peer != '\0')
        nk_buf_add_fmt(out, "X-Forwarded-For: %s%s%s\r\n", chain ? chain : "",
                       chain && *p->peer != '\0' ? ", " : "", p->peer);
    if (host || p->host)
        add_line(out, "X-Forwarded-Host", host ? host : p->host);
    add_line(out, "X-Forwarded-Proto", proto ? proto : "http");
    nk_buf_add_fmt(out, "X-Forwarded-Prefix: %s%.*s\r\n", prefix ? prefix : "",
                   (int)(p->target - path), path);
}

static void add_framing(struct nk_buf *out, const struct nk_proxy_head *p)
{
    if (p->upgrade) {
        nk_buf_add_str(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
        return;
    }
    nk_buf_add_str(out, "Connection: close\r\n");
    if (p->head->chunked)
        add_line(out, "Transfer-Encoding", "chunked");
    else if (p->head->content_length >= 0)
        nk_buf_add_fmt(out, "Content-Length: %lld\r\n", (long long)p->head->content_length);
}

void nk_proxy_head_request(struct nk_buf *out, const struct nk_proxy_head *p)
{
    nk_buf_add_fmt(out, "%s %s%s%s HTTP/1.1\r\n", p->method, p->target, p->head->queried ? "?" : "",
                   p->head->query);
    nk_buf_add_fmt(out, "Host: localhost:%u\r\n", p->port);
    add_fields(out, p);
    add_forwarded(out, p);
    add_framing(out, p);
    nk_buf_add(out, "\r\n", 2);
}

static bool answer_names(const struct nk_response *r, const char *name)
{
    for (size_t i = 0; i < r->line_count; i++) {
        if (strcasecmp(r->line[i].name, "connection") == 0 &&
            nk_head_has_token(r->line[i].value, name))
            return true;
    }
    return false;
}

void nk_proxy_head_answer(struct nk_buf *out, const struct nk_response *r, bool cors)
{
    static const char *const own[] = {"x-request-id", "x-nook-instance"};
    static const char *const shared[] = {"access-control-allow-origin",
                                         "access-control-expose-headers"};

    for (size_t i = 0; i < r->line_count; i++) {
        const char *name = r->line[i].name;

        if (is_one_of(name, hop_names, NK_COUNT(hop_names)) ||
            is_one_of(name, own, NK_COUNT(own)) || answer_names(r, name))
            continue;
        if (cors && is_one_of(name, shared, NK_COUNT(shared)))
            continue;
        add_line(out, name, r->line[i].value);
    }
}
