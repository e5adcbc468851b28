/*
 * The JSON shapes of files. `entry` is also written on pool threads: it touches its arguments only.
 */
#ifndef NK_API_WIRE_FILES_H
#define NK_API_WIRE_FILES_H

#include "base/buf.h"
#include "base/json_out.h"

struct nk_entry;
struct nk_req;

/* The members of an entry; the caller has the braces. */
void nk_wire_files_entry(struct nk_json_out *o, const struct nk_entry *entry);
void nk_wire_files_reply(struct nk_req *req, int status, const struct nk_entry *entry);

#endif
