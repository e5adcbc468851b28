"""What is measured. Each figure is a generator of rows: name, what was reached, the machine's limit
in the same run, the ratio of the two, and the aim."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

from daemon import BUILD, PREFIX, TOP, Daemon, Limit, run_json

sys.path.insert(0, str(TOP / "tests" / "integration"))
import wire  # noqa: E402
import ws_client  # noqa: E402

MIB = 1 << 20


def row(name, reached, limit="", ratio=None, aim="", met=None):
    return {"figure": name, "reached": reached, "limit": limit, "ratio": ratio, "aim": aim,
            "met": met}


def rounds_of(opts, *measures):
    """Each measure once a round, so that what else the machine does hits all; a list of each."""
    out = [[] for _ in measures]
    for _ in range(opts.rounds):
        for values, measure in zip(out, measures):
            values.append(measure())
    return out


def ratio_of(ours, limit):
    return statistics.median(a / b for a, b in zip(ours, limit))


TRUE = json.dumps({"command": ["/bin/true"]})


def exec_one(opts):
    with Daemon(opts.binary) as d:
        ours, bare = rounds_of(
            opts,
            lambda: d.client("unix", "load", 60, 1, 0, "POST", "/v1/exec", TRUE)["times"]["p50_us"],
            lambda: run_json("limit", "spawn", 60, 1, "/bin/true")["times"]["p50_us"])
    ratio = ratio_of(ours, bare)
    yield row("true, one by one", f"{min(ours):.0f} us", f"{min(bare):.0f} us", ratio,
              "<= 1.25", ratio <= 1.25)


def exec_many(opts):
    health = []

    def load():
        got = d.client("unix", "load", 600, 32, 1, "POST", "/v1/exec", TRUE)
        assert got["bad"] == 0
        health.append(got["health"]["p99_us"] / 1000)
        return 600 / got["seconds"]
    with Daemon(opts.binary) as d:
        ours, bare = rounds_of(
            opts, load, lambda: 600 / run_json("limit", "spawn", 600, 2, "/bin/true")["seconds"])
    ratio = ratio_of(ours, bare)
    yield row("true, 32 at once", f"{max(ours):.0f} /s", f"{max(bare):.0f} /s", ratio,
              ">= 0.75", ratio >= 0.75)
    p99 = statistics.median(health)
    yield row("health meanwhile, p99", f"{p99:.2f} ms", aim="<= 2 ms", met=p99 <= 2)


def first_answer(opts):
    d = Daemon(opts.binary)
    d.socket.parent.mkdir(mode=0o700)
    bare_addr = f"unix:{d.root}/bare.sock"
    ours, bare = rounds_of(
        opts,
        lambda: run_json("client", d.unix, "first", 3, *d.argv,
                         stderr=subprocess.DEVNULL)["times"]["p50_us"],
        lambda: run_json("client", bare_addr, "first", 3, BUILD / "bench_limit", bare_addr,
                         "answer", stderr=subprocess.DEVNULL)["times"]["p50_us"])
    shutil.rmtree(d.root, ignore_errors=True)
    best = min(ours) / 1000
    yield row("start to first healthy answer", f"{best:.2f} ms", f"{min(bare) / 1000:.2f} ms",
              ratio_of(ours, bare), "<= 1.5 ms", best <= 1.5)


def idle(opts):
    with Daemon(opts.binary) as d:
        time.sleep(1)
        rss, heap = d.status("VmRSS"), d.heap()
        before, ticks = d.switches(), opts.idle_seconds
        yield row("idle memory", f"{rss} KiB", aim="<= 2048 KiB", met=rss <= 2048)
        yield row("idle memory, private", f"{d.status('RssAnon')} KiB")
        yield row("idle heap", f"{heap} KiB", aim="<= 400 KiB", met=heap <= 400)
        yield row("idle descriptors", str(d.descriptors()))
        time.sleep(ticks)
        wakes = (d.switches() - before) * 60 / ticks
        yield row("idle wake-ups a minute", f"{wakes:.0f}", aim="0", met=wakes == 0)


def output(opts):
    size = opts.megabytes * MIB

    def rate(got):
        return size / got["seconds"] / 1e6
    with Daemon(opts.binary) as d, Limit("pipe", size) as bare:
        command = [str(d.root / "bench_limit"), "write", str(size)]
        sse = json.dumps({"command": command})
        raw = json.dumps({"type": "start", "binary": True, "command": command})
        events, data, copy = rounds_of(
            opts,
            lambda: rate(d.client("tcp", "drain", "POST", "/v1/exec/stream", sse)),
            lambda: rate(d.client("tcp", "ws", "/v1/exec/ws", raw)),
            lambda: rate(run_json("client", bare, "drain", "GET", "/")))
        peak = d.status("VmHWM")
    limit = f"{max(copy):.0f} MB/s"
    yield row("output as events", f"{max(events):.0f} MB/s", limit, ratio_of(events, copy),
              ">= 600 MB/s", max(events) >= 600)
    ratio = ratio_of(data, copy)
    yield row("output as bytes (WebSocket)", f"{max(data):.0f} MB/s", limit, ratio,
              ">= 0.85, 1200 MB/s", ratio >= 0.85 and max(data) >= 1200)
    yield row("peak memory meanwhile", f"{peak} KiB")


def transfer(opts):
    size = opts.megabytes * MIB
    with Daemon(opts.binary) as d:
        path, plain = d.work / "file", d.root / "plain"
        target = f"/v1/files?path={path}"
        with Limit("store", plain) as bare:
            ours, chunked, copy = rounds_of(
                opts,
                lambda: size / d.client("tcp", "put", target, size)["seconds"] / 1e6,
                lambda: size / d.client("tcp", "chunked", target, size)["seconds"] / 1e6,
                lambda: size / run_json("client", bare, "put", "/", size)["seconds"] / 1e6)
        for name, rates in (("upload", ours), ("upload in chunks", chunked)):
            ratio = ratio_of(rates, copy)
            yield row(name, f"{max(rates):.0f} MB/s", f"{max(copy):.0f} MB/s", ratio, ">= 0.85",
                      ratio >= 0.85)
        with Limit("sendfile", path) as bare:
            ours, copy = rounds_of(
                opts,
                lambda: size / d.client("tcp", "drain", "GET", target)["seconds"] / 1e6,
                lambda: size / run_json("client", bare, "drain", "GET", "/")["seconds"] / 1e6)
        ratio = ratio_of(ours, copy)
        yield row("download", f"{max(ours):.0f} MB/s", f"{max(copy):.0f} MB/s", ratio, ">= 0.9",
                  ratio >= 0.9)
        yield row("peak memory of transfers", f"{d.status('VmHWM')} KiB")


def through_stdio(argv, request, env=None):
    """MB/s of what comes out of a program whose input is that file."""
    piece = bytearray(MIB)
    size = 0
    begun = time.monotonic()
    with open(request, "rb") as source, subprocess.Popen(
            argv, stdin=source, stdout=subprocess.PIPE, env=env) as proc:
        while got := os.readv(proc.stdout.fileno(), [piece]):
            size += got
    return size / (time.monotonic() - begun) / 1e6


def proxying(opts):
    size = opts.megabytes * MIB
    with Daemon(opts.binary) as d:
        plain, request = d.work / "plain", d.root / "request"
        plain.write_bytes(bytes(size))
        request.write_text(f"GET /v1/files?path={plain} HTTP/1.1\r\nHost: x\r\n"
                           "Connection: close\r\n\r\n")
        with Limit("sendfile", plain) as there, Limit("relay", there) as bare:
            target = f"/v1/proxy/{there[4:]}/"
            ours, copy = rounds_of(
                opts,
                lambda: size / d.client("tcp", "drain", "GET", target)["seconds"] / 1e6,
                lambda: size / run_json("client", bare, "drain", "GET", "/")["seconds"] / 1e6)
        ratio = ratio_of(ours, copy)
        yield row("a port's answer", f"{max(ours):.0f} MB/s", f"{max(copy):.0f} MB/s", ratio,
                  ">= 0.85", ratio >= 0.85)
        verb = [*PREFIX, str(opts.binary), "proxy", "--socket", str(d.socket)]
        relay = [*PREFIX, str(BUILD / "bench_limit"), "stdio", d.unix]
        ours, copy = rounds_of(opts, lambda: through_stdio(verb, request),
                               lambda: through_stdio(relay, request))
        ratio = ratio_of(ours, copy)
        yield row("nookd proxy", f"{max(ours):.0f} MB/s", f"{max(copy):.0f} MB/s", ratio,
                  ">= 0.9", ratio >= 0.9)


def timed(*argv, **kw):
    began = time.monotonic()
    subprocess.run([*PREFIX, *map(str, argv)], check=True, **kw)
    return time.monotonic() - began


def archive(opts):
    tree = sysconfig.get_paths()["stdlib"]
    with Daemon(opts.binary) as d, tempfile.TemporaryDirectory() as own:
        tar, count = d.root / "tree.tar", iter(range(1000))
        subprocess.run(["tar", "-C", tree, "--exclude=__pycache__", "--exclude=*-packages", "-cf",
                        str(tar), "."], check=True)

        def into(folder):
            os.mkdir(folder)
            return timed("tar", "-C", folder, "-xf", tar)

        def unpack():
            got = d.client("tcp", "put", f"/v1/archive?path={d.work}/in{next(count)}", tar)
            assert got["status"] == "200", got
            return got["seconds"]
        ours, gnu = rounds_of(opts, unpack, lambda: into(f"{own}/{next(count)}"))
        mb = tar.stat().st_size / 1e6
        ratio = ratio_of(gnu, ours)
        yield row("tar in", f"{mb / min(ours):.0f} MB/s", f"{mb / min(gnu):.0f} MB/s", ratio,
                  ">= 0.9", ratio >= 0.9)
        ours, gnu = rounds_of(
            opts,
            lambda: d.client("tcp", "drain", "GET", f"/v1/archive?path={d.work}/in0")["seconds"],
            lambda: timed("sh", "-c", 'tar -C "$0" -cf - . | cat >/dev/null', f"{own}/1"))
        ratio = ratio_of(gnu, ours)
        yield row("tar out", f"{mb / min(ours):.0f} MB/s", f"{mb / min(gnu):.0f} MB/s", ratio,
                  ">= 0.9", ratio >= 0.9)


def latencies(d, prefix):
    """Microseconds of each call at its median, with what runs already."""
    def seq(lines):
        got = d.client("unix", "seq", input="".join(f"{line}\n" for line in lines).encode())
        assert got["bad"] == 0, got
        return got["times"]["p50_us"]
    names = [f"{prefix}{i}" for i in range(30)]
    start = '{"command":["sleep","1000"],"name":"%s"}'
    return {"start": seq(f"POST /v1/processes {start % n}" for n in names),
            "list": seq(["GET /v1/processes?limit=10"] * 100),
            "show": seq(f"GET /v1/processes/{n}" for n in names),
            "kill": seq('POST /v1/processes/%s/kill {"signal":"KILL","tree":false}' % n
                        for n in names)}


def alive(opts):
    with Daemon(opts.binary, "--max-commands", "4096", "--max-processes", "8192") as d:
        few = latencies(d, "a")
        line = 'POST /v1/processes {"command":["sleep","1000"]}\n'
        before = d.status("RssAnon")
        d.client("unix", "seq", input=(line * opts.alive).encode())
        each = (d.status("RssAnon") - before) / opts.alive
        many = latencies(d, "b")
        for call, us in many.items():
            yield row(f"{call}, {opts.alive} alive", f"{us:.0f} us", f"{few[call]:.0f} us (none)",
                      us / few[call], "as fast")
        yield row("an idle background process", f"{each:.1f} KiB", aim="<= 4 KiB + ring",
                  met=each <= 4)


def holding(opts):
    with Daemon(opts.binary) as d:
        d.hold("unix", 8, True, "GET", "/healthz").communicate()
        before = d.status("RssAnon")
        holder = d.hold("unix", 500, True, "GET", "/healthz")
        each = (d.status("RssAnon") - before) / 500
        holder.communicate()
        yield row("an idle connection", f"{each:.2f} KiB", aim="<= 1 KiB", met=each <= 1)
        before = d.status("RssAnon")
        holder = d.hold("unix", 32, False, "POST", "/v1/exec/stream", '{"command":["yes"]}')
        time.sleep(2)
        each = (d.status("RssAnon") - before) / 32
        holder.communicate()
        yield row("a client that never reads", f"{each:.0f} KiB", aim="<= 256 KiB",
                  met=each <= 256)
        time.sleep(1)
        yield row("left of them a second later", f"{d.status('RssAnon') - before} KiB")


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def interrupt(opts):
    """From the byte 3 typed at `yes`, whose reader takes 100 KB a second, to its end."""
    def once():
        conn = wire.connect_tcp(int(d.tcp[4:]))
        with ws_client.Session(conn, start={"command": ["yes"], "tty": True,
                                            "binary": True}) as s:
            pid = s.open()["pid"]
            for _ in range(10):
                conn.recv(5000)
                time.sleep(0.05)
            s.send(b"\x03")
            began = time.monotonic()
            while runs(pid):
                conn.recv(500)
                time.sleep(0.005)
            return (time.monotonic() - began) * 1000
    with Daemon(opts.binary) as d:
        times, = rounds_of(opts, once)
    yield row("Ctrl-C under a slow reader", f"{statistics.median(times):.0f} ms",
              f"{max(times):.0f} ms (worst)", aim="<= 300 ms", met=max(times) <= 300)


FIGURES = {"exec": exec_one, "exec32": exec_many, "first": first_answer, "idle": idle,
           "output": output, "transfer": transfer, "proxy": proxying, "archive": archive,
           "alive": alive, "hold": holding, "interrupt": interrupt}
