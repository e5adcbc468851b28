/*
 * Names in an archive: what may become a path below a folder, and what is refused.
 *
 * Bytes, not characters: every byte but NUL and the slash may stand in a name. Pure functions.
 */
#ifndef NK_FILES_TAR_NAME_H
#define NK_FILES_TAR_NAME_H

#define NK_TAR_NAME_MAX 4096   /* bytes of a whole name */
#define NK_TAR_NAME_PART 255   /* bytes between two slashes */
#define NK_TAR_NAME_DEPTH 100u /* parts */

/* `name` without empty and "." parts; "" for the folder itself. NULL, or why it is refused:
 * absolute, `..`, empty, too long, too deep. Static text. */
const char *nk_tar_name_clean(const char *name, char out[NK_TAR_NAME_MAX + 1]);

/* Why an entry is refused where the disk said -errno; NULL: it is no matter of one entry (no space,
 * no memory), and nothing can go on. */
const char *nk_tar_name_reason(int sys);

#endif
