/*
 * What the two helpers of the bench share: addresses (tcp:PORT, unix:PATH), sockets, a clock.
 *
 * They are measuring instruments: whatever goes wrong ends the program with a sentence.
 */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BENCH_BLOCK (256u * 1024u)

static inline void bench_die(const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static inline double bench_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

union bench_addr {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_un un;
};

static inline socklen_t bench_parse(const char *text, union bench_addr *out)
{
    memset(out, 0, sizeof *out);
    if (strncmp(text, "tcp:", 4) == 0) {
        out->in.sin_family = AF_INET;
        out->in.sin_port = htons((uint16_t)strtoul(text + 4, NULL, 10));
        out->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return sizeof out->in;
    }
    if (strncmp(text, "unix:", 5) != 0 || strlen(text + 5) >= sizeof out->un.sun_path) {
        errno = EINVAL;
        bench_die(text);
    }
    out->un.sun_family = AF_UNIX;
    memcpy(out->un.sun_path, text + 5, strlen(text + 5));
    return sizeof out->un;
}

/* -1 where nobody listens. */
static inline int bench_try_connect(const char *text)
{
    union bench_addr addr;
    socklen_t len = bench_parse(text, &addr);
    int on = 1;
    int fd = socket(addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        bench_die("socket");
    if (connect(fd, &addr.any, len) < 0) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static inline int bench_connect(const char *text)
{
    int fd = bench_try_connect(text);

    if (fd < 0)
        bench_die(text);
    return fd;
}

static inline int bench_listen(const char *text)
{
    union bench_addr addr;
    socklen_t len = bench_parse(text, &addr);
    int on = 1;
    int fd = socket(addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        bench_die("socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (addr.any.sa_family == AF_UNIX)
        (void)unlink(addr.un.sun_path);
    if (bind(fd, &addr.any, len) < 0 || listen(fd, 64) < 0)
        bench_die(text);
    return fd;
}

static inline void bench_send_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            bench_die("write");
        at += n;
        len -= (size_t)n;
    }
}

struct bench_times {
    double *at;
    size_t count, room;
};

static inline void bench_note(struct bench_times *t, double seconds)
{
    if (t->count == t->room) {
        t->room = t->room ? t->room * 2 : 1024;
        t->at = realloc(t->at, t->room * sizeof *t->at);
        if (!t->at)
            bench_die("memory");
    }
    t->at[t->count++] = seconds;
}

static inline int bench_by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double bench_part(const struct bench_times *t, double share)
{
    return t->count ? t->at[(size_t)((double)(t->count - 1) * share)] * 1e6 : 0;
}

static inline void bench_print(const char *name, struct bench_times *t)
{
    qsort(t->at, t->count, sizeof *t->at, bench_by_size);
    (void)printf(
        "\"%s\":{\"count\":%zu,\"min_us\":%.1f,\"p10_us\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
        "\"max_us\":%.1f}",
        name, t->count, bench_part(t, 0), bench_part(t, 0.1), bench_part(t, 0.5),
        bench_part(t, 0.99), bench_part(t, 1));
}

#endif
