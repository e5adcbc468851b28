#include "cli/verbs.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "cli/cmd_attach.h"
#include "cli/cmd_call.h"
#include "cli/cmd_cp.h"
#include "cli/cmd_exec.h"
#include "cli/cmd_health.h"
#include "cli/cmd_info.h"
#include "cli/cmd_kill.h"
#include "cli/cmd_logs.h"
#include "cli/cmd_ls.h"
#include "cli/cmd_mkdir.h"
#include "cli/cmd_proxy.h"
#include "cli/cmd_ps.h"
#include "cli/cmd_rm.h"
#include "cli/cmd_run.h"
#include "cli/cmd_sh.h"
#include "cli/out.h"

#define BAD_USAGE 2

static const struct nk_verb verbs[] = {
    {"exec", "run a command and end with its exit status", nk_cmd_exec_help, nk_cmd_exec},
    {"run", "run code in one of many languages", nk_cmd_run_help, nk_cmd_run},
    {"sh", "a shell on a terminal", nk_cmd_sh_help, nk_cmd_sh},
    {"attach", "watch a process and type to it", nk_cmd_attach_help, nk_cmd_attach},
    {"ps", "list processes", nk_cmd_ps_help, nk_cmd_ps},
    {"logs", "print what a process wrote, and follow it", nk_cmd_logs_help, nk_cmd_logs},
    {"kill", "send a signal to a process", nk_cmd_kill_help, nk_cmd_kill},
    {"cp", "copy files into the sandbox and out of it", nk_cmd_cp_help, nk_cmd_cp},
    {"ls", "list a folder of the sandbox", nk_cmd_ls_help, nk_cmd_ls},
    {"rm", "remove files and folders", nk_cmd_rm_help, nk_cmd_rm},
    {"mkdir", "make folders", nk_cmd_mkdir_help, nk_cmd_mkdir},
    {"call", "make one raw call of the API", nk_cmd_call_help, nk_cmd_call},
    {"proxy", "speak HTTP through standard input and output", nk_cmd_proxy_help, nk_cmd_proxy},
    {"info", "tell the state of the sandbox", nk_cmd_info_help, nk_cmd_info},
    {"health", "ask whether the daemon is well", nk_cmd_health_help, nk_cmd_health},
};

const struct nk_verb *nk_verbs_find(const char *name)
{
    for (size_t i = 0; i < NK_COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

void nk_verbs_print_help(void)
{
    struct nk_buf out = {0};

    for (size_t i = 0; i < NK_COUNT(verbs); i++)
        nk_buf_add_fmt(&out, "  %-8s %s\n", verbs[i].name, verbs[i].line);
    (void)nk_out_buf(&out);
    nk_buf_fini(&out);
}

/* A standard descriptor that is closed would be the number of the next that is opened: it reads as
 * empty and cannot be written, as it was. */
static void hold_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        (void)close(fd);
}

int nk_verbs_run(int argc, char **argv, const struct nk_cli_env *env)
{
    const struct nk_verb *verb = argc > 0 ? nk_verbs_find(argv[0]) : NULL;
    int status;

    if (!verb) {
        (void)nk_out_fail_msg("no such verb: %s (nookd --help lists them)",
                              argc > 0 ? argv[0] : "");
        return BAD_USAGE;
    }
    hold_standard_descriptors();
    /* A reader that went away is an error of write, so that connections are closed properly. */
    (void)signal(SIGPIPE, SIG_IGN);
    status = verb->run(argv + 1, env);
    if (status == NK_VERBS_HELP)
        return nk_out_write(NULL, STDOUT_FILENO, verb->help, strlen(verb->help));
    return status;
}
