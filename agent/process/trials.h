/*
 * The self-test's trials: each does what the daemon will do, in a throw-away child or on the calling
 * thread, and looks whether the kernel judged it as it should.
 *
 * Private to probe.c. Blocking, well under a millisecond each. Nothing stays behind.
 * 0: works; -errno: a step failed; NK_TRIAL_WRONG: every step succeeded, with the wrong outcome.
 */
#ifndef NK_PROCESS_TRIALS_H
#define NK_PROCESS_TRIALS_H

#include "base/creds.h"

#define NK_TRIAL_WRONG 1

int nk_trials_seccomp(void);
int nk_trials_mark(void);
int nk_trials_terminal(void);
int nk_trials_terminal_signals(void);
int nk_trials_terminal_eof(void);
/* `as` is not root. */
int nk_trials_uid_drop(const struct nk_creds *as);
int nk_trials_thread_ids(const struct nk_creds *as);
int nk_trials_peer_creds(const struct nk_creds *as);

#endif
