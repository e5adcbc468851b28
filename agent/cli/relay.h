/*
 * Bytes both ways between a pair of descriptors and one connection, until the connection ends.
 *
 * Descriptors of any kind; what they share with other processes (their flags above all) is left as it
 * is, so nothing here waits in a read or write. A way that is full holds up its own source and not
 * the other way. One buffer for each way; blocking; one thread.
 */
#ifndef NK_CLI_RELAY_H
#define NK_CLI_RELAY_H

/* `conn`: a non-blocking stream socket. The end of `in` shuts its sending side. The exit status: 0
 * at the end of the connection, NK_OUT_PIPE when nobody reads `out` any more, else NK_OUT_FAILED
 * (told). */
int nk_relay_run(int in, int out, int conn);

#endif
