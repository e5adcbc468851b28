#!/bin/sh
# A private sandbox on this machine with nookd as its process 1.
#
# usage: run.sh [-- OPTIONS OF nookd serve]     stays until Ctrl-C
#        run.sh --detach [-- OPTIONS]           stays running; prints nookd's pid as its last line
#        run.sh --stop                          ends what --detach started
#        run.sh --build [PRESET]                builds only; prints the binary's path as its last line
#
# NOOK_PORT (8099), NOOK_BINARY (a built nookd: builds nothing), NOOK_SANDBOX (build/sandbox)
#
# The system is read-only; /workspace /output /tmp /home/sandbox and /run/nookd are the sandbox's own
# and go with it. The network is the machine's: the endpoint listens on loopback only.
set -eu
given_binary=${NOOK_BINARY:+$(realpath "$NOOK_BINARY")}
given_box=${NOOK_SANDBOX:+$(realpath -m "$NOOK_SANDBOX")}
cd "$(dirname "$0")/.."
root=$(pwd)
port=${NOOK_PORT:-8099}
box=${given_box:-$root/build/sandbox}
token=$box/run/token

say() {
    echo "$@" >&2
}

fail() {
    say "run.sh: $*"
    exit 1
}

build() {
    sh container/setup.sh "$@"
    [ -e "build/$preset/CMakeCache.txt" ] || cmake --preset "$preset" >&2
    cmake --build --preset "$preset" --target nookd >&2
    [ -x "build/$preset/nookd" ] || fail "build/$preset/nookd was not built"
}

# nookd's pid, where the sandbox is alive.
running() {
    [ -s "$box/pid" ] || return 1
    pid=$(cat "$box/pid")
    [ -e "/proc/$pid/root/run/nookd" ] && echo "$pid"
}

end_sandbox() {
    if pid=$(running); then
        kill -TERM "$pid" 2>/dev/null || true
        tries=0
        while running >/dev/null && [ "$tries" -lt 150 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        if running >/dev/null; then
            kill -KILL "$pid" 2>/dev/null || true
        fi
    fi
    rm -rf "$box"
}

# Folders of the sandbox, and its own users: the machine's but for one named sandbox or of uid 1000.
make_folders() {
    rm -rf "$box"
    mkdir -p "$box/workspace" "$box/output" "$box/tmp" "$box/home" "$box/run" "$box/state"
    chmod 0755 "$box"
    chmod 0700 "$box/run" "$box/state"
    chown 1000:1000 "$box/workspace" "$box/output" "$box/home"
    chmod 1777 "$box/tmp"
    grep -v -e '^sandbox:' -e '^[^:]*:[^:]*:1000:' /etc/passwd >"$box/passwd" || true
    echo 'sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh' >>"$box/passwd"
    grep -v -e '^sandbox:' -e '^[^:]*:[^:]*:1000:' /etc/group >"$box/group" || true
    echo 'sandbox:x:1000:' >>"$box/group"
}

# The rest of the machine's top level, read-only: as links where it has links.
system_binds() {
    for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /etc; do
        if [ -L "$path" ]; then
            printf '%s\n' --symlink "$(readlink "$path")" "$path"
        elif [ -d "$path" ]; then
            printf '%s\n' --ro-bind "$path" "$path"
        fi
    done
}

# Starts bubblewrap in the background with nookd as process 1; sets `monitor`.
start_sandbox() {
    binary=$1
    shift
    set -- --ro-bind "$binary" /nookd \
        --ro-bind "$box/passwd" /etc/passwd --ro-bind "$box/group" /etc/group \
        --proc /proc --dev /dev --ro-bind-try /sys /sys --tmpfs /run --tmpfs /var \
        --perms 1777 --dir /var/tmp --perms 0755 --dir /var/lib --perms 0755 --dir /home \
        --bind "$box/run" /run/nookd --bind "$box/state" /var/lib/nookd \
        --bind "$box/workspace" /workspace --bind "$box/output" /output --bind "$box/tmp" /tmp \
        --bind "$box/home" /home/sandbox --remount-ro / \
        --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --as-pid-1 \
        --hostname sandbox --chdir / --clearenv \
        --setenv PATH /usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin \
        --setenv LANG C.UTF-8 --info-fd 9 \
        --cap-drop ALL --cap-add CAP_CHOWN --cap-add CAP_DAC_OVERRIDE --cap-add CAP_FOWNER --cap-add CAP_KILL \
        --cap-add CAP_SETGID --cap-add CAP_SETUID --cap-add CAP_SETPCAP \
        /nookd serve --listen "127.0.0.1:$port" "$@"
    binds=$(system_binds)
    # shellcheck disable=SC2086 # no path there has a space
    setsid bwrap $binds "$@" 9>"$box/info" &
    monitor=$!
}

# The pid that bubblewrap tells, and then an answer of the endpoint.
wait_ready() {
    tries=0
    until [ -s "$box/pid" ] && curl -fs -o /dev/null "http://127.0.0.1:$port/readyz"; do
        sed -n 's/.*"child-pid": *\([0-9]*\).*/\1/p' "$box/info" 2>/dev/null >"$box/pid" || true
        kill -0 "$monitor" 2>/dev/null || fail "nookd ended at its start"
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail "nookd does not answer on port $port"
        sleep 0.1
    done
    running >/dev/null || fail "port $port answers, but it is not ours"
}

tell() {
    say "nookd is process 1 of a sandbox; it listens on http://127.0.0.1:$port"
    say "token: $token"
    say "try:"
    say "  curl -s -H \"Authorization: Bearer \$(cat $token)\" \\"
    say "    --json '{\"command\":\"id; pwd; ps ax\"}' http://127.0.0.1:$port/v1/exec"
}

mode=foreground
preset=release
case ${1-} in
--build)
    preset=${2:-release}
    case $preset in
    static*) build static ;;
    release) build ;;
    *) build test ;;
    esac
    case $preset in static*)
        build/venv/bin/python container/sbom.py "build/$preset" >"build/$preset/nookd.cdx.json"
        say "what it is made of: build/$preset/nookd.cdx.json"
        ;;
    esac
    echo "$root/build/$preset/nookd"
    exit 0
    ;;
--stop)
    end_sandbox
    exit 0
    ;;
--detach)
    mode=detached
    shift
    ;;
esac
case ${1-} in
'') ;;
--) shift ;;
*) fail "no such argument: $1" ;;
esac

[ "$(id -u)" = 0 ] || fail "making a sandbox with a user of its own takes root"
if [ -n "$given_binary" ]; then
    binary=$given_binary
else
    build run
    binary=$root/build/$preset/nookd
fi
running >/dev/null && fail "it runs already; sh container/run.sh --stop ends it"
make_folders
monitor=
trap end_sandbox EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ "$mode" = detached ]; then
    start_sandbox "$binary" "$@" >"$box/log" 2>&1 </dev/null
    wait_ready
    tell
    trap - EXIT
    cat "$box/pid"
else
    start_sandbox "$binary" "$@" </dev/null
    wait_ready
    tell
    say "Ctrl-C ends it."
    wait "$monitor"
fi
