#!/bin/sh
# How long a new user takes to the first command on a fresh machine: sh tests/fresh.sh. By hand.
#
# The machine is a bare Debian 12 in a folder (mmdebstrap), in namespaces of its own, with the network and
# the certificates of this one. There git is installed, what is committed here is cloned, `sh
# container/run.sh` is run, and then the line that it prints. Limit: 600 seconds.
#
# NOOK_FRESH (build/fresh): the folder, which goes at the end.
set -eu
cd "$(dirname "$0")/.."
fresh=$(realpath -m "${NOOK_FRESH:-build/fresh}")
root=$fresh/root
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

fail() {
    echo "fresh: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "needs root"
for tool in mmdebstrap unshare git; do
    command -v $tool >/dev/null || fail "$tool is not installed"
done
trap 'rm -rf "$fresh"' EXIT
rm -rf "$fresh"
mkdir -p "$fresh"
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$root"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
git clone --quiet --bare . "$root/nook.git"

cat >"$root/user.sh" <<'USER'
set -eu
port=$1
began=$(date +%s)
passed() {
    echo "fresh: $(($(date +%s) - began)) s: $1"
}
export DEBIAN_FRONTEND=noninteractive HOME=/root NOOK_PORT=$port PIP_CERT=/etc/ssl/certs/ca-certificates.crt
(apt-get -q update && apt-get -q -y install --no-install-recommends git) >/log 2>&1 || { tail /log; exit 1; }
passed "git is installed"
cd /root
git clone -q /nook.git nook
cd nook
passed "cloned"
sh container/run.sh >/log 2>&1 &
run=$!
until grep -q 'Ctrl-C ends it' /log; do
    kill -0 $run 2>/dev/null || { tail -n 40 /log; exit 1; }
    sleep 0.2
done
passed "the sandbox runs"
sed -n '/^try:$/,/^Ctrl-C/p' /log | sed '1d;$d' >/line
cat /line
sh /line >/answer
passed "the first command is answered"
cat /answer
echo
grep -q '"exit_code":0' /answer
kill -TERM $run
wait $run || true
USER

status=0
timeout 1800 unshare --mount --pid --ipc --uts --fork --kill-child sh -c '
    set -e
    mount --make-rprivate /
    mount --bind "$1" "$1"
    cd "$1"
    mount -t proc proc proc
    mount --rbind /dev dev
    mount -t sysfs -o ro sysfs sys
    mkdir -p old
    pivot_root . old
    umount -l /old
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh /user.sh "$2"
' sh "$root" "$port" || status=$?
[ "$status" = 0 ] || fail "the new user did not get there ($status)"
