/*
 * Signals by name and number. Pure functions.
 */
#ifndef NK_PROCESS_SIGNALS_H
#define NK_PROCESS_SIGNALS_H

const char *nk_signals_name(int signo);  /* "TERM", or NULL */
int nk_signals_number(const char *name); /* "TERM", "SIGTERM", "15"; -1: unknown */

#endif
