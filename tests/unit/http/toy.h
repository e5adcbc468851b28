/*
 * A toy server for the tests of the room: a route table, hooks, and a client on a socket pair.
 *
 * Loop and client run in one thread: the client is non-blocking, and the loop is turned until what it
 * waits for has come, or the deadline.
 */
#ifndef NK_TEST_HTTP_TOY_H
#define NK_TEST_HTTP_TOY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include <cmocka.h>

#include "base/job.h"
#include "http/conn.h"
#include "http/inside.h"

#define TOY_WAIT_MS 10000

struct toy_source {
    struct nk_source src;
    struct nk_req *req;
    size_t left;      /* bytes still to be given; SIZE_MAX: for ever */
    size_t pulled;    /* bytes given */
    bool dry;         /* has nothing just now */
    enum nk_pull end; /* what follows the last byte */
};

struct toy {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late;
    struct nk_jobs *jobs;
    struct nk_server *server;
    struct nk_server_config cfg;
    int fd; /* the client's end */

    struct nk_req *held; /* by /later, /stream, /ws */
    struct toy_source source;
    unsigned handled, closed, gone, half, finished, ended;
    int last_status;
    size_t uploaded;
    bool pause_upload;
    bool drained;
    char got[256]; /* of /ws */
    size_t got_len;

    char *reply; /* what the client has read; NUL-ended */
    size_t reply_len;
    bool reply_over; /* the server has ended */
};

/* With small limits; a test changes t->cfg before toy_open where it needs others. */
void toy_init(struct toy *t);
void toy_open(struct toy *t);
/* Another client on a socket pair; the connection of the one before lives on. */
void toy_connect(struct toy *t);
/* All three. */
void toy_start(struct toy *t);
void toy_drop(struct toy *t);
void toy_forget(struct toy *t);
void toy_stop(struct toy *t);
/* Everything that can be done without waiting is done. */
void toy_turn(struct toy *t);
/* Between these, t->late says that the deadline has come. */
void toy_begin_wait(struct toy *t);
void toy_end_wait(struct toy *t);
/* Turns the loop for that long. For what must not happen meanwhile. */
void toy_pass(struct toy *t, unsigned ms);
void toy_send(struct toy *t, const void *data, size_t len);
void toy_say(struct toy *t, const char *text);
/* Reads what is there. */
void toy_read(struct toy *t);
const char *toy_find(const struct toy *t, const char *text);
void toy_expect(struct toy *t, const char *text);
void toy_expect_end(struct toy *t);
void toy_wait(struct toy *t, const unsigned *counter, unsigned least);
size_t toy_count(const struct toy *t, const char *text);

#endif
