#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "http/inside.h"
#include "http/proxy_head.h"
#include "http/proxy_private.h"
#include "http/ws_accept.h"

#define READ_SIZE 65536u

enum reading { READ_SOME, READ_NOTHING, READ_END, READ_BROKEN };

static enum reading read_more(struct nk_proxy *p, struct nk_buf *into, size_t most)
{
    uint8_t *room = nk_buf_reserve(into, most);
    ssize_t n = room ? nk_upstream_read(p->upstream, room, most) : -ENOMEM;

    if (n == -EAGAIN)
        return READ_NOTHING;
    if (n <= 0)
        return n == 0 ? READ_END : READ_BROKEN;
    p->moved_ms = nk_proxy_now(p);
    nk_buf_commit(into, (size_t)n);
    return READ_SOME;
}

/* One read of the body, to where it goes or to where it is taken apart. */
static enum reading read_body(struct nk_proxy *p, struct nk_buf *out, size_t room)
{
    size_t direct = nk_response_direct(&p->answer);
    size_t before = nk_buf_left(out);
    enum reading got;

    if (nk_buf_left(&p->in) > 0)
        return READ_SOME;
    if (direct == 0)
        return read_more(p, &p->in, READ_SIZE);
    got = read_more(p, out, direct < room ? direct : room);
    nk_response_took(&p->answer, nk_buf_left(out) - before);
    return got;
}

/* What came before it goes out first. */
static enum nk_pull break_off(struct nk_proxy *p)
{
    p->broken = true;
    return NK_PULL_MORE;
}

enum nk_pull nk_proxy_answer_pull(struct nk_source *source, struct nk_buf *out, size_t room)
{
    struct nk_proxy *p = NK_CONTAINER_OF(source, struct nk_proxy, source);
    size_t before = nk_buf_left(out);

    if (p->broken)
        return NK_PULL_FAIL;
    while (!p->answer.done && nk_buf_left(out) == before) {
        enum reading got = read_body(p, out, room);

        if (got == READ_NOTHING)
            return NK_PULL_WAIT;
        /* After a reset nothing shows that all came. */
        if (got == READ_BROKEN)
            return break_off(p);
        if (got == READ_END)
            return nk_response_end(&p->answer, NULL) == 0 ? NK_PULL_END : break_off(p);
        if (nk_response_read_body(&p->answer, &p->in, out, NULL) < 0)
            return break_off(p);
    }
    if (nk_buf_left(&p->in) == 0)
        nk_buf_fini(&p->in);
    return p->answer.done ? NK_PULL_END : NK_PULL_MORE;
}

/* Only what this key asked for opens a tunnel: anything else is an answer like another. */
static int check_upgrade(const struct nk_proxy *p, struct nk_err *err)
{
    const char *accept = nk_response_header(&p->answer, "Sec-WebSocket-Accept");
    char want[NK_WS_ACCEPT_ROOM];

    if (!p->upgrade)
        return nk_fail(err, NK_BAD_GATEWAY, "the server switched protocols unasked");
    nk_ws_accept_key(nk_req_header(p->req, "Sec-WebSocket-Key"), want);
    if (!accept || strcmp(accept, want) != 0 ||
        !nk_head_has_token(nk_response_header(&p->answer, "Upgrade"), "websocket"))
        return nk_fail(err, NK_BAD_GATEWAY, "the server's upgrade is not WebSocket's");
    return 0;
}

static void answer(struct nk_proxy *p, const struct nk_buf *lines)
{
    const struct nk_upgrade up = {.on_data = nk_proxy_body_on_data, .src = &p->source};

    p->answered = true;
    p->tunnel = p->answer.status == 101;
    nk_reply_lines(p->req, lines);
    if (p->tunnel)
        nk_reply_upgrade(p->req, &up);
    else
        nk_reply_stream(p->req, p->answer.status, NULL, &p->source, p->answer.length);
    nk_proxy_schedule(p);
}

/* A head is there: an interim one, or the answer's. */
static int take_head(struct nk_proxy *p, struct nk_err *err)
{
    struct nk_buf lines = {0};
    int status = p->answer.status;

    if (status == 101 && check_upgrade(p, err) < 0)
        return -1;
    nk_proxy_head_answer(&lines, &p->answer, nk_req_header(p->req, "Origin") != NULL);
    if (lines.failed) {
        nk_buf_fini(&lines);
        return nk_proxy_no_memory(err);
    }
    if (status == 101 || status >= 200)
        answer(p, &lines);
    else if (status != 100) /* that one is said by us, to the one who asked for it */
        nk_reply_interim(p->req, status, &lines);
    nk_buf_fini(&lines);
    return 0;
}

int nk_proxy_answer_read(struct nk_proxy *p, struct nk_err *err)
{
    bool done = false;
    enum reading got = READ_SOME;

    while (got == READ_SOME && !p->answered) {
        if (nk_response_read_head(&p->answer, &p->in, &done, err) < 0)
            return -1;
        if (done) {
            if (take_head(p, err) < 0)
                return -1;
            continue;
        }
        got = read_more(p, &p->in, NK_RESPONSE_HEAD_MAX);
    }
    return got == READ_END || got == READ_BROKEN ? nk_response_end(&p->answer, err) : 0;
}
