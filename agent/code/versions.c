#include "code/versions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process/registry.h"

enum state { WAITING, RUNNING, KNOWN };

struct version {
    struct nk_list link;
    struct nk_list asks;
    struct nk_versions *versions; /* borrowed: the owner */
    struct nk_tool tool;
    const char *arg; /* borrowed: of a runtime */
    enum state state;
    bool failed; /* could not be started: asked again next time */
    char text[NK_VERSIONS_TEXT];
    struct nk_watcher watcher;
};

struct nk_versions {
    struct nk_versions_config cfg;
    struct nk_owner owner; /* of the commands: nobody's list shows them */
    struct nk_list all;    /* the oldest first */
    unsigned count;
    unsigned running;
    uv_timer_t step;
};

static bool is_same(const struct nk_tool *a, const struct nk_tool *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->mtime_ns == b->mtime_ns &&
           strcmp(a->path, b->path) == 0;
}

int nk_versions_open(const struct nk_versions_config *cfg, struct nk_versions **out)
{
    struct nk_versions *v = malloc(sizeof *v);

    if (!v)
        return -ENOMEM;
    memset(v, 0, sizeof *v);
    memcpy(&v->cfg, cfg, sizeof v->cfg);
    nk_list_init(&v->all);
    nk_registry_add_owner(cfg->registry, &v->owner);
    v->owner.uncounted = true;
    (void)uv_timer_init(cfg->loop, &v->step);
    v->step.data = v;
    *out = v;
    return 0;
}

static void forget(struct version *one)
{
    nk_watcher_detach(&one->watcher);
    nk_list_remove(&one->link);
    one->versions->count--;
    free(one);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void nk_versions_close(struct nk_versions **slot)
{
    struct nk_versions *v = *slot;

    if (!v)
        return;
    *slot = NULL;
    while (!nk_list_empty(&v->all)) {
        struct version *one = nk_list_entry(v->all.next, struct version, link);

        while (!nk_list_empty(&one->asks))
            nk_list_remove(one->asks.next);
        forget(one);
    }
    nk_registry_remove_owner(v->cfg.registry, &v->owner);
    uv_close((uv_handle_t *)&v->step, on_closed);
}

void nk_versions_parse(const void *text, size_t len, char out[NK_VERSIONS_TEXT])
{
    const char *s = text;
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < len; i += n + 1) {
        bool point = false;

        for (n = 0; i + n < len && ((s[i + n] >= '0' && s[i + n] <= '9') || s[i + n] == '.'); n++)
            point = point || (s[i + n] == '.' && n > 0);
        while (n > 0 && s[i + n - 1] == '.')
            n--;
        if (!point || n < 3 || n >= NK_VERSIONS_TEXT || s[i] == '.')
            continue;
        memcpy(out, s + i, n);
        out[n] = '\0';
        return;
    }
}

static void read_answer(struct version *one, struct nk_process *p)
{
    for (size_t i = 0; i < 2 && p->captures && one->text[0] == '\0'; i++) {
        size_t len;
        const uint8_t *data = nk_capture_bytes(&p->captures[i], &len);

        nk_versions_parse(data, len, one->text);
    }
}

static void on_step(uv_timer_t *timer);

static void step_soon(struct nk_versions *v)
{
    (void)uv_timer_start(&v->step, on_step, 0, 0);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct version *one = NK_CONTAINER_OF(w, struct version, watcher);
    struct nk_process *p = w->process;

    (void)err;
    if (ev != NK_PROC_EV_EXITED && ev != NK_PROC_EV_FAILED)
        return;
    one->state = KNOWN;
    one->failed = ev == NK_PROC_EV_FAILED || p->timed_out;
    one->versions->running--;
    if (ev == NK_PROC_EV_EXITED) {
        read_answer(one, p);
        nk_registry_forget(one->versions->cfg.registry, p);
    }
    nk_watcher_detach(w);
    step_soon(one->versions);
}

static void run(struct version *one)
{
    struct nk_versions *v = one->versions;
    const char *const argv[] = {one->tool.path, one->arg, NULL};
    const struct nk_command cmd = {
        .argv = argv,
        .cwd = "/",
        .envp = v->cfg.env,
        .user = v->cfg.user,
        .owner = &v->owner,
        .timeout_ms = NK_VERSIONS_MS,
        .log_bytes = 4096,
        .max_output = 4096,
        .capture = true,
        .limits = v->cfg.limits,
    };
    struct nk_process *p;
    struct nk_err err;

    one->watcher.on_event = on_event;
    if (!one->arg || nk_process_start(v->cfg.registry, &cmd, &one->watcher, &p, &err) < 0) {
        one->state = KNOWN;
        one->failed = one->arg != NULL;
        return;
    }
    one->state = RUNNING;
    v->running++;
}

static void tell(struct version *one)
{
    while (!nk_list_empty(&one->asks)) {
        struct nk_version_ask *ask = nk_list_entry(one->asks.next, struct nk_version_ask, link);

        nk_list_remove(&ask->link);
        ask->told(ask, one->text);
    }
}

/* Starts what may run, tells what is known, and forgets what is too much. */
static void on_step(uv_timer_t *timer)
{
    struct nk_versions *v = timer->data;
    struct nk_list *n, *next;

    for (n = v->all.next; n != &v->all; n = next) {
        struct version *one = nk_list_entry(n, struct version, link);

        if (one->state == WAITING && v->running < NK_VERSIONS_AT_ONCE)
            run(one);
        if (one->state == KNOWN)
            tell(one);
        next = n->next;
        if (one->state == KNOWN && (one->failed || v->count > NK_VERSIONS_KEPT))
            forget(one);
    }
}

static struct version *find(struct nk_versions *v, const struct nk_tool *tool)
{
    for (struct nk_list *n = v->all.next; n != &v->all; n = n->next) {
        struct version *one = nk_list_entry(n, struct version, link);

        if (is_same(&one->tool, tool))
            return one;
    }
    return NULL;
}

static struct version *add(struct nk_versions *v, const struct nk_tool *tool, const char *arg)
{
    struct version *one = calloc(1, sizeof *one);

    if (!one)
        return NULL;
    one->versions = v;
    one->tool = *tool;
    one->arg = arg;
    nk_list_init(&one->asks);
    nk_list_append(&v->all, &one->link);
    v->count++;
    return one;
}

int nk_versions_ask(struct nk_versions *v, const struct nk_tool *tool, const char *arg,
                    struct nk_version_ask *ask)
{
    struct version *one = find(v, tool);

    if (!one)
        one = add(v, tool, arg);
    if (!one)
        return -ENOMEM;
    nk_list_append(&one->asks, &ask->link);
    step_soon(v);
    return 0;
}

void nk_versions_leave(struct nk_version_ask *ask)
{
    nk_list_remove(&ask->link);
}
