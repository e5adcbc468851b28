/* PROGRAM of the command line: as whom, with which environment, descriptors and signals. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app_inside.h"
#include "app_setup.h"
#include "process/registry.h"

#define LISTEN_PID "LISTEN_PID="
#define LISTEN_PID_SIZE 32

/* How we were started is read, and what we do not need is let go, before anything else is opened. */
int nk_app_program_inherit(struct nk_app *a, const struct nk_heritage *from, struct nk_err *err)
{
    int missing;

    a->heritage = *from;
    for (size_t i = 0; i < a->cfg->pass_fd.count; i++) {
        if (a->heritage.fd_count == NK_HERITAGE_FDS)
            return nk_fail(err, NK_BAD_REQUEST, "--pass-fd: more than %d", NK_HERITAGE_FDS);
        a->heritage.fds[a->heritage.fd_count++] = (int)strtol(a->cfg->pass_fd.item[i], NULL, 10);
    }
    if (nk_heritage_close_fds(&a->heritage, a->cfg->token_fd, &missing) < 0)
        return nk_fail(err, NK_BAD_REQUEST, "descriptor %d is not open", missing);
    a->cwd = getcwd(NULL, 0);
    if (chdir("/") < 0)
        return nk_fail_sys(err, errno, "cannot change to /");
    return 0;
}

void nk_app_program_fini(struct nk_app *a)
{
    nk_app_setup_free_env(a->program_env);
    free(a->cwd);
}

/* What follows the name where it is LISTEN_PID, with room for any number. */
static char *copy_entry(struct nk_app *a, const char *entry)
{
    char *copy;

    if (strncmp(entry, LISTEN_PID, sizeof LISTEN_PID - 1) != 0)
        return strdup(entry);
    copy = calloc(1, LISTEN_PID_SIZE);
    if (!copy)
        return NULL;
    memcpy(copy, LISTEN_PID, sizeof LISTEN_PID);
    a->heritage.listen_pid = copy + sizeof LISTEN_PID - 1;
    return copy;
}

static char *pair(const char *key, const char *value)
{
    char *out;

    return asprintf(&out, "%s=%s", key, value) < 0 ? NULL : out;
}

static bool is_of_user(const char *entry)
{
    static const char *const names[] = {"HOME=", "USER=", "LOGNAME=", "SHELL="};

    for (size_t i = 0; i < NK_COUNT(names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* All that we were given but our own options; who runs it is told anew where that is not us. */
static int make_env(struct nk_app *a, const struct nk_user *user)
{
    bool other = user->creds.uid != geteuid();
    const char *const own[][2] = {{"HOME", user->home},
                                  {"USER", user->name},
                                  {"LOGNAME", user->name},
                                  {"SHELL", user->shell}};
    size_t count = 0, n = 0;

    while (environ && environ[count])
        count++;
    a->program_env = calloc(count + NK_COUNT(own) + 1, sizeof(char *));
    if (!a->program_env)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "NOOKD_", 6) == 0 || (other && is_of_user(environ[i])))
            continue;
        a->program_env[n] = copy_entry(a, environ[i]);
        if (!a->program_env[n++])
            return -ENOMEM;
    }
    for (size_t i = 0; other && i < NK_COUNT(own); i++) {
        a->program_env[n] = pair(own[i][0], own[i][1]);
        if (!a->program_env[n++])
            return -ENOMEM;
    }
    return 0;
}

static bool has_foreground(void)
{
    pid_t front = tcgetpgrp(STDIN_FILENO);

    return isatty(STDIN_FILENO) && front >= 0 && front == getpgrp();
}

static void on_exit_of_program(void *ctx, int status)
{
    struct nk_app *a = ctx;

    a->status = status;
    if (!a->api.ending)
        nk_app_end(a, NK_REASON_SHUTDOWN, SIGTERM);
}

/* --program-user was found to be right before. */
int nk_app_program_start(struct nk_app *a)
{
    const struct nk_config *cfg = a->cfg;
    struct nk_program_config pc = {
        .loop = &a->loop,
        .jobs = a->jobs,
        .reaper = a->reaper,
        .spawner = a->spawner,
        .argv = (const char *const *)cfg->program,
        .cwd = a->cwd ? a->cwd : "/",
        .heritage = &a->heritage,
        .creds = a->program_user.creds,
        .switch_user = geteuid() == 0,
        .pidfd = nk_has(&a->kernel, NK_MECH_PIDFD),
        .mark = nk_registry_take_mark(a->registry),
        .alone = cfg->signals_child,
        .leave = cfg->main_exit_leave,
        .on_exit = on_exit_of_program,
        .on_over = nk_app_part_over,
        .ctx = a,
    };
    int rc = make_env(a, &a->program_user);

    if (rc < 0)
        return rc;
    pc.envp = (const char *const *)a->program_env;
    a->heritage.foreground = has_foreground();
    return nk_program_open(&pc, &a->program);
}
