#!/bin/sh
# Runs the acceptance of tests/places in real places: sh tests/places.sh [PLACE…]; without a name in
# all that this machine can have. Groups: roots (chroot), runc, gvisor, cri, vm. What is missing is
# installed where that is possible (Debian, root); a place that cannot be had is skipped, with the reason.
#
# NOOK_BINARY (the static binary, built when not given). PYTEST_ARGS: more arguments of pytest.
set -u
cd "$(dirname "$0")/.."
work=build/places
export PYTHONDONTWRITEBYTECODE=1

install() {
    missing=
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "places: installing$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null 2>&1 || true
    # shellcheck disable=SC2086 # a list of names
    apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing >/dev/null 2>&1 ||
        echo "places: going on without:$missing" >&2
}

# The gVisor of Debian's backports, unpacked beside the system's. A suite is named by what runs here.
fetch_runsc() {
    [ ! -x "$work/runsc" ] && command -v apt-get >/dev/null || return 0
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)-backports
    mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | head -1)
    mkdir -p "$work/apt/lists/partial"
    echo "deb ${mirror:-http://deb.debian.org/debian} $suite main" >"$work/apt/list"
    set -- -q -o "Dir::Etc::sourcelist=$PWD/$work/apt/list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State::lists=$PWD/$work/apt/lists" -o APT::Sandbox::User=root
    { apt-get "$@" update && (cd "$work/apt" && apt-get "$@" download runsc) &&
        dpkg -x "$work"/apt/runsc_*.deb "$work/apt/root" &&
        cp "$work/apt/root/usr/bin/runsc" "$work/runsc"; } >"$work/apt/log" 2>&1 ||
        echo "places: going on without the gVisor of $suite: $(tail -1 "$work/apt/log")" >&2
}

places_of() {
    case $1 in
    roots) echo scratch busybox musl ;;
    runc) echo runc runc-hardened runc-shared ;;
    gvisor) echo gvisor gvisor-backports ;;
    *) echo "$1" ;;
    esac
}

[ $# -gt 0 ] || set -- roots runc gvisor cri vm
places=
install busybox-static
for name in "$@"; do
    case $name in
    roots) install musl-tools ;;
    runc) install runc ;;
    gvisor) install runc runsc ;;
    esac
    places="$places $(places_of "$name")"
done
mkdir -p "$work"
case " $* " in *" gvisor "*) fetch_runsc ;; esac
if [ -z "${NOOK_BINARY-}" ]; then
    sh container/run.sh --build static >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; exit 1; }
    NOOK_BINARY=$(tail -1 "$work/build.log")
fi
[ -x build/venv/bin/pytest ] || sh container/setup.sh test || exit 1
# shellcheck disable=SC2086 # arguments
NOOK_BINARY=$NOOK_BINARY NOOK_PLACES=$places build/venv/bin/python -m pytest -q -c tests/pytest.ini \
    --rootdir tests ${PYTEST_ARGS-} tests/places
