/* rooms: http base */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/proxy_head.h"
#include "http/response.h"

/* What is passed on of a head is whole lines, whatever the server wrote. */
static void check_lines(const struct nk_response *r)
{
    struct nk_buf out = {0};
    size_t lines = 0;

    nk_proxy_head_answer(&out, r, true);
    nk_buf_add_char(&out, '\0');
    if (out.failed)
        abort();
    for (const char *at = (const char *)nk_buf_front(&out); *at != '\0'; lines++) {
        const char *end = strstr(at, "\r\n");

        if (!end || !memmem(at, (size_t)(end - at), ": ", 2) || at + strcspn(at, "\r\n") != end)
            abort();
        at = end + 2;
    }
    if (lines > r->line_count)
        abort();
    nk_buf_fini(&out);
}

/* As a proxy reads it: interim answers one by one, and plain bodies without a detour. */
static int pass_on(const uint8_t *data, size_t size, struct nk_buf *body)
{
    struct nk_response r = {.with_interim = true};
    struct nk_buf in = {0};
    bool head = false;
    int rc = 0;

    nk_buf_add(&in, data, size);
    do {
        rc = nk_response_read_head(&r, &in, &head, NULL);
        if (rc == 0 && head)
            check_lines(&r);
    } while (rc == 0 && head && r.status < 200 && r.status != 101);
    if (rc == 0 && head) {
        size_t direct = nk_response_direct(&r);

        if (direct > nk_buf_left(&in))
            direct = nk_buf_left(&in);
        nk_buf_add(body, nk_buf_front(&in), direct);
        nk_buf_consume(&in, direct);
        nk_response_took(&r, direct);
        rc = nk_response_read_body(&r, &in, body, NULL);
    }
    if (rc == 0)
        rc = nk_response_end(&r, NULL);
    nk_buf_fini(&in);
    nk_response_fini(&r);
    return rc;
}

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
    struct nk_buf one = {0}, whole = {0}, passed = {0};
    int by_byte = feed(data, size, 1, &one);
    int at_once = feed(data, size, size > 0 ? size : 1, &whole);

    if (by_byte != at_once || (at_once == 0 && nk_buf_left(&one) != nk_buf_left(&whole)))
        abort();
    if (pass_on(data, size, &passed) != at_once ||
        (at_once == 0 && nk_buf_left(&passed) != nk_buf_left(&whole)))
        abort();
    nk_buf_fini(&one);
    nk_buf_fini(&whole);
    nk_buf_fini(&passed);
    return 0;
}
