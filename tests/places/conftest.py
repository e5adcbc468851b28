"""`place`: each test runs in every place that NOOK_PLACES names (all), or is skipped with the reason."""

import os

import pytest

import engine
import place as places

WANTED = os.environ.get("NOOK_PLACES", " ".join(places.PLACES)).split()
ONLY_NAMED = {"image": engine.Image}
_made = {}  # each is made once in a session, and serves all tests


def _get(name):
    if name not in _made:
        try:
            _made[name] = ONLY_NAMED.get(name, places.PLACES.get(name))(name)
            print(f"\n{name}: start to first answer {_made[name].took * 1000:.0f} ms, "
                  f"the runtime's own work and a client's start included")
        except places.Absent as why:
            _made[name] = why
    return _made[name]


@pytest.fixture(scope="session", params=WANTED)
def place(request):
    one = _get(request.param)
    if isinstance(one, places.Absent):
        pytest.skip(f"{request.param}: {one}")
    yield one
    one.remove()
    del _made[request.param]
