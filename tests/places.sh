#!/bin/sh
# Runs the acceptance of tests/places in real places: sh tests/places.sh [PLACE…]; without a name in
# all that this machine can have. Groups: roots (chroot; and the binary's own tests), runc, gvisor,
# cri, vm; and, only where it is named, image: container/Containerfile built and run by podman, which
# takes minutes and 2 GB (kept in build/places/engine). What is missing is installed where that is
# possible (Debian, root); a place that cannot be had is skipped, with the reason.
#
# NOOK_BINARY (the static binary, built when not given). PYTEST_ARGS: more arguments of pytest.
set -u
cd "$(dirname "$0")/.."
work=build/places
only="--ignore tests/places/test_static.py"
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

places_of() {
    case $1 in
    roots) echo scratch busybox musl ;;
    runc) echo runc runc-hardened runc-shared ;;
    gvisor) echo gvisor gvisor-backports ;;
    *) echo "$1" ;;
    esac
}

# The gVisor of Debian's backports, beside the system's own.
fetch_runsc() {
    [ -x "$work/runsc" ] && return 0
    uri=$(apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI) $(CODENAME)' |
        awk '$1 == "Packages" && $2 == "Debian" && $4 !~ /-/ { print $3, $4; exit }')
    [ -n "$uri" ] || return 0
    apt=$work/apt
    rm -rf "$apt"
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri-backports main" >"$apt/list"
    options="-q -o Dir::Etc::sourcelist=$PWD/$apt/list -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State=$PWD/$apt/state -o Dir::State::status=/dev/null -o Dir::Cache=$PWD/$apt/cache
        -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086 # a list of options
    (apt-get $options update && cd "$apt" && apt-get $options download runsc && dpkg -x runsc_*.deb .) \
        >"$work/runsc.log" 2>&1 && cp "$apt/usr/bin/runsc" "$work/runsc" ||
        echo "places: going on without the gVisor of backports" >&2
}

# crictl is not in Debian; its own module is built with the scratch module that a Go tool needs.
fetch_crictl() {
    command -v crictl >/dev/null || [ -x "$work/crictl" ] && return 0
    command -v go >/dev/null || install golang-go
    mkdir -p "$work/crictl.src"
    printf 'module scratch\ngo 1.24\nrequire sigs.k8s.io/cri-tools v1.34.0\n' >"$work/crictl.src/go.mod"
    (cd "$work/crictl.src" && go build -mod=mod -trimpath -o ../crictl sigs.k8s.io/cri-tools/cmd/crictl) \
        >"$work/crictl.log" 2>&1 || echo "places: going on without crictl" >&2
}

# The small kernel that Debian makes for machines in machines, beside the system's own.
fetch_kernel() {
    [ -d "$work/vm/boot" ] && return 0
    kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
    rm -rf "$work/vm" "$work/kernel"
    mkdir -p "$work/kernel"
    (cd "$work/kernel" && apt-get -q -o APT::Sandbox::User=root download "$kernel" && dpkg -x ./*.deb ../vm) \
        >"$work/kernel.log" 2>&1 || echo "places: going on without a kernel" >&2
}

[ $# -gt 0 ] || set -- roots runc gvisor cri vm
places=
mkdir -p "$work"
install busybox-static
for name in "$@"; do
    case $name in
    roots) install musl-tools && only= ;;
    runc) install runc ;;
    gvisor) install runc runsc && fetch_runsc ;;
    cri) install containerd containernetworking-plugins runc gcc libc6-dev && fetch_crictl ;;
    image) install podman runc mmdebstrap ;;
    vm) install qemu-system-x86 cpio && fetch_kernel ;;
    esac
    places="$places $(places_of "$name")"
done
if [ -z "${NOOK_BINARY-}" ]; then
    sh container/run.sh --build static >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; exit 1; }
    NOOK_BINARY=$(tail -1 "$work/build.log")
fi
[ -x build/venv/bin/pytest ] || sh container/setup.sh test || exit 1
# shellcheck disable=SC2086 # arguments
NOOK_BINARY=$NOOK_BINARY NOOK_PLACES=$places build/venv/bin/python -m pytest -q -c tests/pytest.ini \
    --rootdir tests $only ${PYTEST_ARGS-} tests/places
