#include "process/watcher.h"

#include "process/live.h"

void nk_watcher_attach(struct nk_watcher *w, struct nk_process *p)
{
    nk_process_ref(p);
    w->process = p;
    nk_list_append(&p->watchers, &w->link);
}

/* Of a hosted run it is the interpreter's outputs that were held back. */
static void resume(const struct nk_process *p)
{
    struct nk_live *l = p->carrier ? p->carrier->live : p->live;

    if (l)
        nk_output_resume(l);
}

void nk_watcher_detach(struct nk_watcher *w)
{
    struct nk_process *p = w->process;

    if (!p)
        return;
    w->process = NULL;
    if (p->emit_next == &w->link)
        p->emit_next = w->link.next;
    nk_list_remove(&w->link);
    resume(p);
    nk_process_unref(p);
}

void nk_watcher_advance(struct nk_watcher *w, uint64_t pos)
{
    w->pos = pos;
    if (w->holds && w->process)
        resume(w->process);
}

/* Every watcher once, whatever they detach meanwhile. */
void nk_process_emit(struct nk_process *p, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_list *n = p->watchers.next;

    if (n == &p->watchers)
        return;
    nk_process_ref(p);
    while (n != &p->watchers) {
        struct nk_watcher *w = nk_list_entry(n, struct nk_watcher, link);

        p->emit_next = n->next;
        w->on_event(w, ev, err);
        n = p->emit_next;
    }
    p->emit_next = NULL;
    nk_process_unref(p);
}
