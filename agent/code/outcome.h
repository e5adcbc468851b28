/*
 * What a run in a context gave beside its output: the value of the last expression, an error, what it
 * showed on the way.
 *
 * Bundles are kept as the JSON they are told as. At most `max_bytes` of shown values are kept, what is
 * beyond has no data. Owned by the run (code/run.h); loop thread only.
 */
#ifndef NK_CODE_OUTCOME_H
#define NK_CODE_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/json_out.h"

#define NK_OUTCOME_DISPLAYS 4096

struct nk_display {
    uint64_t offset;    /* of the log: where it was shown */
    struct nk_buf json; /* owned; empty: told already, and not needed again */
};

struct nk_outcome {
    uint64_t count;              /* how many runs this interpreter has seen, this one included */
    bool reset;                  /* the interpreter before this one had died */
    struct nk_buf result, error; /* owned; empty: null */
    struct nk_display *display;  /* owned */
    size_t displays, room;
    size_t first; /* shown before `display[0]`, and forgotten */
    size_t bytes; /* of what is shown */
    size_t max_bytes;
    bool once; /* set by who tells what is shown as it comes: nobody else will */
};

struct nk_outcome *nk_outcome_new(size_t max_bytes); /* NULL: no memory */
void nk_outcome_free(struct nk_outcome *o);

/* Where memory is missing the value is lost, never the run. */
void nk_outcome_set_result(struct nk_outcome *o, const struct nk_json *bundle);
void nk_outcome_set_error(struct nk_outcome *o, const struct nk_json *error);
/* The interpreter's own end, in the shape of an error of the code. */
void nk_outcome_fail(struct nk_outcome *o, const char *name, const char *value);
void nk_outcome_show(struct nk_outcome *o, uint64_t offset, const struct nk_json *bundle);
/* The nth that was shown, or NULL: not yet, or not any more. */
struct nk_display *nk_outcome_at(const struct nk_outcome *o, size_t n);
void nk_outcome_told(struct nk_outcome *o, size_t n);

/* A bundle as it is told where a message is bounded: without data if it is larger than `max`. */
void nk_outcome_write(struct nk_json_out *o, const char *key, const struct nk_buf *bundle,
                      size_t max);

void nk_outcome_drop(struct nk_outcome *o); /* all that was told */
size_t nk_outcome_memory(const struct nk_outcome *o);

#endif
