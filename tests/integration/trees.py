"""Trees of files for the archive tests: made, described, compared, sent and fetched as tar."""

import hashlib
import os
import stat
import subprocess
from urllib.parse import quote_from_bytes

import wire


def query(path=(), **fields):
    """A query string; names are bytes or text, and a list of paths repeats the parameter."""
    paths = [path] if isinstance(path, (str, bytes)) else path
    pairs = [("path", p) for p in paths] + list(fields.items())
    return "&".join(f"{k}={quote_from_bytes(os.fsencode(v), safe='/')}" for k, v in pairs)


def put(nook, path, data, wait=120, **fields):
    """Sends an archive. A server that answers before it has read all of it is heard too."""
    with nook.connect(wait=wait) as conn:
        try:
            conn.send_request("PUT", "/v1/archive?" + query(path, **fields), body=data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return conn.read_response("PUT")


def get(nook, path, wait=120, **fields):
    return nook.request("GET", "/v1/archive?" + query(path, **fields), wait=wait)


def describe(top, times=True):
    """{name: what it is}, names as bytes relative to `top`, which itself is b"."."""
    top = os.fsencode(top)
    out, names = {}, {}
    for base, folders, files in os.walk(top):
        for name in ([b"."] if base == top else []) + folders + files:
            path = os.path.normpath(os.path.join(base, name))
            short = os.path.relpath(path, top)
            st = os.lstat(path)
            out[short] = (*_one(path, st), int(st.st_mtime) if times else None)
            if stat.S_ISREG(st.st_mode) and st.st_nlink > 1:
                names.setdefault(st.st_ino, []).append(short)
    for group in names.values():
        for short in group:
            out[short] += (tuple(sorted(group)),)
    return out


def _one(path, st):
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            return ("file", stat.S_IMODE(st.st_mode), hashlib.sha256(f.read()).hexdigest())
    if stat.S_ISLNK(st.st_mode):
        return ("link", None, os.readlink(path))
    return (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), None)


def same(a, b):
    """Fails with the first few differences and not with two whole trees."""
    wrong = [(k, a.get(k), b.get(k)) for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k)]
    assert not wrong, f"{len(wrong)} differ: {wrong[:5]}"


def own(top, uid):
    """Everything in `top` belongs to that user."""
    if os.geteuid() != 0:
        return
    for base, folders, files in os.walk(os.fsencode(top)):
        for name in [b"."] + folders + files:
            os.chown(os.path.join(base, name), uid, uid, follow_symlinks=False)


def tar(*args, input=None):
    """GNU tar; its standard output."""
    done = subprocess.run(["tar", *map(os.fsencode, args)], input=input, capture_output=True,
                          timeout=300 * wire.PATIENCE, check=False,
                          env={**os.environ, "XZ_OPT": "-0"})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def untar(data, folder, *args):
    folder.mkdir()
    tar("-C", folder, "-xp", "--no-same-owner", *args, "-f", "-", input=data)
    return folder


def odd_tree(top, files):
    """What a real tree can hold: odd names, modes, links of both kinds, holes, and many files."""
    top = os.fsencode(top)
    os.makedirs(os.path.join(top, b"empty/inner"))
    names = ["umläut/größe.txt".encode(), b"bytes/\xff\xfe\x80", b"new\nline", b"esc\x1b", b" $%&'\"",
             b"w" * 120, b"y" * 250, b"/".join([b"deep" * 20] * 20) + b"/leaf", b"-rf", b"a\\b"]
    for i, name in enumerate(names):
        _write(os.path.join(top, name), name * i, 0o600 + i)
    for i in range(files):
        _write(os.path.join(top, b"many/%03d/%05d" % (i % 211, i)), b"%d\n" % i * (i % 50), 0o644)
    os.symlink(b"many/000/00000", os.path.join(top, b"link"))
    os.symlink(b"/etc/passwd", os.path.join(top, b"absolute"))
    os.symlink(b"nowhere", os.path.join(top, "hängt".encode()))
    os.symlink(b"empty", os.path.join(top, b"to-folder"))
    os.link(os.path.join(top, b"new\nline"), os.path.join(top, b"empty/again"))
    os.link(os.path.join(top, b"new\nline"), os.path.join(top, b"zz-third"))
    with open(os.path.join(top, b"sparse"), "wb") as f:
        f.truncate(8 << 20)
        f.seek(5 << 20)
        f.write(b"data" * 1000)
    _write(os.path.join(top, b"script"), b"#!/bin/sh\n", 0o755)
    _write(os.path.join(top, b"locked/inside"), b"x", 0o400)
    os.chmod(os.path.join(top, b"locked"), 0o555)
    for base, folders, found in os.walk(top, topdown=False):
        for name in found + folders:
            path = os.path.join(base, name)
            os.utime(path, (1, 1600000000 + len(path)), follow_symlinks=False)
    os.utime(top, (1, 1600000000))


def _write(path, data, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def members(tree):
    """What an archive of a described tree holds: {kind: count} with hard links told apart."""
    kinds = {"files": 0, "links": 0, "dirs": 0}
    seen = set()
    for what in tree.values():
        group = what[4] if len(what) > 4 else None
        if what[0] == "file" and group and group in seen:
            kinds["links"] += 1
        elif what[0] == "file":
            kinds["files"] += 1
            seen.add(group)
        else:
            kinds["links" if what[0] == "link" else "dirs"] += 1
    return kinds
