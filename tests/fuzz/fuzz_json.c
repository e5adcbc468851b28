/* rooms: base */
/*
 * JSON bodies: what the wall lets through cJSON must read, and what is written from it must read
 * back as the same value.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_out.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void write_value(struct nk_json_out *o, const char *key, const struct nk_json *v)
{
    enum nk_json_type type = nk_json_type(v);

    if (type == NK_JSON_STRING)
        nk_json_out_str(o, key, nk_json_str(v));
    else if (type == NK_JSON_NUMBER)
        nk_json_out_real(o, key, nk_json_num(v));
    else if (type == NK_JSON_BOOL)
        nk_json_out_bool(o, key, nk_json_true(v));
    else if (type == NK_JSON_NULL)
        nk_json_out_null(o, key);
    if (type != NK_JSON_ARRAY && type != NK_JSON_OBJECT)
        return;
    nk_json_out_open(o, key, type == NK_JSON_ARRAY ? '[' : '{');
    for (const struct nk_json *at = nk_json_first(v); at; at = nk_json_next(at))
        write_value(o, type == NK_JSON_ARRAY ? NULL : nk_json_key(at), at);
    nk_json_out_close(o, type == NK_JSON_ARRAY ? ']' : '}');
}

static void same_value(const struct nk_json *a, const struct nk_json *b)
{
    if (nk_json_type(a) == NK_JSON_NUMBER && !isfinite(nk_json_num(a))) {
        must(nk_json_type(b) == NK_JSON_NULL);
        return;
    }
    must(nk_json_type(a) == nk_json_type(b));
    must(nk_json_true(a) == nk_json_true(b));
    must(nk_json_num(a) == nk_json_num(b));
    if (nk_json_str(a)) {
        must(nk_utf8_valid(nk_json_str(a), strlen(nk_json_str(a))));
        must(strcmp(nk_json_str(a), nk_json_str(b)) == 0);
    }
    must(nk_json_count(a) == nk_json_count(b));
    a = nk_json_first(a);
    b = nk_json_first(b);
    for (; a; a = nk_json_next(a), b = nk_json_next(b)) {
        must(!nk_json_key(a) || strcmp(nk_json_key(a), nk_json_key(b)) == 0);
        same_value(a, b);
    }
}

static void read_fields(const struct nk_json *root)
{
    static const char *const names[] = {"a", "b", "b_base64"};
    const char *str = NULL;
    uint64_t number = 5, ms = 1;
    bool yes = false, given = false;
    uint8_t *bytes = NULL;
    size_t len = 0;
    struct nk_err err;

    (void)nk_json_only(root, names, 3, &err);
    (void)nk_json_read_str(root, "a", &str, &err);
    (void)nk_json_read_bool(root, "a", &yes, &err);
    (void)nk_json_read_u64(root, "a", 5, 10, &number, &err);
    must(number >= 5 && number <= 10);
    (void)nk_json_read_seconds(root, "a", 3600, &ms, &err);
    must(ms >= 1 && ms <= 3600000);
    if (nk_json_read_bytes(root, "b", &bytes, &len, &given, &err) == 0)
        must(given == (bytes != NULL));
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_json *root, *again;
    struct nk_buf buf = {0};
    struct nk_json_out out = {.buf = &buf};
    struct nk_err err;

    if (nk_json_parse(data, size, &root, &err) < 0) {
        must(err.code == NK_BAD_JSON);
        return 0;
    }
    read_fields(root);
    write_value(&out, NULL, root);
    must(!buf.failed);
    must(nk_json_parse(nk_buf_front(&buf), nk_buf_left(&buf), &again, &err) == 0);
    same_value(root, again);
    nk_json_free(again);
    nk_json_free(root);
    nk_buf_fini(&buf);
    return 0;
}
