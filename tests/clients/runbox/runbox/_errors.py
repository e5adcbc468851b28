"""The one exception, and how an answer becomes it."""

from __future__ import annotations

import json


class RunboxError(Exception):
    """`status` and `code` of the answer, and its `message`; `body`: its JSON, or None.

    A command over its time has the code `timeout` and its result as the body.
    """

    def __init__(self, status, code, message, body=None):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.body = body

    def __str__(self):
        return f"{self.message} ({self.status} {self.code})"


def error_of(status, data):
    """The exception for an answer that is no success."""
    try:
        body = json.loads(data)
        said = body["error"]
        return RunboxError(status, said["code"], said["message"], body)
    except (ValueError, KeyError, TypeError):
        return RunboxError(status, "unknown", f"the runner answered {status}")


def timeout_of(result):
    """The exception for a command that its timeout ended."""
    message = f"the command was still running after {result['duration_ms'] / 1000:.1f} s"
    return RunboxError(408, "timeout", message, result)
