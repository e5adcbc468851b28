/*
 * What the deployer says of the sandbox and may change while it runs: runtime, metadata, environment,
 * network, limits. Owned by app, embedded in struct nk_api; loop thread only.
 */
#ifndef NK_API_SANDBOX_H
#define NK_API_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "process/spawn.h"
#include "process/usage.h"

struct nk_api;
struct nk_req;

#define NK_SANDBOX_TEXT_MAX (64u * 1024u) /* metadata or env, as JSON */

struct nk_sandbox {
    char *runtime;                 /* owned; NULL: the first found */
    char *metadata;                /* owned: a JSON object; NULL: {} */
    char *env;                     /* owned: a JSON object, as it was asked; NULL: {} */
    char *network;                 /* owned: a JSON value; NULL: "all" */
    struct nk_arena env_memory;    /* holds the list that commands get */
    const char *const *env_option; /* borrowed: the list of the options, under `env` */
    struct nk_limits limits_option;
    uint64_t memory;        /* of all commands together, held by their control group; 0: none */
    bool network_outside;   /* the deployer enforces it */
    struct nk_list changes; /* of limits: the first is under way, the others wait for it */
    struct nk_usage last;   /* when the usage was asked before */
};

/* `network`: the option's value, "all", "none" or a comma list. */
int nk_sandbox_init(struct nk_sandbox *s, const struct nk_api *api, const char *network,
                    bool outside);
void nk_sandbox_reply(struct nk_req *req, int status); /* the object, as it is now */
void nk_sandbox_fini(struct nk_sandbox *s);

#endif
