"""One interpreter of a code context: runs what comes over its channel in one namespace that stays.

Started with the channel as descriptor 3, over which this text came. Requests are a line
`run NUMBER BYTES INPUT` and the code; events go back as lines of JSON, and a line `ok` answers each
`display` once all that was written before it has been read. Nothing of this is on descriptors 0 to 2:
they belong to the code that runs, and to its children.
"""
import sys

SAFE = sys.path[:1] == [""]
if SAFE:
    del sys.path[0]  # what lies in the working directory is not meant for this file

import ast
import base64
import builtins
import fcntl
import importlib.util
import io
import json
import linecache
import os
import re
import signal
import threading
import traceback
import types
from json import dumps
from os import read, write  # the code may put others in their place

HIGH = 64  # descriptors of our own are where code does not look for its own
TEXT_MAX = 1 << 20  # of one representation as text
BUNDLE_MAX = 6 << 20  # of all representations of one value
MIMES_MAX = 32  # of one value
MIME = re.compile(r"(?=.{3,128}\Z)[!-~]*/[!-~]*")
ERROR_MAX = 11000  # characters of a traceback
SOURCES_MAX = 4 << 20  # code that is kept for tracebacks
AWAIT = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
FUTURE = sum(getattr(__import__("__future__"), name).compiler_flag
             for name in __import__("__future__").all_feature_names)
CO_COROUTINE = 0x80

REPRS = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"),
         ("_repr_latex_", "text/latex"), ("_repr_svg_", "image/svg+xml"),
         ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"),
         ("_repr_javascript_", "application/javascript"), ("_repr_json_", "application/json"))


def take(fd):
    """A copy far away that no other program inherits."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)


def clean(value, depth=0):
    """The same as strict JSON takes it; ValueError where it cannot be."""
    if depth > 20:
        raise ValueError("too deep")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -1 << 63 <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {clean(str(k)): clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v, depth + 1) for v in value]
    raise ValueError("no JSON")


def short(text):
    text = clean(text)
    if len(text) > TEXT_MAX:
        return text[:TEXT_MAX] + "... (%d characters)" % len(text)
    return text


def middle(text):
    """Its beginning and its end."""
    if len(text) <= ERROR_MAX:
        return text
    return text[:ERROR_MAX // 4] + "\n...\n" + text[-3 * ERROR_MAX // 4:]


class Channel:
    def __init__(self):
        self.fd = take(3)
        os.close(3)
        self.data = b""
        self.lock = threading.RLock()
        self.sending = False

    def more(self):
        got = read(self.fd, 65536)
        if not got:
            sys.exit(0)
        self.data += got

    def line(self):
        while b"\n" not in self.data:
            self.more()
        line, _, self.data = self.data.partition(b"\n")
        return line.decode().split()

    def request(self):
        line = self.line()
        while line == ["ok"]:  # to what nobody waited for
            line = self.line()
        return line

    def bytes(self, count):
        while len(self.data) < count:
            self.more()
        out, self.data = self.data[:count], self.data[count:]
        return out

    def send(self, event):
        data = memoryview(dumps(event).encode() + b"\n")
        with self.lock:
            self.sending = True
            try:
                while data and self.fd >= 0:
                    data = data[write(self.fd, data):]
            except OSError:
                write(2, b"the code closed the channel of its interpreter\n")
                os._exit(1)
            finally:
                self.sending = False

    def forked(self):
        """In a child of the code: it is not ours to speak."""
        self.lock = threading.RLock()
        os.close(self.fd)
        self.fd = -1


class Input:
    """Descriptor 0: at its end, or what a run brings."""

    def __init__(self):
        self.pipe = take(0)
        null = os.open(os.devnull, os.O_RDONLY)
        self.null = take(null)
        os.close(null)
        self.given = True
        self.give(False)

    def give(self, given):
        if given or self.given:
            os.dup2(self.pipe if given else self.null, 0)
        if given or self.given or getattr(sys.stdin, "closed", True):
            sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), errors="surrogateescape")
        self.given = given


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def figure_png(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def is_figure(value):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, getattr(module, "Figure", ()))


def represent(value, name):
    got = getattr(value, name)()
    if isinstance(got, tuple):
        got = got[0]
    if isinstance(got, (bytes, bytearray)):
        return base64.b64encode(got).decode()
    if name == "_repr_json_":
        return None if got is None else clean(got)
    return clean(got) if isinstance(got, str) else None


def richer(value):
    """What the value says of itself, beside its repr."""
    if is_figure(value):
        yield "image/png", base64.b64encode(figure_png(value)).decode()
        return
    if isinstance(value, type):
        return
    maker = getattr(type(value), "_repr_mimebundle_", None)
    if maker:
        try:
            got = value._repr_mimebundle_(include=None, exclude=None)
            for mime, data in (got[0] if isinstance(got, tuple) else got or {}).items():
                if isinstance(data, (bytes, bytearray)):
                    data = base64.b64encode(data).decode()
                yield clean(str(mime)), clean(data)
        except Exception:
            pass
    for name, mime in REPRS:
        if not hasattr(type(value), name) and name not in getattr(value, "__dict__", ()):
            continue
        try:
            data = represent(value, name)
        except Exception:
            continue
        if data is not None:
            yield mime, data


def plain(value):
    try:
        return short(repr(value))
    except Exception as error:
        return "<%s: repr() raised %s>" % (type(value).__name__, type(error).__name__)


def bundle(value):
    out = {"text/plain": plain(value)}
    left = BUNDLE_MAX - len(out["text/plain"])
    for mime, data in richer(value):
        size = len(data) if isinstance(data, str) else len(dumps(data))
        if len(out) >= MIMES_MAX and mime not in out or not MIME.fullmatch(mime):
            continue
        if size <= left and mime not in (out if mime != "text/plain" else ()):
            out[mime] = data
            left -= size
    return out


class Pyplot:
    """plt.show() tells the figures; nothing is imported that the code does not import."""

    def find_spec(self, name, path=None, target=None):
        if name != "matplotlib.pyplot":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                module.show = lambda *args, **kw: CELLS.figures()

            spec.loader.exec_module = exec_module
        return spec


class Cells:
    def __init__(self):
        self.channel = Channel()
        self.input = Input()
        self.pid = os.getpid()
        self.running = False
        self.late = False
        self.loop = None
        self.flags = AWAIT
        self.sources = []
        self.kept = 0
        self.main = types.ModuleType("__main__")
        self.main.__dict__["__builtins__"] = builtins
        builtins.display = self.display
        sys.modules["__main__"] = self.main
        sys.argv = [""]
        sys.meta_path.insert(0, Pyplot())
        os.register_at_fork(after_in_child=self.channel.forked)
        signal.signal(signal.SIGINT, self.interrupt)

    def interrupt(self, signo, frame):
        if not self.running:
            return
        if self.channel.sending:
            self.late = True
            return
        raise KeyboardInterrupt

    def send(self, event):
        flush()
        self.channel.send(event)
        if self.late and self.running:
            self.late = False
            raise KeyboardInterrupt

    def display(self, *values, **kw):
        """Shows values as rich as they can be."""
        for value in values:
            self.send({"event": "display", "data": bundle(value)})
            if self.running and threading.current_thread() is threading.main_thread():
                if self.channel.fd >= 0:
                    self.channel.line()

    def figures(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if hasattr(pyplot, "get_fignums") else ():
            figure = pyplot.figure(number)
            pyplot.close(figure)
            if figure.axes or figure.texts or figure.images:
                self.display(figure)

    def remember(self, name, code):
        lines = code.splitlines(True)
        linecache.cache[name] = (len(code), None, lines, name)
        self.sources.append((name, len(code)))
        self.kept += len(code)
        while self.kept > SOURCES_MAX and len(self.sources) > 1:
            old, size = self.sources.pop(0)
            linecache.cache.pop(old, None)
            self.kept -= size

    def compile(self, tree, name, mode):
        code = compile(tree, name, mode, self.flags, True)
        self.flags |= code.co_flags & FUTURE
        return code

    def evaluate(self, code):
        names = self.main.__dict__
        value = eval(code, names)
        return self.wait_for(value) if code.co_flags & CO_COROUTINE else value

    def wait_for(self, coroutine):
        import asyncio
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def execute(self, code, name):
        """The value of a last expression, or None."""
        tree = compile(code, name, "exec", self.flags | ast.PyCF_ONLY_AST, True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        if tree.body:
            self.evaluate(self.compile(tree, name, "exec"))
        if last is None:
            return None
        value = self.evaluate(self.compile(last, name, "eval"))
        return None if code.rstrip().endswith(";") else value

    def result(self, value):
        if value is None:
            return None
        self.main.__dict__["_"] = value
        out = bundle(value)
        if is_figure(value) and "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close(value)
        return out

    def error(self, error):
        at = error.__traceback__
        while at is not None and not at.tb_frame.f_code.co_filename.startswith("<cell "):
            at = at.tb_next
        try:
            value = short(str(error))
        except BaseException:
            value = "<str() of it failed>"
        try:
            lines = self.without_us(traceback.TracebackException(type(error), error, at)).format()
        except BaseException:
            lines = []
        try:
            name = clean(type(error).__name__)[:200]
        except BaseException:
            name = "Exception"
        return {"name": name, "value": value[:4000],
                "traceback": middle(clean("".join(lines) or name))}

    def without_us(self, told):
        """Frames of this file are nobody's business."""
        seen, todo = set(), [told]
        while todo:
            one = todo.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            one.stack[:] = [f for f in one.stack if f.filename != "<context>"]
            todo += [one.__cause__, one.__context__]
        return told

    def status(self, error):
        if error is None:
            return 0
        if isinstance(error, KeyboardInterrupt):
            return 130
        if not isinstance(error, SystemExit):
            return 1
        if isinstance(error.code, int):
            return error.code & 255
        if error.code is None:
            return 0
        try:
            print(error.code, file=sys.stderr)
        except BaseException:
            pass  # what cannot be written fails all the same
        return 1

    def run(self, number, code):
        name = "<cell %d>" % number
        error = result = None
        self.remember(name, code)
        signal.signal(signal.SIGINT, self.interrupt)
        self.late = False
        try:
            self.running = True
            result = self.result(self.execute(code, name))
            self.figures()
            self.running = False
        except BaseException as caught:
            self.running = False
            error = caught
        if os.getpid() != self.pid:
            self.end_child(error)
        signal.signal(signal.SIGINT, self.interrupt)
        status = self.status(error)
        told = None if status == 0 else self.error(error)
        self.send({"event": "done", "run": number, "status": status, "error": told,
                   "result": None if error else result})

    def end_child(self, error):
        """The code forked, and the child came to its end."""
        if error is not None and not isinstance(error, SystemExit):
            print(self.error(error)["traceback"], end="", file=sys.stderr)
        status = self.status(error)
        flush()
        os._exit(status)

    def wait(self):
        """Tasks that the code left in its loop go on between runs."""
        if self.loop is None or self.loop.is_closed():
            return
        import asyncio
        if self.channel.data or not asyncio.all_tasks(self.loop):
            return
        self.loop.add_reader(self.channel.fd, self.loop.stop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.remove_reader(self.channel.fd)

    def serve(self):
        self.channel.send({"event": "ready"})
        while True:
            self.wait()
            _, number, count, given = self.channel.request()
            code = self.channel.bytes(int(count)).decode("utf-8", "replace")
            self.input.give(given == "1")
            self.run(int(number), code)


CELLS = Cells()
if SAFE:
    sys.path.insert(0, "")
CELLS.serve()
