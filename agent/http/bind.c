#include "http/bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "base/folder.h"
#include "base/scope.h"

#define BACKLOG 512

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
    struct sockaddr_vm vm;
};

/* A client that vanished is noticed in about two minutes even where nothing is written to it.
 * Connections inherit these; without them all else works. */
static void keep_alive(int fd)
{
    int on = 1;
    int idle = 60;
    int interval = 15;
    int count = 4;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int listener(const union address *at, socklen_t len, int *out_fd)
{
    nk_auto_fd int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0)
        return -errno;
    if (at->any.sa_family == AF_INET || at->any.sa_family == AF_INET6) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        keep_alive(fd);
    }
    if (at->any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &at->any, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *out_fd = nk_take_fd(&fd);
    return 0;
}

static bool read_port(const char *text, in_port_t *out)
{
    char *end = NULL;
    unsigned long port;

    if (*text < '0' || *text > '9')
        return false;
    port = strtoul(text, &end, 10);
    if (*end || port > 65535)
        return false;
    *out = htons((uint16_t)port);
    return true;
}

static bool read_host(char *host, union address *out)
{
    size_t len = strlen(host);

    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        out->v6.sin6_family = AF_INET6;
        return inet_pton(AF_INET6, host + 1, &out->v6.sin6_addr) == 1;
    }
    out->v4.sin_family = AF_INET;
    return inet_pton(AF_INET, host, &out->v4.sin_addr) == 1;
}

/* The port lies at the same place in both families. */
static bool read_address(const char *text, union address *out)
{
    char host[64];
    const char *colon = strrchr(text, ':');

    if (!colon || (size_t)(colon - text) >= sizeof host)
        return false;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    return read_port(colon + 1, &out->v4.sin_port) && read_host(host, out);
}

int nk_bind_tcp(const char *addr, int *out_fd, unsigned *out_port, struct nk_err *err)
{
    union address at = {0};
    socklen_t len = sizeof at;
    int fd = -1;
    int rc;

    if (!read_address(addr, &at))
        return nk_fail(err, NK_BAD_REQUEST, "%.80s is not a numeric address and a port", addr);
    rc = listener(&at, at.any.sa_family == AF_INET ? sizeof at.v4 : sizeof at.v6, &fd);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot listen on %.80s", addr);
    if (getsockname(fd, &at.any, &len) < 0) {
        int sys = errno;

        (void)close(fd);
        return nk_fail_sys(err, sys, "cannot listen on %.80s", addr);
    }
    *out_fd = fd;
    *out_port = ntohs(at.v4.sin_port);
    return 0;
}

int nk_bind_vsock(unsigned port, int *out_fd, struct nk_err *err)
{
    union address at = {.vm = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY}};
    int rc;

    at.vm.svm_port = port;
    rc = listener(&at, sizeof at.vm, out_fd);
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot listen on vsock port %u", port) : 0;
}

/* Who can reach the socket may use it, so nobody else may reach its folder. */
static int check_folder(const char *path, struct nk_err *err)
{
    const char *slash = strrchr(path, '/');
    nk_auto_free char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    struct stat st;
    int rc;

    if (!folder)
        return nk_fail(err, NK_OVERLOADED, "out of memory");
    rc = nk_folder_make(folder, 0700);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot make the folder of the socket, %.100s", folder);
    if (stat(folder, &st) < 0)
        return nk_fail_sys(err, errno, "cannot look at the folder of the socket");
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 07777) != 0700)
        return nk_fail(err, NK_FORBIDDEN,
                       "the folder of the socket, %.100s, must be our own with mode 0700", folder);
    return 0;
}

/* Whether nobody answers at the socket that is there. */
static bool is_stale(const union address *at, socklen_t len)
{
    nk_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (fd < 0 || lstat(at->un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    return connect(fd, &at->any, len) < 0 && errno == ECONNREFUSED;
}

static int listen_at(const union address *at, socklen_t len, int *out_fd)
{
    int rc = listener(at, len, out_fd);

    if (rc != -EADDRINUSE || !is_stale(at, len))
        return rc;
    if (unlink(at->un.sun_path) < 0)
        return -errno;
    return listener(at, len, out_fd);
}

static int remember(const char *path, struct nk_bind_file *out)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return -errno;
    out->path = strdup(path);
    out->dev = st.st_dev;
    out->ino = st.st_ino;
    return out->path ? 0 : -ENOMEM;
}

int nk_bind_unix(const char *path, int *out_fd, struct nk_bind_file *out_file, struct nk_err *err)
{
    union address at = {.un = {.sun_family = AF_UNIX}};
    nk_auto_fd int fd = -1;
    int rc;

    if (strlen(path) >= sizeof at.un.sun_path)
        return nk_fail(err, NK_BAD_PATH, "the path of the socket is longer than %zu bytes",
                       sizeof at.un.sun_path - 1);
    memcpy(at.un.sun_path, path, strlen(path));
    if (check_folder(path, err) < 0)
        return -1;
    rc = listen_at(&at, sizeof at.un, &fd);
    if (rc == 0)
        rc = remember(path, out_file);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot listen on %.100s", path);
    *out_fd = nk_take_fd(&fd);
    return 0;
}

void nk_bind_file_fini(struct nk_bind_file *file)
{
    struct stat st;

    if (file->path && lstat(file->path, &st) == 0 && st.st_dev == file->dev &&
        st.st_ino == file->ino)
        (void)unlink(file->path);
    free(file->path);
    file->path = NULL;
}
