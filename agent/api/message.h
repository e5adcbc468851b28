/*
 * What a client says in a session, read from one text message: strict, every field checked.
 *
 * Loop thread only; owns nothing but the bytes it hands out.
 */
#ifndef NK_API_MESSAGE_H
#define NK_API_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum nk_message_type {
    NK_MESSAGE_STDIN,
    NK_MESSAGE_CLOSE_STDIN,
    NK_MESSAGE_RESIZE,
    NK_MESSAGE_SIGNAL,
    NK_MESSAGE_KILL,
};

struct nk_message {
    enum nk_message_type type;
    struct nk_json_bytes bytes; /* of STDIN; owned by the caller */
    uint64_t offset;            /* of STDIN; NK_STDIN_NEXT: none was given */
    unsigned cols, rows;
    int signo;
};

/* 0, or -1 with NK_BAD_JSON, NK_BAD_REQUEST, NK_BAD_SIGNAL. In a text of STDIN `\u0000` is a byte
 * like any other: terminals send it. */
int nk_message_read(const void *text, size_t len, struct nk_message *out, struct nk_err *err);

/* The first message: an object whose type is `start`; owned by the caller. */
int nk_message_read_start(const void *text, size_t len, struct nk_json **out, struct nk_err *err);

#endif
