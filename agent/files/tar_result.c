#include "files/tar_result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "files/tar_name.h"
#include "files/tar_note.h"

static void show(struct nk_tar_result *r, const char *path, const char *reason)
{
    struct nk_tar_refusal *refusal = &r->refused[r->shown];

    if (r->shown == NK_TAR_RESULT_SHOWN)
        return;
    refusal->path = strndup(path, NK_TAR_NAME_MAX);
    if (!refusal->path)
        return; /* counted all the same */
    (void)snprintf(refusal->reason, sizeof refusal->reason, "%s", reason);
    r->shown++;
}

void nk_tar_result_refuse(struct nk_tar_result *r, const char *path, const char *reason)
{
    r->refused_count++;
    show(r, path, reason);
}

void nk_tar_result_fini(struct nk_tar_result *r)
{
    for (size_t i = 0; i < r->shown; i++)
        free(r->refused[i].path);
    *r = (struct nk_tar_result){0};
}

void nk_tar_result_write(const struct nk_tar_result *r, struct nk_buf *out)
{
    nk_tar_note_add_u64(out, "files", r->files);
    nk_tar_note_add_u64(out, "dirs", r->dirs);
    nk_tar_note_add_u64(out, "links", r->links);
    nk_tar_note_add_u64(out, "bytes", r->bytes);
    nk_tar_note_add_u64(out, "refused", r->refused_count);
    for (size_t i = 0; i < r->shown; i++) {
        nk_tar_note_add(out, "reason", r->refused[i].reason);
        nk_tar_note_add(out, "path", r->refused[i].path);
    }
}

void nk_tar_result_read(struct nk_tar_result *r, const struct nk_tar_pair *pair)
{
    if (nk_tar_note_is(pair, "files"))
        r->files = nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "dirs"))
        r->dirs = nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "links"))
        r->links = nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "bytes"))
        r->bytes = nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "refused"))
        r->refused_count = nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "reason") && r->shown < NK_TAR_RESULT_SHOWN)
        (void)snprintf(r->refused[r->shown].reason, sizeof r->refused[0].reason, "%s", pair->value);
    else if (nk_tar_note_is(pair, "path") && r->shown < NK_TAR_RESULT_SHOWN) {
        char reason[sizeof r->refused[0].reason];

        memcpy(reason, r->refused[r->shown].reason, sizeof reason);
        show(r, pair->value, reason);
    }
}
