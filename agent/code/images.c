#include "code/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/fd_io.h"
#include "base/scope.h"
#include "files/place.h"

static size_t skip_blank(const uint8_t *s, size_t at, size_t len)
{
    while (at < len && (s[at] == ' ' || s[at] == '\t' || s[at] == '\r' || s[at] == '\n'))
        at++;
    return at;
}

static bool is_at(const uint8_t *s, size_t at, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len - at >= n && strncasecmp((const char *)s + at, word, n) == 0;
}

/* Behind the next `end`, or len. */
static size_t skip_to(const uint8_t *s, size_t at, size_t len, const char *end)
{
    const uint8_t *found = memmem(s + at, len - at, end, strlen(end));

    return found ? (size_t)(found - s) + strlen(end) : len;
}

/* The first element, behind what XML allows before it. */
static bool is_svg(const uint8_t *s, size_t len)
{
    size_t at = is_at(s, 0, len, "\xef\xbb\xbf") ? 3 : 0;

    for (;;) {
        at = skip_blank(s, at, len);
        if (is_at(s, at, len, "<?"))
            at = skip_to(s, at, len, "?>");
        else if (is_at(s, at, len, "<!--"))
            at = skip_to(s, at, len, "-->");
        else if (is_at(s, at, len, "<!DOCTYPE"))
            at = skip_to(s, at, len, ">");
        else
            break;
    }
    return is_at(s, at, len, "<svg") && at + 4 < len && memchr(" \t\r\n>/", s[at + 4], 6);
}

const char *nk_images_type(const uint8_t *head, size_t len)
{
    if (len >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    if (len >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0)
        return "image/jpeg";
    if (len >= 6 && (memcmp(head, "GIF87a", 6) == 0 || memcmp(head, "GIF89a", 6) == 0))
        return "image/gif";
    if (len >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0)
        return "image/webp";
    return is_svg(head, len) ? "image/svg+xml" : NULL;
}

static int open_file(const struct nk_snapshot *snapshot, const struct nk_change *c, struct stat *st)
{
    nk_auto_fd int root = nk_snapshot_enter(snapshot, c->root);
    const char *slash = strrchr(c->rest, '/');
    nk_auto_fd int dir = -1;
    int fd;

    if (root < 0)
        return -1;
    dir = nk_place_enter(root, c->rest, slash ? (size_t)(slash - c->rest) : 0);
    if (dir < 0)
        return -1;
    fd = openat(dir, slash ? slash + 1 : c->rest,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    nk_close_fd(&fd);
    return -1;
}

static struct nk_image *reserve(struct nk_images *images)
{
    size_t cap = 16;
    struct nk_image *item = images->item;

    while (cap < images->count)
        cap *= 2;
    if (images->count == 0 || images->count == cap) {
        item = realloc(item, (images->count ? 2 * cap : cap) * sizeof *item);
        if (!item)
            return NULL;
        images->item = item;
    }
    return &item[images->count];
}

/* The whole of a file whose head was read; NULL where it does not fit, or has changed meanwhile. */
static uint8_t *read_rest(int fd, const uint8_t *head, size_t head_len, size_t size)
{
    uint8_t *data = malloc(size ? size : 1);

    if (!data)
        return NULL;
    memcpy(data, head, head_len);
    if (nk_fd_io_read(fd, data + head_len, size - head_len) == (ssize_t)(size - head_len))
        return data;
    free(data);
    return NULL;
}

static void take(struct nk_images *images, const struct nk_snapshot *snapshot,
                 const struct nk_change *c, uint64_t max_bytes)
{
    uint8_t head[NK_IMAGES_HEAD];
    struct stat st;
    nk_auto_fd int fd = open_file(snapshot, c, &st);
    ssize_t len = fd < 0 ? -1 : nk_fd_io_read(fd, head, sizeof head);
    const char *mime = len > 0 ? nk_images_type(head, (size_t)len) : NULL;
    struct nk_image *image = mime ? reserve(images) : NULL;

    if (!image)
        return;
    *image = (struct nk_image){.change = c, .mime = mime, .size = (uint64_t)st.st_size};
    if (images->count++ >= NK_IMAGES_MAX || image->size > max_bytes - images->bytes ||
        st.st_size < len)
        return;
    image->data = read_rest(fd, head, (size_t)len, (size_t)st.st_size);
    if (image->data)
        images->bytes += (size_t)st.st_size;
}

static bool lies_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    while (len > 0 && dir[len - 1] == '/')
        len--;
    return strncmp(path, dir, len) == 0 && path[len] == '/';
}

int nk_images_collect(struct nk_images *images, const struct nk_snapshot *snapshot, const char *dir,
                      uint64_t max_bytes, uint64_t until_ns)
{
    const struct nk_change *list;
    size_t count = nk_snapshot_changes(snapshot, &list);

    while (images->next < count) {
        const struct nk_change *c = &list[images->next++];

        if (!lies_in(c->path, dir))
            continue;
        take(images, snapshot, c, max_bytes);
        if (nk_clock_mono_ns() >= until_ns)
            return 1;
    }
    return 0;
}

void nk_images_drop_data(struct nk_images *images)
{
    for (size_t i = 0; i < images->count; i++) {
        free(images->item[i].data);
        images->item[i].data = NULL;
    }
    images->bytes = 0;
}

void nk_images_fini(struct nk_images *images)
{
    nk_images_drop_data(images);
    free(images->item);
    *images = (struct nk_images){0};
}
