#include "process/port_owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "process/sockdiag.h"

#define LISTENING 0x0A /* TCP_LISTEN, as /proc/net/tcp writes it */

/* How well a listening address fits the one asked for: the kernel takes the one that fits best. */
enum fit { FITS_NOT, FITS_ANY6, FITS_ANY, FITS_EXACTLY };

struct search {
    int family;
    uint16_t port;
    enum fit best;
    uid_t uid;
    bool shared; /* by more than one user, as well as each other */
};

/* Words of an address, as they lie in memory. */
static enum fit fit_of(int family, const unsigned *word, bool six)
{
    unsigned loop = htonl(INADDR_LOOPBACK), mapped = htonl(0xffff), one = htonl(1);
    bool high_zero = !six || (word[0] == 0 && word[1] == 0);

    if (!six) {
        if (family != AF_INET || (word[0] != loop && word[0] != 0))
            return FITS_NOT;
        return word[0] == loop ? FITS_EXACTLY : FITS_ANY;
    }
    if (!high_zero)
        return FITS_NOT;
    if (word[2] == mapped && family == AF_INET && (word[3] == loop || word[3] == 0))
        return word[3] == loop ? FITS_EXACTLY : FITS_ANY;
    if (word[2] != 0 || (word[3] != 0 && (family != AF_INET6 || word[3] != one)))
        return FITS_NOT;
    if (word[3] == one)
        return FITS_EXACTLY;
    return family == AF_INET6 ? FITS_ANY : FITS_ANY6;
}

/* "  0: 0100007F:1F90 00000000:0000 0A … uid timeout inode …"; of tcp6 the address is four words. */
static bool read_line(const char *line, bool six, unsigned *word, unsigned *port, unsigned *uid)
{
    unsigned state = 0;
    int n;

    if (six)
        n = sscanf(line, "%*d: %8x%8x%8x%8x:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u",
                   &word[0], &word[1], &word[2], &word[3], port, &state, uid) -
            3;
    else
        n = sscanf(line, "%*d: %8x:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u", &word[0], port,
                   &state, uid);
    return n == 4 && state == LISTENING;
}

static void take_line(struct search *s, const char *line, bool six)
{
    unsigned word[4] = {0}, port = 0, uid = 0;
    enum fit fit;

    if (!read_line(line, six, word, &port, &uid) || port != s->port)
        return;
    fit = fit_of(s->family, word, six);
    if (fit == FITS_NOT || fit < s->best)
        return;
    s->shared = fit == s->best && (s->shared || uid != s->uid);
    s->best = fit;
    s->uid = uid;
}

static int read_table(struct search *s, const char *path, bool six)
{
    FILE *file = fopen(path, "re");
    char line[512];

    if (!file)
        return -errno;
    while (fgets(line, sizeof line, file))
        take_line(s, line, six);
    (void)fclose(file);
    return 0;
}

static int find_in_tables(int family, uint16_t port, uid_t *out_uid)
{
    struct search s = {.family = family, .port = port};
    int rc = read_table(&s, "/proc/net/tcp", false);

    /* A kernel without IPv6 has no such table. */
    if (read_table(&s, "/proc/net/tcp6", true) < 0 && rc < 0)
        return rc;
    if (s.best == FITS_NOT)
        return -ENOENT;
    if (s.shared)
        return -EEXIST;
    *out_uid = s.uid;
    return 0;
}

int nk_port_owner_find(bool diag, int family, uint16_t port, uid_t *out_uid)
{
    return diag ? nk_sockdiag_owner(family, port, out_uid) : find_in_tables(family, port, out_uid);
}
