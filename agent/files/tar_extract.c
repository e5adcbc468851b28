#include "files/tar_extract.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/tar_dirs.h"
#include "files/tar_place.h"

struct extraction {
    struct nk_tar_reader *reader;
    struct nk_tar_way way;      /* to entries, */
    struct nk_tar_way link_way; /* and to what hard links name */
    bool strict;
    const struct nk_tar_room *room; /* borrowed; NULL: none */
    bool nameless;                  /* files can be made without a name here */
    struct nk_tar_result *result;
    struct nk_tar_dirs dirs;
    uint64_t entries;
    const struct nk_tar_entry *entry;
    char path[NK_TAR_NAME_MAX + 1]; /* clean */
};

static int refuse(struct extraction *x, const char *reason, struct nk_err *err)
{
    nk_tar_result_refuse(x->result, x->entry->name, reason);
    if (!x->strict)
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "%.150s: %s", x->entry->name, reason);
}

/* What the disk says of one entry refuses that entry; what says more ends the whole. */
static int refuse_sys(struct extraction *x, int sys, struct nk_err *err)
{
    const char *reason = nk_tar_name_reason(sys);

    if (reason)
        return refuse(x, reason, err);
    return nk_fail_sys(err, sys, "%.150s cannot be unpacked", x->entry->name);
}

static struct timespec mtime_of(const struct nk_tar_entry *e)
{
    bool sane = e->mtime_ns >= 0 && e->mtime_ns < 1000000000L;

    return (struct timespec){.tv_sec = (time_t)e->mtime_s, .tv_nsec = sane ? e->mtime_ns : 0};
}

static int write_at(int fd, const uint8_t *data, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

static int check_bytes(const struct extraction *x, uint64_t bytes, struct nk_err *err)
{
    if (bytes > NK_TAR_EXTRACT_BYTES)
        return nk_fail(err, NK_TOO_LARGE, "the archive unpacks to too many bytes");
    if (x->room && bytes > x->room->bytes)
        return nk_fail(err, NK_QUOTA_EXCEEDED, "the archive unpacks to more than may be kept");
    return 0;
}

/* 0, -errno of the disk, or 1 where the archive failed and err is filled. */
static int write_content(struct extraction *x, int fd, struct nk_err *err)
{
    const void *data = NULL;
    size_t len = 0;
    uint64_t offset = 0, end = 0;

    for (;;) {
        int rc = nk_tar_reader_data(x->reader, &data, &len, &offset, err);

        if (rc < 0)
            return 1;
        if (rc == 0)
            break;
        rc = write_at(fd, data, len, offset);
        if (rc < 0)
            return rc;
        end = len > 0 ? offset + len : end;
        x->result->bytes += len;
        if (check_bytes(x, x->result->bytes, err) < 0)
            return 1;
    }
    /* A hole at the end. */
    if (end < x->entry->size && ftruncate(fd, (off_t)x->entry->size) < 0)
        return -errno;
    return 0;
}

static int set_mode(int fd, mode_t mode)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && (st.st_mode & 07777) == mode)
        return 0;
    return fchmod(fd, mode);
}

static int finish_file(const struct extraction *x, struct nk_tar_place *place, int fd)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime_of(x->entry)};

    if (set_mode(fd, x->entry->mode & 0777) < 0 || futimens(fd, times) < 0)
        return -errno;
    return nk_tar_place_commit(place, fd);
}

static int put_file(struct extraction *x, struct nk_tar_place *place, struct nk_err *err)
{
    uint64_t before = x->result->bytes;
    nk_auto_fd int fd = nk_tar_place_open(place, x->nameless, x->entry->mode & 0777);
    int rc;

    if (fd < 0)
        return refuse_sys(x, -fd, err);
    /* Holes count too: what a file seems to hold is what it may hold. */
    rc = x->room && check_bytes(x, before + x->entry->size, err) < 0;
    if (rc == 0)
        rc = write_content(x, fd, err);
    if (rc == 0)
        rc = finish_file(x, place, fd);
    if (rc == 0) {
        x->result->files++;
        return 0;
    }
    nk_tar_place_drop(place);
    x->result->bytes = before;
    return rc > 0 ? -1 : refuse_sys(x, -rc, err);
}

static int put_dir(struct extraction *x, struct nk_tar_place *place, struct nk_err *err)
{
    const struct timespec mtime = mtime_of(x->entry);
    int rc = nk_tar_place_mkdir(place, x->entry->mode);

    if (rc < 0)
        return refuse_sys(x, -rc, err);
    if (nk_tar_dirs_add(&x->dirs, x->path, x->entry->mode & 0777, &mtime) < 0)
        return nk_fail(err, NK_TOO_LARGE, "the archive holds too many folders");
    x->result->dirs++;
    return 0;
}

static int put_symlink(struct extraction *x, struct nk_tar_place *place, struct nk_err *err)
{
    const struct timespec mtime = mtime_of(x->entry);
    int rc = nk_tar_place_symlink(place, x->entry->link, &mtime);

    if (rc < 0)
        return refuse_sys(x, -rc, err);
    x->result->links++;
    return 0;
}

static int put_hardlink(struct extraction *x, struct nk_tar_place *place, struct nk_err *err)
{
    char target[NK_TAR_NAME_MAX + 1];
    int rc;

    if (nk_tar_name_clean(x->entry->link, target) || target[0] == '\0')
        return refuse(x, "a hard link to outside of the folder", err);
    rc = nk_tar_place_hardlink(place, &x->link_way, target);
    if (rc < 0)
        return refuse_sys(x, -rc, err);
    x->result->links++;
    return 0;
}

static int put_entry(struct extraction *x, struct nk_err *err)
{
    struct nk_tar_place place;
    int rc = nk_tar_place_enter(&x->way, x->path, true, &place);

    if (rc < 0)
        return refuse_sys(x, -rc, err);
    switch (x->entry->type) {
    case NK_TAR_FILE:
        return put_file(x, &place, err);
    case NK_TAR_DIR:
        return put_dir(x, &place, err);
    case NK_TAR_SYMLINK:
        return put_symlink(x, &place, err);
    default:
        return put_hardlink(x, &place, err);
    }
}

static const char *reason_of_type(enum nk_tar_type type)
{
    if (type == NK_TAR_DEVICE)
        return "a device";
    if (type == NK_TAR_FIFO)
        return "a FIFO";
    return type == NK_TAR_OTHER ? "neither a file nor a folder nor a link" : NULL;
}

static int take_entry(struct extraction *x, struct nk_err *err)
{
    const char *reason = nk_tar_name_clean(x->entry->name, x->path);

    if (!reason)
        reason = reason_of_type(x->entry->type);
    if (!reason && x->path[0] == '\0' && x->entry->type == NK_TAR_DIR)
        return 0; /* the folder itself: what it is does not change */
    if (!reason && x->path[0] == '\0')
        reason = "it would replace the folder itself";
    return reason ? refuse(x, reason, err) : put_entry(x, err);
}

static int run(struct extraction *x, struct nk_err *err)
{
    struct nk_tar_entry entry;

    for (;;) {
        int rc = nk_tar_reader_next(x->reader, &entry, err);

        if (rc <= 0)
            return rc;
        if (++x->entries > NK_TAR_EXTRACT_ENTRIES)
            return nk_fail(err, NK_TOO_LARGE, "the archive holds more than %u entries",
                           NK_TAR_EXTRACT_ENTRIES);
        if (x->room && x->entries > x->room->files)
            return nk_fail(err, NK_QUOTA_EXCEEDED, "the archive holds more files than may be kept");
        x->entry = &entry;
        if (take_entry(x, err) < 0)
            return -1;
    }
}

int nk_tar_extract_run(struct nk_tar_reader *reader, int dest, bool strict,
                       const struct nk_tar_room *room, struct nk_tar_result *out,
                       struct nk_err *err)
{
    struct extraction x = {.reader = reader,
                           .strict = strict,
                           .room = room,
                           .nameless = nk_tar_place_probe(dest),
                           .result = out};
    int rc;

    nk_tar_way_init(&x.way, dest);
    nk_tar_way_init(&x.link_way, dest);
    rc = run(&x, err);
    nk_tar_dirs_apply(&x.dirs, &x.way);
    nk_tar_dirs_fini(&x.dirs);
    nk_tar_way_fini(&x.way);
    nk_tar_way_fini(&x.link_way);
    return rc;
}
