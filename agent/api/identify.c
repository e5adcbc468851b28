#include "api/identify.h"

#include <string.h>

#include "api/api.h"
#include "base/arena.h"
#include "base/secret.h"
#include "http/request.h"
#include "http/server.h"
#include "tenant/tenants.h"

#define TEXT_MAX 256 /* of a value */

enum { TOKEN, NAMESPACE, PRINCIPAL, HEADERS };

static const char *const names[HEADERS] = {"X-Runbox-Identity", "X-Runbox-Namespace",
                                           "X-Runbox-Principal"};

struct claim {
    const char *value[HEADERS]; /* borrowed from the request; NULL: not given */
};

/* A request that waits for its tenant; in its arena. */
struct waiter {
    struct nk_tenant_ask ask;
    struct nk_req *req;
    struct nk_owner *bound; /* what a ticket said */
    bool by_ticket;
};

bool nk_identify_is_visible(const char *s, size_t max)
{
    size_t len = 0;

    for (; s[len]; len++) {
        if ((unsigned char)s[len] < 0x21 || (unsigned char)s[len] > 0x7e || len >= max)
            return false;
    }
    return len > 0;
}

int nk_identify_refuse_ticket(struct nk_err *err)
{
    return nk_fail(err, NK_UNAUTHORIZED, "this token was used, is too old, or never was one");
}

static int read_header(const struct nk_req *req, const char *name, const char **out,
                       struct nk_err *err)
{
    const char *value = nk_req_header(req, name);

    *out = value;
    if (!value)
        return 0;
    if (nk_req_header_count(req, name) != 1)
        return nk_fail(err, NK_BAD_IDENTITY, "%s is repeated", name);
    if (!nk_identify_is_visible(value, TEXT_MAX))
        return nk_fail(err, NK_BAD_IDENTITY, "%s must be 1 to %d visible ASCII characters", name,
                       TEXT_MAX);
    return 0;
}

/* 1: an identity is named, 0: none is, -1 with err. */
static int read_claim(const struct nk_req *req, struct claim *out, struct nk_err *err)
{
    const char *const *v = out->value;

    for (int i = 0; i < HEADERS; i++)
        if (read_header(req, names[i], &out->value[i], err) < 0)
            return -1;
    if (v[TOKEN] && (v[NAMESPACE] || v[PRINCIPAL]))
        return nk_fail(err, NK_BAD_IDENTITY, "an identity has one form, not both");
    if (!v[NAMESPACE] != !v[PRINCIPAL])
        return nk_fail(err, NK_BAD_IDENTITY, "%s needs %s", names[v[NAMESPACE] ? 1 : 2],
                       names[v[NAMESPACE] ? 2 : 1]);
    return v[TOKEN] || v[NAMESPACE];
}

/* The form is part of it, and the NUL behind each word keeps them apart. */
static void digest_of(const struct claim *claim, uint8_t out[32])
{
    const char *form = claim->value[TOKEN] ? "token" : "namespace, principal";
    struct nk_sha256 h;

    nk_sha256_init(&h);
    nk_sha256_add(&h, form, strlen(form) + 1);
    for (int i = 0; i < HEADERS; i++)
        if (claim->value[i])
            nk_sha256_add(&h, claim->value[i], strlen(claim->value[i]) + 1);
    nk_sha256_end(&h, out);
}

static int check_possible(const struct nk_api *api, struct nk_err *err)
{
    const struct nk_mech_state *state;

    if (!api->tenants)
        return nk_fail(err, NK_NOT_SUPPORTED, "identities are off here (--identities)");
    if (!api->kernel->complete)
        return nk_fail(err, NK_STARTING, "the self-test of the sandbox is not over");
    state = &api->kernel->mech[NK_MECH_IDENTITIES];
    if (!state->available)
        return nk_fail(err, NK_NOT_SUPPORTED, "identities cannot be isolated here: %.95s",
                       state->reason);
    return 0;
}

static int settle(struct nk_req *req, struct nk_tenant *tenant, bool by_ticket, const void *bound,
                  struct nk_err *err)
{
    if (by_ticket && bound != &tenant->owner)
        return nk_identify_refuse_ticket(err);
    nk_req_set_identity(req, &tenant->owner);
    return 0;
}

static void on_told(struct nk_tenant_ask *ask, struct nk_tenant *tenant,
                    const struct nk_err *failed)
{
    struct waiter *w = NK_CONTAINER_OF(ask, struct waiter, ask);
    struct nk_err err = failed ? *failed : (struct nk_err){0};

    nk_req_on_close(w->req, NULL, NULL);
    if (tenant)
        (void)settle(w->req, tenant, w->by_ticket, w->bound, &err);
    nk_req_admit(w->req, err.code == NK_OK ? NULL : &err);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct waiter *w = ctx;

    (void)req;
    (void)gone;
    nk_tenants_leave(&w->ask);
}

static int wait_for(struct nk_req *req, const uint8_t digest[32], bool by_ticket,
                    struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    struct waiter *w = nk_arena_alloc(nk_req_arena(req), sizeof *w);

    if (!w)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    *w = (struct waiter){.ask = {.told = on_told},
                         .req = req,
                         .bound = nk_req_identity(req),
                         .by_ticket = by_ticket};
    if (nk_tenants_ask(api->tenants, digest, &w->ask, err) < 0)
        return -1;
    nk_req_on_close(req, on_close, w);
    return NK_GATE_LATER;
}

int nk_identify(struct nk_req *req, bool by_ticket, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    struct claim claim = {{NULL}};
    struct nk_tenant *tenant;
    uint8_t digest[32];
    int named = read_claim(req, &claim, err);

    if (named <= 0)
        return named;
    if (check_possible(api, err) < 0)
        return -1;
    digest_of(&claim, digest);
    tenant = nk_tenants_find(api->tenants, digest);
    if (!tenant)
        return wait_for(req, digest, by_ticket, err);
    return settle(req, tenant, by_ticket, nk_req_identity(req), err);
}
