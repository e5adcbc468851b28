#include "api/shown.h"

#include "code/outcome.h"
#include "code/run.h"
#include "process/process.h"

static struct nk_outcome *outcome_of(const struct nk_shown *s, const struct nk_process *p)
{
    const struct nk_run *run = s->on ? nk_run_of(p) : NULL;

    return run ? nk_run_outcome(run) : NULL;
}

const struct nk_display *nk_shown_due(const struct nk_shown *s, const struct nk_process *p,
                                      uint64_t pos)
{
    const struct nk_outcome *out = outcome_of(s, p);
    const struct nk_display *d = out ? nk_outcome_at(out, s->next) : NULL;

    return d && d->offset <= pos ? d : NULL;
}

void nk_shown_told(struct nk_shown *s, const struct nk_process *p)
{
    struct nk_outcome *out = outcome_of(s, p);

    if (out)
        nk_outcome_told(out, s->next);
    s->next++;
}

uint64_t nk_shown_end(const struct nk_shown *s, const struct nk_process *p)
{
    const struct nk_outcome *out = outcome_of(s, p);
    const struct nk_display *d = out ? nk_outcome_at(out, s->next) : NULL;
    uint64_t end = nk_process_stream_end(p);

    return d && d->offset < end ? d->offset : end;
}
