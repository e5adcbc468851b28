#include "api/wire_files.h"

#include <stdio.h>
#include <string.h>

#include "api/wire.h"
#include "files/entry.h"

static int64_t wall_ms(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

static void text(struct nk_json_out *o, const char *key, const char *value)
{
    nk_json_out_bytes(o, key, value, strlen(value));
}

void nk_wire_files_entry(struct nk_json_out *o, const struct nk_entry *e)
{
    int64_t mtime = wall_ms(&e->st.st_mtim);
    char mode[8];

    (void)snprintf(mode, sizeof mode, "%04o", e->st.st_mode & 07777);
    text(o, "path", e->path);
    text(o, "name", e->name);
    nk_json_out_str(o, "type", nk_entry_type(e->st.st_mode));
    nk_json_out_u64(o, "size", (uint64_t)e->st.st_size);
    nk_json_out_str(o, "mode", mode);
    nk_json_out_time(o, "mtime", mtime ? mtime : 1); /* 0 would be written as null */
    nk_json_out_u64(o, "uid", e->st.st_uid);
    nk_json_out_u64(o, "gid", e->st.st_gid);
    text(o, "owner", e->owners->owner);
    text(o, "group", e->owners->group);
    if (e->target_len > 0)
        nk_json_out_bytes(o, "target", e->target, e->target_len);
}

void nk_wire_files_reply(struct nk_req *req, int status, const struct nk_entry *entry)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_wire_files_entry(&o, entry);
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, status, &body);
}
