#include "cli/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/out.h"

#define NOT_EXECUTABLE 126
#define NOT_FOUND 127

int nk_ask_open(const struct nk_cli_env *env, const char *socket, unsigned timeout_ms,
                struct nk_client **out, struct nk_err *err)
{
    struct nk_target target;
    int rc;

    if (nk_target_init(&target, env, socket, err) < 0)
        return -1;
    target.client.timeout_ms = timeout_ms;
    rc = nk_client_new(&target.client, out, err);
    nk_target_fini(&target);
    return rc;
}

static void copy(char *out, size_t room, const struct nk_json *object, const char *key)
{
    (void)snprintf(out, room, "%s", nk_ask_text(object, key, ""));
}

void nk_ask_read_problem(const struct nk_json *error, struct nk_ask_problem *out)
{
    copy(out->code, sizeof out->code, error, "code");
    copy(out->message, sizeof out->message, error, "message");
    copy(out->errno_name, sizeof out->errno_name, error, "errno");
    copy(out->stage, sizeof out->stage, error, "stage");
}

/* What is no answer of ours (a proxy between us and the daemon) keeps its status alone. */
static void read_problem(const struct nk_json *root, struct nk_ask_problem *out)
{
    const struct nk_json *error = nk_json_get(root, "error");

    if (error && nk_json_type(error) == NK_JSON_OBJECT)
        nk_ask_read_problem(error, out);
}

static int read_rest(struct nk_client *c, struct nk_buf *out, struct nk_err *err)
{
    bool end = false;

    while (!end) {
        if (nk_client_read_body(c, out, &end, err) < 0)
            return -1;
    }
    return 0;
}

int nk_ask_problem(struct nk_client *c, int status, struct nk_ask_problem *out, struct nk_err *err)
{
    struct nk_buf body = {.max = NK_ASK_BODY_MAX};
    struct nk_json *root = NULL;

    if (read_rest(c, &body, err) < 0) {
        nk_buf_fini(&body);
        return -1;
    }
    *out = (struct nk_ask_problem){.status = status};
    if (nk_json_parse(nk_buf_front(&body), nk_buf_left(&body), &root, NULL) == 0 &&
        nk_json_type(root) == NK_JSON_OBJECT)
        read_problem(root, out);
    nk_json_free(root);
    nk_buf_fini(&body);
    return 0;
}

int nk_ask_refused(const struct nk_ask_problem *p, struct nk_err *err)
{
    if (p->code[0] == '\0')
        return nk_fail(err, NK_BAD_GATEWAY, "the server answered with status %d", p->status);
    return nk_fail(err, NK_BAD_GATEWAY, "%s: %s", p->code, p->message);
}

int nk_ask_tell(const struct nk_ask_problem *p)
{
    struct nk_err err;

    (void)nk_ask_refused(p, &err);
    (void)nk_out_fail(&err);
    if (strcmp(p->code, "exec_failed") != 0 || strcmp(p->stage, "exec") != 0)
        return NK_OUT_FAILED;
    return strcmp(p->errno_name, "ENOENT") == 0 ? NOT_FOUND : NOT_EXECUTABLE;
}

static int read_answer(struct nk_client *c, struct nk_json **out, struct nk_err *err)
{
    struct nk_buf body = {.max = NK_ASK_BODY_MAX};
    struct nk_json *root = NULL;
    int rc = read_rest(c, &body, err);

    if (rc == 0 && out && nk_buf_left(&body) > 0)
        rc = nk_json_parse(nk_buf_front(&body), nk_buf_left(&body), &root, err);
    if (rc == 0 && out)
        *out = root;
    nk_buf_fini(&body);
    return rc;
}

int nk_ask_json(struct nk_client *c, const char *method, const char *path,
                const struct nk_buf *body, struct nk_json **out, struct nk_err *err)
{
    static const char *const json[] = {"Content-Type: application/json", NULL};
    const struct nk_client_request req = {
        .method = method,
        .path = path,
        .headers = body ? json : NULL,
        .body = body ? nk_buf_front(body) : NULL,
        .body_len = body ? (int64_t)nk_buf_left(body) : 0,
    };
    struct nk_ask_problem problem;
    int status;

    if (body && body->failed)
        return nk_fail_sys(err, ENOMEM, "cannot build the request");
    if (nk_client_send(c, &req, err) < 0 || nk_client_read_head(c, &status, err) < 0)
        return -1;
    if (status >= 200 && status < 300)
        return read_answer(c, out, err);
    if (nk_ask_problem(c, status, &problem, err) < 0)
        return -1;
    return nk_ask_refused(&problem, err);
}

const char *nk_ask_text(const struct nk_json *object, const char *key, const char *fallback)
{
    const struct nk_json *v = nk_json_get(object, key);
    const char *s = v ? nk_json_str(v) : NULL;

    return s ? s : fallback;
}

void nk_ask_escape(struct nk_buf *out, const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~";

    for (; *s != '\0'; s++) {
        if (strchr(plain, *s))
            nk_buf_add_char(out, *s);
        else
            nk_buf_add_fmt(out, "%%%02X", (unsigned char)*s);
    }
}
