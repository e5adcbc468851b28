#include "files/tar_worker.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PERMISSIONS 07777
#define BLOCK_SIZE (64u * 1024u) /* what is handed to the writer at once */

struct nk_tar_reader {
    struct archive *archive;     /* owned */
    struct archive_entry *entry; /* borrowed: the archive's */
    nk_tar_read_fn read;
    void *ctx;             /* borrowed: the caller's */
    struct nk_err failure; /* of `read`, or a ratio that is too high; code 0: none */
    uint64_t size;         /* of the entry, */
    uint64_t end;          /* and where the bytes of it that came end */
};

struct nk_tar_writer {
    struct archive *archive;     /* owned */
    struct archive_entry *entry; /* owned: used for every entry */
    nk_tar_write_fn write;
    void *ctx; /* borrowed: the caller's */
    struct nk_err failure;
    bool ended;
};

/* What libarchive says in its own words is about the archive; what made it say so may be ours. */
static int fail(struct archive *a, const struct nk_err *cause, const char *what, struct nk_err *err)
{
    const char *text = archive_error_string(a);

    if (cause->code != NK_OK) {
        if (err)
            *err = *cause;
        return -1;
    }
    if (archive_errno(a) == ENOMEM)
        return nk_fail(err, NK_OVERLOADED, "%s: it needs too much memory", what);
    return nk_fail(err, NK_BAD_REQUEST, "%s: %.150s", what, text ? text : "unknown error");
}

static int fail_read(struct nk_tar_reader *r, struct nk_err *err)
{
    return fail(r->archive, &r->failure, "the archive cannot be read", err);
}

static int check_ratio(struct nk_tar_reader *r)
{
    uint64_t in = (uint64_t)archive_filter_bytes(r->archive, -1);
    uint64_t out = (uint64_t)archive_filter_bytes(r->archive, 0);

    if (archive_filter_count(r->archive) < 2 || out <= NK_TAR_RATIO_FROM)
        return 0;
    if (out / NK_TAR_RATIO <= in)
        return 0;
    return nk_fail(&r->failure, NK_TOO_LARGE,
                   "the archive grows more than %d times when it is unpacked", NK_TAR_RATIO);
}

static la_ssize_t on_read(struct archive *a, void *ctx, const void **out)
{
    struct nk_tar_reader *r = ctx;
    ssize_t n;

    /* Also here: what is passed over never comes to the caller. */
    if (check_ratio(r) < 0) {
        archive_set_error(a, EFBIG, "too large");
        return -1;
    }
    n = r->read(r->ctx, out, &r->failure);
    if (n < 0)
        archive_set_error(a, EIO, "no more input");
    return n;
}

/* A filter that is not built in would be a program that libarchive starts: never. */
static int set_up_reader(struct archive *a)
{
    int rc = archive_read_support_format_tar(a);

    if (rc == ARCHIVE_OK)
        rc = archive_read_support_filter_gzip(a);
    if (rc == ARCHIVE_OK)
        rc = archive_read_support_filter_zstd(a);
    if (rc == ARCHIVE_OK)
        rc = archive_read_support_filter_xz(a);
    if (rc == ARCHIVE_OK)
        rc = archive_read_set_format_option(a, NULL, "read_concatenated_archives", "1");
    return rc;
}

int nk_tar_reader_open(nk_tar_read_fn read, void *ctx, struct nk_tar_reader **out,
                       struct nk_err *err)
{
    struct nk_tar_reader *r = calloc(1, sizeof *r);
    int rc;

    if (!r)
        return nk_fail(err, NK_OVERLOADED, "no memory for an archive");
    r->read = read;
    r->ctx = ctx;
    r->archive = archive_read_new();
    if (!r->archive || set_up_reader(r->archive) != ARCHIVE_OK) {
        nk_tar_reader_close(r);
        return nk_fail(err, NK_NOT_SUPPORTED, "this build cannot read archives");
    }
    rc = archive_read_open(r->archive, r, NULL, on_read, NULL);
    if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN) {
        (void)fail_read(r, err);
        nk_tar_reader_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

void nk_tar_reader_close(struct nk_tar_reader *r)
{
    if (!r)
        return;
    if (r->archive)
        (void)archive_read_free(r->archive);
    free(r);
}

static enum nk_tar_type type_of(struct archive_entry *e)
{
    if (archive_entry_hardlink(e))
        return NK_TAR_HARDLINK;
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        return NK_TAR_FILE;
    case AE_IFDIR:
        return NK_TAR_DIR;
    case AE_IFLNK:
        return NK_TAR_SYMLINK;
    case AE_IFCHR:
    case AE_IFBLK:
        return NK_TAR_DEVICE;
    case AE_IFIFO:
        return NK_TAR_FIFO;
    default:
        return NK_TAR_OTHER;
    }
}

static void read_entry(struct archive_entry *e, struct nk_tar_entry *out)
{
    const char *name = archive_entry_pathname(e);

    *out = (struct nk_tar_entry){
        .type = type_of(e),
        .name = name ? name : "",
        .mode = (unsigned)archive_entry_mode(e) & PERMISSIONS,
        .mtime_s = archive_entry_mtime(e),
        .mtime_ns = archive_entry_mtime_nsec(e),
        .size = archive_entry_size(e) > 0 ? (uint64_t)archive_entry_size(e) : 0,
    };
    if (out->type == NK_TAR_HARDLINK)
        out->link = archive_entry_hardlink(e);
    if (out->type == NK_TAR_SYMLINK)
        out->link = archive_entry_symlink(e);
    if (!out->link && (out->type == NK_TAR_HARDLINK || out->type == NK_TAR_SYMLINK))
        out->type = NK_TAR_OTHER;
}

int nk_tar_reader_next(struct nk_tar_reader *r, struct nk_tar_entry *out, struct nk_err *err)
{
    int rc = archive_read_next_header(r->archive, &r->entry);

    if (rc == ARCHIVE_EOF)
        return 0;
    /* A name that no locale can show is a warning, and the name as it is. */
    if ((rc != ARCHIVE_OK && rc != ARCHIVE_WARN) || check_ratio(r) < 0)
        return fail_read(r, err);
    read_entry(r->entry, out);
    r->size = out->size;
    r->end = 0;
    return 1;
}

int nk_tar_reader_data(struct nk_tar_reader *r, const void **out, size_t *out_len,
                       uint64_t *out_offset, struct nk_err *err)
{
    la_int64_t offset = 0;
    int rc = archive_read_data_block(r->archive, out, out_len, &offset);

    if (rc == ARCHIVE_EOF)
        return 0;
    if ((rc != ARCHIVE_OK && rc != ARCHIVE_WARN) || check_ratio(r) < 0)
        return fail_read(r, err);
    /* A map of holes is the archive's own claim, and libarchive takes it as it comes. */
    if (*out_len > 0 && (offset < 0 || (uint64_t)offset < r->end || (uint64_t)offset > r->size ||
                         *out_len > r->size - (uint64_t)offset))
        return nk_fail(err, NK_BAD_REQUEST, "the archive cannot be read: a false map of holes");
    *out_offset = (uint64_t)offset;
    r->end = *out_len > 0 ? (uint64_t)offset + *out_len : r->end;
    return 1;
}

static int fail_write(struct nk_tar_writer *w, struct nk_err *err)
{
    return fail(w->archive, &w->failure, "the archive cannot be written", err);
}

static la_ssize_t on_write(struct archive *a, void *ctx, const void *data, size_t len)
{
    struct nk_tar_writer *w = ctx;

    if (w->failure.code == NK_OK && w->write(w->ctx, data, len, &w->failure) == 0)
        return (la_ssize_t)len;
    archive_set_error(a, EIO, "no more output");
    return -1;
}

static int set_filter(struct archive *a, enum nk_tar_format format)
{
    if (format == NK_TAR_ZSTD)
        return archive_write_add_filter_zstd(a);
    if (format != NK_TAR_GZIP)
        return ARCHIVE_OK;
    if (archive_write_add_filter_gzip(a) != ARCHIVE_OK)
        return ARCHIVE_FATAL;
    return archive_write_set_filter_option(a, NULL, "timestamp", NULL);
}

/* In the C locale, which is the only one we ever have, a name of other bytes than ASCII cannot be told
 * in UTF-8; libarchive then warns, and writes the bytes as they are beside "hdrcharset=BINARY". The
 * option of that name would do the same, but with an extended header before every entry. */
static int set_up_writer(struct archive *a, enum nk_tar_format format)
{
    int rc = archive_write_set_format_pax_restricted(a);

    if (rc == ARCHIVE_OK)
        rc = archive_write_set_bytes_per_block(a, BLOCK_SIZE);
    if (rc == ARCHIVE_OK)
        rc = archive_write_set_bytes_in_last_block(a, 1);
    return rc == ARCHIVE_OK ? set_filter(a, format) : rc;
}

int nk_tar_writer_open(enum nk_tar_format format, nk_tar_write_fn write, void *ctx,
                       struct nk_tar_writer **out, struct nk_err *err)
{
    struct nk_tar_writer *w = calloc(1, sizeof *w);

    if (!w)
        return nk_fail(err, NK_OVERLOADED, "no memory for an archive");
    w->write = write;
    w->ctx = ctx;
    w->archive = archive_write_new();
    w->entry = archive_entry_new();
    if (!w->archive || !w->entry || set_up_writer(w->archive, format) != ARCHIVE_OK) {
        nk_tar_writer_close(w);
        return nk_fail(err, NK_NOT_SUPPORTED, "this build cannot write such archives");
    }
    if (archive_write_open(w->archive, w, NULL, on_write, NULL) != ARCHIVE_OK) {
        (void)fail_write(w, err);
        nk_tar_writer_close(w);
        return -1;
    }
    *out = w;
    return 0;
}

void nk_tar_writer_close(struct nk_tar_writer *w)
{
    if (!w)
        return;
    if (!w->ended && w->failure.code == NK_OK) /* no ending may be written to one broken off */
        w->failure.code = NK_INTERNAL;
    if (w->archive)
        (void)archive_write_free(w->archive);
    archive_entry_free(w->entry);
    free(w);
}

static unsigned file_type(enum nk_tar_type type)
{
    if (type == NK_TAR_DIR)
        return AE_IFDIR;
    return type == NK_TAR_SYMLINK ? AE_IFLNK : AE_IFREG;
}

static void fill_entry(struct archive_entry *out, const struct nk_tar_entry *e)
{
    archive_entry_copy_pathname(out, e->name);
    archive_entry_set_filetype(out, file_type(e->type));
    archive_entry_set_perm(out, (mode_t)(e->mode & PERMISSIONS));
    archive_entry_set_uid(out, (la_int64_t)e->uid);
    archive_entry_set_gid(out, (la_int64_t)e->gid);
    archive_entry_set_mtime(out, (time_t)e->mtime_s, e->mtime_ns);
    archive_entry_set_size(out, e->type == NK_TAR_FILE ? (la_int64_t)e->size : 0);
    if (e->type == NK_TAR_SYMLINK)
        archive_entry_copy_symlink(out, e->link);
    if (e->type == NK_TAR_HARDLINK)
        archive_entry_copy_hardlink(out, e->link);
}

int nk_tar_writer_begin(struct nk_tar_writer *w, const struct nk_tar_entry *e,
                        const struct nk_tar_extent *extents, size_t extent_count,
                        struct nk_err *err)
{
    int rc;

    archive_entry_clear(w->entry);
    fill_entry(w->entry, e);
    for (size_t i = 0; i < extent_count; i++)
        archive_entry_sparse_add_entry(w->entry, (la_int64_t)extents[i].offset,
                                       (la_int64_t)extents[i].len);
    rc = archive_write_header(w->archive, w->entry);
    return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 0 : fail_write(w, err);
}

int nk_tar_writer_data(struct nk_tar_writer *w, const void *data, size_t len, struct nk_err *err)
{
    const uint8_t *at = data;

    while (len > 0) {
        la_ssize_t n = archive_write_data(w->archive, at, len);

        if (n <= 0)
            return fail_write(w, err);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int nk_tar_writer_end(struct nk_tar_writer *w, struct nk_err *err)
{
    if (archive_write_close(w->archive) != ARCHIVE_OK)
        return fail_write(w, err);
    w->ended = true;
    return 0;
}
