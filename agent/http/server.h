/*
 * The endpoint: listeners, and the connections they accept.
 *
 * A connection is our own non-blocking socket under uv_poll. One request at a time is worked on;
 * pipelined ones wait in the kernel. Loop thread only. Owned by app.
 *
 * Bounds: connections in all (`conns_max`, with `conns_reserved` more that are only accepted to be
 * answered: health, else 503), bytes and deadlines as in nk_http_limits.
 */
#ifndef NK_HTTP_SERVER_H
#define NK_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "http/router.h"

struct nk_server;
struct nk_jobs;

struct nk_http_limits {
    size_t header_max;       /* bytes of request line and headers */
    size_t header_lines_max; /* header fields */
    size_t url_max;          /* bytes of the request target */
    size_t chunk_line_max;   /* a chunk-size line with its extensions */
    uint64_t json_max;       /* a JSON body */
    uint64_t upload_max;     /* a streamed body; 0: none */
    unsigned conns_max;
    unsigned conns_reserved;
    unsigned header_ms;      /* from the first byte of a request to the end of its headers */
    unsigned idle_ms;        /* between requests */
    unsigned body_grace_ms;  /* then a body must come at body_min_rate */
    unsigned body_min_rate;  /* bytes a second */
    unsigned write_stall_ms; /* no byte taken by the client for so long: cut */
    unsigned local_stall_ms; /* the same of the Unix socket, where somebody may read page by page */
};

struct nk_http_stats {
    uint64_t accepted;
    uint64_t refused; /* over conns_max */
    uint64_t requests;
    uint64_t bytes_in;
    uint64_t bytes_out;
    unsigned open;
    unsigned busy; /* working on a request */
};

/* The layer above. `gate` runs when the headers are complete, before any of the body (and before
 * 100-continue): 0, -1 with err, or NK_GATE_LATER: nk_req_admit follows, not from within. It also
 * runs where no row was found (nk_req_route is NULL), so that a stranger learns nothing of the
 * table; the server then answers 404 or 405. `problem` answers a request from an error, by one
 * nk_reply_… call. `finished` is told of every answer, for metrics and the log. */
#define NK_GATE_LATER 1

struct nk_http_hooks {
    int (*gate)(struct nk_req *req, struct nk_err *err);
    void (*problem)(struct nk_req *req, const struct nk_err *err);
    void (*finished)(struct nk_req *req, int status, bool gone);
    void *app; /* borrowed: outlives the server */
};

struct nk_server_config {
    const struct nk_route *routes; /* borrowed: static */
    size_t route_count;
    struct nk_http_hooks hooks;
    struct nk_http_limits limits;
    const char *instance; /* borrowed: X-Nook-Instance */
    struct nk_jobs *jobs; /* borrowed: outlives the server */
};

int nk_server_open(uv_loop_t *loop, const struct nk_server_config *cfg, struct nk_server **out);

/* Numeric address and port ("127.0.0.1:8099", "[::1]:0"). *out_port: the one bound. */
int nk_server_listen_tcp(struct nk_server *s, const char *addr, unsigned *out_port,
                         struct nk_err *err);
/* The socket's folder must be ours, 0700. A stale socket (nobody answers) is replaced. */
int nk_server_listen_unix(struct nk_server *s, const char *path, struct nk_err *err);
int nk_server_listen_vsock(struct nk_server *s, unsigned port, struct nk_err *err);

/* Whether one of its listeners has this TCP port, on whatever address. */
bool nk_server_has_port(const struct nk_server *s, unsigned port);

/* Stops accepting; idle connections close, running requests finish (`Connection: close`). `drained`
 * is called once when none is left. */
void nk_server_drain(struct nk_server *s, void (*drained)(void *ctx), void *ctx);
/* Cuts what is left. The socket file is removed. Memory goes when all handles are closed. */
void nk_server_close(struct nk_server **slot);

const struct nk_http_stats *nk_server_stats(const struct nk_server *s);

#endif
