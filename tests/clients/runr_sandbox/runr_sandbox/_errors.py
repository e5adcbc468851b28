"""What can go wrong, and how an answer or a broken connection becomes an exception."""

from __future__ import annotations

import contextlib
import json

import httpx


class RunrSandboxError(Exception):
    """Base of all. `status`: of the answer, None without one; `reason`: a stable code; `body`:
    the answer's JSON (its text where it is none)."""

    def __init__(self, message, *, status=None, reason=None, body=None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.body = body

    def __str__(self):
        known = [str(part) for part in (self.status, self.reason) if part is not None]
        return f"{self.message} ({' '.join(known)})" if known else self.message


class BadRequestError(RunrSandboxError):
    """400: an argument or a path is wrong, or a program could not be started."""


class AuthenticationError(RunrSandboxError):
    """401: the API key is missing or wrong."""


class PermissionDeniedError(RunrSandboxError):
    """403: the path, user or host is not allowed."""


class NotFoundError(RunrSandboxError):
    """404 or 410: no such sandbox, path or process, or no longer."""


class ConflictError(RunrSandboxError):
    """409: busy, paused, over quota, or what exists is in the way."""


class TooLargeError(RunrSandboxError):
    """413: the request is larger than the sandbox takes."""


class NotSupportedError(RunrSandboxError):
    """501: the sandbox cannot do this; the message says what is missing."""


class UnavailableError(RunrSandboxError):
    """429 or 503: starting, ending or overloaded; worth another try."""


class ServerError(RunrSandboxError):
    """Any other 5xx."""


class ApiConnectionError(RunrSandboxError):
    """No answer: `reason` is `timeout`, or `connection` where there is none or it broke."""


def closed():
    return RunrSandboxError("this sandbox object was closed", reason="closed")


_CLASSES = {
    400: BadRequestError, 401: AuthenticationError, 403: PermissionDeniedError,
    404: NotFoundError, 409: ConflictError, 410: NotFoundError, 413: TooLargeError,
    429: UnavailableError, 501: NotSupportedError, 503: UnavailableError,
}


def error_of(status, data):
    """The exception for an answer that is no success."""
    text = data.decode("utf-8", "replace")
    try:
        body = json.loads(text)
        said = body["error"]
        message, reason = said["message"], said["code"]
    except (ValueError, KeyError, TypeError):
        body, reason = text, None
        message = f"the API answered {status}"
    cls = _CLASSES.get(status, ServerError if status >= 500 else RunrSandboxError)
    return cls(message, status=status, reason=reason, body=body)


@contextlib.contextmanager
def connection_errors():
    """Failures of the transport as ours."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise ApiConnectionError(f"no answer in time: {error}", reason="timeout") from error
    except httpx.TransportError as error:
        raise ApiConnectionError(f"no connection: {error}", reason="connection") from error
