/* rooms: http base */
/*
 * multipart bodies: the parts are the same however the body is cut, and their bytes are all there.
 * The first byte says where the cuts are.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool ended(enum nk_multipart_event event)
{
    return event == NK_MULTIPART_MORE || event == NK_MULTIPART_FAIL;
}

static void note(struct nk_buf *out, const struct nk_multipart *m, enum nk_multipart_event event)
{
    if (event == NK_MULTIPART_DATA) {
        nk_buf_add(out, m->data, m->len);
        return;
    }
    nk_buf_add_char(out, (char)('0' + event));
    if (event != NK_MULTIPART_PART)
        return;
    nk_buf_add_str(out, m->name ? m->name : "-");
    nk_buf_add(out, m->filename ? m->filename : "-", m->filename ? m->filename_len : 1);
}

static void read_all(const uint8_t *data, size_t size, size_t piece, struct nk_buf *out)
{
    enum nk_multipart_event event = NK_MULTIPART_MORE;
    struct nk_multipart m;

    if (nk_multipart_init(&m, "multipart/form-data; boundary=--a", NULL) < 0)
        abort();
    for (size_t at = 0; at < size && event != NK_MULTIPART_FAIL; at += piece) {
        const uint8_t *from = data + at;
        size_t len = size - at < piece ? size - at : piece;

        do {
            event = nk_multipart_next(&m, &from, &len, NULL);
            if (event != NK_MULTIPART_MORE)
                note(out, &m, event);
        } while (!ended(event));
        if (event == NK_MULTIPART_MORE && len > 0)
            abort();
    }
    nk_multipart_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_buf whole = {0}, cut = {0};

    if (size < 2)
        return 0;
    read_all(data + 1, size - 1, size, &whole);
    read_all(data + 1, size - 1, (size_t)data[0] + 1, &cut);
    if (nk_buf_left(&whole) != nk_buf_left(&cut) ||
        (nk_buf_left(&whole) > 0 &&
         memcmp(nk_buf_front(&whole), nk_buf_front(&cut), nk_buf_left(&cut)) != 0))
        abort();
    nk_buf_fini(&whole);
    nk_buf_fini(&cut);
    return 0;
}
