/*
 * The daemon as a whole: makes the loop and every service, starts and stops them in order.
 *
 * Owned by main, on the main thread; nothing here is reached by a request but through struct nk_api.
 */
#ifndef NK_APP_H
#define NK_APP_H

#include <stdbool.h>

#include "base/err.h"
#include "config.h"
#include "process/heritage.h"

/* Serves until told to end. The exit status; where the start failed -1, and err says in one line
 * why. Stuck: a thread still runs that will not end, so nothing may be waited for or freed. */
int nk_app_run(const struct nk_config *cfg, const struct nk_heritage *heritage, bool *out_stuck,
               struct nk_err *err);

#endif
