#include "files/tar_holes.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/scope.h"

#define WORTH (64u * 1024u) /* bytes that a hole must save */

static int add(struct nk_tar_extent **runs, size_t *count, size_t *cap, off_t from, off_t to)
{
    if (*count == NK_TAR_HOLES_MAX)
        return -1;
    if (*count == *cap) {
        size_t more = *cap ? *cap * 2 : 16;
        struct nk_tar_extent *grown = reallocarray(*runs, more, sizeof *grown);

        if (!grown)
            return -1;
        *runs = grown;
        *cap = more;
    }
    (*runs)[(*count)++] =
        (struct nk_tar_extent){.offset = (uint64_t)from, .len = (uint64_t)(to - from)};
    return 0;
}

static size_t map(int fd, const struct stat *st, struct nk_tar_extent **out)
{
    nk_auto_free struct nk_tar_extent *runs = NULL;
    size_t count = 0, cap = 0;
    off_t at = 0;

    while (at < st->st_size) {
        off_t from = lseek(fd, at, SEEK_DATA);
        off_t to = from < 0 ? -1 : lseek(fd, from, SEEK_HOLE);

        if (from < 0 || from >= st->st_size)
            break; /* nothing but a hole is left (ENXIO), or it cannot be told */
        if (to <= from)
            return 0;
        to = to < st->st_size ? to : st->st_size;
        if (add(&runs, &count, &cap, from, to) < 0)
            return 0;
        at = to;
    }
    /* A run of nothing at the end says how far the last hole goes. */
    if (at < st->st_size && add(&runs, &count, &cap, st->st_size, st->st_size) < 0)
        return 0;
    *out = nk_take_ptr(&runs);
    return count;
}

size_t nk_tar_holes_map(int fd, const struct stat *st, struct nk_tar_extent **out)
{
    size_t count;

    if ((uint64_t)st->st_blocks * 512 + WORTH > (uint64_t)st->st_size)
        return 0;
    count = map(fd, st, out);
    if (count == 0)
        (void)lseek(fd, 0, SEEK_SET);
    return count;
}
