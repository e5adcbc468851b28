#include "http/body.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "http/inside.h"

/* The length of the type itself: without parameters and the space around it. */
static size_t media_len(const char *type)
{
    size_t len = strcspn(type, ";");

    while (len > 0 && (type[len - 1] == ' ' || type[len - 1] == '\t'))
        len--;
    return len;
}

static bool is_media(const char *type, const char *name)
{
    return media_len(type) == strlen(name) && strncasecmp(type, name, strlen(name)) == 0;
}

/* JSON is UTF-8; a charset that says otherwise is another type. */
static bool is_utf8_or_silent(const char *type)
{
    const char *at = type;

    while ((at = strchr(at, ';')) != NULL) {
        at++;
        at += strspn(at, " \t");
        if (strncasecmp(at, "charset=", 8) != 0)
            continue;
        at += 8;
        at += *at == '"';
        size_t len = strcspn(at, "\"; \t");

        return len == 5 && strncasecmp(at, "utf-8", 5) == 0;
    }
    return true;
}

static int check_type(const char *type, struct nk_err *err)
{
    if (!type || (is_media(type, "application/json") && is_utf8_or_silent(type)))
        return 0;
    return nk_fail(err, NK_UNSUPPORTED_MEDIA_TYPE,
                   "this takes application/json, not %.100s (with curl: use `curl --json`)", type);
}

static int check_size(const struct nk_req *req, struct nk_err *err)
{
    if (req->body_max == 0 || req->head->content_length <= 0 ||
        (uint64_t)req->head->content_length <= req->body_max)
        return 0;
    return nk_fail(err, NK_TOO_LARGE, "the body has %llu bytes, at most %llu are taken here",
                   (unsigned long long)req->head->content_length,
                   (unsigned long long)req->body_max);
}

static int check_stream(struct nk_req *req, uint64_t row_max, struct nk_err *err)
{
    req->body_max = row_max ? row_max : req->conn->server->cfg.limits.upload_max;
    return check_size(req, err);
}

int nk_body_check(struct nk_req *req, struct nk_err *err)
{
    const struct nk_route *route = req->match.route;
    const char *type = nk_head_field(req->head, "content-type", 0);

    if (route->body == NK_BODY_NONE) {
        if (req->head->has_body)
            return nk_fail(err, NK_BAD_REQUEST, "%s %s takes no body", route->method, route->path);
        return 0;
    }
    if (nk_head_field(req->head, "content-type", 1))
        return nk_fail(err, NK_BAD_REQUEST, "Content-Type is given twice");
    if (route->body == NK_BODY_STREAM)
        return check_stream(req, route->body_max, err);
    if (route->body == NK_BODY_EXEC && type && is_media(type, "multipart/form-data"))
        return check_stream(req, 0, err);
    if (check_type(type, err) < 0)
        return -1;
    req->body_max = route->body_max ? route->body_max : req->conn->server->cfg.limits.json_max;
    req->body.max = (size_t)req->body_max;
    req->collecting = true;
    return check_size(req, err);
}

int nk_body_parse(struct nk_req *req, struct nk_err *err)
{
    size_t len = nk_buf_left(&req->body);
    const void *text = len > 0 ? (const void *)nk_buf_front(&req->body) : "";

    if (len == 0 && req->match.route->body == NK_BODY_JSON_OPT &&
        !nk_head_field(req->head, "content-type", 0)) {
        text = "{}";
        len = 2;
    }
    if (nk_json_parse(text, len, &req->json, err) < 0)
        return -1;
    if (nk_json_type(req->json) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "the body must be an object, not %s",
                       nk_json_type_name(req->json));
    return 0;
}
