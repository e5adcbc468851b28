/*
 * Attributes of functions and variables, spelled once.
 *
 * Nothing here has behaviour of its own.
 */
#ifndef NK_BASE_ATTR_H
#define NK_BASE_ATTR_H

#define NK_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define NK_UNUSED __attribute__((unused))
#define NK_NORETURN __attribute__((noreturn))

/* For code that runs between clone and exec on the parent's memory: no sanitizer may touch it. */
#define NK_RAW                                                                                     \
    __attribute__((no_sanitize("address", "undefined", "thread"), noinline, no_stack_protector))

/* Whether the address sanitizer is in: its leak check traces all threads at the end. */
#if defined(__SANITIZE_ADDRESS__)
#define NK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NK_ASAN 1
#endif
#endif
#ifndef NK_ASAN
#define NK_ASAN 0
#endif

#define NK_COUNT(array) (sizeof(array) / sizeof(*(array)))
#define NK_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
