"""Sessions driven by clients that others wrote: the `websockets` package, and a browser."""

import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import threading

import pytest

import wire
from nook import IS_ROOT, scaled
from test_processes import start

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome",
                                                "chromium-headless-shell"))), None)


@pytest.fixture
def client():
    return pytest.importorskip("websockets.sync.client")


def connect(client, nook, target, **kw):
    kw = {"subprotocols": ["nook.v1"], "max_size": None, **kw}
    if "token=" not in target:
        kw["additional_headers"] = {"Authorization": f"Bearer {nook.token}"}
    return client.connect(f"ws://127.0.0.1:{nook.port}{target}", open_timeout=30, **kw)


def play(ws):
    """Every message to the end, and the code of the close."""
    out, last = b"", None
    for message in ws:
        if isinstance(message, bytes):
            out += message[9:]
            continue
        last = json.loads(message)
        if last["type"] in ("stdout", "stderr") and "text" in last:
            out += last["text"].encode()
    return out, last, ws.close_code


def test_a_command_by_the_websockets_package(client, tcp_nook):
    with connect(client, tcp_nook, "/v1/exec/ws") as ws:
        assert ws.subprotocol == "nook.v1"
        ws.send(json.dumps({"type": "start", "command": ["cat"], "binary": True}))
        data = os.urandom(scaled(4 << 20, 1 << 20))
        sender = threading.Thread(target=lambda: [ws.send(data[i:i + 500_000])
                                                  for i in range(0, len(data), 500_000)]
                                  + [ws.send('{"type":"close_stdin"}')])
        sender.start()
        out, last, code = play(ws)
        sender.join()
        assert (out == data, last["exit_code"], code) == (True, 0, 1000)


def test_its_fragments_pings_and_offers_are_understood(client, tcp_nook):
    """It offers compression, which is not agreed to, and may send a message in parts."""
    with connect(client, tcp_nook, "/v1/exec/ws", compression="deflate") as ws:
        words = json.dumps({"type": "start", "command": "read x; echo $x"})
        ws.send(iter([words[:5], words[5:9], words[9:]]))
        assert ws.ping(b"still there").wait(30)
        ws.send(iter(['{"type":"stdin",', '"text":"', "ü\\n", '"}']))
        out, last, code = play(ws)
        assert (out.decode(), last["exit_code"], code) == ("ü\n", 0, 1000)


def test_it_watches_a_process_with_a_token(client, tcp_nook):
    p = start(tcp_nook, "echo hello; cat", stdin_open=True)
    token = tcp_nook.post("/v1/exec/ws-token", {}).json()["token"]
    with connect(client, tcp_nook, f"/v1/processes/{p['id']}/ws?token={token}") as ws:
        assert json.loads(ws.recv(timeout=30))["type"] == "attached"
        ws.send(b"typed\n")
        ws.send('{"type":"close_stdin"}')
        out, last, code = play(ws)
        assert (out, last["exit_code"], code) == (b"hello\ntyped\n", 0, 1000)


PAGE = """<!doctype html><pre id=out></pre><script>
const ws = new WebSocket("ws://127.0.0.1:PORT/v1/exec/ws?token=TOKEN", "nook.v1");
const out = document.getElementById("out");
ws.binaryType = "arraybuffer";
ws.onopen = () => ws.send(JSON.stringify({type: "start", command: ["cat"], tty: true}));
ws.onmessage = e => {
  const m = JSON.parse(e.data);
  out.textContent += m.text ?? "";
  if (m.type === "started") {
    ws.send(JSON.stringify({type: "resize", cols: 100, rows: 30}));
    ws.send(new TextEncoder().encode("from the page\\n"));
    ws.send(JSON.stringify({type: "close_stdin"}));
  }
  if (m.type === "exit") out.textContent += `exit ${m.exit_code}\\n`;
};
ws.onclose = e => {
  out.textContent += `closed ${e.code} ${e.wasClean} ${ws.protocol}\\n`;
  fetch("/report", {method: "POST", body: out.textContent});
};
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_a_page_in_a_browser_talks_to_a_terminal(start_nook, tmp_path):
    """From an allowed origin, with a one-time token, as a page must."""
    reports = queue.Queue()

    class Server(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def do_POST(self):
            reports.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    nook = start_nook("--allow-origin", origin, tcp=True)
    token = nook.post("/v1/exec/ws-token", {}).json()["token"]
    (tmp_path / "page.html").write_text(
        PAGE.replace("PORT", str(nook.port)).replace("TOKEN", token))
    argv = [CHROMIUM, "--headless", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0",
            f"{origin}/page.html"]
    if IS_ROOT:
        argv.insert(1, "--no-sandbox")
    # In a session of its own: all that it started ends with it.
    browser = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        said = reports.get(timeout=60 * wire.PATIENCE)
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()
        server.shutdown()
        server.server_close()
    assert "from the page" in said
    assert said.endswith("exit 0\nclosed 1000 true nook.v1\n")
