/* From the sandbox to here. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_io.h"
#include "base/scope.h"
#include "cli/ask.h"
#include "cli/copy.h"
#include "cli/out.h"
#include "files/tar_extract.h"
#include "files/tar_place.h"
#include "files/tar_worker.h"

struct down {
    struct nk_copy *copy;
    struct nk_client *client; /* owned */
    struct nk_buf piece;      /* owned */
    bool end;
};

static ssize_t read_piece(void *ctx, const void **out, struct nk_err *err)
{
    struct down *d = ctx;

    nk_buf_consume(&d->piece, nk_buf_left(&d->piece));
    while (!d->end && nk_buf_left(&d->piece) == 0) {
        if (nk_client_read_body(d->client, &d->piece, &d->end, err) < 0)
            return -1;
    }
    nk_progress_add(&d->copy->progress, nk_buf_left(&d->piece));
    *out = nk_buf_front(&d->piece);
    return (ssize_t)nk_buf_left(&d->piece);
}

static void finish(struct down *d)
{
    nk_progress_end(&d->copy->progress);
    nk_buf_fini(&d->piece);
    nk_client_free(d->client);
}

static int begin(struct down *d, const char *route, const char *more)
{
    const struct nk_copy_call call = {"GET", route, d->copy->remote, more, false};
    struct nk_err err;

    if (nk_copy_open(d->copy, &call, &d->client, &err) < 0)
        return nk_out_fail(&err);
    if (nk_copy_answer(d->client, &err) == 0)
        return 0;
    finish(d);
    return nk_out_fail(&err);
}

/* The rest of the body to a descriptor. 0, or the exit status. */
static int drain(struct down *d, int fd, const char *name)
{
    const void *data;
    struct nk_err err;

    for (;;) {
        ssize_t n = read_piece(d, &data, &err);
        int rc;

        if (n < 0)
            return nk_out_fail(&err);
        if (n == 0)
            return 0;
        rc = nk_fd_io_write(fd, data, (size_t)n);
        if (rc == -EPIPE && fd == STDOUT_FILENO)
            return NK_OUT_PIPE;
        if (rc < 0)
            return nk_out_fail_msg("cannot write %s: %s", name, strerror(-rc));
    }
}

static int to_stdout(struct nk_copy *c, const char *route, const char *more)
{
    struct down d = {.copy = c};
    int status = begin(&d, route, more);

    if (status != 0)
        return status;
    status = drain(&d, STDOUT_FILENO, "standard output");
    finish(&d);
    return status;
}

/* A file that is there is replaced when the new one is whole. */
static int to_place(struct down *d, struct nk_tar_place *place, bool nameless, mode_t mode)
{
    nk_auto_fd int fd = nk_tar_place_open(place, nameless, mode);
    int status, rc;

    if (fd < 0)
        return nk_out_fail_msg("cannot make %s: %s", place->name, strerror(-fd));
    status = drain(d, fd, place->name);
    rc = status == 0 && fchmod(fd, mode) < 0 ? -errno : 0;
    if (status == 0 && rc == 0)
        rc = nk_tar_place_commit(place, fd);
    else
        nk_tar_place_drop(place);
    return rc < 0 ? nk_out_fail_msg("cannot make %s: %s", place->name, strerror(-rc)) : status;
}

static int split(const char *path, char *out_dir, char *out_name)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 1;

    nk_copy_name(path, out_name);
    if (*out_name == '\0' || len >= PATH_MAX)
        return -1;
    memcpy(out_dir, slash ? path : ".", len);
    out_dir[len] = '\0';
    if (slash == path)
        memcpy(out_dir, "/", 2);
    return 0;
}

static int to_file(struct nk_copy *c, const char *path, unsigned mode)
{
    char dir[PATH_MAX], name[256];
    nk_auto_fd int parent = -1;
    struct nk_tar_place place = {.name = name};
    struct down d = {.copy = c};
    int status;

    if (split(path, dir, name) < 0)
        return nk_out_fail_msg("%s is no name for a file", path);
    parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return nk_out_fail_msg("cannot open the folder of %s: %s", path, strerror(errno));
    place.dir = parent;
    status = begin(&d, "/v1/files?path=", "");
    if (status == 0) {
        status = to_place(&d, &place, nk_tar_place_probe(parent), (mode_t)mode);
        finish(&d);
    }
    return status;
}

/* A terminal, a pipe, /dev/null: written to and not replaced. */
static int to_special(struct nk_copy *c, const char *path)
{
    nk_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    struct down d = {.copy = c};
    int status;

    if (fd < 0)
        return nk_out_fail_msg("cannot open %s: %s", path, strerror(errno));
    status = begin(&d, "/v1/files?path=", "");
    if (status != 0)
        return status;
    status = drain(&d, fd, path);
    finish(&d);
    return status;
}

static int tell_refused(const struct nk_tar_result *r)
{
    struct nk_buf line = {0};

    if (r->refused_count == 0)
        return 0;
    for (size_t i = 0; i < r->shown; i++) {
        nk_buf_add_str(&line, "nookd: not copied: ");
        nk_out_plain(&line, r->refused[i].path);
        nk_buf_add_fmt(&line, ": %s\n", r->refused[i].reason);
    }
    if (!line.failed)
        (void)nk_out_write(NULL, STDERR_FILENO, nk_buf_front(&line), nk_buf_left(&line));
    nk_buf_fini(&line);
    return NK_COPY_REFUSED;
}

static int unpack(struct down *d, int dest)
{
    struct nk_tar_reader *reader = NULL;
    struct nk_tar_result result = {0};
    struct nk_err err;
    int rc = nk_tar_reader_open(read_piece, d, &reader, &err);
    int status;

    if (rc == 0)
        rc = nk_tar_extract_run(reader, dest, false, NULL, &result, &err);
    nk_tar_reader_close(reader);
    status = rc < 0 ? nk_out_fail(&err) : tell_refused(&result);
    nk_tar_result_fini(&result);
    return status;
}

static int to_folder(struct nk_copy *c, const char *path, const char *more)
{
    nk_auto_fd int dest = -1;
    struct down d = {.copy = c};
    int status = begin(&d, "/v1/archive?path=", more);

    if (status != 0)
        return status;
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        status = nk_out_fail_msg("cannot make %s: %s", path, strerror(errno));
    } else {
        dest = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        status = dest < 0 ? nk_out_fail_msg("cannot open %s: %s", path, strerror(errno))
                          : unpack(&d, dest);
    }
    finish(&d);
    return status;
}

/* As `cp -r`: into a folder that is there, or as the folder that is not. */
static int to_here(struct nk_copy *c, const struct nk_copy_found *there, const char *more)
{
    char name[256], to[PATH_MAX];
    struct stat st;
    bool is_there = stat(c->local, &st) == 0;
    bool into = is_there && S_ISDIR(st.st_mode);

    nk_copy_name(c->remote, name);
    if (nk_copy_join(to, sizeof to, c->local, into ? name : "") < 0)
        return nk_out_fail_msg("the path %s is too long", c->local);
    if (there->kind == NK_COPY_DIR)
        return to_folder(c, to, more);
    if (is_there && !into && !S_ISREG(st.st_mode))
        return to_special(c, to);
    return to_file(c, to, there->mode);
}

/* The slash makes a link to a folder mean the folder. */
static int copy_folder(struct nk_copy *c, const struct nk_copy_found *there)
{
    struct nk_buf more = {0};
    char path[PATH_MAX];
    int status;

    if (nk_copy_join(path, sizeof path - 1, c->remote, "") < 0)
        return nk_out_fail_msg("the path there is too long");
    if (path[strlen(path) - 1] != '/')
        memcpy(path + strlen(path), "/", 2);
    nk_buf_add_str(&more, "&base=");
    nk_ask_escape(&more, path);
    nk_buf_add_char(&more, '\0');
    c->remote = path;
    if (more.failed)
        status = nk_out_fail_msg("no memory");
    else if (strcmp(c->local, "-") == 0)
        status = to_stdout(c, "/v1/archive?path=", (const char *)nk_buf_front(&more));
    else
        status = to_here(c, there, (const char *)nk_buf_front(&more));
    nk_buf_fini(&more);
    return status;
}

int nk_copy_down(struct nk_copy *c)
{
    struct nk_copy_found there;
    struct nk_err err;

    if (nk_copy_look(c, c->remote, &there, &err) < 0)
        return nk_out_fail(&err);
    if (there.kind == NK_COPY_MISSING)
        return nk_out_fail_msg("there is no %s in the sandbox", c->remote);
    if (there.kind == NK_COPY_DIR)
        return copy_folder(c, &there);
    if (strcmp(c->local, "-") == 0)
        return to_stdout(c, "/v1/files?path=", "");
    return to_here(c, &there, "");
}
