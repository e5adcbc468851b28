#include "files/archive_note.h"

#include <stdbool.h>
#include <string.h>

#include "files/tar_note.h"

static enum nk_code code_of(uint64_t said)
{
    switch (said) {
    case NK_BAD_REQUEST:
    case NK_BAD_PATH:
    case NK_FORBIDDEN:
    case NK_NOT_FOUND:
    case NK_QUOTA_EXCEEDED:
    case NK_EXISTS:
    case NK_CONFLICT:
    case NK_TOO_LARGE:
    case NK_NOT_SUPPORTED:
    case NK_OVERLOADED:
    case NK_NO_SPACE:
        return (enum nk_code)said;
    default:
        return NK_INTERNAL;
    }
}

struct said {
    const char *state;
    const char *message;
    enum nk_code code;
};

static enum nk_archive_said read_note(const char *text, size_t len, struct nk_archive_note *out)
{
    struct said said = {.state = "", .message = "", .code = NK_INTERNAL};
    struct nk_tar_pair pair;

    for (const char *at = text; nk_tar_note_next(&at, text + len, &pair);) {
        if (nk_tar_note_is(&pair, "state"))
            said.state = pair.value;
        else if (nk_tar_note_is(&pair, "code"))
            said.code = code_of(nk_tar_note_u64(&pair));
        else if (nk_tar_note_is(&pair, "message"))
            said.message = pair.value;
        else
            nk_tar_result_read(&out->result, &pair);
    }
    if (strcmp(said.state, "ready") == 0)
        return NK_ARCHIVE_SAID_READY;
    if (strcmp(said.state, "failed") == 0)
        (void)nk_fail(&out->err, said.code, "%s", said.message);
    else if (strcmp(said.state, "done") != 0)
        return NK_ARCHIVE_SAID_NONSENSE;
    return NK_ARCHIVE_SAID_END;
}

enum nk_archive_said nk_archive_note_take(struct nk_buf *in, struct nk_archive_note *out)
{
    enum nk_archive_said said;
    const char *text;
    size_t len;
    int rc = in->failed ? -1 : nk_tar_note_find(in, &text, &len);

    if (rc <= 0)
        return rc < 0 ? NK_ARCHIVE_SAID_NONSENSE : NK_ARCHIVE_SAID_NOTHING;
    said = read_note(text, len, out);
    nk_buf_consume(in, NK_TAR_NOTE_HEAD + len);
    return said;
}

void nk_archive_note_fini(struct nk_archive_note *n)
{
    nk_tar_result_fini(&n->result);
    n->err = (struct nk_err){0};
}
