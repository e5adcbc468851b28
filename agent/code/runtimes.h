/*
 * The languages that code can be in: a built-in table, and descriptions in a folder.
 *
 * A runtime is data: what it is called, and its ways to run a file, of which the first counts whose
 * programs are there. Words of a way's argv and environment may hold {tool} {needs} {file} {dir}
 * {cwd} {cache}; the word {args} stands for the arguments, which else come last.
 *
 * Read once at start, owned by app, never changed afterwards: jobs on any thread read it.
 */
#ifndef NK_CODE_RUNTIMES_H
#define NK_CODE_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct nk_runtime_env {
    const char *name; /* NULL: the end of the list */
    const char *value;
    bool front; /* goes before what is there, with a colon; else only where nothing is set */
};

struct nk_runtime_way {
    const char *tools[3];    /* the same program by other names: the first that is there */
    const char *needs;       /* another program that must be there too; NULL: none */
    unsigned major, minor;   /* the least version of the tool; 0: any */
    const char *version;     /* the argument that makes it tell its version; NULL: there is none */
    const char *const *argv; /* NULL-ended */
    const char *file;        /* what the code is called: tracebacks show it */
    const char *helper;      /* one more file beside it; NULL: none */
    const char *helper_text;
    const struct nk_runtime_env *env; /* NULL: none */
    bool links;                       /* what lies in the working directory is linked beside it */
};

struct nk_runtime {
    const char *id;
    const char *const *aliases; /* NULL-ended */
    const struct nk_runtime_way *ways;
    size_t way_count;
    const char *mark;    /* code in which this does not occur ... */
    const char *opening; /* ... gets this in front; NULL: nothing */
};

struct nk_runtimes;

/* `dir` may be absent; a description that is wrong is an error that names the file. */
int nk_runtimes_load(const char *dir, struct nk_runtimes **out, struct nk_err *err);
void nk_runtimes_free(struct nk_runtimes *r);

/* By id or alias, in any case of letters; those of the folder first. NULL: there is none. */
const struct nk_runtime *nk_runtimes_find(const struct nk_runtimes *r, const char *name);
size_t nk_runtimes_count(const struct nk_runtimes *r);
const struct nk_runtime *nk_runtimes_at(const struct nk_runtimes *r, size_t i);

/* "tsx with node or node 22.6": what one of must be there. Returned in `out`, cut to its room. */
const char *nk_runtimes_needs(const struct nk_runtime *rt, char *out, size_t size);

/* Whether "22.6.1" is at least major.minor. */
bool nk_runtimes_is_enough(const struct nk_runtime_way *way, const char *version);

#endif
