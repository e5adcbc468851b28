/*
 * As whom something is done: a uid, a gid and supplementary groups. A plain value.
 */
#ifndef NK_BASE_CREDS_H
#define NK_BASE_CREDS_H

#include <stddef.h>
#include <sys/types.h>

#define NK_CREDS_GROUPS 32

struct nk_creds {
    uid_t uid;
    gid_t gid;
    gid_t groups[NK_CREDS_GROUPS]; /* supplementary, without the primary */
    size_t group_count;
};

#endif
