#include "tenant/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/temp.h"
#include "files/walk.h"

#define BLOCK 512
#define SLACK (1u << 20) /* what a file system may set aside for a file that grows */
#define LINKED_FIRST 256

static uint64_t key_of(const struct stat *st)
{
    uint64_t key = (uint64_t)st->st_ino * 0x9e3779b97f4a7c15u ^ (uint64_t)st->st_dev << 48;

    return key ? key : 1;
}

/* False: it is in the table already. */
static bool insert(uint64_t *table, size_t size, uint64_t key)
{
    size_t at = (key ^ key >> 32) & (size - 1);

    while (table[at] && table[at] != key)
        at = (at + 1) & (size - 1);
    if (table[at])
        return false;
    table[at] = key;
    return true;
}

static bool grow(struct nk_tally *t)
{
    size_t size = t->linked_size ? t->linked_size * 2 : LINKED_FIRST;
    uint64_t *table = size > 2 * (size_t)NK_TALLY_LINKED_MAX ? NULL : calloc(size, sizeof *table);

    if (!table)
        return false;
    for (size_t i = 0; i < t->linked_size; i++)
        if (t->linked[i])
            (void)insert(table, size, t->linked[i]);
    free(t->linked);
    t->linked = table;
    t->linked_size = size;
    return true;
}

/* When there is no room to tell them apart, each name counts. */
static bool is_new(struct nk_tally *t, const struct stat *st)
{
    if (st->st_nlink < 2)
        return true;
    if (2 * t->linked_count >= t->linked_size && !grow(t))
        return true;
    if (!insert(t->linked, t->linked_size, key_of(st)))
        return false;
    t->linked_count++;
    return true;
}

static uint64_t size_of(const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size;
    uint64_t blocks = (uint64_t)st->st_blocks * BLOCK;

    return blocks > 2 * size + SLACK ? blocks : size;
}

static bool is_free(const struct nk_tally *t, const struct nk_walk_entry *e)
{
    for (const char *const *name = t->free; name && *name; name++)
        if (S_ISDIR(e->st.st_mode) && strcmp(*name, e->path) == 0)
            return true;
    return false;
}

/* By what it is: a name could be anybody's. */
static bool is_skipped(const struct nk_tally *t, const struct nk_walk_entry *e)
{
    if (t->skip_count == 0 || !nk_temp_is(e->name))
        return false;
    for (size_t i = 0; i < t->skip_count; i++)
        if (t->skip[i].ino == e->st.st_ino && t->skip[i].dev == e->st.st_dev)
            return true;
    return false;
}

static void count(struct nk_tally *t, const struct nk_walk_entry *e)
{
    if (e->leaving || (t->of_one && e->st.st_uid != t->uid) || is_free(t, e) || is_skipped(t, e))
        return;
    t->files++;
    if (S_ISREG(e->st.st_mode) && is_new(t, &e->st))
        t->bytes += size_of(&e->st);
}

/* Who makes files faster than they are counted must not keep it from being found out. */
static bool is_enough(const struct nk_tally *t)
{
    return (t->enough_bytes && t->bytes > t->enough_bytes) ||
           (t->enough_files && t->files > t->enough_files);
}

static int enter(const struct nk_root *root)
{
    nk_auto_fd int fd = root->writable ? nk_roots_enter(root) : -EACCES;

    return fd < 0 ? fd : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int nk_tally_go(struct nk_tally *t, uint64_t until_ns)
{
    static const struct nk_walk_options options = {.tolerant = true};
    struct nk_walk_entry e;

    for (; t->at < t->roots->count; t->at++) {
        int rc = 1;

        if (!t->walk) {
            int fd = enter(&t->roots->item[t->at]);

            if (fd < 0 || nk_walk_new(fd, &options, &t->walk) < 0)
                continue;
        }
        while (rc != 0 && rc != -ENOMEM && rc != -EMFILE && rc != -ENFILE) {
            rc = nk_walk_next(t->walk, until_ns, &e);
            if (rc == -EAGAIN)
                return 1;
            if (rc > 0)
                count(t, &e);
            if (is_enough(t))
                return 0;
        }
        nk_walk_free(t->walk);
        t->walk = NULL;
    }
    return 0;
}

void nk_tally_fini(struct nk_tally *t)
{
    nk_walk_free(t->walk);
    free(t->linked);
    t->walk = NULL;
    t->linked = NULL;
    t->linked_count = t->linked_size = 0;
}
