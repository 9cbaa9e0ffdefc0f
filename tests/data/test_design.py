"""X and y are read once, and nothing of them gets lost."""

import numpy as np
import pandas as pd
import pytest

from pmordinal.data import design as design_of
from pmordinal.data import features, labels
from pmordinal.model.factories import gp_model, linear_model
from pmordinal.model.latent.factory import latent_model


def test_rows_without_a_label_are_kept_apart_with_those_of_the_other_table():
    table = pd.DataFrame({"dose": [1.0, 2.0, 4.0]}, index=["a", "b", "c"])
    design = design_of.read(table, ["low", None, "high"], ["low", "high"], unlabeled=[[9.0]])
    assert design.X.tolist() == [[1.0], [4.0]]
    assert design.y.tolist() == [0, 1]
    assert design.unlabeled.tolist() == [[2.0], [9.0]]
    assert design.coords["obs"].tolist() == ["a", "c"]
    assert design.coords["class"] == ["low", "high"]


def test_names_that_two_rows_share_become_numbers():
    table = pd.DataFrame({"dose": [1.0, 2.0, 4.0]}, index=["a", "a", "c"])
    assert design_of.read(table, [0, 1, 1]).index.tolist() == [0, 1, 2]


def test_the_further_rows_are_in_the_units_of_the_first():
    design = design_of.read([[0.0], [2.0]], [0, 1], standardize=True, unlabeled=[[3.0]])
    np.testing.assert_allclose(design.further, [[2.0]])


def test_as_many_labels_as_rows():
    with pytest.raises(ValueError, match="X has 2 rows and y has 3 labels"):
        design_of.read([[0.0], [2.0]], [0, 1, 1])


@pytest.mark.parametrize("factory", [gp_model, latent_model, linear_model])
def test_a_factory_reads_a_table_and_its_labels_once(factory, monkeypatch):
    counts = {"learn": 0, "transform": 0, "encode": 0}

    def counted(name, function):
        def call(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(features, "learn", counted("learn", features.learn))
    monkeypatch.setattr(
        features.Features, "transform", counted("transform", features.Features.transform)
    )
    monkeypatch.setattr(design_of, "encode", counted("encode", labels.encode))
    factory([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3])
    assert counts == {"learn": 1, "transform": 0, "encode": 1}
