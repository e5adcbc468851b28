/*
 * Unpacking: the entries of an archive become files below one folder.
 *
 * What does not belong there is refused and told, and the rest goes on: absolute names, `..`, what
 * goes through a link, hard links to elsewhere, devices, FIFOs. Set-id bits, owners and attributes
 * of an archive are dropped; the folder's own mode and time stay. No file is ever half-written under
 * its final name. What is unpacked is bounded: entries, bytes, depth, names.
 *
 * Blocking; on one thread that has the user's rights.
 */
#ifndef NK_FILES_TAR_EXTRACT_H
#define NK_FILES_TAR_EXTRACT_H

#include <stdbool.h>

#include "base/err.h"
#include "files/tar_result.h"
#include "files/tar_worker.h"

#define NK_TAR_EXTRACT_ENTRIES 1000000u
#define NK_TAR_EXTRACT_BYTES (UINT64_C(1) << 40)

/* What may be added, by the user's quota; beyond: NK_QUOTA_EXCEEDED. */
struct nk_tar_room {
    uint64_t bytes, files;
};

/* `dest` is borrowed: any descriptor of the folder. `strict`: the first refusal is NK_BAD_REQUEST.
 * `room`: NULL, no bound but the general ones. `out` (zeroed) tells what was done, also on failure.
 * 0, or -1 with err: also NK_NO_SPACE, NK_QUOTA_EXCEEDED, NK_TOO_LARGE. */
int nk_tar_extract_run(struct nk_tar_reader *reader, int dest, bool strict,
                       const struct nk_tar_room *room, struct nk_tar_result *out,
                       struct nk_err *err);

#endif
