#include "app_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/scope.h"

#define ENV_MAX 512
#define LEAST_FDS 64

static int find_user(const char *option, const char *spec, struct nk_user *out, struct nk_err *err)
{
    struct nk_err why = {0};

    if (nk_userdb_find("/", spec, out, &why) == 0)
        return 0;
    return nk_fail(err, why.code, "%s %.100s: %.100s", option, spec, why.msg);
}

int nk_app_setup_user(const struct nk_config *cfg, struct nk_user *out, struct nk_err *err)
{
    char own[64];

    if (cfg->user)
        return find_user("--user", cfg->user, out, err);
    if (geteuid() == 0) {
        if (nk_userdb_find("/", "sandbox", out, NULL) == 0)
            return 0;
        return nk_userdb_find("/", "1000:1000", out, err);
    }
    (void)snprintf(own, sizeof own, "%u:%u", geteuid(), getegid());
    return nk_userdb_find("/", own, out, err);
}

int nk_app_setup_program_user(const struct nk_config *cfg, const struct nk_user *user,
                              struct nk_user *out, struct nk_err *err)
{
    if (cfg->program_user)
        return find_user("--program-user", cfg->program_user, out, err);
    *out = *user;
    return 0;
}

static int make_root(const char *path, const struct nk_user *user, struct nk_err *err)
{
    nk_auto_fd int fd = -1;
    int rc = nk_folder_make(path, 0755);

    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot make the writable root %.150s", path);
    if (rc == 0)
        return 0;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, user->creds.uid, user->creds.gid) < 0)
        return nk_fail_sys(err, errno, "cannot hand over the writable root %s", path);
    return 0;
}

int nk_app_setup_roots(const struct nk_config *cfg, const struct nk_user *user, struct nk_err *err)
{
    if (geteuid() != 0)
        return 0;
    if (make_root(cfg->output_dir, user, NULL) < 0)
        nk_log_msg(NK_LOG_WARN, "roots", "%s could not be made", cfg->output_dir);
    for (size_t i = 0; i < cfg->writable.count; i++)
        if (make_root(cfg->writable.item[i], user, err) < 0)
            return -1;
    return 0;
}

struct env_list {
    char **item; /* owned, NULL-ended */
    size_t count;
    bool failed;
};

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* Takes `entry`; it replaces an earlier one of the same name. */
static void put(struct env_list *list, char *entry)
{
    if (!entry || list->failed) {
        list->failed = true;
        free(entry);
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        if (same_name(entry, list->item[i])) {
            free(list->item[i]);
            list->item[i] = entry;
            return;
        }
    if (list->count == ENV_MAX) {
        free(entry);
        return;
    }
    list->item[list->count++] = entry;
}

static void put_pair(struct env_list *list, const char *key, const char *value)
{
    size_t size = strlen(key) + strlen(value) + 2;
    char *entry = malloc(size);

    if (entry)
        (void)snprintf(entry, size, "%s=%s", key, value);
    put(list, entry);
}

static bool is_passed(const struct nk_config *cfg, const char *entry)
{
    char name[256];
    size_t n = strcspn(entry, "=");

    if (n >= sizeof name || strncmp(entry, "NOOKD_", 6) == 0)
        return false;
    memcpy(name, entry, n);
    name[n] = '\0';
    for (size_t i = 0; i < cfg->pass_env.count; i++)
        if (fnmatch(cfg->pass_env.item[i], name, 0) == 0)
            return true;
    return false;
}

char **nk_app_setup_env(const struct nk_config *cfg, const struct nk_user *user)
{
    struct env_list list = {.item = calloc(ENV_MAX + 1, sizeof(char *))};

    if (!list.item)
        return NULL;
    put_pair(&list, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    put_pair(&list, "LANG", "C.UTF-8");
    for (char **e = environ; e && *e; e++)
        if (is_passed(cfg, *e))
            put(&list, strdup(*e));
    put_pair(&list, "HOME", user->home);
    put_pair(&list, "USER", user->name);
    put_pair(&list, "LOGNAME", user->name);
    put_pair(&list, "SHELL", user->shell);
    for (size_t i = 0; i < cfg->env.count; i++)
        put(&list, strdup(cfg->env.item[i]));
    if (!list.failed)
        return list.item;
    nk_app_setup_free_env(list.item);
    return NULL;
}

void nk_app_setup_free_env(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}

/* With fewer it would say that it is ready, and start no command. */
static int check_limit(struct nk_err *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max >= LEAST_FDS)
        return 0;
    return nk_fail(err, NK_OVERLOADED, "the limit of open files is %u; at least %d are needed",
                   (unsigned)limit.rlim_max, LEAST_FDS);
}

int nk_app_setup_check(const struct nk_config *cfg, struct nk_err *err)
{
    if (cfg->network && strcmp(cfg->network, "all") != 0 && !cfg->network_outside)
        return nk_fail(err, NK_NOT_SUPPORTED, "--network %s cannot be enforced here", cfg->network);
    return check_limit(err);
}

static bool is_root(const char *user)
{
    return strcmp(user, "root") == 0 || strcmp(user, "0") == 0 || strncmp(user, "0:", 2) == 0;
}

void nk_app_setup_warn(const struct nk_config *cfg, const struct nk_user *user)
{
    if (cfg->no_auth)
        nk_log_msg(NK_LOG_WARN, "no_auth", "--no-auth: whoever reaches the port may use it");
    if (user->creds.uid == 0)
        nk_log_msg(NK_LOG_WARN, "root", "commands run as root");
    else if (user->creds.uid == geteuid())
        nk_log_msg(NK_LOG_WARN, "same_uid", "commands run as nookd's own user");
    for (size_t i = 0; i < cfg->allow_user.count; i++)
        if (is_root(cfg->allow_user.item[i]))
            nk_log_msg(NK_LOG_WARN, "root", "--allow-user: requests may run commands as root");
}
