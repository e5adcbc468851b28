#!/bin/sh
# Installs what is missing, and nothing else: Debian packages, a Python environment for the tests
# in build/venv, the sources in build/deps. Output to standard error. Debian 12, root to install.
#
# usage: setup.sh [run] [test] [static]
#   run: also the sandbox; test: also what the suites need;
#   static: what the static binary is built from, and alone, instead of the system's libraries
set -eu
cd "$(dirname "$0")/.."
exec >&2

tool_packages="gcc libc6-dev make cmake ninja-build python3 python3-venv"
library_packages="pkg-config libuv1-dev libcjson-dev libseccomp-dev libarchive-dev"
static_packages="dpkg-dev patch xz-utils bzip2"
run_packages="bubblewrap curl"
test_packages="bubblewrap curl openssl procps strace git libcmocka-dev clang libclang-rt-dev
    clang-format clang-tidy cppcheck less vim-tiny"
# What the tests of running code use; tests of a language that is not there are skipped.
language_packages="nodejs php-cli ruby golang-go python3-matplotlib python3-pandas esbuild"
npm_packages="tsx@4.23.15 esbuild@0.28.2"

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing() {
    for package in "$@"; do
        is_installed "$package" || printf '%s ' "$package"
    done
}

install_packages() {
    wanted=$(missing "$@")
    [ -n "$wanted" ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "setup: please install: $wanted"
        exit 1
    fi
    echo "setup: installing $wanted"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 update
    # shellcheck disable=SC2086 # a list of names
    apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $wanted
}

# Nothing fails for want of these.
install_languages() {
    # shellcheck disable=SC2086 # a list of names
    wanted=$(missing $language_packages)
    if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: installing $wanted"
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q -o DPkg::Lock::Timeout=300 update || true
        # shellcheck disable=SC2086 # a list of names
        apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $wanted ||
            echo "setup: going on without: $wanted"
    fi
    stamp=build/npm/installed
    [ "$(cat $stamp 2>/dev/null)" = "$npm_packages" ] || ! command -v npm >/dev/null && return 0
    mkdir -p build/npm
    # shellcheck disable=SC2086 # a list of names
    if timeout 120 npm install --silent --no-fund --no-audit --prefix build/npm $npm_packages; then
        echo "$npm_packages" >$stamp
    else
        echo "setup: going on without: $npm_packages"
    fi
}

# The system's Python may forbid pip; an environment of our own is never in anybody's way.
make_venv() {
    [ -x build/venv/bin/python ] && build/venv/bin/python -c 'import pip' 2>/dev/null && return 0
    rm -rf build/venv
    mkdir -p build
    python3 -m venv build/venv
}

install_python() {
    stamp=build/venv/requirements
    make_venv
    cmp -s tests/requirements.txt "$stamp" && return 0
    build/venv/bin/python -m pip install --quiet --disable-pip-version-check \
        -r tests/requirements.txt
    cp tests/requirements.txt "$stamp"
}

packages=$tool_packages
[ "$*" = static ] || packages="$packages $library_packages"
for part in "$@"; do
    case $part in
    run) packages="$packages $run_packages" ;;
    test) packages="$packages $test_packages" ;;
    static) packages="$packages $static_packages" ;;
    *)
        echo "setup: no part $part"
        exit 2
        ;;
    esac
done

# shellcheck disable=SC2086 # a list of names
install_packages $packages
make_venv
PYTHON=build/venv/bin/python sh container/deps.sh
case " $* " in *" static "*) sh container/sources.sh ;; esac
case " $* " in *" test "*)
    install_python
    install_languages
    ;;
esac
