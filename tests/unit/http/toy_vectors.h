/*
 * The requests of vectors.txt, read for the tests.
 */
#ifndef NK_TEST_HTTP_TOY_VECTORS_H
#define NK_TEST_HTTP_TOY_VECTORS_H

#include <stdbool.h>
#include <stddef.h>

struct toy_vector {
    int status;
    bool close;
    char name[64];
    char *bytes; /* owned */
    size_t len;
};

/* NULL where the file cannot be read or has a bad line. */
struct toy_vector *toy_vectors_load(const char *path, size_t *out_count);
void toy_vectors_free(struct toy_vector *vectors, size_t count);

#endif
