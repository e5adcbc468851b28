/* rooms: files process base */
/*
 * Archives: every entry's name is refused or lies below the target; the order and the notes between
 * daemon and worker; and, for one input in 256, unpacking into a real folder beside a victim
 * that must not change.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/archive_note.h"
#include "files/tar_extract.h"
#include "files/tar_name.h"
#include "files/tar_note.h"

struct input {
    const uint8_t *data;
    size_t left;
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* In small pieces, so that every boundary is met. */
static ssize_t read_input(void *ctx, const void **out, struct nk_err *err)
{
    struct input *in = ctx;
    size_t n = in->left < 700 ? in->left : 700;

    (void)err;
    *out = in->data;
    in->data += n;
    in->left -= n;
    return (ssize_t)n;
}

static void check_name(const char *name)
{
    char clean[NK_TAR_NAME_MAX + 1];
    unsigned depth = 1;

    if (nk_tar_name_clean(name, clean))
        return;
    must(clean[0] != '/' && strlen(clean) <= NK_TAR_NAME_MAX);
    for (const char *s = clean; *s; s += strspn(s, "/")) {
        size_t n = strcspn(s, "/");

        must(n > 0 && n <= NK_TAR_NAME_PART);
        must(!(n == 2 && s[0] == '.' && s[1] == '.') && !(n == 1 && s[0] == '.'));
        must(depth++ <= NK_TAR_NAME_DEPTH);
        s += n;
        must(*s == '\0' || s[1] != '\0');
    }
}

static void read_content(struct nk_tar_reader *r, uint64_t size)
{
    uint64_t end = 0, offset = 0;
    const void *data = NULL;
    size_t len = 0;

    while (nk_tar_reader_data(r, &data, &len, &offset, NULL) > 0) {
        if (len == 0)
            continue;
        must(offset >= end);
        end = offset + len;
        must(end <= size);
    }
}

static void read_entries(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct nk_tar_reader *r = NULL;
    struct nk_tar_entry e;
    struct nk_err err = {0};

    if (nk_tar_reader_open(read_input, &in, &r, &err) < 0) {
        must(err.code != NK_OK);
        return;
    }
    for (int i = 0; i < 1000 && nk_tar_reader_next(r, &e, &err) > 0; i++) {
        must(e.name && (e.type == NK_TAR_HARDLINK || e.type == NK_TAR_SYMLINK) == (e.link != NULL));
        check_name(e.name);
        if (e.link)
            check_name(e.link);
        if (i % 2 == 0 && e.type == NK_TAR_FILE)
            read_content(r, e.size);
    }
    nk_tar_reader_close(r);
}

static void read_notes(const uint8_t *data, size_t size)
{
    struct nk_archive_note note = {0};
    struct nk_buf in = {0};

    nk_buf_add(&in, data, size);
    while (nk_archive_note_take(&in, &note) == NK_ARCHIVE_SAID_READY)
        continue;
    must(note.result.shown <= NK_TAR_RESULT_SHOWN);
    must(note.err.code >= NK_OK && note.err.code < NK_CODE_COUNT);
    nk_archive_note_fini(&note);
    nk_buf_fini(&in);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void make_file(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

    must(fd >= 0 && write(fd, "victim", 6) == 6);
    must(close(fd) == 0);
}

static void check_victim(int base)
{
    struct stat st;

    must(fstatat(base, "victim", &st, AT_SYMLINK_NOFOLLOW) == 0);
    must(S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0640 && st.st_size == 6 &&
         st.st_nlink == 1);
    must(fstatat(base, "dest", &st, AT_SYMLINK_NOFOLLOW) == 0);
    must(S_ISDIR(st.st_mode) && (st.st_mode & 07777) == 0750);
}

static void unpack(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz-tar-XXXXXX";
    struct input in = {data, size};
    struct nk_tar_reader *r = NULL;
    struct nk_tar_result result = {0};
    int base, dest;

    must(mkdtemp(path) != NULL);
    base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(base >= 0 && mkdirat(base, "dest", 0750) == 0);
    make_file(base, "victim");
    dest = openat(base, "dest", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (nk_tar_reader_open(read_input, &in, &r, NULL) == 0)
        (void)nk_tar_extract_run(r, dest, false, NULL, &result, NULL);
    nk_tar_reader_close(r);
    nk_tar_result_fini(&result);
    check_victim(base);
    (void)close(dest);
    (void)close(base);
    (void)nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 16777619u;
    read_entries(data, size);
    read_notes(data, size);
    if (hash % 256 == 0)
        unpack(data, size);
    return 0;
}
