#include "files/tar_task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_io.h"
#include "base/scope.h"
#include "files/path.h"
#include "files/tar_base.h"
#include "files/tar_extract.h"
#include "files/tar_note.h"
#include "files/tar_order.h"
#include "files/tar_pack.h"
#include "process/confine.h"
#include "process/probe.h"

#define BAD_START 2
#define MEMORY (256u * 1024u * 1024u)
/* An open folder for each path that was asked for, and a few to walk with. */
#define DESCRIPTORS (NK_TAR_BASE_PATHS + 32)
#define CPU_SECONDS 3600
#define PIECE (256u * 1024u)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

struct task {
    struct nk_tar_order order;
    struct nk_kernel kernel;
    struct nk_roots *roots;
    struct nk_tar_result result;
    uint8_t *piece; /* owned: of the input */
};

static void send_note(struct nk_buf *note)
{
    if (!note->failed)
        (void)nk_fd_io_write(STDERR_FILENO, nk_buf_front(note), nk_buf_left(note));
    nk_buf_fini(note);
}

static void tell_ready(void)
{
    struct nk_buf note = {0};
    size_t begun = nk_tar_note_begin(&note);

    nk_tar_note_add(&note, "state", "ready");
    nk_tar_note_end(&note, begun);
    send_note(&note);
}

/* The last word, with what was done; `err` is NULL where all was. */
static void tell_end(const struct task *t, const struct nk_err *err)
{
    struct nk_buf note = {0};
    size_t begun = nk_tar_note_begin(&note);

    nk_tar_note_add(&note, "state", err ? "failed" : "done");
    if (err) {
        nk_tar_note_add_u64(&note, "code", (uint64_t)err->code);
        nk_tar_note_add(&note, "message", err->msg);
    }
    if (!t->order.pack)
        nk_tar_result_write(&t->result, &note);
    nk_tar_note_end(&note, begun);
    send_note(&note);
}

static int limit(int resource, rlim_t value)
{
    struct rlimit now;

    if (getrlimit((unsigned)resource, &now) < 0)
        return -errno;
    if (now.rlim_max < value)
        value = now.rlim_max;
    now = (struct rlimit){value, value};
    return setrlimit((unsigned)resource, &now) < 0 ? -errno : 0;
}

/* From here on the worker can do no more than its task needs, whatever an archive makes of it. */
static int give_up_rights(struct nk_err *err)
{
    struct nk_filter filter = {0};
    int rc;

    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
    rc = limit(RLIMIT_CORE, 0);
    if (rc == 0 && !SANITIZED) /* a sanitizer's shadow is terabytes of addresses */
        rc = limit(RLIMIT_AS, MEMORY);
    if (rc == 0)
        rc = limit(RLIMIT_NOFILE, DESCRIPTORS);
    if (rc == 0)
        rc = limit(RLIMIT_CPU, CPU_SECONDS);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot limit the archive worker");
    if (nk_confine_compile_worker(&filter, err) < 0)
        return -1;
    rc = nk_confine_apply(&filter);
    nk_confine_fini(&filter);
    return rc < 0
               ? nk_fail(err, NK_INTERNAL, "cannot confine the archive worker: %s", strerror(-rc))
               : 0;
}

static ssize_t read_input(void *ctx, const void **out, struct nk_err *err)
{
    struct task *t = ctx;
    ssize_t n;

    do
        n = read(STDIN_FILENO, t->piece, PIECE);
    while (n < 0 && errno == EINTR);
    *out = t->piece;
    return n < 0 ? nk_fail_sys(err, errno, "cannot read the archive") : n;
}

static int write_output(void *ctx, const void *data, size_t len, struct nk_err *err)
{
    int rc = nk_fd_io_write(STDOUT_FILENO, data, len);

    (void)ctx;
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot send the archive") : 0;
}

/* The folder to unpack into, made where it is missing. A descriptor, or -1 with err. */
static int open_dest(const struct task *t, struct nk_err *err)
{
    const char *path = t->order.paths[0];
    struct nk_place place;
    int fd, rc;

    if (nk_path_resolve(t->roots, path, strlen(path),
                        NK_PATH_WRITE | NK_PATH_FOLLOW | NK_PATH_PARENTS, &place, err) < 0)
        return -1;
    rc = place.is_root ? -EEXIST : nk_place_mkdir(place.dir, place.name, 0755);
    if (rc < 0 && rc != -EEXIST)
        fd = nk_place_fail(&place, -rc, err);
    else
        fd = nk_place_open_dir(&place, O_PATH, err);
    nk_place_fini(&place);
    return fd;
}

static int unpack(struct task *t, struct nk_err *err)
{
    nk_auto_fd int dest = open_dest(t, err);
    struct nk_tar_reader *reader = NULL;
    int rc;

    if (dest < 0)
        return -1;
    t->piece = aligned_alloc(NK_TAR_PAGE, PIECE);
    if (!t->piece)
        return nk_fail(err, NK_OVERLOADED, "no memory to unpack");
    tell_ready();
    if (nk_tar_reader_open(read_input, t, &reader, err) < 0)
        return -1;
    rc = nk_tar_extract_run(reader, dest, t->order.strict,
                            t->order.bounded ? &t->order.room_read : NULL, &t->result, err);
    nk_tar_reader_close(reader);
    return rc;
}

static int write_archive(struct task *t, struct nk_tar_base *base, struct nk_err *err)
{
    struct nk_tar_writer *writer = NULL;
    struct nk_tar_pack pack = {0};
    int rc;

    if (nk_tar_writer_open(t->order.format, write_output, t, &writer, err) < 0)
        return -1;
    rc = nk_tar_pack_init(&pack, writer, t->order.skip_links, err);
    for (size_t i = 0; rc == 0 && i < base->count; i++)
        rc = nk_tar_pack_add(&pack, base->item[i].place.dir, base->item[i].place.name,
                             base->item[i].name, err);
    if (rc == 0)
        rc = nk_tar_writer_end(writer, err);
    nk_tar_pack_fini(&pack);
    nk_tar_writer_close(writer);
    return rc;
}

static int pack(struct task *t, struct nk_err *err)
{
    struct nk_tar_base base = {0};
    int rc = nk_tar_base_find(&base, t->roots, t->order.paths, t->order.base, err);

    if (rc == 0) {
        tell_ready();
        rc = write_archive(t, &base, err);
    }
    nk_tar_base_fini(&base);
    return rc;
}

static int run(struct task *t, struct nk_err *err)
{
    if (nk_tar_order_read(STDIN_FILENO, &t->order, err) < 0 || give_up_rights(err) < 0)
        return -1;
    t->kernel.mech[NK_MECH_OPENAT2].available = t->order.openat2;
    if (nk_roots_new(t->order.writable, t->order.readable, &t->kernel, &t->roots, err) < 0)
        return -1;
    return t->order.pack ? pack(t, err) : unpack(t, err);
}

static bool is_pipe(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int nk_tar_task_main(int argc, char **argv)
{
    struct nk_err err = {0};
    struct task *t;
    int rc;

    if (argc != 1 || strcmp(argv[0], "archive") != 0 || !is_pipe(STDIN_FILENO) ||
        !is_pipe(STDOUT_FILENO) || !is_pipe(STDERR_FILENO)) {
        (void)fprintf(stderr, "nookd: __worker is started by the daemon alone\n");
        return BAD_START;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    t = calloc(1, sizeof *t);
    if (!t)
        return BAD_START;
    rc = run(t, &err);
    tell_end(t, rc < 0 ? &err : NULL);
    nk_roots_free(t->roots);
    nk_tar_result_fini(&t->result);
    nk_tar_order_fini(&t->order);
    free(t->piece);
    free(t);
    return rc < 0;
}
