"""A C lexer that is just good enough for the house check: no preprocessing, no types."""

import re
from collections import namedtuple

Token = namedtuple("Token", "kind text line")  # kind: word number string char op pp
Function = namedtuple("Function", "name static params body first last")
Declaration = namedtuple("Declaration", "tokens line")

_LEX = re.compile(
    r"""
    (?P<space>[ \t\r\n\f\v]+ | \\\n)
  | (?P<comment>/\*.*?\*/ | //[^\n]*)
  | (?P<string>(?:L|u8|u|U)?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:L|u|U)?'(?:\\.|[^'\\\n])*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<op>->|\+\+|--|<<=|>>=|\.\.\.|&&|\|\||[<>=!+\-*/%&|^]=|<<|>>|\#\#|.)
    """,
    re.X | re.S,
)
_DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.S)


def tokens(text):
    """Comments and white space gone; a directive with its continuation lines is one token."""
    out = []
    at = 0
    line = 1
    fresh = True  # nothing but white space since the line began
    while at < len(text):
        directive = _DIRECTIVE.match(text, at) if fresh else None
        match = directive or _LEX.match(text, at)
        kind = "pp" if directive else match.lastgroup
        piece = match.group()
        if kind not in ("space", "comment"):
            out.append(Token(kind, piece.strip() if directive else piece, line))
        fresh = "\n" in piece or (fresh and kind == "comment")
        if kind not in ("space", "comment"):
            fresh = False
        if directive:
            fresh = False
        line += piece.count("\n")
        at = match.end()
    return out


def comments(text):
    """(line, text) of each comment."""
    out = []
    at = 0
    line = 1
    while at < len(text):
        match = _LEX.match(text, at)
        if match.lastgroup == "comment":
            out.append((line, match.group()))
        line += match.group().count("\n")
        at = match.end()
    return out


def closing(toks, at):
    """The index of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    open_, close = toks[at].text, pairs[toks[at].text]
    depth = 0
    for i in range(at, len(toks)):
        if toks[i].kind != "op":
            continue
        if toks[i].text == open_:
            depth += 1
        elif toks[i].text == close:
            depth -= 1
            if depth == 0:
                return i
    return len(toks) - 1


def split_commas(toks):
    parts, depth, part = [], 0, []
    for t in toks:
        if t.kind == "op" and t.text in "([{":
            depth += 1
        elif t.kind == "op" and t.text in ")]}":
            depth -= 1
        if t.text == "," and depth == 0:
            parts.append(part)
            part = []
        else:
            part.append(t)
    return parts + [part] if part else parts


def _function(head, toks, brace):
    """`head` are the tokens before a brace at the top level; a Function, or None."""
    if not head or head[-1].text != ")" or any(t.text == "=" for t in head):
        return None
    i = 0
    while i + 1 < len(head):
        named = head[i].kind == "word" and head[i + 1].text == "("
        if named and head[i].text != "__attribute__" and not head[i].text.isupper() \
                and not head[i].text.startswith("NK_"):
            end = closing(head, i + 1)
            if end == len(head) - 1:
                break
            i = end
        elif named:
            i = closing(head, i + 1)
        i += 1
    else:
        return None
    params = split_commas(head[i + 2:len(head) - 1])
    if len(params) == 1 and len(params[0]) == 1 and params[0][0].text == "void":
        params = []
    last = closing(toks, brace)
    return Function(head[i].text, any(t.text == "static" for t in head), params,
                    toks[brace:last + 1], head[0].line, toks[last].line)


def top_level(toks):
    """(functions, declarations) of a file; directives are left out."""
    functions, declarations, head = [], [], []
    i = 0
    while i < len(toks):
        t = toks[i]
        if t.kind == "pp":
            i += 1
            continue
        if t.text == "{":
            function = _function(head, toks, i)
            end = closing(toks, i)
            if function:
                functions.append(function)
                head = []
            else:
                head += [x for x in toks[i:end + 1] if x.kind != "pp"]
            i = end + 1
            continue
        if t.text == ";":
            if head:
                declarations.append(Declaration(head, head[0].line))
            head = []
        else:
            head.append(t)
        i += 1
    return functions, declarations
