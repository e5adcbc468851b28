"""On whose behalf a request is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """Either a `token`, or a `namespace` with a `principal`; the runner refuses anything else."""

    token: str | None = None
    namespace: str | None = None
    principal: str | None = None

    def headers(self):
        named = {"X-Runbox-Identity": self.token, "X-Runbox-Namespace": self.namespace,
                 "X-Runbox-Principal": self.principal}
        return {name: value for name, value in named.items() if value is not None}
