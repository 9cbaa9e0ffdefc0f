"""What an integrated fit has besides a point estimate: hyperparameters with weights, and the posterior at each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.engines import ENGINES
from pmordinal.gram import Gram
from pmordinal.posterior import MixturePosterior, Posterior
from pmordinal.results.effects import interval_tails

if TYPE_CHECKING:
    from pmordinal.results.fit import OrdinalFit

MOST_KEPT = 2**26  # entries of the matrices of all members that are kept in memory: half a gigabyte
MATRICES = 4  # of order n that a posterior in use holds
STACKED = ("thresholds", "noise", "alpha", "mean", "precision")


@dataclass(frozen=True, eq=False)
class Member:
    """The posterior at one value of the hyperparameters, without the matrices that follow from it.

    Attributes
    ----------
    point : dict
        Every hyperparameter by name.
    log_density : float
        Log evidence plus log prior of the unconstrained hyperparameters.
    values : tuple of ndarray
        Parameters of the covariance.
    arrays : dict
        Thresholds, noise, and the fields of the posterior.
    extra : dict
        Further arrays that the engine's posterior needs.
    log_evidence : float
    converged : bool
    """

    point: dict[str, np.ndarray]
    log_density: float
    values: tuple[np.ndarray, ...]
    arrays: dict[str, np.ndarray]
    extra: dict[str, np.ndarray]
    log_evidence: float
    converged: bool

    @classmethod
    def of(cls, point: dict[str, np.ndarray], log_prior: float, posterior: Posterior) -> "Member":
        """Return what is kept of a posterior."""
        likelihood = posterior.likelihood
        sources = {"thresholds": likelihood, "noise": likelihood}
        arrays = {k: np.asarray(getattr(sources.get(k, posterior), k)) for k in STACKED}
        return cls(
            point,
            log_prior + posterior.log_evidence,
            tuple(np.asarray(value, dtype=float) for value in posterior.gram.values),
            arrays,
            {name: np.asarray(value) for name, value in posterior.extra.items()},
            posterior.log_evidence,
            posterior.status.converged,
        )

    def restored(self, mode: Posterior, engine: str) -> Posterior:
        """Return the posterior of an engine; `mode` is its posterior at other hyperparameters."""
        fields = dict(self.arrays)
        likelihood = replace(
            mode.likelihood, thresholds=fields.pop("thresholds"), noise=fields.pop("noise")
        )
        return ENGINES[engine].posterior_type.restore(
            support=mode.support,
            gram=Gram(mode.gram.kernel, mode.gram.X, list(self.values)),
            y=mode.y,
            likelihood=likelihood,
            log_evidence=self.log_evidence,
            status=replace(mode.status, converged=self.converged),
            **fields,
            **self.extra,
        )


class Members(Sequence[Posterior]):
    """The posteriors of all members; of large ones none is kept, each is built again when asked for."""

    def __init__(self, mode: Posterior, engine: str, records: Sequence[Member]):
        self.mode, self.engine, self.records = mode, engine, tuple(records)
        order = max(mode.support.size, 1)
        self._keep = len(self.records) * MATRICES * order**2 <= MOST_KEPT
        self._kept: dict[int, Posterior] = {}

    def __len__(self) -> int:
        """Return their number."""
        return len(self.records)

    def __getitem__(self, i):
        """Return one."""
        if i >= len(self.records):
            raise IndexError(i)
        if i in self._kept:
            return self._kept[i]
        posterior = self.records[i].restored(self.mode, self.engine)
        if self._keep:
            self._kept[i] = posterior
        return posterior

    def __getstate__(self) -> dict[str, Any]:
        """Leave the posteriors that were built out of pickles."""
        return {**self.__dict__, "_kept": {}}


@dataclass(frozen=True)
class Account:
    """How hyperparameters were integrated out.

    Attributes
    ----------
    method : {"ccd", "psis"}
    points : int
        Runs of the engine that have a weight.
    effective : float
        1 / Σ w², of so many equal weights the integral is worth.
    log_evidence : float
        Log p(y).
    log_evidence_error : float, optional
        Its standard error, for draws.
    pareto_k : float, optional
        Of the weights of draws: above 0.7 they cannot stand for the posterior.
    flat_directions : int
        Directions in which the density was too flat for its curvature to be used.
    higher : float
        By how many nats the density somewhere is above that at the optimum; zero if nowhere.
    rejected : int
        Points where the engine broke down.
    evaluations : int
        Runs of the engine for it all.
    corners : bool
        Whether a design has corner points; else its points are on the axes alone.
    """

    method: str
    points: int
    effective: float
    log_evidence: float
    log_evidence_error: float | None = None
    pareto_k: float | None = None
    flat_directions: int = 0
    higher: float = 0.0
    rejected: int = 0
    evaluations: int = 0
    corners: bool = True

    def __str__(self) -> str:
        """Return it in a few words."""
        found = f"integrated ({self.method}): {self.points} points worth {self.effective:.0f}"
        if self.pareto_k is not None:
            found += f", Pareto k {self.pareto_k:.2f}"
        if not self.corners:
            found += ", on the axes alone"
        if self.flat_directions:
            found += f", {self.flat_directions} flat directions"
        return found


@dataclass(frozen=True, eq=False)
class Integral:
    """Hyperparameters with weights, in place of their point estimate.

    Attributes
    ----------
    account : Account
    engine : str
    mode : Posterior
        The posterior at the point estimate.
    weights : ndarray, shape (K,)
        They sum to one.
    records : tuple of Member
    draws : dict
        Values of the hyperparameters, shape (S, …), that describe their own distribution.
    draw_weights : ndarray, shape (S,)
    """

    account: Account
    engine: str
    mode: Posterior = field(repr=False)
    weights: np.ndarray = field(repr=False)
    records: tuple[Member, ...] = field(repr=False)
    draws: dict[str, np.ndarray] = field(repr=False)
    draw_weights: np.ndarray = field(repr=False)

    def mixture(self) -> MixturePosterior:
        """Return the posterior of the latent function."""
        mean = self.weights @ np.stack([record.arrays["mean"] for record in self.records])
        account = self.account
        return MixturePosterior.of(
            self.mode, Members(self.mode, self.engine, self.records), self.weights, mean,
            account.log_evidence, account.log_evidence_error,
        )  # fmt: skip

    def to_dataset(self) -> xr.Dataset:
        """Return all but the mode as arrays for a file."""
        first = self.records[0]
        stacks = {f"array_{k}": np.stack([r.arrays[k] for r in self.records]) for k in STACKED}
        for i in range(len(first.values)):
            stacks[f"value_{i}"] = np.stack([r.values[i] for r in self.records])
        for kind in ("extra", "point"):
            for name in getattr(first, kind):
                stacks[f"{kind}_{name}"] = np.stack([getattr(r, kind)[name] for r in self.records])
        for name in ("log_density", "log_evidence", "converged"):
            stacks[name] = np.array([getattr(r, name) for r in self.records], dtype=float)
        stacks["weights"], stacks["draw_weights"] = self.weights, self.draw_weights
        stacks |= {f"draws_{name}": values for name, values in self.draws.items()}
        account = np.frombuffer(json.dumps(asdict(self.account)).encode(), dtype=np.uint8)
        stacks["account"] = account
        return xr.Dataset(
            {name: ([f"{name}_{i}" for i in range(a.ndim)], a) for name, a in stacks.items()}
        )

    @classmethod
    def from_dataset(cls, mode: Posterior, engine: str, data: xr.Dataset) -> "Integral":
        """Return what `to_dataset` had made a dataset of."""
        found = {str(name): values.values for name, values in data.data_vars.items()}

        def named(kind: str, i: int | slice = slice(None)) -> dict[str, np.ndarray]:
            start = f"{kind}_"
            return {k.removeprefix(start): v[i] for k, v in found.items() if k.startswith(start)}

        records = []
        for i in range(len(found["weights"])):
            values = named("value", i)
            records.append(
                Member(
                    {k: np.asarray(v) for k, v in named("point", i).items()},
                    float(found["log_density"][i]),
                    tuple(np.asarray(values[str(j)]) for j in range(len(values))),
                    named("array", i),
                    {k: np.asarray(v) for k, v in named("extra", i).items()},
                    float(found["log_evidence"][i]),
                    bool(found["converged"][i]),
                )
            )
        account = json.loads(found["account"].astype(np.uint8).tobytes().decode())
        return cls(
            Account(**account),
            engine,
            mode, found["weights"], tuple(records), named("draws"),
            found["draw_weights"],
        )  # fmt: skip


def integrated(fit: "OrdinalFit", integral: Integral, **changes: Any) -> "OrdinalFit":
    """Return a fit with its hyperparameters integrated out."""
    return replace(fit, posterior=integral.mixture(), integral=integral, **changes)


def hyperparameters(fit: "OrdinalFit", ci_prob: float | None = None) -> pd.DataFrame:
    """Return mean, standard deviation and interval of each hyperparameter; see `OrdinalFit.hyperparameters`."""
    if fit.integral is None:
        raise ValueError(
            "hyperparameters of a point estimate have no distribution: see fit.point, or take fit.integrate()"
        )
    integral = fit.integral
    return described(fit, integral.draws, integral.draw_weights, interval_tails(ci_prob))


def described(
    fit: "OrdinalFit", draws: Mapping[str, np.ndarray], w: np.ndarray, tails: Any
) -> pd.DataFrame:
    """Return ``mean``, ``sd`` and the quantiles ``lower`` and ``upper`` of weighted draws, a row for each entry."""
    known = {"feature": fit.features.names, "threshold": fit.labels.threshold_names}
    known["column"] = tuple(column.name for column in fit.features.columns)
    rows: dict[str, dict[str, float]] = {}
    for name, values in draws.items():
        dims = fit.dims.get(name, ())
        for index in np.ndindex(values.shape[1:]):
            x = values[(slice(None), *index)]
            mean = float(w @ x)
            low, high = np.quantile(x, tails, weights=w, method="inverted_cdf")
            said = [
                str(known[dims[axis]][i]) if axis < len(dims) and dims[axis] in known else str(i)
                for axis, i in enumerate(index)
            ]
            one = values[0].size == 1 and not known.keys() & set(dims)  # a number says no more
            rows[name if one else f"{name}[{', '.join(said)}]"] = {
                "mean": mean, "sd": float(np.sqrt(w @ (x - mean) ** 2)), "lower": low, "upper": high,
            }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "sd", "lower", "upper"])
