#include "base/json_echo.h"

static void echo_inside(struct nk_json_out *o, const char *key, const struct nk_json *v)
{
    bool object = nk_json_type(v) == NK_JSON_OBJECT;

    nk_json_out_open(o, key, object ? '{' : '[');
    for (const struct nk_json *m = nk_json_first(v); m; m = nk_json_next(m))
        nk_json_echo(o, object ? nk_json_key(m) : NULL, m);
    nk_json_out_close(o, object ? '}' : ']');
}

/* The depth is that of the reader, which bounds it. */
void nk_json_echo(struct nk_json_out *o, const char *key, const struct nk_json *v)
{
    switch (nk_json_type(v)) {
    case NK_JSON_NULL:
        nk_json_out_null(o, key);
        break;
    case NK_JSON_BOOL:
        nk_json_out_bool(o, key, nk_json_true(v));
        break;
    case NK_JSON_NUMBER:
        nk_json_out_real(o, key, nk_json_num(v));
        break;
    case NK_JSON_STRING:
        nk_json_out_str(o, key, nk_json_str(v));
        break;
    case NK_JSON_ARRAY:
    case NK_JSON_OBJECT:
        echo_inside(o, key, v);
        break;
    }
}
