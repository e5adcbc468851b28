/*
 * Which languages can be used here: the tools of every runtime, found and asked for their versions.
 *
 * Done when somebody asks, so that a start costs nothing and what was installed meanwhile is seen;
 * versions are remembered (code/versions.h). Loop thread only; the looking is a job with the user's
 * rights.
 */
#ifndef NK_CODE_SURVEY_H
#define NK_CODE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>

#include "code/runtimes.h"
#include "code/tools.h"

#define NK_SURVEY_TOOLS 96

struct nk_creds;
struct nk_jobs;
struct nk_survey;
struct nk_versions;

struct nk_survey_config { /* all borrowed: outlives every survey */
    struct nk_jobs *jobs;
    const struct nk_runtimes *runtimes;
    struct nk_versions *versions;
    const struct nk_creds *as; /* with whose rights; NULL: our own */
    const char *search;        /* a PATH */
    bool asks;                 /* programs may be run now */
};

struct nk_survey_tool {
    const char *name;    /* borrowed: of a runtime */
    const char *path;    /* borrowed from the survey */
    const char *version; /* likewise; NULL: not known */
};

struct nk_survey_language {
    const char *id;
    bool available;
    const char *tool, *version; /* NULL: none, or not known */
};

/* `done` comes later, once. NULL: no memory. */
struct nk_survey *nk_survey_start(const struct nk_survey_config *cfg,
                                  void (*done)(struct nk_survey *s, void *ctx), void *ctx);
/* Also before it is done: `done` will not be called then. */
void nk_survey_drop(struct nk_survey *s);

size_t nk_survey_languages(const struct nk_survey *s);
struct nk_survey_language nk_survey_language(const struct nk_survey *s, size_t i);
size_t nk_survey_tools(const struct nk_survey *s); /* that were found */
struct nk_survey_tool nk_survey_tool(const struct nk_survey *s, size_t i);

#endif
