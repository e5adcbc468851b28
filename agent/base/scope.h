/*
 * Release by scope: a local is released when it goes out of scope, unless it was taken.
 *
 * Works on locals only; the macros declare nothing and hide no control flow.
 */
#ifndef NK_BASE_SCOPE_H
#define NK_BASE_SCOPE_H

#include <stdlib.h>
#include <unistd.h>

static inline void nk_scope_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static inline void nk_scope_free(void *slot)
{
    free(*(void **)slot);
}

#define nk_auto_fd __attribute__((cleanup(nk_scope_close)))
#define nk_auto_free __attribute__((cleanup(nk_scope_free)))

/* The caller owns the result; the slot is empty afterwards. */
static inline int nk_take_fd(int *slot)
{
    int fd = *slot;

    *slot = -1;
    return fd;
}

static inline void *nk_take_ptr(void *slot)
{
    void *ptr = *(void **)slot;

    *(void **)slot = NULL;
    return ptr;
}

/* Closes and empties a descriptor slot; an empty one is left alone. */
static inline void nk_close_fd(int *slot)
{
    int fd = nk_take_fd(slot);

    if (fd >= 0)
        (void)close(fd);
}

#endif
