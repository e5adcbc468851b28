#include "process/marks.h"

#include <errno.h>
#include <stdlib.h>

int nk_marks_init(struct nk_marks *m, gid_t first, gid_t last)
{
    *m = (struct nk_marks){.first = first};
    if (first == 0)
        return 0;
    m->count = last - first + 1;
    m->used = calloc(m->count, 1);
    return m->used ? 0 : -ENOMEM;
}

void nk_marks_fini(struct nk_marks *m)
{
    free(m->used);
    *m = (struct nk_marks){0};
}

gid_t nk_marks_take(struct nk_marks *m)
{
    if (m->taken == m->count)
        return 0;
    while (m->used[m->next])
        m->next = (m->next + 1) % m->count;
    m->used[m->next] = 1;
    m->taken++;
    return m->first + m->next;
}

void nk_marks_give(struct nk_marks *m, gid_t mark)
{
    if (mark < m->first || mark - m->first >= m->count || !m->used[mark - m->first])
        return;
    m->used[mark - m->first] = 0;
    m->taken--;
    if (m->next == mark - m->first)
        m->next = (m->next + 1) % m->count;
}
