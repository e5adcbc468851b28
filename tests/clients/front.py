"""TLS in front of an agent, as a deployer would put it there."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading

HAS_OPENSSL = shutil.which("openssl") is not None


def make_certificate(folder):
    """(certificate, key) for localhost."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate, key


def _copy(source, target):
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _serve(plain, context, port):
    with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as client, \
            socket.create_connection(("127.0.0.1", port)) as agent:
        back = threading.Thread(target=_copy, args=(agent, client))
        back.start()
        _copy(client, agent)
        back.join()


def _accept(listener, context, port, serving):
    with contextlib.suppress(OSError):
        while True:
            plain, _ = listener.accept()
            serving.append(threading.Thread(target=_serve, args=(plain, context, port)))
            serving[-1].start()


@contextlib.contextmanager
def tls(port, certificate, key):
    """The port on which an agent's port is served with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = []
    accepting = threading.Thread(target=_accept, args=(listener, context, port, serving))
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [accepting, *serving]:
            thread.join()
