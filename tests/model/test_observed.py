"""Labels that PyMC's model transforms put into a model, and PyMC's own functions on a model that integrates."""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal.data.labels import encode
from pmordinal.model.observed import observed_labels
from tests.repeated import first_fast

X = np.linspace(0, 3, 24)
Y = np.repeat([0, 1, 2], 8)
FLIPPED = 2 - Y
ENDS = [[0.0], [3.0]]


def draws_of(point, count=20):
    values = {name: np.broadcast_to(v, (1, count, *np.shape(v))) for name, v in point.items()}
    return az.from_dict({"posterior": values})


@pytest.mark.parametrize(
    "engine",
    first_fast(["ep", "laplace", "plsor", "sparse"]),
)
def test_a_fit_has_the_labels_that_were_observed(engine):
    """pm.observe replaces the labels: hyperparameters, posterior and predictions are those of a new model."""
    replaced = pmo.fit(
        pm.observe(pmo.gp_model(X, Y, "expquad", engine=engine), {"y": FLIPPED}), progressbar=False
    )
    anew = pmo.fit(pmo.gp_model(X, FLIPPED, "expquad", engine=engine), progressbar=False)
    np.testing.assert_array_equal(replaced.posterior.y, FLIPPED)
    assert replaced.objective_value == pytest.approx(anew.objective_value, abs=1e-6)
    np.testing.assert_allclose(replaced.predict(ENDS), anew.predict(ENDS), atol=1e-5)
    np.testing.assert_array_equal(replaced.predict(ENDS, kind="class"), [2, 0])


def test_rows_without_a_label_stay_without():
    y = [1, 1, None, 2, 2, None, 3, 3]
    model = pm.observe(pmo.gp_model(np.arange(8.0), y, "expquad"), {"y": [2, 2, 1, 1, 0, 0]})
    fit = pmo.fit(model, progressbar=False)
    np.testing.assert_array_equal(fit.labels.codes, [2, 2, -1, 1, 1, -1, 0, 0])
    assert len(fit.unlabeled) == 2


@pytest.mark.parametrize("wrong", [3, -1])
def test_codes_of_no_class_are_refused(wrong):
    model = pm.observe(pmo.gp_model(X, Y, "expquad"), {"y": [0, 1, wrong] * 8})
    with pytest.raises(ValueError, match=f"class codes are 0 to 2 for .* got {wrong}"):
        pmo.fit(model, progressbar=False)


def test_labels_that_other_variables_determine_are_refused():
    with pytest.raises(ValueError, match="must be data"):
        observed_labels(encode(Y), pt.lvector("codes"))


@pytest.mark.parametrize("factory", [pmo.gp_model, pmo.latent_model])
def test_draws_have_the_labels_that_were_observed(factory):
    """The latent function follows the new labels, and the tree's observed data are these."""
    fixed = {"lengthscale": 1.0, "noise": 0.1, "thresholds": [-0.5, 0.5]}
    if factory is pmo.latent_model:
        model = pm.observe(factory(X, Y, **fixed), {"y": FLIPPED})
        tree = pm.sample_prior_predictive(30, model=model, random_seed=1)["prior"].to_dataset()
        tree = xr.DataTree.from_dict({"posterior": tree})
    else:
        model, tree = pm.observe(factory(X, Y, **fixed), {"y": FLIPPED}), draws_of({"none": 0.0})
    result = pmo.sample_posterior(model, tree, seed=1, progressbar=False)
    np.testing.assert_array_equal(result["observed_data"]["y"], FLIPPED)
    if factory is pmo.gp_model:
        f = result["posterior"]["f"].mean(("chain", "draw"))
        assert np.corrcoef(f, FLIPPED)[0, 1] > 0.9


def test_exact_sampling_has_the_labels_that_were_observed():
    model = pm.observe(pmo.gp_model(X, Y, thresholds=[-0.5, 0.5], noise=0.3), {"y": FLIPPED})
    tree = pmo.sample_exact(model, draws=60, tune=60, chains=2, seed=1, progressbar=False)
    f = tree["posterior"]["f"].mean(("chain", "draw"))
    assert np.corrcoef(f, FLIPPED)[0, 1] > 0.9


@pytest.fixture(scope="module")
def model():
    return pmo.gp_model(X, Y, "expquad")


@pytest.fixture(scope="module")
def tree():
    return draws_of({"lengthscale": 1.0, "noise": 0.3, "thresholds": np.array([-0.5, 0.5])})


def test_predictive_draws_that_ignore_the_data_are_refused(model, tree):
    with pytest.raises(ValueError, match=r"pmo\.sample_posterior\(model, tree\)"):
        pm.sample_posterior_predictive(tree, model=model, progressbar=False)


def test_they_are_refused_whatever_is_fixed():
    """Also where no hyperparameter comes from the tree."""
    fixed = pmo.gp_model(X, Y, lengthscale=1.0, noise=0.3, thresholds=[-0.5, 0.5])
    with pytest.raises(ValueError, match=r"pmo\.sample_posterior\(model, tree\)"):
        pm.sample_posterior_predictive(draws_of({"a": 0.0}), model=fixed, progressbar=False)


def test_one_log_likelihood_for_all_rows_is_refused(model, tree):
    with pytest.raises(ValueError, match=r"pmo\.sample_posterior\(model, tree\)"):
        pm.compute_log_likelihood(tree, model=model, progressbar=False)
    assert "log_likelihood" not in tree.children


def test_it_is_refused_before_sampling_begins(model):
    options = {"draws": 10**9, "chains": 1, "progressbar": False}
    with pytest.raises(ValueError, match=r"pmo\.sample_posterior\(model, tree\)"):
        pm.sample(model=model, idata_kwargs={"log_likelihood": True}, **options)


def test_other_variables_of_the_model_are_free(tree):
    """Prior draws, and predictive draws and densities of another observed variable, are PyMC's."""
    model = pmo.gp_model(X, Y, "expquad")
    with model:
        pm.Normal("z", model["noise"], 1.0, observed=[0.1, 0.2])
    assert pm.sample_prior_predictive(3, model=model)["prior_predictive"]["y"].shape == (1, 3, 24)
    options = {"model": model, "var_names": ["z"], "progressbar": False}
    drawn = pm.sample_posterior_predictive(tree, **options)
    assert drawn["posterior_predictive"]["z"].shape == (1, 20, 2)
    found = pm.compute_log_likelihood(tree, extend_inferencedata=False, **options)
    assert found["z"].shape == (1, 20, 2)


def test_discrete_hyperparameters_are_held_with_a_warning():
    """They stay where they start, in every start, and what needs them to move refuses."""
    with pm.Model() as model:
        k = pm.Poisson("k", 3.0)
        b = pmo.thresholds("thresholds", n_classes=3)
        gp = pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(1, ls=0.3 * (k + 1)))
        gp.marginal_likelihood("y", X, Y, thresholds=b, noise=pm.HalfNormal("noise", 1.0))
    with pytest.warns(UserWarning, match="discrete variables and holds 'k' at 1"):
        fit = pmo.fit(model, start={"k": 1}, starts=3, seed=1, progressbar=False)
    assert fit.point["k"] == 1 and fit.status.converged
    np.testing.assert_allclose(fit.status.objectives, fit.objective_value, atol=1e-3)
    with pytest.raises(ValueError, match="'k' is discrete"):
        fit.to_datatree(hyper="gaussian")
    with pytest.raises(ValueError, match="'k' is discrete"):
        pmo.sample_exact(model, draws=10, progressbar=False)
    with pytest.raises(ValueError, match="'k' is discrete and cannot be"):
        pmo.fit(model, start={"k": 1.5}, progressbar=False)


@pytest.mark.parametrize("values", [[0.0], [-1.0, 0.0, 1.0]])
@pytest.mark.parametrize("factory", [pmo.gp_model, pmo.latent_model, pmo.linear_model])
def test_thresholds_from_data_have_the_right_number(factory, values):
    with pm.Model(), pytest.raises(ValueError, match="thresholds must be a vector of 2"):
        factory(X[:, None], Y, thresholds=pm.Data("b", values))


def test_thresholds_may_not_change_their_number_later():
    with pm.Model() as model:
        pmo.gp_model(X, Y, "expquad", thresholds=pm.Data("b", [-0.5, 0.5]))
    pm.set_data({"b": [-0.5, 0.0, 0.5]}, model=model)
    with pytest.raises(ValueError, match="3 thresholds for 3 classes"):
        pmo.fit(model, progressbar=False)
