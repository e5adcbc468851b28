/*
 * What changed in trees of files: a look before, a look after, and the difference.
 *
 * A look is one pass: the names of each folder, one stat a file, by descriptor, no link followed.
 * Of a file the first look keeps eight bytes, made of its path and of all that changes with it
 * (device, inode, size, mtime, ctime). Nobody but the kernel sets a ctime, so a rewrite with the same
 * size and mtime shows, and no clock is read to tell new from old. It ends only when the clock of
 * ctimes has moved on from the newest of them, so that a change right after it shows too.
 *
 * Regular files of one user only; caches and the agent's own files are left out. Beyond
 * NK_SNAPSHOT_FILES_MAX files it is the ctime alone that tells; at most NK_SNAPSHOT_CHANGES_MAX
 * changes are listed, and as many as NK_SNAPSHOT_MORE_MAX of the one more folder.
 *
 * Made by its owner on any thread; the looks are on pool threads with the user's rights, blocking.
 */
#ifndef NK_FILES_SNAPSHOT_H
#define NK_FILES_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "files/roots.h"

#define NK_SNAPSHOT_FILES_MAX (1u << 20)
#define NK_SNAPSHOT_CHANGES_MAX 20000
#define NK_SNAPSHOT_TEXT_MAX (4u << 20) /* bytes of all their paths */
#define NK_SNAPSHOT_MORE_MAX 1024       /* whatever else has changed */
#define NK_SNAPSHOT_MORE_TEXT_MAX (1u << 20)

struct nk_snapshot;

struct nk_change {
    const char *path; /* borrowed from the snapshot: absolute */
    const char *rest; /* the same from its root on */
    uint64_t size;
    unsigned root; /* of nk_snapshot_root */
};

/* The writable ones of `roots` (borrowed: outlives the snapshot), and one more folder, or NULL. */
int nk_snapshot_new(const struct nk_roots *roots, const char *more, uid_t uid,
                    struct nk_snapshot **out); /* 0 or -ENOMEM */
void nk_snapshot_free(struct nk_snapshot *s);

/* Both in slices: 1 where `until_ns` came first, 0 when it is done. What cannot be read is passed
 * over. */
int nk_snapshot_before(struct nk_snapshot *s, uint64_t until_ns);
int nk_snapshot_after(struct nk_snapshot *s, uint64_t until_ns);

/* After the second look: by path, in byte order. */
size_t nk_snapshot_changes(const struct nk_snapshot *s, const struct nk_change **out);
size_t nk_snapshot_files(const struct nk_snapshot *s); /* regular files that the last look met */
/* A descriptor of that root (O_PATH), opened anew; or -errno. */
int nk_snapshot_enter(const struct nk_snapshot *s, unsigned root);
/* Forgets the first look: only the changes stay. How many bytes these are. */
size_t nk_snapshot_settle(struct nk_snapshot *s);

#endif
