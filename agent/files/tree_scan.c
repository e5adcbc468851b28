#include "files/tree_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/scope.h"
#include "files/place.h"

#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define LEVELS_MAX (NK_PLACE_PATH_MAX / 2)
#define NAMES_MAX (16u << 20) /* bytes of folders' names that wait */
#define LOOKS_A_CLOCK 64      /* files between two looks at the clock */

/* As the kernel gives it. */
struct entry {
    uint64_t ino;
    int64_t off;
    uint16_t len;
    uint8_t type;
    char name[];
};

struct level {
    int fd; /* owned; -1: opened again when it is needed */
    dev_t dev;
    uint64_t hash;
    size_t path_len; /* of its own path */
    size_t names;    /* where the names of its folders begin */
};

struct nk_tree_scan {
    struct level *levels; /* owned */
    size_t depth;
    size_t cap;
    struct nk_buf
        names; /* of folders that wait, each with its NUL; the innermost level's are last */
    char path[NK_PLACE_PATH_MAX + 1];
    bool reading; /* of the innermost level */
    unsigned looks;
    size_t at, len;
    _Alignas(8) uint8_t buf[32768];
};

uint64_t nk_tree_scan_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2));

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t hash_name(uint64_t hash, const char *name, size_t len)
{
    uint64_t word;

    for (; len >= sizeof word; name += sizeof word, len -= sizeof word) {
        memcpy(&word, name, sizeof word);
        hash = nk_tree_scan_mix(hash, word);
    }
    word = 0;
    memcpy(&word, name, len);
    return nk_tree_scan_mix(hash, word ^ ((uint64_t)(len + 1) << 56));
}

int nk_tree_scan_new(struct nk_tree_scan **out)
{
    struct nk_tree_scan *s = calloc(1, sizeof *s);

    if (!s)
        return -ENOMEM;
    s->names.max = NAMES_MAX;
    *out = s;
    return 0;
}

static void pop(struct nk_tree_scan *s)
{
    struct level *level = &s->levels[--s->depth];

    nk_close_fd(&level->fd);
    s->names.len = level->names;
    s->reading = false;
}

void nk_tree_scan_free(struct nk_tree_scan *s)
{
    if (!s)
        return;
    while (s->depth > 0)
        pop(s);
    nk_buf_fini(&s->names);
    free(s->levels);
    free(s);
}

static int reserve_level(struct nk_tree_scan *s)
{
    size_t cap = s->cap ? 2 * s->cap : 32;
    struct level *levels;

    if (s->depth < s->cap)
        return 0;
    if (cap > LEVELS_MAX)
        return -ENAMETOOLONG;
    levels = realloc(s->levels, cap * sizeof *levels);
    if (!levels)
        return -ENOMEM;
    s->levels = levels;
    s->cap = cap;
    return 0;
}

/* Trees that are no files of anybody: endless, or slow to be looked at. */
static bool is_of_kernel(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return true;
    switch ((unsigned long)fs.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
        return true;
    default:
        return false;
    }
}

/* `fd` is taken, also where it is not entered. */
static void push(struct nk_tree_scan *s, int fd, size_t path_len, uint64_t hash)
{
    nk_auto_fd int dir = fd;
    struct stat st;

    if (fstat(dir, &st) < 0 || reserve_level(s) < 0)
        return;
    if ((s->depth == 0 || s->levels[s->depth - 1].dev != st.st_dev) && is_of_kernel(dir))
        return;
    if (s->depth > NK_TREE_SCAN_HELD)
        nk_close_fd(&s->levels[s->depth - 1].fd);
    s->levels[s->depth++] = (struct level){.fd = nk_take_fd(&dir),
                                           .dev = st.st_dev,
                                           .hash = hash,
                                           .path_len = path_len,
                                           .names = s->names.len};
    s->reading = true;
    s->at = s->len = 0;
}

void nk_tree_scan_begin(struct nk_tree_scan *s, int dir, uint64_t seed)
{
    while (s->depth > 0)
        pop(s);
    s->names.failed = false;
    push(s, dir, 0, seed);
}

static bool is_own(const char *name)
{
    static const char own[] = ".nook-";

    return strncmp(name, own, sizeof own - 1) == 0;
}

/* A prefix and a number behind it. */
static bool is_numbered(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(name, prefix, len) == 0 && name[len + strspn(name + len, "0123456789")] == '\0';
}

static bool lies_in(const struct nk_tree_scan *s, const char *folder)
{
    size_t len = s->levels[s->depth - 1].path_len;
    size_t want = strlen(folder);

    return len >= want && memcmp(s->path + len - want, folder, want) == 0 &&
           (len == want || s->path[len - want - 1] == '/');
}

/* Folders that programs fill by themselves. */
static bool is_cache(const struct nk_tree_scan *s, const char *name)
{
    static const char *const names[] = {
        "__pycache__", ".cache",      ".npm",      ".mypy_cache",        ".pytest_cache",
        ".ruff_cache", ".matplotlib", ".node-gyp", "node-compile-cache",
    };

    for (size_t i = 0; i < NK_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    if (strcmp(name, "telemetry") == 0)
        return lies_in(s, ".config/go");
    return is_numbered(name, "go-build") || is_numbered(name, "tsx-") || is_own(name);
}

static void keep_folder(struct nk_tree_scan *s, const char *name, size_t len)
{
    if (!is_cache(s, name))
        nk_buf_add(&s->names, name, len + 1);
    s->names.failed = false; /* one folder too many is left out */
}

/* Appends a name to the path of a level. False: it would be too long. */
static bool set_path(struct nk_tree_scan *s, const struct level *level, const char *name,
                     size_t len, size_t *out_len)
{
    size_t at = level->path_len;

    if (at + len + 2 > sizeof s->path)
        return false;
    if (at > 0)
        s->path[at++] = '/';
    memcpy(s->path + at, name, len + 1);
    *out_len = at + len;
    return true;
}

static bool look_at(struct nk_tree_scan *s, const struct entry *e, struct nk_tree_scan_file *out)
{
    const struct level *level = &s->levels[s->depth - 1];
    size_t len = strlen(e->name);

    if (is_own(e->name) || !set_path(s, level, e->name, len, &out->path_len))
        return false;
    if (fstatat(level->fd, e->name, &out->st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISDIR(out->st.st_mode))
        keep_folder(s, e->name, len);
    if (!S_ISREG(out->st.st_mode))
        return false;
    out->path = s->path;
    out->hash = hash_name(level->hash, e->name, len);
    return true;
}

/* Whether it is a file; a folder is kept for later. */
static bool take(struct nk_tree_scan *s, const struct entry *e, struct nk_tree_scan_file *out)
{
    bool dots = e->name[0] == '.' && (e->name[1] == '\0' || (e->name[1] == '.' && !e->name[2]));

    if (dots || (e->type != DT_REG && e->type != DT_DIR && e->type != DT_UNKNOWN))
        return false;
    if (e->type != DT_DIR)
        return look_at(s, e, out);
    keep_folder(s, e->name, strlen(e->name));
    return false;
}

static bool refill(struct nk_tree_scan *s)
{
    long n = syscall(SYS_getdents64, s->levels[s->depth - 1].fd, s->buf, sizeof s->buf);

    s->at = 0;
    s->len = n > 0 ? (size_t)n : 0;
    return s->len > 0;
}

/* A level deep down gave its descriptor back: from the last that is held, by names. */
static int descriptor(struct nk_tree_scan *s, size_t index)
{
    struct level *level = &s->levels[index];
    const struct level *held = level;

    if (level->fd >= 0)
        return level->fd;
    while (held->fd < 0)
        held--;
    level->fd = nk_place_enter(held->fd, s->path + held->path_len + (held->path_len > 0),
                               level->path_len - held->path_len - (held->path_len > 0));
    return level->fd;
}

/* Into the last folder that waits; without one, back up. */
static void move_on(struct nk_tree_scan *s)
{
    struct level *level = &s->levels[s->depth - 1];
    const char *name;
    size_t start, len, path_len;
    int fd;

    if (s->names.len == level->names || descriptor(s, s->depth - 1) < 0) {
        pop(s);
        return;
    }
    start = s->names.len - 1;
    while (start > level->names && s->names.data[start - 1] != '\0')
        start--;
    name = (const char *)s->names.data + start;
    len = s->names.len - 1 - start;
    s->names.len = start; /* the bytes stay where they are until the next is added */
    if (!set_path(s, level, name, len, &path_len))
        return;
    fd = openat(level->fd, name, OPEN_FLAGS);
    if (fd >= 0)
        push(s, fd, path_len, hash_name(level->hash, name, len));
}

int nk_tree_scan_next(struct nk_tree_scan *s, uint64_t until_ns, struct nk_tree_scan_file *out)
{
    while (s->depth > 0) {
        const struct entry *e = (const struct entry *)(const void *)(s->buf + s->at);

        if (s->looks++ % LOOKS_A_CLOCK == 0 && nk_clock_mono_ns() >= until_ns)
            return -EAGAIN;
        if (!s->reading) {
            move_on(s);
            continue;
        }
        if (s->at == s->len) {
            s->reading = refill(s);
            continue;
        }
        s->at += e->len;
        if (take(s, e, out))
            return 1;
    }
    return 0;
}
