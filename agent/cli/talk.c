#include "cli/talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/scope.h"
#include "cli/ask.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/term.h"
#include "http/ws_client.h"

#define GO_ON (-1)
#define SILENCE_MS 90000 /* a living server pings every 15 s */
#define INPUT_SIZE 32768
#define QUEUE_MAX (256u * 1024u) /* above it standard input is not read */
#define OUTPUT_HEAD 9            /* of a binary message: the stream, the offset */

enum { ON_INTERRUPT, ON_WINDOW, ON_SERVER, ON_INPUT, ON_READER, EVENTS };

struct talking {
    const struct nk_talk *ask;
    struct nk_ws_client ws;
    struct nk_interrupt interrupt;
    struct nk_term term;
    int window_fd; /* signalfd of WINCH; -1: none */
    bool tty;
    bool opened;
    bool input;  /* standard input is being read */
    bool exited; /* `status` is the command's */
    int status;
};

static int say(struct talking *t, const struct nk_buf *text)
{
    struct nk_err err;

    if (text->failed)
        return nk_out_fail_msg("out of memory");
    if (nk_ws_client_send(&t->ws, NK_WS_TEXT, nk_buf_front(text), nk_buf_left(text), &err) < 0)
        return nk_out_fail(&err);
    return GO_ON;
}

static int say_size(struct talking *t)
{
    struct nk_buf text = {0};
    unsigned cols, rows;
    int status;

    if (!t->tty || !nk_term_size(&cols, &rows))
        return GO_ON;
    nk_buf_add_fmt(&text, "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", cols, rows);
    status = say(t, &text);
    nk_buf_fini(&text);
    return status;
}

static int end_input(struct talking *t)
{
    struct nk_buf text = {0};
    int status;

    t->input = false;
    if (!t->ask->end_input)
        return GO_ON;
    nk_buf_add_str(&text, "{\"type\":\"close_stdin\"}");
    status = say(t, &text);
    nk_buf_fini(&text);
    return status;
}

static int print_id(const struct nk_json *started)
{
    struct nk_buf line = {0};
    int rc;

    nk_out_plain(&line, nk_ask_text(started, "id", ""));
    nk_buf_add_char(&line, '\n');
    rc = nk_out_buf(&line);
    nk_buf_fini(&line);
    return rc;
}

/* From here on keys are the other terminal's. */
static int take_opening(struct talking *t, const struct nk_json *message)
{
    bool tty = t->ask->tty;
    int rc;

    if (t->ask->detach)
        return print_id(message);
    (void)nk_json_read_bool(message, "tty", &tty, NULL);
    t->tty = tty;
    t->opened = true;
    t->input = t->ask->input;
    if (!t->tty || !t->input || !isatty(STDIN_FILENO))
        return say_size(t);
    rc = nk_term_make_raw(&t->term, STDIN_FILENO);
    if (rc < 0)
        return nk_out_fail_msg("cannot use the terminal: %s", strerror(-rc));
    return say_size(t);
}

static int take_exit(struct talking *t, const struct nk_json *message)
{
    uint64_t code = NK_OUT_FAILED;
    struct nk_err err;

    if (nk_json_read_u64(message, "exit_code", 0, 255, &code, &err) < 0)
        return nk_out_fail(&err);
    t->exited = true;
    t->status = (int)code;
    t->input = false;
    return GO_ON;
}

static int take_error(struct talking *t, const struct nk_json *message)
{
    struct nk_ask_problem problem = {0};

    nk_ask_read_problem(message, &problem);
    nk_term_restore(&t->term);
    return nk_ask_tell(&problem);
}

static int take_gap(struct talking *t, const struct nk_json *message)
{
    uint64_t from = 0, to = 0;

    (void)t;
    (void)nk_json_read_u64(message, "from", 0, UINT64_MAX, &from, NULL);
    (void)nk_json_read_u64(message, "to", 0, UINT64_MAX, &to, NULL);
    (void)nk_out_fail_msg("%llu bytes were missed", (unsigned long long)(to - from));
    return GO_ON;
}

static int take_stdin_error(struct talking *t, const struct nk_json *message)
{
    (void)message;
    /* Keys of a person stay ours to read, for the one that leaves. */
    if (!t->term.raw)
        t->input = false;
    return GO_ON;
}

static int take_object(struct talking *t, const struct nk_json *message)
{
    static const struct {
        const char *type;
        int (*take)(struct talking *t, const struct nk_json *message);
    } rows[] = {
        {"started", take_opening}, {"attached", take_opening},        {"exit", take_exit},
        {"error", take_error},     {"stdin_error", take_stdin_error}, {"gap", take_gap},
    };
    const char *type = nk_ask_text(message, "type", "");

    for (size_t i = 0; i < NK_COUNT(rows); i++) {
        if (strcmp(rows[i].type, type) == 0)
            return rows[i].take(t, message);
    }
    return GO_ON;
}

static int take_text(struct talking *t, const struct nk_ws_item *item)
{
    struct nk_json *root = NULL;
    struct nk_err err;
    int status;

    if (nk_json_parse(item->data, item->len, &root, &err) < 0)
        return nk_out_fail_msg("the session is broken: %s", err.msg);
    status = nk_json_type(root) == NK_JSON_OBJECT ? take_object(t, root) : GO_ON;
    nk_json_free(root);
    return status;
}

static int take_output(struct talking *t, const struct nk_ws_item *item)
{
    int rc;

    if (item->len < OUTPUT_HEAD)
        return nk_out_fail_msg("the session is broken: a message is too short");
    rc = nk_out_write(&t->interrupt, item->data[0] == 2 ? STDERR_FILENO : STDOUT_FILENO,
                      item->data + OUTPUT_HEAD, item->len - OUTPUT_HEAD);
    return rc == 0 ? GO_ON : rc;
}

static int take_close(struct talking *t, const struct nk_ws_item *item)
{
    if (item->kind == NK_WS_CLOSE)
        (void)nk_ws_client_close(&t->ws, item->code, NULL);
    if (t->exited)
        return t->status;
    nk_term_restore(&t->term);
    return nk_out_fail_msg("the session was closed without an end (%u)", item->code);
}

static int take_item(struct talking *t, const struct nk_ws_item *item)
{
    if (item->kind == NK_WS_TEXT)
        return take_text(t, item);
    if (item->kind == NK_WS_BINARY)
        return take_output(t, item);
    return take_close(t, item);
}

static int take_from_server(struct talking *t)
{
    struct nk_ws_item item;
    struct nk_err err;
    int status = GO_ON;

    if (nk_ws_client_read(&t->ws, &err) < 0) {
        nk_term_restore(&t->term);
        return nk_out_fail(&err);
    }
    while (status == GO_ON && nk_ws_client_next(&t->ws, &item) != NK_WS_MORE)
        status = take_item(t, &item);
    if (status != GO_ON || !t->ws.ended)
        return status;
    if (t->exited)
        return t->status;
    nk_term_restore(&t->term);
    return nk_out_fail_msg("the session broke off");
}

static int take_input(struct talking *t)
{
    char data[INPUT_SIZE];
    const char *leave = NULL;
    struct nk_err err;
    ssize_t n = read(STDIN_FILENO, data, sizeof data);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return GO_ON;
    if (n <= 0)
        return end_input(t);
    if (t->term.raw && t->ask->leave_key)
        leave = memchr(data, t->ask->leave_key, (size_t)n);
    if (leave)
        n = leave - data;
    if (n > 0 && nk_ws_client_send(&t->ws, NK_WS_BINARY, data, (size_t)n, &err) < 0)
        return nk_out_fail(&err);
    return leave ? 0 : GO_ON;
}

static int take_window(struct talking *t)
{
    struct signalfd_siginfo got;

    if (read(t->window_fd, &got, sizeof got) != (ssize_t)sizeof got)
        return GO_ON;
    return t->opened ? say_size(t) : GO_ON;
}

static int take_interrupt(const struct talking *t)
{
    struct signalfd_siginfo got;

    if (read(t->interrupt.fd, &got, sizeof got) != (ssize_t)sizeof got)
        return GO_ON;
    return 128 + (int)got.ssi_signo;
}

static int await(struct talking *t, struct pollfd *p)
{
    bool room = nk_ws_client_queued(&t->ws) < QUEUE_MAX;
    short server = nk_ws_client_queued(&t->ws) > 0 ? POLLIN | POLLOUT : POLLIN;
    int n;

    p[ON_INTERRUPT] = (struct pollfd){.fd = t->interrupt.fd, .events = POLLIN};
    p[ON_WINDOW] = (struct pollfd){.fd = t->window_fd, .events = POLLIN};
    p[ON_SERVER] = (struct pollfd){.fd = nk_client_fd(t->ws.http), .events = server};
    p[ON_INPUT] = (struct pollfd){.fd = t->input && room ? STDIN_FILENO : -1, .events = POLLIN};
    /* Who only watches has nothing left to do when nobody reads what was seen. */
    p[ON_READER] = (struct pollfd){.fd = t->ask->start ? -1 : STDOUT_FILENO};
    do
        n = poll(p, EVENTS, SILENCE_MS);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return GO_ON;
    nk_term_restore(&t->term);
    if (n == 0)
        return nk_out_fail_msg("the server has been silent for %d s", SILENCE_MS / 1000);
    return nk_out_fail_msg("cannot wait: %s", strerror(errno));
}

static int turn(struct talking *t)
{
    struct pollfd p[EVENTS];
    struct nk_err err;
    int status = nk_client_pending(t->ws.http) ? take_from_server(t) : GO_ON;

    if (status == GO_ON && nk_ws_client_flush(&t->ws, &err) < 0)
        status = nk_out_fail(&err);
    if (status == GO_ON)
        status = await(t, p);
    if (status == GO_ON && p[ON_INTERRUPT].revents)
        status = take_interrupt(t);
    if (status == GO_ON && p[ON_READER].revents)
        status = NK_OUT_PIPE;
    if (status == GO_ON && p[ON_WINDOW].revents)
        status = take_window(t);
    if (status == GO_ON && p[ON_INPUT].revents)
        status = take_input(t);
    if (status == GO_ON && p[ON_SERVER].revents & ~POLLOUT)
        status = take_from_server(t);
    return status;
}

static int refused(struct talking *t, int status)
{
    struct nk_ask_problem problem;
    struct nk_err err;

    if (nk_ask_problem(t->ws.http, status, &problem, &err) < 0)
        return nk_out_fail(&err);
    return nk_ask_tell(&problem);
}

static int open_session(struct talking *t, struct nk_client *http)
{
    struct nk_err err;
    int rc, http_status = 0;

    if (nk_ws_client_ask(&t->ws, http, t->ask->path, &err) < 0)
        return nk_out_fail(&err);
    rc = nk_interrupt_wait(&t->interrupt, nk_client_fd(http), POLLIN, NK_ASK_TIMEOUT_MS);
    if (rc > 0)
        return rc;
    if (rc < 0)
        return nk_out_fail_msg("cannot wait for the server: %s", strerror(-rc));
    if (nk_ws_client_accept(&t->ws, &http_status, &err) < 0)
        return nk_out_fail(&err);
    if (http_status != 101)
        return refused(t, http_status);
    return t->ask->start ? say(t, t->ask->start) : GO_ON;
}

/* The client's part of the closing, as far as the socket takes it; the daemon needs no more. */
static void say_goodbye(struct talking *t)
{
    if (!t->exited)
        (void)nk_ws_client_close(&t->ws, NK_WS_NORMAL, NULL);
    (void)nk_ws_client_flush(&t->ws, NULL);
}

static int run_on(struct talking *t, struct nk_client *http)
{
    int status = open_session(t, http);

    if (status != GO_ON)
        return status;
    while (status == GO_ON)
        status = turn(t);
    nk_term_restore(&t->term);
    say_goodbye(t);
    return status;
}

static int watch_window(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int nk_talk_run(const struct nk_talk *talk)
{
    struct talking t = {.ask = talk, .interrupt = {.fd = -1}, .window_fd = -1};
    struct nk_client *http = NULL;
    struct nk_err err;
    int status;

    if (nk_ask_open(talk->env, talk->socket, NK_ASK_TIMEOUT_MS, &http, &err) < 0)
        return nk_out_fail(&err);
    t.window_fd = watch_window();
    if (nk_interrupt_open(&t.interrupt) < 0)
        status = nk_out_fail_msg("cannot watch for signals");
    else
        status = run_on(&t, http);
    nk_ws_client_fini(&t.ws);
    nk_client_free(http);
    nk_interrupt_close(&t.interrupt);
    nk_close_fd(&t.window_fd);
    return status;
}
