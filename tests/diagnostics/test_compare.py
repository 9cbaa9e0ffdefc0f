"""Engines side by side."""

import re
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pmordinal as pmo
from pmordinal.diagnostics.comparison import verdict

ENGINES = ("laplace", "ep", "plsor")


@pytest.fixture(scope="module")
def fits():
    data = pmo.datasets.wine()
    X, y = data[["temperature", "contact"]], data["rating"]
    fixed = {"lengthscale": 2.0, "noise": 0.4, "thresholds": [-1.3, -0.3, 0.5, 1.1]}
    some = {
        e: pmo.fit(pmo.gp_model(X, y, "expquad", engine=e, **fixed), progressbar=False)
        for e in ENGINES[:2]
    }
    return some | {"plsor": pmo.fit(pmo.gp_model(X, y, engine="plsor"), progressbar=False)}


def test_table(fits):
    table = pmo.compare(fits)
    assert table.index.tolist() == list(ENGINES)
    assert table["converged"].all()
    assert (table["seconds"] > 0).all()
    for name, fit in fits.items():
        assert table.loc[name, "elpd_loo"] == pytest.approx(pmo.loo(fit).elpd)
    correction = fits["ep"].posterior.log_evidence_correction
    assert table.loc["ep", "log_evidence_correction"] == pytest.approx(correction)
    assert np.isnan(table.loc["plsor", "log_evidence_correction"])
    assert "tv_max" not in table


def test_distances(fits):
    table = pmo.compare(fits, reference="ep")
    assert np.all(table.loc["ep", ["latent_mean", "latent_sd", "thresholds", "tv_max"]] == 0)
    p, q = fits["laplace"].posterior, fits["ep"].posterior
    by_hand = np.max(np.abs(p.mean - q.mean) / np.sqrt(q.variance))
    assert table.loc["laplace", "latent_mean"] == pytest.approx(by_hand)
    assert 0 < table.loc["laplace", "tv_max"] < 0.1
    assert table.loc["laplace", "tv_mean"] <= table.loc["laplace", "tv_max"]
    assert np.isnan(
        table.loc["plsor", ["latent_mean", "thresholds"]].astype(float)
    ).all()  # another scale


def test_it_is_shown_short(fits):
    """Blank where nothing compares, with a note; words that judge; everything on request."""
    table = pmo.compare(fits, reference="ep")
    short = table.short
    assert list(short.columns) == [
        *("engine", "seconds", "log evidence", "elpd, fixed", "off by", "verdict")
    ]
    assert short.loc["plsor", "log evidence"] == "" != short.loc["laplace", "log evidence"]
    assert short.loc["ep", "verdict"] == "reference" and short.loc["ep", "off by"] == ""
    assert short.loc["laplace", "off by"] == f"{100 * table.loc['laplace', 'tv_max']:.1f} %"
    assert short.loc["laplace", "verdict"].startswith(("same", "close"))
    assert "evidence of plsor is of labels as numbers" in repr(table)
    assert "k_hat" in table.full and type(table.full) is pd.DataFrame
    html = table._repr_html_()
    assert "<table" in html and "off by" in html and "tv_max" not in html


def test_poor_draws_and_chains_do_not_look_good():
    row = {"converged": True, "k_hat": 9.0, "tv_max": 0.01}
    assert verdict("sparse", row, "exact") == "same, poor draws (k-hat 9)"
    row |= {"k_hat": np.nan, "r_hat": 1.2, "converged": False, "divergences": 3, "tv_max": np.nan}
    assert verdict("nuts", row, None) == "chains disagree (R-hat 1.20), 3 divergences"


def test_the_reference_is_what_is_nearest_to_the_truth(fits):
    data = pmo.datasets.wine()
    X, y = data[["temperature", "contact"]], data["rating"]
    fixed = {"lengthscale": 2.0, "noise": 0.4, "thresholds": [-1.3, -0.3, 0.5, 1.1]}
    exact = pmo.fit(
        pmo.gp_model(X, y, "expquad", engine=pmo.Exact(resample=True), **fixed), progressbar=False
    )
    table = pmo.compare({"ep": fits["ep"], "truth": exact}, draws=50)
    assert table.tree.attrs["reference"] == "truth"
    assert "tv_max" not in pmo.compare({"ep": fits["ep"], "truth": exact}, reference=None, draws=50)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_trees_enter(fits):
    """Draws of a fit are as far from it as Monte Carlo makes them."""
    tree = fits["ep"].to_datatree(draws=4000, seed=2)
    table = pmo.compare({"ep": fits["ep"], "draws": tree}, reference="ep")
    assert table.loc["draws", "engine"] == "ep"
    assert table.loc["draws", "latent_mean"] < 0.1  # 4/√4000 standard deviations
    assert table.loc["draws", "latent_sd"] < 0.08
    assert table.loc["draws", "tv_max"] < 0.05
    assert table.loc["draws", "elpd_loo"] == pytest.approx(table.loc["ep", "elpd_loo"], abs=1.0)


def test_leave_one_out_says_what_it_holds_fixed(fits):
    fit = fits["plsor"]
    point, moving = fit.to_datatree(50, seed=1), fit.to_datatree(50, "gaussian", seed=1)
    moving.attrs.pop("hyper")  # a sampler's tree has none
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimated shape parameter")
        found = {"fit": pmo.loo(fit), "point": pmo.loo(point), "moving": pmo.loo(moving)}
        assert [f.hyper for f in found.values()] == ["fixed", "fixed", "integrated"]
        assert isinstance(found["moving"], az.ELPDDataLOO)
        assert found["moving"].elpd == az.loo(moving).elpd
        assert "fixed where all labels have put them" in str(found["fit"])
        assert repr(found["moving"]).endswith("integrated over, without the label left out.")
        assert az.compare(found).index.size == 3
        table = pmo.compare({"ep": fits["ep"], "point": point}, draws=50)
        assert table["loo_hyper"].tolist() == ["fixed", "fixed"]
        two = "elpd_loo is of two kinds: fit, point at fixed .*; moving with hyperparameters"
        with pytest.warns(UserWarning, match=two):
            pmo.compare({"fit": fit, "point": point, "moving": moving}, draws=50)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_the_recipe_for_arviz_warns_of_two_kinds(fits):
    """The code of the page, as a reader would copy it."""
    page = (Path(__file__).parents[2] / "docs" / "checking.md").read_text()
    (recipe,) = re.findall(
        r"^```python\n(.*?def az_compare.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    names = {}
    exec(recipe, names)
    draws = fits["plsor"].to_datatree(50, "gaussian", seed=1)
    assert names["az_compare"](fits).index.size == 3  # without a warning
    with pytest.warns(UserWarning, match="two kinds: {'ep': 'fixed', 'draws': 'integrated'}"):
        names["az_compare"]({"ep": fits["ep"], "draws": draws})


def test_tree(fits):
    table = pmo.compare(fits, reference="ep", draws=200)
    tree = table.tree
    assert tree.attrs["reference"] == "ep"
    assert set(table.results) == set(ENGINES)
    summary = tree["summary"].to_dataset()
    assert summary["tv_max"].sel(result="laplace").item() == table.loc["laplace", "tv_max"]
    probs = tree["predictive"]["probs"]
    assert probs.dims == ("result", "obs", "class") and list(probs["class"]) == list("12345")
    gap = 0.5 * np.abs(probs.sel(result="laplace") - probs.sel(result="ep")).sum("class")
    assert gap.max().item() == pytest.approx(table.loc["laplace", "tv_max"])
    elpd = tree["loo"]["elpd_i"].sum("obs")
    np.testing.assert_allclose(elpd, table["elpd_loo"])
    names = tree["hyperparameters"]["noise"].sel(result="ep").item()
    assert names == pytest.approx(fits["ep"].noise)
    assert isinstance(table[["seconds"]], pd.DataFrame) and not hasattr(table[["seconds"]], "tree")


def test_wasserstein_of_the_latent_function(fits):
    """Between Gaussians W₁ is at least the distance of the means; here there is little more."""
    table = pmo.compare(fits, reference="ep", draws=4000)
    p, q = fits["laplace"].posterior, fits["ep"].posterior
    least = np.mean(np.abs(p.mean - q.mean) / np.sqrt(q.variance))
    most = least + np.mean(np.abs(np.sqrt(p.variance / q.variance) - 1))
    assert least - 0.1 < table.loc["laplace", "latent_wasserstein"] < most + 0.1
    assert table.loc["ep", "latent_wasserstein"] == 0
    assert "kl" in table.tree["distance"]


def test_k_hat_finds_a_bad_approximation(fits):
    """Weights with P(w > t) = t^−½ have shape 2; those of EP are light; some results have none."""
    good = fits["ep"].to_datatree(draws=2000, seed=0)
    bad = fits["ep"].to_datatree(draws=2000, seed=0)
    stats = bad["sample_stats"].to_dataset()
    heavy = np.random.default_rng(0).exponential(size=stats["log_q"].shape)
    bad["sample_stats"] = stats.assign(log_q=stats["log_q"] - 2 * heavy)
    table = pmo.compare({"good": good, "bad": bad} | fits, draws=2000)
    assert table.loc["good", "k_hat"] < 1.0 < table.loc["bad", "k_hat"]
    assert table.loc["ep", "k_hat"] == pytest.approx(table.loc["good", "k_hat"])
    assert np.isnan(table.loc["plsor", "k_hat"])


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_scores_of_test_rows(fits):
    data = pmo.datasets.wine()
    X, y = data[["temperature", "contact"]].iloc[:20], data["rating"].iloc[:20]
    table = pmo.compare(fits, test=(X, y))
    expected = pmo.scores(y, fits["laplace"].predict(X))
    assert table.loc["laplace", "test_nlp"] == pytest.approx(expected["nlp"])
    assert table.loc["laplace", "test_kappa"] == pytest.approx(expected["kappa"])
    tree = fits["ep"].to_datatree(draws=50, seed=0)
    with pytest.raises(ValueError, match=r"'tree': the tree has no predictions .*sample_posterior"):
        pmo.compare({"tree": tree}, test=(X, y))


def test_chains_are_judged(fits):
    tree = fits["ep"].to_datatree(draws=400, seed=0)
    rng = np.random.default_rng(0)
    posterior = tree["posterior"].to_dataset()
    posterior = xr.concat([posterior] * 2, dim="chain").assign_coords(chain=[0, 1])
    noise = posterior["noise"] * np.exp(0.1 * rng.normal(size=posterior["noise"].shape))
    for shift, converged in ((0.0, True), (1.0, False)):
        moved = noise + shift * xr.DataArray([0.0, 1.0], dims="chain")
        chains = tree.copy()
        chains["posterior"] = xr.DataTree(posterior.assign(noise=moved))
        chains["log_likelihood"] = xr.DataTree(
            xr.concat([tree["log_likelihood"].to_dataset()] * 2, dim="chain")
        )
        for group in ("sample_stats", "posterior_predictive"):
            del chains[group]
        row = pmo.compare({"chains": chains}).loc["chains"]
        assert bool(row["converged"]) is converged
        assert row["ess"] > 100 if converged else row["r_hat"] > 1.5


@pytest.mark.slow
def test_engines_against_the_exact_posterior():
    data = pmo.datasets.wine()
    X, y = data[["temperature", "contact"]], data["rating"]
    own = pmo.compare_engines(X, y, ["laplace", "ep"], progressbar=False)
    assert own.index.to_list() == ["laplace", "ep", "exact"]
    exact, ep = own.results["exact"], own.results["ep"]
    assert (
        exact.point["noise"] == pytest.approx(ep.noise)
        and exact.noise != own.results["laplace"].noise
    )
    gap = exact.log_evidence - ep.log_evidence - ep.posterior.log_evidence_correction
    assert abs(gap) < 4 * own.loc["exact", "log_evidence_error"]
    shared = pmo.compare_engines(X, y, ["laplace", "ep"], hyper="shared", progressbar=False)
    assert shared.loc["laplace", "hyperparameters"] == pytest.approx(0.0, abs=1e-12)
    assert own.loc["laplace", "hyperparameters"] > 0
    assert shared.loc["laplace", "evaluations"] == 1
    mutual = pmo.compare_engines(X, y, ["laplace", "ep"], reference="laplace", progressbar=False)
    assert mutual.index.to_list() == ["laplace", "ep"] and mutual.loc["laplace", "tv_max"] == 0


def test_engines_in_other_units_cannot_lend_hyperparameters():
    X, y = np.arange(12.0), np.repeat([1, 2, 3], 4)
    with pytest.raises(ValueError, match="add 'ep' or 'laplace'"):
        pmo.compare_engines(X, y, ["plsor"], reference="ep", progressbar=False)
    with pytest.raises(ValueError, match="engines is empty"):
        pmo.compare_engines(X, y, [])
    with pytest.raises(ValueError, match=r"pmo\.latent_model"):
        pmo.compare_engines(X, y, "ep", "exact", link="logit", progressbar=False)


def test_one_engine_by_its_name_and_no_truth_where_none_is_feasible():
    X, y = np.arange(12.0), np.repeat([1, 2, 3], 4)
    table = pmo.compare_engines(X, y, "ep", link="logit", draws=50, progressbar=False)
    assert table.index.tolist() == ["ep"]
    assert "No reference" in repr(table)


def test_errors(fits):
    with pytest.raises(ValueError, match="reference"):
        pmo.compare(fits, reference="nuts")
    with pytest.raises(TypeError, match="mapping of names to fits or trees, got 3"):
        pmo.compare(3)
    with pytest.raises(ValueError, match="results is empty"):
        pmo.compare({})
    other = pmo.fit(pmo.gp_model(np.arange(6.0), [0, 0, 1, 1, 2, 2], "expquad"), progressbar=False)
    with pytest.raises(ValueError, match="compare results of the same rows"):
        pmo.compare({"ep": fits["ep"], "other": other}, reference="ep")
    bare = fits["ep"].to_datatree(draws=50, seed=0)
    bare["posterior"] = bare["posterior"].to_dataset().drop_vars("f")
    with pytest.raises(ValueError, match="'bare': the tree lacks posterior/f"):
        pmo.compare({"ep": fits["ep"], "bare": bare}, reference="ep")


@pytest.mark.slow
def test_permuted_rows_are_refused():
    """The same rows in another order cannot be compared row by row; other names of the rows can."""
    table = pd.DataFrame({"x": np.linspace(0, 3, 12)})
    y = np.repeat([1, 2, 3], 4)
    order = np.r_[1:4, 0, 4:12]  # the labels stay as they are
    mixed = np.r_[6:12, 0:6]

    def fitted(X, y):
        return pmo.fit(pmo.gp_model(X, y, "expquad"), progressbar=False)

    fit = fitted(table, y)
    permuted = {"a": fit, "b": fitted(table.iloc[order], y)}
    with pytest.raises(ValueError, match="'b' has the same rows in another order"):
        pmo.compare(permuted)
    with pytest.raises(ValueError, match="the same rows in another order"):
        pmo.stack(permuted)
    with pytest.raises(ValueError, match="'b' has other labels"):
        pmo.compare({"a": fit, "b": fitted(table["x"].to_numpy()[mixed] + 5.0, y[::-1])})
    tree = fitted(table.iloc[mixed], y[mixed]).to_datatree(draws=50, seed=1)
    with pytest.raises(ValueError, match="'b' has the same rows in another order"):
        pmo.compare({"a": fit, "b": tree})
    with pytest.raises(ValueError, match="classes '1', '2', '3', '4' instead of"):
        other = pmo.fit(
            pmo.gp_model(table, y, "expquad", categories=[1, 2, 3, 4]), progressbar=False
        )
        pmo.compare({"a": fit, "b": other})
    renamed = fitted(table.set_index(table.index + 100), y)
    assert pmo.compare({"a": fit, "b": renamed}, reference="a").loc["b", "tv_max"] < 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_leave_one_out_agrees_with_nuts():
    """At the same hyperparameters az.loo of NUTS draws and the cavities of EP score each row alike."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(25, 1))
    y = np.searchsorted([-0.5, 0.6], np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=25))
    fixed = {"lengthscale": 0.8, "noise": 0.6, "thresholds": [-0.6, 0.7]}
    fit = pmo.fit(pmo.gp_model(X, y, "expquad", **fixed), progressbar=False)
    model = pmo.latent_model(X, y, "expquad", **fixed)
    tree = pm.sample(1500, model=model, chains=2, random_seed=1, progressbar=False)
    tree = pmo.sample_posterior(model, tree, seed=1, progressbar=False)
    truth, ours = az.loo(tree, pointwise=True), pmo.loo(fit)
    reliable = truth.pareto_k < truth.good_k  # of the others importance sampling says nothing
    assert reliable.sum() >= 20
    np.testing.assert_allclose(ours.elpd_i[reliable], truth.elpd_i[reliable], atol=0.08)
    assert ours.elpd == pytest.approx(truth.elpd, abs=0.25)
    table = pmo.compare({"ep": fit, "nuts": tree}, reference="nuts", draws=3000)
    assert table.loc["ep", "tv_max"] < 0.03 and table.loc["ep", "latent_mean"] < 0.15
    assert table.loc["nuts", "engine"] == "nuts"


@pytest.mark.filterwarnings("ignore::UserWarning")  # ArviZ, of few draws
def test_a_sampled_tree_has_its_seconds(fits):
    """`pmo.sample_posterior` keeps what `pm.sample` says at the root of its tree."""
    tree = fits["ep"].to_datatree(draws=50, seed=1)
    tree.attrs["sampling_time"] = 2.5
    assert pmo.compare({"sampled": tree}).loc["sampled", "seconds"] == 2.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
@pytest.mark.filterwarnings("ignore:elpd_loo is of two kinds")
def test_nuts_is_a_reference():
    X, y = np.linspace(0, 3, 16), np.repeat([1, 2, 3, 2], 4)
    table = pmo.compare_engines(
        X,
        y,
        ["ep"],
        reference="nuts",
        test=([[0.5], [2.5]], [1, 2]),
        categories=[1, 2, 3],
        progressbar=False,
    )
    assert table.index.to_list() == ["ep", "nuts"]
    assert table.loc["nuts", "ess"] > 100 and table.loc["nuts", "tv_max"] == 0
    assert 0 < table.loc["ep", "tv_max"] < 0.5
    assert table["test_nlp"].notna().all()


@pytest.mark.filterwarnings("ignore:fit did not converge")
def test_leave_one_out_of_weighted_draws_says_where_they_are_too_few():
    """With little noise the exact engine is two nats above expectation propagation, which is good here."""
    x = np.linspace(-1.0, 1.0, 30)
    given = {"lengthscale": 0.3, "thresholds": [0.0]}
    fits = {
        (engine, noise): pmo.fit(
            pmo.gp_model(x, x > 0, "expquad", engine=engine, noise=noise, **given),
            progressbar=False,
        )
        for engine in ("ep", "exact")
        for noise in (0.01, 0.5)
    }
    good = pmo.loo(fits["exact", 0.5])  # without a warning
    assert not good.warning and 0.0 < good.pareto_k.max() < 0.7
    with pytest.warns(pmo.ConvergenceWarning, match=r"of \d+ of 30 rows rest on few draws"):
        poor = pmo.loo(fits["exact", 0.01])
    assert poor.warning and poor.pareto_k.max() > 0.7
    assert poor.elpd > pmo.loo(fits["ep", 0.01]).elpd + 1.0
    assert not pmo.loo(fits["ep", 0.01]).warning


def test_scores_that_are_not_finite_are_said(fits):
    posterior = fits["ep"].posterior
    scores = posterior.leave_one_out.value.copy()
    scores[3] = np.nan
    broken = replace(posterior)
    broken.__dict__["leave_one_out"] = SimpleNamespace(value=scores)
    with pytest.warns(pmo.ConvergenceWarning, match="of 1 of 72 rows are not finite"):
        found = pmo.loo(replace(fits["ep"], posterior=broken))
    assert found.warning
