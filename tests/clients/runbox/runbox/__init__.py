"""Client of a sandbox: commands and files, for one identity or many. Standard library only."""

from ._client import Client
from ._errors import RunboxError
from ._identity import Identity
from ._upload import FileUpload

__all__ = ["Client", "FileUpload", "Identity", "RunboxError"]
