/*
 * What this room knows of its own objects: the server, a connection, a request.
 *
 * No other room includes this. A server owns its connections, a connection the one request that is
 * being worked on. Between requests a connection owns no memory but itself.
 */
#ifndef NK_HTTP_INSIDE_H
#define NK_HTTP_INSIDE_H

#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "http/parser.h"
#include "http/query.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/server.h"

#define NK_INPUT_SIZE 65536u  /* one read; also the most input that waits in a connection */
#define NK_PIECE_SIZE 65536u  /* one pull; also the most of a file that is sent from memory */
#define NK_PIECE_MAX 262144u  /* one pull for a client that takes whole pieces at once */
#define NK_DISCARD_MAX 65536u /* of an unwanted body, to keep the connection */
#define NK_CHUNK_ROOM 10u     /* "ffffffff\r\n" in front of a piece */

struct nk_sendfile;
struct nk_conn;

struct nk_server {
    uv_loop_t *loop; /* borrowed: outlives the server */
    struct nk_server_config cfg;
    struct nk_http_stats stats;
    struct nk_list conns;
    struct nk_list listeners;
    struct nk_list due; /* connections that something was done to outside their own events */
    uv_idle_t later;    /* active while `due` is not empty */
    unsigned members;   /* itself, listeners and connections that are not freed yet */
    bool draining;
    bool closing;
    bool accept_paused;
    void (*drained)(void *ctx); /* NULL once called */
    void *drained_ctx;
    uint8_t input[NK_INPUT_SIZE]; /* of the connection that is reading just now */
};

struct nk_output {
    struct nk_buf head;       /* interim answers, the head, a small body */
    struct nk_buf body;       /* a whole body, or the piece pulled last */
    struct nk_source *src;    /* borrowed until on_close; NULL: none, or it has ended */
    struct nk_sendfile *file; /* owned; NULL: none, or it has ended */
    size_t piece;             /* of the next pull; 0: NK_PIECE_SIZE */
    uint64_t taken;           /* by the client, of this answer */
    int64_t left;             /* of a declared length; -1: none was */
    size_t direct;            /* bytes, already framed, that the source is to send by itself */
    uint64_t progress_ms;     /* when the client last took a byte, or bytes began to wait */
    bool chunked;
    bool to_close; /* only the connection's end tells that of the body, as in HTTP/1.0 */
    bool waiting;  /* the source has nothing, and has not called since */
    bool woken;    /* it called while it was being asked */
    bool blocked;  /* the socket takes no more */
    bool broken;   /* the answer cannot be completed: cut */
    bool parting;  /* likewise, but what is queued says why, and goes first */
};

struct nk_req {
    struct nk_conn *conn; /* borrowed: the owner */
    struct nk_arena arena;
    struct nk_parser *parser;   /* in the arena */
    const struct nk_head *head; /* the parser's; valid once `headed` */
    struct nk_route_match match;
    const char *params[NK_ROUTER_PARAMS]; /* decoded, in the arena */
    struct nk_query query;
    const char *id; /* in the arena, or id_made */
    char id_made[NK_ID_MAX];
    uint64_t started_ms;

    struct nk_buf body;              /* owned: a JSON body as it comes */
    struct nk_json *json;            /* owned */
    const struct nk_body_sink *sink; /* static; NULL: none */
    uint64_t body_seen;
    uint64_t body_max;        /* 0: none */
    uint64_t body_started_ms; /* moved on by the time that we did not read */
    uint64_t paused_at_ms;

    void *ctx;
    void *identity;
    bool counted; /* a mark of the layer above */
    nk_req_close_fn close_fn;
    void *close_ctx;
    void (*half_close_fn)(struct nk_req *req, void *ctx);
    void *half_close_ctx;

    struct nk_buf extra; /* header lines given by nk_reply_header */
    struct nk_output out;
    const struct nk_upgrade *upgrade;
    struct nk_upgrade upgrade_copy;
    int status;

    bool headed;     /* the headers are complete */
    bool collecting; /* the body goes to `body`, the handler comes at its end */
    bool body_over;  /* nothing of it is to come, or to be read */
    bool paused;
    bool lent;    /* the sink reads the socket; paused as well */
    bool dry;     /* it got nothing: read ourselves */
    bool started; /* gate and handlers may have kept it: on_close is owed */
    bool held;    /* the gate has not judged yet: nothing of the body is read */
    bool handled; /* the handler has run */
    bool replied;
    bool in_problem;
    bool finished; /* on_close was called */
    bool half_told;
    bool expects; /* a 100 is owed */
    bool fatal;   /* what follows on the connection cannot be read */
    bool close_after;
};

struct nk_conn {
    struct nk_server *server; /* borrowed: outlives it */
    struct nk_list link;      /* in conns */
    struct nk_list due;
    struct nk_req *req; /* owned; NULL between requests */
    uv_poll_t poll;
    uv_timer_t timer;
    struct nk_parser_input in; /* read and not parsed: in `kept`, or in the server's input */
    struct nk_buf kept;        /* owned */
    uint64_t timer_ms;         /* loop time when the timer fires; 0: it is not running */
    uint64_t since_ms;         /* of the idle time, of the request's first byte, of the lingering */
    int fd;
    int mask;
    unsigned open_handles;
    bool local;
    bool reserved; /* over conns_max */
    bool eof;      /* all that the client sent has been read */
    bool half;     /* the client has shut its sending side */
    bool unwanted; /* input came that cannot be read yet: the mask has no UV_READABLE */
    bool stepping;
    bool lingering; /* answered and shut; reads until the client has seen it */
    bool doomed;    /* to be closed when the step that runs is over */
    bool closed;
};

/* For the connections and listeners of the server. */
void nk_server_wake(struct nk_server *s);    /* `due` is not empty */
void nk_server_release(struct nk_server *s); /* the last handle of one of them is closed */
void nk_server_on_conn_opened(struct nk_server *s);
void nk_server_on_conn_closed(struct nk_server *s);

#endif
