/*
 * What programs say of their versions, asked once of each.
 *
 * A program is run with its own argument for that, as a command of the user that no list shows, and
 * what it answers is kept for as long as the file at its path is the same. A few run at a time, each
 * for NK_VERSIONS_MS at most. Owned by app; loop thread only.
 */
#ifndef NK_CODE_VERSIONS_H
#define NK_CODE_VERSIONS_H

#include <uv.h>

#include "base/list.h"
#include "code/tools.h"
#include "process/command.h"

#define NK_VERSIONS_MS 10000
#define NK_VERSIONS_AT_ONCE 2
#define NK_VERSIONS_KEPT 64
#define NK_VERSIONS_TEXT 32

struct nk_registry;
struct nk_versions;

struct nk_versions_config {
    uv_loop_t *loop;
    struct nk_registry *registry;  /* borrowed: outlives it */
    const struct nk_user *user;    /* borrowed: likewise */
    const char *const *env;        /* borrowed: likewise */
    const struct nk_limits limits; /* of those commands */
};

/* One question; embedded by who asks. */
struct nk_version_ask {
    struct nk_list link;
    /* Once, from the loop. `version` ("3.11.2") is borrowed for the call; empty: it did not tell. */
    void (*told)(struct nk_version_ask *ask, const char *version);
};

int nk_versions_open(const struct nk_versions_config *cfg, struct nk_versions **out);
void nk_versions_close(struct nk_versions **slot); /* no command may run any more */

/* `arg` NULL: it has no way to tell. 0, or -ENOMEM: nothing will be told. */
int nk_versions_ask(struct nk_versions *v, const struct nk_tool *tool, const char *arg,
                    struct nk_version_ask *ask);
void nk_versions_leave(struct nk_version_ask *ask); /* no call any more */

/* The first number with a point in a program's answer; empty where there is none. */
void nk_versions_parse(const void *text, size_t len, char out[NK_VERSIONS_TEXT]);

#endif
