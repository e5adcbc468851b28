"""One request on a connection of its own; the answer owns the socket."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import urllib.parse

from ._errors import error_of

ERROR_BYTES = 1 << 20
CONNECT_SECONDS = 10


def _abandon(connection):
    """By a reset, by which the runner knows at once that nobody waits for a command any more."""
    if connection.sock:
        with contextlib.suppress(OSError):
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Transport:
    """Where the runner is. Holds no connection, so threads may share it."""

    def __init__(self, base_url, headers, ssl_context):
        url = urllib.parse.urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{base_url} is no http or https address")
        self._secure = url.scheme == "https"
        self._host, self._port = url.hostname, url.port
        self._prefix = url.path.rstrip("/")
        self._headers = headers
        self._ssl = ssl_context

    def _connection(self):
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT_SECONDS,
                                               context=self._ssl)
        return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_SECONDS)

    def open(self, method, target, headers, body=None, timeout=None):
        """A successful answer, to be read and closed by the caller; RunboxError for any other."""
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(timeout)
            response = self._exchange(connection, method, target, headers, body)
            if connection.sock:
                connection.sock.close()  # the answer keeps what it needs of it
        except BaseException:
            _abandon(connection)
            raise
        if 200 <= response.status < 300:
            return response
        with response:
            raise error_of(response.status, response.read(ERROR_BYTES))

    def _exchange(self, connection, method, target, headers, body):
        headers = {**self._headers, **headers, "Connection": "close"}
        chunked = headers.get("Transfer-Encoding") == "chunked"
        try:
            connection.request(method, self._prefix + target, body, headers,
                               encode_chunked=chunked)
        except (BrokenPipeError, ConnectionResetError):
            # A body that is refused before its end: the answer says why.
            try:
                return connection.getresponse()
            except (OSError, http.client.HTTPException):
                pass
            raise
        return connection.getresponse()
