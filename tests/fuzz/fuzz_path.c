/* rooms: files process base */
/*
 * Paths of clients, in a folder full of links: whatever is asked for lies in the root, and the form of
 * the answer leads to the same place. With openat2 and without it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/path.h"
#include "process/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct nk_roots *make_roots(struct nk_kernel *kernel)
{
    static const char *const links[][2] = {
        {"a/b", "l"},     {"..", "a/up"},     {"../..", "out"},      {"/etc", "abs"},
        {"loop", "loop"}, {"../a", "a/back"}, {"a/../a/b", "round"}, {"./", "here"},
    };
    char base[] = "/tmp/nook-fuzz-XXXXXX";
    const char *writable[] = {base, NULL};
    struct nk_roots *roots = NULL;
    int dir;

    if (!mkdtemp(base))
        abort();
    dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(dir, "a", 0755) < 0 || mkdirat(dir, "a/b", 0755) < 0)
        abort();
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (symlinkat(links[i][0], dir, links[i][1]) < 0)
            abort();
    }
    (void)close(dir);
    nk_probe_quick(kernel, 0);
    if (nk_roots_new(writable, NULL, kernel, &roots, NULL) < 0)
        abort();
    return roots;
}

static int enter(const struct nk_roots *roots, const char *path, size_t len, struct stat *st,
                 struct nk_place *place)
{
    if (nk_path_resolve(roots, path, len, NK_PATH_FOLLOW, place, NULL) < 0)
        return -1;
    if (fstat(place->dir, st) < 0)
        abort();
    return 0;
}

/* A folder lies in the root when going up from it comes to the root. */
static bool is_inside(const struct nk_roots *roots, int dir)
{
    struct stat root, st;
    int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool found = false;

    if (fstat(roots->item[0].fd, &root) < 0)
        abort();
    for (int i = 0; i < 8 && fd >= 0 && !found; i++) {
        int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fstat(fd, &st) < 0)
            abort();
        found = st.st_ino == root.st_ino && st.st_dev == root.st_dev;
        (void)close(fd);
        fd = up;
    }
    if (fd >= 0)
        (void)close(fd);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct nk_kernel kernel;
    static struct nk_roots *roots;
    struct nk_place first, again;
    struct stat a, b;

    if (!roots)
        roots = make_roots(&kernel);
    kernel.mech[NK_MECH_OPENAT2].available = size & 1;
    if (enter(roots, (const char *)data, size, &a, &first) < 0)
        return 0;
    if (!is_inside(roots, first.dir))
        abort();
    if (enter(roots, first.path, strlen(first.path), &b, &again) < 0 || a.st_ino != b.st_ino ||
        strcmp(first.name, again.name) != 0 || strcmp(first.path, again.path) != 0)
        abort();
    nk_place_fini(&first);
    nk_place_fini(&again);
    return 0;
}
