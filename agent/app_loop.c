#include "app_loop.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/scope.h"

/* How many entries the table is to have. */
static int raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    limit.rlim_cur = limit.rlim_max < NK_APP_LOOP_FDS ? limit.rlim_max : NK_APP_LOOP_FDS;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < NK_APP_LOOP_TABLE ? (int)limit.rlim_cur : NK_APP_LOOP_TABLE;
}

static void on_event(uv_poll_t *handle, int status, int events)
{
    (void)handle;
    (void)status;
    (void)events;
}

void nk_app_loop_size(struct nk_app_loop *l, uv_loop_t *loop)
{
    int entries = raise_limit();
    nk_auto_fd int fd = eventfd(0, EFD_CLOEXEC);

    l->fd = fd < 0 || entries < 64 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, entries - 1);
    if (l->fd < 0)
        return;
    if (uv_poll_init(loop, &l->poll, l->fd) == 0) {
        (void)uv_poll_start(&l->poll, UV_READABLE, on_event);
        uv_close((uv_handle_t *)&l->poll, NULL);
    }
    nk_close_fd(&l->fd);
}
