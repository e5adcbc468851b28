#include "api/sandbox_patch.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/env.h"
#include "base/attr.h"
#include "base/json_echo.h"
#include "base/json_out.h"
#include "lifetime/lifetime.h"

#define TOKEN_MAX 4096
#define SECONDS_MAX 3153600000.0 /* a hundred years */

struct text {
    bool given;
    char *json; /* owned; NULL: cleared */
};

struct limit {
    bool given;
    uint64_t value;
};

struct nk_sandbox_patch {
    bool ttl, idle, limits_given;
    uint64_t ttl_ms, idle_ms;
    struct text runtime, metadata, env, network;
    struct limit memory, nproc, fsize;
    struct nk_limits limits; /* with those that are not given */
    struct nk_arena env_memory;
    const char *const *env_list;
};

void nk_sandbox_patch_free(struct nk_sandbox_patch *p)
{
    free(p->runtime.json);
    free(p->metadata.json);
    free(p->env.json);
    free(p->network.json);
    nk_arena_fini(&p->env_memory);
    free(p);
}

static int copy_value(const struct nk_json *v, const char *name, char **out, struct nk_err *err)
{
    struct nk_buf buf = {.max = NK_SANDBOX_TEXT_MAX};
    struct nk_json_out o = {.buf = &buf};

    nk_json_echo(&o, NULL, v);
    nk_buf_add_char(&buf, '\0');
    if (buf.failed) {
        nk_buf_fini(&buf);
        return nk_fail(err, NK_BAD_REQUEST, "%s must not be larger than %u bytes", name,
                       NK_SANDBOX_TEXT_MAX);
    }
    *out = (char *)buf.data;
    return 0;
}

/* A duration, or null for none. */
static int read_seconds(const struct nk_json *body, const char *key, bool *out_given,
                        uint64_t *out_ms, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(body, key);

    *out_given = v != NULL;
    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    return nk_json_read_seconds(body, key, SECONDS_MAX, out_ms, err);
}

static int read_runtime(const struct nk_api *api, const struct nk_json *v, struct text *out,
                        struct nk_err *err)
{
    const char *name;

    out->given = v != NULL;
    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    name = nk_json_str(v);
    if (!name || !nk_runtimes_find(api->runs.runtimes, name))
        return nk_fail(err, NK_BAD_LANGUAGE, "runtime must be the id of a language that is here");
    out->json = strdup(name);
    return out->json ? 0 : nk_fail(err, NK_OVERLOADED, "no memory for this request");
}

static int read_object(const struct nk_json *body, const char *key, struct text *out,
                       struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(body, key);

    out->given = v != NULL;
    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    if (nk_json_type(v) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "%s must be an object, not %s", key,
                       nk_json_type_name(v));
    return copy_value(v, key, &out->json, err);
}

static int read_env(const struct nk_api *api, const struct nk_json *body,
                    struct nk_sandbox_patch *p, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(body, "env");

    if (read_object(body, "env", &p->env, err) < 0)
        return -1;
    if (!v)
        return 0;
    return nk_env_build(api->sandbox.env_option, p->env.json ? v : NULL, &p->env_memory,
                        &p->env_list, err);
}

static int read_limit(const struct nk_json *limits, const char *key, uint64_t fallback,
                      struct limit *out, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(limits, key);

    out->given = v != NULL;
    out->value = fallback;
    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    return nk_json_read_u64(limits, key, 1, UINT64_MAX, &out->value, err);
}

static int read_limits(const struct nk_api *api, const struct nk_json *body,
                       struct nk_sandbox_patch *p, struct nk_err *err)
{
    static const char *const names[] = {"memory", "processes", "fsize", "disk"};
    const struct nk_json *v = nk_json_get(body, "limits");
    const struct nk_limits *option = &api->sandbox.limits_option;
    const struct nk_json *disk;

    p->limits_given = v != NULL;
    if (!v)
        return 0;
    if (nk_json_type(v) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "limits must be an object, not %s",
                       nk_json_type_name(v));
    if (nk_json_only(v, names, NK_COUNT(names), err) < 0)
        return -1;
    disk = nk_json_get(v, "disk");
    if (disk && nk_json_type(disk) != NK_JSON_NULL)
        return nk_fail(err, NK_NOT_SUPPORTED, "limits.disk cannot be enforced here");
    if (read_limit(v, "memory", option->memory, &p->memory, err) < 0 ||
        read_limit(v, "processes", option->nproc, &p->nproc, err) < 0)
        return -1;
    return read_limit(v, "fsize", option->fsize, &p->fsize, err);
}

/* "host:port", with a port of 1 to 65535. */
static bool is_endpoint(const char *s)
{
    const char *colon = s ? strrchr(s, ':') : NULL;
    unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;

    return colon && colon != s && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
           port > 0 && port < 65536 && strpbrk(s, " \t\r\n,\"\\") == NULL;
}

static int check_network(const struct nk_json *v, struct nk_err *err)
{
    const char *word = nk_json_str(v);

    if (word && (strcmp(word, "all") == 0 || strcmp(word, "none") == 0))
        return 0;
    if (nk_json_type(v) != NK_JSON_ARRAY)
        return nk_fail(err, NK_BAD_REQUEST, "network must be \"all\", \"none\" or a list");
    for (const struct nk_json *c = nk_json_first(v); c; c = nk_json_next(c))
        if (!is_endpoint(nk_json_str(c)))
            return nk_fail(err, NK_BAD_REQUEST, "network: every entry must be \"host:port\"");
    return 0;
}

static int read_network(const struct nk_api *api, const struct nk_json *body, struct text *out,
                        struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(body, "network");
    const char *word = v ? nk_json_str(v) : NULL;

    out->given = v != NULL;
    if (!v || nk_json_type(v) == NK_JSON_NULL)
        return 0;
    if (check_network(v, err) < 0)
        return -1;
    if (word && strcmp(word, "all") == 0)
        return 0;
    if (!api->sandbox.network_outside)
        return nk_fail(err, NK_NOT_SUPPORTED,
                       "a network list cannot be enforced here (--network-enforced-by)");
    return copy_value(v, "network", &out->json, err);
}

static void replace(char **slot, struct text *t)
{
    if (!t->given)
        return;
    free(*slot);
    *slot = t->json;
    t->json = NULL;
}

void nk_sandbox_patch_apply(struct nk_api *api, struct nk_sandbox_patch *p)
{
    struct nk_sandbox *s = &api->sandbox;

    replace(&s->runtime, &p->runtime);
    replace(&s->metadata, &p->metadata);
    replace(&s->network, &p->network);
    if (p->env.given) {
        nk_arena_fini(&s->env_memory);
        s->env_memory = p->env_memory;
        p->env_memory = (struct nk_arena){0};
        api->set.env = p->env_list;
    }
    replace(&s->env, &p->env);
    if (p->limits_given)
        api->set.limits = p->limits;
    if (p->ttl)
        nk_lifetime_set_ttl(api->lifetime, p->ttl_ms);
    if (p->idle)
        nk_lifetime_set_idle(api->lifetime, p->idle_ms);
}

static int read_all(const struct nk_api *api, const struct nk_json *body,
                    struct nk_sandbox_patch *p, struct nk_err *err)
{
    static const char *const names[] = {"ttl_seconds", "idle_timeout", "runtime", "metadata",
                                        "env",         "limits",       "network"};

    if (nk_json_only(body, names, NK_COUNT(names), err) < 0 ||
        read_seconds(body, "ttl_seconds", &p->ttl, &p->ttl_ms, err) < 0 ||
        read_seconds(body, "idle_timeout", &p->idle, &p->idle_ms, err) < 0 ||
        read_runtime(api, nk_json_get(body, "runtime"), &p->runtime, err) < 0 ||
        read_object(body, "metadata", &p->metadata, err) < 0 || read_env(api, body, p, err) < 0 ||
        read_limits(api, body, p, err) < 0)
        return -1;
    return read_network(api, body, &p->network, err);
}

int nk_sandbox_patch_new(const struct nk_api *api, const struct nk_json *body,
                         struct nk_sandbox_patch **out, struct nk_err *err)
{
    struct nk_sandbox_patch *p = calloc(1, sizeof *p);

    if (!p)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    if (read_all(api, body, p, err) < 0) {
        nk_sandbox_patch_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

static void take(const struct limit *given, uint64_t *out)
{
    if (given->given)
        *out = given->value;
}

struct nk_limits *nk_sandbox_patch_limits(const struct nk_api *api, struct nk_sandbox_patch *p)
{
    if (!p->limits_given)
        return NULL;
    p->limits = api->set.limits;
    if (api->sandbox.memory)
        p->limits.memory = api->sandbox.memory;
    take(&p->memory, &p->limits.memory);
    take(&p->nproc, &p->limits.nproc);
    take(&p->fsize, &p->limits.fsize);
    return &p->limits;
}

int nk_sandbox_token(struct nk_api *api, const struct nk_json *body, struct nk_err *err)
{
    static const char *const names[] = {"token"};
    const char *token = NULL;

    if (nk_json_only(body, names, NK_COUNT(names), err) < 0 ||
        nk_json_read_str(body, "token", &token, err) < 0)
        return -1;
    if (!token || !*token || strlen(token) > TOKEN_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "token must be 1 to %d characters", TOKEN_MAX);
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return nk_fail(err, NK_BAD_REQUEST, "token must be visible ASCII");
    nk_secret_set(&api->token, token, strlen(token));
    return 0;
}

char *nk_sandbox_network_json(const char *option)
{
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};
    bool word = strcmp(option, "none") == 0;

    if (word) {
        nk_json_out_str(&o, NULL, option);
    } else {
        nk_json_out_open(&o, NULL, '[');
        while (*option) {
            size_t len = strcspn(option, ",");

            nk_json_out_strn(&o, NULL, option, len);
            option += len + (option[len] == ',');
        }
        nk_json_out_close(&o, ']');
    }
    nk_buf_add_char(&buf, '\0');
    if (buf.failed)
        nk_buf_fini(&buf);
    return (char *)buf.data;
}
