/*
 * From an error to the answer of the protocol: one table of status and wire name.
 *
 * Every answer that is not 2xx is made here. Loop thread only; owns nothing.
 */
#ifndef NK_API_PROBLEM_H
#define NK_API_PROBLEM_H

#include "base/err.h"
#include "base/json_out.h"

struct nk_req;

int nk_problem_status(enum nk_code code);
const char *nk_problem_name(enum nk_code code); /* "not_found", … */

/* The members of the `error` object: code, message and what belongs to that code. */
void nk_problem_members(struct nk_json_out *o, const struct nk_err *err);

/* The headers that belong to the code: Allow, Retry-After, WWW-Authenticate. */
void nk_problem_headers(struct nk_req *req, const struct nk_err *err);

/* The answer had begun and will be cut: only the log can still say why. */
void nk_problem_broken_off(struct nk_req *req, const struct nk_err *err);

/* Answers the request from `err` (the server's `problem` hook). */
void nk_problem_reply(struct nk_req *req, const struct nk_err *err);

#endif
