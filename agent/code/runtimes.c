#include "code/runtimes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "code/runtime_file.h"
#include "code/runtime_table.h"

struct nk_runtimes {
    struct nk_runtime_files files; /* of the folder */
    const struct nk_runtime **all; /* owned: those of the folder, then the built-in ones */
    size_t count;
};

static bool is_called(const struct nk_runtime *rt, const char *name)
{
    if (strcasecmp(rt->id, name) == 0)
        return true;
    for (const char *const *alias = rt->aliases; *alias; alias++) {
        if (strcasecmp(*alias, name) == 0)
            return true;
    }
    return false;
}

const struct nk_runtime *nk_runtimes_find(const struct nk_runtimes *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++) {
        if (is_called(r->all[i], name))
            return r->all[i];
    }
    return NULL;
}

/* A built-in one is replaced by one of the folder with the same id. */
static bool is_replaced(const struct nk_runtimes *r, const char *id)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->all[i]->id, id) == 0)
            return true;
    }
    return false;
}

static int add_file(struct nk_runtimes *r, const struct nk_runtime *rt, struct nk_err *err)
{
    const char *twice = nk_runtimes_find(r, rt->id) ? rt->id : NULL;

    for (const char *const *alias = rt->aliases; *alias && !twice; alias++)
        twice = nk_runtimes_find(r, *alias) ? *alias : NULL;
    if (twice)
        return nk_fail(err, NK_BAD_REQUEST, "two runtimes are called %s", twice);
    r->all[r->count++] = rt;
    return 0;
}

static int join(struct nk_runtimes *r, struct nk_err *err)
{
    r->all = calloc(r->files.count + nk_runtime_table_count, sizeof *r->all);
    if (!r->all)
        return nk_fail(err, NK_OVERLOADED, "no memory for runtimes");
    for (size_t i = 0; i < r->files.count; i++) {
        if (add_file(r, &r->files.item[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < nk_runtime_table_count; i++) {
        if (!is_replaced(r, nk_runtime_table[i].id))
            r->all[r->count++] = &nk_runtime_table[i];
    }
    return 0;
}

int nk_runtimes_load(const char *dir, struct nk_runtimes **out, struct nk_err *err)
{
    struct nk_runtimes *r = calloc(1, sizeof *r);

    if (!r)
        return nk_fail(err, NK_OVERLOADED, "no memory for runtimes");
    if (nk_runtime_file_read_all(dir, &r->files, err) < 0 || join(r, err) < 0) {
        nk_runtimes_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

void nk_runtimes_free(struct nk_runtimes *r)
{
    if (!r)
        return;
    nk_runtime_file_fini(&r->files);
    free(r->all);
    free(r);
}

size_t nk_runtimes_count(const struct nk_runtimes *r)
{
    return r->count;
}

const struct nk_runtime *nk_runtimes_at(const struct nk_runtimes *r, size_t i)
{
    return r->all[i];
}

const char *nk_runtimes_needs(const struct nk_runtime *rt, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < rt->way_count && at < size; i++) {
        const struct nk_runtime_way *way = &rt->ways[i];
        char version[24] = "";

        if (way->major)
            (void)snprintf(version, sizeof version, " %u.%u", way->major, way->minor);
        at += (size_t)snprintf(out + at, size - at, "%s%s%s%s%s", i ? " or " : "", way->tools[0],
                               version, way->needs ? " with " : "", way->needs ? way->needs : "");
    }
    return out;
}

bool nk_runtimes_is_enough(const struct nk_runtime_way *way, const char *version)
{
    char *end;
    unsigned long major = strtoul(version, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

    return end != version && (major != way->major ? major > way->major : minor >= way->minor);
}
