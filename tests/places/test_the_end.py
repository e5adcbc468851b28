"""The last file of this folder, by its name: a place is over with it."""

import pytest

pytestmark = pytest.mark.place


def test_a_lone_term_ends_it_and_all_that_runs(place):
    if place.shell:
        place.post("/v1/processes", {"command": "trap '' TERM; sleep 4567"})
    place.end()
