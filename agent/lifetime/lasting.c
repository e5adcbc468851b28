#include "lifetime/lasting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

#define FILE_NAME "lifetime"
#define NEW_NAME "lifetime.new"
#define VERSION 1
#define TEXT_MAX 1024
#define BOOT_MAX 40

/* Where the kernel does not name its boot, every boot is another. */
static bool read_boot(char out[BOOT_MAX])
{
    nk_auto_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, BOOT_MAX - 1);

    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return out[0] != '\0';
}

/* What only we may change: others' words are no reason to live longer. */
static int open_folder(const char *folder)
{
    nk_auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (dir < 0 || fstat(dir, &st) < 0)
        return -errno;
    if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return -EPERM;
    return nk_take_fd(&dir);
}

static int read_text(const char *folder, char text[TEXT_MAX])
{
    nk_auto_fd int dir = open_folder(folder);
    nk_auto_fd int fd = -1;
    ssize_t n;

    if (dir < 0)
        return dir;
    fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return 0;
}

/* From the clock of another boot to ours: what had passed, and what has passed since. */
static uint64_t carry(uint64_t then_ms, uint64_t saved_ms, uint64_t gone_ms, uint64_t now_ms)
{
    int64_t left = (int64_t)(then_ms - saved_ms) - (int64_t)gone_ms;
    int64_t at = (int64_t)now_ms + left;

    if (then_ms == 0)
        return 0;
    return at > 1 ? (uint64_t)at : 1;
}

int nk_lasting_read(const char *folder, const char *id, struct nk_lasting *out)
{
    char text[TEXT_MAX], boot[BOOT_MAX], own[BOOT_MAX];
    struct nk_lasting l = {.id = ""};
    int64_t wall;
    uint64_t saved, gone;
    int version;
    int rc = read_text(folder, text);

    if (rc < 0)
        return rc;
    if (sscanf(text,
               "version %d\nboot %39s\nsaved %" SCNu64 " %" SCNd64 "\ncreated %" SCNd64
               "\nexpires %" SCNu64 "\nidle %" SCNu64 "\nactive %" SCNu64 "\noptions %" SCNu64
               " %" SCNu64 "\nid %255[^\n]",
               &version, boot, &saved, &wall, &l.created_ms, &l.expires_ms, &l.idle_ms,
               &l.active_ms, &l.ttl_option_ms, &l.idle_option_ms, l.id) != 11 ||
        version != VERSION)
        return -EINVAL;
    if (strcmp(l.id, id) != 0)
        return -ENOENT;
    if (!read_boot(own) || strcmp(own, boot) != 0) {
        gone = nk_clock_wall_ms() > wall ? (uint64_t)(nk_clock_wall_ms() - wall) : 0;
        l.expires_ms = carry(l.expires_ms, saved, gone, nk_clock_boot_ms());
        l.active_ms = carry(l.active_ms, saved, gone, nk_clock_boot_ms());
    }
    *out = l;
    return 0;
}

static int write_new(int dir, const char *text)
{
    nk_auto_fd int fd =
        openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t len = strlen(text);

    if (fd < 0)
        return -errno;
    if (write(fd, text, len) != (ssize_t)len)
        return -ENOSPC;
    return fdatasync(fd) < 0 ? -errno : 0;
}

int nk_lasting_write(const char *folder, const struct nk_lasting *l)
{
    char text[TEXT_MAX], boot[BOOT_MAX];
    nk_auto_fd int dir = open_folder(folder);
    int rc;

    if (dir < 0)
        return dir;
    (void)snprintf(text, sizeof text,
                   "version %d\nboot %s\nsaved %" PRIu64 " %" PRId64 "\ncreated %" PRId64
                   "\nexpires %" PRIu64 "\nidle %" PRIu64 "\nactive %" PRIu64 "\noptions %" PRIu64
                   " %" PRIu64 "\nid %s\n",
                   VERSION, read_boot(boot) ? boot : "-", nk_clock_boot_ms(), nk_clock_wall_ms(),
                   l->created_ms, l->expires_ms, l->idle_ms, l->active_ms, l->ttl_option_ms,
                   l->idle_option_ms, l->id);
    rc = write_new(dir, text);
    if (rc == 0 && renameat(dir, NEW_NAME, dir, FILE_NAME) < 0)
        rc = -errno;
    if (rc < 0)
        (void)unlinkat(dir, NEW_NAME, 0);
    return rc;
}

void nk_lasting_remove(const char *folder)
{
    nk_auto_fd int dir = open_folder(folder);

    if (dir >= 0)
        (void)unlinkat(dir, FILE_NAME, 0);
}
