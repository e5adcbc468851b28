/*
 * The archive worker: what `nookd __worker archive` does.
 *
 * A process of its own for each archive, started by files/archives.c as the user. It reads its order,
 * gives up all that it does not need (memory, descriptors, most system calls), and then turns its
 * standard input into files or files into its standard output. What it has to say goes out as notes
 * on standard error. Blocking, one thread; never runs in the daemon.
 */
#ifndef NK_FILES_TAR_TASK_H
#define NK_FILES_TAR_TASK_H

/* `argv`: behind "__worker". The exit status: 2 where it was not started by the daemon. */
int nk_tar_task_main(int argc, char **argv);

#endif
