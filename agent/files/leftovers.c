#include "files/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/scope.h"
#include "files/temp.h"

#define DEPTH_MAX 32

static bool is_ours(const struct nk_walk_entry *e)
{
    bool alone = S_ISREG(e->st.st_mode) && e->st.st_nlink == 1;

    return nk_temp_is(e->name) && (alone || S_ISDIR(e->st.st_mode)) && e->st.st_uid == geteuid() &&
           nk_temp_is_left(e->dir, e->name);
}

static bool is_below(const struct nk_walk_entry *e, const char *top)
{
    size_t len = strlen(top);

    return strncmp(e->path, top, len) == 0 && (e->path[len] == '/' || e->path[len] == '\0');
}

static void drop(struct nk_leftovers *left, const struct nk_walk_entry *e)
{
    if (unlinkat(e->dir, e->name, e->leaving ? AT_REMOVEDIR : 0) == 0)
        left->removed++;
}

/* Below a folder that goes everything goes, the folders when they are left. */
static void take(struct nk_leftovers *left, const struct nk_walk_entry *e)
{
    if (left->doomed && !is_below(e, left->doomed)) {
        free(left->doomed);
        left->doomed = NULL;
    }
    if (!left->doomed && !e->leaving && is_ours(e)) {
        if (S_ISDIR(e->st.st_mode))
            left->doomed = strdup(e->path);
        else
            drop(left, e);
        return;
    }
    if (left->doomed && (e->leaving || !S_ISDIR(e->st.st_mode)))
        drop(left, e);
}

static void leave_root(struct nk_leftovers *left)
{
    nk_walk_free(left->tree);
    left->tree = NULL;
    free(left->doomed);
    left->doomed = NULL;
    left->root++;
}

static void enter_root(struct nk_leftovers *left)
{
    static const struct nk_walk_options options = {.depth = DEPTH_MAX, .tolerant = true};
    const struct nk_root *root = &left->roots->item[left->root];
    nk_auto_fd int top = root->writable ? nk_roots_enter(root) : -1;
    int dir = top < 0 ? -1 : openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 || nk_walk_new(dir, &options, &left->tree) < 0)
        leave_root(left);
}

int nk_leftovers_go(struct nk_task *t)
{
    struct nk_leftovers *left = NK_CONTAINER_OF(t, struct nk_leftovers, task);
    struct nk_walk_entry e;

    while (!nk_task_due(t)) {
        if (left->root == left->roots->count || left->seen == NK_LEFTOVERS_MAX)
            return 0;
        if (!left->tree) {
            enter_root(left);
            continue;
        }
        int rc = nk_walk_next(left->tree, t->until_ns, &e);

        left->seen++;
        if (rc == 0 || rc == -ENOMEM)
            leave_root(left);
        else if (rc > 0)
            take(left, &e);
    }
    return NK_TASK_MORE;
}

void nk_leftovers_fini(struct nk_leftovers *left)
{
    nk_walk_free(left->tree);
    left->tree = NULL;
    free(left->doomed);
    left->doomed = NULL;
}
