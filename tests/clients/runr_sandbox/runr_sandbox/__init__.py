"""Client of a sandbox: run commands and code in it, move files in and out, end it.

`Sandbox` blocks; `AsyncSandbox` has the same methods as coroutines and async iterators.
"""

from ._async import AsyncSandbox
from ._errors import (ApiConnectionError, AuthenticationError, BadRequestError, ConflictError,
                      NotFoundError, NotSupportedError, PermissionDeniedError, RunrSandboxError,
                      ServerError, TooLargeError, UnavailableError)
from ._models import (CodeResult, Entry, Event, ExecResult, FileChange, Logs, Output, Process,
                      SandboxInfo, Unpacked)
from ._sync import Sandbox

__all__ = [
    "ApiConnectionError", "AsyncSandbox", "AuthenticationError", "BadRequestError", "CodeResult",
    "ConflictError", "Entry", "Event", "ExecResult", "FileChange", "Logs", "NotFoundError",
    "NotSupportedError", "Output", "PermissionDeniedError", "Process", "RunrSandboxError",
    "Sandbox", "SandboxInfo", "ServerError", "TooLargeError", "UnavailableError", "Unpacked",
]
