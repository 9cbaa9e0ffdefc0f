"""Nested sets of classes: contiguous, never empty, with a cut that covers exactly as often as theory says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmordinal.data.ranked_probability_score import ranked_probability_score
from pmordinal.results.nested_sets import SCORES, between, cut, fewest, rps_scores, window_scores

PROBS = np.random.default_rng(1).dirichlet(np.full(6, 0.4), size=500)
PROBS[:3] = [[1, 0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, 0.5], [0.2, 0, 0.3, 0, 0.3, 0.2]]


@pytest.mark.parametrize("name", SCORES)
def test_the_classes_up_to_any_cut_are_neighbours(name):
    scores = SCORES[name](PROBS)
    for q in [0.0, *np.quantile(scores, [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])]:
        included = scores <= q
        assert included.any(1).all()  # never empty
        np.testing.assert_array_equal(included, between(included))
    np.testing.assert_allclose(SCORES[name](PROBS[:, ::-1])[3:], scores[3:, ::-1], atol=1e-12)


def test_windows_grow_by_the_likelier_neighbour():
    scores = window_scores(PROBS)
    np.testing.assert_array_equal(scores[np.arange(500), PROBS.argmax(1)], 0.0)
    for q in (0.2, 0.5, 0.9):
        included = scores <= q
        mass = (PROBS * included).sum(1)
        assert np.all((mass > q - 1e-12) | included.all(1))
        last = np.where(included, scores, -1.0).max(1)  # the mass without the class that came last
        assert np.all(last <= q)


def test_rps_scores_are_the_score_of_each_class():
    expected = np.stack(
        [ranked_probability_score(PROBS, np.full(500, k), normalize=False) for k in range(6)], 1
    )
    expected -= expected.min(1, keepdims=True)
    np.testing.assert_allclose(rps_scores(PROBS), expected, atol=1e-12)
    median = (PROBS.cumsum(1) < 0.5).sum(1)
    np.testing.assert_allclose(rps_scores(PROBS)[np.arange(500), median], 0.0, atol=1e-12)


@given(st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_the_cut_is_the_rank_of_theory(n, coverage):
    """A new score of the same law is at most the cut with probability ⌈(n + 1) c⌉ / (n + 1)."""
    found = cut(np.arange(1.0, n + 1), coverage)
    rank = np.ceil(np.round((n + 1) * coverage, 6))
    assert found == (rank if rank <= n else np.inf)
    assert np.isfinite(found) == (n >= fewest(coverage))


def test_coverage_of_wrong_probabilities(rng):
    """The probabilities have nothing to do with the labels, and the sets cover all the same."""
    n, repeats = 19, 4000
    for name, score in SCORES.items():
        probs = rng.dirichlet(np.full(5, 0.7), size=(repeats, n + 1))
        y = rng.choice(5, p=[0.4, 0.1, 0.1, 0.1, 0.3], size=(repeats, n + 1))
        scores = score(probs.reshape(-1, 5)).reshape(repeats, n + 1, 5)
        true = np.take_along_axis(scores, y[..., None], 2)[..., 0]
        covered = np.mean([row[-1] <= cut(row[:-1], 0.8) for row in true])
        error = np.sqrt(0.8 * 0.2 / repeats)
        assert covered > 0.8 - 3 * error, name  # ties make sets larger
        if name == "rps":  # which has none
            assert covered < 0.8 + 3 * error + 0.02
