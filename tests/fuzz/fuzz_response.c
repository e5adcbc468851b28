/* rooms: http base */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/response.h"

/* One answer fed in pieces of `step`: 0 when it was complete, -1 when it was refused or broken. */
static int feed(const uint8_t *data, size_t size, size_t step, struct nk_buf *body)
{
    struct nk_response r = {0};
    struct nk_buf in = {0};
    bool head = false;
    int rc = 0;

    for (size_t at = 0; at < size && rc == 0; at += step) {
        nk_buf_add(&in, data + at, at + step < size ? step : size - at);
        if (!head)
            rc = nk_response_read_head(&r, &in, &head, NULL);
        if (rc == 0 && head)
            rc = nk_response_read_body(&r, &in, body, NULL);
    }
    if (rc == 0)
        rc = nk_response_end(&r, NULL);
    nk_buf_fini(&in);
    nk_response_fini(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_buf one = {0}, whole = {0};
    int by_byte = feed(data, size, 1, &one);
    int at_once = feed(data, size, size > 0 ? size : 1, &whole);

    if (by_byte != at_once || (at_once == 0 && nk_buf_left(&one) != nk_buf_left(&whole)))
        abort();
    nk_buf_fini(&one);
    nk_buf_fini(&whole);
    return 0;
}
