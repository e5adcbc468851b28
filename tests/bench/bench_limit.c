/*
 * The machine's limit: the barest programs that do what nookd is measured at.
 *
 * usage: bench_limit spawn COUNT LOOPS PROGRAM   vfork, exec, wait; prints JSON
 *        bench_limit write BYTES                 lines of text to standard output
 *        bench_limit ADDR pipe BYTES             answers with the output of `write`, copied
 *        bench_limit ADDR sendfile FILE          answers with a file
 *        bench_limit ADDR store FILE             writes the body of a request into a file
 *        bench_limit ADDR answer                 answers 200
 *        bench_limit ADDR relay ADDR             copies both ways between its client and a server
 *        bench_limit stdio ADDR                  the same for standard input and output
 * A server says "ready" when it listens and serves one connection after another.
 */
#include "bench_net.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char ok[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
static char block[BENCH_BLOCK];

/* What is given to nookd too: no terminal, no output. */
static void spawn_once(const char *program)
{
    char *const argv[] = {(char *)program, NULL};
    char *const envp[] = {NULL};
    int status;
    pid_t pid = vfork();

    if (pid == 0) {
        (void)execve(program, argv, envp);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        bench_die(program);
}

static int spawn(unsigned count, unsigned loops, const char *program)
{
    struct bench_times times = {0};
    double began = bench_now();

    for (unsigned i = 0; i < loops; i++) {
        pid_t pid = loops > 1 ? fork() : 0;

        if (pid < 0)
            bench_die("fork");
        if (pid > 0)
            continue;
        for (unsigned n = i; n < count; n += loops) {
            double at = bench_now();

            spawn_once(program);
            bench_note(&times, bench_now() - at);
        }
        if (loops > 1)
            _exit(0);
    }
    for (unsigned i = 0; i < loops && loops > 1; i++)
        if (wait(NULL) < 0)
            bench_die("wait");
    (void)printf("{\"seconds\":%.6f,", bench_now() - began);
    bench_print("times", &times);
    return puts("}") < 0;
}

static int write_lines(uint64_t left)
{
    static const char line[] =
        "a line of output as programs write it, with some length to it....\n";

    for (size_t at = 0; at < sizeof block; at++)
        block[at] = line[at % (sizeof line - 1)];
    while (left > 0) {
        size_t n = left < 65536 ? (size_t)left : 65536;

        bench_send_all(STDOUT_FILENO, block, n);
        left -= n;
    }
    return 0;
}

static void serve_pipe(int conn, const char *self, const char *bytes)
{
    posix_spawn_file_actions_t actions;
    char *const argv[] = {(char *)self, "write", (char *)bytes, NULL};
    int ends[2];
    pid_t pid;
    ssize_t n;

    if (pipe2(ends, O_CLOEXEC) < 0)
        bench_die("pipe");
    (void)fcntl(ends[0], F_SETPIPE_SZ, BENCH_BLOCK);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (posix_spawn(&pid, self, &actions, NULL, argv, NULL) != 0)
        bench_die(self);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    bench_send_all(conn, ok, sizeof ok - 1);
    while ((n = read(ends[0], block, sizeof block)) > 0)
        bench_send_all(conn, block, (size_t)n);
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
}

static void serve_file(int conn, const char *path)
{
    struct stat st;
    off_t at = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        bench_die(path);
    bench_send_all(conn, ok, sizeof ok - 1);
    while (at < st.st_size)
        if (sendfile(conn, fd, &at, (size_t)(st.st_size - at)) <= 0)
            bench_die("sendfile");
    (void)close(fd);
}

static void store(int conn, const char *path, size_t have, uint64_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    char *body = strstr(block, "\r\n\r\n") + 4;
    uint64_t left = length - (have - (size_t)(body - block));

    if (fd < 0)
        bench_die(path);
    bench_send_all(fd, body, have - (size_t)(body - block));
    while (left > 0) {
        ssize_t n = read(conn, block, sizeof block);

        if (n <= 0)
            bench_die("body");
        bench_send_all(fd, block, (size_t)n);
        left -= (uint64_t)n;
    }
    (void)close(fd);
    bench_send_all(conn, ok, sizeof ok - 1);
}

struct way {
    int from, to;
    bool over;
};

/* Between two blocking ends, as a relay that knows nothing of what it moves: splice where a pipe is. */
static void move_some(struct way *w)
{
    ssize_t n = splice(w->from, NULL, w->to, NULL, BENCH_BLOCK, 0);

    if (n < 0 && errno == EINVAL) {
        n = read(w->from, block, sizeof block);
        if (n > 0)
            bench_send_all(w->to, block, (size_t)n);
    }
    if (n > 0)
        return;
    w->over = true;
    (void)shutdown(w->to, SHUT_WR);
}

static void relay(int in, int out, int conn)
{
    struct way up = {.from = in, .to = conn}, down = {.from = conn, .to = out};

    while (!down.over) {
        struct pollfd p[] = {{.fd = up.over ? -1 : up.from, .events = POLLIN},
                             {.fd = down.from, .events = POLLIN}};

        if (poll(p, 2, -1) < 0)
            bench_die("poll");
        if (p[0].revents)
            move_some(&up);
        if (p[1].revents)
            move_some(&down);
    }
}

static int relay_stdio(const char *addr)
{
    relay(STDIN_FILENO, STDOUT_FILENO, bench_connect(addr));
    return 0;
}

static void relay_to(int conn, const char *addr)
{
    int there = bench_connect(addr);

    relay(conn, conn, there);
    (void)close(there);
}

static void serve(int conn, char **argv)
{
    size_t have = 0;
    const char *length;

    while (!strstr(block, "\r\n\r\n") || have == 0) {
        ssize_t n = read(conn, block + have, 4095 - have);

        if (n <= 0)
            return; /* somebody looked whether we listen */
        have += (size_t)n;
        block[have] = '\0';
    }
    if (strcmp(argv[2], "pipe") == 0) {
        serve_pipe(conn, argv[0], argv[3]);
    } else if (strcmp(argv[2], "sendfile") == 0) {
        serve_file(conn, argv[3]);
    } else if (strcmp(argv[2], "store") == 0) {
        length = strstr(block, "Content-Length: ");
        store(conn, argv[3], have, length ? strtoull(length + 16, NULL, 10) : 0);
    } else {
        bench_send_all(conn, ok, sizeof ok - 1);
    }
}

int main(int argc, char **argv)
{
    int listener;

    if (argc == 5 && strcmp(argv[1], "spawn") == 0)
        return spawn((unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10),
                     argv[4]);
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_lines(strtoull(argv[2], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "stdio") == 0)
        return relay_stdio(argv[2]);
    if (argc < 3)
        return 2;
    listener = bench_listen(argv[1]);
    (void)puts("ready");
    (void)fflush(stdout);
    for (;;) {
        int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (conn < 0)
            bench_die("accept");
        block[0] = '\0';
        if (strcmp(argv[2], "relay") == 0)
            relay_to(conn, argv[3]);
        else
            serve(conn, argv);
        (void)close(conn);
    }
}
