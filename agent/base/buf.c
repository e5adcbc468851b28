#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP_MIN 256

void nk_buf_fini(struct nk_buf *b)
{
    free(b->data);
    *b = (struct nk_buf){.max = b->max};
}

static void move_to_front(struct nk_buf *b)
{
    size_t left = nk_buf_left(b);

    if (left > 0)
        memmove(b->data, b->data + b->off, left);
    b->off = 0;
    b->len = left;
}

/* Copies only what is still wanted; realloc would carry the consumed front along. */
static uint8_t *resize(const struct nk_buf *b, size_t cap)
{
    uint8_t *data;

    if (!b->data || b->off == 0)
        return realloc(b->data, cap);
    data = malloc(cap);
    if (!data)
        return NULL;
    memcpy(data, b->data + b->off, nk_buf_left(b));
    free(b->data);
    return data;
}

static bool grow(struct nk_buf *b, size_t need)
{
    size_t left = nk_buf_left(b);
    size_t cap = b->cap < CAP_MIN / 2 ? CAP_MIN : b->cap * 2;
    uint8_t *data;

    if (cap < need || cap < b->cap)
        cap = need;
    if (b->max && cap > b->max)
        cap = b->max;
    data = resize(b, cap);
    if (!data)
        return false;
    b->data = data;
    b->cap = cap;
    b->off = 0;
    b->len = left;
    return true;
}

uint8_t *nk_buf_reserve(struct nk_buf *b, size_t n)
{
    size_t left = nk_buf_left(b);

    if (b->failed)
        return NULL;
    if (b->data && n <= b->cap - b->len)
        return b->data + b->len;
    if (n > SIZE_MAX - left || (b->max && left + n > b->max)) {
        b->failed = true;
        return NULL;
    }
    /* Moving is worth it only when it frees as much as it copies, or when growing is not allowed. */
    if (b->data && left + n <= b->cap && (b->off >= left || (b->max && b->cap >= b->max)))
        move_to_front(b);
    else if (!grow(b, left + n))
        b->failed = true;
    return b->failed ? NULL : b->data + b->len;
}

void nk_buf_commit(struct nk_buf *b, size_t n)
{
    b->len += n;
}

void nk_buf_add(struct nk_buf *b, const void *data, size_t n)
{
    uint8_t *to;

    if (n == 0)
        return;
    to = nk_buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, data, n);
    b->len += n;
}

void nk_buf_add_char(struct nk_buf *b, char c)
{
    nk_buf_add(b, &c, 1);
}

void nk_buf_add_str(struct nk_buf *b, const char *s)
{
    nk_buf_add(b, s, strlen(s));
}

void nk_buf_add_u64(struct nk_buf *b, uint64_t v)
{
    char text[20];
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    nk_buf_add(b, text + at, sizeof text - at);
}

void nk_buf_add_fmt(struct nk_buf *b, const char *fmt, ...)
{
    va_list args, again;
    char small[128];
    uint8_t *to;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(small, sizeof small, fmt, args);
    if (n < 0)
        b->failed = true;
    else if ((size_t)n < sizeof small)
        nk_buf_add(b, small, (size_t)n);
    else if ((to = nk_buf_reserve(b, (size_t)n + 1)))
        b->len += (size_t)vsnprintf((char *)to, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
}

void nk_buf_consume(struct nk_buf *b, size_t n)
{
    b->off += n;
    if (b->off < b->len)
        return;
    b->off = 0;
    b->len = 0;
}
