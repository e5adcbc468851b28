#include "files/entry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

#define TABLE_MAX (1024 * 1024) /* of passwd and group, as far as they are read */

static char *read_table(const char *path, size_t *out_len)
{
    nk_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    nk_auto_free char *text = NULL;
    struct stat st;
    size_t len = 0;
    ssize_t n = 1;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > TABLE_MAX)
        return NULL;
    text = malloc((size_t)st.st_size + 1);
    while (text && n > 0 && len < (size_t)st.st_size) {
        n = read(fd, text + len, (size_t)st.st_size - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (text)
        text[len] = '\0';
    *out_len = len;
    return nk_take_ptr(&text);
}

/* passwd and group begin alike: NAME:x:ID: */
static bool find_name(const char *table, unsigned id, char *out, size_t size)
{
    for (const char *line = table; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *first = memchr(line, ':', (size_t)(end - line));
        const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
        char *tail = NULL;

        if (second && second[1] >= '0' && second[1] <= '9' &&
            strtoul(second + 1, &tail, 10) == id && *tail == ':' && (size_t)(first - line) < size) {
            memcpy(out, line, (size_t)(first - line));
            out[first - line] = '\0';
            return true;
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

static void learn(const char *path, unsigned id, char *out, size_t size)
{
    size_t len = 0;
    nk_auto_free char *table = read_table(path, &len);

    if (!table || !find_name(table, id, out, size))
        (void)snprintf(out, size, "%u", id);
}

void nk_entry_learn_owners(struct nk_owners *o, uid_t uid, gid_t gid)
{
    if (!o->known_uid || o->uid != uid)
        learn("/etc/passwd", uid, o->owner, sizeof o->owner);
    if (!o->known_gid || o->gid != gid)
        learn("/etc/group", gid, o->group, sizeof o->group);
    o->known_uid = o->known_gid = true;
    o->uid = uid;
    o->gid = gid;
}

void nk_entry_fill(struct nk_entry *e, int dir, const char *name, const struct stat *st,
                   struct nk_owners *owners)
{
    ssize_t n = -1;

    e->st = *st;
    e->owners = owners;
    nk_entry_learn_owners(owners, st->st_uid, st->st_gid);
    if (S_ISLNK(st->st_mode))
        n = readlinkat(dir, name, e->target, sizeof e->target);
    e->target_len = n > 0 ? (size_t)n : 0;
}

int nk_entry_at(struct nk_entry *e, const struct nk_place *place, struct nk_owners *owners,
                struct nk_err *err)
{
    const char *slash = strrchr(place->path, '/');
    struct stat st;

    if (nk_place_stat(place, &st, err) < 0)
        return -1;
    e->path = place->path;
    e->name = place->name;
    if (place->is_root && slash && slash[1] != '\0')
        e->name = slash + 1;
    nk_entry_fill(e, place->dir, place->name, &st, owners);
    return 0;
}

const char *nk_entry_type(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "dir";
    return S_ISLNK(mode) ? "symlink" : "other";
}
