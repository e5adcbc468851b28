#include "process/ports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/sockdiag.h"
#include "process/tree.h"

#define LISTENING 0x0A /* TCP_LISTEN, as /proc/net/tcp writes it */

struct search {
    struct nk_sockdiag_entry *socket; /* owned by the caller */
    size_t sockets;
    gid_t first;
    unsigned count;
    struct nk_port *out; /* borrowed */
    size_t found, max;
};

/* "  0: 0100007F:1F90 00000000:0000 0A … uid timeout inode …" */
static bool read_line(const char *line, uid_t uid, struct nk_sockdiag_entry *out)
{
    unsigned port, state, owner;
    unsigned long inode;

    if (sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u %*d %lu",
               &port, &state, &owner, &inode) != 4)
        return false;
    if (state != LISTENING || owner != uid || inode == 0)
        return false;
    *out = (struct nk_sockdiag_entry){inode, (uint16_t)port};
    return true;
}

static void read_sockets(const char *path, uid_t uid, struct search *s)
{
    FILE *file = fopen(path, "re");
    char line[512];

    if (!file)
        return;
    while (s->sockets < NK_PORTS_MAX && fgets(line, sizeof line, file))
        if (read_line(line, uid, &s->socket[s->sockets]))
            s->sockets++;
    (void)fclose(file);
}

/* Without diagnosis, or where it fails, from what is slower. */
static void find_sockets(bool diag, uid_t uid, struct search *s)
{
    int found = diag ? nk_sockdiag_listening(uid, s->socket, NK_PORTS_MAX) : -ENOSYS;

    if (found >= 0) {
        s->sockets = (size_t)found;
        return;
    }
    read_sockets("/proc/net/tcp", uid, s);
    read_sockets("/proc/net/tcp6", uid, s);
}

static uint16_t port_of(const struct search *s, const char *link)
{
    unsigned long inode;

    if (sscanf(link, "socket:[%lu]", &inode) != 1)
        return 0;
    for (size_t i = 0; i < s->sockets; i++)
        if (s->socket[i].inode == inode)
            return s->socket[i].port;
    return 0;
}

static void add(struct search *s, struct nk_port port)
{
    for (size_t i = 0; i < s->found; i++)
        if (s->out[i].port == port.port && s->out[i].mark == port.mark &&
            s->out[i].session == port.session)
            return;
    if (s->found < s->max)
        s->out[s->found++] = port;
}

/* The name of each entry of PID/fd is a link that tells what the descriptor is. */
static void look_at(struct search *s, int proc, const char *pid)
{
    struct nk_tree_holder holder;
    char path[64], link[64];
    struct dirent *e;
    DIR *dir;
    int fd;

    (void)snprintf(path, sizeof path, "%.20s/fd", pid);
    fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    if (!dir)
        return;
    holder.known = false;
    while ((e = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
        uint16_t port;

        if (n <= 0)
            continue;
        link[n] = '\0';
        port = port_of(s, link);
        if (port && !holder.known)
            holder = nk_tree_holder_of(proc, pid, s->first, s->count);
        if (port && holder.known)
            add(s, (struct nk_port){holder.mark, holder.session, port});
    }
    (void)closedir(dir);
}

int nk_ports_find(bool diag, uid_t uid, gid_t first, unsigned count, struct nk_port *out,
                  size_t max)
{
    nk_auto_free struct nk_sockdiag_entry *sockets = calloc(NK_PORTS_MAX, sizeof *sockets);
    struct search s = {.socket = sockets, .first = first, .count = count, .out = out, .max = max};
    struct dirent *e;
    DIR *dir;

    if (!sockets)
        return -ENOMEM;
    find_sockets(diag, uid, &s);
    if (s.sockets == 0)
        return 0;
    dir = opendir("/proc");
    if (!dir)
        return -errno;
    while ((e = readdir(dir)))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            look_at(&s, dirfd(dir), e->d_name);
    (void)closedir(dir);
    return (int)s.found;
}
