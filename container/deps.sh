#!/bin/sh
# Fetches what is built from source into build/deps, pinned by hash. Nothing of it is committed.
# A system libllhttp >= 9.4 is preferred where there is one; then this has nothing to do.
set -eu
cd "$(dirname "$0")/.."

llhttp_version=9.4.3
if pkg-config --atleast-version=9.4 libllhttp 2>/dev/null; then
    exit 0
fi
dest=build/deps/llhttp-$llhttp_version
[ -e "$dest/llhttp.h" ] && exit 0
echo "deps: llhttp $llhttp_version" >&2

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/requirements.txt" <<'R'
httptools==0.9.0 --hash=sha256:d484ebb7e3a3f3597b0f645fbd1b85633674ca808c1f5ba11c2caf7c66f5c8b6
R
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary httptools \
    --require-hashes -r "$tmp/requirements.txt" -d "$tmp"
tar -xzf "$tmp"/httptools-0.9.0.tar.gz -C "$tmp"
src=$tmp/httptools-0.9.0/vendor/llhttp
mkdir -p build/deps
rm -rf "$dest.new"
mkdir "$dest.new"
cp "$src"/include/llhttp.h "$src"/src/*.c "$dest.new"/
mv "$dest.new" "$dest"
