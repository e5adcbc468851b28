# The libraries of the static binary, from the sources that container/sources.sh fetched: of each
# only what nookd uses, and with the flags of the rest. They stand in for the system's, under the
# same names.
set(src ${CMAKE_SOURCE_DIR}/build/deps/static)
if(NOT EXISTS ${src}/versions)
  message(FATAL_ERROR "no sources of the libraries: run sh container/sources.sh first")
endif()

# nook_dep(NAME ROOT folder FILES … [INCLUDE …] [PUBLIC …] [DEFINE …])
function(nook_dep name)
  cmake_parse_arguments(DEP "" "ROOT" "FILES;INCLUDE;PUBLIC;DEFINE" ${ARGN})
  list(TRANSFORM DEP_FILES PREPEND ${DEP_ROOT}/)
  add_library(dep_${name} STATIC ${DEP_FILES})
  target_include_directories(dep_${name} SYSTEM PUBLIC ${DEP_PUBLIC} PRIVATE ${DEP_INCLUDE})
  target_compile_definitions(dep_${name} PRIVATE _GNU_SOURCE ${DEP_DEFINE})
  target_compile_options(dep_${name} PRIVATE -w)
  set_target_properties(dep_${name} PROPERTIES C_EXTENSIONS ON)
endfunction()

# Without dlopen and the resolver; what asks for a user's name is left without a definition, so that a
# use of it does not link: a static C library would load its name services at run time.
set(root ${src}/libuv1)
nook_dep(uv ROOT ${root}/src
  PUBLIC ${root}/include INCLUDE ${root}/src
  DEFINE _FILE_OFFSET_BITS=64 _LARGEFILE_SOURCE getpwuid_r=nk_no_name_service
  FILES fs-poll.c inet.c random.c strscpy.c strtok.c threadpool.c timer.c uv-common.c
    uv-data-getter-setters.c version.c unix/async.c unix/core.c unix/epoll.c unix/fs.c
    unix/linux-core.c unix/linux-inotify.c unix/linux-syscalls.c unix/loop-watcher.c unix/loop.c
    unix/pipe.c unix/poll.c unix/process.c unix/procfs-exepath.c unix/proctitle.c
    unix/random-devurandom.c unix/random-getrandom.c unix/random-sysctl-linux.c unix/signal.c
    unix/stream.c unix/tcp.c unix/thread.c unix/tty.c unix/udp.c)
target_link_libraries(dep_uv PUBLIC Threads::Threads)

# Its users include it as <cjson/cJSON.h>.
file(COPY ${src}/cjson/cJSON.h DESTINATION ${CMAKE_BINARY_DIR}/include/cjson)
nook_dep(cjson ROOT ${src}/cjson PUBLIC ${CMAKE_BINARY_DIR}/include FILES cJSON.c)
target_link_libraries(dep_cjson PUBLIC m)

set(root ${src}/libseccomp)
nook_dep(seccomp ROOT ${root}/src
  PUBLIC ${root}/include INCLUDE ${root}/src ${CMAKE_CURRENT_LIST_DIR}/static
  FILES api.c arch-aarch64.c arch-arm.c arch-mips.c arch-mips64.c arch-mips64n32.c arch-parisc.c
    arch-parisc64.c arch-ppc.c arch-ppc64.c arch-riscv64.c arch-s390.c arch-s390x.c arch-x32.c
    arch-x86.c arch-x86_64.c arch.c db.c gen_bpf.c gen_pfc.c hash.c helper.c syscalls.c
    syscalls.perf.c system.c)

nook_dep(zlib ROOT ${src}/zlib PUBLIC ${src}/zlib DEFINE HAVE_UNISTD_H NO_GZIP
  FILES adler32.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c zutil.c)

# No dictionary builder, no formats of before 1.0.
set(root ${src}/libzstd/lib)
nook_dep(zstd ROOT ${root}
  PUBLIC ${root} DEFINE ZSTD_LEGACY_SUPPORT=0 ZSTD_DISABLE_ASM ZSTD_STRIP_ERROR_STRINGS=1
  FILES common/debug.c common/entropy_common.c common/error_private.c common/fse_decompress.c
    common/pool.c common/threading.c common/xxhash.c common/zstd_common.c compress/fse_compress.c
    compress/hist.c compress/huf_compress.c compress/zstd_compress.c
    compress/zstd_compress_literals.c compress/zstd_compress_sequences.c
    compress/zstd_compress_superblock.c compress/zstd_double_fast.c compress/zstd_fast.c
    compress/zstd_lazy.c compress/zstd_ldm.c compress/zstd_opt.c decompress/huf_decompress.c
    decompress/zstd_ddict.c decompress/zstd_decompress.c decompress/zstd_decompress_block.c)
# What the default level does not use need not be fast.
set_source_files_properties(${root}/compress/zstd_fast.c ${root}/compress/zstd_lazy.c
  ${root}/compress/zstd_opt.c ${root}/compress/zstd_ldm.c ${root}/compress/zstd_compress_superblock.c
  PROPERTIES COMPILE_OPTIONS "-Os;-DZSTD_NO_INLINE")

# Decoders alone.
set(root ${src}/xz-utils/src)
nook_dep(lzma ROOT ${root}/liblzma
  PUBLIC ${root}/liblzma/api
  INCLUDE ${root}/common ${root}/liblzma/common ${root}/liblzma/check ${root}/liblzma/lz
    ${root}/liblzma/lzma ${root}/liblzma/rangecoder ${root}/liblzma/simple ${root}/liblzma/delta
  DEFINE HAVE_STDBOOL_H HAVE_STDINT_H HAVE_INTTYPES_H HAVE_CHECK_CRC32 HAVE_CHECK_CRC64
    HAVE_CHECK_SHA256 HAVE_DECODERS HAVE_DECODER_LZMA1 HAVE_DECODER_LZMA2 HAVE_DECODER_DELTA
    HAVE_DECODER_X86 HAVE_DECODER_ARM HAVE_DECODER_ARMTHUMB HAVE_DECODER_ARM64
    HAVE_SMALL TUKLIB_FAST_UNALIGNED_ACCESS HAVE_VISIBILITY=0
  FILES check/check.c check/crc32_small.c check/crc64_small.c check/sha256.c
    common/alone_decoder.c common/block_decoder.c common/block_header_decoder.c common/block_util.c
    common/common.c common/filter_common.c common/filter_decoder.c common/filter_flags_decoder.c
    common/index_hash.c common/stream_decoder.c common/stream_flags_common.c
    common/stream_flags_decoder.c common/vli_decoder.c common/vli_size.c delta/delta_common.c
    delta/delta_decoder.c lz/lz_decoder.c lzma/lzma2_decoder.c lzma/lzma_decoder.c simple/arm.c
    simple/arm64.c simple/armthumb.c simple/simple_coder.c simple/simple_decoder.c simple/x86.c)

# tar with gzip, zstd and xz; no disk reader or writer, no iconv, no digests.
set(root ${src}/libarchive/libarchive)
nook_dep(archive ROOT ${root}
  PUBLIC ${root} INCLUDE ${CMAKE_CURRENT_LIST_DIR}/static
  DEFINE PLATFORM_CONFIG_H="archive_config.h" LIBARCHIVE_STATIC LZMA_API_STATIC
  FILES archive_acl.c archive_check_magic.c archive_entry.c archive_entry_sparse.c
    archive_entry_xattr.c archive_options.c archive_pack_dev.c archive_rb.c archive_read.c
    archive_read_add_passphrase.c archive_read_set_format.c archive_read_set_options.c
    archive_read_support_filter_gzip.c archive_read_support_filter_xz.c
    archive_read_support_filter_zstd.c archive_read_support_format_tar.c archive_string.c
    archive_string_sprintf.c archive_util.c archive_virtual.c archive_write.c
    archive_write_add_filter_gzip.c archive_write_add_filter_zstd.c archive_write_set_format.c
    archive_write_set_format_pax.c archive_write_set_format_ustar.c archive_write_set_options.c)
target_link_libraries(dep_archive PRIVATE dep_zlib dep_zstd dep_lzma)

add_library(PkgConfig::UV ALIAS dep_uv)
add_library(PkgConfig::CJSON ALIAS dep_cjson)
add_library(PkgConfig::SECCOMP ALIAS dep_seccomp)
add_library(PkgConfig::ARCHIVE ALIAS dep_archive)
