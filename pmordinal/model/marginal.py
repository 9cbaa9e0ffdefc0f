"""`MarginalOrdinal`: a Gaussian process with ordinal labels; an engine integrates the latent function out."""

from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable

from pmordinal.checks import got, one_of
from pmordinal.data import by_row, groups
from pmordinal.data import design as design_of
from pmordinal.data.design import Design
from pmordinal.data.features import Features
from pmordinal.data.terms import Term
from pmordinal.engines import Engine, get_engine
from pmordinal.gram import Kernel, check_columns, lower
from pmordinal.gram.graph import ONCE
from pmordinal.links import Link, get_link
from pmordinal.model.laws import ByLaw, Law
from pmordinal.model.observed import is_data
from pmordinal.model.ops.evidence import OrdinalEvidence, PriorLatent
from pmordinal.model.ordinal import classify, draw_noise, increasing_tensor, positive_tensor
from pmordinal.model.problem import Problem

IMPROPER = (FlatRV, HalfFlatRV)


class MarginalOrdinal:
    """Gaussian process with ordinal labels, in the manner of ``pm.gp.Marginal``.

    Parameters
    ----------
    cov_func : pm.gp.cov.Covariance
        Covariance of the latent function, with random variables as parameters.
    engine : str or Engine
        How the latent function is integrated out: ``"ep"``, ``"laplace"``, …, or an instance with options such
        as ``pmo.EP(tol=1e-10)``.
    link : {"probit", "logit", "cloglog"}
        Distribution of the noise on the latent function.

    Examples
    --------
    >>> import pymc as pm, pmordinal as pmo
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> with pm.Model() as model:
    ...     ls = pm.InverseGamma("ls", 5, 5)
    ...     b = pmo.thresholds("thresholds", n_classes=3)
    ...     s = pm.HalfNormal("noise", 1.0)
    ...     gp = pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(1, ls=ls))
    ...     y = gp.marginal_likelihood("y", X, [0, 0, 1, 1, 2, 2], thresholds=b, noise=s)
    >>> bool(np.isfinite(model.point_logps()["y"]))
    True
    """

    def __init__(self, cov_func, engine: str | Engine = "ep", link: str | Link = "probit") -> None:
        if not isinstance(cov_func, pm.gp.cov.BaseCovariance):
            raise TypeError(
                f"cov_func must be a pm.gp.cov covariance, got {type(cov_func).__name__}; a matrix "
                "becomes one by pmo.Precomputed(matrix)"
            )
        self.cov_func = cov_func
        self.engine = get_engine(engine)
        self.link = get_link(link)
        self.engine.check_link(self.link)

    def marginal_likelihood(
        self,
        name: str,
        X,
        y,
        thresholds,
        noise,
        *,
        categories=None,
        objective: str | None = None,
        unlabeled=None,
        features: Features | None = None,
        start: dict | None = None,
        thresholds_by: str | None = None,
        noise_by: str | None = None,
        weights=None,
        **kwargs,
    ):
        """Add the labels as an observed variable, the latent function integrated out.

        Parameters
        ----------
        name : str
            Name of the observed variable.
        X : DataFrame or array_like, shape (n, d)
            Rows, in the units of the covariance.
        y : array_like, shape (n,)
            Labels: ordered categorical, integers, or anything with `categories`. Missing labels are
            marginalised.
        thresholds : tensor_like, shape (r − 1,), or (groups, r − 1) with `thresholds_by`
            Increasing, see `thresholds`.
        noise : tensor_like, or of shape (groups,) with `noise_by`
            Scale of the noise on the latent function.
        categories : sequence, optional
            All labels in order, the unobserved ones included.
        objective : str, optional
            The engine's objective that is used as log probability of `y`; default is its first, the evidence.
        unlabeled : DataFrame or array_like, shape (m, d), optional
            Further rows without a label.
        features : Features, optional
            How `X` becomes rows; learned from `X` if not given.
        start : dict, optional
            Where `fit` starts, by variable name. Thresholds and noise have a start of their own, see `fit`.
        thresholds_by, noise_by : str, optional
            Columns of `X` that say which thresholds cut a row, and which noise is on it: those of the groups
            in order, as a categorical column has them, else sorted. One more may come after them, for new rows
            of other groups. A column named here is no attribute of the latent function.
        weights : str or array_like, shape (n,), optional
            How many rows each row stands for; see `gp_model`.
        **kwargs
            For the variable, such as `dims`.

        Returns
        -------
        TensorVariable
            The observed variable, class codes of the labelled rows.
        """
        X, every = by_row.read(X, thresholds_by, noise_by, weights)
        design = design_of.read(
            X, y, categories, unlabeled=unlabeled, features=features, by_row=every
        )
        check_columns(self.cov_func, design.features.names)
        return self.observe(
            name, design, thresholds, noise, objective=objective, start=start, **kwargs
        )

    def observe(
        self,
        name: str,
        design: Design,
        thresholds,
        noise,
        *,
        objective: str | None = None,
        start: dict | None = None,
        terms: tuple[Term, ...] = (),
        **kwargs,
    ):
        """Add the labels of a design as an observed variable; see `marginal_likelihood`.

        `terms` names the parts of the covariance, in their order.
        """
        labels = design.labels
        thresholds = pt.cast(increasing_tensor("thresholds", thresholds), "float64")
        noise = pt.cast(positive_tensor("noise", noise), "float64")
        known = design.by_row
        check_thresholds(thresholds, labels.n_classes, known.thresholds)
        check_noise(noise, known.noise)
        self.engine.check_weights(known.weights)
        known = replace(
            known,
            thresholds=_with_population(known.thresholds, thresholds),
            noise=_with_population(known.noise, noise),
        )
        objective = objective or self.engine.objectives[0]
        one_of("objective", objective, self.engine.objectives)
        r = labels.n_classes
        papers = -1.0 + 2.0 / r * np.arange(r - 1)  # b_1 = −1, Δ = 2/r [CG2005, footnote 6]
        b = thresholds.name if known.thresholds is None else "thresholds_population"
        begin = {
            b: papers,
            f"{b}_first": papers[0],
            f"{b}_gaps": np.diff(papers),
            noise.name if known.noise is None else "noise_population": 1.0,
        }
        kernel = lower(self.cov_func)
        problem = Problem(
            kernel=kernel,
            X=design.X,
            labels=labels,
            features=design.features,
            engine=self.engine,
            objective=objective,
            link=self.link,
            unlabeled=design.unlabeled,
            by_row=known,
            scale_is_free=_scale_is_free(kernel, thresholds, noise)
            and not self.engine.in_label_units,  # labels as numbers have a scale
            start=begin | (start or {}),
            terms=terms,
            whole=design.whole,
        )
        return _observed(name, problem, thresholds, noise, **kwargs)


def check_thresholds(thresholds, n_classes: int, by: groups.Groups | None = None) -> None:
    """Raise where it is known that thresholds are not r − 1 for r classes, or so many for each group."""
    shape = thresholds.type.shape
    if None in shape and is_data(thresholds):  # pm.Data has no fixed length
        shape = tuple(thresholds.shape.eval(mode=ONCE).tolist())
    if by is None and len(shape) == 2:
        raise ValueError(
            f"thresholds must be a vector of {n_classes - 1}, got shape {shape}: say with thresholds_by= which column "
            "of X has the group of each row"
        )
    if by is not None:
        counts = (None, len(by.levels), len(by.levels) + 1)
        if len(shape) != 2 or shape[0] not in counts or shape[1] not in (None, n_classes - 1):
            raise ValueError(
                f"thresholds must have shape ({len(by.levels)}, {n_classes - 1}) for the groups of {by.name!r} and "
                f"{n_classes} classes, got {shape}: make them with pmo.thresholds(by={by.name!r})"
            )
    elif shape not in ((None,), (n_classes - 1,)):
        raise ValueError(
            f"thresholds must be a vector of {n_classes - 1} for {n_classes} classes, got shape {shape}: pass "
            f"n_classes={n_classes} to pmo.thresholds, or categories= with all labels in order"
        )


def check_noise(noise, by: groups.Groups | None = None) -> None:
    """Raise where it is known that noise is not a number, or one for each group."""
    shape = noise.type.shape
    if by is None and len(shape) != 0:
        raise ValueError(
            f"noise must be a scalar, got {len(shape)} dimensions: say with noise_by= which column of X has the group "
            "of each row"
        )
    if by is not None:
        counts = (None, len(by.levels), len(by.levels) + 1)
        if len(shape) != 1 or shape[0] not in counts:
            raise ValueError(
                f"noise must have shape ({len(by.levels)},) for the groups of {by.name!r}, got {shape}"
            )


def _with_population(by: groups.Groups | None, parameter) -> groups.Groups | None:
    """Return groups that know whether there is a parameter besides theirs, for rows of other groups."""
    if by is None:
        return None
    return replace(by, has_population=parameter.type.shape[0] == len(by.levels) + 1)


def _scale_is_free(kernel: Kernel, thresholds, noise) -> bool:
    """Tell whether amplitude, noise and thresholds are all free; raise if a prior of them is improper."""
    parts = [
        [v for v in ancestors(variables) if v.owner and is_random(v.owner.op)]
        for variables in (list(kernel.scale), [noise], [thresholds])
    ]
    if not all(parts):
        return False
    improper = [v.name for part in parts for v in part if isinstance(v.owner.op, IMPROPER)]
    if improper:
        raise ValueError(
            "the scale is not identified: the covariance's amplitude, the noise and the thresholds are all free, and "
            f"{improper[0]!r} has an improper prior. Fix the amplitude or the noise at 1, or give all of them "
            "proper priors"
        )
    return True


def check_model(model) -> pm.Model:
    """Return the model; raise a TypeError if it is no PyMC model."""
    if not isinstance(model, pm.Model):
        raise TypeError(
            f"model must be a pm.Model, such as pmo.gp_model(X, y) returns, got {got(model)}"
        )
    return model


def is_random(op) -> bool:
    """Tell whether an Op makes random variables."""
    return isinstance(op, RandomVariable | SymbolicRandomVariable)


@dataclass(frozen=True)
class EvidenceLaw(Law):
    """The joint distribution of all labels, with the latent function integrated out.

    Its parameters are those of the kernel, the thresholds, the noise, and a vector as long as the draws.
    """

    name = "MarginalOrdinal"
    signature: str
    of: OrdinalEvidence

    def draw(self, *parameters, size):
        """Draw the latent function, then labels."""
        *values, thresholds, noise, rows = parameters
        problem: Problem = self.of.problem
        by_threshold, by_noise = problem.by_row.codes()
        thresholds = thresholds if by_threshold is None else thresholds[by_threshold]
        noise = noise if by_noise is None else noise[by_noise]
        z = pm.Normal.dist(0.0, 1.0, size=rows.shape)
        f = PriorLatent(problem)(z, *values)
        if problem.rows.shift is not None:
            f = f + problem.rows.shift
        return classify(f + noise * draw_noise(problem.link, rows.shape), thresholds)

    def logp(self, value, *parameters):
        """Return the engine's objective."""
        return self.of(*parameters[:-1], value)[0]


def _observed(name: str, problem: Problem, thresholds, noise, **kwargs):
    parameters = [pt.cast(p, "float64") for p in problem.kernel.parameters]
    axes = iter("abcdefghilmopqrstuvwxyz")
    shapes = [",".join(next(axes) for _ in range(p.type.ndim)) for p in parameters]
    shapes += ["J,j" if thresholds.type.ndim == 2 else "j", "N" if noise.type.ndim else "", "n"]
    signature = ",".join(f"({s})" for s in shapes) + "->(n)"
    law = EvidenceLaw(signature, OrdinalEvidence(problem))
    parameters += [thresholds, noise, pt.as_tensor(np.arange(problem.y.size))]
    return ByLaw(name, law, *parameters, observed=problem.y, **kwargs)
