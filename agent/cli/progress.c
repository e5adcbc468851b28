#include "cli/progress.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/out.h"

#define SHOW_MS 250

void nk_progress_init(struct nk_progress *p)
{
    *p = (struct nk_progress){.on = isatty(STDERR_FILENO) == 1, .began_ms = nk_clock_mono_ms()};
}

static void show(const struct nk_progress *p, uint64_t now)
{
    double mib = (double)p->bytes / (1024.0 * 1024.0);
    double seconds = (double)(now - p->began_ms) / 1000.0;
    struct nk_buf line = {0};

    nk_buf_add_fmt(&line, "\r%10.1f MiB  %8.1f MiB/s\033[K", mib,
                   seconds > 0.001 ? mib / seconds : 0.0);
    if (!line.failed)
        (void)nk_out_write(NULL, STDERR_FILENO, nk_buf_front(&line), nk_buf_left(&line));
    nk_buf_fini(&line);
}

void nk_progress_add(struct nk_progress *p, uint64_t bytes)
{
    uint64_t now;

    p->bytes += bytes;
    if (!p->on)
        return;
    now = nk_clock_mono_ms();
    if (now - p->began_ms < SHOW_MS || now - p->shown_ms < SHOW_MS)
        return;
    p->shown_ms = now;
    show(p, now);
}

void nk_progress_end(struct nk_progress *p)
{
    static const char clear[] = "\r\033[K";

    if (p->shown_ms != 0)
        (void)nk_out_write(NULL, STDERR_FILENO, clear, strlen(clear));
    p->shown_ms = 0;
}
