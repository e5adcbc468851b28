/* What libseccomp is told about its system when it is built for the static binary. */
#ifndef NK_STATIC_CONFIGURE_H
#define NK_STATIC_CONFIGURE_H

#define HAVE_LINUX_SECCOMP_H 1

#endif
