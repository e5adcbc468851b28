#include "code/survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/job.h"
#include "code/versions.h"

struct entry {
    struct nk_tool tool;
    const char *name; /* borrowed: of a runtime */
    const char *arg;  /* borrowed; NULL: it cannot tell its version */
    char version[NK_VERSIONS_TEXT];
    struct nk_version_ask ask;
    struct nk_survey *survey; /* borrowed: the owner */
};

struct nk_survey {
    struct nk_survey_config cfg;
    struct nk_job job;
    void (*done)(struct nk_survey *s, void *ctx);
    void *ctx; /* borrowed: until done or dropped */
    bool looking;
    bool dropped;
    size_t asked; /* versions that are still to be told */
    size_t count;
    struct entry entries[NK_SURVEY_TOOLS]; /* that were found */
    char search[];                         /* the configured one may be replaced */
};

static const struct entry *entry_of(const struct nk_survey *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->entries[i].name, name) == 0)
            return &s->entries[i];
    }
    return NULL;
}

static void look_for(struct nk_survey *s, const char *name, const char *arg)
{
    struct entry *e = &s->entries[s->count];

    if (s->count == NK_SURVEY_TOOLS || entry_of(s, name))
        return;
    if (!nk_tools_find(name, s->cfg.search, &e->tool))
        return;
    e->name = name;
    e->arg = arg;
    e->survey = s;
    s->count++;
}

static void work(struct nk_job *job)
{
    struct nk_survey *s = NK_CONTAINER_OF(job, struct nk_survey, job);

    for (size_t i = 0; i < nk_runtimes_count(s->cfg.runtimes); i++) {
        const struct nk_runtime *rt = nk_runtimes_at(s->cfg.runtimes, i);

        for (size_t k = 0; k < rt->way_count; k++) {
            const struct nk_runtime_way *way = &rt->ways[k];

            for (size_t n = 0; n < NK_COUNT(way->tools) && way->tools[n]; n++)
                look_for(s, way->tools[n], way->version);
            if (way->needs)
                look_for(s, way->needs, "--version");
        }
    }
}

static void finish(struct nk_survey *s)
{
    if (s->asked == 0)
        s->done(s, s->ctx);
}

static void on_told(struct nk_version_ask *ask, const char *version)
{
    struct entry *e = NK_CONTAINER_OF(ask, struct entry, ask);
    struct nk_survey *s = e->survey;

    memcpy(e->version, version, strlen(version) + 1);
    s->asked--;
    finish(s);
}

static void on_looked(struct nk_job *job, bool canceled)
{
    struct nk_survey *s = NK_CONTAINER_OF(job, struct nk_survey, job);

    (void)canceled;
    s->looking = false;
    if (s->dropped) {
        free(s);
        return;
    }
    for (size_t i = 0; i < s->count && s->cfg.asks; i++) {
        struct entry *e = &s->entries[i];

        e->ask.told = on_told;
        if (nk_versions_ask(s->cfg.versions, &e->tool, e->arg, &e->ask) == 0)
            s->asked++;
    }
    finish(s);
}

struct nk_survey *nk_survey_start(const struct nk_survey_config *cfg,
                                  void (*done)(struct nk_survey *s, void *ctx), void *ctx)
{
    size_t len = strlen(cfg->search);
    struct nk_survey *s = calloc(1, sizeof *s + len + 1);

    if (!s)
        return NULL;
    s->cfg = *cfg;
    memcpy(s->search, cfg->search, len);
    s->cfg.search = s->search;
    s->done = done;
    s->ctx = ctx;
    s->looking = true;
    s->job = (struct nk_job){.work = work, .done = on_looked, .as = cfg->as};
    nk_job_submit(cfg->jobs, &s->job);
    return s;
}

void nk_survey_drop(struct nk_survey *s)
{
    if (s->looking) {
        s->dropped = true;
        return;
    }
    for (size_t i = 0; i < s->count; i++)
        nk_versions_leave(&s->entries[i].ask);
    free(s);
}

size_t nk_survey_languages(const struct nk_survey *s)
{
    return nk_runtimes_count(s->cfg.runtimes);
}

static bool is_there(const struct nk_survey *s, const struct nk_runtime_way *way,
                     const struct entry **out)
{
    *out = NULL;
    for (size_t i = 0; i < NK_COUNT(way->tools) && way->tools[i] && !*out; i++)
        *out = entry_of(s, way->tools[i]);
    if (!*out || (way->needs && !entry_of(s, way->needs)))
        return false;
    return way->major == 0 || nk_runtimes_is_enough(way, (*out)->version);
}

struct nk_survey_language nk_survey_language(const struct nk_survey *s, size_t i)
{
    const struct nk_runtime *rt = nk_runtimes_at(s->cfg.runtimes, i);
    const struct entry *e;

    for (size_t k = 0; k < rt->way_count; k++) {
        if (is_there(s, &rt->ways[k], &e))
            return (struct nk_survey_language){rt->id, true, e->name,
                                               e->version[0] ? e->version : NULL};
    }
    return (struct nk_survey_language){.id = rt->id};
}

size_t nk_survey_tools(const struct nk_survey *s)
{
    return s->count;
}

struct nk_survey_tool nk_survey_tool(const struct nk_survey *s, size_t i)
{
    const struct entry *e = &s->entries[i];

    return (struct nk_survey_tool){e->name, e->tool.path, e->version[0] ? e->version : NULL};
}
