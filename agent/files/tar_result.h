/*
 * What became of an archive that was unpacked: counts, and the first entries that were refused.
 *
 * A zeroed struct is a valid empty one. Owned by one thread; no I/O.
 */
#ifndef NK_FILES_TAR_RESULT_H
#define NK_FILES_TAR_RESULT_H

#include <stddef.h>
#include <stdint.h>

#define NK_TAR_RESULT_SHOWN 100 /* refused entries that are told one by one */

struct nk_tar_refusal {
    char *path; /* owned: as it stood in the archive, cut where it is longer than a name */
    char reason[64];
};

struct nk_tar_result {
    uint64_t files, dirs, links; /* made, or there already */
    uint64_t bytes;              /* of files */
    uint64_t refused_count;
    struct nk_tar_refusal refused[NK_TAR_RESULT_SHOWN];
    size_t shown;
};

void nk_tar_result_refuse(struct nk_tar_result *r, const char *path, const char *reason);
void nk_tar_result_fini(struct nk_tar_result *r);

/* Between the worker and the daemon, as pairs of a note. Reading adds what it knows of one pair. */
struct nk_buf;
struct nk_tar_pair;
void nk_tar_result_write(const struct nk_tar_result *r, struct nk_buf *out);
void nk_tar_result_read(struct nk_tar_result *r, const struct nk_tar_pair *pair);

#endif
