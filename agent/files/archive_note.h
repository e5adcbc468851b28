/*
 * What an archive worker says, taken apart with care: a user may have got hold of it.
 *
 * Private to archives.c. Codes it may not use become NK_INTERNAL. A zeroed note is a valid empty one.
 */
#ifndef NK_FILES_ARCHIVE_NOTE_H
#define NK_FILES_ARCHIVE_NOTE_H

#include "base/buf.h"
#include "base/err.h"
#include "files/tar_result.h"

enum nk_archive_said {
    NK_ARCHIVE_SAID_NONSENSE = -1,
    NK_ARCHIVE_SAID_NOTHING, /* not a whole note yet */
    NK_ARCHIVE_SAID_READY,
    NK_ARCHIVE_SAID_END,
};

struct nk_archive_note {
    struct nk_tar_result result;
    struct nk_err err; /* code NK_OK: all was done */
};

/* Takes one note from the front of `in`; `out` is filled by the last one. */
enum nk_archive_said nk_archive_note_take(struct nk_buf *in, struct nk_archive_note *out);
void nk_archive_note_fini(struct nk_archive_note *n);

#endif
