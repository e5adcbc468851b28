/*
 * Names for things: random, unguessable, `[a-z0-9]` only.
 *
 * From getrandom(2), in batches: no system call for most ids. One thread (the loop's).
 */
#ifndef NK_BASE_ID_H
#define NK_BASE_ID_H

#define NK_ID_MAX 25

/* 24 characters, 120 bits, and a NUL. */
void nk_id_new(char out[NK_ID_MAX]);

/* Fills with random bytes; never fails (blocks at most at early boot). */
void nk_id_random(void *out, unsigned len);

#endif
