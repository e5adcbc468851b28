#include "files/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/scope.h"
#include "files/place.h"
#include "files/temp.h"

#define PATH_REACH (2 * NK_PLACE_PATH_MAX) /* a client's path, and a name of an archive below it */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool is_ours(const struct nk_walk_entry *e)
{
    bool alone = S_ISREG(e->st.st_mode) && e->st.st_nlink == 1;

    return nk_temp_is(e->name) && (alone || S_ISDIR(e->st.st_mode)) && e->st.st_uid == geteuid() &&
           nk_temp_is_left(e->dir, e->name);
}

static void drop(struct nk_leftovers *left, const struct nk_walk_entry *e, bool is_folder)
{
    if (unlinkat(e->dir, e->name, is_folder ? AT_REMOVEDIR : 0) == 0)
        left->removed++;
}

/* A folder goes with all that is in it; `at` is good until the walk over the root goes on. */
static void take(struct nk_leftovers *left, const struct nk_walk_entry *e)
{
    int dir;

    if (e->leaving || !is_ours(e))
        return;
    if (!S_ISDIR(e->st.st_mode)) {
        drop(left, e, false);
        return;
    }
    left->at = *e;
    dir = openat(e->dir, e->name, DIR_FLAGS);
    if (dir >= 0)
        (void)nk_walk_new(dir, &(struct nk_walk_options){.force = true}, &left->doomed);
}

static void leave_doomed(struct nk_leftovers *left)
{
    nk_walk_free(left->doomed);
    left->doomed = NULL;
    drop(left, &left->at, true);
}

static void remove_next(struct nk_leftovers *left)
{
    struct nk_walk_entry e;
    int rc = nk_walk_next(left->doomed, left->task.until_ns, &e);

    left->seen += rc < 0 && rc != -EAGAIN;
    if (rc == 0 || left->seen >= NK_LEFTOVERS_MAX)
        leave_doomed(left);
    else if (rc > 0 && (e.leaving || !S_ISDIR(e.st.st_mode)))
        drop(left, &e, e.leaving);
}

static void leave_root(struct nk_leftovers *left)
{
    nk_walk_free(left->tree);
    left->tree = NULL;
    left->root++;
}

static void enter_root(struct nk_leftovers *left)
{
    static const struct nk_walk_options options = {.path_max = PATH_REACH, .tolerant = true};
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
        if (left->doomed) {
            remove_next(left);
            continue;
        }
        if (left->root == left->roots->count || left->seen >= NK_LEFTOVERS_MAX)
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
    nk_walk_free(left->doomed);
    left->doomed = NULL;
    nk_walk_free(left->tree);
    left->tree = NULL;
}
