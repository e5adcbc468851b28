/*
 * The inside of the registry, shared by registry.c, trees.c and ending.c. Private to process/.
 */
#ifndef NK_PROCESS_REGISTRY_PRIVATE_H
#define NK_PROCESS_REGISTRY_PRIVATE_H

#include "process/grouping.h"
#include "process/live.h"
#include "process/marks.h"
#include "process/registry.h"
#include "process/volley.h"

#define NK_SCAN_DELAY_MS 20 /* from the first suspect to a look at /proc */
#define NK_SCAN_INTERVAL_MS 100
#define NK_SCAN_ELSEWHERE_MS 1000 /* while somebody else reaps what is left of commands */
#define NK_SCAN_SHARE 20          /* of the time between two looks, one part is a look */
#define NK_SCAN_SHARE_AT_END 2    /* and one more to wait for what is ending */

struct nk_registry {
    struct nk_registry_config cfg;
    struct nk_registry_stats stats;
    struct nk_owner own; /* the sandbox's */
    struct nk_list owners;
    struct nk_marks marks;
    uint64_t serial;
    bool orphans_come; /* process 1 or subreaper: childless means that nothing lives */

    struct nk_list lives;    /* what is open of commands */
    struct nk_list suspects; /* ended records whose trees are not known to be gone */
    struct nk_list settles;
    uv_timer_t scan_timer;
    struct nk_job scan_job;
    uint8_t *scan_alive; /* owned; a byte a mark, filled by the job */
    int scan_rc;
    uint64_t scan_serial; /* of the scan that is under way or comes next */
    uint64_t scanned_ms;
    uint64_t scan_began_ms, scan_cost_ms;
    bool scan_busy, scan_again;

    bool paused;
    struct nk_job pause_job;
    struct nk_pause *pause_asked; /* borrowed: whom to tell; NULL: nobody any more */
    int pause_rc;
    bool pause_busy, pause_to;
    bool pause_waits;  /* for starts that are under way */
    bool pause_froze;  /* what the job did */
    bool pause_groups; /* the control groups are frozen, nobody was sent STOP */
    struct nk_grouping grouping;
    struct nk_volley volley;

    unsigned jobs;      /* tree jobs and scans under way */
    unsigned residents; /* that run */
    bool ending, killing, ended_told;
    enum nk_reason end_why;
    unsigned end_grace_ms; /* what is left of it after the hang-up */
    void (*end_done)(void *ctx);
    void *end_ctx; /* borrowed: outlives the registry */
    uv_timer_t end_timer;

    unsigned open_handles;
    bool closing;
};

/* trees.c */
void nk_trees_suspect(struct nk_registry *r, struct nk_process *p);
void nk_trees_look(struct nk_registry *r, bool soon);
void nk_trees_clear(struct nk_registry *r, struct nk_process *p);
void nk_trees_on_pass(void *registry);

/* pause.c */
void nk_pause_step(struct nk_registry *r); /* a start is through */
void nk_pause_over(struct nk_registry *r); /* all was woken: clocks go on, starts too */

/* ending.c */
typedef void (*nk_each_fn)(struct nk_registry *r, struct nk_process *p);
void nk_registry_each_running(struct nk_registry *r, nk_each_fn fn);
void nk_ending_step(struct nk_registry *r);
void nk_registry_release(struct nk_registry *r); /* frees after the last handle and job */

#endif
