#!/bin/sh
# Fetches the source packages that the static binary is built from into build/deps/static: those of
# the Debian release this runs on, named by its own package sources and verified by apt. No root,
# and nothing of the system is changed. What was taken stands in build/deps/static/versions.
set -eu
cd "$(dirname "$0")/.."
exec >&2

sources="libuv1 cjson libseccomp libarchive zlib libzstd xz-utils"
dest=$PWD/build/deps/static

fail() {
    echo "sources: $*"
    exit 1
}

# Debian's own archives among the machine's package sources, asked for source packages.
source_list() {
    apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' |
        awk '$1 == "Packages" && $2 == "Debian" && $5 == "main" {
            print "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $3, $4, $5 }' |
        sort -u
}

# with LIST PROGRAM ARGS: apt-get or apt-cache on the package sources of that list alone.
with() {
    list=$1
    program=$2
    shift 2
    "$program" -q -o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$apt/state" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
        -o APT::Sandbox::User=root -o Acquire::Retries=2 "$@"
}

# The versions of a source package, newest first.
versions_of() {
    with "$apt/list" apt-cache showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -u | sort -rV
}

# fetch NAME VERSION: from the first archive that has it.
fetch() {
    for list in "$apt"/list.*; do
        if (cd "$tmp" && with "$list" apt-get source --download-only "$1=$2" >"$tmp/log" 2>&1); then
            return 0
        fi
        rm -f "$tmp/$1"_*
    done
    return 1
}

# take NAME: its newest version; an older one only where no archive gives that.
take() {
    for version in $(versions_of "$1"); do
        if fetch "$1" "$version"; then
            dpkg-source --no-check -x "$tmp/$1"_*.dsc "$dest.new/$1" >"$tmp/log" 2>&1 ||
                { cat "$tmp/log" && fail "cannot unpack $1"; }
            echo "$1 $version" >>"$dest.new/versions"
            echo "sources: $1 $version"
            return 0
        fi
        echo "sources: no archive gives $1 $version"
    done
    cat "$tmp/log" || true
    fail "no source of $1"
}

[ -e "$dest/versions" ] && [ "$(cut -d' ' -f1 "$dest/versions" | xargs)" = "$sources" ] && exit 0

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
apt=$tmp/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
[ -n "$(source_list)" ] || apt-get -q -o DPkg::Lock::Timeout=300 update >"$tmp/log" 2>&1 || true
source_list >"$apt/list"
[ -s "$apt/list" ] || fail "no package source of Debian is known; run apt-get update"
split -l 1 "$apt/list" "$apt/list."
with "$apt/list" apt-get update >"$tmp/log" 2>&1 || { cat "$tmp/log" && fail "cannot ask for source packages"; }
rm -rf "$dest.new"
mkdir -p "$dest.new"
for name in $sources; do
    take "$name"
done
rm -rf "$dest"
mv "$dest.new" "$dest"
