/* From here into the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "cli/ask.h"
#include "cli/copy.h"
#include "cli/out.h"
#include "files/tar_pack.h"
#include "files/tar_worker.h"

struct up {
    struct nk_copy *copy;
    struct nk_client *client; /* owned */
};

static int send_piece(void *ctx, const void *data, size_t len, struct nk_err *err)
{
    struct up *up = ctx;

    nk_progress_add(&up->copy->progress, len);
    return nk_client_send_body(up->client, data, len, err);
}

static int send_descriptor(struct up *up, int fd, struct nk_err *err)
{
    nk_auto_free uint8_t *piece = malloc(NK_COPY_PIECE);

    if (!piece)
        return nk_fail_sys(err, ENOMEM, "cannot copy");
    for (;;) {
        ssize_t n = read(fd, piece, NK_COPY_PIECE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nk_fail_sys(err, errno, "cannot read %s", up->copy->local);
        if (n == 0)
            return nk_client_end_body(up->client, err);
        if (send_piece(up, piece, (size_t)n, err) < 0)
            return -1;
    }
}

static int send_folder(struct up *up, int dir, struct nk_err *err)
{
    struct nk_tar_writer *writer = NULL;
    struct nk_tar_pack pack = {0};
    int rc;

    if (nk_tar_writer_open(NK_TAR_PLAIN, send_piece, up, &writer, err) < 0)
        return -1;
    rc = nk_tar_pack_init(&pack, writer, false, err);
    if (rc == 0)
        rc = nk_tar_pack_add(&pack, dir, ".", ".", err);
    if (rc == 0)
        rc = nk_tar_writer_end(writer, err);
    nk_tar_pack_fini(&pack);
    nk_tar_writer_close(writer);
    return rc < 0 ? -1 : nk_client_end_body(up->client, err);
}

/* What was not unpacked there, one line each. */
static int tell_refused(const struct nk_json *answer)
{
    const struct nk_json *count = nk_json_get(answer, "refused_count");
    const struct nk_json *list = nk_json_get(answer, "refused");
    const struct nk_json *one = list ? nk_json_first(list) : NULL;
    struct nk_buf line = {0};

    if (!count || nk_json_num(count) < 1)
        return 0;
    for (; one; one = nk_json_next(one)) {
        nk_buf_add_str(&line, "nookd: not copied: ");
        nk_out_plain(&line, nk_ask_text(one, "path", "?"));
        nk_buf_add_str(&line, ": ");
        nk_out_plain(&line, nk_ask_text(one, "reason", "?"));
        nk_buf_add_char(&line, '\n');
    }
    nk_buf_add_fmt(&line, "nookd: %.0f entries were not copied\n", nk_json_num(count));
    if (!line.failed)
        (void)nk_out_write(NULL, STDERR_FILENO, nk_buf_front(&line), nk_buf_left(&line));
    nk_buf_fini(&line);
    return NK_COPY_REFUSED;
}

static int finish(struct up *up, int rc, struct nk_err *err)
{
    struct nk_json *answer = NULL;
    int status = NK_OUT_FAILED;

    if (rc == 0)
        rc = nk_copy_read(up->client, &answer, err);
    nk_progress_end(&up->copy->progress);
    if (rc < 0)
        (void)nk_out_fail(err);
    else
        status = tell_refused(answer);
    nk_json_free(answer);
    nk_client_free(up->client);
    return status;
}

/* `fd`: a folder to pack, or -1: an archive comes by standard input. */
static int put_archive(struct nk_copy *c, int fd, const char *to)
{
    const struct nk_copy_call call = {"PUT", "/v1/archive?path=", to, "", true};
    struct up up = {.copy = c};
    struct nk_err err;

    if (nk_copy_open(c, &call, &up.client, &err) < 0)
        return nk_out_fail(&err);
    return finish(
        &up, fd < 0 ? send_descriptor(&up, STDIN_FILENO, &err) : send_folder(&up, fd, &err), &err);
}

static int put_file(struct nk_copy *c, int fd, unsigned mode, const char *to)
{
    char more[16] = "";
    const struct nk_copy_call call = {"PUT", "/v1/files?path=", to, more, true};
    struct up up = {.copy = c};
    struct nk_err err;

    if (fd != STDIN_FILENO)
        (void)snprintf(more, sizeof more, "&mode=%04o", mode & 0777);
    if (nk_copy_open(c, &call, &up.client, &err) < 0)
        return nk_out_fail(&err);
    return finish(&up, send_descriptor(&up, fd, &err), &err);
}

static bool ends_in_slash(const char *path)
{
    size_t len = strlen(path);

    return len > 0 && path[len - 1] == '/';
}

static int copy_path(struct nk_copy *c, const struct nk_copy_found *there)
{
    nk_auto_fd int fd = open(c->local, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool into = there->kind == NK_COPY_DIR;
    char name[256], to[PATH_MAX];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return nk_out_fail_msg("cannot open %s: %s", c->local, strerror(errno));
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return nk_out_fail_msg("%s is neither a file nor a folder", c->local);
    if (S_ISDIR(st.st_mode) && there->kind == NK_COPY_FILE)
        return nk_out_fail_msg("%s is a file there, not a folder", c->remote);
    if (S_ISREG(st.st_mode) && ends_in_slash(c->remote))
        into = true;
    nk_copy_name(c->local, name);
    if (nk_copy_join(to, sizeof to, c->remote, into ? name : "") < 0)
        return nk_out_fail_msg("the path there is too long");
    return S_ISDIR(st.st_mode) ? put_archive(c, fd, to) : put_file(c, fd, st.st_mode, to);
}

int nk_copy_up(struct nk_copy *c)
{
    struct nk_copy_found there;
    struct nk_err err;

    if (nk_copy_look(c, c->remote, &there, &err) < 0)
        return nk_out_fail(&err);
    if (strcmp(c->local, "-") != 0)
        return copy_path(c, &there);
    if (there.kind == NK_COPY_DIR || ends_in_slash(c->remote))
        return put_archive(c, -1, c->remote);
    return put_file(c, STDIN_FILENO, 0, c->remote);
}
