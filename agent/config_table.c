#include "config_table.h"

#include <ctype.h>
#include <string.h>

#include "base/attr.h"
#include "config_check.h"

#define AT(field) offsetof(struct nk_config, field)
#define KIB (1024ull)
#define MIB (1024ull * 1024)
#define GIB (1024ull * 1024 * 1024)
#define DAY_MS (86400ull * 1000)
#define ID_MAX 4294967294ull

const struct nk_config_row nk_config_table[] = {
    {"socket", NK_CONFIG_TEXT, .at = AT(socket), .none = true, .fallback = "/run/nookd/api.sock",
     .valid = nk_config_check_path, .arg = "PATH", .help = "Unix socket, in a folder of its own"},
    {"listen", NK_CONFIG_LIST, .at = AT(listen), .valid = nk_config_check_listen,
     .arg = "ADDR:PORT", .help = "TCP address to listen on, numeric; may be repeated"},
    {"vsock", NK_CONFIG_COUNT, .at = AT(vsock), .none = true, .min = 1, .max = 4294967294ull,
     .arg = "PORT", .help = "vsock port to listen on"},
    {"token-file", NK_CONFIG_TEXT, .at = AT(token_file), .fallback = "/run/nookd/token",
     .valid = nk_config_check_path, .arg = "PATH", .help = "the bearer token is read from here"},
    {"token-fd", NK_CONFIG_FD, .at = AT(token_fd), .none = true, .max = 1048576, .arg = "N",
     .help = "the bearer token is read from this descriptor"},
    {"no-auth", NK_CONFIG_BOOL, .at = AT(no_auth),
     .help = "no token needed; loopback and Unix socket only"},
    {"allow-origin", NK_CONFIG_LIST, .at = AT(allow_origin), .valid = nk_config_check_origin,
     .arg = "ORIGIN", .help = "a browser origin that may call; may be repeated"},
    {"allow-host", NK_CONFIG_LIST, .at = AT(allow_host), .valid = nk_config_check_host,
     .arg = "NAME", .help = "a Host name beside addresses and localhost; may be repeated"},
    {"user", NK_CONFIG_TEXT, .at = AT(user), .valid = nk_config_check_user, .arg = "NAME|UID[:GID]",
     .help = "whom commands and files belong to"},
    {"program-user", NK_CONFIG_TEXT, .at = AT(program_user), .valid = nk_config_check_user,
     .arg = "NAME|UID[:GID]", .help = "whom PROGRAM runs as; default: --user"},
    {"allow-user", NK_CONFIG_LIST, .at = AT(allow_user), .valid = nk_config_check_user,
     .arg = "NAME", .help = "a user that a request may name; may be repeated"},
    {"id", NK_CONFIG_TEXT, .at = AT(id), .valid = nk_config_check_id, .arg = "ID",
     .help = "the sandbox's id; default: the host name"},
    {"writable", NK_CONFIG_LIST, .at = AT(writable), .valid = nk_config_check_path,
     .fallback = "/workspace,/output,/tmp,/home/sandbox", .arg = "DIR",
     .help = "a writable root; may be repeated, the first is the working directory"},
    {"output-dir", NK_CONFIG_TEXT, .at = AT(output_dir), .fallback = "/output",
     .valid = nk_config_check_path, .arg = "DIR", .help = "where code leaves its results"},
    {"readable", NK_CONFIG_LIST, .at = AT(readable), .valid = nk_config_check_path, .arg = "DIR",
     .help = "a root to read from beside the writable ones; may be repeated"},
    {"identities", NK_CONFIG_BOOL, .at = AT(identities),
     .help = "requests may name an identity, each with its own uid and workspace"},
    {"uid-range", NK_CONFIG_RANGE, .at = AT(uid_first), .min = 1, .max = ID_MAX,
     .fallback = "20000-59999", .arg = "A-B", .help = "uids given to identities"},
    {"state-dir", NK_CONFIG_TEXT, .at = AT(state_dir), .fallback = "/var/lib/nookd",
     .valid = nk_config_check_path, .arg = "DIR", .help = "workspaces of identities"},
    {"quota-bytes", NK_CONFIG_BYTES, .at = AT(quota_bytes), .none = true, .min = 1,
     .max = UINT64_MAX, .arg = "BYTES", .help = "bytes an identity may keep"},
    {"quota-files", NK_CONFIG_COUNT, .at = AT(quota_files), .none = true, .min = 1,
     .max = UINT64_MAX, .arg = "N", .help = "files an identity may keep"},
    {"max-commands", NK_CONFIG_COUNT, .at = AT(max_commands), .min = 1, .max = 65536,
     .fallback = "128", .arg = "N", .help = "commands running at once"},
    {"max-processes", NK_CONFIG_COUNT, .at = AT(max_processes), .min = 1, .max = 4194304,
     .fallback = "512", .arg = "N", .help = "processes of the user at once"},
    {"max-contexts", NK_CONFIG_COUNT, .at = AT(max_contexts), .min = 1, .max = 4096,
     .fallback = "16", .arg = "N", .help = "code contexts at once"},
    {"mark-gids", NK_CONFIG_RANGE, .at = AT(mark_first), .min = 1, .max = ID_MAX,
     .fallback = "60000-64999", .arg = "A-B", .help = "groups that mark a command's processes"},
    {"timeout", NK_CONFIG_TIME, .at = AT(timeout_ms), .none = true, .min = 1, .max = 3650 * DAY_MS,
     .arg = "SECONDS", .help = "of a command that names none"},
    {"max-timeout", NK_CONFIG_TIME, .at = AT(max_timeout_ms), .none = true, .min = 1,
     .max = 3650 * DAY_MS, .fallback = "86400", .arg = "SECONDS",
     .help = "the longest a command may name"},
    {"ttl", NK_CONFIG_TIME, .at = AT(ttl_ms), .none = true, .min = 1, .max = 3650 * DAY_MS,
     .arg = "SECONDS", .help = "the sandbox ends so long after its start"},
    {"max-ttl", NK_CONFIG_TIME, .at = AT(max_ttl_ms), .none = true, .min = 1, .max = 3650 * DAY_MS,
     .arg = "SECONDS", .help = "the longest lifetime that may be set"},
    {"idle-timeout", NK_CONFIG_TIME, .at = AT(idle_timeout_ms), .none = true, .min = 1,
     .max = 3650 * DAY_MS, .arg = "SECONDS", .help = "the sandbox ends after so long without work"},
    {"grace", NK_CONFIG_TIME, .at = AT(grace_ms), .max = DAY_MS, .fallback = "5", .arg = "SECONDS",
     .help = "between TERM and KILL at the end"},
    {"runtime", NK_CONFIG_TEXT, .at = AT(runtime), .valid = nk_config_check_id, .arg = "ID",
     .help = "default language; default: the first found"},
    {"runtimes", NK_CONFIG_TEXT, .at = AT(runtimes), .fallback = "/etc/nookd/runtimes",
     .valid = nk_config_check_path, .arg = "DIR", .help = "descriptions of more runtimes"},
    {"max-output", NK_CONFIG_BYTES, .at = AT(max_output), .max = GIB, .fallback = "8MiB",
     .arg = "BYTES", .help = "kept of each output of a command"},
    {"log-bytes", NK_CONFIG_BYTES, .at = AT(log_bytes), .min = 4 * KIB, .max = GIB,
     .fallback = "1MiB", .arg = "BYTES", .help = "newest output kept of a process"},
    {"log-total", NK_CONFIG_BYTES, .at = AT(log_total), .min = 4 * KIB, .max = 64 * GIB,
     .fallback = "64MiB", .arg = "BYTES", .help = "output kept of all ended processes"},
    {"max-body", NK_CONFIG_BYTES, .at = AT(max_body), .min = KIB, .max = 64 * MIB,
     .fallback = "1MiB", .arg = "BYTES", .help = "of a JSON request"},
    {"max-upload", NK_CONFIG_BYTES, .at = AT(max_upload), .none = true, .min = 1, .max = UINT64_MAX,
     .arg = "BYTES", .help = "of a streamed request body"},
    {"max-outputs", NK_CONFIG_BYTES, .at = AT(max_outputs), .max = GIB, .fallback = "16MiB",
     .arg = "BYTES", .help = "of all images in a code result"},
    {"network", NK_CONFIG_TEXT, .at = AT(network), .fallback = "all",
     .valid = nk_config_check_network, .arg = "all|none|HOST:PORT,...",
     .help = "what commands may reach"},
    {"network-enforced-by", NK_CONFIG_EITHER, .at = AT(network_outside), .fallback = "agent",
     .choices = "agent|outside", .help = "who sees to it"},
    {"env", NK_CONFIG_LIST, .at = AT(env), .sep = '\n', .valid = nk_config_check_env,
     .arg = "NAME=VALUE", .help = "environment of commands; may be repeated"},
    {"pass-env", NK_CONFIG_LIST, .at = AT(pass_env), .fallback = "PATH,LANG,LC_*,TZ", .arg = "GLOB",
     .help = "own variables that commands get too; may be repeated"},
    {"seccomp", NK_CONFIG_TEXT, .at = AT(seccomp), .fallback = "default",
     .valid = nk_config_check_seccomp, .arg = "default|off|FILE",
     .help = "system calls of commands: nookd's list, all, or a profile as for containers"},
    {"nproc", NK_CONFIG_COUNT, .at = AT(nproc), .none = true, .min = 1, .max = 4194304, .arg = "N",
     .help = "process limit of a command; default: --max-processes"},
    {"nofile", NK_CONFIG_COUNT, .at = AT(nofile), .none = true, .min = 16, .max = 1073741816,
     .fallback = "1024", .arg = "N", .help = "soft limit of a command's descriptors"},
    {"fsize", NK_CONFIG_BYTES, .at = AT(fsize), .none = true, .min = 1, .max = UINT64_MAX,
     .arg = "BYTES", .help = "largest file a command may write"},
    {"memory", NK_CONFIG_BYTES, .at = AT(memory), .none = true, .min = MIB, .max = UINT64_MAX,
     .arg = "BYTES", .help = "memory of a command"},
    {"without", NK_CONFIG_MASK, .at = AT(without), .none = true,
     .choices = "openat2|close_range|pidfd|subreaper|cgroup|landlock|"
                "terminal|terminal_signals|terminal_eof|sock_diag",
     .help = "act as if the kernel lacked these; for tests"},
    {"signals", NK_CONFIG_EITHER, .at = AT(signals_child), .fallback = "group",
     .choices = "group|child", .help = "whom forwarded signals reach: PROGRAM's group or itself"},
    {"map-signal", NK_CONFIG_LIST, .at = AT(map_signal), .valid = nk_config_check_map,
     .arg = "FROM:TO", .help = "forward another signal, 0 for none; may be repeated"},
    {"on-main-exit", NK_CONFIG_EITHER, .at = AT(main_exit_leave), .fallback = "term",
     .choices = "term|leave", .help = "what remains when PROGRAM ends: TERM, or left alone"},
    {"parent-death", NK_CONFIG_SIGNAL, .at = AT(parent_death), .none = true,
     .help = "PROGRAM gets this signal when nookd's parent dies"},
    {"pass-fd", NK_CONFIG_LIST, .at = AT(pass_fd), .valid = nk_config_check_fd, .arg = "N",
     .help = "a descriptor that PROGRAM keeps; may be repeated"},
    {"log-level", NK_CONFIG_CHOICE, .at = AT(log_level), .fallback = "info",
     .choices = "debug|info|warn|error|off", .help = "the least that is logged"},
    {"log-format", NK_CONFIG_CHOICE, .at = AT(log_json), .choices = "text|json",
     .help = "of lines on standard error; default: text on a terminal"},
    {"config", NK_CONFIG_FILE, .arg = "FILE", .help = "these options as a JSON object"},
};
const size_t nk_config_table_count = NK_COUNT(nk_config_table);

_Static_assert(NK_COUNT(nk_config_table) <= NK_CONFIG_ROWS_MAX, "a bitmap or table is too small");

const struct nk_config_row *nk_config_table_find(const char *name, size_t len)
{
    for (size_t i = 0; i < nk_config_table_count; i++) {
        const struct nk_config_row *row = &nk_config_table[i];

        if (strlen(row->name) == len && memcmp(row->name, name, len) == 0)
            return row;
    }
    return NULL;
}

void nk_config_table_variable(const struct nk_config_row *row, char out[NK_CONFIG_VARIABLE_MAX])
{
    static const char prefix[] = "NOOKD_";
    size_t n = sizeof prefix - 1;

    memcpy(out, prefix, n);
    for (const char *p = row->name; *p && n < NK_CONFIG_VARIABLE_MAX - 1; p++)
        out[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    out[n] = '\0';
}
