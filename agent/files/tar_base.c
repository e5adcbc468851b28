#include "files/tar_base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/path.h"

/* "/workspace/a" for "a" and "/workspace/a" alike. */
static int full_path(const struct nk_roots *roots, const struct nk_place *place, char *out,
                     size_t room, struct nk_err *err)
{
    const char *work = roots->item[0].path;
    bool itself = strcmp(place->path, ".") == 0;
    int n;

    if (place->absolute)
        n = snprintf(out, room, "%s", place->path);
    else
        n = snprintf(out, room, "%s%s%s", work, itself ? "" : "/", itself ? "" : place->path);
    if (n < 0 || (size_t)n >= room)
        return nk_fail(err, NK_BAD_PATH, "a path of %d bytes is too long", n);
    if (strstr(out, "/../") || (n >= 3 && strcmp(out + n - 3, "/..") == 0))
        return nk_fail(err, NK_BAD_PATH, "%.150s: goes back through a link", place->path);
    if (n == 0)
        memcpy(out, "/", 2);
    return 0;
}

/* What follows `base` in `path`; NULL: it is not below it. "" is the base itself. */
static const char *below(const char *path, const char *base)
{
    size_t len = strcmp(base, "/") == 0 ? 0 : strlen(base);

    if (strncmp(path, base, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return NULL;
    path += len;
    return path + strspn(path, "/");
}

static int give_name(struct nk_tar_wanted *w, const struct nk_roots *roots, const char *base,
                     struct nk_err *err)
{
    char path[NK_TAR_NAME_MAX + 1];
    const char *work = roots->item[0].len ? roots->item[0].path : "/";
    const char *name;

    if (full_path(roots, &w->place, path, sizeof path, err) < 0)
        return -1;
    name = below(path, base ? base : work);
    if (!name && base)
        return nk_fail(err, NK_BAD_PATH, "%.150s: is not below the base", w->place.path);
    if (!name)
        name = below(path, "/");
    (void)snprintf(w->name, sizeof w->name, "%s", name && *name ? name : ".");
    return 0;
}

/* That it can be read at all is known before the answer begins. */
static int check(const struct nk_place *place, struct nk_err *err)
{
    nk_auto_fd int fd = -1;
    struct stat st;

    if (nk_place_stat(place, &st, err) < 0)
        return -1;
    if (S_ISLNK(st.st_mode))
        return 0;
    fd = S_ISDIR(st.st_mode) ? nk_place_open_dir(place, O_RDONLY, err)
                             : nk_place_open_file(place, &st, err);
    return fd < 0 ? -1 : 0;
}

/* As in other tools, a slash at the end of a link means what it leads to. */
static int find_one(struct nk_tar_wanted *w, const struct nk_roots *roots, const char *path,
                    const char *base, struct nk_err *err)
{
    size_t len = strlen(path);
    unsigned flags = len > 0 && path[len - 1] == '/' ? NK_PATH_FOLLOW : 0;

    if (nk_path_resolve(roots, path, len, flags, &w->place, err) < 0)
        return -1;
    if (check(&w->place, err) == 0 && give_name(w, roots, base, err) == 0)
        return 0;
    nk_place_fini(&w->place);
    return -1;
}

static int find_base(const struct nk_roots *roots, const char *base, char *out, size_t room,
                     struct nk_err *err)
{
    struct nk_place place;
    struct stat st;
    int rc;

    if (strspn(base, "/") == strlen(base) && base[0] == '/') {
        memcpy(out, "/", 2);
        return 0;
    }
    if (nk_path_resolve(roots, base, strlen(base), NK_PATH_FOLLOW, &place, err) < 0)
        return -1;
    rc = nk_place_stat(&place, &st, err);
    if (rc == 0 && !S_ISDIR(st.st_mode))
        rc = nk_fail(err, NK_BAD_PATH, "%.150s: the base is not a folder", place.path);
    if (rc == 0)
        rc = full_path(roots, &place, out, room, err);
    nk_place_fini(&place);
    return rc;
}

int nk_tar_base_find(struct nk_tar_base *out, const struct nk_roots *roots,
                     const char *const *paths, const char *base, struct nk_err *err)
{
    char full[NK_TAR_NAME_MAX + 1];
    size_t count = 0;

    if (base && find_base(roots, base, full, sizeof full, err) < 0)
        return -1;
    while (paths[count])
        count++;
    if (count > NK_TAR_BASE_PATHS)
        return nk_fail(err, NK_BAD_REQUEST, "more than %d paths", NK_TAR_BASE_PATHS);
    out->item = calloc(count, sizeof *out->item);
    if (!out->item)
        return nk_fail(err, NK_OVERLOADED, "no memory for so many paths");
    for (; out->count < count; out->count++) {
        if (find_one(&out->item[out->count], roots, paths[out->count], base ? full : NULL, err) < 0)
            return -1;
    }
    return 0;
}

void nk_tar_base_fini(struct nk_tar_base *b)
{
    for (size_t i = 0; i < b->count; i++)
        nk_place_fini(&b->item[i].place);
    free(b->item);
    *b = (struct nk_tar_base){0};
}
