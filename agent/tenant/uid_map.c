#include "tenant/uid_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_io.h"
#include "base/scope.h"

#define HEX 64
#define RECORD (HEX + 1 + 10 + 1) /* digest, space, uid, newline */
#define AT_ONCE 128               /* records of one read */

struct file {
    const struct nk_uid_map *map;
    int fd;
    off_t end;     /* of the records that are whole */
    uint8_t *used; /* borrowed: a byte a uid */
};

struct search {
    char digest[HEX + 1];
    bool found;
    uid_t uid;
};

static void to_hex(const uint8_t digest[32], char out[HEX + 1])
{
    for (int i = 0; i < 32; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static int fail_damaged(const struct file *f, off_t at, struct nk_err *err)
{
    (void)f;
    return nk_fail(err, NK_INTERNAL, "the map of identities is damaged at byte %lld",
                   (long long)at);
}

static bool parse(const char *record, uid_t *out_uid)
{
    char digits[11];
    char *end;
    unsigned long uid;

    for (int i = 0; i < HEX; i++)
        if (!strchr("0123456789abcdef", record[i]) || record[i] == '\0')
            return false;
    if (record[HEX] != ' ' || record[RECORD - 1] != '\n')
        return false;
    memcpy(digits, record + HEX + 1, 10);
    digits[10] = '\0';
    uid = strtoul(digits, &end, 10);
    if (strspn(digits, "0123456789") != 10 || *end != '\0')
        return false;
    *out_uid = (uid_t)uid;
    return true;
}

/* One record. 0, or -1: it is none, or contradicts one before it. */
static int take_in(struct file *f, const char *record, struct search *s)
{
    uid_t uid;

    if (!parse(record, &uid) || uid < f->map->first || uid - f->map->first >= f->map->count)
        return -1;
    if (f->used[uid - f->map->first])
        return -1;
    f->used[uid - f->map->first] = 1;
    if (!s || memcmp(record, s->digest, HEX) != 0)
        return 0;
    if (s->found)
        return -1;
    s->found = true;
    s->uid = uid;
    return 0;
}

/* Nobody was told of what a crash left at the end. */
static int cut(struct file *f, off_t size, struct nk_err *err)
{
    if (f->end == size)
        return 0;
    return ftruncate(f->fd, f->end) < 0 ? nk_fail_sys(err, errno, "cannot mend the map") : 0;
}

static int read_all(struct file *f, struct search *s, struct nk_err *err)
{
    char buf[AT_ONCE * RECORD];
    struct stat st;
    off_t whole;

    if (fstat(f->fd, &st) < 0)
        return nk_fail_sys(err, errno, "cannot read the map of identities");
    whole = st.st_size - st.st_size % RECORD;
    while (f->end < whole) {
        ssize_t n = nk_fd_io_read_at(f->fd, buf, sizeof buf, f->end);

        if (n < RECORD)
            return nk_fail_sys(err, n < 0 ? (int)-n : EIO, "cannot read the map of identities");
        for (char *r = buf; r + RECORD <= buf + n && f->end < whole; r += RECORD) {
            uid_t ignored;

            if (take_in(f, r, s) == 0) {
                f->end += RECORD;
                continue;
            }
            /* Room that was made for the last record and never filled. */
            if (f->end + RECORD == whole && !parse(r, &ignored))
                return cut(f, st.st_size, err);
            return fail_damaged(f, f->end, err);
        }
    }
    return cut(f, st.st_size, err);
}

static int open_file(struct file *f, struct nk_err *err)
{
    int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    bool made = false;

    f->fd = openat(f->map->dir, NK_UID_MAP_FILE, flags);
    if (f->fd < 0 && errno == ENOENT) {
        f->fd = openat(f->map->dir, NK_UID_MAP_FILE, flags | O_CREAT, 0600);
        made = true;
    }
    if (f->fd < 0 || (made && fsync(f->map->dir) < 0))
        return nk_fail_sys(err, errno, "cannot open the map of identities");
    while (flock(f->fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return nk_fail_sys(err, errno, "cannot lock the map of identities");
    return 0;
}

static int append(struct file *f, const struct search *s, uid_t uid, struct nk_err *err)
{
    char record[RECORD + 1];
    ssize_t n;

    (void)snprintf(record, sizeof record, "%s %010u\n", s->digest, (unsigned)uid);
    do
        n = pwrite(f->fd, record, RECORD, f->end);
    while (n < 0 && errno == EINTR);
    if (n == RECORD && fdatasync(f->fd) == 0)
        return 0;
    if (n >= 0 && n < RECORD)
        errno = ENOSPC;
    (void)nk_fail_sys(err, errno, "cannot write the map of identities");
    (void)ftruncate(f->fd, f->end);
    return -1;
}

static int add(struct file *f, const struct search *s, uid_t *out_uid, struct nk_err *err)
{
    const struct nk_uid_map *m = f->map;

    for (unsigned i = 0; i < m->count; i++) {
        uid_t uid = m->first + i;

        if (f->used[i] || (m->may_take && !m->may_take(uid, m->ctx)))
            continue;
        if (append(f, s, uid, err) < 0)
            return -1;
        *out_uid = uid;
        return 0;
    }
    return nk_fail(err, NK_OVERLOADED, "no uid is left for another identity");
}

int nk_uid_map_take(const struct nk_uid_map *m, const uint8_t digest[32], uid_t *out_uid,
                    struct nk_err *err)
{
    nk_auto_free uint8_t *used = calloc(m->count, 1);
    struct file f = {.map = m, .fd = -1, .used = used};
    struct search s = {.found = false};
    int rc;

    if (!used)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    to_hex(digest, s.digest);
    rc = open_file(&f, err);
    if (rc == 0)
        rc = read_all(&f, &s, err);
    if (rc == 0 && s.found)
        *out_uid = s.uid;
    else if (rc == 0)
        rc = add(&f, &s, out_uid, err);
    nk_close_fd(&f.fd); /* and with it the lock goes */
    return rc;
}

int nk_uid_map_used(const struct nk_uid_map *m, uint8_t *used, struct nk_err *err)
{
    struct file f = {.map = m, .fd = -1, .used = used};
    int rc;

    memset(used, 0, m->count);
    rc = open_file(&f, err);
    if (rc == 0)
        rc = read_all(&f, NULL, err);
    nk_close_fd(&f.fd);
    return rc;
}
