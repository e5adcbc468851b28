/*
 * The interpreters that can keep state: how each is started, and the text of ours that it runs.
 *
 * The texts are the files of code/drivers/, put into the binary by the build. A tiny program on the
 * command line reads the text over the channel, so nothing lies on disk. Static.
 */
#ifndef NK_CODE_DRIVERS_H
#define NK_CODE_DRIVERS_H

#include "code/runtimes.h"

extern const char nk_driver_py[], nk_driver_js[], nk_driver_sh[], nk_driver_rb[], nk_driver_php[];

struct nk_driver {
    const char *id;            /* of the runtime */
    struct nk_runtime_way way; /* argv and env; the tool is the runtime's */
    const char *text;
};

const struct nk_driver *nk_drivers_find(const char *id); /* NULL: code of it keeps no state */

#endif
