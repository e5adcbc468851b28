#include "api/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "http/request.h"
#include "process/process.h"
#include "process/registry.h"

#define BUCKETS 256
#define TEXT_MAX 129

struct account {
    struct nk_list link;
    const void *owner; /* borrowed: compared only */
    unsigned count;
    size_t bytes;
};

struct nk_key {
    struct nk_list bucket;
    struct nk_list expiry;  /* linked once the result is there */
    struct nk_list waiting; /* uses that have not been told */
    struct nk_keys *keys;   /* borrowed: the owner */
    struct account *account;
    const struct nk_route *route; /* borrowed: static */
    char text[TEXT_MAX];
    uint8_t digest[32];
    bool digested;
    struct nk_key_use *first; /* borrowed: who claimed it; NULL: that request is over */
    struct nk_watcher watcher;
    struct nk_process *process; /* holds a reference; NULL: not started yet, or failed */
    struct nk_err err;          /* of a failed start */
    size_t bytes;
    uint64_t expires_ms;
};

struct nk_keys {
    uv_timer_t expire;
    uv_timer_t tell; /* at once: uses are told outside the calls that made them */
    struct nk_list bucket[BUCKETS];
    struct nk_list accounts;
    struct nk_list expiry; /* the next to go first */
    unsigned handles;
};

static void on_expire(uv_timer_t *timer);
static void on_tell(uv_timer_t *timer);

int nk_keys_open(uv_loop_t *loop, struct nk_keys **out)
{
    struct nk_keys *k = calloc(1, sizeof *k);

    if (!k)
        return -ENOMEM;
    for (size_t i = 0; i < BUCKETS; i++)
        nk_list_init(&k->bucket[i]);
    nk_list_init(&k->accounts);
    nk_list_init(&k->expiry);
    (void)uv_timer_init(loop, &k->expire);
    (void)uv_timer_init(loop, &k->tell);
    uv_unref((uv_handle_t *)&k->expire);
    k->expire.data = k;
    k->tell.data = k;
    k->handles = 2;
    *out = k;
    return 0;
}

static struct account *find_account(struct nk_keys *k, const void *owner)
{
    struct account *a;

    for (struct nk_list *n = k->accounts.next; n != &k->accounts; n = n->next) {
        a = nk_list_entry(n, struct account, link);
        if (a->owner == owner)
            return a;
    }
    a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->owner = owner;
    nk_list_append(&k->accounts, &a->link);
    return a;
}

static void release_account(struct account *a)
{
    if (a->count > 0)
        return;
    nk_list_remove(&a->link);
    free(a);
}

static struct nk_list *bucket_of(struct nk_keys *k, const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return &k->bucket[hash % BUCKETS];
}

static struct nk_key *find_key(struct nk_keys *k, const void *owner, const struct nk_route *route,
                               const char *text)
{
    struct nk_list *head = bucket_of(k, text);

    for (struct nk_list *n = head->next; n != head; n = n->next) {
        struct nk_key *key = nk_list_entry(n, struct nk_key, bucket);

        if (key->account->owner == owner && key->route == route && strcmp(key->text, text) == 0)
            return key;
    }
    return NULL;
}

static void free_key(struct nk_key *key)
{
    struct account *a = key->account;

    if (key->first)
        key->first->key = NULL;
    nk_watcher_detach(&key->watcher);
    if (key->process)
        nk_registry_unhold(key->process);
    nk_list_remove(&key->bucket);
    nk_list_remove(&key->expiry);
    a->count--;
    a->bytes -= key->bytes;
    free(key);
    release_account(a);
}

static void arm_expire(struct nk_keys *k)
{
    struct nk_key *first;
    uint64_t now = nk_clock_mono_ms();

    if (nk_list_empty(&k->expiry)) {
        (void)uv_timer_stop(&k->expire);
        return;
    }
    first = nk_list_entry(k->expiry.next, struct nk_key, expiry);
    (void)uv_timer_start(&k->expire, on_expire,
                         first->expires_ms > now ? first->expires_ms - now : 1, 0);
}

static void on_expire(uv_timer_t *timer)
{
    struct nk_keys *k = timer->data;
    uint64_t now = nk_clock_mono_ms();

    while (!nk_list_empty(&k->expiry)) {
        struct nk_key *key = nk_list_entry(k->expiry.next, struct nk_key, expiry);

        if (key->expires_ms > now)
            break;
        if (nk_list_empty(&key->waiting)) {
            free_key(key);
            continue;
        }
        nk_list_remove(&key->expiry); /* somebody is about to be told: later */
        key->expires_ms = now + NK_KEYS_KEEP_MS;
        nk_list_append(&k->expiry, &key->expiry);
    }
    arm_expire(k);
}

/* The result is there: it is kept for a while from now on. */
static void settle(struct nk_key *key)
{
    struct nk_keys *k = key->keys;

    if (nk_list_linked(&key->expiry))
        return;
    key->expires_ms = nk_clock_mono_ms() + NK_KEYS_KEEP_MS;
    nk_list_append(&k->expiry, &key->expiry);
    if (!uv_is_active((uv_handle_t *)&k->expire))
        arm_expire(k);
}

static bool is_final(const struct nk_key *key)
{
    return key->process || key->err.code != NK_OK;
}

static void tell(struct nk_key_use *use, struct nk_process *p, const struct nk_err *err)
{
    nk_list_remove(&use->link);
    use->key = NULL;
    use->ready(use, p, err);
}

static void tell_one(const struct nk_key *key, struct nk_key_use *use)
{
    struct nk_err err;

    if (memcmp(use->digest, key->digest, sizeof key->digest) == 0) {
        tell(use, key->process, key->process ? NULL : &key->err);
        return;
    }
    (void)nk_fail(&err, NK_CONFLICT, "the key %s was used with another body", key->text);
    tell(use, NULL, &err);
}

/* Those whose body is known to be the first one's, or another. */
static void tell_waiting(struct nk_key *key)
{
    struct nk_list *n, *next;

    for (n = key->waiting.next; key->digested && n != &key->waiting; n = next) {
        struct nk_key_use *use = nk_list_entry(n, struct nk_key_use, link);

        next = n->next;
        if (use->digested)
            tell_one(key, use);
    }
}

/* Nothing will come of it: all that wait hear why, and the key is free. */
static void abandon(struct nk_key *key, const struct nk_err *err)
{
    while (!nk_list_empty(&key->waiting))
        tell(nk_list_entry(key->waiting.next, struct nk_key_use, link), NULL, err);
    free_key(key);
}

static void on_tell(uv_timer_t *timer)
{
    struct nk_keys *k = timer->data;

    for (size_t i = 0; i < BUCKETS; i++)
        for (struct nk_list *n = k->bucket[i].next, *next; n != &k->bucket[i]; n = next) {
            struct nk_key *key = nk_list_entry(n, struct nk_key, bucket);

            next = n->next;
            if (is_final(key))
                tell_waiting(key);
        }
}

static void tell_later(struct nk_keys *k)
{
    (void)uv_timer_start(&k->tell, on_tell, 0, 0);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_key *key = NK_CONTAINER_OF(w, struct nk_key, watcher);

    if (ev == NK_PROC_EV_FAILED) {
        struct nk_process *p = key->process;

        key->err = *err;
        key->process = NULL;
        nk_watcher_detach(&key->watcher);
        nk_registry_unhold(p);
        tell_waiting(key);
        if (err->code == NK_EXEC_FAILED)
            settle(key);
        else
            abandon(key, err);
    } else if (ev == NK_PROC_EV_EXITED) {
        key->bytes = nk_registry_memory(key->process);
        key->account->bytes += key->bytes;
        settle(key);
    }
}

static int make_key(struct nk_keys *k, struct nk_req *req, const char *text, struct nk_key **out,
                    struct nk_err *err)
{
    struct account *a = find_account(k, nk_req_identity(req));
    struct nk_key *key;

    if (!a)
        return nk_fail(err, NK_OVERLOADED, "no memory for a key");
    if (a->count >= NK_KEYS_MAX || a->bytes >= NK_KEYS_BYTES)
        return nk_fail(err, NK_OVERLOADED, "too many keys or results of keyed requests are kept");
    key = calloc(1, sizeof *key);
    if (!key) {
        release_account(a);
        return nk_fail(err, NK_OVERLOADED, "no memory for a key");
    }
    key->keys = k;
    key->account = a;
    key->route = nk_req_route(req);
    key->watcher.on_event = on_event;
    (void)memcpy(key->text, text, strlen(text) + 1);
    nk_list_init(&key->waiting);
    nk_list_append(bucket_of(k, text), &key->bucket);
    a->count++;
    *out = key;
    return 0;
}

/* What a path names is part of what was asked for. */
static void fingerprint(const struct nk_req *req, uint8_t out[32])
{
    struct nk_sha256 hash;
    size_t len;
    const void *body = nk_req_body(req, &len);

    nk_sha256_init(&hash);
    nk_sha256_add(&hash, body, len);
    if (nk_req_param(req, "id"))
        nk_sha256_add(&hash, nk_req_param(req, "id"), strlen(nk_req_param(req, "id")));
    nk_sha256_end(&hash, out);
}

/* The first request has done its part: the key goes on without it. */
static void forget_first(struct nk_key *key)
{
    key->first->key = NULL;
    key->first = NULL;
}

int nk_keys_claim_early(struct nk_keys *keys, struct nk_req *req, struct nk_key_use *use,
                        enum nk_key_claim *out, struct nk_err *err)
{
    const char *text = nk_req_header(req, "Idempotency-Key");
    struct nk_key *key;

    use->key = NULL;
    *out = NK_KEY_NONE;
    if (!text)
        return 0;
    key = find_key(keys, nk_req_identity(req), nk_req_route(req), text);
    *out = key ? NK_KEY_REPEAT : NK_KEY_FIRST;
    if (!key && make_key(keys, req, text, &key, err) < 0)
        return -1;
    use->key = key;
    use->first = *out == NK_KEY_FIRST;
    if (use->first)
        key->first = use;
    else
        nk_list_append(&key->waiting, &use->link);
    return 0;
}

void nk_keys_digest(struct nk_key_use *use, const uint8_t digest[32])
{
    struct nk_key *key = use->key;

    if (!key)
        return;
    memcpy(use->digest, digest, sizeof use->digest);
    use->digested = true;
    if (use->first) {
        memcpy(key->digest, digest, sizeof key->digest);
        key->digested = true;
        if (use->bound)
            forget_first(key);
    }
    if (is_final(key))
        tell_later(key->keys);
}

int nk_keys_claim(struct nk_keys *keys, struct nk_req *req, struct nk_key_use *use,
                  enum nk_key_claim *out, struct nk_err *err)
{
    uint8_t digest[32];
    struct nk_key *key;

    if (nk_keys_claim_early(keys, req, use, out, err) < 0)
        return -1;
    key = use->key;
    if (!key)
        return 0;
    fingerprint(req, digest);
    if (!use->first && key->digested && memcmp(key->digest, digest, sizeof digest) != 0) {
        nk_keys_leave(use);
        return nk_fail(err, NK_CONFLICT, "the key %s was used with another body", key->text);
    }
    nk_keys_digest(use, digest);
    return 0;
}

void nk_keys_bind(struct nk_key_use *use, struct nk_process *p)
{
    struct nk_key *key = use->key;

    if (!key)
        return;
    use->bound = true;
    if (key->digested)
        forget_first(key);
    key->process = p;
    nk_registry_hold(p);
    nk_watcher_attach(&key->watcher, p);
    tell_later(key->keys);
}

void nk_keys_drop(struct nk_key_use *use, const struct nk_err *err)
{
    struct nk_key *key = use->key;

    if (!key || use->bound)
        return;
    use->key = NULL;
    key->first = NULL;
    abandon(key, err);
}

void nk_keys_leave(struct nk_key_use *use)
{
    struct nk_key *key = use->key;
    struct nk_err err;

    nk_list_remove(&use->link);
    use->key = NULL;
    if (!key || !use->first)
        return;
    key->first = NULL;
    if (use->bound && key->digested)
        return;
    (void)nk_fail(&err, NK_OVERLOADED, "the first request under this key broke off");
    abandon(key, &err);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_keys *k = handle->data;

    if (--k->handles == 0)
        free(k);
}

void nk_keys_close(struct nk_keys **slot)
{
    struct nk_keys *k = *slot;

    if (!k)
        return;
    *slot = NULL;
    for (size_t i = 0; i < BUCKETS; i++)
        while (!nk_list_empty(&k->bucket[i]))
            free_key(nk_list_entry(k->bucket[i].next, struct nk_key, bucket));
    uv_close((uv_handle_t *)&k->expire, on_closed);
    uv_close((uv_handle_t *)&k->tell, on_closed);
}
