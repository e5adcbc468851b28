#include "tenant/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/job.h"
#include "base/scope.h"
#include "files/walk.h"

#define CLOSED_DEPTH 1 /* of a shared folder: levels of closed folders that are entered */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A folder that is still not empty holds what is somebody else's: it stays, but not in that name. */
static void remove_entry(struct nk_sweep *s, const struct nk_walk_entry *e)
{
    struct stat st;

    if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !nk_uid_set_has(s->uids, st.st_uid))
        return;
    if (unlinkat(e->dir, e->name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0)
        s->removed++;
    else if (S_ISDIR(st.st_mode))
        (void)fchownat(e->dir, e->name, 0, 0, AT_SYMLINK_NOFOLLOW);
}

/* A user leaves things in its own folders and where everybody may. What lies in others' is looked at
 * a little further: one that is open to all may be in one that is not. */
static bool enters(const struct stat *st, size_t depth, void *ctx)
{
    const struct nk_sweep *s = ctx;

    return depth <= CLOSED_DEPTH || st->st_mode & S_IWOTH || nk_uid_set_has(s->uids, st->st_uid) ||
           nk_uid_set_has(s->uids, st->st_gid);
}

/* Folders where users can leave something. */
static int enter(const char *path)
{
    nk_auto_fd int fd = open(path, DIR_FLAGS);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_mode & S_IWOTH ? nk_take_fd(&fd) : -EACCES;
}

int nk_sweep_go(struct nk_sweep *s, uint64_t until_ns)
{
    const struct nk_walk_options options = {.tolerant = true, .enters = enters, .ctx = s};
    struct nk_walk_entry e;

    for (; s->folders[s->at]; s->at++) {
        int rc = 1;

        if (!s->walk) {
            int fd = enter(s->folders[s->at]);

            if (fd < 0 || nk_walk_new(fd, &options, &s->walk) < 0)
                continue;
        }
        while (rc != 0 && rc != -ENOMEM && rc != -EMFILE && rc != -ENFILE) {
            rc = nk_walk_next(s->walk, until_ns, &e);
            if (rc == -EAGAIN)
                return 1;
            if (rc > 0 && (e.leaving || !S_ISDIR(e.st.st_mode)))
                remove_entry(s, &e);
        }
        nk_sweep_fini(s);
    }
    return 0;
}

void nk_sweep_fini(struct nk_sweep *s)
{
    nk_walk_free(s->walk);
    s->walk = NULL;
}

/* A table of /proc/sysvipc: the words of its lines that tell the object and whose it is. */
struct table {
    const char *path;
    unsigned uid, cuid; /* which words, from 0 */
    int (*remove)(int id);
};

static int remove_shm(int id)
{
    return shmctl(id, IPC_RMID, NULL);
}

static int remove_sem(int id)
{
    return semctl(id, 0, IPC_RMID);
}

static int remove_msg(int id)
{
    return msgctl(id, IPC_RMID, NULL);
}

static const struct table tables[] = {
    {"/proc/sysvipc/shm", 7, 9, remove_shm},
    {"/proc/sysvipc/sem", 4, 6, remove_sem},
    {"/proc/sysvipc/msg", 7, 9, remove_msg},
};

static unsigned long word_of(const char *line, unsigned nth)
{
    char *end = NULL;
    unsigned long value = 0;

    for (unsigned i = 0; i <= nth; i++, line = end)
        value = strtoul(line, &end, 10);
    return value;
}

/* Only its owner or its maker may; root here has not the capability to. */
static unsigned remove_as(const struct table *t, int id, uid_t uid)
{
    const struct nk_creds as = {.uid = uid, .gid = uid};
    int rc;

    if (nk_job_become(&as) < 0)
        return 0;
    rc = t->remove(id);
    nk_job_restore();
    return rc == 0;
}

static unsigned sweep_table(const struct table *t, const struct nk_uid_set *uids)
{
    FILE *f = fopen(t->path, "re");
    char line[512];
    unsigned removed = 0;

    while (f && fgets(line, sizeof line, f)) {
        uid_t uid = (uid_t)word_of(line, t->uid);
        uid_t cuid = (uid_t)word_of(line, t->cuid);

        if (line[strspn(line, " ")] < '-' || line[strspn(line, " ")] > '9')
            continue; /* the heading */
        if (nk_uid_set_has(uids, uid))
            removed += remove_as(t, (int)word_of(line, 1), uid);
        else if (nk_uid_set_has(uids, cuid))
            removed += remove_as(t, (int)word_of(line, 1), cuid);
    }
    if (f)
        (void)fclose(f);
    return removed;
}

unsigned nk_sweep_ipc(const struct nk_uid_set *uids)
{
    unsigned removed = 0;

    for (size_t i = 0; i < NK_COUNT(tables); i++)
        removed += sweep_table(&tables[i], uids);
    return removed;
}
