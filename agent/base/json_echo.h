/*
 * A value that was read, written again: strict JSON in, compact JSON out.
 *
 * Pure; whole numbers beyond 2^53 lose digits, as they do for every reader of JSON.
 */
#ifndef NK_BASE_JSON_ECHO_H
#define NK_BASE_JSON_ECHO_H

#include "base/json.h"
#include "base/json_out.h"

void nk_json_echo(struct nk_json_out *o, const char *key, const struct nk_json *v);

#endif
