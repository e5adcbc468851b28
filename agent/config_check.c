#include "config_check.h"

#include <arpa/inet.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" DIGITS

/* Digits only, at most `max`; -1 where it is not that. */
static long small_number(const char *text, size_t len, long max)
{
    long n = 0;

    if (len == 0)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + (text[i] - '0');
        if (n > max)
            return -1;
    }
    return n;
}

static bool only(const char *text, const char *set, size_t max)
{
    size_t len = strlen(text);

    return len > 0 && len <= max && strspn(text, set) == len;
}

bool nk_config_check_path(const char *text)
{
    size_t len = strlen(text);

    if (text[0] != '/' || len >= PATH_MAX || strstr(text, "/../"))
        return false;
    return len < 3 || strcmp(text + len - 3, "/..") != 0;
}

/* The address of "ADDR:PORT" in `out`, without brackets; false where it is malformed. */
static bool split_address(const char *text, char out[INET6_ADDRSTRLEN], bool *out_v6)
{
    const char *colon = strrchr(text, ':');
    bool v6 = text[0] == '[';
    size_t len;

    if (!colon || small_number(colon + 1, strlen(colon + 1), 65535) < 0)
        return false;
    if (v6 && (colon - text < 2 || colon[-1] != ']'))
        return false;
    len = (size_t)(colon - text) - (v6 ? 2 : 0);
    if (len >= INET6_ADDRSTRLEN)
        return false;
    memcpy(out, text + (v6 ? 1 : 0), len);
    out[len] = '\0';
    *out_v6 = v6;
    return true;
}

bool nk_config_check_listen(const char *text)
{
    char addr[INET6_ADDRSTRLEN];
    unsigned char raw[sizeof(struct in6_addr)];
    bool v6;

    return split_address(text, addr, &v6) && inet_pton(v6 ? AF_INET6 : AF_INET, addr, raw) == 1;
}

static bool is_loopback(const char *text)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    char addr[INET6_ADDRSTRLEN];
    unsigned char raw[sizeof(struct in6_addr)];
    bool v6;

    if (!split_address(text, addr, &v6) || inet_pton(v6 ? AF_INET6 : AF_INET, addr, raw) != 1)
        return false;
    if (!v6)
        return raw[0] == 127;
    if (memcmp(raw, mapped, sizeof mapped) == 0)
        return raw[12] == 127;
    return memcmp(raw, &in6addr_loopback, sizeof raw) == 0;
}

bool nk_config_check_origin(const char *text)
{
    const char *host = strstr(text, "://");

    if (!host || strncmp(text, "http", 4) != 0)
        return strcmp(text, "null") == 0;
    return only(host + 3, ALNUM "-._:[]", 261);
}

bool nk_config_check_host(const char *text)
{
    return only(text, ALNUM "-._", 253);
}

bool nk_config_check_user(const char *text)
{
    const char *colon = strchr(text, ':');

    if (!colon)
        return only(text, ALNUM "-._$", 63);
    return small_number(text, (size_t)(colon - text), 4294967294) >= 0 &&
           small_number(colon + 1, strlen(colon + 1), 4294967294) >= 0;
}

bool nk_config_check_id(const char *text)
{
    return only(text, ALNUM "-._", 64);
}

static bool is_host_port(const char *text, size_t len)
{
    const char *colon = memrchr(text, ':', len);
    size_t host = colon ? (size_t)(colon - text) : 0;

    return host > 0 && strspn(text, ALNUM "-._:[]*") >= len &&
           small_number(colon + 1, len - host - 1, 65535) > 0;
}

bool nk_config_check_network(const char *text)
{
    if (strcmp(text, "all") == 0 || strcmp(text, "none") == 0)
        return true;
    for (;;) {
        size_t len = strcspn(text, ",");

        if (!is_host_port(text, len))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

bool nk_config_check_env(const char *text)
{
    size_t name = strspn(text, ALNUM "_");

    return name > 0 && text[name] == '=' && !strchr(DIGITS, text[0]);
}

bool nk_config_check_seccomp(const char *text)
{
    return strcmp(text, "default") == 0 || strcmp(text, "off") == 0 || nk_config_check_path(text);
}

bool nk_config_check_fd(const char *text)
{
    return small_number(text, strlen(text), 1048576) > 2;
}

int nk_config_check_signal(const char *text, size_t len)
{
    long number = small_number(text, len, SIGRTMAX);

    if (number > 0)
        return (int)number;
    if (len > 3 && strncasecmp(text, "SIG", 3) == 0) {
        text += 3;
        len -= 3;
    }
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *name = sigabbrev_np(i);

        if (name && strlen(name) == len && strncasecmp(name, text, len) == 0)
            return i;
    }
    return -1;
}

bool nk_config_check_map(const char *text)
{
    size_t from = strcspn(text, ":");
    int signo = text[from] == ':' ? nk_config_check_signal(text, from) : -1;

    if (signo < 0 || signo == SIGKILL || signo == SIGSTOP) /* these two nobody can take */
        return false;
    text += from + 1;
    return strcmp(text, "0") == 0 || nk_config_check_signal(text, strlen(text)) > 0;
}

static int check_reach(const struct nk_config *c, struct nk_err *err)
{
    if (!c->socket && c->listen.count == 0 && c->vsock == 0)
        return nk_fail(err, NK_BAD_REQUEST,
                       "--socket none: without --listen or --vsock nobody "
                       "could reach the endpoint");
    if (c->vsock && (c->no_auth || !c->token_given))
        return nk_fail(err, NK_BAD_REQUEST,
                       "--vsock: needs a token (--token-file, --token-fd or "
                       "NOOKD_TOKEN)");
    for (size_t i = 0; i < c->listen.count; i++) {
        if (is_loopback(c->listen.item[i]))
            continue;
        if (c->no_auth)
            return nk_fail(err, NK_BAD_REQUEST,
                           "--no-auth: not with --listen %s, which is not "
                           "loopback",
                           c->listen.item[i]);
        if (!c->token_given)
            return nk_fail(err, NK_BAD_REQUEST,
                           "--listen %s: not loopback, so a token must be "
                           "given (--token-file, --token-fd or NOOKD_TOKEN)",
                           c->listen.item[i]);
    }
    return 0;
}

int nk_config_check_all(const struct nk_config *c, struct nk_err *err)
{
    if (c->timeout_ms && c->max_timeout_ms && c->timeout_ms > c->max_timeout_ms)
        return nk_fail(err, NK_BAD_REQUEST, "--timeout: is above --max-timeout");
    if (c->ttl_ms && c->max_ttl_ms && c->ttl_ms > c->max_ttl_ms)
        return nk_fail(err, NK_BAD_REQUEST, "--ttl: is above --max-ttl");
    if (c->identities && c->uid_first <= c->mark_last && c->mark_first <= c->uid_last)
        return nk_fail(err, NK_BAD_REQUEST, "--uid-range: shares numbers with --mark-gids");
    if (c->writable.count == 0)
        return nk_fail(err, NK_BAD_REQUEST, "--writable: at least one root is needed");
    return check_reach(c, err);
}
