/*
 * What is told at the end of code: the files it changed, and its images, saved; in a context also the
 * value of its last expression, and its error.
 *
 * Names come from the sandbox: a file is saved in the given folder under the last part of its path,
 * and only there. Blocking.
 */
#ifndef NK_CLI_RUN_RESULT_H
#define NK_CLI_RUN_RESULT_H

struct nk_json;

/* `dir` (const char *): where images are saved, NULL: nowhere. 0, or the exit status to end with. */
int nk_run_result_tell(const void *dir, const struct nk_json *result);
/* A value that code in a context shows, as text. Likewise. */
int nk_run_result_show(const struct nk_json *bundle);

#endif
