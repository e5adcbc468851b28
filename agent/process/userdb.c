#include "process/userdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

#define LINE_MAX_BYTES (64u * 1024u)
#define FIELDS_MAX 7
#define GROUPS_MAX (NK_CREDS_GROUPS - 1) /* one place is left for a command's mark */

/* A file of lines, read in one buffer; a line that does not fit is skipped. */
struct lines {
    int fd;
    size_t start, end; /* of what is in the buffer and was not given out */
    bool over;
    bool skipping;
    char data[LINE_MAX_BYTES];
};

static struct lines *lines_open(const char *root_dir, const char *name)
{
    struct lines *l;
    nk_auto_fd int root = open(root_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : openat(root, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return NULL;
    l = calloc(1, sizeof *l);
    if (!l)
        (void)close(fd);
    else
        l->fd = fd;
    return l;
}

static void lines_close(struct lines *l)
{
    if (!l)
        return;
    (void)close(l->fd);
    free(l);
}

static void fill(struct lines *l)
{
    ssize_t n;

    if (l->start > 0) {
        memmove(l->data, l->data + l->start, l->end - l->start);
        l->end -= l->start;
        l->start = 0;
    }
    if (l->end == sizeof l->data - 1) {
        l->skipping = true;
        l->end = 0;
    }
    do
        n = read(l->fd, l->data + l->end, sizeof l->data - 1 - l->end);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        l->over = true;
    else
        l->end += (size_t)n;
}

/* The next line without its end, or NULL. Valid until the next call. */
static char *lines_next(struct lines *l)
{
    for (;;) {
        char *line = l->data + l->start;
        char *end = memchr(line, '\n', l->end - l->start);

        if (!end && !l->over) {
            fill(l);
            continue;
        }
        if (!end && l->start == l->end)
            return NULL;
        if (!end)
            end = l->data + l->end;
        *end = '\0';
        l->start = (size_t)(end - l->data) + (end < l->data + l->end);
        if (!l->skipping && strlen(line) == (size_t)(end - line))
            return line;
        l->skipping = false; /* the rest of a line too long, or one with a NUL inside */
    }
}

static size_t split(char *line, char *field[FIELDS_MAX], size_t want)
{
    size_t count = 0;

    while (count < want) {
        field[count++] = line;
        line = strchr(line, ':');
        if (!line)
            return count;
        *line++ = '\0';
    }
    return count + 1; /* more than wanted */
}

/* A decimal number that can be an id: the highest one means "none" to the kernel. */
static bool parse_id(const char *text, uint32_t *out)
{
    size_t n = strspn(text, "0123456789");
    uint64_t v;

    if (n == 0 || n > 10 || text[n])
        return false;
    v = strtoull(text, NULL, 10);
    if (v >= UINT32_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

static void copy(char *to, size_t size, const char *text, const char *otherwise)
{
    if (text[0] != '/' || strlen(text) >= size)
        text = otherwise;
    (void)snprintf(to, size, "%s", text);
}

/* name:password:uid:gid:comment:home:shell. Anything else (a comment, an NIS line) is no entry. */
static bool parse_user(char *line, struct nk_user *out)
{
    char *field[FIELDS_MAX];
    uint32_t uid, gid;

    if (split(line, field, FIELDS_MAX) != FIELDS_MAX)
        return false;
    if (!field[0][0] || strchr("+-#", field[0][0]) || strlen(field[0]) >= sizeof out->name)
        return false;
    if (!parse_id(field[2], &uid) || !parse_id(field[3], &gid))
        return false;
    *out = (struct nk_user){.creds = {.uid = uid, .gid = gid}};
    (void)snprintf(out->name, sizeof out->name, "%s", field[0]);
    copy(out->home, sizeof out->home, field[5], "/");
    copy(out->shell, sizeof out->shell, field[6], "/bin/sh");
    return true;
}

/* By name, or where that is NULL by uid. */
static bool find_user(const char *root_dir, const char *name, uid_t uid, struct nk_user *out)
{
    struct lines *l = lines_open(root_dir, "etc/passwd");
    struct nk_user user;
    bool found = false;
    char *line;

    while (l && !found && (line = lines_next(l))) {
        if (parse_user(line, &user))
            found = name ? strcmp(user.name, name) == 0 : user.creds.uid == uid;
    }
    lines_close(l);
    if (found)
        *out = user;
    return found;
}

static bool lists(const char *members, const char *name)
{
    size_t n = strlen(name);

    while (*members) {
        size_t len = strcspn(members, ",");

        if (len == n && memcmp(members, name, n) == 0)
            return true;
        members += len + (members[len] == ',');
    }
    return false;
}

static bool has_group(const struct nk_creds *c, gid_t gid)
{
    if (c->gid == gid)
        return true;
    for (size_t i = 0; i < c->group_count; i++) {
        if (c->groups[i] == gid)
            return true;
    }
    return false;
}

/* group:password:gid:member,member */
static void add_groups(const char *root_dir, const char *name, struct nk_creds *c)
{
    struct lines *l = lines_open(root_dir, "etc/group");
    char *line;

    while (l && c->group_count < GROUPS_MAX && (line = lines_next(l))) {
        char *field[FIELDS_MAX];
        uint32_t gid;

        if (split(line, field, 4) != 4 || !parse_id(field[2], &gid))
            continue;
        if (lists(field[3], name) && !has_group(c, gid))
            c->groups[c->group_count++] = gid;
    }
    lines_close(l);
}

static void make_nameless(uid_t uid, struct nk_user *out)
{
    *out = (struct nk_user){.creds = {.uid = uid, .gid = uid}, .home = "/", .shell = "/bin/sh"};
    (void)snprintf(out->name, sizeof out->name, "%u", (unsigned)uid);
}

/* "UID" or "UID:GID"; false: it is neither. */
static bool parse_ids(const char *spec, uid_t *out_uid, gid_t *out_gid, bool *out_with_gid)
{
    const char *colon = strchr(spec, ':');
    char uid[16];

    *out_with_gid = colon != NULL;
    if (!colon)
        return parse_id(spec, out_uid);
    if ((size_t)(colon - spec) >= sizeof uid)
        return false;
    (void)snprintf(uid, sizeof uid, "%.*s", (int)(colon - spec), spec);
    return parse_id(uid, out_uid) && parse_id(colon + 1, out_gid);
}

int nk_userdb_find(const char *root_dir, const char *spec, struct nk_user *out, struct nk_err *err)
{
    struct nk_user user;
    bool with_gid = false;
    uid_t uid;
    gid_t gid = 0;

    if (!parse_ids(spec, &uid, &gid, &with_gid)) {
        if (strchr(spec, ':') || !*spec)
            return nk_fail(err, NK_BAD_REQUEST, "a user is NAME, UID or UID:GID");
        if (!find_user(root_dir, spec, 0, &user))
            return nk_fail(err, NK_NOT_FOUND, "there is no such user");
    } else if (!find_user(root_dir, NULL, uid, &user)) {
        make_nameless(uid, &user);
    }
    /* A group that was asked for replaces all that the name would give. */
    if (with_gid)
        user.creds.gid = gid;
    else
        add_groups(root_dir, user.name, &user.creds);
    *out = user;
    return 0;
}
