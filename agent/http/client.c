#include "http/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/secret.h"
#include "http/response.h"

#define STALL_MS 60000u /* to send the next byte, or to get the rest of a head */
#define READ_SIZE 65536
#define JOINED_MAX 65536 /* a body up to this goes out in one piece with the head */
#define KEEPALIVE_S 30   /* silence after which a TCP peer is probed; three misses end it */

struct nk_client {
    int fd;
    unsigned timeout_ms;
    bool chunked;          /* the request's body */
    bool cut;              /* the server takes no more of the request; its answer may say why */
    bool ended;            /* the server has sent its last byte */
    char host[64];         /* the Host header */
    char *token;           /* owned, or NULL */
    struct nk_buf in;      /* read and not yet taken apart */
    struct nk_response is; /* the answer */
};

union address {
    struct sockaddr any;
    struct sockaddr_un un;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* 1 when one of the events came, 0 at the deadline, -errno. `timeout_ms` 0: no deadline. */
static int wait_for(int fd, short events, unsigned timeout_ms, short *out_revents)
{
    uint64_t end = nk_clock_mono_ms() + timeout_ms;
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        uint64_t now = nk_clock_mono_ms();
        int left = now < end ? (int)(end - now) : 0;
        int n = poll(&p, 1, timeout_ms > 0 ? left : -1);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        *out_revents = p.revents;
        return n;
    }
}

static int read_port(const char *text, uint16_t *out)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long port;

    if (digits == 0 || digits > 5 || (text[digits] != '\0' && strcmp(text + digits, "/") != 0))
        return -1;
    port = strtoul(text, NULL, 10);
    if (port == 0 || port > UINT16_MAX)
        return -1;
    *out = (uint16_t)port;
    return 0;
}

/* "127.0.0.1:80", "[::1]:80", "localhost:80" */
static int read_authority(const char *text, union address *out, socklen_t *out_len)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2];
    size_t len = colon ? (size_t)(colon - text) : sizeof host;
    uint16_t port;

    if (len >= sizeof host || read_port(colon + 1, &port) < 0)
        return -1;
    memcpy(host, text, len);
    host[len] = '\0';
    if (strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    memset(out, 0, sizeof *out);
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_port = htons(port);
        *out_len = sizeof out->in6;
        return inet_pton(AF_INET6, host + 1, &out->in6.sin6_addr) == 1 ? 0 : -1;
    }
    out->in.sin_family = AF_INET;
    out->in.sin_port = htons(port);
    *out_len = sizeof out->in;
    return inet_pton(AF_INET, host, &out->in.sin_addr) == 1 ? 0 : -1;
}

/* A Unix socket's connect waits for room in the backlog itself, as long as SO_SNDTIMEO. */
static int connect_unix(struct nk_client *c, const char *path, struct nk_err *err)
{
    union address a = {.un = {.sun_family = AF_UNIX}};
    struct timeval limit = {.tv_sec = c->timeout_ms / 1000,
                            .tv_usec = (suseconds_t)(c->timeout_ms % 1000) * 1000};
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof a.un.sun_path)
        return nk_fail(err, NK_BAD_REQUEST, "the socket's path is empty or too long");
    memcpy(a.un.sun_path, path, len + 1);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0)
        return nk_fail_sys(err, errno, "cannot make a socket");
    if (connect(c->fd, &a.any, sizeof a.un) < 0)
        return nk_fail_sys(err, errno, "cannot connect to %s", path);
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0)
        return nk_fail_sys(err, errno, "cannot set up the socket");
    memcpy(c->host, "localhost", sizeof "localhost");
    return 0;
}

static int finish_connect(struct nk_client *c)
{
    short revents;
    int failure = 0;
    socklen_t len = sizeof failure;
    int rc = wait_for(c->fd, POLLOUT, c->timeout_ms, &revents);

    if (rc <= 0)
        return rc < 0 ? rc : -ETIMEDOUT;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
        return -errno;
    return -failure;
}

static void tune_tcp(int fd)
{
    static const int one = 1, idle = KEEPALIVE_S, interval = KEEPALIVE_S / 3, count = 3;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int connect_tcp(struct nk_client *c, const char *url, struct nk_err *err)
{
    static const char scheme[] = "http://";
    const char *authority = url + sizeof scheme - 1;
    union address a;
    socklen_t len;
    int rc;

    if (strncmp(url, scheme, sizeof scheme - 1) != 0 || read_authority(authority, &a, &len) < 0)
        return nk_fail(err, NK_BAD_REQUEST, "not of the form http://ADDRESS:PORT: %s", url);
    (void)snprintf(c->host, sizeof c->host, "%.*s", (int)strcspn(authority, "/"), authority);
    c->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return nk_fail_sys(err, errno, "cannot make a socket");
    tune_tcp(c->fd);
    rc = connect(c->fd, &a.any, len) < 0 ? -errno : 0;
    if (rc == -EINPROGRESS || rc == -EINTR)
        rc = finish_connect(c);
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot connect to %s", url) : 0;
}

int nk_client_new(const struct nk_client_target *target, struct nk_client **out, struct nk_err *err)
{
    struct nk_client *c = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return nk_fail_sys(err, ENOMEM, "cannot make a client");
    c->fd = -1;
    c->timeout_ms = target->timeout_ms;
    c->token = target->token ? strdup(target->token) : NULL;
    if (target->token && !c->token)
        rc = nk_fail_sys(err, ENOMEM, "cannot make a client");
    else if (target->socket)
        rc = connect_unix(c, target->socket, err);
    else
        rc = connect_tcp(c, target->url ? target->url : "", err);
    if (rc < 0) {
        nk_client_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

void nk_client_free(struct nk_client *c)
{
    if (!c)
        return;
    nk_close_fd(&c->fd);
    if (c->token)
        nk_secret_wipe(c->token, strlen(c->token));
    free(c->token);
    nk_buf_fini(&c->in);
    nk_response_fini(&c->is);
    free(c);
}

int nk_client_fd(const struct nk_client *c)
{
    return c->fd;
}

/* A server that answers before it has taken the whole request (401, 413) stops us: the rest is not
 * sent and the answer is read. So a broken connection is no error yet either. */
static int send_all(struct nk_client *c, const void *data, size_t len, struct nk_err *err)
{
    const uint8_t *p = data;

    while (len > 0 && !c->cut) {
        ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);
        short revents = 0;

        if (n >= 0) {
            p += n;
            len -= (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EPIPE || errno == ECONNRESET) {
            c->cut = true;
            return 0;
        }
        if (errno != EAGAIN)
            return nk_fail_sys(err, errno, "cannot send the request");
        if (wait_for(c->fd, POLLOUT | POLLIN, STALL_MS, &revents) <= 0)
            return nk_fail(err, NK_TIMEOUT, "the server stopped taking the request");
        c->cut = (revents & POLLIN) && !(revents & POLLOUT);
    }
    return 0;
}

static bool is_clean(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f)
            return false;
    }
    return true;
}

static int add_headers(const struct nk_client *c, struct nk_buf *out, const char *const *headers,
                       struct nk_err *err)
{
    nk_buf_add_fmt(out, "Host: %s\r\n", c->host);
    if (c->token)
        nk_buf_add_fmt(out, "Authorization: Bearer %s\r\n", c->token);
    for (; headers && *headers; headers++) {
        if (strpbrk(*headers, "\r\n"))
            return nk_fail(err, NK_BAD_REQUEST, "a header holds a line end");
        nk_buf_add_fmt(out, "%s\r\n", *headers);
    }
    return 0;
}

static int check_request(const struct nk_client_request *req, struct nk_err *err)
{
    if (*req->method != '\0' && is_clean(req->method) && *req->path == '/' && is_clean(req->path))
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "not a method and a path: %s %s", req->method, req->path);
}

static void add_framing(const struct nk_client *c, struct nk_buf *out,
                        const struct nk_client_request *req)
{
    bool bodied = req->body || strcmp(req->method, "GET") != 0;

    if (c->chunked)
        nk_buf_add_str(out, "Transfer-Encoding: chunked\r\n");
    else if (bodied && !c->is.to_head)
        nk_buf_add_fmt(out, "Content-Length: %lld\r\n", (long long)req->body_len);
}

int nk_client_send(struct nk_client *c, const struct nk_client_request *req, struct nk_err *err)
{
    struct nk_buf head = {0};
    size_t len = req->body_len > 0 ? (size_t)req->body_len : 0;
    bool joined = len > 0 && len <= JOINED_MAX;
    int rc;

    if (check_request(req, err) < 0)
        return -1;
    c->chunked = req->body_len < 0;
    c->is.to_head = strcmp(req->method, "HEAD") == 0;
    nk_buf_add_fmt(&head, "%s %s HTTP/1.1\r\n", req->method, req->path);
    add_framing(c, &head, req);
    rc = add_headers(c, &head, req->headers, err);
    nk_buf_add_str(&head, "\r\n");
    if (joined)
        nk_buf_add(&head, req->body, len);
    if (rc == 0 && head.failed)
        rc = nk_fail_sys(err, ENOMEM, "cannot build the request");
    if (rc == 0)
        rc = send_all(c, nk_buf_front(&head), nk_buf_left(&head), err);
    if (rc == 0 && !joined)
        rc = send_all(c, req->body, len, err);
    if (head.data)
        nk_secret_wipe(head.data, head.len);
    nk_buf_fini(&head);
    return rc;
}

int nk_client_send_body(struct nk_client *c, const void *data, size_t len, struct nk_err *err)
{
    char size[24];
    int n = snprintf(size, sizeof size, "%zx\r\n", len);

    /* An empty chunk would end the body. */
    if (len == 0)
        return 0;
    if (!c->chunked)
        return nk_fail(err, NK_INTERNAL, "the request has no body to add to");
    if (send_all(c, size, (size_t)n, err) < 0 || send_all(c, data, len, err) < 0)
        return -1;
    return send_all(c, "\r\n", 2, err);
}

int nk_client_end_body(struct nk_client *c, struct nk_err *err)
{
    if (!c->chunked)
        return nk_fail(err, NK_INTERNAL, "the request has no body to end");
    c->chunked = false;
    return send_all(c, "0\r\n\r\n", 5, err);
}

/* Waits for bytes and reads them once; a connection that has ended sets `ended`. */
static int fill(struct nk_client *c, unsigned timeout_ms, struct nk_err *err)
{
    short revents;
    uint8_t *room = nk_buf_reserve(&c->in, READ_SIZE);
    ssize_t n;
    int rc;

    if (!room)
        return nk_fail_sys(err, ENOMEM, "cannot read the answer");
    rc = wait_for(c->fd, POLLIN, timeout_ms, &revents);
    if (rc == 0)
        return nk_fail(err, NK_TIMEOUT, "the server did not answer in time");
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot wait for the answer");
    n = recv(c->fd, room, READ_SIZE, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return nk_fail_sys(err, errno, "cannot read the answer");
    c->ended = n <= 0;
    nk_buf_commit(&c->in, n > 0 ? (size_t)n : 0);
    return 0;
}

int nk_client_read_head(struct nk_client *c, int *out_status, struct nk_err *err)
{
    bool done = false;

    for (;;) {
        if (nk_response_read_head(&c->is, &c->in, &done, err) < 0)
            return -1;
        if (done)
            break;
        if (c->ended) {
            (void)nk_response_end(&c->is, err);
            return -1;
        }
        if (fill(c, nk_buf_left(&c->in) > 0 ? STALL_MS : c->timeout_ms, err) < 0)
            return -1;
    }
    *out_status = c->is.status;
    return 0;
}

const char *nk_client_header(const struct nk_client *c, const char *name)
{
    return nk_response_header(&c->is, name);
}

bool nk_client_pending(const struct nk_client *c)
{
    return c->is.done || c->ended || nk_buf_left(&c->in) > 0;
}

int nk_client_read_body(struct nk_client *c, struct nk_buf *out, bool *out_end, struct nk_err *err)
{
    if (!nk_client_pending(c) && fill(c, 0, err) < 0)
        return -1;
    if (nk_response_read_body(&c->is, &c->in, out, err) < 0)
        return -1;
    if (c->ended && nk_response_end(&c->is, err) < 0)
        return -1;
    *out_end = c->is.done;
    return 0;
}
