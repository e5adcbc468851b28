#include "api/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/json.h"
#include "http/request.h"
#include "process/registry.h"
#include "process/signals.h"

struct nk_process *nk_read_process(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    const char *id = nk_req_param(req, "id");
    struct nk_process *p = nk_registry_find(api->processes, nk_req_identity(req), id);

    if (!p)
        (void)nk_fail(err, NK_NOT_FOUND, "no process %s", id);
    return p;
}

/* Digits, then perhaps a point and digits. */
static int parse_seconds(const char *text, double *out)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0;

    if (whole == 0 || whole > 9 || part == 1 || text[whole + part] != '\0')
        return -1;
    *out = strtod(text, NULL);
    return 0;
}

int nk_read_wait(const struct nk_req *req, uint64_t max_ms, uint64_t *out_ms, struct nk_err *err)
{
    const char *text = nk_req_query(req, "wait");
    double seconds;

    if (!text)
        return 0;
    if (parse_seconds(text, &seconds) < 0 || seconds * 1000 > (double)max_ms)
        return nk_fail(err, NK_BAD_REQUEST, "wait must be 0 to %llu seconds",
                       (unsigned long long)(max_ms / 1000));
    *out_ms = (uint64_t)(seconds * 1000 + 0.999);
    return 0;
}

int nk_read_offset(const struct nk_process *p, uint64_t pos, struct nk_err *err)
{
    if (pos > p->log.end)
        return nk_fail(err, NK_BAD_REQUEST, "offset %llu is past the end of the log, %llu",
                       (unsigned long long)pos, (unsigned long long)p->log.end);
    if (pos >= p->log.start)
        return 0;
    (void)nk_fail(err, NK_GONE, "offset %llu is no longer held, the log starts at %llu",
                  (unsigned long long)pos, (unsigned long long)p->log.start);
    err->value = p->log.start;
    return -1;
}

int nk_read_signal(const struct nk_json *object, int *out, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(object, "signal");
    char number[16];
    const char *name;

    if (!v)
        return 0;
    if (nk_json_type(v) == NK_JSON_NUMBER) {
        double d = nk_json_num(v);

        (void)snprintf(number, sizeof number, "%d", d >= 1 && d <= 64 ? (int)d : -1);
        name = d == (int)(d >= 1 && d <= 64 ? d : 0) ? number : "";
    } else {
        name = nk_json_str(v);
    }
    *out = name ? nk_signals_number(name) : -1;
    if (*out > 0)
        return 0;
    return nk_fail(err, NK_BAD_SIGNAL, "signal must be a name or a number of one, such as TERM");
}
