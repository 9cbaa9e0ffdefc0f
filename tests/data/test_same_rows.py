"""Whether two results are of the same labelled rows."""

import pytest

from pmordinal.data.labels import encode
from pmordinal.data.same_rows import how_they_differ

ROWS = ["a", "b", "c"]
OURS = encode(["low", "high", "high"], ["low", "high"])


@pytest.mark.parametrize(
    ("theirs", "rows"),
    [
        (OURS, ROWS),
        (OURS, [0, 1, 2]),
        (encode([0, 1, 1]), ROWS),  # classes without a name are called by their position
        (encode(["low", None, "high", "high"], ["low", "high"]), ROWS),
    ],
)
def test_the_same_rows(theirs, rows):
    assert how_they_differ(OURS, theirs, ROWS, rows) is None
    assert how_they_differ(theirs, OURS, rows, ROWS) is None


@pytest.mark.parametrize(
    ("theirs", "rows", "reason"),
    [
        (encode([1, 2, 2]), ROWS, "classes 'low', 'high' instead of '1', '2'"),
        (encode([0, 1, 2]), ROWS, "classes 'low', 'high' instead of '0', '1', '2'"),
        (OURS.with_codes([1, 1, 0]), ROWS, "other labels"),
        (OURS.with_codes([1, 1, 0]), ROWS[::-1], "the same rows in another order"),
        (encode(["low", "high"], ["low", "high"]), ["a", "b"], "3 labelled rows instead of 2"),
    ],
)
def test_other_rows(theirs, rows, reason):
    assert how_they_differ(OURS, theirs, ROWS, rows) == reason
