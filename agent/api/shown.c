#include "api/shown.h"

#include "code/outcome.h"
#include "code/run.h"
#include "process/process.h"

static struct nk_outcome *outcome_of(const struct nk_shown *s, const struct nk_process *p)
{
    const struct nk_run *run = s->on ? nk_run_of(p) : NULL;
    struct nk_outcome *out = run ? nk_run_outcome(run) : NULL;

    return out && s->next < out->displays ? out : NULL;
}

const struct nk_display *nk_shown_due(struct nk_shown *s, const struct nk_process *p, uint64_t pos)
{
    const struct nk_outcome *out = outcome_of(s, p);

    return out && out->display[s->next].offset <= pos ? &out->display[s->next] : NULL;
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
    uint64_t end = nk_process_stream_end(p);

    return out && out->display[s->next].offset < end ? out->display[s->next].offset : end;
}
