#include "cli/copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/ask.h"

int nk_copy_open(const struct nk_copy *c, const struct nk_copy_call *call, struct nk_client **out,
                 struct nk_err *err)
{
    struct nk_buf target = {0};
    struct nk_client_request req = {.method = call->method, .body_len = call->body ? -1 : 0};
    struct nk_client *client = NULL;
    int rc;

    nk_buf_add_str(&target, call->route);
    nk_ask_escape(&target, call->path);
    nk_buf_add_str(&target, call->more);
    nk_buf_add_char(&target, '\0');
    if (target.failed)
        rc = nk_fail_sys(err, ENOMEM, "cannot build the request");
    else
        rc = nk_ask_open(c->env, c->socket, NK_COPY_TIMEOUT_MS, &client, err);
    if (rc == 0) {
        req.path = (const char *)nk_buf_front(&target);
        rc = nk_client_send(client, &req, err);
    }
    nk_buf_fini(&target);
    if (rc < 0) {
        nk_client_free(client);
        return -1;
    }
    *out = client;
    return 0;
}

int nk_copy_answer(struct nk_client *client, struct nk_err *err)
{
    struct nk_ask_problem problem;
    int status;

    if (nk_client_read_head(client, &status, err) < 0)
        return -1;
    if (status >= 200 && status < 300)
        return 0;
    if (nk_ask_problem(client, status, &problem, err) < 0)
        return -1;
    return nk_ask_refused(&problem, err);
}

static int read_json(struct nk_client *client, struct nk_json **out, struct nk_err *err)
{
    struct nk_buf body = {.max = NK_ASK_BODY_MAX};
    bool end = false;
    int rc = 0;

    while (rc == 0 && !end)
        rc = nk_client_read_body(client, &body, &end, err);
    if (rc == 0)
        rc = nk_json_parse(nk_buf_front(&body), nk_buf_left(&body), out, err);
    nk_buf_fini(&body);
    return rc;
}

int nk_copy_read(struct nk_client *client, struct nk_json **out, struct nk_err *err)
{
    return nk_copy_answer(client, err) < 0 ? -1 : read_json(client, out, err);
}

/* A link is no kind of its own: whether it leads to a folder is found out by listing it. */
static int look_through(const struct nk_copy *c, const char *path, struct nk_copy_found *out,
                        struct nk_err *err)
{
    const struct nk_copy_call call = {"GET", "/v1/files/list?path=", path, "&limit=1", false};
    struct nk_client *client = NULL;
    int status, rc;

    if (nk_copy_open(c, &call, &client, err) < 0)
        return -1;
    rc = nk_client_read_head(client, &status, err);
    nk_client_free(client);
    if (rc == 0)
        *out = (struct nk_copy_found){status == 200 ? NK_COPY_DIR : NK_COPY_FILE, 0644};
    return rc;
}

static int read_entry(const struct nk_copy *c, const char *path, const struct nk_json *entry,
                      struct nk_copy_found *out, struct nk_err *err)
{
    const char *type = nk_ask_text(entry, "type", "");

    if (strcmp(type, "symlink") == 0)
        return look_through(c, path, out, err);
    out->mode = (unsigned)strtoul(nk_ask_text(entry, "mode", "0644"), NULL, 8) & 0777;
    out->kind = strcmp(type, "dir") == 0 ? NK_COPY_DIR : NK_COPY_FILE;
    return 0;
}

int nk_copy_look(const struct nk_copy *c, const char *path, struct nk_copy_found *out,
                 struct nk_err *err)
{
    const struct nk_copy_call call = {"GET", "/v1/files/stat?path=", path, "", false};
    struct nk_client *client = NULL;
    struct nk_json *entry = NULL;
    struct nk_ask_problem problem;
    int status, rc;

    if (nk_copy_open(c, &call, &client, err) < 0)
        return -1;
    *out = (struct nk_copy_found){NK_COPY_MISSING, 0644};
    rc = nk_client_read_head(client, &status, err);
    if (rc == 0 && status == 200) {
        rc = read_json(client, &entry, err);
        if (rc == 0)
            rc = read_entry(c, path, entry, out, err);
    } else if (rc == 0 && status != 404) {
        rc = nk_ask_problem(client, status, &problem, err);
        if (rc == 0)
            rc = nk_ask_refused(&problem, err);
    }
    nk_json_free(entry);
    nk_client_free(client);
    return rc;
}

void nk_copy_name(const char *path, char out[256])
{
    size_t end = strlen(path), at;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (at = end; at > 0 && path[at - 1] != '/'; at--)
        continue;
    out[0] = '\0';
    if (end - at > 255 || strncmp(path + at, ".", end - at) == 0 ||
        strncmp(path + at, "..", end - at) == 0)
        return;
    memcpy(out, path + at, end - at);
    out[end - at] = '\0';
}

int nk_copy_join(char *out, size_t room, const char *dir, const char *name)
{
    size_t len = strlen(dir);
    const char *between = *name == '\0' || (len > 0 && dir[len - 1] == '/') ? "" : "/";
    int n = snprintf(out, room, "%s%s%s", dir, between, name);

    return n >= 0 && (size_t)n < room ? 0 : -1;
}
