#include "files/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd_io.h"
#include "base/patience.h"
#include "base/scope.h"
#include "files/path.h"
#include "files/temp.h"

#define TRIES 5
#define PIECE_MAX (64u * 1024u)  /* of one nk_upload_write */
#define LATE_MIN (1024u * 1024u) /* smaller ones are let go at once */

struct chunk {
    uint8_t *data; /* owned; NULL: not needed yet */
    size_t len;
};

struct nk_upload {
    struct nk_job job;
    struct nk_upload_config cfg;
    char *path;           /* owned; cfg.path is it */
    struct chunk filling; /* the loop's */
    bool running;         /* a job has the parts below */
    bool full;            /* the owner waits for on_room */
    bool ended;
    bool broken; /* bytes could not be kept: no memory */
    bool over;   /* nothing is left to do but to be dropped */
    bool dropped;
    /* the job's while it runs */
    struct chunk writing;
    bool finish; /* commit after writing */
    bool undo;   /* remove what was begun */
    bool opened;
    bool named; /* it lies at `temp` */
    bool created;
    bool replaces; /* a file of `old_size` */
    uint64_t old_size;
    dev_t dev; /* of the temporary file */
    ino_t ino;
    int socket; /* owned: a copy, because the connection may end first; -1: nothing is to be read */
    uint64_t to_read;
    uint64_t was_read;
    struct nk_patience patience;
    int fd;  /* owned */
    int old; /* owned: keeps the replaced file until the answer is on its way */
    char temp[NK_TEMP_MAX];
    struct nk_place place;
    struct nk_entry entry;
    struct nk_owners owners;
    struct nk_err err;
    int result;
};

static int fail(struct nk_upload *u, int sys)
{
    return nk_place_fail(&u->place, sys, &u->err);
}

/* What is there already must be a regular file. 1: there is one, 0: nothing, -1 with err. */
static int look(struct nk_upload *u, struct stat *st)
{
    u->replaces = false;
    if (fstatat(u->place.dir, u->place.name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail(u, errno);
    if (S_ISDIR(st->st_mode))
        return nk_fail(&u->err, NK_BAD_PATH, "%s: is a directory", u->place.path);
    if (!S_ISREG(st->st_mode))
        return nk_fail(&u->err, NK_BAD_PATH, "%s: is there and no regular file", u->place.path);
    u->replaces = true;
    u->old_size = (uint64_t)st->st_size;
    return 1;
}

static int check_space(struct nk_upload *u)
{
    struct statvfs fs;

    if (u->cfg.size <= 0 || fstatvfs(u->fd, &fs) < 0)
        return 0;
    if ((uint64_t)u->cfg.size / fs.f_frsize > fs.f_bavail)
        return nk_fail(&u->err, NK_NO_SPACE, "%s: %lld bytes do not fit on the disk", u->place.path,
                       (long long)u->cfg.size);
    return 0;
}

static int resolve(struct nk_upload *u)
{
    nk_place_fini(&u->place);
    if (nk_path_resolve(u->cfg.roots, u->path, u->cfg.path_len,
                        NK_PATH_WRITE | NK_PATH_NO_LINK | NK_PATH_PARENTS, &u->place, &u->err) < 0)
        return -1;
    if (u->place.slash && !u->place.is_root)
        return nk_fail(&u->err, NK_BAD_PATH, "%s/: is a directory's name", u->place.path);
    return 0;
}

/* A folder that was just made for this may be removed by another upload that failed. */
static int try_open(struct nk_upload *u)
{
    struct stat st;

    if (resolve(u) < 0 || look(u, &st) < 0)
        return -1;
    u->fd = nk_temp_nameless(u->place.dir);
    u->named = u->fd == -EOPNOTSUPP;
    if (u->named)
        u->fd = nk_temp_create(u->place.dir, u->temp);
    return u->fd < 0 ? fail(u, -u->fd) : 0;
}

static int open_temp(struct nk_upload *u)
{
    struct stat st;
    int rc = try_open(u);

    for (int i = 1; rc < 0 && u->err.sys == ENOENT && i < TRIES; i++)
        rc = try_open(u);
    if (rc < 0)
        return -1;
    u->opened = true;
    if (fstat(u->fd, &st) < 0)
        return fail(u, errno);
    u->dev = st.st_dev;
    u->ino = st.st_ino;
    return check_space(u);
}

static int write_all(struct nk_upload *u)
{
    int rc = nk_fd_io_write(u->fd, u->writing.data, u->writing.len);

    u->writing.len = 0;
    return rc < 0 ? fail(u, -rc) : 0;
}

/* What ends it early, an end of the client too, the owner finds by reading itself. */
static ssize_t read_piece(struct nk_upload *u)
{
    uint64_t left = u->to_read - u->was_read;
    size_t len = left < NK_UPLOAD_BUFFER ? (size_t)left : NK_UPLOAD_BUFFER;

    return nk_patience_read(&u->patience, u->socket, u->writing.data, len);
}

static int read_on(struct nk_upload *u)
{
    ssize_t n;

    while (u->was_read < u->to_read && (n = read_piece(u)) > 0) {
        u->was_read += (uint64_t)n;
        u->writing.len = (size_t)n;
        if (write_all(u) < 0)
            return -1;
    }
    return 0;
}

/* Letting go of a large file waits for what of it is on its way to the disk. The answer does not, where
 * another one of its size would fit meanwhile. */
static void keep_old(struct nk_upload *u, const struct stat *st)
{
    struct statvfs fs;

    nk_close_fd(&u->old);
    if (st->st_size < (off_t)LATE_MIN || fstatvfs(u->fd, &fs) < 0 ||
        (uint64_t)st->st_size / fs.f_frsize >= fs.f_bavail)
        return;
    u->old = openat(u->place.dir, u->place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int settle_new(struct nk_upload *u)
{
    bool old = false;

    if (!u->named)
        return nk_temp_give_name(u->fd, u->place.dir, u->place.name);
    return nk_temp_settle(u->place.dir, u->temp, u->place.name, false, &old);
}

static int replace(struct nk_upload *u)
{
    int rc = u->named ? 0 : nk_temp_give_name(u->fd, u->place.dir, u->temp);

    if (rc < 0)
        return rc;
    u->named = true;
    return renameat(u->place.dir, u->temp, u->place.dir, u->place.name) < 0 ? -errno : 0;
}

/* Closing tells on some file systems that it could not be written; the lock stays with the original. */
static int finish_bytes(struct nk_upload *u, mode_t mode)
{
    int copy = fcntl(u->fd, F_DUPFD_CLOEXEC, 0);

    if (copy < 0 || close(copy) < 0 || fchmod(u->fd, mode) < 0)
        return fail(u, errno);
    return 0;
}

/* 0, -1 with err, or -ENOENT: the folder is gone, which a file without a name does not hold. */
static int try_commit(struct nk_upload *u)
{
    struct stat st;
    int there = look(u, &st);
    mode_t mode = u->cfg.mode;
    int rc = -EEXIST;

    if (there < 0)
        return -1;
    if (u->cfg.mode == NK_UPLOAD_KEEP_MODE)
        mode = there ? st.st_mode & 0777 : 0644;
    if (finish_bytes(u, mode) < 0)
        return -1;
    if (there)
        keep_old(u, &st);
    else
        rc = settle_new(u);
    /* When another one was faster, the last one counts. */
    if (rc == -EEXIST)
        rc = replace(u);
    if (rc == -ENOENT && !u->named)
        return rc;
    u->created = !there;
    return rc < 0 ? fail(u, -rc) : 0;
}

static int commit(struct nk_upload *u)
{
    int rc = try_commit(u);

    for (int i = 1; rc == -ENOENT && i < TRIES; i++)
        rc = resolve(u) < 0 ? -1 : try_commit(u);
    if (rc < 0)
        return rc == -ENOENT ? fail(u, ENOENT) : -1;
    u->opened = false;
    nk_close_fd(&u->fd);
    return nk_entry_at(&u->entry, &u->place, &u->owners, &u->err);
}

static void take_back(struct nk_upload *u)
{
    nk_close_fd(&u->fd);
    nk_close_fd(&u->old);
    if (u->named && u->opened)
        (void)unlinkat(u->place.dir, u->temp, 0);
    u->named = false;
    u->opened = false;
    nk_path_unmake(u->cfg.roots, &u->place);
}

static int do_work(struct nk_upload *u)
{
    if (!u->opened && open_temp(u) < 0)
        return -1;
    if (write_all(u) < 0 || (u->socket >= 0 && read_on(u) < 0))
        return -1;
    return u->finish ? commit(u) : 0;
}

static void on_work(struct nk_job *job)
{
    struct nk_upload *u = NK_CONTAINER_OF(job, struct nk_upload, job);

    u->result = u->undo ? -1 : do_work(u);
    if (u->result < 0)
        take_back(u);
}

static void let_old_go(struct nk_job *job)
{
    nk_close_fd(&NK_CONTAINER_OF(job, struct nk_upload, job)->old);
}

static void release(struct nk_upload *u)
{
    nk_close_fd(&u->fd);
    nk_close_fd(&u->old);
    nk_close_fd(&u->socket);
    nk_place_fini(&u->place);
    free(u->filling.data);
    free(u->writing.data);
    free(u->path);
    free(u);
}

static void submit(struct nk_upload *u)
{
    struct chunk empty = u->writing;

    u->writing = u->filling;
    u->filling = empty;
    u->filling.len = 0;
    u->finish = u->ended;
    u->running = true;
    nk_job_submit(u->cfg.jobs, &u->job);
}

static void tell_over(struct nk_upload *u, const struct nk_err *err)
{
    u->over = true;
    u->cfg.events->on_over(u->cfg.ctx, err ? NULL : &u->entry, u->created, err);
}

static void tell_done(struct nk_upload *u)
{
    bool late = u->old >= 0;

    u->running = late; /* also while it is told: it may be dropped then */
    tell_over(u, NULL);
    if (!late)
        return;
    u->job.work = let_old_go;
    u->job.as = NULL;
    nk_job_submit(u->cfg.jobs, &u->job);
}

static void undo(struct nk_upload *u)
{
    u->undo = true;
    u->running = true;
    nk_job_submit(u->cfg.jobs, &u->job);
}

static void undo_or_release(struct nk_upload *u)
{
    if (u->opened)
        undo(u);
    else
        release(u);
}

static void go_on(struct nk_upload *u)
{
    if (u->filling.len >= NK_UPLOAD_BUFFER || u->ended)
        submit(u);
    if (u->full && u->filling.len < NK_UPLOAD_BUFFER) {
        u->full = false;
        u->cfg.events->on_room(u->cfg.ctx);
    }
}

static void tell_read(struct nk_upload *u)
{
    if (u->socket < 0)
        return;
    nk_close_fd(&u->socket);
    if (!u->dropped)
        u->cfg.events->on_read(u->cfg.ctx, u->was_read);
}

static void on_done(struct nk_job *job, bool canceled)
{
    struct nk_upload *u = NK_CONTAINER_OF(job, struct nk_upload, job);

    u->running = false;
    tell_read(u);
    if (u->dropped) {
        undo_or_release(u);
        return;
    }
    if (u->over)
        return;
    if (u->broken && !u->undo) {
        undo(u);
        return;
    }
    if (job->switch_errno)
        u->result = nk_fail_sys(&u->err, job->switch_errno, "cannot act as the sandbox's user");
    else if (canceled)
        u->result = nk_fail(&u->err, NK_SHUTTING_DOWN, "the agent is ending");
    else if (u->broken)
        u->result = nk_fail(&u->err, NK_OVERLOADED, "no memory for this upload");
    if (u->result < 0)
        tell_over(u, &u->err);
    else if (u->finish)
        tell_done(u);
    else
        go_on(u);
}

int nk_upload_new(const struct nk_upload_config *cfg, struct nk_upload **out, struct nk_err *err)
{
    struct nk_upload *u = calloc(1, sizeof *u);

    if (u)
        u->path = malloc(cfg->path_len + 1);
    if (!u || !u->path) {
        free(u);
        return nk_fail(err, NK_OVERLOADED, "no memory for this upload");
    }
    u->cfg = *cfg;
    memcpy(u->path, cfg->path, cfg->path_len);
    u->path[cfg->path_len] = '\0';
    u->cfg.path = u->path;
    u->fd = u->old = u->socket = -1;
    nk_temp_name(u->temp);
    u->job.work = on_work;
    u->job.done = on_done;
    u->job.as = cfg->as;
    u->job.share = cfg->share;
    u->full = true;
    submit(u);
    *out = u;
    return 0;
}

static bool make_room(struct chunk *c)
{
    if (!c->data)
        c->data = malloc(NK_UPLOAD_BUFFER + PIECE_MAX);
    return c->data != NULL;
}

bool nk_upload_write(struct nk_upload *u, const void *data, size_t len)
{
    if (u->over || u->broken)
        return true; /* what comes after a failure is not wanted */
    u->broken = !make_room(&u->filling) || u->filling.len + len > NK_UPLOAD_BUFFER + PIECE_MAX;
    if (u->broken) {
        if (!u->running)
            undo(u);
        return true;
    }
    memcpy(u->filling.data + u->filling.len, data, len);
    u->filling.len += len;
    if (!u->running && u->filling.len >= NK_UPLOAD_BUFFER)
        submit(u);
    u->full = u->filling.len >= NK_UPLOAD_BUFFER;
    return !u->full;
}

bool nk_upload_read(struct nk_upload *u, int socket, uint64_t max)
{
    if (u->running || u->over || u->broken || u->ended || !make_room(&u->writing))
        return false;
    u->socket = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (u->socket < 0 || !make_room(&u->filling)) {
        nk_close_fd(&u->socket);
        return false;
    }
    u->patience = nk_patience_of(u->cfg.jobs);
    u->to_read = max < u->patience.bytes ? max : u->patience.bytes;
    u->was_read = 0;
    submit(u);
    return true;
}

bool nk_upload_replaces(const struct nk_upload *u, uint64_t *out_size)
{
    if (u->replaces)
        *out_size = u->old_size;
    return u->replaces;
}

void nk_upload_file(const struct nk_upload *u, dev_t *out_dev, ino_t *out_ino)
{
    *out_dev = u->dev;
    *out_ino = u->ino;
}

unsigned nk_upload_made(const struct nk_upload *u)
{
    return u->place.made;
}

void nk_upload_end(struct nk_upload *u)
{
    u->ended = true;
    if (!u->running && !u->over && !u->broken)
        submit(u);
}

void nk_upload_drop(struct nk_upload **slot)
{
    struct nk_upload *u = *slot;

    if (!u)
        return;
    *slot = NULL;
    u->dropped = true;
    if (!u->running)
        undo_or_release(u);
}
