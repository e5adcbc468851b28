"""Malicious and odd archives, each by its number: what has led other unpackers out of their folder.

Headers are written by hand, since no tar library makes most of them. `case(victim)` gives the bytes;
`victim` is the path of a folder beside the target that nothing may ever touch.
"""

import gzip
import os
from dataclasses import dataclass, field

END = bytes(1024)
MTIME = 1700000000
GNU = b"ustar  \0"


def header(name, size=0, kind=b"0", link=b"", mode=0o644, magic=b"ustar\x0000", raw=(), uid=0):
    """One block. `raw`: (offset, bytes) written over it before the checksum is made."""
    h = bytearray(512)
    h[0:100] = name[:100].ljust(100, b"\0")
    h[100:108] = b"%07o\0" % mode
    h[108:116] = b"%07o\0" % uid
    h[116:124] = b"%07o\0" % uid
    h[124:136] = b"%011o\0" % size
    h[136:148] = b"%011o\0" % MTIME
    h[156:157] = kind
    h[157:257] = link[:100].ljust(100, b"\0")
    h[257:257 + len(magic)] = magic
    for offset, data in raw:
        h[offset:offset + len(data)] = data
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)


def padded(data):
    return data + bytes(-len(data) % 512)


def file(name, data=b"evil", **kw):
    return header(name, len(data), **kw) + padded(data)


def folder(name, mode=0o755):
    return header(name, kind=b"5", mode=mode)


def symlink(name, target):
    return header(name, kind=b"2", link=target, mode=0o777)


def hardlink(name, target, data=b""):
    return header(name, len(data), kind=b"1", link=target) + padded(data)


def pax(records, kind=b"x"):
    """An extended header with (key, value) records."""
    out = b""
    for key, value in records:
        rest = len(key) + len(value) + 3
        size = rest + len(str(rest))
        size = rest + len(str(size))
        out += b"%d %s=%s\n" % (size, key, value)
    return header(b"PaxHeaders/x", len(out), kind=kind) + padded(out)


def long_name(name, kind=b"L"):
    return header(b"././@LongLink", len(name) + 1, kind=kind, magic=GNU) + padded(name + b"\0")


def bomb(size=1 << 30):
    """`size` zero bytes as one file, some thousandth of that when compressed."""
    head = gzip.compress(file_head(size))
    block = gzip.compress(bytes(1 << 24), 9)
    return head + block * (size >> 24) + gzip.compress(END)


def file_head(size):
    return header(b"zeros", size)


@dataclass
class Case:
    number: str
    what: str
    make: object  # victim (bytes) -> bytes
    status: int = 200
    refused: int = 0  # entries, at least
    present: dict = field(default_factory=dict)  # name: content, None: anything
    absent: tuple = ()
    code: str = "bad_request"

    def __str__(self):
        return f"{self.number}-{self.what}".replace(" ", "-")


def chain(victim):
    links = b"".join(symlink(b"l%d" % i, b"l%d" % (i + 1)) for i in range(60))
    return links + symlink(b"l60", victim) + file(b"l0/x") + END


def deep(levels):
    return long_name(b"d/" * levels + b"f") + file(b"short") + END


def long_path():
    return long_name(b"p" * 8000) + file(b"short") + \
        long_name(b"/".join([b"q" * 200] * 40)) + file(b"short2") + END


def flipped():
    data = bytearray(file(b"first") + file(b"second") + END)
    data[1024 + 5] ^= 1
    return bytes(data)


def sparse_old():
    """One run of 512 bytes at 4096 in a file of 1,000,000."""
    raw = ((386, b"%011o\0%011o\0%011o\0%011o\0" % (4096, 512, 1000000, 0)),
           (483, b"%011o\0" % 1000000))
    return header(b"sparse", 512, kind=b"S", magic=GNU, raw=raw) + b"d" * 512 + file(b"z") + END


def sparse_pax():
    data = padded(b"1\n4096\n512\n") + b"d" * 512
    records = [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
               (b"GNU.sparse.name", b"sparse"), (b"GNU.sparse.realsize", b"1000000")]
    return pax(records) + file(b"GNUSparseFile.0/sparse", data) + file(b"z") + END


def sparse_lie():
    """Bytes that lie behind the end of the file."""
    data = padded(b"1\n%d\n512\n" % (1 << 50)) + b"d" * 512
    records = [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
               (b"GNU.sparse.name", b"sparse"), (b"GNU.sparse.realsize", b"1000000")]
    return file(b"first") + pax(records) + file(b"GNUSparseFile.0/sparse", data) + END


SPARSE = bytes(4096) + b"d" * 512 + bytes(1000000 - 4608)


def inodes(count):
    return b"".join(file(b"many/%05d" % i, b"") for i in range(count)) + END


CASES = [
    Case("01", "dot dot", lambda v: file(b"../x") + file(b"ok") + END, refused=1,
         present={"ok": b"evil"}),
    Case("02", "absolute", lambda v: file(v + b"/x") + file(b"ok") + END, refused=1,
         present={"ok": b"evil"}),
    Case("03", "dot dot inside", lambda v: file(b"a/../../x") + END, refused=1),
    Case("04", "link to dot dot then file",
         lambda v: symlink(b"up", b"..") + file(b"up/x") + END, refused=1),
    Case("05", "absolute link then file", lambda v: symlink(b"out", v) + file(b"out/x") + END,
         refused=1),
    Case("06", "link to a file then overwrite",
         lambda v: symlink(b"f", v + b"/secret") + file(b"f", b"mine") + END,
         present={"f": b"mine"}),
    Case("07", "hard link outside relative",
         lambda v: hardlink(b"h", b"../victim/secret") + END, refused=1, absent=("h",)),
    Case("08", "hard link outside absolute", lambda v: hardlink(b"h", v + b"/secret") + END,
         refused=1, absent=("h",)),
    Case("09", "hard link then write",
         lambda v: hardlink(b"h", v + b"/secret") + file(b"h", b"mine") + END, refused=1,
         present={"h": b"mine"}),
    Case("10", "hard link with data",
         lambda v: pax([(b"comment", b"x")]) + hardlink(b"h", v + b"/secret", b"data")
         + file(b"ok") + END, refused=1, present={"ok": b"evil"}, absent=("h",)),
    Case("11", "hard link through a link",
         lambda v: symlink(b"out", v) + hardlink(b"h", b"out/secret") + END, refused=1,
         absent=("h",)),
    Case("12", "hard link to a link then write",
         lambda v: symlink(b"s", v + b"/secret") + hardlink(b"h", b"s") + file(b"h", b"mine")
         + END, refused=1, present={"h": b"mine"}),
    Case("13", "chain of links",
         lambda v: symlink(b"a", b".") + symlink(b"a/b", b"..") + symlink(b"c", b"a/..")
         + file(b"c/x") + END, refused=2),
    Case("14", "folder over a link",
         lambda v: symlink(b"d", v) + folder(b"d/", 0o700) + file(b"d/x") + END, refused=2),
    Case("15", "chmod through a link", lambda v: symlink(b"d", v) + folder(b"d", 0o777) + END,
         refused=1),
    Case("16", "device", lambda v: header(b"dev", kind=b"3", raw=((329, b"0000001\0"),
                                                                  (337, b"0000003\0")))
         + header(b"blk", kind=b"4") + file(b"ok") + END, refused=2, present={"ok": b"evil"},
         absent=("dev", "blk")),
    Case("17", "fifo then file", lambda v: header(b"p", kind=b"6") + file(b"p", b"mine") + END,
         refused=1, present={"p": b"mine"}),
    Case("18", "set-id", lambda v: file(b"suid", mode=0o6755) + folder(b"sgid/", 0o7777) + END,
         present={"suid": b"evil"}),
    Case("19", "owner root", lambda v: file(b"f", uid=0) + END, present={"f": b"evil"}),
    Case("20", "folder replaced by a link", lambda v: folder(b"d/") + file(b"d/ok")
         + symlink(b"d", v) + file(b"d/x") + END, refused=1, present={"d/ok": b"evil"}),
    Case("21", "empty name", lambda v: file(b"") + file(b"ok") + END, refused=1,
         present={"ok": b"evil"}),
    Case("22", "the folder itself without rights", lambda v: folder(b"./", 0) + file(b"ok") + END,
         present={"ok": b"evil"}),
    Case("23", "the folder above without rights", lambda v: folder(b"../", 0) + file(b"ok") + END,
         refused=1, present={"ok": b"evil"}),
    Case("24", "escape and newline", lambda v: file(b"a\x1b[31m\nb") + END,
         present={"a\x1b[31m\nb": b"evil"}),
    Case("25", "path of 8000 bytes", lambda v: long_path(), refused=2),
    Case("26", "3000 folders deep", lambda v: deep(3000), refused=1, absent=("d",)),
    Case("26b", "101 folders deep", lambda v: deep(101), refused=1, absent=("d",)),
    Case("27", "bytes that are no UTF-8", lambda v: file(b"\xff\xfe") + END,
         present={os.fsdecode(b"\xff\xfe"): b"evil"}),
    Case("28", "file with a slash", lambda v: file(b"f/", b"") + END),
    Case("29", "file used as a folder", lambda v: file(b"f") + file(b"f/x") + END, refused=1,
         present={"f": b"evil"}),
    Case("30", "pax path", lambda v: pax([(b"path", b"../x")]) + file(b"ok") + END, refused=1,
         absent=("ok",)),
    Case("31", "pax linkpath",
         lambda v: pax([(b"linkpath", v + b"/secret")]) + hardlink(b"h", b"ok") + END, refused=1,
         absent=("h",)),
    Case("32", "pax size", lambda v: pax([(b"size", b"100000000000")]) + file(b"f") + END,
         status=400, absent=("f",)),
    Case("33", "chain of 60 links", chain, refused=1),
    Case("34", "capability", lambda v: pax([
        (b"SCHILY.xattr.security.capability", b"\1\0\0\2\0\x20\0\0" + bytes(12)),
        (b"LIBARCHIVE.xattr.user.evil", b"ZXZpbA=="),
        (b"SCHILY.acl.access", b"user::rwx,user:0:rwx,group::rwx,mask::rwx,other::rwx")])
        + file(b"f") + END, present={"f": b"evil"}),
    Case("35", "backslash", lambda v: file(b"..\\x") + END, present={"..\\x": b"evil"}),
    Case("36", "twins by case", lambda v: file(b"File", b"1") + file(b"file", b"2") + END,
         present={"File": b"1", "file": b"2"}),
    Case("37", "link to itself", lambda v: hardlink(b"h", b"h") + symlink(b"s", b"s")
         + file(b"s/x") + END, refused=2, absent=("h",)),
    Case("38", "overwrite a file without rights",
         lambda v: file(b"f", b"old", mode=0) + file(b"f", b"new") + END, present={"f": b"new"}),
    Case("39", "link to nothing", lambda v: symlink(b"a", b"") + symlink(b"b", b"x" * 90) + END,
         refused=1, absent=("a",)),
    Case("40", "cut off", lambda v: (file(b"a") + file(b"b", bytes(3000)))[:2500], status=400,
         present={"a": b"evil"}, absent=("b",)),
    Case("41", "bad checksum", lambda v: flipped(), status=400, present={"first": b"evil"},
         absent=("second",)),
    Case("42", "negative size",
         lambda v: header(b"n", raw=((124, b"\xff" * 12),)) + padded(b"x") + END, status=400,
         absent=("n",)),
    Case("43", "zeros", lambda v: bytes(10240)),
    Case("44", "1 GiB in 1 MB", lambda v: bomb(), status=413, code="too_large",
         absent=("zeros",)),
    Case("45", "20,000 inodes", lambda v: inodes(20000), present={"many/19999": b""}),
    Case("46", "sparse, old GNU", lambda v: sparse_old(), present={"sparse": SPARSE, "z": b"evil"}),
    Case("47", "sparse, pax 1.0", lambda v: sparse_pax(), present={"sparse": SPARSE, "z": b"evil"}),
    Case("47b", "sparse, false map", lambda v: sparse_lie(), status=400, absent=("sparse",),
         present={"first": b"evil"}),
    Case("48", "multi-volume", lambda v: header(b"vol", kind=b"V", magic=GNU)
         + header(b"cont", 5, kind=b"M", magic=GNU, raw=((369, b"%011o\0" % 512),))
         + padded(b"hello") + file(b"ok") + END, refused=1, present={"ok": b"evil"},
         absent=("cont",)),
    Case("49", "long name of 2 GiB", lambda v: header(b"././@LongLink", 1 << 31, kind=b"L",
                                                      magic=GNU) + bytes(4096), status=400),
    Case("50", "long link of 2 GiB", lambda v: header(b"././@LongLink", 1 << 31, kind=b"K",
                                                      magic=GNU) + bytes(4096), status=400),
    Case("51", "global pax header", lambda v: pax([(b"path", b"../x"), (b"linkpath", v)],
                                                  kind=b"g") + file(b"ok") + END,
         present={"ok": b"evil"}),
    Case("52", "archives that follow one another",
         lambda v: file(b"a") + END + bytes(8192) + file(b"b") + END,
         present={"a": b"evil", "b": b"evil"}),
    Case("53", "gzip members", lambda v: gzip.compress(file(b"a")) + gzip.compress(file(b"b") + END),
         present={"a": b"evil", "b": b"evil"}),
    Case("54", "compressed archives that follow one another",
         lambda v: gzip.compress(file(b"a") + END) + gzip.compress(file(b"b") + END),
         present={"a": b"evil", "b": b"evil"}),
    Case("55", "NUL in a name", lambda v: pax([(b"path", b"a\0/../../x")]) + file(b"b") + END),
    Case("56", "nothing at all", lambda v: b"", status=400),
    Case("57", "no archive", lambda v: b"GIF89a" + bytes(range(256)) * 8, status=400),
    Case("58", "what follows the end", lambda v: file(b"a") + END + b"garbage" * 500, status=400,
         present={"a": b"evil"}),
    Case("59", "link then folder below it", lambda v: symlink(b"d", v) + folder(b"d/sub/") + END,
         refused=1),
    Case("60", "link replaced by a hard link to it",
         lambda v: symlink(b"s", v) + hardlink(b"h", b"s/secret") + symlink(b"h", b"s")
         + file(b"h/x") + END, refused=2),
    Case("61", "a part of dots", lambda v: file(b"./././.") + file(b"./..x/...") + END, refused=1,
         present={"..x/...": b"evil"}),
    Case("62", "a part of 256 bytes", lambda v: long_name(b"n" * 256) + file(b"short")
         + long_name(b"m" * 255) + file(b"short") + END, refused=1, present={"m" * 255: b"evil"}),
]
