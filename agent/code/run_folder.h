/*
 * The private folder of one run: its code, and what belongs to it, for nobody but the user.
 *
 * A new folder of a random name in one for temporary files, 0700, the user's own. Blocking; on pool
 * threads with the user's rights. What is in it when the run is over goes with it, whatever that is.
 */
#ifndef NK_CODE_RUN_FOLDER_H
#define NK_CODE_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NK_RUN_FOLDER_NAME 48
#define NK_RUN_FOLDER_PATH 1024
#define NK_RUN_FOLDER_LINKS 4096 /* of what lies in the working directory */

struct nk_walk;

struct nk_run_folder {
    char name[NK_RUN_FOLDER_NAME];
    char *top;  /* owned: where it lies; NULL: it is not there */
    char *path; /* owned: its own */
    int dir; /* owned: from its making until it is removed: locked, so that it is known as in use */
    unsigned rounds;
    struct nk_walk *tree; /* owned: while it is being removed */
};

void nk_run_folder_init(struct nk_run_folder *f); /* on the loop: the name */
void nk_run_folder_fini(struct nk_run_folder *f); /* the folder itself stays */

/* In the first of `tops` (NULL-ended) that takes it. 0 or -1 with err. */
int nk_run_folder_make(struct nk_run_folder *f, const char *const *tops, struct nk_err *err);
int nk_run_folder_write(struct nk_run_folder *f, const char *name, const char *front,
                        const void *text, size_t len, struct nk_err *err);
/* Links to all that lies in `cwd`, for programs that look for modules beside the code only. */
void nk_run_folder_link(struct nk_run_folder *f, const char *cwd);

static inline bool nk_run_folder_is_there(const struct nk_run_folder *f)
{
    return f->top != NULL;
}

/* Removes it, in slices: 1 where `until_ns` came first, else 0. What could not be done (no memory,
 * no descriptor) may be tried again: it is still there then. */
int nk_run_folder_clear(struct nk_run_folder *f, uint64_t until_ns);

/* One that another agent made and left: what may be its name, whether somebody alive has it, and to
 * have it to be cleared (0 or -errno). */
bool nk_run_folder_is_name(const char *name);
bool nk_run_folder_is_held(int top, const char *name);
int nk_run_folder_adopt(struct nk_run_folder *f, const char *top, const char *name);

/* Where programs may keep what they can use again: XDG_CACHE_HOME, ~/.cache, else a folder of the
 * user's in `top`, else the private one. */
void nk_run_folder_cache(const struct nk_run_folder *f, const char *const *envp,
                         char out[NK_RUN_FOLDER_PATH]);

#endif
