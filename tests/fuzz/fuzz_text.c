/* rooms: base */
/*
 * Bytes as text: repaired, escaped, encoded and logged, they must come out valid and whole.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/log_line.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void repair(const uint8_t *data, size_t size)
{
    struct nk_buf out = {0};
    bool repaired = nk_utf8_repair(&out, data, size);

    must(repaired == !nk_utf8_valid(data, size));
    must(nk_utf8_valid(nk_buf_front(&out), nk_buf_left(&out)));
    must(nk_utf8_partial_tail(data, size) <= 3);
    if (!repaired && size > 0)
        must(nk_buf_left(&out) == size && memcmp(nk_buf_front(&out), data, size) == 0);
    nk_buf_fini(&out);
}

static void encode(const uint8_t *data, size_t size)
{
    struct nk_buf out = {0}, again = {0};
    uint8_t *back = malloc(size + 3);
    size_t len;

    must(back != NULL);
    nk_base64_encode(&out, data, size);
    must(nk_base64_decode((const char *)nk_buf_front(&out), nk_buf_left(&out), back, &len) == 0);
    must(len == size && (size == 0 || memcmp(back, data, size) == 0));
    if (size > 0 && nk_base64_decode((const char *)data, size, back, &len) == 0) {
        nk_base64_encode(&again, back, len);
        must(nk_buf_left(&again) == size && memcmp(nk_buf_front(&again), data, size) == 0);
    }
    nk_buf_fini(&out);
    nk_buf_fini(&again);
    free(back);
}

static void write_json(const uint8_t *data, size_t size)
{
    struct nk_buf buf = {0};
    struct nk_json_out out = {.buf = &buf};
    struct nk_json *root;
    struct nk_err err;

    nk_json_out_open(&out, NULL, '{');
    nk_json_out_bytes(&out, "x", data, size);
    nk_json_out_close(&out, '}');
    if (nk_json_parse(nk_buf_front(&buf), nk_buf_left(&buf), &root, &err) == 0) {
        must((nk_json_get(root, "x_base64") != NULL) == !nk_utf8_valid(data, size));
        nk_json_free(root);
    } else {
        must(memchr(data, 0, size) != NULL); /* a zero byte is written, and not read */
    }
    nk_buf_fini(&buf);
}

static void log_it(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct nk_log_field field = {.key = "k", .str = text};
    struct nk_log_line line;
    struct nk_json *root;
    struct nk_err err;

    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    nk_log_line_begin(&line, true, NK_LOG_INFO, 0);
    nk_log_line_head(&line, "e", text);
    nk_log_line_field(&line, &field);
    nk_log_line_end(&line, size);
    must(nk_json_parse(line.text, line.len, &root, &err) == 0);
    nk_json_free(root);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    repair(data, size);
    encode(data, size);
    write_json(data, size);
    log_it(data, size);
    return 0;
}
