#include "cli/exec_body.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/utf8.h"

int nk_exec_body_text(struct nk_json_out *out, const char *key, const char *s, struct nk_err *err)
{
    if (!nk_utf8_valid(s, strlen(s)))
        return nk_fail(err, NK_BAD_REQUEST, "an argument is not UTF-8");
    nk_json_out_str(out, key, s);
    return 0;
}

/* Whether a later item sets the same variable: the last one counts, and JSON takes a key once. */
static bool is_overridden(const struct nk_args_list *env, size_t i, size_t name_len)
{
    for (size_t j = i + 1; j < env->count; j++) {
        if (strncmp(env->item[j], env->item[i], name_len + 1) == 0)
            return true;
    }
    return false;
}

int nk_exec_body_env(struct nk_json_out *out, const struct nk_args_list *env, struct nk_err *err)
{
    if (env->count == 0)
        return 0;
    nk_json_out_open(out, "env", '{');
    for (size_t i = 0; i < env->count; i++) {
        const char *equals = strchr(env->item[i], '=');
        nk_auto_free char *name = NULL;

        if (!equals || equals == env->item[i])
            return nk_fail(err, NK_BAD_REQUEST, "not of the form NAME=VALUE: --env %s",
                           env->item[i]);
        if (is_overridden(env, i, (size_t)(equals - env->item[i])))
            continue;
        name = strndup(env->item[i], (size_t)(equals - env->item[i]));
        if (!name)
            return nk_fail_sys(err, ENOMEM, "cannot build the request");
        if (!nk_utf8_valid(name, strlen(name)))
            return nk_fail(err, NK_BAD_REQUEST, "the name of a variable is not UTF-8");
        if (nk_exec_body_text(out, name, equals + 1, err) < 0)
            return -1;
    }
    nk_json_out_close(out, '}');
    return 0;
}

int nk_exec_body_timeout(struct nk_json_out *out, const char *text, struct nk_err *err)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0)
        return nk_fail(err, NK_BAD_REQUEST, "--timeout needs a number of seconds above 0, not %s",
                       text);
    nk_json_out_real(out, "timeout", seconds);
    return 0;
}
