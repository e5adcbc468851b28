#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/whose.h"
#include "http/proxy.h"
#include "http/request.h"
#include "process/port_owner.h"

#define PREFIX "/v1/proxy/"

/* As the URL writes it, so that no port has two names. */
static int read_port(const char *path, uint16_t *out_port, const char **out_target,
                     struct nk_err *err)
{
    const char *text = path + sizeof PREFIX - 1;
    size_t len = strcspn(text, "/");
    unsigned port = 0;

    for (size_t i = 0; i < len && i < 6; i++)
        port = text[i] >= '0' && text[i] <= '9' ? port * 10 + (unsigned)(text[i] - '0') : 100000;
    if (len == 0 || len > 5 || text[0] == '0' || port > UINT16_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "not a port from 1 to 65535: %.*s",
                       (int)(len < 32 ? len : 32), text);
    *out_port = (uint16_t)port;
    *out_target = text + len;
    return 0;
}

/* Where our token opens the door, Authorization is for us. Elsewhere it is the server's, unless it
 * is our token all the same. */
static bool keeps_auth(const struct nk_req *req, const struct nk_api *api)
{
    const char *value = nk_req_header(req, "Authorization");

    if (!value || (api->set.auth && !nk_req_is_local(req)))
        return false;
    if (nk_req_header_count(req, "Authorization") != 1)
        return false;
    if (nk_secret_equal(&api->token, value, strlen(value)))
        return false;
    value += strcspn(value, " ");
    value += strspn(value, " ");
    return !nk_secret_equal(&api->token, value, strlen(value));
}

static bool is_own(bool diag, const struct nk_creds *who, int family, uint16_t port)
{
    uid_t owner;

    return nk_port_owner_find(diag, family, port, &owner) == 0 && owner == who->uid;
}

/* In a job, both. An identity reaches its own servers alone, and does not learn of others'. */
static bool is_own_by_diag(const void *who, int family, uint16_t port)
{
    return is_own(true, who, family, port);
}

static bool is_own_by_tables(const void *who, int family, uint16_t port)
{
    return is_own(false, who, family, port);
}

int nk_api_port_proxy(struct nk_req *req, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    const struct nk_whose whose = nk_whose_of(req);
    struct nk_proxy_config cfg = {
        .loop = api->loop,
        .jobs = api->jobs,
        .keeps_auth = keeps_auth(req, api),
        .share = whose.owner,
        .who = &whose.user->creds,
    };

    if (read_port(nk_req_path(req), &cfg.port, &cfg.target, err) < 0)
        return -1;
    if (nk_server_has_port(api->server, cfg.port))
        return nk_fail(err, NK_FORBIDDEN, "port %u is nookd's own", cfg.port);
    if (geteuid() == 0)
        cfg.as = &whose.user->creds;
    if (whose.owner)
        cfg.may = nk_has(api->kernel, NK_MECH_SOCK_DIAG) ? is_own_by_diag : is_own_by_tables;
    return nk_proxy_open(req, &cfg, err);
}
