#include "process/signals.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

static const char *const names[] = {
    [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
    [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
    [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
    [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
    [SIGIO] = "IO",     [SIGPWR] = "PWR",       [SIGSYS] = "SYS",   [34] = "RTMIN",
    [35] = "RTMIN+1",   [36] = "RTMIN+2",       [37] = "RTMIN+3",   [38] = "RTMIN+4",
    [39] = "RTMIN+5",   [40] = "RTMIN+6",       [41] = "RTMIN+7",   [42] = "RTMIN+8",
    [43] = "RTMIN+9",   [44] = "RTMIN+10",      [45] = "RTMIN+11",  [46] = "RTMIN+12",
    [47] = "RTMIN+13",  [48] = "RTMIN+14",      [49] = "RTMIN+15",  [50] = "RTMAX-14",
    [51] = "RTMAX-13",  [52] = "RTMAX-12",      [53] = "RTMAX-11",  [54] = "RTMAX-10",
    [55] = "RTMAX-9",   [56] = "RTMAX-8",       [57] = "RTMAX-7",   [58] = "RTMAX-6",
    [59] = "RTMAX-5",   [60] = "RTMAX-4",       [61] = "RTMAX-3",   [62] = "RTMAX-2",
    [63] = "RTMAX-1",   [64] = "RTMAX",
};

const char *nk_signals_name(int signo)
{
    return signo > 0 && (size_t)signo < NK_COUNT(names) ? names[signo] : NULL;
}

/* One or two digits and nothing else; 0 is no signal. */
static int by_digits(const char *text)
{
    size_t n = strspn(text, "0123456789");
    int signo;

    if (n == 0 || n > 2 || text[n])
        return -1;
    signo = (int)strtol(text, NULL, 10);
    return nk_signals_name(signo) ? signo : -1;
}

int nk_signals_number(const char *name)
{
    int signo = by_digits(name);

    if (signo > 0)
        return signo;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 1; i < NK_COUNT(names); i++) {
        if (names[i] && strcasecmp(names[i], name) == 0)
            return (int)i;
    }
    if (strcasecmp(name, "POLL") == 0)
        return SIGIO;
    return strcasecmp(name, "CLD") == 0 ? SIGCHLD : -1;
}
