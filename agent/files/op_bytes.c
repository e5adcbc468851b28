#include "files/op_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/scope.h"

#define PIECE (1024u * 1024u)
#define BUFFER (256u * 1024u)

int nk_op_bytes_begin(struct nk_op *op, int dir, const char *name, int to_dir, const char *to)
{
    nk_auto_fd int in =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    nk_auto_fd int out = -1;
    struct stat st;

    if (in < 0)
        return -errno;
    if (fstat(in, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL; /* swapped since it was looked at */
    out = nk_temp_create(to_dir, to);
    if (out < 0)
        return out;
    op->in = nk_take_fd(&in);
    op->out = nk_take_fd(&out);
    return 0;
}

static ssize_t copy_by_hand(int in, int out)
{
    nk_auto_free char *buf = malloc(BUFFER);
    ssize_t n = buf ? read(in, buf, BUFFER) : -1;

    for (ssize_t at = 0; at < n;) {
        ssize_t put = write(out, buf + at, (size_t)(n - at));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        at += put;
    }
    return n;
}

static ssize_t copy_piece(int in, int out)
{
    ssize_t n = copy_file_range(in, NULL, out, NULL, PIECE, 0);

    if (n > 0)
        return n;
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
        return -1;
    /* 0 is also what file systems say that cannot: only read knows the end. */
    return copy_by_hand(in, out);
}

static int finish(struct nk_op *op)
{
    struct stat st;
    int rc = fstat(op->in, &st);

    if (rc == 0)
        rc = fchmod(op->out, st.st_mode & 0777);
    if (rc == 0 && op->moves)
        (void)futimens(op->out, (struct timespec[]){st.st_atim, st.st_mtim});
    nk_close_fd(&op->in);
    if (close(nk_take_fd(&op->out)) < 0)
        rc = -1; /* a full disk may show here */
    return rc;
}

static bool has_room(struct nk_op *op, uint64_t bytes)
{
    if (!op->bounded)
        return true;
    if (bytes > op->room_bytes) {
        errno = EDQUOT;
        return false;
    }
    op->room_bytes -= bytes;
    return true;
}

int nk_op_bytes_go(struct nk_op *op)
{
    ssize_t n = 1;

    while (n > 0 && !nk_task_due(&op->task)) {
        n = copy_piece(op->in, op->out);
        if (n > 0 && !has_room(op, (uint64_t)n))
            n = -1;
    }
    if (n > 0)
        return NK_TASK_MORE;
    if (n == 0)
        n = finish(op);
    return n < 0 ? nk_place_fail(&op->dest, errno, &op->task.err) : 0;
}

int nk_op_bytes_link(int dir, const char *name, int to_dir, const char *to)
{
    char target[NK_PLACE_PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlinkat(target, to_dir, to) < 0 ? -errno : 0;
}

int nk_op_bytes_folder(int to_dir, const char *name, int from_dir, const char *from, bool times)
{
    nk_auto_fd int fd = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (fchmod(fd, st.st_mode & 0777) < 0)
        return -errno;
    if (times)
        (void)futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim});
    return 0;
}
