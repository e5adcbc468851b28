"""Calls of /v1/contexts, for the tests of them."""

import shutil

import pytest

from test_code import PATH

TOOLS = {"python": "python3", "javascript": "node", "bash": "bash", "ruby": "ruby", "php": "php"}
LANGUAGES = [pytest.param(language, marks=pytest.mark.skipif(
    shutil.which(tool, path=PATH) is None, reason=f"{tool} is not installed"))
    for language, tool in TOOLS.items()]


def needs(tool):
    return pytest.mark.skipif(shutil.which(tool, path=PATH) is None,
                              reason=f"{tool} is not installed")


class Context:
    """One context, and shorter calls of it."""

    def __init__(self, nook, language="python", headers=(), **fields):
        self.nook = nook
        self.headers = list(headers)
        env = {"HOME": str(nook.home), **fields.pop("env", {})}
        response = nook.post("/v1/contexts", {"language": language, "env": env, **fields},
                             headers=self.headers, wait=120)
        assert response.status == 201, response
        self.made = response.json()
        self.path = f"/v1/contexts/{self.made['id']}"

    def post(self, code, headers=(), wait=120, **fields):
        return self.nook.post(self.path + "/code", {"code": code, **fields},
                              headers=[*self.headers, *headers], wait=wait)

    def run(self, code, **fields):
        response = self.post(code, **fields)
        assert response.status == 200, response
        return response.json()

    def value(self, code, **fields):
        """The last expression, as text; the run must be without error."""
        result = self.run(code, **fields)
        assert result["error"] is None and result["exit_code"] == 0, result
        return result["result"] and result["result"]["text/plain"]

    def stream(self, code, **fields):
        stream = self.nook.stream("POST", self.path + "/code/stream", wait=120,
                                  json={"code": code, **fields})
        assert stream.status == 200, stream.read()
        return stream

    def show(self):
        return self.nook.get(self.path).json()

    def ask(self, verb, expected=200):
        response = self.nook.post(f"{self.path}/{verb}", wait=120)
        assert response.status == expected, response
        return response.json()

    def delete(self):
        assert self.nook.request("DELETE", self.path).status == 204
