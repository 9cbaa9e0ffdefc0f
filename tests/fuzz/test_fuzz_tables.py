"""Tables and labels at the borders that need no model: MODL, scores, predictions for new rows."""

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

import pmordinal as pmo
from pmordinal.data import labels as label_table

from . import strategies as s
from .calls import fit
from .outcome import assert_finite, assert_probabilities, examples, outcome

ROWS = st.sampled_from([0, 1, 2, 3, 8, 12])


@st.composite
def tables_and_labels(draw):
    n = draw(ROWS)
    return draw(s.tables(n)), draw(s.labels(n))[0]


@examples(80, 1500, tables_and_labels())
def test_grids_of_any_table(data):
    X, y = data
    names = ["X", "x", "y"]
    if isinstance(X, pd.DataFrame | pl.DataFrame):
        names += [str(c) for c in X.columns]
    elif isinstance(X, dict):
        names += list(X)
    table = outcome(
        lambda: pmo.modl.rank_predictors(X, y, starts=1, n_jobs=1, progressbar=False), *names
    )
    if table is not None:
        assert_finite(table[["level", "cost"]])
        assert np.all(table["level"] <= 1.0)


@examples(30, 1500, st.data())
def test_scores_of_anything(data):
    n = data.draw(ROWS)
    y, categories = data.draw(s.labels(n))
    r = data.draw(st.integers(1, 4))
    rows = data.draw(st.sampled_from([n, n, n, n + 1]))
    good = np.full((rows, r), 1.0 / r)
    probs = data.draw(
        st.sampled_from(
            [good, good, good, good.tolist(), good * 2, -good, good[:, 0], None, "p", 3.0]
        )
    )
    if isinstance(probs, np.ndarray) and probs.size and data.draw(st.integers(0, 5)) == 0:
        probs = probs.copy()
        probs.flat[0] = data.draw(st.sampled_from([np.nan, np.inf, -1.0]))
    result = outcome(
        lambda: pmo.scores(y, probs, categories=categories), "y_true", "probs", "categories"
    )
    if result is not None:
        assert_finite(result)


@examples(30, 1500, st.data())
def test_predictions_for_any_rows(data):
    n = data.draw(ROWS)
    rows = data.draw(s.tables(n))
    kind = data.draw(st.sampled_from(["probs", "latent"]))
    result = outcome(lambda: fit().predict(rows, kind), "Xnew")
    if result is not None and kind == "probs":
        assert_probabilities(result)
    elif result is not None:
        assert_finite(result["mean"], result["sd"])


@examples(30, 1500, st.data())
def test_labels_come_back(data):
    n = data.draw(ROWS)
    y, categories = data.draw(s.labels(n))
    labels = outcome(lambda: label_table.encode(y, categories), "y", "categories")
    if labels is not None:
        seen = labels.codes[labels.observed]
        assert labels.n_classes >= 2
        again = label_table.encode(labels.decode(seen), labels.categories)
        np.testing.assert_array_equal(again.codes, seen)
