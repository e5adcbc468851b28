#include "process/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/scope.h"

#define ANSWER_SIZE 16384 /* the kernel fills half as much at a time */

struct search {
    uid_t uid;
    struct nk_sockdiag_entry *out;
    size_t found, max;
    bool over;
};

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 ask;
};

static int ask(int fd, uint8_t family)
{
    const struct question q = {
        .head = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .ask = {.sdiag_family = family,
                .sdiag_protocol = IPPROTO_TCP,
                .idiag_states = 1u << TCP_LISTEN},
    };
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t n = sendto(fd, &q, sizeof q, 0, (const struct sockaddr *)&kernel, sizeof kernel);

    return n < 0 ? -errno : 0;
}

static void take(struct search *s, const struct nlmsghdr *head)
{
    struct inet_diag_msg m;

    if (head->nlmsg_len < NLMSG_LENGTH(sizeof m))
        return;
    memcpy(&m, NLMSG_DATA(head), sizeof m);
    if (m.idiag_state != TCP_LISTEN || m.idiag_uid != s->uid || m.idiag_inode == 0)
        return;
    if (s->found < s->max)
        s->out[s->found++] = (struct nk_sockdiag_entry){m.idiag_inode, ntohs(m.id.idiag_sport)};
}

static int failure_of(const struct nlmsghdr *head)
{
    struct nlmsgerr e;

    if (head->nlmsg_len < NLMSG_LENGTH(sizeof e))
        return -EPROTO;
    memcpy(&e, NLMSG_DATA(head), sizeof e);
    return e.error < 0 ? e.error : -EPROTO;
}

static int read_answer(struct search *s, const uint8_t *data, size_t len)
{
    while (len >= sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)data;
        size_t step = NLMSG_ALIGN(head->nlmsg_len);

        if (head->nlmsg_len < sizeof *head || head->nlmsg_len > len)
            return -EPROTO;
        if (head->nlmsg_type == NLMSG_ERROR)
            return failure_of(head);
        if (head->nlmsg_type == NLMSG_DONE)
            s->over = true;
        else
            take(s, head);
        if (s->over || step >= len)
            return 0;
        data += step;
        len -= step;
    }
    return 0;
}

static int dump(int fd, uint8_t family, struct search *s)
{
    _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_SIZE];
    int rc = ask(fd, family);

    s->over = false;
    while (rc == 0 && !s->over) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);

        if (n < 0 && errno == EINTR)
            continue;
        rc = n < 0 ? -errno : n == 0 ? -EPROTO : read_answer(s, answer, (size_t)n);
    }
    return rc;
}

static int open_diag(void)
{
    const struct timeval patience = {.tv_sec = 1};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static int ask_one(int fd, int family, uint16_t port)
{
    struct question q = {
        .head = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .ask = {.sdiag_family = (uint8_t)family,
                .sdiag_protocol = IPPROTO_TCP,
                .idiag_states = 1u << TCP_LISTEN,
                .id = {.idiag_sport = htons(port),
                       .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

    if (family == AF_INET6)
        memcpy(q.ask.id.idiag_src, &in6addr_loopback, sizeof in6addr_loopback);
    else
        q.ask.id.idiag_src[0] = htonl(INADDR_LOOPBACK);
    return sendto(fd, &q, sizeof q, 0, (const struct sockaddr *)&kernel, sizeof kernel) < 0 ? -errno
                                                                                            : 0;
}

static int read_owner(const uint8_t *data, size_t len, uid_t *out_uid)
{
    const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)data;
    struct inet_diag_msg m;

    if (len < sizeof *head || head->nlmsg_len > len)
        return -EPROTO;
    if (head->nlmsg_type == NLMSG_ERROR)
        return failure_of(head);
    if (head->nlmsg_len < NLMSG_LENGTH(sizeof m))
        return -EPROTO;
    memcpy(&m, NLMSG_DATA(head), sizeof m);
    if (m.idiag_state != TCP_LISTEN)
        return -ENOENT;
    *out_uid = m.idiag_uid;
    return 0;
}

int nk_sockdiag_owner(int family, uint16_t port, uid_t *out_uid)
{
    _Alignas(struct nlmsghdr) uint8_t answer[2048];
    nk_auto_fd int fd = open_diag();
    int rc = fd < 0 ? fd : ask_one(fd, family, port);
    ssize_t n;

    if (rc < 0)
        return rc;
    do
        n = recv(fd, answer, sizeof answer, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : read_owner(answer, (size_t)n, out_uid);
}

int nk_sockdiag_listening(uid_t uid, struct nk_sockdiag_entry *out, size_t max)
{
    struct search s = {.uid = uid, .out = out, .max = max};
    nk_auto_fd int fd = open_diag();
    int rc;

    if (fd < 0)
        return fd;
    rc = dump(fd, AF_INET, &s);
    if (rc == 0)
        rc = dump(fd, AF_INET6, &s);
    return rc < 0 ? rc : (int)s.found;
}
