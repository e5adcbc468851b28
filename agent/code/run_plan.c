#include "code/run_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/drivers.h"
#include "code/run_folder.h"
#include "code/run_words.h"

static const char *const *dup_list(struct nk_arena *arena, const char *const *list)
{
    size_t count = 0;
    const char **copy;

    while (list && list[count])
        count++;
    copy = nk_arena_alloc(arena, (count + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = nk_arena_str(arena, list[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}

static int copy_input(struct nk_run_plan *plan, const struct nk_command *cmd)
{
    if (!cmd->stdin_data)
        return 0;
    plan->stdin_data = malloc(cmd->stdin_len ? cmd->stdin_len : 1);
    if (!plan->stdin_data)
        return -1;
    memcpy(plan->stdin_data, cmd->stdin_data, cmd->stdin_len);
    plan->cmd.stdin_data = plan->stdin_data;
    return 0;
}

/* Everything is copied: the request may be over before it starts. */
static int copy_command(struct nk_run_plan *plan, const struct nk_run_request *ask)
{
    const struct nk_command *cmd = ask->cmd;
    struct nk_command *copy = &plan->cmd;

    plan->user = *cmd->user;
    *copy = *cmd;
    copy->user = &plan->user;
    copy->argv = cmd->argv ? dup_list(&plan->arena, cmd->argv) : NULL;
    copy->envp = dup_list(&plan->arena, cmd->envp);
    copy->cwd = nk_arena_str(&plan->arena, cmd->cwd);
    copy->name = cmd->name ? nk_arena_str(&plan->arena, cmd->name) : NULL;
    plan->args = dup_list(&plan->arena, ask->args);
    plan->code = ask->code ? strdup(ask->code) : NULL;
    if ((cmd->argv && !copy->argv) || !copy->envp || !copy->cwd || !plan->args)
        return -1;
    if ((cmd->name && !copy->name) || (ask->code && !plan->code))
        return -1;
    plan->search = nk_tools_env(copy->envp, "PATH", NK_TOOLS_SEARCH);
    return copy_input(plan, cmd);
}

int nk_run_plan_new(const struct nk_run_request *ask, struct nk_run_plan **out)
{
    struct nk_run_plan *plan = calloc(1, sizeof *plan);

    if (!plan)
        return -ENOMEM;
    plan->runtime = ask->runtime;
    plan->driver = ask->driver;
    plan->any = !plan->runtime && !ask->context;
    if (copy_command(plan, ask) < 0) {
        nk_run_plan_free(plan);
        return -ENOMEM;
    }
    *out = plan;
    return 0;
}

void nk_run_plan_free(struct nk_run_plan *plan)
{
    if (!plan)
        return;
    nk_arena_fini(&plan->arena);
    free(plan->stdin_data);
    free(plan->code);
    free(plan);
}

static const struct nk_runtime *wanted(const struct nk_run_plan *plan,
                                       const struct nk_runtimes *all)
{
    size_t at = plan->runtime_at;

    if (!plan->any)
        return at == 0 ? plan->runtime : NULL;
    return at < nk_runtimes_count(all) ? nk_runtimes_at(all, at) : NULL;
}

static int fail_missing(const struct nk_run_plan *plan, struct nk_err *err)
{
    char needs[160];

    if (plan->any)
        return nk_fail(err, NK_NOT_SUPPORTED, "no language is available: none of their tools is");
    return nk_fail(err, NK_NOT_SUPPORTED, "%s is not available: it needs %s", plan->runtime->id,
                   nk_runtimes_needs(plan->runtime, needs, sizeof needs));
}

int nk_run_plan_find(struct nk_run_plan *plan, const struct nk_runtimes *all, struct nk_err *err)
{
    const struct nk_runtime *rt;

    for (; (rt = wanted(plan, all)) != NULL; plan->runtime_at++, plan->way_at = 0) {
        for (; plan->way_at < rt->way_count; plan->way_at++) {
            const struct nk_runtime_way *way = &rt->ways[plan->way_at];

            if (!nk_tools_find_way(way, plan->search, &plan->tool, &plan->needs))
                continue;
            plan->checks = way->major > 0 && !plan->enough;
            plan->runtime = rt;
            plan->way = way;
            return 0;
        }
    }
    return fail_missing(plan, err);
}

void nk_run_plan_check(struct nk_run_plan *plan, const char *version)
{
    plan->checks = false;
    plan->enough = nk_runtimes_is_enough(plan->way, version);
    if (!plan->enough)
        plan->way_at++;
}

static int write_files(const struct nk_run_plan *plan, struct nk_run_folder *folder,
                       const char *const *temp_dirs, struct nk_err *err)
{
    const struct nk_runtime_way *way = plan->way;
    const struct nk_runtime *rt = plan->runtime;
    const char *code = plan->code;
    bool bare = rt->mark && !strstr(code, rt->mark);

    if (nk_run_folder_make(folder, temp_dirs, err) < 0 ||
        nk_run_folder_write(folder, way->file, bare ? rt->opening : NULL, code, strlen(code), err) <
            0)
        return -1;
    if (way->helper && nk_run_folder_write(folder, way->helper, NULL, way->helper_text,
                                           strlen(way->helper_text), err) < 0)
        return -1;
    if (way->links)
        nk_run_folder_link(folder, plan->cmd.cwd);
    return 0;
}

static int make_command(struct nk_run_plan *plan, const struct nk_run_folder *folder,
                        struct nk_err *err)
{
    const struct nk_runtime_way *way = plan->way;
    char cache[NK_RUN_FOLDER_PATH];
    char file[2 * NK_RUN_FOLDER_PATH];
    const struct nk_run_words words = {.tool = plan->tool.path,
                                       .needs = plan->needs.path,
                                       .file = file,
                                       .dir = folder->path,
                                       .cwd = plan->cmd.cwd,
                                       .cache = cache};

    (void)snprintf(file, sizeof file, "%s/%s", folder->path, way->file);
    cache[0] = '\0';
    if (nk_run_words_uses(plan->way, "{cache}"))
        nk_run_folder_cache(folder, plan->cmd.envp, cache);
    plan->cmd.argv = nk_run_words_argv(way, &words, plan->args, &plan->arena);
    plan->cmd.envp = nk_run_words_env(way, &words, plan->cmd.envp, &plan->arena);
    if (!plan->cmd.argv || !plan->cmd.envp)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    return 0;
}

int nk_run_plan_drive(struct nk_run_plan *plan, struct nk_err *err)
{
    const struct nk_driver *driver = nk_drivers_find(plan->runtime->id);
    const struct nk_run_words words = {.tool = plan->tool.path, .cwd = plan->cmd.cwd};

    if (!driver)
        return nk_fail(err, NK_NOT_SUPPORTED, "%s has no contexts here: it keeps no state",
                       plan->runtime->id);
    plan->cmd.argv = nk_run_words_argv(&driver->way, &words, NULL, &plan->arena);
    plan->cmd.envp = nk_run_words_env(&driver->way, &words, plan->cmd.envp, &plan->arena);
    if (!plan->cmd.argv || !plan->cmd.envp)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    return 0;
}

int nk_run_plan_fill(struct nk_run_plan *plan, struct nk_run_folder *folder,
                     const char *const *temp_dirs, struct nk_err *err)
{
    return write_files(plan, folder, temp_dirs, err) < 0 ? -1 : make_command(plan, folder, err);
}
