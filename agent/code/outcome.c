#include "code/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_echo.h"

struct nk_outcome *nk_outcome_new(size_t max_bytes)
{
    struct nk_outcome *o = calloc(1, sizeof *o);

    if (o)
        o->max_bytes = max_bytes;
    return o;
}

void nk_outcome_drop(struct nk_outcome *o)
{
    nk_buf_fini(&o->result);
    nk_buf_fini(&o->error);
    for (size_t i = 0; i < o->displays; i++)
        nk_buf_fini(&o->display[i].json);
    free(o->display);
    o->display = NULL;
    o->displays = o->room = o->bytes = 0;
}

void nk_outcome_free(struct nk_outcome *o)
{
    if (!o)
        return;
    nk_outcome_drop(o);
    free(o);
}

static void keep(struct nk_buf *out, const struct nk_json *v)
{
    struct nk_json_out o = {.buf = out};

    nk_buf_fini(out);
    if (v)
        nk_json_echo(&o, NULL, v);
    if (out->failed)
        nk_buf_fini(out);
}

void nk_outcome_set_result(struct nk_outcome *o, const struct nk_json *bundle)
{
    keep(&o->result, bundle);
}

static void add_text(struct nk_json_out *o, const struct nk_json *error, const char *key)
{
    nk_json_out_str(o, key, nk_json_str(nk_json_get(error, key)));
}

void nk_outcome_set_error(struct nk_outcome *o, const struct nk_json *error)
{
    struct nk_json_out out = {.buf = &o->error};

    nk_buf_fini(&o->error);
    if (!error)
        return;
    nk_json_out_open(&out, NULL, '{');
    add_text(&out, error, "name");
    add_text(&out, error, "value");
    add_text(&out, error, "traceback");
    nk_json_out_close(&out, '}');
    if (o->error.failed)
        nk_buf_fini(&o->error);
}

void nk_outcome_fail(struct nk_outcome *o, const char *name, const char *value)
{
    struct nk_json_out out = {.buf = &o->error};

    nk_buf_fini(&o->error);
    nk_json_out_open(&out, NULL, '{');
    nk_json_out_str(&out, "name", name);
    nk_json_out_str(&out, "value", value);
    nk_json_out_str(&out, "traceback", "");
    nk_json_out_close(&out, '}');
    if (o->error.failed)
        nk_buf_fini(&o->error);
}

/* Those that were told, and are wanted by nobody else. */
static void forget_told(struct nk_outcome *o)
{
    size_t told = 0;

    while (told < o->displays && nk_buf_left(&o->display[told].json) == 0)
        told++;
    o->displays -= told;
    o->first += told;
    memmove(o->display, o->display + told, o->displays * sizeof *o->display);
}

static bool make_room(struct nk_outcome *o)
{
    size_t room = o->room ? 2 * o->room : 8;
    struct nk_display *list;

    if (o->displays == o->room && o->displays > 0)
        forget_told(o);
    if (o->displays < o->room)
        return true;
    if (o->displays >= NK_OUTCOME_DISPLAYS)
        return false;
    list = realloc(o->display, room * sizeof *list);
    if (!list)
        return false;
    o->display = list;
    o->room = room;
    return true;
}

/* The same types, without their data. */
static void keep_names(struct nk_buf *out, const struct nk_json *bundle)
{
    struct nk_json_out o = {.buf = out};

    nk_buf_fini(out);
    nk_json_out_open(&o, NULL, '{');
    for (const struct nk_json *m = nk_json_first(bundle); m; m = nk_json_next(m))
        nk_json_out_null(&o, nk_json_key(m));
    nk_json_out_close(&o, '}');
}

void nk_outcome_write(struct nk_json_out *o, const char *key, const struct nk_buf *bundle,
                      size_t max)
{
    struct nk_json *root = NULL;
    struct nk_buf names = {0};

    if (nk_buf_left(bundle) > 0 && nk_buf_left(bundle) <= max) {
        nk_json_out_raw(o, key, nk_buf_front(bundle), nk_buf_left(bundle));
        return;
    }
    if (nk_buf_left(bundle) > 0)
        (void)nk_json_parse(nk_buf_front(bundle), nk_buf_left(bundle), &root, NULL);
    if (root)
        keep_names(&names, root);
    if (nk_buf_left(&names) > 0)
        nk_json_out_raw(o, key, nk_buf_front(&names), nk_buf_left(&names));
    else
        nk_json_out_null(o, key);
    nk_buf_fini(&names);
    nk_json_free(root);
}

void nk_outcome_show(struct nk_outcome *o, uint64_t offset, const struct nk_json *bundle)
{
    struct nk_display d = {.offset = offset};

    if (!make_room(o))
        return;
    keep(&d.json, bundle);
    if (nk_buf_left(&d.json) > o->max_bytes - o->bytes)
        keep_names(&d.json, bundle);
    if (d.json.failed || nk_buf_left(&d.json) == 0) {
        nk_buf_fini(&d.json);
        return;
    }
    o->bytes += nk_buf_left(&d.json);
    if (o->bytes > o->max_bytes)
        o->bytes = o->max_bytes;
    o->display[o->displays++] = d;
}

struct nk_display *nk_outcome_at(const struct nk_outcome *o, size_t n)
{
    return n >= o->first && n - o->first < o->displays ? &o->display[n - o->first] : NULL;
}

void nk_outcome_told(struct nk_outcome *o, size_t n)
{
    struct nk_display *d = nk_outcome_at(o, n);
    size_t len = d ? nk_buf_left(&d->json) : 0;

    if (!o->once || !d)
        return;
    o->bytes -= len < o->bytes ? len : o->bytes;
    nk_buf_fini(&d->json);
}

size_t nk_outcome_memory(const struct nk_outcome *o)
{
    return sizeof *o + o->result.cap + o->error.cap + o->bytes + o->room * sizeof *o->display;
}
