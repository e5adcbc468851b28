/*
 * What libarchive is told about its system when it is built for the static binary: a C library
 * without iconv, and the three compressors. It only reads and writes streams.
 */
#ifndef NK_STATIC_ARCHIVE_CONFIG_H
#define NK_STATIC_ARCHIVE_CONFIG_H

#define __LIBARCHIVE_CONFIG_H_INCLUDED 1

#define HAVE_DECL_INT32_MAX 1
#define HAVE_DECL_INT32_MIN 1
#define HAVE_DECL_INT64_MAX 1
#define HAVE_DECL_INT64_MIN 1
#define HAVE_DECL_INTMAX_MAX 1
#define HAVE_DECL_INTMAX_MIN 1
#define HAVE_DECL_SIZE_MAX 1
#define HAVE_DECL_SSIZE_MAX 1
#define HAVE_DECL_UINT32_MAX 1
#define HAVE_DECL_UINT64_MAX 1
#define HAVE_DECL_UINTMAX_MAX 1
#define HAVE_EILSEQ 1
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_GETPID 1
#define HAVE_INTTYPES_H 1
#define HAVE_LIBLZMA 1
#define HAVE_LIBZSTD 1
#define HAVE_LIBZSTD_COMPRESSOR 1
#define HAVE_LIMITS_H 1
#define HAVE_LZMA_H 1
#define HAVE_MBRTOWC 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define HAVE_WCHAR_H 1
#define HAVE_WCRTOMB 1
#define HAVE_WCSCPY 1
#define HAVE_WCSLEN 1
#define HAVE_WCTOMB 1
#define HAVE_WMEMCMP 1
#define HAVE_WMEMCPY 1
#define HAVE_WMEMMOVE 1
#define HAVE_ZLIB_H 1
#define HAVE_ZSTD_H 1
#define MAJOR_IN_SYSMACROS 1

#endif
