/* Loaded before libc by the tests: refuses one chosen allocation of the daemon.
 *
 * FAILALLOC names a file of two 64-bit numbers, mapped shared: allocations so far, and which one to
 * refuse (0: none). Only allocations of the process that was started with it count; its children
 * exec with an environment without it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t *counters;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("FAILALLOC");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at;

    if (fd < 0)
        return;
    at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (at != MAP_FAILED)
        counters = at;
}

static int refuse(void)
{
    uint64_t at = counters ? counters[1] : 0;

    if (at == 0 || ++counters[0] != at)
        return 0;
    errno = ENOMEM;
    return 1;
}

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t n);

void *malloc(size_t n)
{
    return refuse() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return refuse() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
    return refuse() ? NULL : __libc_realloc(old, n);
}
