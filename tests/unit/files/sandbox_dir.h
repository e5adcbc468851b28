/*
 * A folder of its own for each test of the files room, with a root in it: `root` lies beside
 * `outside`, which nothing may reach. Included once a program.
 */
#ifndef NK_TESTS_SANDBOX_DIR_H
#define NK_TESTS_SANDBOX_DIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/path.h"
#include "process/probe.h"

struct sandbox_dir {
    char base[64];
    char root[80];
    char outside[80];
    int fd; /* of `base` */
    struct nk_kernel kernel;
    struct nk_roots *roots; /* `root` alone */
};

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void sandbox_dir_file(struct sandbox_dir *d, const char *name, const char *text)
{
    int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static inline void sandbox_dir_folder(struct sandbox_dir *d, const char *name)
{
    assert_int_equal(mkdirat(d->fd, name, 0755), 0);
}

static inline void sandbox_dir_link(struct sandbox_dir *d, const char *target, const char *name)
{
    assert_int_equal(symlinkat(target, d->fd, name), 0);
}

static inline bool sandbox_dir_has(const struct sandbox_dir *d, const char *name)
{
    return faccessat(d->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline int sandbox_dir_setup(void **state)
{
    struct sandbox_dir *d = calloc(1, sizeof *d);
    const char *writable[2] = {0};

    assert_non_null(d);
    (void)snprintf(d->base, sizeof d->base, "/tmp/nook-files-XXXXXX");
    assert_non_null(mkdtemp(d->base));
    assert_int_equal(chmod(d->base, 0755), 0);
    d->fd = open(d->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(d->fd >= 0);
    (void)snprintf(d->root, sizeof d->root, "%s/root", d->base);
    (void)snprintf(d->outside, sizeof d->outside, "%s/outside", d->base);
    sandbox_dir_folder(d, "root");
    sandbox_dir_folder(d, "outside");
    sandbox_dir_file(d, "outside/secret", "secret");
    nk_probe_quick(&d->kernel, 0);
    writable[0] = d->root;
    assert_int_equal(nk_roots_new(writable, NULL, &d->kernel, &d->roots, NULL), 0);
    *state = d;
    return 0;
}

static inline int sandbox_dir_teardown(void **state)
{
    struct sandbox_dir *d = *state;

    nk_roots_free(d->roots);
    (void)close(d->fd);
    (void)nftw(d->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(d);
    return 0;
}

#endif
