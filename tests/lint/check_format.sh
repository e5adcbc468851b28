#!/bin/sh
# Every C file is as clang-format leaves it. Another release formats otherwise, so only 14 judges.
set -eu
cd "$(dirname "$0")/../.."

if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "skipped: no clang-format 14 here"
    exit 77
fi
find agent tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
echo "format: $(find agent tests -name '*.[ch]' | wc -l) files"
