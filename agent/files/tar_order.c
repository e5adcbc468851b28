#include "files/tar_order.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd_io.h"
#include "files/tar_note.h"

static void write_list(struct nk_buf *out, const char *key, const char *const *list)
{
    for (; list && *list; list++)
        nk_tar_note_add(out, key, *list);
}

static void write_order(const struct nk_tar_order *order, struct nk_buf *out)
{
    size_t begun = nk_tar_note_begin(out);

    nk_tar_note_add(out, "do", order->pack ? "pack" : "unpack");
    write_list(out, "writable", order->writable);
    write_list(out, "readable", order->readable);
    write_list(out, "path", order->paths);
    if (order->base)
        nk_tar_note_add(out, "base", order->base);
    nk_tar_note_add_u64(out, "format", (uint64_t)order->format);
    nk_tar_note_add_u64(out, "openat2", order->openat2);
    nk_tar_note_add_u64(out, "skip_links", order->skip_links);
    nk_tar_note_add_u64(out, "strict", order->strict);
    if (order->room) {
        nk_tar_note_add_u64(out, "room_bytes", order->room->bytes);
        nk_tar_note_add_u64(out, "room_files", order->room->files);
    }
    nk_tar_note_end(out, begun);
}

int nk_tar_order_send(int fd, const struct nk_tar_order *order)
{
    struct nk_buf text = {0};
    ssize_t n = -1;
    size_t len;

    write_order(order, &text);
    len = nk_buf_left(&text);
    if (!text.failed)
        n = write(fd, nk_buf_front(&text), len);
    nk_buf_fini(&text);
    return n == (ssize_t)len ? 0 : -ENOMEM;
}

/* One allocation for the three lists: none has more items than there are pairs. */
static int make_lists(struct nk_tar_order *o, const char *end, size_t *out_count)
{
    const char *at = o->text;
    struct nk_tar_pair pair;
    size_t count = 1;

    while (nk_tar_note_next(&at, end, &pair))
        count++;
    o->lists = calloc(count * 3, sizeof *o->lists);
    if (!o->lists)
        return -1;
    o->writable = o->lists;
    o->readable = o->lists + count;
    o->paths = o->lists + count * 2;
    *out_count = count;
    return 0;
}

struct ends { /* of the lists, while they are filled */
    const char **writable, **readable, **paths;
};

static void take_room(struct nk_tar_order *o, const struct nk_tar_pair *pair)
{
    if (nk_tar_note_is(pair, "room_bytes"))
        o->room_read.bytes = nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "room_files"))
        o->room_read.files = nk_tar_note_u64(pair);
    else
        return;
    o->bounded = true;
}

static void take_pair(struct nk_tar_order *o, struct ends *ends, const struct nk_tar_pair *pair)
{
    if (nk_tar_note_is(pair, "do"))
        o->pack = pair->value[0] == 'p';
    else if (nk_tar_note_is(pair, "writable"))
        *ends->writable++ = pair->value;
    else if (nk_tar_note_is(pair, "readable"))
        *ends->readable++ = pair->value;
    else if (nk_tar_note_is(pair, "path"))
        *ends->paths++ = pair->value;
    else if (nk_tar_note_is(pair, "base"))
        o->base = pair->value;
    else if (nk_tar_note_is(pair, "format"))
        o->format = (enum nk_tar_format)nk_tar_note_u64(pair);
    else if (nk_tar_note_is(pair, "openat2"))
        o->openat2 = nk_tar_note_u64(pair) != 0;
    else if (nk_tar_note_is(pair, "skip_links"))
        o->skip_links = nk_tar_note_u64(pair) != 0;
    else if (nk_tar_note_is(pair, "strict"))
        o->strict = nk_tar_note_u64(pair) != 0;
    else
        take_room(o, pair);
}

static int read_text(int fd, struct nk_tar_order *o, size_t *out_len)
{
    char head[NK_TAR_NOTE_HEAD];
    long len;

    if (nk_fd_io_read(fd, head, sizeof head) != (ssize_t)sizeof head)
        return -1;
    len = nk_tar_note_length(head);
    if (len <= 0)
        return -1;
    o->text = malloc((size_t)len);
    if (!o->text || nk_fd_io_read(fd, o->text, (size_t)len) != len || o->text[len - 1] != '\0')
        return -1;
    *out_len = (size_t)len;
    return 0;
}

int nk_tar_order_read(int fd, struct nk_tar_order *out, struct nk_err *err)
{
    struct nk_tar_order o = {0};
    struct nk_tar_pair pair;
    struct ends ends;
    const char *at;
    size_t len, count;

    if (read_text(fd, &o, &len) < 0 || make_lists(&o, o.text + len, &count) < 0) {
        nk_tar_order_fini(&o);
        return nk_fail(err, NK_INTERNAL, "the archive worker got no order");
    }
    ends = (struct ends){o.lists, o.lists + count, o.lists + count * 2};
    for (at = o.text; nk_tar_note_next(&at, o.text + len, &pair);)
        take_pair(&o, &ends, &pair);
    if (!o.writable[0] || !o.paths[0]) {
        nk_tar_order_fini(&o);
        return nk_fail(err, NK_INTERNAL, "the archive worker got half an order");
    }
    *out = o;
    return 0;
}

void nk_tar_order_fini(struct nk_tar_order *order)
{
    free(order->text);
    free(order->lists);
    *order = (struct nk_tar_order){0};
}
