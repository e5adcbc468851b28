/*
 * What archives.c and archive_flow.c know of an archive on its way: its worker, its pipes, how far it is.
 *
 * Private to these two. Loop thread only.
 */
#ifndef NK_FILES_ARCHIVE_INSIDE_H
#define NK_FILES_ARCHIVE_INSIDE_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "files/archive_note.h"
#include "files/archive_pipe.h"
#include "files/archives.h"
#include "process/reaper.h"
#include "process/spawn.h"

struct nk_archive {
    struct nk_list link;
    struct nk_archives *all; /* borrowed; NULL: they are closed */
    struct nk_archive_events events;
    struct nk_spawn spawn;
    struct nk_reaper_watch watch;
    struct nk_archive_pipe in, out, note;
    uv_timer_t timer;
    unsigned open_handles;
    struct nk_buf pending; /* for the worker, not yet taken */
    struct nk_buf notes;
    struct nk_archive_note last; /* what the worker said at its end */
    uint64_t moved_ms;
    bool packing;
    bool starting;
    bool running; /* not reaped */
    bool ready;
    bool told;   /* the worker has said its last word, and is heard no more */
    bool over;   /* and it is gone, or was given up */
    bool ended;  /* no more will be written */
    bool hungry; /* packing: somebody waits for bytes */
    bool full;   /* unpacking: somebody waits for room in the pipe */
    bool copies; /* bytes cannot go between socket and pipe by themselves */
    bool closed; /* the owner has left */
};

void nk_archive_close_pipe(struct nk_archive_pipe *p);
void nk_archive_kill(const struct nk_archive *a); /* the worker, if it runs */
void nk_archive_moved(struct nk_archive *a);      /* not to be taken for one that stands still */
void nk_archive_tell_more(const struct nk_archive *a);

#endif
