/* Arguments, environment, exit code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "app.h"
#include "cli/out.h"
#include "cli/verbs.h"
#include "config.h"
#include "files/tar_task.h"

#define EXIT_USAGE 2

static int refuse(const struct nk_err *err)
{
    (void)nk_out_fail(err);
    return EXIT_USAGE;
}

static int serve(int argc, char **argv, const struct nk_heritage *heritage)
{
    struct nk_config cfg;
    struct nk_err err = {0};
    bool stuck = false;
    int status;

    if (nk_config_load(argc, argv, &cfg, &err) < 0)
        return refuse(&err);
    status = nk_app_run(&cfg, heritage, &stuck, &err);
    if (stuck)
        _exit(status < 0 ? refuse(&err) : status);
    nk_config_fini(&cfg);
    return status < 0 ? refuse(&err) : status;
}

static int print_config(int argc, char **argv)
{
    struct nk_config cfg;
    struct nk_err err = {0};
    int rc;

    if (nk_config_load(argc, argv, &cfg, &err) < 0)
        return refuse(&err);
    rc = nk_config_print_json(&cfg);
    nk_config_fini(&cfg);
    return rc < 0 ? 1 : 0;
}

static bool is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

static int run_verb(int argc, char **argv)
{
    const struct nk_cli_env env = {.socket = nk_config_env("NOOKD_SOCKET"),
                                   .url = nk_config_env("NOOKD_URL"),
                                   .token_file = nk_config_env("NOOKD_TOKEN_FILE")};

    return nk_verbs_run(argc, argv, &env);
}

static int run(int argc, char **argv, const struct nk_heritage *heritage)
{
    const char *verb = argc > 1 ? argv[1] : NULL;

    if (!verb && getpid() != 1) {
        (void)fprintf(stderr, "usage: nookd serve [options] | nookd VERB …; see nookd --help\n");
        return EXIT_USAGE;
    }
    if (verb && (is_help(verb) || strcmp(verb, "help") == 0)) {
        nk_config_print_help();
        nk_verbs_print_help();
        return 0;
    }
    if (verb && strcmp(verb, "__worker") == 0)
        return nk_tar_task_main(argc - 2, argv + 2);
    if (verb && strcmp(verb, "--version") == 0)
        return printf("nookd %s\n", NOOK_VERSION) < 0;
    if (verb && strcmp(verb, "--print-routes") == 0)
        return nk_api_print_routes() < 0;
    if (verb && strcmp(verb, "--print-config") == 0)
        return print_config(argc - 2, argv + 2);
    if (verb && strcmp(verb, "serve") == 0)
        return argc > 2 && is_help(argv[2]) ? (nk_config_print_help(), 0)
                                            : serve(argc - 2, argv + 2, heritage);
    if (!verb || (verb[0] == '-' && getpid() == 1))
        return serve(argc - 1, argv + 1, heritage);
    return run_verb(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    struct nk_heritage heritage;

    nk_heritage_record(&heritage);
    exit(run(argc, argv, &heritage));
}
