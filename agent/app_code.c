/* Languages that code can be in: their descriptions, and what a run of code is given. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app_inside.h"
#include "code/context_table.h"
#include "code/runtimes.h"
#include "code/versions.h"

int nk_app_code_load(struct nk_app *a, struct nk_err *err)
{
    const struct nk_config *cfg = a->cfg;

    if (nk_runtimes_load(cfg->runtimes, &a->runtimes, err) < 0)
        return -1;
    if (cfg->runtime && !nk_runtimes_find(a->runtimes, cfg->runtime))
        return nk_fail(err, NK_BAD_LANGUAGE, "--runtime: there is no language %s", cfg->runtime);
    return 0;
}

int nk_app_code_open(struct nk_app *a)
{
    const struct nk_versions_config vc = {
        .loop = &a->loop,
        .registry = a->registry,
        .user = &a->user,
        .env = (const char *const *)a->env,
        .limits = {.nproc = a->cfg->nproc ? a->cfg->nproc : a->cfg->max_processes,
                   .nofile_soft = a->cfg->nofile,
                   .fsize = a->cfg->fsize,
                   .memory = a->cfg->memory},
    };

    const struct nk_context_table_config cc = {
        .loop = &a->loop, .registry = a->registry, .max = (unsigned)a->cfg->max_contexts};
    int rc = nk_context_table_open(&cc, &a->contexts);

    return rc < 0 ? rc : nk_versions_open(&vc, &a->versions);
}

/* Where the code lies while it runs: the usual place, else where the user may write. */
static int list_temp_dirs(struct nk_app *a)
{
    const struct nk_strings *writable = &a->cfg->writable;

    a->temp_dirs = calloc(writable->count + 2, sizeof *a->temp_dirs);
    if (!a->temp_dirs)
        return -ENOMEM;
    a->temp_dirs[0] = "/tmp";
    for (size_t i = 0; i < writable->count; i++)
        a->temp_dirs[i + 1] = writable->item[i];
    return 0;
}

int nk_app_code_fill(struct nk_app *a)
{
    struct nk_api *api = &a->api;

    if (list_temp_dirs(a) < 0)
        return -ENOMEM;
    api->runs = (struct nk_run_config){
        .jobs = a->jobs,
        .runtimes = a->runtimes,
        .versions = a->versions,
        .roots = a->roots,
        .output_dir = a->cfg->output_dir,
        .temp_dirs = a->temp_dirs,
        .max_outputs = a->cfg->max_outputs,
        .switch_user = geteuid() == 0,
    };
    api->contexts = a->contexts;
    if (!a->cfg->runtime)
        return 0;
    api->sandbox.runtime = strdup(a->cfg->runtime);
    return api->sandbox.runtime ? 0 : -ENOMEM;
}

void nk_app_code_start(struct nk_app *a)
{
    nk_run_sweep_start(&a->leftovers, a->jobs, a->temp_dirs,
                       geteuid() == 0 ? &a->user.creds : NULL);
}

void nk_app_code_free(struct nk_app *a)
{
    nk_runtimes_free(a->runtimes);
    free(a->temp_dirs);
}
