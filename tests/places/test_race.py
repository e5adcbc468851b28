"""A command that swaps a folder and a link to outside, while files are asked for: in every place.

At full count 40,000 operations: NOOK_SCALE=20, with -rP."""

import pytest

from nook import scaled
from wire import wait_until

pytestmark = pytest.mark.place

SWAPPER = "while :; do mv d kept; mv evil d; mv d evil; mv kept d; done"
# None that makes folders: between two renames it would make one in the swapper's way.
REQUESTS = [("GET", "/v1/files?path=race/d/passwd"), ("GET", "/v1/files/list?path=race/d"),
            ("GET", "/v1/files/stat?path=race/d/passwd"), ("DELETE", "/v1/files?path=race/d/n")]


def test_no_swap_leads_a_request_outside(place):
    if not place.shell:
        pytest.skip(f"{place.name} has no shell")
    place.exec("rm -rf race; mkdir -p race/d; echo inside > race/d/passwd; ln -s /etc race/evil")
    swapper = place.post("/v1/processes", {"command": SWAPPER, "cwd": "race"}).json()
    seen, count = set(), 0

    def once():
        nonlocal count
        conn.send_many(REQUESTS)
        for method, _ in REQUESTS:
            response = conn.read_response(method)
            assert response.status != 401, response
            assert b"root:" not in response.body and b"hosts" not in response.body
            seen.add((method, response.status))
            count += 1
        return {("GET", 200), ("GET", 403)} <= seen

    with place.connect() as conn:
        for _ in range(scaled(500, 50)):
            once()
        wait_until(once, 60, "both states were met")
    place.post(f"/v1/processes/{swapper['id']}/kill", {"signal": "KILL"})
    print(f"{place.name}: {count} operations, 0 escapes")
