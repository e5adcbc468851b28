/*
 * What both tests of the options share: loading arguments, expecting a refusal, files.
 */
#ifndef NK_CONFIG_FIXTURE_H
#define NK_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config.h"
#include "config_table.h"

static inline int load(const char *const *args, struct nk_config *out, struct nk_err *err)
{
    int argc = 0;

    while (args[argc])
        argc++;
    return nk_config_load(argc, (char **)args, out, err);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_ARGS ((const char *const[]){NULL})

static inline void must_load(const char *const *args, struct nk_config *out)
{
    struct nk_err err = {0};
    int rc = load(args, out, &err);

    if (rc < 0)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, 0);
}

/* Refused, in one line that holds `name`. */
static inline void must_refuse(const char *const *args, const char *name)
{
    struct nk_config c;
    struct nk_err err = {0};
    int rc = load(args, &c, &err);

    if (rc == 0)
        nk_config_fini(&c);
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, NK_BAD_REQUEST);
    if (!strstr(err.msg, name))
        print_error("\"%s\" does not name %s\n", err.msg, name);
    assert_non_null(strstr(err.msg, name));
    assert_null(strchr(err.msg, '\n'));
}

static inline char *write_file(const char *text)
{
    static const char template[] = "/tmp/test_config.XXXXXX";
    char *path = strdup(template);
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static inline int fresh_environment(void **state)
{
    (void)state;
    return clearenv();
}

#endif
