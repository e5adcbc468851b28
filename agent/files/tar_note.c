#include "files/tar_note.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

size_t nk_tar_note_begin(struct nk_buf *out)
{
    size_t begun = nk_buf_left(out);

    nk_buf_add(out, "00000000", NK_TAR_NOTE_HEAD);
    return begun;
}

void nk_tar_note_add(struct nk_buf *out, const char *key, const char *value)
{
    nk_buf_add_str(out, key);
    nk_buf_add_char(out, '=');
    nk_buf_add(out, value, strlen(value) + 1);
}

void nk_tar_note_add_u64(struct nk_buf *out, const char *key, uint64_t value)
{
    nk_buf_add_str(out, key);
    nk_buf_add_char(out, '=');
    nk_buf_add_u64(out, value);
    nk_buf_add_char(out, '\0');
}

void nk_tar_note_end(struct nk_buf *out, size_t begun)
{
    char head[NK_TAR_NOTE_HEAD + 1];

    if (out->failed)
        return;
    (void)snprintf(head, sizeof head, "%08zx", nk_buf_left(out) - begun - NK_TAR_NOTE_HEAD);
    memcpy(out->data + out->off + begun, head, NK_TAR_NOTE_HEAD);
}

long nk_tar_note_length(const char head[NK_TAR_NOTE_HEAD])
{
    static const char digits[] = "0123456789abcdef";
    long len = 0;

    for (int i = 0; i < NK_TAR_NOTE_HEAD; i++) {
        const char *digit = head[i] ? strchr(digits, head[i]) : NULL;

        if (!digit)
            return -EBADMSG;
        len = len * 16 + (digit - digits);
    }
    return len <= (long)NK_TAR_NOTE_MAX ? len : -EBADMSG;
}

int nk_tar_note_find(const struct nk_buf *in, const char **out_text, size_t *out_len)
{
    const char *at = (const char *)nk_buf_front(in);
    size_t left = nk_buf_left(in);
    long len;

    if (left < NK_TAR_NOTE_HEAD)
        return 0;
    len = nk_tar_note_length(at);
    if (len < 0)
        return -EBADMSG;
    if (left < NK_TAR_NOTE_HEAD + (size_t)len)
        return 0;
    at += NK_TAR_NOTE_HEAD;
    if (len > 0 && at[len - 1] != '\0')
        return -EBADMSG;
    *out_text = at;
    *out_len = (size_t)len;
    return 1;
}

bool nk_tar_note_next(const char **at, const char *end, struct nk_tar_pair *out)
{
    size_t len, key_len;

    if (*at >= end)
        return false;
    len = strnlen(*at, (size_t)(end - *at));
    key_len = strcspn(*at, "=");
    out->key = *at;
    out->key_len = key_len;
    out->value = key_len < len ? *at + key_len + 1 : *at + len;
    *at += len + 1;
    return true;
}

bool nk_tar_note_is(const struct nk_tar_pair *pair, const char *key)
{
    return strlen(key) == pair->key_len && memcmp(pair->key, key, pair->key_len) == 0;
}

uint64_t nk_tar_note_u64(const struct nk_tar_pair *pair)
{
    uint64_t v = 0;

    for (const char *p = pair->value; *p; p++) {
        if (*p < '0' || *p > '9' || v > (UINT64_MAX - 9) / 10)
            return 0;
        v = v * 10 + (uint64_t)(*p - '0');
    }
    return v;
}
