#include "files/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define CLOCK_EVERY 256 /* entries between looks at the clock */

int nk_names_compare(const struct nk_name *a, const struct nk_name *b)
{
    const unsigned char *s = (const unsigned char *)a->text;
    const unsigned char *t = (const unsigned char *)b->text;

    while (*s && *s == *t) {
        s++;
        t++;
    }
    if (!*s && !*t)
        return (int)a->inner - (int)b->inner;
    return (*s ? *s : (a->inner ? '/' : 0)) - (*t ? *t : (b->inner ? '/' : 0));
}

static int compare(const void *a, const void *b)
{
    return nk_names_compare(a, b);
}

static int compare_nested(const void *a, const void *b)
{
    const struct nk_name *s = a;
    const struct nk_name *t = b;
    int c = strcmp(s->text, t->text);

    return c != 0 ? c : (int)s->inner - (int)t->inner;
}

static int compare_in(const struct nk_names *n, const struct nk_name *a, const struct nk_name *b)
{
    return n->nested ? compare_nested(a, b) : nk_names_compare(a, b);
}

static size_t max_of(const struct nk_names *n)
{
    return n->max ? n->max : NK_NAMES_MAX;
}

static void clear(struct nk_names *n, size_t from)
{
    for (size_t i = from; i < n->count; i++) {
        free(n->item[i].text);
        n->item[i].text = NULL;
    }
    n->count = from;
    if (n->next > from)
        n->next = from;
}

/* Keeps the smallest ones. */
static void shrink(struct nk_names *n)
{
    if (n->count > 1)
        qsort(n->item, n->count, sizeof *n->item, n->nested ? compare_nested : compare);
    if (n->count <= max_of(n))
        return;
    clear(n, max_of(n));
    n->more = true;
    n->bound = n->count;
}

static int grow(struct nk_names *n)
{
    size_t cap = n->cap ? 2 * n->cap : 64;
    struct nk_name *item = realloc(n->item, cap * sizeof *item);

    if (!item)
        return -ENOMEM;
    n->item = item;
    n->cap = cap;
    return 0;
}

static bool wanted(const struct nk_names *n, const struct nk_name *name, bool *out_beyond)
{
    if (n->last.text) {
        int c = compare_in(n, name, &n->last);

        if (c < 0 || (c == 0 && !n->inclusive))
            return false;
    }
    *out_beyond = n->bound && compare_in(n, name, &n->item[n->bound - 1]) > 0;
    return !*out_beyond;
}

static int add(struct nk_names *n, char *text, bool inner)
{
    struct nk_name name = {.text = text, .inner = inner};
    bool beyond = false;

    if (!wanted(n, &name, &beyond)) {
        n->more |= beyond;
        return 0;
    }
    if (n->count == 2 * max_of(n))
        shrink(n);
    if (n->count == n->cap && grow(n) < 0)
        return -ENOMEM;
    name.text = strdup(text);
    if (!name.text)
        return -ENOMEM;
    n->item[n->count++] = name;
    return 0;
}

static bool is_folder(int dir, const struct dirent64 *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int add_entry(struct nk_names *n, struct nk_names_reader *r, struct dirent64 *d)
{
    int rc;

    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    rc = add(n, d->d_name, false);
    if (rc == 0 && r->inner && is_folder(r->dir, d))
        rc = add(n, d->d_name, true);
    return rc;
}

static int fill(struct nk_names_reader *r)
{
    ssize_t len = getdents64(r->dir, r->buf, sizeof r->buf);

    r->at = 0;
    r->len = len > 0 ? (size_t)len : 0;
    if (len < 0)
        return errno == ENOENT ? 0 : -errno; /* the folder was removed */
    return len > 0;
}

static int read_all(struct nk_names *n, struct nk_names_reader *r)
{
    for (unsigned i = 1;; i++) {
        struct dirent64 *d;
        int rc = r->at < r->len ? 1 : fill(r);

        if (rc <= 0)
            return rc;
        if (i % CLOCK_EVERY == 0 && nk_clock_mono_ns() >= r->until_ns)
            return -EAGAIN;
        d = (struct dirent64 *)(void *)(r->buf + r->at);
        rc = add_entry(n, r, d);
        if (rc < 0)
            return rc;
        r->at += d->d_reclen;
    }
}

int nk_names_read(struct nk_names *n, struct nk_names_reader *r)
{
    int rc;

    if (!n->reading) {
        clear(n, 0);
        n->more = false;
        n->bound = 0;
        r->at = r->len = 0;
        if (lseek(r->dir, 0, SEEK_SET) < 0)
            return -errno;
    }
    rc = read_all(n, r);
    n->reading = rc == -EAGAIN;
    if (rc < 0)
        return rc;
    shrink(n);
    n->next = 0;
    return 0;
}

const struct nk_name *nk_names_take(struct nk_names *n)
{
    if (n->next == n->count)
        return NULL;
    free(n->last.text);
    n->last = n->item[n->next];
    n->item[n->next++].text = NULL;
    n->inclusive = false;
    return &n->last;
}

void nk_names_drop(struct nk_names *n)
{
    n->more |= n->next < n->count;
    clear(n, 0);
    free(n->item);
    n->item = NULL;
    n->cap = 0;
}

void nk_names_fini(struct nk_names *n)
{
    nk_names_drop(n);
    free(n->last.text);
    *n = (struct nk_names){0};
}
