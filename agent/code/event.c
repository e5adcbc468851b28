#include "code/event.h"

#include <string.h>

#include "base/attr.h"

static bool is_mime(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return len > 0 && len <= NK_EVENT_MIME_MAX && strchr(text, '/') != NULL;
}

/* A missing one and null are the same. */
static int read_bundle(const struct nk_json *root, const char *key, const struct nk_json **out,
                       struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(root, key);

    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    if (nk_json_type(v) != NK_JSON_OBJECT || nk_json_count(v) > NK_EVENT_MIMES)
        return nk_fail(err, NK_BAD_REQUEST, "%s must be an object of few members", key);
    for (const struct nk_json *m = nk_json_first(v); m; m = nk_json_next(m))
        if (!is_mime(nk_json_key(m)))
            return nk_fail(err, NK_BAD_REQUEST, "a member of %s is not named as a MIME type", key);
    *out = v;
    return 0;
}

static int read_error(const struct nk_json *root, const struct nk_json **out, struct nk_err *err)
{
    static const char *const names[] = {"name", "value", "traceback"};
    const struct nk_json *v = nk_json_get(root, "error");
    size_t size = 0;

    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    if (nk_json_type(v) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "error must be an object");
    for (size_t i = 0; i < NK_COUNT(names); i++) {
        const struct nk_json *m = nk_json_get(v, names[i]);

        if (!m || nk_json_type(m) != NK_JSON_STRING)
            return nk_fail(err, NK_BAD_REQUEST, "error.%s must be a string", names[i]);
        size += strlen(nk_json_str(m));
    }
    if (size > NK_EVENT_ERROR_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "error is too long");
    *out = v;
    return 0;
}

static int read_done(struct nk_event *e, struct nk_err *err)
{
    uint64_t status = 0;

    if (nk_json_read_u64(e->root, "run", 0, UINT64_MAX, &e->run, err) < 0 ||
        nk_json_read_u64(e->root, "status", 0, 255, &status, err) < 0)
        return -1;
    e->status = (unsigned)status;
    if (read_bundle(e->root, "result", &e->data, err) < 0)
        return -1;
    return read_error(e->root, &e->error, err);
}

static int read_display(struct nk_event *e, struct nk_err *err)
{
    if (read_bundle(e->root, "data", &e->data, err) < 0)
        return -1;
    return e->data ? 0 : nk_fail(err, NK_BAD_REQUEST, "data is missing");
}

static int read_kind(struct nk_event *e, struct nk_err *err)
{
    const char *name = NULL;

    if (nk_json_type(e->root) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "an event must be an object");
    if (nk_json_read_str(e->root, "event", &name, err) < 0)
        return -1;
    if (name && strcmp(name, "ready") == 0) {
        e->kind = NK_EVENT_READY;
        return 0;
    }
    if (name && strcmp(name, "display") == 0) {
        e->kind = NK_EVENT_DISPLAY;
        return read_display(e, err);
    }
    if (name && strcmp(name, "done") == 0) {
        e->kind = NK_EVENT_DONE;
        return read_done(e, err);
    }
    return nk_fail(err, NK_BAD_REQUEST, "there is no such event");
}

int nk_event_read(const void *line, size_t len, struct nk_event *out, struct nk_err *err)
{
    struct nk_event e = {0};

    if (nk_json_parse(line, len, &e.root, err) < 0)
        return -1;
    if (read_kind(&e, err) < 0) {
        nk_json_free(e.root);
        return -1;
    }
    *out = e;
    return 0;
}

void nk_event_fini(struct nk_event *e)
{
    nk_json_free(e->root);
    e->root = NULL;
}
