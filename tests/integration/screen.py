"""A process on a terminal, seen as a person sees it: what it printed, drawn on a screen."""

import base64

import pyte

from test_processes import show, start
from wire import wait_until


class _Screen(pyte.Screen):
    def select_graphic_rendition(self, *attrs, private=False):
        """A question of vim's that pyte takes for colours."""
        if not private:
            super().select_graphic_rendition(*attrs)


def draw(data, cols=80, rows=24):
    """The screen, as lines, after a terminal of that size was sent all of `data`."""
    screen = _Screen(cols, rows)
    pyte.ByteStream(screen).feed(data)
    return [line.rstrip() for line in screen.display]


class Terminal:
    """A process with a terminal, typed at and looked at through the API."""

    def __init__(self, nook, command, cols=80, rows=24, **fields):
        self.nook = nook
        self.cols = cols
        self.rows = rows
        self.process = start(nook, command, tty=True, cols=cols, rows=rows, **fields)
        self.id = self.process["id"]
        self.pid = self.process["pid"]

    def send(self, data, **fields):
        """Types bytes or text; no fields but `close` are needed to end the input."""
        data = data.encode() if isinstance(data, str) else data
        body = {"base64": base64.b64encode(data).decode(), **fields}
        response = self.nook.post(f"/v1/processes/{self.id}/stdin", body)
        assert response.status == 200, response
        return response.json()

    def close(self):
        return self.send(b"", close=True)

    def resize(self, cols, rows):
        response = self.nook.post(f"/v1/processes/{self.id}/resize", {"cols": cols, "rows": rows})
        if response.status == 200:
            self.cols, self.rows = cols, rows
        return response

    def output(self):
        """All bytes its log holds."""
        response = self.nook.get(f"/v1/processes/{self.id}/logs?raw=true")
        assert response.status == 200, response
        return response.body

    def screen(self):
        return draw(self.output(), self.cols, self.rows)

    def shows(self, text, seconds=20):
        """Waits until the screen shows it; returns the lines."""
        def visible():
            lines = self.screen()
            return any(text in line for line in lines) and lines
        try:
            return wait_until(visible, seconds)
        except AssertionError:
            raise AssertionError(f"no {text!r} on the screen:\n" + "\n".join(self.screen())) from None

    def printed(self, data, count=1, seconds=20):
        """Waits until these bytes were printed so often; returns all there are."""
        def done():
            out = self.output()
            return out.count(data) >= count and out
        try:
            return wait_until(done, seconds)
        except AssertionError:
            raise AssertionError(f"no {data!r} in {self.output()!r}") from None

    def shown(self):
        return show(self.nook, self.id)

    def end(self, seconds=30):
        """The process, once it has ended."""
        done = show(self.nook, self.id, wait=seconds)
        assert done["status"] == "exited", (done, self.output()[-2000:])
        return done
