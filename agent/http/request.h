/*
 * One request, as a handler sees it: read it here, answer it with http/reply.h.
 *
 * Made by the connection when the first byte of a request arrives, gone when its reply is complete
 * or its client left; the connection owns it. Every string lives in the request's arena and dies
 * with it. Loop thread only. Knows nothing of what the daemon does.
 *
 * A handler that replies later registers nk_req_on_close first: that callback runs exactly once, when
 * the reply is complete or the client is gone, and is the only place that lets go of the work.
 * It is never called before the handler has returned.
 */
#ifndef NK_HTTP_REQUEST_H
#define NK_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "http/router.h"

struct nk_arena;
struct nk_json;
struct nk_req;

void *nk_req_app(const struct nk_req *req);                    /* what the server was given */
const struct nk_route *nk_req_route(const struct nk_req *req); /* NULL where none was found */
enum nk_method nk_req_method(const struct nk_req *req);
const char *nk_req_path(const struct nk_req *req);    /* as sent, without the query */
const char *nk_req_id(const struct nk_req *req);      /* the X-Request-Id of the answer */
uint64_t nk_req_started_ms(const struct nk_req *req); /* monotonic */
struct nk_arena *nk_req_arena(struct nk_req *req);
bool nk_req_is_local(const struct nk_req *req); /* came over the Unix socket */

/* Decoded; NULL where absent. A parameter or header that must not repeat is refused before. */
const char *nk_req_param(const struct nk_req *req, const char *name);
const char *nk_req_query(const struct nk_req *req, const char *name);
/* The `nth` (from 0) of a parameter that may come again, or NULL. */
const char *nk_req_query_nth(const struct nk_req *req, const char *name, size_t nth);
size_t nk_req_query_len(const struct nk_req *req, const char *name); /* bytes may be any but NUL */
int nk_req_query_bool(const struct nk_req *req, const char *name, bool *out, struct nk_err *err);
int nk_req_query_u64(const struct nk_req *req, const char *name, uint64_t max, uint64_t *out,
                     struct nk_err *err);
const char *nk_req_header(const struct nk_req *req, const char *name); /* first; any case */
unsigned nk_req_header_count(const struct nk_req *req, const char *name);

/* The whole body, for rows with NK_BODY_JSON, _JSON_OPT, _EXEC; an empty one is {} where allowed. */
const struct nk_json *nk_req_json(const struct nk_req *req); /* NULL: not JSON (multipart) */
const void *nk_req_body(const struct nk_req *req, size_t *out_len);

/* A body as a stream. Called by the handler; the callbacks come after it has returned. */
struct nk_body_sink {
    /* Bytes, borrowed for the call. 0, or -1 with err: the request is answered from it. */
    int (*on_data)(struct nk_req *req, const void *data, size_t len, struct nk_err *err);
    /* The body is complete; reply now or later. 0, or -1 with err. */
    int (*on_end)(struct nk_req *req, struct nk_err *err);
    /* NULL, or: much of the body is to come, and some can be read from `socket` (borrowed for the
     * call). True: the sink reads some itself, `max` at most, and says nk_req_body_read; until then
     * nobody else reads. False: nothing was changed, it comes to on_data. */
    bool (*on_readable)(struct nk_req *req, int socket, uint64_t max);
    /* NULL, or the same for a sink that moves bytes at once: how many it took; 0: nothing was
     * changed; -EAGAIN: it had no room, and has paused the body. */
    ssize_t (*on_take)(struct nk_req *req, int socket, uint64_t max);
};
/* What the sink read after on_readable. Of 0 bytes, on_data and the end of the client tell why. */
void nk_req_body_read(struct nk_req *req, uint64_t n);
int64_t nk_req_content_length(const struct nk_req *req); /* -1: chunked, or none */
void nk_req_set_body_sink(struct nk_req *req, const struct nk_body_sink *sink /* static */);
void nk_req_pause_body(struct nk_req *req, bool pause); /* back-pressure: stop or go on reading */

/* Slots for the layers above; never read here. */
void nk_req_set_ctx(struct nk_req *req, void *ctx); /* the handler's own state */
void *nk_req_ctx(const struct nk_req *req);
void nk_req_set_counted(struct nk_req *req); /* a mark, as what is undone in `finished` */
bool nk_req_is_counted(const struct nk_req *req);
void nk_req_set_identity(struct nk_req *req, void *identity);
void *nk_req_identity(const struct nk_req *req);

/* `gone`: the client left before the reply was complete. */
typedef void (*nk_req_close_fn)(struct nk_req *req, void *ctx, bool gone);
void nk_req_on_close(struct nk_req *req, nk_req_close_fn fn, void *ctx);

/* After NK_GATE_LATER: it goes on, or is refused. Until then nk_req_on_close tells of a client that
 * left; a handler may take that over. */
void nk_req_admit(struct nk_req *req, const struct nk_err *refused /* NULL: it goes on */);

/* An error that comes up after the handler returned, before anything was sent. */
void nk_req_fail(struct nk_req *req, const struct nk_err *err);

#endif
