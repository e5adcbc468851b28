/* rooms: cli http base */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/event_text.h"
#include "cli/sse_read.h"

#define EVENT_MAX 1024

/* What the events of a stream hold, one after another, and whether it was refused. */
static int feed(const uint8_t *data, size_t size, size_t step, struct nk_buf *out)
{
    struct nk_sse_read r;
    struct nk_sse_event e;
    int rc = 0;

    nk_sse_read_init(&r, EVENT_MAX);
    for (size_t at = 0; at < size && rc == 0; at += step) {
        nk_buf_add(&r.in, data + at, at + step < size ? step : size - at);
        while ((rc = nk_sse_read_next(&r, &e, NULL)) == 1) {
            nk_buf_add(out, e.data, e.len + 1);
            (void)nk_event_text_decode(e.data, e.len, out);
        }
    }
    nk_sse_read_fini(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_buf one = {0}, whole = {0};
    int by_byte = feed(data, size, 1, &one);
    int at_once = feed(data, size, size > 0 ? size : 1, &whole);

    /* An event's size is judged when its bytes have come, so only short streams must agree. */
    if (size < EVENT_MAX && (by_byte != at_once || nk_buf_left(&one) != nk_buf_left(&whole)))
        abort();
    nk_buf_fini(&one);
    nk_buf_fini(&whole);
    return 0;
}
