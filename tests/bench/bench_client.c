/*
 * The client of the bench: asks in the cheapest way, so that what is measured is the daemon.
 *
 * usage: bench_client ADDR VERB …         ADDR: tcp:PORT or unix:PATH; BENCH_TOKEN: bearer token
 *   load COUNT CONNS PROBE METHOD TARGET [BODY]   the same request again and again, CONNS at once;
 *                                         PROBE 1: /healthz is asked every 2 ms meanwhile
 *   seq                                   lines "METHOD TARGET [BODY]" from stdin, one by one
 *   drain METHOD TARGET [BODY]            one request, read to the end of the connection
 *   ws TARGET MESSAGE                     one message, read to the closing frame
 *   put TARGET BYTES|FILE                 one upload
 *   chunked TARGET BYTES                  one upload in chunks of 64 KiB, its length not said before
 *   hold COUNT READ METHOD TARGET [BODY]  COUNT connections with one request each, answers read
 *                                         if READ is 1; kept until the end of stdin
 *   first COUNT PROGRAM…                  starts a program until it answers /healthz, then ends it
 * Prints one JSON object.
 */
#include "bench_net.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

#define HEAD_MAX 4096
#define CONNS_MAX 4096
#define CHUNK (64u * 1024u)

struct conn {
    int fd;
    double began;
    size_t have;     /* bytes of the answer */
    size_t expected; /* of the whole answer; 0: not known yet */
    bool good;       /* its status is 2xx */
    char head[HEAD_MAX];
};

static char block[BENCH_BLOCK];
static atomic_bool over;

static size_t make_request(char **out, const char *method, const char *target, const char *body,
                           bool close)
{
    const char *token = getenv("BENCH_TOKEN");
    size_t room = strlen(target) + strlen(body) + (token ? strlen(token) : 0) + 512;
    char *text = malloc(room);
    int n;

    if (!text)
        bench_die("memory");
    n = snprintf(text, room,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s%sContent-Length: %zu\r\n%s\r\n%s",
                 method, target, token ? "Authorization: Bearer " : "", token ? token : "",
                 token ? "\r\n" : "", *body ? "Content-Type: application/json\r\n" : "",
                 strlen(body), close ? "Connection: close\r\n" : "", body);
    *out = text;
    return (size_t)n;
}

/* Whether the answer is whole. */
static bool take(struct conn *c)
{
    size_t room = c->have < HEAD_MAX - 1 ? HEAD_MAX - 1 - c->have : 0;
    ssize_t n = room ? read(c->fd, c->head + c->have, room) : read(c->fd, block, sizeof block);
    const char *end, *length;

    if (n <= 0)
        bench_die("the connection ended");
    c->have += (size_t)n;
    if (c->expected == 0) {
        c->head[c->have] = '\0';
        end = strstr(c->head, "\r\n\r\n");
        length = strstr(c->head, "Content-Length: ");
        if (!end)
            return false;
        c->good = strncmp(c->head, "HTTP/1.1 2", 10) == 0;
        c->expected = (size_t)(end + 4 - c->head);
        if (length && length < end)
            c->expected += strtoul(length + 16, NULL, 10);
    }
    return c->have >= c->expected;
}

static void ask(struct conn *c, const char *text, size_t len)
{
    c->have = c->expected = 0;
    c->began = bench_now();
    bench_send_all(c->fd, text, len);
}

static void *probe(void *arg)
{
    const char *addr = ((void **)arg)[0];
    struct bench_times *times = ((void **)arg)[1];
    struct conn c = {.fd = bench_connect(addr)};
    char *text;
    size_t len = make_request(&text, "GET", "/healthz", "", false);

    while (!atomic_load(&over)) {
        ask(&c, text, len);
        while (!take(&c))
            continue;
        bench_note(times, bench_now() - c.began);
        (void)usleep(2000);
    }
    (void)close(c.fd);
    free(text);
    return NULL;
}

static int load(const char *addr, unsigned count, unsigned conns, bool probed, char **request)
{
    static struct conn all[CONNS_MAX];
    struct bench_times times = {0}, health = {0};
    void *arg[2] = {(void *)addr, &health};
    unsigned asked = 0, answered = 0, bad = 0;
    int set = epoll_create1(EPOLL_CLOEXEC);
    pthread_t thread;
    char *text;
    size_t len = make_request(&text, request[0], request[1], request[2] ? request[2] : "", false);
    double began;

    for (unsigned i = 0; i < conns; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &all[i]};

        all[i].fd = bench_connect(addr);
        if (epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &ev) < 0)
            bench_die("epoll");
    }
    if (probed && pthread_create(&thread, NULL, probe, arg) != 0)
        bench_die("thread");
    began = bench_now();
    for (; asked < conns && asked < count; asked++)
        ask(&all[asked], text, len);
    while (answered < count) {
        struct epoll_event ev[64];
        int n = epoll_wait(set, ev, 64, -1);

        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;

            if (!take(c))
                continue;
            bench_note(&times, bench_now() - c->began);
            bad += !c->good;
            answered++;
            if (asked < count) {
                ask(c, text, len);
                asked++;
            }
        }
    }
    (void)printf("{\"seconds\":%.6f,\"bad\":%u,", bench_now() - began, bad);
    atomic_store(&over, true);
    if (probed)
        (void)pthread_join(thread, NULL);
    bench_print("times", &times);
    (void)printf(",");
    bench_print("health", &health);
    return puts("}") < 0;
}

static int seq(const char *addr)
{
    struct conn c = {.fd = bench_connect(addr)};
    struct bench_times times = {0};
    unsigned bad = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    while ((n = getline(&line, &room, stdin)) > 0) {
        char *text, *target, *body;
        size_t len;

        line[n - (line[n - 1] == '\n')] = '\0';
        target = strchr(line, ' ');
        if (!target)
            break;
        *target++ = '\0';
        body = strchr(target, ' ');
        if (body)
            *body++ = '\0';
        len = make_request(&text, line, target, body ? body : "", false);
        ask(&c, text, len);
        while (!take(&c))
            continue;
        bench_note(&times, bench_now() - c.began);
        bad += !c.good;
        free(text);
    }
    (void)printf("{\"bad\":%u,", bad);
    bench_print("times", &times);
    return puts("}") < 0;
}

/* The status, and everything until the server closes. */
static int drain(const char *addr, char **request)
{
    char *text;
    size_t len = make_request(&text, request[0], request[1], request[2] ? request[2] : "", true);
    double began = bench_now();
    int fd = bench_connect(addr);
    uint64_t bytes = 0;
    char status[4] = "";
    ssize_t n;

    bench_send_all(fd, text, len);
    while ((n = read(fd, block, sizeof block)) > 0) {
        if (bytes == 0 && n > 12)
            memcpy(status, block + 9, 3);
        bytes += (uint64_t)n;
    }
    return printf("{\"seconds\":%.6f,\"bytes\":%llu,\"status\":\"%s\"}\n", bench_now() - began,
                  (unsigned long long)bytes, status) < 0;
}

static void read_exactly(int fd, uint8_t *to, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, to, len);

        if (n <= 0)
            bench_die("the connection ended");
        to += n;
        len -= (size_t)n;
    }
}

/* Frames from the server until it closes; their payloads are counted and dropped. */
static uint64_t read_frames(int fd)
{
    uint64_t bytes = 0;
    uint8_t head[2], more[8];

    do {
        uint64_t len;

        read_exactly(fd, head, 2);
        len = head[1] & 127u;
        if (len >= 126) {
            size_t width = len == 126 ? 2 : 8;

            read_exactly(fd, more, width);
            len = 0;
            for (size_t i = 0; i < width; i++)
                len = len << 8 | more[i];
        }
        bytes += len;
        for (; len > 0; len -= len < sizeof block ? len : sizeof block)
            read_exactly(fd, (uint8_t *)block, len < sizeof block ? (size_t)len : sizeof block);
    } while ((head[0] & 15) != 8);
    return bytes;
}

static int ws(const char *addr, const char *target, const char *message)
{
    const char *token = getenv("BENCH_TOKEN");
    size_t len = strlen(message), at = 0;
    uint8_t frame[1024] = {0x81, (uint8_t)(0x80 | (len < 126 ? len : 126)), (uint8_t)(len >> 8),
                           (uint8_t)len};
    size_t start = len < 126 ? 6 : 8; /* the mask is zero */
    double began = bench_now();
    int fd = bench_connect(addr);
    uint64_t bytes;

    if (len > sizeof frame - 8)
        bench_die("the message is too long");
    if (len < 126)
        frame[2] = frame[3] = 0;
    memcpy(frame + start, message, len);
    (void)snprintf(block, sizeof block,
                   "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                   "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%s%s%s\r\n",
                   target, token ? "Authorization: Bearer " : "", token ? token : "",
                   token ? "\r\n" : "");
    bench_send_all(fd, block, strlen(block));
    while (at < 4 || memcmp(block + at - 4, "\r\n\r\n", 4) != 0)
        read_exactly(fd, (uint8_t *)block + at++, 1);
    if (memcmp(block, "HTTP/1.1 101", 12) != 0) {
        block[at] = '\0';
        (void)fprintf(stderr, "%s", block);
        bench_die("no WebSocket");
    }
    bench_send_all(fd, frame, start + len);
    bytes = read_frames(fd);
    return printf("{\"seconds\":%.6f,\"bytes\":%llu}\n", bench_now() - began,
                  (unsigned long long)bytes) < 0;
}

static void send_file(int fd, int from, uint64_t size)
{
    off_t at = 0;

    while ((uint64_t)at < size)
        if (sendfile(fd, from, &at, size - (uint64_t)at) <= 0)
            bench_die("sendfile");
}

/* The head of an upload is sent; its body is to come. */
static int begin_put(const char *addr, const char *target, const char *framing)
{
    const char *token = getenv("BENCH_TOKEN");
    int fd = bench_connect(addr);
    int n = snprintf(block, sizeof block,
                     "PUT %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%s%s\r\n\r\n",
                     target, token ? "Authorization: Bearer " : "", token ? token : "",
                     token ? "\r\n" : "", framing);

    bench_send_all(fd, block, (size_t)n);
    memset(block, 'x', sizeof block);
    return fd;
}

static int end_put(int fd, double began)
{
    read_exactly(fd, (uint8_t *)block, 13);
    return printf("{\"seconds\":%.6f,\"status\":\"%.3s\"}\n", bench_now() - began, block + 9) < 0;
}

/* `what`: a number of bytes, or a file. */
static int put(const char *addr, const char *target, const char *what)
{
    int from = open(what, O_RDONLY | O_CLOEXEC);
    uint64_t size = from < 0 ? strtoull(what, NULL, 10) : (uint64_t)lseek(from, 0, SEEK_END);
    double began = bench_now();
    char framing[64];
    int fd;

    (void)snprintf(framing, sizeof framing, "Content-Length: %llu", (unsigned long long)size);
    fd = begin_put(addr, target, framing);
    if (from >= 0)
        send_file(fd, from, size);
    for (uint64_t left = from < 0 ? size : 0; left > 0;) {
        size_t step = left < sizeof block ? (size_t)left : sizeof block;

        bench_send_all(fd, block, step);
        left -= step;
    }
    return end_put(fd, began);
}

/* Each chunk with its frame in one write, as clients with a buffer of their own send it. */
static int put_chunked(const char *addr, const char *target, uint64_t left)
{
    double began = bench_now();
    int fd = begin_put(addr, target, "Transfer-Encoding: chunked");

    while (left > 0) {
        size_t step = left < CHUNK ? (size_t)left : CHUNK;
        int n = snprintf(block, 8, "%05zx\r", step);

        block[n] = '\n';
        memcpy(block + 7 + step, "\r\n", 2);
        bench_send_all(fd, block, step + 9);
        left -= step;
    }
    bench_send_all(fd, "0\r\n\r\n", 5);
    return end_put(fd, began);
}

static int hold(const char *addr, unsigned count, bool answers, char **request)
{
    struct conn c;
    char *text;
    size_t len = make_request(&text, request[0], request[1], request[2] ? request[2] : "", false);

    for (unsigned i = 0; i < count; i++) {
        c.fd = bench_connect(addr);
        ask(&c, text, len);
        while (answers && !take(&c))
            continue;
    }
    (void)puts("{}");
    (void)fflush(stdout);
    return read(STDIN_FILENO, block, 1) < 0;
}

static pid_t start_program(char **argv)
{
    pid_t pid = vfork();

    if (pid < 0)
        bench_die("vfork");
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    return pid;
}

static int first(const char *addr, unsigned count, char **argv)
{
    struct bench_times times = {0};
    char *text;
    size_t len = make_request(&text, "GET", "/healthz", "", true);

    for (unsigned i = 0; i < count; i++) {
        double began = bench_now();
        pid_t pid = start_program(argv);
        struct conn c = {.fd = -1};

        while ((c.fd = bench_try_connect(addr)) < 0)
            (void)usleep(20);
        ask(&c, text, len);
        while (!take(&c))
            continue;
        bench_note(&times, bench_now() - began);
        (void)close(c.fd);
        (void)kill(pid, SIGTERM);
        (void)waitpid(pid, NULL, 0);
        (void)unlink(strchr(addr, ':') + 1);
    }
    (void)printf("{");
    bench_print("times", &times);
    return puts("}") < 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 2 ? argv[2] : "";
    unsigned count = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;

    (void)signal(SIGPIPE, SIG_IGN);
    if (strcmp(verb, "load") == 0 && argc > 7)
        return load(argv[1], count, (unsigned)strtoul(argv[4], NULL, 10), *argv[5] == '1',
                    argv + 6);
    if (strcmp(verb, "seq") == 0)
        return seq(argv[1]);
    if (strcmp(verb, "drain") == 0 && argc > 4)
        return drain(argv[1], argv + 3);
    if (strcmp(verb, "ws") == 0 && argc == 5)
        return ws(argv[1], argv[3], argv[4]);
    if (strcmp(verb, "put") == 0 && argc == 5)
        return put(argv[1], argv[3], argv[4]);
    if (strcmp(verb, "chunked") == 0 && argc == 5)
        return put_chunked(argv[1], argv[3], strtoull(argv[4], NULL, 10));
    if (strcmp(verb, "hold") == 0 && argc > 6)
        return hold(argv[1], count, *argv[4] == '1', argv + 5);
    if (strcmp(verb, "first") == 0 && argc > 4)
        return first(argv[1], count, argv + 4);
    (void)fprintf(stderr, "bench_client: see the top of its source\n");
    return 2;
}
