#include "files/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/scope.h"
#include "files/tree_scan.h"

#define SLOTS_MIN 1024u
#define SLOTS_MAX (2 * NK_SNAPSHOT_FILES_MAX)
#define WAIT_NS (2 * 1000000L)

struct nk_snapshot {
    const struct nk_roots *roots; /* borrowed: outlives the snapshot */
    char *more;                   /* owned; NULL: no further folder */
    uid_t uid;
    uint64_t seed;
    struct nk_tree_scan *scan; /* owned */
    unsigned root;             /* the one that is looked at; count of roots: `more` */
    bool begun;
    bool second; /* the look after has begun */
    size_t files;

    uint64_t *slots; /* owned: what is known, an open hash table; 0: empty */
    size_t slot_count;
    size_t known;
    bool full;              /* there were more: the rest is told by `since` */
    struct timespec newest; /* ctime of what was met, none in the future */
    struct timespec since;  /* the clock of ctimes when the first look ended */

    struct nk_buf text;        /* paths of changes */
    struct nk_change *changes; /* owned */
    size_t *starts;            /* owned: of their paths in `text`, while it grows */
    size_t count;
    size_t cap;
    size_t aside; /* of them: in `more`, in the room that is kept for it */
    size_t aside_text;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static struct timespec kernel_time(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now;
}

int nk_snapshot_new(const struct nk_roots *roots, const char *more, uid_t uid,
                    struct nk_snapshot **out)
{
    struct nk_snapshot *s = calloc(1, sizeof *s);

    if (!s)
        return -ENOMEM;
    s->roots = roots;
    s->uid = uid;
    s->more = more ? strdup(more) : NULL;
    s->text.max = NK_SNAPSHOT_TEXT_MAX + NK_SNAPSHOT_MORE_TEXT_MAX;
    (void)getrandom(&s->seed, sizeof s->seed, GRND_NONBLOCK);
    if ((more && !s->more) || nk_tree_scan_new(&s->scan) < 0) {
        nk_snapshot_free(s);
        return -ENOMEM;
    }
    *out = s;
    return 0;
}

void nk_snapshot_free(struct nk_snapshot *s)
{
    if (!s)
        return;
    nk_tree_scan_free(s->scan);
    nk_buf_fini(&s->text);
    free(s->slots);
    free(s->changes);
    free(s->starts);
    free(s->more);
    free(s);
}

static bool is_inside(const char *path, size_t len, const struct nk_root *root)
{
    return len > root->len && strncmp(path, root->path, root->len) == 0 && path[root->len] == '/';
}

static bool is_same(const struct nk_root *a, const struct nk_root *b)
{
    return a->len == b->len && strcmp(a->path, b->path) == 0;
}

/* Not one that lies in another: it is looked at once. */
static bool is_wanted(const struct nk_snapshot *s, unsigned index)
{
    const struct nk_root *root = index < s->roots->count ? &s->roots->item[index] : NULL;
    const char *path = root ? root->path : s->more;
    size_t len = path ? strlen(path) : 0;

    if (!path || (root && !root->writable))
        return false;
    for (unsigned i = 0; i < s->roots->count; i++) {
        const struct nk_root *other = &s->roots->item[i];

        if (!other->writable || i == index)
            continue;
        if (is_inside(path, len, other) || (root && i < index && is_same(root, other)))
            return false;
        if (!root && strcmp(path, other->path) == 0)
            return false;
    }
    return true;
}

int nk_snapshot_enter(const struct nk_snapshot *s, unsigned root)
{
    int fd;

    if (root < s->roots->count)
        return nk_roots_enter(&s->roots->item[root]);
    fd = open(s->more, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static void begin_root(struct nk_snapshot *s)
{
    nk_auto_fd int top = -1;
    int fd;

    s->begun = true;
    top = is_wanted(s, s->root) ? nk_snapshot_enter(s, s->root) : -1;
    fd = top < 0 ? -1 : openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        nk_tree_scan_begin(s->scan, fd, nk_tree_scan_mix(s->seed, s->root));
}

/* Any change makes another number of it. */
static uint64_t state_of(const struct nk_tree_scan_file *f)
{
    const struct stat *st = &f->st;
    uint64_t h = nk_tree_scan_mix(f->hash, (uint64_t)st->st_ctim.tv_sec);

    h = nk_tree_scan_mix(h, (uint64_t)st->st_ctim.tv_nsec << 32 ^ (uint64_t)st->st_mtim.tv_nsec);
    h = nk_tree_scan_mix(h, (uint64_t)st->st_mtim.tv_sec);
    h = nk_tree_scan_mix(h, (uint64_t)st->st_size);
    h = nk_tree_scan_mix(h, (uint64_t)st->st_ino);
    h = nk_tree_scan_mix(h, (uint64_t)st->st_dev);
    return h ? h : 1;
}

static size_t slot_of(const uint64_t *slots, size_t count, uint64_t state)
{
    size_t i = (size_t)state & (count - 1);

    while (slots[i] != 0 && slots[i] != state)
        i = (i + 1) & (count - 1);
    return i;
}

static bool grow(struct nk_snapshot *s)
{
    size_t count = s->slot_count ? 2 * s->slot_count : SLOTS_MIN;
    uint64_t *slots = count <= SLOTS_MAX ? calloc(count, sizeof *slots) : NULL;

    if (!slots)
        return false;
    for (size_t i = 0; i < s->slot_count; i++) {
        if (s->slots[i])
            slots[slot_of(slots, count, s->slots[i])] = s->slots[i];
    }
    free(s->slots);
    s->slots = slots;
    s->slot_count = count;
    return true;
}

static void learn(struct nk_snapshot *s, const struct nk_tree_scan_file *f)
{
    uint64_t state = state_of(f);
    size_t i;

    if (s->known + 1 > s->slot_count - s->slot_count / 4 && !s->full && !grow(s))
        s->full = true;
    if (is_later(&f->st.st_ctim, &s->newest)) {
        struct timespec now = kernel_time();

        if (!is_later(&f->st.st_ctim, &now)) /* one in the future would hide the others */
            s->newest = f->st.st_ctim;
    }
    if (s->full)
        return;
    i = slot_of(s->slots, s->slot_count, state);
    s->known += s->slots[i] == 0;
    s->slots[i] = state;
}

static bool is_known(const struct nk_snapshot *s, const struct nk_tree_scan_file *f)
{
    uint64_t state = state_of(f);

    if (s->slot_count > 0 && s->slots[slot_of(s->slots, s->slot_count, state)] == state)
        return true;
    return s->full && !is_later(&f->st.st_ctim, &s->since);
}

static bool reserve_change(struct nk_snapshot *s)
{
    size_t cap = s->cap ? 2 * s->cap : 16;
    struct nk_change *changes;
    size_t *starts;

    if (s->count < s->cap)
        return true;
    changes = realloc(s->changes, cap * sizeof *changes);
    if (changes)
        s->changes = changes;
    starts = changes ? realloc(s->starts, cap * sizeof *starts) : NULL;
    if (!starts)
        return false;
    s->starts = starts;
    s->cap = cap;
    return true;
}

static const char *root_path(const struct nk_snapshot *s, unsigned root)
{
    return root < s->roots->count ? s->roots->item[root].path : s->more;
}

static bool lies_in_more(const struct nk_snapshot *s, const char *path)
{
    size_t len = s->more ? strlen(s->more) : 0;

    return len > 0 && strncmp(path, s->more, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Room of its own for `more`, of which the contents are wanted too. False: there is none left. */
static bool take_room(struct nk_snapshot *s, size_t start)
{
    bool more = lies_in_more(s, (const char *)s->text.data + start);
    size_t len = s->text.len - start;

    if (more && s->aside < NK_SNAPSHOT_MORE_MAX &&
        s->aside_text + len <= NK_SNAPSHOT_MORE_TEXT_MAX) {
        s->aside++;
        s->aside_text += len;
        return true;
    }
    return s->count - s->aside < NK_SNAPSHOT_CHANGES_MAX &&
           s->text.len - s->aside_text <= NK_SNAPSHOT_TEXT_MAX;
}

static void note(struct nk_snapshot *s, const struct nk_tree_scan_file *f)
{
    size_t start = s->text.len;

    if (is_known(s, f) || !reserve_change(s))
        return;
    nk_buf_add_str(&s->text, root_path(s, s->root));
    nk_buf_add_char(&s->text, '/');
    nk_buf_add(&s->text, f->path, f->path_len + 1);
    if (s->text.failed || !take_room(s, start)) { /* what fits is told */
        s->text.failed = false;
        s->text.len = start;
        return;
    }
    s->starts[s->count] = start;
    s->changes[s->count++] = (struct nk_change){.size = (uint64_t)f->st.st_size, .root = s->root};
}

/* One pass over all roots. 1: later more. */
static int look(struct nk_snapshot *s, uint64_t until_ns,
                void (*each)(struct nk_snapshot *s, const struct nk_tree_scan_file *f))
{
    struct nk_tree_scan_file f;

    for (; s->root <= s->roots->count; s->root++, s->begun = false) {
        int rc;

        if (!s->begun)
            begin_root(s);
        while ((rc = nk_tree_scan_next(s->scan, until_ns, &f)) == 1) {
            if (f.st.st_uid != s->uid)
                continue;
            s->files++;
            each(s, &f);
        }
        if (rc == -EAGAIN)
            return 1;
    }
    return 0;
}

/* A file system may count whole seconds only. */
static bool has_moved_on(const struct timespec *now, const struct timespec *newest)
{
    if (newest->tv_nsec == 0)
        return now->tv_sec != newest->tv_sec;
    return now->tv_sec != newest->tv_sec || now->tv_nsec != newest->tv_nsec;
}

int nk_snapshot_before(struct nk_snapshot *s, uint64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = WAIT_NS};

    if (look(s, until_ns, learn) > 0)
        return 1;
    s->since = kernel_time();
    if (has_moved_on(&s->since, &s->newest))
        return 0;
    (void)nanosleep(&pause, NULL);
    return 1;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct nk_change *)a)->path, ((const struct nk_change *)b)->path);
}

static void finish(struct nk_snapshot *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct nk_change *c = &s->changes[i];

        c->path = (const char *)s->text.data + s->starts[i];
        c->rest = c->path + strlen(root_path(s, c->root)) + 1;
    }
    if (s->count > 0)
        qsort(s->changes, s->count, sizeof *s->changes, by_path);
}

int nk_snapshot_after(struct nk_snapshot *s, uint64_t until_ns)
{
    if (!s->second) {
        s->second = true;
        s->root = 0;
        s->begun = false;
        s->files = 0;
    }
    if (look(s, until_ns, note) > 0)
        return 1;
    finish(s);
    return 0;
}

size_t nk_snapshot_changes(const struct nk_snapshot *s, const struct nk_change **out)
{
    *out = s->changes;
    return s->count;
}

size_t nk_snapshot_files(const struct nk_snapshot *s)
{
    return s->files;
}

size_t nk_snapshot_settle(struct nk_snapshot *s)
{
    nk_tree_scan_free(s->scan);
    free(s->slots);
    free(s->starts);
    s->scan = NULL;
    s->slots = NULL;
    s->starts = NULL;
    s->slot_count = 0;
    return sizeof *s + s->text.cap + s->cap * sizeof *s->changes;
}
