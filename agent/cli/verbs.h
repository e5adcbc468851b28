/*
 * The verbs of the command line: one table, one function each.
 *
 * A verb gets its arguments and the values of the environment, blocks until it is done, and gives
 * the exit status of the process. Main calls this for every verb but `serve`.
 */
#ifndef NK_CLI_VERBS_H
#define NK_CLI_VERBS_H

#include "cli/target.h"

#define NK_VERBS_HELP (-1) /* of a verb's function: its help was asked for */

/* `argv` begins behind the verb, is NULL-ended and may be reordered. */
typedef int (*nk_verbs_fn)(char **argv, const struct nk_cli_env *env);

struct nk_verb {
    const char *name;
    const char *line; /* for the list of verbs */
    const char *help; /* what --help prints */
    nk_verbs_fn run;
};

const struct nk_verb *nk_verbs_find(const char *name);
void nk_verbs_print_help(void); /* the verbs and their lines, on standard output */

/* argv[0] is the verb, argv[argc] NULL. The exit status; 2 for a verb that does not exist. */
int nk_verbs_run(int argc, char **argv, const struct nk_cli_env *env);

#endif
