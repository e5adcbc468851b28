/*
 * What an interpreter says over its channel: one line of JSON, read strictly.
 *
 * The interpreter runs code of strangers, who can write to its descriptors: nothing it says is
 * believed further than that it is one of these shapes and of bounded size. Pure.
 */
#ifndef NK_CODE_EVENT_H
#define NK_CODE_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

#define NK_EVENT_MAX (8u * 1024u * 1024u) /* of one line */
#define NK_EVENT_MIMES 32
#define NK_EVENT_ERROR_MAX (64u * 1024u) /* bytes of its three texts */
#define NK_EVENT_MIME_MAX 128

enum nk_event_kind {
    NK_EVENT_READY,   /* code may come */
    NK_EVENT_DISPLAY, /* a value to be shown */
    NK_EVENT_DONE,    /* the code is over */
};

struct nk_event {
    enum nk_event_kind kind;
    struct nk_json *root;        /* owned */
    uint64_t run;                /* of DONE: which */
    unsigned status;             /* of DONE: 0 to 255 */
    const struct nk_json *data;  /* {mime: value}: of DISPLAY, of DONE the result, or NULL */
    const struct nk_json *error; /* of DONE: {name, value, traceback}, or NULL */
};

/* 0, or -1 with err; after 0 nk_event_fini. */
int nk_event_read(const void *line, size_t len, struct nk_event *out, struct nk_err *err);
void nk_event_fini(struct nk_event *e);

#endif
