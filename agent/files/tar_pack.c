#include "files/tar_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/tar_holes.h"
#include "files/walk.h"

#define PIECE (256u * 1024u)
#define NAMES_MAX 32768u /* kept of a folder: one that holds more is read again for the next ones */
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

int nk_tar_pack_init(struct nk_tar_pack *p, struct nk_tar_writer *writer, bool skip_links,
                     struct nk_err *err)
{
    *p = (struct nk_tar_pack){.writer = writer, .skip_links = skip_links};
    p->data = aligned_alloc(NK_TAR_PAGE, PIECE);
    return p->data ? 0 : nk_fail(err, NK_OVERLOADED, "no memory to pack");
}

void nk_tar_pack_fini(struct nk_tar_pack *p)
{
    nk_tar_links_fini(&p->links);
    free(p->data);
    free(p->name);
    p->data = NULL;
    p->name = NULL;
}

static int fail(const struct nk_tar_pack *p, int sys, struct nk_err *err)
{
    return nk_fail_sys(err, sys, "%.150s", p->name);
}

/* Gone, or something else than it was a moment ago: as if it had never been seen. */
static bool is_gone(int sys)
{
    return sys == ENOENT || sys == ELOOP || sys == ENOTDIR || sys == ENXIO || sys == ESTALE;
}

static struct nk_tar_entry entry_of(const struct nk_tar_pack *p, const struct stat *st,
                                    enum nk_tar_type type)
{
    return (struct nk_tar_entry){
        .type = type,
        .name = p->name,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .mtime_s = st->st_mtim.tv_sec,
        .mtime_ns = st->st_mtim.tv_nsec,
        .size = (uint64_t)st->st_size,
    };
}

/* `len` bytes of content as they are in the file, from where it stands. */
static int copy_bytes(struct nk_tar_pack *p, int fd, uint64_t len, struct nk_err *err)
{
    while (len > 0) {
        ssize_t n = read(fd, p->data, len < PIECE ? (size_t)len : PIECE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(p, errno, err);
        if (n == 0)
            return nk_fail(err, NK_CONFLICT, "%.150s: became shorter while it was read", p->name);
        if (nk_tar_writer_data(p->writer, p->data, (size_t)n, err) < 0)
            return -1;
        len -= (uint64_t)n;
    }
    return 0;
}

/* What the writer wants to be told of a hole, and does not write. */
static int pass_hole(struct nk_tar_pack *p, uint64_t len, struct nk_err *err)
{
    memset(p->data, 0, PIECE);
    while (len > 0) {
        size_t n = len < PIECE ? (size_t)len : PIECE;

        if (nk_tar_writer_data(p->writer, p->data, n, err) < 0)
            return -1;
        len -= n;
    }
    return 0;
}

static int copy_runs(struct nk_tar_pack *p, int fd, const struct nk_tar_extent *runs, size_t count,
                     struct nk_err *err)
{
    uint64_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (pass_hole(p, runs[i].offset - at, err) < 0)
            return -1;
        if (lseek(fd, (off_t)runs[i].offset, SEEK_SET) < 0)
            return fail(p, errno, err);
        if (copy_bytes(p, fd, runs[i].len, err) < 0)
            return -1;
        at = runs[i].offset + runs[i].len;
    }
    return 0;
}

static int add_content(struct nk_tar_pack *p, int fd, const struct stat *st, struct nk_err *err)
{
    nk_auto_free struct nk_tar_extent *runs = NULL;
    const struct nk_tar_entry entry = entry_of(p, st, NK_TAR_FILE);
    size_t count = nk_tar_holes_map(fd, st, &runs);

    if (nk_tar_writer_begin(p->writer, &entry, runs, count, err) < 0)
        return -1;
    return count > 0 ? copy_runs(p, fd, runs, count, err) : copy_bytes(p, fd, entry.size, err);
}

static int add_file(struct nk_tar_pack *p, int dir, const char *leaf, struct nk_err *err)
{
    nk_auto_fd int fd = openat(dir, leaf, FILE_FLAGS);
    struct nk_tar_entry link;
    const char *seen = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return is_gone(errno) ? 0 : fail(p, errno, err);
    if (!S_ISREG(st.st_mode))
        return 0;
    if (st.st_nlink > 1 && !p->skip_links)
        seen = nk_tar_links_seen(&p->links, &st, p->name);
    if (!seen || strcmp(seen, p->name) == 0)
        return add_content(p, fd, &st, err);
    link = entry_of(p, &st, NK_TAR_HARDLINK);
    link.link = seen;
    return nk_tar_writer_begin(p->writer, &link, NULL, 0, err);
}

static int add_symlink(struct nk_tar_pack *p, int dir, const char *leaf, const struct stat *st,
                       struct nk_err *err)
{
    struct nk_tar_entry entry = entry_of(p, st, NK_TAR_SYMLINK);
    ssize_t n;

    if (p->skip_links)
        return 0;
    n = readlinkat(dir, leaf, p->target, sizeof p->target - 1);
    if (n < 0)
        return is_gone(errno) || errno == EINVAL ? 0 : fail(p, errno, err);
    p->target[n] = '\0';
    entry.link = p->target;
    return nk_tar_writer_begin(p->writer, &entry, NULL, 0, err);
}

static int reserve_name(struct nk_tar_pack *p, size_t size, struct nk_err *err)
{
    char *name;

    if (size <= p->name_cap)
        return 0;
    name = realloc(p->name, 2 * size);
    if (!name)
        return nk_fail(err, NK_OVERLOADED, "no memory for a name");
    p->name = name;
    p->name_cap = 2 * size;
    return 0;
}

/* Of what lies at `path` below the top. */
static int set_name(struct nk_tar_pack *p, const char *path, size_t len, struct nk_err *err)
{
    size_t size = p->top_len + len + 3; /* slashes before and behind it, and the NUL */

    if (size > NK_TAR_PACK_NAME)
        return nk_fail(err, NK_TOO_LARGE,
                       "%.100s...: a name of %zu bytes is too long for an archive", path, size - 3);
    if (reserve_name(p, size, err) < 0)
        return -1;
    p->name[p->top_len] = '/';
    memcpy(p->name + p->top_len + 1, path, len + 1);
    return 0;
}

static int add_folder(struct nk_tar_pack *p, const struct stat *st, struct nk_err *err)
{
    size_t len = strlen(p->name);
    struct nk_tar_entry entry;

    memcpy(p->name + len, "/", 2);
    entry = entry_of(p, st, NK_TAR_DIR);
    return nk_tar_writer_begin(p->writer, &entry, NULL, 0, err);
}

static int add_any(struct nk_tar_pack *p, int dir, const char *leaf, const struct stat *st,
                   struct nk_err *err)
{
    if (S_ISREG(st->st_mode))
        return add_file(p, dir, leaf, err);
    if (S_ISDIR(st->st_mode))
        return add_folder(p, st, err);
    return S_ISLNK(st->st_mode) ? add_symlink(p, dir, leaf, st, err) : 0;
}

static int fail_walk(const struct nk_walk_entry *e, int sys, struct nk_err *err)
{
    if (sys == ENAMETOOLONG)
        return nk_fail(err, NK_TOO_LARGE, "%.100s...: too many folders deep", e->path);
    return nk_fail_sys(err, sys, "%.150s", e->path_len > 0 ? e->path : ".");
}

static int add_inside(struct nk_tar_pack *p, struct nk_walk *tree, struct nk_err *err)
{
    struct nk_walk_entry e = {.path = ""};

    for (;;) {
        int rc = nk_walk_next(tree, UINT64_MAX, &e);

        if (rc == 0)
            return 0;
        if (rc < 0 && !is_gone(-rc))
            return fail_walk(&e, -rc, err);
        if (rc < 0 || e.leaving)
            continue;
        if (set_name(p, e.path, e.path_len, err) < 0 || add_any(p, e.dir, e.name, &e.st, err) < 0)
            return -1;
    }
}

static int add_tree(struct nk_tar_pack *p, int dir, const char *leaf, struct nk_err *err)
{
    const struct nk_walk_options options = {.nested = true, .names_max = NAMES_MAX};
    nk_auto_fd int fd = openat(dir, leaf, DIR_FLAGS);
    struct nk_walk *tree = NULL;
    struct stat st;
    int rc;

    if (fd < 0 || fstat(fd, &st) < 0)
        return is_gone(errno) ? 0 : fail(p, errno, err);
    if (add_folder(p, &st, err) < 0)
        return -1;
    rc = nk_walk_new(nk_take_fd(&fd), &options, &tree);
    if (rc < 0)
        return fail(p, -rc, err);
    rc = add_inside(p, tree, err);
    nk_walk_free(tree);
    return rc;
}

int nk_tar_pack_add(struct nk_tar_pack *p, int dir, const char *leaf, const char *name,
                    struct nk_err *err)
{
    size_t len = strlen(name);
    struct stat st;

    if (len > NK_TAR_NAME_MAX)
        return nk_fail(err, NK_BAD_PATH, "a name of %zu bytes is too long", len);
    if (reserve_name(p, len + 3, err) < 0)
        return -1;
    memcpy(p->name, name, len + 1);
    p->top_len = len;
    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(p, errno, err);
    return S_ISDIR(st.st_mode) ? add_tree(p, dir, leaf, err) : add_any(p, dir, leaf, &st, err);
}
