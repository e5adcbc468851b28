#include "files/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

#define OPEN_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

static size_t list_len(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* Skips slashes and "." components. */
static const char *skip_nothing(const char *s)
{
    for (;;) {
        if (*s == '/')
            s++;
        else if (s[0] == '.' && (s[1] == '/' || s[1] == '\0'))
            s++;
        else
            return s;
    }
}

/* "/a//b/./" as "/a/b", and "/" as "". */
static char *clean_dup(const char *path)
{
    char *out = malloc(strlen(path) + 2);
    size_t len = 0;

    if (!out)
        return NULL;
    for (const char *s = skip_nothing(path); *s; s = skip_nothing(s)) {
        size_t n = strcspn(s, "/");

        out[len++] = '/';
        memcpy(out + len, s, n);
        len += n;
        s += n;
    }
    out[len] = '\0';
    return out;
}

static int add(struct nk_roots *roots, const char *path, int fd, bool writable)
{
    struct nk_root *root = &roots->item[roots->count];
    char *clean = clean_dup(path);

    if (!clean) {
        nk_close_fd(&fd);
        return -1;
    }
    *root = (struct nk_root){.fd = fd, .path = clean, .len = strlen(clean), .writable = writable};
    roots->count++;
    return 0;
}

static int add_all(struct nk_roots *roots, const char *const *list, bool writable)
{
    for (size_t i = 0; list && list[i]; i++) {
        if (add(roots, list[i], open(list[i], OPEN_FLAGS), writable) < 0)
            return -1;
    }
    return 0;
}

static struct nk_roots *make(size_t count, const struct nk_kernel *kernel)
{
    struct nk_roots *roots = calloc(1, sizeof *roots);

    if (!roots)
        return NULL;
    roots->kernel = kernel;
    roots->item = calloc(count, sizeof *roots->item);
    if (roots->item)
        return roots;
    free(roots);
    return NULL;
}

int nk_roots_new(const char *const *writable, const char *const *readable,
                 const struct nk_kernel *kernel, struct nk_roots **out, struct nk_err *err)
{
    struct nk_roots *roots = make(list_len(writable) + list_len(readable), kernel);

    if (!roots || add_all(roots, writable, true) < 0 || add_all(roots, readable, false) < 0) {
        nk_roots_free(roots);
        return nk_fail(err, NK_OVERLOADED, "no memory for the roots");
    }
    *out = roots;
    return 0;
}

int nk_roots_new_at(int dir, const char *path, const struct nk_kernel *kernel,
                    struct nk_roots **out, struct nk_err *err)
{
    struct nk_roots *roots = make(1, kernel);

    if (!roots)
        nk_close_fd(&dir);
    if (!roots || add(roots, path, dir, true) < 0) {
        nk_roots_free(roots);
        return nk_fail(err, NK_OVERLOADED, "no memory for the roots");
    }
    *out = roots;
    return 0;
}

void nk_roots_free(struct nk_roots *roots)
{
    if (!roots)
        return;
    for (size_t i = 0; i < roots->count; i++) {
        nk_close_fd(&roots->item[i].fd);
        free(roots->item[i].path);
    }
    free(roots->item);
    free(roots);
}

/* Where `path` goes on behind the root, or NULL. */
static const char *behind(const struct nk_root *root, const char *path)
{
    const char *s = skip_nothing(path);
    const char *r = root->path;

    while (*r) {
        size_t n = strcspn(++r, "/");

        if (strncmp(s, r, n) != 0 || (s[n] != '/' && s[n] != '\0'))
            return NULL;
        s = skip_nothing(s + n);
        r += n;
    }
    return s;
}

const struct nk_root *nk_roots_find(const struct nk_roots *roots, const char *path,
                                    const char **out_rest)
{
    const struct nk_root *best = NULL;

    for (size_t i = 0; i < roots->count; i++) {
        const struct nk_root *root = &roots->item[i];
        const char *rest = behind(root, path);

        if (!rest || (best && best->len >= root->len))
            continue;
        best = root;
        *out_rest = rest;
    }
    return best;
}

int nk_roots_enter(const struct nk_root *root)
{
    int fd;

    if (root->fd >= 0)
        fd = openat(root->fd, ".", OPEN_FLAGS | O_NOFOLLOW);
    else
        fd = open(root->len ? root->path : "/", OPEN_FLAGS | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}
