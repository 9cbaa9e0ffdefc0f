"""`compare`: a table of fits of several engines and of sampled trees, one row each."""

from collections.abc import Mapping
from dataclasses import dataclass

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

from pmordinal import checks
from pmordinal.data.labels import Labels
from pmordinal.data.same_rows import how_they_differ
from pmordinal.diagnostics.comparison import Comparison, Result, in_label_units, in_other_units
from pmordinal.diagnostics.loo import LeaveOneOut, loo
from pmordinal.diagnostics.predictive import SAMPLE, predicted, predictions
from pmordinal.diagnostics.scoring import scores
from pmordinal.results.curvature import pareto_k
from pmordinal.results.fit import OrdinalFit
from pmordinal.results.left_out import warn_of_two_kinds
from pmordinal.words import guessing

# Distances that have the units of the latent function.
ON_THE_SCALE = ("latent_mean", "latent_sd", "latent_wasserstein", "thresholds", "hyperparameters")


@dataclass(frozen=True)
class _Summary:
    """The quantities by which two posteriors are compared."""

    draws: xr.Dataset
    mean: np.ndarray
    sd: np.ndarray
    probs: np.ndarray
    rows: np.ndarray
    labels: Labels

    @property
    def hyperparameters(self) -> xr.Dataset:
        """Means of all variables except the latent function."""
        return self.draws.drop_dims(_rows_of(self.draws)).mean(SAMPLE)


@guessing
def compare(
    results: Mapping[str, Result],
    reference: str | None = "auto",
    *,
    test: tuple | None = None,
    draws: int = 1000,
    seed: int | None = 0,
    random_seed: int | None = None,
) -> Comparison:
    """Return a table of fits and sampled trees of the same data, one row each.

    Parameters
    ----------
    results : mapping of str to OrdinalFit or DataTree
        Fits of any engine; trees as `OrdinalFit.to_datatree`, `sample_posterior` or a sampled
        `latent_model` have them: with ``f`` and ``thresholds`` in the posterior.
    reference : str, optional
        The one to measure distances from. ``"auto"`` takes what is nearest to the truth: a result of
        ``"exact"``, else draws whose hyperparameters move as well, else none. None measures nothing.
    test : tuple of (X, y), optional
        Rows to score the predictions on. Trees need the group ``predictions`` for these rows, from
        ``sample_posterior(model, tree, X)``.
    draws : int
        Draws of each fit, for k-hat and the distances between distributions.
    seed, random_seed : int, optional

    Returns
    -------
    Comparison
        A DataFrame, and a DataTree in its attribute ``tree``. It is shown short, see `Comparison`; these are
        its columns. ``seconds``, ``evaluations``, ``converged``;
        ``log_evidence`` with its Monte-Carlo standard error ``log_evidence_error`` or with
        ``log_evidence_correction``, the engine's own estimate of what it misses; ``elpd_loo`` and its
        standard error ``se``, with hyperparameters as ``loo_hyper`` says, ``"fixed"`` or ``"integrated"`` (see `loo`; a
        warning says where both are in the table); ``k_hat``, the Pareto shape of the importance weights of the latent
        draws (below 0.7 they can be reweighted to the exact posterior at these hyperparameters; NaN for exact
        draws and for regression on labels); ``r_hat``, ``ess`` and ``divergences`` of MCMC, the worst
        hyperparameter; ``test_nlp`` and the other `scores` of the test rows.

        With a reference: ``latent_mean``, the largest distance of posterior means of f in posterior
        standard deviations of the reference; ``latent_sd``, the largest ratio of standard
        deviations, as a logarithm; ``latent_wasserstein``, the mean over the rows of Wasserstein's distance
        in the same units; ``thresholds``, the largest distance; ``hyperparameters``, the largest
        ratio of positive ones, as a logarithm; ``tv_mean`` and ``tv_max``, total variation
        between the class probabilities of the rows. Distances of latent functions on different scales
        (``"plsor"`` has that of the class numbers) are NaN.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> wine = pmo.datasets.wine()
    >>> X, y = wine[["temperature", "contact"]], wine["rating"]
    >>> engines = ("laplace", "ep")
    >>> fits = {e: pmo.fit(pmo.gp_model(X, y, engine=e), progressbar=False) for e in engines}
    >>> table = compare(fits, reference="ep")
    >>> bool(table.loc["laplace", "tv_max"] < 0.02)
    True
    >>> list(table.tree.children)
    ['summary', 'latent', 'predictive', 'loo', 'hyperparameters', 'distance']
    """
    seed = checks.one_seed(seed, random_seed)
    if not isinstance(results, Mapping):
        raise TypeError(
            f"results must be a mapping of names to fits or trees, got {checks.got(results)}"
        )
    if not results:
        raise ValueError("results is empty: pass a mapping of names to fits or trees")
    if reference == "auto" and "auto" not in results:
        reference = _nearest_to_the_truth(results)
    elif reference is not None:
        checks.one_of("reference", reference, list(results))
    draws = checks.integer("draws", draws, minimum=25)  # leaves five for the tail of k_hat
    trees = {name: _tree(result, draws, seed) for name, result in results.items()}
    summaries = {name: _summarise(name, results[name], trees[name]) for name in results}
    first, *others = summaries
    for name in others:
        _same_data(name, summaries[name], reference or first, summaries[reference or first])
    rows: dict[str, dict] = {}
    elpd: dict[str, LeaveOneOut] = {}
    distances = {}
    for name, result in results.items():
        elpd[name] = loo(result)
        rows[name] = _quality(result, trees[name])
        rows[name] |= {"elpd_loo": elpd[name].elpd, "se": elpd[name].se}
        rows[name]["loo_hyper"] = elpd[name].hyper
        rows[name]["k_hat"] = _k_hat(result, trees[name])
        if test is not None:
            if not isinstance(test, tuple) or len(test) != 2:
                raise TypeError(f"test must be a tuple of rows and labels, got {checks.got(test)}")
            rows[name] |= _test_scores(name, result, *test)
        if reference is not None:
            rows[name] |= _distance(summaries[name], summaries[reference])
            distances[name] = _transport(summaries[name], summaries[reference], seed)
            rows[name]["latent_wasserstein"] = distances[name]["wasserstein"].get("f", np.nan)
            if in_other_units(result, results[reference]):
                rows[name] |= dict.fromkeys(ON_THE_SCALE, np.nan)
    warn_of_two_kinds({name: found.hyper for name, found in elpd.items()})
    table = Comparison.from_dict(rows, orient="index").rename_axis("result")
    table = Comparison(table)
    table.results = dict(results)
    table.tree = _as_tree(table, summaries, elpd, distances, reference)
    return table


def _nearest_to_the_truth(results: Mapping[str, Result]) -> str | None:
    if len(results) < 2:
        return None
    for name, result in results.items():
        if isinstance(result, OrdinalFit) and result.engine == "exact":
            return name
    for name, result in results.items():
        if isinstance(result, xr.DataTree) and _convergence(result).get("converged"):
            return name
    return None


def _rows_of(posterior: xr.Dataset) -> set:
    """Return the dimension of the latent function, as a set; empty if there is none."""
    return set(posterior["f"].dims) - set(SAMPLE) if "f" in posterior else set()


def _tree(result: Result, draws: int, seed) -> xr.DataTree:
    return result.to_datatree(draws, seed=seed) if isinstance(result, OrdinalFit) else result


def _quality(result: Result, tree: xr.DataTree) -> dict:
    row = {"engine": "mcmc", "seconds": np.nan, "evaluations": np.nan, "converged": True}
    row |= {"log_evidence": np.nan, "log_evidence_error": np.nan, "log_evidence_correction": np.nan}
    if isinstance(result, OrdinalFit):
        status = result.status
        row |= {
            "engine": result.engine,
            "seconds": status.seconds,
            "evaluations": status.evaluations,
            "converged": status.converged and result.posterior.status.converged,
            "log_evidence": result.log_evidence,
        }
        found = {
            "log_evidence_error": result.posterior.log_evidence_error,
            "log_evidence_correction": status.log_evidence_correction,
        }
        return row | {name: value for name, value in found.items() if value is not None}
    posterior = tree["posterior"]
    row["engine"] = tree.attrs.get("engine", "mcmc")
    known = {**tree.attrs, **posterior.attrs}
    row["seconds"] = known.get("sampling_time", known.get("seconds", np.nan))
    return row | _convergence(tree)


def _convergence(tree: xr.DataTree) -> dict:
    """Return R-hat, ESS and divergences of the hyperparameters; nothing if they are fixed."""
    sampled = tree["posterior"].to_dataset()
    sampled = sampled.drop_dims(_rows_of(sampled))
    moving = [name for name, values in sampled.items() if _spread(values).max() > 0]
    if sampled.sizes.get("chain", 1) < 2 or not moving:
        return {}
    r_hat = float(az.rhat(sampled[moving]).to_array().max())
    ess = float(az.ess(sampled[moving]).to_array().min())
    row = {"r_hat": r_hat, "ess": ess, "converged": r_hat <= 1.01}
    if "sample_stats" in tree.children and "diverging" in tree["sample_stats"]:
        row["divergences"] = int(tree["sample_stats"]["diverging"].sum())
    return row


def _k_hat(result: Result, tree: xr.DataTree) -> float:
    """Return the Pareto k of the weights exp(log_p − log_q); NaN if the tree has no log_q."""
    if isinstance(result, OrdinalFit) and in_label_units(result):
        return np.nan
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in tree.children else xr.Dataset()
    if "log_p" not in stats or "log_q" not in stats:
        return np.nan
    log_p, log_q = stats["log_p"].values, stats["log_q"].values
    return np.nan if np.ptp(log_p - log_q) < 1e-6 else pareto_k(log_p, log_q)


def _test_scores(name: str, result: Result, X, y) -> dict[str, float]:
    if isinstance(result, OrdinalFit):
        probs = result.predict(X)
    else:
        probs = predicted(result, name)
    return {f"test_{score}": value for score, value in scores(y, probs).items()}


def _summarise(name: str, result: Result, tree: xr.DataTree) -> _Summary:
    try:
        now = predictions(result, leave_one_out=False)
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None
    draws = tree["posterior"].to_dataset()
    if isinstance(result, OrdinalFit):
        mean, sd = result.posterior.mean, np.sqrt(result.posterior.variance)
        if (shift := result.features.shift(result.posterior.gram.X)) is not None:
            mean = mean + shift
    else:
        mean, sd = draws["f"].mean(SAMPLE).values, draws["f"].std(SAMPLE).values
    return _Summary(draws, mean, sd, now.probs, now.rows, Labels(now.codes, tuple(now.names)))


def _same_data(name: str, this: _Summary, reference: str, other: _Summary) -> None:
    reason = how_they_differ(this.labels, other.labels, this.rows, other.rows)
    if reason is not None:
        raise ValueError(
            f"{name!r} has {reason}, compared with {reference!r}: compare results of the same rows"
        )


def _distance(this: _Summary, other: _Summary) -> dict[str, float]:
    variation = 0.5 * np.abs(this.probs - other.probs).sum(1)
    ours, theirs = this.hyperparameters, other.hyperparameters
    ratios = [
        float(np.abs(np.log(ours[k].values / theirs[k].values)).max())
        for k in ours
        if k in theirs and ours[k].shape == theirs[k].shape and k != "thresholds"
        if (ours[k] > 0).all() and (theirs[k] > 0).all()
    ]
    return {
        "latent_mean": float(np.max(np.abs(this.mean - other.mean) / other.sd)),
        "latent_sd": float(np.max(np.abs(np.log(this.sd / other.sd)))),
        "thresholds": float(np.abs(ours["thresholds"].values - theirs["thresholds"].values).max()),
        "hyperparameters": max(ratios, default=np.nan),
        "tv_mean": float(variation.mean()),
        "tv_max": float(variation.max()),
    }


def _transport(this: _Summary, other: _Summary, seed) -> dict[str, dict[str, float]]:
    """Return ArviZ's Wasserstein and Kullback–Leibler distances of each quantity.

    The Wasserstein distance is the mean over the marginals, in standard deviations of the reference if
    they are not zero. The divergence is that of the joint distribution; a fixed point has none.
    """
    found: dict[str, dict[str, float]] = {"wasserstein": {}, "kl": {}}
    for name in [*map(str, other.hyperparameters), "f"]:
        if name not in this.draws:
            continue
        ours, theirs = this.draws[[name]], other.draws[[name]]
        if ours[name].shape[2:] != theirs[name].shape[2:]:
            continue
        if this is other:
            found["wasserstein"][name] = found["kl"][name] = 0.0
            continue
        sd = _spread(theirs[name])
        scale = np.where(sd > 0, sd, 1.0)
        ours, theirs = ours.copy(), theirs.copy()
        for part in (ours, theirs):
            part[name] = part[name].dims, part[name].values / scale, {}
        count = min(500, *(len(part.stack(sample=SAMPLE)["sample"]) for part in (ours, theirs)))
        options = {"random_seed": seed, "round_to": "none", "num_samples": count}
        whole = az.wasserstein(ours, theirs, joint=False, **options)
        found["wasserstein"][name] = float(whole) / sd.size
        moves = sd.min() > 0 and _spread(ours[name]).min() > 0
        if moves and sd.size <= 20:  # nearest neighbours fail in more dimensions
            found["kl"][name] = float(az.kl_divergence(ours, theirs, **options))
    return found


def _spread(draws: xr.DataArray) -> np.ndarray:
    """Return standard deviations; zero if all draws are equal up to rounding."""
    sd = draws.std(SAMPLE).values
    return np.where(sd > 1e-12 * abs(draws).max(SAMPLE).values, sd, 0.0)


def _as_tree(
    table: pd.DataFrame,
    summaries: Mapping[str, _Summary],
    elpd: Mapping[str, az.ELPDDataLOO],
    distances: Mapping[str, dict],
    reference: str | None,
) -> xr.DataTree:
    names = pd.Index(summaries, name="result")
    first = next(iter(summaries.values()))
    coords = {"result": names, "obs": first.rows, "class": first.labels.class_names}
    rows = ("result", "obs")
    groups = {
        "summary": xr.Dataset.from_dataframe(pd.DataFrame(table)),
        "latent": xr.Dataset(
            {
                "mean": (rows, [s.mean for s in summaries.values()]),
                "sd": (rows, [s.sd for s in summaries.values()]),
            },
            {k: coords[k] for k in rows},
        ),
        "predictive": xr.Dataset(
            {"probs": ((*rows, "class"), [s.probs for s in summaries.values()])}, coords
        ),
        "loo": xr.Dataset(
            {"elpd_i": (rows, [np.asarray(e.elpd_i) for e in elpd.values()])},
            {k: coords[k] for k in rows},
        ),
        "hyperparameters": xr.concat(
            [s.hyperparameters for s in summaries.values()],
            names,
            data_vars="all",
            coords="minimal",
            compat="override",
            join="outer",
        ),
    }
    if reference is not None:
        groups["distance"] = xr.Dataset(
            {
                kind: xr.DataArray(
                    pd.DataFrame([distances[name][kind] for name in summaries], names),
                    dims=("result", "quantity"),
                )
                for kind in ("wasserstein", "kl")
            }
        )
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {} if reference is None else {"reference": reference}
    return tree
